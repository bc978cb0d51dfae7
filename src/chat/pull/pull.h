/* pull/pull.h - getting a model: the listing, the choice, all of its files, in one place.
 *
 *     pull_source.h  the argument      hub_listing.h   the repository's files
 *     variants.h     its models        download.h      a file
 *     part_sidecar.h what is known of a part           net/  HTTP itself
 *
 * Nothing else of ebb opens a connection to another machine. */
#ifndef EBB_PULL_H
#define EBB_PULL_H
#include "pull/download.h"
#include "pull/variants.h"

typedef struct ebb_pull {
    ebb_pull_env    env;
    ebb_pull_source source;
    ebb_hub_list    list;        /* empty where the source is a URL */
    ebb_pull_variant *variants;
    size_t          n_variants;
    uint64_t        ram_bytes;   /* set by the caller: plan for so much memory; 0: what there is */
    ebb_machine     machine;     /* measured when a plan or an estimate needs it */
} ebb_pull;

/* Parse `text` and, of a repository, fetch the listing.  *p needs fini in every case.  Errors:
 * those of pull_source.h and hub_listing.h. */
EBB_MUST_CHECK
ebb_status ebb_pull_open(const ebb_pull_env *env, const char *text, ebb_pull *p, ebb_error *err);
void ebb_pull_fini(ebb_pull *p);

/* Measure the machine and estimate every offer.  Up to half a second where nothing was measured
 * before. */
EBB_MUST_CHECK
ebb_status ebb_pull_rate(ebb_pull *p, ebb_error *err);

typedef struct ebb_pull_done {
    ebb_buf  path;               /* of the first file; needs fini */
    uint64_t n_bytes, n_resumed, n_fetched;      /* of all files */
    unsigned n_files;
    char     sha256[65];         /* of the first that was fetched; "": none was */
    bool     was_there, is_verified;             /* all of them */
    double   seconds;
} ebb_pull_done;

/* Who follows a download. */
typedef struct ebb_pull_callbacks {
    /* The header is there and ebb can read the model: its plan on this machine.  false stops, and
     * the part stays. */
    bool (*on_plan)(void *arg, const ebb_model *m, const ebb_machine *machine,
                    const ebb_plan *plan);
    void (*on_progress)(void *arg, const char *name, unsigned i_file, unsigned n_files,
                        const ebb_download_progress *p);
    void  *arg;
} ebb_pull_callbacks;

/* Fetch offer i_variant, or the file of the URL under `name` (NULL: as the URL says).  The plan is
 * of all files of the model, of which the headers come first.  Errors: those of download.h;
 * UNSUPPORTED or FORMAT: the header says that ebb cannot use it; CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_pull_fetch(ebb_pull *p, size_t i_variant, const char *name,
                          const ebb_engine_opts *opts, const ebb_pull_callbacks *watch,
                          ebb_pull_done *done, ebb_error *err);

#endif
