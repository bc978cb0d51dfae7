/* Sessions as the user handles them: another one, names, files, search, delete and its undo (chat.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "store/export.h"
#include "store/kept.h"
#include "store/title.h"

ebb_status ebb_chat_new_session(ebb_chat *c, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK)
        st = ebb_chat_check_switch(c, err);
    if (st != EBB_OK)
        return st;
    ebb_overflow_reset(c);
    ebb_chat_settings_begin(c);
    ebb_chat_leave_unsaved(c);
    ebb_session_facts_fini(&c->facts);
    ebb_tree_fini(&c->tree);
    c->generation++;
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return ebb_chat_replace_system(c, c->system, err);
}

/* One that is not in the store, as nothing was said yet or another ebb has deleted it, gets the name when it is
 * saved: no other may have it. */
static ebb_status claim_name(ebb_chat *c, const char *name, ebb_error *err)
{
    ebb_status st = c->facts.id ? ebb_store_rename(c->store, c->facts.id, name, err) : EBB_NOTFOUND;

    return st == EBB_NOTFOUND ? ebb_store_check_free_name(c->store, name, err) : st;
}

ebb_status ebb_chat_save_as(ebb_chat *c, const char *name, ebb_error *err)
{
    char before[sizeof c->facts.name];
    ebb_status st;

    if (ebb_export_is_file(name))
        return ebb_chat_export(c, name, err);
    st = ebb_session_check_name(name, err);
    if (st == EBB_OK && ebb_chat_ensure_store(c))
        st = claim_name(c, name, err);
    if (st != EBB_OK)
        return st;
    memcpy(before, c->facts.name, sizeof before);
    strcpy(c->facts.name, name);
    st = ebb_chat_save_named(c, err);
    if (st != EBB_OK)
        memcpy(c->facts.name, before, sizeof before);
    return st;
}

static ebb_status need_store(const ebb_chat *c, ebb_error *err)
{
    return c->store ? EBB_OK
                    : EBB_FAIL(err, EBB_IO, "the sessions on disk cannot be read; this chat is kept in memory");
}

ebb_status ebb_chat_load(ebb_chat *c, const char *name, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);
    int64_t id;

    if (st == EBB_OK)
        st = need_store(c, err);
    if (st == EBB_OK)
        st = ebb_store_find(c->store, name, &id, err);
    if (st == EBB_OK)
        st = ebb_chat_enter_session(c, id, err);
    return st == EBB_OK ? ebb_chat_fit_engine(c, err) : st;
}

ebb_status ebb_chat_list(ebb_chat *c, ebb_session_row **out, size_t *n, ebb_error *err)
{
    ebb_status st = need_store(c, err);

    *out = NULL;
    *n = 0;
    return st == EBB_OK ? ebb_store_list(c->store, out, n, err) : st;
}

/* -- Titles ------------------------------------------------------------------------------ */

ebb_status ebb_chat_check_store_idle(ebb_chat *c, ebb_error *err)
{
    if (ebb_chat_is_busy(c))
        return ebb_chat_check_idle(c, err);
    return ebb_chat_ensure_store(c)
               ? EBB_OK
               : EBB_FAIL(err, EBB_IO, "the sessions on disk cannot be read; this chat is kept in memory");
}

ebb_status ebb_chat_set_title(ebb_chat *c, const char *title, ebb_error *err)
{
    char made[sizeof c->facts.title];
    ebb_status st = ebb_chat_check_own(c, err);

    if (st != EBB_OK)
        return st;
    ebb_title_make(title, strlen(title), made, sizeof made);
    if (!made[0])
        return EBB_FAIL(err, EBB_USAGE, "a title needs at least one character");
    memcpy(c->facts.title, made, sizeof made);
    ebb_chat_save(c, false);
    return EBB_OK;
}

/* -- Finding ---------------------------------------------------------------------------- */

