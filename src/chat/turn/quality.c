/* The better file of the same network, for one answer (quality.h). */
#include "turn/quality.h"

#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* Files are looked at only if something here was written by another model. */
void ebb_quality_recognise(ebb_chat *c)
{
    ebb_better_model better = { 0 };
    bool is_foreign = false;

    for (size_t i = 0; i < c->tree.n_path; i++) {
        const ebb_message *m = &c->tree.path[i]->m;
        is_foreign |= m->n_ids > 0 && !ebb_quality_shares_ids(c, m->ids_model);
    }
    if (!is_foreign || !c->ops.better || ebb_chat_facts(c))
        return;
    if (c->ops.better(c->ops.arg, c->backend, c->quality.named, NULL, 0, &better, NULL) == EBB_OK)
        ebb_quality_set_pair(c, &better);
    free(better.path);
}

/* -- Back ------------------------------------------------------------------------------- */

void ebb_quality_fini(ebb_quality *q)
{
    free(q->named);
    free(q->everyday);
    free(q->draft_path);
}

/* Restore the options with which the everyday file was opened. */
static void restore_opening(ebb_chat *c)
{
    ebb_quality *q = &c->quality;

    free(c->opening.draft_path);
    c->opening.draft_path = q->draft_path;
    c->opening.draft_is_optional = q->draft_is_optional;
    c->opening.opts.n_ctx = q->n_ctx;
    q->draft_path = NULL;
    q->is_open = false;
}

void ebb_quality_forget(ebb_chat *c)
{
    if (c->quality.is_open)
        restore_opening(c);
}

void ebb_quality_go_back(ebb_chat *c)
{
    ebb_error err = { 0 };

    restore_opening(c);
    if (ebb_chat_open_model(c, c->quality.everyday, &err) != EBB_OK) {
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err.msg, strlen(err.msg), 0, 0);
        return;
    }
    c->opening.is_chosen = c->quality.is_chosen;
}

void ebb_quality_end_turn(ebb_chat *c)
{
    if (c->quality.is_open && !c->is_away && (c->turn.state == EBB_TURN_IDLE || c->turn.state == EBB_TURN_NO_MODEL))
        ebb_quality_go_back(c);
}
