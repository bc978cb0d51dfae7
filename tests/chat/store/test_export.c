/* Conversations out to files and back. */
#include "ebb_test.h"

#include <jansson.h>

#include "chat/store/import_one.h"

static void say(ebb_tree *t, ebb_role role, const char *text)
{
    ebb_node *n = ebb_tree_add(t, ebb_tree_leaf(t), role, text, strlen(text));

    assert_non_null(n);
    assert_true(ebb_tree_set_leaf(t, n));
}

/* The file as an editor of Windows saves it; `has_mark`: with a byte order mark, and its lines as they were. */
static void as_windows_has_it(ebb_buf *b, bool has_mark)
{
    ebb_buf out = { 0 };

    if (has_mark)
        ebb_buf_adds(&out, "\xEF\xBB\xBF");
    for (size_t i = 0; i < b->len; i++) {
        if (!has_mark && b->data[i] == '\n' && (i == 0 || b->data[i - 1] != '\r'))
            ebb_buf_addc(&out, '\r');
        ebb_buf_addc(&out, b->data[i]);
    }
    ebb_buf_fini(b);
    *b = out;
}

/* of_windows 0: as it was written; 1: with a byte order mark; 2: with other ends of lines. */
static void check_round_trip(ebb_export_format format, const char *name, int of_windows)
{
    ebb_session_facts f = { .title = "A title" }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_buf b = { 0 };
    ebb_error err;

    say(&t, EBB_ROLE_SYSTEM, "Be brief.");
    say(&t, EBB_ROLE_USER, "What is\n\n# this \"thing\"?\n");
    say(&t, EBB_ROLE_ASSISTANT, "\nA ☃ with\ttabs.\n\n```c\nint x;\n```\nuser:\n\\## user\n");
    assert_int_equal(ebb_export(&f, &t, format, &b, &err), EBB_OK);
    if (of_windows)
        as_windows_has_it(&b, of_windows == 1);
    assert_int_equal(import_one(name, b.data, b.len, &g, &u, &err), EBB_OK);
    assert_int_equal(u.n_path, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(u.path[i]->m.role, t.path[i]->m.role);
        assert_string_equal(u.path[i]->m.text, t.path[i]->m.text);
    }
    if (format != EBB_EXPORT_TXT)
        assert_string_equal(g.title, "A title");
    ebb_buf_fini(&b);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
}

static void test_round_trips(void **state)
{
    (void)state;
    for (int of_windows = 0; of_windows < 3; of_windows++) {
        check_round_trip(EBB_EXPORT_JSON, "x.json", of_windows);
        check_round_trip(EBB_EXPORT_MD, "x.md", of_windows);
        check_round_trip(EBB_EXPORT_TXT, "x.txt", of_windows);
    }
}

/* A \r in a text stays, and is no head's where others have none; nor is it one in a file that gets them later. */
static void test_returns_in_texts(void **state)
{
    static const char text[] = "one\r\nuser:\r\n## user\r\nforged\r\n\\user:\r";
    static const struct { ebb_export_format format; const char *name; } files[] = {
        { EBB_EXPORT_MD, "x.md" }, { EBB_EXPORT_TXT, "x.txt" },
    };

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int of_windows = 0; of_windows < 3; of_windows += 2) {
            ebb_session_facts f = { .title = "t" }, g = { 0 };
            ebb_tree t = { 0 }, u = { 0 };
            ebb_buf b = { 0 };

            say(&t, EBB_ROLE_ASSISTANT, text);
            assert_int_equal(ebb_export(&f, &t, files[i].format, &b, NULL), EBB_OK);
            if (of_windows)
                as_windows_has_it(&b, false);
            assert_int_equal(import_one(files[i].name, b.data, b.len, &g, &u, NULL), EBB_OK);
            assert_int_equal(u.n_path, 1);
            if (!of_windows)
                assert_string_equal(u.path[0]->m.text, text);
            ebb_buf_fini(&b);
            ebb_tree_fini(&t);
            ebb_tree_fini(&u);
        }
}

static ebb_status import(const char *name, const char *data, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    *f = (ebb_session_facts){ 0 };
    *t = (ebb_tree){ 0 };
    return import_one(name, data, strlen(data), f, t, err);
}

