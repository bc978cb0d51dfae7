#!/bin/sh
# A server that is there answers instead of a second copy of its model; one behind a pipe or ssh is started if need be, and an answer survives a line that breaks.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-share-XXXXXX) || exit 1
pids=
serving() { "$EBB" stat --json | python3 -c 'import json, sys; print(*[p["pid"] for p in json.load(sys.stdin)["running"] if p["session"] == "ebb serve"])'; }
trap 'for p in $pids $(serving); do kill $p 2>/dev/null; done; rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS
EBB=$(realpath "$EBB") model=$(realpath models/guide.gguf)
question='What is a token?'
want=$("$EBB" run -m guide --greedy -n 40 -p "$question" </dev/null)
answers() { "$EBB" stat --json | python3 -c 'import json, sys; print(sum(p.get("answers", 0) for p in json.load(sys.stdin)["running"]))'; }
# run WORDS...: the answer in $dir/out, what is told in $dir/err
run() { "$EBB" run -v --greedy -n 40 -p "$question" "$@" </dev/null >"$dir/out" 2>"$dir/err" || fail "run $*: $(cat "$dir/err")"; }

# What hangs or dribbles at the server's place is left alone: the model is opened here.
python3 - "$EBB" "$dir/run/ebb" <<'P' || exit 1
import os, socket, subprocess, sys, threading, time
ebb, folder = sys.argv[1:]
os.makedirs(folder, 0o700, exist_ok=True)
door = socket.socket(socket.AF_UNIX)
door.bind(folder + "/serve.sock")
door.listen()
left_early = threading.Event()


def dribble():
    peer = door.accept()[0]
    try:
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(100):
            peer.sendall(b" ")
            time.sleep(0.2)
    except OSError:
        left_early.set()
    peer.close()


loading = []                              # connections to one that says so for ever, and closes none


def load():
    while True:
        loading.append(door.accept()[0])
        loading[-1].sendall(b'HTTP/1.1 200 OK\r\n\r\n{"state":"loading"}')


t = threading.Thread(target=dribble)
t.start()
ask = [ebb, "run", "-m", "guide", "-n", "1", "-p", "x"]
subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True, check=True)
t.join()
if not left_early.is_set():
    sys.exit("a server that dribbles is waited for to its end")
threading.Thread(target=load, daemon=True).start()
subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True, check=True)
if not 1 <= len(loading) <= 2:            # each takes what one may take that says nothing
    sys.exit(f"a server that is never ready is asked {len(loading)} times")
os.unlink(folder + "/serve.sock")
P

# Sharing: the model of the server, by whatever name, and nothing but that.
run -m "$model"
grep -q "ebb serve (process" "$dir/err" && fail "shared without a server"
"$EBB" serve -m "$model" 2>"$dir/log" & pids="$pids $!" server=$!
n=600; until grep -q "answers, with" "$dir/log"; do n=$((n - 1)); [ $n -gt 0 ] || fail "the server does not start: $(cat "$dir/log")"; sleep 0.1; done
run -m "$model"
grep -q "ebb serve (process $server) has guide in memory" "$dir/err" || fail "not shared: $(cat "$dir/err")"
[ "$(cat "$dir/out")" = "$want" ] || fail "the shared answer is another one: $(cat "$dir/out")"
[ "$(answers)" = 1 ] || fail "$(answers) answers of the server, not 1"
"$EBB" run --greedy -n 4 -m "$model" --json --seed 7 -p x </dev/null >"$dir/json" 2>"$dir/err" || fail "no object"
grep -q '"engine":' "$dir/json" && grep -q '"seed":7' "$dir/json" && grep -q '"kv_type":"[a-z]' "$dir/json" &&
    grep -q '"layers":[1-9]' "$dir/json" && ! grep -q '"peak_rss_bytes"\|"drafted"' "$dir/json" || fail "figures of nobody: $(cat "$dir/json")"
[ "$(answers)" = 2 ] || fail "$(answers) answers of the server, not 2"
ln -s "$model" "$dir/other-name.gguf"
run -m "$dir/other-name.gguf"
[ "$(answers)" = 3 ] || fail "the same file by another name is not shared"
cp "$model" "$dir/copy.gguf"
run -m "$dir/copy.gguf"; run -m guide; run -m "$model" -e here; run -m "$model" --ctx 512; run -m "$model" --private; run -m "$model" --no-kv-cache
printf '/set template none\n' | "$EBB" --plain -m "$model" -e here -s raw >"$dir/out" 2>&1
for o in "--raw" "--template chatml" "-s raw"; do
    # shellcheck disable=SC2086
    "$EBB" run $o -e here -m "$model" --greedy -n 10 -p "$question" </dev/null >"$dir/alone" 2>&1; "$EBB" run $o -m "$model" --greedy -n 10 -p "$question" </dev/null >"$dir/out" 2>&1
    [ "$o" = "-s raw" ] || cmp -s "$dir/alone" "$dir/out" || fail "$o: $(cat "$dir/alone" "$dir/out")"
