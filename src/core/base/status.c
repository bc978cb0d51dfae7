/* The version, texts of the statuses, and the one place that fills an ebb_error. */
#include "ebb/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { LONGEST = 8192 };         /* of a line before it is cut to its room: a path, and what is said of it */

static const char *const status_texts[EBB_STATUS_COUNT] = {
#define X(name, text) [EBB_##name] = text,
    EBB_STATUS_MAP(X)
#undef X
};

const char *ebb_version(void)
{
    return EBB_VERSION;
}

const char *ebb_status_text(ebb_status status)
{
    return (unsigned)status < EBB_STATUS_COUNT ? status_texts[status] : "unknown status";
}

/* A file name may hold anything; a character that was cut off at the end is left out. */
static void make_visible(char *msg, bool is_cut)
{
    size_t n = strlen(msg), to = 0;
    uint32_t cp;

    for (size_t at = 0, used; at < n; at += used) {
        used = ebb_utf8_decode(msg + at, n - at, &cp);
        if (used == 0 && is_cut)
            break;
        if (used == 0 || !ebb_utf8_is_visible(cp)) {
            msg[to++] = '?';
            used = used ? used : n - at;
            continue;
        }
        memmove(msg + to, msg + at, used);
        to += used;
    }
    msg[to] = '\0';
}

/* What has no room loses its middle, which is a file's name in most cases: the reason stands behind it. */
static void cut_middle(char *msg, size_t room)
{
    static const char gap[] = "...";
    size_t n = strlen(msg), tail = (room - sizeof gap) / 2, head = room - sizeof gap - tail;

    if (n < room)
        return;
    head = ebb_utf8_cut(msg, n, head);
    while (((unsigned char)msg[n - tail] & 0xC0) == 0x80)
        tail--;
    memmove(msg + head + sizeof gap - 1, msg + n - tail, tail + 1);
    memcpy(msg + head, gap, sizeof gap - 1);
}

ebb_status ebb_error_set(ebb_error *err, ebb_status code, const char *where, const char *fmt, ...)
{
    char whole[LONGEST];
    int saved = errno, n;
    va_list ap;

    if (!err)
        return code;
    err->code = code;
    err->sys_errno = code == EBB_IO || code == EBB_NOMEM ? saved : 0;
    err->where = where;
    va_start(ap, fmt);
    n = vsnprintf(whole, sizeof whole, fmt, ap);
    va_end(ap);
    make_visible(whole, n >= LONGEST);
    cut_middle(whole, sizeof err->msg);
    strcpy(err->msg, whole);
    errno = saved;
    return code;
}
