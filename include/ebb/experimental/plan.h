/* ebb/experimental/plan.h - the memory plan: what would be allocated, which layers are resident,
 * how fast that would be.  ebb_engine_open allocates exactly what the plan says. */
#ifndef EBB_EXPERIMENTAL_PLAN_H
#define EBB_EXPERIMENTAL_PLAN_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/engine.h"
#include "ebb/experimental/type.h"

#define EBB_CTX_USUAL 8192u      /* the context of a balanced plan where none is asked for, if the
                                  * model was trained for as much and memory allows it */

/* Speed of the matrix products of a type with all threads; 0: not measured. */
typedef struct ebb_type_speed {
    double bytes_s;              /* bytes of weights per second, batch of one token (GEMV) */
    double mac_s;                /* multiply-adds per second, batch of many (GEMM) */
} ebb_type_speed;

/* What passes take besides reading weights and multiplying, with all threads, in seconds; 0: not
 * counted. */
typedef struct ebb_overheads {
    double product_s;            /* for each product of a batch of one, however small: distributing
                                  * its slices to the threads and waiting for the last */
    double output_s;             /* for each element of the result of a product of a large batch */
    double attend_s;             /* attention of a large batch: for each query head and position
                                  * that it sees ... */
    double attend_dim_s;         /* ... and for each element of its rows of K and V there */
    double element_s;            /* for each activation that is an input of a product: norm,
                                  * quantization, activation function */
    double state_s;              /* for each element of a recurrent state that stays in the cache
                                  * and each multiply-add of a token with it */
} ebb_overheads;

/* What EBB_ISA_AUTO is on this machine: "avx512". */
const char *ebb_isa_best(void);

/* The machine that is planned for; ebb_machine_probe fills it for the one that runs this.  A figure
 * of 0 was not measured; a usual one is then assumed, or that of another type. */
typedef struct ebb_machine {
    uint64_t available_bytes;    /* memory that the process may take: the least of meminfo, cgroup
                                  * and rlimit; its own pages are not counted as free */
    char     available_why[80];  /* which of the three it was: "cgroup memory.max" */
    uint64_t os_reserve_bytes;   /* already subtracted: left for the system and other programs */
    uint64_t address_bytes;      /* of all that it maps, memory or not (ulimit -v); 0: no limit */
    uint64_t promised_bytes;     /* that it may still reserve where vm.overcommit_memory is 2; 0: no
                                  * limit */
    uint32_t n_cpus;
    double   memory_bytes_s;     /* bytes_s of measured_type */
    double   int8_mac_s;         /* mac_s of measured_type */
    ebb_type measured_type;      /* Q4_K if it was measured */
    ebb_type_speed types[EBB_TYPE_LIMIT];
    double   sync_s;             /* distributing slices of work to the threads and joining them */
    ebb_overheads overheads;
    double   disk_bytes_s;       /* sustained cold reads with the best ebb_io, nothing computed
                                  * meanwhile */
    double   disk_busy_bytes_s;  /* the same while all threads compute ... */
    double   busy_share;         /* ... and the share of their usual speed that these reach then */
    double   page_cache_share;   /* share of the model's file that is in the page cache */
    /* expert profile of the model, from earlier runs: [i] the share of the selected experts' bytes
     * that is read from disk when the expert cache holds i / 16 of all (1: unknown); and measured
     * over predicted time of passes (0: unknown) */
    double   expert_miss_rate[17];
    double   expert_slowdown;
} ebb_machine;
/* Fills *out for this machine: memory and CPUs, in a millisecond.  With `measure` also the speed of
 * Q4_K and that of the disk that holds `path` (NULL: none), as ebb_machine_measure does.  Errors:
 * IO, NOTFOUND, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_machine_probe(const char *path, bool measure, ebb_machine *out, ebb_error *err);
/* The latter, for a machine that was probed without: of *m's memory at most a quarter is taken for
 * it, and 30 MB. */
EBB_MUST_CHECK
ebb_status ebb_machine_measure_usual(ebb_machine *m, const char *path, ebb_error *err);
/* A typical computer to plan for instead of this one; its figures are round, not measured. */
typedef struct ebb_machine_kind {
    const char *name, *what;     /* "pi5", "Raspberry Pi 5, 4 cores, 8 GB, NVMe" */
    uint32_t    n_cpus;
    double      ram_bytes;       /* as sold: powers of 1024 */
    double      memory_bytes_s;  /* of weights, batch of one token, all threads */
    double      mac_s;           /* multiply-adds of int8, large batch, all threads */
    double      disk_bytes_s;
} ebb_machine_kind;
/* Entry i of the table of them; false: past the last. */
bool ebb_machine_kind_get(size_t i, ebb_machine_kind *out);
/* Fills *out from `k`, with all figures that a plan uses, so that nothing is measured.  Of its
 * memory 0.4 GiB are taken by the system, and 384 MiB are left for other programs. */
