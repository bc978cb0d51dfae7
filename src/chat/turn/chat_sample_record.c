/* How an answer was sampled, recorded so that it can be sampled again (replay.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"

/* A seed short enough to be typed. */
static uint64_t make_seed(void)
{
    const uint64_t now[2] = { ebb_clock_ns(), (uint64_t)getpid() };
    uint8_t name[16];
    uint32_t seed;

    ebb_hash128(now, sizeof now, NULL, name);
    memcpy(&seed, name, sizeof seed);
    return (seed & INT32_MAX) | 1;
}

/* How the prompt of an answer ends.  One that goes on has its own text in it. */
static ebb_thought_begin how_it_begins(const ebb_chat *c, const ebb_backend_request *r, const ebb_message *m)
{
    const ebb_model *model = c->backend->ops->model(c->backend);

    if (!model || m->n_ids > 0 || m->n_text > 0)
        return EBB_THOUGHT_UNSURE;
    return ebb_prompt_opens_thought(model, r->ids, r->n_ids) ? EBB_THOUGHT_OPENED : EBB_THOUGHT_UNOPENED;
}

void ebb_chat_begin_sample_record(ebb_chat *c, ebb_backend_request *r, ebb_node *node)
{
    ebb_sample_record d = { .from = (uint32_t)node->m.n_ids, .n_ctx = c->backend->ops->n_ctx(c->backend) };
    ebb_stats s;

    if (r->ids || ebb_chat_engine_is_found(c))
        r->sampling.seed = r->sampling.seed ? r->sampling.seed : make_seed();
    c->turn.seed = r->sampling.seed;
    if (!r->ids)                                 /* a server's answer cannot be replayed */
        return;
    if (node->m.role != EBB_ROLE_ASSISTANT)
        return;
    c->backend->ops->stats(c->backend, &s);
    d.begin = how_it_begins(c, r, &node->m);
    d.sampling = r->sampling;
    d.sampler = EBB_SAMPLER_VERSION;
    snprintf(d.kv, sizeof d.kv, "%s", s.kv_type);
    ebb_token_ids_hash(r->ids, r->n_ids, d.context_hash);
    if (node->m.n_sample_records && node->m.sample_records[node->m.n_sample_records - 1].n == 0) {
        if (node->m.n_sample_records == 1 && d.begin == EBB_THOUGHT_UNSURE)
            d.begin = node->m.sample_records[0].begin;
        ebb_message_drop_sample_record(&node->m);        /* that one has no token */
    }
    d.grammar = r->grammar ? strdup(r->grammar) : NULL;
    if ((r->grammar && !d.grammar) || !ebb_message_add_sample_record(&node->m, &d)) {
        free(d.grammar);
        ebb_log("draws", "no memory to keep how an answer is drawn");
    }
}

void ebb_chat_end_sample_record(ebb_message *m, const ebb_cache_salt *cache_salt)
{
    ebb_sample_record *d = m->n_sample_records ? &m->sample_records[m->n_sample_records - 1] : NULL;

    if (!d || d->n || m->n_ids < d->from)
        return;
    d->n = (uint32_t)m->n_ids - d->from;
    d->is_shifted = cache_salt->is_on;
    ebb_token_ids_hash(m->ids + d->from, d->n, d->ids_hash);
}
