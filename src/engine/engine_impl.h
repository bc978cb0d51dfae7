/* engine_impl.h - what engine.c, session.c and stats.c share. */
#ifndef EBB_ENGINE_IMPL_H
#define EBB_ENGINE_IMPL_H
#include <pthread.h>
#include <stdatomic.h>

#include "ebb/engine.h"
#include "ebb/experimental/cache_salt.h"
#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "kv/kv.h"
#include "kv/kv_disk.h"
#include "model/forward.h"
#include "os/alarm.h"
#include "os/limits.h"
#include "os/map.h"
#include "plan/layout.h"
#include "plan/pass_rows.h"
#include "residency/read_speed.h"
#include "residency/residency.h"
#include "sample/sampler.h"
#include "speculate/draft_length.h"
#include "speculate/prompt_lookup.h"

/* A place for one state of the layers that have one (delta nets): what recurrent
 * layers remember of a prefix cannot be cut like K and V, so copies of it are
 * kept at some positions, from which a sequence goes on. */
typedef struct ebb_state_slot {
    char        *state;          /* [net.state_bytes], in the arena */
    ebb_session *owner;          /* whose live state it is; NULL: a checkpoint, or free */
    bool         is_used;
    bool         is_being_written; /* a checkpoint that is being written to disk: stays as it is */
    uint32_t     n_pos;          /* ids that it stands behind: of a live state, the log has the updates of those that follow ... */
    uint8_t      prefix[16];     /* ... and, of a checkpoint, their hash */
    uint64_t     used_at;
} ebb_state_slot;

/* Where a block is to be had. */
typedef enum ebb_block_source { EBB_BLOCK_UNKNOWN, EBB_BLOCK_NOWHERE, EBB_BLOCK_IN_TABLE, EBB_BLOCK_IN_POOL, EBB_BLOCK_ON_DISK } ebb_block_source;

/* The hash of all tokens up to the end of a block: H(hash of the block before, ids of the block). */
typedef struct ebb_prefix_block {
    uint8_t    hash[16];
    uint8_t    next_parent[16];  /* parent of the block behind it: the hash; where shifted K and V begin, H(hash, salt) */
    ebb_block_source source[EBB_KV_GROUPS]; /* of s->wanted: where the block is */
    bool       is_read, is_bad;  /* of s->wanted: it was read from disk; it could not be */
} ebb_prefix_block;

struct ebb_session {
    ebb_engine  *engine;
    ebb_session *next;           /* in engine->sessions */
    ebb_token   *ids;            /* [n_ctx]; those of table.n_pos positions stand, the last n_pending of them as a guess */
    ebb_block_table table;
    ebb_prefix_block *hashes, *wanted; /* [blocks + 1] of ids, n_hashed of them; of the ids that are asked for */
    uint32_t     n_hashed;       /* full blocks that have got their name */
    float       *logits;         /* [n_vocab] of the last position, if has_logits */
    bool         has_logits;
    ebb_cache_salt cache_salt;   /* of what stands */
    uint32_t     window_from;    /* positions before this one do not stand in the windows' blocks, though these are there */
    ebb_cache_salt next_salt;    /* by the next sync, if has_next_salt */
    bool         has_next_salt;
    uint64_t     used_at;        /* engine->clock at the last call: who is evicted first */
    ebb_state_slot *live;        /* its state, from which that before table.n_pos can be made; NULL: none */
    bool         is_tentative;   /* what is appended may be taken back: a draft model's */

    ebb_prompt_lookup lookup;
    uint32_t     n_pending;      /* computed positions that no one has asked for yet */
    uint32_t     n_drafted;      /* by the last pass; n_pending of them are left */
    bool         is_from_draft_model; /* by the draft model */
    double       pass_s;         /* what it took */
    ebb_sampler_state sampler_state; /* how its tokens are chosen */
};

/* Tokens of the sequence. */
static inline uint32_t ebb_session_length(const ebb_session *s)
{
    return s->table.n_pos - s->n_pending;
}

typedef struct ebb_pressure_monitor ebb_pressure_monitor;

#define EBB_LOADER_BYTES 4096u   /* of a ring that only brings what stays */

