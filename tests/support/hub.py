#!/usr/bin/python3
"""A small hub on the loopback, for tests of downloads: hub.py FOLDER

FOLDER/files/OWNER/NAME/... are its repositories.  FOLDER/port gets the port when it listens, FOLDER/log a line for each
request: method, host, path, Range, If-Range, whether a token came.  FOLDER/how is read at each request, words that change
what it does:

    elsewhere     files are behind a redirect to another host name (localhost), as on the real hub
    otherport     ... and to another port
    cut=N         a body ends after N bytes, with a broken connection
    hold=N        behind byte N one now and then, until `how` says something else: a download that stands in its middle
    open          a chunked body has no end: what is behind the file is waited for
    wait=N        with status: Retry-After
    gone          hangs up without an answer when the rest of a file is asked for
    norange       no ranges; gzip: its bodies are said to be compressed
    chunked       no Content-Length
    etag=X        the files' ETag ("X"), and no checksum in listing and headers
    date=X        their Last-Modified, and no ETag; mute: neither
    noifrange     Range is honoured whatever If-Range says
    weak          it is a weak one
    nohash        no checksum
    wronghash     another checksum
    wrongsize     one byte more in the listing
    status=N      of files; busy=N: so many requests for files get 503 first
    api=N         status of the listing; gated, missing: with the hub's X-Error-Code
    endless       what is said with a refusal or a redirect has no end
    hostile       names and sizes that no file may have, in the listing
    parts=N       N files in the listing, parts of one model
    huge          a listing without end; deep: one of nested arrays; trailers: one with headers behind it without end
    slowsearch    names that are like another one come byte by byte
    pages=F       a listing of one file on each page, whose link to the next one has this form: relative, query, bare, words,
                  many; other: at another server; none of these: the hub's own
    loop          redirects without end
    token=X       files need this token
"""
import hashlib, json, os, re, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

root = sys.argv[1]
lock = threading.Lock()
state = {"busy": 0, "of": None}      # how many are still sent away, of which `how`


