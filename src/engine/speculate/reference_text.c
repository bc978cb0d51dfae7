/* Texts of elsewhere (reference_text.h). */
#include "speculate/reference_text.h"

#include <stdlib.h>

#include "open/engine_state.h"

void ebb_reference_text_fini(ebb_reference_text *t)
{
    free(t->ids);
    ebb_suffix_index_fini(&t->index);
    *t = (ebb_reference_text){ 0 };
}

/* What is drafted is computed: an id that the model does not have ends a part, as one below 0 does. */
static void copy_known(ebb_token *to, const ebb_token *ids, size_t n, uint32_t n_vocab)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint32_t)ids[i] < n_vocab ? ids[i] : EBB_TOKEN_NONE;
}

ebb_status ebb_reference_text_set(ebb_reference_text *t, const ebb_token *ids, size_t n, uint32_t n_vocab,
                                  ebb_error *err)
{
    size_t n_kept = n < EBB_REFERENCE_MOST ? n : EBB_REFERENCE_MOST;

    ebb_reference_text_fini(t);
    if (n == 0)
        return EBB_OK;
    t->ids = malloc((n_kept + 1) * sizeof *t->ids);
    if (!t->ids || !ebb_suffix_index_init(&t->index, (uint32_t)n_kept + 1)) {
        ebb_reference_text_fini(t);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %zu tokens of other texts", n_kept);
    }
    copy_known(t->ids, ids + (n - n_kept), n_kept, n_vocab);
    t->ids[n_kept] = EBB_TOKEN_NONE;
    t->n = (uint32_t)n_kept + 1;
    ebb_suffix_index_follow(&t->index, t->ids, t->n);
    return EBB_OK;
}

ebb_status ebb_engine_set_reference_text(ebb_engine *e, const ebb_token *ids, size_t n, ebb_error *err)
{
    ebb_status st = ebb_reference_text_set(&e->reference, ids, e->opts.no_speculation ? 0 : n, e->net.n_vocab, err);

    ebb_draft_head_recount(e);
    return st;
}
