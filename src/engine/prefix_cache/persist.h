/* prefix_cache/persist.h - the prefix cache of an engine, and its part on disk. */
#ifndef EBB_PERSIST_H
#define EBB_PERSIST_H
#include <stdbool.h>

#include "ebb/engine.h"
#include "kv/kv_disk.h"
#include "plan/layout.h"
#include "prefix_cache/checkpoint.h"

/* What an engine keeps beside the blocks of its KV pool. */
typedef struct ebb_prefix_cache {
    ebb_kv_disk   *disk;         /* NULL: nothing is kept */
    char           notice[160];  /* why, until the user is told; "": is told, or wanted */
    const struct ebb_kv_seal *seal;      /* of its files; NULL: they are in the clear */
    uint8_t        shape[16];    /* what K and V belong to: model, types, layout */
    ebb_state_slot slots[EBB_MAX_STATE_SLOTS];     /* of forward.n_states; without states none is
                                                    used */
    ebb_session   *state_log_owner;      /* whose updates forward.recurrent.state_log has; NULL:
                                            nobody's */
} ebb_prefix_cache;

/* Before the plan is made, which asks whether K and V can be spilled there.  Without a folder of
 * this user's alone there is no KV cache on disk; the log and a notice say why. */
void ebb_persist_open_folder(ebb_engine *e);
/* Whether K and V can be spilled to a file in it.  Errors, which say why not: UNSUPPORTED, IO. */
EBB_MUST_CHECK
ebb_status ebb_persist_check_spill(const ebb_engine *e, ebb_error *err);
/* When all else is open.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_persist_open(ebb_engine *e, ebb_error *err);
/* Write what waits. */
void ebb_persist_close(ebb_engine *e);
/* What s computes from now on may be written, whatever was swept before. */
void ebb_persist_note_swept(ebb_session *s);
/* Have written what s holds, in the background.  Nothing is drafted at the time. */
void ebb_persist_submit(ebb_session *s);
/* Give free what was written; `wait`: at least one, if any is under way.  false: there was
 * nothing. */
bool ebb_persist_reap(ebb_engine *e, bool wait);

#endif
