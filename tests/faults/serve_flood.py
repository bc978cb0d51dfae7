"""Very many requests, and clients that are slow or broken beside them, against one ebb serve: its answers stay the same, its
memory and its threads do not grow, and at the end it leaves with 0.

    PYTHONPATH=tests/support python3 tests/faults/serve_flood.py EBB FOLDER REQUESTS BROKEN
"""
import http.client, json, random, re, socket, sys, threading, time
from serve import Server, fail

ebb, folder, n_requests, n_broken = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
CLIENTS, AT_ONCE = 4, 100
GROWS_KIB, FLAT_KIB = 4096, 256                   # the KV pool fills; in the second half nothing does: a leak of 6 bytes for each request is more
server = Server(ebb, folder, "-m", "guide")
question = {"messages": [{"role": "user", "content": "What is a token?"}], "temperature": 0, "max_tokens": 2}
wrong, told = [], []


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = server.connect()


def figure(name):
    return int(re.search(name + r":\s*(\d+)", open(f"/proc/{server.p.pid}/status").read()).group(1))


def ask(c, method, path, body=None):
    c.request(method, path, None if body is None else json.dumps(body).encode(), {"Host": "localhost"})
    r = c.getresponse()
    return r.status, r.read()


want = json.loads(ask(Connection("localhost"), "POST", "/v1/chat/completions", question)[1])["choices"]
ids = json.loads(ask(Connection("localhost"), "POST", "/tokenize", {"content": "What is a token?"})[1])
kinds = [
    ("GET", "/health", None, lambda s, t: s == 200), ("GET", "/v1/models", None, lambda s, t: s == 200),
    ("GET", "/metrics", None, lambda s, t: s == 200), ("GET", "/nothing", None, lambda s, t: s == 404),
    ("POST", "/tokenize", {"content": "What is a token?"}, lambda s, t: s == 200 and json.loads(t) == ids),
    ("POST", "/v1/chat/completions", {"messages": 3}, lambda s, t: s == 400),
    ("POST", "/v1/chat/completions", question, lambda s, t: s == 200 and json.loads(t)["choices"] == want),
    ("POST", "/v1/chat/completions", {**question, "stream": True}, lambda s, t: s == 200 and t.endswith(b"data: [DONE]\n\n")),
]


def client(number, n):
    """So many requests, some hundred on each connection."""
    rng, c = random.Random(number), None
    for i in range(n):
        if c is None or rng.randrange(200) == 0:
            if c:
                c.close()
            c = Connection("localhost", timeout=300)
        method, path, body, is_right = kinds[i % len(kinds)]
        try:
            status, text = ask(c, method, path, body)
        except (OSError, http.client.HTTPException):       # it was closed between two requests, or there are too many
            c.close()
            c = Connection("localhost", timeout=300)
            try:
                status, text = ask(c, method, path, body)
            except (OSError, http.client.HTTPException) as e:
                wrong.append((path, repr(e)))
                continue
        if status != 503 and not is_right(status, text):
            wrong.append((path, status, text[:200]))
        told.append(status)


def broken(n):
    """So many that send half, or noise, or never read, or dribble; AT_ONCE of them at any time."""
    rng, there = random.Random(7), []
    body = json.dumps({**question, "stream": True, "max_tokens": 50, "ignore_eos": True}).encode()
    whole = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for i in range(n):
        try:
            c = server.connect()
            c.setblocking(False)
            what = [whole[:rng.randrange(1, len(whole))], rng.randbytes(rng.randrange(1, 3000)), whole, whole * 3, b"GET / HTTP/1.1\r\n"][i % 5]
            c.send(what)
            there.append(c)
        except OSError:
            pass
        if len(there) >= AT_ONCE:
            there.pop(rng.randrange(len(there))).close()
        for c in there[::17]:                              # a byte now and then
            try:
                c.send(b"x")
            except OSError:
                pass
        time.sleep(0.002)
    for c in there:
        c.close()


def run(requests, others):
    threads = [threading.Thread(target=client, args=(i, requests // CLIENTS)) for i in range(CLIENTS)]
    threads.append(threading.Thread(target=broken, args=(others,)))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if wrong:
        fail(len(wrong), "answers are wrong:", *wrong[:3])


begun = time.time()
rss = []
for part in range(10):                                     # the first fifth warms up
    run(n_requests // 10, n_broken // 10)
    rss.append(figure("RssAnon"))
    print(f"{len(told)} requests, {figure('Threads')} threads, {rss[-1]} KiB", flush=True)
if "address" not in ebb and rss[-1] > rss[1] + GROWS_KIB:  # a sanitizer keeps what was freed
    fail("memory grows:", rss)
if "address" not in ebb and n_requests >= 100000 and rss[-1] > rss[4] + FLAT_KIB:
    fail("memory still grows in the second half:", rss)
status, text = ask(Connection("localhost"), "POST", "/v1/chat/completions", question)
if json.loads(text)["choices"] != want:
    fail("the answer has changed:", text)
n_busy = told.count(503)
if len(told) != n_requests // 10 // CLIENTS * CLIENTS * 10 or n_busy > len(told) // 100:
    fail(len(told), "of", n_requests, "were answered,", n_busy, "with: too many at once")
server.end()
print(f"{len(told)} requests and {n_broken} broken clients in {time.time() - begun:.0f} s: none wrong, {n_busy} put off; memory {rss[1]} to {rss[-1]} KiB")
