"""A program on a terminal of its own, for tests: nothing here is a matter of time.  What is waited for comes; only a hang takes
five minutes."""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

PATIENCE_S = 300


class Terminal:
    """What was sent to it stands in .seen."""

    def __init__(self, argv, env, rows=30, cols=100):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            os.execvpe(argv[0], argv, env)
        self.seen = b""

    def read(self, s):
        """What comes within so long; False at the end."""
        try:
            if not select.select([self.fd], [], [], s)[0]:
                return True
            got = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += got
        return bool(got)

    def until(self, want, since=None):
        """Until a pattern is in what came since then (now, if nothing is said)."""
        since = len(self.seen) if since is None else since
        end = time.monotonic() + PATIENCE_S
        while not re.search(want, self.seen[since:]):
            if not self.read(0.1) or time.monotonic() > end:
                sys.exit("never sent: %r in %r" % (want, self.seen[since:][-600:]))

    def type(self, keys):
        os.write(self.fd, keys)

    def hang_up(self):
        os.close(self.fd)
        self.fd = None

    def end(self):
        """Everything that comes to its end, and its exit code."""
        end = time.monotonic() + PATIENCE_S
        while self.fd is not None and time.monotonic() < end and self.read(0.1):
            pass
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                if self.fd is not None:
                    os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        sys.exit("the process stayed: %r" % self.seen[-600:])
