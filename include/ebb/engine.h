/* ebb/engine.h - a model made ready to compute: weights, threads, KV pool.
 *
 * Its sessions (ebb/session.h) are token sequences.  Everything the plan counts is
 * allocated in ebb_engine_open; a forward pass allocates nothing.
 *
 *     ebb_model_open, ebb_engine_open, ebb_session_new
 *         ebb_session_sync, then ebb_sampler_sample and ebb_session_append by turns
 *     ebb_session_free, ebb_engine_close, ebb_model_close        (examples/ask.c)
 *
 * Threads: open, close and every call that says so below belong to the thread that runs passes,
 * one at a time; all others may come from any thread.  Several engines of one process are
 * independent: each takes the memory it was given (ram_bytes) and has threads of its own, which
 * block all signals but those of their own faults: yours reach your threads.  The first engine
 * installs a handler for SIGBUS, because a mapped file may be truncated while it is read; for
 * faults outside such files the previous action is taken.  If another handler has taken its place
 * since, the next pass puts it back in front of that one, which may hand on to it. */
#ifndef EBB_ENGINE_H
#define EBB_ENGINE_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/model.h"
#include "ebb/stats.h"
#include "ebb/status.h"

EBB_API_BEGIN

/* Which context length the plan chooses: BALANCED 8192 tokens, MAX_TPS 4096, MAX_CONTEXT the one
 * that the model was trained for, which no mode exceeds.  Where not everything fits, layers are
 * streamed before the context is cut below 4096, 2048 and the trained length. */
typedef enum ebb_mode { EBB_MODE_BALANCED, EBB_MODE_MAX_TPS, EBB_MODE_MAX_CONTEXT } ebb_mode;
const char *ebb_mode_name(ebb_mode mode);        /* "balanced" ... */
/* Element type of K and V.  AUTO: the most precise one that fits. */
typedef enum ebb_kv_type {
    EBB_KV_F16, EBB_KV_Q8_0, EBB_KV_Q4_0, EBB_KV_F32, EBB_KV_AUTO
} ebb_kv_type;
/* How weights that are not resident are read.  AUTO: the fastest that the system allows. */
typedef enum ebb_io { EBB_IO_AUTO, EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP } ebb_io;
/* Instruction set of the kernels; all give bit-identical results.  AUTO: the fastest that this CPU
 * has.  Asking for one that it lacks is UNSUPPORTED. */
typedef enum ebb_isa {
    EBB_ISA_AUTO, EBB_ISA_SCALAR, EBB_ISA_AVX2, EBB_ISA_AVXVNNI, EBB_ISA_AVX512, EBB_ISA_AMX,
    EBB_ISA_NEON
} ebb_isa;
/* Which layers are resident if ebb_engine_opts.resident says how many: evenly spread (INTERLEAVED),
 * the first, the last. */
typedef enum ebb_placement {
    EBB_PLACEMENT_INTERLEAVED, EBB_PLACEMENT_FIRST, EBB_PLACEMENT_LAST
} ebb_placement;

/* A value for n_ctx: the longest context, in steps of 256 tokens, with which all weights and the KV
 * cache are in memory; if weights are streamed anyway, the longest whose KV cache is in memory.  K
 * and V are f16 unless that allows less than 4096 tokens and q8_0 more. */
#define EBB_CTX_MAX UINT32_MAX
#define EBB_MAX_BATCH 4096u      /* tokens of a pass, at most: more is taken as that */

/* Zero is the default of every field: `ebb_engine_opts o = { 0 };` */
typedef struct ebb_engine_opts {
    uint32_t    n_ctx;           /* context length, tokens; 0: by `mode`; or EBB_CTX_MAX */
    uint64_t    ram_bytes;       /* cap on all memory of the process; 0: what the machine has */
    ebb_mode    mode;
    bool        has_resident;    /* `resident` is set; else as many layers as fit */
    bool        resident_is_percent;
    uint32_t    resident;        /* layers in memory; or percent of the layers' bytes */
    bool        has_kv;          /* kv_k and kv_v are set; else the plan chooses */
    ebb_kv_type kv_k, kv_v;
    uint32_t    n_threads;       /* 0: the CPUs that this process may use; at most 64 or four for
                                  * each of them */
    ebb_isa     cpu;
    ebb_io      io;
    ebb_placement placement;
    uint32_t    n_batch;         /* tokens of a prefill pass, EBB_MAX_BATCH at most; 0: 512, more
                                  * where experts stream */
    uint32_t    n_sequences;     /* that are to share passes (ebb_sessions_append): room for their
                                  * sliding windows and recurrent states; 0: 1, at most 16 */
    bool        is_forced;       /* open a file with tensors or metadata that ebb does not know, and
                                  * ignore these; ebb_stats.left_out names them */
    bool        no_speculation;  /* no speculative decoding, no draft tokens */
    const ebb_model *draft;      /* draft model with the same vocabulary; must outlive the engine;
                                  * NULL: none */
    uint32_t    n_draft;         /* draft tokens of each pass; 0: as many as save time */
    bool        no_kv_cache;     /* do not read or write the KV cache on disk, nor spill K and V */
    const char *kv_cache_dir;    /* must outlive the engine; NULL: $XDG_CACHE_HOME/ebb/kv.  A folder
                                  * that cannot be used, or that others may write to: no_kv_cache,
                                  * and an event says why */
    const struct ebb_kv_seal *kv_seal;   /* of ebb itself, which encrypts it so; K and V are not
                                  * spilled then; must outlive the engine; NULL: in the clear */
    uint64_t    kv_cache_bytes;  /* cap of that directory; 0: 4 GiB, at most a tenth of the file
                                  * system's free space */
} ebb_engine_opts;

