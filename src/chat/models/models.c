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
#include "base/hash.h"
#include "base/text.h"
#include "models/finding.h"
#include "os/paths.h"

#define DEPTH 2                  /* levels of directories below a search directory that are searched */

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);

    return n > k && strcmp(name + n - k, ending) == 0;
}

bool ebb_models_file_id(const char *path, char out[EBB_MODELS_FILE_ID])
{
    struct stat st;
    uint64_t what[4];
    uint8_t hash[16];

    if (!path || stat(path, &st) != 0)
        return false;
    what[0] = st.st_dev;
    what[1] = st.st_ino;
    what[2] = (uint64_t)st.st_size;
    what[3] = (uint64_t)st.st_mtim.tv_sec;
    ebb_hash128(what, sizeof what, NULL, hash);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", hash[i]);
    return true;
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

static void free_model_file(ebb_model_file *f)
{
    free(f->path);
    free(f->name);
    ebb_buf_fini(&f->more_names);
}

void ebb_models_free(ebb_model_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_model_file(&files[i]);
    free(files);
}

const char *ebb_models_name(const ebb_model_file *f)
{
    return f->name ? f->name : ebb_text_file_name(f->path);
}

const char *ebb_models_word(const ebb_model_file *f)
{
    return f->is_name_shared ? f->path : ebb_models_name(f);
}

/* -- The list while it is made (finding.h) ---------------------------------------------------- */

/* The slot of a file, or the free one where it belongs. */
static uint32_t *file_slot(const ebb_model_finding *f, uint64_t device, uint64_t inode)
{
    const uint64_t key[2] = { device, inode };
    size_t i = ebb_hash_table(key, sizeof key) & (f->n_slots - 1);

    while (f->slots[i] && (f->files[f->slots[i] - 1].device != device || f->files[f->slots[i] - 1].inode != inode))
        i = (i + 1) & (f->n_slots - 1);
    return &f->slots[i];
}

/* At least half of the slots stay free.  false: no memory, all is as before. */
static bool make_room_for_slot(ebb_model_finding *f)
{
    size_t n_slots = f->n_slots ? 2 * f->n_slots : 64;
    uint32_t *slots;

    if (2 * (f->n + 1) <= f->n_slots)
        return true;
    slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(f->slots);
    f->slots = slots;
    f->n_slots = n_slots;
    for (size_t i = 0; i < f->n; i++)
        *file_slot(f, f->files[i].device, f->files[i].inode) = (uint32_t)i + 1;
    return true;
}

static ebb_model_file *find_same_file(const ebb_model_finding *f, const struct stat *st)
{
    uint32_t at = f->n_slots ? *file_slot(f, st->st_dev, st->st_ino) : 0;

    return at ? &f->files[at - 1] : NULL;
}

static void replace_text(ebb_model_finding *f, char **text, char *by)
{
    f->failed |= !by;
    if (!by)
        return;
    free(*text);
    *text = by;
}

/* Adds an alias of the file. */
static void add_name_to(ebb_model_finding *f, ebb_model_file *file, const char *name)
{
    f->failed |= !ebb_buf_adds(&file->more_names, name) || !ebb_buf_addc(&file->more_names, '\n');
}

bool ebb_models_is_better_name(const char *name, const char *than)
{
    size_t n = strlen(name), k = strlen(than);

    return n != k ? n < k : strcmp(name, than) < 0;
}

/* The same file once more.  A snapshot that has more parts of it counts more than one that has fewer. */
static ebb_model_file *add_again(ebb_model_finding *f, ebb_model_file *known, const char *path, uint64_t n_bytes,
                                 const char *name)
{
    if (known->store != f->store || (name && !known->name)) {
        add_name_to(f, known, name ? name : ebb_text_file_name(path));
    } else if (name && ebb_models_is_better_name(name, known->name)) {
        add_name_to(f, known, known->name);
        replace_text(f, &known->name, strdup(name));
        return known;                            /* the caller takes its details from this entry */
    } else if (name && strcmp(name, known->name) != 0) {
        add_name_to(f, known, name);
    } else if (!name && (n_bytes > known->n_bytes || (n_bytes == known->n_bytes && strcmp(path, known->path) < 0))) {
        add_name_to(f, known, ebb_text_file_name(known->path));
        replace_text(f, &known->path, strdup(path));
        known->n_bytes = n_bytes;
    } else if (!name) {
        add_name_to(f, known, ebb_text_file_name(path));
    }
    return NULL;
}

ebb_model_file *ebb_finding_add(ebb_model_finding *f, const char *path, const struct stat *st, const char *name)
{
    unsigned part = 1, of = 1;
    uint64_t n_bytes = (uint64_t)st->st_size;
    ebb_model_file one = { 0 }, *files, *known = find_same_file(f, st);

    if (ebb_models_is_part(path, &part, &of))
        n_bytes = part == 1 ? bytes_of_parts(path, of) : 0;
    if (part != 1)
        return NULL;
    if (known)
        return add_again(f, known, path, n_bytes, name);
    files = ebb_grow(f->files, f->n, &f->cap, sizeof *files);
    if (files) {
        f->files = files;
        one = (ebb_model_file){ .path = strdup(path), .name = name ? strdup(name) : NULL, .store = f->store,
                                .n_bytes = n_bytes,
                                .changed_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
                                .device = (uint64_t)st->st_dev, .inode = (uint64_t)st->st_ino };
    }
    if (!one.path || (name && !one.name) || !make_room_for_slot(f)) {    /* every entry of the list has a path */
        free_model_file(&one);
        f->failed = true;
        return NULL;
    }
    files[f->n++] = one;
    *file_slot(f, one.device, one.inode) = (uint32_t)f->n;
    return &files[f->n - 1];
}

void ebb_finding_each(ebb_model_finding *f, const char *dir, ebb_finding_fn *fn, void *arg)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    ebb_buf path = { 0 };

    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.' || f->n_entries >= EBB_FINDING_MAX_ENTRIES)
            continue;
        f->n_entries++;
        ebb_buf_clear(&path);
        if (ebb_buf_addf(&path, "%s/%s", dir, e->d_name))
            fn(f, path.data, e->d_name, arg);
        else
            f->failed = true;
    }
    ebb_buf_fini(&path);
    if (d)
        closedir(d);
}

