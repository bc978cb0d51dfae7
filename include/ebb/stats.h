/* ebb/stats.h - the figures of a running engine: one struct, copied under a lock
 * (ebb_engine_stats). */
#ifndef EBB_STATS_H
#define EBB_STATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/version.h"

EBB_API_BEGIN

/* How the model fits the budget.  FULL: weights and KV cache are in memory, the latter as f16.
 * TIGHT: the same with a smaller KV type, context or batch.  STREAMING: some weights are read from
 * disk in each pass.  CRITICAL: all layers are, or K and V are spilled to a file. */
typedef enum ebb_tier { EBB_TIER_FULL, EBB_TIER_TIGHT, EBB_TIER_STREAMING,
                        EBB_TIER_CRITICAL } ebb_tier;
const char *ebb_tier_name(ebb_tier tier);        /* "full" ... */

typedef enum ebb_layer_state {
    EBB_LAYER_DISK,              /* streamed: read from disk in each pass */
    EBB_LAYER_PARTLY,            /* part of it is resident, the rest streamed */
    EBB_LAYER_READING,           /* streamed, and in the ring now or being read */
    EBB_LAYER_MAPPED,            /* resident: the file's pages, all in the page cache */
    EBB_LAYER_PINNED,            /* resident: a copy in anonymous memory */
} ebb_layer_state;

typedef enum ebb_phase {
    EBB_PHASE_LOADING, EBB_PHASE_IDLE, EBB_PHASE_PREFILL, EBB_PHASE_DECODE,
} ebb_phase;

/* What a pass spends its time on. */
typedef enum ebb_pass_time {
    EBB_TIME_MATMUL, EBB_TIME_ATTENTION,
    EBB_TIME_OTHER,              /* norms, activations, RoPE, storing K and V */
    EBB_TIME_READS,              /* waiting for streamed weights */
    EBB_TIME_COUNT
} ebb_pass_time;

/* A decision about memory.  Beside each: the fields of ebb_memory_event that it fills. */
typedef enum ebb_memory_event_code {
    EBB_MEMORY_NONE,             /* no decision yet */
    EBB_MEMORY_PLANNED,          /* the engine was opened: detail (why this tier or this ebb_io) */
    EBB_MEMORY_BUDGET_SET,       /* bytes (the budget), detail (why this tier) */
    EBB_MEMORY_LAYERS_EVICTED,   /* n_layers, n_layers_left, detail (what else: the output matrix
                                  * or ""); by the memory-pressure monitor: bytes, bytes_pending */
    EBB_MEMORY_LAYER_RELOADED,   /* layer, or detail (what is none), n_layers_left (to come) */
    EBB_MEMORY_EXPERTS_EVICTED,  /* bytes, bytes_left */
    EBB_MEMORY_EXPERTS_RELOADED, /* bytes_left (the expert cache now) */
    EBB_MEMORY_RING_SHRUNK,      /* to one slot */
    EBB_MEMORY_RING_RESTORED,
    EBB_MEMORY_KV_SPILLED,       /* bytes, bytes_left (in the file now) */
    EBB_MEMORY_KV_SPILL_FAILED,  /* detail (why) */
    EBB_MEMORY_KV_RELOADED,      /* bytes, bytes_left (in the file still) */
    EBB_MEMORY_DRAFT_EVICTED,    /* bytes; by the monitor also bytes_pending */
    EBB_MEMORY_DRAFT_RELOADED,
    EBB_MEMORY_DRAFT_ENDED,      /* detail (why): decoding goes on without the draft model */
    EBB_MEMORY_CACHE_NOTICE,     /* detail (what happened to the KV cache on disk) */
    EBB_MEMORY_KV_LENT,          /* n_layers, bytes (to layers), bytes_left (all that is lent) */
    EBB_MEMORY_KV_TAKEN_BACK,    /* n_layers, bytes, bytes_left (still lent) */
} ebb_memory_event_code;

typedef struct ebb_memory_event {
    ebb_memory_event_code code;
    uint32_t number;             /* counts the events since the engine was opened */
    bool     is_by_monitor;      /* by the memory-pressure monitor, during a pass */
    bool     is_emergency;       /* available memory was below zero, not only short */
    uint32_t layer, n_layers, n_layers_left;
    int64_t  available_bytes;    /* memory that could be taken at that time; evictions and spills */
    uint64_t bytes, bytes_left;
    uint64_t bytes_pending;      /* of resident layers that are not read yet */
    char     detail[160];        /* one line of visible UTF-8, or "" */
} ebb_memory_event;

