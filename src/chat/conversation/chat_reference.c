/* Other conversations for prompt lookup (chat_reference.h). */
#include "conversation/chat_reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conversation/chat_priv.h"

#define SLICE_ROWS 16u           /* messages between two events */
#define MOST_ROWS  4096u         /* that are looked at: others may be of other models */

static bool begin(ebb_chat *c)
{
    ebb_chat_reference *r = &c->reference;

    r->ids = malloc(EBB_REFERENCE_MOST * sizeof *r->ids);
    r->at = EBB_REFERENCE_MOST;
    r->before = INT64_MAX;
    r->session = 0;
    r->n_rows = 0;
    return r->ids != NULL;
}

/* An older message: its ids go before those that are there; between two sessions there is no way on. */
static void add_ids(void *arg, int64_t session, const int32_t *ids, size_t n)
{
    ebb_chat *c = arg;
    ebb_chat_reference *r = &c->reference;

    if (session == c->facts.id || r->at == 0)
        return;
    if (session != r->session && r->at < EBB_REFERENCE_MOST)
        r->ids[--r->at] = EBB_TOKEN_NONE;
    r->session = session;
    if (n > r->at) {                             /* the end of it */
        ids += n - r->at;
        n = r->at;
    }
    r->at -= n;
    memcpy(r->ids + r->at, ids, n * sizeof *ids);
}

/* The backend gets them, oldest first. */
static void give(ebb_chat *c)
{
    ebb_chat_reference *r = &c->reference;
    size_t n = EBB_REFERENCE_MOST - r->at;

    ebb_log("draft", "%zu tokens of other conversations in %u messages", n, r->n_rows);
    memmove(r->ids, r->ids + r->at, n * sizeof *r->ids);
    c->backend->ops->set_reference_text(c->backend, r->ids, n);
    r->ids = NULL;
    r->is_given = true;
}

static bool is_wanted(const ebb_chat *c)
{
    const ebb_chat_reference *r = &c->reference;

    return c->store && c->info && c->backend && c->backend->ops->set_reference_text && !ebb_chat_is_busy(c) &&
           (!r->is_given || r->generation != c->generation);
}

bool ebb_chat_gather_reference(ebb_chat *c)
{
    ebb_chat_reference *r = &c->reference;
    ebb_error err = { 0 };

    if (!is_wanted(c))
        return false;
    if (r->generation != c->generation)
        ebb_chat_reset_reference(c);
    r->generation = c->generation;
    if (!r->ids && !begin(c)) {
        r->is_given = true;                      /* no memory: it is done without */
        return false;
    }
    r->n_rows += SLICE_ROWS;
    if (ebb_store_read_ids(c->store, &r->before, SLICE_ROWS, c->info->fingerprint, add_ids, c, &err) != EBB_OK) {
        ebb_log("draft", "other conversations: %s", err.msg);
        r->before = 0;
    }
    if (r->before == 0 || r->at == 0 || r->n_rows >= MOST_ROWS)
        give(c);
    return !r->is_given;
}

void ebb_chat_reset_reference(ebb_chat *c)
{
    free(c->reference.ids);
    c->reference = (ebb_chat_reference){ 0 };
}

void ebb_chat_forget_reference(ebb_chat *c)
{
    ebb_chat_reset_reference(c);
    if (c->backend && c->backend->ops->set_reference_text)
        c->backend->ops->set_reference_text(c->backend, NULL, 0);
}
