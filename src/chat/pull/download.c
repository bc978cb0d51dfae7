/* One file from the net to its folder (download.h). */
#include "pull/download.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "models/plan_text.h"
#include "net/dynlib.h"
#include "os/file.h"
#include "os/folder.h"
#include "pull/part_sidecar.h"

#define UNKNOWN      UINT64_MAX
#define FIRST_LOOK   ((uint64_t)1 << 16)         /* bytes; the next one at twice as many */
#define FRAME_S      0.25
#define RATE_S       0.5                         /* a speed is taken over so long, and smoothed */
#define SPARE_BYTES  ((uint64_t)16 << 20)        /* to be left on the disk */
/* Tries in a row that bring nothing: nine pauses, 98 s together, are for a network that comes back; five, 9 s, for a
 * server that refuses; two if not a byte came yet, for then the address may be wrong. */
#define TRIES         10
#define TRIES_REFUSED 6
#define TRIES_FIRST   3
#define PAUSE_MS     300u        /* before the second try, then twice as long each time */
#define MAX_PAUSE_MS 30000u
#define MAX_RESTARTS 3
#define PIECE        ((size_t)1 << 20)

typedef struct get {
    const ebb_pull_env  *env;
    const ebb_download_request *w;
    ebb_download_result *got;
    ebb_buf              path, part;
    int                  fd;
    ebb_sha256          *sha;
    ebb_pull_sidecar     sidecar;
    uint64_t             pos, total;             /* bytes in the part, and of the whole file */
    char                 sha256[65];             /* as the server has it; "" */
    uint64_t             next_look, next_room;
    bool                 has_header, is_bad;     /* seen by on_header; the part is not a model */
    double               frame_at, rate_at, bytes_s;
    uint64_t             rate_pos;
    unsigned             n_restarts;
    ebb_error            why;                    /* of a callback that stopped */
    bool                 must_restart;
} get;

/* -- Progress ------------------------------------------------------------------------------- */

