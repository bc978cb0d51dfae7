#!/bin/sh
# ebb serve among clients that are broken, slow, or mean it badly: they cost their connection, and the others get their answers.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-limits-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS
PYTHONPATH=tests/support python3 - "$EBB" "$dir" <<'P'
import json, os, random, re, resource, socket, subprocess, sys, time
from serve import Server, fail, parse, read_all
ebb, folder = sys.argv[1:3]
s = Server(ebb, folder, "-m", "guide")
want = s.chat("What is a token?", temperature=0, max_tokens=30)["choices"][0]["message"]["content"]
good = json.dumps({"messages": [{"role": "user", "content": "What is a token?"}], "temperature": 0, "max_tokens": 30, "stream": True}).encode()
head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(good)


def still_works(after):
    got = s.chat("What is a token?", temperature=0, max_tokens=30)["choices"][0]["message"]["content"]
    if got != want:
        fail("after", after, "the answer is", repr(got))


def rss():
    return int(re.search(r"RssAnon:\s*(\d+)", open(f"/proc/{s.p.pid}/status").read()).group(1))


def threads():
    return int(re.search(r"Threads:\s*(\d+)", open(f"/proc/{s.p.pid}/status").read()).group(1))


def send(data, reads=True, close=True):
    c = s.connect()
    try:
        c.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    if not reads:
        c.close()
        return 0, {}, b""
    if close:
        c.shutdown(socket.SHUT_WR)
    return parse(read_all(c))


# Who has said all and ends what he sends is answered.
for body in good, good.replace(b'"stream": true', b'"stream": false'):
    status, _, text = send(head.replace(b"Content-Length: %d" % len(good), b"Content-Length: %d" % len(body)) + body)
    if status != 200 or (b"[DONE]" not in text if body == good else json.loads(text)["choices"][0]["message"]["content"] != want):
        fail("a client that sends no more is answered with", status, text)

# Too much of anything.
status, _, body = send(b"POST /completion HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 99999999999\r\n\r\n", close=False)
if status != 413 or json.loads(body)["error"]["code"] != 413:
    fail("a body of 100 GB is answered with", status, body)
c = s.connect()                                            # the same without saying so before
try:
    c.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(40):
        c.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
    c.sendall(b"0\r\n\r\n")
    status = parse(read_all(c))[0]
except (BrokenPipeError, ConnectionResetError):
    status = 0
if status == 200:
    fail("a body without end is taken")
for data in b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100000 + b"\r\n\r\n", b"GET /" + b"y" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", \
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20000)) + b"\r\n":
    if send(data)[0] == 200:
        fail("headers without end are taken")
deep = b'{"messages":' + b"[" * 100000 + b"]" * 100000 + b"}"
status, _, body = send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(deep) + deep, close=False)
if status != 400:
    fail("brackets are answered with", status, body)
still_works("too much")

