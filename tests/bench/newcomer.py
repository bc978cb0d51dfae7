#!/usr/bin/env python3
"""Counts the keys that a newcomer's first hour takes, by doing it in tmux.

    tests/bench/newcomer.py EBB WAY

WAY is a file of tests/bench/newcomer/: a task on a line, the keys by their tmux names, and what the screen shows when it is
done, between bars. Text in quotes is typed letter by letter; what is only content (the words of a question) stands in
braces and is not counted. A task that does not come out is named, and ends the run with 1. Prints a table of tasks and keys.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

CHAT = """# Sorting in Python

## user

How do I sort a list?

## assistant

```python
sorted(xs, key=len)
```
"""


class Desk:
    """A home with an old chat, a second model and a file, and a shell in tmux."""

    def __init__(self, ebb):
        self.socket = f"ebb-newcomer-{os.getpid()}"
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.env = {"HOME": self.home.name, "PATH": f"{self.home.name}/bin:{os.environ['PATH']}", "LANG": "C.UTF-8",
                    "TERM": "xterm-256color"}
        os.mkdir(f"{self.home.name}/bin")
        os.symlink(os.path.abspath(ebb), f"{self.home.name}/bin/ebb")
        for name, text in (("sea.txt", "The sea is deep.\n"), ("sorting.md", CHAT)):
            with open(f"{self.home.name}/{name}", "w") as f:
                f.write(text)
        models = f"{self.home.name}/.local/share/ebb/models"
        os.makedirs(models)
        with open("models/guide.gguf", "rb") as f, open(f"{models}/other-1b.gguf", "wb") as g:
            g.write(f.read())
        subprocess.run(["ebb", "sessions", "import", f"{self.home.name}/sorting.md"], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)
        self.tmux("new-session", "-d", "-x", "100", "-y", "30", f"cd {self.home.name} && PS1='$ ' bash --norc --noprofile -i")
        self.tmux("set", "-g", "status", "off")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *words], env=self.env, check=True,
                              capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def shows(self, pattern):
        for _ in range(100):
            if re.search(pattern, self.screen()):
                return True
            time.sleep(0.1)
        return False

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
        self.home.cleanup()


def strokes(keys):
    """(what tmux is given, whether it is counted) of each key."""
    for text, content, key in re.findall(r'"([^"]*)"|\{([^}]*)\}|(\S+)', keys):
        for c in text or content:
            yield ("-l", c), bool(text)
        if key:
            yield (key,), True


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    desk, total, failed = Desk(sys.argv[1]), 0, 0
    try:
        for line in open(sys.argv[2]):
            if not line.strip() or line.startswith("#"):
                continue
            task, keys, shown = (part.strip() for part in line.split("|", 2))
            n = 0
            for words, counts in strokes(keys):
                if words == ("wait",):
                    time.sleep(1.5)
                    continue
                desk.tmux("send-keys", *words)
                time.sleep(0.06)
                n += counts
            total += n
            if not desk.shows(shown):
                failed = 1
                print(f"{task}: the screen does not show {shown!r}\n{desk.screen()}")
            print(f"| {task} | {n} | `{keys}` |")
        print(f"| **all** | **{total}** | |")
    finally:
        desk.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
