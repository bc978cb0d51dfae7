/* Folders (folder.h). */
#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/fault.h"

/* NULL: there is none, or errno says why it cannot be told. */
static const struct dirent *next_entry(DIR *d)
{
    errno = 0;
    return ebb_os_fault(EIO) ? NULL : readdir(d);
}

ebb_status ebb_folder_each(const char *path, ebb_folder_fn *fn, void *arg, ebb_error *err)
{
    DIR *d = ebb_os_fault(EACCES) ? NULL : opendir(path);
    const struct dirent *e;
    int failed = 0;

    if (!d && errno == ENOENT)
        return EBB_FAIL(err, EBB_NOTFOUND, "%s: no such folder", path);
    if (!d)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be listed: %s", path, strerror(errno));
    while ((e = next_entry(d))) {
        struct stat st;

        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            failed = errno == ENOENT ? failed : errno;
            continue;
        }
        if (!S_ISREG(st.st_mode))
            continue;
        fn(arg, &(ebb_folder_entry){
            .name = e->d_name, .n_bytes = (uint64_t)st.st_size,
            .modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        });
    }
    failed = errno ? errno : failed;
    closedir(d);
    return failed ? EBB_FAIL(err, EBB_IO, "%s: cannot be listed: %s", path, strerror(failed)) : EBB_OK;
}

ebb_status ebb_folder_check_own(const char *path, ebb_error *err)
{
    struct stat st;

    if (ebb_os_fault(EACCES) || stat(path, &st) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: %s", path, strerror(errno));
    if (st.st_uid != geteuid())
        return EBB_FAIL(err, EBB_IO, "%s: belongs to another user", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return EBB_FAIL(err, EBB_IO, "%s: other users may write to it; chmod 700 it", path);
    return EBB_OK;
}

ebb_status ebb_folder_free_bytes(const char *path, uint64_t *bytes, ebb_error *err)
{
    struct statvfs fs;

    if (ebb_os_fault(EIO) || statvfs(path, &fs) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: %s", path, strerror(errno));
    *bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return EBB_OK;
}

ebb_status ebb_file_rename(const char *from, const char *to, ebb_error *err)
{
    if (ebb_os_fault(EACCES) || rename(from, to) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be replaced: %s", to, strerror(errno));
    return EBB_OK;
}

ebb_status ebb_folder_sync(const char *path, ebb_error *err)
{
    int fd = ebb_os_fault(EACCES) ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && (!ebb_os_fault(EIO) && (fsync(fd) == 0 || errno == EINVAL)); /* some have no such thing */
    ebb_status st = ok ? EBB_OK : EBB_FAIL(err, EBB_IO, "%s: cannot be written to disk: %s", path, strerror(errno));

    if (fd >= 0)
        close(fd);
    return st;
}

void ebb_folder_sync_name(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(copy);
}

bool ebb_folder_is_readonly(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EROFS);
}

bool ebb_file_has_readonly_folder(const char *path)
{
    char *copy = strdup(path);
    bool is = copy && ebb_folder_is_readonly(dirname(copy));

    free(copy);
    return is;
}

bool ebb_file_remove(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR;
}

ebb_status ebb_file_touch(const char *path, ebb_error *err)
{
    if (!ebb_os_fault(EACCES) && utimensat(AT_FDCWD, path, NULL, 0) == 0)
        return EBB_OK;
    return EBB_FAIL(err, errno == ENOENT ? EBB_NOTFOUND : EBB_IO, "%s: %s", path, strerror(errno));
}
