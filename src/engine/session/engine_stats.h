/* session/engine_stats.h - the figures of a running engine, as its parts report them.
 *
 * All take the engine's lock but ebb_stats_init. */
#ifndef EBB_ENGINE_STATS_H
#define EBB_ENGINE_STATS_H
#include <stdbool.h>

#include "ebb/engine.h"
#include "ebb/session.h"
#include "ebb/stats.h"

/* What the figures of the turn under way are made from. */
typedef struct ebb_turn_progress {
    uint32_t n_under_way;        /* columns of the prompt's pass under way */
    bool     is_again;           /* computed before, and lost: it is no part of the turn */
    uint32_t n_prompt, n_before; /* of the prompt, computed; before the sync under way ... */
    double   prompt_s, before_s; /* ... and the seconds of both */
    uint32_t done_before, computed_before;       /* stats.prefill_done, computed_tok at that time */
    double   append_s;           /* seconds that this turn's decode steps took */
    uint64_t begin_ns, begin_stall_ns;   /* the clock, and all waiting until then, when it began */
    uint64_t decode_read_bytes;  /* what had been read when its answer began */
    const ebb_session *prompt_of;        /* whose prompt prefill's figures are of; NULL: nobody's */
    const ebb_session *shown;    /* whose sequence the figures are of; NULL: nobody's */
    uint32_t counted_pos, counted_spilled;       /* when its K and V were counted last */
    uint64_t kv_memory_bytes, kv_file_bytes;     /* these of its own */
} ebb_turn_progress;

/* What a sync is for the figures. */
typedef enum ebb_sync_kind {
    EBB_SYNC_TURN,               /* a turn begins */
    EBB_SYNC_PART,               /* a further part of the turn's prompt */
    EBB_SYNC_AGAIN,              /* of a state that was lost, or the sequence is emptied; what its
                                    owner syncs again, as an answer that waited, is a turn */
} ebb_sync_kind;

typedef struct ebb_sync_counts {
    ebb_sync_kind kind;
    uint32_t      n_reused, n_disk;      /* of the sync's ids; of these, from disk */
    uint32_t      n_prompt;      /* ids of the whole prompt */
} ebb_sync_counts;

/* Before anyone else can look, or with the lock held. */
void ebb_stats_init(ebb_engine *e, double load_s);
void ebb_stats_prefill_begin(ebb_engine *e, const ebb_session *s, const ebb_sync_counts *counts);
/* A pass over n columns of the prompt begins: until the step, its layers count as a part of it. */
void ebb_stats_prefill_pass(ebb_engine *e, uint32_t n);
void ebb_stats_prefill_step(ebb_engine *e, uint32_t n_done, double seconds);
void ebb_stats_decode_begin(ebb_engine *e);
/* had_draft: the pass had more columns than one. */
void ebb_stats_decode_step(ebb_engine *e, double seconds, bool was_drafted, bool had_draft);
/* So many positions of its prompt are computed, the last of them beside other sequences. */
void ebb_stats_prompt_at(ebb_engine *e, const ebb_session *s, uint32_t n_pos);
/* A pass of several sequences: n_tokens columns, of which n_decoded are the only one of theirs. */
void ebb_stats_shared_step(ebb_engine *e, double seconds, uint32_t n_tokens, uint32_t n_decoded);
void ebb_stats_draft(ebb_engine *e, uint32_t n_drafted);
/* A draft token was accepted; is_of_reference: it was found in the reference text. */
void ebb_stats_accept(ebb_engine *e, bool is_of_reference);
/* So many of the accepted ones were of a branch. */
void ebb_stats_branch(ebb_engine *e, uint32_t n_accepted);
void ebb_stats_idle(ebb_engine *e, const ebb_session *s);
/* Blocks of K and V have gone to the file, or come from it. */
void ebb_stats_kv(ebb_engine *e);
/* The session holds nothing any more, is in no list, and is about to be freed: if the figures were
 * its, they are of one that is left. */
void ebb_stats_forget_session(ebb_engine *e, const ebb_session *s);

/* Show what was decided about memory, in the figures and in the trace (memory_event.c).  The number
 * is given here. */
void ebb_stats_memory_event(ebb_engine *e, const ebb_memory_event *event);
/* An event of which only the code and the detail (NULL: none) say something. */
void ebb_stats_memory_notice(ebb_engine *e, ebb_memory_event_code code, const char *detail);

#endif
