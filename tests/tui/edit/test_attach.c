/* Which words of a text name files that go along with it. */
#include "ebb_test.h"

#include <stdio.h>
#include <string.h>

#include "edit/attach.h"
#include "edit/marked.h"
#include "os/file.h"
#include "support/own_folder.h"

#define PASTED(TEXT) EBB_MARK_BEGIN TEXT EBB_MARK_END

/* Each % of the line becomes the folder of the test. */
static ebb_attached expand(const char *line, ebb_buf *out)
{
    ebb_buf whole = { 0 };
    ebb_attached files;
    ebb_error err = { 0 };

    for (; *line; line++)
        if (*line == '%')
            ebb_buf_adds(&whole, ebb_own_dir);
        else
            ebb_buf_addc(&whole, *line);
    ebb_buf_clear(out);
    assert_int_equal(ebb_attach_expand(ebb_buf_text(&whole), whole.len, NULL, out, &files, &err), EBB_OK);
    assert_memory_equal(out->data + out->len - whole.len, ebb_buf_text(&whole), whole.len);
    ebb_buf_fini(&whole);
    return files;
}

static void expect_files(const char *line, size_t n, const char *only_text)
{
    ebb_buf out = { 0 };
    ebb_attached files = expand(line, &out);

    if (files.n_files != n)
        fail_msg("%zu files go along, not %zu, with: %s", files.n_files, n, line);
    assert_int_equal(files.only_text[0] != '\0', *only_text != '\0');
    if (*only_text)
        assert_non_null(strstr(files.only_text, only_text));
    ebb_buf_fini(&out);
}

static int make_files(void **state)
{
    static const char *const names[] = { "a.txt", "b.txt", "Makefile", "my notes.txt" };
    char path[300];
    ebb_error err;

    if (ebb_own_dir_make(state) != 0)
        return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", ebb_own_dir, names[i]);
        if (ebb_file_replace(path, "text\n", 5, &err) != EBB_OK)
            return 1;
    }
    return 0;
}

/* What was pasted names nothing; that it would is said. */
static void what_was_pasted(void **state)
{
    (void)state;
    expect_files("sum up: @%/a.txt", 1, "");
    expect_files("sum up: " PASTED("see @%/b.txt or\n@%/a.txt\n"), 0, "b.txt");
    expect_files("sum up: " PASTED("see @%/b.txt\n") "@%/a.txt", 1, "b.txt");
    expect_files("sum up: " PASTED("see @%/b.txt"), 0, "b.txt");
    expect_files(PASTED("@nobody and @%") " @%/a.txt", 1, "");
    expect_files("@%/a.txt " EBB_MARK_BEGIN "@%/b.txt", 1, "b.txt");       /* of a damaged history */
    expect_files(EBB_MARK_END "@%/a.txt" EBB_MARK_END EBB_MARK_BEGIN EBB_MARK_BEGIN, 1, "");
}

/* So does what stands between fences, up to their end; a fence of a paste ends with it. */
static void what_is_code(void **state)
{
    (void)state;
    expect_files("```\n@%/a.txt\n```\n@%/b.txt", 1, "");
    expect_files("  ````c\n@%/a.txt\n```\n@%/a.txt\n````  \n@%/b.txt @%/a.txt", 2, "");
    expect_files("```x``` @%/a.txt", 1, "");     /* code in a line */
    expect_files("`` @%/a.txt", 1, "");
    expect_files("```\n@%/a.txt", 0, "");
    expect_files(PASTED("log\n```\n@%/b.txt") "\n@%/a.txt", 1, "");
    expect_files("```\n" PASTED("x\n```\n") "\n@%/b.txt\n```\n@%/a.txt", 1, "");
    expect_files("Explain @%/a.txt:\n```\nint x;\n```", 1, "");
    expect_files("$ cat @%/a.txt:\n```\n@%/b.txt\n```\n\nwhat is @%/a.txt", 1, "");
}