def how():
    try:
        words = open(root + "/how").read().split()
    except OSError:
        words = []
    return dict((w.split("=", 1) + [""])[:2] for w in words)


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self):
        token = self.headers.get("Authorization", "-").replace("Bearer ", "")
        with lock, open(root + "/log", "a") as f:
            print(self.command, self.headers.get("Host"), self.path, self.headers.get("Range", "-"), self.headers.get("If-Range", "-"),
                  token, file=f)

    def without_end(self, piece):
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            self.close_connection = True

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        if status >= 300 and "endless" in how():
            for k, v in headers.items():
                self.send_header(k.replace("_", "-"), v)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            return self.without_end(b"400\r\n" + b"x" * 1024 + b"\r\n")
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def listing(self, repo, do):
        if "api" in do:
            code = "GatedRepo" if "gated" in do else "RepoNotFound" if "missing" in do else ""
            return self.answer(int(do["api"]), b"{}", X_Error_Code=code, Retry_After="120")
        if "trailers" in do:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"2\r\n[]\r\n0\r\n")
            return self.without_end(b"X: y\r\n" * 1000)
        if "parts" in do:
            n = int(do["parts"])
            return self.answer(200, json.dumps([{"type": "file", "path": "x-%05d-of-%05d.gguf" % (i + 1, n), "size": 1}
                                                for i in range(n)]).encode())
        if "huge" in do:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            piece = b'{"type":"file","path":"x.gguf","size":1},' * 25000
            try:
                for i in range(100):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            except OSError:
                self.close_connection = True
            return None
        if "deep" in do:
            return self.answer(200, b"[" * 100000)
        items = []
        top = root + "/files/" + repo
        if not os.path.isdir(top):
            return self.answer(401, b"{}", X_Error_Code="RepoNotFound")
        for folder, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                data = open(path, "rb").read()
                sha = hashlib.sha256(data).hexdigest()
                sha = sha[:-1] + ("0" if sha[-1] != "0" else "1") if "wronghash" in do else sha
                item = {"type": "file", "path": os.path.relpath(path, top), "size": len(data) + ("wrongsize" in do), "oid": "0" * 40}
                if "nohash" not in do and "etag" not in do:
                    item["lfs"] = {"oid": sha, "size": item["size"], "pointerSize": 130}
                items.append(item)
        if "hostile" in do:
            for path in ["../../evil.gguf", "a/../../evil.gguf", "/etc/evil.gguf", "evil\x1b[31m.gguf", "evil\n.gguf", ".evil.gguf",
                         "evil\u202e.gguf", "e" * 300 + ".gguf", "a\\b.gguf", "evil\x1b[31m/a.gguf", "evil\n/a.gguf"]:
                items.append({"type": "file", "path": path, "size": 10})
            items += [{"type": "file", "path": 5, "size": "x"}, 7, None, {"type": "file", "path": "neg.gguf", "size": -1},
                      {"type": "file", "path": "evil.gguf", "size": 1 << 60},
                      {"type": "file", "path": "evil.gguf", "size": 1, "lfs": {"size": -1}}]
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        more = {}
        if "pages" in do:
            i = int(query.get("cursor", ["0"])[0])
            if i + 1 < len(items):
                here = urllib.parse.urlsplit(self.path).path
                path = "%s?recursive=true&cursor=%d" % (here, i + 1)
                form = {"relative": '<{1}>; rel="next"', "query": '<?recursive=true&cursor=%d>; rel="next"' % (i + 1),
                        "bare": "<http://{0}{1}>; title=\"a, <b>; rel=\"; REL = next", "words": '<{1}>;rel="last next"',
                        "many": '<http://{0}{2}>; rel="first", <{1}>; rel="next", <{2}>; rel="last"',
                        "other": '<http://localhost:%d{1}>; rel="next"' % ports[0]}
                link = form.get(do["pages"], '<http://{0}{1}>; rel="next"')
                more = {"Link": link.format(self.headers["Host"], path, here)}
            items = items[i:i + 1]
        return self.answer(200, json.dumps(items).encode(), Content_Type="application/json", **more)

    def body(self, data, begin, do):
        end = min(len(data), begin + int(do["cut"])) if "cut" in do else len(data)
        at = begin
        try:
            while at < end:
                n = end - at
                if "hold" in do and how() == do:
                    n = min(n, int(do["hold"]) - at) if at < int(do["hold"]) else 1
                piece = data[at:at + n]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if "chunked" in do else piece)
                self.wfile.flush()
                at += n
                if n == 1:
                    time.sleep(0.1)
            while "open" in do and how() == do:
                time.sleep(0.05)
            if "chunked" in do and end == len(data):
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        if "cut" in do or "chunked" in do:
            self.close_connection = True

    def file(self, name, do):
        path = root + "/files/" + name
        if "status" in do:
            return self.answer(int(do["status"]), b"no", Retry_After=do.get("wait", "1"))
        with lock:
            if state["of"] != do:
                state.update(busy=int(do.get("busy", 0)), of=dict(do))
            is_busy = state["busy"] > 0
            state["busy"] -= is_busy
        if is_busy:
            return self.answer(503, b"busy")
        if "token" in do and self.headers.get("Authorization") != "Bearer " + do["token"]:
            return self.answer(401, b"{}", X_Error_Code="GatedRepo")
        if not os.path.isfile(path):
            return self.answer(404, b"not here")
        data = open(path, "rb").read()
        etag = ("W/" if "weak" in do else "") + '"%s"' % do.get("etag", hashlib.md5(data).hexdigest())
        begin = 0
        ranged = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = do.get("date", etag)
        if ranged and "gone" in do:
            self.close_connection = True
            return None
        if ranged and "norange" not in do and ("noifrange" in do or self.headers.get("If-Range", same) == same):
            begin = int(ranged.group(1))
            if begin >= len(data):
                return self.answer(416, Content_Range="bytes */%d" % len(data))
        else:
            ranged = None
        self.send_response(206 if ranged else 200)
        if ranged:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (begin, len(data) - 1, len(data)))
        if "gzip" in do:
            self.send_header("Content-Encoding", "gzip")
        if "date" in do:
            self.send_header("Last-Modified", do["date"])
        elif "mute" not in do:
            self.send_header("ETag", etag)
        if "chunked" in do:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        return self.body(data, begin, do)

    def do_GET(self):
        self.note()
        do = how()
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/.*", path)
        resolve = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.*)", path)
        if api:
            return self.listing(api.group(1), do)
        if path == "/api/models" and "slowsearch" in do:
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            while how() == do:
                self.wfile.write(b" ")
                time.sleep(0.1)
            return None
        if path == "/api/models":
            return self.answer(200, json.dumps([{"id": "owner/Like-It-GGUF"}, {"id": "../x\x1b"}]).encode())
        if "loop" in do:
            return self.answer(302, Location="http://%s%s" % (self.headers["Host"], self.path))
        if resolve and ("elsewhere" in do or "otherport" in do):
            name = resolve.group(1) + "/" + resolve.group(2)
            if "token" in do and self.headers.get("Authorization") != "Bearer " + do["token"]:
                return self.answer(401, b"{}", X_Error_Code="GatedRepo")
            head = {}
            if "nohash" not in do and "etag" not in do and os.path.isfile(root + "/files/" + name):
                data = open(root + "/files/" + name, "rb").read()
                head = {"X_Linked_Etag": '"%s"' % hashlib.sha256(data).hexdigest(), "X_Linked_Size": str(len(data))}
            host = "127.0.0.1:%d" % ports[1] if "otherport" in do else "localhost:%d" % ports[0]
            return self.answer(302, Location="http://%s/blob/%s" % (host, urllib.parse.quote(name)), **head)
        if path.startswith("/blob/"):
            do.pop("token", None)
            return self.file(path[6:], do)
        if resolve:
            return self.file(resolve.group(1) + "/" + resolve.group(2), do)
        return self.file(path[1:], do)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):
        pass


servers = [Server(("127.0.0.1", 0), Hub) for _ in range(2)]
ports = [s.server_address[1] for s in servers]
threading.Thread(target=servers[1].serve_forever, daemon=True).start()
with open(root + "/port.new", "w") as f:
    print(ports[0], file=f)
os.rename(root + "/port.new", root + "/port")
servers[0].serve_forever()
