/* Typed text with marks around what was not typed (marked.h). */
#include "edit/marked.h"

#include <string.h>

static bool begins_with_mark(const char *s, size_t n, const char *mark)
{
    return n >= EBB_MARK_BYTES && memcmp(s, mark, EBB_MARK_BYTES) == 0;
}

bool ebb_marked_begins(const char *s, size_t n)
{
    return begins_with_mark(s, n, EBB_MARK_BEGIN);
}

bool ebb_marked_ends(const char *s, size_t n)
{
    return begins_with_mark(s, n, EBB_MARK_END);
}

size_t ebb_marked_next(const char *s, size_t n)
{
    const char *at = s, *first;

    while ((first = at < s + n ? memchr(at, EBB_MARK_BEGIN[0], n - (size_t)(at - s)) : NULL) != NULL) {
        size_t left = n - (size_t)(first - s);

        if (ebb_marked_begins(first, left) || ebb_marked_ends(first, left))
            return (size_t)(first - s);
        at = first + 1;
    }
    return n;
}

bool ebb_marked_add_plain(ebb_buf *out, const char *s, size_t n)
{
    while (n > 0) {
        size_t len = ebb_marked_next(s, n), skip = len < n ? EBB_MARK_BYTES : 0;

        ebb_buf_add(out, s, len);
        s += len + skip;
        n -= len + skip;
    }
    return !out->failed;
}
