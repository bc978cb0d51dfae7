/* What a command may reach of files, and where links in ebb's folders lead (confinement_files.h). */
#include "confinement_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"

/* The home and what it is in would be more than was meant. */
static bool holds_home(const ebb_cli_reach *r, const char *real)
{
    size_t n = strlen(real);

    return r->home && strncmp(r->home, real, n) == 0 && (r->home[n] == '/' || r->home[n] == '\0' || n == 1);
}

void ebb_cli_allow_named(ebb_cli_reach *r, const char *name)
{
    ebb_buf path = { 0 };
    char *real = ebb_path_expand(name, &path, NULL) == EBB_OK ? realpath(path.data, NULL) : NULL;

    if (real && !holds_home(r, real))
        ebb_confine_allow(&r->c, real, EBB_REACH_READ);
    free(real);
    ebb_buf_fini(&path);
}

void ebb_cli_allow_own(ebb_cli_reach *r, ebb_dir dir, ebb_reach how, bool makes)
{
    ebb_buf path = { 0 };

    if (ebb_path_in(dir, NULL, &path, NULL) == EBB_OK && (!makes || ebb_file_mkdirs(path.data, NULL) == EBB_OK))
        ebb_confine_allow(&r->c, path.data, how);
    ebb_buf_fini(&path);
}

/* -- Links in ebb's folders: the user's, for nobody confined can make one.  What counts is where they lead. ------- */

/* Where they lead, as real paths; and links on the way there, in real folders. */
typedef struct link_ends {
    char *list[64], *passed[64];
    size_t n, n_passed;
} link_ends;

/* folder/name with the folder's real path, for free(); NULL: there is none. */
static char *join_real(const char *folder, const char *name)
{
    ebb_buf out = { 0 };
    char *real = realpath(folder, NULL), *path = NULL;

    if (real && ebb_buf_addf(&out, "%s/%s", real, name))
        path = ebb_buf_take(&out);
    free(real);
    ebb_buf_fini(&out);
    return path;
}

/* Where the link at that path leads, one step: the real path of the folder, the name in it; for free().  NULL: it is
 * no link, or there is no such folder. */
static char *read_link(const char *path)
{
    const char *slash = strrchr(path, '/');
    ebb_buf at = { 0 };
    char to[PATH_MAX], *end = NULL, *name;
    ssize_t n = readlink(path, to, sizeof to - 1);

    if (n <= 0)
        return NULL;
    to[n] = '\0';
    if (ebb_buf_addf(&at, "%.*s/%s", to[0] == '/' ? 0 : (int)(slash - path), path, to)) {
        name = strrchr(at.data, '/');
        *name = '\0';
        end = join_real(at.data, name + 1);
    }
    ebb_buf_fini(&at);
    return end;
}

/* The real path of what the link leads to, for free(); also where nothing is there but the folder of that, since a file
 * is made through a link, and through one that leads to another.  NULL: neither is there. */
static char *find_end(const char *folder, const char *name, link_ends *out)
{
    enum { MAX_LINKS = 8 };
    ebb_buf first = { 0 };
    char *end = ebb_buf_addf(&first, "%s/%s", folder, name) ? realpath(first.data, NULL) : NULL;
    char *at = ebb_buf_take(&first), *next;

    for (int i = 0; at && ebb_file_is_link(at) && i < MAX_LINKS; i++) {
        next = read_link(at);
        if (i > 0 && out->n_passed < sizeof out->passed / sizeof *out->passed)
            out->passed[out->n_passed++] = at;
        else
            free(at);
        at = next;
    }
    if (!end && at && !ebb_file_is_link(at))
        return at;
    free(at);
    return end;
}

static void find_links(const char *folder, link_ends *out)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    struct stat st;

    out->n = out->n_passed = 0;
    while (d && out->n < sizeof out->list / sizeof *out->list && (e = readdir(d))) {
        bool is_link = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
        char *end = is_link ? find_end(folder, e->d_name, out) : NULL;

        if (end)
            out->list[out->n++] = end;
    }
    if (d)
        closedir(d);
}

static void free_links(link_ends *ends)
{
    for (size_t i = 0; i < ends->n; i++)
        free(ends->list[i]);
    for (size_t i = 0; i < ends->n_passed; i++)
        free(ends->passed[i]);
}

static bool is_a(const char *path, mode_t kind)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* Files that lie elsewhere, and a folder of them; no folders within that. */
void ebb_cli_allow_linked_texts(ebb_cli_reach *r, const char *folder)
{
    link_ends ends;

    ebb_cli_allow_named(r, folder);
    find_links(folder, &ends);
    for (size_t i = 0; i < ends.n; i++)
        if (is_a(ends.list[i], S_IFREG))
            ebb_cli_allow_named(r, ends.list[i]);
    free_links(&ends);
}

/* The name of what is at that path in the folder; NULL: it lies elsewhere. */
static const char *name_in(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    const char *name = strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;

    return name && *name && !strchr(name, '/') ? name : NULL;
}

/* Is it at the end of a link, or made beside that: sessions.db, -wal, .0123456789abcdef.new?  Or a link on the way? */
static bool is_of_links(const link_ends *ends, const char *folder, const char *name)
{
    for (size_t i = 0; i < ends->n; i++) {
        const char *base = name_in(folder, ends->list[i]);
        size_t k = base ? strlen(base) : 0;

        if (k > 0 && strncmp(name, base, k) == 0 && strchr("-.", name[k]))       /* strchr finds the 0, too */
            return true;
    }
    for (size_t i = 0; i < ends->n_passed; i++) {
        const char *base = name_in(folder, ends->passed[i]);

        if (base && strcmp(name, base) == 0)
            return true;
    }
    return false;
}

/* A file is kept by making others beside it, so its folder is written, and nothing of anybody else's may be there. */
static bool is_only_for_links(const link_ends *ends, const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    bool is = d != NULL;

    while (is && (e = readdir(d)))
        is = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_of_links(ends, folder, e->d_name);
    if (d)
        closedir(d);
    return is;
}

/* A folder behind a link is kept in as if it were here; a file is, if it has a folder of its own, else it is read. */
static void allow_link_end(ebb_cli_reach *r, const link_ends *ends, const char *real, ebb_reach how)
{
    ebb_buf folder = { 0 };

    if (is_a(real, S_IFDIR))
        ebb_buf_adds(&folder, real);
    else if (how == EBB_REACH_WRITE)
        ebb_buf_add(&folder, real, (size_t)(strrchr(real, '/') - real));
    if (folder.len && !holds_home(r, folder.data) && (is_a(real, S_IFDIR) || is_only_for_links(ends, folder.data)))
        ebb_confine_allow(&r->c, folder.data, how);
    else if (is_a(real, S_IFREG))
        ebb_cli_allow_named(r, real);
    ebb_buf_fini(&folder);
}

/* A folder in which ebb keeps things, and what its links lead to. */
void ebb_cli_allow_kept(ebb_cli_reach *r, ebb_dir dir, ebb_reach how, bool makes)
{
    ebb_buf path = { 0 };
    link_ends ends = { .n = 0 };

    ebb_cli_allow_own(r, dir, how, makes);
    if (ebb_path_in(dir, NULL, &path, NULL) == EBB_OK)
        find_links(path.data, &ends);
    for (size_t i = 0; i < ends.n; i++)
        allow_link_end(r, &ends, ends.list[i], how);
    free_links(&ends);
    ebb_buf_fini(&path);
}
