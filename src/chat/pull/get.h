/* pull/get.h - one file, from the net to its folder.
 *
 *     NAME.gguf.part        what is there of it, without holes; locked by whoever works on it
 *     NAME.gguf.part.json   what it is of (note.h)
 *     NAME.gguf             the whole file: it gets this name after its size, its checksum and its header were right
 *                           and its bytes are on the disk
 * A connection that breaks is tried again, from the byte where it broke, with pauses that double, from 0.3 to 30 seconds;
 * ten tries that bring nothing are the end of it, three if nothing ever came. */
#ifndef EBB_PULL_GET_H
#define EBB_PULL_GET_H
#include "pull/hub.h"

typedef struct ebb_pull_progress {
    uint64_t done, total;        /* of the file; total UINT64_MAX: unknown */
    double   bytes_s, left_s;    /* below 0: not known yet */
    bool     is_check;           /* what is there is being read, nothing comes */
} ebb_pull_progress;

typedef struct ebb_pull_wish {
    const char *url, *folder, *name;
    bool        is_hub;          /* the endpoint's token may go along */
    uint64_t    n_bytes;         /* UINT64_MAX: unknown */
    const char *sha256;          /* "": unknown */
    const char *command;         /* that goes on with it */
    const char *repo;            /* for what is said when it is refused; NULL: none */
    /* Look at what is there, the path of which is given: BUSY wants more of it, OK has seen enough and is called once
     * more when all is there, else the download ends with that error and the part is removed if it is UNSUPPORTED or
     * FORMAT.  May be NULL. */
    ebb_status (*looks)(void *arg, const char *part_path, uint64_t n_bytes, ebb_error *err);
    bool        only_look;       /* nothing more after that; the part stays */
    void      (*moves)(void *arg, const ebb_pull_progress *p);       /* four times a second at most; may be NULL */
    void       *arg;
} ebb_pull_wish;

typedef struct ebb_pull_got {
    uint64_t n_bytes, n_resumed, n_fetched;      /* resumed: were there before */
    char     sha256[65];
    bool     was_there;          /* whole, before anything was fetched; then nothing was hashed */
    bool     is_verified;        /* the server named the same checksum */
    bool     only_looked;
} ebb_pull_got;

/* Errors: those of http.h and of the disk, each with what to do; BUSY (somebody else is at it); CANCELED (env->stops). */
EBB_MUST_CHECK
ebb_status ebb_pull_get(const ebb_pull_env *env, const ebb_pull_wish *w, ebb_pull_got *got, ebb_error *err);

#endif
