/* The search index: a thousand deletions, and damage. */
#include "store_fixture.h"

#include "store/store_sql.h"

static size_t hits(ebb_store *s, const char *words)
{
    ebb_store_hit *h;
    ebb_error err;
    size_t n;

    if (ebb_store_search(s, words, 10, &h, &n, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    free(h);
    return n;
}

static void expect_sound(ebb_store *s)
{
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search) VALUES ('integrity-check')", ""),
                     SQLITE_OK);
}

/* Levels of the index, a number of two bytes at most. */
static int n_levels(ebb_store *s)
{
    sqlite3_stmt *q;
    const uint8_t *record;
    int n;

    assert_int_equal(ebb_store_prepare(s, &q, "SELECT block FROM search_data WHERE id = 10", ""), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_true(sqlite3_column_bytes(q, 0) > 5);
    record = sqlite3_column_blob(q, 0);
    n = record[4] < 128 ? record[4] : (record[4] - 128) * 128 + record[5];
    sqlite3_finalize(q);
    return n;
}

/* One session stays, one is deleted, and so on: each deletion merges the index, which puts it higher once it has more
 * than a page or two.  Behind a thousand of them it would have more levels than FTS5 takes. */
static void test_many_deletions(void **state)
{
    ebb_store *s = open_db();
    int64_t last = 0;
    ebb_error err;

    (void)state;
    for (int i = 0; i < 200; i++) {
        ebb_session_facts f = { .title = "deleted by the next" };
        ebb_tree t = { 0 };

        talk(s, "kept", "Another river?", "In the hills.");
        say(&t, EBB_ROLE_USER, "and the sea?")->m.finish = EBB_FINISH_STOP;
        if (ebb_store_save(s, &f, &t, false, &err) != EBB_OK ||
            (last && ebb_store_delete(s, last, &err) != EBB_OK) || ebb_store_scrub(s, false, &err) != EBB_OK)
            fail_msg("%d: %s", i, err.msg);
        assert_in_range(n_levels(s), 1, 130);
        last = f.id;
        ebb_tree_fini(&t);
    }
    assert_int_equal(hits(s, "river"), 10);
    assert_int_equal(hits(s, "sea"), 1);
    expect_sound(s);
    ebb_store_close(s);
}

/* What FTS5 calls corrupt, a failing constraint, and no format of its own. */
static const char *const damages[] = {
    "UPDATE search_data SET block = x'000000ff8f00' WHERE id = 10",
    "UPDATE search_data SET block = zeroblob(length(block)) WHERE id = 10",
    "UPDATE search_config SET v = 99",
};

static ebb_store *open_damaged(size_t how)
{
    ebb_store *s = open_db();

    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    assert_int_equal(ebb_store_run(s, damages[how], ""), SQLITE_OK);
    ebb_store_close(s);
    return open_db();
}

/* Whatever meets the damage makes the index anew, and goes on. */
static void test_damaged_index(void **state)
{
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_store *s = open_db();
    ebb_error err;
    ebb_node *a;

    (void)state;
    talk(s, "other", "Where does the river begin?", "In the hills.");
    say(&t, EBB_ROLE_USER, "a question");
    a = say(&t, EBB_ROLE_ASSISTANT, "zebra");
    a->m.finish = EBB_FINISH_STOP;
    save(s, &f, &t);
    ebb_store_close(s);

    s = open_damaged(0);
    assert_int_equal(hits(s, "river"), 1);       /* a search */
    expect_sound(s);
    ebb_store_close(s);

    s = open_damaged(0);
    say(&t, EBB_ROLE_USER, "lion")->m.finish = EBB_FINISH_STOP;
    a = say(&t, EBB_ROLE_ASSISTANT, "half");
    save(s, &f, &t);                             /* a save, of a message that is new and of one under way */
    assert_true(a->m.id > 0 && a->parent->m.id > 0);
    assert_int_equal(hits(s, "lion"), 1);
    assert_int_equal(hits(s, "zebra"), 1);
    expect_sound(s);
    ebb_store_close(s);

    s = open_damaged(0);
    ebb_store_note_cut(s, f.id);                 /* what was under way is found from now on */
    assert_int_equal(hits(s, "half"), 1);
    expect_sound(s);
    ebb_store_close(s);

    s = open_damaged(0);
    assert_int_equal(ebb_store_delete_message(s, a->m.id, 4, &err), EBB_OK);
    assert_int_equal(hits(s, "half"), 0);
    expect_sound(s);
    ebb_store_close(s);

    s = open_damaged(0);
    assert_int_equal(ebb_store_scrub(s, false, &err), EBB_OK);
    expect_sound(s);
    ebb_store_close(s);

    s = open_damaged(0);
    assert_int_equal(ebb_store_batch_begin(s, 2, NULL, &err), EBB_OK);
    talk(s, "imported", "an antelope?", "yes");
    assert_int_equal(ebb_store_batch_commit(s, &err), EBB_OK);
    assert_int_equal(hits(s, "antelope"), 1);
    assert_int_equal(hits(s, "river"), 1);
    expect_sound(s);
    ebb_store_close(s);

    s = open_damaged(0);
    assert_int_equal(ebb_store_delete(s, f.id, &err), EBB_OK);
    assert_int_equal(hits(s, "lion"), 0);
    assert_int_equal(hits(s, "river"), 1);
    expect_sound(s);
    ebb_store_close(s);
    ebb_tree_fini(&t);
}

static void test_every_damage(void **state)
{
    ebb_error err;

    (void)state;
    ebb_store_close(open_db());
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        ebb_store *s = open_db();
        int64_t id;

        talk(s, "other", "Where does the river begin?", "In the hills.");
        ebb_store_close(s);
        s = open_damaged(i);
        talk(s, "new", "And the sea?", "Where it ends.");
        assert_int_equal(hits(s, "river"), i + 1);
        expect_sound(s);
        ebb_store_close(s);
        s = open_damaged(i);
        assert_int_equal(ebb_store_find(s, "new", &id, &err), EBB_OK);
        assert_int_equal(ebb_store_delete(s, id, &err), EBB_OK);
        assert_int_equal(hits(s, "sea"), 0);
        expect_sound(s);
        ebb_store_close(s);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_many_deletions), T(test_damaged_index), T(test_every_damage) };
    int failed = cmocka_run_group_tests_name("store: index", tests, NULL, NULL);

    return failed + run_encrypted("store: index, encrypted", tests);
}
