/* Files (file.h). */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/broker.h"
#include "os/confine.h"
#include "os/fault.h"
#include "os/folder.h"

_Static_assert(sizeof(off_t) == 8, "models are larger than 2 GiB: build with -D_FILE_OFFSET_BITS=64");

/* Opening does not wait for whoever writes into a pipe; reading a file does, and io_uring asks for this flag. */
static void clear_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return;
}

/* Of a confined process (confine.h): the file's own mode would let it in (access does not know of Landlock), so the
 * confinement kept it out. */
static bool is_out_of_reach(const char *path)
{
    int failed = errno;
    bool is = failed == EACCES && ebb_confine_state()->landlock_abi > 0 && access(path, R_OK) == 0;

    errno = failed;
    return is;
}

ebb_status ebb_file_open(const char *path, ebb_file_mode mode, int *fd, ebb_error *err)
{
    static const int flags[] = {
        [EBB_FILE_READ] = O_RDONLY,
        [EBB_FILE_READ_HERE] = O_RDONLY | O_NOFOLLOW,
        [EBB_FILE_READ_DIRECT] = O_RDONLY | O_DIRECT,
        [EBB_FILE_CREATE] = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
        [EBB_FILE_UPDATE] = O_RDWR | O_CREAT,
        [EBB_FILE_UPDATE_HERE] = O_RDWR | O_CREAT | O_NOFOLLOW,
    };

    *fd = ebb_os_fault(EACCES) ? -1 : open(path, flags[mode] | O_CLOEXEC | O_NONBLOCK, 0600);
    if (*fd < 0 && errno == EACCES && !(flags[mode] & O_CREAT) && ebb_broker_is_there())
        *fd = ebb_broker_open(path, mode == EBB_FILE_READ_DIRECT);
    if (*fd >= 0) {
        clear_nonblock(*fd);
        return EBB_OK;
    }
    if (is_out_of_reach(path) && (flags[mode] & O_RDWR))
        return EBB_FAIL(err, EBB_IO, "%s: ebb does not write there; see CONFINEMENT in ebb(1)", path);
    if (is_out_of_reach(path))
        return EBB_FAIL(err, EBB_IO, "%s: hidden files in the home folder are out of ebb's reach; name it on the "
                        "command line, start ebb in its folder, or see CONFINEMENT in ebb(1)", path);
    if (errno == ELOOP && (flags[mode] & O_NOFOLLOW))
        return EBB_FAIL(err, EBB_IO, "%s: is a symbolic link, which ebb does not follow here; remove it", path);
    if (errno == ENOENT)
        return EBB_FAIL(err, EBB_NOTFOUND, flags[mode] & O_CREAT ? "%s: its folder does not exist" : "%s: no such file",
                        path);
    if (errno == EINVAL && mode == EBB_FILE_READ_DIRECT)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s: its file system has no direct reads", path);
    return EBB_FAIL(err, EBB_IO, "%s: cannot be opened: %s", path, strerror(errno));
}

static ebb_file_id id_of(const struct stat *st)
{
    return (ebb_file_id){
        .device = st->st_dev, .inode = st->st_ino, .n_bytes = (uint64_t)st->st_size,
        .modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
    };
}

ebb_status ebb_file_get_id(int fd, const char *path, ebb_file_id *out, ebb_error *err)
{
    struct stat st;

    if (ebb_os_fault(EIO) || fstat(fd, &st) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: %s", path, strerror(errno));
    *out = id_of(&st);
    return EBB_OK;
}

bool ebb_file_look_up(const char *path, ebb_file_id *out)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    *out = id_of(&st);
    return true;
}

ebb_status ebb_file_reopen(int fd, const char *path, ebb_file_mode mode, int *out, ebb_error *err)
{
    char name[40];
    ebb_file_id was, is;
    ebb_status st;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    st = ebb_file_open(name, mode, out, NULL);
    if (st == EBB_OK)
        return EBB_OK;
    if (st == EBB_UNSUPPORTED)
        return EBB_FAIL(err, st, "%s: its file system has no direct reads", path);
    st = ebb_file_get_id(fd, path, &was, err);
    if (st == EBB_OK)
        st = ebb_file_open(path, mode, out, err);
    if (st != EBB_OK)
        return st;
    st = ebb_file_get_id(*out, path, &is, err);
    if (st == EBB_OK && (is.device != was.device || is.inode != was.inode))
        st = EBB_FAIL(err, EBB_UNSUPPORTED, "%s: is a different file now", path);
    if (st != EBB_OK) {
        ebb_file_close(*out);
        *out = -1;
    }
    return st;
}

ebb_status ebb_file_expect_regular(const char *path, ebb_error *err)
{
    static const struct { mode_t format; const char *name; } others[] = {
        { S_IFDIR, "a folder" }, { S_IFIFO, "a named pipe" }, { S_IFSOCK, "a socket" },
        { S_IFCHR, "a device" }, { S_IFBLK, "a device" },
    };
    struct stat st;

    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return EBB_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((st.st_mode & S_IFMT) == others[i].format)
            return EBB_FAIL(err, EBB_FORMAT, "%s is %s, not a file; move it away", path, others[i].name);
    return EBB_FAIL(err, EBB_FORMAT, "%s is not a file; move it away", path);
}

