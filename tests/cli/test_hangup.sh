#!/bin/sh
# The terminal goes away, or takes nothing, in the middle of an answer, and SIGTERM comes in the middle of
# one: the process leaves by itself, in both front ends, and what it wrote is there.
set -eu
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 - "$EBB" <<'PY'
import json, os, shutil, signal, sqlite3, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, "tests/support")
from terminal import PATIENCE_S, Terminal

ebb = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp(dir="/tmp")              # a socket's path is short
env = dict(os.environ, HOME=home, XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache",
           XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config", TERM="xterm-256color", LANG="C.UTF-8")
env.pop("EBB_MODELS", None)

LONG, LONG_AGAIN = ("--seed", "3"), ("--seed", "2")     # answers of 909 and 1,011 tokens: a seed by chance may end at once

def start(*options):
    return Terminal([ebb, "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", *options], env, 24, 80)

def begin(question, *options):
    """It is asked, and answers."""
    t = start(*options)
    t.until(rb"ctx |You: ", 0)
    t.type(question + b"\r")
    end = time.monotonic() + PATIENCE_S
    while True:
        if not t.read(0.05) or time.monotonic() > end:
            sys.exit("no answer, or it has ended: %r" % t.seen[-600:])
        running = json.loads(subprocess.run([ebb, "stat", "--json", str(t.pid)], env=env, capture_output=True).stdout)["running"]
        if running and running[0]["generated"] > 0:
            return t

def answers():
    db = sqlite3.connect(home + "/state/ebb/sessions.db", timeout=PATIENCE_S)
    rows = db.execute("select finish, n_ids from messages where role = 2 order by id").fetchall()
    db.close()
    return rows

def away():
    db = sqlite3.connect(home + "/state/ebb/sessions.db", timeout=PATIENCE_S)
    rows = db.execute("select settings from sessions where settings like '%\"away\"%'").fetchall()
    db.close()
    return len(rows) > 0

try:
    n = 0
    for options in ([], ["--plain"]):
        t = begin(b"Tell me everything.", "--linger", "86400", *LONG, *options)
        t.hang_up()                                   # as when ssh dies
        asked = subprocess.run([ebb, "stat", "--json", str(t.pid)], env=env, capture_output=True)
        time.sleep(0.1)                               # one that leaves is saved right behind its last word to stat
        went_on = any(finish == 0 for finish, _ in answers()[-1:])     # still, when that had been asked
        status = t.end()
        if status != 129:
            sys.exit("%s: exit %r after a hang-up" % (options, status))
        n += 1
        was_away = away()
        if was_away and went_on and asked.returncode == 0 and b'"pid"' not in asked.stdout:
            sys.exit("%s: ebb stat said %r of the one that goes on" % (options, asked.stdout))
        if len(answers()) != n or answers()[-1][0] == 0:
            sys.exit("%s: answers %r after a hang-up" % (options, answers()))
        t = start("-c", "--plain")                    # how it ended is told, unless it was quicker than we
        t.until(rb"while you were away" if was_away else rb"You: ", 0)
        os.kill(t.pid, signal.SIGTERM)
        t.end()
        if away() or (b"while you were away" in t.seen) != was_away:
            sys.exit("%s: -c said %r" % (options, t.seen))
        t = begin(b"Tell me everything, again.", *LONG_AGAIN, *options)
        os.kill(t.pid, signal.SIGTERM)
        status = t.end()
        if status != 143:
            sys.exit("%s: exit %r after SIGTERM" % (options, status))
        n += 1
        if len(answers()) != n or answers()[-1][0] == 0:
            sys.exit("%s: answers %r after SIGTERM" % (options, answers()))
    # The end of what a terminal sends may be a hang-up whose signal is late, or never comes.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    t = start("--plain")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
    t.until(rb"You: ", 0)
    t.hang_up()
    status = t.end()
    if status != 129:
        sys.exit("exit %r after a hang-up that is seen by its input alone" % status)
    # A terminal that takes nothing more (a link that stalls) holds up neither an answer nor its saving.
    for options in ([], ["--inline"]):
        t = start(*LONG, *options)
        t.until(rb"ctx ", 0)
        for _ in range(200):
            t.type(b"\x0c")                          # a whole screen each, which nobody reads
            time.sleep(0.005)
        t.type(b"Tell me everything, at length.\r")
        n += 1
        end = time.monotonic() + PATIENCE_S
        while len(answers()) != n or answers()[-1][0] == 0:
            if time.monotonic() > end:
                sys.exit("%s: answers %r while the terminal takes nothing" % (options, answers()))
            time.sleep(0.1)
        since = len(t.seen)
        t.type(b"Continued")
        t.until(rb"Continued", since)
        t.type(b"\x15\x04")
        status = t.end()
        if status != 0:
            sys.exit("%s: exit %r after the terminal took nothing for a while" % (options, status))
    # ebb run goes on, too, where the answer is kept
    t = Terminal([ebb, "run", "-s", "kept", "-p", "Tell me everything.", "--greedy"], env)
    t.until(rb"[aei]", 0)
    t.hang_up()
    status = t.end()
    n += 1
    if status not in (0, 129) or len(answers()) != n or answers()[-1][0] != 1:
        sys.exit("run: exit %r, answers %r after a hang-up" % (status, answers()))
    # Of nohup, where it is ignored, a hang-up changes nothing: what was asked is answered.
    def begin_ignoring(*words):
        return subprocess.Popen([ebb, *words], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p = begin_ignoring("run", "-p", "Tell me everything.", "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", *LONG)
    p.stdin.close()
    os.read(p.stdout.fileno(), 1)
    p.send_signal(signal.SIGHUP)
    p.stdout.read()
    if p.wait(PATIENCE_S) != 0:
        sys.exit("run: exit %r after a hang-up that is ignored" % p.returncode)
    p = begin_ignoring("--plain", "--greedy", "-n", "3")
    p.stdin.write(b"One.\n")
    p.stdin.flush()
    said = b""
    while b"Model: " not in said:
        said += os.read(p.stdout.fileno(), 4096)
    p.send_signal(signal.SIGHUP)
    rest, _ = p.communicate(b"Two.\n", PATIENCE_S)
    if p.returncode != 0 or (said + rest).count(b"Model: ") != 2:
        sys.exit("plain: exit %r after a hang-up that is ignored: %r" % (p.returncode, said + rest))
finally:
    shutil.rmtree(home)
PY
