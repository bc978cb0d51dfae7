/* ebb/engine.h - a model made ready to compute: weights, threads, KV pool.
 *
 * Sessions (ebb/session.h) are sequences in it.  Everything the plan counts is
 * allocated in ebb_engine_open; a forward pass allocates nothing.
 *
 *     ebb_model_open, ebb_engine_open, ebb_session_new
 *         ebb_session_sync, then ebb_sampler_sample and ebb_session_append by turns
 *     ebb_session_free, ebb_engine_close, ebb_model_close        (examples/ask.c)
 *
 * Threads: open, close and every call that says so below belong to the thread that runs passes, one
 * at a time; all others may come from any thread.  Several engines in a process do not know each
 * other: each takes the memory it was given (ram_bytes) and has threads of its own.  The first one
 * installs a handler for SIGBUS, because a mapped file may be cut off while it is read; outside
 * such files the signal does what it did before. */
#ifndef EBB_ENGINE_H
#define EBB_ENGINE_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/model.h"
#include "ebb/stats.h"
#include "ebb/status.h"

EBB_API_BEGIN

/* How much context the plan chooses, in tokens: 8192; 4096; all that the model was trained for
 * (which none exceeds).  Where not everything fits, layers leave memory before the context falls
 * below 4096; 2048; all of it. */
typedef enum ebb_mode { EBB_MODE_BALANCED, EBB_MODE_MAX_TPS, EBB_MODE_MAX_CONTEXT } ebb_mode;
const char *ebb_mode_name(ebb_mode mode);        /* "balanced" ... */
/* Element type of K and V.  AUTO: the most exact one that fits. */
typedef enum ebb_kv_type {
    EBB_KV_F16, EBB_KV_Q8_0, EBB_KV_Q4_0, EBB_KV_F32, EBB_KV_AUTO
} ebb_kv_type;
/* How weights that are not resident are read.  AUTO: the fastest that the system allows. */
typedef enum ebb_io { EBB_IO_AUTO, EBB_IO_URING, EBB_IO_PREAD, EBB_IO_MMAP } ebb_io;
/* Kernels; all give the same bits.  AUTO: the fastest that this CPU has.  Asking for one that it
 * lacks is UNSUPPORTED. */
typedef enum ebb_isa {
    EBB_ISA_AUTO, EBB_ISA_SCALAR, EBB_ISA_AVX2, EBB_ISA_AVX512, EBB_ISA_NEON
} ebb_isa;
/* Which layers are resident where `resident` says how many: evenly spread, the first, the last. */
typedef enum ebb_placement {
    EBB_PLACEMENT_INTERLEAVED, EBB_PLACEMENT_FIRST, EBB_PLACEMENT_LAST
} ebb_placement;

/* As n_ctx: the longest context, in steps of 256 tokens, with which nothing is read from disk for
 * each token; if weights are streamed anyway, the longest of which K and V stay in memory.  K and V
 * are f16 unless that allows less than 4096 tokens and q8_0 more. */
#define EBB_CTX_MAX UINT32_MAX

/* Zero is the default of every field: `ebb_engine_opts o = { 0 };` */
typedef struct ebb_engine_opts {
    uint32_t    n_ctx;           /* tokens; 0: what the plan chooses; EBB_CTX_MAX */
    uint64_t    ram_bytes;       /* cap on all memory of the process; 0: what the machine has */
    ebb_mode    mode;
    bool        has_resident;    /* else as many layers as fit */
    bool        resident_is_percent;
    uint32_t    resident;        /* layers, or percent of the layers' bytes */
    bool        has_kv;          /* else the plan's choice */
    ebb_kv_type kv_k, kv_v;
    uint32_t    n_threads;       /* 0: the CPUs that this process may use */
    ebb_isa     cpu;
    ebb_io      io;
    ebb_placement placement;
    uint32_t    n_batch;         /* tokens of a prefill pass; 0: 512, of a streamed mixture more */
    bool        is_forced;       /* compute a file of which not everything is understood, without
                                  * that; what is left out is in the plan */
    bool        no_speculation;  /* no speculative decoding, no draft tokens */
    const ebb_model *draft;      /* a draft model, of the same vocabulary; outlives the engine;
                                  * NULL: none */
    uint32_t    n_draft;         /* draft tokens for each pass; 0: as many as pay */
    bool        no_kv_cache;     /* do not read or write the KV cache on disk */
    const char *kv_cache_dir;    /* outlives the engine; NULL: $XDG_CACHE_HOME/ebb/kv */
    uint64_t    kv_cache_bytes;  /* cap of that folder; 0: 4 GiB, at most a tenth of the room there
                                  * is */
} ebb_engine_opts;

typedef struct ebb_engine ebb_engine;

/* Called from the thread that opens; done and total in bytes. */
typedef void ebb_progress_fn(void *arg, uint64_t done, uint64_t total);

/* Make `m`, which must outlive the engine, ready under `opts` (NULL: defaults).  *opts is copied,
 * except what says there that it outlives the engine.  `progress` may be NULL.  The caller owns
 * *out; NULL on failure.
 * Errors: BUDGET (says what would fit), UNSUPPORTED, IO, NOMEM.  Cost: a model
 * that fits is mapped and starts at once; layers that are to be pinned are read. */
EBB_MUST_CHECK
ebb_status ebb_engine_open(const ebb_model *m, const ebb_engine_opts *opts,
                           ebb_progress_fn *progress, void *arg, ebb_engine **out, ebb_error *err);
void ebb_engine_close(ebb_engine *e);            /* no session may be left; NULL is fine */

const ebb_model *ebb_engine_model(const ebb_engine *e); /* the one that it was opened with */
uint32_t ebb_engine_n_ctx(const ebb_engine *e);  /* most tokens of a sequence; never changes */

/* A copy of the figures; from any thread, at any time. */
void ebb_engine_stats(ebb_engine *e, ebb_stats *out);

/* Give the process another budget, live: layers are evicted, or read and pinned, until
 * the plan for `bytes` stands (0: what the machine has now).  Answers are the same
 * before and after, bit for bit.  From the thread that runs passes, between passes.
 * `progress` may be NULL.  Errors: BUDGET (nothing was changed; says what would fit), IO,
 * NOMEM, CANCELED (what was read stays; the rest is streamed). */
EBB_MUST_CHECK
ebb_status ebb_engine_set_budget(ebb_engine *e, uint64_t bytes, ebb_progress_fn *progress,
                                 void *arg, ebb_error *err);

/* Between turns: evict layers if memory is short; reload one that was evicted, if there has been
 * room for some time; store what was learned of the machine's speed, or measure it if nothing is
 * known.  Returns true to be called again in a second; false: call it when the next turn ends, or
 * when layers were evicted meanwhile (ebb_engine_on_evict).  From the thread that runs passes.
 * Costs microseconds, the reading of one layer, or once some 50 ms. */
bool ebb_engine_idle(ebb_engine *e);
/* Have fn(arg) called when layers were evicted that ebb_engine_idle may reload; NULL: nothing is
 * called.  It is called on a thread of the engine's own, also while nothing is computed; it must be
 * quick and not call the engine. */
void ebb_engine_on_evict(ebb_engine *e, void (*fn)(void *arg), void *arg);

/* Make the pass under way return EBB_CANCELED within one layer.  From any thread and
 * from a signal handler.  Stays set until ebb_engine_cancel_clear. */
void ebb_engine_cancel(ebb_engine *e);
void ebb_engine_cancel_clear(ebb_engine *e);

EBB_API_END

#endif
