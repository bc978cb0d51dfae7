#include "ebb_test.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "text/render.h"
#include "text/wrap.h"

static ebb_wrap set(const char *text, size_t n, int page)
{
    ebb_wrap w = { .has_markdown = true, .is_rendered = true, .page = page, .md.base = EBB_FACE_MODEL };

    ebb_wrap_text(&w, text, n, true);
    ebb_wrap_rows(&w, page ? page : 80);
    return w;
}

/* The text as it is set; what follows is a line per logical line. */
static const char *page(const char *text, int columns)
{
    static ebb_buf out;
    ebb_wrap w = set(text, strlen(text), columns);

    ebb_buf_clear(&out);
    ebb_buf_add(&out, ebb_buf_text(&w.visible), w.visible.len);
    assert_false(w.failed);
    ebb_wrap_fini(&w);
    return ebb_buf_text(&out);
}

static ebb_face face_of(const char *text, const char *piece)
{
    ebb_wrap w = set(text, strlen(text), 80);
    const char *at = strstr(ebb_buf_text(&w.visible), piece);
    ebb_face face;

    if (!at)
        fail_msg("'%s' is not in: %s", piece, ebb_buf_text(&w.visible));
    face = (ebb_face)w.runs[ebb_wrap_run(&w, (uint32_t)(at - w.visible.data))].face;
    ebb_wrap_fini(&w);
    return face;
}

static void prose(void **state)
{
    (void)state;
    assert_string_equal(page("# Title\nText **bold** and *it* `x`.\n", 80), "Title\nText bold and it x.\n");
    assert_int_equal(face_of("# Title\n", "Title"), EBB_FACE_HEADING);
    assert_int_equal(face_of("a **bold** b", "bold"), EBB_FACE_BOLD);
    assert_int_equal(face_of("a *it* b", "it"), EBB_FACE_ITALIC);
    assert_int_equal(face_of("a `x` b", "x"), EBB_FACE_CODE);
    assert_int_equal(face_of("a ~~gone~~ b", "gone"), EBB_FACE_DIM);
    assert_string_equal(page("one\ntwo\n\n\n\nthree", 80), "one\ntwo\n\nthree\n");
    assert_string_equal(page("a\n\n---\nb\n", 80),
                        "a\n\n\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500"
                        "\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\n\nb\n");
    assert_string_equal(page("5 &lt; 6 &#x41; &nosuch; &#27;[31m", 80), "5 < 6 A &nosuch; \u241B[31m\n");
    assert_string_equal(page("", 80), "");
    assert_string_equal(page("\n\n", 80), "");
}

static void links(void **state)
{
    (void)state;
    assert_string_equal(page("[text](http://a.b) <http://c.d>", 80), "text (http://a.b) http://c.d\n");
    assert_string_equal(page("![a cat](c.png)", 80), "[image: a cat (c.png)]\n");
    assert_string_equal(page("[to]: http://x.y\n", 80), "[to]: http://x.y\n");
    assert_int_equal(face_of("[text](http://a.b)", "text"), EBB_FACE_LINK);
    assert_int_equal(face_of("[text](http://a.b)", "http"), EBB_FACE_DIM);
}

static void lists(void **state)
{
    (void)state;
    assert_string_equal(page("- a\n- b\n  - c\n    1. d\n    2. e\n- f\n", 80),
                        "\u2022 a\n\u2022 b\n  \u2022 c\n    1. d\n    2. e\n\u2022 f\n");
    assert_string_equal(page("3. a\n\n   more\n\n4. b\n", 80), "3. a\n\n   more\n\n4. b\n");
    assert_string_equal(page("- [ ] open\n- [x] done\n", 80), "\u2610 open\n\u2611 done\n");
    assert_string_equal(page("-\n- b", 80), "\u2022 \n\u2022 b\n");
    assert_string_equal(page("> quoted\n> more\n>\n> - item\n", 80),
                        "\u258E quoted\n\u258E more\n\u258E \u2022 item\n");
}

