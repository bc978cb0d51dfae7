/* session/session_impl.h - a sequence: its ids, its block table, and computing more of it (pass.c).
 *
 * Blocks that are missing are taken from other sequences (preempt.c). */
#ifndef EBB_SESSION_IMPL_H
#define EBB_SESSION_IMPL_H
#include "ebb/session.h"
#include "kv/kv.h"
#include "kv/kv_swept.h"
#include "model/forward.h"
#include "prefix_cache/checkpoint.h"
#include "prefix_cache/prefix.h"
#include "sample/sampler.h"
#include "speculate/draft_tree.h"
#include "speculate/prompt_lookup.h"

typedef enum ebb_draft_source {
    EBB_DRAFT_LOOKUP,
    EBB_DRAFT_REFERENCE,         /* prompt lookup in the engine's reference text */
    EBB_DRAFT_MODEL,
    EBB_DRAFT_HEAD
} ebb_draft_source;

struct ebb_session {
    ebb_engine  *engine;
    ebb_session *next;           /* in engine->sessions */
    ebb_token   *ids;            /* [n_ctx]; table.n_pos of them are computed, the last n_pending of
                                    these are draft tokens */
    ebb_block_table table;
    ebb_prefix_block *hashes, *wanted;   /* [blocks + 1] of ids, the first n_hashed; of the ids of
                                            the sync */
    uint32_t     n_hashed;       /* full blocks with a hash */
    float       *logits;         /* [n_vocab] of the last position, if has_logits */
    bool         has_logits;
    ebb_cache_salt cache_salt;   /* of the sequence */
    uint32_t     window_from;    /* the window group's blocks have no valid rows before this
                                    position */
    ebb_cache_salt next_salt;    /* for the next sync, if has_next_salt */
    bool         has_next_salt;
    uint32_t     n_prompt;       /* ids of the prompt that the next syncs are parts of; 0: none */
    bool         has_part;       /* its first part was synced */
    uint64_t     used_at;        /* engine->clock at the last call: the least is evicted first */
    ebb_state_slot *live;        /* its recurrent state, and the log to bring it to table.n_pos;
                                    NULL: none */
    uint32_t     n_shared_passes;        /* under way that it is a part of: it is not evicted */
    ebb_kv_swept swept;          /* of the folder of the KV cache, when the sequence was empty, or
                                    the last sync had dropped what it does not go on from */
    bool         is_tentative;   /* appended tokens may be undone: a draft model's session */

    ebb_prompt_lookup lookup, reference_lookup;
    ebb_suffix_index index;      /* of ids, for lookup: none of draft tokens */
    uint32_t     n_pending;      /* draft tokens that are neither accepted nor rejected yet */
    ebb_drafts   drafts;         /* of the last pass */
    ebb_draft_source draft_source;       /* who drafted them */
    double       pass_s;         /* seconds of the last pass */
    ebb_sampler_state sampler_state;     /* for drafting: of the last ebb_session_sample */
    float       *hidden;         /* [n_embd] with a draft head: the hidden state of position
                                    n_hidden - 1 */
    uint32_t     n_hidden;       /* 0: unknown */
};

/* Tokens of the sequence. */
static inline uint32_t ebb_session_length(const ebb_session *s)
{
    return s->table.n_pos - s->n_pending;
}

/* -- Preemption (preempt.c) -- */

/* Empty a session; its blocks go back to the pool. */
void ebb_session_clear(ebb_session *s);
/* Frees blocks: evicts the least recently used other sequence, or waits for blocks that the writer
 * of the KV cache on disk has.  false: there are none. */
bool ebb_session_evict_other(ebb_session *s);
/* Grows the table to n_pos positions, evicting other sequences.  Errors: BUDGET, CONTEXT. */
EBB_MUST_CHECK
ebb_status ebb_session_reserve(ebb_session *s, uint32_t n_pos, ebb_error *err);

/* -- Computing (pass.c) -- */

/* All of them are in the vocabulary, else USAGE: asked before a call changes anything. */
EBB_MUST_CHECK
ebb_status ebb_session_check_ids(const ebb_session *s, const ebb_token *ids, size_t n,
                                 ebb_error *err);

/* A recurrent state that was lost is computed again, from a checkpoint to where s ends, and draft
 * tokens are dropped then.  Errors: as ebb_session_sync; s is empty then. */
EBB_MUST_CHECK
ebb_status ebb_session_restore_state(ebb_session *s, ebb_error *err);

/* Draft tokens that do not follow the last of a part's tokens, but its first n_before. */
typedef struct ebb_pass_branch {
    const ebb_token *ids;        /* [n] */
    uint32_t         n, n_before;
    const ebb_block_table *table;        /* grown to its end; it gets the n_before as well */
} ebb_pass_branch;

/* What a pass of several sequences added to s may be a part of its prompt, or the last one. */
void ebb_session_note_part(ebb_session *s);

/* What a pass adds to a sequence: ids[0..n) behind those that are computed. */
typedef struct ebb_pass_part {
    ebb_session     *session;
    const ebb_token *ids;
    uint32_t         n, n_pending;       /* the last n_pending of them are draft tokens */
    uint32_t         n_out;      /* logits of the last n_out are wanted */
    uint32_t         commit_pos; /* ebb_batch_seq */
    uint32_t         prompt_end; /* where a checkpoint is to be, if the pass comes there; 0: none */
    const ebb_pass_branch *branches;     /* [n_branches] of the only part of a pass, at most
                                            EBB_DRAFT_BRANCHES */
    uint32_t         n_branches;
} ebb_pass_part;

/* Compute the parts, of n different sequences of one engine, in one pass; *b says where the logits
 * go, and the rest of it is filled.  The sequences hold each other's blocks and states as long as
 * it takes.  On failure nothing was added, but states that were under way are lost.
 * Errors: those of a pass; BUDGET (no room for all of them at once). */
EBB_MUST_CHECK
ebb_status ebb_session_run_pass(const ebb_pass_part *parts, uint32_t n, ebb_batch *b,
                                ebb_error *err);

#endif