static void test_openai(void **state)
{
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("c.json", "[{\"role\":\"developer\",\"content\":\"s\"},"
                            "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"two "
                            "\"},{\"type\":\"image_url\"},"
                            "{\"type\":\"text\",\"text\":\"parts\"}]},{\"role\":\"tool\",\"content\":\"x\"},"
                            "{\"role\":\"assistant\",\"content\":null}]", &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_path, 3);
    assert_int_equal(t.path[0]->m.role, EBB_ROLE_SYSTEM);
    assert_string_equal(t.path[1]->m.text, "two parts");
    assert_string_equal(t.path[2]->m.text, "");
    assert_string_equal(f.title, "two parts");
    ebb_tree_fini(&t);
}

/* Claude's export: an array of conversations with other names for the same. */
static void test_claude(void **state)
{
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("conversations.json",
                            "[{\"uuid\":\"1\",\"name\":\"Sea\",\"created_at\":\"2025-01-02T03:04:05.678901Z\","
                            "\"chat_messages\":[{\"sender\":\"human\",\"text\":\"Where to?\","
                            "\"content\":[{\"type\":\"text\",\"text\":\"Where to?\"}]},"
                            "{\"sender\":\"assistant\",\"text\":\"The sea.\","
                            "\"created_at\":\"2025-01-02T03:04:06Z\"}]}]",
                            &f, &t, &err), EBB_OK);
    assert_string_equal(f.title, "Sea");
    assert_int_equal(t.n_path, 2);
    assert_int_equal(t.path[0]->m.role, EBB_ROLE_USER);
    assert_string_equal(t.path[0]->m.text, "Where to?");
    assert_string_equal(t.path[1]->m.text, "The sea.");
    assert_int_equal(t.path[1]->m.created_ms, 1735787046000);
    ebb_tree_fini(&t);
}

/* What its answers and questions have beside their words, and where the words stand in older files. */
static void test_claude_parts(void **state)
{
    static const char text[] =
        "[{\"name\":\"Sea\",\"chat_messages\":["
        "{\"sender\":\"human\",\"text\":\"look\",\"content\":[{\"type\":\"text\",\"text\":\"look\"}],"
        "\"attachments\":[{\"file_name\":\"a.txt\",\"extracted_content\":\"of ```\"}],\"files\":[]},"
        "{\"sender\":\"assistant\",\"text\":\"One. Two. Three.\",\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"hm\"},"
        "{\"type\":\"text\",\"text\":\"One. \"},{\"type\":\"text\",\"text\":\"Two.\"},"
        "{\"type\":\"tool_use\",\"name\":\"f\"},"
        "{\"type\":\"text\",\"text\":\"Three.\"},"
        "{\"type\":\"thinking\",\"thinking\":\"so\"}]},"
        "{\"sender\":\"human\",\"text\":\"old\",\"content\":[]}]}]";
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("c.json", text, &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_path, 3);
    assert_string_equal(t.path[0]->m.text, "a.txt:\n````txt\nof ```\n````\n\nlook");
    assert_string_equal(t.path[1]->m.text, "<think>\nhm\n</think>\n\nOne. Two.\n\nThree.\n\n<think>\nso\n</think>\n\n");
    assert_string_equal(t.path[2]->m.text, "old");
    ebb_tree_fini(&t);
}

/* Engines name thoughts in three ways; a call of a tool is no answer. */
static void test_thoughts(void **state)
{
    static const char text[] =
        "[{\"role\":\"user\",\"content\":\"q\",\"reasoning\":\"not a user's\"},"
        "{\"role\":\"assistant\",\"reasoning_content\":\"a\",\"reasoning\":\"a\",\"content\":\"1\"},"
        "{\"role\":\"assistant\",\"thinking\":\"b\",\"content\":null},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"x\"}]},"
        "{\"role\":\"tool\",\"content\":\"r\"},{\"role\":\"assistant\",\"content\":\"2\"}]";
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("c.json", text, &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_path, 4);
    assert_string_equal(t.path[0]->m.text, "q");
    assert_string_equal(t.path[1]->m.text, "<think>\na\n</think>\n\n1");
    assert_string_equal(t.path[2]->m.text, "<think>\nb\n</think>\n\n");
    assert_string_equal(t.path[3]->m.text, "2");
    ebb_tree_fini(&t);
}

