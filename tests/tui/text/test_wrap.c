#include "ebb_test.h"

#include "os/file.h"
#include "term/width.h"
#include "text/wrap.h"

/* The rows as lines, with their indent as dots. */
static const char *rows(const char *text, int width, bool markdown)
{
    static ebb_buf out;
    ebb_wrap w = { .has_markdown = markdown };

    ebb_wrap_text(&w, text, strlen(text), true);
    ebb_wrap_rows(&w, width);
    ebb_buf_clear(&out);
    for (size_t i = 0; i < w.n_rows; i++) {
        for (int k = 0; k < w.rows[i].indent; k++)
            ebb_buf_addc(&out, '.');
        ebb_buf_add(&out, w.visible.data + w.rows[i].start, w.rows[i].end - w.rows[i].start);
        ebb_buf_addc(&out, '|');
    }
    ebb_wrap_fini(&w);
    return out.data;
}

static void breaks(void **state)
{
    (void)state;
    assert_string_equal(rows("one two three", 8, false), "one two|three|");
    assert_string_equal(rows("one two ", 7, false), "one two|");
    assert_string_equal(rows("abcdefghij", 4, false), "abcd|efgh|ij|");
    assert_string_equal(rows("a abcdefghij", 4, false), "a|abcd|efgh|ij|");
    assert_string_equal(rows("a\r\nb\n\nc\n", 10, false), "a|b||c||");
    assert_string_equal(rows("\u4F60\u597D\u4E16\u754C", 5, false), "\u4F60\u597D|\u4E16\u754C|");
    assert_string_equal(rows("\u4F60\u597D\u3002\u754C", 5, false), "\u4F60|\u597D\u3002|\u754C|");
    assert_string_equal(rows("\u4F60", 1, false), "\u4F60|");
    assert_string_equal(rows("\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7", 3, false),
                        "\U0001F1E9\U0001F1EA|\U0001F1EB\U0001F1F7|");
    assert_string_equal(rows("ab \u0915\u093E\u092E\u0915", 6, false), "ab|\u0915\u093E\u092E\u0915|");
    assert_string_equal(rows("e\u0301e\u0301e\u0301", 2, false), "e\u0301e\u0301|e\u0301|");
    assert_string_equal(rows("- one two three", 8, false), "- one|..two|..three|");
    assert_string_equal(rows("12. one two", 8, false), "12. one|....two|");
    assert_string_equal(rows("a\tb", 20, false), "a   b|");
    assert_string_equal(rows("", 20, false), "|");
}

/* A mark that is alone so far may become a list's: until the next character nothing has a face, and then it is what it
 * is at once. */
static void marks_wait(void **state)
{
    static const char *const texts[] = { "- a", "* a", "+ a", "-a", "-" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ebb_wrap all = { .has_markdown = true, .md.base = EBB_FACE_MODEL }, w = all;
        size_t n = strlen(texts[i]);

        ebb_wrap_text(&all, texts[i], n, true);
        ebb_wrap_text(&w, texts[i], 1, false);
        assert_int_equal(w.n_faced, 0);
        ebb_wrap_text(&w, texts[i], n, true);
        assert_int_equal(w.n_faced, all.n_faced);
        for (size_t at = 0; at < n; at++)
            assert_int_equal(w.runs[ebb_wrap_run(&w, (uint32_t)at)].face,
                             all.runs[ebb_wrap_run(&all, (uint32_t)at)].face);
        ebb_wrap_fini(&w);
        ebb_wrap_fini(&all);
    }
}

static void controls_are_seen(void **state)
{
    (void)state;
    assert_string_equal(rows("\033[31mred\a", 40, false), "\u241B[31mred\u2407|");
    assert_string_equal(rows("a\rb", 40, false), "a\u240Db|");
}

