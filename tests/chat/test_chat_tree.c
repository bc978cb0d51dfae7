/* Branches and sessions of a chat on a scripted backend. */
#include "ebb_test.h"

#include "fake.h"

static char dir[64], db[96];
static fake_script script;

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/ebb-chat-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(db, sizeof db, "%s/sessions.db", dir);
    script = (fake_script){ .n_tokens = 3, .fingerprint = "model one" };
    return 0;
}

static int teardown(void **state)
{
    char cmd[96];

    (void)state;
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}

static ebb_chat *open_chat(const ebb_chat_opts *with)
{
    ebb_chat_parts parts = fake_parts(&script);
    ebb_chat_opts o = with ? *with : (ebb_chat_opts){ 0 };
    ebb_chat *c;
    ebb_error err;

    o.store_path = o.store_path ? o.store_path : db;
    o.sampling = o.sampling.top_p != 0 ? o.sampling : parts.default_sampling;
    if (ebb_chat_open_with(&o, &parts, &c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return c;
}

static ebb_chat *open_ready(const ebb_chat_opts *with)
{
    ebb_chat *c = open_chat(with);

    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    return c;
}

static void send(ebb_chat *c, const char *text)
{
    ebb_error err;

    if (ebb_chat_send(c, text, strlen(text), &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static void done(ebb_chat *c)
{
    assert_true(fake_wait(c, EBB_EVENT_DONE, NULL, 0));
    assert_false(ebb_chat_is_busy(c));
}

static void say(ebb_chat *c, const char *text)
{
    send(c, text);
    done(c);
}

/* The path as "user:hi assistant:a1.0 a1.1 ". */
static const char *path(const ebb_chat *c)
{
    static char s[2048];
    size_t n = 0;

    s[0] = '\0';
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        n += (size_t)snprintf(s + n, sizeof s - n, "%s[%s]", i ? " " : "", ebb_chat_message(c, i)->text);
    return s;
}

/* "*1 2a 3 *2b": the rows of the tree, * on the path, ! where it stands. */
static const char *tree(ebb_chat *c)
{
    static char s[1024];
    ebb_branch *rows;
    size_t n, at = 0;

    assert_int_equal(ebb_chat_branches(c, &rows, &n, NULL), EBB_OK);
    s[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(s + at, sizeof s - at, "%s%s%s", i ? " " : "", rows[i].is_leaf ? "!" : rows[i].is_on_path ? "*" : "",
                               rows[i].label);
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
    assert_int_equal(ebb_chat_message(c, 3)->cost.n_computed, 1 + strlen("other"));     /* as in every question, the first id */
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
    ebb_chat_close(c);
}

/* Deleted is deleted, also for others, until it is taken back: with its branches, name and ids. */
static void test_delete_and_undelete(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_session_row *rows;
    ebb_error err;
    size_t n;

    (void)state;
    assert_int_equal(ebb_chat_delete(c, "", &err), EBB_USAGE);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    say(c, "one");
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
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_string_equal(ebb_chat_session_name(c), "trip");
    assert_string_equal(tree(c), "*1 2a !2b");
    assert_true(ebb_chat_message(c, 1)->n_ids == 3);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_delete(c, "else", &err), EBB_OK);  /* another one: this stays */
    assert_string_equal(ebb_chat_session_name(c), "trip");
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
    assert_int_equal(ebb_chat_search(c, "SEA", &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    assert_string_equal(hits[0].snippet, "the grey sea");
    snprintf(number, sizeof number, "%lld", (long long)hits[0].session);
    free(hits);
    assert_int_equal(ebb_chat_load(c, number, &err), EBB_OK);
    assert_string_equal(ebb_chat_message(c, 0)->text, "the grey\nsea");
    assert_int_equal(ebb_chat_search(c, "", &hits, &n, &err), EBB_USAGE);
    ebb_chat_close(c);
}

static void test_export_and_import(void **state)
{
    ebb_chat *c = open_ready(NULL);
    char file[96];
    ebb_error err;
    size_t n;

    (void)state;
    snprintf(file, sizeof file, "%s/talk.json", dir);
    say(c, "one");
    assert_int_equal(ebb_chat_export(c, file, &err), EBB_OK);
    assert_int_equal(ebb_chat_export(c, file, &err), EBB_USAGE);
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_import(c, file, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    assert_string_equal(path(c), "[one] [a1.0 a1.1 a1.2 ]");
    say(c, "two");                               /* and it goes on */
    assert_int_equal(ebb_chat_import(c, "/nonexistent.json", &n, &err), EBB_NOTFOUND);
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_labels_and_going), T(test_branch), T(test_many_siblings), T(test_pin_and_title_are_kept),
        T(test_delete_and_undelete), T(test_search), T(test_export_and_import),
    };
    return cmocka_run_group_tests_name("chat tree", tests, NULL, NULL);
}
