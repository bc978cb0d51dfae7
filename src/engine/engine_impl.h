/* engine_impl.h - what engine.c, session.c and stats.c share. */
#ifndef EBB_ENGINE_IMPL_H
#define EBB_ENGINE_IMPL_H
#include <pthread.h>
#include <stdatomic.h>

#include "ebb/engine.h"
#include "ebb/plan.h"
#include "ebb/session.h"
#include "kv/kv.h"
#include "model/run.h"
#include "os/map.h"
#include "residency/residency.h"

struct ebb_session {
    ebb_engine  *engine;
    ebb_session *next;           /* in engine->sessions */
    ebb_token   *ids;            /* [n_ctx]; those of table.n_pos positions stand */
    ebb_kv_table table;
    float       *logits;         /* [n_vocab] of the last position, if has_logits */
    bool         has_logits;
    uint64_t     used_at;        /* engine->clock at the last call: who is evicted first */
};

struct ebb_engine {
    const ebb_model *model;
    ebb_plan     plan;           /* what was decided at open */
    ebb_net      net;
    ebb_run      run;
    ebb_map      arena;          /* vectors and all buffers of `run` */
    ebb_pool    *pool;
    ebb_res     *res;
    ebb_kv      *kv;
    ebb_session *sessions;
    uint64_t     clock;
    atomic_bool  cancel;

    pthread_mutex_t lock;        /* protects stats */
    ebb_stats    stats;
    double       append_s;       /* seconds that this turn's decode steps took */
};

/* Empty a session; its blocks go back to the pool. */
void ebb_session_clear(ebb_session *s);

/* Figures of the turn (stats.c). */
void ebb_stats_init(ebb_engine *e, double load_s);
void ebb_stats_prefill_begin(ebb_engine *e, uint32_t n_reused, uint32_t n_total);
void ebb_stats_prefill_step(ebb_engine *e, uint32_t n_done, double seconds);
void ebb_stats_decode_begin(ebb_engine *e);
void ebb_stats_decode_step(ebb_engine *e, double seconds);
void ebb_stats_idle(ebb_engine *e, const ebb_session *s);

#endif
