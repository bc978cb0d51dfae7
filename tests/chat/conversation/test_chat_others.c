/* What other programs do beneath an open chat, to its session or to the whole store, is told in one line, and takes
 * nothing of the session along. */
#include <sys/stat.h>
#include <unistd.h>

#include "chat/conversation/chat_fixture.h"

static char away[112];

static int setup_away(void **state)
{
    int rc = setup(state);

    snprintf(away, sizeof away, "%s/away", dir);
    return rc;
}

static void move_file(const char *suffix, bool is_back)
{
    char here[128], there[128];

    snprintf(here, sizeof here, "%s%s", db, suffix);
    snprintf(there, sizeof there, "%s%s", away, suffix);
    assert_int_equal(rename(is_back ? there : here, is_back ? here : there), 0);
}

/* -- The store ------------------------------------------------------------------------------ */

/* The database, with its log. */
static void move_store(bool is_back)
{
    static const char *const parts[] = { "", "-wal", "-shm" };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        move_file(parts[i], is_back);
}

/* The questions that another program finds in the session of this number, all of which have answers. */
static void expect_questions(const char *file, int64_t id, const char *want)
{
    ebb_store *s;
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_buf got = { 0 };
    ebb_error err;

    if (ebb_store_open(file, &s, &err) != EBB_OK || ebb_store_load(s, id, &f, &t, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(t.n_path, t.n_nodes);
    for (size_t i = 0; i < t.n_nodes; i += 2)
        ebb_buf_addf(&got, "[%s]", t.nodes[i]->m.text);
    assert_int_equal(ebb_tree_leaf(&t)->m.finish, EBB_FINISH_STOP);
    assert_string_equal(ebb_buf_text(&got), want);
    ebb_buf_fini(&got);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* Lines that tell of it until the answer ends. */
static unsigned count_told(ebb_chat *c, const char *words)
{
    ebb_chat_event ev;
    unsigned n = 0;

    while (fake_next(c, &ev) && ev.kind != EBB_EVENT_DONE)
        n += (ev.kind == EBB_EVENT_NOTICE || ev.kind == EBB_EVENT_WARNING) && strstr(ev.text, words) != NULL;
    return n;
}

static void test_removed(void **state)
{
    ebb_chat *c = open_ready(NULL);

    (void)state;
    say(c, "one");
    move_store(false);
    send(c, "two");
    assert_int_equal(count_told(c, "was moved, removed, replaced or cut short"), 1);
    assert_true(ebb_chat_is_saved(c));
    expect_questions(db, ebb_chat_session_id(c), "[one][two]");
    ebb_chat_close(c);
    expect_questions(away, 1, "[one]");
}

/* Other sessions have the same numbers in the file that is there now. */
static void test_replaced(void **state)
{
    ebb_chat *c = open_ready(NULL), *other;

    (void)state;
    say(c, "one");
    move_store(false);
    other = open_ready(NULL);
    say(other, "theirs");
    ebb_chat_close(other);
    send(c, "two");
    assert_int_equal(count_told(c, "was moved, removed, replaced or cut short"), 1);
    expect_questions(db, 1, "[theirs]");
    assert_int_equal(ebb_chat_session_id(c), 2);
    expect_questions(db, 2, "[one][two]");
    ebb_chat_close(c);
}

/* What was deleted in the file before comes back beside the session that has its number there. */
static void test_replaced_behind_a_deletion(void **state)
{
    ebb_chat *c = open_ready(NULL), *other;
    char was[2048];
    ebb_error err;

    (void)state;
    say(c, "one");
    say(c, "two");
    snprintf(was, sizeof was, "%s", path(c));
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
    move_store(false);
    other = open_ready(NULL);
    say(other, "theirs");
    ebb_chat_close(other);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_string_equal(path(c), was);
    expect_questions(db, 1, "[theirs]");
    expect_questions(db, 2, "[one][two]");
    assert_int_equal(ebb_chat_session_id(c), 2);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    ebb_chat_close(c);
}

/* The folder is a link, and leads to another one by now. */
static void test_link(void **state)
{
    char link[96], old[96], new[96], path[128];
    ebb_chat *c;

    (void)state;
    snprintf(link, sizeof link, "%s/link", dir);
    snprintf(old, sizeof old, "%s/old", dir);
    snprintf(new, sizeof new, "%s/new", dir);
    snprintf(path, sizeof path, "%s/sessions.db", link);
    assert_int_equal(mkdir(old, 0700) + mkdir(new, 0700) + symlink(old, link), 0);
    c = open_ready(&(ebb_chat_opts){ .store_path = path });
    say(c, "one");
    assert_int_equal(unlink(link) + symlink(new, link), 0);
    send(c, "two");
    assert_int_equal(count_told(c, "was moved, removed, replaced or cut short"), 1);
    send(c, "three");
    assert_int_equal(count_told(c, "was moved, removed, replaced or cut short"), 0);
    ebb_chat_close(c);
    expect_questions(path, 1, "[one][two][three]");
}

/* Nothing can be made at the path: the chat is in memory until the file is back. */
static void test_comes_back(void **state)
{
    ebb_chat *c = open_ready(NULL);

    (void)state;
    say(c, "one");
    move_store(false);
    assert_int_equal(mkdir(db, 0700), 0);
    send(c, "two");
    assert_int_equal(count_told(c, "the chat goes on in memory"), 1);
    assert_false(ebb_chat_is_saved(c));
    assert_true(c->saving.retry_ns > 0);
    assert_int_equal(rmdir(db), 0);
    move_store(true);
    send(c, "three");
    assert_int_equal(count_told(c, "saved again"), 1);
    assert_int_equal(ebb_chat_session_id(c), 1);
    expect_questions(db, 1, "[one][two][three]");
    ebb_chat_close(c);
}

/* An import that ended in a file which nobody finds has not happened. */
static void test_batch(void **state)
{
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_store *s;
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_non_null(ebb_tree_add(&t, NULL, EBB_ROLE_USER, "q", 1));
    assert_int_equal(ebb_store_batch_begin(s, 1, NULL, &err), EBB_OK);
    assert_int_equal(ebb_store_save(s, &f, &t, true, &err), EBB_OK);
    move_store(false);
    assert_int_equal(ebb_store_batch_commit(s, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, db));
    assert_int_equal(ebb_store_batch_begin(s, 1, NULL, &err), EBB_NOTFOUND);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* The log, its index, or both: who finds the files after a kill finds all that was said. */
static void test_log_removed(void **state)
{
    static const char *const gone[][2] = { { "-wal", NULL }, { "-shm", NULL }, { "-wal", "-shm" } };
    ebb_chat *c = open_ready(NULL);
    char cmd[512];

    (void)state;
    say(c, "one");
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        for (size_t k = 0; k < 2 && gone[i][k]; k++)
            move_file(gone[i][k], false);
        send(c, "more");
        assert_int_equal(count_told(c, "(-wal, -shm) was removed while it was open"), 1);
        assert_true(ebb_chat_is_saved(c));
        send(c, "and");
        assert_int_equal(count_told(c, "was removed"), 0);
    }
    snprintf(cmd, sizeof cmd, "cp %s %s; cp %s-wal %s-wal", db, away, db, away);
    assert_int_equal(system(cmd), 0);
    expect_questions(away, 1, "[one][more][and][more][and][more][and]");
    ebb_chat_close(c);
}

/* What only the log had is in the chat, too, and goes to the database again. */
static void test_log_cut(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char log[112];

    (void)state;
    say(c, "one");
    say(c, "two");
    snprintf(log, sizeof log, "%s-wal", db);
    assert_int_equal(truncate(log, 0), 0);
    send(c, "three");
    assert_int_equal(count_told(c, "was moved, removed, replaced or cut short"), 1);
    assert_true(ebb_chat_is_saved(c));
    ebb_chat_close(c);
    expect_questions(db, 1, "[one][two][three]");
}

/* -- The session ---------------------------------------------------------------------------- */

static ebb_store *open_beside_chat(void)
{
    ebb_store *s;
    ebb_error err;

    if (ebb_store_open(db, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return s;
}

static void test_deleted(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_store *s;
    ebb_error err;

    (void)state;
    say(c, "one");
    s = open_beside_chat();
    assert_int_equal(ebb_store_delete(s, ebb_chat_session_id(c), &err), EBB_OK);
    send(c, "two");
    assert_int_equal(count_told(c, "another ebb has deleted this session; it is saved again, as number 2"), 1);
    expect_questions(db, 2, "[one][two]");
    send(c, "three");
    assert_int_equal(count_told(c, "another ebb"), 0);
    ebb_store_close(s);
    ebb_chat_close(c);
}

static size_t count_sessions(ebb_store *s)
{
    ebb_session_row *rows;
    size_t n;
    ebb_error err;

    assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);
    free(rows);
    return n;
}

/* Where nobody looks, by `ebb run` or after a hang-up, the answer is there, but not in the store again: whoever
 * deleted the session would not learn of it.  Who names it there wants it. */
static void test_deleted_unseen(void **state)
{
    (void)state;
    for (int is_away = 0; is_away < 2; is_away++) {
        ebb_chat *c = open_ready(&(ebb_chat_opts){ .is_unattended = !is_away });
        ebb_store *s = open_beside_chat();
        ebb_error err;

        c->is_away = is_away;
        say(c, "one");
        assert_int_equal(ebb_store_delete(s, ebb_chat_session_id(c), &err), EBB_OK);
        send(c, "two");
        assert_int_equal(count_told(c, "another ebb has deleted this session: it stays deleted"), 1);
        assert_int_equal(ebb_chat_message(c, 3)->finish, EBB_FINISH_STOP);
        assert_int_equal(count_sessions(s), 0);
        send(c, "three");
        assert_int_equal(count_told(c, "another ebb"), 0);
        assert_false(ebb_chat_is_saved(c));
        assert_int_equal(ebb_chat_check_saved(c, &err), EBB_OK);
        assert_int_equal(count_sessions(s), 0);
        if (is_away) {
            if (ebb_chat_save_as(c, "kept", &err) != EBB_OK)
                fail_msg("%s", err.msg);
            expect_questions(db, ebb_chat_session_id(c), "[one][two][three]");
        }
        ebb_chat_close(c);
        assert_int_equal(count_sessions(s), is_away);
        ebb_store_close(s);
    }
}

/* Whoever waited until it had its turn has asked nothing yet: the question goes to a new session of that name. */
static void test_deleted_before_its_turn(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "talk", .is_unattended = true, .system = "Be brief." });
    ebb_store *s = open_beside_chat();
    ebb_error err;
    int64_t id;

    (void)state;
    assert_int_equal(ebb_chat_take_turn(c, &err), EBB_OK);
    say(c, "my secret");
    assert_int_equal(ebb_store_delete(s, ebb_chat_session_id(c), &err), EBB_OK);
    assert_int_equal(ebb_chat_take_turn(c, &err), EBB_OK);
    send(c, "two");
    assert_int_equal(count_told(c, "another ebb has deleted this session: a new one begins here"), 1);
    assert_string_equal(path(c), "[Be brief.] [two] [a2.0 a2.1 a2.2 ]");
    assert_int_equal(count_sessions(s), 1);
    assert_int_equal(ebb_store_find(s, "talk", &id, &err), EBB_OK);
    assert_int_equal(id, ebb_chat_session_id(c));
    ebb_chat_close(c);
    ebb_store_close(s);
}

/* A name that has become the number of another session leads into none, and begins none. */
static void test_number_of_a_stranger(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "1", .is_unattended = true });
    ebb_session_facts f = { .title = "theirs", .name = "alpha" };
    ebb_store *s = open_beside_chat();
    ebb_tree t = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_store_save(s, &f, &t, false, &err), EBB_OK);
    assert_int_equal(f.id, 1);
    assert_int_equal(ebb_chat_take_turn(c, &err), EBB_USAGE);
    assert_string_equal(err.msg, "1 is the number of another session; choose another name");
    assert_int_equal(ebb_chat_session_id(c), 0);
    send(c, "one");                              /* whom nobody stops */
    assert_int_equal(count_told(c, "another session took the name or number '1'; this one is kept under its title"), 1);
    assert_int_equal(ebb_chat_session_id(c), 2);
    assert_string_equal(ebb_chat_session_name(c), "one");
    ebb_chat_close(c);
    ebb_store_close(s);
}