static void hanging(void **state)
{
    static const char text[] = "> - one two three four";
    ebb_wrap w = set(text, sizeof text - 1, 14);

    (void)state;
    assert_int_equal(w.n_rows, 3);
    assert_int_equal(w.rows[1].indent, 4);
    assert_int_equal(w.rows[1].lead, 4);
    ebb_wrap_fini(&w);
}

static void tables(void **state)
{
    static const char text[] = "| Name | N |\n|:-----|--:|\n| pear | 12 |\n| *fig* | 3 |\n";

    (void)state;
    assert_string_equal(page(text, 80), "Name \u2502  N\n\u2500\u2500\u2500\u2500\u2500\u253C\u2500\u2500\u2500\n"
                                        "pear \u2502 12\nfig  \u2502  3\n");
    assert_string_equal(page(text, 8), "Name: pear\n  N: 12\nName: fig\n  N: 3\n");
    assert_int_equal(face_of(text, "Name"), EBB_FACE_BOLD);
    assert_int_equal(face_of(text, "fig"), EBB_FACE_ITALIC);
}

/* What has an address behind it: "text<address> " of each link. */
static const char *linked(const char *text, int width)
{
    static char out[512];
    ebb_wrap w = set(text, strlen(text), width);
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < w.n_links; i++) {
        const ebb_text_link *l = &w.links[i];

        assert_true(l->start < l->end && l->end <= w.visible.len && (i == 0 || w.links[i - 1].end <= l->start));
        n += (size_t)snprintf(out + n, sizeof out - n, "%.*s<%.*s> ", (int)(l->end - l->start),
                              w.visible.data + l->start, (int)l->n_address, w.addresses.data + l->address);
    }
    ebb_wrap_fini(&w);
    return out;
}

static void links_in_tables(void **state)
{
    static const char text[] = "| [N](http://n.m) | Where |\n|---|--:|\n"
                               "| a | see [**b** c](http://d.e \"t\"), <http://f.g> |\n| | [k](http://k.l) |\n";

    (void)state;
    assert_string_equal(linked("[text](http://a.b)", 80), "text (http://a.b<http://a.b> ");
    assert_string_equal(linked(text, 120), "N (http://n.m<http://n.m> b c (http://d.e \"t\"<http://d.e> "
                                           "http://f.g<http://f.g> k (http://k.l<http://k.l> ");
    assert_string_equal(linked(text, 30), "b c (http://d.e \"t\"<http://d.e> http://f.g<http://f.g> "
                                          "k (http://k.l<http://k.l> ");
}

/* In a cell's text and in an address: rows stay rows. */
static void line_ends_by_number(void **state)
{
    (void)state;
    assert_string_equal(page("a&#10;b&#x0D;c", 40), "a b c\n");
    assert_string_equal(page("| a | b |\n|---|---|\n| t&#10;u | x |\n| [n](x&#10;y) | z |", 40),
                        "a       \u2502 b\n\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u253C\u2500\u2500\n"
                        "t u     \u2502 x\nn (x y) \u2502 z\n");
}

static void repeat(ebb_buf *out, const char *s, int n)
{
    for (int i = 0; i < n; i++)
        ebb_buf_adds(out, s);
}

/* What is set is a small multiple of what was written, and nothing of it is lost. */
static void check_is_bounded(const ebb_buf *text, int page)
{
    ebb_wrap w = set(text->data, text->len, page);

    assert_false(w.failed);
    if (w.visible.len > (64u << 10) + 40 * text->len)
        fail_msg("%zu bytes became %zu: %.60s", text->len, w.visible.len, text->data);
    if (ebb_wrap_bytes(&w) + w.n_hangs * sizeof *w.rows > (128u << 10) + 80 * text->len)
        fail_msg("%zu bytes take %zu in %zu lines: %.60s", text->len, ebb_wrap_bytes(&w), w.n_hangs, text->data);
    assert_non_null(strstr(ebb_buf_text(&w.visible), "the end"));
    ebb_wrap_fini(&w);
}

