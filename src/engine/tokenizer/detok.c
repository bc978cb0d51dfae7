/* Streams from ids to text that is always valid UTF-8 (ebb/model.h). */
#include <stdlib.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

struct ebb_detok {
    const ebb_tokenizer *tokenizer;
    bool                 special;
    ebb_buf              bytes;  /* the beginning of a character, then the newest piece */
    ebb_buf              text;   /* what was given out last */
};

enum { HELD = 4, REPLACED = 3 };         /* bytes of the beginning of a character, and of U+FFFD */

/* No piece is lost for want of memory later: there is room for the longest. */
ebb_detok *ebb_tokenizer_detok(const ebb_tokenizer *t, bool special)
{
    ebb_detok *d = calloc(1, sizeof *d);
    size_t most = ebb_tokenizer_longest_piece(t) + HELD;

    if (!d)
        return NULL;
    d->tokenizer = t;
    d->special = special;
    if (ebb_buf_reserve(&d->bytes, most) && ebb_buf_reserve(&d->text, REPLACED * most))
        return d;
    ebb_detok_free(d);
    return NULL;
}

void ebb_detok_free(ebb_detok *d)
{
    if (!d)
        return;
    ebb_buf_fini(&d->bytes);
    ebb_buf_fini(&d->text);
    free(d);
}

/* A surrogate cut off behind its second byte is sure to be invalid, but is held
 * back until the third has come: so do the decoders that tests compare with. */
static bool is_cut_surrogate(const char *s, size_t n)
{
    return n == 2 && (unsigned char)s[0] == 0xED && (unsigned char)s[1] >= 0xA0 && (unsigned char)s[1] <= 0xBF;
}

/* Bytes of s[0..n) that end with a character or with something that can be none. */
static size_t whole_chars(const char *s, size_t n)
{
    size_t at = 0, used;
    uint32_t cp;

    while (at < n && !is_cut_surrogate(s + at, n - at) && (used = ebb_utf8_decode(s + at, n - at, &cp)) > 0)
        at += used;
    return at;
}

/* Give out the first n held bytes. */
static const char *give(ebb_detok *d, size_t n, size_t *n_bytes)
{
    ebb_buf_clear(&d->text);
    ebb_utf8_add_valid(&d->text, ebb_buf_text(&d->bytes), n);
    ebb_buf_remove(&d->bytes, 0, n);
    if (n_bytes)
        *n_bytes = d->text.len;
    return ebb_buf_text(&d->text);
}

const char *ebb_detok_push(ebb_detok *d, ebb_token id, size_t *n_bytes)
{
    size_t n = ebb_tokenizer_piece(d->tokenizer, id, d->special, NULL, 0);

    if (n > 0 && ebb_buf_reserve(&d->bytes, n)) {
        ebb_tokenizer_piece(d->tokenizer, id, d->special, d->bytes.data + d->bytes.len, n);
        d->bytes.len += n;
        d->bytes.data[d->bytes.len] = '\0';
    }
    return give(d, whole_chars(ebb_buf_text(&d->bytes), d->bytes.len), n_bytes);
}

const char *ebb_detok_flush(ebb_detok *d, size_t *n_bytes)
{
    return give(d, d->bytes.len, n_bytes);
}
