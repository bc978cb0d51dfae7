/* Reads by pread on two threads (reader.h): complete where io_uring is forbidden,
 * and without direct reads where the file system has none. */
#include "os/file.h"
#include "residency/reader.h"

#define PIECE_BYTES ((size_t)2 << 20)

static ebb_status open_pread(const ebb_read_file *files, uint32_t n_files, void **state, ebb_error *err)
{
    (void)files;
    (void)n_files;
    (void)err;
    *state = NULL;
    return EBB_OK;
}

static void close_pread(void *state)
{
    (void)state;
}

static ebb_status read_piece(const ebb_read_file *f, const ebb_piece *p, ebb_error *err)
{
    ebb_status st;

    if (f->direct_fd >= 0)
        return ebb_file_read_range(f->direct_fd, f->path, p->to, p->n_bytes, p->n_must, p->offset, err);
    st = ebb_file_read_range(f->fd, f->path, p->to, p->n_bytes, p->n_must, p->offset, err);
    ebb_file_drop_cache(f->fd, p->offset, p->n_bytes);
    return st;
}

static void serve_pread(void *state, const ebb_read_file *files, const ebb_source *source)
{
    ebb_piece p;

    (void)state;
    while (source->next(source->self, true, &p)) {
        ebb_error err = { 0 };
        ebb_status st = read_piece(&files[p.file], &p, &err);

        source->done(source->self, &p, st, &err);
    }
}

const ebb_reader_ops ebb_reader_pread = {
    .name = "pread", .is_direct = true, .n_threads = 2, .piece_bytes = PIECE_BYTES,
    .open = open_pread, .close = close_pread, .run = serve_pread,
};
