/* Putting the longest cached prefix into a session (prefix.h). */
#include <string.h>

#include "open/engine_state.h"
#include "ebb/experimental/cache_salt.h"

#define TRIES 3u                 /* damaged files may be met on the way */

static bool has_group(const ebb_session *s, int group)
{
    return ebb_kv_n_blocks(s->engine->kv, group) > 0;
}

/* -- Blocks that are in RAM ----------------------------------------------------------- */

/* Block i, of which the prefix holds all or the beginning; EBB_KV_NONE: it is on disk. */
static uint32_t block_in_ram(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    ebb_block_source source = i < p->n_full ? s->wanted[i + 1].source[group] : p->part;

    if (source == EBB_BLOCK_IN_TABLE)
        return p->from->table.blocks[group][i];
    if (source == EBB_BLOCK_ON_DISK)
        return EBB_KV_NONE;
    return i < p->n_full ? ebb_kv_find_block(s->engine->kv, group, s->wanted[i + 1].hash) : p->child[group];
}

/* The table holds p->n_pos positions, but for the blocks that are on disk.  Nothing is overwritten. */
static void hold_blocks_in_ram(ebb_session *s, const ebb_prefix *p)
{
    ebb_kv *kv = s->engine->kv;

    ebb_kv_resize_table(kv, &s->table, p->n_pos);
    for (int g = 0; g < EBB_KV_GROUPS && has_group(s, g); g++) {
        uint32_t first = ebb_kv_first_visible(kv, g, p->n_pos);

        for (uint32_t i = 0; i < s->table.n_blocks; i++)
            ebb_kv_set_block(kv, &s->table, g, i, i < first ? EBB_KV_NONE : block_in_ram(s, p, g, i));
    }
}

/* -- Blocks that are on disk ------------------------------------------------------------ */

typedef struct load_job {
    ebb_session      *s;
    const ebb_prefix *p;
} load_job;

static bool is_on_disk(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    ebb_block_source source = i < p->n_full ? s->wanted[i + 1].source[group] : p->part;

    return source == EBB_BLOCK_ON_DISK && i >= ebb_kv_first_visible(s->engine->kv, group, p->n_pos);
}

/* The part of block i in a group. */
static bool read_block_from_disk(const ebb_session *s, const ebb_prefix *p, int group, uint32_t i)
{
    static const ebb_kv_file_kind kinds[][2] = {
        [EBB_KV_ALL] = { EBB_KV_FILE_TAIL, EBB_KV_FILE_BLOCK },
        [EBB_KV_WINDOW] = { EBB_KV_FILE_WINDOW_TAIL, EBB_KV_FILE_WINDOW },
    };
    bool is_full = i < p->n_full;
    ebb_kv_file item = ebb_prefix_disk_item(s, kinds[group][is_full], p->ids, i, is_full ? EBB_KV_BLOCK : p->n_part);

    item.data = ebb_kv_data(s->engine->kv, group, s->table.blocks[group][i]);
    return ebb_kv_disk_read(s->engine->cache.disk, &item);
}

static void read_blocks_slice(void *arg, uint32_t i, uint32_t thread)
{
    const load_job *job = arg;
    ebb_prefix_block *l = &job->s->wanted[i + 1];

    (void)thread;
    for (int g = 0; g < EBB_KV_GROUPS && has_group(job->s, g); g++) {
        if (!is_on_disk(job->s, job->p, g, i))
            continue;
        l->is_bad |= !read_block_from_disk(job->s, job->p, g, i);
        l->is_read |= g == EBB_KV_ALL;
    }
}

/* Free blocks for what is on disk; other sequences are preempted.  Returns how many blocks have got theirs. */
static uint32_t take_free_blocks(ebb_session *s, const ebb_prefix *p)
{
    for (uint32_t i = 0; i < s->table.n_blocks; i++)
        for (int g = 0; g < EBB_KV_GROUPS && has_group(s, g); g++)
            while (is_on_disk(s, p, g, i) && s->table.blocks[g][i] == EBB_KV_NONE)
                if (ebb_kv_alloc_block(s->engine->kv, &s->table, g, i, NULL) != EBB_OK && !ebb_session_evict_other(s))
                    return i;
    return s->table.n_blocks;
}

static bool any_on_disk(const ebb_session *s, const ebb_prefix *p)
{
    for (uint32_t i = 0; i < s->table.n_blocks; i++)
        for (int g = 0; g < EBB_KV_GROUPS && has_group(s, g); g++)
            if (is_on_disk(s, p, g, i))
                return true;
    return false;
}

