#!/bin/sh
# ebb --host through a real sshd on the loopback: whoever types while the line stands still sees it, an answer is whole behind a line that
# stood still or was cut and came back, and nothing of it is computed twice.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
[ -x /usr/sbin/sshd ] && command -v ssh >/dev/null && command -v ssh-keygen >/dev/null || { echo "sshd or ssh is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-ssh-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
EBB=$(realpath "$EBB")
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8 TERM=xterm-256color
unset EBB_MODELS SSH_AUTH_SOCK
mkdir "$dir/bin" "$dir/there"
ln -s "$EBB" "$dir/bin/ebb"

# What ebb calls ssh: the real one, with this test's keys; what comes through it is counted.
cat >"$dir/line.py" <<'P'
import os, signal, subprocess, sys, time
folder, n, begun = sys.argv[1], 0, False
ssh = subprocess.Popen(["/usr/bin/ssh", "-F", folder + "/ssh_config", *sys.argv[2:]], stdout=subprocess.PIPE)
signal.signal(signal.SIGTERM, lambda *_: ssh.kill())
while True:
    data = os.read(ssh.stdout.fileno(), 4096)
    if not data:
        break
    begun = begun or b"event-stream" in data
    n += len(data) if begun else 0
    os.write(1, data)
    if n > 1500 and os.path.exists(folder + "/do"):          # in the middle of an answer, once
        what = open(folder + "/do").read()
        os.unlink(folder + "/do")
        ssh.send_signal(signal.SIGKILL if what == "cut" else signal.SIGSTOP)
        with open(folder + "/did.new", "w") as f:
            f.write(f"{ssh.pid} {os.getpid()}")
        os.rename(folder + "/did.new", folder + "/did")
        if what == "cut":
            break
        os.kill(os.getpid(), signal.SIGSTOP)                 # what ssh has sent on already stands still, too
sys.exit(ssh.wait() if ssh.poll() is None or ssh.returncode >= 0 else 255)
P
printf '#!/bin/sh\nexec python3 "%s/line.py" "%s" "$@"\n' "$dir" "$dir" >"$dir/bin/ssh"
chmod +x "$dir/bin/ssh"

PYTHONPATH=tests/support PATH="$dir/bin:$PATH" python3 -B - "$EBB" "$dir" <<'P'
import atexit, json, os, pwd, signal, socket, sqlite3, subprocess, sys, time
from terminal import PATIENCE_S, Terminal
ebb, folder = sys.argv[1:3]
user = pwd.getpwuid(os.geteuid()).pw_name
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
for key in "host", "me":
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"], check=True)
os.rename(folder + "/me.pub", folder + "/keys")
there = {"PATH": folder + "/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **{k: folder + "/there" for k in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")}}
with open(folder + "/sshd_config", "w") as f:
    f.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\nPidFile none\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin yes\nSetEnv " + " ".join(f"{k}={v}" for k, v in there.items()) + "\n")
with open(folder + "/ssh_config", "w") as f:
    f.write(f"Host box\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {folder}/me\nIdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")
if os.geteuid() == 0:
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)


def skip(why):
    print(why)
    sys.exit(77)


def start_sshd():
    p = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", folder + "/sshd_config"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(p.kill)
    for _ in range(600):
        if p.poll() is not None:
            skip("sshd may not run here")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return p
        except OSError:
            time.sleep(0.05)
    sys.exit("sshd does not listen")


def wait_for(what, is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            sys.exit("never: " + what)
        time.sleep(0.02)


def stat():
    """The server over there, or None."""
    out = subprocess.run([ebb, "stat", "--json"], env={**os.environ, **there}, capture_output=True).stdout
    return next((p for p in json.loads(out)["running"] if p["session"] == "ebb serve"), None) if out else None


def end_server():
    s = stat()
    if s:
        os.kill(s["pid"], signal.SIGTERM)


noise = ["--seed", "5", "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-n", "150"]
question = "Tell me everything."


def run(*args):
    p = subprocess.run([ebb, "run", "--json", *args, *noise, "-p", question], stdin=subprocess.DEVNULL, capture_output=True)
    if p.returncode:
        sys.exit("ebb run %s: %r" % (args, p.stderr))
    return json.loads(p.stdout)


def do(what):
    if os.path.exists(folder + "/did"):
        os.unlink(folder + "/did")
    with open(folder + "/do", "w") as f:
        f.write(what)


def did():
    wait_for("the line is met in the middle of an answer", lambda: os.path.exists(folder + "/did"))
    return [int(pid) for pid in open(folder + "/did").read().split()]


def last_answer():
    db = sqlite3.connect(folder + "/state/ebb/sessions.db", timeout=PATIENCE_S)
    row = db.execute("select text, finish, n_generated, n_computed + n_reused, first_s from messages where role = 2 order by id desc limit 1").fetchone()
    db.close()
    return row


sshd = start_sshd()
if subprocess.run(["/usr/bin/ssh", "-F", folder + "/ssh_config", "-o", "BatchMode=yes", "box", "true"], stdin=subprocess.DEVNULL, capture_output=True).returncode:
    skip("this user cannot log in over ssh")
atexit.register(end_server)
want = run("-m", "guide")
got = run("--host", "box", "-m", "guide")
if got["text"] != want["text"]:
    sys.exit("over ssh: %r instead of %r" % (got["text"], want["text"]))
n_answers = stat()["answers"]

# The line stands still in the middle of an answer: what is typed is seen at once, and the answer is whole when it goes on.
do("freeze")
t = Terminal([ebb, "--host", "box", "-m", "guide", *noise], dict(os.environ))
t.until(rb"ctx |You: ", 0)
t.type(question.encode() + b"\r")
stopped = did()
for word in b"frozen", b"typed", b"meanwhile":
    t.type(word)
    t.until(word)
if last_answer()[1] != 0:
    sys.exit("the answer has ended though nothing came")
for pid in stopped:
    os.kill(pid, signal.SIGCONT)
wait_for("the answer ends", lambda: (last_answer() or (0, 0))[1] != 0)
text, finish, n_generated, n_prompt, first_s = last_answer()
if (text, n_generated) != (want["text"], want["generated_tokens"]):
    sys.exit("behind a line that stood still: %r instead of %r" % (text, want["text"]))
t.hang_up()
t.end()
if stat()["answers"] != n_answers + 1:
    sys.exit("it was asked again: %r" % stat())

# The line is cut in the middle of an answer, and there is none for a while: the answer goes on over there, and is read on.
before = stat()
do("cut")
p = subprocess.Popen([ebb, "run", "-v", "--json", "--host", "box", "-m", "guide", *noise, "-p", question], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
did()
sshd.kill()
sshd.wait()
time.sleep(1)                                     # some tries find nobody, or none does
sshd = start_sshd()
out, err = p.communicate(timeout=PATIENCE_S)
if p.returncode:
    sys.exit("behind a cut: %r" % err)
got, after = json.loads(out), stat()
if got["text"] != want["text"] or got["generated_tokens"] != want["generated_tokens"]:
    sys.exit("behind a cut: %r instead of %r" % (got, want))
if b"the answer goes on there" not in err:
    sys.exit("nothing is told of the cut: %r" % err)
if after["answers"] != before["answers"] + 1 or after["pid"] != before["pid"]:
    sys.exit("it was computed again: %r, %r" % (before, after))
if got["computed_tokens"] + got["reused_tokens"] != want["computed_tokens"] + want["reused_tokens"]:
    sys.exit("the receipt: %r instead of %r" % (got, want))
P
