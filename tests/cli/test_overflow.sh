#!/bin/sh
# A conversation of four times the context with the embedded guide, under each policy: 50 turns, no error,
# every decision a line, the system prompt in the session.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export EBB_MODELS=/nonexistent XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_CONFIG_HOME="$dir/config"

[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }

# Under another name it is a model like any other, which gets the whole conversation.
cp models/guide.gguf "$dir/other.gguf"

questions() {
    i=$1
    while [ "$i" -le "$2" ]; do
        echo "Question $i: how do I bring back an older answer?"
        i=$((i + 1))
    done
}

fail() {
    echo "$1"
    tail -5 "$dir/out"
    exit 1
}

# talk POLICY FIRST LAST [OPTION ...]: answers, notes and errors in $answers, $notes, $errors
talk() {
    how=$1 from=$2 to=$3
    shift 3
    questions "$from" "$to" | $EBB --plain -m "$dir/other.gguf" --seed 1 --ctx 512 --overflow "$how" "$@" > "$dir/out" 2>&1
    answers=$(grep -c '^Model: ' "$dir/out" || :)
    notes=$(grep -c '^Note: \(The oldest\|Summary of\|The context grows\)' "$dir/out" || :)
    errors=$(grep -c '^Error: ' "$dir/out" || :)
}

for how in forget compact grow; do
    talk "$how" 1 50 -s "$how" --system "You are the guide."
    [ "$answers" -eq 50 ] || fail "$how: $answers answers"
    [ "$errors" -eq 0 ] || fail "$how: $errors errors"
    [ "$notes" -ge 2 ] || fail "$how: $notes notes"
    $EBB sessions export "$how" "$dir/$how.md" > /dev/null
    head -5 "$dir/$how.md" | grep -q '^You are the guide.$' || fail "$how: the system prompt is gone"
    [ "$(grep -c '^## note$' "$dir/$how.md")" -eq "$notes" ] || fail "$how: not every decision is kept"
done

# The next run goes on with what this one saw.
talk forget 51 55 -s forget
grep -q '^Note: .*forgotten' "$dir/out" || fail "the notes are not shown again"
[ "$errors" -eq 0 ] || fail "after a restart: $errors errors"

# stop says so each time, and answers nothing more.
talk stop 1 50 -s stop
[ "$answers" -lt 20 ] || fail "stop: $answers answers"
[ $((answers + errors)) -eq 50 ] || fail "stop: $answers answers and $errors errors"
[ "$notes" -eq 0 ] || fail "stop: $notes notes"

# Without a policy, where nobody can be asked, the oldest turns go.
talk ask 1 30 -s ask
[ "$answers" -eq 30 ] || fail "ask: $answers answers"
[ "$notes" -ge 1 ] || fail "ask: $notes notes"
