#include "ebb_test.h"

#include "edit/typed.h"

/* A message that is typed with its prefix is sent as it was; that of a line is its own only where it needs one. */
static void as_it_was(void **state)
{
    static const struct { const char *message, *prefix; } t[] = {
        { "", "" }, { "a", "" }, { " a", "" }, { "a!", "" }, { "\"\"a", "" }, { "\t!a", "" },
        { "/a", "/" }, { "//a", "/" }, { " /a", "" },
        { "!", " " }, { "!a", " " }, { " !a", " " }, { "  !a", " " },
        { "\"\"\"a", " " }, { " \"\"\"a\"\"\"", " " },
    };
    char line[40];

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *m = t[i].message;

        assert_string_equal(ebb_typed_prefix(m, strlen(m)), t[i].prefix);
        snprintf(line, sizeof line, "%s%s", t[i].prefix, m);
        assert_string_equal(line + ebb_typed_skip(line, strlen(line)), m);
        assert_false(ebb_typed_is_special(line, strlen(line)));
    }
    assert_true(ebb_typed_is_special("!a", 2));
    assert_true(ebb_typed_is_special("\"\"\"", 3));
}

/* A file's name may be a whole path; what stands behind a command's name is none. */
static void files_in_front(void **state)
{
#define FENCE "\n```\nB\n```\n\n"
    static const struct { const char *line, *words; } t[] = {
        { "a:" FENCE "see @a", "see @a" }, { "/a:" FENCE "@/a", "@/a" }, { "/a/b c:" FENCE "@d/", "@d/" },
        { "/edit 1 a:" FENCE "@d/", NULL }, { "/system be brief:" FENCE "as in @*.c", NULL },
        { "/system\tbe:" FENCE "as in @*.c", NULL }, { "/", NULL }, { "", NULL }, { "a", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        size_t n = ebb_typed_files(t[i].line, strlen(t[i].line));

        assert_string_equal(t[i].line + n, t[i].words ? t[i].words : t[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_was),
        cmocka_unit_test(files_in_front),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
