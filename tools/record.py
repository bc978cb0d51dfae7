#!/usr/bin/env python3
"""Record a conversation as an asciinema file (.cast, version 2).

    tools/record.py docs/ebb.cast build/release/ebb --inline --greedy

The keys are those below; the file plays with `asciinema play` or any player of that format."""
import fcntl, json, os, pty, select, signal, struct, sys, termios, time

ROWS, COLS = 24, 90
# What is typed, and how long one looks before the next.
KEYS = [("", 2.0), ("How do I attach a file?\r", 2.5), ("/ex", 1.5), ("\x15/help copy\r", 2.0),
        ("\x13file", 1.5), ("\x1b", 1.5), ("/quit\r", 1.0)]


def main():
    path, command = sys.argv[1], sys.argv[2:]
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        os.execv(command[0], command)
    began, events = time.monotonic(), []

    def watch(seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                try:
                    part = os.read(fd, 65536)
                except OSError:
                    return
                if not part:
                    return
                events.append([round(time.monotonic() - began, 3), "o", part.decode("utf-8", "replace")])

    for keys, pause in KEYS:
        for key in keys:
            os.write(fd, key.encode())
            watch(0.06)
        watch(pause)
    os.kill(pid, signal.SIGHUP)
    os.waitpid(pid, 0)
    with open(path, "w") as out:
        print(json.dumps({"version": 2, "width": COLS, "height": ROWS, "title": "ebb"}), file=out)
        for event in events:
            print(json.dumps(event), file=out)


main()
