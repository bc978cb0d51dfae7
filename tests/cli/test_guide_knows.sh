# The guide's corpus and the program stay together: each command and key of the one is one of the other, each subcommand,
# option and key of the manual is told about, and no answer names a command, an option or a subcommand that does not exist.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
XDG_STATE_HOME=$dir/state XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config XDG_DATA_HOME=$dir/data EBB_MODELS=
export XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME EBB_MODELS
corpus=models/corpus
bad=0
fail() { echo "$*"; bad=1; }
[ -f $corpus/have.txt ] || { echo "no $corpus"; exit 77; }

printf '/help\n/quit\n' | $EBB --plain 2>&1 | grep -o '^/[a-z]\+' | sort >"$dir/commands"
grep '^/' $corpus/have.txt | sort >"$dir/have"
[ -s "$dir/commands" ] || fail "/help lists no commands"
only() { comm "$1" "$dir/commands" "$2" | tr '\n' ' '; }
[ -z "$(only -23 "$dir/have")" ] || fail "not in $corpus/have.txt: $(only -23 "$dir/have")"
[ -z "$(only -13 "$dir/have")" ] || fail "in $corpus/have.txt, but not in the program: $(only -13 "$dir/have")"

for c in $(cat "$dir/commands"); do
    grep -q "^\[[a-z-]*\] $c\$" $corpus/facts.txt || fail "$corpus/facts.txt tells nothing about $c"
done
for k in $(grep -v '^[/#]' $corpus/have.txt); do
    grep -q -- "$k" docs/ebb.1 || fail "the key $k of $corpus/have.txt is not in the manual"
done

# What answers say: "say: ..." and behind the arrow of a follow-up.
sed -n 's/^say: //p; s/^then: .* => \([^@]\)/\1/p' $corpus/facts.txt $corpus/talk.txt $corpus/asked-*.txt >"$dir/said"
grep -o '\(^\|[ (]\)/[a-z_]\+\($\|[^a-z/_]\)' "$dir/said" | grep -o '/[a-z_]*' | sort -u >"$dir/said-commands"
[ -z "$(only -13 "$dir/said-commands")" ] || fail "answers name commands that do not exist: $(only -13 "$dir/said-commands")"

subcommands=$($EBB --help | sed -n 's/^ *ebb \([a-z]\+\) .*/\1/p')
{ $EBB --help; for s in $subcommands; do $EBB "$s" --help; done; echo --help --version; } >"$dir/help" 2>&1
for o in $(grep -o '\(^\|[ (]\)--[a-z][a-z-]*' "$dir/said" "$corpus/facts.txt" -h | grep -o -- '--[a-z-]*' | sort -u); do
    grep -q -- "$o\($\|[^a-z-]\)" "$dir/help" || fail "the corpus names the option $o, which does not exist"
done
told() { grep -q -e "$1\($\|[^a-z-]\)" $corpus/facts.txt $corpus/asked-*.txt || fail "the corpus tells nothing about $1"; }
for o in $(grep -o -e '--[a-z][a-z-]*' "$dir/help" | sort -u); do
    told "$o"
done
for s in $subcommands; do
    [ "$s" = chat ] || grep -q "^\[[a-z-]*\] ebb $s" $corpus/facts.txt || fail "$corpus/facts.txt tells nothing about ebb $s"
done
for k in $(sed -n '/^\.Sh KEYS/,/^\.Sh COMMANDS/s/^\.It //p' docs/ebb.1 | tr -d ,); do
    grep -qx -e "$k" $corpus/have.txt || told "$k"
done
for v in $(sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/s/^\.It Ev //p' docs/ebb.1 | tr -d ,); do
    told "$v"
done
for s in $(sed -n 's/^\[[a-z-]*\] ebb \([a-z]\+\).*/\1/p' $corpus/facts.txt | sort -u); do
    echo "$subcommands" | grep -qx "$s" || fail "$corpus/facts.txt tells about ebb $s, which does not exist"
done
# The corpus can be read as its training reads it: no fact twice, no question to a fact that is not there.
if command -v python3 >/dev/null; then
    read=$(cd models && python3 -B -c '
from corpus import Corpus
unknown = Corpus().unknown
assert not unknown, f"asked-*.txt asks about {unknown}"' 2>&1) || fail "models/corpus: $(echo "$read" | tail -n 1)"
fi
exit $bad
