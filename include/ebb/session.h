/* ebb/session.h - one sequence of tokens in an engine, and the sampler.
 *
 * A session is a sequence of token ids whose K and V are in the KV pool.  ebb_session_sync makes it
 * exactly a given list of ids: it reuses the longest common prefix (of this session, then of any
 * other sequence in memory, then on disk) and computes the rest.  The logits of a position are
 * bit-identical whichever way it was computed.  All calls of one engine come from one thread. */
#ifndef EBB_SESSION_H
#define EBB_SESSION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"

EBB_API_BEGIN

typedef struct ebb_session ebb_session;

/* Creates an empty sequence in `e`, which must outlive it.  The caller owns *out; NULL on failure.
 * Sequences share the engine's KV pool: when it is full, the blocks of the least recently used
 * sequence are evicted, and that one computes them again when it is synced.  Error: NOMEM.
 * Cost: memory for the logits of one position and for a block table; none for K and V. */
EBB_MUST_CHECK
ebb_status ebb_session_new(ebb_engine *e, ebb_session **out, ebb_error *err);
void ebb_session_free(ebb_session *s);           /* NULL is fine */

typedef struct ebb_sync_result {
    uint32_t n_prompt;           /* n_reused + n_computed */
    uint32_t n_reused;           /* tokens whose K and V were cached ... */
    uint32_t n_reused_disk;      /* ... of these, read from the KV cache on disk */
    uint32_t n_computed;
    double   seconds;
} ebb_sync_result;

/* Makes the sequence exactly ids[0..n); n == 0 empties it.  On success the logits of position n
 * - 1 are ready.  `result` may be NULL.  After EBB_CANCELED the batches that were finished stay,
 * and the next sync reuses them.
 * Errors: CONTEXT (n > n_ctx) and USAGE (an id is not in the vocabulary), which change nothing;
 * CANCELED, IO, FORMAT (a damaged model: what it computes is NaN or infinity). */
EBB_MUST_CHECK
ebb_status ebb_session_sync(ebb_session *s, const ebb_token *ids, size_t n,
                            ebb_sync_result *result, ebb_error *err);

/* How many of ids[0..n) a sync would reuse; the others it computes, and the last one always, unless
 * they are the sequence and its logits are there.  Computes nothing. */
size_t ebb_session_common_prefix(const ebb_session *s, const ebb_token *ids, size_t n);

/* Appends one token and computes its logits.  The same pass may compute draft tokens behind it
 * (speculative decoding): if the next call appends the first of them, no pass is needed.  Logits
 * are bit-identical with and without.
 * Errors: as ebb_session_sync; nothing was added.  But a sequence of a model with recurrent layers
 * whose state could not be computed again is empty then, as if it had been evicted. */
EBB_MUST_CHECK
ebb_status ebb_session_append(ebb_session *s, ebb_token id, ebb_error *err);

/* Writes the sequence's K and V to the KV cache on disk, for later sessions of this model; to be
 * called after an answer.  Returns at once: a low-priority thread writes the blocks that are not on
 * disk yet.  Only of a model with recurrent layers it waits until what an earlier call has to write
 * is written, since there is room for one state on its way to disk.
 * A failure is an event (ebb_stats.memory_event); it costs time later, and no data. */
void ebb_session_persist(ebb_session *s);

/* -- Several sequences -------------------------------------------------------- */

/* A sequence that is like s and goes on by itself: the same ids, K, V and logits.  Nothing is
 * computed; both share the blocks of K and V, and one is copied when either is continued in it.
 * Draft tokens under way are forgotten.  The caller owns *out; NULL on failure.  Error: NOMEM.
 * Cost: as ebb_session_new; of a model with recurrent layers a copy of their state. */
EBB_MUST_CHECK
ebb_status ebb_session_fork(ebb_session *s, ebb_session **out, ebb_error *err);

/* What is added to a sequence. */
typedef struct ebb_session_step {
    ebb_session     *session;
    const ebb_token *ids;        /* [n], borrowed for the call */
    size_t           n;          /* >= 1: a token that was sampled, or a part of a prompt */
} ebb_session_step;

