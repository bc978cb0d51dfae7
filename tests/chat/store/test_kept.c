/* What sessions still say: runs of eight ids, also over the border of messages (store/kept.h). */
#include "store_fixture.h"

#include "store/kept.h"
#include "store/store_sql.h"

/* Runs that are known of two messages of eight ids with so many between that have none. */
static size_t count_runs(int n_between)
{
    static const int32_t first[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, last[8] = { 9, 10, 11, 12, 13, 14, 15, 16 };
    static const uint8_t model[16] = { 1 };
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_kept kept;
    ebb_error err;
    size_t n;

    assert_true(ebb_node_set_ids(say(&t, EBB_ROLE_USER, "q"), first, 8, model));
    for (int i = 0; i < n_between; i++)
        say(&t, EBB_ROLE_NOTE, "");
    assert_true(ebb_node_set_ids(say(&t, EBB_ROLE_ASSISTANT, "a"), last, 8, model));
    save(s, &f, &t);
    assert_int_equal(ebb_kept_read(s, &kept, &err), EBB_OK);
    n = kept.n_runs;
    ebb_kept_fini(&kept);
    assert_int_equal(ebb_store_delete(s, f.id, &err), EBB_OK);
    ebb_tree_fini(&t);
    ebb_store_close(s);
    return n;
}

static void test_over_notes(void **state)
{
    (void)state;
    assert_int_equal(count_runs(0), 9);
    assert_int_equal(count_runs(10), 9);
}

/* Or each message of an imported conversation would be asked for by all below it. */
static void test_not_to_the_root(void **state)
{
    (void)state;
    assert_int_equal(count_runs(1000), 2);
}

/* Another program, which deletes the second session when they are about to be read. */
static int delete_second(unsigned kind, void *arg, void *statement, void *text)
{
    bool *is_deleted = arg;
    ebb_store *other;
    ebb_error err;

    (void)kind;
    (void)text;
    if (*is_deleted || !strstr(sqlite3_sql(statement), "FROM messages"))
        return 0;
    *is_deleted = true;
    other = open_db();
    assert_int_equal(ebb_store_delete(other, 2, &err), EBB_OK);
    ebb_store_close(other);
    return 0;
}

static void test_deleted_meanwhile(void **state)
{
    ebb_store *s = open_db();
    bool is_deleted = false;
    ebb_kept kept;
    ebb_error err;

    (void)state;
    talk(s, "a", "first", "yes");
    talk(s, "b", "second", "yes");
    talk(s, "c", "third", "yes");
    assert_int_equal(sqlite3_trace_v2(s->db, SQLITE_TRACE_STMT, delete_second, &is_deleted), SQLITE_OK);
    if (ebb_kept_read(s, &kept, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(is_deleted);
    assert_true(ebb_kept_has_question(&kept, "first", 5));
    assert_false(ebb_kept_has_question(&kept, "second", 6));
    assert_true(ebb_kept_has_question(&kept, "third", 5));
    ebb_kept_fini(&kept);
    ebb_store_close(s);
}

/* However long answers are, of them only the ids take memory. */
static void test_no_texts_of_answers(void **state)
{
    static const int32_t ids[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const uint8_t model[16] = { 1 };
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_kept kept;
    ebb_error err = { 0 };
    ebb_status st;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    assert_true(ebb_node_set_ids(say(&t, EBB_ROLE_ASSISTANT, "a"), ids, 8, model));
    save(s, &f, &t);
    ebb_tree_fini(&t);
    assert_int_equal(sqlite3_exec(s->db, "UPDATE messages SET text = printf('%.8000000c', 'a') WHERE id = 2", NULL,
                                  NULL, NULL), SQLITE_OK);
    sqlite3_hard_heap_limit64(6 << 20);
    st = ebb_kept_read(s, &kept, &err);
    sqlite3_hard_heap_limit64(0);
    if (st != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(kept.n_runs, 1);
    assert_int_equal(kept.n_questions, 1);
    ebb_kept_fini(&kept);
    ebb_store_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_over_notes), T(test_not_to_the_root), T(test_deleted_meanwhile),
                                        T(test_no_texts_of_answers) };

    return cmocka_run_group_tests_name("store: what is kept", tests, NULL, NULL);
}
