/* Several sequences in one pass, and one that becomes two (ebb/session.h). */
#include <string.h>

#include "base/clock.h"
#include "open/engine_state.h"
#include "speculate/speculate.h"

uint32_t ebb_engine_n_batch(const ebb_engine *e)
{
    return e->run.cap_tokens;                    /* another budget writes the plan anew */
}

uint32_t ebb_engine_max_sequences(const ebb_engine *e)
{
    uint32_t most = e->net.state_bytes ? e->run.n_states - EBB_N_STATE_SPARE : EBB_MAX_SEQUENCES;

    most = most < EBB_MAX_SEQUENCES ? most : EBB_MAX_SEQUENCES;
    return most < e->run.cap_tokens ? most : e->run.cap_tokens;
}

/* -- A pass of several --------------------------------------------------------------- */

typedef struct parts {
    ebb_pass_part parts[EBB_MAX_SEQUENCES];      /* the longest first: the columns whose logits are wanted are then
                                                    behind each other, but for those of prompts */
    uint32_t  n;
    ebb_batch batch;
} parts;

static bool is_twice(const ebb_session_step *steps, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (steps[k].session == steps[i].session)
            return true;
    return false;
}

static ebb_status check_steps(const ebb_session_step *steps, size_t n, ebb_error *err)
{
    const ebb_engine *e = n > 0 ? steps->session->engine : NULL;
    size_t sum = 0;

    if (n == 0 || n > ebb_engine_max_sequences(e))
        return EBB_FAIL(err, EBB_USAGE, "%zu sequences cannot share a pass", n);
    for (size_t i = 0; i < n; i++) {
        const ebb_session_step *t = &steps[i];

        sum += t->n;
        if (t->session->engine != e || t->n == 0 || is_twice(steps, i))
            return EBB_FAIL(err, EBB_USAGE, "step %zu: is empty, of another engine, or of a sequence that occurs twice",
                            i);
        if (ebb_session_check_ids(t->session, t->ids, t->n, err) != EBB_OK)
            return EBB_USAGE;
        if (t->n > e->plan.n_ctx - ebb_session_length(t->session))
            return EBB_FAIL(err, EBB_CONTEXT, "%zu tokens do not fit the context of %u; --ctx sets a larger one",
                            ebb_session_length(t->session) + t->n, e->plan.n_ctx);
    }
    if (sum > e->plan.n_batch)
        return EBB_FAIL(err, EBB_USAGE, "%zu tokens do not fit a pass of %u", sum, e->plan.n_batch);
    return EBB_OK;
}

static void insert_part(parts *p, const ebb_pass_part *part)
{
    uint32_t i = p->n++;

    for (; i > 0 && p->parts[i - 1].n < part->n; i--)
        p->parts[i] = p->parts[i - 1];
    p->parts[i] = *part;
}

/* Drops draft tokens and restores the recurrent state: what is left is what the caller appended. */
static ebb_status add_part(parts *p, const ebb_session_step *step, ebb_error *err)
{
    ebb_session *s = step->session;
    uint32_t n = (uint32_t)step->n, end;
    ebb_status st;

    ebb_speculate_discard(s, n == 1 ? *step->ids : EBB_TOKEN_NONE);
    st = ebb_session_restore_state(s, err);
    end = s->table.n_pos + n;
    insert_part(p, &(ebb_pass_part){ .session = s, .ids = step->ids, .n = n, .n_out = 1, .commit_pos = end,
                                     .prompt_end = n > 1 ? end - 1 : 0 });
    return st;
}

/* Logits of the pass: those of each part's last column go to its session. */
static void keep_logits(void *arg, uint32_t col, uint32_t n, const float *logits)
{
    const parts *p = arg;
    size_t n_vocab = p->parts->session->engine->net.n_vocab;

    for (uint32_t i = 0; i < n; i++, logits += n_vocab) {
        size_t k = (size_t)(ebb_batch_seq_of(&p->batch, col + i) - p->batch.seqs);

        memcpy(p->parts[k].session->logits, logits, n_vocab * sizeof *logits);
    }
}

static ebb_status run_parts(const ebb_session_step *steps, size_t n, ebb_error *err)
{
    ebb_engine *e = steps->session->engine;
    double begin = ebb_clock_s();
    uint32_t n_tokens = 0, n_decoded = 0;
    parts p = { .n = 0 };
    ebb_status st = EBB_OK;

    for (size_t i = 0; i < n && st == EBB_OK; i++)
        st = add_part(&p, &steps[i], err);
    if (st != EBB_OK)
        return st;
    ebb_stats_decode_begin(e);
    p.batch = (ebb_batch){ .each = keep_logits, .arg = &p };
    st = ebb_session_run_pass(p.parts, p.n, &p.batch, err);
    for (uint32_t i = 0; i < p.n && st == EBB_OK; i++) {
        p.parts[i].session->has_logits = true;
        n_tokens += p.parts[i].n;
        n_decoded += p.parts[i].n == 1;
    }
    if (st == EBB_OK)
        ebb_stats_shared_step(e, ebb_clock_s() - begin, n_tokens, n_decoded);
    ebb_stats_idle(e, p.parts[p.n - 1].session);
    return st;
}

static ebb_status append_steps(const ebb_session_step *steps, size_t n, ebb_error *err)
{
    ebb_status st;

    if (n == 1 && steps->n == 1)
        return ebb_session_append(steps->session, *steps->ids, err);
    for (size_t i = 0; i < n; i++)               /* none loses its state to bring back another's */
        steps[i].session->n_shared_passes++;
    st = run_parts(steps, n, err);
    for (size_t i = 0; i < n; i++)
        steps[i].session->n_shared_passes--;
    return st;
}

ebb_status ebb_sessions_append(const ebb_session_step *steps, size_t n, ebb_error *err)
{
    ebb_status st = check_steps(steps, n, err);

    if (st == EBB_OK)
        st = append_steps(steps, n, err);
    for (size_t i = 0; i < n && st == EBB_OK; i++)
        ebb_session_note_part(steps[i].session);
    return st;
}

/* -- One that becomes two -------------------------------------------------------------- */

ebb_status ebb_session_fork(ebb_session *s, ebb_session **out, ebb_error *err)
{
    ebb_status st = ebb_session_new(s->engine, out, err);
    ebb_session *to = *out;

    if (st != EBB_OK)
        return st;
    ebb_speculate_discard(s, EBB_TOKEN_NONE);
    ebb_kv_share(s->engine->kv, &s->table, s->table.n_pos, &to->table);
    memcpy(to->ids, s->ids, s->table.n_pos * sizeof *to->ids);
    memcpy(to->hashes, s->hashes, (s->n_hashed + 1) * sizeof *to->hashes);
    memcpy(to->logits, s->logits, s->engine->net.n_vocab * sizeof *to->logits);
    if (s->hidden)
        memcpy(to->hidden, s->hidden, s->engine->net.n_embd * sizeof *to->hidden);
    to->n_hashed = s->n_hashed;
    to->n_hidden = s->n_hidden;
    to->has_logits = s->has_logits;
    to->cache_salt = s->cache_salt;
    to->swept = s->swept;
    to->window_from = s->window_from;
    to->used_at = ++s->engine->clock;
    ebb_state_fork(s, to);
    return EBB_OK;
}
