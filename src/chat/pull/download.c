/* One file from the net to its folder (download.h): tries, and what becomes of the file in the end. */
#include "pull/download_priv.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "os/file.h"

/* Tries in a row that bring nothing: nine pauses, 98 s together, are for a network that comes back; five, 9 s, for a
 * server that refuses; two if not a byte came yet, for then the address may be wrong. */
#define TRIES         10
#define TRIES_REFUSED 6
#define TRIES_FIRST   3
#define MIN_GAIN      ((uint64_t)64 << 10)   /* bytes that a try has to bring: those of a minute at the lowest speed */
#define PAUSE_MS      300u       /* before the second try, then twice as long each time */
#define MAX_PAUSE_MS  30000u
#define MAX_ASKED_S   120u       /* who is to wait for longer is told so, and may do something else meanwhile */

/* -- Tries ---------------------------------------------------------------------------------- */

static ebb_status pause_for(const ebb_download *d, unsigned ms, ebb_error *err)
{
    for (unsigned done = 0; done < ms; done += 50) {
        if (ebb_download_is_canceled(d))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
    return EBB_OK;
}

static ebb_status wait_for_next(ebb_download *d, const ebb_http_reply *r, unsigned n_try, const ebb_error *why,
                                ebb_error *err)
{
    unsigned first = d->env->pause_ms ? d->env->pause_ms : PAUSE_MS, ms = first << (n_try < 8 ? n_try - 1 : 7);

    if (ms > MAX_PAUSE_MS)
        ms = MAX_PAUSE_MS;
    if (r->status == 429 && r->retry_after_s * 1000 > ms)
        ms = r->retry_after_s * 1000;
    ebb_download_notice(d, ms < 1000 ? "%s; again" : "%s; trying again in %u s", why->msg, ms / 1000);
    return pause_for(d, ms, err);
}

static unsigned max_tries(const ebb_download *d, const ebb_http_reply *r)
{
    return d->result->n_fetched == 0 ? TRIES_FIRST : r->is_refused ? TRIES_REFUSED : TRIES;
}

/* Of the n-th try in a row that brought too little: a pause before the next one, or the end. */
static ebb_status end_try(ebb_download *d, const ebb_http_reply *r, unsigned n, ebb_error *why, ebb_error *err)
{
    if (!why->msg[0])
        EBB_FAIL(why, EBB_IO, r->status == 200 || r->status == 206 ? "%s: the connection was closed early"
                                                                   : "%s answers %d", r->host, r->status);
    if (n < max_tries(d, r) && r->retry_after_s <= MAX_ASKED_S)
        return wait_for_next(d, r, n, why, err);
    return ebb_download_may_pass(r->status) ? ebb_hub_refusal(d->env, r, d->request->repo, d->request->name, err)
                                            : EBB_FAIL(err, EBB_IO, "%s; tried %u times", why->msg, n);
}

/* The file that is here is to be of the version that the server has now. */
static ebb_status check_version_there(ebb_download *d, ebb_error *err)
{
    bool again = true;
    ebb_status st = EBB_OK;

    for (unsigned n = 1; st == EBB_OK && again; n++) {
        ebb_http_reply r = { 0 };
        ebb_error why = { 0 };

        st = ebb_download_ask_version(d, &r, &again, &why);
        if (st != EBB_OK && err)
            *err = why;
        else if (st == EBB_OK && again)
            st = end_try(d, &r, n, &why, err);
    }
    return st == EBB_OK && d->is_other ? ebb_download_fail_other_version(d, err) : st;
}

/* The bytes from pos to the end. */
static ebb_status fetch_rest(ebb_download *d, ebb_error *err)
{
    unsigned n_fruitless = 0;
    bool again = d->total == UNKNOWN || d->pos < d->total;
    ebb_status st = EBB_OK;

    while (st == EBB_OK && again) {
        uint64_t before = d->n_part;
        ebb_http_reply r = { 0 };
        ebb_error why = { 0 };

        st = ebb_download_request_rest(d, &r, &again, &why);
        if (st != EBB_OK) {
            if (err)
                *err = why;
            break;
        }
        if (!again || d->must_restart)
            continue;
        n_fruitless = d->n_part < before + MIN_GAIN ? n_fruitless + 1 : 1;
        st = end_try(d, &r, n_fruitless, &why, err);
    }
    return st;
}

/* -- The end -------------------------------------------------------------------------------- */

static ebb_status verify_download(ebb_download *d, ebb_error *err)
{
    ebb_status st = ebb_download_end_part(d, err);

    if (st != EBB_OK)
        return st;
    d->result->n_bytes = d->total = d->pos;
    ebb_sha256_end(d->sha, d->result->sha256);
    if (d->sha256[0] && strcmp(d->sha256, d->result->sha256) != 0)
        st = EBB_FAIL(err, EBB_FORMAT,
                      "%s: arrived damaged: its SHA-256 is %s, the server's %s; it was removed, pull it again",
                      d->request->name, d->result->sha256, d->sha256);
    d->is_bad = st != EBB_OK;
    d->result->is_verified = st == EBB_OK && d->sha256[0];
    d->has_header = false;                          /* on_header sees it again, with the exact size */
    return st == EBB_OK ? ebb_download_check_header(d, err) : st;
}

static ebb_status run_download(ebb_download *d, ebb_error *err)
{
    ebb_status st = ebb_download_begin(d, err);

    if (st == EBB_OK && d->result->was_there && d->must_ask)
        st = check_version_there(d, err);
    if (st != EBB_OK || d->result->was_there)
        return st;
    if (d->pos && d->pos == d->n_part)              /* what is behind it may be holes */
        st = ebb_download_check_header(d, err);
    if (st == EBB_OK && !(d->has_header && d->request->header_only))
        st = fetch_rest(d, err);
    d->result->has_header_only = d->request->header_only && d->has_header && (st == EBB_CANCELED || st == EBB_OK);
    if (d->result->has_header_only)
        return EBB_OK;
    if (st == EBB_OK)
        st = verify_download(d, err);
    if (d->is_bad)
        ebb_download_discard_part(d);
    return st == EBB_OK ? ebb_download_publish(d, err) : st;
}

/* Not while it is compared with what comes: then the sidecar is of what is behind, too.  Nor what a sync has lost. */
static void note_what_stays(ebb_download *d)
{
    if (d->fd >= 0 && !d->has_lost && d->pos > 0 && d->pos == d->n_part && d->sidecar.command[0])
        (void)!ebb_download_note_part(d, NULL);
}

/* As much as is in the part, which a failed write may have added to: whoever continues it begins there. */
static void report_what_stays(ebb_download *d)
{
    uint64_t n_bytes;

    if (d->fd >= 0 && ebb_file_size(d->fd, d->part.data, &n_bytes, NULL) == EBB_OK && n_bytes <= d->total)
        ebb_download_report(d, n_bytes, false, true);
}

ebb_status ebb_download_file(const ebb_pull_env *env, const ebb_download_request *request, ebb_download_result *result,
                             ebb_error *err)
{
    ebb_download d = {
        .env = env, .request = request, .result = result, .fd = -1, .total = request->n_bytes,
        .next_look = DOWNLOAD_FIRST_LOOK,
    };
    ebb_status st;

    *result = (ebb_download_result){ 0 };
    snprintf(d.sha256, sizeof d.sha256, "%s", request->sha256);
    ebb_buf_addf(&d.path, "%s/%s", request->folder, request->name);
    ebb_buf_addf(&d.part, "%s/%s.part", request->folder, request->name);
    st = d.path.failed || d.part.failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for a path")
                                        : ebb_sha256_new(&d.sha, err);
    if (st == EBB_OK)
        st = run_download(&d, err);
    if (st == EBB_IO || st == EBB_CANCELED || result->has_header_only)
        note_what_stays(&d);
    if (st == EBB_IO || st == EBB_CANCELED)
        report_what_stays(&d);
    if (st != EBB_BUSY)                          /* then the part is somebody else's */
        ebb_download_discard_empty_part(&d);
    ebb_file_close(d.fd);
    ebb_sha256_free(d.sha);
    ebb_buf_fini(&d.path);
    ebb_buf_fini(&d.part);
    return st;
}
