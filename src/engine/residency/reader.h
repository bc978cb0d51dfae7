/* residency/reader.h - how weights come from disk: three readers, one contract.
 *
 * A source (the ring, a group that is being pinned, a measurement) says which
 * pieces of which files are wanted; a reader brings them, several at a time, from
 * threads of its own.  The readers:
 *
 *   uring   io_uring with direct reads: eight under way from one thread; takes EBB_READER_BYTES
 *   pread   two threads with direct reads, or, where the file system has none,
 *           with ordinary reads whose pages are dropped behind
 *   mmap    the kernel populates the mapping (MADV_POPULATE_READ), the kernels of
 *           the forward pass read it there, and the pages are dropped behind:
 *           no copy
 *
 * Which of them is fastest depends on the disk, so it is measured (read_speed.h).
 * None of them leaves what it has read in the page cache. */
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
    size_t   n_must;             /* bytes that have to arrive */
    char    *to;                 /* aligned; NULL: populate the mapping, copy nothing */
    bool     is_drop;            /* the opposite: let the mapping's pages go */
    bool     is_far;             /* `to` is not in the processor's cache, and stays what it
                                    becomes */
} ebb_piece;

/* Who wants pieces.  Both are called from the reader's threads. */
typedef struct ebb_source {
    /* The next piece.  false: there is none, for ever if `wait`, else for now. */
    bool (*next)(void *self, bool wait, ebb_piece *out);
    /* The piece has come (EBB_OK) or not (err says why). */
    void (*done)(void *self, const ebb_piece *p, ebb_status st, const ebb_error *err);
    void *self;
} ebb_source;

typedef struct ebb_reader ebb_reader;

typedef struct ebb_reader_ops {
    const char *name;            /* "uring" */
    bool        is_direct;       /* wants direct_fd ... */
    bool        is_mapped;       /* ... or the mapping: pieces need no memory */
    uint32_t    n_threads;
    size_t      piece_bytes;
    /* Make *state; UNSUPPORTED where the system refuses. */
    ebb_status (*open)(const ebb_read_file *files, uint32_t n_files, void **state, ebb_error *err);
    void       (*close)(void *state);
    /* Body of each thread: serve the source until it is over. */
    void       (*run)(void *state, const ebb_read_file *files, const ebb_source *s);
} ebb_reader_ops;

extern const ebb_reader_ops ebb_reader_uring, ebb_reader_pread, ebb_reader_mmap;

/* Which reader `io` names (not AUTO). */
const ebb_reader_ops *ebb_reader_get(ebb_io io);
/* Open the files past the page cache if `ops` reads so.  UNSUPPORTED: a file system has no such
 * reads. */
EBB_MUST_CHECK
ebb_status ebb_reader_prepare(const ebb_reader_ops *ops, ebb_read_file *files, uint32_t n_files,
                              ebb_error *err);
/* Whether the system lets this reader work: opens and closes it. */
EBB_MUST_CHECK
ebb_status ebb_reader_try(const ebb_reader_ops *ops, ebb_read_file *files, uint32_t n_files,
                          ebb_error *err);

/* Serve `source` from the reader's own threads until it is over or stopped.
 * `files` and `source` must live until stop.  Errors: UNSUPPORTED, NOMEM, IO. */
EBB_MUST_CHECK
ebb_status ebb_reader_start(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                            const ebb_source *source, ebb_reader **out, ebb_error *err);
/* Wait for the threads to end (the source must be over, or say so soon) and close.  NULL is
 * fine. */
void ebb_reader_stop(ebb_reader *r);

#endif
