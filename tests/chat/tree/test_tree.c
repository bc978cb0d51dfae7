/* The tree of messages: path, branches, undo and redo. */
#include "ebb_test.h"

#include "tree/tree.h"

static ebb_node *say(ebb_tree *t, ebb_node *parent, ebb_role role, const char *text)
{
    ebb_node *n = ebb_tree_add(t, parent, role, text, strlen(text));

    assert_non_null(n);
    assert_true(ebb_tree_set_leaf(t, n));
    return n;
}

/* The path as one string: "q1 a1 q2". */
static const char *path(const ebb_tree *t)
{
    static char s[256];

    s[0] = '\0';
    for (size_t i = 0; i < t->n_path; i++) {
        if (i)
            strcat(s, " ");
        strcat(s, t->path[i]->m.text);
    }
    return s;
}

static void test_branches(void **state)
{
    ebb_tree t = { 0 };
    ebb_node *q1 = say(&t, NULL, EBB_ROLE_USER, "q1"), *a1 = say(&t, q1, EBB_ROLE_ASSISTANT, "a1");

    (void)state;
    say(&t, a1, EBB_ROLE_USER, "q2");
    assert_string_equal(path(&t), "q1 a1 q2");
    say(&t, q1, EBB_ROLE_ASSISTANT, "a1b");      /* a retry */
    assert_string_equal(path(&t), "q1 a1b");
    assert_ptr_equal(q1->first_child, a1);
    assert_ptr_equal(q1->last_child, ebb_tree_leaf(&t));
    assert_true(ebb_tree_set_leaf(&t, ebb_tree_deepest(a1)));
    assert_string_equal(path(&t), "q1 a1 q2");
    ebb_tree_fini(&t);
}

static void test_undo_redo(void **state)
{
    ebb_tree t = { 0 };
    ebb_node *n = say(&t, NULL, EBB_ROLE_SYSTEM, "s");

    (void)state;
    assert_false(ebb_tree_undo(&t));
    n = say(&t, n, EBB_ROLE_USER, "q1");
    n = say(&t, n, EBB_ROLE_ASSISTANT, "a1");
    n = say(&t, n, EBB_ROLE_USER, "q2");
    n = say(&t, n, EBB_ROLE_ASSISTANT, "a2");
    assert_true(ebb_tree_undo(&t));
    assert_string_equal(path(&t), "s q1 a1");
    assert_true(ebb_tree_undo(&t));
    assert_string_equal(path(&t), "s");
    assert_false(ebb_tree_undo(&t));
    assert_true(ebb_tree_redo(&t));
    assert_string_equal(path(&t), "s q1 a1");
    assert_true(ebb_tree_redo(&t));
    assert_string_equal(path(&t), "s q1 a1 q2 a2");
    assert_false(ebb_tree_redo(&t));
    assert_true(ebb_tree_undo(&t));
    say(&t, ebb_tree_leaf(&t), EBB_ROLE_USER, "q3");
    assert_false(ebb_tree_redo(&t));             /* another way was taken */
    assert_string_equal(path(&t), "s q1 a1 q3");
    ebb_tree_fini(&t);
}

static void test_undo_to_nothing(void **state)
{
    ebb_tree t = { 0 };

    (void)state;
    say(&t, say(&t, NULL, EBB_ROLE_USER, "q"), EBB_ROLE_ASSISTANT, "a");
    assert_true(ebb_tree_undo(&t));
    assert_int_equal(t.n_path, 0);
    assert_null(ebb_tree_leaf(&t));
    assert_true(ebb_tree_redo(&t));
    assert_string_equal(path(&t), "q a");
    ebb_tree_fini(&t);
}

static void test_drop_newest(void **state)
{
    ebb_tree t = { 0 };
    ebb_node *q = say(&t, NULL, EBB_ROLE_USER, "q"), *a = say(&t, q, EBB_ROLE_ASSISTANT, "a");

    (void)state;
    say(&t, q, EBB_ROLE_ASSISTANT, "");
    ebb_tree_drop_newest(&t);
    assert_string_equal(path(&t), "q");
    assert_ptr_equal(q->last_child, a);
    assert_null(a->next_sibling);
    ebb_tree_fini(&t);
}

static void test_numbers_and_find(void **state)
{
    ebb_tree t = { 0 };
    ebb_node *q = say(&t, NULL, EBB_ROLE_USER, "q"), *a = say(&t, q, EBB_ROLE_ASSISTANT, "a");

    (void)state;
    assert_true(q->m.id < 0 && a->m.id < 0 && q->m.id != a->m.id);
    assert_int_equal(a->m.parent, q->m.id);
    assert_ptr_equal(ebb_tree_find(&t, a->m.id), a);
    ebb_node_set_id(q, 7);
    assert_int_equal(a->m.parent, 7);
    assert_ptr_equal(ebb_tree_find(&t, 7), q);
    assert_null(ebb_tree_find(&t, 8));
    ebb_tree_fini(&t);
}

static void test_long_texts_and_ids(void **state)
{
    ebb_tree t = { 0 };
    ebb_node *a = say(&t, NULL, EBB_ROLE_ASSISTANT, "");

    (void)state;
    for (int i = 0; i < 5000; i++) {
        assert_true(ebb_node_add_text(a, "word ", 5));
        assert_true(ebb_node_add_id(a, i));
    }
    assert_int_equal(a->m.n_text, 25000);
    assert_int_equal(strlen(a->m.text), 25000);
    assert_int_equal(a->m.n_ids, 5000);
    assert_int_equal(a->m.ids[4999], 4999);
    ebb_tree_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_undo_redo),
        cmocka_unit_test(test_undo_to_nothing),
        cmocka_unit_test(test_drop_newest),
        cmocka_unit_test(test_numbers_and_find),
        cmocka_unit_test(test_long_texts_and_ids),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
