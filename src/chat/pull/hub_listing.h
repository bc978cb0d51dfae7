/* pull/hub_listing.h - the files of a repository, as huggingface.co and its mirrors list them.
 *
 * A listing is from outside: at most 16 MiB of JSON, on 20 pages, and 10,000 files; paths that
 * cannot be shown, names that could not be a file here (pull_source.h) and sizes that no file has
 * are left out and counted. */
#ifndef EBB_PULL_HUB_LISTING_H
#define EBB_PULL_HUB_LISTING_H
#include <stddef.h>
#include <stdint.h>

#include "pull/pull_source.h"

#define EBB_HUB "https://huggingface.co"

/* How to get at things.  Everything is the caller's. */
typedef struct ebb_pull_env {
    const char *endpoint;        /* NULL: EBB_HUB */
    const char *token;           /* goes to the endpoint and nowhere else; NULL: none */
    unsigned    connect_s, stall_s;      /* as http.h */
    unsigned    pause_ms;        /* before the second try, then twice as long each time; 0: as
                                  * download.h says; so is the next */
    uint64_t    sync_bytes;      /* of a part, after which it is synced */
    const char *boot;            /* which start of the machine this is; NULL: as the kernel says */
    bool      (*is_canceled)(void *arg); /* somebody wants to stop; may be NULL, and so may the
                                          * next */
    /* Something to know: no control characters. */
    void      (*on_notice)(void *arg, const char *line);
    void       *arg;
} ebb_pull_env;

typedef struct ebb_hub_file {
    char       *path;            /* in the repository */
    const char *name;            /* its last part: ebb_pull_is_name */
    uint64_t    n_bytes;
    char        sha256[65];      /* lower case; "": it is not said */
} ebb_hub_file;

typedef struct ebb_hub_list {
    ebb_hub_file *files;         /* all *.gguf, by path */
    size_t        n, n_rejected; /* rejected: names and sizes that no file here may have */
    size_t        cap;           /* places in `files` */
} ebb_hub_list;

/* Fetch the listing.  Errors: those of http.h; NOTFOUND, LIMIT, IO (refused: what to do is said),
 * FORMAT, UNSUPPORTED (it goes on at another origin). */
EBB_MUST_CHECK
ebb_status ebb_hub_files(const ebb_pull_env *env, const ebb_pull_source *s, ebb_hub_list *out,
                         ebb_error *err);
void ebb_hub_list_fini(ebb_hub_list *l);

/* Append the address of a file. */
void ebb_hub_add_url(ebb_buf *out, const ebb_pull_env *env, const ebb_pull_source *s,
                     const char *path);
const char *ebb_hub_endpoint(const ebb_pull_env *env);

/* A reply that is no success, as an error that says what to do; `repo` is NULL where it is not of a
 * repository. */
EBB_MUST_CHECK
ebb_status ebb_hub_refusal(const ebb_pull_env *env, const ebb_http_reply *r, const char *repo,
                           const char *what, ebb_error *err);

#endif