/* Read the blocks that are on disk; returns how many positions are valid then. */
static uint32_t read_blocks(ebb_session *s, const ebb_prefix *p)
{
    load_job job = { s, p };
    uint32_t n_blocks, n_good = 0;

    s->wanted[p->n_full + 1].is_bad = s->wanted[p->n_full + 1].is_read = false;  /* a partial block has no hash */
    if (!any_on_disk(s, p))
        return p->n_pos;
    n_blocks = take_free_blocks(s, p);
    ebb_pool_run(s->engine->pool, read_blocks_slice, &job, n_blocks);
    while (n_good < n_blocks && !s->wanted[n_good + 1].is_bad)
        n_good++;
    return n_good < s->table.n_blocks ? n_good * EBB_KV_BLOCK : p->n_pos;
}

/* -- Reusing --------------------------------------------------------------------------------- */

/* The table holds n positions of p->ids. */
static void set_table_length(ebb_session *s, const ebb_prefix *p, uint32_t n)
{
    ebb_kv_truncate(s->engine->kv, &s->table, n);
    if (n > 0)                                   /* ids may be NULL where n is 0 */
        memmove(s->ids, p->ids, n * sizeof *s->ids);
    s->cache_salt = *p->cache_salt;
    s->n_hashed = 0;
    ebb_prefix_hash_blocks(s);                   /* those that were read have none */
}

/* Fetch the deepest state that pool or disk have; the table holds n positions of ids. */
static uint32_t restore_deepest_state(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live)
{
    ebb_kv_file item;
    uint32_t n_ram = ebb_checkpoint_find(s, ids, n, n_live),
             n_pos = ebb_prefix_checkpoint_on_disk(s, ids, n, n_ram, &item);
    ebb_state_slot *slot;

    if (n_pos > 0 && (slot = ebb_state_slot_take(s))) {
        item.data = slot->state;
        if (ebb_kv_disk_read(s->engine->cache.disk, &item))
            ebb_state_slot_set_prefix(slot, ids, n_pos);
        else
            ebb_state_slot_free(slot);
    }
    return ebb_checkpoint_restore(s, ids, n, n_live);
}

/* Of the first n positions, those that were read from disk. */
static uint32_t count_disk(const ebb_session *s, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i * EBB_KV_BLOCK < n; i++) {
        uint32_t rest = n - i * EBB_KV_BLOCK;

        count += s->wanted[i + 1].is_read ? rest < EBB_KV_BLOCK ? rest : EBB_KV_BLOCK : 0;
    }
    return count;
}

/* Puts the longest cached prefix into the table; returns how many positions it has.  A damaged file is removed, and the
 * prefix looked up again. */
static uint32_t fetch_prefix(ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_cache_salt *cache_salt,
                             ebb_prefix *p)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t n_good;

        ebb_prefix_lookup(s, ids, n, cache_salt, true, p);
        p->is_current = p->is_current && i == 0;
        s->window_from = cache_salt->is_on ? p->from->window_from : 0;
        hold_blocks_in_ram(s, p);
        n_good = read_blocks(s, p);
        set_table_length(s, p, n_good);
        if (n_good == p->n_pos)
            return n_good;
    }
    set_table_length(s, p, 0);
    p->is_current = false;
    return 0;
}

static uint32_t reuse_under_salt(ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_cache_salt *cache_salt,
                                 uint32_t *n_disk)
{
    ebb_prefix p;
    uint32_t n_live = ebb_state_live_prefix(s, ids, n);          /* fetching writes s->ids */
    uint32_t n_good = fetch_prefix(s, ids, n, cache_salt, &p), n_kept;

    s->has_logits = s->has_logits && p.is_current;
    n_kept = restore_deepest_state(s, ids, n_good, n_live);
    *n_disk = count_disk(s, n_kept);
    if (n_kept < n_good)
        set_table_length(s, &p, n_kept);
    return n_kept;
}

uint32_t ebb_prefix_reuse(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t *n_disk)
{
    static const ebb_cache_salt none;
    ebb_cache_salt cache_salt = ebb_prefix_choose_salt(s, ids, n);
    uint32_t n_kept = reuse_under_salt(s, ids, n, &cache_salt, n_disk);

    s->has_next_salt = false;
    if (cache_salt.is_on && n_kept <= cache_salt.pos) /* nothing that was moved: what follows is computed, or was */
        n_kept = reuse_under_salt(s, ids, n, &none, n_disk);
    return n_kept;
}
