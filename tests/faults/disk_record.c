/* What is written, recorded and replayed (disk_record.h). */
#include "faults/disk_record.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SECTOR = 512, NAME = 256, N_MAX = 1 << 18, NODES_MAX = 1 << 14 };

typedef enum op_kind {
    OP_MAKE,                     /* `name` in folder `parent` is node `node` */
    OP_RENAME,                   /* from `old` to `name` */
    OP_REMOVE,
    OP_WRITE,
    OP_SIZE,                     /* the file has `n` bytes */
    OP_SYNC
} op_kind;

typedef struct disk_op {
    op_kind   kind;
    uint32_t  node, parent;
    char     *name, *old;
    uint64_t  at, n;
    char     *data;
} disk_op;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_on, is_sync_free;
static char root[NAME];
static disk_op *ops;
static size_t n_ops;

/* -- Which node a path or a descriptor is, while it is recorded -------------------------------- */

typedef struct live_node {
    char    *path;               /* NULL: it has none any more */
    ino_t    inode;
    uint64_t n_bytes;
} live_node;

static live_node live[NODES_MAX];
static uint32_t n_live;          /* node 0 is the root */

/* It has the path `to` now, or none if that is NULL. */
static void set_path(live_node *x, const char *to)
{
    free(x->path);
    x->path = to ? strdup(to) : NULL;
}

static bool is_ours(const char *path)
{
    size_t n = strlen(root);

    return atomic_load(&is_on) && strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* UINT32_MAX: none. */
static uint32_t node_at(const char *path)
{
    for (uint32_t i = n_live; i-- > 0;)
        if (live[i].path && strcmp(live[i].path, path) == 0)
            return i;
    return UINT32_MAX;
}

static uint32_t node_of_fd(int fd)
{
    struct stat st;
    dev_t device;

    if (!atomic_load(&is_on) || stat(root, &st) != 0)
        return UINT32_MAX;
    device = st.st_dev;
    if (fstat(fd, &st) != 0 || st.st_dev != device)
        return UINT32_MAX;
    for (uint32_t i = n_live; i-- > 0;)
        if (live[i].inode == st.st_ino)
            return i;
    return UINT32_MAX;
}

static uint32_t parent_of(const char *path, const char **name)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');

    *name = slash + 1;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return node_at(folder);
}

static disk_op *note(op_kind kind, uint32_t node)
{
    if (n_ops == N_MAX)
        abort();
    ops[n_ops] = (disk_op){ .kind = kind, .node = node };
    return &ops[n_ops++];
}

static disk_op *note_name(op_kind kind, uint32_t node, const char *path, const char *old)
{
    const char *name, *old_name;
    disk_op *op = note(kind, node);

    op->parent = parent_of(path, &name);
    op->name = strdup(name);
    if (old && parent_of(old, &old_name) == op->parent)
        op->old = strdup(old_name);
    if (op->parent == UINT32_MAX || (old && !op->old))
        abort();                                 /* from folder to folder: nobody does */
    return op;
}

static void note_made(const char *path)
{
    struct stat st;

    if (n_live == NODES_MAX || lstat(path, &st) != 0)
        abort();
    live[n_live] = (live_node){ .path = strdup(path), .inode = st.st_ino };
    if (n_live > 0)
        note_name(OP_MAKE, n_live, path, NULL)->n = S_ISDIR(st.st_mode);
    n_live++;
}

/* -- libc's functions ----------------------------------------------------------------------------- */

/* The headers give `open` the symbol open64 where offsets have 64 bits; SQLite asks for either. */
#undef open
#undef pwrite
#undef ftruncate
int record_open(const char *path, int flags, ...);
int record_open32(const char *path, int flags, ...) __asm__("open");
int record_open64(const char *path, int flags, ...) __asm__("open64");
ssize_t record_pwrite(int fd, const void *data, size_t n, off_t at);
ssize_t record_pwrite32(int fd, const void *data, size_t n, off_t at) __asm__("pwrite");
ssize_t record_pwrite64(int fd, const void *data, size_t n, off_t at) __asm__("pwrite64");
int record_truncate(int fd, off_t n);
int record_truncate32(int fd, off_t n) __asm__("ftruncate");
int record_truncate64(int fd, off_t n) __asm__("ftruncate64");

