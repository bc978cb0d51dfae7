/* Writing and reading one session (store.h). */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/store_sql.h"

/* A message that got its number in a save under way, and what it was before. */
typedef struct numbered {
    ebb_node *node;
    int64_t   old_id;
} numbered;

/* One save, with the ids of session and messages to restore if it fails. */
typedef struct save_job {
    ebb_store         *s;
    ebb_session_facts *f;
    ebb_tree          *t;
    int64_t            old_session;
    numbered          *done;
    size_t             n_done;
    bool               has_news;     /* some message is dirty */
} save_job;

void ebb_store_swap_ids(int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)le32toh((uint32_t)ids[i]);
}

static void assign_row_id(save_job *v, ebb_node *node, int64_t id)
{
    v->done[v->n_done++] = (numbered){ node, node->m.id };
    ebb_node_set_id(node, id);
}

/* What other programs have made of the row since it was last read or saved. */
static int read_others(ebb_store *s, ebb_session_facts *f)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT coalesce(name, ''), coalesce(leaf, 0) FROM sessions WHERE id = ?", "i",
                               f->id);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        ebb_store_text(q, 0, f->name, sizeof f->name);
        f->is_shared = f->is_shared || sqlite3_column_int64(q, 1) != f->leaf;
    }
    sqlite3_finalize(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* What finds one session is not to be given to another: a number is no new row's that is somebody's name by now ... */
#define FREE_NUMBER "(WITH RECURSIVE free (id) AS (SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE" \
    " name = 'sessions'), 0), coalesce((SELECT max(id) FROM sessions), 0)) + 1 UNION ALL SELECT id + 1 FROM free" \
    " WHERE EXISTS (SELECT 1 FROM sessions WHERE name = CAST(free.id AS TEXT)) OR EXISTS (SELECT 1 FROM sessions" \
    " WHERE name >= '0' AND name < '1' AND name NOT GLOB '*[^0-9]*' AND CAST(name AS INTEGER) = free.id))" \
    " SELECT max(id) FROM free)"

/* ... and a name is none that is somebody's number.  A SQLite code. */
static int check_name_is_no_number(save_job *v)
{
    int64_t number = ebb_session_number(v->f->name);
    sqlite3_stmt *q;
    int rc;

    if (number == 0 || number == v->old_session)
        return SQLITE_OK;
    rc = ebb_store_prepare(v->s, &q, "SELECT 1 FROM sessions WHERE id = ?", "i", number);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    sqlite3_finalize(q);
    return rc == SQLITE_ROW ? SQLITE_CONSTRAINT_UNIQUE : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The session's row.  If another process has deleted it, the session and all its messages are
 * inserted anew, or nothing is. */
static int save_facts(save_job *v)
{
    ebb_session_facts *f = v->f;
    int64_t now = ebb_clock_unix_ms(), changed = f->changed_ms > 0 && f->changed_ms < now ? f->changed_ms : now;
    int rc;

    if (f->id) {
        rc = read_others(v->s, f);
        if (rc != SQLITE_OK)
            return rc;
        rc = ebb_store_run(v->s, "UPDATE sessions SET title = ?2, model = ?3, pinned_ms = ?4, settings = ?5,"
                           " updated_ms = iif(?6, ?7, updated_ms) WHERE id = ?1", "ittitii", f->id, f->title, f->model,
                           f->pinned_ms, f->settings, (int64_t)v->has_news, now);
        if (rc != SQLITE_OK || sqlite3_changes(v->s->db) > 0)
            return rc;
        f->is_deleted = f->stays_deleted;
        if (f->is_deleted)
            return SQLITE_OK;
        ebb_tree_forget_ids(v->t);               /* those rows are gone: nothing to return to */
        if (!f->keeps_id)
            v->old_session = 0;
    }
    if (!f->created_ms)
        f->created_ms = changed;
    rc = check_name_is_no_number(v);
    if (rc != SQLITE_OK)
        return rc;
    rc = ebb_store_run(v->s, "INSERT INTO sessions (id, name, title, model, pinned_ms, settings, created_ms,"
                       " updated_ms) VALUES (coalesce(nullif(?, 0), " FREE_NUMBER "), ?, ?, ?, ?, ?, ?, ?)", "itttitii",
                       v->old_session, f->name[0] ? f->name : NULL, f->title, f->model, f->pinned_ms, f->settings,
                       f->created_ms, changed);
    if (rc == SQLITE_OK)
        f->id = sqlite3_last_insert_rowid(v->s->db);
    return rc;
}

static int insert_row(save_job *v, ebb_node *node)
{
    ebb_message *m = &node->m;
    ebb_turn_stats *c = &m->turn_stats;
    char *truncation = ebb_truncation_json(&m->truncation), *sample_records = ebb_sample_records_json(m);
    int rc = ebb_store_run_kept(v->s, &v->s->insert,
                           "INSERT INTO messages (session, parent, role, finish, pinned, text, ids, n_ids, ids_model,"
                           " created_ms, model, n_prompt, n_reused, n_reused_disk, n_computed, n_generated,"
                           " prefill_s, decode_s, n_ahead, n_guessed, left_out, draws, engine, about, first_s)"
                           " VALUES (?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                           "?, ?, ?, ?)",
                           "iiiiisbibitiiiiiddiitttid", v->f->id, m->parent, (int64_t)m->role, (int64_t)m->finish,
                           (int64_t)m->pinned, m->text, m->n_text, (const void *)m->ids, m->n_ids * sizeof *m->ids,
                           (int64_t)m->n_ids, (const void *)m->ids_model, sizeof m->ids_model, m->created_ms, m->model,
                           (int64_t)c->n_prompt, (int64_t)c->n_reused, (int64_t)c->n_reused_disk,
                           (int64_t)c->n_computed,
                           (int64_t)c->n_generated, c->prefill_s, c->decode_s, (int64_t)c->n_prefilled_early,
                           (int64_t)c->n_accepted, truncation, sample_records,
                           m->engine, (int64_t)c->about, c->first_s);

    free(truncation);
    free(sample_records);
    if (rc == SQLITE_OK)
        assign_row_id(v, node, sqlite3_last_insert_rowid(v->s->db));
    return rc;
}

/* The text of a finished one is to be another: the program that writes it was stopped for a while, and noted as cut
 * off.  Of two triggers on one update (store_schema.c) SQLite runs the one that puts the new text into the index first,
 * and the one that takes the old one out behind it: words of both would be found no longer.  So it leaves
 * beforehand. */
static int leave_index(save_job *v, const ebb_node *node)
{
    return ebb_store_run(v->s, "UPDATE messages SET finish = 0 WHERE id = ? AND finish <> 0"
                               " AND length(CAST(text AS BLOB)) = ? AND text IS NOT ?", "iis",
                         node->m.id, (int64_t)node->n_stored, node->m.text, node->m.n_text);
}

/* No row is changed if the message is gone, or another program has changed its text meanwhile. */
static int update_message(save_job *v, const ebb_node *node)
{
    const ebb_message *m = &node->m;
    const ebb_turn_stats *c = &m->turn_stats;
    char *truncation = ebb_truncation_json(&m->truncation), *sample_records = ebb_sample_records_json(m);
    int rc = ebb_store_run(v->s,
                           "UPDATE messages SET finish = ?, pinned = ?, text = ?, ids = ?, n_ids = ?, ids_model = ?,"
                         " model = ?, n_prompt = ?, n_reused = ?, n_reused_disk = ?, n_computed = ?, n_generated = ?,"
                         " prefill_s = ?, decode_s = ?, n_ahead = ?, n_guessed = ?, left_out = ?, draws = ?,"
                         " engine = ?, about = ?, first_s = ? WHERE id = ? AND length(CAST(text AS BLOB)) = ?",
                           "iisbibtiiiiiddiitttidii",
                         (int64_t)m->finish, (int64_t)m->pinned, m->text, m->n_text,
                         (const void *)m->ids, m->n_ids * sizeof *m->ids, (int64_t)m->n_ids,
                         (const void *)m->ids_model, sizeof m->ids_model, m->model, (int64_t)c->n_prompt,
                         (int64_t)c->n_reused, (int64_t)c->n_reused_disk, (int64_t)c->n_computed,
                         (int64_t)c->n_generated, c->prefill_s, c->decode_s, (int64_t)c->n_prefilled_early,
                         (int64_t)c->n_accepted, truncation, sample_records,
                         m->engine, (int64_t)c->about, c->first_s, m->id, (int64_t)node->n_stored);

    free(truncation);
    free(sample_records);
    return rc;
}

/* Insert a message, and its parent first if another process has deleted that one meanwhile. */
static int insert_message(save_job *v, ebb_node *node)
{
    int rc = insert_row(v, node);

    if (rc != SQLITE_CONSTRAINT || sqlite3_extended_errcode(v->s->db) != SQLITE_CONSTRAINT_FOREIGNKEY || !node->parent)
        return rc;
    ebb_store_swap_ids(node->parent->m.ids, node->parent->m.n_ids);
    rc = insert_message(v, node->parent);
    ebb_store_swap_ids(node->parent->m.ids, node->parent->m.n_ids);
    return rc == SQLITE_OK ? insert_row(v, node) : rc;
}

/* Another process has changed the message since it was read or saved here: the stored text stays.
 * If the text was changed here, too, ours is inserted as a sibling. */
static int save_beside(save_job *v, ebb_node *node)
{
    return node->m.n_text == node->n_stored
        ? ebb_store_run(v->s, "UPDATE messages SET pinned = ? WHERE id = ?", "ii", (int64_t)node->m.pinned, node->m.id)
        : insert_message(v, node);
}

static int save_message(save_job *v, ebb_node *node)
{
    int rc = SQLITE_OK;
    bool is_saved = false;

    ebb_store_swap_ids(node->m.ids, node->m.n_ids);
    if (node->m.id > 0) {
        rc = leave_index(v, node);
        if (rc == SQLITE_OK)
            rc = update_message(v, node);
        is_saved = sqlite3_changes(v->s->db) > 0;
    }
    if (rc == SQLITE_OK && node->m.id > 0 && !is_saved) {
        rc = save_beside(v, node);
        is_saved = sqlite3_changes(v->s->db) > 0;
    }
    if (rc == SQLITE_OK && !is_saved)
        rc = insert_message(v, node);
    ebb_store_swap_ids(node->m.ids, node->m.n_ids);
    return rc;
}

static int save_all(save_job *v)
{
    ebb_node *leaf;
    int rc = save_facts(v);

    if (rc == SQLITE_OK && v->f->is_deleted)
        return ebb_store_run(v->s, "COMMIT", "");
    for (size_t i = 0; rc == SQLITE_OK && i < v->t->n_nodes; i++) {
        rc = ebb_store_batch_step(v->s);
        if (rc == SQLITE_OK && v->t->nodes[i]->is_dirty)
            rc = save_message(v, v->t->nodes[i]);
    }
    leaf = ebb_tree_leaf(v->t);
    if (rc == SQLITE_OK)
        rc = ebb_store_run(v->s, "UPDATE sessions SET leaf = nullif(?, 0) WHERE id = ?", "ii",
                           leaf ? leaf->m.id : 0, v->f->id);
    return rc == SQLITE_OK && !v->s->batch.is_open ? ebb_store_run(v->s, "COMMIT", "") : rc;
}

static void rollback_save(save_job *v)
{
    sqlite3_exec(v->s->db, "ROLLBACK", NULL, NULL, NULL);
    for (size_t i = v->n_done; i-- > 0;)
        ebb_node_set_id(v->done[i].node, v->done[i].old_id);
    v->n_done = 0;
    v->f->id = v->old_session;
}

static bool has_dirty(const ebb_tree *t)
{
    for (size_t i = t->n_nodes; i-- > 0;)
        if (t->nodes[i]->is_dirty)
            return true;
    return false;
}

static int save_by_itself(save_job *v, bool durable)
{
    ebb_store *s = v->s;
    int rc;

    sqlite3_busy_timeout(s->db, durable && !s->is_impatient ? EBB_STORE_PATIENCE_MS : EBB_STORE_HASTE_MS);
    rc = ebb_store_begin(s, durable);
    return rc == SQLITE_OK ? save_all(v) : rc;
}

ebb_status ebb_store_save(ebb_store *s, ebb_session_facts *f, ebb_tree *t, bool durable, ebb_error *err)
{
    save_job v = { .s = s, .f = f, .t = t, .old_session = f->id, .has_news = has_dirty(t) };
    ebb_status st = EBB_OK;
    int rc;

    assert(!s->batch.is_open || !f->id);         /* no trigger sees what else would be changed */
    if (s->is_readonly)
        return ebb_store_fail(s, ebb_store_is_moved(s) ? SQLITE_READONLY_DBMOVED : SQLITE_READONLY, err);
    v.done = calloc(t->n_nodes + 1, sizeof *v.done);
    if (!v.done)
        return EBB_FAIL(err, EBB_NOMEM, "no memory to save the session");
    rc = s->batch.is_open ? save_all(&v) : save_by_itself(&v, durable);
    if (rc != SQLITE_OK && s->is_index_damaged && !s->batch.is_open) {
        rollback_save(&v);
        rc = ebb_store_mend_index(s, rc);
        if (rc == SQLITE_OK)
            rc = save_by_itself(&v, durable);
    }
    if (rc != SQLITE_OK) {
        st = ebb_store_fail(s, rc, err);
        rollback_save(&v);
    }
    s->is_impatient = st == EBB_BUSY;
    if (!s->batch.is_open)
        sqlite3_busy_timeout(s->db, EBB_STORE_PATIENCE_MS);
    if (st == EBB_OK)
        f->leaf = ebb_tree_leaf(t) ? ebb_tree_leaf(t)->m.id : 0;
    for (size_t i = 0; st == EBB_OK && i < t->n_nodes; i++) {
        t->nodes[i]->is_dirty = false;
        t->nodes[i]->n_stored = t->nodes[i]->m.n_text;
    }
    free(v.done);
    return st;
}

ebb_status ebb_store_delete_message(ebb_store *s, int64_t message, size_t n_stored, ebb_error *err)
{
    static const char as_known[] = "DELETE FROM messages WHERE id = ?1 AND length(CAST(text AS BLOB)) = ?2"
                                   " AND NOT EXISTS (SELECT 1 FROM messages WHERE parent = ?1)";
    int rc = ebb_store_run(s, as_known, "ii", message, (int64_t)n_stored);
    sqlite3_stmt *q = NULL;

    if (rc != SQLITE_OK && (rc = ebb_store_mend_index(s, rc)) == SQLITE_OK)
        rc = ebb_store_run(s, as_known, "ii", message, (int64_t)n_stored);
    if (rc == SQLITE_OK && sqlite3_changes(s->db) > 0)
        return EBB_OK;
    if (rc == SQLITE_OK)
        rc = ebb_store_prepare(s, &q, "SELECT 1 FROM messages WHERE id = ?", "i", message);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    sqlite3_finalize(q);
    if (rc == SQLITE_ROW)
        return EBB_FAIL(err, EBB_BUSY, "another program has gone on with message %lld, or below it",
                        (long long)message);
    return rc == SQLITE_DONE ? EBB_OK : ebb_store_fail(s, rc, err);
}

/* Those that were never begun are taken away where the session is opened. */
#define ANSWERS_CUT " WHERE session = ? AND finish = 0 AND role = ? AND (n_ids > 0 OR text <> '')"

/* To look needs no lock. */
static bool has_cut(ebb_store *s, int64_t session)
{
    sqlite3_stmt *q = NULL;
    bool has = ebb_store_prepare(s, &q, "SELECT 1 FROM messages" ANSWERS_CUT, "ii", session,
                                 (int64_t)EBB_ROLE_ASSISTANT) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW;

    sqlite3_finalize(q);
    return has;
}

static int note_rows_cut(ebb_store *s, int64_t session)
{
    int rc = ebb_store_begin(s, false);

    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "UPDATE messages SET finish = ?" ANSWERS_CUT, "iii", (int64_t)EBB_FINISH_CUT_OFF, session,
                           (int64_t)EBB_ROLE_ASSISTANT);
    return rc == SQLITE_OK ? ebb_store_run(s, "COMMIT", "") : rc;
}

