/* pull/download_priv.h - the inside of a download: download*.c only.
 *
 *     download.c            tries until all is here; checks it; the end
 *     download_reply.c      a request, and what the server answers
 *     download_part.c       NAME.part on disk: begun, resumed, begun anew, renamed
 *     download_progress.c   notices, progress, speed */
#ifndef EBB_PULL_DOWNLOAD_PRIV_H
#define EBB_PULL_DOWNLOAD_PRIV_H
#include "net/dynlib.h"
#include "pull/download.h"
#include "pull/part_sidecar.h"

#define UNKNOWN             UINT64_MAX           /* a size that the server has not named */
#define DOWNLOAD_FIRST_LOOK ((uint64_t)1 << 16)  /* bytes; the next one at twice as many */

/* A download under way; all of it is changed by the thread of ebb_download_file alone. */
typedef struct ebb_download {
    const ebb_pull_env         *env;
    const ebb_download_request *request;
    ebb_download_result        *result;
    ebb_buf           path, part;        /* NAME and NAME.part */
    int               fd;                /* of the part, locked; -1: it is not open */
    ebb_sha256       *sha;               /* of the part's first `pos` bytes */
    ebb_pull_sidecar  sidecar;
    uint64_t          pos, total;        /* of the next byte; bytes of the whole file */
    uint64_t          n_part;            /* bytes in the part: more than pos after a restart */
    char              sha256[65];        /* of the whole file, as the server has it; "": unknown */
    uint64_t          next_look;         /* bytes at which on_header is asked, */
    uint64_t          next_room;         /* and at which the disk's free space is */
    bool              has_header;        /* on_header has seen enough */
    bool              is_bad;            /* the part is damaged or not a model, and is removed */
    double            frame_at, rate_at, bytes_s;    /* seconds of the clock; 0: no speed yet */
    uint64_t          rate_pos;          /* bytes at rate_at */
    unsigned          n_restarts;
    ebb_error         callback_error;    /* of a callback of the request that stopped it */
    bool              has_lost;          /* the part could not be synced, and the sidecar says so */
    bool              must_restart;      /* the request is to be made again, from byte 0 */
    bool              must_ask;  /* the whole file is here: is its version still the server's? */
    bool              has_version;       /* the server has said which one it has, */
    bool              is_other;          /* and it is another one; */
    char              begin[4];          /* then what its file begins with */
    size_t            n_begin;
} ebb_download;

/* -- download_progress.c ---------------------------------------------------------------------- */

/* A line for the log and for env->on_notice. */
void ebb_download_notice(const ebb_download *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool ebb_download_is_canceled(const ebb_download *d);
/* Tells request->on_progress of `done` bytes, now and then; at once if it `must`. */
void ebb_download_report(ebb_download *d, uint64_t done, bool is_check, bool must);
/* The speed is measured anew: what follows is read or received at another one. */
void ebb_download_reset_rate(ebb_download *d);

/* -- download_part.c -------------------------------------------------------------------------- */

/* Looks for the file, then opens, locks and hashes the part.  result->was_there: nothing is left to
 * do, unless d->must_ask.  Errors: BUSY (another process has it), IO (of the disk; a file of
 * another size is there), FORMAT (one of another version is), NOMEM, CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_download_begin(ebb_download *d, ebb_error *err);
/* FORMAT: the whole file that is here is no part of what is to be fetched. */
EBB_MUST_CHECK
ebb_status ebb_download_fail_other_version(const ebb_download *d, ebb_error *err);
/* Begins anew at byte 0.  What is in the part stays, and is compared with what comes.  Error: IO,
 * after a few times. */
EBB_MUST_CHECK
ebb_status ebb_download_restart(ebb_download *d, ebb_error *err);
/* Syncs the part; then the sidecar says what it is of, and that so much of it is there for certain.
 * Nothing in it may be of another version.  Errors: IO (then d->has_lost, or it is the sidecar's),
 * NOMEM, BUSY (it has been moved). */
EBB_MUST_CHECK
ebb_status ebb_download_note_part(ebb_download *d, ebb_error *err);
/* The next n bytes of the file.  Those that are in the part already are compared; it ends where
 * they are other ones.  Errors: IO; FORMAT: they are of no model, and the part is kept. */
EBB_MUST_CHECK
ebb_status ebb_download_add(ebb_download *d, const char *data, size_t n, ebb_error *err);
/* The file ends at pos.  Error: IO, if the part goes on and nobody said how large the file is. */
EBB_MUST_CHECK
ebb_status ebb_download_end_part(ebb_download *d, ebb_error *err);
/* Whether the disk has room for all that is still to come; for some more, if nobody knows how much.
 * Errors: IO. */
EBB_MUST_CHECK
ebb_status ebb_download_check_disk_space(const ebb_download *d, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_download_check_spare_room(ebb_download *d, ebb_error *err);
/* Asks request->on_header, unless it has seen enough.  Errors: its own, but not BUSY, and
 * FORMAT (the file ends before it has). */
EBB_MUST_CHECK
ebb_status ebb_download_check_header(ebb_download *d, ebb_error *err);
/* Removes the part and its sidecar, so that nobody takes it for a model; if not a byte arrived. */
void ebb_download_discard_part(ebb_download *d);
void ebb_download_discard_empty_part(ebb_download *d);
/* Syncs the part and gives it the file's name; the sidecar goes, unless it is needed to tell the
 * version.  Errors: IO, BUSY (it has been moved). */
EBB_MUST_CHECK
ebb_status ebb_download_publish(ebb_download *d, ebb_error *err);

/* -- download_reply.c ------------------------------------------------------------------------- */

/* One request for the bytes from pos on, which are written to the part as they come.  OK and
 * *again: another one is needed; OK alone: all bytes are here.  Errors: those of http.h, of the
 * disk and of on_header; FORMAT (not the file that was asked for); what the server refuses. */
EBB_MUST_CHECK
ebb_status ebb_download_request_rest(ebb_download *d, ebb_http_reply *r, bool *again,
                                     ebb_error *err);
/* One request: d->is_other if the server has another version now than the sidecar names; no, where
 * it does not say.  OK and *again: another one is needed.  Errors: those of http.h; FORMAT (what
 * comes is no model, so it says nothing of a version); what the server refuses. */
EBB_MUST_CHECK
ebb_status ebb_download_ask_version(ebb_download *d, ebb_http_reply *r, bool *again,
                                    ebb_error *err);
/* Whether an answer with this status may be another one a little later. */
bool ebb_download_may_pass(int status);

#endif
