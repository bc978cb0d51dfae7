/* Residency over a file of noise: the extents that a test lays out, and the bytes that they must
 * give. */
#ifndef EBB_TESTS_NOISE_FILE_H
#define EBB_TESTS_NOISE_FILE_H
#include "ebb_test.h"

#include <fcntl.h>

#include "residency/residency.h"

enum { NOISE_EXTENTS = 96 };

typedef struct noise_file {
    char           path[64];
    char          *bytes;        /* [n_bytes], as they are in the file */
    uint64_t       n_bytes;
    ebb_res_extent x[NOISE_EXTENTS];
    int            fd;
    ebb_res       *r;
    atomic_bool    cancel;       /* of r */
} noise_file;

static inline uint32_t noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Writes n_bytes of noise and opens residency over the n extents of n_layers layers in f->x. */
static inline void noise_file_open(noise_file *f, uint32_t n, uint32_t n_layers, uint32_t *seed)
{
    ebb_res_part part;

    f->bytes = malloc(f->n_bytes);
    assert_non_null(f->bytes);
    for (uint64_t i = 0; i < f->n_bytes; i++)
        f->bytes[i] = (char)noise(seed);
    strcpy(f->path, "/var/tmp/ebb-residency-XXXXXX");
    f->fd = mkstemp(f->path);
    assert_true(f->fd >= 0);
    assert_int_equal(write(f->fd, f->bytes, f->n_bytes), (ssize_t)f->n_bytes);
    assert_int_equal(fsync(f->fd), 0);
    part = (ebb_res_part){ .path = f->path, .fd = f->fd, .n_bytes = f->n_bytes };
    assert_int_equal(ebb_res_open(&part, 1, f->x, n, n_layers, &f->r, NULL), EBB_OK);
    ebb_res_set_cancel(f->r, &f->cancel);
}

static inline void noise_file_close(noise_file *f)
{
    ebb_res_close(f->r);
    close(f->fd);
    unlink(f->path);
    free(f->bytes);
}

#endif
