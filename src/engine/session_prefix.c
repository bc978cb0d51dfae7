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
    l->n_disk = 0;
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

void ebb_prefix_name_blocks(ebb_session *s)
{
    if (s->n_chained == 0)
        begin_chain(s->engine, s->chain, &s->shift);
    for (; s->n_chained < ebb_session_length(s) / EBB_KV_BLOCK; s->n_chained++) {
        name_next(s->chain, &s->shift, s->n_chained, s->ids);
        ebb_kv_name(s->engine->kv, &s->table, s->n_chained, s->chain[s->n_chained + 1].name);
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

/* The file of a kind for block i of ids and what is behind it, of which n_ids are of interest. */
static ebb_disk_item item_at(const ebb_session *s, ebb_disk_kind kind, const ebb_token *ids, uint32_t i, uint32_t n_ids)
{
    const ebb_engine *e = s->engine;
    ebb_disk_item item = {
        .kind = kind, .pos = i * EBB_KV_BLOCK, .ids = ids + i * EBB_KV_BLOCK, .n_ids = n_ids,
        .n_data = kind == EBB_DISK_STATE ? e->net.state_bytes : ebb_kv_size_of_block(e->kv),
    };

    memcpy(item.name, kind == EBB_DISK_BLOCK ? s->want[i + 1].name : s->want[i].behind, sizeof item.name);
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

/* The session of the engine that shares most with ids; NULL: s itself. */
static ebb_session *best_source(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_shift *shift,
                                uint32_t *n_common)
{
    ebb_session *best = NULL;

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

/* The shift under which ids are looked for first. */
static ebb_shift shift_of(const ebb_session *s, const ebb_token *ids, size_t n)
{
    static const ebb_shift none;

    if (s->is_expected)
        return s->expected;
    return s->shift.is_on && common(s, ids, n, &s->shift) > s->shift.pos ? s->shift : none;
}

/* -- Pool and disk ------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool in_pool(const ebb_session *s, uint32_t i)
{
    return ebb_kv_find(s->engine->kv, s->want[i + 1].name) != EBB_KV_NONE;
}

static bool on_disk(const ebb_session *s, const ebb_token *ids, uint32_t i)
{
    ebb_disk_item item = item_at(s, EBB_DISK_BLOCK, ids, i, EBB_KV_BLOCK);
    uint32_t n_ids;

    return s->engine->disk && ebb_disk_has(s->engine->disk, &item, &n_ids);
}

/* How many of the n ids behind full block i the tail on disk has. */
static uint32_t tail_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t i)
{
    ebb_disk_item item = item_at(s, EBB_DISK_TAIL, ids, i, smaller(n - i * EBB_KV_BLOCK, EBB_KV_BLOCK));
    uint32_t n_ids;

    return s->engine->disk && item.n_ids > 0 && ebb_disk_has(s->engine->disk, &item, &n_ids) ? n_ids : 0;
}

/* The state on disk that stands deepest in ids[0..n), deeper than n_min; its position, or 0. */
static uint32_t state_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_min, ebb_disk_item *out)
{
    if (!s->engine->disk || s->engine->net.state_bytes == 0)
        return 0;
    for (uint32_t i = n / EBB_KV_BLOCK + 1; i-- > n_min / EBB_KV_BLOCK;) {
        uint32_t n_ids;

        *out = item_at(s, EBB_DISK_STATE, ids, i, smaller(n - i * EBB_KV_BLOCK, EBB_KV_BLOCK));
        if (ebb_disk_has(s->engine->disk, out, &n_ids) && i * EBB_KV_BLOCK + n_ids > n_min) {
            out->n_ids = n_ids;
            return i * EBB_KV_BLOCK + n_ids;
        }
    }
    return 0;
}

/* -- Loading -------------------------------------------------------------------------- */

typedef struct load_job {
    const ebb_session *s;
    const ebb_token   *ids;
    uint32_t           first;    /* block */
} load_job;

/* A block that stands has n_disk positions in its link. */
static void load_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const load_job *job = arg;
    const ebb_session *s = job->s;
    uint32_t i = job->first + slice;
    ebb_disk_item item = item_at(s, EBB_DISK_BLOCK, job->ids, i, EBB_KV_BLOCK);

    (void)thread;
    item.data = ebb_kv_data(s->engine->kv, s->table.blocks[i]);
    s->want[i + 1].n_disk = ebb_disk_read(s->engine->disk, &item) ? EBB_KV_BLOCK : 0;
}

/* Read n blocks from block i on; returns how many stand. */
static uint32_t load_blocks(ebb_session *s, const ebb_token *ids, uint32_t i, uint32_t n)
{
    load_job job = { s, ids, i };
    uint32_t n_good = 0;

    ebb_kv_cut(s->engine->kv, &s->table, i * EBB_KV_BLOCK);
    if (ebb_session_make_room(s, (i + n) * EBB_KV_BLOCK, NULL) != EBB_OK)
        return 0;
    ebb_pool_run(s->engine->pool, load_slice, &job, n);
    while (n_good < n && s->want[i + n_good + 1].n_disk > 0) {
        ebb_kv_name(s->engine->kv, &s->table, i + n_good, s->want[i + n_good + 1].name);
        n_good++;
    }
    ebb_kv_cut(s->engine->kv, &s->table, (i + n_good) * EBB_KV_BLOCK);
    return n_good;
}

/* The tail on disk, if it has more than stands; returns how many positions it gave. */
static uint32_t load_tail(ebb_session *s, const ebb_token *ids, uint32_t n)
{
    uint32_t i = s->table.n_pos / EBB_KV_BLOCK, n_tail = tail_on_disk(s, ids, n, i);
    ebb_disk_item item = item_at(s, EBB_DISK_TAIL, ids, i, n_tail);

    if (i * EBB_KV_BLOCK + n_tail <= s->table.n_pos)
        return 0;
    ebb_kv_cut(s->engine->kv, &s->table, i * EBB_KV_BLOCK);
    if (ebb_session_make_room(s, i * EBB_KV_BLOCK + n_tail, NULL) != EBB_OK)
        return 0;
    item.data = ebb_kv_data(s->engine->kv, s->table.blocks[i]);
    if (ebb_disk_read(s->engine->disk, &item))
        return n_tail;
    ebb_kv_cut(s->engine->kv, &s->table, i * EBB_KV_BLOCK);
    return 0;
}

/* Add to the table what pool and disk have of ids; returns how many positions the tail gave. */
static uint32_t add_found(ebb_session *s, const ebb_token *ids, uint32_t n)
{
    uint32_t i = s->table.n_pos / EBB_KV_BLOCK, n_full = n / EBB_KV_BLOCK;

    while (i < n_full) {
        uint32_t b = ebb_kv_find(s->engine->kv, s->want[i + 1].name), n_disk = 0, n_good;

        if (b != EBB_KV_NONE) {
            ebb_kv_hold(s->engine->kv, b);       /* it may be the one that is cut off here */
            ebb_kv_cut(s->engine->kv, &s->table, i++ * EBB_KV_BLOCK);
            ebb_kv_adopt(s->engine->kv, &s->table, b);
            ebb_kv_release(s->engine->kv, b);
            continue;
        }
        while (i + n_disk < n_full && !in_pool(s, i + n_disk) && on_disk(s, ids, i + n_disk))
            n_disk++;
        n_good = n_disk ? load_blocks(s, ids, i, n_disk) : 0;
        i += n_good;
        if (n_disk == 0 || n_good < n_disk)
            break;
    }
    return load_tail(s, ids, n);
}

/* Fetch the deepest state that pool or disk have; the table holds n positions of ids. */
static uint32_t go_on_from(ebb_session *s, const ebb_token *ids, uint32_t n, bool stands)
{
    ebb_disk_item item;
    uint32_t n_ram = ebb_state_find(s, ids, n, stands), n_pos = state_on_disk(s, ids, n, n_ram, &item);
    ebb_slot *slot;

    if (n_pos > 0 && (slot = ebb_state_take(s))) {
        item.data = slot->state;
        if (ebb_disk_read(s->engine->disk, &item))
            ebb_state_stands_behind(slot, ids, n_pos);
        else
            ebb_state_forget(slot);
    }
    return ebb_state_rewind(s, ids, n, stands);
}

/* -- What a session does ----------------------------------------------------------------- */

static uint32_t find_common(const ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_shift *shift)
{
    uint32_t n_kv, n_ram, n_disk, n_tail, i;
    const ebb_session *from = best_source(s, ids, n, shift, &n_kv);
    bool stands = !from && n_kv == ebb_session_length(s);
    ebb_disk_item item;

    want(s, ids, n, shift);
    for (i = n_kv / EBB_KV_BLOCK; i < n / EBB_KV_BLOCK && (in_pool(s, i) || on_disk(s, ids, i)); i++)
        stands = false;
    n_kv = i * EBB_KV_BLOCK > n_kv ? i * EBB_KV_BLOCK : n_kv;
    n_tail = tail_on_disk(s, ids, n, i);
    stands = stands && i * EBB_KV_BLOCK + n_tail <= n_kv;
    n_kv = i * EBB_KV_BLOCK + n_tail > n_kv ? i * EBB_KV_BLOCK + n_tail : n_kv;
    n_ram = ebb_state_find(s, ids, n_kv, stands);
    n_disk = state_on_disk(s, ids, n_kv, n_ram, &item);
    return n_disk > n_ram ? n_disk : n_ram;
}

size_t ebb_prefix_common(const ebb_session *s, const ebb_token *ids, size_t n_ids)
{
    static const ebb_shift none;
    uint32_t n = (uint32_t)(n_ids < s->engine->plan.n_ctx ? n_ids : s->engine->plan.n_ctx), n_common;
    ebb_shift shift = shift_of(s, ids, n);

    n_common = find_common(s, ids, n, &shift);
    return shift.is_on && n_common <= shift.pos ? find_common(s, ids, n, &none) : n_common;
}

/* Of the first n positions of n_ids, those that were read from disk. */
static uint32_t count_disk(const ebb_session *s, uint32_t n, uint32_t n_ids, uint32_t n_tail)
{
    uint32_t count = 0, i = 0, rest;

    for (; (i + 1) * EBB_KV_BLOCK <= n; i++)
        count += s->want[i + 1].n_disk;
    rest = n - i * EBB_KV_BLOCK;                 /* of a tail, or of a block that was cut */
    if ((i + 1) * EBB_KV_BLOCK <= n_ids && s->want[i + 1].n_disk > n_tail)
        n_tail = s->want[i + 1].n_disk;
    return count + smaller(rest, n_tail);
}

static uint32_t reuse(ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_shift *shift, uint32_t *n_disk)
{
    uint32_t n_common, n_tail = 0, n_kept;
    ebb_session *from = best_source(s, ids, n, shift, &n_common);
    bool stands = !from && n_common == s->table.n_pos;

    want(s, ids, n, shift);
    if (n_common == n && n > 0 && !(stands && s->has_logits))
        n_common--;
    stands = !from && n_common == s->table.n_pos;
    if (from)
        ebb_kv_share(s->engine->kv, &s->table, &from->table, n_common);
    else
        ebb_kv_cut(s->engine->kv, &s->table, n_common);
    if (n_common + 1 < n)
        n_tail = add_found(s, ids, n);
    if (s->table.n_pos == n && n > n_common)
        ebb_kv_cut(s->engine->kv, &s->table, n - 1);     /* one is computed for its logits */
    stands = stands && s->table.n_pos == n_common;
    s->has_logits = s->has_logits && stands;
    n_kept = go_on_from(s, ids, s->table.n_pos, stands);
    ebb_kv_cut(s->engine->kv, &s->table, n_kept);
    if (n_kept > 0)                              /* ids may be NULL where n is 0 */
        memmove(s->ids, ids, n_kept * sizeof *ids);
    s->n_chained = n_kept / EBB_KV_BLOCK;
    memcpy(s->chain, s->want, (s->n_chained + 1) * sizeof *s->chain);
    s->shift = *shift;
    *n_disk = count_disk(s, n_kept, n, n_tail);
    return n_kept;
}

uint32_t ebb_prefix_reuse(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t *n_disk)
{
    static const ebb_shift none;
    ebb_shift shift = shift_of(s, ids, n);
    uint32_t n_kept = reuse(s, ids, n, &shift, n_disk);

    s->is_expected = false;
    if (shift.is_on && n_kept <= shift.pos)      /* nothing that was moved: what follows is computed, or was */
        n_kept = reuse(s, ids, n, &none, n_disk);
    return n_kept;
}