ebb_status ebb_file_expect_trusted(const char *path, ebb_error *err)
{
    struct stat st;

    if (ebb_os_fault(EACCES) || stat(path, &st) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: %s", path, strerror(errno));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return EBB_FAIL(err, EBB_IO, "%s: belongs to another user, so it is not followed; copy it", path);
    if (S_ISREG(st.st_mode) && (st.st_mode & S_IWOTH))
        return EBB_FAIL(err, EBB_IO, "%s: every user may write to it, so it is not followed; chmod o-w it", path);
    return EBB_OK;
}

bool ebb_file_is_same(const char *path, const char *other)
{
    struct stat a, b;

    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool ebb_file_is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

bool ebb_file_is_at(int fd, const char *path)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_own(int fd, mode_t refused)
{
    struct stat st;

    return !ebb_os_fault(EIO) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & refused) == 0;
}

bool ebb_file_is_own(int fd)
{
    return is_own(fd, 0);
}

bool ebb_file_is_private(int fd)
{
    return is_own(fd, S_IRWXG | S_IRWXO);
}

void ebb_file_system_name(const char *path, char out[16])
{
    static const struct { unsigned long magic; const char *name; } known[] = {
        { 0xEF53, "ext4" }, { 0x58465342, "xfs" }, { 0x9123683E, "btrfs" }, { 0x2FC12FC1, "zfs" },
        { 0x01021994, "tmpfs" }, { 0x794C7630, "overlay" }, { 0x6969, "nfs" }, { 0x65735546, "fuse" },
        { 0x5346544E, "ntfs" }, { 0x4D44, "vfat" }, { 0x2011BAB0, "exfat" }, { 0xF2F52010, "f2fs" },
        { 0x01021997, "9p" }, { 0xFF534D42, "cifs" }, { 0x73717368, "squashfs" },
    };
    struct statfs fs;

    snprintf(out, 16, "unknown");
    if (ebb_os_fault(EIO) || statfs(path, &fs) != 0)
        return;
    snprintf(out, 16, "0x%lx", (unsigned long)fs.f_type & 0xFFFFFFFFul);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].magic == ((unsigned long)fs.f_type & 0xFFFFFFFFul))
            snprintf(out, 16, "%s", known[i].name);
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

ebb_status ebb_file_read_range(int fd, const char *path, void *out, size_t n, size_t n_must, uint64_t at,
                               ebb_error *err)
{
    size_t done = 0;

    while (done < n_must) {
        ssize_t got = ebb_os_fault(EIO) ? -1 : pread(fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return EBB_FAIL(err, EBB_IO, "%s: read at byte %llu failed: %s", path,
                            (unsigned long long)(at + done), strerror(errno));
        size_t end = done + (size_t)ebb_os_short(got);
        if (end < n_must)                        /* go on at a block's beginning, as direct reads must */
            end &= ~(size_t)4095;
        if (end <= done)
            return EBB_FAIL(err, EBB_FORMAT, "%s: truncated: ends before byte %llu", path,
                            (unsigned long long)(at + n_must));
        done = end;
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
        if (put < 0 && (errno == ENOSPC || errno == EDQUOT))
            return EBB_FAIL(err, EBB_IO, "%s: the disk is full; free some space", path);
        if (put < 0)
            return EBB_FAIL(err, EBB_IO, "%s: write failed: %s", path, strerror(errno));
        p += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return EBB_OK;
}

ebb_status ebb_file_append(int fd, const char *path, const void *data, size_t n, ebb_error *err)
{
    uint64_t end;
    ebb_status st = ebb_file_size(fd, path, &end, err);

    if (st != EBB_OK)
        return st;
    st = ebb_file_write_at(fd, path, data, n, end, err);
    if (st != EBB_OK && ftruncate(fd, (off_t)end) != 0)
        return st;                               /* what failed first is what is told */
    return st;
}

ebb_status ebb_file_sync(int fd, const char *path, ebb_error *err)
{
    if (ebb_os_fault(EIO) || fdatasync(fd) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be written to disk: %s", path, strerror(errno));
    return EBB_OK;
}

ebb_status ebb_file_reserve(int fd, const char *path, uint64_t n, ebb_error *err)
{
    if (!ebb_os_fault(EIO) && (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)n) == 0 || errno == EOPNOTSUPP ||
                               errno == ENOSYS || errno == EPERM || errno == EINTR))
        return EBB_OK;
    return EBB_FAIL(err, EBB_IO, "%s: no room for %llu bytes: %s", path, (unsigned long long)n, strerror(errno));
}

ebb_status ebb_file_truncate(int fd, const char *path, uint64_t n, ebb_error *err)
{
    if (ebb_os_fault(EIO) || ftruncate(fd, (off_t)n) != 0)
        return EBB_FAIL(err, EBB_IO, "%s: cannot be truncated: %s", path, strerror(errno));
    return EBB_OK;
}

static ebb_status take_lock(int fd, const char *path, int how, ebb_error *err)
{
    int failed;

    do {
        failed = ebb_os_fault(EIO) ? -1 : flock(fd, how);
    } while (failed && errno == EINTR);
    if (!failed)
        return EBB_OK;
    if (errno == EWOULDBLOCK)
        return EBB_FAIL(err, EBB_BUSY, "%s: another program is using it", path);
    return EBB_FAIL(err, EBB_IO, "%s: cannot be locked: %s", path, strerror(errno));
}

ebb_status ebb_file_lock(int fd, const char *path, ebb_error *err)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    ebb_status st = take_lock(fd, path, LOCK_EX | LOCK_NB, err);

    if (st == EBB_OK)
        (void)fcntl(fd, F_SETLK, &whole);        /* it says who holds it, and nothing else */
    return st;
}