static int open_noted(const char *path, int flags, mode_t mode)
{
    struct stat st;
    bool is_new;
    int fd;

    if (!is_ours(path))
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    pthread_mutex_lock(&lock);
    is_new = (flags & O_CREAT) && lstat(path, &st) != 0;
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && is_new)
        note_made(path);
    else if (fd >= 0 && (flags & O_TRUNC))
        note(OP_SIZE, node_at(path));
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN(function)                                                  \
    int function(const char *path, int flags, ...)                      \
    {                                                                   \
        mode_t mode = 0;                                                \
        va_list ap;                                                     \
                                                                        \
        va_start(ap, flags);                                            \
        if (flags & (O_CREAT | O_TMPFILE))                              \
            mode = va_arg(ap, mode_t);                                  \
        va_end(ap);                                                     \
        return open_noted(path, flags, mode);                           \
    }
OPEN(record_open32)
OPEN(record_open64)

/* `put` bytes of data went to the file, from `at` on. */
static void note_written(uint32_t node, const void *data, ssize_t put, uint64_t at)
{
    disk_op *op;

    if (node == UINT32_MAX || put <= 0)
        return;
    op = note(OP_WRITE, node);
    op->at = at;
    op->n = (uint64_t)put;
    op->data = malloc((size_t)put);
    if (!op->data)
        abort();
    memcpy(op->data, data, (size_t)put);
}

ssize_t record_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    ssize_t put;

    if (!atomic_load(&is_on))
        return syscall(SYS_pwrite64, fd, data, n, at);
    pthread_mutex_lock(&lock);
    put = syscall(SYS_pwrite64, fd, data, n, at);
    note_written(node_of_fd(fd), data, put, (uint64_t)at);
    pthread_mutex_unlock(&lock);
    return put;
}

ssize_t record_pwrite32(int fd, const void *data, size_t n, off_t at)
{
    return record_pwrite64(fd, data, n, at);
}

ssize_t write(int fd, const void *data, size_t n)
{
    uint32_t node;
    ssize_t put;
    off_t end;

    if (!atomic_load(&is_on))
        return syscall(SYS_write, fd, data, n);
    pthread_mutex_lock(&lock);
    put = syscall(SYS_write, fd, data, n);
    node = node_of_fd(fd);
    if (node != UINT32_MAX && put > 0 && (end = lseek(fd, 0, SEEK_CUR)) >= put)
        note_written(node, data, put, (uint64_t)(end - put));
    pthread_mutex_unlock(&lock);
    return put;
}

int record_truncate64(int fd, off_t n)
{
    uint32_t node;
    int rc;

    if (!atomic_load(&is_on))
        return (int)syscall(SYS_ftruncate, fd, n);
    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_ftruncate, fd, n);
    node = node_of_fd(fd);
    if (rc == 0 && node != UINT32_MAX)
        note(OP_SIZE, node)->n = (uint64_t)n;
    pthread_mutex_unlock(&lock);
    return rc;
}

int record_truncate32(int fd, off_t n)
{
    return record_truncate64(fd, n);
}

static int sync_noted(int fd, long number)
{
    uint32_t node;
    int rc;

    if (!atomic_load(&is_on))
        return atomic_load(&is_sync_free) ? 0 : (int)syscall(number, fd);
    pthread_mutex_lock(&lock);                   /* the disk of the record is the record itself: nothing waits */
    node = node_of_fd(fd);
    rc = node == UINT32_MAX ? (int)syscall(number, fd) : 0;
    if (node != UINT32_MAX)
        note(OP_SYNC, node);
    pthread_mutex_unlock(&lock);
    return rc;
}

