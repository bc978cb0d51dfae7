/* pull/download.h - one file, from the net to its folder.
 *
 *     NAME.gguf.part        the bytes received so far, without holes; locked by its writer.  A file
 *                           that has another name, too, is not taken for one
 *     NAME.gguf.part.json   what it is of (part_sidecar.h), and how much of it was synced, as it is
 *                           each 64 MiB and at the end: once the machine was started anew, or a
 *                           sync has failed, what is behind that may be holes, and is compared with
 *                           what the server sends again
 *     NAME.gguf             the whole file: it gets this name after its size, its checksum and
 *                           its header were right and its bytes are on the disk.  Of a model in
 *                           several files NAME.gguf.part.json stays beside it until all of them
 *                           are whole, and says which version it is
 *
 * What a server sends anew from its beginning (it knows no ranges, or another version) is compared
 * with the part, which ends where the bytes differ; a page that is no model takes nothing of it.
 * A connection that breaks, or brings less than a KiB a second for a minute, is tried again, from
 * the byte where it broke, with pauses that double, from 0.3 to 30 seconds; ten tries in a row that
 * bring less than 64 KiB are the end of it, six if the server refuses connections or hangs up
 * without an answer, three if nothing ever came. */
#ifndef EBB_PULL_DOWNLOAD_H
#define EBB_PULL_DOWNLOAD_H
#include "pull/hub_listing.h"

typedef struct ebb_download_progress {
    uint64_t done, total;        /* of the file; total UINT64_MAX: unknown */
    double   bytes_s, left_s;    /* below 0: not known yet */
    bool     is_check;           /* the part on disk is being checked, nothing is received */
} ebb_download_progress;

typedef struct ebb_download_request {
    const char *url, *folder, *name;
    bool        is_hub;          /* the endpoint's token may go along */
    uint64_t    n_bytes;         /* UINT64_MAX: unknown */
    const char *sha256;          /* "": unknown */
    const char *command;         /* that goes on with it */
    const char *repo;            /* for what is said when it is refused; NULL: none */
    /* Looks at the part received so far.  BUSY: it needs more bytes; OK: it has seen enough, and
     * is called once more when the file is complete; else the download ends with that error and the
     * part is removed if it is UNSUPPORTED or FORMAT.  May be NULL. */
    ebb_status (*on_header)(void *arg, const char *part_path, uint64_t n_bytes, ebb_error *err);
    bool        header_only;     /* nothing more after that; the part stays */
    /* One of a model's files, not all of which are here: one that is whole has to be of the version
     * that is asked for, which its sidecar or its checksum says, and its sidecar stays. */
    bool        is_joined;
    /* Four times a second at most; may be NULL. */
    void      (*on_progress)(void *arg, const ebb_download_progress *p);
    void       *arg;
} ebb_download_request;

typedef struct ebb_download_result {
    uint64_t n_bytes, n_resumed, n_fetched;      /* resumed: were there before */
    char     sha256[65];
    bool     was_there;          /* whole, before anything was fetched; then nothing was hashed, but
                                  * where is_joined */
    bool     is_verified;        /* the server named the same checksum */
    bool     has_header_only;
} ebb_download_result;

/* Errors: those of http.h and of the disk, each with what to do; BUSY (somebody else is at it);
 * CANCELED (env->is_canceled). */
EBB_MUST_CHECK
ebb_status ebb_download_file(const ebb_pull_env *env, const ebb_download_request *request,
                             ebb_download_result *result, ebb_error *err);

#endif