/* Whoever names a session that was deleted wants it: it is saved again, but under no name that another one has. */
static void test_deleted_before_it_is_named(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "theirs" });
    ebb_store *s;
    ebb_error err;

    (void)state;
    say(c, "else");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    say(c, "one");
    s = open_beside_chat();
    assert_int_equal(ebb_store_delete(s, ebb_chat_session_id(c), &err), EBB_OK);
    ebb_store_close(s);
    assert_int_equal(ebb_chat_save_as(c, "theirs", &err), EBB_USAGE);
    assert_string_equal(ebb_chat_session_name(c), "one");
    if (ebb_chat_save_as(c, "talk", &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(ebb_chat_session_name(c), "talk");
    send(c, "two");
    assert_int_equal(count_told(c, "another ebb has deleted this session; it is saved again, as number 3"), 1);
    expect_questions(db, 3, "[one][two]");
    ebb_chat_close(c);
}

static void test_renamed(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .session_name = "talk" });
    ebb_store *s;
    ebb_error err;

    (void)state;
    say(c, "one");
    s = open_beside_chat();
    assert_int_equal(ebb_store_rename(s, ebb_chat_session_id(c), "walk", &err), EBB_OK);
    send(c, "two");
    assert_int_equal(count_told(c, "another ebb has named this session 'walk'"), 1);
    assert_string_equal(ebb_chat_session_name(c), "walk");
    ebb_store_close(s);
    ebb_chat_close(c);
}