ebb_status ebb_file_lock_shared(int fd, const char *path, ebb_error *err)
{
    return take_lock(fd, path, LOCK_SH | LOCK_NB, err);
}

enum { LOCK_MS = 1000, LOCK_LOOK_MS = 5 };

ebb_status ebb_file_lock_wait(int fd, const char *path, ebb_error *err)
{
    uint64_t until_ns = ebb_clock_ns() + LOCK_MS * (uint64_t)1000000;
    ebb_status st;

    while ((st = take_lock(fd, path, LOCK_EX | LOCK_NB, err)) == EBB_BUSY && ebb_clock_ns() < until_ns)
        poll(NULL, 0, LOCK_LOOK_MS);
    return st;
}

pid_t ebb_file_lock_holder(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK && whole.l_pid > 0 ? whole.l_pid : 0;
}

bool ebb_file_signal_holder(int fd, int number)
{
    pid_t pid = ebb_file_lock_holder(fd);
    int process = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    bool ok = process >= 0 && ebb_file_lock_holder(fd) == pid &&   /* still: it is this process that the number named */
              syscall(SYS_pidfd_send_signal, process, number, NULL, 0) == 0;

    if (process >= 0)
        close(process);
    return ok;
}

bool ebb_file_is_locked(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

bool ebb_file_has_locked_bytes(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

/* How long a pipe may be silent, and how long it may take in all: whoever reads it may hold up the keys. */
enum { PIPE_SILENT_MS = 1500, PIPE_MS = 10000 };

static bool is_pipe(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
}

/* The kernel's own, such as /proc/kmsg, call themselves files of size 0 and may wait for more as a pipe does. */
static bool may_wait(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size == 0);
}

/* /dev/null is an empty file. */
static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* What it gives has no end: disks, /dev/zero, a terminal. */
static bool is_device(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode)) && !is_null_device(&st);
}

static bool wait_for_pipe(int fd, uint64_t until_ns)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return ebb_clock_ns() < until_ns && poll(&p, 1, PIPE_SILENT_MS) > 0;
}

ebb_status ebb_file_slurp(const char *path, size_t max, ebb_buf *out, ebb_error *err)
{
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ, &fd, err);
    size_t start = out->len;
    uint64_t until_ns;

    if (st != EBB_OK)
        return st;
    if (is_device(fd)) {                         /* what is typed at a terminal is for whoever reads its keys */
        st = EBB_FAIL(err, EBB_IO, "%s: is a %s, not a file; name a file, or a pipe", path,
                      isatty(fd) ? "terminal" : "device");
        close(fd);
        return st;
    }
    until_ns = may_wait(fd) ? ebb_clock_ns() + PIPE_MS * (uint64_t)1000000 : 0;
    for (;;) {                                   /* whatever its size: /proc files have size 0 */
        if (until_ns && !wait_for_pipe(fd, until_ns)) {
            st = EBB_FAIL(err, EBB_IO, is_pipe(fd) ? "%s: is a pipe that its writer has not closed"
                                                   : "%s: has no end: it waits for more text", path);
            break;
        }
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

ebb_status ebb_file_slurp_kept(const char *path, size_t max, ebb_buf *out, ebb_error *err)
{
    struct stat is;
    ebb_status st = stat(path, &is) == 0 && is_null_device(&is) ? EBB_OK : ebb_file_expect_regular(path, err);

    return st == EBB_OK ? ebb_file_slurp(path, max, out, err) : st;
}

ebb_status ebb_file_mkdirs(const char *path, ebb_error *err)
{
    char *dir;
    ebb_status st = EBB_OK;

    if (!*path)
        return EBB_FAIL(err, EBB_IO, "a folder without a name cannot be created");
    dir = strdup(path);
    if (!dir)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);
    for (char *p = dir + 1; st == EBB_OK; p++) {
        char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (!ebb_os_fault(EACCES) && mkdir(dir, 0700) == 0)
            ebb_folder_sync_name(dir);           /* or a loss of power takes it away, with all that was synced in it */
        else if (errno != EEXIST)
            st = EBB_FAIL(err, EBB_IO, "%s: folder cannot be created: %s", dir, strerror(errno));
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
