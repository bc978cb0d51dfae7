/* What is kept of how an answer is drawn, so that it can be drawn again (replay.c). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "chat_priv.h"

/* One that can be typed. */
static uint64_t fresh_seed(void)
{
    const uint64_t now[2] = { ebb_clock_ns(), (uint64_t)getpid() };
    uint8_t name[16];
    uint32_t seed;

    ebb_hash128(now, sizeof now, NULL, name);
    memcpy(&seed, name, sizeof seed);
    return (seed & INT32_MAX) | 1;
}

void ebb_chat_note_draw(ebb_chat *c, ebb_backend_request *r, ebb_node *node)
{
    ebb_draw d = { .from = (uint32_t)node->m.n_ids, .n_ctx = c->backend->ops->n_ctx(c->backend) };
    ebb_stats s;

    r->sampling.seed = r->sampling.seed ? r->sampling.seed : fresh_seed();
    if (node->m.role != EBB_ROLE_ASSISTANT)
        return;
    c->backend->ops->stats(c->backend, &s);
    d.sampling = r->sampling;
    snprintf(d.kv, sizeof d.kv, "%s", s.kv_type);
    ebb_draw_name(r->ids, r->n_ids, d.before);
    if (node->m.n_draws && node->m.draws[node->m.n_draws - 1].n == 0)
        node->m.n_draws--;                       /* nothing came of that one */
    if (!ebb_message_add_draw(&node->m, &d))
        ebb_log("draws", "no memory to keep how an answer is drawn");
}

void ebb_chat_end_draw(ebb_message *m, const ebb_shift *shift)
{
    ebb_draw *d = m->n_draws ? &m->draws[m->n_draws - 1] : NULL;

    if (!d || d->n || m->n_ids < d->from)
        return;
    d->n = (uint32_t)m->n_ids - d->from;
    d->is_moved = shift->is_on;
    ebb_draw_name(m->ids + d->from, d->n, d->drawn);
}
