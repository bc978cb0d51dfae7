#!/bin/sh
# /copy in tmux: the answer is in tmux's buffer as it was written, and the screen says which way it went.
. tests/support/tmux.sh
tm new-session -d -x 60 -y 24 "$EBB --greedy -n 60" || { echo "tmux does not start"; exit 77; }
wait_for 'ctx '
tm send-keys 'What is the KV cache?' Enter
wait_for ' tok '
tm send-keys '/copy' Enter
wait_for 'tmux'
answer=$("$EBB" run --greedy -n 60 -p 'What is the KV cache?' </dev/null)
wait_until 'tm show-buffer >/dev/null 2>&1'
[ "$(tm show-buffer)" = "$answer" ] || fail "tmux has: $(tm show-buffer), not: $answer"
exit 0