ebb_status ebb_chat_search(ebb_chat *c, const char *words, size_t limit, ebb_chat_hit **out, size_t *n, ebb_error *err)
{
    ebb_store_hit *hits = NULL;
    ebb_status st = need_store(c, err);

    if (st == EBB_OK) {
        ebb_writer_note_cut(c->store, c);
        st = ebb_store_search(c->store, words, limit, &hits, n, err);
    }
    *out = st == EBB_OK ? calloc(*n + 1, sizeof **out) : NULL;
    if (st == EBB_OK && !*out)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for what was found");
    for (size_t i = 0; st == EBB_OK && i < *n; i++) {
        ebb_chat_hit *to = &(*out)[i];
        const char *from = hits[i].snippet;

        *to = (ebb_chat_hit){ .session = hits[i].session, .created_ms = hits[i].created_ms, .role = hits[i].role };
        memcpy(to->name, hits[i].name, sizeof to->name);
        for (char *p = to->snippet; *from; from++)
            if (*from != EBB_HIT_BEGIN && *from != EBB_HIT_END)
                *p++ = *from == '\n' || *from == '\t' ? ' ' : *from;
    }
    free(hits);
    *n = st == EBB_OK ? *n : 0;
    if (st == EBB_OK && *n < limit && ebb_store_search_was_cut(c->store))
        ebb_chat_notice(c, EBB_SEARCH_CUT_LINE);
    return st;
}

/* -- Deleting ------------------------------------------------------------------------------ */

static size_t deleted_bytes(const ebb_deleted_session *d)
{
    size_t n = sizeof *d;

    for (size_t i = 0; i < d->tree.n_nodes; i++) {
        const ebb_message *m = &d->tree.nodes[i]->m;

        n += sizeof(ebb_node) + m->n_text + m->n_ids * sizeof *m->ids;
    }
    return n;
}

static void free_deleted(ebb_deleted_session *d)
{
    if (!d)
        return;
    ebb_session_facts_fini(&d->facts);
    ebb_tree_fini(&d->tree);
    free(d);
}

/* This one and all older ones. */
static void give_up_deleted(ebb_deleted_session **from)
{
    while (*from) {
        ebb_deleted_session *d = *from;

        *from = d->older;
        free_deleted(d);
    }
}

void ebb_chat_free_deleted(ebb_chat *c)
{
    give_up_deleted(&c->deleted.newest);
    c->deleted.asked = 0;
}

/* Where those begin that cannot stay beside another of that size. */
static ebb_deleted_session **find_surplus(ebb_chat *c, size_t n_bytes)
{
    ebb_deleted_session **at = &c->deleted.newest;

    while (*at && (n_bytes += (*at)->n_bytes) <= EBB_DELETED_BYTES_MOST)
        at = &(*at)->older;
    return at;
}

/* They were deleted with the promise that they can come back: that is not taken back without a word. */
static ebb_status ask_to_give_up(ebb_chat *c, const ebb_deleted_session *next, ebb_error *err)
{
    const ebb_deleted_session *first = *find_surplus(c, next->n_bytes);
    size_t n_others = 0;
    char others[48] = "";

    if (!first || c->deleted.asked == next->facts.id)
        return EBB_OK;
    for (const ebb_deleted_session *d = first->older; d; d = d->older)
        n_others++;
    if (n_others)
        snprintf(others, sizeof others, " and %zu deleted before it", n_others);
    c->deleted.asked = next->facts.id;
    return EBB_FAIL(err, EBB_LIMIT, "'%s'%s could not be brought back any more: more than %d MiB of deleted sessions "
                    "are not kept. The same command once more deletes this one all the same",
                    ebb_session_facts_label(&first->facts), others, EBB_DELETED_BYTES_MOST >> 20);
}

static void keep_deleted(ebb_chat *c, ebb_deleted_session *d)
{
    give_up_deleted(find_surplus(c, d->n_bytes));
    d->facts.keeps_id = true;
    d->older = c->deleted.newest;
    c->deleted.newest = d;
    c->deleted.asked = 0;
}

