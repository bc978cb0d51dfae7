/* A store in a folder of the test's own, and what is saved there. */
#ifndef EBB_TESTS_STORE_FIXTURE_H
#define EBB_TESTS_STORE_FIXTURE_H
#include "ebb_test.h"

#include "store/store.h"
#include "support/own_folder.h"
#include "support/own_key.h"

static char dir[64], db[96];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-store-XXXXXX") != 0)
        return -1;
    snprintf(db, sizeof db, "%s/state/sessions.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

static inline ebb_store *open_db(void)
{
    ebb_store *s;
    ebb_error err;

    if (ebb_store_open(db, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return s;
}

static inline ebb_node *say(ebb_tree *t, ebb_role role, const char *text)
{
    ebb_node *n = ebb_tree_add(t, ebb_tree_leaf(t), role, text, strlen(text));

    assert_non_null(n);
    assert_true(ebb_tree_set_leaf(t, n));
    return n;
}

static inline void save(ebb_store *s, ebb_session_facts *f, ebb_tree *t)
{
    ebb_error err;

    if (ebb_store_save(s, f, t, true, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

/* A session of one question and one answer. */
static inline void talk(ebb_store *s, const char *title, const char *question, const char *answer)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };

    snprintf(f.title, sizeof f.title, "%s", title);
    say(&t, EBB_ROLE_USER, question);
    say(&t, EBB_ROLE_ASSISTANT, answer)->m.finish = EBB_FINISH_STOP;
    save(s, &f, &t);
    ebb_tree_fini(&t);
}

#endif
