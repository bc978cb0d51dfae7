/* Model stores of other programs on this machine (finding.h): read, never written, locked or removed.
 *
* Where a store's own files say where a model is (Ollama's manifests, the links of a hub cache), nothing outside that
 * store is found by them; what a person has linked into a folder of models is followed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/finding.h"
#include "os/paths.h"

#define HUB_DEPTH 4              /* folders inside a repository that are looked into */
#define JAN_DEPTH 3              /* models/OWNER/NAME/model.gguf */

char *ebb_stores_path_inside(const char *root, const char *path)
{
    char *real = realpath(path, NULL);
    size_t n = strlen(root);

    if (real && strncmp(real, root, n) == 0 && real[n] == '/')
        return real;
    free(real);
    return NULL;
}

/* -- Hugging Face's hub cache: models--OWNER--NAME/snapshots/COMMIT/PATH -> ../../blobs/ID ---------------- */

typedef struct snapshot {
    const char *root;            /* the real path of the cache */
    int         depth;
} snapshot;

/* Folders of a snapshot are folders, its files links into the same cache. */
static void scan_snapshot(ebb_model_finding *f, const char *path, const char *name, void *arg)
{
    const snapshot *s = arg;
    snapshot below = { s->root, s->depth - 1 };
    size_t n = strlen(name), k = strlen(f->ending);
    struct stat st;
    char *real;

    if (lstat(path, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode) && s->depth > 0) {
        ebb_finding_each(f, path, scan_snapshot, &below);
        return;
    }
    if (n <= k || strcmp(name + n - k, f->ending) != 0)
        return;
    real = ebb_stores_path_inside(s->root, path);
    if (real && stat(real, &st) == 0 && S_ISREG(st.st_mode))
        (void)ebb_finding_add(f, path, &st, NULL);
    free(real);
}

/* A file of a repository: its updates leave those of before in the cache, each in its snapshot. */
typedef struct version {
    ebb_model_file *file;
    const char     *name;        /* its path in the snapshot */
    bool            is_main;     /* the branch is there */
} version;

static int by_name_and_age(const void *a, const void *b)
{
    const version *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order != 0)
        return order;
    if (x->is_main != y->is_main)
        return x->is_main ? -1 : 1;
    if (x->file->changed_ms != y->file->changed_ms)
        return x->file->changed_ms > y->file->changed_ms ? -1 : 1;
    return strcmp(y->file->path, x->file->path);
}

/* The snapshot that the branch `main` is at, "COMMIT/"; "": none says so. */
static void read_main(const char *repository, char out[72])
{
    char path[PATH_MAX];
    FILE *file = snprintf(path, sizeof path, "%s/refs/main", repository) < (int)sizeof path ? fopen(path, "re") : NULL;
    size_t n = file ? fread(out, 1, 64, file) : 0;

    out[n] = '\0';
    n = strspn(out, "0123456789abcdef");
    snprintf(out + n, 72 - n, "%s", n ? "/" : "");
    if (file)
        fclose(file);
}

