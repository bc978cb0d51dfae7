#!/bin/sh
# ebb run in a pipe: the answer alone on standard output, everything else on standard error, and an exit status.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
HOME=$dir; export HOME
unset EBB_MODELS XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME
fail() { echo "$*"; exit 1; }
status() { want=$1; shift; "$@" >"$dir/out" 2>"$dir/err" </dev/null; got=$?; [ $got -eq "$want" ] || fail "exit $got, not $want: $*"; }

status 0 "$EBB" run --greedy -n 30 -p 'What is a token?'
[ -s "$dir/out" ] || fail "no answer on standard output"
[ ! -s "$dir/err" ] || fail "told beside an answer, though nobody watches: $(cat "$dir/err")"
! grep -q "$(printf '\033')" "$dir/out" || fail "an escape sequence in a pipe"
cp "$dir/out" "$dir/plain"

# Piped input is the question, or stands behind it.
echo 'What is a token?' | "$EBB" run --greedy -n 30 >"$dir/piped" 2>/dev/null || fail "piped"
cmp -s "$dir/piped" "$dir/plain" || fail "a piped question is another question: $(cat "$dir/piped")"
printf 'is a token?\n' | "$EBB" run --greedy -n 30 -p 'What' >/dev/null 2>&1 || fail "piped behind -p"

# -v tells how it went, on standard error only; --json is one object with the same text and the figures.
status 0 "$EBB" run -v --greedy -n 30 -p 'What is a token?'
cmp -s "$dir/out" "$dir/plain" || fail "-v changed standard output"
[ -s "$dir/err" ] || fail "-v said nothing"
status 0 "$EBB" run --json --greedy -n 30 -p 'What is a token?'
[ "$(wc -l <"$dir/out")" -eq 1 ] || fail "--json is not one line"
python3 - "$dir/out" "$dir/plain" <<'PY' || exit 1
import json, sys
answer, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read().strip()
if answer["text"].strip() != text or not any("tok_s" in k for k in answer):
    sys.exit("--json: %r" % answer)
PY

# The system prompt of a session is the one it began with, whatever the configuration and the command line say since.
mkdir -p "$dir/.config/ebb"
for said in first second third; do
    echo "system = configured $said" >"$dir/.config/ebb/config"
    status 0 "$EBB" run -s kept -n 4 -p "$said"
    [ ! -s "$dir/err" ] || fail "of the configuration it is told: $(cat "$dir/err")"
