#!/bin/sh
# kill -9 in the middle of answers, at 20 different moments: afterwards the database is
# sound, and every answer that was shown as finished is there, word for word.
set -eu
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 - "$EBB" <<'PY'
import json, os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, time

ebb = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp()
env = dict(os.environ, HOME=home, XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache",
           XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config")
rng = random.Random(7)
finished, texts = 0, []
try:
    for turn in range(20):
        # one finished answer, whose text we have seen ...
        seen = subprocess.run([ebb, "run", "-s", "talk", "--json", "-p", "How do I leave? (%d)" % turn], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if seen.returncode != 0:
            sys.exit("run failed: " + seen.stderr)
        text = json.loads(seen.stdout)["text"]
        texts.append(text)
        finished += 1
        # ... and one that is killed while it is written
        p = subprocess.Popen([ebb, "run", "-s", "talk", "-n", "2000", "--temp", "3", "-p", "Tell me everything."], env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.12)
        p.send_signal(signal.SIGKILL)
        p.wait()
        db = sqlite3.connect(home + "/state/ebb/sessions.db", timeout=300)
        if db.execute("pragma integrity_check").fetchone()[0] != "ok":
            sys.exit("the database is damaged after kill %d" % turn)
        kept = [t for t, in db.execute("select text from messages where role = 2 and finish in (1, 2)")]
        if len(kept) < finished or kept.count(text) < texts.count(text):
            sys.exit("kill %d: %d of %d finished answers are there" % (turn, len(kept), finished))
        db.close()
finally:
    shutil.rmtree(home)
PY
