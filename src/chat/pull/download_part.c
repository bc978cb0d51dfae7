/* The part of a download that is on disk (download_priv.h): opened, checked, resumed, and given its name. */
#include "pull/download_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/size.h"
#include "os/file.h"
#include "os/folder.h"

#define SPARE_BYTES  ((uint64_t)16 << 20)        /* to be left on the disk */
#define SYNC_BYTES   ((uint64_t)64 << 20)        /* what a loss of power costs at most */
#define MAX_RESTARTS 3
#define PIECE        ((size_t)1 << 20)
#define NO_BOOT      "?"

/* -- Files already on disk ------------------------------------------------------------------ */

static bool get_file_size(const char *path, uint64_t *n_bytes)
{
    struct stat st;
    bool ok = stat(path, &st) == 0;

    *n_bytes = ok ? (uint64_t)st.st_size : 0;
    return ok;
}

/* Adds the first n bytes of a file to d->sha. */
static ebb_status hash_bytes(ebb_download *d, int fd, const char *path, uint64_t n, ebb_error *err)
{
    char *piece = malloc(PIECE);
    ebb_status st = piece ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory to check %s", d->request->name);

    ebb_download_reset_rate(d);
    for (uint64_t at = 0; st == EBB_OK && at < n;) {
        size_t n_piece = n - at < PIECE ? (size_t)(n - at) : PIECE;

        st = ebb_file_read_at(fd, path, piece, n_piece, at, err);
        if (st == EBB_OK)
            ebb_sha256_add(d->sha, piece, n_piece);
        at += n_piece;
        ebb_download_report(d, at, true, at == n);
        if (st == EBB_OK && ebb_download_is_canceled(d))
            st = EBB_FAIL(err, EBB_CANCELED, "stopped");
    }
    ebb_download_reset_rate(d);
    free(piece);
    return st;
}

ebb_status ebb_download_fail_other_version(const ebb_download *d, ebb_error *err)
{
    return EBB_FAIL(err, EBB_FORMAT, "%s: already there, but of another version than the one to fetch: rename or "
                                     "delete it first", d->path.data);
}

static ebb_status compare_checksum(ebb_download *d, ebb_error *err)
{
    int fd;
    ebb_status st = ebb_file_open(d->path.data, EBB_FILE_READ, &fd, err);

    if (st != EBB_OK)
        return st;
    ebb_download_notice(d, "%s is here: checking whether it is still the server's", d->request->name);
    st = hash_bytes(d, fd, d->path.data, d->result->n_bytes, err);
    ebb_file_close(fd);
    if (st != EBB_OK)
        return st;
    ebb_sha256_end(d->sha, d->result->sha256);
    return strcmp(d->result->sha256, d->sha256) == 0 ? EBB_OK : ebb_download_fail_other_version(d, err);
}

/* So that the next run need not hash the file again. */
static ebb_status note_version(ebb_download *d, ebb_error *err)
{
    d->sidecar = (ebb_pull_sidecar){ .n_bytes = d->result->n_bytes };
    snprintf(d->sidecar.command, sizeof d->sidecar.command, "%s", d->request->command);
    memcpy(d->sidecar.sha256, d->sha256, sizeof d->sidecar.sha256);
    return ebb_pull_sidecar_write(d->part.data, &d->sidecar, err);
}

/* Is the whole file of the version that is asked for?  Where nothing says what is in it, the server is to be asked
 * whether it still has what the sidecar names.  A sidecar that has a part beside it is the part's. */
static ebb_status check_version(ebb_download *d, ebb_error *err)
{
    uint64_t n_part;
    bool has_part = get_file_size(d->part.data, &n_part);
    bool is_noted = !has_part && ebb_pull_sidecar_read(d->part.data, &d->sidecar);
    ebb_status st;

    d->must_ask = is_noted && !d->sha256[0];
    if (!d->sha256[0])
        return EBB_OK;
    if (is_noted && strcmp(d->sidecar.sha256, d->sha256) == 0)
        return EBB_OK;
    st = compare_checksum(d, err);
    return st == EBB_OK && !has_part ? note_version(d, err) : st;
}

