#!/bin/sh
# Screens of sizes that no screen has: no more of them is used than can be kept in memory, from the first frame on, whoever
# says the size.
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
. tests/support/tmux.sh
cat >"$dir/draw.py" <<'PY'
import os, re, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/support")
from terminal import Terminal
rows, cols = int(sys.argv[1]), int(sys.argv[2])
t = Terminal(sys.argv[3:], {**os.environ, "TERM": "xterm-256color"}, rows, cols)
t.until(rb"built-in", 0)
t.type(b"\x04")
t.end()
last = max(int(col) for col in re.findall(rb"\033\[\d+;(\d+)H", t.seen))
rule = max(len(run) for run in re.findall("\u2500+", t.seen.decode(errors="replace")))
if last > 2000 or rule > 2000:
    sys.exit("drawn up to column %d, a rule of %d" % (last, rule))
PY
export LC_ALL=C.UTF-8
python3 "$dir/draw.py" 24 30000 "$EBB" || fail "the line says 30,000 columns"
COLUMNS=30000 LINES=24 python3 "$dir/draw.py" 0 0 "$EBB" || fail "COLUMNS says 30,000"
COLUMNS=30000 LINES=24 python3 "$dir/draw.py" 24 80 "$EBB" || fail "COLUMNS says 30,000, the line 80"
exit 0