void ebb_store_note_cut(ebb_store *s, int64_t session)
{
    int rc;

    if (s->is_readonly || !has_cut(s, session))
        return;
    rc = note_rows_cut(s, session);
    if (rc != SQLITE_OK && (rc = ebb_store_mend_index(s, rc)) == SQLITE_OK)
        rc = note_rows_cut(s, session);
    if (rc == SQLITE_OK)
        return;
    ebb_log("store", "%s: session %lld: %s", s->path, (long long)session, sqlite3_errstr(rc));
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* -- Reading ------------------------------------------------------------------- */

static ebb_status load_facts(ebb_store *s, int64_t session, ebb_session_facts *f, ebb_error *err)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "SELECT coalesce(name, ''), title, model, pinned_ms, settings, coalesce(leaf, 0),"
                               " created_ms FROM sessions WHERE id = ?", "i", session);

    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        const char *settings = (const char *)sqlite3_column_text(q, 4);

        f->id = session;
        ebb_store_text(q, 0, f->name, sizeof f->name);
        ebb_store_text(q, 1, f->title, sizeof f->title);
        ebb_store_text(q, 2, f->model, sizeof f->model);
        f->pinned_ms = sqlite3_column_int64(q, 3);
        f->settings = settings ? strdup(settings) : NULL;
        f->leaf = sqlite3_column_int64(q, 5);
        f->created_ms = sqlite3_column_int64(q, 6);
    }
    sqlite3_finalize(q);
    if (rc == SQLITE_DONE)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no session %lld", (long long)session);
    return rc == SQLITE_ROW ? EBB_OK : ebb_store_fail(s, rc, err);
}

