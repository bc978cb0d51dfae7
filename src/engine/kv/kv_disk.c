/* The KV cache on disk (kv_disk.h). */
#include "kv/kv_disk.h"

#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "kv/kv_key.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/thread.h"

#define CAP_BYTES      ((uint64_t)4 << 30)
#define CAP_FILES      16384u
#define CAP_SHARE      16u                       /* so much of the cap is written before the next look */
#define LOOK_NS        ((uint64_t)5 * 1000000000)        /* others may have written meanwhile */
#define OLDEST_KEPT    1024u                     /* of a look: removed one by one, until the next look */
#define DISK_UNIT      4096u                     /* disk space of a small file */
#define LEFTOVER_NS    ((int64_t)3600 * 1000000000)      /* older than any write under way */
#define CLOCK_STEP_NS  20000000                  /* file times may lag behind the clock */
#define WELL_JOBS      8u                        /* in a row, after which a failure is told again */
#define STATES_KEPT    3u                        /* of a sequence, behind its newest */

typedef struct listed_file {
    char     name[48];
    uint64_t n_bytes;
    int64_t  modified_ns;
    int64_t  used_ns;                            /* the same, unless the clock went back since */
} listed_file;

struct ebb_kv_disk {
    char           *dir;
    uint64_t        max_bytes;                   /* the cap; is_auto: chosen anew for each job that writes */
    ebb_kv_disk_limits limits;
    bool            is_auto;
    pthread_t       thread;
    bool            has_thread;

    pthread_mutex_t lock;                        /* protects what follows */
    pthread_cond_t  wake, done_one;
    ebb_kv_disk_job *waiting, *done;             /* first in, first out; a stack */
    bool            is_writing, quit;
    bool            has_key;
    uint8_t         key[EBB_KV_KEY_BYTES];       /* does not change any more once it is there */
    char            notice[160];

    /* the writer's own */
    uint64_t        n_bytes, n_files;            /* in the folder, as of the last look and what was done since */
    uint64_t        new_bytes, new_files;        /* written since */
    uint64_t        looked_ns;                   /* 0: not yet, or in vain */
    listed_file     oldest[OLDEST_KEPT];         /* as of the last look, those used longest ago first */
    size_t          n_oldest, next_oldest;
    ebb_status      failed;                      /* as it was told; OK: there is room again */
    uint32_t        n_well;                      /* jobs that wrote all of theirs since one failed */
};

/* -- Notices ------------------------------------------------------------------------ */

static void notice(ebb_kv_disk *d, const char *what, const ebb_error *err)
{
    ebb_log("kv", "%s: %s", what, err->msg);
    pthread_mutex_lock(&d->lock);
    snprintf(d->notice, sizeof d->notice, "%s: %.120s", what, err->msg);
    pthread_mutex_unlock(&d->lock);
}

bool ebb_kv_disk_take_notice(ebb_kv_disk *d, char out[160])
{
    bool is_there;

    pthread_mutex_lock(&d->lock);
    is_there = d->notice[0] != '\0';
    memcpy(out, d->notice, sizeof d->notice);
    d->notice[0] = '\0';
    pthread_mutex_unlock(&d->lock);
    return is_there;
}

/* -- The key -------------------------------------------------------------------------- */

/* Asked for when it is wanted: a disk that is full now may have room for it later. */
static ebb_status need_key(ebb_kv_disk *d, ebb_error *err)
{
    ebb_status st = EBB_OK;

    pthread_mutex_lock(&d->lock);
    if (!d->has_key)
        st = ebb_kv_key_open(d->dir, d->key, err);
    d->has_key = st == EBB_OK;
    pthread_mutex_unlock(&d->lock);
    return st;
}

/* -- Reading ------------------------------------------------------------------------- */

bool ebb_kv_disk_has(ebb_kv_disk *d, const ebb_kv_file *item, uint32_t *n_ids)
{
    ebb_error err;
    bool has = ebb_kv_file_has(d->dir, item, n_ids, &err);

    if (err.code == EBB_FORMAT)
        notice(d, "a file of the KV cache is ignored", &err);
    return has;
}

