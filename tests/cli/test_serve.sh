#!/bin/sh
# ebb serve, asked as OpenAI's and llama-server's clients ask, and by ebb: the texts are those of `ebb run`.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-serve-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS http_proxy HTTP_PROXY https_proxy ALL_PROXY all_proxy
PYTHONPATH=tests/support python3 - "$EBB" "$dir" <<'P'
import json, os, signal, socket, struct, subprocess, sys, threading, time
from serve import Server, fail, sse, text_of, parse, read_all
ebb, folder = sys.argv[1:3]
question = "What is a token?"


def run(*args):
    return subprocess.run([ebb, "run", *args], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout.decode().rstrip("\n")


def same(what, got, want):
    if got != want:
        fail(f"{what}: {got!r} instead of {want!r}")


s = Server(ebb, folder, "-m", "guide")
mode = oct(os.stat(s.path).st_mode & 0o777)
same("the mode of the socket", mode, "0o600")
if subprocess.run([ebb, "serve", "--socket", s.path], capture_output=True).returncode != 1:
    fail("a second server takes the first one's place")

# What it is.
same("health", s.json("GET", "/health"), {"status": "ok"})
same("as a proxy would be asked", s.json("GET", "http://localhost/health"), {"status": "ok"})
status, headers, body = s.ask("HEAD", "/health")
same("health without its body", (status, headers["content-length"], body), (200, "15", b""))
models = s.json("GET", "/v1/models")["data"]
same("models", [m["id"] for m in models], ["guide"])
props = s.json("GET", "/props")
n_ctx = props["default_generation_settings"]["n_ctx"]
same("contexts", models[0]["meta"]["n_ctx"], n_ctx)
if s.ask("GET", "/props")[2].find(folder.encode()) >= 0 or b"/guide" in s.ask("GET", "/v1/models")[2]:
    fail("a path of this machine is told")

# The bits of `ebb run`, at once and as a stream, with each kind of sampling, and with each digit of a seed.
free = ("--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0")
greedy, seeded = run("--greedy", "-n", "40", "-p", question), run("--seed", "12345678901234567", "-n", "40", "-p", question, *free)
answer = s.chat(question, temperature=0, max_tokens=40)
same("greedy", answer["choices"][0]["message"]["content"], greedy)
u = answer["usage"]
same("total", u["total_tokens"], u["prompt_tokens"] + u["completion_tokens"])
hot = {"seed": 12345678901234567, "temperature": 5, "top_k": 0, "top_p": 1, "min_p": 0, "max_completion_tokens": 40}
same("seeded", s.chat(question, **hot)["choices"][0]["message"]["content"], seeded)
body = {"messages": [{"role": "user", "content": [{"type": "text", "text": question}]}], "stream": True, "stream_options": {"include_usage": True}, **hot}
events = s.events("/v1/chat/completions", body)
same("a stream", text_of(events), seeded)
same("its end", events[-1], "[DONE]")
usage = json.loads(events[-2])
same("the choices beside the usage", usage["choices"], [])
if usage["usage"]["prompt_tokens_details"]["cached_tokens"] < usage["usage"]["prompt_tokens"] - 1:
    fail("nothing was reused:", usage)
same("without a wish", len([e for e in s.events("/v1/chat/completions", {**body, "stream_options": {}}) if '"usage"' in e]), 0)

# A system message, limits, stops.
told = run("--system", "Be brief.", "--greedy", "-n", "20", "-p", question)
same("a system message", s.json("POST", "/v1/chat/completions", {"messages": [{"role": "developer", "content": "Be brief."},
     {"role": "user", "content": question}], "temperature": 0, "max_tokens": 20})["choices"][0]["message"]["content"], told)
short = s.chat(question, temperature=0, max_tokens=3)["choices"][0]
same("a limit", (short["finish_reason"], greedy.startswith(short["message"]["content"])), ("length", True))
word = greedy[20:31]
for stream in False, True:
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 40, "stop": ["never comes", word], "stream": stream}
    got = text_of(s.events("/v1/chat/completions", body)) if stream else s.json("POST", "/v1/chat/completions", body)["choices"][0]["message"]["content"]
    same("up to a stop", got, greedy[:20])
