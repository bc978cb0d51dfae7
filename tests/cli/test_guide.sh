# The model inside the program: it answers about ebb, each question by itself, and declines the rest.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
XDG_STATE_HOME=$dir/state XDG_CACHE_HOME=$dir/cache XDG_DATA_HOME=$dir/data EBB_MODELS=
export XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME EBB_MODELS
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
$EBB --help 2>/dev/null | grep -q '^ *\(ebb \)*run ' || { echo "this program has no run command"; exit 77; }

ask() { want=$1; shift; got=$($EBB run --greedy -n 120 "$@" </dev/null) || fail "$*: exit $?"
    case $got in *"$want"*) ;; *) fail "$*: no '$want' in: $got" ;; esac; }
ask /undo -p "What does /undo do?"
ask "piece of text" -p "What is a token?"
ask "ebb pull" -p "How do I get a model?"
ask "--draft" -p "What is a draft model?"
ask "larger model" -p "Who was the king of France?"

# Asked in one conversation, far longer than its context, it answers as it does when it is asked alone.
tries=0
while [ $tries -lt 10 ]; do
    for q in "What does /undo do?" "What is a token?" "How do I get a model?" "What is a draft model?" "How do I stop an answer?"; do
        $EBB run --greedy -n 120 -s long -p "$q" </dev/null >"$dir/long" 2>"$dir/said" || fail "$q: exit $?"
        [ -s "$dir/said" ] && fail "$q: $(cat "$dir/said")"
        [ $tries -gt 0 ] || $EBB run --greedy -n 120 -p "$q" </dev/null >"$dir/alone.$(echo "$q" | tr -dc a-zA-Z)"
        cmp -s "$dir/long" "$dir/alone.$(echo "$q" | tr -dc a-zA-Z)" || fail "$q, in a long conversation: $(cat "$dir/long")"
    done
    tries=$((tries + 1))
done

# A hundred different questions in one conversation: no answer decays, and none is a question about the context.
grep -h '^Q: [A-Za-z]' models/ordinary.txt models/sloppy.txt | sed 's/^Q: //' | head -n 100 >"$dir/questions"
[ "$(wc -l <"$dir/questions")" -eq 100 ] || fail "not a hundred questions in models/*.txt"
while read -r q; do $EBB run -m guide --greedy -p "$q" </dev/null || fail "$q: exit $?"; done <"$dir/questions" >"$dir/alone"
$EBB --plain -m guide --greedy <"$dir/questions" >"$dir/together" 2>"$dir/said" || fail "a hundred questions: exit $?"
[ -s "$dir/said" ] && fail "a hundred questions: $(cat "$dir/said")"
sed -i 's/^Model: //' "$dir/together"
cmp -s "$dir/alone" "$dir/together" || fail "a hundred questions: $(diff "$dir/alone" "$dir/together" | head -n 6)"

# Its /why: nothing is smaller, so nobody is sent to look for it.
printf 'What is a branch?\n/why\n' | $EBB --plain -m guide >"$dir/why" 2>&1 || fail "/why: exit $?"
grep -q 'All layers are in memory: each token takes .* through the processor' "$dir/why" || fail "/why: $(cat "$dir/why")"
grep -q Faster "$dir/why" && fail "/why of the guide: $(cat "$dir/why")"
exit 0
