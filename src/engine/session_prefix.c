/* What is there already of a timeline (engine_impl.h): in this session, in
 * another one, in blocks of the pool that no session holds, on disk. */
#include <string.h>

#include "base/hash.h"
#include "engine_impl.h"

/* -- Names ------------------------------------------------------------------------- */

/* Link i got its name. */
static void end_link(ebb_link *chain, const ebb_shift *shift, uint32_t i)
{
    ebb_link *l = &chain[i];

    if (shift->is_on && i == shift->pos / EBB_KV_BLOCK)
        ebb_hash128(shift->salt, sizeof shift->salt, l->name, l->behind);
    else
        memcpy(l->behind, l->name, sizeof l->behind);
    memset(l->source, 0, sizeof l->source);
    l->is_read = l->is_bad = false;
}

static void begin_chain(const ebb_engine *e, ebb_link *chain, const ebb_shift *shift)
{
    memcpy(chain[0].name, e->shape, sizeof chain[0].name);
    end_link(chain, shift, 0);
}

static void name_next(ebb_link *chain, const ebb_shift *shift, uint32_t i, const ebb_token *ids)
{
    ebb_hash128(ids + i * EBB_KV_BLOCK, EBB_KV_BLOCK * sizeof *ids, chain[i].behind, chain[i + 1].name);
    end_link(chain, shift, i + 1);
}

/* s->want: links of ids under a shift. */
static void want(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_shift *shift)
{
    begin_chain(s->engine, s->want, shift);
    for (uint32_t i = 0; i < n / EBB_KV_BLOCK; i++)
        name_next(s->want, shift, i, ids);
}

static void name_block(ebb_session *s, uint32_t i)
{
    ebb_kv_label label = { .ids = s->ids + i * EBB_KV_BLOCK };

    memcpy(label.name, s->chain[i + 1].name, sizeof label.name);
    memcpy(label.before, s->chain[i].behind, sizeof label.before);
    ebb_kv_name(s->engine->kv, &s->table, EBB_KV_ALL, i, &label);
    if (ebb_kv_window(s->engine->kv) && s->table.blocks[EBB_KV_WINDOW][i] != EBB_KV_NONE && i * EBB_KV_BLOCK >= s->window_from)
        ebb_kv_name(s->engine->kv, &s->table, EBB_KV_WINDOW, i, &label);
}

void ebb_prefix_name_blocks(ebb_session *s)
{
    if (s->n_chained == 0)
        begin_chain(s->engine, s->chain, &s->shift);
    for (; s->n_chained < ebb_session_length(s) / EBB_KV_BLOCK; s->n_chained++) {
        name_next(s->chain, &s->shift, s->n_chained, s->ids);
        name_block(s, s->n_chained);
    }
}

void ebb_prefix_set_shift(ebb_session *s, const ebb_shift *shift)
{
    uint32_t i = shift->is_on ? shift->pos / EBB_KV_BLOCK : 0;

    s->shift = *shift;
    s->n_chained = s->n_chained < i ? s->n_chained : i;
    end_link(s->chain, &s->shift, s->n_chained);
    ebb_prefix_name_blocks(s);
}

ebb_disk_item ebb_prefix_item(const ebb_session *s, ebb_disk_kind kind, const ebb_token *ids, uint32_t i, uint32_t n_ids)
{
    const ebb_engine *e = s->engine;
    bool is_block = kind == EBB_DISK_BLOCK || kind == EBB_DISK_WINDOW;
    int group = kind == EBB_DISK_WINDOW || kind == EBB_DISK_WINDOW_TAIL ? EBB_KV_WINDOW : EBB_KV_ALL;
    ebb_disk_item item = {
        .kind = kind, .pos = i * EBB_KV_BLOCK, .ids = ids + i * EBB_KV_BLOCK, .n_ids = n_ids,
        .n_data = kind == EBB_DISK_STATE ? e->net.state_bytes : ebb_kv_size_of_block(e->kv, group),
    };

    memcpy(item.name, is_block ? s->want[i + 1].name : s->want[i].behind, sizeof item.name);
    memcpy(item.shape, e->shape, sizeof item.shape);
    return item;
}

/* -- Sessions ----------------------------------------------------------------------- */

static bool same_shift(const ebb_shift *a, const ebb_shift *b)
{
    return a->is_on == b->is_on && (!a->is_on || (a->pos == b->pos && memcmp(a->salt, b->salt, sizeof a->salt) == 0));
}

