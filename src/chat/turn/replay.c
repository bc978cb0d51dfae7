/* Answers computed again (replay.h). */
#include "turn/replay.h"

#include <stdlib.h>
#include <string.h>

#include "ebb/grammar.h"
#include "models/plan_text.h"
#include "turn/context_view.h"

typedef struct replay_job {
    const ebb_model       *m;
    const ebb_engine_opts *opts;
    ebb_engine            *engine;
    ebb_session           *session;
    char                   kv[16];               /* what the engine was opened for */
    uint32_t               n_ctx;
    ebb_node             **path;
    int32_t               *ids;                  /* before the current record */
    size_t                 n_ids, cap_ids;
} replay_job;

static ebb_status fail_no_replay_memory(ebb_error *err)
{
    return EBB_FAIL(err, EBB_NOMEM, "no memory to compute the answers again");
}

static void close_replay_engine(replay_job *r)
{
    ebb_session_free(r->session);
    ebb_engine_close(r->engine);
    r->session = NULL;
    r->engine = NULL;
}

/* An engine with the record's options; it is reused while records agree. */
static ebb_status open_replay_engine(replay_job *r, const ebb_sample_record *d, ebb_error *err)
{
    ebb_engine_opts o = *r->opts;
    ebb_status st;

    if (r->engine && strcmp(r->kv, d->kv) == 0 && r->n_ctx == d->n_ctx)
        return EBB_OK;
    close_replay_engine(r);
    if (!o.has_kv)
        ebb_kv_parse(d->kv, &o);                 /* where the record has none, the plan chooses */
    o.n_ctx = o.n_ctx ? o.n_ctx : d->n_ctx;
    memcpy(r->kv, d->kv, sizeof r->kv);
    r->n_ctx = d->n_ctx;
    st = ebb_engine_open(r->m, &o, NULL, NULL, &r->engine, err);
    return st == EBB_OK ? ebb_session_new(r->engine, &r->session, err) : st;
}

/* -- The ids before the answer ------------------------------------------------------- */

static bool append_context_ids(replay_job *r, const int32_t *ids, size_t n)
{
    if (r->n_ids + n > r->cap_ids) {
        size_t cap = 2 * (r->n_ids + n) + 256;
        int32_t *p = realloc(r->ids, cap * sizeof *p);
        if (!p)
            return false;
        r->ids = p;
        r->cap_ids = cap;
    }
    if (n)
        memcpy(r->ids + r->n_ids, ids, n * sizeof *ids);
    r->n_ids += n;
    return true;
}

static size_t node_depth(const ebb_node *node)
{
    size_t n = 0;

    for (; node; node = node->parent)
        n++;
    return n;
}

/* The ids of all that the model got before token `from` of this answer. */
static ebb_status gather_context(replay_job *r, ebb_node *node, uint32_t from, ebb_error *err)
{
    size_t n_path = node_depth(node) - 1, i = n_path;
    ebb_context_view v;
    ebb_status st;
    bool ok = true;

    for (ebb_node *above = node->parent; above; above = above->parent)
        r->path[--i] = above;
    st = (ebb_context_view_is_last_turn(ebb_model_get_info(r->m)->path) ? ebb_context_view_make_last_turn
                                                                        : ebb_context_view_make)
         (r->path, n_path, NULL, &v, err);
    if (st != EBB_OK)
        return st;
    r->n_ids = 0;
    for (size_t k = 0; ok && k < v.n; k++)
        ok = append_context_ids(r, v.list[k]->ids, v.list[k]->n_ids);
    ok = ok && append_context_ids(r, node->m.ids, from < node->m.n_ids ? from : node->m.n_ids);
    ebb_context_view_fini(&v);
    return ok ? EBB_OK : fail_no_replay_memory(err);
}

static bool has_ids_hash(const int32_t *ids, size_t n, const uint8_t name[16])
{
    uint8_t now[16];

    ebb_token_ids_hash(ids, n, now);
    return memcmp(now, name, sizeof now) == 0;
}

/* NULL: it can be sampled again, from r->ids. */
static const char *why_not_replayable(const replay_job *r, const ebb_message *m, const ebb_sample_record *d)
{
    if (memcmp(m->ids_model, ebb_model_get_info(r->m)->fingerprint, sizeof m->ids_model) != 0)
        return "it is of another model";
    if (d->n == 0 && (m->finish == EBB_FINISH_NONE || m->finish == EBB_FINISH_CUT_OFF))
        return "the program was ended before it was finished";
    if (d->sampler != EBB_SAMPLER_VERSION && d->sampling.temp > 0)
        return "another version of ebb drew it, from other random numbers";
    if (d->is_shifted)
        return "K and V before it were moved there, not computed";
    if ((size_t)d->from + d->n > m->n_ids || !has_ids_hash(m->ids + d->from, d->n, d->ids_hash))
        return "its tokens are not kept any more: another model has read it since, or the template leaves out a part";
    if (!has_ids_hash(r->ids, r->n_ids, d->context_hash))
        return "what stood before it has other tokens since: of another model, or of a template that rewrites";
    return NULL;
}

