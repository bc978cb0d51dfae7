/* Files in front of a message, and what only looks like them. */
#include "ebb_test.h"

#include "base/buf.h"
#include "tree/attachment.h"

/* Where the words of `text` begin. */
static void expect_words(const char *text, const char *want)
{
    assert_string_equal(text + ebb_attachments_end(text, strlen(text)), want);
}

static void files(void **state)
{
    ebb_attachment file;
    static const char text[] = "a.c:\n```c\nint x;\n```\n\nb.md:\n````md\n```\n````\n\nWhat is this?";

    (void)state;
    assert_int_equal(ebb_attachment_next(text, sizeof text - 1, 0, &file), 22);
    assert_memory_equal(text + file.name, "a.c", file.n_name);
    assert_memory_equal(text + file.text, "int x;\n", file.n_text);
    expect_words(text, "What is this?");
    expect_words("$ git diff:\n```\n+x\n```\n\nGood?", "Good?");
    expect_words("Makefile:\n```\nall:\n```\n\nSee @src/Makefile, please", "See @src/Makefile, please");
    expect_words("Makefile:\n```\nall:\n```\n\nSee @Makefile?", "See @Makefile?");
    expect_words("src/Makefile:\n```\nall:\n```\n\nSee (@src/).", "See (@src/).");
    expect_words("src/Makefile:\n```\nall:\n```\n\nSee @src/M*", "See @src/M*");
    expect_words("my notes.txt:\n```txt\nx\n```\n\nRead @\"my notes.txt\" again", "Read @\"my notes.txt\" again");
    expect_words("README:\n```\nx\n```\n\nMakefile:\n```\ny\n```\n\n@Makefile @README", "@Makefile @README");
}

/* A question whose code stands in a fence is a question. */
static void code(void **state)
{
    static const char *const questions[] = {
        "Why does this C code crash:\n```c\nint *p = 0;\n```\n\nPlease answer in one line.",
        "Why does this crash in main.c:\n```c\nint *p = 0;\n```\n\nPlease answer.",
        "Log:\n```\nx\n```\n\nWho wrote to me@Log?",
        "a.c:\n```py\nint x;\n```\n\nWhat is this?",
        "a.c:\n```c\nint x;\n```",
        ".c:\n```c\nint x;\n```\n\nx",
        "$ :\n```\n```\n\n",
        "a.c:\n```c\nint x;",
        "a.c:\n\n```c\nint x;\n```\n\nx",
        "", "\n", ":\n```\n\n```\n\n", "@",
    };

    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        expect_words(questions[i], questions[i]);
}

/* Texts of a megabyte that name nothing, in which each word begins in another one, or each fence looks for a name:
 * hours, were they looked through again and again. */
static void large(void **state)
{
    static const struct { const char *head, *part, *tail; } texts[] = {
        { "a:\n```\nx\n```\n\n", "(@", "" }, { "a:\n```\nx\n```\n\n", "@)", "" },
        { "a:\n```\nx\n```\n\n", "@\"", "" }, { "", "a:\n```\n```\n\n", "@a" },
        { "", "a:\n```\n```\n\n", "words and words" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ebb_buf text = { 0 };

        ebb_buf_adds(&text, texts[i].head);
        while (text.len < 1 << 20)
            ebb_buf_adds(&text, texts[i].part);
        ebb_buf_adds(&text, texts[i].tail);
        assert_true(ebb_attachments_end(ebb_buf_text(&text), text.len) < text.len);
        ebb_buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(files), cmocka_unit_test(code),
                                        cmocka_unit_test(large) };

    return cmocka_run_group_tests_name("attachment", tests, NULL, NULL);
}
