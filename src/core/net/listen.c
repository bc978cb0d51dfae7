/* Sockets that wait for connections (listen.h). */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"

/* how long who connects waits for a server that takes nobody any more */
enum { BACKLOG = 512, CONNECT_S = 2 };

/* -- UNIX ---------------------------------------------------------------------------------------------- */

static ebb_status make_unix_address(const char *path, struct sockaddr_un *at, ebb_error *err)
{
    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof at->sun_path)
        return EBB_FAIL(err, EBB_USAGE, "%.120s: the path of a socket has at most %zu bytes", path,
                        sizeof at->sun_path - 1);
    strcpy(at->sun_path, path);
    return EBB_OK;
}

static ebb_status make_folder_of(const char *path, ebb_error *err)
{
    const char *slash = strrchr(path, '/');
    ebb_buf dir = { 0 };
    ebb_status st = EBB_OK;

    if (slash && slash > path) {
        ebb_buf_add(&dir, path, (size_t)(slash - path));
        st = ebb_file_mkdirs(ebb_buf_text(&dir), err);
    }
    ebb_buf_fini(&dir);
    return st;
}

/* PATH.lock is its server's as long as that one lives; a socket whose lock is free is nobody's. */
static ebb_status lock_place(const char *path, int *lock, ebb_error *err)
{
    ebb_buf name = { 0 };
    ebb_status st = ebb_buf_addf(&name, "%s.lock", path) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");

    if (st == EBB_OK)
        st = ebb_file_open(name.data, EBB_FILE_UPDATE_HERE, lock, err);
    if (st == EBB_OK && ebb_file_lock(*lock, name.data, err) == EBB_BUSY)
        st = EBB_FAIL(err, EBB_BUSY, "a server already listens at %.200s; --socket PATH puts this one elsewhere",
                      path);
    ebb_buf_fini(&name);
    return st;
}