/* Positions of ids under a shift that stand in s. */
static uint32_t common(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_shift *shift)
{
    uint32_t end = ebb_session_length(s) < n ? ebb_session_length(s) : (uint32_t)n, i = 0;

    if (!same_shift(&s->shift, shift)) {
        end = s->shift.is_on && s->shift.pos < end ? s->shift.pos : end;
        end = shift->is_on && shift->pos < end ? shift->pos : end;
    }
    while (i < end && s->ids[i] == ids[i])
        i++;
    return i;
}

/* The session of the engine that shares most with ids. */
static ebb_session *best_source(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_shift *shift,
                                uint32_t *n_common)
{
    ebb_session *best = (ebb_session *)(uintptr_t)s;

    *n_common = common(s, ids, n, shift);
    for (ebb_session *t = s->engine->sessions; t; t = t->next) {
        uint32_t c = t == s ? 0 : common(t, ids, n, shift);

        if (c > *n_common) {
            *n_common = c;
            best = t;
        }
    }
    return best;
}

ebb_shift ebb_prefix_shift(const ebb_session *s, const ebb_token *ids, size_t n)
{
    static const ebb_shift none;

    if (s->is_expected)
        return s->expected;
    return s->shift.is_on && common(s, ids, n, &s->shift) > s->shift.pos ? s->shift : none;
}

/* -- Full blocks --------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether the timeline that shares most has all of a block that is wanted. */
static bool in_table(const ebb_prefix *p, int group, uint32_t i)
{
    return (i + 1) * EBB_KV_BLOCK <= p->n_common && p->from->table.blocks[group][i] != EBB_KV_NONE;
}

static ebb_found find_source(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    ebb_disk_item item = ebb_prefix_item(s, group == EBB_KV_ALL ? EBB_DISK_BLOCK : EBB_DISK_WINDOW, p->ids, i, EBB_KV_BLOCK);
    uint32_t n_ids;

    if (ebb_kv_find(s->engine->kv, group, item.name) != EBB_KV_NONE)
        return EBB_FOUND_POOL;
    if (in_table(p, group, i))
        return EBB_FOUND_TABLE;
    return s->engine->disk && ebb_disk_has(s->engine->disk, &item, &n_ids) ? EBB_FOUND_DISK : EBB_FOUND_NONE;
}

/* Where full block i is; asked once. */
static ebb_found source(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    ebb_found *at = &s->want[i + 1].source[group];

    if (*at == EBB_FOUND_UNKNOWN)
        *at = find_source(s, p, group, i);
    return *at;
}

/* -- The positions behind them --------------------------------------------------------- */

static bool has_window(const ebb_session *s)
{
    return ebb_kv_window(s->engine->kv) > 0;
}

/* Of n ids in block i, those that the tail on disk has. */
static uint32_t tail_on_disk(const ebb_session *s, const ebb_prefix *p, ebb_disk_kind kind, uint32_t i, uint32_t n)
{
    ebb_disk_item item = ebb_prefix_item(s, kind, p->ids, i, n);
    uint32_t n_ids;

    return s->engine->disk && ebb_disk_has(s->engine->disk, &item, &n_ids) ? n_ids : 0;
}

static void offer(ebb_prefix *p, ebb_found part, uint32_t n)
{
    if (n > p->n_part) {
        p->part = part;
        p->n_part = n;
    }
}

static void look_at_children(const ebb_session *s, ebb_prefix *p, uint32_t n)
{
    const ebb_kv *kv = s->engine->kv;
    uint32_t n_same;

    p->child[EBB_KV_ALL] = ebb_kv_find_child(kv, EBB_KV_ALL, s->want[p->n_full].behind, p->ids + p->n_full * EBB_KV_BLOCK, n,
                                             &n_same);
    p->child[EBB_KV_WINDOW] = EBB_KV_NONE;
    if (n_same > 0 && has_window(s))
        p->child[EBB_KV_WINDOW] = ebb_kv_find(kv, EBB_KV_WINDOW, ebb_kv_name_of(kv, EBB_KV_ALL, p->child[EBB_KV_ALL]));
    if (!has_window(s) || p->child[EBB_KV_WINDOW] != EBB_KV_NONE)
        offer(p, EBB_FOUND_POOL, n_same);
}

static void look_at_part(const ebb_session *s, ebb_prefix *p)
{
    uint32_t i = p->n_full, at = i * EBB_KV_BLOCK, n = smaller(p->n_ids - at, EBB_KV_BLOCK), n_tail;

    p->part = EBB_FOUND_NONE;
    p->n_part = 0;
    if (n == 0)
        return;
    if (p->n_common > at && (!has_window(s) || p->from->table.blocks[EBB_KV_WINDOW][i] != EBB_KV_NONE))
        offer(p, EBB_FOUND_TABLE, smaller(p->n_common - at, n));
    if (p->n_part < n)
        look_at_children(s, p, n);
    if (p->n_part == n)
        return;
    n_tail = tail_on_disk(s, p, EBB_DISK_TAIL, i, n);
    if (n_tail > p->n_part && has_window(s))
        n_tail = smaller(n_tail, tail_on_disk(s, p, EBB_DISK_WINDOW_TAIL, i, n));
    offer(p, EBB_FOUND_DISK, n_tail);
}