/* What is done about memory after open (memory/budget.c). */
typedef struct ebb_budget {
    uint64_t     checked_ns;     /* when memory was looked at last */
    uint64_t     evicted_ns;     /* when layers were let go last; 0: never */
    uint64_t     reload_tried_ns; /* when the last tried to come back */
    uint32_t     n_passes_unchecked; /* passes since the last look */
    atomic_uint  n_evicted;      /* layers let go that the plan has as resident */
    atomic_bool  is_ring_minimal; /* the ring has one slot, experts the least memory */
    bool         is_spill_refused; /* K and V cannot go to a file: that was said */
    uint64_t     expert_bytes;   /* memory of streamed experts as it is */
    ebb_expert_profile uses;     /* of experts; of none if the model has none */
    uint64_t     n_saved_choices; /* choices that had been counted when it was saved */
    ebb_expert_counts learned;   /* what had been counted when their use was learned last */
    bool         is_open;        /* these two: */
    int          psi_fd;         /* tells of pressure; -1: the system has no such thing */
    ebb_limits_gauge gauge;      /* of the cgroup that limits us */
    ebb_pressure_monitor *monitor; /* NULL: nobody looks but the passes */
    void       (*wake)(void *arg);       /* it has let layers go; under the engine's lock */
    void        *wake_arg;
    atomic_ullong cache_bytes;   /* of its page cache, at the last whole look ... */
    uint64_t     n_refaults, n_faults;   /* ... and these counters, as they were then */
    double       correction;     /* measured time of a pass to predicted; 0: none was measured yet */
    double       applied;        /* the correction that the plan's prediction has already; 0: none */
    bool         has_disk;       /* the readers were measured: */
    ebb_disk_speeds disk;
    ebb_speeds   known;          /* what was measured on this machine before */
    uint64_t     types;          /* of the model, a bit each */
    ebb_pass_rows rows;          /* of one column, since anything was learned */
    ebb_company_mark row_begin, turn_begin;
    double       turn_company;   /* of others, from the turn's begin to the last row's end; 1: not known */
} ebb_budget;

/* The draft model (speculate/draft_model.c). */
typedef struct ebb_draft_model {
    ebb_engine  *engine;         /* NULL: none, or not at present; another thread looks at it with the host's lock held */
    ebb_session *session;
    ebb_sampler *sampler;
    uint64_t     bytes;          /* that it is planned to take; 0: there is none, or it has ended */
    ebb_draft_length draft_length;
    double       probability[EBB_DRAFT_MAX_MODEL]; /* of the guesses under way, by the draft model */
    atomic_bool  is_evicted;     /* the memory-pressure monitor has evicted its weights */
    bool         is_released;    /* it gave its memory away, and may come back */
} ebb_draft_model;

struct ebb_engine {
    const ebb_model *model;
    ebb_engine_opts opts;
    ebb_engine  *host;           /* of a draft model's engine: it has threads, cancel flag and budget; else NULL */
    ebb_draft_model draft_model;
    ebb_machine  machine;        /* as it was at open; speeds are measured when something is streamed */
    ebb_plan     plan;           /* what was decided at open, and by budget.c since */
    ebb_budget   budget;
    ebb_net      net;
    ebb_forward  run;
    ebb_map      arena;          /* vectors and all buffers of `run` */
    ebb_pool    *pool;
    ebb_res     *res;
    ebb_kv      *kv;
    ebb_kv_disk *disk;           /* NULL: nothing is kept */
    uint8_t      shape[16];      /* what K and V belong to: model, types, layout */
    ebb_session *sessions;
    ebb_state_slot slots[EBB_N_STATE_SLOTS]; /* of run.n_states; without states none is used */
    ebb_session *state_log_owner;        /* whose updates run.state_log has; NULL: nobody's */
    ebb_session *logits_owner;   /* whose guess the rows of run.logits belong to; NULL: nobody's */
    uint64_t     clock;
    atomic_bool  cancel, is_cut; /* ebb_forward */

    pthread_mutex_t lock;        /* protects stats */
    ebb_stats    stats;
    uint32_t     n_under_way;    /* columns of the prompt's pass under way */
    double       append_s;       /* seconds that this turn's decode steps took */
    uint64_t     turn_ns, turn_stall_ns; /* the clock, and all waiting until then, when the turn began */
};

/* Empty a session; its blocks go back to the pool. */
void ebb_session_clear(ebb_session *s);

/* Blocks are short: another sequence gives way, the one not used for longest, or the
 * writer comes back with some.  false: there is nothing to be had. */
bool ebb_session_evict_other(ebb_session *s);
/* Room for n_pos positions; other sequences give way.  Errors: BUDGET, CONTEXT. */
EBB_MUST_CHECK
ebb_status ebb_session_reserve(ebb_session *s, uint32_t n_pos, ebb_error *err);

