/* Two programs on one store: nothing that one of them saved is lost by what the other does. */
#include "store_fixture.h"

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

/* One program's answer that never began is not taken away from under what another one has said below it. */
static void test_drop_has_children(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;
    ebb_node *empty;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    empty = say(&t, EBB_ROLE_ASSISTANT, "");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    say(&u, EBB_ROLE_USER, "and?");
    save(other, &g, &u);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "another program"));
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_path, 3);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
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
    say(&t, EBB_ROLE_USER, "q");
    empty = say(&t, EBB_ROLE_ASSISTANT, "");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, &err), EBB_OK);
    say(&u, EBB_ROLE_USER, "and?");
    save(other, &g, &u);
    assert_int_equal(ebb_store_delete_message(s, ebb_tree_leaf(&u)->m.id, &err), EBB_OK);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&u), " then", 5));
    save(other, &g, &u);
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_path, 3);
    assert_string_equal(all.path[2]->m.text, "and? then");
    assert_int_equal(all.path[2]->m.parent, all.path[1]->m.id);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
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
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
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
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_deleted_elsewhere), T(test_drop_has_children), T(test_parent_dropped_elsewhere), T(test_both_go_on),
        T(test_two_writers),
    };
    int failed = cmocka_run_group_tests_name("store: shared", tests, NULL, NULL);

    return failed + run_encrypted("store: shared, encrypted", tests);
}
