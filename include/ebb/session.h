/* ebb/session.h - one timeline of tokens in an engine, and the sampler.
 *
 * A session is the token ids whose K and V stand in the pool.  `sync` makes it
 * hold a given list of ids, reusing the longest common prefix (of this
 * session, then of any other timeline in RAM, then on disk) and computing
 * the rest.  Logits of a position are bit-identical whichever way it was
 * reached.  All calls of one engine come from one thread. */
#ifndef EBB_SESSION_H
#define EBB_SESSION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"

typedef struct ebb_session ebb_session;

EBB_MUST_CHECK
ebb_status ebb_session_new(ebb_engine *e, ebb_session **out, ebb_error *err);
void ebb_session_free(ebb_session *s);           /* NULL is fine */

typedef struct ebb_receipt {
    uint32_t n_prompt;           /* ids asked for */
    uint32_t n_reused;           /* of these, already there ... */
    uint32_t n_reused_disk;      /* ... and of the reused, read from disk */
    uint32_t n_computed;
    double   seconds;
} ebb_receipt;

/* Make the timeline exactly ids[0..n).  On success the logits of position n-1
 * are ready.  n == 0 empties it.  `receipt` may be NULL.  After EBB_CANCELED
 * the chunks that were finished stand and are reused by the next sync.
 * Errors: CONTEXT (n > n_ctx: nothing was changed), CANCELED, IO. */
EBB_MUST_CHECK
ebb_status ebb_session_sync(ebb_session *s, const ebb_token *ids, size_t n,
                            ebb_receipt *receipt, ebb_error *err);

/* How many of ids[0..n) a sync would reuse; computes nothing. */
size_t ebb_session_common(const ebb_session *s, const ebb_token *ids, size_t n);

/* Add one token and compute its logits.  Errors as sync. */
EBB_MUST_CHECK
ebb_status ebb_session_append(ebb_session *s, ebb_token id, ebb_error *err);

/* Keep what stands on disk, for any later session of this model: at the end of a
 * turn.  Returns at once; a thread of low priority writes what is not there yet.
 * What goes wrong is said in ebb_stats.decision and loses only time. */
void ebb_session_keep(ebb_session *s);

/* The ids that stand; valid until the next call that changes the session. */
const ebb_token *ebb_session_ids(const ebb_session *s, size_t *n);

/* n_vocab logits of the last position; NULL if the session is empty.  Valid
 * until the next call. */
const float *ebb_session_logits(const ebb_session *s);

/* Evaluate ids[0..n) from position 0 in chunks of n_chunk columns and call
 * `fn` with the logits of each position, in order: for `inspect logits`,
 * perplexity and tests.  The session is emptied first and holds ids after. */
typedef void ebb_logits_fn(void *arg, size_t pos, const float *logits, size_t n_vocab);
EBB_MUST_CHECK
ebb_status ebb_session_eval(ebb_session *s, const ebb_token *ids, size_t n, uint32_t n_chunk,
                            ebb_logits_fn *fn, void *arg, ebb_error *err);

/* -- Sampling ---------------------------------------------------------------- */
typedef struct ebb_sampling {
    float    temp;               /* 0: greedy */
    uint32_t top_k;              /* 0: off */
    float    top_p, min_p;       /* 1 and 0: off */
    float    repeat_penalty;     /* 1: off */
    uint32_t repeat_last;        /* tokens looked back upon */
    uint64_t seed;
} ebb_sampling;
ebb_sampling ebb_sampling_default(void);         /* 0.7, 40, 0.95, 0.05, 1.0, 64, seed 0 = from the clock */

typedef struct ebb_sampler ebb_sampler;
/* NULL: out of memory.  Allocates all it will need for n_vocab. */
ebb_sampler *ebb_sampler_new(const ebb_sampling *p, size_t n_vocab);
void ebb_sampler_free(ebb_sampler *s);
/* Choose a token.  `recent` are the last n ids of the timeline (for the
 * penalty).  The same logits, recent and seed history give the same token. */
ebb_token ebb_sampler_pick(ebb_sampler *s, const float *logits, const ebb_token *recent, size_t n);

#endif
