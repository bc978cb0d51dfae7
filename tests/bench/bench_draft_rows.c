/* Which share of a conversation's tokens lies outside the rows of the output matrix that a draft head multiplies by
 * (draft_rows.h): a token outside is never drafted.
 *
 * Usage: bench_draft_rows VOCABULARY.gguf < CONVERSATIONS
 * The conversations are separated by a byte 0x1E; every fourth is followed.  "cold": nothing was counted before each of
 * them; "known": the others are the reference text. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "ebb/engine.h"
#include "speculate/draft_rows.h"

#define FIRST    300u
#define FOLLOWED 4u              /* one conversation in so many */
#define END      0x1E

typedef struct tally { uint64_t n, n_in, n_first, n_first_in; } tally;

typedef struct text { const ebb_token *ids; size_t n; } text;

static bool is_chosen(const ebb_draft_rows *d, ebb_token id)
{
    uint32_t low = 0, high = d->n_chosen;

    while (low < high) {
        uint32_t mid = (low + high) / 2;

        if (d->chosen[mid] < (uint32_t)id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < d->n_chosen && d->chosen[low] == (uint32_t)id;
}

/* As the head does: choose before a token, learn it behind. */
static void follow(ebb_draft_rows *d, const text *t, tally *sum)
{
    for (size_t i = 0; i < t->n; i++) {
        bool in = is_chosen(d, t->ids[i]);

        sum->n++;
        sum->n_in += in;
        sum->n_first += i < FIRST;
        sum->n_first_in += i < FIRST && in;
        ebb_draft_rows_learn(d, t->ids + i, 1);
        ebb_draft_rows_update(d);
    }
}

static double percent_out(uint64_t n_in, uint64_t n)
{
    return n ? 100.0 * (double)(n - n_in) / (double)n : 0;
}

/* The newest EBB_REFERENCE_MOST tokens of the conversations that are not followed. */
static void learn_others(ebb_draft_rows *d, const text *texts, size_t n)
{
    size_t left = EBB_REFERENCE_MOST;

    for (size_t i = n; i > 0 && left > 0; i--) {
        size_t n_ids = texts[i - 1].n < left ? texts[i - 1].n : left;

        if ((i - 1) % FOLLOWED == 0)
            continue;
        ebb_draft_rows_learn(d, texts[i - 1].ids, n_ids);
        left -= n_ids;
    }
    ebb_draft_rows_update(d);
}

static void measure(uint32_t n_vocab, bool is_known, const text *texts, size_t n)
{
    tally sum = { 0 };
    uint64_t n_rows = 0;
    size_t n_followed = 0;

    for (size_t i = 0; i < n; i += FOLLOWED, n_followed++) {
        ebb_draft_rows d;

        if (ebb_draft_rows_init(&d, n_vocab)) {
            if (is_known)
                learn_others(&d, texts, n);
            n_rows += d.n_chosen;
            follow(&d, &texts[i], &sum);
        }
        ebb_draft_rows_fini(&d);
    }
    printf("%s: %.0f rows, %.2f %% of %llu tokens outside; of the first %u tokens %.2f\n", is_known ? "known" : "cold",
           (double)n_rows / (double)n_followed, percent_out(sum.n_in, sum.n), (unsigned long long)sum.n, FIRST,
           percent_out(sum.n_first_in, sum.n_first));
}

static size_t tokenize_all(const ebb_model *m, const ebb_buf *in, ebb_token *ids, text *out)
{
    size_t at = 0, n = 0, used = 0, n_ids;

    while (at < in->len) {
        size_t end = at;

        while (end < in->len && in->data[end] != END)
            end++;
        if (ebb_model_tokenize(m, in->data + at, end - at, 0, ids + used, in->len - used, &n_ids, NULL) == EBB_OK) {
            out[n++] = (text){ ids + used, n_ids };
            used += n_ids;
        }
        at = end + 1;
    }
    return n;
}

int main(int argc, char **argv)
{
    ebb_model *m = NULL;
    ebb_buf in = { 0 };
    ebb_error err = { 0 };
    char piece[4096];
    size_t n_read, n_texts = 1;
    ebb_token *ids;
    text *texts;

    if (argc != 2 || ebb_model_open(argv[1], &m, &err) != EBB_OK) {
        fprintf(stderr, "%s\n", argc == 2 ? err.msg : "bench_draft_rows VOCABULARY.gguf < CONVERSATIONS");
        return argc == 2 ? 1 : 2;
    }
    while ((n_read = fread(piece, 1, sizeof piece, stdin)) > 0)
        ebb_buf_add(&in, piece, n_read);
    for (size_t i = 0; i < in.len; i++)
        n_texts += in.data[i] == END;
    ids = calloc(in.len + 1, sizeof *ids);
    texts = calloc(n_texts, sizeof *texts);
    if (ids && texts) {
        uint32_t n_vocab = ebb_model_get_info(m)->n_vocab;
        size_t n = tokenize_all(m, &in, ids, texts);

        printf("%s: %u tokens in the vocabulary, %zu conversations\n", argv[1], n_vocab, n);
        measure(n_vocab, false, texts, n);
        measure(n_vocab, true, texts, n);
    }
    free(ids);
    free(texts);
    ebb_buf_fini(&in);
    ebb_model_close(m);
    return 0;
}
