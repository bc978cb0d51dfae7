/* models/finding.h - a list of model files while it is made: for models.c and the stores. */
#ifndef EBB_CHAT_FINDING_H
#define EBB_CHAT_FINDING_H
#include <jansson.h>
#include <sys/stat.h>

#include "models/models.h"

#define EBB_FINDING_MAX_ENTRIES 200000u          /* names looked at, however links are tied */

typedef struct ebb_model_finding {
    ebb_model_file *files;
    size_t          n, cap;
    uint32_t       *slots;       /* [n_slots] by device and inode: place in `files` + 1; 0: free */
    size_t          n_slots;     /* a power of two, or 0 */
    const char     *ending;      /* of the names that count: ".gguf" */
    bool            with_llamafiles;
    void          (*on_file)(void *arg, const char *path);   /* gets them all, and none is listed;
                                                                NULL: they are listed */
    void           *arg;         /* its */
    const char     *store;       /* whose place it is that is looked into; NULL: ebb's own */
    uint32_t        n_entries, n_manifests;
    bool            failed;      /* out of memory */
} ebb_model_finding;

/* A file of that ending, or all of a folder and of those below it, `depth` levels deep. */
void ebb_finding_scan(ebb_model_finding *f, const char *path, int depth);
/* The file at `path`, which its store calls `name` (NULL: as the file is called); of a split
 * model the first part counts, for all.  A file that is listed already, under whatever path,
 * gets `name` as one more.  Returns it, or NULL. */
ebb_model_file *ebb_finding_add(ebb_model_finding *f, const char *path, const struct stat *st,
                                const char *name);
/* Call fn with the path of each name in a folder, without hidden ones, until
 * EBB_FINDING_MAX_ENTRIES are seen. */
typedef void ebb_finding_fn(ebb_model_finding *f, const char *path, const char *name, void *arg);
void ebb_finding_each(ebb_model_finding *f, const char *dir, ebb_finding_fn *fn, void *arg);

/* Those of ebb_models_find that are no old versions. */
EBB_MUST_CHECK
ebb_status ebb_models_find_present(ebb_model_file **out, size_t *n, ebb_error *err);

/* Of two names of a file the one that is shown: the shorter, of the same length always the same. */
bool ebb_models_is_better_name(const char *name, const char *than);

/* stores.c: all that other programs keep here. */
void ebb_stores_scan(ebb_model_finding *f);
/* The folders where that looks, whether they are there or not. */
void ebb_stores_each_place(void (*fn)(void *arg, const char *dir), void *arg);
/* The real path of `path` if that lies in the folder `root` (a real path), else NULL.  For
 * free(). */
char *ebb_stores_path_inside(const char *root, const char *path);

/* -- store_ollama.c ----------------------------------------------------------------------- */

/* A model of Ollama's store, and what its manifest says. */
typedef struct ebb_ollama_model {
    const char *root, *name;     /* the store; "llama3.2", "user/model:tag" */
    const char *path;            /* of the weights */
    struct stat st;
    json_t     *layers;          /* of the manifest */
} ebb_ollama_model;
typedef void ebb_ollama_fn(const ebb_ollama_model *m, void *arg);
/* Call fn with every model of the store at `root` whose weights are there. */
void ebb_ollama_each(ebb_model_finding *f, const char *root, ebb_ollama_fn *fn, void *arg);
/* The layer of a media type that ends so (".system"), as text of at most 64 KiB; false: there is
 * none. */
bool ebb_ollama_read_layer(const ebb_ollama_model *m, const char *ending, ebb_buf *out);

#endif
