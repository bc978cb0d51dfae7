"""How fast several clients of one ebb serve are answered, in turn with one client alone: tokens per second of all, and the time
between the tokens of each.  Not part of `make test`: it measures.

    PYTHONPATH=tests/support python3 tests/bench/serve_clients.py EBB MODEL [CLIENTS [TOKENS [ROUNDS]]] [-- OPTIONS of ebb serve]
"""
import json, os, sys, tempfile, threading, time
from serve import Server, fail

words = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
options = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
ebb, model = words[:2]
n_clients, n_tokens, n_rounds = (list(map(int, words[2:])) + [4, 48, 2][len(words) - 2:])[:3]
folder = tempfile.mkdtemp(prefix="ebb-clients-")
for name in "CONFIG_HOME", "STATE_HOME", "CACHE_HOME", "DATA_HOME", "RUNTIME_DIR":
    os.environ["XDG_" + name] = folder
server = Server(ebb, folder, "-m", model, "--no-kv-cache", "--ctx", "4096", *options)


def ask(number, times):
    """(when, how many tokens) of each event of an answer, in times."""
    body = json.dumps({"prompt": f"{number}. Once upon a time, in a land far away, there lived {number * 7} foxes who", "stream": True, "seed": number,
                       "temperature": 1.0, "n_predict": n_tokens, "ignore_eos": True}).encode()
    c = server.connect()
    c.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
    data = b""
    while more := c.recv(65536):
        now = time.monotonic()
        data += more
        *events, data = data.split(b"\n\n")
        for e in events:
            if b'"tokens":[' in e:
                n = len(json.loads(e[e.index(b"{"):])["tokens"])
                if n:
                    times.append((now, n))
    c.close()


def quantile(sorted_list, share):
    return sorted_list[min(len(sorted_list) - 1, int(len(sorted_list) * share))]


def measure(n, first):
    all_times = [[] for _ in range(n)]
    threads = [threading.Thread(target=ask, args=(first + i, all_times[i])) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if any(sum(k for _, k in t) != n_tokens for t in all_times):
        fail("an answer of", [sum(k for _, k in t) for t in all_times], "tokens")
    begin, end = max(t[0][0] for t in all_times), min(t[-1][0] for t in all_times)      # all are being written
    rate = sum(k for t in all_times for when, k in t if begin < when <= end) / (end - begin)
    gaps = sorted(b[0] - a[0] for t in all_times for a, b in zip(t, t[1:]))
    return rate, quantile(gaps, 0.5), quantile(gaps, 0.99)


measure(1, 900)                                   # what is loaded late is loaded now
rates = {1: [], n_clients: []}
for i in range(n_rounds):
    for n in 1, n_clients:
        rate, median, p99 = measure(n, 1 + 100 * i + 10 * n)
        rates[n].append(rate)
        print(f"{n} clients: {rate:6.2f} tok/s, between tokens {median * 1e3:.0f} ms (median), {p99 * 1e3:.0f} ms (p99), {p99 / median:.2f} times", flush=True)
passes = server.json("GET", "/props")["ebb"]
print(f"{n_clients} clients: {sum(rates[n_clients]) / sum(rates[1]):.2f} times one; memory at its peak {passes['peak_bytes'] / 2**30:.2f} GiB")
server.end()