# Large bodies of several at once: together they take what one may several times, and no more.
begun, many = rss(), []
for i in range(20):
    c = s.connect()
    c.setblocking(False)
    many.append(c)
    try:
        c.send(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 15000000\r\n\r\n")
    except OSError:
        pass
sent, left = {c: 0 for c in many}, set(many)
for _ in range(2000):
    for c in list(left):
        try:
            sent[c] += c.send(b"x" * min(100000, 14000000 - sent[c]))
        except BlockingIOError:
            continue
        except OSError:
            left.discard(c)
        if sent[c] == 14000000:
            left.discard(c)
    if not left:
        break
    time.sleep(0.005)
is_watched = "/address" in ebb or "/thread/" in ebb                # a sanitizer keeps what was freed
if not is_watched and rss() > begun + 80000:
    fail("bodies of 280 MB take", rss() - begun, "KiB")
for c in many:
    c.close()
still_works("20 large bodies")

# Requests of many values wait for their answers: what was read of them is not kept, and they are read one at a time.
values = b'{"messages":[{"role":"user","content":"x"}],"ignore_eos":true,"max_tokens":1500,"values":[' + b",".join([b"{}"] * 165000) + b"]}"
values = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(values) + values
text = b'{"content":"' + b"x" * 4000000 + b'"}'
text = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(text) + text
begun, most, many = rss(), 0, []
for data in [values] * 20 + [text] * 4:
    c = s.connect()
    c.sendall(data)
    many.append(c)
for c in many[20:]:                                        # replies of 16 MB that are not read: two at once, no more
    c.setblocking(False)
    while True:
        most = max(most, rss())
        try:
            status = c.recv(64)
            if b" 200 " not in status and b" 503 " not in status:
                fail("a text of 4 MB is answered with", status)
            break
        except BlockingIOError:
            time.sleep(0.01)
if not is_watched and most > begun + 256 * 1024:
    fail("20 requests of many values, and 4 of much text, take", most - begun, "KiB")
for c in many:
    c.close()
status, _, body = send(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5000014\r\n\r\n" + b'{"content":"' + b"x" * 5000000 + b'"}', close=False)
if status != 400 or b"4194304" not in body:
    fail("5 MB of text are answered with", status, body)
for path, more in ("/completion", {"prompt": "x" * 5000000}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 2500000}] * 2}):
    if "4194304" not in s.json("POST", path, more, want=400)["error"]["message"]:
        fail("5 MB of text are taken by", path)
still_works("requests of many values")

# Whatever bytes, cut off anywhere; some never read their answer.  What begins as ours ends within a moment of its client.
random.seed(7)
begun_threads, begun = threads(), rss()
words = [b"Connection: close\r\n", b"GET ", b"POST ", b"/v1/chat/completions", b"/completion", b" HTTP/1.1\r\n", b"Host: x\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
         b"Transfer-Encoding: chunked\r\n", b"\r\n", b"\x00", b"\xff\xfe", b"{", b"[1,2", b'"\\ud800"', b"}", b"%00%0a", b"Expect: 100-continue\r\n", b"5\r\nabcde\r\n", b"0\r\n\r\n"]
for i in range(300):
    whole = head + good
    kind = i % 5
    if kind == 0:
        send(whole[:random.randrange(len(whole))], reads=False)
    elif kind == 1:
        send(b"".join(random.choice(words) for _ in range(random.randrange(30))), reads=i % 2 == 0)
    elif kind == 2:
        at = random.randrange(len(whole))
        send(whole[:at] + bytes([random.randrange(256)]) + whole[at + 1:], reads=False)
    elif kind == 3:                                        # it asks, and goes in the middle of the answer
        c = s.connect()
        c.sendall(whole)
        c.recv(random.randrange(1, 400))
        c.close()
    else:
        body = bytes(random.randrange(256) for _ in range(random.randrange(200)))
        status, _, text = send(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body, close=False)
        if status not in (400, 404) or text.count(b"\n"):
            fail("noise is answered with", status, text)
still_works("300 broken clients")
if not is_watched and rss() > begun + 32768:
    fail("memory grows from", begun, "to", rss(), "KiB")

# Slow ones hold their connections, and nobody else's.
slow = []
for i in range(200):
    c = s.connect()
    c.sendall((head + good)[:random.randrange(1, len(head))])
    slow.append(c)
still_works("200 that say nothing more")
never = []
for i in range(20):                                        # they ask for much and read nothing
    c = s.connect()
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "ignore_eos": True, "max_tokens": 200, "stream": True}).encode()
    c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    never.append(c)
still_works("20 that do not read")
for i in range(100):                                       # beyond the limit of connections
    try:
        c = s.connect()
        slow.append(c)
    except OSError:
        break
for c in slow + never:
    c.close()
for _ in range(600):
    try:
        still_works("too many connections")
        break
    except (SystemExit, OSError, ValueError):
        time.sleep(0.1)
else:
    fail("it does not come back after too many connections")
