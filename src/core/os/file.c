/* Files (file.h). */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fault.h"

ebb_status ebb_file_open(const char *path, ebb_file_mode mode, int *fd, ebb_error *err)
{
    static const int flags[] = {
        [EBB_FILE_READ] = O_RDONLY,
        [EBB_FILE_READ_DIRECT] = O_RDONLY | O_DIRECT,
        [EBB_FILE_CREATE] = O_RDWR | O_CREAT | O_TRUNC,
        [EBB_FILE_UPDATE] = O_RDWR | O_CREAT,
    };

    *fd = ebb_os_fault(EACCES) ? -1 : open(path, flags[mode] | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return EBB_OK;
    if (errno == ENOENT)
        return EBB_FAIL(err, EBB_NOTFOUND, "%s: no such file", path);
    if (errno == EINVAL && mode == EBB_FILE_READ_DIRECT)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s: its file system has no direct reads", path);
    return EBB_FAIL(err, EBB_IO, "%s: cannot be opened: %s", path, strerror(errno));
}

void ebb_file_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

ebb_status ebb_file_size(int fd, const char *path, uint64_t *bytes, ebb_error *err)
{
    struct stat st;

    if (ebb_os_fault(EIO) || fstat(fd, &st) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return EBB_FAIL(err, EBB_FORMAT, "%s: is not a regular file", path);
    *bytes = (uint64_t)st.st_size;
    return EBB_OK;
}

ebb_status ebb_file_read_at(int fd, const char *path, void *out, size_t n, uint64_t at, ebb_error *err)
{
    char *p = out;

    while (n > 0) {
        ssize_t got = ebb_os_fault(EIO) ? -1 : pread(fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return EBB_FAIL(err, EBB_IO, "%s: read at byte %llu failed: %s", path,
                            (unsigned long long)at, strerror(errno));
        if (got == 0)
            return EBB_FAIL(err, EBB_FORMAT, "%s: truncated: ends at byte %llu, %zu more were expected",
                            path, (unsigned long long)at, n);
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return EBB_OK;
}

ebb_status ebb_file_write_at(int fd, const char *path, const void *data, size_t n, uint64_t at, ebb_error *err)
{
    const char *p = data;

    while (n > 0) {
        ssize_t put = ebb_os_fault(ENOSPC) ? -1 : pwrite(fd, p, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return EBB_FAIL(err, EBB_IO, "%s: write failed: %s", path, strerror(errno));
        p += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return EBB_OK;
}

ebb_status ebb_file_sync(int fd, const char *path, ebb_error *err)
{
    if (ebb_os_fault(EIO) || fdatasync(fd) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be written to disk: %s", path, strerror(errno));
    return EBB_OK;
}

ebb_status ebb_file_slurp(const char *path, size_t max, ebb_buf *out, ebb_error *err)
{
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ, &fd, err);
    size_t start = out->len;

    if (st != EBB_OK)
        return st;
    for (;;) {                                   /* no fstat: /proc files have size 0 */
        if (!ebb_buf_reserve(out, 65536)) {
            st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
            break;
        }
        ssize_t got = ebb_os_fault(EIO) ? -1 : read(fd, out->data + out->len, 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            st = EBB_FAIL(err, EBB_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (got <= 0)
            break;
        out->len += (size_t)got;
        out->data[out->len] = '\0';
        if (out->len - start > max) {
            st = EBB_FAIL(err, EBB_LIMIT, "%s: has more than %zu bytes", path, max);
            break;
        }
    }
    close(fd);
    return st;
}

ebb_status ebb_file_replace(const char *path, const void *data, size_t n, ebb_error *err)
{
    ebb_buf beside = { 0 };
    int fd = -1;
    ebb_status st;

    if (!ebb_buf_addf(&beside, "%s.%ld.new", path, (long)getpid()))
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);
    st = ebb_file_open(beside.data, EBB_FILE_CREATE, &fd, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(fd, path, data, n, 0, err);
    if (st == EBB_OK)
        st = ebb_file_sync(fd, path, err);
    ebb_file_close(fd);
    if (st == EBB_OK && (ebb_os_fault(EACCES) || rename(beside.data, path) != 0))
        st = EBB_FAIL(err, EBB_IO, "%s: cannot be replaced: %s", path, strerror(errno));
    if (st != EBB_OK && fd >= 0)
        unlink(beside.data);
    ebb_buf_fini(&beside);
    return st;
}

ebb_status ebb_file_mkdirs(const char *path, ebb_error *err)
{
    char *dir = strdup(path);
    ebb_status st = EBB_OK;

    if (!dir)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);
    for (char *p = dir + 1; st == EBB_OK; p++) {
        char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if ((ebb_os_fault(EACCES) || mkdir(dir, 0700) != 0) && errno != EEXIST)
            st = EBB_FAIL(err, EBB_IO, "%s: directory cannot be made: %s", dir, strerror(errno));
        *p = c;
        if (c == '\0')
            break;
    }
    free(dir);
    return st;
}

void ebb_file_drop_cache(int fd, uint64_t at, uint64_t n)
{
    if (posix_fadvise(fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED) != 0)
        return;
}
