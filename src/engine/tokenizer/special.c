/* The index of special texts (special.h). */
#include "tokenizer/special.h"

#include <stdlib.h>
#include <string.h>

#define ANY (EBB_TOK_IS_CONTROL | EBB_TOK_IS_UNKNOWN | EBB_TOK_IS_USER)

static bool is_special(const ebb_tok_entry *e)
{
    return (e->attr & ANY) && e->len > 0;
}

static int compare_texts(const void *a, const void *b, void *arg)
{
    const ebb_tok_table *t = arg;
    const ebb_tok_entry *x = &t->entries[*(const ebb_token *)a], *y = &t->entries[*(const ebb_token *)b];
    int c = memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len);

    if (c == 0)
        c = (x->len > y->len) - (x->len < y->len);
    return c ? c : (x > y) - (x < y);
}

static bool is_same_text(const ebb_tok_entry *x, const ebb_tok_entry *y)
{
    return x->len == y->len && memcmp(x->ptr, y->ptr, x->len) == 0;
}

/* Of equal texts, the lowest id is the one that is found. */
static void drop_twins(ebb_tok_special *s)
{
    const ebb_tok_entry *entries = s->table->entries;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (n == 0 || !is_same_text(&entries[s->ids[n - 1]], &entries[s->ids[i]]))
            s->ids[n++] = s->ids[i];
    s->n = n;
}

ebb_status ebb_tok_special_init(ebb_tok_special *s, const ebb_tok_table *table, ebb_error *err)
{
    size_t n = 0;

    memset(s, 0, sizeof *s);
    s->table = table;
    for (size_t i = 0; i < table->n; i++)
        n += is_special(&table->entries[i]);
    s->ids = malloc((n + 1) * sizeof *s->ids);
    if (!s->ids)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an index of %zu special tokens", n);
    for (size_t i = 0; i < table->n; i++)
        if (is_special(&table->entries[i])) {
            s->ids[s->n++] = (ebb_token)i;
            s->begins[(unsigned char)table->entries[i].ptr[0]] = true;
        }
    qsort_r(s->ids, s->n, sizeof *s->ids, compare_texts, (void *)table);
    drop_twins(s);
    return EBB_OK;
}

void ebb_tok_special_fini(ebb_tok_special *s)
{
    free(s->ids);
    memset(s, 0, sizeof *s);
}

static unsigned byte_of(const ebb_tok_special *s, size_t i, size_t depth)
{
    return (unsigned char)s->table->entries[s->ids[i]].ptr[depth];
}

/* In ids[lo..hi), whose texts agree in their first `depth` bytes and are
 * longer: the first whose next byte is at least `byte`. */
static size_t lower_bound(const ebb_tok_special *s, size_t lo, size_t hi, size_t depth, unsigned byte)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (byte_of(s, mid, depth) < byte)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Of ids[*lo..*hi), which is as lower_bound() wants it: those whose next byte is `byte`; false: there are none.  Where
 * all have the same one nothing is searched; else there are two searches, of a dozen looks at texts each in a large
 * vocabulary, and what is spent grows with that. */
static bool narrow(const ebb_tok_special *s, ebb_tok_search *q, size_t *lo, size_t *hi, size_t depth, unsigned byte)
{
    if (*lo == *hi)
        return false;
    if (byte_of(s, *lo, depth) == byte_of(s, *hi - 1, depth))
        return byte_of(s, *lo, depth) == byte;
    ebb_tok_spend(&q->budget, (uint64_t)(64 - __builtin_clzll(*hi - *lo)));
    *lo = lower_bound(s, *lo, *hi, depth, byte);
    *hi = lower_bound(s, *lo, *hi, depth, byte + 1);
    return *lo < *hi;
}

/* Which tokens count: in a quoted text the user-defined ones; in another those that elsewhere are, too; all. */
typedef enum token_kinds { QUOTED, USER_DEFINED, ALL } token_kinds;

static bool counts(const ebb_tok_entry *e, token_kinds kinds)
{
    return kinds == ALL || !(e->attr & (EBB_TOK_IS_CONTROL | EBB_TOK_IS_UNKNOWN)) ||
           (kinds == USER_DEFINED && (e->attr & EBB_TOK_IS_OPEN));
}

/* The longest special text that q->text[at..at + n) begins with, -1 if none. */
static ebb_token match_longest(const ebb_tok_special *s, ebb_tok_search *q, size_t at, size_t n, token_kinds kinds)
{
    size_t lo = 0, hi = s->n;
    ebb_token best = -1;

    for (size_t depth = 0; depth < n && ebb_tok_spend(&q->budget, 1); depth++) {
        unsigned byte = (unsigned char)q->text[at + depth];
        const ebb_tok_entry *e;

        if (!narrow(s, q, &lo, &hi, depth, byte))
            break;
        e = &s->table->entries[s->ids[lo]];
        if (e->len > depth + 1)
            continue;
        if (counts(e, kinds))
            best = s->ids[lo];
        lo++;                                    /* a text that ends here sorts first */
    }
    return best;
}

/* Bytes from `at` up to the next quoted range. */
static size_t free_bytes(ebb_tok_search *q, size_t at)
{
    while (q->n_quoted > 0 && q->quoted->end <= at) {
        q->quoted++;
        q->n_quoted--;
    }
    if (q->n_quoted == 0)
        return q->n - at;
    return q->quoted->begin > at ? q->quoted->begin - at : 0;
}

static ebb_token match_at(const ebb_tok_special *s, ebb_tok_search *q, size_t at)
{
    size_t n = q->n - at, n_free = free_bytes(q, at);
    token_kinds kinds = q->control ? ALL : USER_DEFINED;
    ebb_token any = match_longest(s, q, at, n_free, kinds), user;

    if (n_free == n)
        return any;
    user = match_longest(s, q, at, n, QUOTED);
    if (any < 0 || user < 0)
        return any < 0 ? user : any;
    return s->table->entries[user].len > s->table->entries[any].len ? user : any;
}

size_t ebb_tok_special_next(const ebb_tok_special *s, ebb_tok_search *q, ebb_token *id)
{
    *id = -1;
    for (size_t i = q->at; s->n > 0 && i < q->n; i++) {
        if (!s->begins[(unsigned char)q->text[i]])
            continue;
        *id = match_at(s, q, i);
        if (*id >= 0)
            return i - q->at;
    }
    return q->n - q->at;
}
