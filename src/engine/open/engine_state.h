/* open/engine_state.h - an engine: what is constant, and a member for each room that keeps
 * something. */
#ifndef EBB_ENGINE_STATE_H
#define EBB_ENGINE_STATE_H
#include <pthread.h>
#include <stdatomic.h>

#include "ebb/engine.h"
#include "ebb/experimental/plan.h"
#include "memory/budget.h"
#include "memory/calibrate.h"
#include "model/forward.h"
#include "os/map.h"
#include "prefix_cache/persist.h"
#include "session/engine_stats.h"
#include "session/session_impl.h"
#include "speculate/draft_head.h"
#include "speculate/draft_model.h"
#include "speculate/reference_text.h"

struct ebb_engine {
    const ebb_model *model;
    ebb_engine_opts opts;
    ebb_engine  *host;           /* of a draft model's engine: it has threads, cancel flag and
                                    budget; else NULL */
    ebb_machine  machine;        /* as it was at open; speeds are measured when something is
                                    streamed */
    ebb_plan     plan;           /* what was decided at open, and by budget.c since */
    ebb_net      net;
    ebb_forward  run;
    ebb_map      arena;          /* vectors and all buffers of `run` */
    ebb_pool    *pool;
    ebb_res     *res;
    ebb_kv      *kv;
    atomic_bool  cancel, is_cut; /* ebb_forward */

    ebb_session *sessions;
    ebb_session *logits_owner;   /* whose draft tokens the rows of run.buf.logits belong to; NULL:
                                    nobody's */
    uint64_t     clock;          /* of uses: one more with each */
    ebb_prefix_cache cache;
    ebb_draft_model  draft_model;
    ebb_head_drafter head_drafter;
    ebb_reference_text reference;        /* prompt lookup searches it, too */
    ebb_budget       budget;
    ebb_calibration  calibration;

    pthread_mutex_t lock;        /* protects the figures, draft_model.engine and budget.wake */
    ebb_stats         stats;
    ebb_turn_progress turn;
};

/* An engine that drafts for `host`, by a plan of ebb_plan_draft.
 * Errors: as ebb_engine_open. */
EBB_MUST_CHECK
ebb_status ebb_engine_open_draft(ebb_engine *host, ebb_engine **out, ebb_error *err);

#endif
