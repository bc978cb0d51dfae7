/* Forgetting in the middle of a sequence, and by itself (ebb/session.h). */
#include <string.h>

#include "base/hash.h"
#include "ebb/experimental/cache_salt.h"
#include "open/engine_state.h"
#include "speculate/speculate.h"

const char *ebb_session_cannot_shift(const ebb_session *s)
{
    if (s->engine->net.state_bytes > 0)
        return "layers with a state remember all tokens";
    if (s->engine->net.positions)
        return "positions are learned; K cannot be moved to others";
    if (s->engine->net.qk_norm_is_late && s->engine->net.layers[0].k_norm.w)
        return "K is normalized after RoPE; it cannot be moved to other positions";
    return NULL;
}

static ebb_status check_shift_range(const ebb_session *s, uint32_t from, uint32_t n, ebb_error *err)
{
    const char *why = ebb_session_cannot_shift(s);

    if (why)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s; the rest must be computed again", why);
    if (n == 0 || from >= s->table.n_pos || n > s->table.n_pos - from)
        return EBB_FAIL(err, EBB_USAGE, "the %u tokens from %u on are not in a sequence of %u", n, from,
                        s->table.n_pos);
    return EBB_OK;
}

/* The salt of the shifted sequence: a hash of the range and of all ids before the shift. */
static ebb_cache_salt derive_salt(const ebb_session *s, uint32_t from, uint32_t n)
{
    uint32_t range[] = { from, n };
    ebb_cache_salt next = { .is_on = true,
                            .pos = s->cache_salt.is_on && s->cache_salt.pos < from ? s->cache_salt.pos : from };

    ebb_hash128(range, sizeof range, s->cache_salt.is_on ? s->cache_salt.salt : NULL, next.salt);
    ebb_hash128(s->ids, s->table.n_pos * sizeof *s->ids, next.salt, next.salt);
    return next;
}

/* No position is left behind the dropped ones. */
static void cut_tail(ebb_session *s, uint32_t from)
{
    static const ebb_cache_salt none;

    ebb_kv_truncate(s->engine->kv, &s->table, from);
    s->has_logits = false;
    ebb_prefix_set_salt(s, s->cache_salt.is_on && s->cache_salt.pos < from ? &s->cache_salt : &none);
}

/* The first position that a window sees then. */
static uint32_t first_seen(const ebb_session *s, const ebb_kv_shift *m)
{
    uint32_t window = ebb_kv_window(s->engine->kv);

    return m->end > window ? m->end - window + 1 : 0;
}

/* Whether the rows [first, end) of a window are there. */
static ebb_status check_window(const ebb_session *s, uint32_t first, uint32_t end, ebb_error *err)
{
    for (uint32_t i = first / EBB_KV_BLOCK; i * EBB_KV_BLOCK < end; i++)
        if (s->table.blocks[EBB_KV_WINDOW][i] == EBB_KV_NONE || first < s->window_from)
            return EBB_FAIL(err, EBB_UNSUPPORTED,
                            "a window of %u positions would see some that are gone; the rest must be "
                            "computed again",
                            ebb_kv_window(s->engine->kv));
    return EBB_OK;
}

/* After the shift a window sees positions behind the gap only, or also some before it, which may not be cached any
 * more. */
static ebb_status plan_window_shift(ebb_session *s, uint32_t n, ebb_kv_shift *m, ebb_error *err)
{
    uint32_t from = m->from[EBB_KV_ALL], first = first_seen(s, m);

    if (first >= from) {
        m->from[EBB_KV_WINDOW] = first;
        m->n_rows[EBB_KV_WINDOW] = n % EBB_KV_BLOCK;
        return EBB_OK;
    }
    m->from[EBB_KV_WINDOW] = from;
    m->n_rows[EBB_KV_WINDOW] = n;
    return check_window(s, first, from + 1, err);
}

/* Blocks of windows go to where their rows will be, but for less than a block. */
static ebb_status move_window_blocks(ebb_session *s, uint32_t n, const ebb_kv_shift *m, ebb_error *err)
{
    ebb_kv *kv = s->engine->kv;
    uint32_t to = m->from[EBB_KV_WINDOW] / EBB_KV_BLOCK, by = n / EBB_KV_BLOCK;
    ebb_status st = EBB_OK;

    if (first_seen(s, m) < m->from[EBB_KV_ALL])  /* all rows are moved, as those of the others */
        return EBB_OK;
    while (s->table.blocks[EBB_KV_WINDOW][to + by] == EBB_KV_NONE && st == EBB_OK) {
        st = ebb_kv_alloc_block(kv, &s->table, EBB_KV_WINDOW, to + by, err);
        if (st == EBB_BUDGET && ebb_session_evict_other(s))
            st = EBB_OK;
    }
    if (st == EBB_OK)
        ebb_kv_shift_blocks(kv, &s->table, EBB_KV_WINDOW, to, by);
    return st;
}

/* All that can fail.  On success the blocks are the table's own. */
static ebb_status prepare_shift(ebb_session *s, uint32_t n, ebb_kv_shift *m, ebb_error *err)
{
    ebb_engine *e = s->engine;
    bool has_window = ebb_kv_window(e->kv) > 0;
    ebb_status st = has_window ? plan_window_shift(s, n, m, err) : EBB_OK;

    if (st != EBB_OK)
        return st;
    do {
        st = ebb_kv_make_writable(e->kv, &s->table, m->from[EBB_KV_ALL] / EBB_KV_BLOCK, err);
    } while (st == EBB_BUDGET && ebb_session_evict_other(s));
    if (st == EBB_OK && has_window)
        st = move_window_blocks(s, n, m, err);
    return st;
}

ebb_status ebb_session_shift(ebb_session *s, uint32_t from, uint32_t n, ebb_error *err)
{
    ebb_engine *e = s->engine;
    ebb_kv_shift m = { .table = &s->table, .from = { from, from }, .n_rows = { n, n }, .rerotate_by = n };
    ebb_status st;
    ebb_cache_salt cache_salt;

    ebb_speculate_discard(s, EBB_TOKEN_NONE);
    st = check_shift_range(s, from, n, err);
    if (st != EBB_OK)
        return st;
    m.end = s->table.n_pos - n;
    if (from == m.end && ebb_kv_window(e->kv) > 0)       /* of the window before it, what it had left may be gone */
        st = check_window(s, first_seen(s, &m), from, err);
    if (st != EBB_OK)
        return st;
    ebb_suffix_index_truncate(&s->index, from);
    if (from == m.end) {
        cut_tail(s, from);
        return EBB_OK;
    }
    st = prepare_shift(s, n, &m, err);
    if (st != EBB_OK)
        return st;
    ebb_draft_model_shift(s, from, n);
    cache_salt = derive_salt(s, from, n);
    s->n_hidden = 0;
    ebb_forward_shift_kv(&e->run, &m);
    ebb_kv_truncate(e->kv, &s->table, m.end);
    memmove(s->ids + from, s->ids + from + n, (m.end - from) * sizeof *s->ids);
    s->window_from = m.from[EBB_KV_WINDOW] > from ? m.from[EBB_KV_WINDOW] : s->window_from;
    ebb_prefix_set_salt(s, &cache_salt);
    ebb_stats_idle(e, s);
    return EBB_OK;
}

ebb_cache_salt ebb_session_get_cache_salt(const ebb_session *s)
{
    return s->cache_salt;
}

void ebb_session_set_cache_salt(ebb_session *s, const ebb_cache_salt *cache_salt)
{
    s->next_salt = *cache_salt;
    s->has_next_salt = true;
}