/* OK and was_there: the file exists with the expected size.  IO: it exists with another size; FORMAT: it is of another
 * version. */
static ebb_status look_for_file(ebb_download *d, ebb_error *err)
{
    char has[16], wants[16];
    uint64_t n;
    ebb_status st = ebb_file_expect_regular(d->path.data, err);

    if (st != EBB_OK)
        return st;
    d->result->was_there = get_file_size(d->path.data, &n);
    if (!d->result->was_there)
        return EBB_OK;
    d->result->n_bytes = n;
    if (d->total == UNKNOWN || n == d->total)
        return d->request->is_joined ? check_version(d, err) : EBB_OK;
    if (n < d->total)
        return EBB_FAIL(err, EBB_IO, "%s: already there, with %s of %s; rename it to %s.part and ebb pull continues it",
                        d->path.data, ebb_size_text(n, has), ebb_size_text(d->total, wants), d->request->name);
    return EBB_FAIL(err, EBB_IO, "%s: already there, with %llu bytes where the file to fetch has %llu: rename or "
                                 "delete it first",
                    d->path.data, (unsigned long long)n, (unsigned long long)d->total);
}

/* By another name the part is somebody's file as well, and would change under it. */
static ebb_status expect_one_name(const ebb_download *d, ebb_error *err)
{
    struct stat st;

    if (fstat(d->fd, &st) == 0 && st.st_nlink > 1)
        return EBB_FAIL(err, EBB_IO, "%s: is a hard link: the same file has another name, and would be changed; move "
                                     "it away", d->part.data);
    return EBB_OK;
}

/* A file system without locks (Lustre, some on a network) has no way to tell of another pull: go on without, as the
 * history does. */
static ebb_status lock_part(const ebb_download *d, ebb_error *err)
{
    ebb_status st = ebb_file_lock(d->fd, d->part.data, err);

    if (st == EBB_IO)
        ebb_log("pull", "%s: its file system has no locks", d->part.data);
    return st == EBB_IO ? EBB_OK : st;
}

static ebb_status open_download_part(ebb_download *d, ebb_error *err)
{
    ebb_status st = ebb_file_mkdirs(d->request->folder, err);

    if (st == EBB_OK)
        st = ebb_file_expect_regular(d->part.data, err);
    if (st == EBB_OK)
        st = ebb_file_open(d->part.data, EBB_FILE_UPDATE_HERE, &d->fd, err);
    if (st != EBB_OK)
        return st;
    st = lock_part(d, err);
    if (st == EBB_OK && !ebb_file_is_at(d->fd, d->part.data))     /* who held the lock may have renamed it */
        st = EBB_FAIL(err, EBB_BUSY, "%s: it has been moved meanwhile", d->part.data);
    if (st == EBB_BUSY)
        st = EBB_FAIL(err, EBB_BUSY, "%s: another ebb pull is fetching it right now", d->request->name);
    if (st == EBB_OK)
        st = expect_one_name(d, err);
    if (st == EBB_OK)
        st = ebb_file_size(d->fd, d->part.data, &d->pos, err);
    d->n_part = d->pos;
    return st;
}

/* A part can be resumed if its checksum agrees, or if the server can compare its etag or date. */
static bool is_part_resumable(const ebb_download *d)
{
    if (d->total != UNKNOWN && d->pos > d->total)
        return false;
    if (d->sha256[0])
        return d->sidecar.sha256[0] == '\0' || strcmp(d->sidecar.sha256, d->sha256) == 0;
    return d->sidecar.etag[0] || d->sidecar.modified[0];
}

/* NO_BOOT: it is not to be told, and none is the same. */
static void read_boot(const ebb_download *d, char out[40])
{
    ebb_buf text = { 0 };
    bool ok = d->env->boot ? ebb_buf_adds(&text, d->env->boot)
                           : ebb_file_slurp("/proc/sys/kernel/random/boot_id", 4096, &text, NULL) == EBB_OK;

    snprintf(out, 40, "%.*s", (int)strcspn(ebb_buf_text(&text), "\n"), ebb_buf_text(&text));
    if (!ok || !out[0])
        snprintf(out, 40, "%s", NO_BOOT);
    ebb_buf_fini(&text);
}

