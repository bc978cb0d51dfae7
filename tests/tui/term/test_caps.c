/* Entries of terminfo that tic(1) compiles, and no terminal has. */
#include "ebb_test.h"

#include <stdlib.h>

#include "support/own_folder.h"
#include "term/caps.h"

static void open_entry(const char *caps)
{
    ebb_buf command = { 0 };

    ebb_buf_addf(&command, "printf '%%s\\n' 'strange|x,' '\t%s' | tic -o %s - 2>/dev/null", caps, ebb_own_dir);
    if (system(command.data) != 0)
        skip();
    ebb_buf_fini(&command);
    setenv("TERMINFO", ebb_own_dir, 1);
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

    return cmocka_run_group_tests_name("caps", tests, ebb_own_dir_make, ebb_own_dir_drop);
}