static void load_turn_stats(sqlite3_stmt *q, ebb_turn_stats *c)
{
    c->n_prompt = (uint32_t)sqlite3_column_int64(q, 10);
    c->n_reused = (uint32_t)sqlite3_column_int64(q, 11);
    c->n_reused_disk = (uint32_t)sqlite3_column_int64(q, 12);
    c->n_computed = (uint32_t)sqlite3_column_int64(q, 13);
    c->n_generated = (uint32_t)sqlite3_column_int64(q, 14);
    c->prefill_s = sqlite3_column_double(q, 15);
    c->decode_s = sqlite3_column_double(q, 16);
    c->n_prefilled_early = (uint32_t)sqlite3_column_int64(q, 17);
    c->n_accepted = (uint32_t)sqlite3_column_int64(q, 18);
    c->about = (uint32_t)sqlite3_column_int64(q, 22);
    c->first_s = sqlite3_column_double(q, 23);
}

static bool load_message(sqlite3_stmt *q, ebb_tree *t)
{
    int64_t parent_id = sqlite3_column_int64(q, 1);
    ebb_node *parent = parent_id ? ebb_tree_find(t, parent_id) : NULL;
    const char *text = sqlite3_column_blob(q, 5), *model = (const char *)sqlite3_column_text(q, 9);
    const char *engine = (const char *)sqlite3_column_text(q, 21);
    size_t n_text = (size_t)sqlite3_column_bytes(q, 5);
    ebb_role role = (ebb_role)ebb_store_in_range(sqlite3_column_int(q, 2), EBB_ROLE_ASSISTANT, EBB_ROLE_NOTE);
    ebb_node *node = ebb_tree_add(t, parent, role, text, n_text);
    uint8_t ids_model[16] = { 0 };

    if (!node)
        return false;
    ebb_node_set_id(node, sqlite3_column_int64(q, 0));
    node->m.finish = (ebb_finish)ebb_store_in_range(sqlite3_column_int(q, 3), EBB_FINISH_ERROR, EBB_FINISH_CUT_OFF);
    node->m.pinned = sqlite3_column_int(q, 4) != 0;
    node->m.created_ms = sqlite3_column_int64(q, 8);
    node->m.model = model ? strdup(model) : NULL;
    node->m.engine = engine ? strdup(engine) : NULL;
    load_turn_stats(q, &node->m.turn_stats);
    if (role == EBB_ROLE_NOTE)
        ebb_truncation_parse((const char *)sqlite3_column_text(q, 19), &node->m.truncation);
    if (!ebb_sample_records_parse((const char *)sqlite3_column_text(q, 20), &node->m))
        return false;
    if (sqlite3_column_bytes(q, 7) == sizeof ids_model)
        memcpy(ids_model, sqlite3_column_blob(q, 7), sizeof ids_model);
    if (!ebb_node_set_ids(node, sqlite3_column_blob(q, 6),
                          (size_t)sqlite3_column_bytes(q, 6) / sizeof(int32_t), ids_model))
        return false;
    ebb_store_swap_ids(node->m.ids, node->m.n_ids);
    node->is_dirty = false;
    node->n_stored = n_text;
    return true;
}

