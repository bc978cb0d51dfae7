/* Ollama's store (finding.h): manifests/HOST/NAMESPACE/MODEL/TAG name blobs by their digests.
 *
 *     ROOT/manifests/registry.ollama.ai/library/llama3.2/latest    {"layers": [{"mediaType", "digest", "size"}, ...]}
 *     ROOT/manifests-v2/ollama.com/library/llama3.2/latest         the same, a link to a blob that is, or a list:
 *                                                                  {"manifests": [{"digest", "runner", "format"}, ...]}
 *     ROOT/blobs/sha256-<64 hex digits>
 *
 * Names and digests are checked letter by letter, and what they lead to has to lie in the store. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "models/finding.h"
#include "json/json_load.h"
#include "os/file.h"

#define MAX_MANIFEST  ((size_t)1 << 20)
#define MAX_MANIFESTS 10000u     /* that are read, 60 us each: a chat begins with it */
#define MAX_TEXT      ((size_t)1 << 16)
#define N_LEVELS      4          /* host, namespace, model, tag */

typedef struct walk {
    const char    *root;         /* real path */
    ebb_ollama_fn *fn;
    void          *arg;
    const char    *names[N_LEVELS];
    int            level;
} walk;

static bool is_plain_name(const char *name)
{
    size_t n = strlen(name);

    return n < 128 && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:") == n;
}

/* The path of the blob, if the digest is one and the blob is a file of the store. */
static char *blob_path(const char *root, const char *digest, struct stat *st)
{
    ebb_buf path = { 0 };
    char *real = NULL;

    if (digest && strlen(digest) == 71 && strncmp(digest, "sha256:", 7) == 0 &&
        strspn(digest + 7, "0123456789abcdef") == 64 && ebb_buf_addf(&path, "%s/blobs/sha256-%s", root, digest + 7))
        real = ebb_stores_path_inside(root, ebb_buf_text(&path));
    ebb_buf_fini(&path);
    if (real && stat(real, st) == 0 && S_ISREG(st->st_mode))
        return real;
    free(real);
    return NULL;
}

/* A JSON object in a file of the store, or NULL. */
static json_t *read_manifest_file(const char *real)
{
    ebb_buf text = { 0 };
    json_t *o = NULL;

    if (ebb_file_slurp_kept(real, MAX_MANIFEST, &text, NULL) == EBB_OK)
        o = ebb_json_load(ebb_buf_text(&text), text.len, 0, NULL);
    ebb_buf_fini(&text);
    return o;
}

static bool is_text(const json_t *o, const char *key, const char *want)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text && strcmp(text, want) == 0;
}

/* The manifest itself, or of a list of them the one for GGUF; a list in a list is refused.  Owns o from here on. */
static json_t *choose_manifest(const char *root, json_t *o)
{
    json_t *list = json_object_get(o, "manifests"), *entry, *chosen = NULL;
    struct stat st;
    size_t i;

    if (!json_is_array(list))
        return o;
    json_array_foreach(list, i, entry) {
        const char *runner = json_string_value(json_object_get(entry, "runner"));
        char *path;

        if (!is_text(entry, "format", "gguf") ||
            (runner && strcmp(runner, "llama.cpp") != 0 && strcmp(runner, "llamacpp") != 0) || chosen)
            continue;
        path = blob_path(root, json_string_value(json_object_get(entry, "digest")), &st);
        chosen = path ? read_manifest_file(path) : NULL;
        free(path);
    }
    json_decref(o);
    return chosen;
}

static json_t *find_layer(const json_t *layers, const char *ending)
{
    json_t *layer;
    size_t i;

    json_array_foreach(layers, i, layer) {
        const char *type = json_string_value(json_object_get(layer, "mediaType"));
        size_t n = type ? strlen(type) : 0, k = strlen(ending);

        if (n > k && strncmp(type, "application/vnd.ollama.image.", 29) == 0 && strcmp(type + n - k, ending) == 0)
            return layer;
    }
    return NULL;
}

/* The file of a layer, as long as the manifest says it is; a shorter one is still being fetched. */
static char *layer_path(const char *root, const json_t *layer, struct stat *st)
{
    char *path = blob_path(root, json_string_value(json_object_get(layer, "digest")), st);

    if (path && json_integer_value(json_object_get(layer, "size")) == (json_int_t)st->st_size)
        return path;
    free(path);
    return NULL;
}

/* The name that Ollama shows: without the default registry, namespace and tag. */
static void add_model_name(ebb_buf *out, const char *const names[N_LEVELS])
{
    bool is_usual_host = strcmp(names[0], "registry.ollama.ai") == 0 || strcmp(names[0], "ollama.com") == 0;

    if (!is_usual_host)
        ebb_buf_addf(out, "%s/", names[0]);
    if (!is_usual_host || strcmp(names[1], "library") != 0)
        ebb_buf_addf(out, "%s/", names[1]);
    ebb_buf_adds(out, names[2]);
    if (strcmp(names[3], "latest") != 0)
        ebb_buf_addf(out, ":%s", names[3]);
}

static void visit_manifest(const walk *w, const char *path)
{
    ebb_ollama_model m = { .root = w->root };
    ebb_buf name = { 0 };
    char *real = ebb_stores_path_inside(w->root, path), *weights = NULL;
    json_t *o = real ? read_manifest_file(real) : NULL;

    if (o)
        o = choose_manifest(w->root, o);
    m.layers = json_object_get(o, "layers");
    weights = layer_path(w->root, find_layer(m.layers, ".model"), &m.st);
    add_model_name(&name, w->names);
    m.name = ebb_buf_text(&name);
    m.path = weights;
    if (weights)
        w->fn(&m, w->arg);
    free(weights);
    free(real);
    json_decref(o);
    ebb_buf_fini(&name);
}

static void visit_level(ebb_model_finding *f, const char *path, const char *name, void *arg)
{
    walk below = *(walk *)arg;
    struct stat st;

    if (!is_plain_name(name))
        return;
    below.names[below.level++] = name;
    if (below.level == N_LEVELS && f->n_manifests < MAX_MANIFESTS)
        visit_manifest(&below, path);
    if (below.level == N_LEVELS && f->n_manifests++ == MAX_MANIFESTS)
        ebb_log("models", "%s: has more than %u manifests; the others are left out", below.root, MAX_MANIFESTS);
    if (below.level < N_LEVELS && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        ebb_finding_each(f, path, visit_level, &below);
}

void ebb_ollama_each(ebb_model_finding *f, const char *root, ebb_ollama_fn *fn, void *arg)
{
    static const char *const forms[] = { "manifests-v2", "manifests" };
    char *real = realpath(root, NULL);
    ebb_buf dir = { 0 };

    for (size_t i = 0; real && i < sizeof forms / sizeof *forms; i++) {
        walk w = { .root = real, .fn = fn, .arg = arg };

        ebb_buf_clear(&dir);
        if (ebb_buf_addf(&dir, "%s/%s", real, forms[i]))
            ebb_finding_each(f, ebb_buf_text(&dir), visit_level, &w);
    }
    ebb_buf_fini(&dir);
    free(real);
}

bool ebb_ollama_read_layer(const ebb_ollama_model *m, const char *ending, ebb_buf *out)
{
    struct stat st;
    char *path = layer_path(m->root, find_layer(m->layers, ending), &st);
    bool ok = path && ebb_file_slurp(path, MAX_TEXT, out, NULL) == EBB_OK;

    free(path);
    return ok;
}
