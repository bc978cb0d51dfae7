/* One sequence of tokens (ebb/session.h). */
#include "ebb/experimental/inspect.h"
#include "ebb/experimental/kv_cache.h"
#include "ebb/experimental/prompt_parts.h"
#include "ebb/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "open/engine_state.h"
#include "speculate/speculate.h"

/* -- Birth and death ---------------------------------------------------------------- */

static void session_fini(ebb_session *s)
{
    ebb_block_table_fini(s->engine->kv, &s->table);
    free(s->ids);
    free(s->hashes);
    free(s->wanted);
    free(s->logits);
    ebb_sampler_state_fini(&s->sampler_state);
    ebb_drafts_fini(s);
    free(s->hidden);
    ebb_suffix_index_fini(&s->index);
    free(s);
}

ebb_status ebb_session_new(ebb_engine *e, ebb_session **out, ebb_error *err)
{
    ebb_session *s = calloc(1, sizeof *s);
    ebb_status st;

    *out = NULL;
    if (!s)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a session");
    s->engine = e;
    s->ids = calloc(e->plan.n_ctx, sizeof *s->ids);
    s->hashes = calloc(ebb_kv_blocks_of(e->plan.n_ctx) + 2, sizeof *s->hashes);
    s->wanted = calloc(ebb_kv_blocks_of(e->plan.n_ctx) + 2, sizeof *s->wanted);
    s->logits = calloc(e->net.n_vocab, sizeof *s->logits);
    st = ebb_block_table_init(&s->table, e->plan.n_ctx, err);
    if (e->net.has_draft_head)
        s->hidden = calloc(e->net.n_embd, sizeof *s->hidden);
    if (st == EBB_OK && ((e->net.has_draft_head && !s->hidden) || !s->ids || !s->hashes || !s->wanted || !s->logits ||
                         !ebb_speculate_init(s)))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a session of %u tokens", e->plan.n_ctx);
    if (st != EBB_OK) {
        session_fini(s);
        return st;
    }
    s->sampler_state = EBB_SAMPLER_GREEDY;
    ebb_persist_note_swept(s);
    s->next = e->sessions;
    e->sessions = s;
    *out = s;
    return EBB_OK;
}

void ebb_session_free(ebb_session *s)
{
    if (!s)
        return;
    for (ebb_session **p = &s->engine->sessions; *p; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            break;
        }
    }
    ebb_session_clear(s);
    ebb_stats_forget_session(s->engine, s);
    session_fini(s);
}

/* -- Computing ------------------------------------------------------------------------ */

static ebb_status check_fits_context(const ebb_session *s, size_t n, ebb_error *err)
{
    if (n > s->engine->plan.n_ctx)
        return EBB_FAIL(err, EBB_CONTEXT, "%zu tokens do not fit the context of %u; --ctx sets a larger one", n,
                        s->engine->plan.n_ctx);
    return EBB_OK;
}

ebb_status ebb_session_check_ids(const ebb_session *s, const ebb_token *ids, size_t n, ebb_error *err)
{
    uint32_t n_vocab = s->engine->net.n_vocab;

    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return EBB_FAIL(err, EBB_USAGE, "token %d is not in the vocabulary of %u", (int)ids[i], n_vocab);
    return EBB_OK;
}

/* What is wrong with the ids that the sequence is to have. */
static ebb_status check_sequence(const ebb_session *s, const ebb_token *ids, size_t n, ebb_error *err)
{
    ebb_status st = check_fits_context(s, n, err);

    return st == EBB_OK ? ebb_session_check_ids(s, ids, n, err) : st;
}

/* All of ids[from..n) in chunks; logits of the last column only. */
static ebb_status prefill_ids(ebb_session *s, const ebb_token *ids, uint32_t n, ebb_error *err)
{
    ebb_engine *e = s->engine;
    uint32_t from = s->table.n_pos;
    double begin = ebb_clock_s();

    for (uint32_t at = from; at < n;) {
        uint32_t m = n - at < e->plan.n_batch ? n - at : e->plan.n_batch;
        bool is_last = at + m == n;
        ebb_pass_part part = { .session = s, .ids = ids + at, .n = m, .n_out = is_last, .commit_pos = at + m,
                               .prompt_end = n - 1 };
        ebb_batch b = { .logits = is_last ? s->logits : NULL };
        ebb_status st;

        ebb_stats_prefill_pass(e, m);
        st = ebb_session_run_pass(&part, 1, &b, err);
        if (st != EBB_OK)
            return st;
        at += m;
        ebb_stats_prefill_step(e, at - from, ebb_clock_s() - begin);
    }
    s->has_logits |= n > from;                   /* nothing computed: those of before still hold */
    return EBB_OK;
}