/* A file may be in several snapshots, of which its path names one. */
static bool is_in_snapshot(const ebb_model_file *file, const char *snapshots, const char *commit, const char *name)
{
    ebb_buf path = { 0 };
    struct stat st;
    bool is = *commit && ebb_buf_addf(&path, "%s/%s%s", snapshots, commit, name) &&
              stat(path.data, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode;

    ebb_buf_fini(&path);
    return is;
}

/* Of the versions of each file that were found from `first` on all but the present one. */
static void note_old_versions(ebb_model_finding *f, size_t first, const char *repository, const char *snapshots)
{
    size_t n = f->n - first, n_folder = strlen(snapshots) + 1;
    version *all = n > 1 ? calloc(n, sizeof *all) : NULL;
    char commit[72];

    if (n < 2)
        return;
    f->failed |= !all;
    read_main(repository, commit);
    for (size_t i = 0; all && i < n; i++) {
        ebb_model_file *file = &f->files[first + i];
        const char *slash = strchr(file->path + n_folder, '/');

        all[i] = (version){ .file = file, .name = slash ? slash + 1 : "" };
        all[i].is_main = is_in_snapshot(file, snapshots, commit, all[i].name);
    }
    if (all)
        qsort(all, n, sizeof *all, by_name_and_age);
    for (size_t i = 1; all && i < n; i++)
        if (strcmp(all[i - 1].name, all[i].name) == 0) {
            all[i].file->is_old_version = true;
            all[i].file->note = "an old version";
        }
    free(all);
}

static void scan_repository(ebb_model_finding *f, const char *path, const char *name, void *arg)
{
    snapshot s = { arg, HUB_DEPTH };
    ebb_buf snapshots = { 0 };
    size_t first = f->n;

    if (strncmp(name, "models--", 8) == 0 && ebb_buf_addf(&snapshots, "%s/snapshots", path)) {
        ebb_finding_each(f, ebb_buf_text(&snapshots), scan_snapshot, &s);
        note_old_versions(f, first, path, snapshots.data);
    }
    ebb_buf_fini(&snapshots);
}

static void scan_hub(ebb_model_finding *f, const char *dir)
{
    char *root = realpath(dir, NULL);

    if (root)
        ebb_finding_each(f, root, scan_repository, root);
    free(root);
}

/* -- Ollama ------------------------------------------------------------------------------------ */

static const char *const ollama_notes[][2] = {
    { ".adapter", "without its adapter" },
    { ".projector", "text alone" },
};

static void add_ollama_model(const ebb_ollama_model *m, void *arg)
{
    ebb_model_finding *f = arg;
    ebb_model_file *file = ebb_finding_add(f, m->path, &m->st, m->name);
    json_t *layer;
    size_t i;

    if (!file)
        return;
    file->note = NULL;
    json_array_foreach(m->layers, i, layer) {
        const char *type = json_string_value(json_object_get(layer, "mediaType")),
            *ending = type ? strrchr(type, '.') : NULL;

        for (size_t k = 0; ending && !file->note && k < sizeof ollama_notes / sizeof *ollama_notes; k++)
            if (strcmp(ending, ollama_notes[k][0]) == 0)
                file->note = ollama_notes[k][1];
    }
}

static void scan_ollama(ebb_model_finding *f, const char *dir)
{
    ebb_ollama_each(f, dir, add_ollama_model, f);
}

/* -- Folders of models --------------------------------------------------------------------------- */

static void scan_flat(ebb_model_finding *f, const char *dir)
{
    ebb_finding_scan(f, dir, 0);
}

static void scan_owners(ebb_model_finding *f, const char *dir)
{
    ebb_finding_scan(f, dir, 2);
}

/* Jan calls every file model.gguf; the folder is the name. */
static void scan_jan(ebb_model_finding *f, const char *dir)
{
    size_t n = strlen(dir), first = f->n;

    ebb_finding_scan(f, dir, JAN_DEPTH);
    for (size_t i = first; i < f->n; i++) {
        ebb_model_file *file = &f->files[i];
        const char *slash = strrchr(file->path, '/');

        if (slash <= file->path + n || strcmp(slash, "/model.gguf") != 0)
            continue;
        free(file->name);
        file->name = strndup(file->path + n + 1, (size_t)(slash - file->path) - n - 1);
        f->failed |= !file->name;
    }
}

/* -- Where they are ------------------------------------------------------------------------------ */

typedef void scan_fn(ebb_model_finding *f, const char *dir);

/* Of each store: an environment variable with its directory (then the defaults do not count), and its defaults. */
static const struct place {
    const char *store;
    scan_fn    *scan;
    const char *variable, *below;
    bool        is_only;         /* where the variable is set, the store's defaults do not count */
} places[] = {
    { "Ollama", scan_ollama, "OLLAMA_MODELS", NULL, true },
    { "Ollama", scan_ollama, "HOME", ".ollama/models", false },
    { "Ollama", scan_ollama, NULL, "/usr/share/ollama/.ollama/models", false },
    { "Hugging Face", scan_hub, "HF_HUB_CACHE", NULL, true },
    { "Hugging Face", scan_hub, "HUGGINGFACE_HUB_CACHE", NULL, true },
    { "Hugging Face", scan_hub, "HF_HOME", "hub", true },
    { "Hugging Face", scan_hub, "XDG_CACHE_HOME", "huggingface/hub", true },
    { "Hugging Face", scan_hub, "HOME", ".cache/huggingface/hub", false },
    { "llama.cpp", scan_flat, "LLAMA_CACHE", NULL, true },
    { "llama.cpp", scan_flat, "XDG_CACHE_HOME", "llama.cpp", true },
    { "llama.cpp", scan_flat, "HOME", ".cache/llama.cpp", false },
    { "LM Studio", scan_owners, "HOME", ".lmstudio/models", false },
    { "LM Studio", scan_owners, "HOME", ".cache/lm-studio/models", false },
    { "Jan", scan_jan, "XDG_DATA_HOME", "Jan/data/llamacpp/models", true },
    { "Jan", scan_jan, "HOME", ".local/share/Jan/data/llamacpp/models", false },
    { "GPT4All", scan_flat, "XDG_DATA_HOME", "nomic.ai/GPT4All", true },
    { "GPT4All", scan_flat, "HOME", ".local/share/nomic.ai/GPT4All", false },
};

static bool add_place(const struct place *p, ebb_buf *dir)
{
    if (p->variable)
        return ebb_path_below(p->variable, p->below, dir);
    ebb_buf_clear(dir);
    return ebb_buf_adds(dir, p->below);
}

void ebb_stores_each_place(void (*fn)(void *arg, const char *dir), void *arg)
{
    ebb_buf dir = { 0 };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (add_place(&places[i], &dir))
            fn(arg, ebb_buf_text(&dir));
    ebb_buf_fini(&dir);
}

void ebb_stores_scan(ebb_model_finding *f)
{
    const size_t n = sizeof places / sizeof *places;
    ebb_buf dir = { 0 };

    for (size_t i = 0; i < n; i++) {
        const struct place *p = &places[i];

        if (!add_place(p, &dir))
            continue;
        f->store = p->store;
        p->scan(f, ebb_buf_text(&dir));
        while (p->is_only && i + 1 < n && places[i + 1].store == p->store)
            i++;
    }
    f->store = NULL;
    ebb_buf_fini(&dir);
}
