# For tests that drive the program in tmux.  Sets EBB (absolute), dir (a folder that goes at the end), a home of its own, and:
#
#     tm ARG...             tmux, with a server of this test's own
#     fail WHY              ends the test with the screen
#     wait_until COMMAND    what is waited for comes, however long it takes: only a hang takes five minutes
#     wait_for TEXT         ... on the screen; wait_for_re for a pattern, wait_gone for what goes
command -v tmux >/dev/null || { echo "tmux is not there"; exit 77; }
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
dir=$(mktemp -d /tmp/ebb-test-XXXXXX) || exit 1   # short: a socket is in it
socket=ebb-test-$$
tm() { tmux -L "$socket" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; rm -rf "$dir"' EXIT
fail() { echo "$1"; tm capture-pane -p; exit 1; }
wait_until() {
    n=3000
    until eval "$1"; do
        n=$((n - 1)); [ $n -gt 0 ] || fail "never: $1 (${text:-})"
        sleep 0.1
    done
}
screen() { tm capture-pane -p 2>/dev/null; }
wait_for() { text=$1; wait_until 'screen | grep -qF -- "$text"'; }
wait_for_re() { text=$1; wait_until 'screen | grep -qE -- "$text"'; }
wait_gone() { text=$1; wait_until '! screen | grep -qF -- "$text"'; }

export LC_ALL=C.UTF-8 XDG_STATE_HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir"
unset EBB_MODELS TMUX NO_COLOR ACCESSIBLE
