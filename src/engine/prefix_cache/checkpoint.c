/* States of recurrent layers and their checkpoints (checkpoint.h). */
#include <string.h>

#include "base/hash.h"
#include "open/engine_state.h"

#define MARK_DISTANCE_MIN 256u

static bool has_states(const ebb_engine *e)
{
    return e->net.state_bytes > 0;
}

void ebb_checkpoint_init(ebb_engine *e)
{
    for (uint32_t i = 0; has_states(e) && i < e->run.n_states; i++)
        e->cache.slots[i].state = e->run.recurrent.state + i * e->net.state_bytes;
}

/* -- Slots ------------------------------------------------------------------------- */

void ebb_state_drop_live(ebb_session *s)
{
    if (s->live)
        *s->live = (ebb_state_slot){ .state = s->live->state };
    s->live = NULL;
    if (s->engine->cache.state_log_owner == s)
        s->engine->cache.state_log_owner = NULL;
}

/* The live state follows to where the sequence ends. */
static void settle_state(ebb_session *s)
{
    uint32_t n = ebb_session_length(s);

    if (s->live->n_pos < n)
        ebb_forward_settle_state(&s->engine->run, s->live->state, s->live->n_pos, n);
    s->live->n_pos = n;
}

/* Something is about to fill it: no other state goes there. */
static bool is_planned(const ebb_state_slot *t)
{
    return t->is_used && !t->owner && t->n_pos == UINT32_MAX;
}

/* A free slot; else the checkpoint that was not used for longest; else the live state of another sequence; NULL: those
 * that are left belong to a pass under way or are being written. */
static ebb_state_slot *take_slot(ebb_engine *e, const ebb_session *s)
{
    ebb_state_slot *best = NULL;

    for (uint32_t i = 0; i < e->run.n_states; i++) {
        ebb_state_slot *t = &e->cache.slots[i];

        if (!t->is_used) {
            best = t;
            break;
        }
        if (t->is_being_written || is_planned(t) || (t->owner && (t->owner == s || t->owner->n_shared_passes > 0)))
            continue;
        if (!best || (best->owner && !t->owner) || (!best->owner == !t->owner && t->used_at < best->used_at))
            best = t;
    }
    if (!best)
        return NULL;
    if (best->owner)
        ebb_state_drop_live(best->owner);
    *best = (ebb_state_slot){ .state = best->state, .is_used = true, .n_pos = UINT32_MAX, .used_at = ++e->clock };
    return best;
}

static void hash_prefix(const ebb_token *ids, uint32_t n, uint8_t out[16])
{
    ebb_hash128(ids, n * sizeof *ids, NULL, out);
}

static ebb_state_slot *find_checkpoint(ebb_engine *e, const ebb_token *ids, uint32_t n)
{
    ebb_state_slot *best = NULL;

    for (uint32_t i = 0; i < e->run.n_states; i++) {
        ebb_state_slot *t = &e->cache.slots[i];
        uint8_t prefix[16];

        if (!t->is_used || t->owner || t->n_pos > n || (best && t->n_pos <= best->n_pos))
            continue;
        hash_prefix(ids, t->n_pos, prefix);
        if (memcmp(prefix, t->prefix, sizeof prefix) == 0)
            best = t;
    }
    return best;
}

ebb_state_slot *ebb_state_slot_take(ebb_session *s)
{
    return take_slot(s->engine, s);
}

void ebb_state_slot_set_prefix(ebb_state_slot *slot, const ebb_token *ids, uint32_t n_pos)
{
    slot->n_pos = n_pos;
    hash_prefix(ids, n_pos, slot->prefix);
}

void ebb_state_slot_free(ebb_state_slot *slot)
{
    *slot = (ebb_state_slot){ .state = slot->state };
}

static bool is_any_being_written(const ebb_engine *e)
{
    for (uint32_t i = 0; i < e->run.n_states; i++)
        if (e->cache.slots[i].is_being_written)
            return true;
    return false;
}

ebb_state_slot *ebb_checkpoint_pin(ebb_session *s)
{
    ebb_engine *e = s->engine;
    ebb_state_slot *t;

    if (!has_states(e) || !s->live)
        return NULL;
    while (is_any_being_written(e) && ebb_persist_reap(e, true)) /* one at a time: the others are needed */
        ;
    t = find_checkpoint(e, s->ids, s->table.n_pos);
    if (!t || t->n_pos != s->table.n_pos) {
        t = take_slot(e, s);
        if (!t)
            return NULL;
        settle_state(s);
        memcpy(t->state, s->live->state, e->net.state_bytes);
        ebb_state_slot_set_prefix(t, s->ids, s->table.n_pos);
    }
    t->is_being_written = true;
    return t;
}

/* A live state for s, which has none.  There are more slots than sequences of a pass and one that is written. */
static void take_live(ebb_session *s)
{
    s->live = take_slot(s->engine, s);
    if (!s->live)
        __builtin_trap();                        /* what comes next would be somebody's data */
    s->live->owner = s;
}

