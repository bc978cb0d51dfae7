/* The version, texts of the statuses, and the one place that fills an ebb_error. */
#include "ebb/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

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

/* A file name may hold anything; what was cut to its room ends with a whole character. */
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

ebb_status ebb_error_set(ebb_error *err, ebb_status code, const char *where, const char *fmt, ...)
{
    int saved = errno, n;
    va_list ap;

    if (!err)
        return code;
    err->code = code;
    err->sys_errno = code == EBB_IO || code == EBB_NOMEM ? saved : 0;
    err->where = where;
    va_start(ap, fmt);
    n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    make_visible(err->msg, n >= (int)sizeof err->msg);
    errno = saved;
    return code;
}