static void scan_entry(ebb_model_finding *f, const char *path, const char *name, void *arg)
{
    (void)name;
    ebb_finding_scan(f, path, *(const int *)arg);
}

void ebb_finding_scan(ebb_model_finding *f, const char *path, int depth)
{
    struct stat st;
    int below = depth - 1;

    if (stat(path, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode) && depth >= 0)
        ebb_finding_each(f, path, scan_entry, &below);
    else if (!S_ISREG(st.st_mode) ||
             !(ends_in(path, f->ending) || (f->with_llamafiles && ends_in(path, ".llamafile"))))
        return;
    else if (f->on_file)
        f->on_file(f->arg, path);
    else
        (void)ebb_finding_add(f, path, &st, NULL);
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

static void scan_path_list(ebb_model_finding *f, const char *list)
{
    ebb_buf path = { 0 };

    while (ebb_path_next(&list, &path))
        ebb_finding_scan(f, path.data, DEPTH);
    f->failed |= path.failed;
    ebb_buf_fini(&path);
}

static void scan_own_places(ebb_model_finding *f)
{
    ebb_buf data = { 0 };

    scan_path_list(f, ebb_path_models());
    if (ebb_path_in(EBB_DIR_DATA, "models", &data, NULL) == EBB_OK)
        ebb_finding_scan(f, data.data, DEPTH);
    ebb_buf_fini(&data);
}

void ebb_models_each_own(void (*fn)(void *arg, const char *path), void *arg)
{
    ebb_model_finding f = { .ending = ".gguf", .with_llamafiles = true, .on_file = fn, .arg = arg };

    scan_own_places(&f);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(ebb_models_name(*(ebb_model_file *const *)a), ebb_models_name(*(ebb_model_file *const *)b));
}

/* Such a name means none of them (ebb_models_resolve).  false: no memory. */
static bool note_shared_names(ebb_model_file *files, size_t n)
{
    ebb_model_file **sorted = calloc(n + 1, sizeof *sorted);
    size_t k = 0;

    for (size_t i = 0; sorted && i < n; i++)
        if (files[i].kind == EBB_KIND_CHAT && !files[i].is_old_version)
            sorted[k++] = &files[i];
    if (sorted)
        qsort(sorted, k, sizeof *sorted, by_name);
    for (size_t i = 1; i < k; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            sorted[i - 1]->is_name_shared = sorted[i]->is_name_shared = true;
    free(sorted);
    return sorted != NULL;
}

static ebb_status find_model_files(const char *ending, bool is_whole, ebb_model_file **out, size_t *n, ebb_error *err)
{
    ebb_model_finding f = { .ending = ending, .with_llamafiles = is_whole };

    *out = NULL;
    *n = 0;
    scan_own_places(&f);
    if (is_whole)
        ebb_stores_scan(&f);
    free(f.slots);
    for (size_t i = 0; is_whole && !f.failed && i < f.n; i++)
        if (ebb_model_read_kind(f.files[i].path, &f.files[i].kind, NULL) != EBB_OK)
            f.files[i].kind = EBB_KIND_CHAT;     /* opening it will report what is wrong with it */
    if (f.failed || (is_whole && !note_shared_names(f.files, f.n))) {
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
    return find_model_files(".gguf", true, out, n, err);
}

static bool is_present(const ebb_model_file *f)
{
    return !f->is_old_version;
}

static bool is_present_for_chat(const ebb_model_file *f)
{
    return is_present(f) && f->kind == EBB_KIND_CHAT;
}

static ebb_status find_those(bool (*is_wanted)(const ebb_model_file *f), ebb_model_file **out, size_t *n,
                             ebb_error *err)
{
    size_t n_found, n_kept = 0;
    ebb_status st = ebb_models_find(out, &n_found, err);

    for (size_t i = 0; st == EBB_OK && i < n_found; i++)
        if (is_wanted(&(*out)[i]))
            (*out)[n_kept++] = (*out)[i];
        else
            free_model_file(&(*out)[i]);
    *n = n_kept;
    if (n_kept == 0) {
        free(*out);
        *out = NULL;
    }
    return st;
}

ebb_status ebb_models_find_present(ebb_model_file **out, size_t *n, ebb_error *err)
{
    return find_those(is_present, out, n, err);
}

ebb_status ebb_models_find_chat(ebb_model_file **out, size_t *n, ebb_error *err)
{
    return find_those(is_present_for_chat, out, n, err);
}

ebb_status ebb_models_find_partial(ebb_model_file **out, size_t *n, ebb_error *err)
{
    return find_model_files(".gguf.part", false, out, n, err);
}

ebb_status ebb_models_folder(ebb_buf *out, ebb_error *err)
{
    const char *list = ebb_path_models();
    struct stat st;

    while (ebb_path_next(&list, out))
        if (stat(out->data, &st) == 0 ? S_ISDIR(st.st_mode) : !ends_in(out->data, ".gguf"))
            return EBB_OK;
    if (out->failed)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    return ebb_path_in(EBB_DIR_DATA, "models", out, err);
}