void ebb_machine_describe(const ebb_machine_kind *k, ebb_machine *out);
/* The same for a computer with n_cpus, this memory bandwidth, a usual disk, and available_bytes for
 * this process. */
void ebb_machine_describe_speed(double memory_bytes_s, uint32_t n_cpus, uint64_t available_bytes,
                                ebb_machine *out);

/* Adds to *m the figures that a plan for `model` needs and *m lacks: the speed of its types with
 * the kernels and threads of `opts` (NULL: defaults) and, with_disk, that of the disk that holds
 * it.  Those of the last days come from $XDG_CACHE_HOME/ebb/speeds; the others are measured, 20 ms
 * for each type and 0.4 s for a disk, and written there.
 * Errors: NOMEM, IO, UNSUPPORTED (no such kernels), USAGE (too many threads). */
EBB_MUST_CHECK
ebb_status ebb_machine_measure(ebb_machine *m, const ebb_model *model, const ebb_engine_opts *opts,
                               bool with_disk, ebb_error *err);

/* A stored speed of this machine, as measured while no other program used it. */
typedef struct ebb_known_speed {
    char     name[32];           /* "weights q4_K", "disk 802 uring", "sync" */
    bool     is_rate;            /* value is bytes per second, else seconds */
    double   value;
    int64_t  age_s;              /* since it was last measured; INT64_MAX: dated in the future */
    uint32_t n_seen;             /* measurements that confirm it */
    bool     is_quiet;           /* one of them at least was made while nobody else worked */
    double   lower;              /* the best of the slower results since, on a quiet machine ... */
    uint32_t n_lower;            /* ... and how many there are; 0: none */
} ebb_known_speed;
#define EBB_MAX_KNOWN_SPEEDS 64u
/* The stored speeds for the kernels and threads of `opts` (NULL: defaults), at most `cap` of them;
 * returns how many.  Cost: reads a small file. */
size_t ebb_machine_known_speeds(const ebb_engine_opts *opts, ebb_known_speed *out, size_t cap);
/* Has all of them measured again when they are needed next; a slower result on a quiet machine then
 * replaces the stored one at once.  Error: UNSUPPORTED (no such kernels). */
EBB_MUST_CHECK
ebb_status ebb_machine_doubt_speeds(const ebb_engine_opts *opts, ebb_error *err);

/* One way to read streamed weights (ebb_io), and its speed on a file of this machine. */
typedef struct ebb_disk_reader {
    char     name[8];            /* "uring", "pread", "mmap" */
    bool     is_allowed;
    bool     is_best;            /* EBB_IO_AUTO chooses it */
    double   bytes_s;            /* past the page cache; 0: the file is too small to tell */
    double   cpu_s_per_gb;       /* CPU seconds per 10^9 bytes */
    char     why_not[96];        /* if it is not allowed */
} ebb_disk_reader;
#define EBB_N_DISK_READERS 3
/* Measures them on the file at `path`, for a quarter of a second in all.  Errors: IO, NOTFOUND. */
EBB_MUST_CHECK
ebb_status ebb_machine_measure_readers(const char *path, ebb_disk_reader out[EBB_N_DISK_READERS],
                                       ebb_error *err);

