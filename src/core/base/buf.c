/* A growing byte buffer with a limit (buf.h). */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ebb_buf_fini(ebb_buf *b)
{
    free(b->data);
    memset(b, 0, sizeof *b);
}

void ebb_buf_wipe(ebb_buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);         /* a longer text may have been there before */
    ebb_buf_fini(b);
}

void ebb_buf_clear(ebb_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

bool ebb_buf_reserve(ebb_buf *b, size_t extra)
{
    size_t need, cap;
    char *data;

    if (b->failed)
        return false;
    if (extra > SIZE_MAX / 2 - b->len - 1 || (b->max && extra > b->max - b->len)) {
        b->failed = true;
        return false;
    }
    need = b->len + extra + 1;
    if (need <= b->cap)
        return true;
    cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap += cap / 2;
    data = realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    b->data[b->len] = '\0';
    return true;
}

bool ebb_buf_insert(ebb_buf *b, size_t at, const void *bytes, size_t n)
{
    if (!ebb_buf_reserve(b, n))
        return false;
    if (n == 0)
        return true;
    memmove(b->data + at + n, b->data + at, b->len - at);
    memcpy(b->data + at, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return true;
}

bool ebb_buf_add(ebb_buf *b, const void *bytes, size_t n)
{
    return ebb_buf_insert(b, b->len, bytes, n);
}

bool ebb_buf_addc(ebb_buf *b, char c)
{
    return ebb_buf_add(b, &c, 1);
}

bool ebb_buf_adds(ebb_buf *b, const char *s)
{
    return ebb_buf_add(b, s, strlen(s));
}

bool ebb_buf_addf(ebb_buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !ebb_buf_reserve(b, (size_t)n))
        return false;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return true;
}

void ebb_buf_remove(ebb_buf *b, size_t at, size_t n)
{
    if (n == 0)
        return;
    memmove(b->data + at, b->data + at + n, b->len - at - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

const char *ebb_buf_text(const ebb_buf *b)
{
    return b->data ? b->data : "";
}

char *ebb_buf_take(ebb_buf *b)
{
    char *data = b->data ? b->data : calloc(1, 1);
    size_t max = b->max;

    memset(b, 0, sizeof *b);
    b->max = max;
    return data;
}
