#!/bin/sh
# /copy in tmux: the answer is in tmux's buffer as it was written, and the screen says which way it went.  A tmux that
# does not answer is not waited for: then it is in a file.
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
tm send-keys '/quit' Enter
wait_until '! tm list-sessions >/dev/null 2>&1'
/usr/bin/python3 - "$dir/silent" "$$" <<'END' &
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
while os.getppid() == int(sys.argv[2]):
    time.sleep(0.1)
END
wait_until '[ -S "$dir/silent" ]'
tm new-session -d -x 60 -y 24 "TMUX=$dir/silent,1,0 $EBB --greedy -n 60"
wait_for 'ctx '
tm send-keys 'What is the KV cache?' Enter
wait_for ' tok '
tm send-keys '/copy' Enter
wait_for 'copy.txt'
[ "$(find "$dir" -name copy.txt -exec cat {} +)" = "$answer" ] || fail "the file is another: not $answer"
exit 0
