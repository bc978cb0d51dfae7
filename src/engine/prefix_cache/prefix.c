/* Looking up the longest cached prefix of a sequence (prefix.h): in this session, in another one, in cached blocks of
 * the pool, on disk. */
#include <string.h>

#include "base/hash.h"
#include "ebb/experimental/cache_salt.h"
#include "open/engine_state.h"

/* -- Hashes ------------------------------------------------------------------------ */

/* Block i has its hash now. */
static void finish_block(ebb_prefix_block *hashes, const ebb_cache_salt *cache_salt, uint32_t i)
{
    ebb_prefix_block *l = &hashes[i];

    if (cache_salt->is_on && i == cache_salt->pos / EBB_KV_BLOCK)
        ebb_hash128(cache_salt->salt, sizeof cache_salt->salt, l->hash, l->next_parent);
    else
        memcpy(l->next_parent, l->hash, sizeof l->next_parent);
    memset(l->source, 0, sizeof l->source);
    l->is_read = l->is_bad = false;
}

static void begin_hashes(const ebb_engine *e, ebb_prefix_block *hashes, const ebb_cache_salt *cache_salt)
{
    memcpy(hashes[0].hash, e->cache.shape, sizeof hashes[0].hash);
    finish_block(hashes, cache_salt, 0);
}

static void hash_next_block(ebb_prefix_block *hashes, const ebb_cache_salt *cache_salt, uint32_t i,
                            const ebb_token *ids)
{
    ebb_hash128(ids + i * EBB_KV_BLOCK, EBB_KV_BLOCK * sizeof *ids, hashes[i].next_parent, hashes[i + 1].hash);
    finish_block(hashes, cache_salt, i + 1);
}

/* s->wanted: block hashes of ids under a context shift. */
static void hash_wanted(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_cache_salt *cache_salt)
{
    begin_hashes(s->engine, s->wanted, cache_salt);
    for (uint32_t i = 0; i < n / EBB_KV_BLOCK; i++)
        hash_next_block(s->wanted, cache_salt, i, ids);
}

static void publish_block(ebb_session *s, uint32_t i)
{
    ebb_block_hash block_hash = { .ids = s->ids + i * EBB_KV_BLOCK };

    memcpy(block_hash.hash, s->hashes[i + 1].hash, sizeof block_hash.hash);
    memcpy(block_hash.parent_hash, s->hashes[i].next_parent, sizeof block_hash.parent_hash);
    ebb_kv_set_hash(s->engine->kv, &s->table, EBB_KV_ALL, i, &block_hash);
    if (ebb_kv_window(s->engine->kv) && s->table.blocks[EBB_KV_WINDOW][i] != EBB_KV_NONE &&
        i * EBB_KV_BLOCK >= s->window_from)
        ebb_kv_set_hash(s->engine->kv, &s->table, EBB_KV_WINDOW, i, &block_hash);
}

void ebb_prefix_hash_blocks(ebb_session *s)
{
    if (s->n_hashed == 0)
        begin_hashes(s->engine, s->hashes, &s->cache_salt);
    for (; s->n_hashed < ebb_session_length(s) / EBB_KV_BLOCK; s->n_hashed++) {
        hash_next_block(s->hashes, &s->cache_salt, s->n_hashed, s->ids);
        publish_block(s, s->n_hashed);
    }
}

void ebb_prefix_set_salt(ebb_session *s, const ebb_cache_salt *cache_salt)
{
    uint32_t i = cache_salt->is_on ? cache_salt->pos / EBB_KV_BLOCK : 0;

    s->cache_salt = *cache_salt;
    s->n_hashed = s->n_hashed < i ? s->n_hashed : i;
    finish_block(s->hashes, &s->cache_salt, s->n_hashed);
    ebb_prefix_hash_blocks(s);
}

