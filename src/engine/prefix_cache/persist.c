/* Keeping what was computed on disk (persist.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "ebb/experimental/kv_cache.h"
#include "open/engine_state.h"
#include "open/model_file.h"
#include "os/paths.h"

#define ARITHMETIC    4u                         /* one more whenever K and V of the same tokens get other bits */
#define STATE_LAYOUT  1ull                       /* one more whenever the bytes of a state change their places */
#define N_SAMPLES     32u
#define SAMPLE_BYTES  64u

/* -- What a sequence belongs to --------------------------------------------------------- */

/* The fingerprint does not cover weights: another training of the same model is told by some bytes of them. */
static ebb_status sample_weights(ebb_engine *e, uint8_t hash[16], ebb_error *err)
{
    const ebb_gguf *g = ebb_model_gguf(e->model);
    size_t n = ebb_gguf_n_tensors(g), step = n / N_SAMPLES + 1;

    for (size_t i = 0; i < n; i += step) {
        const ebb_gguf_tensor *t = ebb_gguf_get_tensor(g, i);
        char bytes[SAMPLE_BYTES];
        size_t m = t->n_bytes < sizeof bytes ? t->n_bytes : sizeof bytes;
        ebb_status st = ebb_res_read(e->res, t->part, t->offset + (t->n_bytes - m) / 2, bytes, m, err);

        if (st != EBB_OK)
            return st;
        ebb_hash128(bytes, m, hash, hash);
    }
    return EBB_OK;
}

/* All that K, V and states of given tokens depend on. */
static ebb_status hash_cache_root(ebb_engine *e, ebb_error *err)
{
    uint64_t facts[] = {
        ARITHMETIC,
        e->plan.kv_k,
        e->plan.kv_v,
        EBB_KV_BLOCK,
        ebb_kv_group_block_bytes(e->kv, EBB_KV_ALL),
        ebb_kv_group_block_bytes(e->kv, EBB_KV_WINDOW),
        e->net.state_bytes ? e->net.state_bytes | STATE_LAYOUT << 48 : 0,
    };

    ebb_hash128(facts, sizeof facts, ebb_model_get_info(e->model)->fingerprint, e->cache.shape);
    for (uint32_t i = 0; i < e->net.n_ropes; i++)        /* may depend on the length of the context */
        ebb_hash128(e->run.buf.freqs[i], e->net.ropes[i].n_rot / 2 * sizeof *e->run.buf.freqs[i], e->cache.shape,
                    e->cache.shape);
    if (e->cache.seal)                           /* so a name tells nothing to who guesses a text */
        ebb_hash128(e->cache.shape, sizeof e->cache.shape, e->cache.seal->name_key, e->cache.shape);
    return sample_weights(e, e->cache.shape, err);
}

static uint32_t blocks_in_memory(const ebb_engine *e)
{
    uint64_t block = ebb_kv_group_block_bytes(e->kv, EBB_KV_ALL);

    return ebb_kv_n_blocks(e->kv, EBB_KV_ALL) - (uint32_t)(e->plan.kv_spill_bytes / block);
}

/* Nothing is kept; the user is told. */
static void close_folder(ebb_engine *e, const ebb_error *why)
{
    ebb_kv_disk_close(e->cache.disk);
    e->cache.disk = NULL;
    ebb_log("kv", "no KV cache on disk: %s", why->msg);
    snprintf(e->cache.notice, sizeof e->cache.notice, "no KV cache on disk: %.130s", why->msg);
}

static ebb_status find_folder(const ebb_engine_opts *o, ebb_buf *dir, ebb_error *err)
{
    if (!o->kv_cache_dir)
        return ebb_path_in(EBB_DIR_CACHE, "kv", dir, err);
    return ebb_buf_adds(dir, o->kv_cache_dir) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
}

void ebb_persist_open_folder(ebb_engine *e)
{
    const ebb_engine_opts *o = &e->opts;
    ebb_error err = { 0 };
    ebb_buf dir = { 0 };
    ebb_status st;

    if (o->no_kv_cache)
        return;
    e->cache.seal = o->kv_seal;
    st = find_folder(o, &dir, &err);
    if (st == EBB_OK)
        st = ebb_kv_disk_open(ebb_buf_text(&dir), o->kv_cache_bytes, &e->cache.disk, &err);
    if (st != EBB_OK)
        close_folder(e, &err);
    ebb_buf_fini(&dir);
}

