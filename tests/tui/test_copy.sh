#!/bin/sh
# /copy in tmux: the answer is in tmux's buffer as it was written, and the screen says which way it went.
command -v tmux >/dev/null || { echo "tmux is not there"; exit 77; }
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
dir=$(mktemp -d) || exit 1
socket=ebb-copy-$$
tm() { tmux -L "$socket" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; rm -rf "$dir"' EXIT
fail() { echo "$1"; tm capture-pane -p; exit 1; }
wait_for() {
    n=100
    until tm capture-pane -p | grep -qF -- "$1"; do
        n=$((n - 1)); [ $n -gt 0 ] || fail "never on the screen: $1"
        sleep 0.1
    done
}
export LC_ALL=C.UTF-8 XDG_STATE_HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir"
unset EBB_MODELS TMUX NO_COLOR ACCESSIBLE
tm new-session -d -x 60 -y 24 "$EBB --greedy -n 60" || { echo "tmux does not start"; exit 77; }
wait_for 'ctx '
tm send-keys 'What is the KV cache?' Enter
wait_for 'reused'
tm send-keys '/copy' Enter
wait_for 'tmux'
answer=$("$EBB" run --greedy -n 60 -p 'What is the KV cache?' </dev/null)
[ "$(tm show-buffer)" = "$answer" ] || fail "tmux has: $(tm show-buffer), not: $answer"
exit 0