void ebb_session_begin_prompt(ebb_session *s, size_t n)
{
    s->n_prompt = n <= s->engine->plan.n_ctx ? (uint32_t)n : 0;
    s->has_part = false;
}

/* So many of the prompt's ids are computed, or are about to be. */
static void leave_prompt_at(ebb_session *s, size_t n)
{
    s->has_part = n < s->n_prompt;
    s->n_prompt = s->has_part ? s->n_prompt : 0;
}

void ebb_session_note_part(ebb_session *s)
{
    if (!s->has_part)
        return;
    ebb_stats_prompt_at(s->engine, s, ebb_session_length(s));
    leave_prompt_at(s, ebb_session_length(s));
}

/* What the sync of n ids is for the figures. */
static ebb_sync_counts count_sync(ebb_session *s, size_t n, bool is_again, uint32_t kept, uint32_t from_disk)
{
    ebb_sync_counts counts = { .n_reused = kept, .n_disk = from_disk, .n_prompt = (uint32_t)n };

    counts.kind = is_again || n == 0 ? EBB_SYNC_AGAIN : s->has_part ? EBB_SYNC_PART : EBB_SYNC_TURN;
    if (counts.kind == EBB_SYNC_AGAIN)
        return counts;
    counts.n_prompt = n < s->n_prompt ? s->n_prompt : (uint32_t)n;
    leave_prompt_at(s, n);
    return counts;
}

static ebb_status sync_ids(ebb_session *s, const ebb_token *ids, size_t n, bool is_again, ebb_sync_result *result,
                           ebb_error *err)
{
    ebb_engine *e = s->engine;
    double begin = ebb_clock_s();
    ebb_status st;
    uint32_t kept, from_disk;
    ebb_sync_counts counts;

    ebb_reclaim_before_turn(e);
    ebb_persist_reap(e, false);
    ebb_hidden_keep(s, ids, n);
    ebb_speculate_keep(s, ids, n);
    kept = ebb_prefix_reuse(s, ids, (uint32_t)n, &from_disk);
    ebb_persist_note_swept(s);                   /* not before: what it held may be what was deleted */
    counts = count_sync(s, n, is_again, kept, from_disk);
    ebb_stats_prefill_begin(e, s, &counts);
    st = prefill_ids(s, ids, (uint32_t)n, err);
    if (st != EBB_OK)
        ebb_session_begin_prompt(s, 0);
    ebb_stats_idle(e, s);
    if (result)
        *result = (ebb_sync_result){
            .n_prompt = (uint32_t)n, .n_reused = kept, .n_reused_disk = from_disk,
            .n_computed = s->table.n_pos - kept,
            .seconds = ebb_clock_s() - begin,
        };
    return st;
}

ebb_status ebb_session_sync(ebb_session *s, const ebb_token *ids, size_t n,
                            ebb_sync_result *result, ebb_error *err)
{
    ebb_status st = check_sequence(s, ids, n, err);

    if (st != EBB_OK)
        return st;
    ebb_speculate_discard(s, EBB_TOKEN_NONE);
    return sync_ids(s, ids, n, false, result, err);
}

/* Where that fails nothing is left: a sequence that had become shorter could be taken for what it was. */
ebb_status ebb_session_restore_state(ebb_session *s, ebb_error *err)
{
    uint32_t n_before;
    ebb_status st;

    if (ebb_state_is_live(s))
        return EBB_OK;
    ebb_speculate_discard(s, EBB_TOKEN_NONE);    /* no one asked for them to be computed again */
    n_before = s->table.n_pos;
    if (n_before == 0) {
        (void)ebb_checkpoint_restore(s, s->ids, 0, 0);
        return EBB_OK;
    }
    st = sync_ids(s, s->ids, n_before, true, NULL, err);
    if (st != EBB_OK && s->table.n_pos < n_before)
        ebb_session_clear(s);
    return st;
}

/* Whether it is a token, and the context has a position for it where it is not the next draft token. */
static ebb_status check_token(ebb_session *s, ebb_token id, ebb_error *err)
{
    ebb_status st = ebb_session_check_ids(s, &id, 1, err);

    if (st != EBB_OK)
        return st;
    ebb_speculate_discard(s, id);
    return check_fits_context(s, (size_t)s->table.n_pos + 1, err);
}

