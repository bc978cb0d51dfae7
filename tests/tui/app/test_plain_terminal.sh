#!/bin/sh
# Plain lines on a terminal: !command is not run there, and says so; with a blank before it is a message.
. tests/support/tmux.sh
tm new-session -d -x 100 -y 30 "$EBB -m guide -n 8 --greedy --shell --plain" || { echo "tmux does not start"; exit 77; }
wait_for 'You:'
tm send-keys '!echo "$((40 + 2)) said"' Enter
wait_for 'Error: commands run only on the full screen and inline'
screen | grep -qF 'Model:' && fail "it went to the model"
tm send-keys ' !how do I leave?' Enter
wait_for 'Model:'
screen | grep -qF '42 said' && fail "it was run"

# Ctrl-C drops the lines of a message that goes on, and what comes then is no part of it.  The terminal takes away what
# was not read yet, so it is typed again until it was.
wait_until '[ "$(screen | grep -c You:)" -ge 3 ]'
dropped() { tm send-keys "$1" Enter; sleep 0.2; tm send-keys C-c; screen | grep -qF 'Note: the lines of this message are dropped'; }
wait_until "dropped '\"\"\"one'"
tm send-keys /edit Enter
wait_for 'the next line takes its place'
tm send-keys C-c
wait_for 'Note: the message stays as it is'
tm send-keys C-c
wait_for 'Note: Ctrl-D leaves'

# A document goes through its filter, which Ctrl-C stops; typed on the line behind it, nothing is lost.
printf 'word\n' >"$dir/a.up"
printf 'word\n' >"$dir/b.slow"
tm respawn-pane -k "$EBB -m guide -n 8 --greedy --plain --filter '.up=tr a-z A-Z' --filter '.slow=sleep 1000'"
wait_gone '42 said'
wait_for 'You:'
tm send-keys "read @$dir/b.slow now" Enter
wait_for 'Note: reading b.slow with sleep; Ctrl-C stops'
tm send-keys C-c
wait_for 'Note: stopped; the message is not sent'
tm send-keys "read @$dir/a.up now" Enter
wait_for 'Note: reading a.up with tr'
wait_for 'Model:'

# The text behind /edit N has files, too, and with what stops it the edit is left: the next line is a new message.
wait_until '[ "$(screen | grep -c You:)" -ge 3 ]'
tm send-keys "/edit 1 see @$dir/b.slow now" Enter
wait_for 'reading b.slow with sleep; Ctrl-C stops'
wait_until '[ "$(screen | grep -c "reading b.slow")" = 2 ]'
tm send-keys C-c
wait_until '[ "$(screen | grep -c "the message is not sent")" = 2 ]'
tm send-keys C-c
wait_for 'Note: Ctrl-D leaves'
tm send-keys "/edit 1 see @$dir/none.txt" Enter
wait_for 'none.txt; sent as text'

# What a message begins with is no file that has gone along: the user's own of that name goes.
echo MINE >"$dir/n.txt"
tm respawn-pane -k "$EBB -m guide -n 8 --greedy --plain"
wait_gone 'none.txt'
wait_for 'You:'
for line in "\"\"\"$dir/n.txt:" '```txt' STRANGE '```' '' "like @$dir/n.txt ?\"\"\""; do tm send-keys -l "$line"; tm send-keys Enter; done
wait_for 'Model:'
tm send-keys /edit Enter
wait_for 'the next line takes its place'
screen | grep -q '^MINE' || fail "its file is not there"

# Where it leaves there is no prompt any more; with the output elsewhere, the terminal is not left empty.
tm respawn-pane -k "$EBB -m guide --plain; echo LEFT; sleep 1000"
wait_gone 'MINE'
wait_for 'You:'
tm send-keys /quit Enter
wait_for LEFT
screen | grep -B1 LEFT | grep -q '^You: /quit' || fail "a prompt behind /quit"
tm respawn-pane -k "$EBB -m guide --plain | cat >\"$dir/out\""
wait_for 'type a message, or /help'
tm send-keys 'how do I leave?' Enter
wait_until 'grep -q "^Model: ." "$dir/out"'
exit 0
