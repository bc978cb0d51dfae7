/* ebb/stats.h - the figures of a running engine: one small struct, copied
 * under a lock, that the panel, `run --json` and `bench` all read. */
#ifndef EBB_STATS_H
#define EBB_STATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/version.h"

EBB_API_BEGIN

typedef enum ebb_tier { EBB_TIER_FULL, EBB_TIER_TIGHT, EBB_TIER_STREAMING,
                        EBB_TIER_CRITICAL } ebb_tier;
const char *ebb_tier_name(ebb_tier tier);        /* "full" ... */

typedef enum ebb_layer_state {
    EBB_LAYER_DISK,              /* read again each time it is needed */
    EBB_LAYER_PARTLY,            /* part of it is in memory */
    EBB_LAYER_READING,           /* in the ring, or on its way */
    EBB_LAYER_MAPPED,            /* the file's own pages, all in the page cache */
    EBB_LAYER_PINNED,            /* one anonymous copy of our own */
} ebb_layer_state;

typedef enum ebb_phase {
    EBB_PHASE_LOADING, EBB_PHASE_IDLE, EBB_PHASE_PREFILL, EBB_PHASE_DECODE,
} ebb_phase;

/* What the time of passes goes into. */
typedef enum ebb_pass_time {
    EBB_TIME_MATMUL, EBB_TIME_ATTENTION,
    EBB_TIME_OTHER,              /* norms, activations, rope, K and V stored */
    EBB_TIME_READS,              /* waiting for weights that come from disk */
    EBB_TIME_COUNT
} ebb_pass_time;

/* What was decided about memory.  Beside each: the fields of ebb_memory_event that it fills. */
typedef enum ebb_memory_event_code {
    EBB_MEMORY_NONE,             /* nothing was decided yet */
    EBB_MEMORY_PLANNED,          /* the engine was opened: detail (why this tier, or this reader) */
    EBB_MEMORY_BUDGET_SET,       /* bytes (the budget), detail (why this tier) */
    EBB_MEMORY_LAYERS_EVICTED,   /* n_layers, n_layers_left; by the memory-pressure monitor: bytes,
                                  * bytes_pending */
    EBB_MEMORY_LAYER_RELOADED,   /* layer, n_layers_left (to be reloaded) */
    EBB_MEMORY_EXPERTS_EVICTED,  /* bytes, bytes_left */
    EBB_MEMORY_EXPERTS_RELOADED, /* bytes_left (the expert cache now) */
    EBB_MEMORY_RING_SHRUNK,      /* to one slot */
    EBB_MEMORY_RING_RESTORED,
    EBB_MEMORY_KV_SPILLED,       /* bytes, bytes_left (in the file now) */
    EBB_MEMORY_KV_SPILL_FAILED,  /* detail (why) */
    EBB_MEMORY_KV_RELOADED,      /* bytes, bytes_left (in the file still) */
    EBB_MEMORY_DRAFT_EVICTED,    /* bytes; by the monitor also bytes_pending */
    EBB_MEMORY_DRAFT_RELOADED,
    EBB_MEMORY_DRAFT_ENDED,      /* detail (why): answers go on without the draft model */
    EBB_MEMORY_CACHE_NOTICE,     /* detail (what happened to the KV cache on disk) */
} ebb_memory_event_code;

typedef struct ebb_memory_event {
    ebb_memory_event_code code;
    uint32_t number;             /* of this event, counted since the engine was opened */
    bool     is_by_monitor;      /* in the middle of a pass, by the memory-pressure monitor */
    bool     is_emergency;       /* memory was not short but gone */
    uint32_t layer, n_layers, n_layers_left;
    int64_t  available_bytes;    /* of memory when it was decided; of evictions and spills */
    uint64_t bytes, bytes_left;
    uint64_t bytes_pending;      /* of resident layers, still to be read */
    char     detail[160];        /* one line of visible UTF-8, or "" */
} ebb_memory_event;

/* The event in a line: "memory is short: 512 MiB available; 3 layers evicted, 29 stay".  Written to
 * buf with a final NUL, cut to fit; returns buf. */
const char *ebb_memory_event_text(const ebb_memory_event *event, char *buf, size_t cap);

#define EBB_MEMORY_EVENT_TEXT 320 /* bytes that hold any of them */

#define EBB_STATS_LAYERS 256     /* layers shown one by one; more are counted only */

typedef struct ebb_stats {
    ebb_phase phase;
    ebb_tier  tier;
    char      cpu[16], io[16];   /* kernels and reader in use */
    uint32_t  n_threads;

    /* memory, bytes */
    uint64_t  rss_bytes;         /* RSS: the next two, and what is shared */
    uint64_t  rss_anon_bytes, rss_file_bytes, rss_peak_bytes;
    uint64_t  budget_bytes;
    uint64_t  weight_bytes, pinned_bytes, mapped_bytes, ring_bytes;
    uint64_t  kv_bytes;          /* the pool, as far as it is memory */
    uint64_t  kv_memory_bytes;   /* K and V of the sequence: in it ... */
    uint64_t  kv_file_bytes;     /* ... and in a file */
    uint64_t  scratch_bytes;     /* activations and thread scratch */

    /* what decisions about memory go by, as it was when somebody looked last, within the last
     * second or so */
    char      mode[16];          /* "balanced" ... */
    int64_t   available_bytes;   /* what could still be taken; below 0: less than nothing */
    double    pressure_avg10;    /* percent of the last 10 s that somebody waited for memory (PSI);
                                  * below 0: unknown */
    uint64_t  swap_bytes;        /* of this process */

    /* context, tokens */
    uint32_t  n_ctx, n_ctx_used;
    char      kv_type[16];       /* "f16", "q8_0/q4_0" */

    /* layers */
    uint32_t  n_layers, n_resident;
    uint8_t   layer[EBB_STATS_LAYERS];           /* ebb_layer_state */

    /* speed of the turn under way, or of the last one */
    uint32_t  prefill_done, prefill_total;       /* tokens to compute in this turn */
    double    prefill_tok_s, decode_tok_s;
    double    predicted_decode_tok_s;            /* by the plan that stands */
    uint32_t  reused_tok, reused_disk_tok, computed_tok, generated_tok;

    /* disk, since the engine was opened */
    uint64_t  read_bytes;        /* weights streamed */
    double    read_tok_bytes;    /* of them, for each token of the answer under way, or of the last
                                  * one */
    double    disk_bytes_s;      /* over the last second */
    double    stall_share;       /* of the turn's time, spent waiting for reads */
    uint64_t  n_passes;          /* forward passes */
    /* experts of mixtures that do not all fit; by passes of one column, since the engine was
     * opened */
    uint64_t  experts_selected, experts_resident; /* chosen; of these, in memory when they
                                                   * were ... */
    uint64_t  experts_prefetched; /* ... or on their way, because of expert prefetch in the layer
                                   * before */
    uint64_t  experts_prefetch_reads; /* read by expert prefetch */
    double    time_s[EBB_TIME_COUNT];            /* in passes, since the engine was opened ... */
    double    pool_wait_s;       /* ... and of that, a thread waiting for the slices of the
                                  * others */
    uint64_t  n_drafted, n_accepted; /* draft tokens; of these, accepted, at no pass of their own */
    uint64_t  draft_bytes;       /* of the draft model in memory; 0: none */

    double    load_s;            /* open to ready */
    ebb_memory_event memory_event;               /* the last thing decided about memory */
    char      left_out[240];     /* as in ebb_plan */
} ebb_stats;

EBB_API_END

#endif
