/* Finding model files (models.h). */
#include "models/models.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/grow.h"
#include "os/paths.h"

#define DEPTH 2                  /* directories below a place that are looked into */

typedef struct finding {
    ebb_model_file *files;
    size_t          n, cap;
    const char     *ending;
    bool            failed;      /* out of memory */
} finding;

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);

    return n > k && strcmp(name + n - k, ending) == 0;
}

bool ebb_models_is_part(const char *path, unsigned *part, unsigned *of)
{
    size_t n = strlen(path);
    unsigned i, count;
    int end = 0;

    if (n <= 20 || sscanf(path + n - 20, "-%5u-of-%5u.gguf%n", &i, &count, &end) != 2 || end != 20)
        return false;
    *part = i;
    *of = count;
    return true;
}

/* The sizes of all parts whose first one is at `path`. */
static uint64_t bytes_of_parts(const char *path, unsigned of)
{
    ebb_buf name = { 0 };
    uint64_t sum = 0;
    struct stat st;

    for (unsigned i = 1; i <= of && i <= 99999; i++) {
        ebb_buf_clear(&name);
        ebb_buf_add(&name, path, strlen(path) - 20);
        if (!ebb_buf_addf(&name, "-%05u-of-%05u.gguf", i, of) || stat(name.data, &st) != 0)
            break;
        sum += (uint64_t)st.st_size;
    }
    ebb_buf_fini(&name);
    return sum;
}

static bool is_file_known(const finding *f, const char *path)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->files[i].path, path) == 0)
            return true;
    return false;
}

static void add_model_file(finding *f, const char *path, const struct stat *st)
{
    unsigned part = 1, of = 1;
    uint64_t n_bytes = (uint64_t)st->st_size;
    ebb_model_file *files;
    char *copy;

    if (ebb_models_is_part(path, &part, &of))
        n_bytes = part == 1 ? bytes_of_parts(path, of) : 0;
    if (part != 1 || is_file_known(f, path))
        return;
    files = ebb_grow(f->files, f->n, &f->cap, sizeof *files);
    f->failed |= !files;
    if (!files)
        return;
    f->files = files;
    copy = strdup(path);
    f->failed |= !copy;
    if (copy)
        f->files[f->n++] = (ebb_model_file){
            copy, n_bytes, (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000 };
}

static void scan_path(finding *f, const char *path, int depth);

static void scan_folder(finding *f, const char *dir, int depth)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    ebb_buf path = { 0 };

    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        ebb_buf_clear(&path);
        if (ebb_buf_addf(&path, "%s/%s", dir, e->d_name))
            scan_path(f, path.data, depth);
        else
            f->failed = true;
    }
    ebb_buf_fini(&path);
    if (d)
        closedir(d);
}

static void scan_path(finding *f, const char *path, int depth)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode) && depth >= 0)
        scan_folder(f, path, depth - 1);
    else if (S_ISREG(st.st_mode) && ends_in(path, f->ending))
        add_model_file(f, path, &st);
}

static int newest_first(const void *a, const void *b)
{
    const ebb_model_file *x = a, *y = b;

    if (x->changed_ms != y->changed_ms)
        return x->changed_ms < y->changed_ms ? 1 : -1;
    if (x->n_bytes != y->n_bytes)
        return x->n_bytes < y->n_bytes ? 1 : -1;
    return strcmp(x->path, y->path);
}

static void scan_path_list(finding *f, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ":");
        char *path_in_list = strndup(list, n);

        f->failed |= !path_in_list;
        if (path_in_list && n)
            scan_path(f, path_in_list, DEPTH);
        free(path_in_list);
        list += n + (list[n] == ':');
    }
}

static ebb_status find_model_files(const char *ending, ebb_model_file **out, size_t *n, ebb_error *err)
{
    finding f = { .ending = ending };
    ebb_buf data = { 0 };

    *out = NULL;
    *n = 0;
    if (ebb_path_models())
        scan_path_list(&f, ebb_path_models());
    if (ebb_path_in(EBB_DIR_DATA, "models", &data, NULL) == EBB_OK)
        scan_path(&f, data.data, DEPTH);
    ebb_buf_fini(&data);
    if (f.failed) {
        ebb_models_free(f.files, f.n);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the list of models");
    }
    if (f.n)
        qsort(f.files, f.n, sizeof *f.files, newest_first);
    *out = f.files;
    *n = f.n;
    return EBB_OK;
}