ebb_kv_file ebb_prefix_disk_item(const ebb_session *s, ebb_kv_file_kind kind, const ebb_token *ids, uint32_t i,
                                 uint32_t n_ids)
{
    const ebb_engine *e = s->engine;
    bool is_block = kind == EBB_KV_FILE_BLOCK || kind == EBB_KV_FILE_WINDOW;
    int group = kind == EBB_KV_FILE_WINDOW || kind == EBB_KV_FILE_WINDOW_TAIL ? EBB_KV_WINDOW : EBB_KV_ALL;
    ebb_kv_file item = {
        .seal = e->cache.seal, .kind = kind, .pos = i * EBB_KV_BLOCK, .ids = ids + i * EBB_KV_BLOCK, .n_ids = n_ids,
        .n_data = kind == EBB_KV_FILE_STATE ? e->net.state_bytes : ebb_kv_group_block_bytes(e->kv, group),
    };

    memcpy(item.hash, is_block ? s->wanted[i + 1].hash : s->wanted[i].next_parent, sizeof item.hash);
    memcpy(item.shape, e->cache.shape, sizeof item.shape);
    return item;
}

/* -- Sessions ----------------------------------------------------------------------- */

static bool is_same_salt(const ebb_cache_salt *a, const ebb_cache_salt *b)
{
    return a->is_on == b->is_on && (!a->is_on || (a->pos == b->pos && memcmp(a->salt, b->salt, sizeof a->salt) == 0));
}

/* How many positions of ids s already holds under a context shift. */
static uint32_t count_common(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_cache_salt *cache_salt)
{
    uint32_t end = ebb_session_length(s) < n ? ebb_session_length(s) : (uint32_t)n, i = 0;

    if (!is_same_salt(&s->cache_salt, cache_salt)) {
        end = s->cache_salt.is_on && s->cache_salt.pos < end ? s->cache_salt.pos : end;
        end = cache_salt->is_on && cache_salt->pos < end ? cache_salt->pos : end;
    }
    while (i < end && s->ids[i] == ids[i])
        i++;
    return i;
}

/* The session of the engine that shares most with ids. */
static ebb_session *best_source(const ebb_session *s, const ebb_token *ids, size_t n, const ebb_cache_salt *cache_salt,
                                uint32_t *n_common)
{
    ebb_session *best = (ebb_session *)(uintptr_t)s;

    *n_common = count_common(s, ids, n, cache_salt);
    for (ebb_session *t = s->engine->sessions; t; t = t->next) {
        uint32_t c = t == s ? 0 : count_common(t, ids, n, cache_salt);

        if (c > *n_common) {
            *n_common = c;
            best = t;
        }
    }
    return best;
}

ebb_cache_salt ebb_prefix_choose_salt(const ebb_session *s, const ebb_token *ids, size_t n)
{
    static const ebb_cache_salt none;

    if (s->has_next_salt)
        return s->next_salt;
    return s->cache_salt.is_on && count_common(s, ids, n, &s->cache_salt) > s->cache_salt.pos ? s->cache_salt : none;
}

/* -- Full blocks --------------------------------------------------------------------- */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether the sequence that shares most has all of a block that is wanted. */
static bool in_table(const ebb_prefix *p, int group, uint32_t i)
{
    return (i + 1) * EBB_KV_BLOCK <= p->n_common && p->from->table.blocks[group][i] != EBB_KV_NONE;
}

static ebb_block_source find_block_source(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    ebb_kv_file item = ebb_prefix_disk_item(s, group == EBB_KV_ALL ? EBB_KV_FILE_BLOCK : EBB_KV_FILE_WINDOW, p->ids, i,
                                            EBB_KV_BLOCK);
    uint32_t n_ids;

    if (ebb_kv_find_block(s->engine->kv, group, item.hash) != EBB_KV_NONE)
        return EBB_BLOCK_IN_POOL;
    if (in_table(p, group, i))
        return EBB_BLOCK_IN_TABLE;
    return s->engine->cache.disk && ebb_kv_disk_has(s->engine->cache.disk, &item, &n_ids) ? EBB_BLOCK_ON_DISK
                                                                                          : EBB_BLOCK_NOWHERE;
}

/* Where full block i is; asked once. */
static ebb_block_source block_source(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    ebb_block_source *at = &s->wanted[i + 1].source[group];

    if (*at == EBB_BLOCK_UNKNOWN)
        *at = find_block_source(s, p, group, i);
    return *at;
}

/* -- The positions behind them --------------------------------------------------------- */