/* Compute ids[0..n) behind what stands in one pass, the last n_pending of them as a guess.
 * On failure nothing was added, but a state that was under way is lost. */
EBB_MUST_CHECK
ebb_status ebb_session_run_pass(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_pending, uint32_t prompt_end,
                              ebb_batch *p, ebb_error *err);

/* -- Guesses (speculate/speculate.c): appending computes what may come next in the same pass -- */

/* One more session of e that may guess. */
void ebb_speculate_init(ebb_session *s);
/* If id was guessed: it stands, and so do its logits. */
bool ebb_speculate_accept(ebb_session *s, ebb_token id);
/* Compute id, which is none of a guess under way, with a new guess behind it. */
EBB_MUST_CHECK
ebb_status ebb_speculate_append(ebb_session *s, ebb_token id, ebb_error *err);
/* Forget the guess: the table holds the sequence and no more.  is_rejected: what comes instead is another token. */
void ebb_speculate_discard(ebb_session *s, bool is_rejected);

/* -- A draft model (speculate/draft_model.c) --
 *
 * It is an engine of its own with one sequence, which follows whatever session is guessed for by their common prefix.
 * It borrows the threads and the cancel flag of its host, and neither looks at memory nor learns speeds: the host's plan counts
 * it, and where memory is short the host gives it away before anything else. */

/* Open it if the plan has one.  What goes wrong ends it with a line in the stats and is no error. */
void ebb_draft_model_open(ebb_engine *e);
void ebb_draft_model_close(ebb_engine *e);
static inline bool ebb_draft_model_is_open(const ebb_engine *e)
{
    return e->draft_model.engine != NULL;
}
/* What may follow ids[0..n) in s, at most `max` tokens to out; 0 where it does not pay or cannot be told. */
uint32_t ebb_draft_model_draft(ebb_session *s, const ebb_token *ids, uint32_t n, ebb_token *out, uint32_t max);
/* Of the n guesses of the last call n_accepted were chosen; the next was not, if is_rejected, else that is not known. */
void ebb_draft_model_learn(ebb_engine *e, uint32_t n, uint32_t n_accepted, bool is_rejected);
/* A pass of the host with n_tokens columns took so long. */
void ebb_draft_model_learn_pass(ebb_engine *e, uint32_t n_tokens, double seconds);
/* The sequence of s is about to forget; so does the draft's if it is the same there. */
void ebb_draft_model_shift(ebb_session *s, uint32_t from, uint32_t n);
/* What it has computed is kept on disk. */
void ebb_draft_model_persist(ebb_engine *e);
/* Memory is short.  false: there is nothing to give. */
bool ebb_draft_model_release(ebb_engine *e, int64_t available);
/* From the monitor: its weights at once, as far as it is not computed with; bytes. */
uint64_t ebb_draft_model_evict(ebb_engine *e);
/* If that happened, give the rest, too. */
void ebb_draft_model_follow_monitor(ebb_engine *e);
/* There is room for it again. */
void ebb_draft_model_reload(ebb_engine *e);

/* An engine that guesses for `host`, by a plan of ebb_plan_draft. */
EBB_MUST_CHECK
ebb_status ebb_engine_open_draft(ebb_engine *host, ebb_engine **out, ebb_error *err);

/* -- Prefixes: what is there (prefix_cache/prefix.c), and fetching it (prefix_cache/prefix_fetch.c) -- */

/* The longest beginning of ids that is there. */
typedef struct ebb_prefix {
    const ebb_token *ids;
    uint32_t         n_ids;
    const ebb_cache_salt *cache_salt; /* under which they are looked for */
    ebb_session     *from;       /* whose sequence shares most with them, and ... */
    uint32_t         n_common;   /* ... how many positions */
    uint32_t         n_full;     /* blocks that are there from the beginning on, and ... */
    ebb_block_source part;      /* ... where the ... */
    uint32_t         n_part;     /* ... n_part positions behind them are */
    uint32_t         child[EBB_KV_GROUPS];       /* in the pool: blocks that begin with them */
    uint32_t         n_pos;      /* positions that can be gone on from, as far as K and V are concerned */
    bool             is_current; /* these are all that s holds, and nothing changes */
} ebb_prefix;

/* Fill the links s->want and *p.  with_logits: those of the last id shall be known or be computed. */
void ebb_prefix_lookup(const ebb_session *s, const ebb_token *ids, uint32_t n, const ebb_cache_salt *cache_salt, bool with_logits,
                     ebb_prefix *p);
