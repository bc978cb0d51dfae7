/* residency/read_speed.h - which reader is fastest on a disk, and how fast.
 *
 * The ranking is not fixed: on a virtual disk buffered reads from the host's cache are faster
 * than direct ones, on a physical drive it is the other way round, and CPU time of a reader is
 * taken from the computation.  So each reader that the system allows reads other ranges of the
 * model's own file for some hundredths of a second, past the page cache, in turn; its best turn
 * counts. */
#ifndef EBB_READ_SPEED_H
#define EBB_READ_SPEED_H
#include "residency/reader.h"
#include "residency/residency.h"

struct ebb_read_speed {
    bool       is_allowed;
    double     bytes_s;          /* 0: not measured */
    double     cpu_s_per_gb;     /* CPU seconds of this process per 10^9 bytes */
    char       why_not[96];      /* where it is not allowed */
};

/* Measure the readers (indexed by ebb_io; AUTO is unused), or `only` that one, on bytes [from, from
 * + n) of files[i_file], altogether for about `seconds`.  Opens direct descriptors. */
void ebb_read_speed_measure(ebb_read_file *files, uint32_t n_files, uint32_t i_file, uint64_t from,
                            uint64_t n, ebb_io only, double seconds,
                            ebb_read_speed out[EBB_IO_MMAP + 1]);
/* Bytes per second of one reader that reads all of [from, from + n), cold. */
double ebb_read_speed_of(ebb_read_file *files, uint32_t n_files, uint32_t i_file, uint64_t from,
                         uint64_t n, const ebb_reader_ops *ops);

/* The reader under which a pass takes least: its bytes, and half of its CPU time,
 * which computes meanwhile.  In the order uring, pread, mmap, a later one has to be better by a
 * tenth: so much is noise.  EBB_IO_PREAD if none was measured. */
ebb_io ebb_read_speed_best(const ebb_read_speed speeds[EBB_IO_MMAP + 1]);

/* ebb_read_speed_measure for the file at `path`, its last 90 %, in 0.3 seconds; for one reader a
 * third of that. */
EBB_MUST_CHECK
ebb_status ebb_read_speed_measure_path(const char *path, ebb_io only,
                                       ebb_read_speed out[EBB_IO_MMAP + 1], ebb_error *err);

#endif
