/* ebb/experimental/plan.h - the memory arithmetic: what would be allocated, which tier,
 * how fast.  The plan is the allocation: ebb_engine_open places buffers by
 * exactly these figures. */
#ifndef EBB_EXPERIMENTAL_PLAN_H
#define EBB_EXPERIMENTAL_PLAN_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/engine.h"
#include "ebb/experimental/type.h"

/* Speed of the kernels with all threads; 0: not measured. */
typedef struct ebb_type_speed {
    double bytes_s;              /* weights taken in per second, one token */
    double mac_s;                /* multiply-adds per second, many tokens */
} ebb_type_speed;

/* What passes take beside their weights' bytes and multiply-adds, with all threads, in seconds; 0:
 * not counted. */
typedef struct ebb_overheads {
    double product_s;            /* of a product of one token, however small: handing it out, edges,
                                  * its end */
    double output_s;             /* of each number that a product of many tokens gives: sums,
                                  * scales, storing it */
    double attend_s;             /* of many tokens: of a query head and a position that it
                                  * sees ... */
    double attend_dim_s;         /* ... and of each element of its rows of K and V there */
    double element_s;            /* of an element on its way into a product: norms, rounding,
                                  * activations */
} ebb_overheads;

/* What EBB_ISA_AUTO is on this machine: "avx512". */
const char *ebb_isa_best(void);

/* The machine that is planned for; ebb_machine_probe fills it from this one.  A figure that is 0
 * was not measured; a usual one is then assumed, or that of another type. */
typedef struct ebb_machine {
    uint64_t available_bytes;    /* what the process may take: min of meminfo, cgroup, rlimit; own
                                  * pages not counted as free */
    char     available_why[80];  /* which of them decided: "cgroup memory.max" */
    uint64_t os_reserve_bytes;   /* what was left to others before that: the machine's reserve */
    uint32_t n_cpus;
    double   memory_bytes_s;     /* of weights of measured_type, one token */
    double   int8_mac_s;         /* multiply-adds by the same kernels, many tokens */
    ebb_type measured_type;      /* Q4_K if it was measured */
    ebb_type_speed types[EBB_TYPE_LIMIT];
    double   sync_s;             /* handing slices of work out and back */
    ebb_overheads overheads;
    double   disk_bytes_s;       /* sustained cold reads of the best reader, while nothing is
                                  * computed */
    double   disk_busy_bytes_s;  /* the same while all threads multiply ... */
    double   busy_share;         /* ... and the share of their usual work that they do meanwhile */
    double   page_cache_share;   /* of the model's file, what is in the page cache */
    /* of the model, from earlier runs: [i] the share of the chosen experts' bytes that is read when
     * there is room for i / 16 of all (1: nothing is known yet); and measured over predicted time
     * of passes (0: unknown) */
    double   expert_miss_rate[17];
    double   expert_slowdown;
} ebb_machine;
/* Fill *out from this machine: memory and CPUs, in a millisecond.  With `measure` also the speed of
 * Q4_K and that of the disk that holds `path` (NULL: none), as ebb_machine_measure does.  Errors:
 * IO, NOTFOUND, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_machine_probe(const char *path, bool measure, ebb_machine *out, ebb_error *err);
/* A machine that is not this one, for plans that depend on nothing that is measured here: the i-th
 * of a table of usual boxes, with what its kernels and its disk are taken to do; false past the
 * last.  The figures are round and typical, not measured. */
typedef struct ebb_machine_kind {
    const char *name, *what;     /* "pi5", "Raspberry Pi 5, 4 cores, 8 GB, NVMe" */
    uint32_t    n_cpus;
    double      ram_bytes;       /* as sold: powers of 1024 */
    double      memory_bytes_s;  /* of weights, one token, all threads */
    double      mac_s;           /* multiply-adds of int8, many tokens, all threads */
    double      disk_bytes_s;
} ebb_machine_kind;
bool ebb_machine_kind_get(size_t i, ebb_machine_kind *out);
/* Fill *out from `k`: all figures that a plan uses, so that ebb_machine_measure has no part in it.
 * Of its memory a system takes 0.4 GiB, and 384 MiB are left to others. */
