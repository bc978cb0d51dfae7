/* Files of the KV cache that nobody has a use for any more (ebb/experimental/kv_cache.h). */
#include "ebb/experimental/kv_cache.h"

#include <stdio.h>

#include "base/buf.h"
#include "kv/kv.h"
#include "kv/kv_file.h"
#include "kv/kv_swept.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/paths.h"

typedef struct sweep {
    const char           *dir;
    const ebb_kv_seal    *seal;
    ebb_kv_cache_keep_fn *keep;
    void                 *arg;
    bool                  overwrites;
    size_t                n_removed, n_left;     /* n_left: in the last listing */
} sweep;

static void sweep_file(void *arg, const ebb_folder_entry *e)
{
    sweep *s = arg;
    ebb_token ids[EBB_KV_BLOCK];
    char path[4096];
    uint32_t n_ids;
    bool is_leftover;

    if (!ebb_kv_file_is_name(e->name, &is_leftover))
        return;
    snprintf(path, sizeof path, "%s/%s", s->dir, e->name);
    if (!is_leftover && ebb_kv_file_read_ids(path, s->seal, ids, EBB_KV_BLOCK, &n_ids) && s->keep(s->arg, ids, n_ids))
        return;
    if ((s->overwrites ? ebb_file_wipe : ebb_file_remove)(path))
        s->n_removed++;
    else
        s->n_left++;
}

static ebb_status sweep_listing(sweep *s, ebb_error *err)
{
    ebb_status st;

    s->n_left = 0;
    st = ebb_folder_each(s->dir, sweep_file, s, err);
    if (s->n_removed > 0)                        /* or a loss of power brings them back */
        (void)!ebb_folder_sync(s->dir, NULL);
    if (st == EBB_OK && s->n_left > 0)
        st = EBB_FAIL(err, EBB_IO, "%s: %zu files of K and V cannot be removed; make the folder writable, or "
                      "remove them", s->dir, s->n_left);
    return st;
}

/* What is being written appears before the folder is listed, or is taken back (kv_swept.h). */
static ebb_status sweep_folder(sweep *s, ebb_error *err)
{
    ebb_status marked = ebb_kv_swept_renew(s->dir, NULL);
    ebb_status st = sweep_listing(s, err);

    if (st != EBB_OK || marked == EBB_OK)
        return st;
    st = ebb_kv_swept_renew(s->dir, err);        /* a full disk has room now, perhaps */
    return st == EBB_OK ? sweep_listing(s, err) : st;
}

ebb_status ebb_kv_cache_sweep(const char *dir, const ebb_kv_seal *seal, ebb_kv_cache_keep_fn *keep, void *arg,
                              bool overwrites, size_t *n_removed, ebb_error *err)
{
    ebb_buf usual = { 0 };
    sweep s = { .dir = dir, .seal = seal, .keep = keep, .arg = arg, .overwrites = overwrites };
    ebb_status st = dir ? EBB_OK : ebb_path_in(EBB_DIR_CACHE, "kv", &usual, err);

    if (st == EBB_OK && !dir)
        s.dir = usual.data;
    if (st == EBB_OK)
        st = sweep_folder(&s, err);
    ebb_buf_fini(&usual);
    *n_removed = s.n_removed;
    return st == EBB_NOTFOUND ? EBB_OK : st;
}
