/* chat/backend/local_priv.h - the inside of the engine's backend: local*.c only.
 *
 * One worker thread owns model, engine and session, waits for a command, and sleeps otherwise.
 * local.c has the thread and the calls of its owner; the others are what the thread does. */
#ifndef EBB_CHAT_LOCAL_PRIV_H
#define EBB_CHAT_LOCAL_PRIV_H
#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "ebb/engine.h"
#include "ebb/experimental/cache_salt.h"

typedef enum ebb_command_kind { LOCAL_IDLE, LOCAL_ANSWER, LOCAL_COMMON_PREFIX, LOCAL_BUDGET,
                                LOCAL_PLAN, LOCAL_REFERENCE, LOCAL_PREFILL,
                                LOCAL_KEEP } ebb_local_command;

typedef struct ebb_local {
    ebb_backend       base;
    ebb_backend_sink *sink;
    void             *arg;
    char             *path;              /* NULL: to be chosen; the worker's own; then: the embedded
                                          * guide */
    char             *draft_path;        /* NULL: none */
    bool              draft_is_optional;
    ebb_model        *draft;             /* the worker's own; outlives the engine */
    ebb_engine_opts   opts;              /* kv_cache_dir is our copy */
    pthread_t         thread;
    atomic_bool       stop;              /* the answer under way must end */

    pthread_mutex_t   lock;              /* protects everything below, and the sink */
    pthread_cond_t    wake, done;        /* for the worker; for a caller of common_prefix */
    ebb_local_command command;
    bool              is_loading, is_answering, quit;
    bool              has_budget, wants_plan;    /* asked for; before the next answer */
    bool              is_setting_budget; /* layers are loaded or evicted for a new budget */
    uint64_t          budget_bytes;
    bool              is_orphan;         /* closed while loading: nobody listens, the worker
                                          * frees */
    int32_t          *ids;               /* of the answer under way: asked for, then generated */
    size_t            n_ids, cap_ids;
    ebb_cache_salt    cache_salt;        /* of the request, as all of these */
    ebb_backend_gap   gap;               /* its ids are ours */
    size_t            n_suffix;
    uint32_t          n_predict, n_answers;
    ebb_sampler_params sampling;
    char             *grammar;           /* NULL: none */
    size_t            n_answer;          /* ids of the answer among those that were asked for */
    int32_t          *prefill_ids;       /* to be computed ahead; NULL: nothing */
    size_t            n_prefill_ids;
    ebb_cache_salt    prefill_salt;
    ebb_backend_gap   prefill_gap;
    int32_t          *keep_ids;          /* of a sequence to be written; NULL: none */
    size_t            n_keep_ids;
    bool              has_reference;     /* a reference text is to be set: */
    int32_t          *reference_ids;     /* NULL: none */
    size_t            n_reference_ids;
    bool              is_prefilling;     /* it is under way: */
    int32_t          *running_ids;       /* these, of which running_done stand and running_end will
                                          * when the pass has ended */
    size_t            n_running, running_done, running_end;
    int32_t          *moved_ids;         /* the worker's own: K and V of these were moved last, when
                                          * this gap was closed; moved_gap.n 0: none were */
    size_t            n_moved;
    ebb_backend_gap   moved_gap;
    ebb_cache_salt    moved_salt;
    size_t            prefilled_from, prefilled_to; /* computed ahead since the last answer; from >
                                                     * to: nothing */
    const int32_t    *common_ids;        /* the question of common_prefix, and its answer */
    const ebb_cache_salt *common_salt;
    size_t            n_common_ids, n_common;

    ebb_model        *model;             /* set once, by the worker, under the lock */
    ebb_engine       *engine;
    ebb_session      *session;           /* the worker's own from here on */
    ebb_detok        *detok;
    uint64_t          last_progress_ns;
} ebb_local;

/* -- local_emit.c: from the worker, unless it says otherwise -- */
/* Tell the owner.  The sink is called with the lock held: what closed the backend is never called
 * again. */
void ebb_local_emit_locked(ebb_local *l, const ebb_backend_event *ev);
void ebb_local_emit(ebb_local *l, const ebb_backend_event *ev);
void ebb_local_emit_text(ebb_local *l, ebb_backend_event_kind kind, const char *text, size_t n);
/* Another id of the sequence, for common_prefix while the answer is under way; under the lock.
 * false: no memory. */
bool ebb_local_append_id(ebb_local *l, int32_t id);
/* Somebody waits for the worker; under the lock. */
bool ebb_local_is_wanted(const ebb_local *l);

/* -- local_load.c: on the worker -- */
/* Open model, draft model, engine and session, and tell the owner READY or FAILED. */
void ebb_local_load(ebb_local *l);

/* -- local_memory.c: on the worker -- */
/* Bring the engine to l->budget_bytes, telling the owner before and after. */
void ebb_local_budget(ebb_local *l);
/* Report the current plan to the owner. */
void ebb_local_plan(ebb_local *l);

/* -- local_prefill.c -- */
/* On the worker: compute what was given to be computed ahead. */
void ebb_local_speculative_prefill(ebb_local *l);
/* Under the lock: an answer to these ids begins; what does not lead to it stops. */
void ebb_local_stop_prefill(ebb_local *l, const int32_t *ids, size_t n);
/* Of the n_reused ids of a turn, how many were computed ahead; and begin to count anew. */
uint32_t ebb_local_count_prefilled(ebb_local *l, uint32_t n_reused);
void ebb_local_set_speculative_prefill(ebb_backend *b, const int32_t *ids, size_t n,
                                       const ebb_cache_salt *cache_salt,
                                       const ebb_backend_gap *gap);

/* -- local_context_shift.c -- */
/* A copy in place of what *to had; NULL: none.  Without memory there is no gap: it costs time
 * only. */
void ebb_local_copy_gap(ebb_backend_gap *to, const ebb_backend_gap *from);
/* On the worker: if K and V of the former sequence are cached past the gap, move those behind it
 * up, unless that was done ahead; *cache_salt is then that of the shifted sequence. */
void ebb_local_shift_context(ebb_local *l, const int32_t *ids, size_t n, const ebb_backend_gap *gap,
                             ebb_cache_salt *cache_salt);

/* -- local_answer.c: on the worker -- */
void ebb_local_answer(ebb_local *l);
/* Before the first token: the answer is of the grammar that was asked for, and so is what there is
 * of it.  Errors: USAGE, and those of ebb_grammar_new. */
EBB_MUST_CHECK
ebb_status ebb_local_constrain(ebb_local *l, ebb_sampler *sampler, ebb_error *err);

/* -- local_several.c: on the worker -- */
/* l->n_answers answers to the computed prompt.  Of the first one: *turn_stats (which has the
 * prompt's figures), *finish, and the cache salt of its END; the END of the others is reported.
 * Errors: those of passes; CANCELED (the first one was cut off), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_local_decode_several(ebb_local *l, ebb_turn_stats *turn_stats, ebb_finish *finish,
                                    ebb_cache_salt *cache_salt, ebb_error *err);

#endif
