"""A server of `ebb serve` and clients of it, for the tests of tests/cli/test_serve*.sh."""
import atexit, json, os, re, socket, subprocess, sys, time


def fail(*words):
    sys.exit(" ".join(str(w) for w in words))


class Server:
    def __init__(self, ebb, folder, *args, unix=True):
        self.path = folder + "/serve.sock"
        self.err = folder + "/serve.err"
        where = ["--socket", self.path] if unix else ["--port", "0"]
        self.p = subprocess.Popen([ebb, "serve", *where, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.err, "wb"))
        atexit.register(self.p.kill)               # it outlives no test that fails
        self.port = 0
        for _ in range(3000):
            if self.p.poll() is not None:
                fail("the server has ended:", open(self.err).read())
            text = open(self.err).read()
            found = re.search(r"listening at http://.*:(\d+)\n", text)
            self.port = int(found.group(1)) if found else 0
            if "answers, with a context" in text:
                return
            time.sleep(0.02)
        fail("the server does not start:", open(self.err).read())

    def connect(self):
        if self.port:
            return socket.create_connection(("127.0.0.1", self.port), timeout=120)
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(120)
        for _ in range(1200):
            try:
                s.connect(self.path)
                return s
            except BlockingIOError:                # too many wait to be taken
                time.sleep(0.1)
        fail("nobody takes a connection any more")

    def end(self):
        """Its exit status after SIGTERM."""
        self.p.terminate()
        status = self.p.wait(120)
        if status:
            fail("the server ends with", status, open(self.err).read())

    def ask(self, method, path, body=None, headers={}, host="localhost"):
        """(status, headers, body) of one request; a body that is no bytes is JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        s = self.connect()
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        if body is not None:
            head += f"Content-Length: {len(data)}\r\n"
        s.sendall(head.encode() + b"\r\n" + data)
        return parse(read_all(s))

    def json(self, method, path, body=None, want=200, **more):
        status, _, text = self.ask(method, path, body, **more)
        if status != want:
            fail(method, path, "is answered with", status, text)
        return json.loads(text)

    def chat(self, text, **more):
        return self.json("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **more})

    def events(self, path, body):
        status, _, text = self.ask("POST", path, body)
        if status != 200:
            fail(path, "is answered with", status, text)
        return sse(text)


def read_all(s):
    data = b""
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            break
        if not more:
            break
        data += more
    s.close()
    return data


def parse(data):
    if not data:
        return 0, {}, b""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {l.split(":", 1)[0].lower(): l.split(":", 1)[1].strip() for l in lines[1:]}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            n = int(size, 16)
            whole, body = whole + body[:n], body[n + 2:]
            if n == 0:
                break
        body = whole
    return int(lines[0].split()[1]), headers, body


def sse(text):
    return [e[6:] for e in text.decode().split("\n\n") if e.startswith("data: ")]


def text_of(events):
    return "".join(c["delta"].get("content") or "" for e in events if e != "[DONE]" for c in json.loads(e)["choices"])