/* -- Drawing ------------------------------------------------------------------------- */

static bool is_end_of_turn(const replay_job *r, int32_t id)
{
    return ebb_model_is_eog(r->m, id);
}

/* The tokens of one record, and the end-of-turn token behind them if `ends`. */
static ebb_status sample_and_compare(replay_job *r, ebb_sampler *sampler, const int32_t *ids, uint32_t n, bool ends,
                                     ebb_replay_answer *a, ebb_error *err)
{
    ebb_status st = ebb_session_sync(r->session, r->ids, r->n_ids, NULL, err);

    for (uint32_t i = 0; st == EBB_OK && i < n + ends; i++) {
        int32_t want = i < n ? ids[i] : -1, id = ebb_session_sample(r->session, sampler);

        if (want < 0 ? !is_end_of_turn(r, id) && id != EBB_TOKEN_NONE : id != want) {
            a->outcome = EBB_REPLAY_DIFFERS;
            a->was = want;
            a->is = is_end_of_turn(r, id) ? -1 : id;
            return EBB_OK;
        }
        a->n += i < n;
        if (i + 1 < n + ends)
            st = ebb_session_append(r->session, id, err);
    }
    return st;
}

/* Each record is from a token of the answer on, and the grammar from its beginning. */
static ebb_status constrain_replay(const replay_job *r, ebb_sampler *sampler, const ebb_message *m,
                                   const ebb_sample_record *d, ebb_error *err)
{
    ebb_grammar *g = NULL;
    ebb_status st = d->grammar ? ebb_grammar_new(d->grammar, strlen(d->grammar), &g, err) : EBB_OK;

    if (st == EBB_OK)
        st = ebb_sampler_constrain(sampler, g, r->m, err);
    ebb_grammar_free(g);
    if (st == EBB_OK)
        st = ebb_sampler_accept(sampler, m->ids, d->from, err);
    if (st == EBB_USAGE)
        return EBB_FAIL(err, EBB_FORMAT, "the answer's beginning is not of the grammar that is kept with it");
    return st;
}

static ebb_status replay_record(replay_job *r, const ebb_message *m, const ebb_sample_record *d, ebb_replay_answer *a,
                                ebb_error *err)
{
    bool ends = d == &m->sample_records[m->n_sample_records - 1] && m->finish == EBB_FINISH_STOP;
    ebb_sampler *sampler = ebb_sampler_new(&d->sampling, ebb_model_get_info(r->m)->n_vocab);
    ebb_status st = sampler ? open_replay_engine(r, d, err) : fail_no_replay_memory(err);

    if (st == EBB_OK)
        st = constrain_replay(r, sampler, m, d, err);
    if (st == EBB_OK)
        st = sample_and_compare(r, sampler, m->ids + d->from, d->n, ends, a, err);
    ebb_sampler_free(sampler);
    return st;
}

static ebb_status replay_answer(replay_job *r, ebb_node *node, ebb_replay_answer *a, ebb_error *err)
{
    const ebb_message *m = &node->m;
    ebb_status st = EBB_OK;

    *a = (ebb_replay_answer){ .message = m, .position = node_depth(node) };
    if (!ebb_message_is_sampled(m) && m->engine)
        a->why = "a remote engine answered or went on, which keeps no record of how it was drawn";
    else if (!ebb_message_is_sampled(m))
        a->why = "how it was drawn was not kept: it was copied or imported, or is of an older ebb";
    for (size_t i = 0; i < m->n_sample_records && st == EBB_OK && !a->why && a->outcome == EBB_REPLAY_SAME; i++) {
        st = gather_context(r, node, m->sample_records[i].from, err);
        if (st == EBB_OK && !(a->why = why_not_replayable(r, m, &m->sample_records[i])))
            st = replay_record(r, m, &m->sample_records[i], a, err);
    }
    if (a->why)
        a->outcome = EBB_REPLAY_UNKNOWN;
    return st;
}

ebb_status ebb_replay(const ebb_tree *t, const ebb_model *m, const ebb_engine_opts *opts, ebb_replay_fn *fn, void *arg,
                      ebb_error *err)
{
    replay_job r = { .m = m, .opts = opts, .path = calloc(t->n_nodes + 1, sizeof *r.path) };
    ebb_status st = r.path ? EBB_OK : fail_no_replay_memory(err);

    for (size_t i = 0; st == EBB_OK && i < t->n_nodes; i++) {
        ebb_replay_answer a;

        if (t->nodes[i]->m.role != EBB_ROLE_ASSISTANT)
            continue;
        st = replay_answer(&r, t->nodes[i], &a, err);
        if (st == EBB_OK)
            fn(arg, &a);
    }
    close_replay_engine(&r);
    free(r.path);
    free(r.ids);
    return st;
}
