/* Which model file a user means (models.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "models/finding.h"
#include "models/models.h"
#include "os/paths.h"

/* Is called[0..n) the name, but for a default suffix (":latest", ".gguf")? */
static bool is_called(const char *called, size_t n, const char *name)
{
    static const char *const endings[] = { "", ".gguf", ".llamafile", ":latest" };
    size_t k = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if ((n == k + strlen(endings[i]) && strncasecmp(called, name, k) == 0 &&
             strncasecmp(called + k, endings[i], n - k) == 0) ||
            (k == n + strlen(endings[i]) && strncasecmp(called, name, n) == 0 && strcasecmp(name + n, endings[i]) == 0))
            return true;
    return false;
}

static bool has_name(const ebb_model_file *f, const char *name)
{
    const char *more = ebb_buf_text(&f->more_names), *called = ebb_models_name(f);

    if (is_called(called, strlen(called), name))
        return true;
    for (; *more; more += strcspn(more, "\n") + 1)
        if (is_called(more, strcspn(more, "\n"), name))
            return true;
    return false;
}

static bool has_in_name(const ebb_model_file *f, const char *part)
{
    return strcasestr(ebb_models_name(f), part) || strcasestr(ebb_buf_text(&f->more_names), part);
}

typedef bool name_match(const ebb_model_file *f, const char *name);

static bool is_verbatim(const ebb_model_file *f, const char *name)
{
    return strcmp(ebb_models_name(f), name) == 0;
}

/* The only one for a chat of those that match, else one for something else; n: none, or several. */
static size_t find_only(const ebb_model_file *files, size_t n, name_match *is, const char *name, size_t *n_chat)
{
    size_t chat = n, other = n;

    *n_chat = 0;
    for (size_t i = 0; i < n; i++)
        if (is(&files[i], name) && files[i].kind == EBB_KIND_CHAT) {
            chat = i;
            ++*n_chat;
        } else if (other == n && is(&files[i], name)) {
            other = i;
        }
    return *n_chat == 1 ? chat : *n_chat > 1 ? n : other;
}

/* Which of the files is meant; n: none, or *n_meant of them, that match in the way of *by.  Part of a name is enough
 * where it is of one alone. */
static size_t find_model_named(const ebb_model_file *files, size_t n, const char *name, name_match **by,
                               size_t *n_meant)
{
    static name_match *const whole[] = { is_verbatim, has_name };
    size_t i = n;

    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        *by = whole[k];
        i = find_only(files, n, whole[k], name, n_meant);
        if (i < n || *n_meant > 1 || n == 0)
            return i;
    }
    *by = has_in_name;
    if (!strchr(name, '/'))
        i = find_only(files, n, has_in_name, name, n_meant);
    return *n_meant == 1 ? i : n;
}

/* The names of those for a chat that match, as many as a line takes; paths of those of one name.  Two at least: who
 * is asked which one must see what there is to choose. */
static void add_names(ebb_buf *out, const ebb_model_file *files, size_t n, name_match *is, const char *name)
{
    enum { LINE = 200, FEWEST = 2 };
    size_t n_told = 0, n_left = 0;

    for (size_t i = 0; i < n; i++) {
        const char *called = is == has_in_name ? ebb_models_word(&files[i]) : files[i].path;

        if (files[i].kind != EBB_KIND_CHAT || !is(&files[i], name))
            continue;
        if (n_told >= FEWEST && out->len + strlen(called) > LINE)
            n_left++;
        else
            ebb_buf_addf(out, "%s%s", n_told++ ? ", " : "", called);
    }
    if (n_left)
        ebb_buf_addf(out, " and %zu more", n_left);
}

static ebb_status find_here(const char *name, char **path, ebb_error *err)
{
    ebb_model_file *files;
    ebb_buf names = { 0 };
    name_match *by;
    char *nearly = NULL;
    size_t n, i, n_meant;
    ebb_status st = ebb_models_find_present(&files, &n, err);

    if (st != EBB_OK)
        return st;
    i = find_model_named(files, n, name, &by, &n_meant);
    if (i < n && files[i].kind == EBB_KIND_CHAT)
        *path = strdup(files[i].path);
    if (i == n && n_meant == 0)
        nearly = ebb_models_nearly(name, files, n);
    add_names(&names, files, n, n_meant > 1 ? by : has_in_name, n_meant > 1 ? name : "");
    if (n_meant > 1)
        st = EBB_FAIL(err, EBB_LIMIT, "%.100s: which one?  %s", name, ebb_buf_text(&names));
    else if (i < n && files[i].kind != EBB_KIND_CHAT)
        st = EBB_FAIL(err, EBB_UNSUPPORTED, "%.100s: not a chat model but another kind of file: %s", name,
                      ebb_model_kind_name(files[i].kind));
    else if (i == n && strchr(name, '/'))
        st = EBB_FAIL(err, EBB_NOTFOUND, "%.100s: no such file; `ebb models` lists the models found here", name);
    else if (i == n && nearly)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%.100s: no such file, and no model here has that name; did you mean %s?  "
                                         "There are %s", name, nearly, ebb_buf_text(&names));
    else if (i == n && n > 0)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%.100s: no such file, and no model here has that name; there are %s", name,
                      ebb_buf_text(&names));
    else if (i == n)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%.100s: no such file, and there are no models here yet; `ebb pull "
                                         "OWNER/NAME` gets one, `ebb models` says where to put them", name);
    else if (!*path)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    free(nearly);
    ebb_buf_fini(&names);
    ebb_models_free(files, n);
    return st;
}

bool ebb_models_is_file(const char *path)
{
    char *file = access(path, F_OK) != 0 ? strndup(path, ebb_model_path_file(path)) : NULL;
    bool is_there = !file ? access(path, F_OK) == 0 : access(file, F_OK) == 0;

    free(file);
    return is_there;
}

/* Whether there is such a file nobody says. */
static bool is_behind_closed_folder(const char *path)
{
    return strchr(path, '/') && access(path, F_OK) != 0 && errno == EACCES;
}

ebb_status ebb_models_resolve(const char *name, char **path, ebb_error *err)
{
    ebb_buf whole = { 0 };
    ebb_status st;
    struct stat file;

    *path = NULL;
    st = ebb_path_expand(name, &whole, err);
    if (st == EBB_OK && ebb_models_is_file(ebb_buf_text(&whole))) {
        *path = strdup(ebb_buf_text(&whole));
        st = *path ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
        if (st == EBB_OK && stat(*path, &file) == 0 && S_ISDIR(file.st_mode))
            st = EBB_FAIL(err, EBB_USAGE, "%s: is a folder; name a .gguf file in it", name);
    } else if (st == EBB_OK && is_behind_closed_folder(ebb_buf_text(&whole))) {
        st = EBB_FAIL(err, EBB_IO, "%.200s: cannot be reached: this user may not enter a folder on the way", name);
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
