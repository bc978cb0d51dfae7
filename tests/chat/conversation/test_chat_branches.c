/* Branches and sessions of a chat on a scripted backend. */
#include "ebb_test.h"

#include "chat/conversation/chat_fixture.h"
#include "conversation/chat_priv.h"
#include "store/store_sql.h"

/* "*1 2a 3 *2b": the rows of the tree, * on the path, ! where it stands. */
static const char *tree(ebb_chat *c)
{
    static char s[1024];
    ebb_branch *rows;
    size_t n, at = 0;

    assert_int_equal(ebb_chat_branches(c, &rows, &n, NULL), EBB_OK);
    s[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(s + at, sizeof s - at, "%s%s%s", i ? " " : "",
                               rows[i].is_leaf ? "!" : rows[i].is_on_path ? "*" : "", rows[i].label);
    free(rows);
    return s;
}

static void test_labels_and_going(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    assert_string_equal(tree(c), "");
    say(c, "one");
    say(c, "two");
    assert_string_equal(tree(c), "*1 *2 *3 !4");
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    done(c);
    assert_string_equal(tree(c), "*1 *2 *3 4a !4b");
    assert_int_equal(ebb_chat_edit(c, 0, "uno", 3, &err), EBB_OK);
    done(c);
    assert_string_equal(tree(c), "1a 2a 3 4a 4b *1b !2b");
    assert_string_equal(path(c), "[uno] [a4.0 a4.1 a4.2 ]");
    assert_int_equal(ebb_chat_go(c, "4a", &err), EBB_OK);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ] [two] [a2.0 a2.1 a2.2 ]");
    assert_int_equal(ebb_chat_go(c, "2a", &err), EBB_OK);    /* on the path: exactly there */
    assert_string_equal(tree(c), "*1a !2a 3 4a 4b 1b 2b");
    assert_int_equal(ebb_chat_go(c, "1b", &err), EBB_OK);    /* elsewhere: to the end of it */
    assert_string_equal(tree(c), "1a 2a 3 4a 4b *1b !2b");
    assert_int_equal(ebb_chat_go(c, "4", &err), EBB_USAGE);
    assert_int_equal(ebb_chat_go(c, "", &err), EBB_USAGE);
    ebb_chat_close(c);
}

/* What is sent after /branch hangs beside what was there, and nothing is computed twice. */
static void test_branch(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "one");
    say(c, "two");
    assert_int_equal(ebb_chat_branch(c, 2, &err), EBB_OK);
    assert_string_equal(tree(c), "*1 !2 3 4");
    say(c, "other");
    assert_string_equal(tree(c), "*1 *2 3a 4a *3b !4b");
    /* As in every question, the first id. */
    assert_int_equal(ebb_chat_message(c, 3)->turn_stats.n_computed, 1 + strlen("other"));
    assert_int_equal(ebb_chat_branch(c, 0, &err), EBB_OK);
    assert_int_equal(ebb_chat_n_messages(c), 0);
    assert_int_equal(ebb_chat_branch(c, 0, &err), EBB_USAGE);
    ebb_chat_close(c);
}