/* How much of the part is what was received: its length says more after a loss of power. */
static uint64_t count_certain(const ebb_download *d)
{
    char boot[40];

    read_boot(d, boot);
    if (!d->sidecar.boot[0] || (strcmp(boot, NO_BOOT) != 0 && strcmp(d->sidecar.boot, boot) == 0))
        return d->pos;
    return d->sidecar.n_synced < d->pos ? d->sidecar.n_synced : d->pos;
}

ebb_status ebb_download_restart(ebb_download *d, ebb_error *err)
{
    if (d->n_restarts++ == MAX_RESTARTS)
        return EBB_FAIL(err, EBB_IO, "%s: had to start over %d times; try again later", d->request->name, MAX_RESTARTS);
    d->pos = 0;
    d->next_look = DOWNLOAD_FIRST_LOOK;
    d->next_room = 0;
    ebb_sha256_begin(d->sha);
    ebb_download_reset_rate(d);
    return EBB_OK;
}

ebb_status ebb_download_begin(ebb_download *d, ebb_error *err)
{
    char size[16];
    ebb_status st = look_for_file(d, err);

    if (st != EBB_OK || d->result->was_there)
        return st;
    st = open_download_part(d, err);
    if (st == EBB_OK)
        st = look_for_file(d, err);              /* another process may have completed it before we got the lock */
    if (st != EBB_OK || d->result->was_there)
        return st;
    if (!ebb_pull_sidecar_read(d->part.data, &d->sidecar) && d->pos)
        ebb_log("pull", "%s: no sidecar beside it", d->request->name);
    if (d->pos && !is_part_resumable(d)) {
        ebb_download_notice(d, "the part of %s that is here belongs to another file: starting over", d->request->name);
        st = ebb_download_restart(d, err);
    } else if ((d->pos = count_certain(d)) > 0) {
        ebb_download_notice(d, "%s of %s are here: continuing", ebb_size_text(d->pos, size), d->request->name);
        st = hash_bytes(d, d->fd, d->part.data, d->pos, err);    /* goes on with the bytes that arrive */
    }
    d->result->n_resumed = d->pos;
    return st;
}

/* -- Bytes that arrive ---------------------------------------------------------------------- */

/* How many of the n bytes are those of the part at pos. */
static ebb_status count_same(const ebb_download *d, const char *data, size_t n, size_t *n_same, ebb_error *err)
{
    char here[4096];

    for (*n_same = 0; *n_same < n;) {
        size_t left = n - *n_same, len = left < sizeof here ? left : sizeof here, i = 0;
        ebb_status st = ebb_file_read_at(d->fd, d->part.data, here, len, d->pos + *n_same, err);

        if (st != EBB_OK)
            return st;
        while (i < len && here[i] == data[*n_same + i])
            i++;
        *n_same += i;
        if (i < len)
            break;
    }
    return EBB_OK;
}

static ebb_status cut_part(ebb_download *d, uint64_t n_bytes, ebb_error *err)
{
    d->n_part = n_bytes;
    return ebb_file_truncate(d->fd, d->part.data, n_bytes, err);
}

/* Other bytes come at `at`: the part ends there, unless a page of some proxy is put in the place of a model. */
static ebb_status end_part_before(ebb_download *d, uint64_t at, ebb_error *err)
{
    static const char magic[] = "GGUF";
    char begin[sizeof magic] = "", size[16];

    if (at < sizeof magic - 1 && d->n_part >= sizeof magic - 1 &&
        ebb_file_read_at(d->fd, d->part.data, begin, sizeof magic - 1, 0, err) == EBB_OK && strcmp(begin, magic) == 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s: the server sends something that is no model; the %s that are here are "
                                         "kept, try again later",
                        d->request->name, ebb_size_text(d->n_part, size));
    ebb_download_notice(d, "%s of %s are the same, what was behind them is fetched again", ebb_size_text(at, size),
                        d->request->name);
    return cut_part(d, at, err);
}

