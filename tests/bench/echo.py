"""How long a key takes to its echo on a real terminal line while an answer runs.

    python3 tests/bench/echo.py build/release/ebb -m MODEL [more options]

A pty of 120x40; an answer is asked for, then keys are typed every 40 ms until it ends or 500 were typed.
Prints median, p99 and maximum in milliseconds, and the bytes that came a second."""
import fcntl, os, pty, select, signal, struct, sys, termios, time

def main():
    env = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8")
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(sys.argv[1], sys.argv[1:], env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = b""

    def drain(seconds, want=None):
        nonlocal seen
        end, got = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                try:
                    part = os.read(fd, 65536)
                except OSError:
                    return got
                got += part
                if want and want in got:
                    break
        seen += got
        return got

    drain(60, b"context")
    drain(2)
    os.write(fd, b"Write a very long story about a lighthouse.\r")
    drain(5)
    times, total, began = [], 0, time.monotonic()
    for i in range(500):
        total += len(drain(0.04))
        key = b"~^|`"[i % 4:i % 4 + 1]           # rare in an answer
        t = time.monotonic()
        os.write(fd, key)
        got = drain(1, key)
        times.append((time.monotonic() - t) * 1000)
        total += len(got)
        if i % 50 == 49:
            os.write(fd, b"\x15")
            drain(0.1)
    seconds = time.monotonic() - began
    times.sort()
    print("keys %d  median %.2f ms  p99 %.2f ms  max %.2f ms  %.0f B/s" %
          (len(times), times[len(times) // 2], times[int(len(times) * 0.99)], times[-1], total / seconds))
    os.kill(pid, signal.SIGTERM)
    drain(5)
    os.waitpid(pid, 0)

main()