static void download_notice(const get *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void download_notice(const get *g, const char *fmt, ...)
{
    char line[600];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    ebb_log("pull", "%s: %s", g->w->name, line);
    if (g->env->on_notice)
        g->env->on_notice(g->env->arg, line);
}

static bool download_is_canceled(const get *g)
{
    return g->env->is_canceled && g->env->is_canceled(g->env->arg);
}

static void report_progress(get *g, uint64_t done, bool is_check, bool must)
{
    double now = ebb_clock_s(), speed;
    ebb_download_progress p = { .done = done, .total = g->total, .left_s = -1, .is_check = is_check };

    if (now - g->rate_at >= RATE_S) {
        speed = (double)(done - g->rate_pos) / (now - g->rate_at);
        if (g->rate_at > 0 && done >= g->rate_pos)
            g->bytes_s = g->bytes_s > 0 ? g->bytes_s * 0.8 + speed * 0.2 : speed;
        g->rate_at = now;
        g->rate_pos = done;
    }
    if (!g->w->on_progress || (!must && now - g->frame_at < FRAME_S))
        return;
    g->frame_at = now;
    p.bytes_s = g->bytes_s > 0 ? g->bytes_s : -1;
    if (g->bytes_s > 0 && g->total != UNKNOWN)
        p.left_s = (double)(g->total - done) / g->bytes_s;
    g->w->on_progress(g->w->arg, &p);
}

/* The speed is measured anew: what follows is read or received at another one. */
static void reset_rate(get *g)
{
    g->rate_at = 0;
    g->bytes_s = 0;
}

/* -- Files already on disk ------------------------------------------------------------------ */

static bool get_file_size(const char *path, uint64_t *n_bytes)
{
    struct stat st;
    bool ok = stat(path, &st) == 0;

    *n_bytes = ok ? (uint64_t)st.st_size : 0;
    return ok;
}

/* OK and was_there: the file exists with the expected size.  IO: it exists with another size. */
static ebb_status look_for_file(get *g, ebb_error *err)
{
    char has[16], wants[16];
    uint64_t n;

    g->got->was_there = get_file_size(g->path.data, &n);
    if (!g->got->was_there)
        return EBB_OK;
    g->got->n_bytes = n;
    if (g->total == UNKNOWN || n == g->total)
        return EBB_OK;
    if (n < g->total)
        return EBB_FAIL(err, EBB_IO, "%s: already there, with %s of %s; rename it to %s.part and ebb pull continues it",
                        g->path.data, ebb_size_text(n, has), ebb_size_text(g->total, wants), g->w->name);
    return EBB_FAIL(err, EBB_IO, "%s: already there, with %llu bytes where the file to fetch has %llu: rename or "
                                 "delete it first",
                    g->path.data, (unsigned long long)n, (unsigned long long)g->total);
}

/* Does the path still name the locked file?  The process that held the lock may have renamed it. */
static bool is_part_in_place(const get *g)
{
    struct stat at, mine;

    return stat(g->part.data, &at) == 0 && fstat(g->fd, &mine) == 0 && at.st_ino == mine.st_ino &&
           at.st_dev == mine.st_dev;
}

static ebb_status open_download_part(get *g, ebb_error *err)
{
    ebb_status st = ebb_file_mkdirs(g->w->folder, err);

    if (st == EBB_OK)
        st = ebb_file_open(g->part.data, EBB_FILE_UPDATE_HERE, &g->fd, err);
    if (st != EBB_OK)
        return st;
    st = ebb_file_lock(g->fd, g->part.data, err);
    if (st == EBB_OK && !is_part_in_place(g))
        st = EBB_FAIL(err, EBB_BUSY, "%s: it has been moved meanwhile", g->part.data);
    if (st == EBB_BUSY)
        st = EBB_FAIL(err, EBB_BUSY, "%s: another ebb pull is fetching it right now", g->w->name);
    return st == EBB_OK ? ebb_file_size(g->fd, g->part.data, &g->pos, err) : st;
}

/* A part can be resumed if its checksum agrees, or if the server can compare its etag or date. */
static bool is_part_resumable(const get *g)
{
    if (g->total != UNKNOWN && g->pos > g->total)
        return false;
    if (g->sha256[0])
        return g->sidecar.sha256[0] == '\0' || strcmp(g->sidecar.sha256, g->sha256) == 0;
    return g->sidecar.etag[0] || g->sidecar.modified[0];
}

/* Hash the bytes of the part; the checksum then continues with the bytes that arrive. */
static ebb_status hash_part(get *g, ebb_error *err)
{
    char *piece = malloc(PIECE);
    ebb_status st = piece ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory to check %s", g->w->name);

    reset_rate(g);
    for (uint64_t at = 0; st == EBB_OK && at < g->pos;) {
        size_t n = g->pos - at < PIECE ? (size_t)(g->pos - at) : PIECE;

        st = ebb_file_read_at(g->fd, g->part.data, piece, n, at, err);
        if (st == EBB_OK)
            ebb_sha256_add(g->sha, piece, n);
        at += n;
        report_progress(g, at, true, at == g->pos);
        if (st == EBB_OK && download_is_canceled(g))
            st = EBB_FAIL(err, EBB_CANCELED, "stopped");
    }
    reset_rate(g);
    free(piece);
    return st;
}

static ebb_status restart_download(get *g, ebb_error *err)
{
    if (g->n_restarts++ == MAX_RESTARTS)
        return EBB_FAIL(err, EBB_IO, "%s: keeps changing on the server; try again later", g->w->name);
    g->pos = 0;
    g->next_look = FIRST_LOOK;
    g->next_room = 0;
    ebb_sha256_begin(g->sha);
    reset_rate(g);
    return ebb_file_truncate(g->fd, g->part.data, 0, err);
}

static ebb_status begin_download(get *g, ebb_error *err)
{
    char size[16];
    ebb_status st = look_for_file(g, err);

    if (st != EBB_OK || g->got->was_there)
        return st;
    st = open_download_part(g, err);
    if (st == EBB_OK)
        st = look_for_file(g, err);              /* another process may have completed it before we got the lock */
    if (st != EBB_OK || g->got->was_there)
        return st;
    if (!ebb_pull_sidecar_read(g->part.data, &g->sidecar) && g->pos)
        ebb_log("pull", "%s: no sidecar beside it", g->w->name);
    if (g->pos && !is_part_resumable(g)) {
        download_notice(g, "the part of %s that is here belongs to another file: starting over", g->w->name);
        st = restart_download(g, err);
    } else if (g->pos && st == EBB_OK) {
        download_notice(g, "%s of %s are here: continuing", ebb_size_text(g->pos, size), g->w->name);
        st = hash_part(g, err);
    }
    g->got->n_resumed = g->pos;
    return st;
}

/* -- Looking at the header ------------------------------------------------------------------ */

static ebb_status check_header(get *g, ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st;

    if (!g->w->on_header || g->has_header || g->pos == 0)
        return EBB_OK;
    st = g->w->on_header(g->w->arg, g->part.data, g->total, &why);
    g->has_header = st == EBB_OK;
    g->next_look = g->pos * 2 > FIRST_LOOK ? g->pos * 2 : FIRST_LOOK;
    if (st == EBB_BUSY && g->pos < g->total)
        return EBB_OK;
    if (st == EBB_BUSY)
        st = EBB_FAIL(&why, EBB_FORMAT, "%s: ends within its header", g->w->name);
    if (st != EBB_OK && err)
        *err = why;
    g->is_bad = st == EBB_FORMAT || st == EBB_UNSUPPORTED;
    return st;
}

/* -- The server's answer -------------------------------------------------------------------- */

/* The hash of the object, in an etag of the hub: "64 digits". */
static void read_hash(const ebb_http_reply *r, char out[65])
{
    const char *p = r->linked_etag[0] == '"' ? r->linked_etag + 1 : r->linked_etag;

    if (!out[0] && strspn(p, "0123456789abcdef") == 64 && (p[64] == '"' || p[64] == '\0'))
        snprintf(out, 65, "%.64s", p);
}

/* How large the file is, as far as it is said; FORMAT if that is said twice and not alike. */
static ebb_status read_size(get *g, const ebb_http_reply *r, ebb_error *err)
{
    uint64_t n = r->n_bytes != UNKNOWN ? r->n_bytes : g->w->is_hub ? r->linked_bytes : UNKNOWN;

    if (g->total != UNKNOWN && n != UNKNOWN && n != g->total && g->w->n_bytes != UNKNOWN)
        return EBB_FAIL(err, EBB_FORMAT,
                        "%s: should have %llu bytes, the server has %llu: has it just been replaced?  Try again",
                        g->w->name, (unsigned long long)g->total, (unsigned long long)n);
    if (n != UNKNOWN)
        g->total = n;
    return EBB_OK;
}

static ebb_status check_disk_space(const get *g, ebb_error *err)
{
    uint64_t free_bytes, usable, needs = g->total != UNKNOWN ? g->total - g->pos : 0;
    char have[16], want[16], lacks[16];
    ebb_status st = ebb_folder_free_bytes(g->w->folder, &free_bytes, err);

    if (st != EBB_OK)
        return st;
    usable = free_bytes > SPARE_BYTES ? free_bytes - SPARE_BYTES : 0;
    if (needs <= usable && (usable > 0 || needs == 0))
        return EBB_OK;
    return EBB_FAIL(err, EBB_IO, "%s: %s still to come, but its disk has only %s free: %s too little", g->w->folder,
                    ebb_size_text(needs, want), ebb_size_text(free_bytes, have), ebb_size_text(needs - usable, lacks));
}

/* A download of unknown size ends when the disk has less than SPARE_BYTES * 3/2 left. */
static ebb_status check_spare_room(get *g, ebb_error *err)
{
    uint64_t free_bytes;
    char size[16];
    ebb_status st;

    if (g->total != UNKNOWN || g->pos < g->next_room)
        return EBB_OK;
    g->next_room = g->pos + SPARE_BYTES / 4;
    st = ebb_folder_free_bytes(g->w->folder, &free_bytes, err);
    if (st != EBB_OK || free_bytes >= SPARE_BYTES + SPARE_BYTES / 2)
        return st;
    return EBB_FAIL(err, EBB_IO, "%s: the server does not say how large it is, and after %s the disk is full; remove "
                                 "that file if it cannot be right",
                    g->part.data, ebb_size_text(g->pos, size));
}

/* Why the part cannot be resumed at its end, as a text for the user; NULL: it can. */
static const char *why_not_resumable(const get *g, const ebb_http_reply *r)
{
    bool has_sha = g->sha256[0] && (!g->sidecar.sha256[0] || strcmp(g->sha256, g->sidecar.sha256) == 0);
    bool has_etag = g->sidecar.etag[0] && r->etag[0], has_date = g->sidecar.modified[0] && r->modified[0];
    bool is_other = g->sha256[0] ? !has_sha
                  : has_etag ? strcmp(g->sidecar.etag, r->etag) != 0
                             : has_date && strcmp(g->sidecar.modified, r->modified) != 0;

    if (is_other || (g->sidecar.n_bytes != UNKNOWN && g->total != UNKNOWN && g->sidecar.n_bytes != g->total) ||
        (g->total != UNKNOWN && g->pos > g->total))
        return "the file has changed on the server";
    if (!has_sha && !has_etag && !has_date)
        return "the server does not say whether it is still the same file";
    return r->status == 206 && r->from == g->pos ? NULL : "the server cannot resume";
}

static void fill_sidecar(get *g, const ebb_http_reply *r)
{
    g->sidecar.n_bytes = g->total;
    snprintf(g->sidecar.command, sizeof g->sidecar.command, "%s", g->w->command);
    memcpy(g->sidecar.sha256, g->sha256, sizeof g->sidecar.sha256);
    snprintf(g->sidecar.etag, sizeof g->sidecar.etag, "%s", strncmp(r->etag, "W/", 2) ? r->etag : "");
    snprintf(g->sidecar.modified, sizeof g->sidecar.modified, "%s", r->modified);
}

static ebb_status handle_reply(get *g, const ebb_http_reply *r, ebb_error *err)
{
    ebb_status st = EBB_OK;

    if (g->w->is_hub)
        read_hash(r, g->sha256);
    st = read_size(g, r, err);
    if (st == EBB_OK && g->pos) {
        const char *why = why_not_resumable(g, r);

        if (why) {
            download_notice(g, "%s: starting over", why);
            st = restart_download(g, err);
            g->got->n_resumed = 0;
            g->must_restart = r->status == 206;  /* the body starts in the middle of the file */
        }
    } else if (st == EBB_OK && r->from != 0) {
        st = EBB_FAIL(err, EBB_FORMAT, "%s: the server starts in the middle", g->w->name);
    }
    if (st == EBB_OK)
        st = check_disk_space(g, err);
    fill_sidecar(g, r);
    return st == EBB_OK ? ebb_pull_sidecar_write(g->part.data, &g->sidecar, err) : st;
}

static bool on_reply(void *arg, const ebb_http_reply *r)
{
    get *g = arg;

    return handle_reply(g, r, &g->why) == EBB_OK && !g->must_restart;
}

static ebb_status handle_body(get *g, const char *data, size_t n, ebb_error *err)
{
    ebb_status st;

    if (g->total != UNKNOWN && n > g->total - g->pos)
        return EBB_FAIL(err, EBB_FORMAT, "%s: the server sends more than the %llu bytes it should have", g->w->name,
                        (unsigned long long)g->total);
    st = ebb_file_write_at(g->fd, g->part.data, data, n, g->pos, err);
    if (st != EBB_OK)
        return st;
    ebb_sha256_add(g->sha, data, n);
    g->pos += n;
    g->got->n_fetched += n;
    st = check_spare_room(g, err);
    if (st != EBB_OK)
        return st;
    report_progress(g, g->pos, false, g->pos == g->total);
    if (g->pos >= g->next_look)
        st = check_header(g, err);
    if (st == EBB_OK && g->has_header && g->w->header_only)
        st = EBB_FAIL(err, EBB_CANCELED, "enough");
    return st;
}

static bool on_body(void *arg, const char *data, size_t n)
{
    get *g = arg;

    return handle_body(g, data, n, &g->why) == EBB_OK;
}

static bool on_tick(void *arg)
{
    get *g = arg;

    report_progress(g, g->pos, false, false);
    return !download_is_canceled(g);
}

/* -- Tries ---------------------------------------------------------------------------------- */

/* What If-Range may name: nothing where the checksum decides anyway, for mirrors call the same bytes by many names. */
static const char *if_range_value(const get *g)
{
    return g->sha256[0] ? NULL
           : g->sidecar.etag[0] ? g->sidecar.etag : g->sidecar.modified[0] ? g->sidecar.modified : NULL;
}

static ebb_status request_rest(get *g, ebb_http_reply *r, ebb_error *err)
{
    ebb_http_request q = {
        .url = g->w->url, .secret = g->w->is_hub ? g->env->token : NULL, .secret_url = ebb_hub_endpoint(g->env),
        .from = g->pos, .if_range = if_range_value(g), .connect_s = g->env->connect_s, .stall_s = g->env->stall_s,
        .on_reply = on_reply, .on_body = on_body, .on_tick = on_tick, .arg = g,
    };
    ebb_status st;

    g->must_restart = false;
    memset(&g->why, 0, sizeof g->why);
    st = ebb_http_get(&q, r, err);
    if (st == EBB_CANCELED && g->why.msg[0]) {   /* by one of our callbacks, with its error in g->why */
        if (err)
            *err = g->why;
        st = g->why.code;
    }
    return st;
}

static bool is_passing(int status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

/* 416, range not satisfiable: the part is complete, or longer than the server's file. */
static ebb_status handle_416(get *g, const ebb_http_reply *r, bool *again, ebb_error *err)
{
    ebb_status st = read_size(g, r, err);

    if (st != EBB_OK || g->pos == g->total)
        return st;
    download_notice(g, "the server has less than is here: starting over");
    *again = true;
    return restart_download(g, err);
}

/* The result of a request.  OK and *again: another one is needed; OK alone: all bytes are here. */
static ebb_status judge_reply(get *g, ebb_status st, const ebb_http_reply *r, bool *again, ebb_error *err)
{
    *again = false;
    if (st == EBB_CANCELED && g->must_restart) {
        *again = true;
        return EBB_OK;
    }
    if (st == EBB_IO && r->may_retry && g->why.code == EBB_OK) {
        *again = true;
        return EBB_OK;
    }
    if (st != EBB_OK)
        return st;
    if (r->status == 416)
        return handle_416(g, r, again, err);
    if (r->status == 200 || r->status == 206) {
        *again = g->total != UNKNOWN && g->pos < g->total;       /* the connection was closed in order, but early */
        return EBB_OK;
    }
    *again = is_passing(r->status);
    return *again ? EBB_OK : ebb_hub_refusal(g->env, r, g->w->repo, g->w->name, err);
}

static ebb_status pause_for(const get *g, unsigned ms, ebb_error *err)
{
    for (unsigned done = 0; done < ms; done += 50) {
        if (download_is_canceled(g))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
    return EBB_OK;
}

static ebb_status wait_for_next(get *g, const ebb_http_reply *r, unsigned n_try, const ebb_error *why, ebb_error *err)
{
    unsigned first = g->env->pause_ms ? g->env->pause_ms : PAUSE_MS, ms = n_try > 7 ? MAX_PAUSE_MS
                                                                                    : first << (n_try - 1);

    if (ms > MAX_PAUSE_MS)
        ms = MAX_PAUSE_MS;
    if (r->status == 429 && r->retry_after_s * 1000 > ms)
        ms = r->retry_after_s * 1000;
    download_notice(g, ms < 1000 ? "%s; again" : "%s; trying again in %u s", why->msg, ms / 1000);
    return pause_for(g, ms, err);
}

static unsigned max_tries(const get *g, const ebb_http_reply *r)
{
    return g->got->n_fetched == 0 ? TRIES_FIRST : r->is_refused ? TRIES_REFUSED : TRIES;
}

/* The bytes from pos to the end. */
static ebb_status fetch_rest(get *g, ebb_error *err)
{
    unsigned n_fruitless = 0;
    bool again = g->total == UNKNOWN || g->pos < g->total;
    ebb_status st = EBB_OK;

    while (st == EBB_OK && again) {
        uint64_t before = g->pos;
        ebb_http_reply r = { 0 };
        ebb_error why = { 0 };

        st = judge_reply(g, request_rest(g, &r, &why), &r, &again, &why);
        if (st != EBB_OK) {
            if (err)
                *err = why;
            break;
        }
        if (!again || g->must_restart)
            continue;
        if (!why.msg[0])
            EBB_FAIL(&why, EBB_IO, r.status == 200 || r.status == 206 ? "%s: the connection was closed early"
                                                                      : "%s answers %d", r.host,
                     r.status);
        n_fruitless = g->pos > before ? 1 : n_fruitless + 1;
        if (n_fruitless >= max_tries(g, &r))
            return is_passing(r.status) ? ebb_hub_refusal(g->env, &r, g->w->repo, g->w->name, err)
                                        : EBB_FAIL(err, EBB_IO, "%s; tried %u times", why.msg, n_fruitless);
        st = wait_for_next(g, &r, n_fruitless, &why, err);
    }
    return st;
}

/* -- The end -------------------------------------------------------------------------------- */

/* A damaged or empty part is removed with its sidecar, so that nobody takes it for a model. */
static void discard_part(get *g)
{
    ebb_file_remove(g->part.data);
    ebb_pull_sidecar_remove(g->part.data);
}

static ebb_status verify_download(get *g, ebb_error *err)
{
    ebb_status st = EBB_OK;

    g->got->n_bytes = g->total = g->pos;
    ebb_sha256_end(g->sha, g->got->sha256);
    if (g->sha256[0] && strcmp(g->sha256, g->got->sha256) != 0)
        st = EBB_FAIL(err, EBB_FORMAT,
                      "%s: arrived damaged: its SHA-256 is %s, the server's %s; it was removed, pull it again",
                      g->w->name, g->got->sha256, g->sha256);
    g->is_bad = st != EBB_OK;
    g->got->is_verified = st == EBB_OK && g->sha256[0];
    g->has_header = false;                          /* on_header sees it again, with the exact size */
    return st == EBB_OK ? check_header(g, err) : st;
}

static ebb_status publish_file(get *g, ebb_error *err)
{
    ebb_status st = ebb_file_sync(g->fd, g->part.data, err);

    if (st == EBB_OK)
        st = ebb_file_rename(g->part.data, g->path.data, err);
    if (st != EBB_OK)
        return st;
    ebb_pull_sidecar_remove(g->part.data);
    return ebb_folder_sync(g->w->folder, err);
}

static ebb_status run_download(get *g, ebb_error *err)
{
    ebb_status st = begin_download(g, err);

    if (st != EBB_OK || g->got->was_there)
        return st;
    st = check_header(g, err);
    if (st == EBB_OK && !(g->has_header && g->w->header_only))
        st = fetch_rest(g, err);
    g->got->has_header_only = g->w->header_only && g->has_header && (st == EBB_CANCELED || st == EBB_OK);
    if (g->got->has_header_only)
        return EBB_OK;
    if (st == EBB_OK)
        st = verify_download(g, err);
    if (g->is_bad)
        discard_part(g);
    return st == EBB_OK ? publish_file(g, err) : st;
}

ebb_status ebb_download_file(const ebb_pull_env *env, const ebb_download_request *w, ebb_download_result *got,
                             ebb_error *err)
{
    get g = { .env = env, .w = w, .got = got, .fd = -1, .total = w->n_bytes, .next_look = FIRST_LOOK };
    uint64_t n;
    ebb_status st;

    *got = (ebb_download_result){ 0 };
    snprintf(g.sha256, sizeof g.sha256, "%s", w->sha256);
    ebb_buf_addf(&g.path, "%s/%s", w->folder, w->name);
    ebb_buf_addf(&g.part, "%s/%s.part", w->folder, w->name);
    st = g.path.failed || g.part.failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for a path")
                                        : ebb_sha256_new(&g.sha, err);
    if (st == EBB_OK)
        st = run_download(&g, err);
    if (g.fd >= 0 && g.pos == 0 && get_file_size(g.part.data, &n) && n == 0 && is_part_in_place(&g) && st != EBB_BUSY)
        discard_part(&g);                        /* not a byte arrived */
    ebb_file_close(g.fd);
    ebb_sha256_free(g.sha);
    ebb_buf_fini(&g.path);
    ebb_buf_fini(&g.part);
    return st;
}
