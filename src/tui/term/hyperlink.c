/* Addresses behind cells (hyperlink.h). */
#include "term/hyperlink.h"

#include <string.h>
#include <strings.h>

bool ebb_hyperlink_is_safe(const char *address, size_t n)
{
    static const char *const schemes[] = { "https://", "http://", "mailto:" };
    bool is_known = false;

    if (n > EBB_HYPERLINK_BYTES)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)address[i] <= ' ' || (unsigned char)address[i] >= 0x7F)
            return false;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        is_known |= n > strlen(schemes[i]) && strncasecmp(address, schemes[i], strlen(schemes[i])) == 0;
    return is_known;
}

/* FNV-1a; never 0. */
static uint32_t hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h ? h : 1;
}

static size_t find(const ebb_hyperlinks *l, uint32_t id)
{
    size_t i = 0;

    while (i < l->n && l->id[i] != id)
        i++;
    return i;
}

uint32_t ebb_hyperlink_add(ebb_hyperlinks *l, const char *address, size_t n)
{
    uint32_t id = hash(address, n);
    size_t i = find(l, id), at = l->text.len;

    if (!ebb_hyperlink_is_safe(address, n))
        return 0;
    if (i < l->n) {                              /* two addresses of one number: the later one is none */
        const char *there = l->text.data + l->at[i];
        return strlen(there) == n && memcmp(there, address, n) == 0 ? id : 0;
    }
    if (l->n == EBB_HYPERLINKS || !ebb_buf_add(&l->text, address, n) || !ebb_buf_addc(&l->text, '\0'))
        return 0;
    l->id[l->n] = id;
    l->at[l->n++] = at;
    return id;
}

void ebb_hyperlinks_clear(ebb_hyperlinks *l)
{
    l->n = 0;
    ebb_buf_clear(&l->text);
}

void ebb_hyperlinks_fini(ebb_hyperlinks *l)
{
    l->n = 0;
    ebb_buf_fini(&l->text);
}

/* The number goes along as `id`, so that a terminal lights up all rows of a link that is wrapped. */
void ebb_hyperlink_switch(const ebb_hyperlinks *l, uint32_t id, ebb_buf *out)
{
    size_t i = id ? find(l, id) : l->n;

    if (i < l->n)
        ebb_buf_addf(out, "\033]8;id=%x;%s\033\\", id, l->text.data + l->at[i]);
    else
        ebb_buf_adds(out, "\033]8;;\033\\");
}
