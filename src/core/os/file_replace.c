/* Files that are written beside and renamed (file.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/broker.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/random.h"

/* `at` is what the system is told, `path` what the user is. */
static ebb_status begin_beside(const char *at, const char *path, ebb_buf *beside, int *fd, ebb_error *err)
{
    uint64_t random;
    ebb_status st;

    *fd = -1;
    st = ebb_random(&random, sizeof random, err);
    if (st != EBB_OK)
        return st;
    if (!ebb_buf_addf(beside, "%s.%016llx.new", at, (unsigned long long)random))
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);
    st = ebb_file_open(beside->data, EBB_FILE_CREATE, fd, NULL);
    if (st == EBB_OK)
        return EBB_OK;
    if (st == EBB_NOTFOUND)
        return EBB_FAIL(err, st, "%s: its folder does not exist", path);
    return EBB_FAIL(err, st, "%s: cannot be opened: %s", path, strerror(errno));
}

ebb_status ebb_file_begin_beside(const char *path, ebb_buf *beside, int *fd, ebb_error *err)
{
    return begin_beside(path, path, beside, fd, err);
}

/* As rename, but not over what is there: EEXIST. */
static int rename_new(const char *from, const char *to)
{
    struct stat st;

    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (lstat(to, &st) == 0) {                   /* a file system, or a sandbox, that cannot do both at once */
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

/* As rename; what was there is overwritten and removed.  Meanwhile it has the other's name, by which it is found after
 * a kill; where names cannot be exchanged, it has none. */
static int rename_wiping(const char *from, const char *to)
{
    int old, rc;

    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
        ebb_folder_sync_name(to);
        ebb_file_wipe(from);
        return 0;
    }
    old = open(to, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    rc = rename(from, to);
    if (rc == 0 && old >= 0) {
        ebb_folder_sync_name(to);
        ebb_file_overwrite(old);
    }
    ebb_file_close(old);
    return rc;
}

/* A link of the user's that leads to /dev/null keeps nothing, and for root a rename would end the device for all. */
static ebb_status expect_no_device(const char *at, const char *path, ebb_error *err)
{
    struct stat st;

    if (lstat(at, &st) != 0 || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
        return EBB_OK;
    return EBB_FAIL(err, EBB_USAGE, "%s: is no file but %s, and is not replaced", path,
                    S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe");
}

ebb_status ebb_file_rename_wiping(const char *from, const char *to, ebb_error *err)
{
    if (expect_no_device(to, to, err) != EBB_OK)
        return EBB_USAGE;
    if (ebb_os_fault(EACCES) || rename_wiping(from, to) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be replaced: %s", to, strerror(errno));
    return EBB_OK;
}

typedef int rename_fn(const char *from, const char *to);

static ebb_status write_whole(const char *at, const char *path, rename_fn *put, const void *data, size_t n,
                              ebb_error *err)
{
    ebb_buf beside = { 0 };
    int fd = -1;
    ebb_status st = put == rename_new ? EBB_OK : expect_no_device(at, path, err);

    if (st == EBB_OK)
        st = begin_beside(at, path, &beside, &fd, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(fd, path, data, n, 0, err);
    if (st == EBB_OK)
        st = ebb_file_sync(fd, path, err);
    ebb_file_close(fd);
    if (st == EBB_OK && (ebb_os_fault(EACCES) || put(beside.data, at) != 0))
        st = put == rename_new && errno == EEXIST
                 ? EBB_FAIL(err, EBB_USAGE, "%s: already exists; choose another name", path)
                 : EBB_FAIL(err, EBB_IO, "%s: cannot be replaced: %s", path, strerror(errno));
    if (st == EBB_OK)
        ebb_folder_sync_name(at);
    else if (fd >= 0)
        unlink(beside.data);
    ebb_buf_fini(&beside);
    return st;
}

ebb_status ebb_file_replace(const char *path, const void *data, size_t n, ebb_error *err)
{
    return write_whole(path, path, rename, data, n, err);
}

ebb_status ebb_file_replace_wiping(const char *path, const void *data, size_t n, ebb_error *err)
{
    return write_whole(path, path, rename_wiping, data, n, err);
}

/* Where a confined process may make nothing, its broker may. */
ebb_status ebb_file_create(const char *path, const void *data, size_t n, ebb_error *err)
{
    ebb_status st = write_whole(path, path, rename_new, data, n, err);

    return st == EBB_IO && errno == EACCES && ebb_broker_is_there() ? ebb_broker_create(path, data, n, err) : st;
}

ebb_status ebb_file_create_in(int folder, const char *name, const char *path, const void *data, size_t n,
                              ebb_error *err)
{
    ebb_buf at = { 0 };
    ebb_status st = ebb_buf_addf(&at, "/proc/self/fd/%d/%s", folder, name)
                        ? write_whole(at.data, path, rename_new, data, n, err)
                        : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);

    ebb_buf_fini(&at);
    return st;
}

/* Unless it has more names than that. */
static void overwrite_file(int fd, nlink_t n_names)
{
    static const char zeros[1 << 16];
    uint64_t n, at = 0;
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_nlink > n_names)
        return;
    n = (uint64_t)st.st_size;
    while (at < n) {
        size_t piece = n - at < sizeof zeros ? (size_t)(n - at) : sizeof zeros;

        if (ebb_file_write_at(fd, "", zeros, piece, at, NULL) != EBB_OK)
            return;
        at += piece;
    }
    if (ebb_file_sync(fd, "", NULL) != EBB_OK)
        return;
}

void ebb_file_overwrite(int fd)
{
    overwrite_file(fd, 0);
}

bool ebb_file_wipe(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        overwrite_file(fd, 1);
    ebb_file_close(fd);
    return ebb_file_remove(path);
}

bool ebb_file_remove_wiping(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    bool is_removed = ebb_file_remove(path);

    if (fd >= 0) {
        ebb_folder_sync_name(path);              /* or a loss of power brings the name back, to zeros */
        overwrite_file(fd, 0);
    }
    ebb_file_close(fd);
    return is_removed;
}

/* -- What was begun and not ended -------------------------------------------------------------------- */

enum { DIGITS = 16 };

typedef struct begun_files {
    const char *folder, *of;
    bool      (*end)(const char *path);
} begun_files;

/* `of`.<16 digits>.new, or what SQLite had beside that. */
static bool is_begun(const char *name, const char *of)
{
    size_t n = strlen(of);

    return strncmp(name, of, n) == 0 && name[n] == '.' &&
           strspn(name + n + 1, "0123456789abcdef") == DIGITS && strncmp(name + n + 1 + DIGITS, ".new", 4) == 0;
}

static void end_if_begun(void *arg, const ebb_folder_entry *e)
{
    const begun_files *b = arg;
    ebb_buf path = { 0 };

    if (is_begun(e->name, b->of) && ebb_buf_addf(&path, "%s/%s", b->folder, e->name))
        b->end(path.data);
    ebb_buf_fini(&path);
}

static void end_begun_beside(const char *path, bool (*end)(const char *path))
{
    char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
    begun_files b = { .folder = folder, .end = end };

    if (slash && slash > folder) {
        *slash = '\0';
        b.of = slash + 1;
        (void)!ebb_folder_each(folder, end_if_begun, &b, NULL);  /* what cannot be listed stays */
    }
    free(folder);
}

/* Some follow a link before they begin, some do not, and older ones did not where newer ones do. */
static void end_begun(const char *path, bool (*end)(const char *path))
{
    char *real = realpath(path, NULL);

    end_begun_beside(path, end);
    if (real && strcmp(real, path) != 0)
        end_begun_beside(real, end);
    free(real);
}

void ebb_file_wipe_begun(const char *path)
{
    end_begun(path, ebb_file_wipe);
}

void ebb_file_remove_begun(const char *path)
{
    end_begun(path, ebb_file_remove_wiping);
}
