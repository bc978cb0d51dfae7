/* Texts of the statuses, and the one place that fills an ebb_error. */
#include "ebb/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const status_texts[EBB_STATUS_COUNT] = {
#define X(name, text) [EBB_##name] = text,
    EBB_STATUS_MAP(X)
#undef X
};

const char *ebb_status_text(ebb_status status)
{
    return (unsigned)status < EBB_STATUS_COUNT ? status_texts[status] : "unknown status";
}

ebb_status ebb_error_set(ebb_error *err, ebb_status code, const char *where, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    if (!err)
        return code;
    err->code = code;
    err->sys_errno = code == EBB_IO || code == EBB_NOMEM ? saved : 0;
    err->where = where;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    for (char *p = err->msg; *p; p++)            /* a file name may hold anything */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    errno = saved;
    return code;
}
