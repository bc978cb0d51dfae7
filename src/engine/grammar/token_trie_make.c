/* How the trie of a vocabulary is made (token_trie.h). */
#include "grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"

/* Longer ones are never chosen: the stack of states has a level for each byte. */
enum { MOST_TOKEN_BYTES = 1024 };

typedef struct token_text {
    const char *text;
    uint32_t    n;
    ebb_token   id;
} token_text;

static int compare_texts(const void *a, const void *b)
{
    const token_text *x = a, *y = b;
    int c = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);

    if (c != 0)
        return c;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_text_token(const ebb_model *m, ebb_token id)
{
    return !ebb_model_is_eog(m, id) && !ebb_model_is_control(m, id);
}

/* The texts of all tokens, one behind the other. */
static bool gather_texts(ebb_token_trie *t, const ebb_model *m)
{
    ebb_buf all = { 0 };

    for (uint32_t id = 0; id < t->n_vocab; id++) {
        size_t n = is_text_token(m, (ebb_token)id) ? ebb_model_piece(m, (ebb_token)id, false, NULL, 0) : 0;

        t->at[id] = (uint32_t)all.len;
        if (n > 0 && n <= MOST_TOKEN_BYTES && ebb_buf_reserve(&all, n)) {
            ebb_model_piece(m, (ebb_token)id, false, all.data + all.len, n);
            all.len += n;
        }
        if (ebb_model_is_eog(m, (ebb_token)id)) {
            ebb_token *p = realloc(t->ends, (t->n_ends + 1) * sizeof *p);
            if (!p)
                all.failed = true;
            else
                (t->ends = p)[t->n_ends++] = (ebb_token)id;
        }
    }
    t->at[t->n_vocab] = (uint32_t)all.len;
    if (all.failed || !ebb_buf_reserve(&all, 1)) {
        ebb_buf_fini(&all);
        return false;
    }
    t->text = ebb_buf_take(&all);
    return t->text != NULL;
}

static token_text *sort_texts(ebb_token_trie *t)
{
    token_text *list = malloc((t->n_vocab + 1) * sizeof *list);

    for (uint32_t id = 0; list && id < t->n_vocab; id++)
        if (t->at[id + 1] > t->at[id])
            list[t->n_tokens++] = (token_text){ t->text + t->at[id], t->at[id + 1] - t->at[id], (ebb_token)id };
    if (list)
        qsort(list, t->n_tokens, sizeof *list, compare_texts);
    return list;
}

static size_t common_bytes(const token_text *a, const token_text *b)
{
    size_t n = 0;

    while (n < a->n && n < b->n && a->text[n] == b->text[n])
        n++;
    return n;
}

/* open[d] is the node of depth d + 1 on the path to the token before: whatever is not on the next path ends. */
static bool build_nodes(ebb_token_trie *t, const token_text *list)
{
    uint32_t open[MOST_TOKEN_BYTES], depth = 0;
    size_t cap = 0;

    for (uint32_t i = 0; i < t->n_tokens; i++) {
        size_t same = i ? common_bytes(&list[i - 1], &list[i]) : 0;

        while (depth > same)
            t->nodes[open[--depth]].end = t->n_nodes;
        for (; depth < list[i].n; depth++) {
            ebb_trie_node *p = ebb_grow(t->nodes, t->n_nodes, &cap, sizeof *p);
            if (!p)
                return false;
            t->nodes = p;
            open[depth] = t->n_nodes;
            p[t->n_nodes++] = (ebb_trie_node){ .first = i, .depth = (uint16_t)(depth + 1),
                                               .byte = (uint8_t)list[i].text[depth] };
        }
        t->depth = depth > t->depth ? depth : t->depth;
        t->tokens[i] = list[i].id;
    }
    while (depth > 0)
        t->nodes[open[--depth]].end = t->n_nodes;
    return true;
}

/* A node on the way to a token begins with the same index as what is below it: its own are none. */
static bool close_nodes(ebb_token_trie *t)
{
    ebb_trie_node *p = realloc(t->nodes, (t->n_nodes + 1) * sizeof *p);

    if (!p)
        return false;
    t->nodes = p;
    p[t->n_nodes] = (ebb_trie_node){ .first = t->n_tokens, .end = t->n_nodes };
    return true;
}

ebb_token_trie *ebb_token_trie_new(const ebb_model *m)
{
    ebb_token_trie *t = calloc(1, sizeof *t);
    token_text *list = NULL;
    bool ok;

    if (!t)
        return NULL;
    t->n_owners = 1;
    t->n_vocab = ebb_model_get_info(m)->n_vocab;
    t->at = calloc(t->n_vocab + 1, sizeof *t->at);
    ok = t->at && gather_texts(t, m) && (list = sort_texts(t)) != NULL;
    t->tokens = ok ? malloc((t->n_tokens + 1) * sizeof *t->tokens) : NULL;
    ok = t->tokens && build_nodes(t, list) && close_nodes(t);
    free(list);
    if (ok)
        return t;
    ebb_token_trie_free(t);
    return NULL;
}