same("a stop that never comes", s.chat(question, temperature=0, max_tokens=40, stop=greedy[-3:] + "x")["choices"][0]["message"]["content"], greedy)

# An answer that goes on.
half = greedy[:len(greedy) // 2]
half = half[:half.rindex(" ")]
rest = s.json("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": half}],
              "temperature": 0, "max_tokens": 40})["choices"][0]["message"]["content"]
same("an answer that goes on", (half + rest)[:len(greedy)], greedy)

# Ids and text, as llama-server.
ids = s.json("POST", "/tokenize", {"content": question})["tokens"]
same("back", s.json("POST", "/detokenize", {"tokens": ids})["content"], question)
pieces = s.json("POST", "/tokenize", {"content": question, "with_pieces": True})["tokens"]
same("pieces", "".join(p["piece"] for p in pieces), question)
prompt = s.json("POST", "/apply-template", {"messages": [{"role": "user", "content": question}]})["prompt"]
if question not in prompt or prompt == question:
    fail("the template is not applied:", prompt)
whole = s.json("POST", "/completion", {"prompt": prompt, "temperature": 0, "n_predict": 40, "return_tokens": True})
same("/completion", (whole["content"], whole["stop_type"]), (greedy, "eos"))
ids = s.json("POST", "/tokenize", {"content": prompt, "add_special": True})["tokens"]
by_ids = s.events("/completion", {"prompt": ids, "temperature": 0, "n_predict": 40, "stream": True, "return_progress": True})
parts = [json.loads(e) for e in by_ids]
same("by ids", "".join(p["content"] for p in parts), greedy)
same("ids of a stream", sum((p["tokens"] for p in parts), []), whole["tokens"])
same("progress", [p["prompt_progress"]["total"] for p in parts if "prompt_progress" in p][-1:], [len(ids)])
same("/v1/completions", s.json("POST", "/v1/completions", {"prompt": ids, "temperature": 0, "max_tokens": 40})["choices"][0]["text"], greedy)
one = s.json("POST", "/completion", {"prompt": ids, "temperature": 0, "n_predict": 1})["timings"]
same("one token has no speed", (one["predicted_n"], one["predicted_ms"], one["predicted_per_second"]), (1, 0, 0))
same("no token", s.json("POST", "/completion", {"prompt": ids, "n_predict": 0})["content"], "")

# Many at once: each gets what it would get alone.
got, wants = {}, {i: run("--seed", str(i), "-n", "60", "-p", f"Question {i}: what is a context?") for i in range(1, 9)}
threads = [threading.Thread(target=lambda i=i: got.update({i: s.chat(f"Question {i}: what is a context?", seed=i, max_tokens=60)["choices"][0]["message"]["content"]}))
           for i in wants]
for t in threads:
    t.start()
for t in threads:
    t.join()
same("eight at once", got, wants)

