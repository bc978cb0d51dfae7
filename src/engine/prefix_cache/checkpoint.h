/* prefix_cache/checkpoint.h - states of recurrent layers and their checkpoints.
 *
 * A recurrent state cannot be truncated like K and V, so copies of it are kept at some positions,
 * from which a sequence can continue.  Without recurrent layers these functions do nothing.
 *
 * A slot is
 *
 *     free        !is_used
 *     live        is_used, owner: the state of a session after its first n_pos ids
 *     planned     is_used, no owner, n_pos UINT32_MAX: a pass or a read from disk fills it
 *     checkpoint  is_used, no owner: the state after n_pos ids whose hash is prefix; not reused
 *                 while is_being_written
 *
 * and only the thread that runs passes changes it; the writer of the KV cache on disk reads the
 * states that are being written, and changes no slot. */
#ifndef EBB_CHECKPOINT_H
#define EBB_CHECKPOINT_H
#include <stdbool.h>

#include "ebb/engine.h"
#include "ebb/session.h"
#include "model/forward.h"

typedef struct ebb_state_slot {
    char        *state;          /* [net.state_bytes], in the arena */
    ebb_session *owner;          /* session whose live state it is; NULL: a checkpoint, or free */
    bool         is_used;
    bool         is_being_written;
    uint32_t     n_pos;          /* ids whose updates it has; of a live state, the state log has
                                    those that follow */
    uint8_t      prefix[16];     /* of a checkpoint: the hash of these ids */
    uint64_t     used_at;
} ebb_state_slot;

/* Makes slots of the memory for states in the arena. */
void ebb_checkpoint_init(ebb_engine *e);

/* How many of ids[0..n) the live state of s has the updates of, with the log applied; 0: it also
 * has updates of other ids. */
uint32_t ebb_state_live_prefix(const ebb_session *s, const ebb_token *ids, uint32_t n);
/* The largest n_pos <= n for which a state of ids[0..n_pos) exists; the live one of s can be that
 * of n_live of them. */
uint32_t ebb_checkpoint_find(const ebb_session *s, const ebb_token *ids, uint32_t n,
                             uint32_t n_live);
/* Makes that state the live one of s; returns n_pos. */
uint32_t ebb_checkpoint_restore(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live);
/* Whether s can go on from table.n_pos. */
bool ebb_state_is_live(const ebb_session *s);
/* A checkpoint of the current state of s, which is not reused until is_being_written is cleared;
 * NULL: there is no state. */
ebb_state_slot *ebb_checkpoint_pin(ebb_session *s);
/* Takes a slot that the caller fills, then gives to ebb_state_slot_set_prefix (the state after
 * ids[0..n_pos)) or frees.  NULL: no slot is free. */
ebb_state_slot *ebb_state_slot_take(ebb_session *s);
void ebb_state_slot_set_prefix(ebb_state_slot *slot, const ebb_token *ids, uint32_t n_pos);
void ebb_state_slot_free(ebb_state_slot *slot);
/* `to`, which has none, gets a copy of the live state of s, if there is one and room for it. */
void ebb_state_fork(ebb_session *s, ebb_session *to);
/* s has no live state any more. */
void ebb_state_drop_live(ebb_session *s);

#define EBB_MAX_CHECKPOINTS 4u
typedef struct ebb_checkpoint_plan {
    ebb_state_slot *slots[EBB_MAX_CHECKPOINTS];
    ebb_checkpoint  checkpoints[EBB_MAX_CHECKPOINTS];
    uint32_t        n;
} ebb_checkpoint_plan;
/* Columns of a pass, of which the tokens before p->commit_pos are certain: the state goes into p,
 * and the log is free for its updates (what another sequence has there is applied).  p->commit_pos
 * becomes what the log has room for. */
void ebb_state_begin_pass(ebb_session *s, ebb_batch_seq *p);
/* It was done. */
void ebb_state_end_pass(ebb_session *s, const ebb_batch_seq *p);

/* Checkpoints that the pass shall make: at fixed distances, and at `prompt_end` if it is in
 * there. */
void ebb_checkpoint_plan_pass(ebb_session *s, const ebb_batch_seq *p, uint32_t prompt_end,
                              ebb_checkpoint_plan *m);
/* The pass was done: s->ids holds its tokens. */
void ebb_checkpoint_commit(ebb_session *s, const ebb_checkpoint_plan *m);
void ebb_checkpoint_abandon(const ebb_checkpoint_plan *m);

#endif
