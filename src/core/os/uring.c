/* Reads by io_uring (uring.h). */
#include "os/uring.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/fault.h"

#define REFUSED UINT64_MAX       /* in the place of a read's tag */
#define LOOK_NS 1000000

struct ebb_uring {
    struct io_uring ring;
    bool            is_kept, is_lent;    /* of the reserve; and somebody has it */
};

/* -- The reserve ------------------------------------------------------------------------------------ */

enum { N_KEPT = 4 };
static struct {
    ebb_uring       rings[N_KEPT];
    unsigned        n;
    bool            is_all;              /* there are no others */
    pthread_mutex_t lock;
} reserve = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* liburing 2.3 declares calls for this and does not export them. */
static bool register_ring(const struct io_uring *ring, unsigned what, const void *arg, unsigned n)
{
    return syscall(SYS_io_uring_register, ring->ring_fd, what, arg, n) == 0;
}

/* One that reads, and does nothing else for whoever gets hold of it. */
static bool keep_ring(struct io_uring *ring)
{
    struct io_uring_restriction only[] = {
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_READ },
        { .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_ENABLE_RINGS },
    };

    if (ebb_os_fault(EPERM) || io_uring_queue_init(EBB_URING_DEPTH, ring, IORING_SETUP_R_DISABLED) < 0)
        return false;
    if (register_ring(ring, IORING_REGISTER_RESTRICTIONS, only, 2) &&
        register_ring(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0))
        return true;
    io_uring_queue_exit(ring);
    return false;
}

void ebb_uring_keep(void)
{
    pthread_mutex_lock(&reserve.lock);
    reserve.is_all = true;
    while (reserve.n < N_KEPT && keep_ring(&reserve.rings[reserve.n].ring))
        reserve.rings[reserve.n++].is_kept = true;
    pthread_mutex_unlock(&reserve.lock);
}

static ebb_status borrow_ring(uint32_t depth, ebb_uring **out, ebb_error *err)
{
    pthread_mutex_lock(&reserve.lock);
    for (unsigned i = 0; i < reserve.n && !*out && depth <= EBB_URING_DEPTH; i++)
        if (!reserve.rings[i].is_lent)
            *out = &reserve.rings[i];
    if (*out)
        (*out)->is_lent = true;
    pthread_mutex_unlock(&reserve.lock);
    return *out ? EBB_OK : EBB_FAIL(err, EBB_UNSUPPORTED, "io_uring: all rings of a confined process are in use");
}

static void return_ring(ebb_uring *u)
{
    pthread_mutex_lock(&reserve.lock);
    u->is_lent = false;
    pthread_mutex_unlock(&reserve.lock);
}

/* -- A ring ------------------------------------------------------------------------------------------- */

ebb_status ebb_uring_open(uint32_t depth, ebb_uring **out, ebb_error *err)
{
    ebb_uring *u;
    int rc;

    *out = NULL;
    if (reserve.is_all)
        return borrow_ring(depth, out, err);
    u = calloc(1, sizeof *u);
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
    if (u->is_kept) {
        return_ring(u);
        return;
    }
    io_uring_queue_exit(&u->ring);
    free(u);
}

/* Hand over all that is queued: 0 or -errno. */
static int submit_all(ebb_uring *u)
{
    int rc;

    do {
        rc = ebb_os_fault(EAGAIN) ? -EAGAIN : io_uring_submit(&u->ring);
    } while (rc == -EINTR || (rc > 0 && io_uring_sq_ready(&u->ring) > 0));
    return rc < 0 ? rc : 0;
}

/* What the kernel refuses stays queued and goes along with a later read, when `to` may be another's: read nothing. */
static void take_back(struct io_uring_sqe *sqe, int fd)
{
    io_uring_prep_read(sqe, fd, NULL, 0, 0);
    io_uring_sqe_set_data64(sqe, REFUSED);
}

ebb_status ebb_uring_read(ebb_uring *u, int fd, void *to, size_t n, uint64_t at, uint32_t tag, ebb_error *err)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    int rc = 0;

    if (!sqe && (rc = submit_all(u)) == 0)       /* all the room is that of refused ones */
        sqe = io_uring_get_sqe(&u->ring);
    if (!sqe && rc == 0)
        return EBB_FAIL(err, EBB_IO, "io_uring: more reads under way than it has room for");
    if (sqe) {
        io_uring_prep_read(sqe, fd, to, (unsigned)n, at);
        io_uring_sqe_set_data64(sqe, tag);
        rc = submit_all(u);
        if (rc == 0)
            return EBB_OK;
        take_back(sqe, fd);
    }
    errno = -rc;
    return EBB_FAIL(err, EBB_IO, "io_uring: a read is refused: %s", strerror(-rc));
}

/* What was begun comes, also where the kernel refuses to wait for it: then it is looked for again and again. */
static struct io_uring_cqe *await_completion(ebb_uring *u)
{
    const struct timespec look = { .tv_nsec = LOOK_NS };
    struct io_uring_cqe *cqe = NULL;
    int rc;

    while ((rc = ebb_os_fault(EBUSY) ? -EBUSY : io_uring_wait_cqe(&u->ring, &cqe)) < 0)
        if (rc != -EINTR)
            nanosleep(&look, NULL);
    return cqe;
}

void ebb_uring_wait(ebb_uring *u, uint32_t *tag, int64_t *result)
{
    struct io_uring_cqe *cqe;

    while ((cqe = await_completion(u))->user_data == REFUSED)
        io_uring_cqe_seen(&u->ring, cqe);
    *tag = (uint32_t)io_uring_cqe_get_data64(cqe);
    *result = ebb_os_fault(EIO) ? -EIO : ebb_os_short(cqe->res);
    io_uring_cqe_seen(&u->ring, cqe);
}