done
run -m guide --template auto
[ "$(answers)" = 4 ] || fail "$(answers) answers of the server, not 4: a template is dropped, or auto keeps a copy"
"$EBB" run -m "$model" --template nosuch x </dev/null >"$dir/out" 2>&1 && fail "a template that there is not is dropped"
run -m guide -e here
[ "$(answers)" = 4 ] || fail "shared though it should not be"
[ "$(cat "$dir/out")" = "$want" ] || fail "another answer here: $(cat "$dir/out")"
"$EBB" run --greedy -n 4 -m "$model" -p x </dev/null 2>"$dir/err" >/dev/null
[ ! -s "$dir/err" ] || fail "told where nobody looks: $(cat "$dir/err")"
kill $server; wait $server || fail "the server ends with $?"

# Options with which somebody began the server change no answer of who has not named it: its sampling is left out, and what cannot be is passed over.
serve() {
    : >"$dir/log"                                # or the line of the one before is seen
    "$EBB" serve -m "$model" "$@" 2>"$dir/log" & pids="$pids $!" server=$!
    n=600; until grep -q "answers, with" "$dir/log"; do n=$((n - 1)); [ $n -gt 0 ] || fail "the server does not start: $(cat "$dir/log")"; sleep 0.1; done
}
usual() { "$EBB" run -v -n 12 -m "$model" -p "$question" "$@" </dev/null 2>"$dir/err" || fail "run $*: $(cat "$dir/err")"; }
serve --temp 0 --top-k 1 --seed 3 --repeat-penalty 2
[ "$(usual --seed 5)" = "$(usual --seed 5 -e here)" ] || fail "the server's options change an answer: $(usual --seed 5), not $(usual --seed 5 -e here)"
[ "$(usual --temp 1 --seed 7)" = "$(usual --temp 1 --seed 7 -e here)" ] || fail "another answer with a temperature of one's own"
[ "$(answers)" -ge 2 ] || fail "a server with options of sampling is passed over: $(cat "$dir/err")"
seed=$(usual --json | sed -n 's/.*"seed":\([0-9]*\).*/\1/p')
grep -q "answers; -e here" "$dir/err" && [ "${seed:-0}" -gt 0 ] && [ "$seed" != 3 ] || fail "the seed of an answer is not told: '$seed'"
kill $server; wait $server
serve --ctx 256
usual >/dev/null
grep -q "with options that change answers (--ctx, --kv ...); it is loaded here" "$dir/err" || fail "a small context is not passed over: $(cat "$dir/err")"
"$EBB" run -e "unix:$dir/run/ebb/serve.sock" "$(seq 400)" </dev/null >"$dir/out" 2>&1 && fail "it has answered more than its context holds"
[ "$(answers)" = 0 ] || fail "it was asked"
mkdir "$dir/models" && cp "$model" "$dir/models/other.gguf" && rm -f "$dir/state/ebb/model"
EBB_MODELS=$dir/models "$EBB" run -v --json -n 1 x </dev/null >"$dir/out" 2>"$dir/err" || fail "no model is named: $(cat "$dir/err")"
grep -q "has a model, with options .*; one is chosen here" "$dir/err" && grep -q "models/other.gguf" "$dir/out" || fail "another model is called the server's: $(cat "$dir/err" "$dir/out")"
kill $server; wait $server
serve --kv q4_0
usual >/dev/null
[ "$(answers)" = 0 ] || fail "K and V of another type were asked"
kill $server; wait $server

# A socket at that place which is another user's: he is asked nothing.
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups python3 -c '' 2>/dev/null; then
    mkdir -p "$dir/run/ebb"; chmod 755 "$dir" "$dir/run"; chmod 777 "$dir/run/ebb"
    cat >"$dir/stranger.py" <<'S'
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + "/serve.sock")
os.chmod(sys.argv[1] + "/serve.sock", 0o777)
s.listen()
open(sys.argv[1] + "/listens", "w").close()
while True:
    c, _ = s.accept()
    with open(sys.argv[1] + "/told", "ab") as f:
        f.write(c.recv(4096))
    c.close()
