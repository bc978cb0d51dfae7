/* Reads by io_uring (uring.h). */
#include "os/uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "os/fault.h"

struct ebb_uring {
    struct io_uring ring;
};

ebb_status ebb_uring_open(uint32_t depth, ebb_uring **out, ebb_error *err)
{
    ebb_uring *u = calloc(1, sizeof *u);
    int rc;

    *out = NULL;
    if (!u)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a ring of %u reads", depth);
    rc = ebb_os_fault(EPERM) ? -EPERM : io_uring_queue_init(depth, &u->ring, 0);
    if (rc < 0) {
        free(u);
        return EBB_FAIL(err, EBB_UNSUPPORTED, "io_uring is refused: %s", strerror(-rc));
    }
    *out = u;
    return EBB_OK;
}

void ebb_uring_close(ebb_uring *u)
{
    if (!u)
        return;
    io_uring_queue_exit(&u->ring);
    free(u);
}

ebb_status ebb_uring_read(ebb_uring *u, int fd, void *to, size_t n, uint64_t at, uint32_t tag, ebb_error *err)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    int rc;

    if (!sqe)
        return EBB_FAIL(err, EBB_IO, "io_uring: more reads under way than it has room for");
    io_uring_prep_read(sqe, fd, to, (unsigned)n, at);
    io_uring_sqe_set_data64(sqe, tag);
    do {
        rc = io_uring_submit(&u->ring);
    } while (rc == -EINTR);
    errno = rc < 0 ? -rc : 0;
    return rc >= 0 ? EBB_OK : EBB_FAIL(err, EBB_IO, "io_uring: a read is refused: %s", strerror(-rc));
}

ebb_status ebb_uring_wait(ebb_uring *u, uint32_t *tag, int64_t *result, ebb_error *err)
{
    struct io_uring_cqe *cqe = NULL;
    int rc;

    do {
        rc = io_uring_wait_cqe(&u->ring, &cqe);
    } while (rc == -EINTR);
    errno = rc < 0 ? -rc : 0;
    if (rc < 0)
        return EBB_FAIL(err, EBB_IO, "io_uring: waiting for a read failed: %s", strerror(-rc));
    *tag = (uint32_t)io_uring_cqe_get_data64(cqe);
    *result = ebb_os_fault(EIO) ? -EIO : ebb_os_short(cqe->res);
    io_uring_cqe_seen(&u->ring, cqe);
    return EBB_OK;
}