/* The file of a kind for block i of s->want and what is behind it, of which n_ids are of interest. */
ebb_kv_file ebb_prefix_disk_item(const ebb_session *s, ebb_kv_file_kind kind, const ebb_token *ids, uint32_t i, uint32_t n_ids);
/* The state on disk that stands deepest in ids[0..n), deeper than n_min; its position, or 0. */
uint32_t ebb_prefix_checkpoint_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_min, ebb_kv_file *out);
/* The shift under which ids are looked for first. */
ebb_cache_salt ebb_prefix_choose_salt(const ebb_session *s, const ebb_token *ids, size_t n);
/* Hold the longest prefix of ids that can be gone on from; returns its length.
 * Where all of ids are found but their logits, the last one is left out. */
uint32_t ebb_prefix_reuse(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t *n_disk);
/* Name the blocks that were filled. */
void ebb_prefix_hash_blocks(ebb_session *s);
/* Another shift: the blocks from there on get other names. */
void ebb_prefix_set_salt(ebb_session *s, const ebb_cache_salt *cache_salt);

/* -- The KV cache on disk (prefix_cache/persist.c) -- */

/* Without a folder to write to there is none; the log says why. */
void ebb_persist_open(ebb_engine *e, const ebb_engine_opts *o);
/* Write what waits. */
void ebb_persist_close(ebb_engine *e);
/* Give free what was written; `wait`: at least one, if any is under way.  false: there was nothing. */
bool ebb_persist_reap(ebb_engine *e, bool wait);

/* -- States (prefix_cache/checkpoint.c); without layers that have one these do nothing -- */

/* Slots for the states that were placed. */
void ebb_checkpoint_init(ebb_engine *e);
/* How many of ids[0..n) the live state of s has seen, or sees by the log, and nothing else; 0: it has seen others. */
uint32_t ebb_state_live_prefix(const ebb_session *s, const ebb_token *ids, uint32_t n);
/* The largest n_pos <= n for which a state of ids[0..n_pos) exists; the live one of s can be that of n_live of them. */
uint32_t ebb_checkpoint_find(const ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live);
/* Make it the live state of s; returns n_pos. */
uint32_t ebb_checkpoint_restore(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live);
/* Whether s can go on from table.n_pos. */
bool ebb_state_is_live(const ebb_session *s);
/* A checkpoint of s as it stands, which stays until is_being_written is taken back; NULL: no state. */
ebb_state_slot *ebb_checkpoint_pin(ebb_session *s);
/* A slot to be filled from elsewhere; then it stands behind ids[0..n_pos), or is free again.  NULL: none is to be had. */
ebb_state_slot *ebb_state_slot_take(ebb_session *s);
void ebb_state_slot_set_prefix(ebb_state_slot *slot, const ebb_token *ids, uint32_t n_pos);
void ebb_state_slot_free(ebb_state_slot *slot);
/* s has no live state any more. */
void ebb_state_drop_live(ebb_session *s);

#define EBB_MAX_CHECKPOINTS 4u
typedef struct ebb_checkpoint_plan {
    ebb_state_slot *slots[EBB_MAX_CHECKPOINTS];
    ebb_checkpoint checkpoints[EBB_MAX_CHECKPOINTS];
    uint32_t  n;
} ebb_checkpoint_plan;
/* A pass over n columns from pos0 on, of which the tokens before p->commit_pos are certain: the state
 * goes into p, and the log is free for its updates (what another sequence has there is applied).
 * p->commit_pos becomes what the log has room for. */
void ebb_state_begin_pass(ebb_session *s, uint32_t pos0, uint32_t n, ebb_batch *p);
/* It was done. */
void ebb_state_end_pass(ebb_session *s, const ebb_batch *p);

/* Checkpoints that the pass shall make: at fixed distances, and at `prompt_end` if it is in there. */
void ebb_checkpoint_plan_pass(ebb_session *s, const ebb_batch *p, uint32_t prompt_end, ebb_checkpoint_plan *m);
/* The pass was done: s->ids holds its tokens. */
void ebb_checkpoint_commit(ebb_session *s, const ebb_checkpoint_plan *m);
void ebb_checkpoint_abandon(const ebb_checkpoint_plan *m);

/* Bring the groups into the states of the plan: measure kernels and readers and choose one if it
 * streams, pin what it pins.  Errors: those of ebb_res_set_state. */
EBB_MUST_CHECK
ebb_status ebb_budget_open(ebb_engine *e, ebb_progress_fn *progress, void *arg, ebb_error *err);
void ebb_budget_close(ebb_engine *e);            /* nobody looks at memory any more */
/* -- Speeds (memory/calibrate.c): remembered, measured when they are needed, corrected by what passes take -- */

