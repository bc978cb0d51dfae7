/* memory/budget.h - what is done about memory after open: the states of the plan are brought about
 * (budget.c), memory is given back while a model answers and taken again between turns
 * (reclaim.c). */
#ifndef EBB_BUDGET_H
#define EBB_BUDGET_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "ebb/engine.h"
#include "memory/evict_step.h"
#include "memory/pressure_monitor.h"
#include "os/limits.h"

#define EBB_LOADER_BYTES 4096u   /* of a ring that only brings what stays */

/* What is known of memory when decisions are made. */
typedef struct ebb_memory_snapshot {
    int64_t  available_bytes;    /* what could still be taken without anybody's loss */
    uint64_t left_bytes;         /* the same as the machine and the cgroup see it, who count the
                                    file's pages that hold our weights as free */
    double   pressure_avg10;     /* ebb_limits */
    uint64_t swap_bytes;         /* of us */
} ebb_memory_snapshot;

typedef struct ebb_budget {
    uint64_t     checked_ns;     /* when memory was checked last */
    const char  *root;           /* prefix of /proc and /sys for full checks (a test's fake tree);
                                    NULL: none */
    uint64_t     evicted_ns;     /* when layers were evicted last; 0: never */
    uint64_t     swap_seen;      /* of us in swap, when that was a sign, or less since */
    ebb_evict_step step;         /* the last one of passes ... */
    bool         was_quarter;    /* ... took a quarter of what was resident */
    uint64_t     reload_tried_ns;        /* when the last was tried to be reloaded */
    uint64_t     reloaded_ns;    /* when something was, since the last eviction; 0: nothing */
    uint64_t     calm_ns;        /* so long after an eviction nothing is reloaded */
    uint32_t     n_passes_unchecked;     /* passes since the last check */
    atomic_uint  n_evicted;      /* layers evicted that the plan has as resident */
    atomic_bool  is_ring_minimal;        /* the ring has one slot, experts the least memory */
    bool         is_spill_refused;       /* K and V cannot go to a file: that was said */
    uint64_t     expert_bytes;   /* memory of streamed experts as it is */
    bool         is_open;        /* these two: */
    int          psi_fd;         /* tells of pressure; -1: the system has no such thing */
    ebb_limits_gauge gauge;      /* of the cgroup that limits us */
    ebb_pressure_monitor *monitor;       /* NULL: memory is checked by passes alone */
    void       (*wake)(void *arg);       /* it has evicted layers; under the engine's lock */
    void        *wake_arg;
    atomic_ullong cache_bytes;   /* of its page cache, at the last full check ... */
    uint64_t     n_refaults, n_faults;   /* ... and these counters, as they were then */
    pthread_mutex_t snapshot_lock;       /* protects these: */
    ebb_memory_snapshot snapshot;        /* by the last full check */
    uint64_t     snapshot_ns;    /* when that was; 0: never */
} ebb_budget;

/* Bring the groups into the states of the plan: measure kernels and readers and choose one if it
 * streams, pin what it pins.  Errors: those of ebb_res_set_state. */
EBB_MUST_CHECK
ebb_status ebb_budget_open(ebb_engine *e, ebb_progress_fn *progress, void *arg, ebb_error *err);
/* Before a pass, now and then: whether the draft model is worth the memory that it takes from
 * layers.  If not it ends for good, and they get it.  Errors: as of open. */
EBB_MUST_CHECK
ebb_status ebb_budget_question_draft_model(ebb_engine *e, ebb_error *err);
void ebb_budget_close(ebb_engine *e);    /* memory is not watched any more */

/* -- Groups: the layers, and behind them the output matrix (groups.c) -- */

/* Something of the group shall be resident; and is. */
bool ebb_reclaim_group_is_planned(const ebb_engine *e, uint32_t group);
bool ebb_reclaim_group_is_resident(const ebb_engine *e, uint32_t group);
/* What of it is in memory and may be evicted: what is resident counts one, what is lent another. */
uint32_t ebb_reclaim_count_parts(const ebb_engine *e, uint32_t group);
/* So many parts were evicted: how many of layers, and whether of the output matrix, which had
 * output_before.  From any thread. */
void ebb_reclaim_tell_evicted(const ebb_engine *e, uint32_t n, uint32_t output_before,
                              ebb_memory_event *event);
/* The event names the output matrix. */
void ebb_reclaim_tell_output(ebb_memory_event *event);

/* -- Giving back (reclaim.c) -- */

void ebb_reclaim_open(ebb_engine *e);
void ebb_reclaim_close(ebb_engine *e);   /* behind ebb_res_close, whose readers ask for room */
/* The last snapshot; a new one if that is more than a second old.  From any thread. */
ebb_memory_snapshot ebb_reclaim_last_snapshot(ebb_engine *e);
/* The plan is there, or another one. */
void ebb_reclaim_set_plan(ebb_engine *e);
/* A turn begins: what the monitor has evicted is read by the ring, and if memory is short it is
 * given back.  Nothing is reloaded. */
void ebb_reclaim_before_turn(ebb_engine *e);
/* Before a pass: the files are unchanged; memory is checked, and given back if it is short. */
EBB_MUST_CHECK
ebb_status ebb_reclaim_before_pass(ebb_engine *e, ebb_error *err);
/* Within a pass, between layers: give back if memory is short. */
void ebb_reclaim_between_layers(ebb_engine *e);
/* Between turns: a step of what is to be reloaded; see ebb_engine_idle. */
bool ebb_reclaim_idle(ebb_engine *e);

#endif
