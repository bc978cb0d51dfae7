/* What is found in saved sessions, while they are saved, deleted and imported. */
#include "store_fixture.h"

#include "store/store_sql.h"

static size_t hits(ebb_store *s, const char *words, char *snippet)
{
    ebb_store_hit *h;
    ebb_error err;
    size_t n;

    if (ebb_store_search(s, words, 10, &h, &n, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    if (snippet && n)
        strcpy(snippet, h[0].snippet);
    free(h);
    return n;
}

static void test_search(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_error err;
    ebb_node *a;
    char snippet[256];

    (void)state;
    talk(s, "one", "Where does the river begin?", "In the hills, where the Quelle is.");
    talk(s, "two", "Müller's memory", "AND \"quoted\" NEAR(x)");
    assert_int_equal(hits(s, "river", snippet), 1);
    assert_string_equal(snippet, "Where does the \x02river\x03 begin?");
    assert_int_equal(hits(s, "QUEL", NULL), 1);
    assert_int_equal(hits(s, "muller mem", NULL), 1);
    assert_int_equal(hits(s, "river quelle", NULL), 0);
    assert_int_equal(hits(s, "memor", snippet), 1);      /* longer than what the index has */
    assert_string_equal(snippet, "Müller's \x02memory\x03");
    assert_int_equal(hits(s, "memorial", NULL), 0);
    assert_int_equal(hits(s, "MULLER memory", snippet), 1);
    assert_string_equal(snippet, "\x02Müller\x03's \x02memory\x03");
    assert_int_equal(hits(s, "muller's memory", NULL), 1);
    assert_int_equal(hits(s, "quote begin", NULL), 0);
    assert_int_equal(hits(s, "AND", NULL), 1);   /* no operator */
    assert_int_equal(hits(s, "\"quoted\" NEAR(", NULL), 1);
    assert_int_equal(ebb_store_search(s, "  ", 10, &(ebb_store_hit *){ 0 }, &(size_t){ 0 }, &err), EBB_USAGE);

    /* Found once it is finished, not while under way, and as it is at last. */
    say(&t, EBB_ROLE_USER, "ask");
    a = say(&t, EBB_ROLE_ASSISTANT, "zebra");
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra", NULL), 0);
    assert_true(ebb_node_add_text(a, " crossing", 9));
    a->m.finish = EBB_FINISH_CANCELED;
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra crossing", NULL), 1);
    a->m.finish = EBB_FINISH_NONE;               /* it goes on */
    a->is_dirty = true;
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra", NULL), 0);
    a->m.finish = EBB_FINISH_STOP;
    assert_true(ebb_node_set_text(a, "lion", 4));
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra", NULL), 0);
    assert_int_equal(hits(s, "lion", NULL), 1);
    assert_int_equal(ebb_store_delete(s, f.id, &err), EBB_OK);
    assert_int_equal(hits(s, "lion", NULL), 0);
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search) VALUES ('integrity-check')", ""), SQLITE_OK);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* Many messages whose words begin alike: the newest that has it, and none, as the index itself would say. */
static void test_search_for_what(void **state)
{
    char words[33 * 2 + 1] = "";
    ebb_store *s = open_db();
    ebb_store_hit *hits;
    ebb_error err;
    size_t n;

    (void)state;
    for (int i = 0; i < 33; i++)
        strcat(words, "a ");
    assert_int_equal(ebb_store_search(s, words, 5, &hits, &n, &err), EBB_USAGE);
    assert_int_equal(ebb_store_search(s, words + 2, 5, &hits, &n, &err), EBB_OK);
    free(hits);
    assert_int_equal(ebb_store_search(s, " \t", 5, &hits, &n, &err), EBB_USAGE);
    ebb_store_close(s);
}

static void test_search_among_many(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    char text[200], snippet[256];

    (void)state;
    for (int i = 0; i < 400; i++) {
        snprintf(text, sizeof text,
                 "first second third fourth fifth interval%d and more words that follow it to the end of it all", i);
        say(&t, EBB_ROLE_USER, text);
    }
    save(s, &f, &t);
    assert_int_equal(hits(s, "interval", snippet), 10);
    assert_string_equal(snippet,
                        "…second third fourth fifth \x02interval399\x03 and more words that follow it to the end…");
    assert_int_equal(hits(s, "interval7", NULL), 10);
    assert_int_equal(hits(s, "interval39", NULL), 10);
    assert_int_equal(hits(s, "interval398", NULL), 1);
    assert_int_equal(hits(s, "interlude", NULL), 0);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* A batch is indexed in pieces, one that is dropped not at all, and what is saved behind it as always. */
static void test_search_behind_a_batch(void **state)
{
    ebb_store *s = open_db();
    ebb_error err;
    char text[40];

    (void)state;
    talk(s, "one", "before", "it");
    for (int is_dropped = 0; is_dropped < 2; is_dropped++) {
        ebb_session_facts f = { .title = "many" };
        ebb_tree t = { 0 };

        for (int i = 0; i < 2500; i++) {
            snprintf(text, sizeof text, "%s%d", is_dropped ? "dropped" : "kept", i);
            say(&t, EBB_ROLE_USER, text)->m.finish = i == 2499 ? EBB_FINISH_NONE : EBB_FINISH_STOP;
        }
        assert_int_equal(ebb_store_batch_begin(s, t.n_nodes, NULL, &err), EBB_OK);
        save(s, &f, &t);
        if (is_dropped)
            ebb_store_batch_drop(s);
        else
            assert_int_equal(ebb_store_batch_commit(s, &err), EBB_OK);
        ebb_tree_fini(&t);
    }
    talk(s, "two", "after", "it");
    assert_int_equal(hits(s, "before", NULL), 1);
    assert_int_equal(hits(s, "after", NULL), 1);
    assert_int_equal(hits(s, "kept0", NULL), 1);
    for (int i = 998; i < 1002; i++) {
        snprintf(text, sizeof text, "kept%d", i);
        assert_int_equal(hits(s, text, NULL), 1);
    }
    assert_int_equal(hits(s, "kept2498", NULL), 1);
    assert_int_equal(hits(s, "kept2499", NULL), 0);      /* under way */
    assert_int_equal(hits(s, "dropped", NULL), 0);
    assert_int_equal(ebb_store_run(s, "DELETE FROM messages WHERE finish = 0", ""), SQLITE_OK);
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search, rank) VALUES ('integrity-check', 1)", ""),
                     SQLITE_OK);                 /* the index has every message, once */
    ebb_store_close(s);
}

/* An accent may be a letter's own or stand behind it (as macOS writes names), in the text and in what is looked for. */
static void test_search_accents(void **state)
{
    static const char *const whole = "Le r\u00e9sum\u00e9 ici", *const parts = "Le re\u0301sume\u0301 ici";
    static const char *const words[] = {
        "r\u00e9sum\u00e9", "re\u0301sume\u0301", "resume", "RE\u0301SUME", "resumes",
    };
    static const size_t found[] = { 2, 2, 2, 2, 0 };
    ebb_store *s = open_db();
    char snippet[256];

    (void)state;
    talk(s, "whole", whole, "a");
    talk(s, "parts", parts, "a");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(hits(s, words[i], snippet), found[i]);
    assert_int_equal(hits(s, "resume", snippet), 2);
    assert_string_equal(snippet, "Le \x02re\u0301sume\u0301\x03 ici");
    ebb_store_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_search), T(test_search_for_what), T(test_search_among_many), T(test_search_behind_a_batch),
        T(test_search_accents),
    };
    int failed = cmocka_run_group_tests_name("store: search", tests, NULL, NULL);

    return failed + run_encrypted("store: search, encrypted", tests);
}