S
    setpriv --reuid 65534 --clear-groups python3 "$dir/stranger.py" "$dir/run/ebb" & pids="$pids $!" stranger=$!
    n=600; until [ -e "$dir/run/ebb/listens" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "the stranger does not listen"; sleep 0.1; done
    run -m "$model"
    [ "$(cat "$dir/out")" = "$want" ] || fail "another answer beside a stranger's socket: $(cat "$dir/out")"
    grep -q "ebb serve (process" "$dir/err" && fail "another user's server is trusted"
    [ -e "$dir/run/ebb/told" ] || fail "the stranger's socket was not even looked at"
    [ ! -s "$dir/run/ebb/told" ] || fail "another user was told: $(cat "$dir/run/ebb/told")"
    kill $stranger; rm -rf "$dir/run/ebb"
fi

# Behind a pipe: started by the first who asks, found by the second, gone when nobody wants it.
sock=$dir/pipe.sock
pipe="exec:$EBB serve --attach --socket $sock -m guide --idle 15"    # longer than a busy machine takes from one question to the next
run -e "$pipe"
[ "$(cat "$dir/out")" = "$want" ] || fail "behind a pipe: $(cat "$dir/out")"
one=$("$EBB" stat --json)
printf '#!/bin/sh\necho begun >>%s/begun\nexec "$@"\n' "$dir" >"$dir/count"
chmod +x "$dir/count"
run -e "exec:$dir/count ${pipe#exec:}"            # what it is, what it has, the answer: one line for all
[ "$(wc -l <"$dir/begun")" = 1 ] || fail "the command was begun $(wc -l <"$dir/begun") times for one answer"
[ "$(answers)" = 2 ] || fail "the second one has found another server than the first: $one"
n=600; while [ -S "$sock" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "the server does not leave"; sleep 0.1; done
"$EBB" run -e "exec:$EBB serve --attach --socket $sock -m $dir/nothing.gguf" x </dev/null >"$dir/out" 2>&1 && fail "a model that is not there answers"

# ssh: what it is called with, and a line that breaks in the middle of an answer.
mkdir "$dir/bin"
cat >"$dir/bin/ssh" <<S
#!/bin/sh
echo "\$@" >>$dir/ssh-words
while [ "\$1" != ebb ]; do shift; done
shift
[ -e $dir/broken ] || [ ! -e $dir/break ] && exec "$EBB" "\$@"
"$EBB" "\$@" | python3 $dir/line.py $dir/broken
S
cat >"$dir/line.py" <<'P'
import os, sys
begun = n = 0
while n < 1500:                                   # so much of the answer's stream
    data = os.read(0, 4096)
    if not data:
        break
    begun = begun or b"event-stream" in data
    n += len(data) if begun else 0
    os.write(1, data)
open(sys.argv[1], "w")
P
chmod +x "$dir/bin/ssh"
PATH=$dir/bin:$PATH
run --host me@box -m guide
[ "$(cat "$dir/out")" = "$want" ] || fail "behind ssh: $(cat "$dir/out")"
grep -qx -- "-T -o BatchMode=yes me@box ebb serve --attach -m guide" "$dir/ssh-words" || fail "ssh was called with: $(cat "$dir/ssh-words")"
touch "$dir/break"
run --host me@box
[ -e "$dir/broken" ] || fail "the line has not broken"
grep -q "the answer goes on there" "$dir/err" || fail "nothing is told of the break: $(cat "$dir/err")"
[ "$(cat "$dir/out")" = "$want" ] || fail "the answer is not whole behind a break: $(cat "$dir/out")"
[ "$(answers)" = 2 ] || fail "it was computed again: $(answers) answers"

# Ctrl-C: the answer over there ends too.
python3 - "$EBB" <<'P' || exit 1
import json, signal, subprocess, sys, time
ebb = sys.argv[1]
p = subprocess.Popen([ebb, "run", "--host", "me@box", "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "3", "-p", "Tell me everything."],
                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
p.stdout.read(1)
p.send_signal(signal.SIGINT)
p.stdout.read()
p.wait(60)
for _ in range(100):
    s = [s for s in json.loads(subprocess.run([ebb, "stat", "--json"], capture_output=True).stdout)["running"] if s["session"] == "ebb serve"][0]
    if s["running"] + s["waiting"] == 0:
        break
    time.sleep(0.1)
else:
    sys.exit("the answer goes on: %r" % s)
P