static void output_is_bounded(void **state)
{
    enum { N = 20000 };
    static const int pages[] = { 0, 8, 80, 300 };
    ebb_buf text = { 0 };

    (void)state;
    for (size_t kind = 0; kind < 8; kind++)
        for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
            ebb_buf_clear(&text);
            switch (kind) {
            case 0:                              /* a wide header, many rows */
                ebb_buf_adds(&text, "|");
                repeat(&text, "x", N);
                ebb_buf_adds(&text, "|b|\n|---|---|\n");
                repeat(&text, "|a|\n", N);
                break;
            case 1:                              /* many columns, rows that leave them out */
                repeat(&text, "|h", N);
                ebb_buf_adds(&text, "|\n");
                repeat(&text, "|-", N);
                ebb_buf_adds(&text, "|\n");
                repeat(&text, "|a|\n", N);
                break;
            case 2:                              /* a long address, named often */
                ebb_buf_adds(&text, "[a]: http://");
                repeat(&text, "x", N);
                ebb_buf_adds(&text, "\n\n");
                repeat(&text, "[a] ", N);
                break;
            case 3:                              /* the same in the cells of a table */
                ebb_buf_adds(&text, "|[a](http://");
                repeat(&text, "x", N);
                ebb_buf_adds(&text, ")|\n|-|\n");
                repeat(&text, "|y|\n", N);
                break;
            case 4:                              /* many tables, each of which is small */
                for (size_t k = 0; k < N / 200; k++) {
                    ebb_buf_adds(&text, "|");
                    repeat(&text, "x", 600);
                    ebb_buf_adds(&text, "|b|\n|---|---|\n");
                    repeat(&text, "|a|\n", 150);
                    ebb_buf_adds(&text, "\n");
                }
                break;
            case 5:                              /* records of nothing but headers */
                for (size_t k = 0; k < 20; k++) {
                    repeat(&text, "|a", 66);
                    ebb_buf_adds(&text, "|\n");
                    repeat(&text, "|-", 66);
                    ebb_buf_adds(&text, "|\n");
                    repeat(&text, "||            \n", N / 40);
                    ebb_buf_adds(&text, "\nz\n\n");
                }
                break;
            case 6:                              /* faces that change with every letter */
                repeat(&text, "`a`*b*", N);
                break;
            default:                             /* bars and marks in front of short lines */
                repeat(&text, "> - ", 40);
                ebb_buf_adds(&text, "```\n");
                repeat(&text, "a\n", N);
            }
            ebb_buf_adds(&text, "\n\nthe end\n");
            check_is_bounded(&text, pages[i]);
        }
    ebb_buf_fini(&text);
}

/* -- What md4c would take long for ---------------------------------------------------------- */

/* `before`, n times `open` and n times `close`, `behind`; appended. */
static void nest(ebb_buf *out, const char *before, const char *open, const char *close, int n, const char *behind)
{
    ebb_buf_adds(out, before);
    repeat(out, open, n);
    repeat(out, close, n);
    ebb_buf_adds(out, behind);
}

static bool is_source(const ebb_buf *text)
{
    ebb_wrap w = set(text->data, text->len, 80);
    bool is = w.visible.len == text->len && memcmp(w.visible.data, text->data, text->len) == 0;

    ebb_wrap_fini(&w);
    return is;
}

