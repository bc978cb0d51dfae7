#!/bin/sh
# The terminal goes away in the middle of an answer, and SIGTERM comes in the middle of
# one: the process leaves by itself, in both front ends, and what it wrote is there.
set -eu
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 - "$EBB" <<'PY'
import os, pty, select, shutil, signal, sqlite3, subprocess, sys, tempfile, time

ebb = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp()
env = dict(os.environ, HOME=home, XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache",
           XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config", TERM="xterm-256color", LANG="C.UTF-8")
env.pop("EBB_MODELS", None)

def start(*options):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(ebb, [ebb, "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", *options], env)
    return pid, fd

def pump(fd, s):
    end, out = time.time() + s, b""
    while time.time() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
    return out

def pump_for(fd, signs, s):
    """Until one of these was there: a busy machine takes its time."""
    end, out = time.time() + s, b""
    while time.time() < end and not any(sign in out for sign in signs):
        out += pump(fd, 0.05)

def wait(pid, s):
    end = time.time() + s
    while time.time() < end:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            return status
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    sys.exit("the process stayed")

def answers():
    db = sqlite3.connect(home + "/state/ebb/sessions.db")
    rows = db.execute("select finish, n_ids from messages where role = 2 order by id").fetchall()
    db.close()
    return rows

def away():
    db = sqlite3.connect(home + "/state/ebb/sessions.db")
    rows = db.execute("select settings from sessions where settings like '%\"away\"%'").fetchall()
    db.close()
    return len(rows) > 0

try:
    n = 0
    for options in ([], ["--plain"]):
        pid, fd = start("--linger", "20", *options)
        pump_for(fd, [b"ctx ", b"You: "], 20)
        os.write(fd, b"Tell me everything.\r")
        pump_for(fd, [b"tok/s", b"Model: "], 15)
        os.close(fd)                                  # as when ssh dies
        asked = subprocess.run([ebb, "stat", "--json", str(pid)], env=env, capture_output=True)
        status = wait(pid, 15)
        if os.waitstatus_to_exitcode(status) != 129:
            sys.exit("%s: exit %r after a hang-up" % (options, os.waitstatus_to_exitcode(status)))
        n += 1
        was_away = away()
        if was_away and asked.returncode == 0 and b'"pid"' not in asked.stdout:
            sys.exit("%s: ebb stat said %r of the one that goes on" % (options, asked.stdout))
        if len(answers()) != n or answers()[-1][0] == 0:
            sys.exit("%s: answers %r after a hang-up" % (options, answers()))
        pid, fd = start("-c", "--plain")              # how it ended is told, unless it was quicker than we
        told = pump(fd, 3.0)
        if away() or (b"while you were away" in told) != was_away:
            sys.exit("%s: -c said %r" % (options, told))
        os.kill(pid, signal.SIGTERM)
        wait(pid, 10)
        os.close(fd)
        pid, fd = start(*options)
        pump_for(fd, [b"ctx ", b"You: "], 20)
        os.write(fd, b"Tell me everything, again.\r")
        pump_for(fd, [b"tok/s", b"Model: "], 15)
        os.kill(pid, signal.SIGTERM)
        pump(fd, 0.5)
        status = wait(pid, 10)
        os.close(fd)
        if os.waitstatus_to_exitcode(status) != 143:
            sys.exit("%s: exit %r after SIGTERM" % (options, os.waitstatus_to_exitcode(status)))
        n += 1
        if len(answers()) != n or answers()[-1][0] == 0:
            sys.exit("%s: answers %r after SIGTERM" % (options, answers()))
    pid, fd = pty.fork()                              # ebb run goes on, too, where the answer is kept
    if pid == 0:
        os.execve(ebb, [ebb, "run", "-s", "kept", "-p", "Tell me everything.", "--greedy"], env)
    pump_for(fd, [b"a", b"e", b"i"], 20)
    os.close(fd)
    status = wait(pid, 15)
    n += 1
    if os.waitstatus_to_exitcode(status) not in (0, 129) or len(answers()) != n or answers()[-1][0] != 1:
        sys.exit("run: exit %r, answers %r after a hang-up" % (os.waitstatus_to_exitcode(status), answers()))
finally:
    shutil.rmtree(home)
PY