/* The export of llama.cpp's page: both answers, and the one where it stood. */
static void test_llamacpp(void **state)
{
    static const char text[] =
        "{\"conv\":{\"id\":\"c\",\"lastModified\":1714557600000,\"currNode\":\"m2\",\"name\":\"Hello\"},"
        "\"messages\":["
        "{\"role\":\"system\",\"type\":\"root\",\"content\":\"\",\"id\":\"r\",\"parent\":null,\"children\":[\"m1\"]},"
        "{\"role\":\"user\",\"type\":\"text\",\"timestamp\":1714557601000,\"content\":\"hi\",\"id\":\"m1\","
        "\"parent\":\"r\","
        "\"extra\":[{\"type\":\"TEXT\",\"name\":\"n.md\",\"content\":\"# n\\n\"}]},"
        "{\"role\":\"assistant\",\"type\":\"text\",\"content\":\"A\",\"id\":\"m2\",\"parent\":\"m1\"},"
        "{\"role\":\"assistant\",\"type\":\"text\",\"content\":\"B\",\"id\":\"m3\",\"parent\":\"m1\"}]}";
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("c.json", text, &f, &t, &err), EBB_OK);
    assert_string_equal(f.title, "Hello");
    assert_true(f.changed_ms == 1714557601000);
    assert_int_equal(t.n_nodes, 3);
    assert_int_equal(t.n_path, 2);
    assert_string_equal(t.path[0]->m.text, "n.md:\n```md\n# n\n```\n\nhi");
    assert_true(t.path[0]->m.created_ms == 1714557601000);
    assert_string_equal(t.path[1]->m.text, "A");
    assert_string_equal(t.nodes[2]->m.text, "B");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

/* A tree in any order, with ids that are numbers; parents who are not there are none; a circle is read
 * once, from its first message on. */