void ebb_machine_describe(const ebb_machine_kind *k, ebb_machine *out);
/* The same for a box of n_cpus with a memory of so many bytes per second, a usual disk, and
 * available_bytes for this process. */
void ebb_machine_describe_speed(double memory_bytes_s, uint32_t n_cpus, uint64_t available_bytes,
                                ebb_machine *out);

/* Add to *m what a plan for `model` needs and *m does not have yet: the speed of its types with the
 * kernels and threads of `opts` (NULL: defaults) and, with_disk, that of the disk that holds it.
 * What was measured on this machine in the last days comes from $XDG_CACHE_HOME/ebb/speeds; the
 * rest is timed, 20 ms for each type and 0.4 s for a disk, and written there.
 * Errors: NOMEM, IO, UNSUPPORTED (no such kernels). */
EBB_MUST_CHECK
ebb_status ebb_machine_measure(ebb_machine *m, const ebb_model *model, const ebb_engine_opts *opts,
                               bool with_disk, ebb_error *err);

/* A figure that is remembered of this machine: what it does when nobody else uses it. */
typedef struct ebb_known_speed {
    char     name[32];           /* "weights q4_K", "disk 802 uring", "sync" */
    bool     is_rate;            /* value is bytes per second, else seconds */
    double   value;
    int64_t  age_s;              /* since it was seen last; INT64_MAX: dated into the future */
    uint32_t n_seen;             /* measurements that it rests on */
    double   lower;              /* the best of the worse ones that were measured in quiet since
                                  * ... */
    uint32_t n_lower;            /* ... and how many these are; 0: none */
} ebb_known_speed;
#define EBB_MAX_KNOWN_SPEEDS 64u
/* Those for the kernels and threads of `opts` (NULL: defaults), at most `cap` of them; returns how
 * many.  Cost: a small file. */
size_t ebb_machine_known_speeds(const ebb_engine_opts *opts, ebb_known_speed *out, size_t cap);
/* All of them are measured again when they are needed next, and one that is lower displaces what
 * stands at once, if it was measured in quiet.  Error: UNSUPPORTED (no such kernels). */
EBB_MUST_CHECK
ebb_status ebb_machine_doubt_speeds(const ebb_engine_opts *opts, ebb_error *err);

/* One of the readers that can stream weights, as this machine lets it read a file. */
typedef struct ebb_disk_reader {
    char     name[8];            /* "uring", "pread", "mmap" */
    bool     is_allowed;
    bool     is_best;            /* the one that --io auto would take */
    double   bytes_s;            /* cold; 0: the file is too small to say */
    double   cpu_s_per_gb;       /* CPU seconds per 10^9 bytes */
    char     why_not[96];        /* where it is not allowed */
} ebb_disk_reader;
#define EBB_N_DISK_READERS 3
/* Time them on the file at `path`, for a quarter of a second in all.  Errors: IO, NOTFOUND. */
EBB_MUST_CHECK
ebb_status ebb_machine_measure_readers(const char *path, ebb_disk_reader out[EBB_N_DISK_READERS],
                                       ebb_error *err);