static bool has_window(const ebb_session *s)
{
    return ebb_kv_window(s->engine->kv) > 0;
}

/* Of n ids in block i, those that the tail on disk has. */
static uint32_t tail_on_disk(const ebb_session *s, const ebb_prefix *p, ebb_kv_file_kind kind, uint32_t i, uint32_t n)
{
    ebb_kv_file item = ebb_prefix_disk_item(s, kind, p->ids, i, n);
    uint32_t n_ids;

    return s->engine->cache.disk && ebb_kv_disk_has(s->engine->cache.disk, &item, &n_ids) ? n_ids : 0;
}

static void offer_partial_block(ebb_prefix *p, ebb_block_source part, uint32_t n)
{
    if (n > p->n_part) {
        p->part = part;
        p->n_part = n;
    }
}

static void find_partial_in_pool(const ebb_session *s, ebb_prefix *p, uint32_t n)
{
    const ebb_kv *kv = s->engine->kv;
    uint32_t n_same;

    p->child[EBB_KV_ALL] = ebb_kv_find_child(kv, EBB_KV_ALL, s->wanted[p->n_full].next_parent,
                                             p->ids + p->n_full * EBB_KV_BLOCK, n, &n_same);
    p->child[EBB_KV_WINDOW] = EBB_KV_NONE;
    if (n_same > 0 && has_window(s))
        p->child[EBB_KV_WINDOW] = ebb_kv_find_block(kv, EBB_KV_WINDOW,
                                                    ebb_kv_hash_of(kv, EBB_KV_ALL, p->child[EBB_KV_ALL]));
    if (!has_window(s) || p->child[EBB_KV_WINDOW] != EBB_KV_NONE)
        offer_partial_block(p, EBB_BLOCK_IN_POOL, n_same);
}

static void find_partial_block(const ebb_session *s, ebb_prefix *p)
{
    uint32_t i = p->n_full, at = i * EBB_KV_BLOCK, n = min_u32(p->n_ids - at, EBB_KV_BLOCK), n_tail;

    p->part = EBB_BLOCK_NOWHERE;
    p->n_part = 0;
    if (n == 0)
        return;
    if (p->n_common > at && (!has_window(s) || p->from->table.blocks[EBB_KV_WINDOW][i] != EBB_KV_NONE))
        offer_partial_block(p, EBB_BLOCK_IN_TABLE, min_u32(p->n_common - at, n));
    if (p->n_part < n)
        find_partial_in_pool(s, p, n);
    if (p->n_part == n)
        return;
    n_tail = tail_on_disk(s, p, EBB_KV_FILE_TAIL, i, n);
    if (n_tail > p->n_part && has_window(s))
        n_tail = min_u32(n_tail, tail_on_disk(s, p, EBB_KV_FILE_WINDOW_TAIL, i, n));
    offer_partial_block(p, EBB_BLOCK_ON_DISK, n_tail);
}

/* -- Windows and states ----------------------------------------------------------------- */

/* Whether the windows' part of block i is there, as position n sees it. */
static bool is_seen(const ebb_session *s, const ebb_prefix *p, uint32_t i, uint32_t n)
{
    uint32_t first = n > ebb_kv_window(s->engine->kv) ? n - ebb_kv_window(s->engine->kv) + 1 : 0;
    bool is_table = i == p->n_full ? p->part == EBB_BLOCK_IN_TABLE
                                   : block_source(s, p, EBB_KV_WINDOW, i) == EBB_BLOCK_IN_TABLE;

    if (i < p->n_full && block_source(s, p, EBB_KV_WINDOW, i) == EBB_BLOCK_NOWHERE)
        return false;
    first = first > i * EBB_KV_BLOCK ? first : i * EBB_KV_BLOCK;
    return !is_table || first >= p->from->window_from;
}

/* The most positions, n at most, behind which all that a window sees is there. */
static uint32_t fit_window(const ebb_session *s, const ebb_prefix *p, uint32_t n)
{
    while (has_window(s) && n > 0) {
        uint32_t first = ebb_kv_first_visible(s->engine->kv, EBB_KV_WINDOW, n), i = ebb_kv_blocks_of(n);

        while (i > first && is_seen(s, p, i - 1, n))
            i--;
        if (i == first)
            return n;
        n = (i - 1) * EBB_KV_BLOCK;
    }
    return n;
}