static void slow_blocks_are_source(void **state)
{
    static const struct { const char *before, *open, *close; int n; } slow[] = {
        { "[a]: b\n", "[", "]", 126000 },
        { "[a]: b\n", "![", "]:", 63000 },
        { "[a]: b\n", "[", "`[`]", 30000 },
        { "[a]: b\n", "[", "\\[]", 30000 },
        { "[a]: b\n", "[", "<a b='['>]", 20000 },
        { "[a]: b\n", "[\r\n", "]\r\n", 30000 },
        { "", "[\n", "]\n", 60000 },
        { "", "[a]", "\n[a]", 50000 },
        { "|a|\n|-|\n", "[a]: b\n", "", 37000 },
        { "", "- ~~", "a~~", 35000 },
        { "", "- ", "x\n\n", 50000 },
        { "> ", "- ", "x\n>\n>", 40000 },
        { "", "- ", "\n        - a\n\n", 15000 },
    };
    ebb_buf text = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        ebb_buf_clear(&text);
        nest(&text, slow[i].before, slow[i].open, slow[i].close, slow[i].n, "x\n");
        ebb_wrap w = set(text.data, text.len, 80);
        assert_false(w.failed);
        assert_int_equal(w.md_steps, 0);
        assert_true(w.visible.len > text.len / 2);
        ebb_wrap_fini(&w);
    }
    ebb_buf_clear(&text);
    nest(&text, "[a]: b\n", "[", "]", 126000, "\n");
    assert_true(is_source(&text));
    ebb_buf_fini(&text);
}

/* Many that are not slow by themselves: once they have taken what a text may, the rest is source. */
static void slow_blocks_share(void **state)
{
    enum { BLOCKS = 40 };
    ebb_buf text = { 0 };
    ebb_wrap w;

    (void)state;
    for (int i = 0; i < BLOCKS; i++)
        nest(&text, "[a]: b\n", "[", "]", 3000, "**x**\n\n");
    ebb_buf_adds(&text, "**the end**\n");
    w = set(text.data, text.len, 80);
    assert_null(memmem(w.visible.data, w.visible.len / BLOCKS, "**x**", 5));
    assert_non_null(memmem(w.visible.data, w.visible.len, "**x**", 5));
    assert_true(w.md_steps > 0 && w.md_steps < 64 << 20);
    assert_null(strstr(w.visible.data, "**the end**"));          /* which takes no steps */
    ebb_wrap_fini(&w);
    ebb_buf_fini(&text);
}

static void long_prose_is_set(void **state)
{
    static const char *const lines[] = {
        "- [`a`](http://b.c/d) and `arr[i]`, **bold**\n",
        "1. one\n   - two\n\n     - **three**\n\n       - [x] [four](http://b.c)\n\n",
        "| [`a`](http://b.c/d) | `arr[i]` |\n",
        "- **a**\n\n  ```py\n  if a[i]: x[j] = [b[i] for b in c]\n  ```\n",
        "> - **a** [b][1]\n>\n> [1]: http://b.c\n>\n",
        "Where \\[x^2\\] is **big** and [1, 2) is open, <b>not</b> closed.\n",
    };
    ebb_buf text = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        ebb_buf_clear(&text);
        ebb_buf_adds(&text, i == 2 ? "| **x** | y |\n|---|---|\n" : "");
        while (text.len < 64 << 10)
            ebb_buf_adds(&text, lines[i]);
        ebb_wrap w = set(text.data, text.len, 120);
        if (memmem(w.visible.data, w.visible.len, "**", 2))
            fail_msg("as source: %s", lines[i]);
        ebb_wrap_fini(&w);
    }
    ebb_buf_fini(&text);
}

/* The numbers of code blocks are the margin's, also behind a block that is not parsed. */
static void copied_is_numbered(void **state)
{
    static const char slow_item[] = "- a\n  ```\n  hidden\n  ```\n";
    ebb_buf text = { 0 }, code = { 0 };

    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        ebb_buf_clear(&text);
        ebb_buf_adds(&text, "- a\n  ```\n  first\n  ```\n\nx\n\n");
        if (is_long)
            nest(&text, slow_item, "- word\n", "", 40000, "\nx\n\n");
        else
            nest(&text, slow_item, "  [", "]\n", 30000, "\nx\n\n");
        ebb_buf_adds(&text, "- a\n  ```\n  second\n  ```\n\n```\nthird\n```\n");
        ebb_wrap w = set(text.data, text.len, 80);
        assert_int_equal(w.n_code, 3);
        assert_non_null(strstr(w.visible.data, "/copy 2\n    second"));
        ebb_wrap_fini(&w);
        for (unsigned long i = 1; i <= 4; i++) {
            static const char *const want[] = { "first\n", "second\n", "third\n" };
            ebb_buf_clear(&code);
            assert_int_equal(ebb_render_code_block(text.data, text.len, i, &code), i < 4);
            assert_string_equal(ebb_buf_text(&code), i < 4 ? want[i - 1] : "");
        }
    }
    ebb_buf_fini(&text);
    ebb_buf_fini(&code);
}