/* What went along stays as it was when the message is sent again, as often as it is. */
static void what_went_along(void **state)
{
    static const char *const lines[] = {
        "see @%/a.txt, @%/Makefile and @\"%/my notes.txt\"!", "all of @%/*.txt", "what is in @%/?",
        "@%/a.txt @%/a.txt",
    };
    ebb_buf out = { 0 }, again = { 0 }, line = { 0 };
    ebb_attached files;
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        files = expand(lines[i], &out);
        assert_true(files.n_files > 1);
        ebb_buf_clear(&again);
        assert_int_equal(ebb_attach_expand(out.data, out.len, NULL, &again, &files, &err), EBB_OK);
        assert_int_equal(files.n_files + files.n_left_out, 0);
        assert_string_equal(files.missing, "");
        assert_string_equal(ebb_buf_text(&again), ebb_buf_text(&out));
    }
    expand("see @%/a.txt", &out);                /* another one goes along with it, marked or not */
    ebb_buf_addf(&line, "%s and @%s/b.txt", ebb_buf_text(&out), ebb_own_dir);
    expect_files(ebb_buf_text(&line), 1, "");
    ebb_buf_clear(&line);
    ebb_buf_addf(&line, "old/a.txt:\n```txt\nx\n```\n\nsee @%s/a.txt", ebb_own_dir);     /* another one of that name */
    expect_files(ebb_buf_text(&line), 1, "");
    ebb_buf_clear(&line);                        /* its name is the first word behind it */
    ebb_buf_addf(&line, EBB_MARK_BEGIN "%s/Makefile:\n```\nx\n```\n\n" EBB_MARK_END "@%s/Makefile", ebb_own_dir,
                 ebb_own_dir);
    expect_files(ebb_buf_text(&line), 0, "");
    ebb_buf_clear(&line);                        /* an older ebb has written the last part of the path */
    ebb_buf_addf(&line, "a.txt:\n```txt\ntext\n```\n\nsee @%s/a.txt", ebb_own_dir);
    expect_files(ebb_buf_text(&line), 0, "");
    ebb_buf_adds(&line, " twice: @%/a.txt");
    expect_files(ebb_buf_text(&line), 1, "");
    ebb_buf_clear(&line);                        /* another file of that name has another text */
    ebb_buf_addf(&line, "a.txt:\n```txt\ntext\nmore\n```\n\nsee @%s/a.txt", ebb_own_dir);
    expect_files(ebb_buf_text(&line), 1, "");
    ebb_buf_clear(&line);
    ebb_buf_addf(&line, "before\n" EBB_MARK_BEGIN "a.txt:\n```txt\nx\n```\n\n" EBB_MARK_END "see @a.txt @%s/b.txt",
                 ebb_own_dir);                   /* behind a message that waited; its file is gone by now */
    expect_files(ebb_buf_text(&line), 1, "");
    expect_files("see the code,\na.txt:\n```txt\nx\n```\n\nand @%/a.txt", 1, "");  /* that is no file */
    ebb_buf_fini(&out);
    ebb_buf_fini(&again);
    ebb_buf_fini(&line);
}

/* One that is too large says how much goes along. */
static void what_is_too_large(void **state)
{
    ebb_buf line = { 0 }, out = { 0 };
    ebb_attached files;
    ebb_error err;
    char path[300];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/large.txt", ebb_own_dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fseek(f, EBB_ATTACH_BYTES, SEEK_SET), 0);
    fputs("x", f);
    fclose(f);
    ebb_buf_addf(&line, "see @%s", path);
    assert_int_equal(ebb_attach_expand(line.data, line.len, NULL, &out, &files, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "large.txt: is larger than 1 MiB, the most that is attached"));
    remove(path);
    ebb_buf_fini(&line);
    ebb_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_was_pasted), cmocka_unit_test(what_is_code),
                                        cmocka_unit_test(what_went_along), cmocka_unit_test(what_is_too_large) };

    return cmocka_run_group_tests_name("attach", tests, make_files, ebb_own_dir_drop);
}
