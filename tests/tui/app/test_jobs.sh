#!/bin/sh
# Ctrl-Z, fg and bg as a shell's user expects them, of ebb and of the editor that it runs; what is answered while that
# is open is saved meanwhile.  Then the same without a shell that could continue anybody.
"$EBB" --help | grep -q 'ebb chat' || { echo "this build has no chat command"; exit 77; }
. tests/support/tmux.sh
export EBB_MODELS=/nonexistent EDITOR="$dir/editor"
unset VISUAL
cat > "$EDITOR" <<'EOF'
#!/bin/sh
# Line by line, with the terminal's usual modes: Ctrl-C and Ctrl-Z are signals.
trap 'echo "interrupted"' INT
trap 'echo "editor: continued"' CONT
echo $$ > "$HOME_OF_TEST/editor.pid"
echo "editor: open"
while :; do
    read -r line || { [ -t 0 ] || exit; continue; }
    case $line in
    "done") exit ;;
    *) echo "$line" >> "$1"; echo "editor: wrote $line" ;;
    esac
done
EOF
chmod +x "$EDITOR"
export HOME_OF_TEST="$dir"
messages() { "$EBB" sessions list --json | sed -n 's/.*"messages":\([0-9]*\).*/\1/p' | head -n 1; }
status() { "$EBB" stat --json 2>/dev/null | sed -n 's/.*"state":"\([^"]*\)".*/\1/p'; }
at_shell() { tm send-keys 'stty -g > "$HOME_OF_TEST/now"; echo "$((40 + 2)) is said" > "$HOME_OF_TEST/said"' Enter
             wait_until '[ -s "$dir/said" ]'; rm "$dir/said"
             cmp "$dir/before" "$dir/now" || fail "the shell does not have the terminal's modes"; }
stopped() { wait_for 'Stopped'; at_shell; tm send-keys clear Enter; wait_gone 'Stopped'; }
stops() { tm send-keys C-z; stopped; }
# What was written while it was in the background may come later than one thinks; what is typed before it has the terminal
# is lost.
editor_is_back() {
    wait_for 'editor: continued'
    wait_until 'set -- $(sed "s/.*) //" "/proc/$(cat "$dir/editor.pid")/stat"); [ "$3" = "$6" ]'   # pgrp, tpgid
}
in_background() {                                # who needs the terminal stops again; bash says so when it is asked
    tm send-keys bg Enter
    wait_until 'tm send-keys jobs Enter; sleep 0.2; screen | grep -qF Stopped'
    stopped
}

# What ran in it until now loses its terminal.
shell() {
    tm respawn-pane -k "PS1='shell> ' bash --norc --noprofile -i"
    wait_for 'shell>'
    tm send-keys 'stty -g > "$HOME_OF_TEST/before"; clear; echo ready' Enter
    wait_for_re '^ready'
}