/* Another width lays tables out anew. */
static void tables_follow_the_page(void **state)
{
    static const char text[] = "| Name | N |\n|------|---|\n| pear | 12 |\n\nafter";
    ebb_wrap w = set(text, sizeof text - 1, 80);

    (void)state;
    assert_non_null(strstr(w.visible.data, "\u2502"));
    w.page = 8;
    ebb_wrap_text(&w, text, sizeof text - 1, true);
    assert_string_equal(w.visible.data, "Name: pear\n  N: 12\n\nafter\n");
    ebb_wrap_fini(&w);
}

static void code(void **state)
{
    (void)state;
    assert_string_equal(page("a\n```c\nint x;\n\tif\n```\nb\n```\ny\n```\n", 80),
                        "a\n  c \u00B7 /copy 1\n  int x;\n      if\nb\n  /copy 2\n  y\n");
    assert_string_equal(page("- a\n  ```sh\n  ls\n  ```\n- b\n", 80),
                        "\u2022 a\n    sh \u00B7 /copy 1\n    ls\n\u2022 b\n");
    assert_string_equal(page("    indented\n", 80), "  indented\n");
    assert_int_equal(face_of("```c\nint x;\n```\n", "int"), EBB_FACE_KEYWORD);
    assert_int_equal(face_of("```\nint x;\n```\n", "int"), EBB_FACE_CODE);
}

/* -- Streaming ------------------------------------------------------------------------------ */

static const char sample[] =
    "# Title\n\nSome **bold** text that is long enough to be broken into rows, with `code` in it.\nSecond line.\n\n"
    "- item one\n- item two\n\n  more of two\n\n  ```python\n  def f():\n      return 1\n  ```\n- three\n\n"
    "After the list:\n```c\n/* a comment\n   goes on */ int main(void)\n{\n\treturn 0;\n}\n```\ntext at once\n\n"
    "> quoted\n> again\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x]: http://y\n\n1. one\n2. two\n\n~~~\nopen code\n";

static void assert_equal_wraps(const ebb_wrap *a, const ebb_wrap *b)
{
    assert_string_equal(ebb_buf_text(&a->visible), ebb_buf_text(&b->visible));
    assert_int_equal(a->n_rows, b->n_rows);
    assert_memory_equal(a->rows, b->rows, a->n_rows * sizeof *a->rows);
    for (size_t at = 0; at < a->visible.len; at++)
        assert_int_equal(a->runs[ebb_wrap_run(a, (uint32_t)at)].face, b->runs[ebb_wrap_run(b, (uint32_t)at)].face);
}