static ebb_status load_messages(ebb_store *s, int64_t session, ebb_tree *t, ebb_error *err)
{
    sqlite3_stmt *q;
    ebb_status st = EBB_OK;
    int rc = ebb_store_prepare(s, &q,
                               "SELECT id, parent, role, finish, pinned, text, ids, ids_model, created_ms, model,"
                               " n_prompt, n_reused, n_reused_disk, n_computed, n_generated, prefill_s, "
                               "decode_s, n_ahead,"
                               " n_guessed, left_out, draws, engine, about, first_s FROM messages WHERE session = ? "
                               "ORDER BY id", "i", session);

    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    while (st == EBB_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
        if (!load_message(q, t))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for session %lld", (long long)session);
    if (st == EBB_OK && rc != SQLITE_DONE)
        st = ebb_store_fail(s, rc, err);
    sqlite3_finalize(q);
    return st;
}

/* An answer that was never begun is deleted before the session is saved without it: killed in between, the session ends
 * with its newest message, not nowhere. */
static ebb_node *find_leaf(const ebb_tree *t, int64_t leaf)
{
    ebb_node *node = ebb_tree_find(t, leaf);

    return node || t->n_nodes == 0 ? node : t->nodes[t->n_nodes - 1];
}

ebb_status ebb_store_load(ebb_store *s, int64_t session, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    ebb_status st = load_facts(s, session, f, err);

    if (st == EBB_OK)
        st = load_messages(s, session, t, err);
    if (st == EBB_OK && f->leaf && !ebb_tree_set_leaf(t, find_leaf(t, f->leaf)))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for session %lld", (long long)session);
    if (st != EBB_OK) {
        ebb_session_facts_fini(f);
        ebb_tree_fini(t);
    }
    return st;
}
