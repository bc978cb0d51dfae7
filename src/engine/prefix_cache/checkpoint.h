/* prefix_cache/checkpoint.h - states of recurrent layers and their checkpoints.
 *
 * What recurrent layers remember of a prefix cannot be cut like K and V, so copies of it are kept
 * at some positions, from which a sequence goes on.  Without such layers these functions do
 * nothing.
 *
 * A slot is
 *
 *     free        !is_used
 *     live        is_used, owner: the state of a sequence, n_pos ids behind its beginning
 *     planned     is_used, no owner, n_pos UINT32_MAX: a pass or a read from disk fills it
 *     checkpoint  is_used, no owner, n_pos and prefix say of what; is_being_written: stays as it is
 *
 * and only the thread that runs passes moves it; the writer of the disk cache reads those that are
 * being written, and never touches the slot. */
#ifndef EBB_CHECKPOINT_H
#define EBB_CHECKPOINT_H
#include <stdbool.h>

#include "ebb/engine.h"
#include "ebb/session.h"
#include "model/forward.h"

typedef struct ebb_state_slot {
    char        *state;          /* [net.state_bytes], in the arena */
    ebb_session *owner;          /* whose live state it is; NULL: a checkpoint, or free */
    bool         is_used;
    bool         is_being_written;
    uint32_t     n_pos;          /* ids that it stands behind: of a live state, the log has the
                                    updates of those that follow ... */
    uint8_t      prefix[16];     /* ... and, of a checkpoint, their hash */
    uint64_t     used_at;
} ebb_state_slot;

/* Slots for the states that were placed. */
void ebb_checkpoint_init(ebb_engine *e);

/* How many of ids[0..n) the live state of s has seen, or sees by the log, and nothing else; 0: it
 * has seen others. */
uint32_t ebb_state_live_prefix(const ebb_session *s, const ebb_token *ids, uint32_t n);
/* The largest n_pos <= n for which a state of ids[0..n_pos) exists; the live one of s can be that
 * of n_live of them. */
uint32_t ebb_checkpoint_find(const ebb_session *s, const ebb_token *ids, uint32_t n,
                             uint32_t n_live);
/* Make it the live state of s; returns n_pos. */
uint32_t ebb_checkpoint_restore(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_live);
/* Whether s can go on from table.n_pos. */
bool ebb_state_is_live(const ebb_session *s);
/* A checkpoint of s as it stands, which stays until is_being_written is taken back; NULL: no
 * state. */
ebb_state_slot *ebb_checkpoint_pin(ebb_session *s);
/* A slot to be filled from elsewhere; then it stands behind ids[0..n_pos), or is free again.  NULL:
 * none is to be had. */
ebb_state_slot *ebb_state_slot_take(ebb_session *s);
void ebb_state_slot_set_prefix(ebb_state_slot *slot, const ebb_token *ids, uint32_t n_pos);
void ebb_state_slot_free(ebb_state_slot *slot);
/* s has no live state any more. */
void ebb_state_drop_live(ebb_session *s);

#define EBB_MAX_CHECKPOINTS 4u
typedef struct ebb_checkpoint_plan {
    ebb_state_slot *slots[EBB_MAX_CHECKPOINTS];
    ebb_checkpoint  checkpoints[EBB_MAX_CHECKPOINTS];
    uint32_t        n;
} ebb_checkpoint_plan;
/* A pass over n columns from pos0 on, of which the tokens before p->commit_pos are certain: the
 * state goes into p, and the log is free for its updates (what another sequence has there is
 * applied).  p->commit_pos becomes what the log has room for. */
void ebb_state_begin_pass(ebb_session *s, uint32_t pos0, uint32_t n, ebb_batch *p);
/* It was done. */
void ebb_state_end_pass(ebb_session *s, const ebb_batch *p);

/* Checkpoints that the pass shall make: at fixed distances, and at `prompt_end` if it is in
 * there. */
void ebb_checkpoint_plan_pass(ebb_session *s, const ebb_batch *p, uint32_t prompt_end,
                              ebb_checkpoint_plan *m);
/* The pass was done: s->ids holds its tokens. */
void ebb_checkpoint_commit(ebb_session *s, const ebb_checkpoint_plan *m);
void ebb_checkpoint_abandon(const ebb_checkpoint_plan *m);

#endif
