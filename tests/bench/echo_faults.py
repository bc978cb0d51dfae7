"""How long a key takes to its echo, and Ctrl-C to its effect, while a server does what no server should.

    PYTHONPATH=tests/support python3 tests/bench/echo_faults.py build/release/ebb [FAULT...]

For each fault a chat with tests/support/engine.py asks a question, and 400 keys are typed, one every 10 ms. Then, of the faults that
last, answers are stopped by Ctrl-C, 20 each. Prints median, p99 and maximum in milliseconds and the peak memory of the chat."""
import os, re, subprocess, sys, tempfile, time
from terminal import Terminal

FAULTS = ["kind=llama hold", "kind=llama stall=0", "kind=llama stall=700", "kind=llama headers", "kind=llama hugebody",
          "kind=llama hugebody=text/event-stream", "kind=ollama hugebody=application/x-ndjson", "kind=llama hugeline", "kind=llama nested",
          "kind=llama flood", "kind=llama html", "kind=llama redirect", "kind=llama status=500", "kind=llama status=429 retry=1",
          "kind=llama cut=700", "kind=llama reset=700", "kind=llama error"]
LASTING = ["kind=llama hold", "kind=llama stall=0", "kind=llama stall=700", "kind=llama slow=5 flood", "kind=llama slow=1 think=x_x_x_x flood"]
KEYS, GAP_S, STOPS = 400, 0.01, 20


class Chat:
    def __init__(self, ebb, home, fault):
        self.home, self.kind, self.fault = home, fault.split()[0], fault
        self.how(self.kind)
        self.engine = subprocess.Popen([sys.executable, "tests/support/engine.py", home], stdout=subprocess.DEVNULL)
        while not os.path.exists(home + "/port"):
            time.sleep(0.01)
        env = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", NO_COLOR="1", XDG_RUNTIME_DIR=home)
        for kind in "CONFIG", "STATE", "CACHE", "DATA":
            env["XDG_%s_HOME" % kind] = home + "/" + kind
        self.t = Terminal([ebb, "-e", "http://127.0.0.1:" + open(home + "/port").read().strip()], env, 40, 120)
        self.t.until(rb"answers", 0)

    def how(self, words):
        with open(self.home + "/how.new", "w") as f:
            f.write(words)
        os.rename(self.home + "/how.new", self.home + "/how")

    def n_asked(self):
        try:
            return open(self.home + "/log").read().count('"POST"')
        except OSError:
            return 0

    def ask(self):
        n = self.n_asked()
        self.t.type(b"\x15hello\r")
        while self.n_asked() == n:
            self.t.read(0.02)

    def echo_ms(self, key):
        """Until the key is on the screen."""
        since, begun = len(self.t.seen), time.monotonic()
        self.t.type(key)
        self.t.until(re.escape(key), since)
        return (time.monotonic() - begun) * 1e3

    def stop_ms(self):
        """From Ctrl-C until the chat says that the answer has ended."""
        self.ask()
        self.t.read(0.05)
        since, begun = len(self.t.seen), time.monotonic()
        self.t.type(b"\x03")
        self.t.until(rb"stopped|ed; Enter", since)
        return (time.monotonic() - begun) * 1e3

    def peak_mib(self):
        return int(re.search(r"VmHWM:\s*(\d+)", open("/proc/%d/status" % self.t.pid).read()).group(1)) / 1024

    def end(self):
        self.how(self.kind)
        self.engine.kill()
        self.engine.wait()
        os.kill(self.t.pid, 9)
        os.waitpid(self.t.pid, 0)


def measure(ebb, fault, what):
    with tempfile.TemporaryDirectory() as home:
        c, ms = Chat(ebb, home, fault), []
        c.how(fault)
        if what == "echo":
            c.ask()
        for i in range(KEYS if what == "echo" else STOPS):
            c.t.read(GAP_S)
            ms.append(c.echo_ms(b"~^|`"[i % 4:i % 4 + 1]) if what == "echo" else c.stop_ms())
        ms.sort()
        print("%s  %-42s median %6.2f  p99 %7.2f  max %7.2f ms, peak %.0f MiB" % (
            what, fault, ms[len(ms) // 2], ms[len(ms) * 99 // 100 - 1], ms[-1], c.peak_mib()), flush=True)
        c.end()


for named in sys.argv[2:] or FAULTS:
    measure(sys.argv[1], named, "echo")
for named in sys.argv[2:] or LASTING:
    measure(sys.argv[1], named, "stop")
