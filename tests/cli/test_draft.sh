# A draft model on the command line: the same text, fewer passes; plan, bench and configuration know it; errors say which files.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
EBB=${EBB:-build/release/ebb}
models=../shared/data/models
stories=$models/stories260K.gguf
baby=$models/babyllama-tok105-f32.gguf
[ -f "$stories" ] && [ -f "$baby" ] || { echo "no models in $models"; exit 77; }
XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
export XDG_CACHE_HOME XDG_CONFIG_HOME
fail() { echo "$*"; exit 1; }
ebb() { "$EBB" "$@" </dev/null; }
value() { sed "s/.*\"$1\": *\([^,}]*\).*/\1/" "$2"; }
say="-p once -n 60 --ctx 128 --no-kv-cache"

for how in --greedy "--temp 1 --seed 3"; do
    ebb run -m "$stories" $say $how >"$dir/without" || fail "run without"
    ebb run -m "$stories" --draft "$stories" --draft-tokens 5 $say $how >"$dir/with" || fail "run with"
    cmp "$dir/with" "$dir/without" || fail "another text ($how)"
    ebb run -m "$stories" --draft "$stories" $say $how >"$dir/with" || fail "run with, as many as pay"
    cmp "$dir/with" "$dir/without" || fail "another text ($how), as many as pay"
done

ebb run -m "$stories" --draft "$stories" --draft-tokens 5 $say --greedy --json >"$dir/json" || fail "run --json"
[ "$(value accepted "$dir/json")" -gt 40 ] || fail "of $(value drafted "$dir/json") guesses $(value accepted "$dir/json") were right"

ebb bench -m "$stories" --draft "$stories" --draft-tokens 5 -p 8 -n 60 -r 1 --json >"$dir/json" || fail "bench --json"
[ "$(value decode_passes "$dir/json")" -le 20 ] || fail "$(value decode_passes "$dir/json") passes for 60 tokens"
ebb bench -m "$stories" -p 8 -n 60 -r 1 --json >"$dir/json" || fail "bench --json without"
[ "$(value decode_passes "$dir/json")" -eq 60 ] || fail "$(value decode_passes "$dir/json") passes for 60 tokens without a draft model"
ebb bench -m "$stories" --draft "$stories" -p 8 -n 8 -r 1 -q >"$dir/text" || fail "bench"
grep -q 'predicted for draft tokens of which [0-9]* % are right; without a draft model [0-9.]*$' "$dir/text" || fail "not predicted with the draft model: $(cat "$dir/text")"
ebb bench -m "$stories" -p 8 -n 8 -r 1 -q | grep -q 'draft' && fail "a draft model in a bench without one"

ebb plan -m "$stories" --draft "$stories" >"$dir/plan" || fail plan
grep -q '^  draft model  ' "$dir/plan" || fail "the plan does not count it: $(cat "$dir/plan")"
ebb plan -m "$stories" --draft "$stories" --json >"$dir/json" || fail "plan --json"
[ "$(value bytes "$dir/json")" -gt 0 ] || fail "no bytes in $(cat "$dir/json")"
ebb plan -m "$stories" | grep -q 'draft' && fail "a draft model that nobody asked for"

# Who cannot draft, and what is not there.
ebb run -m "$stories" --draft "$baby" $say 2>"$dir/err" && fail "another vocabulary was taken"
grep -q 'babyllama-tok105-f32.gguf cannot draft for stories260K.gguf: ' "$dir/err" || fail "says: $(cat "$dir/err")"
for command in plan "bench -n 1 -p 1"; do
    ebb $command -m "$stories" --draft "$baby" >/dev/null 2>"$dir/err" && fail "$command took another vocabulary"
    grep -q 'cannot draft for' "$dir/err" || fail "$command says: $(cat "$dir/err")"
done
ebb run -m "$stories" --draft "$dir/none.gguf" $say 2>"$dir/err" && fail "a draft model that is not there"
grep -q 'none.gguf' "$dir/err" || fail "says: $(cat "$dir/err")"
ebb run -m "$stories" --draft none $say --greedy >"$dir/with" || fail "--draft none"
ebb run -m "$stories" --draft "$baby" --no-draft $say --greedy >"$dir/with" || fail "--no-draft beside --draft"

mkdir -p "$dir/config/ebb"
printf 'draft = %s\ndraft-tokens = 5\n' "$PWD/$stories" >"$dir/config/ebb/config"
ebb run -m "$stories" $say --greedy --json >"$dir/json" || fail "run, configured"
[ "$(value accepted "$dir/json")" -gt 40 ] || fail "the configuration's draft model does not guess"
exit 0