typedef struct ebb_plan {
    ebb_tier    tier;
    bool        fits;            /* false: even the smallest does not; `why` says so */
    uint32_t    n_ctx, n_batch, n_threads;
    ebb_kv_type kv_k, kv_v;
    uint32_t    n_layers, n_resident;
    bool        is_mapped;       /* resident weights are the file's own pages, else copies of our
                                  * own */
    bool        streams_output;  /* the output matrix is not resident either, or not all of it */
    bool        is_spread;       /* parts of all layers are resident instead of whole layers ... */
    uint64_t    spread_bytes;    /* ... with so many bytes at most; n_resident is how many layers
                                  * these make up */
    uint64_t    budget_bytes, total_bytes;
    uint64_t    min_bytes;       /* the smallest total under which this context would run */

    /* parts of total_bytes */
    uint64_t    weights_resident_bytes, weights_ring_bytes;
    uint64_t    expert_bytes;    /* the expert cache */
    uint64_t    kv_bytes, activation_bytes, tokenizer_bytes, code_bytes, reserve_bytes;
    uint64_t    draft_bytes;     /* all of the draft model; 0: there is none, or it is left out */

    uint64_t    draft_head_bytes; /* of the weights: what the file's draft head has of its own; 0:
                                   * there is none, or it is not used */
    bool        streams_draft_head; /* a draft token of it would read from disk */
    char        draft_head[100]; /* what is done with it, one line; "" if the file has none */

    uint64_t    kv_spill_bytes;  /* K and V in a file, for lack of memory; not in kv_bytes */

    uint64_t    pass_bytes;      /* weights that one forward pass touches: F */
    uint64_t    stream_bytes;    /* of these, read from disk in each pass: S */
    uint64_t    expert_disk_bytes;       /* of all experts that are read when they are chosen */
    uint64_t    expert_read_bytes;       /* of S: those that are chosen and not in memory */
    double      expert_hit_rate; /* share of the chosen experts that is expected there; 0: none is
                                  * streamed */
    double      predicted_decode_tok_s, predicted_prefill_tok_s;
    double      predicted_full_tok_s;    /* decode with the whole context in use: K and V are read,
                                          * too, those in a file from there */
    double      predicted_load_s;        /* copies of our own are read at open, cold */
    double      predicted_first_token_s; /* of a prompt of 64 tokens, loading included */
    char        why[160];        /* what decided the tier, one line */
    char        left_out[240];   /* "" or, of a forced file, what is not understood and left out:
                                  * answers may be wrong */

    /* Draft tokens.  The figures above are without them. */
    uint32_t    n_draft_max;     /* most draft tokens for a pass */
    double      draft_accept_rate; /* share of draft tokens assumed to be accepted; 0: no draft
                                    * model was given */
    uint32_t    draft_length;    /* the best number of draft tokens for a pass then; 0: none
                                  * pays ... */
    double      draft_tok_s;     /* ... and the speed with them */
    double      no_draft_tok_s;  /* the speed of a plan without the draft model, which has its
                                  * memory for layers */
    char        draft_why[160];  /* what it brings or why it is left out, one line; "" if none was
                                  * given */
} ebb_plan;

/* Plan `m` with `opts` (NULL: defaults) on `machine` into *out.  Pure arithmetic: no I/O, and no
 * memory but a table of the tensors while it counts.
 * A draft model (opts->draft) never changes the context or the type of K and V; it is left out
 * where it does not fit, or would take the place of layers and cost more than it gives.
 * Errors: UNSUPPORTED, FORMAT (the tensors are not those of the architecture), NOMEM, USAGE (the
 * draft model has another vocabulary: says which files and what differs); a model that does not fit
 * is a plan with fits == false. */
EBB_MUST_CHECK
ebb_status ebb_plan_make(const ebb_model *m, const ebb_engine_opts *opts,
                         const ebb_machine *machine, ebb_plan *out, ebb_error *err);

/* What ebb_engine_set_budget(e, bytes) would do: resident layers, predicted speed.
 * Context and KV stay as they are.  out->fits == false: not even without resident
 * layers; out->why says what would.  Costs a millisecond, and once in the engine's
 * life half a second, to measure disk and memory for the first plan that streams.
 * From the thread that runs passes.  Errors: NOMEM, UNSUPPORTED. */
EBB_MUST_CHECK
ebb_status ebb_engine_plan_budget(ebb_engine *e, uint64_t bytes, ebb_plan *out, ebb_error *err);

/* Measure what the plan's prediction lacks: some 20 ms for each type of weights.  Until then an
 * engine's predicted figures are 0, if nothing was measured on this machine before.  From the
 * thread that runs passes.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_engine_measure(ebb_engine *e, ebb_error *err);
/* Read n_bytes of the model's file, cold, with the reader that the engine streams through and
 * nothing computed meanwhile.  Returns bytes per second, 0 where nothing can be read.  From the
 * thread that runs passes, between passes. */
double ebb_engine_read_speed(ebb_engine *e, uint64_t n_bytes);

/* The plan that an engine has at present, and the machine as it was measured for it.
 * From the thread that runs passes. */
void ebb_engine_get_plan(const ebb_engine *e, ebb_plan *plan, ebb_machine *machine);

#endif