# More than the context holds at once: they take turns, and nothing is lost.
long = "word " * (n_ctx // 3)
want = s.chat(long, temperature=0, max_tokens=24, ignore_eos=True)["choices"][0]["message"]["content"]
texts = []
threads = [threading.Thread(target=lambda: texts.append(s.chat(long, temperature=0, max_tokens=24, ignore_eos=True)["choices"][0]["message"]["content"])) for _ in range(5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
same("five long ones", texts, [want] * 5)

# Those that are written at the same time share passes; a long question beside them changes nothing.
def n_shared():
    text = s.ask("GET", "/metrics")[2].decode()
    return int([line for line in text.splitlines() if line.startswith("ebb_shared_passes_total ")][0].split()[1])
body = {"temperature": 0, "ignore_eos": True}
questions = ["Tell me of disks.", "What is a word? " * (n_ctx // 24), "And of memory."]
alone = [s.chat(q, max_tokens=60, **body)["choices"][0]["message"]["content"] for q in questions]
for _ in range(50):                              # on a busy machine they may miss each other
    before, texts = n_shared(), {}
    threads = [threading.Thread(target=lambda q=q: texts.update({q: s.chat(q, max_tokens=60, **body)["choices"][0]["message"]["content"]})) for q in questions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same("side by side", [texts[q] for q in questions], alone)
    if n_shared() > before:
        break
else:
    fail("no pass was shared")

# What is wrong, in one line; what is not done, too.
for status, path, body, words in [
        (400, "/v1/chat/completions", b"{not json", "not a JSON object"), (400, "/v1/chat/completions", b"[]", "not a JSON object"),
        (400, "/v1/chat/completions", {}, "messages"), (400, "/v1/chat/completions", {"messages": []}, "messages"),
        (400, "/v1/chat/completions", {"messages": [{"content": "x"}]}, "role"), (400, "/v1/chat/completions", {"messages": [{"role": "tool", "content": "x"}]}, "role"),
        (400, "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only text"),
        (400, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]}, "tools"),
        (400, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "n": 2}, "n is not supported"),
        (400, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "temperature": "hot"}, "temperature"),
        (400, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "seed": 1.5}, "seed"),
        (400, "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * n_ctx}]}, "context"),
        (400, "/completion", {"prompt": "x", "grammar": 'root ::= ((("a"{1,99}){1,99}){1,99}){1,99}'}, "too large"),
        (400, "/completion", {"prompt": "x", "grammar": "root ::= " + '"a"? ' * 9000}, "too ambiguous"),
        (400, "/tokenize", {"content": "he" * 3000000, "with_pieces": True}, "with_pieces"),
        (400, "/completion", {"prompt": [n_ctx * 1000000]}, "token ids"), (400, "/v1/completions", {"prompt": 5}, "prompt"),
        (400, "/detokenize", {"tokens": [-1]}, "token ids"), (404, "/v1/nothing", {}, "nothing at this path"), (405, "/health", {}, "asked with GET"),
        (405, "/ebb/v1/answers/1", {}, "GET (read on) or DELETE"), (400, "/completion", {"prompt": "x", "top_n_sigma": 1}, "top_n_sigma is not supported")]:
    error = s.json("POST", path, body, want=status)["error"]
    if words not in error["message"] or "\n" in error["message"] or error["code"] != status:
        fail("an error without", words, error)

# Nothing of another type is passed over; what switches off, is empty, or null, is as if it were not there.
message = {"messages": [{"role": "user", "content": "x"}]}
for key, wrong in [(k, v) for k in ("tools", "functions", "logit_bias", "suffix", "echo") for v in (5, 0, True, "x", [1], {"a": 1})] + \
        [(k, v) for k in ("stream", "ignore_eos", "return_progress") for v in (1, "yes", "false", [], {})] + \
        [(k, v) for k in ("stream_options", "chat_template_kwargs", "ebb") for v in (1, "yes", [], True)] + \
        [("stream_options", {"include_usage": 1}), ("chat_template_kwargs", {"enable_thinking": "false"}), ("ebb", {"survives": "yes"}), ("n", True),
         ("stop", {}), ("max_tokens", "5"), ("response_format", 5), ("seed", True), ("typical_p", 0.5), ("min_tokens", 3)] + \
        [("samplers", v) for v in ("kt", 5, ["temperature", "top_k"], ["penalties", "top_k", "top_p", "min_p", 5], [["top_k"]])]:
    error = s.json("POST", "/v1/chat/completions", {**message, "max_tokens": 1, key: wrong}, want=400)["error"]["message"]
    for part in [key, *(wrong if key == "ebb" and isinstance(wrong, dict) else ())]:
        if part not in error:
            fail("an error of", key, wrong, "says", error)
for key in "add_special", "parse_special", "with_pieces":
    if key not in s.json("POST", "/tokenize", {"content": "x", key: "yes"}, want=400)["error"]["message"]:
        fail("a text as", key)
if "return_tokens" not in s.json("POST", "/completion", {"prompt": "x", "n_predict": 1, "return_tokens": 1}, want=400)["error"]["message"]:
    fail("a number as return_tokens")
if "reasoning_content" not in s.json("POST", "/v1/chat/completions", {"messages": [{"role": "assistant", "reasoning_content": 5}]}, want=400)["error"]["message"]:
    fail("a number as reasoning_content")
off = {"tools": [], "functions": None, "logit_bias": {}, "suffix": "", "echo": False, "stream": None, "stream_options": None, "ignore_eos": False,
       "chat_template_kwargs": {}, "ebb": {"survives": None}, "n": 1, "stop": None, "response_format": None,
       "typical_p": 1.0, "min_tokens": 0, "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]}
s.json("POST", "/v1/chat/completions", {**message, "max_tokens": 1, **off})
much = s.json("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * n_ctx}]}, want=400)["error"]
same("the context in its error", much["n_ctx"], n_ctx)
if much.get("n_prompt_tokens", 0) <= n_ctx or "%d tokens" % much["n_prompt_tokens"] not in much["message"]:
    fail("the tokens in its error", much)
same("HEAD of no such answer", s.ask("HEAD", "/ebb/v1/answers/99999")[::2], (404, b""))
same("no such answer", s.json("GET", "/ebb/v1/answers/99999", want=404)["error"]["type"], "not_found_error")


def counts():
    text = s.ask("GET", "/metrics")[2].decode()
    return {l.split()[0]: float(l.split()[1]) for l in text.splitlines() if l and l[0] != "#"}


def wait_for(what, is_so):
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    fail("never", what, counts())


def begin(more, n, s=s):
    """A request whose answer has no end of its own; what came until n bytes were there, and the connection."""
    body = json.dumps({"messages": [{"role": "user", "content": question}], "ignore_eos": True, "stream": True, "temperature": 1.5, "seed": 5, **more}).encode()
    c = s.connect()
    c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    data = b""
    while len(data) < n:
        data += c.recv(4096)
    return data, c


# A client that goes: its answer ends, streamed or not.
before = counts()
_, c = begin({}, 1)
c.close()
_, c = begin({"stream": False}, 0)
time.sleep(0.1)
c.close()
wait_for("are they cancelled", lambda: counts()["ebb_answers_running"] == 0 and counts()["ebb_answers_waiting"] == 0)
after = counts()
if after["ebb_answers_total"] != before["ebb_answers_total"] + 2 or after["ebb_generated_tokens_total"] <= before["ebb_generated_tokens_total"]:
    fail("the figures:", before, after)

# A wrong method is an error, and is told which ones there are.
before = counts()["ebb_requests_refused_total"]
for method, path, allowed in ("PUT", "/v1/models", "GET, HEAD"), ("GET", "/completion", "POST"), ("PUT", "/ebb/v1/answers/1", "GET, HEAD, DELETE"):
    status, headers, body = s.ask(method, path)
    same(f"{method} {path}", (status, headers.get("allow")), (405, allowed))
same("refused requests", counts()["ebb_requests_refused_total"] - before, 3)

# One that survives its client, and is read on from where that was.
want = text_of(s.events("/v1/chat/completions", {"messages": [{"role": "user", "content": question}], "ignore_eos": True, "stream": True, "temperature": 1.5, "seed": 5, "max_tokens": 300}))
data, c = begin({"ebb": {"survives": True}, "max_tokens": 300}, 3000)
c.close()
status, _, part = parse(data)
seen = [json.loads(e) for e in sse(part)[:-1]]
number, at = seen[-1]["ebb"]["answer"], seen[-1]["ebb"]["next"]
rest = sse(s.ask("GET", f"/ebb/v1/answers/{number}?from={at}")[2])
if number < 1 << 32 or number >= 1 << 53:         # at random, so that no other client finds it; once in 2 million runs it is small
    fail("an answer's number can be guessed:", number)
same("an answer in two parts", text_of([json.dumps(e) for e in seen]) + text_of(rest), want)
status, headers, body = s.ask("HEAD", f"/ebb/v1/answers/{number}")
same("whether it is there", (status, headers["content-type"], body), (200, "text/event-stream", b""))
same("all of it again", text_of(sse(s.ask("GET", f"/ebb/v1/answers/{number}")[2])), want)
data, c = begin({"ebb": {"survives": True}}, 600)
number = json.loads(sse(parse(data)[2])[0])["ebb"]["answer"]
if any(str(number).encode() in s.ask("GET", path)[2] for path in ("/slots", "/metrics", "/props", "/ebb/v1/stats")):
    fail("an answer's number is told to others")
c.close()
before = counts()["ebb_answers_cancelled_total"]
if s.ask("DELETE", f"/ebb/v1/answers/{number}")[0] == 200:       # 404: it was quicker
    wait_for("is it stopped", lambda: counts()["ebb_answers_cancelled_total"] > before)

# Passes that are hardly longer than the answers are many: a prompt beside them takes what they leave.
os.mkdir(folder + "/few")
few = Server(ebb, folder + "/few", "-m", "guide", "--chunk", "8", "--seed", "5")
few_got, few_asks = {}, list(wants)[:4]
_, c = begin({}, 600, few)
threads = [threading.Thread(target=lambda i=i: few_got.update({i: few.chat(f"Question {i}: what is a context?", seed=i, max_tokens=60)["choices"][0]["message"]["content"]})) for i in few_asks]
for t in threads:
    t.start()
for t in threads:
    t.join()
same("beside others in short passes", few_got, {i: wants[i] for i in few_asks})
c.close()
hot = {"temperature": 5, "top_k": 0, "top_p": 1, "min_p": 0, "max_tokens": 40, "top_n_sigma": -1}
if len({few.chat(question, **hot)["choices"][0]["message"]["content"] for _ in range(2)}) != 1:
    fail("the server's own seed is not followed")
for seed in 0, -1:                               # one from the clock, whatever the server's own
    if len({few.chat(question, seed=seed, **hot)["choices"][0]["message"]["content"] for _ in range(2)}) != 2:
        fail("seed", seed, "is not one from the clock")
few.end()

# What a prompt of ids leaves of a character is no part of a text under a grammar.
ids = s.json("POST", "/tokenize", {"content": "\U0001f9ff"})["tokens"]
same("ids of a character", len(ids) > 1, True)
text = s.json("POST", "/v1/completions", {"prompt": ids[:-1], "temperature": 0, "max_tokens": 1, "grammar": 'root ::= "x"'})["choices"][0]["text"]
same("behind half a character", text, "x")

# The engine's figures in the stream, for who asks for them: first, and with the end.
def figures(more):
    events = s.events("/v1/chat/completions", {"messages": [{"role": "user", "content": question}], "stream": True, "max_tokens": 5, **more})
    return [json.loads(e).get("ebb", {}).get("figures") for e in events if e != "[DONE]"]


same("figures nobody asked for", [f for f in figures({}) if f], [])
for _ in range(50):                              # an answer that ended before its stream was looked at has them once
    there = figures({"ebb": {"figures": True}})
    found = [f for f in there if f]
    if not found or not there[-2] or there[-1]:
        fail("figures in a stream:", there)
    if len(found) > 1:
        break
else:
    fail("figures only at the end:", there)
for f in found:
    if (f["pid"], f["layers"], len(f["layer_states"]), f["resident"]) != (s.p.pid, 4, 4, 4) or f["clients"] < 1 or f["rss_bytes"] < 1 << 20:
        fail("figures:", f)
if found[-1]["kv_memory_bytes"] == 0 or found[-1]["running"] != 0:
    fail("figures at the end:", found[-1])

# ebb itself.
same("ebb -e", run("-e", "unix:" + s.path, "--greedy", "-n", "40", "-p", question), greedy)
same("ebb -e with a seed", run("-e", "unix:" + s.path, "--seed", "12345678901234567", "-n", "40", "-p", question, *free), seeded)
found = subprocess.run([ebb, "engines", "test", "unix:" + s.path], capture_output=True).stdout.decode()
if "ebb serve" not in found or "guide" not in found:
    fail("engines test says:", found)
stat = json.loads(subprocess.run([ebb, "stat", "--json"], capture_output=True, check=True).stdout)["running"]
if "1 connections, 0 answers" not in subprocess.run([ebb, "stat"], capture_output=True).stdout.decode().replace("0 connections", "1 connections"):
    fail("ebb stat says nothing of the clients")
same("ebb stat", [(p["session"], p["model"], p["pid"]) for p in stat], [("ebb serve", "guide", s.p.pid)])
s.end()
if os.path.exists(s.path):
    fail("the socket stays behind")

# TCP: a key, a host, no pages.
key = "sk-TOP-SECRET-0123456789"
with open(folder + "/key", "w") as f:
    f.write(key + "\n")
os.chmod(folder + "/key", 0o644)
if b"other users can read it" not in subprocess.run([ebb, "serve", "-m", "guide", "--port", "0", "--key-file", folder + "/key"], capture_output=True).stderr:
    fail("a key that others can read")
os.chmod(folder + "/key", 0o600)
if b"--key-file" not in subprocess.run([ebb, "serve", "-m", "guide", "--port", "0", "--host", "0.0.0.0"], capture_output=True).stderr:
    fail("other machines may ask without a key")
s = Server(ebb, folder, "-m", "guide", "--key-file", folder + "/key", "--trace", folder + "/trace", unix=False)
bearer = {"Authorization": "Bearer " + key}
same("without a key", s.json("GET", "/v1/models", want=401)["error"]["type"], "authentication_error")
for wrong in key[:-1], key + "x", "", key[:-1] + "8":
    s.json("GET", "/v1/models", want=401, headers={"Authorization": "Bearer " + wrong})
same("with it", len(s.json("GET", "/v1/models", headers=bearer)["data"]), 1)
s.json("GET", "/v1/models", headers={"X-Api-Key": key})
same("health needs none", s.json("GET", "/health"), {"status": "ok"})
s.json("GET", "/v1/models", want=403, headers=bearer, host="evil.example:80")
s.json("GET", "/v1/models", want=403, headers={**bearer, "Origin": "http://evil.example"})
s.json("GET", "/v1/models", headers=bearer, host=f"127.0.0.1:{s.port}")
for host, status in ("[::1]:80", 200), ("[::1].evil.example", 403), ("[::1", 403), ("localhost.evil.example", 403), ("", 403):
    s.json("GET", "/v1/models", want=status, headers=bearer, host=host)
for method in "\x1b[2JGET", "GET\x07", "\x1b]0;x":             # it is in the trace, with or without the key
    s.json(method, "/v1/models", want=405, headers=bearer)
    s.json(method, "/v1/models", want=401)
trace = open(folder + "/trace", "rb").read()
if b"GET /v1/models: ok" not in trace or b"\x1b" in trace or b"\x07" in trace:
    fail("a client writes into the trace:", trace)
out = subprocess.run([ebb, "run", "-e", f"http://127.0.0.1:{s.port}", "-p", "x"], capture_output=True).stderr
if b"wants a key" not in out:
    fail("ebb without the key says", out)
for method, path, body in ("GET", "/props", None), ("GET", "/metrics", None), ("GET", "/nothing", None), ("POST", "/tokenize", {"content": 5}), ("POST", "/v1/chat/completions", {}):
    if key.encode() in s.ask(method, path, body, headers=bearer)[2] or key[:-1].encode() in s.ask(method, path, body, headers={"Authorization": "Bearer " + key[:-1]})[2]:
        fail("the key is told by", path)
if key in subprocess.run([ebb, "stat", "--json"], capture_output=True, text=True).stdout or key in open(f"/proc/{s.p.pid}/cmdline").read():
    fail("the key is told by ebb stat or ps")
s.end()
for at, _, names in os.walk(folder):
    for name in names:
        if name != "key" and key[:-1].encode() in open(os.path.join(at, name), "rb").read():
            fail("the key is in", os.path.join(at, name))

# An IPv6 address stands between brackets in Host.
try:
    socket.create_server(("::1", 0), family=socket.AF_INET6).close()
except OSError:
    print("no IPv6 here")
else:
    s = Server(ebb, folder, "-m", "guide", "--key-file", folder + "/key", "--host", "0:0:0:0:0:0:0:1", unix=False)
    s.connect = lambda: socket.create_connection(("::1", s.port), timeout=120)
    s.json("GET", "/v1/models", headers=bearer, host="[0:0:0:0:0:0:0:1]:%d" % s.port)
    s.json("GET", "/v1/models", want=403, headers=bearer, host="[::2]")
    s.end()

# The terminal from which it was started hangs up.
s = Server(ebb, folder, "-m", "guide")
s.p.send_signal(signal.SIGHUP)
same("hung up", (s.p.wait(60), os.path.exists(s.path)), (0, False))

# It leaves when nobody wants it.
s = Server(ebb, folder, "-m", "guide", "--idle", "1")
s.chat("hi", max_tokens=1)
same("left to itself", s.p.wait(60), 0)

# What its file recommends and is not followed stands in one line, nothing of it raw.
guide = open("models/guide.gguf", "rb").read()
order = b"top_k;\x1b[2Jtop_p;dry"                 # with its key 64 bytes, so the tensors stay aligned
key = b"general.sampling.sequence"
advice = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(order)) + order
with open(folder + "/advised.gguf", "wb") as f:
    f.write(guide[:16] + struct.pack("<Q", struct.unpack("<Q", guide[16:24])[0] + 1) + advice + guide[24:])
for model, n in ("guide", 0), (folder + "/advised.gguf", 1):
    s = Server(ebb, folder, "-m", model)
    told = open(s.err, "rb").read()
    same("lines of advice for " + model, (told.count(b"does not follow: general.sampling.sequence = top_k;"), b"\x1b" in told), (n, False))
    s.end()

# Which folder a model is in is told to nobody, not even where the file fails.
path = os.path.join(folder, "changed.gguf")
with open(path, "wb") as f:
    f.write(guide)
s = Server(ebb, folder, "-m", os.path.relpath(path))
os.utime(path, (1, 1))
told = s.json("POST", "/v1/completions", {"prompt": "x", "max_tokens": 1}, want=500)["error"]["message"]
same("a file that has changed", (told.split(":")[0], "/" in told), ("changed.gguf", False))
s.end()

# A model's file may have any name: it is a text of every reply, and hides nothing.
for name, shown in (b"\xff\xfe", "\ufffd"), (b"x" * 158 + "\u00e9y".encode(), "\u00e9y"), (b"\x1b[2Jred", "[2Jred"):
    path = os.path.join(folder.encode(), name + b".gguf")
    with open(path, "wb") as f:
        f.write(guide)
    s = Server(ebb, folder, "-m", path)
    for told in s.json("GET", "/v1/models")["data"][0]["id"], s.json("GET", "/props")["model_alias"], s.chat("x", max_tokens=1)["model"], \
            json.loads(s.events("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "stream": True})[0])["model"]:
        if shown not in told or "\x1b" in told:
            fail("a model named", name, "is", repr(told))
    told = open(s.err, "rb").read()
    if shown.encode() + b" answers, with a context" not in told or b"\x1b" in told:
        fail("a model named", name, "is said to be", told)
    s.end()
P
