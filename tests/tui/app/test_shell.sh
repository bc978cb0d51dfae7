#!/bin/sh
# !command in a terminal, where the program is confined: with --shell, asked first, and its output goes along.
. tests/support/tmux.sh
tm new-session -d -x 80 -y 24 "$EBB -m guide -n 8 --greedy --shell" || { echo "tmux does not start"; exit 77; }
wait_for 'Ask something'
tm send-keys '!echo "$((40 + 2)) said"' Enter
wait_for 'Enter again runs the command'
tm send-keys Enter
wait_for 'the output is attached'
tm send-keys 'How do I leave?' Enter
wait_for '$ echo'
exit 0