static void assert_same(const ebb_wrap *a, const ebb_wrap *b)
{
    assert_int_equal(a->visible.len, b->visible.len);
    assert_memory_equal(ebb_buf_text(&a->visible), ebb_buf_text(&b->visible), a->visible.len);
    assert_int_equal(a->n_rows, b->n_rows);
    assert_memory_equal(a->rows, b->rows, a->n_rows * sizeof *a->rows);
    assert_int_equal(a->n_runs, b->n_runs);
    for (size_t i = 0; i < a->n_runs; i++) {
        assert_int_equal(a->runs[i].start, b->runs[i].start);
        assert_int_equal(a->runs[i].face, b->runs[i].face);
    }
}

/* Whatever the pieces in which a text arrives: the same rows, and none that has
 * another below it ever changes. */
static void check_streaming(const char *text, size_t n, size_t step, int width)
{
    ebb_wrap whole = { .has_markdown = true }, parts = { .has_markdown = true };
    ebb_row *before = NULL;
    size_t n_before = 0;

    ebb_wrap_text(&whole, text, n, true);
    ebb_wrap_rows(&whole, width);
    for (size_t at = step; at < n; at += 1 + at % (step + 1)) {
        ebb_wrap_text(&parts, text, at, false);
        ebb_wrap_rows(&parts, width);
        assert_true(parts.n_rows >= n_before);
        for (size_t i = 0; i + 1 < n_before; i++)
            assert_memory_equal(&before[i], &parts.rows[i], sizeof *before);
        before = realloc(before, parts.n_rows * sizeof *before);
        memcpy(before, parts.rows, parts.n_rows * sizeof *before);
        n_before = parts.n_rows;
    }
    ebb_wrap_text(&parts, text, n, true);
    ebb_wrap_rows(&parts, width);
    assert_same(&whole, &parts);
    free(before);
    ebb_wrap_fini(&whole);
    ebb_wrap_fini(&parts);
}

static void streaming_is_the_same(void **state)
{
    static const char text[] =
        "# A *title* here\n\nSome **bold words** and `code spans` with ``two ` ticks``, *italic*, a_b_c.\n\n"
        "1. first item that is long enough to wrap\n2. second\n   - nested \u4F60\u597D\u4E16\u754C text\n\n"
        "```python\ndef f(x):\n\treturn x * 2 ** 3  # no `marks` here\n```\n> quoted **text\nover** lines\n"
        "\U0001F468\u200D\U0001F469\u200D\U0001F467 e\u0301 \U0001F1E9\U0001F1EA end   \r\nlast\xE4\xBD";

    (void)state;
    for (size_t step = 1; step < 12; step++)
        for (int width = 1; width < 40; width += 3)
            check_streaming(text, sizeof text - 1, step, width);
}

/* A mark that comes alone widens what stands at a row's edge, or ends that it closes a sentence. */
static void late_marks(void **state)
{
    static const char *const texts[] = {
        "one tw\u302Eab three",
        "one two\u302Eab three",
        "some \u0915\u092E\u093E\u092E \u0915\u093E\u0915\u093E \u0915",
        "\u4F60\u597D\u3002\uFE0F\u4E16\u754C",
        "\u4F60\u597D\u4E16\u3002\u302E\u754C",
        "ab \U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7",
        "one \u1112\u1161\u11AB\u1112\u1161\u11AB two",
        "two \U0001F468\u200D\U0001F469\u200D\U0001F467\U0001F44D\U0001F3FD",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t step = 1; step < 6; step++)
            for (int width = 1; width < 12; width++)
                check_streaming(texts[i], strlen(texts[i]), step, width);
}

/* Nor does what looks like a list's mark in code, of which a row of few columns holds a part. */
static void late_list_marks(void **state)
{
    static const char *const items[] = { "1) dself, and", "23. a few words", "456) words",
                                         "7890. words",   "- one two",       "> one" };

    (void)state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        for (int blanks = 0; blanks < 12; blanks++)
            for (size_t step = 1; step < 6; step++)
                for (int width = 1; width < 20; width++) {
                    char text[64];
                    int n = snprintf(text, sizeof text, "```\n%*s%s", blanks, "", items[i]);

                    check_streaming(text, (size_t)n, step, width);
                }
}

