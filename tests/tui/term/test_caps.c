/* Entries of terminfo that tic(1) compiles, and no terminal has. */
#include "ebb_test.h"

#include <stdlib.h>

#include "support/own_folder.h"
#include "term/caps.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    return ebb_own_folder(dir, sizeof dir, "/tmp/ebb-caps-XXXXXX");
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

static void open_entry(const char *caps)
{
    ebb_buf command = { 0 };

    ebb_buf_addf(&command, "printf '%%s\\n' 'strange|x,' '\t%s' | tic -o %s - 2>/dev/null", caps, dir);
    if (system(command.data) != 0)
        skip();
    ebb_buf_fini(&command);
    setenv("TERMINFO", dir, 1);
    setenv("TERM", "strange", 1);
    assert_true(ebb_caps_open());
}

/* What is no capability of one number is none. */
static void numbers_are_no_strings(void **state)
{
    const ebb_style red = { .fg = 1, .bg = 4 };
    ebb_buf out = { 0 };

    (void)state;
    open_entry("colors#256, sgr0=\\E[m, setaf=\\E[3%p1%sm, setab=\\E[4%p1%:-9.9sm, cuf=\\E[%p1%lC, cuu=\\E[%p1%dA,");
    ebb_caps_face(&red, 256, &out);
    ebb_cap_add_n(&out, "cuf", 7);
    ebb_cap_add_n(&out, "cuu", 3);
    assert_string_equal(ebb_buf_text(&out), "\033[m\033[3A");
    ebb_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_are_no_strings) };

    return cmocka_run_group_tests_name("caps", tests, setup, teardown);
}