static void test_lists_with_parents(void **state)
{
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("c.json", "[{\"role\":\"assistant\",\"content\":\"b\",\"id\":2,\"parent\":1},"
                            "{\"role\":\"user\",\"content\":\"a\",\"id\":1,\"parent\":-1}]", &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_path, 2);
    assert_string_equal(t.path[1]->m.text, "b");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    assert_int_equal(import("c.json", "[{\"role\":\"user\",\"content\":\"a\",\"id\":1,\"parent\":2},"
                            "{\"role\":\"user\",\"content\":\"b\",\"id\":2,\"parent\":1},"
                            "{\"role\":\"user\",\"content\":\"c\",\"id\":3}]", &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_nodes, 3);
    assert_string_equal(t.nodes[0]->m.text, "c");
    assert_string_equal(t.nodes[1]->m.text, "a");
    assert_ptr_equal(t.nodes[2]->parent, t.nodes[1]);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    assert_int_equal(import("c.json", "[{\"role\":\"user\",\"content\":\"a\",\"id\":1},"
                            "{\"role\":\"assistant\",\"content\":\"b\",\"id\":2,\"parent\":1},"
                            "{\"role\":\"user\",\"content\":\"c\",\"id\":3,\"parent\":3}]", &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_path, 2);               /* what names itself takes nothing else along */
    assert_int_equal(t.n_nodes, 3);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    assert_int_equal(import("c.json", "[{\"role\":\"user\",\"content\":\"a\",\"id\":1,\"parent\":1},"
                            "{\"content\":\"b\",\"id\":2,\"parent\":1}]", &f, &t, &err), EBB_FORMAT);
}

static void test_dates(void **state)
{
    static const struct {
        const char *text;
        int64_t     ms;
    } dates[] = {
        { "\"2024-05-01T12:00:00+02:00\"", 1714557600000 }, { "\"2024-05-01T10:00:00.123Z\"", 1714557600000 },
        { "\"2024-05-01T04:30:00.5-0530\"", 1714557600000 }, { "\"2024-05-01T10:00:00\"", 1714557600000 },
        { "\"2024-05-01T11:00:00+01\"", 1714557600000 }, { "1714557600", 1714557600000 },
        { "1714557600000", 1714557600000 }, { "1e300", 0 }, { "-1", 0 }, { "\"yesterday\"", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        char text[200];
        ebb_session_facts f;
        ebb_tree t;
        ebb_error err;

        snprintf(text, sizeof text, "[{\"role\":\"user\",\"content\":\"x\",\"created_at\":%s}]", dates[i].text);
        assert_int_equal(import("c.json", text, &f, &t, &err), EBB_OK);
        assert_true(f.changed_ms == dates[i].ms);
        ebb_session_facts_fini(&f);
        ebb_tree_fini(&t);
    }
}

/* What is no text does not keep the rest away. */
static void test_damaged_texts(void **state)
{
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    assert_int_equal(import("c.json", "{\"title\":\"cut \\ud83c\",\"messages\":["
                            "{\"role\":\"user\",\"content\":\"caf\xe9\"}]}",
                            &f, &t, &err), EBB_OK);
    assert_string_equal(f.title, "cut \uFFFD");
    assert_string_equal(t.path[0]->m.text, "caf\uFFFD");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

static void test_bad_files(void **state)
{
    static const char *const bad[] = {
        "", "{", "{}", "[]", "{\"messages\":3}", "[{\"content\":\"x\"}]", "[{\"role\":\"user\",\"content\":3}]", "[1]",
        "{\"messages\":[{\"role\":\"user\",\"content\":{}}]}",
    };
    ebb_session_facts f;
    ebb_tree t;
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(import("x.json", bad[i], &f, &t, &err), EBB_FORMAT);
        assert_int_equal(t.n_nodes, 0);
    }
    assert_int_equal(import("x.md", "just text\n", &f, &t, &err), EBB_FORMAT);
}

/* Messages of nothing cost a node each: there is a limit, and it is told. */
static void test_too_many_messages(void **state)
{
    enum { N = 100001 };
    ebb_buf text = { 0 };
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;

    (void)state;
    for (int i = 0; i < N; i++)
        ebb_buf_adds(&text, "## user\n");
    assert_int_equal(import("x.md", ebb_buf_text(&text), &f, &t, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "more than 100000 messages"));
    ebb_buf_remove(&text, 0, 8);
    assert_int_equal(import("x.md", ebb_buf_text(&text), &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_path, 100000);
    ebb_tree_fini(&t);
    ebb_buf_fini(&text);
}

/* A tree with two answers, hidden nodes between, and the place where it stands. */
static void test_chatgpt(void **state)
{
    static const char text[] =
        "[{\"title\":\"Sea\",\"current_node\":\"e\",\"mapping\":{"
        "\"r\":{\"id\":\"r\",\"message\":null,\"parent\":null,\"children\":[\"a\"]},"
        "\"a\":{\"id\":\"a\",\"parent\":\"r\",\"children\":[\"b\"],\"message\":{\"author\":{\"role\":\"system\"},"
        "\"content\":{\"content_type\":\"text\",\"parts\":[\"\"]}}},"
        "\"b\":{\"id\":\"b\",\"parent\":\"a\",\"children\":[\"c\",\"e\"],\"message\":{\"author\":{\"role\":\"user\"},"
        "\"create_time\":1700000000.5,\"content\":{\"content_type\":\"text\",\"parts\":[\"Where "
        "\",{\"asset\":1},\"to?\"]}}},"
        "\"c\":{\"id\":\"c\",\"parent\":\"b\",\"children\":[\"d\"],\"message\":{\"author\":{\"role\":\"tool\"},"
        "\"content\":{\"parts\":[\"look\"]}}},"
        "\"d\":{\"id\":\"d\",\"parent\":\"c\",\"children\":[],\"message\":{\"author\":{\"role\":\"assistant\"},"
        "\"content\":{\"parts\":[\"Hills.\"]}}},"
        "\"e\":{\"id\":\"e\",\"parent\":\"b\",\"children\":[],\"message\":{\"author\":{\"role\":\"assistant\"},"
        "\"content\":{\"parts\":[\"The sea.\"]}}}}}]";
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };

    (void)state;
    assert_int_equal(import_one("conversations.json", text, sizeof text - 1, &f, &t, NULL), EBB_OK);
    assert_string_equal(f.title, "Sea");
    assert_int_equal(t.n_nodes, 3);
    assert_int_equal(t.n_path, 2);
    assert_string_equal(t.path[0]->m.text, "Where to?");
    assert_true(t.path[0]->m.created_ms == 1700000000500);
    assert_string_equal(t.path[1]->m.text, "The sea.");
    assert_string_equal(t.path[0]->first_child->m.text, "Hills.");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

/* Nodes that are each other's children are an error, not a loop. */
static void test_chatgpt_circle(void **state)
{
    static const char text[] =
        "{\"mapping\":{\"r\":{\"parent\":null,\"children\":[\"a\",\"a\"]},"
        "\"a\":{\"parent\":\"r\",\"children\":[\"b\"]},\"b\":{\"parent\":\"a\",\"children\":[\"a\"]}}}";
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(import_one("c.json", text, sizeof text - 1, &f, &t, &err), EBB_FORMAT);
    assert_string_equal(err.msg, "c.json: its messages go in a circle");
}

/* What no beginning leads to is kept beside what one leads to: a circle, and who is listed nowhere. */
static void test_chatgpt_lost(void **state)
{
    static const char text[] =
        "{\"mapping\":{\"r\":{\"parent\":null,\"children\":[\"x\"]},"
        "\"x\":{\"parent\":\"r\",\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"hello\"]}}},"
        "\"p\":{\"parent\":\"q\",\"children\":[\"q\"],"
        "\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"lost\"]}}},"
        "\"q\":{\"parent\":\"p\",\"children\":[\"p\",\"x\"],"
        "\"message\":{\"author\":{\"role\":\"assistant\"},\"content\":{\"parts\":[\"too\"]}}},"
        "\"u\":{\"parent\":\"x\","
        "\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"unlisted\"]}}}}}";
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(import_one("c.json", text, sizeof text - 1, &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_nodes, 4);
    assert_int_equal(t.n_path, 1);
    assert_string_equal(t.path[0]->m.text, "hello");
    assert_string_equal(t.nodes[1]->m.text, "lost");
    assert_ptr_equal(t.nodes[2]->parent, t.nodes[1]);
    assert_string_equal(t.nodes[3]->m.text, "unlisted");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

/* What is not listed goes on with what it lists, wherever in the file that stands; so do messages behind a circle. */
static void test_chatgpt_lost_in_reverse(void **state)
{
    static const char text[] =
        "{\"mapping\":{\"r\":{\"parent\":null,\"children\":[\"x\"]},"
        "\"x\":{\"parent\":\"r\",\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"hello\"]}}},"
        "\"d\":{\"parent\":\"c\",\"message\":{\"author\":{\"role\":\"assistant\"},\"content\":{\"parts\":[\"d\"]}}},"
        "\"c\":{\"parent\":\"b\",\"children\":[\"d\"],"
        "\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"c\"]}}},"
        "\"b\":{\"parent\":\"x\",\"children\":[\"c\",\"x\"],"
        "\"message\":{\"author\":{\"role\":\"assistant\"},\"content\":{\"parts\":[\"b\"]}}},"
        "\"t\":{\"parent\":\"q\",\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"t\"]}}},"
        "\"q\":{\"parent\":\"q\",\"children\":[\"q\",\"t\",\"p\"]},\"p\":{\"parent\":\"q\",\"children\":[\"q\"],"
        "\"message\":{\"author\":{\"role\":\"assistant\"},\"content\":{\"parts\":[\"p\"]}}}},"
        "\"current_node\":\"d\"}";
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(import_one("c.json", text, sizeof text - 1, &f, &t, &err), EBB_OK);
    assert_int_equal(t.n_nodes, 6);
    assert_int_equal(t.n_path, 3);
    assert_string_equal(t.path[0]->m.text, "b");
    assert_string_equal(t.path[1]->m.text, "c");
    assert_string_equal(t.path[2]->m.text, "d");
    assert_string_equal(t.nodes[4]->m.text, "t");
    assert_string_equal(t.nodes[5]->m.text, "p");
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

/* n times the same child: what it says is read once, whatever the file lists. */
static void test_chatgpt_repeats(void **state)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_buf text = { 0 };
    ebb_error err;

    (void)state;
    ebb_buf_adds(&text, "{\"mapping\":{");
    for (int i = 0; i < 20000; i++)
        ebb_buf_addf(&text, "\"%d\":{\"parent\":\"A\"},", i);
    ebb_buf_adds(&text, "\"A\":{\"message\":{\"author\":{\"role\":\"user\"},\"content\":{\"parts\":[\"");
    for (int i = 0; i < 100000; i++)
        ebb_buf_addc(&text, 'x');
    ebb_buf_adds(&text, "\"]}},\"children\":[\"0\"");
    for (int i = 0; i < 20000; i++)
        ebb_buf_adds(&text, ",\"A\"");
    ebb_buf_adds(&text, "]}}}");
    assert_int_equal(import_one("c.json", text.data, text.len, &f, &t, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "circle"));
    ebb_buf_fini(&text);
}

/* Two bytes of file that would be 150 of memory, three million times. */
static void test_many_values(void **state)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_buf text = { 0 };
    ebb_error err;

    (void)state;
    ebb_buf_addc(&text, '[');
    for (int i = 0; i < 3000000; i++)
        ebb_buf_adds(&text, "{},");
    ebb_buf_adds(&text, "{}]");
    assert_int_equal(import_one("c.json", text.data, text.len, &f, &t, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "many values"));
    ebb_buf_fini(&text);
}

static ebb_status count(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    (void)err;
    *(size_t *)arg += t->n_path;
    assert_string_equal(f->model, t->n_path == 2 ? "llama3.2" : "");
    return EBB_OK;
}

/* Ollama's request with its answer; several conversations in one file; an empty one is passed over. */
static void test_several(void **state)
{
    static const char text[] =
        "[{\"model\":\"llama3.2\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
        "\"message\":{\"role\":\"assistant\",\"content\":\"b\"}},{\"messages\":[]},"
        "{\"messages\":[{\"role\":\"user\",\"content\":\"c\"}]}]";
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    size_t n, n_messages = 0;
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_import_all("x.json", text, sizeof text - 1, NULL, count, &n_messages, &n, &err), EBB_OK);
    assert_int_equal(n, 2);
    assert_int_equal(n_messages, 3);
    assert_int_equal(import_one("x.json", text, sizeof text - 1, &f, &t, &err), EBB_FORMAT);
    assert_int_equal(t.n_nodes, 0);
}

/* Pieces of memory that the JSON has. */
static size_t n_pieces;

static void *take_piece(size_t n)
{
    n_pieces++;
    return malloc(n);
}

static void free_piece(void *p)
{
    n_pieces -= p != NULL;
    free(p);
}

static ebb_status note_pieces(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    (void)f;
    (void)t;
    (void)err;
    *(size_t *)arg = n_pieces;
    return EBB_OK;
}

/* Of a file one conversation's JSON is in memory at a time: all of it together would be too much. */
static void test_many_small_ones(void **state)
{
    enum { CONVERSATIONS = 500, VALUES = 1000 };
    ebb_buf text = { 0 };
    ebb_error err;
    size_t n, n_messages = 0;

    (void)state;
    for (int i = 0; i < CONVERSATIONS; i++) {
        ebb_buf_adds(&text, i ? "\n, " : " [");
        ebb_buf_adds(&text, "{\"messages\":[{\"role\":\"user\",\"content\":\"]}\"}],\"beside\":[");
        for (int j = 0; j < VALUES; j++)
            ebb_buf_adds(&text, j ? ",{}" : "{}");
        ebb_buf_adds(&text, "]}");
    }
    ebb_buf_adds(&text, "] \n");
    assert_int_equal(ebb_import_all("x.json", text.data, text.len, NULL, count, &n_messages, &n, &err), EBB_OK);
    assert_int_equal(n, CONVERSATIONS);
    assert_int_equal(n_messages, CONVERSATIONS);
    ebb_buf_fini(&text);
}

/* Behind a first conversation that is whole; where it is wrong is told as of the file. */
static void test_damage_behind_the_first(void **state)
{
    static const struct { const char *behind, *place; } table[] = {
        { "", "line 1, column 48: ',' or ']' expected" },
        { "\n{}]", "line 2, column 1: ',' or ']' expected" },
        { ",]", "line 1, column 50: '[' or '{' expected near ']'" },
        { ",\n\n {\"messages\":]}]", "line 3, column 15: unexpected token near ']'" },
        { "]]", "line 1, column 49: end of file expected" },
        { ",{\"messages\":[", "line 1, column 62: ']' expected" },
    };
    char text[160];
    ebb_error err;
    size_t n, n_messages = 0;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int length = snprintf(text, sizeof text, "[{\"messages\":[{\"role\":\"user\",\"content\":\"abc\"}]}%s",
                              table[i].behind);
        assert_int_equal(ebb_import_all("x.json", text, (size_t)length, NULL, count, &n_messages, &n, &err),
                         EBB_FORMAT);
        if (!strstr(err.msg, table[i].place))
            fail_msg("%s: %s", text, err.msg);
    }
}

/* The trees of a file's conversations and their JSON are not in memory together. */
static void test_json_goes_first(void **state)
{
    enum { CONVERSATIONS = 50, MESSAGES = 100 };
    json_malloc_t usual_malloc;
    json_free_t usual_free;
    ebb_buf text = { 0 };
    ebb_error err;
    size_t n, n_at_end = 0;

    (void)state;
    for (int i = 0; i < CONVERSATIONS; i++) {
        ebb_buf_adds(&text, i ? ",{\"messages\":[" : "[{\"messages\":[");
        for (int j = 0; j < MESSAGES; j++)
            ebb_buf_adds(&text, j ? ",{\"role\":\"user\"}" : "{\"role\":\"user\"}");
        ebb_buf_adds(&text, "]}");
    }
    ebb_buf_adds(&text, "]");
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(take_piece, free_piece);
    assert_int_equal(ebb_import_all("x.json", text.data, text.len, NULL, note_pieces, &n_at_end, &n, &err), EBB_OK);
    json_set_alloc_funcs(usual_malloc, usual_free);
    assert_int_equal(n, CONVERSATIONS);
    assert_int_equal(n_pieces, 0);
    assert_in_range(n_at_end, 1, 10 * MESSAGES); /* those of the last one */
    ebb_buf_fini(&text);
}

static size_t n_until_none;                      /* 0: there is memory */

static void *malloc_until_none(size_t n)
{
    return n_until_none > 0 && --n_until_none == 0 ? NULL : malloc(n);
}

/* Whichever piece of memory is missing: it is all there, or it is said. */
static void test_no_memory_for_json(void **state)
{
    ebb_session_facts f = { .title = "A title", .model = "tiny" };
    json_malloc_t usual_malloc;
    json_free_t usual_free;
    ebb_buf whole = { 0 };
    ebb_tree t = { 0 };
    ebb_error err = { 0 };
    bool is_reached = true;

    (void)state;
    say(&t, EBB_ROLE_USER, "What is this?");
    say(&t, EBB_ROLE_ASSISTANT, "A snowman.");
    ebb_tree_leaf(&t)->m.model = strdup("tiny");
    assert_int_equal(ebb_export(&f, &t, EBB_EXPORT_JSON, &whole, &err), EBB_OK);
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(malloc_until_none, free);
    for (size_t n = 1; is_reached; n++) {
        ebb_buf b = { 0 };
        ebb_status st;

        n_until_none = n;
        st = ebb_export(&f, &t, EBB_EXPORT_JSON, &b, &err);
        is_reached = n_until_none == 0;
        n_until_none = 0;
        if (st == EBB_OK)
            assert_string_equal(ebb_buf_text(&b), ebb_buf_text(&whole));
        else
            assert_int_equal(st, EBB_NOMEM);
        ebb_buf_fini(&b);
    }
    json_set_alloc_funcs(usual_malloc, usual_free);
    ebb_buf_fini(&whole);
    ebb_tree_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_returns_in_texts),
        cmocka_unit_test(test_openai), cmocka_unit_test(test_claude),
        cmocka_unit_test(test_too_many_messages),
        cmocka_unit_test(test_claude_parts),
        cmocka_unit_test(test_thoughts),
        cmocka_unit_test(test_llamacpp),
        cmocka_unit_test(test_lists_with_parents),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_damaged_texts),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_chatgpt),
        cmocka_unit_test(test_chatgpt_circle), cmocka_unit_test(test_chatgpt_lost),
        cmocka_unit_test(test_chatgpt_lost_in_reverse),
        cmocka_unit_test(test_chatgpt_repeats),
        cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_many_small_ones),
        cmocka_unit_test(test_damage_behind_the_first),
        cmocka_unit_test(test_json_goes_first), cmocka_unit_test(test_no_memory_for_json),
    };
    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
