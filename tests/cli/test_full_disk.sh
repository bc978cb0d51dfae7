#!/bin/sh
# Full disks below `ebb run` and the chat: each says one line with the file's name, and what was stored stands.
set -e
[ -c /dev/full ] || { echo "no /dev/full"; exit 77; }
dir=$(mktemp -d)
trap 'umount "$dir/disk" 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$1"; cat "$dir/err" 2>/dev/null; exit 1; }
XDG_STATE_HOME=$dir/disk XDG_CACHE_HOME=$dir/disk XDG_CONFIG_HOME=$dir XDG_DATA_HOME=$dir EBB_MODELS=/nonexistent
export XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME EBB_MODELS
run() { "$EBB" run -m models/guide.gguf --temp 0 -n 12 "$@" </dev/null 2>"$dir/err"; }
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
mkdir "$dir/disk"

# What is printed does not arrive.
run -p "How do I leave?" >/dev/full && fail "a lost answer is no failure"
grep -q 'standard output: No space left' "$dir/err" || fail "a lost answer is not told"
run --json -p "How do I leave?" >/dev/full && fail "lost JSON is no failure"
grep -q 'could be written' "$dir/err" || fail "lost JSON is not told"
for asked in --help --version help "run --help"; do
    "$EBB" $asked >/dev/full 2>"$dir/err" && fail "ebb $asked: lost, and no failure"
    grep -q 'could be written: No space left' "$dir/err" || fail "ebb $asked: not told that it is lost"
done

# The trace has gaps, and the answer is there.
run --trace /dev/full -p "How do I leave?" >"$dir/out" || fail "a full trace ends an answer"
[ -s "$dir/out" ] || fail "no answer with a full trace"
grep -q '/dev/full: lines of the trace are missing: No space left' "$dir/err" || fail "the trace's gap is not told"

mount -t tmpfs -o size=2m none "$dir/disk" 2>/dev/null || { echo "no tmpfs can be mounted here: half of this was run"; exit 77; }
run -s talk -p "How do I leave?" >"$dir/out" || fail "no answer"
cat /dev/zero >"$dir/disk/filler" 2>/dev/null || true
run -s talk -p "How do I undo?" >"$dir/out" && fail "a conversation that cannot be read is no failure"
[ ! -s "$dir/out" ] || fail "answered without the conversation"
grep -q "sessions.db.*disk is full" "$dir/err" || fail "a full disk is not told"
[ "$(wc -l <"$dir/err")" -eq 1 ] || fail "more than one line"
run -p "How do I undo?" >"$dir/out" || fail "no answer on a full disk, though nothing is to be kept"
rm "$dir/disk/filler"
run -s talk --json -p "How do I undo?" >"$dir/out" || fail "no answer afterwards"
"$EBB" sessions list >"$dir/list" || fail "the sessions cannot be listed"
grep -q talk "$dir/list" || fail "the session is lost"

# The chat: told when one leaves, and not left before.
cat /dev/zero >"$dir/disk/filler" 2>/dev/null || true
printf 'How do I leave?\n/quit\n/save %s/saved.md\n/quit\n' "$dir" | "$EBB" --plain -m models/guide.gguf -n 12 >"$dir/out" 2>"$dir/err" || fail "the chat failed"
grep -q "sessions.db cannot grow: the disk is full" "$dir/out" || { cat "$dir/out"; fail "the chat does not tell"; }
grep -q "this conversation is not saved" "$dir/out" || { cat "$dir/out"; fail "the chat is left in silence"; }
[ -s "$dir/saved.md" ] || fail "/save did not write elsewhere"
grep -q "^Note: written to $dir/saved.md" "$dir/out" || fail "/save does not say what it wrote: $(cat "$dir/out")"

# A server answers as ever, says once on its standard error that K and V are not kept, and to its clients not where.
PYTHONPATH=tests/support python3 - "$EBB" "$dir" <<'PY' || exit 1
import sys, time
from serve import Server, fail

ebb, folder = sys.argv[1:]
s = Server(ebb, folder, "-m", "models/guide.gguf")
answers, figures = [], ""


def ask(n):                                       # every other question is new, the rest is kept already
    text = "How do I leave?" if n % 2 else "%d times I asked how to leave, to undo, and nobody told me" % n
    return s.chat(text, temperature=0, max_tokens=8)["choices"][0]["message"]["content"]


while "KV" not in figures:                        # a thread of its own writes, when an answer has ended
    answers.append(ask(len(answers)))
    figures = s.json("GET", "/ebb/v1/stats")["decision"] or ""
if "/" in figures:
    fail("clients are told a path:", figures)
for _ in range(5):
    answers.append(ask(len(answers)))
while "KV" not in open(s.err).read():             # told between answers
    time.sleep(0.01)
if not all(answers):
    fail("no answer on a full disk", answers)
s.end()
if open(s.err).read().count("KV") != 1:
    fail("not told once:", open(s.err).read())
PY
exit 0
