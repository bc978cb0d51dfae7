#!/bin/sh
# The program in tmux, as a user has it: a question answered, what is on the screen at several
# sizes, stop and fg, and a terminal left as it was found.
command -v tmux >/dev/null || { echo "tmux is not there"; exit 77; }
"$EBB" --help | grep -q 'ebb chat' || { echo "this build has no chat command"; exit 77; }
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
dir=$(mktemp -d) || exit 1
socket=ebb-test-$$
tm() { tmux -L "$socket" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; rm -rf "$dir"' EXIT
fail() { echo "$1"; tm capture-pane -p; exit 1; }
wait_for() {                                     # text [tenths of a second]
    n=${2:-100}
    until tm capture-pane -p | grep -qF -- "$1"; do
        n=$((n - 1)); [ $n -gt 0 ] || fail "never on the screen: $1"
        sleep 0.1
    done
}
lacks() { ! tm capture-pane -p | grep -qF -- "$1" || fail "on the screen: $1"; }

export LC_ALL=C.UTF-8 XDG_STATE_HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir"
unset EBB_MODELS TMUX NO_COLOR ACCESSIBLE
tm new-session -d -x 80 -y 24 "PS1='shell> ' bash --norc --noprofile -i" || { echo "tmux does not start"; exit 77; }
wait_for 'shell>'
tm send-keys "stty -a > $dir/before; $EBB chat -n 40 --greedy" Enter
wait_for 'ctx '
wait_for 'layers '
wait_for 'This is ebb'
tm send-keys 'Once upon a time' Enter
wait_for '> Once upon a time'
wait_for 'tok/s'
wait_for 'reused 0'
tm send-keys '/nosuch' Enter
wait_for 'there is no command /nosuch'
tm send-keys '/th' Tab
wait_for '> /theme'
tm send-keys C-u '/theme light' Enter 'a draft'
wait_for '> a draft'

tm resize-window -x 120 -y 40; wait_for 'memory, own'; wait_for '> a draft'
tm resize-window -x 40 -y 10; wait_for '> a draft'; lacks 'memory, own'
tm resize-window -x 80 -y 24; wait_for 'layers '

tm send-keys C-z; wait_for 'Stopped'
tm send-keys fg Enter; wait_for '> a draft'; wait_for 'layers '
tm send-keys C-c; sleep 0.2; lacks 'a draft'
tm send-keys C-d; wait_for 'Stopped'             # the shell's screen is back
wait_for 'ebb -c goes on with: Once upon a time'
tm send-keys "clear; stty -a > $dir/after; echo left" Enter
wait_for 'left'
sleep 0.2
cmp "$dir/before" "$dir/after" || fail "the terminal's modes were not restored"
[ -s "$dir/ebb/history" ] || fail "there is no history file"
tm send-keys "clear; $EBB chat -c" Enter   # the session is there again
wait_for '> Once upon a time'
exit 0