ebb_status ebb_session_append(ebb_session *s, ebb_token id, ebb_error *err)
{
    ebb_engine *e = s->engine;
    double begin = ebb_clock_s();
    bool was_drafted = ebb_speculate_accept(s, id);
    ebb_status st = was_drafted ? EBB_OK : check_token(s, id, err);

    if (st == EBB_OK)
        st = ebb_session_restore_state(s, err);
    if (st != EBB_OK)
        return st;
    ebb_stats_decode_begin(e);
    if (!was_drafted)
        st = ebb_speculate_append(s, id, err);
    if (st == EBB_OK)
        ebb_stats_decode_step(e, ebb_clock_s() - begin, was_drafted, s->drafts.tree.n > 0);
    ebb_stats_idle(e, s);
    return st;
}

/* -- Evaluation ------------------------------------------------------------------------ */

typedef struct eval {
    ebb_session   *s;
    ebb_logits_fn *fn;
    void          *arg;
    uint32_t       pos0, n;      /* of the pass; of all */
} eval;

static void eval_logits(void *arg, uint32_t col, uint32_t n, const float *logits)
{
    eval *v = arg;
    size_t n_vocab = v->s->engine->net.n_vocab;

    for (uint32_t i = 0; i < n; i++, logits += n_vocab) {
        v->fn(v->arg, v->pos0 + col + i, logits, n_vocab);
        if (v->pos0 + col + i + 1 == v->n)
            memcpy(v->s->logits, logits, n_vocab * sizeof *logits);
    }
}

ebb_status ebb_session_eval(ebb_session *s, const ebb_token *ids, size_t n, uint32_t n_batch,
                            ebb_logits_fn *fn, void *arg, ebb_error *err)
{
    ebb_engine *e = s->engine;
    eval v = { .s = s, .fn = fn, .arg = arg, .n = (uint32_t)n };
    double begin = ebb_clock_s();
    ebb_status st = check_sequence(s, ids, n, err);

    if (st != EBB_OK)
        return st;
    if (n_batch == 0 || n_batch > e->plan.n_batch)
        n_batch = e->plan.n_batch;
    ebb_session_clear(s);
    ebb_speculate_keep(s, ids, n);
    (void)ebb_checkpoint_restore(s, ids, 0, 0);
    ebb_stats_prefill_begin(e, s, &(ebb_sync_counts){ .n_prompt = v.n });
    while (v.pos0 < v.n && st == EBB_OK) {
        uint32_t m = v.n - v.pos0 < n_batch ? v.n - v.pos0 : n_batch;
        ebb_pass_part part = { .session = s, .ids = ids + v.pos0, .n = m, .n_out = m, .commit_pos = v.pos0 + m };
        ebb_batch b = { .each = eval_logits, .arg = &v };

        st = ebb_session_run_pass(&part, 1, &b, err);
        if (st == EBB_OK)
            v.pos0 += m;
        ebb_stats_prefill_step(e, v.pos0, ebb_clock_s() - begin);
    }
    s->has_logits = st == EBB_OK && n > 0;
    ebb_stats_idle(e, s);
    return st;
}

/* -- Looking ---------------------------------------------------------------------------- */

const ebb_token *ebb_session_ids(const ebb_session *s, size_t *n)
{
    *n = ebb_session_length(s);
    return s->ids;
}

const float *ebb_session_logits(const ebb_session *s)
{
    return s->has_logits ? s->logits : NULL;
}

ebb_token ebb_session_sample(ebb_session *s, ebb_sampler *sampler)
{
    ebb_token id = ebb_sampler_sample(sampler, s->logits, s->ids, ebb_session_length(s));

    ebb_sampler_get_state(sampler, &s->sampler_state);
    return id;
}

void ebb_session_persist(ebb_session *s)
{
    if (!s->engine->cache.disk || s->table.n_pos == 0 || ebb_kv_spill_is_lost(s->engine->kv))
        return;
    ebb_speculate_discard(s, EBB_TOKEN_NONE);
    ebb_draft_model_persist(s->engine);
    ebb_persist_submit(s);
}

void ebb_session_persist_kept(ebb_session *s)
{
    ebb_persist_note_swept(s);
    ebb_session_persist(s);
}
