/* Two programs on one store: nothing that one of them saved is lost by what the other does. */
#include "store_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static void test_deleted_elsewhere(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_error err;
    int64_t before;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    save(s, &f, &t);
    before = f.id;
    assert_int_equal(ebb_store_delete(other, f.id, &err), EBB_OK);
    say(&t, EBB_ROLE_ASSISTANT, "a");
    save(s, &f, &t);
    assert_int_not_equal(f.id, before);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(u.n_path, 2);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
    ebb_store_close(other);
}

static void end_two(ebb_store *s, ebb_store *other, ebb_tree *t, ebb_tree *u, ebb_tree *all)
{
    ebb_tree_fini(t);
    ebb_tree_fini(u);
    ebb_tree_fini(all);
    ebb_store_close(s);
    ebb_store_close(other);
}

/* A question whose answer never began: that is returned. */
static ebb_node *save_unanswered(ebb_store *s, ebb_session_facts *f, ebb_tree *t)
{
    ebb_node *empty;

    say(t, EBB_ROLE_USER, "q");
    empty = say(t, EBB_ROLE_ASSISTANT, "");
    save(s, f, t);
    return empty;
}

/* One program's answer that never began is not taken away from under what another one has said below it. */
static void test_drop_has_children(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;
    ebb_node *empty;

    (void)state;
    empty = save_unanswered(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    say(&u, EBB_ROLE_USER, "and?");
    save(other, &g, &u);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, 0, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "another program"));
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_path, 3);
    end_two(s, other, &t, &u, &all);
}

/* Nor where it has ended since it was read here. */
static void test_drop_has_ended(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;
    ebb_node *answer;

    (void)state;
    answer = save_unanswered(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_true(ebb_node_add_text(answer, "a", 1));
    answer->m.finish = EBB_FINISH_STOP;
    answer->is_dirty = true;
    save(s, &f, &t);
    assert_int_equal(ebb_store_delete_message(other, answer->m.id, ebb_tree_leaf(&u)->n_stored, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "another program"));
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_string_equal(ebb_tree_leaf(&all)->m.text, "a");
    end_two(s, other, &t, &u, &all);
}

/* Killed between the two, a program leaves a session whose last message is gone: it is opened above that. */
static void test_dropped_and_killed(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_error err;
    ebb_node *empty;

    (void)state;
    empty = save_unanswered(s, &f, &t);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, 0, &err), EBB_OK);
    assert_int_equal(ebb_store_load(s, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(u.n_path, 1);
    assert_string_equal(u.path[0]->m.text, "q");
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

/* A message that one program took back is written again by another that goes on from it, or changes it. */
static void test_parent_dropped_elsewhere(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;
    ebb_node *empty;

    (void)state;
    empty = save_unanswered(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, 0, &err), EBB_OK);
    say(&u, EBB_ROLE_USER, "and?");
    save(other, &g, &u);
    assert_int_equal(ebb_store_delete_message(s, ebb_tree_leaf(&u)->m.id, 4, &err), EBB_OK);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&u), " then", 5));
    save(other, &g, &u);
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_path, 3);
    assert_string_equal(all.path[2]->m.text, "and? then");
    assert_int_equal(all.path[2]->m.parent, all.path[1]->m.id);
    end_two(s, other, &t, &u, &all);
}

/* Two programs go on with the same message: what each has saved is there; and what one has read before it grew does
 * not take the growth back. */
static void test_both_go_on(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    say(&t, EBB_ROLE_ASSISTANT, "begun");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&u), " there", 6));
    save(other, &g, &u);
    ebb_tree_leaf(&t)->m.pinned = true;
    ebb_tree_leaf(&t)->is_dirty = true;
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_string_equal(all.path[1]->m.text, "begun there");
    assert_true(all.path[1]->m.pinned);
    ebb_session_facts_fini(&h);
    ebb_tree_fini(&all);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&t), " here", 5));
    save(s, &f, &t);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&t), " too", 4));
    save(s, &f, &t);
    all = (ebb_tree){ 0 };
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_nodes, 3);
    assert_string_equal(all.nodes[1]->m.text, "begun there");
    assert_string_equal(all.nodes[2]->m.text, "begun here too");
    assert_ptr_equal(all.nodes[2]->parent, all.nodes[0]);
    assert_ptr_equal(ebb_tree_leaf(&all), all.nodes[2]);
    ebb_session_facts_fini(&h);
    end_two(s, other, &t, &u, &all);
}

/* Two programs in one session: both branches are there. */
static void test_two_writers(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    for (int i = 0; i < 20; i++) {
        say(&t, EBB_ROLE_ASSISTANT, "left");
        say(&u, EBB_ROLE_ASSISTANT, "right");
        save(s, &f, &t);
        save(other, &g, &u);
    }
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_nodes, 41);
    assert_int_equal(all.n_path, 21);
    assert_string_equal(ebb_tree_leaf(&all)->m.text, "right");
    end_two(s, other, &t, &u, &all);
}

