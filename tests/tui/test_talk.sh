#!/bin/sh
# A long conversation in tmux, as a newcomer has it: cut, another answer, a branch, a full context that is asked
# about, and the next day.
command -v tmux >/dev/null || { echo "tmux is not there"; exit 77; }
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
dir=$(mktemp -d) || exit 1
socket=ebb-talk-$$
tm() { tmux -L "$socket" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; rm -rf "$dir"' EXIT
fail() { echo "$1"; tm capture-pane -p; exit 1; }
wait_for() {                                     # text
    n=200
    until tm capture-pane -p | grep -qF -- "$1"; do
        n=$((n - 1)); [ $n -gt 0 ] || fail "never on the screen: $1"
        sleep 0.1
    done
}
receipts() { tm capture-pane -p -S - | grep -c 'tok/s'; }
say() {                                          # a question, and wait for its receipt
    tm send-keys "$1" Enter
    wait_for "> $1"
    wait_for "$2"
}

export LC_ALL=C.UTF-8 EBB_MODELS=/nonexistent XDG_STATE_HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir"
unset TMUX NO_COLOR ACCESSIBLE
tm new-session -d -x 90 -y 50 "$EBB --ctx 256 --seed 1 -n 24 --system Guide" || { echo "tmux does not start"; exit 77; }
wait_for 'system: Guide'

say 'Q1: how do I undo?' 'reused 0'
tm send-keys '/cut'
wait_for '> /cut'
tm send-keys ' 2 words' Enter
wait_for 'computed 1 '                            # what stays of it stands: one, for what follows it
tm send-keys '/tree' Enter
wait_for '3b model:'
tm send-keys '/go 3a' Enter '/retry' Enter '/tree' Enter
wait_for '3c model:'
tm send-keys '/bogus' Enter
wait_for 'there is no command /bogus'

# The draft is read while it is typed; the receipt has it.
tm send-keys 'Q2: this one is a longer question, about nothing at all, and it stays on the line for a while before'
n=200
until tm capture-pane -p | grep -qF 'read already'; do
    n=$((n - 1)); [ $n -gt 0 ] || fail "the draft is not read ahead"
    sleep 0.1
done
tm send-keys ' it goes' Enter
wait_for '(while you typed '

# Full: asked, and Enter forgets.
i=3
until tm capture-pane -p | grep -qF 'What now?'; do
    [ $i -lt 20 ] || fail "the context is never full"
    say "Q$i: how do I leave?" "tok"
    sleep 0.5
    i=$((i + 1))
done
wait_for '/forget leaves the oldest'
wait_for '/compact puts a summary in their place'
wait_for '/grow takes a context of 512 tokens'
tm send-keys Enter
wait_for 'forgotten: the model no longer sees'
sleep 1
tm send-keys '/pin list' Enter
wait_for 'nothing is pinned'
tm send-keys C-d
sleep 1
tm kill-server 2> /dev/null
sleep 0.3

# The next day.
tm new-session -d -x 90 -y 50 "$EBB --ctx 256 -n 24 -c" || exit 1
wait_for 'forgotten: the model no longer sees'
say 'And?' '(from disk '
exit 0
