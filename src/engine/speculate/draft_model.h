/* speculate/draft_model.h - a draft model: an engine of its own with one sequence, which follows
 * whatever session is drafted for by their common prefix.
 *
 * It borrows the threads and the cancel flag of its host, and neither looks at memory nor learns
 * speeds: the host's plan counts it, and where memory is short the host gives it away before
 * anything else.  It stands above the host's rooms, being an engine (draft_model.c), and they ask
 * it for things: so they know it by a table of what it can do, and by what is theirs of it
 * (draft_model_host.c). */
#ifndef EBB_DRAFT_MODEL_H
#define EBB_DRAFT_MODEL_H
#include <stdatomic.h>
#include <stdbool.h>

#include "ebb/engine.h"
#include "ebb/session.h"
#include "plan/layout.h"
#include "sample/sampler.h"
#include "speculate/draft_length.h"

typedef struct ebb_draft_model_ops {
    /* Open it if the plan has one.  What goes wrong ends it with a line in the stats and is no
     * error. */
    void (*open)(ebb_engine *e);
    void (*close)(ebb_engine *e);

    /* Drafts behind s->ids[0..n), whose last token is not computed yet, paths of at most `max`
     * tokens, to s->drafts.tree, which is empty.  It stays so where that does not pay, or where
     * nothing can be told. */
    void (*draft)(ebb_session *s, uint32_t n, uint32_t max);
    /* The sequence of s is about to forget; so does the draft's if it is the same there. */
    void (*shift)(ebb_session *s, uint32_t from, uint32_t n);
    /* What it has computed is kept on disk. */
    void (*persist)(ebb_engine *e);
} ebb_draft_model_ops;

extern const ebb_draft_model_ops ebb_draft_model_class;

typedef struct ebb_draft_model {
    const ebb_draft_model_ops *ops;      /* NULL: of an engine that is a draft model itself */
    ebb_engine  *engine;         /* NULL: none, or not at present; another thread looks at it with
                                    the host's lock held */
    ebb_session *session;
    ebb_sampler *sampler;
    uint64_t     bytes;          /* that it is planned to take; 0: there is none, or it has ended */
    ebb_draft_length draft_length;
    uint32_t     n_known;        /* passes since it is known what it is worth */
    atomic_bool  is_evicted;     /* the memory-pressure monitor has evicted its weights */
    bool         is_released;    /* it gave its memory away, and may come back */
} ebb_draft_model;

/* As the table says; nothing where there is none. */
void ebb_draft_model_open(ebb_engine *e);
void ebb_draft_model_close(ebb_engine *e);
void ebb_draft_model_draft(ebb_session *s, uint32_t n, uint32_t max);
void ebb_draft_model_shift(ebb_session *s, uint32_t from, uint32_t n);
void ebb_draft_model_persist(ebb_engine *e);

bool ebb_draft_model_is_open(const ebb_engine *e);
/* What became of the draft tokens of the last call. */
void ebb_draft_model_learn(ebb_engine *e, const ebb_draft_outcome *o);
/* A pass of the host with n_tokens columns took so long. */
void ebb_draft_model_learn_pass(ebb_engine *e, uint32_t n_tokens, double seconds);

/* Whether to ask now whether the draft model is worth its memory: something is known, and it was
 * not asked within the last passes. */
bool ebb_draft_model_is_questioned(ebb_engine *e);
/* Whether it is, beside this plan without it. */
bool ebb_draft_model_is_memory_worth(const ebb_engine *e, const ebb_plan *without);
/* Close it for good; `why` is told. */
void ebb_draft_model_end(ebb_engine *e, const char *why);

/* Memory is short.  false: there is nothing to give. */
bool ebb_draft_model_release(ebb_engine *e, int64_t available);
/* From the monitor: its weights at once, as far as it is not computed with; bytes. */
uint64_t ebb_draft_model_evict(ebb_engine *e);
/* If that happened, give the rest, too. */
void ebb_draft_model_follow_monitor(ebb_engine *e);
/* There is room for it again. */
void ebb_draft_model_reload(ebb_engine *e);

#endif