for _ in range(600):
    if threads() <= begun_threads + 2:
        break
    time.sleep(0.1)
else:
    fail("threads stay:", begun_threads, threads())

# One client does not get all answers: at the socket that is a process, at a port an address.
endless = json.dumps({"messages": [{"role": "user", "content": "x"}], "ignore_eos": True, "max_tokens": 1500, "stream": True}).encode()
endless = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(endless) + endless


def refused_beyond_64(server):
    """Connections of a client that asks for an answer too many; they keep their answers."""
    taken = []
    for i in range(65):
        c = server.connect()
        c.sendall(endless)
        taken.append(c)
        status = c.recv(64)
        if (b" 429 " if i == 64 else b" 200 ") not in status:
            fail("answer", i, "of one client:", status)
    return taken


taken = refused_beyond_64(s)
other = subprocess.run([sys.executable, "-c", "import sys\nfrom serve import Server\ns = Server.__new__(Server)\n"
                        "s.path, s.port = sys.argv[1], 0\nc = s.connect()\nc.sendall(sys.stdin.buffer.read())\nprint(c.recv(64))", s.path],
                       input=endless, capture_output=True)
if b" 200 " not in other.stdout:                           # it waits for its turn, as the others do
    fail("another process is refused:", other)
for c in taken:
    c.close()
for _ in range(1200):                                      # until they have all been stopped
    if s.ask("POST", "/completion", {"prompt": "x", "n_predict": 1})[0] == 200:
        break
    time.sleep(0.1)
still_works("65 answers of one process")

# Another user does not get in, even where the file would let him.
if os.geteuid() == 0 and subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "true"], capture_output=True).returncode == 0:
    code = "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'GET /health HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n'); print(s.recv(99))"
    other = ["setpriv", "--reuid", "65534", "--clear-groups", "python3", "-c", code, s.path]
    os.chmod(folder, 0o755)
    if b"PermissionError" not in subprocess.run(other, capture_output=True).stderr:
        fail("another user may open the socket")
    os.chmod(s.path, 0o777)
    out = subprocess.run(other, capture_output=True)
    if b" 403 " not in out.stdout:
        fail("another user is answered:", out)
s.end()

# Few files: those of connections leave the engine's alone, and who has a connection gets his answer.
files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, files[1]))
s = Server(ebb, folder, "-m", "guide")
resource.setrlimit(resource.RLIMIT_NOFILE, files)
taken, statuses = [s.connect() for _ in range(60)], []
for c in taken:
    try:
        c.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 28\r\n\r\n" + b'{"prompt":"x","n_predict":1}')
    except (BrokenPipeError, ConnectionResetError):
        pass
for c in taken:
    statuses.append(parse(read_all(c))[0])
if 200 not in statuses or set(statuses) - {200, 0}:
    fail("with few files connections are answered with", statuses)
still_works("60 connections with 64 files")
s.end()
resource.setrlimit(resource.RLIMIT_NOFILE, (44, files[1]))
p = subprocess.run([ebb, "serve", "--socket", folder + "/few.sock", "-m", "guide"], capture_output=True, timeout=300)
resource.setrlimit(resource.RLIMIT_NOFILE, files)
if p.returncode != 1 or b"a server needs 48" not in p.stderr:
    fail("with 44 files the server says", p)

# Who has no key does not get a large body in; a socket that was handed over with another machine's address needs one as well.
open(folder + "/key", "w").write("sk-test-key\n")
os.chmod(folder + "/key", 0o600)
s = Server(ebb, folder, "-m", "guide", "--key-file", folder + "/key", unix=False)
for length in b"Content-Length: 15000000", b"Transfer-Encoding: chunked":
    c = s.connect()
    c.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n\r\n")
    if b" 401 " not in c.recv(200):
        fail("a body without a key is waited for:", length)
    c.close()