/* With the sequence `from`, which shares n_common positions. */
static void look_up(const ebb_session *s, const ebb_prefix *wanted, bool with_logits, ebb_prefix *p)
{
    uint32_t n = wanted->n_ids;

    *p = *wanted;
    hash_wanted(s, p->ids, n, p->cache_salt);
    while (p->n_full < n / EBB_KV_BLOCK && block_source(s, p, EBB_KV_ALL, p->n_full) != EBB_BLOCK_NOWHERE)
        p->n_full++;
    find_partial_block(s, p);
    p->n_pos = p->n_full * EBB_KV_BLOCK + p->n_part;
    p->is_current = p->from == s && p->n_common == ebb_session_length(s) && p->n_pos == p->n_common;
    if (with_logits && p->n_pos == n && n > 0 && !(p->is_current && s->has_logits)) {
        p->n_pos--;                              /* one is computed for its logits */
        p->is_current = false;
    }
    n = fit_window(s, p, p->n_pos);
    p->is_current = p->is_current && n == p->n_pos;
    p->n_pos = n;
}

void ebb_prefix_lookup(const ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_cache_salt *cache_salt,
                       bool with_logits, ebb_prefix *p)
{
    ebb_prefix wanted = { .ids = ids, .n_ids = n, .cache_salt = cache_salt };
    uint32_t n_own;

    wanted.from = best_source(s, ids, n, cache_salt, &wanted.n_common);
    look_up(s, &wanted, with_logits, p);
    if (!has_window(s))
        return;
    n_own = count_common(s, ids, n, cache_salt);
    if (n_own == n || n_own < ebb_session_length(s) || p->n_pos >= n_own)
        return;
    /* More of the ids is there, but not all that windows see behind it: the sequence goes on from where it is. */
    wanted.from = (ebb_session *)(uintptr_t)s;
    wanted.n_ids = wanted.n_common = n_own;
    look_up(s, &wanted, false, p);
}

uint32_t ebb_prefix_checkpoint_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_min,
                                       ebb_kv_file *out)
{
    if (!s->engine->cache.disk || s->engine->net.state_bytes == 0)
        return 0;
    for (uint32_t i = n / EBB_KV_BLOCK + 1; i-- > n_min / EBB_KV_BLOCK;) {
        uint32_t n_ids;

        *out = ebb_prefix_disk_item(s, EBB_KV_FILE_STATE, ids, i, min_u32(n - i * EBB_KV_BLOCK, EBB_KV_BLOCK));
        if (ebb_kv_disk_has(s->engine->cache.disk, out, &n_ids) && i * EBB_KV_BLOCK + n_ids > n_min) {
            out->n_ids = n_ids;
            return i * EBB_KV_BLOCK + n_ids;
        }
    }
    return 0;
}

/* -- What a session would reuse ------------------------------------------------------------ */

static uint32_t find_common(const ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_cache_salt *cache_salt)
{
    ebb_kv_file item;
    uint32_t n_ram, n_disk;
    ebb_prefix p;

    ebb_prefix_lookup(s, ids, n, cache_salt, true, &p);
    n_ram = ebb_checkpoint_find(s, ids, p.n_pos, ebb_state_live_prefix(s, ids, n));
    n_disk = ebb_prefix_checkpoint_on_disk(s, ids, p.n_pos, n_ram, &item);
    return n_disk > n_ram ? n_disk : n_ram;
}

size_t ebb_session_common_prefix(const ebb_session *s, const ebb_token *ids, size_t n_ids)
{
    static const ebb_cache_salt none;
    uint32_t n = (uint32_t)(n_ids < s->engine->plan.n_ctx ? n_ids : s->engine->plan.n_ctx), n_common;
    ebb_cache_salt cache_salt = ebb_prefix_choose_salt(s, ids, n);

    n_common = find_common(s, ids, n, &cache_salt);
    return cache_salt.is_on && n_common <= cache_salt.pos ? find_common(s, ids, n, &none) : n_common;
}
