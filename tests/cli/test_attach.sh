#!/bin/sh
# ebb serve --attach between a client and a server of which one does not read: it carries what the other one takes, and ends when
# it is told to, or when both ends of it are closed.  What it starts listens where it looks, whatever the configuration says.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-attach-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS
PYTHONPATH=tests/support python3 - "$EBB" "$dir" <<'P'
import atexit, json, os, signal, subprocess, sys, threading, time
from serve import Server, fail, parse
ebb, folder = sys.argv[1:3]
server = Server(ebb, folder, "-m", "guide")
atexit.register(server.p.send_signal, signal.SIGCONT)
text = json.dumps({"content": "What is a token? " * 60000}).encode()
request = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(text) + text


def attach():
    a = subprocess.Popen([ebb, "serve", "--attach", "--socket", server.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(a.kill)
    return a


def push(a):
    """As much as it takes, until it has not taken a byte for a moment."""
    os.set_blocking(a.stdin.fileno(), False)
    quiet = 0
    while quiet < 20:
        try:
            os.write(a.stdin.fileno(), b"x" * 4096)
            quiet = 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.02)


def end(a, what):
    a.send_signal(signal.SIGTERM)
    try:
        a.wait(60)
    except subprocess.TimeoutExpired:
        fail("SIGTERM does not end it while", what)


# A megabyte there, and more back, comes whole.
want = server.ask("POST", "/tokenize", text)
a = attach()
sender = threading.Thread(target=lambda: (a.stdin.write(request), a.stdin.flush()))
sender.start()
got = parse(a.stdout.read())
sender.join()
if got[0] != 200 or got[2] != want[2]:
    fail("an answer of", len(want[2]), "bytes came as", got[0], len(got[2]))
a.wait(60)

# The client does not read.
a = attach()
a.stdin.write(request)
a.stdin.flush()
time.sleep(0.3)
end(a, "nobody reads")

# The server does not.
server.p.send_signal(signal.SIGSTOP)
a = attach()
push(a)
end(a, "the server is stopped")
a = attach()
push(a)
a.stdin.close()
a.stdout.close()
try:
    a.wait(60)
except subprocess.TimeoutExpired:
    fail("it stays after its client has gone")
server.p.send_signal(signal.SIGCONT)
if server.json("GET", "/health")["status"] != "ok":
    fail("the server does not go on")
server.end()

# A TCP port and a key of the configuration are for servers that the user starts, not for the one that is started here.
os.makedirs(folder + "/config/ebb")
with open(folder + "/config/ebb/config", "w") as f:
    f.write(f"port = 0\nkey-file = {folder}/key\n")
with open(os.open(folder + "/key", os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
    f.write("sesame\n")


def answer_of_started(path, *words):
    """What the server says that is started here, once its model is loaded."""
    for _ in range(600):
        a = subprocess.Popen([ebb, "serve", *words, "--idle", "30"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        a.stdin.write(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path)
        a.stdin.flush()
        got = parse(a.stdout.read())             # it ends as the connection does
        if a.wait(60) != 0 or got[0] != 503 and b'"loading"' not in got[2]:
            break
        time.sleep(0.1)
    if a.returncode != 0 or got[0] != 200:
        fail(*words, "with port and key-file in the configuration:", a.returncode, got)
    return got[2]


answer_of_started(b"/v1/models", "--attach", "-m", "guide")
# What else the command line says is for that server.
figures = json.loads(answer_of_started(b"/ebb/v1/stats", "--ctx", "128", "--attach", "--kv=q8_0", "--threads", "1", "--socket",
                                       folder + "/other", "guide"))
if [figures[k] for k in ("context", "kv_type", "threads")] != [128, "q8_0", 1]:
    fail("options of the server that is started:", figures)
here = Server(ebb, folder, "-m", "guide", "--key-file", "none")
if here.port or here.ask("GET", "/v1/models")[0] != 200:
    fail("--socket gives way to the configuration:", open(here.err).read())
here.end()
a = subprocess.run([ebb, "serve", "--socket", folder + "/s", "--port", "0"], capture_output=True)
if a.returncode != 2 or b"give one of the two" not in a.stderr:
    fail("two places to listen:", a.returncode, a.stderr)
# What --attach cannot do is said of what the command line says, and in one line; no server is begun for it.
for words in ("--port", "0"), ("--host", "127.0.0.1"):
    a = subprocess.run([ebb, "serve", "--attach", *words, "-m", "guide"], stdin=subprocess.DEVNULL, capture_output=True)
    if a.returncode != 2 or b"--attach is for a server at a socket" not in a.stderr:
        fail("--attach", *words, a.returncode, a.stderr)
a = subprocess.run([ebb, "serve", "--attach", "--socket", folder + "/key", "-m", "guide"], stdin=subprocess.DEVNULL, capture_output=True)
if a.returncode != 1 or a.stderr.decode() != f"ebb: the server could not be started: {folder}/key: exists and is not a socket\n":
    fail("why no server could be started:", a.stderr)
P