static void test_many_siblings(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_branch *rows;
    ebb_error err;
    size_t n;

    (void)state;
    say(c, "go");
    for (int i = 0; i < 27; i++) {
        assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
        done(c);
    }
    assert_int_equal(ebb_chat_branches(c, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, 29);
    assert_string_equal(rows[26].label, "2z");
    assert_string_equal(rows[27].label, "2aa");
    assert_string_equal(rows[28].label, "2ab");
    assert_true(rows[28].is_leaf && !rows[28].has_next && rows[27].has_next);
    free(rows);
    ebb_chat_close(c);
}

/* An import may have them by the ten thousand; a walk that looked for each from the first on would not end here. */
static void test_many_roots(void **state)
{
    enum { MESSAGES = 300000 };
    ebb_chat *c = open_ready(NULL);
    ebb_branch *rows;
    ebb_error err;
    size_t n;

    (void)state;
    for (int i = 0; i < MESSAGES; i++)
        assert_non_null(ebb_tree_add(&c->tree, i % 100 == 1 ? c->tree.nodes[i - 1] : NULL, EBB_ROLE_USER, "", 0));
    assert_int_equal(ebb_chat_branches(c, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, MESSAGES);
    assert_string_equal(rows[0].label, "1a");
    assert_string_equal(rows[1].label, "2a");
    assert_string_equal(rows[2].label, "1b");
    assert_true(rows[2].has_next && !rows[2].is_only && rows[2].parent == SIZE_MAX);
    assert_int_equal(rows[101].parent, 100);
    assert_false(rows[n - 1].has_next || rows[n - 1].is_only);
    free(rows);
    ebb_chat_close(c);
}

static void test_pin_and_title_are_kept(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_pin(c, 1, true, &err), EBB_OK);
    assert_int_equal(ebb_chat_pin(c, 2, true, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_set_title(c, "The  sea\n", &err), EBB_OK);
    assert_int_equal(ebb_chat_set_title(c, " ", &err), EBB_USAGE);
    ebb_chat_close(c);
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_true(ebb_chat_message(c, 1)->pinned);
    assert_false(ebb_chat_message(c, 0)->pinned);
    assert_string_equal(ebb_chat_session_name(c), "The sea");
    assert_int_equal(ebb_chat_save_as(c, "trip", &err), EBB_OK);
    assert_string_equal(ebb_chat_session_name(c), "trip");
    assert_string_equal(ebb_chat_session_title(c), "The sea");
    ebb_chat_close(c);
}

/* Deleted is deleted, also for others, until it is taken back: with its branches, name and ids. */
static void test_delete_and_undelete(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char key[EBB_SESSION_KEY_BYTES], is[EBB_SESSION_KEY_BYTES];
    ebb_session_row *rows;
    ebb_error err;
    size_t n;

    (void)state;
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_USAGE);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    ebb_chat_session_key(c, key);
    assert_string_equal(key, "");
    say(c, "one");
    ebb_chat_session_key(c, key);
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    done(c);
    assert_int_equal(ebb_chat_save_as(c, "trip", &err), EBB_OK);
    assert_int_equal(ebb_chat_delete(c, "nope", &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
    assert_int_equal(ebb_chat_n_messages(c), 0);
    assert_int_equal(ebb_chat_list(c, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, 0);
    free(rows);
    say(c, "else");
    ebb_chat_session_key(c, is);
    assert_string_not_equal(is, key);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_string_equal(ebb_chat_session_name(c), "trip");
    ebb_chat_session_key(c, is);                 /* what was not sent there is found by it */
    assert_string_equal(is, key);
    assert_string_equal(tree(c), "*1 2a !2b");
    assert_true(ebb_chat_message(c, 1)->n_ids == 3);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_delete(c, "else", &err), EBB_OK);  /* another one: this stays */
    assert_string_equal(ebb_chat_session_name(c), "trip");
    ebb_chat_close(c);
}

/* What each was deleted with, "until you leave", holds for all of them; the newest comes first. */
static void test_undelete_several(void **state)
{
    static const char *const said[] = { "one", "two", "three" };
    enum { N = sizeof said / sizeof *said };
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < N; i++) {
        say(c, said[i]);
        assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
    }
    for (size_t i = N; i-- > 0;) {
        assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
        assert_int_equal(ebb_chat_session_id(c), i + 1);
        assert_string_equal(ebb_chat_message(c, 0)->text, said[i]);
        assert_int_equal(ebb_chat_n_messages(c), 2);
    }
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    assert_string_equal(err.msg, "there is no deleted session to bring back");
    ebb_chat_close(c);
}

/* They are not kept without end, and none is given up without a word. */
static void test_deleted_are_bounded(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        say(c, i == 0 ? "one" : "two");
        assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
        assert_in_range(c->deleted.newest->n_bytes, sizeof *c->deleted.newest + 2 * sizeof(ebb_node), 10000);
    }
    c->deleted.newest->n_bytes = EBB_DELETED_BYTES_MOST - 20000;
    say(c, "three");
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
    c->deleted.newest->older->n_bytes += 20000;
    say(c, "four");
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "'two' and 1 deleted before it could not be brought back any more: "));
    assert_string_equal(ebb_chat_message(c, 0)->text, "four");
    assert_int_equal(ebb_chat_load(c, "four", &err), EBB_OK);
    assert_int_equal(ebb_chat_delete(c, "four", &err), EBB_OK);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "four");
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "three");
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    ebb_chat_close(c);
}