int fsync(int fd)
{
    return sync_noted(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_noted(fd, SYS_fdatasync);
}

static int rename_noted(const char *from, const char *to, unsigned flags)
{
    uint32_t node, gone;
    int rc;

    if (!is_ours(from))
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    node = node_at(from);
    gone = node_at(to);
    if (rc == 0 && node != UINT32_MAX) {
        note_name(OP_RENAME, node, to, from);
        if (gone != UINT32_MAX)
            set_path(&live[gone], NULL);
        set_path(&live[node], to);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int rename(const char *from, const char *to)
{
    return rename_noted(from, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (from_dir != AT_FDCWD || to_dir != AT_FDCWD)
        return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    return rename_noted(from, to, flags);
}

int unlink(const char *path)
{
    uint32_t node;
    int rc;

    if (!is_ours(path))
        return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    node = node_at(path);
    if (rc == 0 && node != UINT32_MAX) {
        note_name(OP_REMOVE, node, path, NULL);
        set_path(&live[node], NULL);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    int rc;

    if (!is_ours(path))
        return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (rc == 0)
        note_made(path);
    pthread_mutex_unlock(&lock);
    return rc;
}

void disk_record_end(void)
{
    atomic_store(&is_on, false);
}

size_t disk_record_n(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = n_ops;
    pthread_mutex_unlock(&lock);
    return n;
}

void disk_record_no_sync(void)
{
    atomic_store(&is_sync_free, true);
}

/* -- What is on the disk at a moment ----------------------------------------------------------------- */

/* A name in a folder. */
typedef struct disk_entry {
    const char *name;
    uint32_t    node;
} disk_entry;

typedef struct disk_node {
    bool        is_folder;
    char       *data;            /* of a file: what is there for certain */
    uint64_t    n, cap;
    disk_entry *entries;         /* likewise of a folder */
    uint32_t    n_entries;
    const disk_op **pending;     /* since its last sync */
    uint32_t    n_pending;
} disk_node;

static disk_node nodes[NODES_MAX];
static size_t replayed;          /* operations that `nodes` knows */

static void *grown(void *p, size_t n, size_t each)
{
    void *q = (n & (n - 1)) == 0 ? realloc(p, (n ? 2 * n : 1) * each) : p;

    if (!q)
        abort();
    return q;
}

static void resize_file(disk_node *f, uint64_t n)
{
    if (n > f->cap) {
        f->cap = 2 * n;
        f->data = realloc(f->data, f->cap);
        if (!f->data)
            abort();
    }
    if (n > f->n)
        memset(f->data + f->n, 0, n - f->n);
    f->n = n;
}

static void write_sector(disk_node *f, const disk_op *op, uint64_t from, uint64_t n)
{
    if (f->n < op->at + from + n)
        resize_file(f, op->at + from + n);
    memcpy(f->data + op->at + from, op->data + from, n);
}

static void drop_entry(disk_node *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_entries; i++)
        if (strcmp(d->entries[i].name, name) == 0)
            d->entries[i--] = d->entries[--d->n_entries];
}

static void apply_name(disk_node *d, const disk_op *op)
{
    if (op->old)
        drop_entry(d, op->old);
    drop_entry(d, op->name);
    if (op->kind == OP_REMOVE)
        return;
    d->entries = grown(d->entries, d->n_entries, sizeof *d->entries);
    d->entries[d->n_entries++] = (disk_entry){ op->name, op->node };
}

static void apply_op(disk_node *x, const disk_op *op)
{
    if (op->kind == OP_SIZE)
        resize_file(x, op->n);
    else if (op->kind == OP_WRITE)
        write_sector(x, op, 0, op->n);
    else
        apply_name(x, op);
}

static void forget_nodes(void)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        free(nodes[i].data);
        free(nodes[i].entries);
        free(nodes[i].pending);
        nodes[i] = (disk_node){ 0 };
    }
    nodes[0].is_folder = true;
    replayed = 0;
}

static void forget_ops(void)
{
    for (size_t i = 0; i < n_ops; i++) {
        free(ops[i].name);
        free(ops[i].old);
        free(ops[i].data);
    }
    free(ops);
    n_ops = 0;
    while (n_live > 0)
        set_path(&live[--n_live], NULL);
}

void disk_record_begin(const char *folder)
{
    forget_nodes();
    forget_ops();
    ops = calloc(N_MAX, sizeof *ops);
    if (!ops || strlen(folder) >= sizeof root)
        abort();
    snprintf(root, sizeof root, "%s", folder);
    note_made(root);
    atomic_store(&is_on, true);
}

void disk_replay_to(size_t moment)
{
    if (moment < replayed || !nodes[0].is_folder)
        forget_nodes();
    for (; replayed < moment && replayed < n_ops; replayed++) {
        const disk_op *op = &ops[replayed];
        bool is_name = op->kind == OP_MAKE || op->kind == OP_RENAME || op->kind == OP_REMOVE;
        disk_node *x = &nodes[is_name ? op->parent : op->node];

        if (op->kind == OP_MAKE)
            nodes[op->node].is_folder = op->n;
        if (op->kind != OP_SYNC) {
            x->pending = grown(x->pending, x->n_pending, sizeof *x->pending);
            x->pending[x->n_pending++] = op;
            continue;
        }
        for (uint32_t i = 0; i < x->n_pending; i++)
            apply_op(x, x->pending[i]);
        x->n_pending = 0;
    }
}

/* -- The power goes ------------------------------------------------------------------------------------ */

/* What becomes of all that a file or folder got since its last sync. */
typedef enum fate {
    FATE_LOST,
    FATE_THERE,
    FATE_UP_TO,                  /* the first ones are there */
    FATE_ANY,                    /* any of them, and of a write any sectors */
    N_FATES
} fate;

static uint64_t next_random(uint64_t *s)
{
    uint64_t z = *s += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void apply_torn(disk_node *f, const disk_op *op, uint64_t *seed)
{
    uint64_t all = next_random(seed) % 3;        /* 0: none, 1: all, 2: any of its sectors */

    for (uint64_t at = 0, n; at < op->n; at += n) {
        n = SECTOR - (op->at + at) % SECTOR;
        n = n < op->n - at ? n : op->n - at;
        if (all == 1 || (all == 2 && next_random(seed) % 2))
            write_sector(f, op, at, n);
    }
}

/* One of the sizes that the file had since its last sync. */
static uint64_t some_size(const disk_node *x, uint64_t *seed)
{
    uint64_t n = x->n, chosen = n;

    for (uint32_t i = 0; i < x->n_pending; i++) {
        const disk_op *op = x->pending[i];

        n = op->kind == OP_SIZE ? op->n : n > op->at + op->n ? n : op->at + op->n;
        if (next_random(seed) % (i + 2) == 0)
            chosen = n;
    }
    return chosen;
}

/* *out: a copy of the node as it may be found. */
static void cut_node(const disk_node *x, uint64_t *seed, disk_node *out)
{
    fate what = (fate)(next_random(seed) % N_FATES);
    uint32_t up_to = what == FATE_LOST ? 0 : what == FATE_UP_TO ? (uint32_t)(next_random(seed) % (x->n_pending + 1u))
                                                                : x->n_pending;

    *out = (disk_node){ .is_folder = x->is_folder };
    if (x->is_folder) {
        for (uint32_t i = 0; i < x->n_entries; i++) {
            out->entries = grown(out->entries, out->n_entries, sizeof *out->entries);
            out->entries[out->n_entries++] = x->entries[i];
        }
    } else {
        resize_file(out, x->n);
        if (x->n)
            memcpy(out->data, x->data, x->n);
    }
    for (uint32_t i = 0; i < up_to; i++) {
        const disk_op *op = x->pending[i];

        if (what == FATE_ANY && op->kind == OP_WRITE)
            apply_torn(out, op, seed);
        else if (what != FATE_ANY || next_random(seed) % 2)
            apply_op(out, op);
    }
    if (what == FATE_ANY && !x->is_folder && x->n_pending && next_random(seed) % 2)
        resize_file(out, some_size(x, seed));
}

static bool put_file(const disk_node *f, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0;

    for (uint64_t at = 0; ok && at < f->n;) {
        ssize_t put = write(fd, f->data + at, f->n - at);

        ok = put > 0;
        at += put > 0 ? (uint64_t)put : 0;
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static bool put_folder(const disk_node *x, uint64_t *seed, const char *path)
{
    bool ok = mkdir(path, 0700) == 0;
    disk_node is;

    cut_node(x, seed, &is);
    for (uint32_t i = 0; ok && i < is.n_entries; i++) {
        const disk_node *below = &nodes[is.entries[i].node];
        char name[4096];
        disk_node found;

        if (ends_with(is.entries[i].name, "-shm"))       /* shared memory: SQLite believes none that nobody holds */
            continue;
        snprintf(name, sizeof name, "%s/%s", path, is.entries[i].name);
        if (below->is_folder) {
            ok = put_folder(below, seed, name);
            continue;
        }
        cut_node(below, seed, &found);
        ok = put_file(&found, name);
        free(found.data);
    }
    free(is.entries);
    return ok;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

bool disk_replay_cut(uint64_t seed, const char *to)
{
    if (access(to, F_OK) == 0 && nftw(to, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return false;
    return put_folder(&nodes[0], &seed, to);
}