static ebb_status check_spill_options(const ebb_engine_opts *o, ebb_error *err)
{
    if (o->no_kv_cache)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "the KV cache on disk is off (--no-kv-cache)");
    if (o->kv_seal)                              /* what is spilled is read where it is, so it would be in the clear */
        return EBB_FAIL(err, EBB_UNSUPPORTED, "the KV cache on disk is encrypted");
    return EBB_OK;
}

ebb_status ebb_persist_check_spill(const ebb_engine *e, ebb_error *err)
{
    ebb_status st = check_spill_options(&e->opts, err);

    if (st != EBB_OK)
        return st;
    return e->cache.disk ? ebb_kv_disk_check_writable(e->cache.disk, err)
                         : EBB_FAIL(err, EBB_IO, "%s", e->cache.notice);
}

ebb_status ebb_kv_cache_check_spill(const ebb_engine_opts *opts, ebb_error *err)
{
    ebb_buf dir = { 0 };
    ebb_status st = check_spill_options(opts, err);

    if (st == EBB_OK)
        st = find_folder(opts, &dir, err);
    if (st == EBB_OK)
        st = ebb_kv_disk_check(ebb_buf_text(&dir), err);
    ebb_buf_fini(&dir);
    return st;
}

ebb_engine_opts ebb_kv_cache_opts_for_plan(const ebb_engine_opts *opts)
{
    ebb_engine_opts o = opts ? *opts : (ebb_engine_opts){ 0 };

    o.no_kv_cache = ebb_kv_cache_check_spill(&o, NULL) != EBB_OK;
    return o;
}

ebb_status ebb_persist_open(ebb_engine *e, ebb_error *err)
{
    ebb_error why;
    ebb_status st;

    if (!e->cache.disk)
        return EBB_OK;
    if (!e->cache.seal) {
        st = ebb_kv_set_spill(e->kv, ebb_kv_disk_dir(e->cache.disk), e->plan.kv_spill_bytes ? blocks_in_memory(e) : 0,
                              err);
        if (st != EBB_OK)                        /* what the plan counts on */
            return st;
    }
    if (hash_cache_root(e, &why) != EBB_OK)
        close_folder(e, &why);
    return EBB_OK;
}

/* -- Jobs ---------------------------------------------------------------------------------- */

typedef struct held_block {
    int      group;
    uint32_t block;
} held_block;

typedef struct persist_job {
    ebb_kv_disk_job job;
    ebb_kv_file *items;
    ebb_token     *ids;
    held_block    *blocks;
    uint32_t       n_blocks;
    ebb_state_slot *slot;        /* held; NULL: none */
} persist_job;

static void free_persist_job(ebb_engine *e, persist_job *k)
{
    for (uint32_t i = 0; i < k->n_blocks; i++)
        ebb_kv_unref(e->kv, k->blocks[i].group, k->blocks[i].block);
    if (k->slot)
        k->slot->is_being_written = false;
    free(k->items);
    free(k->ids);
    free(k->blocks);
    free(k);
}

bool ebb_persist_reap(ebb_engine *e, bool wait)
{
    ebb_kv_disk_job *job;
    bool any = false;

    while (e->cache.disk && (job = ebb_kv_disk_reap(e->cache.disk, wait && !any))) {
        free_persist_job(e, (persist_job *)job);
        any = true;
    }
    return any;
}

void ebb_persist_close(ebb_engine *e)
{
    while (ebb_persist_reap(e, true))
        ;
    ebb_kv_disk_close(e->cache.disk);
}

static persist_job *persist_job_new(const ebb_session *s)
{
    persist_job *k = calloc(1, sizeof *k);
    uint32_t n = s->table.n_blocks;

    if (!k)
        return NULL;
    k->items = calloc(EBB_KV_GROUPS * n + 1, sizeof *k->items);
    k->blocks = calloc(EBB_KV_GROUPS * n, sizeof *k->blocks);
    k->ids = malloc(s->table.n_pos * sizeof *k->ids);
    if (k->items && k->blocks && k->ids)
        return k;
    free_persist_job(s->engine, k);
    return NULL;
}