/* -- The log is removed ------------------------------------------------------------------------- */

static void remove_log(bool with_log, bool with_index)
{
    char name[112];

    snprintf(name, sizeof name, "%s-wal", db);
    assert_int_equal(with_log ? unlink(name) : 0, 0);
    snprintf(name, sizeof name, "%s-shm", db);
    assert_int_equal(with_index ? unlink(name) : 0, 0);
}

/* Another program that has the store open; it exits when `input` ends.  Returns when it has saved a session. */
static pid_t start_other(int *input)
{
    int in[2], out[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(in) + pipe(out), 0);
    pid = fork();
    if (pid == 0) {
        close(in[1]);
        talk(open_db(), "theirs", "q", "a");
        _exit(write(out[1], "", 1) == 1 && read(in[0], &c, 1) == 0 ? 0 : 1);
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(read(out[0], &c, 1), 1);
    close(out[0]);
    *input = in[1];
    return pid;
}

static void end_other(pid_t pid, int input)
{
    int status;

    close(input);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void expect_sessions(size_t want)
{
    ebb_store *s = open_db();
    ebb_session_row *rows;
    ebb_error err;
    size_t n;

    assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, want);
    free(rows);
    ebb_store_close(s);
}

/* Two have it open: what both said is in the file at once, and one that is alone can begin a new log. */
static void check_lost_log(bool with_log, bool with_index)
{
    int input;
    pid_t other = start_other(&input);
    ebb_store *s = open_db();
    ebb_error err;
    bool is_alone;

    talk(s, "ours", "q", "a");
    assert_false(ebb_store_has_lost_log(s));
    remove_log(with_log, with_index);
    assert_true(ebb_store_has_lost_log(s));
    assert_int_equal(ebb_store_empty_log(s, &is_alone, &err), EBB_OK);
    assert_false(is_alone);
    end_other(other, input);
    assert_int_equal(ebb_store_empty_log(s, &is_alone, &err), EBB_OK);
    assert_true(is_alone);
    ebb_store_close(s);
    s = open_db();
    assert_false(ebb_store_has_lost_log(s));
    ebb_store_close(s);
    expect_sessions(2);
}

static void test_lost_log(void **state)
{
    (void)state;
    check_lost_log(true, false);
}

static void test_lost_index(void **state)
{
    (void)state;
    check_lost_log(false, true);
}

static void test_lost_both(void **state)
{
    (void)state;
    check_lost_log(true, true);
}

static void cut(const char *suffix, off_t n)
{
    char name[112];

    snprintf(name, sizeof name, "%s%s", db, suffix);
    assert_int_equal(truncate(name, n), 0);
}

/* SQLite has it mapped: what is missing is made anew, and nothing is lost. */
static void test_cut_index(void **state)
{
    static const off_t sizes[] = { 0, 50, 100, 4096, 20000 };
    enum { N = sizeof sizes / sizeof *sizes };
    ebb_store *s = open_db();

    (void)state;
    for (size_t i = 0; i < N; i++) {
        talk(s, "before", "q", "a");
        cut("-shm", sizes[i]);
        talk(s, "after", "q", "a");
    }
    cut("-shm", 0);
    ebb_store_close(s);
    expect_sessions(2 * (size_t)N);
}

/* What was in it alone is lost, and the database is not: what is missing is not brought there, by a save or the end. */
static void test_cut_log(void **state)
{
    static const off_t sizes[] = { 0, 32, 5000 };
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_error err;

    (void)state;
    ebb_store_close(open_db());
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        ebb_store *s = open_db();

        talk(s, "lost", "q", "a");
        cut("-wal", sizes[i / 2]);
        if (i % 2)
            assert_int_equal(ebb_store_save(s, &f, &t, true, &err), EBB_NOTFOUND);
        ebb_store_close(s);
        s = open_db();
        talk(s, "kept", "q", "a");
        ebb_store_close(s);
        expect_sessions(i + 1);
    }
}

/* Without the log that somebody has, the file is an older state, and a second log would be mixed with the first. */
static void test_no_second_log(void **state)
{
    int input;
    pid_t other = start_other(&input);
    ebb_store *s;
    ebb_error err;

    (void)state;
    remove_log(true, true);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "its log (-wal, -shm) was removed"));
    end_other(other, input);
    ebb_store_close(open_db());
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_deleted_elsewhere), T(test_drop_has_children), T(test_drop_has_ended), T(test_dropped_and_killed),
        T(test_parent_dropped_elsewhere), T(test_both_go_on),
        T(test_two_writers), T(test_lost_log), T(test_lost_index), T(test_lost_both), T(test_cut_index),
        T(test_cut_log), T(test_no_second_log),
    };
    int failed = cmocka_run_group_tests_name("store: shared", tests, NULL, NULL);

    return failed + run_encrypted("store: shared, encrypted", tests);
}