/* Add steps[i].ids behind each sequence, all in one pass, which reads the weights once for all of
 * them; the logits of each one's last position are ready then, bit for bit those that it would have
 * alone.  The sequences are different ones of one engine, at most ebb_engine_max_sequences, and
 * their tokens at most ebb_engine_n_batch.  A single step of one token is ebb_session_append; a
 * pass of several sequences drafts no tokens.  None of the sequences is evicted for another of
 * them; others of the engine may be.
 * Errors, after which nothing was added to any: USAGE (steps that cannot share a pass, or an id is
 * not in the vocabulary), CONTEXT, BUDGET (the KV pool has no room for all of these at once: fewer
 * of them may go on, when one was emptied), CANCELED, IO, FORMAT.  After the first three the
 * logits are those of before, after the others there are none (ebb_session_logits).  But a
 * sequence of a model with recurrent layers whose state could not be computed again is empty then,
 * as if it had been evicted. */
EBB_MUST_CHECK
ebb_status ebb_sessions_append(const ebb_session_step *steps, size_t n, ebb_error *err);

/* -- Context shift ------------------------------------------------------------ */

/* Why a sequence of this model cannot be shifted ("recurrent layers remember all tokens"); NULL: it
 * can. */
const char *ebb_session_cannot_shift(const ebb_session *s);

/* Drops the positions [from, from + n) of the sequence.  Each later position p becomes p - n: its V
 * stays as it is, its K is re-rotated (K-shift), so nothing is computed.  The logits of the last
 * position stay valid if it was not dropped.  The moved K and V were computed with attention to the
 * dropped tokens, so logits after a shift are not those of computing the shorter sequence; another
 * sequence never reuses them for computed ones.
 * A sync of the remaining ids (ebb_session_ids), and more behind them, continues from there.
 * Cost: copying K and V behind the dropped positions.
 * Errors, all of which change nothing: UNSUPPORTED (ebb_session_cannot_shift says why, or a sliding
 * window would see positions that are no longer cached; sync the shorter ids instead);
 * USAGE (no such range); BUDGET (no free blocks to copy those that other sequences share). */
EBB_MUST_CHECK
ebb_status ebb_session_shift(ebb_session *s, uint32_t from, uint32_t n, ebb_error *err);

/* The ids of the sequence; valid until the next call that changes the session. */
const ebb_token *ebb_session_ids(const ebb_session *s, size_t *n);

/* n_vocab logits of the last position.  NULL if the session is empty, was evicted, lost its last
 * position to a shift, or after a pass that failed (CANCELED, IO, FORMAT): a sync computes them
 * again.  Valid until the next call. */
const float *ebb_session_logits(const ebb_session *s);

/* -- Sampling ---------------------------------------------------------------- */
typedef struct ebb_sampler_params {
    float    temp;               /* 0: greedy */
    uint32_t top_k;              /* 0: off */
    float    top_p, min_p;       /* 1 and 0: off */
    float    repeat_penalty;     /* 1: off */
    uint32_t repeat_last_n;      /* tokens that the penalty looks at */
    uint64_t seed;               /* 0: from the clock */
} ebb_sampler_params;
ebb_sampler_params ebb_sampler_params_default(void); /* 0.7, 40, 0.95, 0.05, 1.0, 64, 0 */

/* Another number: the same seed gives other tokens than before. */
#define EBB_SAMPLER_VERSION 2

typedef struct ebb_sampler ebb_sampler;
/* A sampler with the parameters *p (NULL: the defaults) for n_vocab logits; it allocates nothing
 * later.  NULL: out of memory, or n_vocab is 0. */
ebb_sampler *ebb_sampler_new(const ebb_sampler_params *p, size_t n_vocab);
void ebb_sampler_free(ebb_sampler *s);
/* Samples the token at position n, behind ids[0..n); ids may be NULL without a repeat penalty.
 * Chance depends on the seed and the position alone, and not on earlier calls: the same seed, ids
 * and logits give the same token, whoever asks and how often.  EBB_TOKEN_NONE: of a sampler that is
 * constrained (ebb/grammar.h), nothing may follow. */
ebb_token ebb_sampler_sample(ebb_sampler *s, const float *logits, const ebb_token *ids, size_t n);
/* The same from the session's logits and ids.  It also tells a draft model (ebb_engine_opts.draft)
 * the state of the sampler, so that more draft tokens are accepted: prefer it. */
ebb_token ebb_session_sample(ebb_session *s, ebb_sampler *sampler);

EBB_API_END

#endif