static void add_persist_item(persist_job *k, const ebb_session *s, ebb_kv_file_kind kind, uint32_t i, void *data,
                             size_t n_data)
{
    ebb_kv_file *item = &k->items[k->job.n_items++];
    bool is_block = kind == EBB_KV_FILE_BLOCK || kind == EBB_KV_FILE_WINDOW;
    uint32_t pos = i * EBB_KV_BLOCK;

    *item = (ebb_kv_file){ .seal = s->engine->cache.seal, .kind = kind, .pos = pos, .ids = k->ids + pos, .data = data,
                           .n_data = n_data };
    item->n_ids = is_block ? EBB_KV_BLOCK : s->table.n_pos - pos;
    memcpy(item->hash, is_block ? s->hashes[i + 1].hash : s->hashes[i].next_parent, sizeof item->hash);
    memcpy(item->shape, s->engine->cache.shape, sizeof item->shape);
}

/* The block at place i; of the windows' group one that is behind the window and still in the pool, too. */
static uint32_t block_at(const ebb_session *s, int group, uint32_t i)
{
    const ebb_kv *kv = s->engine->kv;
    uint32_t b = s->table.blocks[group][i];

    if (group == EBB_KV_ALL)
        return b;
    if (b != EBB_KV_NONE && i * EBB_KV_BLOCK >= s->window_from)
        return b;
    return b == EBB_KV_NONE && i < s->n_hashed ? ebb_kv_find_block(kv, group, s->hashes[i + 1].hash) : EBB_KV_NONE;
}

static void add_persist_block(persist_job *k, const ebb_session *s, int group, uint32_t i)
{
    static const ebb_kv_file_kind kinds[][2] = {
        [EBB_KV_ALL] = { EBB_KV_FILE_TAIL, EBB_KV_FILE_BLOCK },
        [EBB_KV_WINDOW] = { EBB_KV_FILE_WINDOW_TAIL, EBB_KV_FILE_WINDOW },
    };
    ebb_kv *kv = s->engine->kv;
    uint32_t b = ebb_kv_n_blocks(kv, group) > 0 ? block_at(s, group, i) : EBB_KV_NONE;

    if (b == EBB_KV_NONE)
        return;
    ebb_kv_ref(kv, group, b);
    k->blocks[k->n_blocks++] = (held_block){ group, b };
    add_persist_item(k, s, kinds[group][(i + 1) * EBB_KV_BLOCK <= s->table.n_pos], i, ebb_kv_data(kv, group, b),
             ebb_kv_group_block_bytes(kv, group));
    k->items[k->job.n_items - 1].guard = ebb_kv_spill_guard(kv);
}

void ebb_persist_note_swept(ebb_session *s)
{
    if (s->engine->cache.disk)
        ebb_kv_disk_note_swept(s->engine->cache.disk, &s->swept);
}

void ebb_persist_submit(ebb_session *s)
{
    ebb_engine *e = s->engine;
    persist_job *k;

    if (!e->cache.disk || s->table.n_pos == 0 || ebb_kv_spill_is_lost(e->kv))
        return;
    ebb_persist_reap(e, false);
    k = persist_job_new(s);
    if (!k)
        return;
    memcpy(k->ids, s->ids, s->table.n_pos * sizeof *k->ids);
    for (uint32_t i = 0; i < s->table.n_blocks; i++)
        for (int g = 0; g < EBB_KV_GROUPS; g++)
            add_persist_block(k, s, g, i);
    k->slot = ebb_checkpoint_pin(s);
    if (k->slot)
        add_persist_item(k, s, EBB_KV_FILE_STATE, s->table.n_pos / EBB_KV_BLOCK, k->slot->state, e->net.state_bytes);
    k->job.items = k->items;
    k->job.swept = s->swept;
    ebb_kv_disk_submit(e->cache.disk, &k->job);
}