/* What is known of this machine and disk. */
void ebb_calibrate_open(ebb_engine *e);
void ebb_calibrate_close(ebb_engine *e);
/* Measure what a prediction of `p` lacks; of the disk only if it streams.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_calibrate_measure(ebb_engine *e, const ebb_plan *p, ebb_error *err);
/* A pass of one column took so long, predicted_s with neither correction nor company. */
void ebb_calibrate_pass(ebb_engine *e, double seconds, double predicted_s);
/* Before the next turn, with the lock held: predict by the best passes of the last one from now on. */
void ebb_calibrate_turn(ebb_engine *e);

/* What tells of pressure (memory/reclaim.c). */
void ebb_reclaim_open(ebb_engine *e);
void ebb_reclaim_close(ebb_engine *e);           /* behind ebb_res_close, whose readers ask for room */
/* The plan is there, or another one. */
void ebb_reclaim_set_plan(ebb_engine *e);
/* Something of the group shall be resident; and is. */
bool ebb_reclaim_group_is_planned(const ebb_engine *e, uint32_t group);
bool ebb_reclaim_group_is_resident(const ebb_engine *e, uint32_t group);
/* Before a pass: the files are unchanged; memory is looked at, and given back if it is short. */
EBB_MUST_CHECK
ebb_status ebb_reclaim_before_pass(ebb_engine *e, ebb_error *err);
/* Between turns; see ebb_engine_idle. */
bool ebb_reclaim_idle(ebb_engine *e);
/* Within a pass, between layers: give back if memory is short. */
void ebb_reclaim_between_layers(ebb_engine *e);

/* -- A thread that looks while passes are long or nobody asks anything (memory/pressure_monitor.c) --
 *
 * It does one thing: where copies of weights are held and memory is short, it lets groups go that are not being
 * computed with (ebb_res_evict), as many as bring back what should be left.  All else is for the passes' thread.
 * What is still to be read into such copies counts as taken, and goes first. */

/* Without one (no memory for a thread) only the passes look. */
void ebb_pressure_monitor_open(ebb_engine *e);
void ebb_pressure_monitor_stop(ebb_engine *e);   /* its thread has ended; ebb_pressure_monitor_has_headroom still answers */
void ebb_pressure_monitor_close(ebb_engine *e);
/* What it goes by, after open and whenever the plan has changed. */
void ebb_pressure_monitor_set(ebb_engine *e, bool has_copies, uint64_t floor_bytes);
/* A pass begins or goes on: looks come often from here on, for a second. */
void ebb_pressure_monitor_wake(ebb_engine *e);
/* Groups that it let go since the last call. */
uint32_t ebb_pressure_monitor_take_n_evicted(ebb_engine *e);
/* Whether memory for n_bytes of a layer is there now; if not, it looks.  From any thread (ebb_headroom). */
bool ebb_pressure_monitor_has_headroom(void *engine, uint64_t n_bytes);
/* Whether it found memory short since the last call: a whole look is due. */
bool ebb_pressure_monitor_take_alert(ebb_engine *e);
/* Nobody else needs to look while idle. */

/* Show what was decided about memory, in the figures and in the trace.  The number is given here. */
void ebb_stats_memory_event(ebb_engine *e, const ebb_memory_event *event);
/* An event of which only the code and the detail (NULL: none) say something. */
void ebb_stats_memory_notice(ebb_engine *e, ebb_memory_event_code code, const char *detail);
/* Blocks of K and V have gone to the file, or come from it. */
void ebb_stats_kv(ebb_engine *e);
/* Figures of the turn (session/engine_stats.c). */
void ebb_stats_init(ebb_engine *e, double load_s);
void ebb_stats_prefill_begin(ebb_engine *e, uint32_t n_reused, uint32_t n_disk, uint32_t n_total);
/* A pass over n columns of the prompt begins: until the step, its layers count as a part of it. */
void ebb_stats_prefill_pass(ebb_engine *e, uint32_t n);
void ebb_stats_prefill_step(ebb_engine *e, uint32_t n_done, double seconds);
void ebb_stats_decode_begin(ebb_engine *e);
/* had_draft: the pass had more columns than one. */
void ebb_stats_decode_step(ebb_engine *e, double seconds, bool was_drafted, bool had_draft);
void ebb_stats_draft(ebb_engine *e, uint32_t n_drafted);
void ebb_stats_idle(ebb_engine *e, const ebb_session *s);

#endif