done
rm "$dir/.config/ebb/config"
status 0 "$EBB" run -s kept -n 4 -p fourth --system 'another one'
[ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q 'this session keeps its own system prompt' "$dir/err" ||
    fail "of the command line: $(cat "$dir/err")"
"$EBB" sessions show kept | grep -q 'configured first' || fail "another system prompt: $("$EBB" sessions show kept)"
"$EBB" sessions list | grep -q ' 9 messages' || fail "copied: $("$EBB" sessions list)"

# What failed is 1 with one line; wrong usage is 2; nothing of it on standard output.
status 1 "$EBB" run -m "$dir/nothing.gguf" -p x
grep -q nothing.gguf "$dir/err" && [ ! -s "$dir/out" ] || fail "no model: $(cat "$dir/err" "$dir/out")"
status 2 "$EBB" run --nosuch
[ ! -s "$dir/out" ] || fail "usage on standard output"
status 2 "$EBB" run -n many -p x

# A conversation that cannot be read is not answered from nothing, nor its question kept in another one.
mkdir -p "$dir/other/ebb"
echo "no database" >"$dir/other/ebb/sessions.db"
for which in '-s talk' -c; do
    status 1 env XDG_STATE_HOME="$dir/other" "$EBB" run $which -n 3 -p 'And then?'
    [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "answered from nothing: $(cat "$dir/out" "$dir/err")"
done

# Ctrl-C ends it with 130, a stop by another ebb with 138, and what was written is there.
python3 - "$EBB" <<'PY'
import os, signal, subprocess, sys
for number in signal.SIGINT, signal.SIGUSR1:
    p = subprocess.Popen([sys.argv[1], "run", "-p", "Tell me everything.", "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.read(p.stdout.fileno(), 1)
    p.send_signal(number)
    p.stdout.read()
    if p.wait(300) not in (128 + number, 0):       # 0: it was quicker than the signal
        sys.exit("exit %d after signal %d" % (p.returncode, number))
PY

# Who names a reader is told what works, and why.
"$EBB" run -m models/guide.gguf --resident 0 --io pread -n 2 -p hello </dev/null 2>&1 >/dev/null | grep -q "layers fit\|reader" || { echo "the reader is not told"; exit 1; }

# Files named with @ go along; a name that names nothing is told; what is piped in names none.
printf 'The word is tangerine.\n' >"$dir/note.txt"
status 0 "$EBB" run --json --greedy -n 3 -p "@$dir/note.txt What is the word?"
python3 - "$dir/out" <<'PY' || exit 1
import json, sys
a = json.load(open(sys.argv[1]))
if a["prompt_tokens"] < 15 or not a["model"] or not a["model_file"]:
    sys.exit("@file did not go along: %r" % a)
PY
status 0 "$EBB" run --greedy -n 3 -p "@$dir/none.txt What?"
grep -q "no file $dir/none.txt" "$dir/err" || fail "a file that is not there: $(cat "$dir/err")"

# Files that are no text go through a filter of the configuration or the command line; what has none is named.
mkdir -p "$dir/.config/ebb" && printf 'filter .up = tr a-z A-Z\n' >"$dir/.config/ebb/config"
printf 'the word\n' >"$dir/word.up"
printf 'the word\n' >"$dir/word.rev"
status 0 "$EBB" run -v --json --greedy -n 3 --filter '.rev=rev %s' -p "@$dir/word.up @$dir/word.rev What is the word?"
grep -q 'reading word.up with tr' "$dir/err" && grep -q 'reading word.rev with rev' "$dir/err" ||
    fail "filters: $(cat "$dir/err")"
printf 'a\0b' >"$dir/word.bin"
status 1 "$EBB" run -p "@$dir/word.bin What?"
grep -q 'is not a text file; `filter .bin = COMMAND`' "$dir/err" || fail "no filter: $(cat "$dir/err")"
status 1 "$EBB" run --filter '.rev=no-such-program' -p "@$dir/word.rev What?"
grep -q 'a program that is not installed: .*no-such-program' "$dir/err" || fail "no program: $(cat "$dir/err")"
status 2 "$EBB" run --filter 'rev' -p x
# ... but not of a configuration that everybody may write to.
chmod 666 "$dir/.config/ebb/config"
status 0 "$EBB" run --private -v --greedy -n 3 -p "@$dir/word.up What is the word?"
grep -q 'every user may write to it' "$dir/err" && ! grep -q 'reading word.up with tr' "$dir/err" ||
    fail "a configuration of everybody's: $(cat "$dir/err")"
rm "$dir/.config/ebb/config"

# Binary input is named, a reader that has seen enough is no error, a text that is too long says what would help, and one
# without an end is refused, or ends with a signal.
# Few open files are told as such, whatever of ebb would be the first to want one more.
for n in 5 6 12 24; do
    for command in "run -p hello" "sessions list" "inspect gguf -m models/guide.gguf"; do
        (ulimit -n $n; exec "$EBB" $command) </dev/null >"$dir/out" 2>"$dir/err" && fail "$command with $n files"
        grep -q "may open $n files.*ulimit -n" "$dir/err" || fail "$command with $n files: $(cat "$dir/err")"
    done
done

(ulimit -n 40; printf 'hello\n/import %s/none\nand then?\n' "$dir" | "$EBB" --plain -s few -n 3 -m models/guide.gguf) >"$dir/out" 2>&1 &&
    ! grep 'Too many' "$dir/out" || fail "a chat with the files that are said to be enough: $(cat "$dir/out")"

head -c 100 "$EBB" | "$EBB" run -p 'What is this?' 2>"$dir/err" && fail "binary input is answered"
grep -q 'piped input is binary' "$dir/err" || fail "binary input: $(cat "$dir/err")"
{ "$EBB" run --greedy -n 200 -p 'Tell me everything.' 2>"$dir/err"; echo $? >"$dir/status"; } | true
[ "$(cat "$dir/status")" -eq 0 ] && [ ! -s "$dir/err" ] || fail "a closed pipe: $(cat "$dir/status" "$dir/err")"
python3 - "$EBB" <<'PY' || exit 1
import os, subprocess, sys
model = ["-m", "models/guide.gguf"]
for command, typed in (["--plain", "-n", "3", *model], b"hello\n"), (["inspect", "gguf", *model], b""), \
                      (["bench", "--modes", "-p", "4", "-n", "2", "-r", "1", *model], b""):
    reads, writes = os.pipe()
    os.close(reads)                                # nobody reads, from the first line on
    p = subprocess.run([sys.argv[1], *command], input=typed, stdout=writes, stderr=subprocess.PIPE)
    os.close(writes)
    if p.returncode != 0 or b"written" in p.stderr:
        sys.exit("%r into a closed pipe: %d, %r" % (command, p.returncode, p.stderr))
PY
# A line is one write, with its end: those of several runs that share a pipe are not mixed.
python3 - "$EBB" <<'PY' || exit 1
import socket, subprocess, sys
def written(*command):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)     # keeps writes apart
    out = theirs if "--json" in command else subprocess.DEVNULL
    subprocess.run([sys.argv[1], "run", "-m", "models/guide.gguf", "-n", "1", *command, "see @missing.c"],
                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL if out is theirs else theirs)
    theirs.close()
    return list(iter(lambda: ours.recv(65536), b""))
told, answered = written(), written("--json")
if told != [b"ebb: no file missing.c; sent as text\n"]:
    sys.exit("a line on standard error is written as %r" % told)
if len(answered) != 1 or not answered[0].endswith(b"}\n"):
    sys.exit("--json is written as %r" % answered)
PY
yes word | head -n 3000 | "$EBB" run --ctx 512 -n 3 2>"$dir/err" && fail "3,000 words in 512"
grep -q 'the model was trained for 2048: shorten' "$dir/err" && ! grep -q -- '--ctx' "$dir/err" || fail "far too long: $(cat "$dir/err")"
yes word | head -n 300 | "$EBB" run --ctx 512 -n 3 2>"$dir/err" && fail "300 words in 512"
grep -q 'the input has .* tokens, the context holds .*: give --ctx .* (in a chat /set ctx ' "$dir/err" || fail "too long: $(cat "$dir/err")"
yes word | timeout 60 "$EBB" run -n 3 2>"$dir/err"
[ $? -eq 1 ] && grep -qx 'ebb: the input is larger than 64 MiB' "$dir/err" || fail "input without an end: $(cat "$dir/err")"
if (ulimit -v 90000; exec "$EBB" --version) >"$dir/no" 2>&1; then       # a sanitizer's build has not even begun there
    yes word | (ulimit -v 90000; exec timeout 60 "$EBB" run -n 3) 2>"$dir/err"
    [ $? -eq 1 ] && grep -qx 'ebb: no memory for the input' "$dir/err" || fail "no memory: $(cat "$dir/err")"
fi
{ while sleep 0.01; do echo word; done; } 2>"$dir/no" | timeout 1 "$EBB" run -n 3 2>"$dir/err"
[ $? -eq 124 ] || fail "a slow input without an end: $(cat "$dir/err")"
# A budget that is named as needed is enough.
for ctx in 512 1024 2048 4096; do
    need=$("$EBB" run -m guide --ctx $ctx --ram 1M hi 2>&1 | sed -n 's/.*needs at least \([0-9.]*\) MiB.*/\1M/p')
    [ "$need" ] || fail "a budget of 1 MiB is not refused"
    status 0 "$EBB" run -m guide --ctx $ctx --ram "$need" -n 1 hi
done
# No shell reads a value behind = or in the configuration: ~/ is the home all the same.
mkdir -p "$dir/h/.config/ebb" && printf '%s' '{{ messages[0].content }}' >"$dir/h/t.jinja" || exit 1
want=$("$EBB" run -m guide -n 3 --greedy --template "$dir/h/t.jinja" hi)
[ "$(HOME=$dir/h XDG_CONFIG_HOME='' "$EBB" run -m guide -n 3 --greedy --template='~/t.jinja' --trace='~/trace' hi)" = "$want" ] && [ -s "$dir/h/trace" ] || fail "~/ behind ="
printf 'template = ~/t.jinja\ntrace = ~/trace2\n' >"$dir/h/.config/ebb/config"
[ "$(HOME=$dir/h XDG_CONFIG_HOME='' "$EBB" run -m guide -n 3 --greedy hi)" = "$want" ] && [ -s "$dir/h/trace2" ] || fail "~/ in the configuration"
printf '/set template ~/t.jinja\n' | HOME=$dir/h XDG_CONFIG_HOME='' "$EBB" --plain -m guide >"$dir/out" 2>&1
grep -q "chat template: $dir/h/t.jinja, as you asked" "$dir/out" || fail "~/ of /set template: $(cat "$dir/out")"
# A file is kept by a name that finds it from any folder, also one without an ending.
cp "$dir/h/t.jinja" "$dir/h/shape" || exit 1
ebb=$(realpath "$EBB")
(cd "$dir/h" && printf '/set template shape\n' | "$ebb" --plain -m guide >"$dir/out" 2>&1)
grep -q "chat template: $dir/h/shape, as you asked" "$dir/out" || fail "a template without an ending: $(cat "$dir/out")"

mkfifo "$dir/trace" || exit 1
timeout 60 "$EBB" run -n 3 --trace "$dir/trace" hi 2>"$dir/err"
[ $? -eq 1 ] && grep -q 'is a pipe that nobody reads' "$dir/err" || fail "a trace into a pipe: $(cat "$dir/err")"

# The first word may be a model, as elsewhere; a slip is asked about; a sentence is a sentence.
mkdir -p "$dir/.local/share/ebb/models" && cp models/guide.gguf "$dir/.local/share/ebb/models/tiny2-1b.gguf"
status 0 "$EBB" run tiny2 --json --greedy -n 3 'Once upon'
grep -q tiny2-1b.gguf "$dir/out" || fail "the first word is no model: $(cat "$dir/out")"
status 2 "$EBB" run tiny3-1b 'Once upon'
grep -q 'did you mean tiny2-1b' "$dir/err" || fail "a slip: $(cat "$dir/err")"
status 2 "$EBB" run tniy2 'Once upon'
grep -q 'no model tniy2; did you mean tiny2?' "$dir/err" || fail "a slip in the beginning: $(cat "$dir/err")"
cp models/guide.gguf "$dir/.local/share/ebb/models/code-1b.gguf" || exit 1
status 0 "$EBB" run -n 2 --greedy node 'dump of x'       # a word of many texts
rm "$dir/.local/share/ebb/models/code-1b.gguf"
mkdir "$dir/.local/share/ebb/models/more" && cp models/guide.gguf "$dir/.local/share/ebb/models/more/tiny2-1b.gguf"
status 2 "$EBB" run tiny2-1b 'Once upon'
grep -q 'several models are called tiny2-1b (/.*models/.*tiny2-1b.gguf, /.*tiny2-1b.gguf)' "$dir/err" ||
    fail "two of that name: $(cat "$dir/err")"
status 2 "$EBB" run tiny2 'Once upon'
grep -q 'several models begin with tiny2 (/.*, /' "$dir/err" || fail "two that begin so: $(cat "$dir/err")"
rm -r "$dir/.local/share/ebb/models/more"
status 0 "$EBB" run -n 2 --greedy tiny words in a row
# ... in the place of the one that the configuration names, too.
echo 'model = guide' >"$dir/.config/ebb/config"
status 0 "$EBB" run tiny2 --json --greedy -n 3 'Once upon'
grep -q tiny2-1b.gguf "$dir/out" || fail "the configuration's model, not the first word: $(cat "$dir/out")"
status 0 "$EBB" plan --json models/guide.gguf
status 2 "$EBB" plan -m guide models/guide.gguf
rm "$dir/.config/ebb/config"
"$EBB" guide --plain </dev/null >"$dir/out" 2>&1 || fail "ebb guide: $(cat "$dir/out")"

# Several answers at a time are those of their seeds, one by one.
free='--temp 3 --top-k 0 --top-p 1 --min-p 0 -n 25'
status 0 "$EBB" run $free --seed 42 --count 3 -p 'What is a token?'
cp "$dir/out" "$dir/several"
for i in 1 2 3; do
    status 0 "$EBB" run $free --seed $((41 + i)) -p 'What is a token?'
    [ $i -eq 1 ] || echo
    echo "--- $i of 3, seed $((41 + i)) ---"
    cat "$dir/out"
done >"$dir/single"
cmp -s "$dir/several" "$dir/single" || fail "--count: $(diff "$dir/single" "$dir/several")"
[ "$(sort -u "$dir/single" | wc -l)" -gt 5 ] || fail "the seeds make no difference: $(cat "$dir/single")"
status 0 "$EBB" run $free --seed 42 --count 3 --json -p 'What is a token?'
python3 - "$dir/out" "$dir/single" <<'PY' || exit 1
import json, sys
a, single = json.load(open(sys.argv[1])), open(sys.argv[2], errors="replace").read()
texts = ["--- %d of 3, seed %d ---" % (i + 1, x["seed"]) for i, x in enumerate(a["answers"])]
if len(a["answers"]) != 3 or not all(t in single for t in texts):
    sys.exit("--count --json: %r" % a)
if a["generated_tokens"] != sum(x["generated_tokens"] for x in a["answers"]) or a["answers"][1]["computed_tokens"] != 0:
    sys.exit("what they cost: %r" % a)
PY
# What it says beside the answer has no control characters, whatever a file is called.
odd=$(printf '%s/odd\033[31m.jinja' "$dir")
printf '{{ messages[0].content }}' >"$odd"
status 0 "$EBB" run -v -n 2 --template "$odd" hi
grep -q 'odd.*31m' "$dir/err" || fail "the template is not named: $(cat "$dir/err")"
grep -qF "$(printf '\033[31m')" "$dir/err" && fail "control characters on standard error"

status 2 "$EBB" run --chunk 5000 -p x
grep -q -- '--chunk 5000: give a number of tokens, 4096 at most' "$dir/err" || fail "--chunk 5000: $(cat "$dir/err")"
status 0 "$EBB" run -n 1 --seed 9223372036854775807 --count 2 --json -p x
python3 -c 'import json, sys; print([a["seed"] for a in json.load(sys.stdin)["answers"]])' <"$dir/out" >"$dir/seeds"
[ "$(cat "$dir/seeds")" = "[9223372036854775807, 1]" ] || fail "--count behind the largest seed: $(cat "$dir/seeds") $(cat "$dir/out")"
status 2 "$EBB" run --count 0 -p x
grep -q -- '--count 0: give how many answers, 1 to 16' "$dir/err" || fail "--count 0: $(cat "$dir/err")"
status 2 "$EBB" run --count 17 -p x

# Whoever else has the pipe may have made it one whose reads do not wait: what comes later belongs to the question.
if command -v python3 >/dev/null; then
    status 0 "$EBB" run --greedy -n 30 "What is a token?"
    cp "$dir/out" "$dir/want"
    python3 - "$EBB" >"$dir/out" <<'P' || fail "a pipe whose reads do not wait"
import fcntl, os, struct, subprocess, sys, termios, time
r, w = os.pipe()
os.set_blocking(r, False)
p = subprocess.Popen([sys.argv[1], "run", "--greedy", "-n", "30"], stdin=r)
os.write(w, b"What is ")
while struct.unpack("i", fcntl.ioctl(r, termios.FIONREAD, b"0000"))[0]:
    time.sleep(0.01)
time.sleep(0.1)                                    # for the read that finds nothing
os.write(w, b"a token?")
os.close(w)
sys.exit(p.wait())
P
    cmp -s "$dir/want" "$dir/out" || fail "half of what was piped in is answered: $(cat "$dir/out")"

    # SIGTERM that comes before the input is waited for ends it, too: here, while the database is another program's.
    status 0 "$EBB" run -s kept --greedy -n 4 -p Hello
    python3 - "$EBB" "$dir/.local/state/ebb/sessions.db" >"$dir/out" 2>&1 <<'P' || fail "stopped before its input: $(cat "$dir/out")"
import fcntl, os, signal, subprocess, sys, time
r, w = os.pipe()                                   # into which nobody writes
db = open(sys.argv[2], "r+b")
fcntl.lockf(db, fcntl.LOCK_EX, 512, 0x40000000)    # where SQLite's locks are
p = subprocess.Popen([sys.argv[1], "run", "-s", "kept"], stdin=r)
def is_caught():
    caught = next(l.split()[1] for l in open("/proc/%d/status" % p.pid) if l.startswith("SigCgt"))
    return int(caught, 16) >> signal.SIGTERM - 1 & 1
while not is_caught():
    time.sleep(0.005)
p.send_signal(signal.SIGTERM)
db.close()
try:
    status = p.wait(int(os.environ.get("EBB_TEST_WAIT_S", "300")))
except subprocess.TimeoutExpired:
    p.kill()
    sys.exit("it waits for what is not piped in")
sys.exit("exit %r" % status if status != 143 else 0)
P
fi

# A chat that cannot read what is said is not one in which nothing was said.
for input in "<$dir" '<&-'; do
    eval '"$EBB" --plain '"$input" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "a chat with $input did not fail"
    [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q 'standard input cannot be read' "$dir/err" || fail "$input: $(cat "$dir/err")"
done
"$EBB" --plain </dev/null >"$dir/out" 2>"$dir/err" || fail "a chat that is told nothing: $(cat "$dir/err")"

# What is printed where the shell has closed a standard file goes nowhere, and into no file that was opened instead.
for closed in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    rm -rf "$dir/home"
    mkdir "$dir/home"
    for words in 'run' 'run -s kept --greedy -n 4 -p Hello' 'sessions list' 'run'; do
        (HOME=$dir/home; eval "exec $closed"; timeout 60 "$EBB" $words) >"$dir/out" 2>"$dir/err" </dev/null
    done
    [ ! -s "$dir/home/.local/state/ebb/sessions.db-lock" ] || fail "with $closed, what is printed is in a file"
    (HOME=$dir/home; status 0 "$EBB" sessions list) || fail "with $closed, sessions are lost"
    grep -q kept "$dir/out" || fail "with $closed, the session is lost: $(cat "$dir/out" "$dir/err")"
done