/* The event as a line of text: "memory is short: 512 MiB available; 3 layers evicted, 29 stay".
 * Written to buf with a final NUL, cut to fit; returns buf. */
const char *ebb_memory_event_text(const ebb_memory_event *event, char *buf, size_t cap);

#define EBB_MEMORY_EVENT_TEXT 320 /* enough for any of them */

#define EBB_STATS_LAYERS 256     /* layers with a state of their own in ebb_stats */

typedef struct ebb_stats {
    ebb_phase phase;
    ebb_tier  tier;
    char      cpu[16], io[16];   /* ebb_isa and ebb_io in use: "avx512", "uring" */
    uint32_t  n_threads;

    /* memory, bytes */
    uint64_t  rss_bytes;         /* of the process: the next two and shared memory */
    uint64_t  rss_anon_bytes, rss_file_bytes, rss_peak_bytes;
    uint64_t  budget_bytes;
    uint64_t  weight_bytes, pinned_bytes, mapped_bytes, ring_bytes;
    uint64_t  kv_bytes;          /* the KV pool, without what is spilled to a file */
    uint64_t  kv_memory_bytes;   /* K and V of all sequences: in the pool ... */
    uint64_t  kv_file_bytes;     /* ... and spilled */
    uint64_t  kv_lent_bytes;     /* of kv_bytes, where layers stand until the context grows; also in
                                    pinned_bytes */
    uint64_t  scratch_bytes;     /* activations and the threads' scratch buffers */

    /* what decisions about memory are based on, measured within the last second or so */
    char      mode[16];          /* ebb_mode_name */
    int64_t   available_bytes;   /* memory that could still be taken; below 0: over the limit */
    double    pressure_avg10;    /* memory pressure (PSI "some avg10"), percent; below 0: unknown */
    uint64_t  swap_bytes;        /* of this process */

    /* context, tokens */
    uint32_t  n_ctx, n_ctx_used;
    char      kv_type[16];       /* "f16", "q8_0/q4_0" */

    /* layers */
    uint32_t  n_layers, n_resident;
    uint8_t   layer[EBB_STATS_LAYERS];           /* ebb_layer_state */

    /* the current answer, or the last one */
    uint32_t  prefill_done, prefill_total;       /* prompt tokens to compute */
    double    prefill_tok_s, decode_tok_s;
    double    predicted_decode_tok_s;            /* by the current plan */
    uint32_t  reused_tok, reused_disk_tok, computed_tok, generated_tok;

    /* disk, since the engine was opened */
    uint64_t  read_bytes;        /* weights streamed */
    double    read_tok_bytes;    /* of these, for each token of the current answer */
    double    disk_bytes_s;      /* over the last second */
    double    stall_share;       /* of the answer's time, spent waiting for reads */
    uint64_t  n_passes;          /* forward passes */
    /* streamed experts, in passes of one token, since the engine was opened */
    uint64_t  experts_selected, experts_resident; /* by the router; of these, in memory ... */
    uint64_t  experts_prefetched; /* ... or being read by expert prefetch in the layer before */
    uint64_t  experts_prefetch_reads; /* reads that expert prefetch began */
    double    time_s[EBB_TIME_COUNT];            /* in passes, since the engine was opened ... */
    double    pool_wait_s;       /* ... of that, threads waiting for slices of other threads */
    uint64_t  n_drafted, n_accepted; /* draft tokens; of these, accepted ... */
    uint64_t  n_accepted_reference; /* ... and of those, found in the reference text */
    uint64_t  n_branched;        /* of the accepted, those in branches of a tree of draft tokens */
    uint64_t  draft_bytes;       /* of the draft model in memory; 0: none */

    double    load_s;            /* of ebb_engine_open */
    ebb_memory_event memory_event;               /* the last decision about memory */
    char      left_out[240];     /* is_forced: what is ignored of the file, so answers may be wrong;
                                  * else "" */
} ebb_stats;

/* Of kv_bytes, what neither K and V of sequences nor layers have. */
uint64_t ebb_stats_kv_free_bytes(const ebb_stats *s);

EBB_API_END

#endif