/* Whatever the pieces, the end is the same; what was stable never changes. */
static void streams(void **state)
{
    static const size_t steps[] = { 1, 2, 7, 64 };
    ebb_wrap whole = set(sample, sizeof sample - 1, 30);

    (void)state;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        ebb_wrap w = { .has_markdown = true, .is_rendered = true, .page = 30, .md.base = EBB_FACE_MODEL };
        ebb_buf seen = { 0 };
        for (size_t n = 0; n < sizeof sample - 1; n += steps[k]) {
            ebb_wrap_text(&w, sample, n, false);
            ebb_wrap_rows(&w, 30);
            assert_true(w.stable >= seen.len);
            assert_memory_equal(ebb_buf_text(&seen), ebb_buf_text(&w.visible), seen.len);
            assert_int_equal(w.rows[w.n_rows - 1].end, w.n_faced);
            for (size_t i = 1; i < w.n_rows; i++)
                assert_true(w.rows[i].start >= w.rows[i - 1].end);
            ebb_buf_clear(&seen);
            ebb_buf_add(&seen, ebb_buf_text(&w.visible), w.stable);
        }
        ebb_wrap_text(&w, sample, sizeof sample - 1, true);
        ebb_wrap_rows(&w, 30);
        assert_equal_wraps(&w, &whole);
        ebb_wrap_fini(&w);
        ebb_buf_fini(&seen);
    }
    ebb_wrap_fini(&whole);
}

/* The open block is there as source, and code has its colours line by line. */
static void open_blocks_show(void **state)
{
    static const char text[] = "```c\nint x;\nint y";
    ebb_wrap w = { .has_markdown = true, .is_rendered = true };

    (void)state;
    ebb_wrap_text(&w, text, sizeof text - 1, false);
    assert_string_equal(w.visible.data, "  c \u00B7 /copy 1\n  int x;\n  int y");
    ebb_wrap_fini(&w);
    w = (ebb_wrap){ .has_markdown = true, .is_rendered = true };
    ebb_wrap_text(&w, "a\n\n| b | c |\n|---", 17, false);
    assert_string_equal(w.visible.data, "a\n\n| b | c |\n|---");
    ebb_wrap_fini(&w);
}

/* An answer that goes on after its end is one text. */
static void continued(void **state)
{
    ebb_wrap w = set("one **tw", 8, 80);

    (void)state;
    ebb_wrap_text(&w, "one **two** three", 17, true);
    assert_string_equal(w.visible.data, "one two three\n");
    ebb_wrap_fini(&w);
}

/* A megabyte in tokens of four bytes: a model at 5,000 a second would take 52 s. */
/* One line of one character, while it comes and when it has come: no mark is counted twice. */
static void lines_of_marks(void **state)
{
    enum { N = 16 << 20 };
    char *text = malloc(N);

    (void)state;
    assert_non_null(text);
    for (const char *mark = "*_`~#>-[|"; *mark; mark++) {
        ebb_wrap w = { .has_markdown = true, .is_rendered = true, .page = 80 };

        memset(text, *mark, N);
        ebb_wrap_text(&w, text, N, false);
        assert_false(w.failed);
        assert_true(w.visible.len > 0);
        ebb_wrap_text(&w, text, N, true);
        assert_false(w.failed);
        ebb_wrap_fini(&w);
    }
    free(text);
}

static void keeps_up(void **state)
{
    enum { TOTAL = 1 << 20 };
    ebb_wrap w = { .has_markdown = true, .is_rendered = true, .page = 80 };
    ebb_buf text = { 0 };
    double began;

    (void)state;
    while (text.len < TOTAL)
        ebb_buf_adds(&text, sample);
    began = ebb_test_cpu_s();
    for (size_t n = 4; n < text.len; n += 4) {
        ebb_wrap_text(&w, text.data, n, false);
        if (n % 400 == 0)
            ebb_wrap_rows(&w, 80);
    }
    ebb_wrap_text(&w, text.data, text.len, true);
    ebb_wrap_rows(&w, 80);
    print_message("1 MB in %.2f s, %zu rows\n", ebb_test_cpu_s() - began, w.n_rows);
    assert_true(ebb_test_cpu_s() - began < 20);
    ebb_wrap_fini(&w);
    /* One paragraph, and one list, that never end. */
    for (int list = 0; list < 2; list++) {
        ebb_buf_clear(&text);
        while (text.len < TOTAL / 4)
            ebb_buf_adds(&text, list ? "- an item of a list\n" : "word after word ");
        w = (ebb_wrap){ .has_markdown = true, .is_rendered = true, .page = 80 };
        began = ebb_test_cpu_s();
        for (size_t n = 4; n < text.len; n += 4)
            ebb_wrap_text(&w, text.data, n, false);
        assert_true(ebb_test_cpu_s() - began < 10);
        ebb_wrap_fini(&w);
    }
    ebb_buf_fini(&text);
}