static void streaming_real_texts(void **state)
{
    static const char *const names[] = { "data/unicode/UTF-8-demo.txt", "data/unicode/UTF-8-test.txt",
                                         "data/unicode/blns.txt" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ebb_buf text = { 0 };
        ebb_error err;
        assert_int_equal(ebb_file_slurp(ebb_test_shared_path(names[i]), 1 << 20, &text, &err), EBB_OK);
        check_streaming(text.data, text.len, 700, 37);
        ebb_wrap w = { 0 };
        ebb_wrap_text(&w, text.data, text.len, true);
        for (size_t k = 0; k < w.visible.len; k++)
            assert_true((unsigned char)w.visible.data[k] >= 0x20 || w.visible.data[k] == '\n');
        ebb_wrap_fini(&w);
        ebb_buf_fini(&text);
    }
}

static void rows_fit(void **state)
{
    ebb_buf text = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_file_slurp(ebb_test_shared_path("data/unicode/UTF-8-demo.txt"), 1 << 20, &text, &err), EBB_OK);
    for (int width = 2; width < 100; width += 7) {
        ebb_wrap w = { 0 };
        ebb_wrap_text(&w, text.data, text.len, true);
        ebb_wrap_rows(&w, width);
        for (size_t i = 0; i < w.n_rows; i++)
            assert_true(w.rows[i].indent + ebb_width_text(w.visible.data + w.rows[i].start,
                                                          w.rows[i].end - w.rows[i].start) <= width);
        ebb_wrap_fini(&w);
    }
    ebb_buf_fini(&text);
}

/* 1 MB in 250,000 tokens: linear, whatever its lines are. */
static void a_megabyte_streams(void **state)
{
    static const char *const units[] = { "word ", "x", "\u4F60", "e\u0301", "\u0301", "*", "`a", "line\n" };
    double start = ebb_test_cpu_s();

    (void)state;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        ebb_buf text = { 0 };
        ebb_wrap w = { .has_markdown = true };
        while (text.len < 250000) {
            ebb_buf_adds(&text, units[u]);
            ebb_wrap_text(&w, text.data, text.len, false);
            ebb_wrap_rows(&w, 80);
        }
        ebb_wrap_fini(&w);
        ebb_buf_fini(&text);
    }
    double each = (ebb_test_cpu_s() - start) / (double)(sizeof units / sizeof *units);
    print_message("250 kB token by token: %.2f s\n", each);
    assert_true(each < 20);
}

static void faces(void **state)
{
    static const char text[] = "a **b** `c` *d*\n```\n**e**\n```\nf";
    ebb_wrap w = { .has_markdown = true, .md = { .base = EBB_FACE_MODEL } };

    (void)state;
    ebb_wrap_text(&w, text, sizeof text - 1, true);
    const struct { char c; ebb_face face; } want[] = {
        { 'a', EBB_FACE_MODEL }, { 'b', EBB_FACE_BOLD }, { 'c', EBB_FACE_CODE }, { 'd', EBB_FACE_ITALIC },
        { 'e', EBB_FACE_CODE }, { 'f', EBB_FACE_MODEL },
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        size_t at = (size_t)(strchr(text, want[i].c) - text);
        assert_int_equal(w.runs[ebb_wrap_run(&w, (uint32_t)at)].face, want[i].face);
    }
    ebb_wrap_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaks),
        cmocka_unit_test(marks_wait),
        cmocka_unit_test(controls_are_seen),
        cmocka_unit_test(streaming_is_the_same),
        cmocka_unit_test(late_marks),
        cmocka_unit_test(late_list_marks),
        cmocka_unit_test(streaming_real_texts),
        cmocka_unit_test(rows_fit),
        cmocka_unit_test(a_megabyte_streams),
        cmocka_unit_test(faces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
