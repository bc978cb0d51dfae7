#!/usr/bin/python3
"""A scripted engine on the loopback, for tests of the client: engine.py FOLDER [SOCKET]

FOLDER/port gets the port when it listens (or SOCKET is the UNIX socket it listens on), FOLDER/log a JSON object a line for each request.
FOLDER/how is read at each request: words that say what it is and what it does.

    kind=K        ebb, llama, vllm, sglang, ollama, lmstudio, openai, any: whose protocol it speaks
    model=M       the name of its model; models=N: and how many more it lists; ctx=N its context
    full=N        that a token has N bytes, and 400 with the count where the context has no room for a prompt
    say=T         the answer (_ is a blank); without it: what was asked, and of how many messages
    think=T       a thought before it, by the kind's own name
    nousage, nocache, nofinish, nodone        what its stream lacks
    strict        400 if there are stream_options; 422 with strict=422
    ping, crlf, cr, bytes=N                   comments and empty events in between, line ends, N bytes in each write
    halves        each piece is a UTF-16 unit, as of a server that counts in them
    plain         no stream: one object; object=J: this one, with status 200 or code=N
    error         an error in the middle of the stream; why=W: another finish_reason
    kept          the answer is kept under a number, as an ebb says; but it is not
    cut=N, reset=N, stall=N                   after N bytes of the stream: closed, reset, silent
    torn                                      the stream is chunked, and closed without its last chunk
    calls                                     the model calls a tool, and says nothing
    hold          nothing at all, until `how` has no such word
    status=N, words=T                         of each answer; retry=S: with Retry-After; words of an error in mid-stream, too
    busy=N        so many requests get 429 first
    key=K         requests need it
    forged        its version and a second model's name have lines of their own
    version=V     its version; hides: one that would turn the text of a terminal around, or begin an escape
    refuses                                   what it says is its message's refusal, and no content
    redirect=A                                to the address A
    html (=N: with this status), hugebody, drip, headers, header, hugeline, flood, nested, parts  what no server should do
    slow=MS       before each piece
"""
import http.server, json, os, socket, socketserver, struct, sys, threading, time

root = sys.argv[1]
lock = threading.Lock()
state = {"of": None, "busy": 0}


def how():
    try:
        text = open(root + "/how").read()
    except OSError:
        text = ""
    return dict((w.split("=", 1) + [""])[:2] for w in text.split())


class Quiet(Exception):
    pass


