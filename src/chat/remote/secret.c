/* Where keys come from (secret.h). */
#include "remote/secret.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/child.h"
#include "os/file.h"
#include "os/paths.h"

enum { LOOK_MS = 50 };

/* The first line of text[0..n) without blanks around; it must be one that a header can carry. */
static ebb_status take_line(const char *text, size_t n, const char *where, char out[EBB_SECRET_BYTES], ebb_error *err)
{
    while (n && strchr(" \t", *text))
        text++, n--;
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n')
            n = i;
    while (n && strchr(" \t\r", text[n - 1]))
        n--;
    if (n == 0)
        return EBB_FAIL(err, EBB_NOTFOUND, "%.200s: there is no key in it", where);
    if (n >= EBB_SECRET_BYTES)
        return EBB_FAIL(err, EBB_USAGE, "%.200s: a key must have fewer than %d bytes", where, EBB_SECRET_BYTES);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 127)
            return EBB_FAIL(err, EBB_USAGE, "%.200s: its first line is not a key: it has blanks or control characters",
                            where);
    memcpy(out, text, n);
    out[n] = '\0';
    return EBB_OK;
}

static ebb_status from_file(const char *name, char out[EBB_SECRET_BYTES], ebb_error *err)
{
    ebb_buf path = { 0 }, text = { 0 };
    struct stat s;
    ebb_status st = ebb_path_expand(name, &path, err);

    if (st == EBB_OK)
        st = ebb_file_slurp(path.data, EBB_SECRET_BYTES, &text, err);
    if (st == EBB_OK && stat(path.data, &s) == 0 && (s.st_mode & 077))
        st = EBB_FAIL(err, EBB_IO, "%s holds a key, and other users can read it: chmod 600 %s", path.data, path.data);
    if (st == EBB_OK)
        st = take_line(ebb_buf_text(&text), text.len, path.data, out, err);
    ebb_buf_wipe(&text);
    ebb_buf_fini(&path);
    return st;
}

static ebb_status from_variable(const char *name, char out[EBB_SECRET_BYTES], ebb_error *err)
{
    const char *value = getenv(name);

    if (!value)
        return EBB_FAIL(err, EBB_NOTFOUND, "the variable %.100s, which should hold the key, is not set", name);
    return take_line(value, strlen(value), name, out, err);
}

/* Read all of the command's output; LIMIT: it is longer than a key. */
static ebb_status read_output(ebb_child *c, ebb_buf *text, ebb_buf *words, bool (*is_stopped)(void *), void *arg,
                              ebb_error *err)
{
    char bytes[1024];

    for (;;) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        ssize_t got;

        if (is_stopped(arg))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
        ebb_child_listen(c, words);
        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        got = read(c->fd, bytes, sizeof bytes);
        if (got > 0 && !ebb_buf_add(text, bytes, (size_t)got))
            return EBB_FAIL(err, EBB_LIMIT, "the command for the key prints more than a key");
        explicit_bzero(bytes, sizeof bytes);
        if (got <= 0)
            return EBB_OK;
    }
}

static ebb_status from_command(const char *command, bool (*is_stopped)(void *), void *arg, char out[EBB_SECRET_BYTES],
                               ebb_error *err)
{
    char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)command, NULL };
    ebb_buf text = { .max = EBB_SECRET_BYTES }, words = { 0 };
    ebb_child c;
    ebb_status st = ebb_child_start(argv, -1, &c, err);
    const char *last;

    if (st != EBB_OK)
        return st;
    shutdown(c.fd, SHUT_WR);
    st = read_output(&c, &text, &words, is_stopped, arg, err);
    ebb_child_listen(&c, &words);
    last = ebb_child_last_line(&words);
    if (st == EBB_OK && text.len == 0 && last)
        st = EBB_FAIL(err, EBB_NOTFOUND, "the command for the key says: %.200s", last);
    else if (st == EBB_OK)
        st = take_line(ebb_buf_text(&text), text.len, "the output of key-command", out, err);
    close(c.fd);
    ebb_child_end(&c);
    ebb_buf_wipe(&text);
    ebb_buf_fini(&words);
    return st;
}

bool ebb_secret_waits(const ebb_engine_entry *e)
{
    ebb_buf path = { 0 };
    struct stat s;
    bool waits = !e->key_file && !e->key_variable && e->key_command;

    if (e->key_file && ebb_path_expand(e->key_file, &path, NULL) == EBB_OK)
        waits = stat(path.data, &s) == 0 && !S_ISREG(s.st_mode);
    ebb_buf_fini(&path);
    return waits;
}

ebb_status ebb_secret_get(const ebb_engine_entry *e, bool (*is_stopped)(void *arg), void *arg,
                          char out[EBB_SECRET_BYTES], ebb_error *err)
{
    out[0] = '\0';
    if (e->key_file)
        return from_file(e->key_file, out, err);
    if (e->key_variable)
        return from_variable(e->key_variable, out, err);
    if (e->key_command)
        return from_command(e->key_command, is_stopped, arg, out, err);
    return e->key ? take_line(e->key, strlen(e->key), "key", out, err) : EBB_OK;
}
