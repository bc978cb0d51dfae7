/* Populate and drop (reader.h): the kernel reads windows of the mapping ahead of
 * their use, without a copy, and the pages go when they have been used. */
#include <errno.h>
#include <string.h>

#include "os/file.h"
#include "residency/reader.h"

#define PIECE_BYTES ((size_t)2 << 20)            /* a window: a part of a matrix, so that it is measured as it is
                                                    used */

/* Old kernels have no MADV_POPULATE_READ: the first page of a file tells. */
static ebb_status open_mmap(const ebb_read_file *files, uint32_t n_files, void **state, ebb_error *err)
{
    *state = NULL;
    for (uint32_t i = 0; i < n_files; i++) {
        if (files[i].fd < 0 || ebb_map_advise(files[i].map.data, 1, EBB_ADVISE_POPULATE))
            continue;
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s: its mapping cannot be populated: %s", files[i].path,
                        strerror(errno));
    }
    return EBB_OK;
}

static void close_mmap(void *state)
{
    (void)state;
}

/* Pages of the piece that the file has; others would be SIGBUS. */
static size_t mapped_bytes(const ebb_read_file *f, const ebb_piece *p)
{
    uint64_t left = f->map.n_bytes - p->offset;

    return left < p->n_bytes ? (size_t)left : p->n_bytes;
}

static void drop_mapped(const ebb_read_file *f, const ebb_piece *p)
{
    ebb_map_advise((char *)f->map.data + p->offset, mapped_bytes(f, p), EBB_ADVISE_DONTNEED);
    ebb_file_drop_cache(f->fd, p->offset, p->n_bytes);
}

static ebb_status populate_mapped(const ebb_read_file *f, const ebb_piece *p, ebb_error *err)
{
    const char *from = (const char *)f->map.data + p->offset;
    bool ok;

    do {
        ok = ebb_map_advise((char *)(uintptr_t)from, mapped_bytes(f, p), EBB_ADVISE_POPULATE);
    } while (!ok && errno == EINTR);
    if (!ok && errno == EFAULT)
        return EBB_FAIL(err, EBB_FORMAT, "%s: truncated: ends before byte %llu, or cannot be read", f->path,
                        (unsigned long long)(p->offset + p->n_must));
    if (!ok)
        return EBB_FAIL(err, EBB_IO, "%s: read at byte %llu failed: %s", f->path, (unsigned long long)p->offset,
                        strerror(errno));
    if (p->to) {
        memcpy(p->to, from, mapped_bytes(f, p));
        drop_mapped(f, p);
    }
    return EBB_OK;
}

static void serve_mmap(void *state, const ebb_read_file *files, const ebb_source *source)
{
    ebb_piece p;

    (void)state;
    while (source->next(source->self, true, &p)) {
        ebb_error err = { 0 };
        ebb_status st = EBB_OK;

        if (p.is_drop)
            drop_mapped(&files[p.file], &p);
        else
            st = populate_mapped(&files[p.file], &p, &err);
        source->done(source->self, &p, st, &err);
    }
}

const ebb_reader_ops ebb_reader_mmap = {
    .name = "mmap", .is_mapped = true, .n_threads = 1, .piece_bytes = PIECE_BYTES,
    .open = open_mmap, .close = close_mmap, .run = serve_mmap,
};