/* -- CommonMark ----------------------------------------------------------------------------- */

/* The text of HTML: without tags, entities as they are. */
static void text_of_html(const char *s, ebb_buf *out)
{
    static const char *const names[][2] = { { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" } };

    for (size_t i; *s; s++) {
        if (*s == '<') {
            s += strcspn(s, ">");
            s -= *s == '\0';
            continue;
        }
        for (i = 0; i < 4; i++)
            if (strncmp(s, names[i][0], strlen(names[i][0])) == 0)
                break;
        ebb_buf_addc(out, i < 4 ? *names[i][1] : *s);
        if (i < 4)
            s += strlen(names[i][0]) - 1;
    }
}

/* Every character of `want` but blanks, in order, in `have`: where the first is missing. */
static const char *first_missing(const char *want, const char *have)
{
    for (; *want; want++) {
        if (isspace((unsigned char)*want))
            continue;
        while (*have && *have != *want)
            have++;
        if (!*have)
            return want;
        have++;
    }
    return NULL;
}

/* Marks, not words, that are taken for emphasis: md4c knows no <textarea> (171) and no currency signs as
 * punctuation (354); a link's definition that comes after its use is not waited for (534, 535, 564). */
static bool is_known(size_t example)
{
    static const size_t known[] = { 171, 354, 534, 535, 564 };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == example)
            return true;
    return false;
}

static void commonmark(void **state)
{
    json_t *cases = json_load_file(ebb_test_shared_path("data/unicode/commonmark.0.31.2.json"), 0, NULL);
    size_t i, n_lost = 0;
    json_t *one;

    (void)state;
    assert_non_null(cases);
    json_array_foreach(cases, i, one) {
        ebb_buf want = { 0 };
        const char *missing, *have = page(json_string_value(json_object_get(one, "markdown")), 80);
        text_of_html(json_string_value(json_object_get(one, "html")), &want);
        missing = first_missing(ebb_buf_text(&want), have);
        if (missing && !is_known(i + 1)) {
            n_lost++;
            print_message("example %zu lost from: %s\n---\n%s\n---\n", i + 1, missing, have);
        }
        ebb_buf_fini(&want);
    }
    json_decref(cases);
    assert_true(i > 600);
    assert_int_equal(n_lost, 0);
}

/* While a text comes, what stands behind it in memory is no part of it. */
static void what_is_behind_the_text(void **state)
{
    static const char text[] = "[link](http://)SECRET", end[] = ")SECRET";
    const size_t n = sizeof text - sizeof end;
    ebb_wrap w = set(text, n, 80);

    (void)state;
    assert_string_equal(ebb_buf_text(&w.visible), page("[link](http://", 80));
    ebb_wrap_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose),
        cmocka_unit_test(links),
        cmocka_unit_test(lists),
        cmocka_unit_test(hanging),
        cmocka_unit_test(tables),
        cmocka_unit_test(links_in_tables),
        cmocka_unit_test(line_ends_by_number),
        cmocka_unit_test(tables_follow_the_page),
        cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(slow_blocks_are_source),
        cmocka_unit_test(slow_blocks_share),
        cmocka_unit_test(long_prose_is_set),
        cmocka_unit_test(copied_is_numbered),
        cmocka_unit_test(code),
        cmocka_unit_test(streams),
        cmocka_unit_test(open_blocks_show),
        cmocka_unit_test(continued),
        cmocka_unit_test(lines_of_marks),
        cmocka_unit_test(keeps_up),
        cmocka_unit_test(what_is_behind_the_text),
        cmocka_unit_test(commonmark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
