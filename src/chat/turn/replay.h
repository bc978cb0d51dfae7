/* chat/turn/replay.h - answers computed again from what was kept of them (ebb_sample_record), and
 * compared token by token.
 *
 * What is the same here was drawn from the same bits of logits: whatever differs between the two
 * runs in threads, kernels, layers in memory, reuse of K and V or draft tokens has changed
 * nothing. */
#ifndef EBB_CHAT_REPLAY_H
#define EBB_CHAT_REPLAY_H
#include "ebb/engine.h"
#include "tree/tree.h"

typedef enum ebb_replay_outcome { EBB_REPLAY_SAME, EBB_REPLAY_DIFFERS,
                                  EBB_REPLAY_UNKNOWN } ebb_replay_outcome;

typedef struct ebb_replay_answer {
    const ebb_message *message;
    size_t   position;           /* on its path, from 1 */
    ebb_replay_outcome outcome;
    uint32_t n;                  /* tokens that were computed again; DIFFERS: those before the
                                  * difference */
    int32_t  was, is;            /* the tokens that differ; -1: the end of the turn */
    const char *why;             /* UNKNOWN: why it cannot be compared */
} ebb_replay_answer;
typedef void ebb_replay_fn(void *arg, const ebb_replay_answer *a);

/* All answers of the tree, branches too, as ids of `m`; `fn` hears of each.  opts->n_ctx and the
 * type of K and V are those that an answer was drawn with, unless opts names others (no_kv_cache is
 * for the caller to set).  Errors: those of the engine; a difference is none.  Cost: all of the
 * conversation is computed. */
EBB_MUST_CHECK
ebb_status ebb_replay(const ebb_tree *t, const ebb_model *m, const ebb_engine_opts *opts,
                      ebb_replay_fn *fn, void *arg, ebb_error *err);

#endif
