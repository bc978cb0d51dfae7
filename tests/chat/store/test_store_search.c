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

/* What a crash has cut off is found once that is noted, where the conversation has gone on, too; what was never begun
 * is left to who opens it; a writer that was there all the same goes on. */
/* A program that was stopped goes on with an answer that another one has noted as cut off. */
static void test_search_for_what_goes_on(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_node *answer;

    (void)state;
    say(&t, EBB_ROLE_USER, "ask");
    answer = say(&t, EBB_ROLE_ASSISTANT, "giraffe abacus");
    answer->m.finish = EBB_FINISH_NONE;
    save(s, &f, &t);
    ebb_store_note_cut(s, f.id);
    assert_int_equal(hits(s, "giraffe", NULL), 1);
    assert_true(ebb_node_add_text(answer, " abbot zebra", 12));
    answer->m.finish = EBB_FINISH_STOP;
    save(s, &f, &t);
    assert_int_equal(hits(s, "giraffe abacus", NULL), 1);
    assert_int_equal(hits(s, "ab zebra", NULL), 1);
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search) VALUES ('integrity-check')", ""), SQLITE_OK);
    ebb_tree_fini(&t);
    ebb_session_facts_fini(&f);
    ebb_store_close(s);
}

static void test_search_for_what_was_cut_off(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_node *earlier, *last, *unbegun;
    int64_t *sessions;
    size_t n;
    ebb_error err;

    (void)state;
    talk(s, "whole", "zebra", "a");
    say(&t, EBB_ROLE_USER, "ask");
    earlier = say(&t, EBB_ROLE_ASSISTANT, "giraffe");
    say(&t, EBB_ROLE_USER, "again");
    unbegun = ebb_tree_add(&t, ebb_tree_leaf(&t), EBB_ROLE_ASSISTANT, "", 0);
    last = say(&t, EBB_ROLE_ASSISTANT, "zebra giraffe");
    unbegun->m.finish = earlier->m.finish = last->m.finish = EBB_FINISH_NONE;
    save(s, &f, &t);
    assert_int_equal(hits(s, "giraffe", NULL), 0);
    assert_int_equal(ebb_store_list_under_way(s, &sessions, &n, &err), EBB_OK);
    assert_true(n == 1 && sessions[0] == f.id);
    free(sessions);
    ebb_store_note_cut(s, f.id);
    assert_int_equal(hits(s, "giraffe", NULL), 2);
    assert_int_equal(hits(s, "zebra", NULL), 2);
    assert_int_equal(ebb_store_list_under_way(s, &sessions, &n, &err), EBB_OK);
    assert_int_equal(n, 0);
    free(sessions);
    last->is_dirty = true;
    save(s, &f, &t);
    assert_int_equal(hits(s, "giraffe", NULL), 1);
    ebb_tree_fini(&t);
    ebb_session_facts_fini(&f);
    assert_int_equal(ebb_store_load(s, 2, &f, &t, &err), EBB_OK);
    assert_int_equal(ebb_tree_find(&t, 4)->m.finish, EBB_FINISH_CUT_OFF);
    assert_int_equal(ebb_tree_find(&t, 6)->m.finish, EBB_FINISH_NONE);
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search) VALUES ('integrity-check')", ""), SQLITE_OK);
    ebb_tree_fini(&t);
    ebb_session_facts_fini(&f);
    ebb_store_close(s);
}

/* Scripts without blanks between words: a word is found wherever it stands, with others that the index knows or that
 * are in the same word; case does not matter where there is one. */
static void test_search_without_blanks(void **state)
{
    static const struct {
        const char *words;
        size_t      n;
        const char *snippet;
    } cases[] = {
        { "请解释", 1, "\x02请解释\x03你好世界这个程序" },
        { "你好", 1, "请解释\x02你好\x03世界这个程序" },
        { "世界", 1, NULL }, { "程序", 2, NULL }, { "程序 解释", 1, NULL }, { "序程", 0, NULL },
        { "gpt模型", 1, "请用\x02GPT模型\x03写一个程序, please" },
        { "gpt程序", 0, NULL }, { "程序 pleas", 1, NULL }, { "程序 ease", 0, NULL },
        { "検索", 1, "日本語のテキスト\x02検索\x03です" },
        { "テキスト", 1, NULL }, { "です", 1, NULL },
        { "ภาษา", 1, "ฉันเรียน\x02ภาษา\x03ไทย" },
        { "ไทย", 1, NULL }, { "ok", 1, NULL }, { "under程", 0, NULL },
    };
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    char snippet[256];

    (void)state;
    talk(s, "zh", "请解释你好世界这个程序", "ok");
    talk(s, "mixed", "请用GPT模型写一个程序, please", "a");
    talk(s, "ja", "日本語のテキスト検索です", "a");
    talk(s, "th", "ฉันเรียนภาษาไทย", "a");
    say(&t, EBB_ROLE_ASSISTANT, "under程序 way")->m.finish = EBB_FINISH_NONE;
    save(s, &f, &t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hits(s, cases[i].words, snippet), cases[i].n);
        assert_false(ebb_store_search_was_cut(s));
        if (cases[i].snippet)
            assert_string_equal(snippet, cases[i].snippet);
    }
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* Marks around such a word or between two, as in a pasted question, do not matter, and in the other letters of it
 * neither case nor accents do. */