/* Deleting has left words in the search's index and K and V on disk. */
static void drop_deleted(ebb_chat *c)
{
    ebb_kept kept;
    ebb_error err = { 0 };
    size_t n;

    if (ebb_store_scrub(c->store, false, &err) != EBB_OK)
        ebb_chat_notice(c, "%s", err.msg);
    if (strcmp(ebb_store_path(c->store), ":memory:") == 0)
        return;
    if (ebb_kept_read(c->store, &kept, &err) != EBB_OK || ebb_kept_sweep_kv(&kept, &n, &err) != EBB_OK)
        ebb_chat_notice(c, "its K and V stay on disk: %s", err.msg);
    ebb_kept_fini(&kept);
}

/* Of this one, which stays, some K and V may have waited to be written when those of the other were removed. */
static void keep_current(ebb_chat *c)
{
    ebb_prompt p = { 0 };

    if (c->info && c->backend->ops->keep && c->tree.n_path > 0 &&
        ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, NULL) == EBB_OK)
        c->backend->ops->keep(c->backend, p.ids, p.n_ids);
    ebb_prompt_fini(&p);
}

/* Read the session, which can be brought back by that alone, and delete it.  On failure it is as it was. */
static ebb_status take_from_store(ebb_chat *c, int64_t id, ebb_error *err)
{
    ebb_deleted_session *d = calloc(1, sizeof *d);
    ebb_status st = d ? ebb_store_load(c->store, id, &d->facts, &d->tree, err)
                      : EBB_FAIL(err, EBB_NOMEM, "no memory to delete a session such that it can be brought back");

    if (st == EBB_OK) {
        d->n_bytes = deleted_bytes(d);
        st = ask_to_give_up(c, d, err);
    }
    if (st == EBB_OK)
        st = ebb_store_delete(c->store, id, err);
    if (st == EBB_OK)
        keep_deleted(c, d);
    else
        free_deleted(d);
    return st;
}

ebb_status ebb_chat_delete(ebb_chat *c, const char *name, ebb_error *err)
{
    ebb_status st = ebb_chat_check_store_idle(c, err);
    int64_t id = c->facts.id;

    if (st == EBB_OK && *name)
        st = ebb_store_find(c->store, name, &id, err);
    if (st == EBB_OK && id == 0)
        st = EBB_FAIL(err, EBB_USAGE, "this session has not been saved yet: there is nothing to delete");
    if (st == EBB_OK)
        st = ebb_writer_check_none(ebb_writer_find(c, id), err);
    if (st == EBB_OK)
        st = take_from_store(c, id, err);
    if (st != EBB_OK)
        return st;
    drop_deleted(c);
    ebb_chat_forget_reference(c);
    if (id != c->facts.id) {
        keep_current(c);
        return EBB_OK;
    }
    ebb_chat_set_saved(c);                       /* its unsaved messages are deleted with it */
    return ebb_chat_new_session(c, err);
}

ebb_status ebb_chat_undelete(ebb_chat *c, ebb_error *err)
{
    ebb_deleted_session *d = c->deleted.newest;
    ebb_status st = ebb_chat_check_store_idle(c, err);

    if (st == EBB_OK && !d)
        st = EBB_FAIL(err, EBB_USAGE, "there is no deleted session to bring back");
    if (st == EBB_OK)                            /* its row is deleted: insert all messages */
        st = ebb_store_save(c->store, &d->facts, &d->tree, true, err);
    if (st == EBB_USAGE && d && d->facts.name[0])
        st = ebb_chat_save_under_title(c, &d->facts, &d->tree, true, err);
    if (st == EBB_OK)
        st = ebb_chat_enter_session(c, d->facts.id, err);
    if (st != EBB_OK)
        return st;
    c->deleted.newest = d->older;
    c->deleted.asked = 0;
    free_deleted(d);
    return ebb_chat_fit_engine(c, err);
}
