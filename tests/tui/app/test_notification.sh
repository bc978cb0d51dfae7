#!/bin/sh
# The bytes that reach a terminal at the end of an answer: a bell and a notification, from the program itself and through
# tmux, which passes it on where it is set so.
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
. tests/support/tmux.sh
export EBB_MODELS=/nonexistent
unset VTE_VERSION TERM_PROGRAM
answer=$("$EBB" run --greedy -n 8 -p 'What is a token?' </dev/null) || fail "no answer"
cat >"$dir/hear.py" <<'PY'
import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/support")
from terminal import Terminal
kind, want, argv = sys.argv[1], sys.argv[2].encode().decode("unicode_escape").encode("latin-1"), sys.argv[3:]
t = Terminal(argv, {**os.environ, "TERM": kind})
t.until(rb"ctx ", 0)
t.type(b"What is a token?\r")
t.until(rb" tok ")                                # the receipt, behind the notification
t.type(b"\x04")
t.end()
if want not in t.seen or b"\a" not in t.seen:
    sys.exit("%r is not in what came: %r" % (want, t.seen))
if want == b"\a" and (b"\033]9;" in t.seen or b"\033]777;" in t.seen):
    sys.exit("notified: %r" % t.seen)
PY
# hear KIND BYTES COMMAND...: a terminal of that kind gets these bytes.
hear() { said=$(python3 "$dir/hear.py" "$@" 2>&1) || { echo "$*: $said"; exit 1; }; }

osc9="\\x1b]9;ebb: $answer\\a"
osc777="\\x1b]777;notify;ebb;$answer\\a"
chat="$EBB --greedy -n 8 --bell always"
hear xterm-256color "$osc9" $chat
hear rxvt "$osc777" $chat
hear xterm-256color '\a' $chat --notify bell
for passes in on off; do
    echo "set -g allow-passthrough $passes" >"$dir/tmux.conf"
    want=$osc9; [ $passes = on ] || want='\a'
    hear xterm-256color "$want" tmux -L "$socket" -f "$dir/tmux.conf" new-session "$chat"
    tm kill-server 2>/dev/null
done
exit 0