static void test_search_with_marks(void **state)
{
    static const struct {
        const char *words;
        size_t      n;
        const char *snippet;
    } cases[] = {
        { "你好，", 1, NULL },
        { "\"你好世界\"", 1, "\x02你好世界\x03 CAFÉ東京 の話, 北京。大学" },
        { "世界！", 1, NULL }, { "(世界)", 1, NULL }, { "「の話」", 1, NULL },
        { "café東京", 1, "你好世界 \x02" "CAFÉ東京\x03 の話, 北京。大学" },
        { "CAFE東京？", 1, NULL }, { "cafe\u0301東京", 1, NULL }, { "fe東京", 1, NULL },
        { "cave東京", 0, NULL },
        { "北京，大学", 1, NULL }, { "北京，小学", 0, NULL }, { "「cafés」東京", 0, NULL },
        { "東大Épre", 1, "「\x02東大e\u0301pre\x03uve」" },
        { "「épreuve」、東大", 1, "「\x02東大\x03" "e\u0301preuve」" }, { "・", 0, NULL },
        { "Python/中文", 1, "请用Python/\x02中文\x03回答" },    /* copied: within a run */
        { "PYTHON／中文。", 1, NULL }, { "Python2/中文", 0, NULL }, { "用Python 中文", 1, NULL },
        { "GPT-4模型", 1, "我用ChatGPT-\x02" "4模型\x03写的" },
        { "GPT-5模型", 0, NULL }, { "写的 chat", 0, NULL },
    };
    ebb_store *s = open_db();
    char snippet[256];

    (void)state;
    talk(s, "zh", "你好世界 CAFÉ東京 の話, 北京。大学", "a");
    talk(s, "accents by themselves", "「東大e\u0301preuve」", "a");
    talk(s, "letters of both", "请用Python/中文回答", "我用ChatGPT-4模型写的");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (hits(s, cases[i].words, snippet) != cases[i].n)
            fail_msg("%s", cases[i].words);
        if (cases[i].snippet)
            assert_string_equal(snippet, cases[i].snippet);
    }
    ebb_store_close(s);
}

/* Blanks part what is counted: a pasted paragraph without one is found, however many marks are in it, and what stands
 * behind it is asked for, too.  The index takes as many. */
static void test_search_for_a_paragraph(void **state)
{
    ebb_store *s = open_db();
    ebb_buf text = { 0 }, words = { 0 };

    (void)state;
    for (int i = 0; i < 300; i++)
        ebb_buf_addf(&text, "第%d句话，", i);
    talk(s, "zh", ebb_buf_text(&text), "a");
    for (int looks = 1; looks >= 0; looks--) {
        s->look_bytes = looks ? 0 : 1;
        ebb_buf_clear(&words);
        ebb_buf_adds(&words, ebb_buf_text(&text));
        assert_int_equal(hits(s, words.data, NULL), 1);
        for (int i = 0; i < 31; i++)
            ebb_buf_addf(&words, " 第%d句", i);
        assert_int_equal(hits(s, words.data, NULL), 1);
        ebb_buf_adds(&words, "x");
        assert_int_equal(hits(s, words.data, NULL), 0);
    }
    ebb_buf_fini(&text);
    ebb_buf_fini(&words);
    ebb_store_close(s);
}

/* No more text is looked through than so much; of the rest the index finds what it can, and that can be told. */
static void test_search_looks_no_further(void **state)
{
    ebb_store *s = open_db();
    char snippet[256];

    (void)state;
    talk(s, "oldest", "这个程序", "a");
    talk(s, "old", "程序, first", "a");
    talk(s, "new", "这个程序", "a");
    s->look_bytes = 1;
    assert_int_equal(hits(s, "程序", snippet), 1);
    assert_true(ebb_store_search_was_cut(s));
    assert_string_equal(snippet, "\x02程序\x03, first");
    s->look_bytes = strlen("a这个程序");
    assert_int_equal(hits(s, "程序", snippet), 2);
    assert_true(ebb_store_search_was_cut(s));
    assert_string_equal(snippet, "这个\x02程序\x03");
    s->look_bytes = 0;
    assert_int_equal(hits(s, "程序", NULL), 3);
    assert_false(ebb_store_search_was_cut(s));
    ebb_store_close(s);
}

/* A text without a blank is cut around the word, between letters. */
static void test_snippet_without_blanks(void **state)
{
    ebb_store *s = open_db();
    ebb_buf text = { 0 }, want = { 0 };
    char snippet[256];

    (void)state;
    for (int i = 0; i < 400; i++)
        ebb_buf_adds(&text, i == 200 ? "程序" : "好");
    talk(s, "zh", ebb_buf_text(&text), "a");
    assert_int_equal(hits(s, "程序", snippet), 1);
    ebb_buf_adds(&want, "…");
    for (int i = 0; i < 51; i++)
        ebb_buf_adds(&want, i == 20 ? "\x02程序\x03" : "好");
    ebb_buf_adds(&want, "…");
    assert_string_equal(snippet, ebb_buf_text(&want));
    ebb_buf_fini(&text);
    ebb_buf_fini(&want);
    ebb_store_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_search), T(test_search_for_what), T(test_search_among_many), T(test_search_behind_a_batch),
        T(test_search_accents), T(test_search_for_what_was_cut_off), T(test_search_for_what_goes_on),
        T(test_search_without_blanks), T(test_search_with_marks), T(test_search_for_a_paragraph),
        T(test_search_looks_no_further),
        T(test_snippet_without_blanks),
    };
    int failed = cmocka_run_group_tests_name("store: search", tests, NULL, NULL);

    return failed + run_encrypted("store: search, encrypted", tests);
}