/* An answer of another one that had only begun when the session was read here, and has ended by the time that nobody
 * writes any more. */
static void test_ended_while_read(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_node *answer;

    (void)state;
    say(c, "one");
    answer = ebb_tree_leaf(&c->tree);
    answer->m.finish = EBB_FINISH_NONE;          /* as it was then */
    answer->m.n_text = answer->n_stored = 0;
    answer->m.n_ids = 0;
    ebb_chat_report_interrupted(c);
    assert_int_equal(ebb_chat_n_messages(c), 2);
    assert_int_equal(ebb_chat_message(c, 1)->finish, EBB_FINISH_STOP);
    assert_true(ebb_chat_message(c, 1)->n_text > 0);
    ebb_chat_close(c);
    expect_questions(db, 1, "[one]");
}

static void test_both_write(void **state)
{
    ebb_chat *c = open_ready(NULL), *other;
    ebb_error err;

    (void)state;
    say(c, "one");
    other = open_ready(&(ebb_chat_opts){ .continue_last = true });
    send(other, "theirs");
    assert_int_equal(count_told(other, "another ebb"), 0);
    send(c, "two");
    assert_int_equal(count_told(c, "another ebb has gone on in this session, too; both are kept as branches: /load it "
                                   "again, and /tree shows them"), 1);
    send(c, "three");
    assert_int_equal(count_told(c, "another ebb"), 0);   /* once is enough */
    send(other, "and theirs");
    assert_int_equal(count_told(other, "another ebb has gone on in this session, too"), 1);
    assert_int_equal(ebb_chat_load(c, "one", &err), EBB_OK);     /* as it was told */
    assert_int_equal(ebb_chat_go(c, "3a", &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 2)->text, "theirs");
    ebb_chat_close(other);
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_away, teardown)
    const struct CMUnitTest tests[] = {
        T(test_removed), T(test_replaced), T(test_replaced_behind_a_deletion), T(test_link),
        T(test_comes_back), T(test_batch), T(test_log_removed), T(test_log_cut),
        T(test_deleted), T(test_deleted_unseen), T(test_deleted_before_its_turn), T(test_number_of_a_stranger),
        T(test_deleted_before_it_is_named), T(test_renamed),
        T(test_both_write), T(test_ended_while_read),
    };

    return cmocka_run_group_tests_name("chat: others at its store", tests, NULL, NULL);
}
