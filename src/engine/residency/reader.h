/* residency/reader.h - reading weights from disk: three readers with one interface.
 *
 * A source (the ring, a group that is being pinned, a measurement) says which pieces of which files
 * are wanted; a reader reads them, several at a time, from threads of its own.  The readers:
 *
 *   uring   io_uring with direct I/O: eight reads in flight from one thread; needs EBB_READER_BYTES
 *   pread   two threads with direct I/O or, where the file system has none, with buffered reads
 *           whose pages are dropped from the page cache afterwards
 *   mmap    Linux populates the mapping (MADV_POPULATE_READ), the compute kernels read it there,
 *           and the pages are dropped afterwards: no copy
 *
 * Which of them is fastest depends on the disk, so it is measured (read_speed.h).  None of them
 * leaves anything in the page cache. */
#ifndef EBB_READER_H
#define EBB_READER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"
#include "os/map.h"

#define EBB_READER_BYTES ((uint64_t)8 << 20)     /* of memory, at most */
#define EBB_READ_ALIGN ((uint64_t)4096)          /* of offsets, lengths and memory of direct
                                                    reads */

typedef struct ebb_read_file {
    const char *path;
    int         fd;              /* the caller's; -1: in memory */
    int         direct_fd;       /* the same file past the page cache; -1: not open */
    ebb_map     map;             /* the whole file */
    uint64_t    n_bytes;
} ebb_read_file;

typedef struct ebb_piece {
    uint32_t file, tag;          /* tag: the source's own */
    uint64_t offset;             /* a multiple of EBB_READ_ALIGN */
    size_t   n_bytes;            /* likewise; the last may lie beyond the file's end */
    size_t   n_must;             /* bytes that the file must have; fewer are an error */
    char    *to;                 /* aligned; NULL: populate the mapping, copy nothing */
    bool     is_drop;            /* the opposite: drop the mapping's pages */
    bool     is_far;             /* `to` is not in the processor's cache, and stays what it
                                    becomes */
} ebb_piece;

/* Where a reader gets its work.  Both are called from the reader's threads. */
typedef struct ebb_source {
    /* The next piece to read.  false: none now; if `wait`, none ever again. */
    bool (*next)(void *self, bool wait, ebb_piece *out);
    /* The piece was read (EBB_OK), or not (*err says why). */
    void (*done)(void *self, const ebb_piece *p, ebb_status st, const ebb_error *err);
    void *self;
} ebb_source;

typedef struct ebb_reader ebb_reader;

typedef struct ebb_reader_ops {
    const char *name;            /* "uring" */
    bool        is_direct;       /* wants direct_fd ... */
    bool        is_mapped;       /* ... or the mapping: pieces need no destination */
    uint32_t    n_threads;
    size_t      piece_bytes;
    /* Make *state; UNSUPPORTED where the system refuses. */
    ebb_status (*open)(const ebb_read_file *files, uint32_t n_files, void **state, ebb_error *err);
    void       (*close)(void *state);
    /* Body of each thread: reads pieces until the source has none ever again. */
    void       (*run)(void *state, const ebb_read_file *files, const ebb_source *s);
} ebb_reader_ops;

extern const ebb_reader_ops ebb_reader_uring, ebb_reader_pread, ebb_reader_mmap;

/* Which reader `io` names (not AUTO). */
const ebb_reader_ops *ebb_reader_get(ebb_io io);
/* Whether the system allows this reader: opens and closes it.  Files that it reads past the page
 * cache stay open for that (direct_fd).  Errors: UNSUPPORTED, NOMEM, IO. */
EBB_MUST_CHECK
ebb_status ebb_reader_try(const ebb_reader_ops *ops, ebb_read_file *files, uint32_t n_files,
                          ebb_error *err);

/* Starts the reader's threads, which read what `source` asks for; those of pread where uring is
 * refused by now.  `files` and `source` must live until ebb_reader_stop.  Errors: NOMEM, IO,
 * UNSUPPORTED (mmap). */
EBB_MUST_CHECK
ebb_status ebb_reader_start(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                            const ebb_source *source, ebb_reader **out, ebb_error *err);
/* Waits for the threads to end (the source must have no piece ever again) and closes.  NULL is
 * fine. */
void ebb_reader_stop(ebb_reader *r);

#endif
