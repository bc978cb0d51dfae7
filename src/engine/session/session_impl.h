/* session/session_impl.h - a sequence: its ids, its block table, and computing more of it (pass.c).
 *
 * Who wants blocks takes them from other sequences (give_way.c). */
#ifndef EBB_SESSION_IMPL_H
#define EBB_SESSION_IMPL_H
#include "ebb/session.h"
#include "kv/kv.h"
#include "model/forward.h"
#include "prefix_cache/checkpoint.h"
#include "prefix_cache/prefix.h"
#include "sample/sampler.h"
#include "speculate/prompt_lookup.h"

typedef enum ebb_draft_source {
    EBB_DRAFT_LOOKUP,
    EBB_DRAFT_MODEL,
    EBB_DRAFT_HEAD
} ebb_draft_source;

struct ebb_session {
    ebb_engine  *engine;
    ebb_session *next;           /* in engine->sessions */
    ebb_token   *ids;            /* [n_ctx]; those of table.n_pos positions stand, the last
                                    n_pending of them as draft tokens */
    ebb_block_table table;
    ebb_prefix_block *hashes, *wanted;   /* [blocks + 1] of ids, n_hashed of them; of the ids asked
                                            for */
    uint32_t     n_hashed;       /* full blocks that have got their name */
    float       *logits;         /* [n_vocab] of the last position, if has_logits */
    bool         has_logits;
    ebb_cache_salt cache_salt;   /* of what stands */
    uint32_t     window_from;    /* positions before this one do not stand in the windows' blocks,
                                    though these are there */
    ebb_cache_salt next_salt;    /* by the next sync, if has_next_salt */
    bool         has_next_salt;
    uint64_t     used_at;        /* engine->clock at the last call: who is evicted first */
    ebb_state_slot *live;        /* its state, from which that before table.n_pos can be made; NULL:
                                    none */
    bool         is_tentative;   /* what is appended may be taken back: a draft model's */

    ebb_prompt_lookup lookup;
    uint32_t     n_pending;      /* computed positions that no one has asked for yet */
    uint32_t     n_drafted;      /* by the last pass; n_pending of them are left */
    ebb_draft_source draft_source;       /* who proposed them */
    double       pass_s;         /* what the pass took */
    ebb_sampler_state sampler_state;     /* how its tokens are chosen */
    float       *hidden;         /* [n_embd] what the output saw of the last of n_hidden ids (0:
                                    unknown); with a draft head only */
    uint32_t     n_hidden;
};

/* Tokens of the sequence. */
static inline uint32_t ebb_session_length(const ebb_session *s)
{
    return s->table.n_pos - s->n_pending;
}

/* -- Giving way (give_way.c) -- */

/* Empty a session; its blocks go back to the pool. */
void ebb_session_clear(ebb_session *s);
/* Blocks are short: another sequence gives way, the one not used for longest, or the writer comes
 * back with some.  false: there is nothing to be had. */
bool ebb_session_evict_other(ebb_session *s);
/* Room for n_pos positions; other sequences give way.  Errors: BUDGET, CONTEXT. */
EBB_MUST_CHECK
ebb_status ebb_session_reserve(ebb_session *s, uint32_t n_pos, ebb_error *err);

/* -- Computing (pass.c) -- */

/* Compute ids[0..n) behind what stands in one pass, the last n_pending of them as draft tokens.
 * On failure nothing was added, but a state that was under way is lost. */
EBB_MUST_CHECK
ebb_status ebb_session_run_pass(ebb_session *s, const ebb_token *ids, uint32_t n,
                                uint32_t n_pending, uint32_t prompt_end, ebb_batch *p,
                                ebb_error *err);

#endif