typedef struct ebb_plan {
    ebb_tier    tier;
    bool        fits;            /* false: not even without resident layers; `why` says so */
    uint32_t    n_ctx, n_batch, n_threads;
    ebb_kv_type kv_k, kv_v;
    uint32_t    n_layers, n_resident;
    bool        is_mapped;       /* resident weights are mapped, else pinned */
    bool        streams_output;  /* the output matrix is streamed, or part of it */
    bool        is_spread;       /* a part of each layer is resident instead of whole layers ... */
    uint64_t    spread_bytes;    /* ... with at most so many bytes in all; n_resident is how many
                                  * layers that would be */
    uint64_t    budget_bytes, total_bytes;
    uint64_t    min_bytes;       /* if it does not fit: the smallest budget with which this context
                                  * (and `resident`, where that is asked for) would run */

    /* parts of total_bytes */
    uint64_t    weights_resident_bytes, weights_ring_bytes;
    uint64_t    expert_bytes;    /* the expert cache */
    uint64_t    kv_bytes, activation_bytes, tokenizer_bytes, code_bytes, reserve_bytes;
    uint64_t    draft_bytes;     /* the draft model with all it allocates; 0: none, or left out */

    uint64_t    draft_head_bytes; /* of the weights: those that only the file's draft head has; 0:
                                   * no draft head, or not used */
    bool        streams_draft_head; /* a draft token of it would read from disk */
    char        draft_head[120]; /* how it is used, one line; "" if the file has none */

    uint64_t    kv_spill_bytes;  /* K and V that are spilled; not in kv_bytes */

    /* Where weights are streamed, K and V's memory is lent to layers until the context grows into
     * it.  All figures but those named "at first" are those of a full context. */
    uint64_t    lent_bytes;      /* of kv_bytes, at first; 0: nothing is lent */
    uint64_t    lent_read_bytes; /* of stream_bytes, what is not read then */
    uint32_t    n_resident_first;        /* layers that these and the resident bytes make up */

    uint64_t    pass_bytes;      /* weights that one forward pass reads */
    uint64_t    stream_bytes;    /* of these, from disk in each pass */
    uint64_t    expert_disk_bytes;       /* of all streamed experts */
    uint64_t    expert_read_bytes;       /* of stream_bytes: experts that miss the expert cache */
    double      expert_hit_rate; /* expected share of selected experts that are in the expert cache;
                                  * 0: none is streamed */
    double      predicted_decode_tok_s, predicted_prefill_tok_s; /* at first */
    double      predicted_full_tok_s;    /* decode with the whole context in use, spilled K and V
                                          * read from their file */
    double      compute_s;               /* of a token's time, all but waiting for reads */
    double      predicted_load_s;        /* of ebb_engine_open, with cold reads */
    double      predicted_first_token_s; /* from open to the first token after a prompt of 64 */
    char        why[160];        /* what decided the tier, one line */
    char        left_out[240];   /* is_forced: what is ignored of the file, so answers may be wrong;
                                  * else "" */

    /* Draft tokens.  The figures above are without them. */
    uint32_t    n_draft_max;     /* most draft tokens of a pass */
    uint32_t    n_sequences;     /* that share a pass, as was asked: there is room for their windows
                                  * and states */
    double      draft_accept_rate; /* acceptance rate assumed; 0: no draft model, no head */
    uint32_t    draft_length;    /* the fastest number of draft tokens of a pass at that rate; 0:
                                  * drafting is not faster ... */
    double      draft_tok_s;     /* ... and decode with it */
    double      no_draft_tok_s;  /* decode without the drafter, its memory used for layers */
    char        draft_why[160];  /* what the draft model gains, or why it is left out, one line; ""
                                  * if none was given */
} ebb_plan;

/* Plans `m` with `opts` (NULL: defaults) on `machine` into *out.  Pure arithmetic: no I/O, and no
 * allocation but a table of the tensors during the call.
 * A draft model (opts->draft) never changes the context or the type of K and V; it is left out if
 * it does not fit, or if decode would be slower because layers lose their memory to it.
 * Errors: UNSUPPORTED, FORMAT (the tensors are not those of the architecture), NOMEM, USAGE (the
 * draft model has another vocabulary: the message says what differs); a model that does not fit is
 * a plan with fits == false. */
EBB_MUST_CHECK
ebb_status ebb_plan_make(const ebb_model *m, const ebb_engine_opts *opts,
                         const ebb_machine *machine, ebb_plan *out, ebb_error *err);

/* Predicted seconds of a prompt of n_tokens right after m has been opened by that plan: what is to
 * stay is still being read.  0: it cannot be predicted.  Cost: as ebb_plan_make. */
double ebb_plan_first_prompt_s(const ebb_model *m, const ebb_engine_opts *opts,
                               const ebb_machine *machine, const ebb_plan *plan, uint32_t n_tokens);

/* The plan that ebb_engine_set_budget(e, bytes) would carry out: resident layers, predicted speed.
 * Context and KV types stay as they are.  If out->fits is false, out->why says what would fit.
 * Cost: a millisecond; for the first plan with streamed weights half a second, to measure disk and
 * memory.  From the thread that runs passes.  Errors: NOMEM, UNSUPPORTED. */
EBB_MUST_CHECK
ebb_status ebb_engine_plan_budget(ebb_engine *e, uint64_t bytes, ebb_plan *out, ebb_error *err);

/* Measures the speeds that the plan's prediction lacks: some 20 ms for each type of weights.  Until
 * then an engine's predicted figures are 0, if none were stored.  From the thread that runs passes.
 * Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_engine_measure(ebb_engine *e, ebb_error *err);
/* Predicted seconds of n_tokens of a prompt after n_past that are cached.  is_first: of the first
 * ones after opening, when no expert is in the cache and what is to stay is still being read. */
double ebb_engine_prompt_s(const ebb_engine *e, uint32_t n_past, uint32_t n_tokens, bool is_first);
/* Reads n_bytes of the model's file, past the page cache, as the engine streams weights, with
 * nothing computed meanwhile.  Returns bytes per second; 0: nothing can be read.  From the thread
 * that runs passes, between passes. */
double ebb_engine_read_speed(ebb_engine *e, uint64_t n_bytes);

/* Copies the engine's current plan, and the machine that it was made for.  From the thread that
 * runs passes. */
void ebb_engine_get_plan(const ebb_engine *e, ebb_plan *plan, ebb_machine *machine);

#endif