s.end()
s = Server(ebb, folder, "-m", "guide", unix=False)
taken = refused_beyond_64(s)
c = socket.create_connection(("127.0.0.1", s.port), timeout=120, source_address=("127.0.0.2", 0))
c.sendall(endless)
if b" 200 " not in c.recv(64):
    fail("another address gets no answer")
for c in [c] + taken:
    c.close()
s.end()
# A text of megabytes that nobody waits for any more is not tokenized to its end.  Who goes before all is read has asked
# nothing, who goes late has had his reply: how long each of them takes is the machine's own.
s = Server(ebb, folder, "-m", "guide", "--trace", folder + "/trace")
long = " " * ((4 << 20) - 1)                               # with the x below what is accepted
for path, body in (
        ("/completion", {"prompt": long}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": long}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"},
                                               {"role": "assistant", "content": long}]})):
    data = json.dumps(body).encode()
    known, ends = len(re.findall("POST .*: (.*)", open(folder + "/trace").read())), []
    for i in range(200):
        c = s.connect()
        c.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data)) + data)
        time.sleep(0.005 * (i % 100))
        c.close()
        time.sleep(0.1)
        ends = re.findall("POST .*: (.*)", open(folder + "/trace").read())[known:]
        if "canceled" in ends:
            break
    else:
        fail("a text for", path, "is tokenized to its end for nobody:", ends)
s.end()
code = "import os, socket, sys; s = socket.socket(); s.bind((sys.argv[2], 0)); s.listen(); os.dup2(s.fileno(), 3); os.set_inheritable(3, True); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); os.execv(sys.argv[1], [sys.argv[1], 'serve', '-m', 'guide'])"
if b"--key-file" not in subprocess.run([sys.executable, "-c", code, ebb, "0.0.0.0"], capture_output=True, timeout=300).stderr:
    fail("a socket of systemd that others can reach needs no key")
# At a socket of systemd, its address and the name that --host gives are this machine's, as at one of its own; and the
# first request, which is there before the server is, is answered.
code = "import os, sys; os.dup2(int(sys.argv[2]), 3); os.set_inheritable(3, True); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); os.execv(sys.argv[1], [sys.argv[1], 'serve', '-m', 'guide', *sys.argv[3:]])"
for more, hosts in ((), {"localhost": 200, "127.0.0.2": 200, "elsewhere.example": 403}), (("--host", "box"), {"box": 200, "elsewhere.example": 403}), \
        (("--host", "0.0.0.0"), {"127.0.0.2": 200, "elsewhere.example": 403}), (("--host", "::"), {"elsewhere.example": 403}):
    at = socket.create_server(("127.0.0.2", 0))
    p = subprocess.Popen([sys.executable, "-c", code, ebb, str(at.fileno()), *more], pass_fds=(at.fileno(),), stderr=subprocess.DEVNULL)
    for host, status in hosts.items():
        c = socket.create_connection(at.getsockname(), timeout=120)
        c.sendall(b"GET /ebb/v1/stats HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n" % (host.encode(), at.getsockname()[1]))
        got = parse(read_all(c))
        if got[0] != status:
            p.kill()
            fail("at a socket of systemd", *more, "a request to", host, "is answered with", got)
    at.close()
    p.terminate()
    p.wait(120)
code = """
import os, socket, sys
kind = sys.argv[2]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if kind == "datagrams" else socket.create_server(("127.0.0.1", 0)) if kind == "two" else socket.socket()
fd = os.open("/dev/null", os.O_RDONLY) if kind == "a file" else s.fileno()
os.dup2(fd, 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="2" if kind == "two" else "1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], [sys.argv[1], "serve", "-m", "guide"])
"""
for kind in "datagrams", "no listener", "a file", "two":
    p = subprocess.run([sys.executable, "-c", code, ebb, kind], capture_output=True, timeout=300)
    if p.returncode != 2 or b"ListenStream=" not in p.stderr:
        fail("systemd hands over", kind, "and the server says", p)
P
