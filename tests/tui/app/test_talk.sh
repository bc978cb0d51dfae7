#!/bin/sh
# A long conversation in tmux, as a newcomer has it: cut, another answer, a branch, a full context that is asked
# about, and the next day.
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
. tests/support/tmux.sh
export EBB_MODELS=/nonexistent
# The one that runs: its figures by `ebb stat`.
figure() { "$EBB" stat --json 2>/dev/null | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
messages() { "$EBB" sessions list --json | sed -n 's/.*"messages":\([0-9]*\).*/\1/p'; }
is_answered() { [ "$(messages)" -ge $((before + 2)) ] && [ "$(figure state)" = idle ]; }
asks() { screen | grep -qF 'What now?'; }
says_why() { screen | grep -qF "$reason" || { tm send-keys '/why' Enter; sleep 0.5; screen | grep -qF "$reason"; }; }
why_says() { reason=$1; wait_until says_why; }   # asked until the answer has ended
say() {                                          # a question, and wait for its receipt
    tm send-keys "$1" Enter
    wait_for "> $1"
    wait_for "$2"
}

# Under another name it is a model like any other, which gets the whole conversation.
cp models/guide.gguf "$dir/other.gguf"
tm new-session -d -x 90 -y 50 "$EBB -m $dir/other.gguf --ctx 256 --seed 1 -n 24 --system Guide" || { echo "tmux does not start"; exit 77; }
wait_for 'system: Guide'

say 'Q1: how do I undo?' ' tok '
tm send-keys '/cut'
wait_for '> /cut'
tm send-keys ' 2 words' Enter
why_says 'read: 1 token'                       # what stays of it stands: one, for what follows it
tm send-keys '/tree all' Enter
wait_for '3b model:'
tm send-keys '/go 3a' Enter '/retry' Enter '/tree all' Enter
wait_for '3c model:'
tm send-keys '/bogus' Enter
wait_for 'no command /bogus'

# The draft is read while it is typed; the receipt has it.
tm send-keys 'Q2: this one is a longer question, about nothing at all, and it stays on the line for a while before'
wait_for 'read already'
tm send-keys ' it goes' Enter
why_says '(read while you typed: '

# Full: asked, and Enter forgets.
i=3
until asks; do
    [ $i -lt 20 ] || fail "the context is never full"
    before=$(messages)
    tm send-keys "Q$i: how do I leave?" Enter
    wait_until 'is_answered || asks'
    i=$((i + 1))
done
wait_for '/forget leaves the oldest'
wait_for '/compact puts a summary in their place'
wait_for '/grow takes a context of 512 tokens'
tm send-keys Enter
wait_for 'forgotten: the model no longer sees'
wait_until '[ "$(figure state)" = idle ]'
tm send-keys '/pin list' Enter
wait_for 'nothing is pinned'
tm send-keys C-d
wait_until '! tm has-session 2>/dev/null'

# The next day.
# Under another name it is a model like any other, which gets the whole conversation.
cp models/guide.gguf "$dir/other.gguf"
tm new-session -d -x 90 -y 50 "$EBB -m $dir/other.gguf --ctx 256 -n 24 -c" || exit 1
wait_for 'forgotten: the model no longer sees'
say 'And?' ' tok '
why_says '(from disk: '
exit 0