bool ebb_kv_disk_read(ebb_kv_disk *d, const ebb_kv_file *item)
{
    ebb_error err = { 0 };
    char path[4096];

    if (need_key(d, &err) == EBB_OK && ebb_kv_file_read(d->dir, item, d->key, &err) == EBB_OK)
        return true;
    if (err.code == EBB_FORMAT) {
        ebb_kv_file_path(d->dir, item, path, sizeof path);
        ebb_file_remove(path);
    }
    if (err.code != EBB_NOTFOUND)
        notice(d, "a file of the KV cache is ignored", &err);
    return false;
}

/* -- Room ---------------------------------------------------------------------------- */

typedef struct listing {
    ebb_kv_disk *d;
    listed_file *entries;
    size_t    n, cap;
    int64_t   now_ns;
    bool      failed;
} listing;

static uint64_t bytes_on_disk(uint64_t n_bytes)
{
    return (n_bytes + DISK_UNIT - 1) / DISK_UNIT * DISK_UNIT;
}

static int64_t wall_ns(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool remove_file(const ebb_kv_disk *d, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", d->dir, name);
    return ebb_file_remove(path);
}

/* The clock went back since: the file's age is unknown, but it is of no turn under way. */
static bool is_future(const listing *l, const ebb_folder_entry *e)
{
    return e->modified_ns > l->now_ns + LEFTOVER_NS;
}

static void list_file(void *arg, const ebb_folder_entry *e)
{
    listing *l = arg;
    listed_file *grown;
    bool is_leftover;

    if (!ebb_kv_file_is_name(e->name, &is_leftover))
        return;
    if (is_leftover) {
        if (e->modified_ns < l->now_ns - LEFTOVER_NS || is_future(l, e))
            (void)remove_file(l->d, e->name);
        return;
    }
    grown = ebb_grow(l->entries, l->n, &l->cap, sizeof *grown);
    l->failed |= !grown;
    if (!grown)
        return;
    l->entries = grown;
    l->entries[l->n] = (listed_file){ .n_bytes = bytes_on_disk(e->n_bytes), .modified_ns = e->modified_ns,
                                      .used_ns = is_future(l, e) ? INT64_MIN : e->modified_ns };
    snprintf(l->entries[l->n].name, sizeof l->entries[l->n].name, "%s", e->name);
    l->d->n_bytes += l->entries[l->n].n_bytes;
    l->d->n_files++;
    l->n++;
}

static int by_last_use(const void *a, const void *b)
{
    const listed_file *x = a, *y = b;

    return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

/* Looks what is there: how much, and which files were used longest ago. */
static ebb_status look(ebb_kv_disk *d, ebb_error *err)
{
    listing l = { .d = d, .now_ns = wall_ns() };
    ebb_status st;

    d->n_bytes = d->n_files = d->n_oldest = d->next_oldest = 0;
    d->new_bytes = d->new_files = d->looked_ns = 0;
    st = ebb_folder_each(d->dir, list_file, &l, err);
    if (st == EBB_OK && l.failed)
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a list of its files", d->dir);
    if (st == EBB_OK && l.n > 0) {
        qsort(l.entries, l.n, sizeof *l.entries, by_last_use);
        d->n_oldest = l.n < OLDEST_KEPT ? l.n : OLDEST_KEPT;
        memcpy(d->oldest, l.entries, d->n_oldest * sizeof *d->oldest);
    }
    free(l.entries);
    if (st == EBB_OK)
        d->looked_ns = ebb_clock_ns();
    return st;
}

/* A look costs as much as there are files, and a server may end a thousand answers a second: what the writer has
 * written he knows, and for what others do a look now and then is enough. */
static bool is_look_old(const ebb_kv_disk *d)
{
    return d->looked_ns == 0 || ebb_clock_ns() - d->looked_ns >= d->limits.look_ns ||
           d->new_files >= d->limits.max_files / CAP_SHARE || d->new_bytes >= d->max_bytes / CAP_SHARE;
}

static ebb_status choose_cap(ebb_kv_disk *d, ebb_error *err)
{
    uint64_t room;
    ebb_status st = is_look_old(d) ? look(d, err) : EBB_OK;

    if (st != EBB_OK || !d->is_auto)
        return st;
    st = ebb_folder_free_bytes(d->dir, &room, err);
    if (st != EBB_OK)
        return st;
    room = (room + d->n_bytes) / 10;
    room = room > d->n_bytes ? room : d->n_bytes;        /* other programs that fill the disk cost no file of ours */
    d->max_bytes = room < CAP_BYTES ? room : CAP_BYTES;
    return EBB_OK;
}

static bool has_disk_space(const ebb_kv_disk *d, uint64_t extra)
{
    return d->n_bytes + extra <= d->max_bytes && d->n_files < d->limits.max_files;
}

static bool is_used_again(const ebb_kv_disk *d, const listed_file *f)
{
    char path[4096];
    ebb_file_id now;

    snprintf(path, sizeof path, "%s/%s", d->dir, f->name);
    return ebb_file_look_up(path, &now) && now.modified_ns != f->modified_ns;
}

/* Removes what was used longest ago, as of the last look, but nothing that was used since `since_ns`, or since that
 * look.  false: there is nothing to remove. */
static bool remove_oldest(ebb_kv_disk *d, int64_t since_ns)
{
    while (d->next_oldest < d->n_oldest && d->oldest[d->next_oldest].used_ns < since_ns) {
        const listed_file *f = &d->oldest[d->next_oldest++];

        if (is_used_again(d, f) || !remove_file(d, f->name))
            continue;
        d->n_bytes -= f->n_bytes;
        d->n_files--;
        return true;
    }
    return false;
}

static ebb_status check_writable(const char *dir, ebb_error *err)
{
    return ebb_folder_is_readonly(dir) ? EBB_FAIL(err, EBB_IO, "%s: cannot be written to", dir) : EBB_OK;
}

static ebb_status say_full(const ebb_kv_disk *d, ebb_error *err)
{
    ebb_status st = check_writable(d->dir, err); /* else nothing can be removed */

    if (st != EBB_OK)
        return st;
    if (d->n_files >= d->limits.max_files)
        return EBB_FAIL(err, EBB_LIMIT, "%s: this conversation does not fit the cap of %llu files; a shorter one does",
                        d->dir, (unsigned long long)d->limits.max_files);
    return EBB_FAIL(err, EBB_LIMIT,
                    d->is_auto
                        ? "%s: this conversation exceeds a tenth of the free disk space, %llu MiB; free some space"
                        : "%s: this conversation does not fit the cap of %llu MiB",
                    d->dir, (unsigned long long)(d->max_bytes >> 20));
}

/* Removes what was used longest ago, but nothing since `since_ns`, until `extra` bytes more fit.  At the cap each file
 * that is written takes the place of others: the list of a look lasts for many, and ends before another look. */
static ebb_status make_disk_space(ebb_kv_disk *d, uint64_t extra, int64_t since_ns, ebb_error *err)
{
    while (!has_disk_space(d, extra)) {
        ebb_status st;

        if (remove_oldest(d, since_ns))
            continue;
        st = look(d, err);
        if (st != EBB_OK)
            return st;
        if (!has_disk_space(d, extra) && !remove_oldest(d, since_ns))
            return say_full(d, err);
    }
    return EBB_OK;
}

/* -- Writing -------------------------------------------------------------------------- */

static void touch_file(const ebb_kv_disk *d, const ebb_kv_file *item)
{
    char path[4096];

    ebb_kv_file_path(d->dir, item, path, sizeof path);
    if (ebb_file_touch(path, NULL) != EBB_OK)    /* evicted by another program, perhaps */
        return;
}

/* Removes old states of the sequence, but for the last few. */
static void thin_states(ebb_kv_disk *d, const ebb_kv_disk_job *job)
{
    unsigned n = 0;

    for (uint32_t i = job->n_items; i-- > 0;) {
        ebb_kv_file state = job->items[i];
        char path[4096];

        if (state.kind != EBB_KV_FILE_BLOCK)
            continue;
        state.kind = EBB_KV_FILE_STATE;
        ebb_kv_file_path(d->dir, &state, path, sizeof path);
        if (n >= STATES_KEPT)
            ebb_file_remove(path);
        else if (ebb_file_touch(path, NULL) == EBB_OK)
            n++;
    }
}

/* Whether the file exists, with all of the item's ids. */
static bool is_written(ebb_kv_disk *d, const ebb_kv_file *item)
{
    uint32_t n_ids;

    return ebb_kv_disk_has(d, item, &n_ids) && n_ids == item->n_ids;
}

static bool is_swept_since(const ebb_kv_disk *d, const ebb_kv_disk_job *job)
{
    ebb_kv_swept now;

    return !ebb_kv_swept_read(d->dir, &now) || memcmp(&now, &job->swept, sizeof now) != 0;
}

static ebb_status write_item(ebb_kv_disk *d, const ebb_kv_file *item, int64_t since_ns, ebb_error *err)
{
    uint64_t n = bytes_on_disk(ebb_kv_file_bytes(item)), n_before;
    ebb_status st = make_disk_space(d, n, since_ns, err);
    ebb_file_id before;
    char path[4096];
    bool was_there;

    ebb_kv_file_path(d->dir, item, path, sizeof path);
    was_there = ebb_file_look_up(path, &before);         /* a tail that grew takes its own place */
    n_before = was_there ? bytes_on_disk(before.n_bytes) : 0;
    if (st == EBB_OK)
        st = need_key(d, err);
    if (st == EBB_OK)
        st = ebb_kv_file_write(d->dir, item, d->key, err);
    if (st == EBB_OK) {
        d->n_bytes += n - n_before;              /* modulo 2^64: n may be less */
        d->n_files += !was_there;
        d->new_bytes += n;
        d->new_files++;
    }
    return st;
}

/* The sweep has not seen it, or has removed it while it was written. */
static void take_back(const ebb_kv_disk *d, const ebb_kv_file *item)
{
    char path[4096];

    ebb_kv_file_path(d->dir, item, path, sizeof path);
    ebb_file_remove(path);
    ebb_folder_sync_name(path);                  /* the sweep's own sync may have been of a folder with that name */
    ebb_log("kv", "%s was swept: what was computed before is not kept", d->dir);
}

static ebb_status write_missing(ebb_kv_disk *d, ebb_kv_disk_job *job, int64_t since_ns, uint32_t *n_written,
                                ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i < job->n_items && st == EBB_OK; i++) {
        const ebb_kv_file *item = &job->items[i];

        if (is_written(d, item))
            continue;
        if (is_swept_since(d, job))
            break;
        if (*n_written == 0)
            st = choose_cap(d, err);
        if (st == EBB_OK)
            st = write_item(d, item, since_ns, err);
        if (is_swept_since(d, job)) {
            take_back(d, item);
            return EBB_OK;
        }
        if (st != EBB_OK)
            break;
        ++*n_written;
        if (item->kind == EBB_KV_FILE_STATE)
            thin_states(d, job);
    }
    return st;
}

static void touch_all(ebb_kv_disk *d, const ebb_kv_disk_job *job)
{
    for (uint32_t i = job->n_items; i-- > 0;)
        touch_file(d, &job->items[i]);
}

/* Told once, and not for each turn again: on a disk that is all but full, where old files go for new ones, every other
 * turn still finds room; and what finds it full, a write or the look at what is free, is one and the same. */
static void note_failure(ebb_kv_disk *d, ebb_status st, const ebb_error *err)
{
    if (d->is_auto && err->sys_errno == ENOSPC)
        st = EBB_LIMIT;
    if (st != d->failed)
        notice(d, "this turn's KV is not kept", err);
    d->failed = st;
    d->n_well = 0;
}

static void do_job(ebb_kv_disk *d, ebb_kv_disk_job *job)
{
    int64_t since_ns = wall_ns() - CLOCK_STEP_NS;
    ebb_error err = { 0 };
    uint32_t n_written = 0;
    ebb_status st;

    touch_all(d, job);
    st = write_missing(d, job, since_ns, &n_written, &err);
    if (n_written > 0)
        touch_all(d, job);
    if (st != EBB_OK)
        note_failure(d, st, &err);
    else if (n_written > 0 && ++d->n_well == WELL_JOBS)  /* a job with nothing to write shows nothing */
        d->failed = EBB_OK;
    ebb_log("kv", "%u of %u files written", n_written, job->n_items);
}

static void *writer_main(void *arg)
{
    ebb_kv_disk *d = arg;

    ebb_thread_background();
    pthread_mutex_lock(&d->lock);
    for (;;) {
        ebb_kv_disk_job *job = d->waiting;

        if (!job && d->quit)
            break;
        if (!job) {
            pthread_cond_wait(&d->wake, &d->lock);
            continue;
        }
        d->waiting = job->next;
        d->is_writing = true;
        pthread_mutex_unlock(&d->lock);
        do_job(d, job);
        pthread_mutex_lock(&d->lock);
        d->is_writing = false;
        job->next = d->done;
        d->done = job;
        pthread_cond_signal(&d->done_one);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* -- Calls from the passes' thread --------------------------------------------------------------- */

ebb_status ebb_kv_disk_open(const char *dir, uint64_t max_bytes, ebb_kv_disk **out, ebb_error *err)
{
    ebb_kv_disk *d = calloc(1, sizeof *d);
    ebb_status st;

    *out = NULL;
    if (!d)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the KV cache on disk");
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wake, NULL);
    pthread_cond_init(&d->done_one, NULL);
    d->max_bytes = max_bytes;
    d->limits = (ebb_kv_disk_limits){ CAP_FILES, LOOK_NS };
    d->is_auto = max_bytes == 0;
    d->dir = strdup(dir);
    st = d->dir ? ebb_file_mkdirs(dir, err) : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", dir);
    if (st == EBB_OK)
        st = ebb_folder_check_own(dir, err);
    if (st == EBB_OK && ebb_thread_start(&d->thread, writer_main, d) != 0)
        st = EBB_FAIL(err, EBB_NOMEM, "cannot start a thread to write the KV cache");
    d->has_thread = st == EBB_OK;
    if (st != EBB_OK) {
        ebb_kv_disk_close(d);
        return st;
    }
    *out = d;
    return EBB_OK;
}

void ebb_kv_disk_close(ebb_kv_disk *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    if (d->has_thread)
        pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->wake);
    pthread_cond_destroy(&d->done_one);
    pthread_mutex_destroy(&d->lock);
    free(d->dir);
    free(d);
}

void ebb_kv_disk_set_limits(ebb_kv_disk *d, const ebb_kv_disk_limits *limits)
{
    d->limits = *limits;
}

const char *ebb_kv_disk_dir(const ebb_kv_disk *d)
{
    return d->dir;
}

ebb_status ebb_kv_disk_check_writable(const ebb_kv_disk *d, ebb_error *err)
{
    return check_writable(d->dir, err);
}

/* A link is there wherever it leads: no folder can be made in its place. */
static bool is_missing(const char *path)
{
    struct stat s;

    return lstat(path, &s) != 0 && errno == ENOENT;
}

ebb_status ebb_kv_disk_check(const char *dir, ebb_error *err)
{
    char *copy = strdup(dir), *there = copy;
    ebb_status st = copy ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", dir);

    if (st == EBB_OK && (!*dir || !is_missing(dir)))
        st = ebb_folder_check_own(dir, err);
    while (st == EBB_OK && is_missing(there))    /* "/" and "." are there */
        there = dirname(there);
    if (st == EBB_OK && access(there, F_OK) != 0)
        st = EBB_FAIL(err, EBB_IO, "%s: %s", there, strerror(errno));
    if (st == EBB_OK)
        st = check_writable(there, err);
    free(copy);
    return st;
}

void ebb_kv_disk_note_swept(const ebb_kv_disk *d, ebb_kv_swept *out)
{
    (void)!ebb_kv_swept_read(d->dir, out);       /* else what it was, which says no less */
}

void ebb_kv_disk_submit(ebb_kv_disk *d, ebb_kv_disk_job *job)
{
    ebb_kv_disk_job **last;

    pthread_mutex_lock(&d->lock);
    for (last = &d->waiting; *last; last = &(*last)->next)
        ;
    job->next = NULL;
    *last = job;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
}

ebb_kv_disk_job *ebb_kv_disk_reap(ebb_kv_disk *d, bool wait)
{
    ebb_kv_disk_job *job;

    pthread_mutex_lock(&d->lock);
    while (wait && !d->done && (d->is_writing || d->waiting))
        pthread_cond_wait(&d->done_one, &d->lock);
    job = d->done;
    if (job)
        d->done = job->next;
    pthread_mutex_unlock(&d->lock);
    return job;
}
