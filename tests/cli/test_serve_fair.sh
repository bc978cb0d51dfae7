#!/bin/sh
# ebb serve: the many long answers of one client do not keep another one waiting, and are the same for having made room;
# nor do many clients keep a second answer of one waiting.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-fair-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS
PYTHONPATH=tests/support python3 - "$EBB" "$dir" <<'P'
import json, select, socket, sys
from serve import Server, fail, parse, read_all, sse
ebb, folder = sys.argv[1:3]
s = Server(ebb, folder, "-m", "guide", unix=False)
MANY, LONG, SHORT = 16, 400, 5


def begin(address, n):
    c = socket.create_connection(("127.0.0.1", s.port), timeout=120, source_address=(address, 0))
    body = json.dumps({"prompt": "What is a token?", "temperature": 0, "n_predict": n, "ignore_eos": True, "stream": True}).encode()
    c.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return c


def text_of(data):
    return "".join(json.loads(e)["content"] for e in sse(parse(data)[2]) if e != "[DONE]")


want = text_of(read_all(begin("127.0.0.1", LONG)))
taken = {begin("127.0.0.1", LONG): b"" for _ in range(MANY)}
for c in taken:
    taken[c] = c.recv(1)                          # each is an answer, under way or waiting
short = text_of(read_all(begin("127.0.0.2", SHORT)))
if not short or not want.startswith(short):
    fail("the other client's answer is", repr(short))
while True:                                       # what they have so far
    ready = select.select([c for c in taken if b'"stop":true' not in taken[c]], [], [], 0)[0]
    more = {c: c.recv(65536) for c in ready}
    for c, data in more.items():
        taken[c] += data
    if not any(more.values()):
        break
n_ended = sum(b'"stop":true' in data for data in taken.values())
if n_ended > MANY // 4:
    fail("the other client had to wait for", n_ended, "of", MANY)
for c in taken:
    got = text_of(taken[c] + read_all(c))
    if got != want:
        fail("one of many says", repr(got[:200]), "in place of", repr(want[:200]))

# Nor do ever new clients keep a second answer waiting until the first one has ended.
ENDLESS, NEW, BRIEF = 1900, 20, 60
first, second, n_clients = begin("127.0.0.1", ENDLESS), None, 0
taken = {first: b""}
while b'"stop":true' not in taken[first] + taken.get(second, b""):
    while len(taken) <= NEW:
        n_clients += 1
        taken[begin(f"127.0.1.{n_clients % 250 + 1}", BRIEF)] = b""
    if not second and taken[first]:
        second = begin("127.0.0.1", SHORT)
        taken[second] = b""
    for c in select.select(list(taken), [], [], 60)[0]:
        more = c.recv(65536)
        taken[c] += more
        if not more:
            del taken[c]
            c.close()
if b'"stop":true' not in taken[second]:
    fail("the second answer waited for the first one, while", n_clients, "others came")
s.end()
P
