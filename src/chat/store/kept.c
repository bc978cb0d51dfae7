/* What is kept, to tell what is not (kept.h). */
#include "store/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "ebb/experimental/kv_cache.h"
#include "store/sealed_kv.h"
#include "store/title.h"

enum { RUN = 8, ABOVE_MAX = 64 };

static bool add_hash(uint64_t **list, size_t *n, size_t *cap, const void *data, size_t n_data)
{
    uint64_t *p = ebb_grow(*list, *n, cap, sizeof *p);

    if (!p)
        return false;
    *list = p;
    p[(*n)++] = ebb_hash_table(data, n_data);
    return true;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool has_hash(const uint64_t *list, size_t n, const void *data, size_t n_data)
{
    uint64_t h = ebb_hash_table(data, n_data);

    return n > 0 && bsearch(&h, list, n, sizeof h, by_value) != NULL;
}

/* The last ids above a message: its own first runs begin there.  Of an imported conversation no message has any; what
 * is missed of a stranger one is computed again. */
static size_t gather_ids_above(const ebb_node *node, int32_t out[RUN - 1])
{
    size_t n = 0, n_above = 0;

    for (const ebb_node *a = node->parent; a && n < RUN - 1 && n_above++ < ABOVE_MAX; a = a->parent)
        for (size_t i = a->m.n_ids; i > 0 && n < RUN - 1; i--)
            out[RUN - 2 - n++] = a->m.ids[i - 1];
    memmove(out, out + RUN - 1 - n, n * sizeof *out);
    return n;
}

/* As it is, and as it was typed: without the files that went with it. */
static bool add_question(ebb_kept *k, const char *text, size_t n)
{
    size_t at = ebb_title_own_words(text, n);

    return add_hash(&k->questions, &k->n_questions, &k->cap_questions, text, n) &&
           (at == 0 || add_hash(&k->questions, &k->n_questions, &k->cap_questions, text + at, n - at));
}

static bool add_kept_node(ebb_kept *k, const ebb_node *node)
{
    int32_t above[RUN - 1];
    size_t n_above = gather_ids_above(node, above), n = n_above + node->m.n_ids;
    int32_t *all = malloc((n + 1) * sizeof *all);
    bool ok = all != NULL;

    if (ok) {
        memcpy(all, above, n_above * sizeof *all);
        if (node->m.n_ids)
            memcpy(all + n_above, node->m.ids, node->m.n_ids * sizeof *all);
    }
    for (size_t i = 0; ok && i + RUN <= n; i++)
        ok = add_hash(&k->runs, &k->n_runs, &k->cap_runs, all + i, RUN * sizeof *all);
    if (ok && node->m.role == EBB_ROLE_USER)
        ok = add_question(k, node->m.text, node->m.n_text);
    free(all);
    return ok;
}

/* One that another program has deleted since it was listed is not kept. */
static ebb_status add_kept_session(ebb_store *s, int64_t session, ebb_kept *k, ebb_error *err)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_status st = ebb_store_load(s, session, &f, &t, err);

    for (size_t i = 0; st == EBB_OK && i < t.n_nodes; i++)
        if (!add_kept_node(k, t.nodes[i]))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for what the sessions have said");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    return st == EBB_NOTFOUND ? EBB_OK : st;
}

ebb_status ebb_kept_read(ebb_store *s, ebb_kept *out, ebb_error *err)
{
    ebb_session_row *rows = NULL;
    size_t n = 0;
    ebb_status st;

    memset(out, 0, sizeof *out);
    st = ebb_store_list(s, &rows, &n, err);
    for (size_t i = 0; st == EBB_OK && i < n; i++)
        st = add_kept_session(s, rows[i].id, out, err);
    free(rows);
    if (out->n_runs)
        qsort(out->runs, out->n_runs, sizeof *out->runs, by_value);
    if (out->n_questions)
        qsort(out->questions, out->n_questions, sizeof *out->questions, by_value);
    return st;
}

void ebb_kept_fini(ebb_kept *k)
{
    free(k->runs);
    free(k->questions);
    memset(k, 0, sizeof *k);
}

/* Whether all of these ids follow each other in some session: fewer than eight say too little. */
static bool has_ids(const ebb_kept *k, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i + RUN <= n; i++)
        if (!has_hash(k->runs, k->n_runs, ids + i, RUN * sizeof *ids))
            return false;
    return n >= RUN;
}

bool ebb_kept_has_question(const ebb_kept *k, const char *text, size_t n)
{
    return has_hash(k->questions, k->n_questions, text, n);
}

static bool is_run_kept(void *arg, const ebb_token *ids, size_t n)
{
    return has_ids(arg, ids, n);
}

ebb_status ebb_kept_sweep_kv(const ebb_kept *k, size_t *n_removed, ebb_error *err)
{
    return ebb_kv_cache_sweep(NULL, ebb_sealed_kv(), is_run_kept, (void *)k, false, n_removed, err);
}