void ebb_state_fork(ebb_session *s, ebb_session *to)
{
    ebb_state_slot *slot = s->live ? take_slot(s->engine, s) : NULL;

    if (!slot)
        return;
    settle_state(s);
    memcpy(slot->state, s->live->state, s->engine->net.state_bytes);
    slot->n_pos = s->live->n_pos;
    slot->owner = to;
    to->live = slot;
}

/* -- Going back ---------------------------------------------------------------------- */

bool ebb_state_is_live(const ebb_session *s)
{
    return !has_states(s->engine) || s->live;
}

uint32_t ebb_state_live_prefix(const ebb_session *s, const ebb_token *ids, uint32_t n)
{
    uint32_t i = 0;

    if (!s->live)
        return 0;
    n = n < ebb_session_length(s) ? n : ebb_session_length(s);
    while (i < n && ids[i] == s->ids[i])
        i++;
    return i >= s->live->n_pos ? i : 0;
}

/* How many of ids[0..n) the live state can have seen, where it can have seen n_live. */
static uint32_t live_reach(const ebb_session *s, uint32_t n, uint32_t n_live)
{
    n = n < n_live ? n : n_live;
    return s->live && n >= s->live->n_pos ? n : 0;
}

uint32_t ebb_checkpoint_find(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live)
{
    const ebb_state_slot *from;

    if (!has_states(s->engine))
        return n;
    n_live = live_reach(s, n, n_live);
    from = n_live < n ? find_checkpoint(s->engine, ids, n) : NULL;
    return from && from->n_pos > n_live ? from->n_pos : n_live;
}

uint32_t ebb_checkpoint_restore(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live)
{
    ebb_engine *e = s->engine;
    ebb_state_slot *from;
    uint32_t n_pos;

    if (!has_states(e))
        return n;
    n_live = live_reach(s, n, n_live);
    from = n_live < n ? find_checkpoint(e, ids, n) : NULL;
    if (n_live > 0 && (!from || from->n_pos <= n_live))
        return n_live;
    if (from)
        from->used_at = ++e->clock;              /* so that it is not the one to give way */
    n_pos = from ? from->n_pos : 0;
    if (!s->live)
        take_live(s);                            /* maybe `from` itself, if it is the last one: its bytes stay */
    if (!from)
        memset(s->live->state, 0, e->net.state_bytes);
    else if (from != s->live)
        memcpy(s->live->state, from->state, e->net.state_bytes);
    s->live->n_pos = n_pos;
    return n_pos;
}

/* -- A pass ------------------------------------------------------------------------------ */

void ebb_state_begin_pass(ebb_session *s, ebb_batch_seq *p)
{
    ebb_engine *e = s->engine;
    uint32_t end = p->pos0 + p->n, least;

    if (!has_states(e))
        return;
    p->state = s->live->state;
    p->state_pos = s->live->n_pos;
    least = end > e->run.n_state_log ? end - e->run.n_state_log : 0;
    least = least > p->state_pos ? least : p->state_pos;
    p->commit_pos = p->commit_pos < least ? least : p->commit_pos < end ? p->commit_pos : end;
    if (p->commit_pos == end || e->cache.state_log_owner == s)
        return;
    if (e->cache.state_log_owner)
        settle_state(e->cache.state_log_owner);
    e->cache.state_log_owner = s;
}

void ebb_state_end_pass(ebb_session *s, const ebb_batch_seq *p)
{
    if (s->live)
        s->live->n_pos = p->commit_pos;
}

/* -- Checkpoints ----------------------------------------------------------------------- */

static void add_checkpoint(ebb_session *s, uint32_t n_pos, ebb_checkpoint_plan *m)
{
    ebb_state_slot *t;

    for (uint32_t i = 0; i < m->n; i++)
        if (m->checkpoints[i].n_pos == n_pos)
            return;
    if (m->n == EBB_MAX_CHECKPOINTS)
        return;
    t = take_slot(s->engine, s);
    if (!t)
        return;
    m->slots[m->n] = t;
    m->checkpoints[m->n++] = (ebb_checkpoint){ .n_pos = n_pos, .to = t->state };
}

void ebb_checkpoint_plan_pass(ebb_session *s, const ebb_batch_seq *p, uint32_t prompt_end, ebb_checkpoint_plan *m)
{
    uint32_t distance = s->engine->plan.n_ctx / 4, from = p->state_pos, end = p->commit_pos;

    m->n = 0;
    if (!has_states(s->engine))
        return;
    distance = distance < MARK_DISTANCE_MIN ? MARK_DISTANCE_MIN : distance;
    for (uint32_t pos = (from / distance + 1) * distance; pos <= end; pos += distance)
        add_checkpoint(s, pos, m);
    if (prompt_end > from && prompt_end <= end)
        add_checkpoint(s, prompt_end, m);
}

void ebb_checkpoint_commit(ebb_session *s, const ebb_checkpoint_plan *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        ebb_state_slot_set_prefix(m->slots[i], s->ids, m->checkpoints[i].n_pos);
    }
}

void ebb_checkpoint_abandon(const ebb_checkpoint_plan *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        ebb_state_slot_free(m->slots[i]);
}
