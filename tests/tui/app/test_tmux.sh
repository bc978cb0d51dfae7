#!/bin/sh
# The program in tmux, as a user has it: a question answered, what is on the screen at several
# sizes, stop and fg, and a terminal left as it was found.
"$EBB" --help | grep -q 'ebb chat' || { echo "this build has no chat command"; exit 77; }
. tests/support/tmux.sh
tm new-session -d -x 80 -y 24 "PS1='shell> ' bash --norc --noprofile -i" || { echo "tmux does not start"; exit 77; }
wait_for 'shell>'
tm send-keys "stty -a > $dir/before; $EBB chat -n 40 --greedy" Enter
wait_for 'ctx '
wait_for 'layers '
wait_for 'This is ebb'
tm send-keys 'Once upon a time' Enter
wait_for '> Once upon a time'
wait_for 'tok/s'
wait_for '/s'
tm send-keys '/nosuch' Enter
wait_for 'no command /nosuch'
tm send-keys '/th' Tab
wait_for '> /theme'
tm send-keys C-u '/theme light' Enter 'a draft'
wait_for '> a draft'

tm resize-window -x 140 -y 40; wait_for 'memory (RSS)'; wait_for '> a draft'
tm resize-window -x 40 -y 10; wait_gone 'memory (RSS)'; wait_for '> a draft'
tm resize-window -x 80 -y 24; wait_for 'layers '

tm send-keys C-z; wait_for 'Stopped'
tm send-keys fg Enter; wait_for '> a draft'; wait_for 'layers '
tm send-keys C-c; wait_gone 'a draft'
tm send-keys C-d; wait_for 'Stopped'             # the shell's screen is back
wait_for 'ebb -c continues: Once upon a time'
tm send-keys "clear; stty -a > $dir/after; : > $dir/left" Enter
wait_until '[ -e "$dir/left" ]'
cmp "$dir/before" "$dir/after" || fail "the terminal's modes were not restored"
[ -s "$dir/ebb/history" ] || fail "there is no history file"
tm send-keys "clear; $EBB chat -c" Enter   # the session is there again
wait_for '> Once upon a time'
tm send-keys C-d; wait_gone '> Once upon a time'
# The way back is one: a date is its name, so the number alone is not.
printf '## user\n\nhi\n' >"$dir/new.md"
tm send-keys "clear; $EBB sessions rename 1 20261129; $EBB sessions import $dir/new.md; $EBB chat -s 20261129" Enter
wait_for '> Once upon a time'
tm send-keys C-d; wait_for 'ebb -s 01 continues: 20261129'
tm send-keys "clear; $EBB chat -s 01" Enter
wait_for '> Once upon a time'
tm send-keys C-d; wait_for 'ebb -s 01 continues: 20261129'

# A private chat ends without its title, and nothing continues it.
tm send-keys "clear; $EBB chat --private -n 4; echo 'it has' ended" Enter
wait_for 'layers '
tm send-keys 'Who has the zanzibar?' Enter
wait_for '> Who has the zanzibar?'
wait_for 'tok/s'
tm send-keys C-d; wait_for 'it has ended'
screen | grep -q 'zanzibar\|continues' && fail "a private chat leaves its title"
exit 0