typedef struct ebb_engine ebb_engine;

/* Called from the thread that opens the engine; done and total in bytes. */
typedef void ebb_progress_fn(void *arg, uint64_t done, uint64_t total);

/* Opens an engine for `m`, which must outlive it, with `opts` (NULL: defaults).  *opts is copied,
 * but not what its `draft`, `kv_cache_dir` and `kv_seal` point to.  `progress` may be NULL.  The
 * caller owns *out; NULL on failure.
 * Errors: BUDGET (the message says what would fit), UNSUPPORTED (architecture, CPU, KV type ...:
 * named), FORMAT (the tensors are not those of the architecture), USAGE (`cpu` is none, too many
 * threads, or the draft model has another vocabulary), IO, NOMEM.  Cost: a model that fits is
 * mapped (mmap) and starts at once; layers that are to be pinned are read. */
EBB_MUST_CHECK
ebb_status ebb_engine_open(const ebb_model *m, const ebb_engine_opts *opts,
                           ebb_progress_fn *progress, void *arg, ebb_engine **out, ebb_error *err);
void ebb_engine_close(ebb_engine *e);            /* free its sessions first; NULL is fine */

const ebb_model *ebb_engine_model(const ebb_engine *e); /* as given to ebb_engine_open */
uint32_t ebb_engine_n_ctx(const ebb_engine *e);  /* context length, tokens; never changes */
/* Most tokens of a pass, and most sequences that may share one: 16; of a model with recurrent
 * layers n_sequences of the options, or 4 if that is more; but no more than tokens of a pass.  They
 * never change. */
uint32_t ebb_engine_n_batch(const ebb_engine *e);
uint32_t ebb_engine_max_sequences(const ebb_engine *e);

/* Copies the current figures to *out.  From any thread, at any time. */
void ebb_engine_stats(ebb_engine *e, ebb_stats *out);

/* Changes the memory budget of the running engine: layers are evicted, or read and pinned, as the
 * plan for `bytes` (0: what the machine has now) says.  Logits are the same before and after, bit
 * for bit.  From the thread that runs passes, between passes.
 * `progress` may be NULL.  Errors: BUDGET (nothing was changed; the message says what would fit),
 * IO, NOMEM, CANCELED (layers that were read stay; the others are streamed). */
EBB_MUST_CHECK
ebb_status ebb_engine_set_budget(ebb_engine *e, uint64_t bytes, ebb_progress_fn *progress,
                                 void *arg, ebb_error *err);

#define EBB_REFERENCE_MOST (1u << 17)    /* tokens of a reference text */

/* Texts beside a session's own in which prompt lookup looks for what a sequence repeats, such as
 * other conversations: a copy of ids[0..n), with an id below 0 between two of them, in place of
 * what was set before (n 0: none); of more than EBB_REFERENCE_MOST the last ones.  An id that is
 * not in the vocabulary counts as one below 0.  A place in it counts where more tokens are alike
 * than anywhere in the sequence, and drafting from it pauses where it does not pay.  No logit
 * depends on it.  It stays in memory and ends with the engine.
 * From the thread that runs passes, between passes.  Error: NOMEM (there is none then).
 * Cost: 12 bytes and some 10 ns for each token, at most 2 MiB, beside the plan. */
EBB_MUST_CHECK
ebb_status ebb_engine_set_reference_text(ebb_engine *e, const ebb_token *ids, size_t n,
                                         ebb_error *err);

/* Housekeeping between answers: evicts layers if memory is short; reloads one evicted layer if
 * there has been memory for it for some time; stores the machine's speeds as measured in passes, or
 * measures them if none are known.  true: call it again in a second; false: call it after the next
 * answer, or when layers were evicted meanwhile (ebb_engine_on_evict).  From the thread that runs
 * passes.  Cost: microseconds, the reading of one layer, or once some 50 ms. */
bool ebb_engine_idle(ebb_engine *e);
/* Sets a function that is called when layers were evicted that ebb_engine_idle may reload; NULL:
 * none.  It runs on a thread of the engine's own, also while no pass runs; it must return quickly
 * and not call the engine. */
void ebb_engine_on_evict(ebb_engine *e, void (*fn)(void *arg), void *arg);

/* Makes the running pass, and every later one until ebb_engine_cancel_clear, return EBB_CANCELED
 * within one layer.  From any thread and from a signal handler. */
void ebb_engine_cancel(ebb_engine *e);
void ebb_engine_cancel_clear(ebb_engine *e);

EBB_API_END

#endif