/* -- Windows and states ----------------------------------------------------------------- */

/* Whether the windows' part of block i is there, as position n sees it. */
static bool is_seen(const ebb_session *s, const ebb_prefix *p, uint32_t i, uint32_t n)
{
    uint32_t first = n > ebb_kv_window(s->engine->kv) ? n - ebb_kv_window(s->engine->kv) + 1 : 0;
    bool is_table = i == p->n_full ? p->part == EBB_FOUND_TABLE : source(s, p, EBB_KV_WINDOW, i) == EBB_FOUND_TABLE;

    if (i < p->n_full && source(s, p, EBB_KV_WINDOW, i) == EBB_FOUND_NONE)
        return false;
    first = first > i * EBB_KV_BLOCK ? first : i * EBB_KV_BLOCK;
    return !is_table || first >= p->from->window_from;
}

/* The most positions, n at most, behind which all that a window sees is there. */
static uint32_t fit_window(const ebb_session *s, const ebb_prefix *p, uint32_t n)
{
    while (has_window(s) && n > 0) {
        uint32_t first = ebb_kv_first(s->engine->kv, EBB_KV_WINDOW, n), i = ebb_kv_blocks_of(n);

        while (i > first && is_seen(s, p, i - 1, n))
            i--;
        if (i == first)
            return n;
        n = (i - 1) * EBB_KV_BLOCK;
    }
    return n;
}

void ebb_prefix_look(const ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_shift *shift, bool with_logits,
                     ebb_prefix *p)
{
    *p = (ebb_prefix){ .ids = ids, .n_ids = n, .shift = shift };
    p->from = best_source(s, ids, n, shift, &p->n_common);
    want(s, ids, n, shift);
    while (p->n_full < n / EBB_KV_BLOCK && source(s, p, EBB_KV_ALL, p->n_full) != EBB_FOUND_NONE)
        p->n_full++;
    look_at_part(s, p);
    p->n_pos = p->n_full * EBB_KV_BLOCK + p->n_part;
    p->stands = p->from == s && p->n_common == ebb_session_length(s) && p->n_pos == p->n_common;
    if (with_logits && p->n_pos == n && n > 0 && !(p->stands && s->has_logits)) {
        p->n_pos--;                              /* one is computed for its logits */
        p->stands = false;
    }
    n = fit_window(s, p, p->n_pos);
    p->stands = p->stands && n == p->n_pos;
    p->n_pos = n;
}

uint32_t ebb_prefix_state_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_min, ebb_disk_item *out)
{
    if (!s->engine->disk || s->engine->net.state_bytes == 0)
        return 0;
    for (uint32_t i = n / EBB_KV_BLOCK + 1; i-- > n_min / EBB_KV_BLOCK;) {
        uint32_t n_ids;

        *out = ebb_prefix_item(s, EBB_DISK_STATE, ids, i, smaller(n - i * EBB_KV_BLOCK, EBB_KV_BLOCK));
        if (ebb_disk_has(s->engine->disk, out, &n_ids) && i * EBB_KV_BLOCK + n_ids > n_min) {
            out->n_ids = n_ids;
            return i * EBB_KV_BLOCK + n_ids;
        }
    }
    return 0;
}

/* -- What a session would reuse ------------------------------------------------------------ */

static uint32_t find_common(const ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_shift *shift)
{
    ebb_disk_item item;
    uint32_t n_ram, n_disk;
    ebb_prefix p;

    ebb_prefix_look(s, ids, n, shift, false, &p);
    n_ram = ebb_state_find(s, ids, p.n_pos, p.stands);
    n_disk = ebb_prefix_state_on_disk(s, ids, p.n_pos, n_ram, &item);
    return n_disk > n_ram ? n_disk : n_ram;
}

size_t ebb_session_common(const ebb_session *s, const ebb_token *ids, size_t n_ids)
{
    static const ebb_shift none;
    uint32_t n = (uint32_t)(n_ids < s->engine->plan.n_ctx ? n_ids : s->engine->plan.n_ctx), n_common;
    ebb_shift shift = ebb_prefix_shift(s, ids, n);

    n_common = find_common(s, ids, n, &shift);
    return shift.is_on && n_common <= shift.pos ? find_common(s, ids, n, &none) : n_common;
}