as_a_job() {                                     # option of the screen
    shell
    rm -rf "$dir/ebb"
    tm send-keys "$EBB --greedy -n 60 $1" Enter
    wait_for 'This is ebb'
    wait_for 'ctx '

    tm send-keys 'What is a token?' Enter 'What is a layer?' Enter C-g   # the second one is asked by itself
    wait_for 'editor: open'
    wait_until '[ "$(messages)" = 4 ]'           # asked and answered, while it is open
    wait_until '[ "$(status)" = idle ]'
    wait_for 'editor: open'
    tm send-keys C-c; wait_for 'interrupted'     # its own
    tm send-keys 'one' Enter; wait_for 'editor: wrote one'
    stops
    tm send-keys fg Enter; editor_is_back
    tm send-keys 'two' Enter; wait_for 'editor: wrote two'
    stops
    in_background                                # neither may have the terminal
    tm send-keys fg Enter; editor_is_back
    tm resize-window -x 100 -y 30
    tm send-keys 'three' Enter; wait_for 'editor: wrote three'
    tm send-keys 'done' Enter
    wait_for '> one'; wait_for 'two'; wait_for 'three'
    tm resize-window -x 80 -y 24
    wait_for '> one'

    stops                                        # ebb itself
    tm send-keys fg Enter; wait_for '> one'; wait_for 'ctx '
    tm send-keys C-c; wait_gone '> one'
    stops
    in_background
    tm send-keys fg Enter; wait_for 'ctx '

    tm send-keys C-g; wait_for 'editor: open'    # an editor that is killed
    tm send-keys 'half' Enter; wait_for 'editor: wrote half'
    kill -9 "$(cat "$dir/editor.pid")"
    wait_for 'ended by signal 9'; wait_for '> half'
    tm send-keys C-c; wait_gone '> half'

    tm send-keys '/bare' Enter; wait_for 'Enter goes back'
    stops
    tm send-keys fg Enter; wait_for 'ctx '
    tm send-keys '/bare' Enter; wait_gone 'ctx '; wait_for 'Enter goes back'
    tm send-keys 'x' Enter; wait_for 'ctx '

    tm send-keys C-g; wait_for 'editor: open'    # SIGTERM to ebb: the editor goes, and what it saved is kept
    tm send-keys 'kept' Enter; wait_for 'editor: wrote kept'
    kill "$("$EBB" stat --json | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')"
    wait_for 'has your unsent text'
    at_shell
    tm send-keys clear Enter "$EBB -c $1" Enter; wait_for '> kept'
    tm send-keys C-c; wait_gone '> kept'
    tm send-keys C-d; wait_for 'ebb -c continues'
    at_shell
}

with_vi() {
    shell
    tm send-keys "EDITOR=vi $EBB" Enter
    wait_for 'ctx '
    tm send-keys C-g; wait_for_re '^~'
    tm send-keys 'iin vi'; wait_for 'in vi'
    tm send-keys Escape
    stops
    tm send-keys fg Enter; wait_for_re '^~'; wait_for 'in vi'
    tm send-keys ':wq' Enter; wait_for '> in vi'
}

plain() {
    shell
    tm send-keys "$EBB --plain" Enter
    wait_for 'You:'
    stops
    tm send-keys fg Enter; wait_for 'You:'
    tm send-keys '/nosuch' Enter; wait_for 'no command'
}

# The terminal's first program: whatever stopped would stand there for ever.
without_a_shell() {                              # option of the screen
    state=$dir/state$1
    tm respawn-pane -k "exec env XDG_STATE_HOME=$state $EBB $1"
    wait_for 'ctx '
    tm send-keys C-z; wait_for 'it was not stopped'
    tm send-keys 'draft' C-g; wait_for 'editor: open'
    tm send-keys C-z; wait_for 'editor: continued'
    tm send-keys 'one' Enter; wait_for 'editor: wrote one'
    tm send-keys C-z; wait_until '[ "$(screen | grep -c "editor: continued")" -ge 2 ]'
    tm send-keys 'two' Enter; wait_for 'editor: wrote two'
    tm send-keys 'done' Enter; wait_for 'two'; wait_for 'ctx '
    tm send-keys C-g; wait_for 'editor: open'    # the terminal goes
    tm send-keys 'three' Enter; wait_for 'editor: wrote three'
    pid=$(tm display-message -p '#{pane_pid}')
    tm respawn-pane -k 'sleep 1000000'
    wait_until '! kill -0 "$pid" 2>/dev/null'
    tm respawn-pane -k "exec env XDG_STATE_HOME=$state $EBB $1"
    wait_for 'three'
}

plain_without_a_shell() {
    tm respawn-pane -k "exec $EBB --plain"
    wait_for 'You:'
    tm send-keys C-z; wait_for 'it was not stopped'
    tm send-keys '/nosuch' Enter; wait_for 'no command'
}

tm new-session -d -x 80 -y 24 'sleep 1000000' || { echo "tmux does not start"; exit 77; }
as_a_job ''
as_a_job --inline
command -v vi >/dev/null && with_vi
plain
without_a_shell ''
without_a_shell --inline
plain_without_a_shell
exit 0
