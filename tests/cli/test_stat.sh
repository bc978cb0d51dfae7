#!/bin/sh
# ebb stat: figures of a running chat through its socket, which is private and goes with it.
set -eu
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 - "$EBB" <<'PY'
import fcntl, json, os, pty, re, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, termios, threading, time

ebb = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp(dir="/tmp")              # a socket's path is short
env = dict(os.environ, HOME=home, XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache",
           XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config")
env.pop("EBB_MODELS", None)

def stat(*words):
    return subprocess.run([ebb, "stat", *words], env=env, capture_output=True, text=True)

try:
    for runtime in (None, home + "/run"):
        env.pop("XDG_RUNTIME_DIR", None)
        if runtime:
            env["XDG_RUNTIME_DIR"] = runtime
        folder = (runtime or home + "/state") + ("/ebb" if runtime else "/ebb/run")
        if stat().returncode != 1 or json.loads(stat("--json").stdout) != {"running": []}:
            sys.exit("nothing runs, but: %r" % stat("--json"))
        p = subprocess.Popen([ebb, "--plain"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdin.write(b"/title Trip \"1\"\nHow do I leave?\n")
        p.stdin.flush()
        for _ in range(6000):
            running = json.loads(stat("--json").stdout)["running"]
            if running and running[0]["state"] == "idle" and running[0]["generated"] > 0:
                break
            time.sleep(0.05)
        else:
            sys.exit("no figures: %r" % running)
        one = running[0]
        if one["pid"] != p.pid or one["session"] != 'Trip "1"' or one["layers"] == 0 or one["used"] == 0:
            sys.exit("figures: %r" % one)
        if one["mode"] != "balanced" or one["rss_bytes"] < one["anon_bytes"] or one["available_bytes"] <= 0:
            sys.exit("what decisions go by: %r" % one)
        if one["kv_memory_bytes"] == 0 or one["kv_file_bytes"] != 0 or one["kv_memory_bytes"] + one["kv_free_bytes"] != one["kv_bytes"]:
            sys.exit("K and V: %r" % one)
        for _ in range(600):                     # it may give memory back between two looks
            one = json.loads(stat("--json").stdout)["running"][0]
            shown = re.search("memory ([0-9.]+) ([MG])iB of", stat().stdout)
            if float(shown[1]) * {"M": 2**20, "G": 2**30}[shown[2]] >= one["anon_bytes"] + one["file_bytes"] / 2:
                break
            time.sleep(0.05)
        else:
            sys.exit("mapped weights are no memory: %r, %r" % (shown[0], one))
        path = "%s/%d.sock" % (folder, p.pid)
        if os.stat(path).st_mode & 0o777 != 0o600 or os.stat(folder).st_mode & 0o77 != 0:
            sys.exit("the socket is not private")
        if 'Trip "1"' not in stat(str(p.pid)).stdout or stat("1").returncode != 1:
            sys.exit("by number: %r" % stat(str(p.pid)))
        for word in "1", 'Trip "1"':             # others run, and that is not denied
            if stat(word).stderr != "ebb: no ebb runs as process %s; `ebb stat` lists those that do\n" % word:
                sys.exit("another number: %r" % stat(word))
        # from outside an answer is ended; where none runs, that is told
        if stat().stdout.find("ends the answer") >= 0:
            sys.exit("an idle chat answers")
        if subprocess.run([ebb, "stop"], env=env, capture_output=True).returncode != 1:
            sys.exit("stop: nothing ran")
        p.stdin.write(b"/set temp 5\n/set min-p 0\n/set top-k 0\n/set top-p 1\n/set predict 100000\nTell me everything.\n")
        p.stdin.flush()
        for _ in range(6000):
            r = subprocess.run([ebb, "stop", str(p.pid)] + (["--json"] if runtime else []), env=env, capture_output=True, text=True)
            now = json.loads(stat("--json").stdout)["running"][0]
            if r.returncode == 0 or now["state"] == "idle" and now["generated"] != one["generated"]:
                break
            time.sleep(0.01)
        if r.returncode != 0:
            print("the answer was too short to be stopped")
        elif runtime and [s["pid"] for s in json.loads(r.stdout)["stopped"]] != [p.pid]:
            sys.exit("stop --json: %r" % r.stdout)
        elif not runtime and "what was written is kept" not in r.stdout:
            sys.exit("stop: %r" % r.stdout)
        p.stdin.close()
        if p.wait(300) != 0 or os.path.exists(path):
            sys.exit("the socket stayed")
        # one that was stopped runs, and is not taken for none; one that is killed leaves its socket; the next look removes it
        p = subprocess.Popen([ebb, "--plain"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        path = "%s/%d.sock" % (folder, p.pid)
        while not os.path.exists(path) and p.poll() is None:
            time.sleep(0.02)
        time.sleep(0.1)
        p.send_signal(signal.SIGSTOP)
        for words in [["stat", "--json"], ["stop", str(p.pid)]] * 6:           # the last ones find no room at its socket
            r = subprocess.run([ebb, *words], env=env, capture_output=True, text=True)
            if r.returncode != 1 or "process %d does not reply" % p.pid not in r.stderr:
                sys.exit("%r of one that was stopped: %r" % (words, r))
        p.kill()
        p.wait()
        if json.loads(stat("--json").stdout) != {"running": []} or os.path.exists(path):
            sys.exit("the socket of a killed process stayed")

    # an answer of `ebb run` is found and ended like a chat's, on its terminal and without one; its server says no more
    there = home + "/engine"
    os.mkdir(there)
    with open(there + "/how", "w") as f:
        f.write("kind=openai say=one_two_three_four_five_six_seven stall=1000")
    server = subprocess.Popen([sys.executable, "tests/support/engine.py", there])
    while not os.path.exists(there + "/port"):
        time.sleep(0.01)
    address = "http://127.0.0.1:" + open(there + "/port").read().strip()
    for is_left in False, True:
        p = subprocess.Popen([ebb, "run", "-e", address, "-s", "kept", "-p", "Count."], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
        os.read(p.stdout.fileno(), 1)
        if is_left:
            p.send_signal(signal.SIGHUP)
        for _ in range(6000):
            running = json.loads(stat("--json").stdout)["running"]
            if running and running[0]["unseen"] == is_left:
                break
            time.sleep(0.01)
        if [(one["pid"], one["session"], one["state"], one["unseen"]) for one in running] != [(p.pid, "kept", "decode", is_left)]:
            sys.exit("stat of ebb run: %r" % running)
        r = subprocess.run([ebb, "stop", "kept"], env=env, capture_output=True, text=True)
        if r.returncode != 0 or p.wait(300) != 128 + (signal.SIGHUP if is_left else signal.SIGUSR1):
            sys.exit("stop of ebb run: %r, exit %r" % (r, p.poll()))
        if os.path.exists("%s/%d.sock" % (folder, p.pid)):
            sys.exit("the socket of ebb run stayed")

    # a question that waits for the answer of a process that was stopped: once the terminal is gone it waits no longer than
    # --linger says; it is taken back by its number, and of that one alone it is said that it does not reply
    first = subprocess.Popen([ebb, "run", "-e", address, "-s", "turns", "-p", "Count."], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    os.read(first.stdout.fileno(), 1)
    first.send_signal(signal.SIGSTOP)
    def begin_waiting(*options):
        p = subprocess.Popen([ebb, "run", "-e", address, "-s", "turns", *options, "-p", "And then?"], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(6000):
            running = json.loads(stat(str(p.pid), "--json").stdout)["running"]
            if running and running[0]["state"] == "waiting":
                return p
            time.sleep(0.01)
        sys.exit("stat of a question that waits: %r" % running)
    p = begin_waiting("--linger", "0")
    p.send_signal(signal.SIGHUP)
    if p.wait(300) != 128 + signal.SIGHUP:
        sys.exit("a question that waits for longer than --linger: exit %r" % p.poll())
    p = begin_waiting()
    r = subprocess.run([ebb, "stop", str(p.pid)], env=env, capture_output=True, text=True)
    if r.returncode != 0 or "its question was not asked" not in r.stdout or p.wait(300) != 128 + signal.SIGUSR1:
        sys.exit("stop of a question that waits: %r, exit %r" % (r, p.poll()))
    for word, says in (str(p.pid), "no answer is running in %d" % p.pid), (str(first.pid), "process %d does not reply" % first.pid):
        r = subprocess.run([ebb, "stop", word], env=env, capture_output=True, text=True)
        if r.returncode != 1 or says not in r.stderr:
            sys.exit("stop %s: %r" % (word, r))
    first.kill()
    first.wait()

    # its reader takes nothing, as a pager that waits for a key: it is found and stopped all the same, and what was
    # written is there when he goes on; a signal ends it, on a stopped terminal, too
    with open(there + "/how", "w") as f:
        f.write("kind=openai say=%s stall=200000" % "_".join(["word"] * 4000))
    def begin_unread(writes):
        p = subprocess.Popen([ebb, "run", "-e", address, "-s", "unread", "-p", "Count."], env=env, stdin=subprocess.DEVNULL, stdout=writes)
        os.close(writes)
        until = time.time() + 60                 # one that does not reply holds stat up, too
        while time.time() < until:
            running = json.loads(stat("--json").stdout)["running"]
            if running and running[0].get("generated", 0) > 1500:
                return p
            time.sleep(0.05)
        sys.exit("stat of ebb run that nobody reads: %r" % running)
    def last_answer():
        db = sqlite3.connect(home + "/state/ebb/sessions.db", timeout=60)
        text, = db.execute("select cast(text as text) from messages where role = 2 order by id desc").fetchone()
        db.close()
        return text.encode()
    def pipe():
        reads, writes = os.pipe()
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
        return reads, writes
    def stopped_terminal():
        reads, writes = pty.openpty()
        termios.tcflow(writes, termios.TCOOFF)
        return reads, writes
    reads, writes = pipe()
    p = begin_unread(writes)
    r = subprocess.run([ebb, "stop", str(p.pid)], env=env, capture_output=True, text=True)
    said = open(reads, "rb").read()
    if r.returncode != 0 or p.wait(300) != 128 + signal.SIGUSR1 or said.strip() != last_answer().strip():
        sys.exit("stop of ebb run that nobody reads: %r, exit %r, %d bytes" % (r, p.poll(), len(said)))
    for begin, number in (pipe, signal.SIGTERM), (stopped_terminal, signal.SIGTERM), (stopped_terminal, signal.SIGINT):
        reads, writes = begin()
        p = begin_unread(writes)
        p.send_signal(number)
        if p.wait(300) != 128 + number:
            sys.exit("%r, which nobody reads: exit %r after signal %d" % (begin, p.poll(), number))
        os.close(reads)

    # the reader of standard error takes nothing: the question waits for its turn, is asked, answered and stopped all the
    # same, and once he goes on he has every line and word in their order
    def begin_unheard(begin, has_both, *words):
        reads, writes = begin()
        if begin == pipe:
            os.write(writes, b" " * 4096)
        p = subprocess.Popen([ebb, "run", *words], env=env, stdin=subprocess.DEVNULL, stdout=writes if has_both else subprocess.DEVNULL,
                             stderr=writes)
        return p, reads, writes
    def wait_until(p, is_so):
        for _ in range(6000):
            r = stat(str(p.pid), "--json")
            running = json.loads(r.stdout)["running"]
            if running and is_so(running[0]):
                return
            if "does not reply" in r.stderr or p.poll() is not None:
                break
            time.sleep(0.01)
        sys.exit("stat of ebb run whose standard error nobody reads: %r, exit %r" % (r, p.poll()))
    def read_to_end(p, reads, writes, is_terminal, status):
        if is_terminal:
            termios.tcflow(writes, termios.TCOON)
        os.close(writes)
        said = b""
        try:
            while got := os.read(reads, 65536):
                said += got
        except OSError:                              # the terminal's other side is closed
            pass
        os.close(reads)
        if p.wait(300) != status:
            sys.exit("ebb run whose standard error was read late: exit %r" % p.poll())
        return said.replace(b"\r\n", b"\n").strip(b" \n")
    for begin, has_both in (stopped_terminal, True), (pipe, False):
        first = subprocess.Popen([ebb, "run", "-e", address, "-s", "unheard", "-p", "Count."], env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL)
        wait_until(first, lambda one: one["generated"] > 0)
        p, *ends = begin_unheard(begin, has_both, "-e", address, "-s", "unheard", "-p", "And then?")
        wait_until(p, lambda one: one["state"] == "waiting")
        first.kill()
        first.wait()
        wait_until(p, lambda one: one["generated"] > 0)
        r = subprocess.run([ebb, "stop", str(p.pid)], env=env, capture_output=True, text=True)
        if r.returncode != 0:
            sys.exit("stop of ebb run whose standard error nobody reads: %r" % r)
        said = read_to_end(p, *ends, begin == stopped_terminal, 128 + signal.SIGUSR1).decode().split("\n")
        answer = last_answer().decode().strip()
        if (said[0] != "waiting for process %d, which writes the answer before this one" % first.pid or
                said.count(answer) != has_both or (has_both and said[-1] != answer)):
            sys.exit("%r, read when the answer had been stopped: %r" % (begin, [row[:200] for row in said]))
    # how far it has come is said by the way: nothing is left of it before the answer
    p, *ends = begin_unheard(stopped_terminal, True, "-s", "loads", "-n", "3", "How do I leave?")
    for _ in range(6000):
        db = sqlite3.connect(home + "/state/ebb/sessions.db", timeout=60)
        is_saved, = db.execute("select count(*) from messages where role = 2 and n_generated = 3 and finish = 2").fetchone()
        db.close()
        if is_saved or p.poll() is not None:
            break
        time.sleep(0.01)
    if not is_saved:
        sys.exit("an answer whose progress nobody reads is not saved: exit %r" % p.poll())
    said = read_to_end(p, *ends, True, 0)
    if said.split(b"\r\033[K")[-1].strip() != last_answer().strip() or b"%\r\033[K" not in said:
        sys.exit("progress that is read late: %r" % said)
    server.kill()
    server.wait()

    # the signal goes to whoever answers at the socket, whatever number it tells: elsewhere that is another process's
    other = subprocess.Popen(["sleep", "1000"])
    answers = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("here", flush=True)
while True:
    peer = s.accept()[0]
    peer.sendall(b'{"pid": ' + sys.argv[2].encode() + b', "state": "decode", "session": "there"}')
    peer.close()
"""
    p = subprocess.Popen([sys.executable, "-c", answers, "%s/%d.sock" % (folder, other.pid), str(other.pid)], stdout=subprocess.PIPE)
    p.stdout.readline()
    r = subprocess.run([ebb, "stop", "there"], env=env, capture_output=True, text=True)
    if r.returncode != 0 or p.wait(300) != -signal.SIGUSR1 or other.poll() is not None:
        sys.exit("stop of what says to be process %d: %r, %r, %r" % (other.pid, r, p.poll(), other.poll()))
    other.kill()
    other.wait()

    # a container's only program is process 1 there, and ended like any other; in the container beside it, it is out of reach
    first = answers.replace("import socket, sys", "import os, signal, socket, subprocess, sys").replace("while True:\n", """
def end(*_):
    os.unlink(sys.argv[1])
    os._exit(7)
signal.signal(signal.SIGUSR1, end)
if len(sys.argv) > 3:
    stop = subprocess.Popen([sys.argv[3], "stop"], stdout=subprocess.DEVNULL)
    signal.signal(signal.SIGCHLD, lambda *_: stop.poll() and os._exit(9))
while True:
""")
    def begin_first(*words):
        return subprocess.Popen([shutil.which("unshare") or "false", "-pf", "--kill-child", "--mount-proc", sys.executable, "-c", first, folder + "/1.sock", "1", *words],
                                env=env, stdout=subprocess.PIPE)
    p = begin_first(ebb)
    if p.stdout.readline() and p.wait(300) != 7:
        sys.exit("stop of process 1: %r" % p.poll())
    p = begin_first()
    if p.stdout.readline():
        r = subprocess.run(["unshare", "-pf", "--mount-proc", ebb, "stop", "there"], env=env, capture_output=True, text=True)
        if r.returncode != 1 or "process 1 cannot be reached from here" not in r.stderr:
            sys.exit("stop from another container: %r" % r)
        subprocess.run([ebb, "stop"], env=env, capture_output=True, timeout=60)
    if p.wait(300) not in (1, 7):
        sys.exit("stop from outside of its container: %r" % p.poll())

    # a process of another PID namespace may have our number, and its socket that name: both are found, and stay what they are
    other = socket.socket(socket.AF_UNIX)
    other.bind(home + "/other")
    other.listen()
    p = subprocess.Popen([ebb, "--plain"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         preexec_fn=lambda: os.rename(home + "/other", "%s/%d.sock" % (folder, os.getpid())))
    def reply():
        while True:
            peer = other.accept()[0]
            peer.sendall(b'{"pid": %d, "session": "other"}' % p.pid)
            peer.close()
    threading.Thread(target=reply, daemon=True).start()
    for _ in range(500):
        running = json.loads(stat(str(p.pid), "--json").stdout)["running"]
        if len(running) == 2:
            break
        time.sleep(0.02)
    if len(running) != 2 or [one["pid"] for one in running] != [p.pid, p.pid] or any("socket" in one for one in running):
        sys.exit("two with one number: %r" % running)
    p.stdin.close()
    p.wait(300)
    if os.listdir(folder) != ["%d.sock" % p.pid]:
        sys.exit("when one of two with one number has left: %r" % os.listdir(folder))
    os.unlink("%s/%d.sock" % (folder, p.pid))

    # another user's process is not believed, wherever the folder lets it have a socket
    if os.geteuid() == 0:
        of_others = "import os\n" + answers.replace("s.listen()", "os.setuid(65534)\ns.listen()")
        p = subprocess.Popen([sys.executable, "-c", of_others, folder + "/15.sock", "15"], stdout=subprocess.PIPE)
        p.stdout.readline()
        told = stat("--json").stdout
        p.kill()
        p.wait()
        os.unlink(folder + "/15.sock")
        if json.loads(told) != {"running": []}:
            sys.exit("another user's process is listed: %r" % told)

    # all are asked at once: these answer when the last of them is asked; one more never does
    listeners = [socket.socket(socket.AF_UNIX) for _ in range(101)]
    for i, listener in enumerate(listeners):
        listener.bind("%s/%d.sock" % (folder, 4000000 + i))
        listener.listen(0)
        listener.settimeout(60)                      # rather a failure than a test that hangs
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(2)]        # at the last one's there is no room
    for one in crowd:
        one.setblocking(False)
        one.connect_ex("%s/4000100.sock" % folder)
    p = subprocess.Popen([ebb, "stat", "--json"], env=env, stdout=subprocess.PIPE, text=True)
    peers = [listener.accept()[0] for listener in listeners[:100]]
    for i, peer in enumerate(peers):
        peer.sendall(b'{"pid": %d}' % (4000000 + i))
        peer.close()
    running = json.loads(p.communicate()[0])["running"]
    if sorted(one["pid"] for one in running) != [4000000 + i for i in range(100)]:
        sys.exit("asked at once: %r" % running)
    if not os.path.exists("%s/4000100.sock" % folder):
        sys.exit("the socket of one that is busy was removed")

    # what is no socket is nobody's to remove; numbers that are none are not printed
    for listener in listeners:
        os.unlink(listener.getsockname())
    with open(folder + "/11.sock", "w") as f:
        f.write("mine")
    os.symlink("11.sock", folder + "/12.sock")
    os.mkfifo(folder + "/13.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(folder + "/14.sock")
    listener.listen()
    p = subprocess.Popen([ebb, "stat"], env=env, stdout=subprocess.PIPE, text=True)
    peer = listener.accept()[0]
    peer.sendall(b'{"pid": 1e300, "used": -1e300, "anon_bytes": 1e300}')
    peer.close()
    told = p.communicate()[0]
    if "context 0/0" not in told or "memory 0 B" not in told or len(told) > 1000:
        sys.exit("figures of no machine: %r" % told)
    left = sorted(os.listdir(folder))
    if left != ["11.sock", "12.sock", "13.sock", "14.sock"]:
        sys.exit("left in the folder of sockets: %r" % left)
finally:
    shutil.rmtree(home)
PY