/* Where there are no locks, another pull may have given it the model's name. */
static ebb_status expect_part_in_place(const ebb_download *d, ebb_error *err)
{
    if (ebb_file_is_at(d->fd, d->part.data))
        return EBB_OK;
    return EBB_FAIL(err, EBB_BUSY, "%s: it was moved meanwhile, perhaps by another ebb pull: pull it again",
                    d->part.data);
}

/* A start of the machine that none is: whatever is behind n_synced is to be fetched again, even at this one. */
static void note_loss(ebb_download *d)
{
    d->has_lost = true;
    snprintf(d->sidecar.boot, sizeof d->sidecar.boot, "%s", NO_BOOT);
    if (d->sidecar.n_synced > d->n_part)
        d->sidecar.n_synced = d->n_part;
    if (d->sidecar.command[0])
        (void)!ebb_pull_sidecar_write(d->part.data, &d->sidecar, NULL);
}

/* A loss is told of once; after that the kernel takes its pages for written, and the next sync is fine. */
static ebb_status sync_part(ebb_download *d, ebb_error *err)
{
    ebb_status st = expect_part_in_place(d, err);

    if (st != EBB_OK)
        return st;
    st = ebb_file_sync(d->fd, d->part.data, err);
    if (st != EBB_OK)
        note_loss(d);
    return st;
}

ebb_status ebb_download_note_part(ebb_download *d, ebb_error *err)
{
    ebb_status st = sync_part(d, err);

    if (st != EBB_OK)
        return st;
    d->sidecar.n_synced = d->n_part;
    read_boot(d, d->sidecar.boot);
    return ebb_pull_sidecar_write(d->part.data, &d->sidecar, err);
}

static bool is_sync_due(const ebb_download *d)
{
    uint64_t each = d->env->sync_bytes ? d->env->sync_bytes : SYNC_BYTES;

    return d->pos == d->n_part && d->n_part >= d->sidecar.n_synced + each;
}

/* Bytes that a sync has lost may be in the page cache all the same, where they are what the server sends: only what is
 * written again goes to the disk. */
static ebb_status write_lost(ebb_download *d, const char *data, size_t n, ebb_error *err)
{
    if (n == 0 || strcmp(d->sidecar.boot, NO_BOOT) != 0)
        return EBB_OK;
    return ebb_file_write_at(d->fd, d->part.data, data, n, d->pos, err);
}

/* The sidecar names the server's version no sooner than the part has nothing of an older one. */
ebb_status ebb_download_add(ebb_download *d, const char *data, size_t n, ebb_error *err)
{
    bool was_behind = d->pos < d->n_part;
    size_t n_there = n < d->n_part - d->pos ? n : (size_t)(d->n_part - d->pos), n_same;
    ebb_status st = count_same(d, data, n_there, &n_same, err);

    if (st == EBB_OK)
        st = write_lost(d, data, n_same, err);
    if (st == EBB_OK && n_same < n_there)
        st = end_part_before(d, d->pos + n_same, err);
    if (st == EBB_OK && was_behind && d->pos + n >= d->n_part)
        st = ebb_download_note_part(d, err);
    if (st == EBB_OK && n > n_same)
        st = ebb_file_write_at(d->fd, d->part.data, data + n_same, n - n_same, d->pos + n_same, err);
    if (st != EBB_OK)
        return st;
    ebb_sha256_add(d->sha, data, n);
    d->pos += n;
    if (d->n_part < d->pos)
        d->n_part = d->pos;
    return is_sync_due(d) ? ebb_download_note_part(d, err) : EBB_OK;
}

