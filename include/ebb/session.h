/* ebb/session.h - one sequence of tokens in an engine, and the sampler.
 *
 * A session is the token ids whose K and V stand in the pool.  `sync` makes it
 * hold a given list of ids, reusing the longest common prefix (of this
 * session, then of any other sequence in RAM, then on disk) and computing
 * the rest.  Logits of a position are bit-identical whichever way it was
 * reached.  All calls of one engine come from one thread. */
#ifndef EBB_SESSION_H
#define EBB_SESSION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"

EBB_API_BEGIN

typedef struct ebb_session ebb_session;

/* An empty sequence in `e`, which must outlive it.  The caller owns *out; NULL on failure.
 * Sequences share the engine's KV pool: one that needs room takes it from those used longest ago,
 * which then have to compute again.  Error: NOMEM.
 * Cost: memory for the logits of one position and for tables; none for K and V. */
EBB_MUST_CHECK
ebb_status ebb_session_new(ebb_engine *e, ebb_session **out, ebb_error *err);
void ebb_session_free(ebb_session *s);           /* NULL is fine */

typedef struct ebb_sync_result {
    uint32_t n_prompt;           /* ids asked for: n_reused + n_computed */
    uint32_t n_reused;           /* of these, K and V were already there ... */
    uint32_t n_reused_disk;      /* ... and of the reused, were read from disk */
    uint32_t n_computed;
    double   seconds;            /* the sync took */
} ebb_sync_result;

/* Make the sequence exactly ids[0..n).  On success the logits of position n-1
 * are ready.  n == 0 empties it.  `result` may be NULL.  After EBB_CANCELED
 * the chunks that were finished stay, and the next sync reuses them.
 * Errors: CONTEXT (n > n_ctx: nothing was changed), CANCELED, IO. */
EBB_MUST_CHECK
ebb_status ebb_session_sync(ebb_session *s, const ebb_token *ids, size_t n,
                            ebb_sync_result *result, ebb_error *err);

/* How many of ids[0..n) a sync would reuse; computes nothing. */
size_t ebb_session_common_prefix(const ebb_session *s, const ebb_token *ids, size_t n);

/* Add one token and compute its logits.  Errors as sync.  The same pass may compute
 * tokens that are likely to follow; if the next call adds one of these, it costs
 * nothing.  Logits are the same bits with and without. */
EBB_MUST_CHECK
ebb_status ebb_session_append(ebb_session *s, ebb_token id, ebb_error *err);

/* Call it at the end of a turn: the sequence's K and V are persisted, for any later session of this
 * model.  Returns at once; a thread of low priority writes what is not there yet.
 * A failure is an event (ebb_stats.memory_event) and costs only time. */
void ebb_session_persist(ebb_session *s);

/* -- Context shift ------------------------------------------------------------ */

/* Why this model cannot drop the middle of a sequence ("recurrent layers remember
 * all tokens"); NULL if it can. */
const char *ebb_session_cannot_shift(const ebb_session *s);

/* Drop the positions [from, from + n) of the sequence.  The positions behind them move up by n:
 * their V stays, their K is re-rotated (RoPE), so nothing is computed.  The logits of the
 * last position stay, if it is one of those.  These K and V are of tokens that have seen what was
 * dropped, so logits after this are not those of computing the shorter ids.  They are never
 * found in place of computed ones (ebb_cache_salt tells them apart).
 * A sync of the ids that remain (ebb_session_ids), and more behind them, goes on from there.
 * Cost: copying the K and V behind the gap.
 * Errors, all of which change nothing: UNSUPPORTED (ebb_session_cannot_shift says why, or a sliding
 * window would see positions that are gone; a sync of the shorter ids computes them instead);
 * USAGE (no such range); BUDGET (no room to copy what other sequences share). */
EBB_MUST_CHECK
ebb_status ebb_session_shift(ebb_session *s, uint32_t from, uint32_t n, ebb_error *err);

/* The ids of the sequence; valid until the next call that changes the session. */
const ebb_token *ebb_session_ids(const ebb_session *s, size_t *n);

/* n_vocab logits of the last position; NULL if the session is empty.  Valid
 * until the next call. */
const float *ebb_session_logits(const ebb_session *s);

/* -- Sampling ---------------------------------------------------------------- */
typedef struct ebb_sampler_params {
    float    temp;               /* 0: greedy */
    uint32_t top_k;              /* 0: off */
    float    top_p, min_p;       /* 1 and 0: off */
    float    repeat_penalty;     /* 1: off */
    uint32_t repeat_last_n;      /* tokens looked back upon */
    uint64_t seed;
} ebb_sampler_params;
ebb_sampler_params ebb_sampler_params_default(void); /* 0.7, 40, 0.95, 0.05, 1.0, 64, seed 0 = from
                                                      * the clock */

typedef struct ebb_sampler ebb_sampler;
/* Of *p, NULL: the defaults.  Allocates all it will need for n_vocab tokens.  Returns NULL: out of
 * memory. */
ebb_sampler *ebb_sampler_new(const ebb_sampler_params *p, size_t n_vocab);
void ebb_sampler_free(ebb_sampler *s);
/* Choose a token.  `recent` are the last n ids of the sequence (for the
 * penalty).  The same logits, recent and seed history give the same token. */
ebb_token ebb_sampler_sample(ebb_sampler *s, const float *logits, const ebb_token *recent,
                             size_t n);
/* The same with the session's logits and ids.  From here on a draft model (ebb_engine_opts.draft)
 * drafts what this sampler would choose next, so use this one where you have a session. */
ebb_token ebb_session_sample(ebb_session *s, ebb_sampler *sampler);

EBB_API_END

#endif
