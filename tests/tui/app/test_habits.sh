#!/bin/sh
# What a terminal is told, byte by byte: no colours with NO_COLOR, no mouse, the scrollback never cleared, only ASCII with
# --ascii; a paste waits for Enter and is one message; Ctrl-C never leaves; ACCESSIBLE is the plain front end.
set -eu
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 - "$EBB" <<'PY'
import os, re, shutil, sqlite3, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, "tests/support")
from terminal import PATIENCE_S, Terminal

ebb = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp()
plain_env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "ACCESSIBLE", "TMUX", "EBB_MODELS")}
plain_env.update(HOME=home, XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache", XDG_DATA_HOME=home + "/data",
                 XDG_CONFIG_HOME=home + "/config", TERM="xterm-256color", LC_ALL="C.UTF-8")

class Chat(Terminal):
    def __init__(self, *options, **env):
        super().__init__([ebb, "--greedy", "-n", "40", *options], dict(plain_env, **env))

    def leave(self, keys=b"\x04"):
        self.type(keys)
        status = self.end()
        if status:
            sys.exit("status %d at the end" % status)
        return self.seen

def colours(sent):
    """The SGR parameters that choose a colour."""
    words = [w for m in re.findall(rb"\x1b\[([\d;]*)m", sent) for w in m.split(b";") if w]
    return [w for w in words if 30 <= int(w) <= 48 and int(w) != 39 or 90 <= int(w) <= 107]

def questions():
    db = sqlite3.connect(home + "/state/ebb/sessions.db", timeout=300)
    rows = [r[0] for r in db.execute("select text from messages where role = 1 order by id")]
    db.close()
    return rows

def a_chat(*options, **env):
    c = Chat(*options, **env)
    c.until(rb"This is ebb|You: ")
    c.type(b"What is a token?\r")
    c.until(rb" tok \xc2\xb7|tok \||piece of text[^$]*You: ")
    return c

try:
    sent = a_chat().leave()
    if not colours(sent):
        sys.exit("no colours at all")
    if re.search(rb"\x1b\[\?(9|100[0-6]|1015|1016)h", sent):
        sys.exit("the mouse was taken from the terminal")
    if b"\x1b[3J" in sent:
        sys.exit("the terminal's scrollback was cleared")
    if b"\x1b[?2004h" not in sent or sent.rindex(b"\x1b[?2004l") < sent.rindex(b"\x1b[?2004h"):
        sys.exit("bracketed paste was not asked for, or not given back")

    if colours(a_chat(NO_COLOR="1").leave()):
        sys.exit("colours with NO_COLOR")
    for options, env, wanted in ((["--color", "never"], {}, False), (["--color=always"], {"NO_COLOR": "1"}, True),
                                 ([], {"CLICOLOR": "0"}, False), ([], {"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True)):
        if bool(colours(a_chat(*options, **env).leave())) != wanted:
            sys.exit("%r %r: colours are %s" % (options, env, "not there" if wanted else "there"))
    if max(a_chat("--ascii").leave()) > 0x7f:
        sys.exit("not ASCII with --ascii")
    if max(a_chat(LC_ALL="xx_XX.UTF-8").leave()) <= 0x7f:
        sys.exit("ASCII, though the login's locale, which is not installed here, is one of UTF-8")
    if max(a_chat(LC_ALL="C").leave()) > 0x7f:
        sys.exit("not ASCII in a locale that has no more")
    sent = a_chat(ACCESSIBLE="1").leave()
    if b"\x1b" in sent or b"This is ebb" not in sent or b"/help" not in sent:
        sys.exit("ACCESSIBLE: %r" % sent)

    before = len(questions())
    c = a_chat()
    c.type(b"\x1b[200~first line\rsecond line\r\x1b[201~")
    c.until(rb"second line")
    c.read(0.3)
    if len(questions()) != before + 1:
        sys.exit("a paste was sent by itself: %r" % questions()[before:])
    c.type(b"\r")
    end = time.monotonic() + PATIENCE_S
    while len(questions()) <= before + 1 and time.monotonic() < end:
        c.read(0.1)
    if questions()[-1].strip() != "first line\nsecond line":
        sys.exit("a paste became %r" % questions()[before + 1:])
    for _ in range(5):                            # nothing runs, nothing is typed: it stays
        c.type(b"\x03")
        time.sleep(0.05)
    if os.waitpid(c.pid, os.WNOHANG)[0]:
        sys.exit("Ctrl-C left the program")
    c.leave()
finally:
    shutil.rmtree(home, ignore_errors=True)
PY