/* The socket comes first: without one for us nobody could be asked, who then would count as being there. */
static ebb_status bind_unix(const char *path, const struct sockaddr_un *at, int *fd, ebb_error *err)
{
    struct stat s;
    int other;

    if (lstat(path, &s) == 0 && !S_ISSOCK(s.st_mode))
        return EBB_FAIL(err, EBB_USAGE, "%.200s: exists and is not a socket", path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return EBB_FAIL(err, EBB_IO, "%.200s: no socket: %s", path, strerror(errno));
    if (ebb_connect_unix(path, &other, NULL) != EBB_NOTFOUND) {
        ebb_file_close(other);
        return EBB_FAIL(err, EBB_BUSY, "another program listens at %.200s; --socket PATH puts this one elsewhere",
                        path);
    }
    unlink(path);
    /* The mode of a socket is that of its descriptor when it is bound, so at no moment is it open to others. */
    if (fchmod(*fd, 0600) != 0 || bind(*fd, (const struct sockaddr *)at, sizeof *at) != 0 ||
        chmod(path, 0600) != 0 || listen(*fd, BACKLOG) != 0)
        return EBB_FAIL(err, EBB_IO, "%.200s: %s", path, strerror(errno));
    return EBB_OK;
}

ebb_status ebb_listen_unix(const char *path, int *fd, int *lock, ebb_error *err)
{
    struct sockaddr_un at;
    ebb_status st = make_unix_address(path, &at, err);

    *fd = *lock = -1;
    if (st == EBB_OK)
        st = make_folder_of(path, err);
    if (st == EBB_OK)
        st = lock_place(path, lock, err);
    if (st == EBB_OK)
        st = bind_unix(path, &at, fd, err);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_file_close(*fd);
    ebb_file_close(*lock);
    *fd = *lock = -1;
    return st;
}

/* Of a UNIX socket it is also the time for connect(2).  0: for ever. */
static void set_send_timeout(int fd, int seconds)
{
    const struct timeval t = { .tv_sec = seconds };

    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

ebb_status ebb_connect_unix(const char *path, int *fd, ebb_error *err)
{
    struct sockaddr_un at;
    struct ucred peer;
    socklen_t n = sizeof peer;
    ebb_status st = make_unix_address(path, &at, err);

    *fd = -1;
    if (st != EBB_OK)
        return st;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return EBB_FAIL(err, EBB_IO, "socket: %s", strerror(errno));
    set_send_timeout(*fd, CONNECT_S);
    if (connect(*fd, (struct sockaddr *)&at, sizeof at) != 0)
        st = EBB_FAIL(err, errno == ENOENT || errno == ECONNREFUSED ? EBB_NOTFOUND : EBB_IO, "%.200s: %s", path,
                      errno == EAGAIN ? "that server takes no connections; it may hang" : strerror(errno));
    else if (getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.uid != geteuid())
        st = EBB_FAIL(err, EBB_IO, "%.200s: that server belongs to another user", path);
    set_send_timeout(*fd, 0);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_file_close(*fd);
    *fd = -1;
    return st;
}

/* -- TCP ------------------------------------------------------------------------------------------------- */

static unsigned short port_of(int fd)
{
    union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } at = { .v6 = { 0 } };
    socklen_t n = sizeof at;

    if (getsockname(fd, &at.any, &n) != 0)
        return 0;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

static ebb_status bind_tcp(const struct addrinfo *a, const char *host, unsigned short port, int *fd, ebb_error *err)
{
    int on = 1;

    *fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0)
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (*fd >= 0 && bind(*fd, a->ai_addr, a->ai_addrlen) == 0 && listen(*fd, BACKLOG) == 0)
        return EBB_OK;
    if (errno == EADDRINUSE)
        return EBB_FAIL(err, EBB_BUSY, "port %u of %.100s is already in use; --port N chooses another", port, host);
    return EBB_FAIL(err, EBB_IO, "%.100s, port %u: %s", host, port, strerror(errno));
}

ebb_status ebb_listen_tcp(const char *host, unsigned short *port, int *fd, ebb_error *err)
{
    const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    char port_text[8];
    ebb_status st;

    *fd = -1;
    snprintf(port_text, sizeof port_text, "%u", *port);
    if (getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port_text, &hints, &list) != 0)
        return EBB_FAIL(err, EBB_USAGE,
                        "--host %.100s: is not an IP address; give one of this machine's, such as 127.0.0.1", host);
    st = bind_tcp(list, host, *port, fd, err);
    freeaddrinfo(list);
    if (st != EBB_OK) {
        ebb_file_close(*fd);
        *fd = -1;
    } else {
        *port = port_of(*fd);
    }
    return st;
}

bool ebb_listen_is_everywhere(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* -- From systemd ------------------------------------------------------------------------------------------ */

static bool is_listening(int fd)
{
    socklen_t n = sizeof(int);
    int yes = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &n) == 0 && yes;
}

ebb_status ebb_listen_inherited(int *fd, bool *is_unix, char *host, size_t cap, ebb_error *err)
{
    enum { FIRST = 3 };
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    struct sockaddr_storage at = { 0 };
    socklen_t size = sizeof at;

    *fd = -1;
    if (!pid || !n || strtol(pid, NULL, 10) != (long)getpid())
        return EBB_OK;
    if (strcmp(n, "1") != 0 || !is_listening(FIRST) || getsockname(FIRST, (struct sockaddr *)&at, &size) != 0)
        return EBB_FAIL(err, EBB_USAGE, "what systemd hands over is not one socket that listens; the unit needs one "
                        "ListenStream=");
    *is_unix = at.ss_family == AF_UNIX;
    host[0] = '\0';                              /* also where it cannot be told, which is no loopback */
    if (!*is_unix)
        (void)!getnameinfo((const struct sockaddr *)&at, size, host, (socklen_t)cap, NULL, 0, NI_NUMERICHOST);
    fcntl(FIRST, F_SETFD, FD_CLOEXEC);
    *fd = FIRST;
    return EBB_OK;
}
