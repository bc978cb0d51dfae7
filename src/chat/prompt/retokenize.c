/* Other words for an answer (retokenize.h). */
#include "prompt/retokenize.h"

#include <stdlib.h>
#include <string.h>

#include "prompt/answer_words.h"
#include "prompt/prompt.h"

#define PRIMING 4                /* ids before an answer that may end in half a character */

static bool follows_at(const char *text, size_t n_text, size_t at, const char *s, size_t n)
{
    return at <= n_text && n <= n_text - at && (n == 0 || memcmp(text + at, s, n) == 0);
}

/* The detokenizer stands where the answer begins. */
static void prime(ebb_detok *d, const ebb_retokenization *r)
{
    size_t n;

    ebb_detok_flush(d, &n);
    for (size_t i = r->n_before > PRIMING ? r->n_before - PRIMING : 0; i < r->n_before; i++)
        ebb_detok_push(d, r->before[i], &n);
}

/* Where in the answer's text its ids end: ends[i] is the text of the first i.  A mark that the old text was written
 * without has none, unless the new one has it there. */
static void find_token_ends(const ebb_model *m, ebb_detok *d, const ebb_retokenization *r, size_t *ends)
{
    size_t n, at_old = 0;

    prime(d, r);
    ends[0] = 0;
    for (size_t i = 0; i < r->n_old; i++) {
        const char *s = ebb_detok_push(d, r->old[i], &n);

        if (!ebb_model_is_control(m, r->old[i]) || follows_at(r->old_text, r->n_old_text, at_old, s, n))
            at_old += n;
        else if (!follows_at(r->text, r->n_text, ends[i], s, n))
            n = 0;
        /* Behind the first difference nothing counts, nor where the turn ended: it goes on now. */
        ends[i + 1] = !ebb_model_is_eog(m, r->old[i]) && follows_at(r->text, r->n_text, ends[i], s, n) ? ends[i] + n
                                                                                                       : SIZE_MAX;
    }
}

/* Do r->ids[0..n_ids), of which n_kept are old, spell r->text[0..n)? */
static bool ids_spell_text(const ebb_model *m, ebb_detok *d, const ebb_retokenization *r, const size_t *ends,
                           size_t n_kept, size_t n_ids, size_t n)
{
    size_t at = 0, len;
    const char *s;
    bool same = true;

    prime(d, r);
    for (size_t i = 0; same && i <= n_ids; i++, at += len) {
        s = i < n_ids ? ebb_detok_push(d, r->ids[i], &len) : ebb_detok_flush(d, &len);
        if (i < n_kept && ends[i] == ends[i + 1] && ebb_model_is_control(m, r->ids[i]))
            len = 0;
        same = follows_at(r->text, n, at, s, len);
    }
    return same && at == n;
}

static ebb_answer_words find_words(const ebb_model *m, const ebb_retokenization *r)
{
    ebb_thought_begin begin = r->n_before == 0 ? EBB_THOUGHT_UNSURE
                              : ebb_prompt_opens_thought(m, r->before, r->n_before) ? EBB_THOUGHT_OPENED
                              : EBB_THOUGHT_UNOPENED;

    return ebb_answer_find_words(r->text, r->n_text, begin);
}

/* Those behind `at`, from there. */
static ebb_answer_words words_behind(const ebb_answer_words *all, size_t at)
{
    ebb_answer_words w = { .n = 0 };

    for (size_t i = 0; i < all->n; i++) {
        ebb_text_range r = all->list[i];
        if (r.end > at)
            w.list[w.n++] = (ebb_text_range){ r.begin > at ? r.begin - at : 0, r.end - at };
    }
    return w;
}

/* The first k old ids and new ids of the rest of the text; false: they spell another text. */
static bool retokenize_from(const ebb_model *m, ebb_detok *d, ebb_retokenization *r, const size_t *ends,
                            const ebb_answer_words *words, size_t k)
{
    const size_t at = ends[k];
    const ebb_answer_words rest = words_behind(words, at);
    const ebb_tokenize_opts typed = { .flags = EBB_TOK_SPECIAL | EBB_TOK_INSIDE, .quoted = rest.list,
                                      .n_quoted = rest.n };
    size_t n = 0, capacity = r->n_old + r->n_text + 8;

    if (k > 0)
        memcpy(r->ids, r->old, k * sizeof *r->ids);
    if (at < r->n_text && ebb_model_tokenize_with(m, r->text + at, r->n_text - at, &typed, r->ids + k, capacity - k, &n,
                                                  NULL) != EBB_OK)
        return false;
    r->n_kept = k;
    r->n_ids = k + n;
    return r->n_ids <= capacity && ids_spell_text(m, d, r, ends, k, r->n_ids, r->n_text);
}

/* Few tries: a character in pieces has no more than four. */
static ebb_status retokenize_text(const ebb_model *m, ebb_detok *d, ebb_retokenization *r, size_t *ends, ebb_error *err)
{
    const ebb_answer_words words = find_words(m, r);
    size_t k = 0, last;

    find_token_ends(m, d, r, ends);
    while (k < r->n_old && ends[k + 1] != SIZE_MAX)
        k++;
    last = k;
    for (size_t i = 0; i <= PRIMING && i <= last; i++)
        if (retokenize_from(m, d, r, ends, &words, last - i))
            return EBB_OK;
    for (; k > 0; k--) {                         /* no ids for the rest: up to the last token that fits */
        memcpy(r->ids, r->old, k * sizeof *r->ids);
        if (ids_spell_text(m, d, r, ends, k, k, ends[k])) {
            r->n_ids = r->n_kept = k;
            r->n_text = ends[k];
            return EBB_OK;
        }
    }
    return retokenize_from(m, d, r, ends, &words, 0) || r->n_ids > 0 ? EBB_OK
           : EBB_FAIL(err, EBB_USAGE, "the model has no tokens for these words");
}

ebb_status ebb_retokenize(const ebb_model *m, ebb_retokenization *r, ebb_error *err)
{
    ebb_detok *d = ebb_detok_new(m, false);
    size_t *ends = calloc(r->n_old + 1, sizeof *ends);
    ebb_status st;

    r->ids = malloc((r->n_old + r->n_text + 8) * sizeof *r->ids);
    if (d && ends && r->ids)
        st = retokenize_text(m, d, r, ends, err);
    else
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to cut the answer");
    ebb_detok_free(d);
    free(ends);
    return st;
}