class Engine(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def address_string(self):
        return "-"

    # -- replies

    def note(self, body):
        with lock, open(root + "/log", "a") as f:
            print(json.dumps({"method": self.command, "path": self.path, "host": self.headers.get("Host"), "auth": self.headers.get("Authorization"),
                              "extra": self.headers.get("X-Extra"), "body": body}), file=f)

    def begin(self, status, kind, length=None, extra=()):
        self.send_response_only(status)
        self.send_header("Server", {"llama": "llama.cpp", "vllm": "uvicorn"}.get(self.how.get("kind"), "scripted"))
        if kind:
            self.send_header("Content-Type", kind)
        for k, v in extra:
            self.send_header(k, v)
        self.is_torn = "torn" in self.how and length is None
        if self.is_torn:
            self.send_header("Transfer-Encoding", "chunked")
            self.close_connection = True
        elif length is not None:
            self.send_header("Content-Length", str(length))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()

    def reply(self, status, obj, extra=()):
        body = json.dumps(obj).encode()
        self.begin(status, "application/json", len(body), extra)
        self.wfile.write(body)

    def refuse(self, status, words, extra=()):
        if self.how.get("kind") == "sglang":
            self.reply(status, {"object": "error", "message": words, "type": "x", "code": status}, extra)
        elif self.how.get("kind") == "ollama":
            self.reply(status, {"error": words}, extra)
        else:
            self.reply(status, {"error": {"message": words, "type": "x", "code": status}}, extra)

    def misbehaves(self):
        """What has nothing to do with what was asked; true: that was all."""
        h = self.how
        while "hold" in how():
            time.sleep(0.02)
        if "html" in h:
            body = b"<html><body>Welcome \x1b]0;owned\x07</body></html>"
            self.begin(int(h["html"] or 200), "text/html", len(body))
            self.wfile.write(body)
        elif "redirect" in h:
            self.begin(307, None, 0, [("Location", h["redirect"] or "http://elsewhere.invalid/v1")])
        elif "headers" in h:
            self.send_response_only(200)
            self.flush_headers()
            while True:
                self.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        elif "header" in h:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 150000 + b"\r\n\r\n")
        elif "hugebody" in h:
            self.begin(200, h.get("hugebody") or "application/json", 1 << 30)
            for _ in range(1 << 14):
                self.wfile.write(b" " * (1 << 16))
        elif "drip" in h:
            self.begin(200, "application/json", 1 << 30)
            while "drip" in how():
                self.wfile.write(b" ")
                time.sleep(0.02)
        elif "status" in h:
            extra = [("Retry-After", h["retry"])] if "retry" in h else []
            self.refuse(int(h["status"]), h.get("words", "no").replace("_", " "), extra)
        else:
            return False
        return True

    def is_busy(self):
        with lock:
            if state["of"] != self.how.get("busy"):
                state["of"] = self.how.get("busy")
                state["busy"] = int(self.how.get("busy", 0) or 0)
            state["busy"] -= 1
            return state["busy"] >= 0

    # -- what it is

    def parse_request(self):
        ok = super().parse_request()
        if ok and self.path.startswith("http://"):   # it was asked as a proxy: whoever is meant, it is this one
            self.path = "/" + self.path.split("/", 3)[3]
        return ok

    def do_GET(self):
        self.how = h = how()
        self.note(None)
        kind = h.get("kind", "any")
        model = h.get("model", "tiny")
        ctx = int(h.get("ctx", 4096))
        if "key" in h and self.headers.get("Authorization") != "Bearer " + h["key"]:
            return self.refuse(401, "bad key")
        if self.misbehaves():
            return
        owner = {"llama": "llamacpp", "vllm": "vllm", "sglang": "sglang", "ollama": "library", "lmstudio": "organization_owner",
                 "openai": "openai", "ebb": "ebb"}.get(kind, "me")
        one = {"id": model, "object": "model", "owned_by": owner}
        if kind in ("vllm", "sglang"):
            one["max_model_len"] = ctx
        more = [dict(one, id="other%d" % i) for i in range(int(h.get("models", 0)))]
        if "forged" in h:
            more.append(dict(one, id="fine\nwire          safe"))
        pages = {"/v1/models": {"object": "list", "data": [one] + more}}
        if kind in ("llama", "ebb"):
            pages["/props"] = {"default_generation_settings": {"n_ctx": ctx}, "build_info": "b1-test"}
        if kind == "vllm":
            pages["/version"] = {"version": h.get("version", "0.11") + ("\nwire          safe" if "forged" in h else "")
                                 + ("\u202e\u009b2J" if "hides" in h else "")}
        if kind == "ollama":
            pages["/api/version"] = {"version": "0.12"}
            pages["/api/ps"] = {"models": [{"name": model, "context_length": ctx}] if "loaded" in h else []}
        if kind == "lmstudio":
            pages["/api/v0/models"] = {"data": [{"id": model, "state": "loaded", "loaded_context_length": ctx, "max_context_length": 9 * ctx}]}
        if self.path in pages:
            self.reply(200, pages[self.path])
        else:
            self.refuse(404, "File Not Found")

    def do_CONNECT(self):
        """It was asked as a proxy of https: a refusal, and what is said with it has no end."""
        self.how = how()
        self.begin(407, "text/html", 1 << 40)
        while True:
            self.wfile.write(b"x" * 65536)

    # -- answers

    def do_POST(self):
        self.how = h = how()
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(raw)
        self.note(body)
        if "key" in h and self.headers.get("Authorization") != "Bearer " + h["key"]:
            return self.refuse(401, "bad key")
        if self.misbehaves():
            return
        if self.is_busy():
            return self.refuse(429, "too many", [("Retry-After", h.get("retry", "0"))])
        if "strict" in h and "stream_options" in body:
            return self.refuse(int(h["strict"] or 400), "unknown field")
        if self.path != ("/api/chat" if h.get("kind") == "ollama" else "/v1/chat/completions"):
            return self.refuse(404, "no such path " + self.path)
        try:
            self.answer(h, body)
        except Quiet:
            pass

    def words_for(self, h, body):
        last = [m for m in body["messages"] if m["role"] == "user"][-1]["content"]
        text = h["say"].replace("_", " ") if "say" in h else "You said %s in %d messages." % (last, len(body["messages"]))
        if body["messages"][-1]["role"] == "assistant" and "say" not in h:
            text = " And on."
        if "halves" in h:
            units = text.encode("utf-16-le")
            return [units[i:i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)]
        return [text[i:i + 4] for i in range(0, len(text), 4)]

    def answer(self, h, body):
        kind = h.get("kind", "any")
        words = self.words_for(h, body)
        thought = [w + " " for w in h["think"].split("_")] if "think" in h else []
        n_prompt = sum(len(m["content"]) for m in body["messages"]) // int(h.get("full", 4)) + 4 * len(body["messages"])
        if "full" in h and n_prompt >= int(h["ctx"]):
            return self.reply(400, {"error": {"code": 400, "message": "the request has %d tokens" % n_prompt, "type": "exceed_context_size_error",
                                              "n_prompt_tokens": n_prompt, "n_ctx": int(h["ctx"])}})
        n_out = len(words) + len(thought)
        field = "refusal" if "refuses" in h else "content"
        if "object" in h:
            return self.reply(int(h.get("code", 200)), json.loads(h["object"]))
        if "plain" in h:
            message = {"role": "assistant", "content": None, field: "".join(words)}
            return self.reply(200, {"choices": [{"message": message, "finish_reason": "stop"}],
                                    "usage": {"prompt_tokens": n_prompt, "completion_tokens": n_out}})
        self.sent = 0
        call = {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
        if "calls" in h:
            words = []
        if kind == "ollama":
            self.begin(200, "application/x-ndjson")
            if "calls" in h:
                self.line({"message": {"role": "assistant", "content": "", **call}, "done": False})
            for w in thought:
                self.line({"message": {"role": "assistant", "content": "", "thinking": w}, "done": False})
            for i, w in enumerate(words):
                if "error" in h and i == len(words) // 2:
                    self.line({"error": h.get("words", "out_of_memory").replace("_", " ")})
                    return
                self.line({"message": {"role": "assistant", "content": w}, "done": False})
            if "nofinish" not in h:
                self.line({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": h.get("why", "stop"),
                           "prompt_eval_count": n_prompt, "prompt_eval_duration": 5000000, "eval_count": n_out, "eval_duration": 10000000})
            return
        self.begin(200, "text/event-stream")
        name = "reasoning" if kind == "vllm" else "reasoning_content"
        if kind == "llama":
            self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}],
                        "prompt_progress": {"total": n_prompt, "cache": n_prompt // 2, "processed": n_prompt, "time_ms": 4}})
        else:
            kept = {"ebb": {"answer": 77, "next": 0}} if "kept" in h else {}
            self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}], **kept})
        if "calls" in h:
            self.event({"choices": [{"index": 0, "delta": call, "finish_reason": None}]})
        for w in thought:
            self.event({"choices": [{"index": 0, "delta": {name: w}, "finish_reason": None}]})
        if "hugeline" in h:
            self.write(b"data: {\"choices\":[{\"delta\":{\"content\":\"")
            for _ in range(1600):
                self.write(b"x" * 65536)
        if "nested" in h:
            self.write(b"data: " + b"[" * 200000 + b"\n\n")
        while "flood" in h:
            self.event({"choices": [{"index": 0, "delta": {"content": "word " * 20 + "\x1b[2J"}}]})
        for i, w in enumerate(words):
            if "ping" in h:
                self.write(b": ping\n\nevent: ping\ndata:\n\n")
            if "error" in h and i == len(words) // 2:
                self.event({"error": {"code": 500, "message": h.get("words", "out_of_memory").replace("_", " "), "type": "server_error"}})
                return
            text = [{"type": "text", "text": w}] if "parts" in h else w
            self.event({"choices": [{"index": 0, "delta": {field: text}, "finish_reason": None}]})
        if "nofinish" not in h:
            self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": h.get("why", "stop")}]})
        if "nousage" not in h and body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": n_prompt, "completion_tokens": n_out}
            if "nocache" not in h and kind in ("llama", "vllm", "sglang", "openai"):
                usage["prompt_tokens_details"] = {"cached_tokens": n_prompt // 2}
            last = {"choices": [], "usage": usage}
            if kind == "llama":
                last["timings"] = {"cache_n": n_prompt // 2, "prompt_n": n_prompt - n_prompt // 2, "prompt_ms": 5.0, "predicted_n": n_out,
                                   "predicted_ms": 10.0}
            self.event(last)
        if "nodone" not in h:
            self.write(b"data: [DONE]\n\n")

    def event(self, obj):
        end = b"\r\n" if "crlf" in self.how else b"\r" if "cr" in self.how else b"\n"
        self.write(b"data: " + json.dumps(obj).encode() + end + end)

    def line(self, obj):
        self.write(json.dumps(obj).encode() + b"\n")

    def write(self, data):
        h = self.how
        if "slow" in h:
            time.sleep(int(h["slow"]) / 1000)
        step = int(h.get("bytes", 0)) or len(data)
        for at in range(0, len(data), step):
            self.write_some(data[at:at + step])

    def write_some(self, data):
        h = self.how
        for word in ("cut", "reset", "stall"):
            if word in h and self.sent + len(data) > int(h[word]):
                data = data[:max(0, int(h[word]) - self.sent)]
                self.wfile.write(data)
                self.end_badly(word)
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n" if self.is_torn else data)
        self.sent += len(data)

    def end_badly(self, word):
        if word == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.settimeout(300)
        while word == "stall" and self.connection.recv(1):       # until the other side has gone
            pass
        raise Quiet

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):
            pass                                 # who left is not to be told


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64
    if len(sys.argv) > 2:
        address_family = socket.AF_UNIX

    def server_bind(self):
        if len(sys.argv) > 2:
            socketserver.TCPServer.server_bind(self)
        else:
            super().server_bind()

    def handle_error(self, request, client_address):
        pass


server = Server(sys.argv[2] if len(sys.argv) > 2 else ("127.0.0.1", 0), Engine)
with open(root + "/port.new", "w") as f:
    print(0 if len(sys.argv) > 2 else server.server_address[1], file=f)
os.rename(root + "/port.new", root + "/port")
server.serve_forever()