static void test_undelete_without_its_name(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char line[200];
    ebb_error err;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_save_as(c, "trip", &err), EBB_OK);
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
    say(c, "two");
    assert_int_equal(ebb_chat_save_as(c, "trip", &err), EBB_OK);
    if (ebb_chat_undelete(c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
    assert_string_equal(line, "meanwhile another session took the name or number 'trip'; this one is kept under its "
                              "title");
    assert_string_equal(ebb_chat_session_name(c), "one");
    assert_string_equal(tree(c), "*1 !2");
    assert_int_equal(ebb_chat_load(c, "trip", &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "two");
    ebb_chat_close(c);
}

/* Its number has become a name: it keeps it, as what was not sent there is found by that; each of the two is found. */
static void test_undelete_beside_its_number(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_OK);
    say(c, "two");
    assert_int_equal(ebb_chat_save_as(c, "1", &err), EBB_OK);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_session_id(c), 1);
    assert_int_equal(ebb_chat_load(c, "1", &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "02 is the one of this name, 01 the other"));
    assert_int_equal(ebb_chat_load(c, "02", &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "two");
    assert_int_equal(ebb_chat_load(c, "01", &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "one");
    ebb_chat_close(c);
}

static void test_search(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_chat_hit *hits;
    ebb_error err;
    char number[24];
    size_t n;

    (void)state;
    say(c, "the grey\nsea");
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    say(c, "hills");
    assert_int_equal(ebb_chat_search(c, "SEA", 1, &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    assert_string_equal(hits[0].snippet, "the grey sea");
    free(hits);
    assert_int_equal(ebb_chat_search(c, "a", 2, &hits, &n, &err), EBB_OK);       /* of each answer "a1.0 a1.1" */
    assert_int_equal(n, 2);
    free(hits);
    assert_int_equal(ebb_chat_search(c, "a", 1, &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    free(hits);
    assert_int_equal(ebb_chat_search(c, "SEA", 1, &hits, &n, &err), EBB_OK);
    snprintf(number, sizeof number, "%lld", (long long)hits[0].session);
    free(hits);
    assert_int_equal(ebb_chat_load(c, number, &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "the grey\nsea");
    assert_int_equal(ebb_chat_search(c, "", 1, &hits, &n, &err), EBB_USAGE);
    ebb_chat_close(c);
}

static void test_export_and_import(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char file[96], line[64];
    ebb_error err;

    (void)state;
    snprintf(file, sizeof file, "%s/talk.json", dir);
    say(c, "one");
    assert_int_equal(ebb_chat_export(c, file, &err), EBB_OK);
    assert_int_equal(ebb_chat_export(c, file, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_import(c, file, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
    assert_string_equal(line, "1 new session; this is it");
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ]");
    say(c, "two");                               /* and it goes on */
    ebb_chat_close(c);
}

/* -- What a path tells ---------------------------------------------------------------------- */

/* A note decides what is left out only if what a foreign hand may have written of it makes sense: from behind the
 * beginning, from a question, before the note itself. */
static void test_notes_that_make_sense(void **state)
{
    static const ebb_role roles[] = { EBB_ROLE_SYSTEM, EBB_ROLE_USER, EBB_ROLE_ASSISTANT, EBB_ROLE_USER, EBB_ROLE_NOTE,
                                      EBB_ROLE_USER };
    enum { N = sizeof roles / sizeof *roles, AT = 4 };
    ebb_node nodes[N] = { 0 };
    ebb_node *way[N];

    (void)state;
    for (size_t i = 0; i < N; i++) {
        nodes[i].m.role = roles[i];
        way[i] = &nodes[i];
    }
    for (uint32_t first = 0; first < N + 2; first++) {
        nodes[AT].m.truncation.first = first;
        assert_ptr_equal(ebb_context_view_note(way, N), first == 1 || first == 3 ? way[AT] : NULL);
    }
    nodes[0].m.role = EBB_ROLE_USER;             /* without a system prompt */
    nodes[AT].m.truncation.first = 0;
    assert_null(ebb_context_view_note(way, N));
    nodes[AT].m.truncation.first = 3;
    assert_null(ebb_context_view_note(way, AT)); /* a note that is not on this path */
}

/* A turn writes what is new: the third costs the database no more rows than the second. */
static void test_turns_write_what_is_new(void **state)
{
    ebb_chat *c = open_ready(NULL);
    int n[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        int before = sqlite3_total_changes(c->store->db);

        say(c, "another question");
        n[i] = sqlite3_total_changes(c->store->db) - before;
    }
    assert_int_equal(n[2], n[1]);
    assert_int_equal(n[3], n[1]);
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_labels_and_going), T(test_branch), T(test_many_siblings), T(test_many_roots),
        T(test_pin_and_title_are_kept), T(test_delete_and_undelete), T(test_undelete_without_its_name),
        T(test_undelete_several), T(test_deleted_are_bounded), T(test_undelete_beside_its_number),
        T(test_search), T(test_export_and_import),
        T(test_notes_that_make_sense), T(test_turns_write_what_is_new),
    };
    return cmocka_run_group_tests_name("chat tree", tests, NULL, NULL);
}
