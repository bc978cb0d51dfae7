/* What the readers share (reader.h): threads, files, the table. */
#include "residency/reader.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "os/file.h"
#include "os/thread.h"

#define MAX_THREADS 2u

struct ebb_reader {
    const ebb_reader_ops *ops;
    const ebb_read_file  *files;
    const ebb_source     *source;
    void                 *state;
    pthread_t             threads[MAX_THREADS];
    uint32_t              n_threads;
};

const ebb_reader_ops *ebb_reader_get(ebb_io io)
{
    return io == EBB_IO_URING ? &ebb_reader_uring : io == EBB_IO_PREAD ? &ebb_reader_pread : &ebb_reader_mmap;
}

/* Opens the files for direct I/O if `ops` needs that. */
static ebb_status open_direct(const ebb_reader_ops *ops, ebb_read_file *files, uint32_t n_files, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; ops->is_direct && i < n_files && st == EBB_OK; i++)
        if (files[i].fd >= 0 && files[i].direct_fd < 0)
            st = ebb_file_reopen(files[i].fd, files[i].path, EBB_FILE_READ_DIRECT, &files[i].direct_fd, err);
    return st;
}

ebb_status ebb_reader_try(const ebb_reader_ops *ops, ebb_read_file *files, uint32_t n_files, ebb_error *err)
{
    void *state = NULL;
    ebb_status st = open_direct(ops, files, n_files, err);

    if (st == EBB_OK)
        st = ops->open(files, n_files, &state, err);
    if (st == EBB_OK)
        ops->close(state);
    return st;
}

static void *reader_main(void *arg)
{
    ebb_reader *r = arg;

    r->ops->run(r->state, r->files, r->source);
    return NULL;
}

ebb_status ebb_reader_start(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                            const ebb_source *source, ebb_reader **out, ebb_error *err)
{
    ebb_reader *r = calloc(1, sizeof *r);
    ebb_status st;

    *out = NULL;
    if (!r)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a reader");
    r->ops = ops;
    r->files = files;
    r->source = source;
    st = ops->open(files, n_files, &r->state, err);
    if (st == EBB_UNSUPPORTED && !ops->is_mapped) {      /* allowed at first, and now there are too many rings */
        ebb_log("reader", "%s; read by pread", err ? err->msg : ops->name);
        r->ops = &ebb_reader_pread;
        st = r->ops->open(files, n_files, &r->state, err);
    }
    if (st != EBB_OK) {
        free(r);
        return st;
    }
    while (r->n_threads < r->ops->n_threads && ebb_thread_start(&r->threads[r->n_threads], reader_main, r) == 0)
        r->n_threads++;
    if (r->n_threads == 0) {
        ebb_reader_stop(r);
        return EBB_FAIL(err, EBB_IO, "cannot start a thread for reading");
    }
    *out = r;                                    /* fewer threads than wished for are slower, not wrong */
    return EBB_OK;
}

void ebb_reader_stop(ebb_reader *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n_threads; i++)
        pthread_join(r->threads[i], NULL);
    r->ops->close(r->state);
    free(r);
}
