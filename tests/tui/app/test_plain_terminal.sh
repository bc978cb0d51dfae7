#!/bin/sh
# Plain lines on a terminal: !command is not run there, and says so; with a blank before it is a message.
. tests/support/tmux.sh
tm new-session -d -x 100 -y 30 "$EBB -m guide -n 8 --greedy --shell --plain" || { echo "tmux does not start"; exit 77; }
wait_for 'You:'
tm send-keys '!echo "$((40 + 2)) said"' Enter
wait_for 'Error: commands run on the full screen and inline alone'
screen | grep -qF 'Model:' && fail "it went to the model"
tm send-keys ' !how do I leave?' Enter
wait_for 'Model:'
screen | grep -qF '42 said' && fail "it was run"
exit 0
