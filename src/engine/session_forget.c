/* Forgetting in the middle of a timeline, and by itself (ebb/session.h). */
#include <string.h>

#include "base/hash.h"
#include "engine_impl.h"

const char *ebb_session_cannot_forget(const ebb_session *s)
{
    if (s->engine->net.state_bytes > 0)
        return "layers with a state remember all tokens";
    if (s->engine->net.positions)
        return "positions are learned, K cannot be moved to others";
    return NULL;
}

static ebb_status check_range(const ebb_session *s, uint32_t from, uint32_t n, ebb_error *err)
{
    const char *why = ebb_session_cannot_forget(s);

    if (why)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s; what remains is to be computed again", why);
    if (n == 0 || from >= s->table.n_pos || n > s->table.n_pos - from)
        return EBB_FAIL(err, EBB_USAGE, "the %u tokens from %u on are not in a timeline of %u", n, from, s->table.n_pos);
    return EBB_OK;
}

/* The name of what stands after this: all that it came from. */
static ebb_shift next_shift(const ebb_session *s, uint32_t from, uint32_t n)
{
    uint32_t range[] = { from, n };
    ebb_shift next = { .is_on = true, .pos = s->shift.is_on && s->shift.pos < from ? s->shift.pos : from };

    ebb_hash128(range, sizeof range, s->shift.is_on ? s->shift.salt : NULL, next.salt);
    ebb_hash128(s->ids, s->table.n_pos * sizeof *s->ids, next.salt, next.salt);
    return next;
}

/* Nothing stands behind what is forgotten. */
static void cut_end(ebb_session *s, uint32_t from)
{
    static const ebb_shift none;

    ebb_kv_cut(s->engine->kv, &s->table, from);
    s->has_logits = false;
    ebb_prefix_set_shift(s, s->shift.is_on && s->shift.pos < from ? &s->shift : &none);
}

ebb_status ebb_session_forget(ebb_session *s, uint32_t from, uint32_t n, ebb_error *err)
{
    ebb_engine *e = s->engine;
    ebb_status st;
    uint32_t n_left;
    ebb_shift shift;

    ebb_ahead_drop(s);
    st = check_range(s, from, n, err);
    if (st != EBB_OK)
        return st;
    n_left = s->table.n_pos - n;
    if (from == n_left) {
        cut_end(s, from);
        return EBB_OK;
    }
    do {
        st = ebb_kv_own(e->kv, &s->table, from / EBB_KV_BLOCK, err);
    } while (st == EBB_BUDGET && ebb_session_take_room(s));
    if (st != EBB_OK)
        return st;
    shift = next_shift(s, from, n);
    ebb_run_move(&e->run, &s->table, from, n);
    ebb_kv_cut(e->kv, &s->table, n_left);
    memmove(s->ids + from, s->ids + from + n, (n_left - from) * sizeof *s->ids);
    ebb_prefix_set_shift(s, &shift);
    ebb_stats_idle(e, s);
    return EBB_OK;
}

ebb_shift ebb_session_shift(const ebb_session *s)
{
    return s->shift;
}

void ebb_session_expect(ebb_session *s, const ebb_shift *shift)
{
    s->expected = *shift;
    s->is_expected = true;
}