ebb_status ebb_download_end_part(ebb_download *d, ebb_error *err)
{
    char has[16], here[16];

    if (d->pos < d->n_part && d->total == UNKNOWN)
        return EBB_FAIL(err, EBB_IO, "%s: the server's file ended after %s, and %s are here; remove the part to fetch "
                                     "it anew",
                        d->part.data, ebb_size_text(d->pos, has), ebb_size_text(d->n_part, here));
    return d->pos < d->n_part ? cut_part(d, d->pos, err) : EBB_OK;
}

/* -- Room on the disk ----------------------------------------------------------------------- */

ebb_status ebb_download_check_disk_space(const ebb_download *d, ebb_error *err)
{
    uint64_t free_bytes, usable, needs = d->total != UNKNOWN && d->total > d->n_part ? d->total - d->n_part : 0;
    char have[16], want[16], lacks[16];
    ebb_status st = ebb_folder_free_bytes(d->request->folder, &free_bytes, err);

    if (st != EBB_OK)
        return st;
    usable = free_bytes > SPARE_BYTES ? free_bytes - SPARE_BYTES : 0;
    if (needs <= usable && (usable > 0 || needs == 0))
        return EBB_OK;
    return EBB_FAIL(err, EBB_IO, "%s: %s still to come, but its disk has only %s free: %s too little",
                    d->request->folder, ebb_size_text(needs, want), ebb_size_text(free_bytes, have),
                    ebb_size_text(needs - usable, lacks));
}

/* A download of unknown size ends when the disk has less than SPARE_BYTES * 3/2 left. */
ebb_status ebb_download_check_spare_room(ebb_download *d, ebb_error *err)
{
    uint64_t free_bytes;
    char size[16];
    ebb_status st;

    if (d->total != UNKNOWN || d->pos < d->next_room)
        return EBB_OK;
    d->next_room = d->pos + SPARE_BYTES / 4;
    st = ebb_folder_free_bytes(d->request->folder, &free_bytes, err);
    if (st != EBB_OK || free_bytes >= SPARE_BYTES + SPARE_BYTES / 2)
        return st;
    return EBB_FAIL(err, EBB_IO, "%s: the server does not say how large it is, and after %s the disk is full; remove "
                                 "that file if it cannot be right",
                    d->part.data, ebb_size_text(d->pos, size));
}

/* -- Looking at the header ------------------------------------------------------------------ */

ebb_status ebb_download_check_header(ebb_download *d, ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st;

    if (!d->request->on_header || d->has_header)
        return EBB_OK;
    st = d->request->on_header(d->request->arg, d->part.data, d->total, &why);
    d->has_header = st == EBB_OK;
    d->next_look = d->pos * 2 > DOWNLOAD_FIRST_LOOK ? d->pos * 2 : DOWNLOAD_FIRST_LOOK;
    if (st == EBB_BUSY && d->pos < d->total)
        return EBB_OK;
    if (st == EBB_BUSY)
        st = EBB_FAIL(&why, EBB_FORMAT, "%s: ends within its header", d->request->name);
    if (st != EBB_OK && err)
        *err = why;
    d->is_bad = st == EBB_FORMAT || st == EBB_UNSUPPORTED;
    return st;
}

/* -- The end -------------------------------------------------------------------------------- */

void ebb_download_discard_part(ebb_download *d)
{
    ebb_file_remove(d->part.data);
    ebb_pull_sidecar_remove(d->part.data);
}

void ebb_download_discard_empty_part(ebb_download *d)
{
    uint64_t n;

    if (d->fd >= 0 && d->pos == 0 && get_file_size(d->part.data, &n) && n == 0 && ebb_file_is_at(d->fd, d->part.data))
        ebb_download_discard_part(d);
}

ebb_status ebb_download_publish(ebb_download *d, ebb_error *err)
{
    ebb_status st = sync_part(d, err);

    if (st == EBB_OK)
        st = ebb_file_rename(d->part.data, d->path.data, err);
    if (st != EBB_OK)
        return st;
    if (!d->request->is_joined)
        ebb_pull_sidecar_remove(d->part.data);
    return ebb_folder_sync(d->request->folder, err);
}
