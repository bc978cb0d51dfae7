"""A line on which a server's words come slowly: slow_line.py SOCKET SERVER, the path of a socket or a port of this machine.

What a client says passes at once, what the server says 512 bytes at a time, 20 times a second at most; who hangs up is hung up on."""
import socket, socketserver, sys, threading, time

path, server = sys.argv[1:3]


def hang_up(s):
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:                                # by the other thread, or by who was there
        pass


def carry(source, to, n, pause_s):
    try:
        while data := source.recv(n):
            to.sendall(data)
            time.sleep(pause_s)
    except OSError:
        pass
    hang_up(source)
    hang_up(to)


class Line(socketserver.BaseRequestHandler):
    def handle(self):
        there = socket.socket(socket.AF_INET if server.isdigit() else socket.AF_UNIX)
        there.connect(("127.0.0.1", int(server)) if server.isdigit() else server)
        asking = threading.Thread(target=carry, args=(self.request, there, 65536, 0))
        asking.start()
        carry(there, self.request, 512, 0.05)
        asking.join()
        there.close()


class Lines(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


Lines(path, Line).serve_forever()