ebb_status ebb_models_find(ebb_model_file **out, size_t *n, ebb_error *err)
{
    return find_model_files(".gguf", out, n, err);
}

ebb_status ebb_models_find_partial(ebb_model_file **out, size_t *n, ebb_error *err)
{
    return find_model_files(".gguf.part", out, n, err);
}

ebb_status ebb_models_folder(ebb_buf *out, ebb_error *err)
{
    const char *list = ebb_path_models();

    while (list && *list) {
        size_t n = strcspn(list, ":");
        struct stat st;

        ebb_buf_clear(out);
        ebb_buf_add(out, list, n);
        if (n && (stat(ebb_buf_text(out), &st) == 0 ? S_ISDIR(st.st_mode) : !ends_in(ebb_buf_text(out), ".gguf")))
            return out->failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for a path") : EBB_OK;
        list += n + (list[n] == ':');
    }
    return ebb_path_in(EBB_DIR_DATA, "models", out, err);
}

/* -- By name ------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_called(const char *base, const char *name)
{
    size_t n = strlen(name);

    return strcasecmp(base, name) == 0 || (strncasecmp(base, name, n) == 0 && strcasecmp(base + n, ".gguf") == 0);
}

/* Which of the files is meant; n: none.  Part of a name is enough where it is of one alone. */
static size_t find_model_named(const ebb_model_file *files, size_t n, const char *name, size_t *n_partly)
{
    size_t partly = n;

    *n_partly = 0;
    for (size_t i = 0; i < n; i++)
        if (is_called(base_name(files[i].path), name))
            return i;
    for (size_t i = 0; i < n; i++)
        if (strcasestr(base_name(files[i].path), name)) {
            partly = i;
            ++*n_partly;
        }
    return *n_partly == 1 ? partly : n;
}

/* The names of those that have `part` in them, as many as a line takes. */
static void add_names(ebb_buf *out, const ebb_model_file *files, size_t n, const char *part)
{
    enum { LINE = 200 };
    size_t n_left = 0;

    for (size_t i = 0; i < n; i++) {
        const char *base = base_name(files[i].path);
        if (!strcasestr(base, part))
            continue;
        if (out->len + strlen(base) > LINE)
            n_left++;
        else
            ebb_buf_addf(out, "%s%s", out->len ? ", " : "", base);
    }
    if (n_left)
        ebb_buf_addf(out, " and %zu more", n_left);
}

static ebb_status find_here(const char *name, char **path, ebb_error *err)
{
    ebb_model_file *files;
    ebb_buf names = { 0 };
    size_t n, i, n_partly;
    ebb_status st = ebb_models_find(&files, &n, err);

    if (st != EBB_OK)
        return st;
    i = find_model_named(files, n, name, &n_partly);
    if (i < n)
        *path = strdup(files[i].path);
    add_names(&names, files, n, n_partly > 1 ? name : "");
    if (n_partly > 1)
        st = EBB_FAIL(err, EBB_LIMIT, "%.100s: which one?  %s", name, ebb_buf_text(&names));
    else if (i == n && n > 0)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%.100s: no such file, and no model here is called so; there are %s", name, ebb_buf_text(&names));
    else if (i == n)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%.100s: no such file, and there are no models here yet; `ebb pull OWNER/NAME` gets one, `ebb models` says where they belong", name);
    else if (!*path)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    ebb_buf_fini(&names);
    ebb_models_free(files, n);
    return st;
}

ebb_status ebb_models_resolve(const char *name, char **path, ebb_error *err)
{
    ebb_buf whole = { 0 };
    ebb_status st;
    struct stat file;

    *path = NULL;
    st = ebb_path_expand(name, &whole, err);
    if (st == EBB_OK && (stat(ebb_buf_text(&whole), &file) == 0 || strchr(name, '/'))) {
        *path = strdup(ebb_buf_text(&whole));
        st = *path ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
        if (st == EBB_OK && stat(*path, &file) != 0)
            st = EBB_FAIL(err, EBB_NOTFOUND, "%s: no such file; `ebb models` lists those that are found", name);
        else if (st == EBB_OK && S_ISDIR(file.st_mode))
            st = EBB_FAIL(err, EBB_USAGE, "%s: is a folder; name a .gguf file in it", name);
    } else if (st == EBB_OK) {
        st = find_here(name, path, err);
    }
    if (st != EBB_OK) {
        free(*path);
        *path = NULL;
    }
    ebb_buf_fini(&whole);
    return st;
}

void ebb_models_free(ebb_model_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(files[i].path);
    free(files);
}
