/* System prompts by name: shipped ones, the user's, and which comes first. */
#include "ebb_test.h"

#include "prompt/system_prompts.h"
#include "support/own_folder.h"

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void count_name(void *arg, const char *name)
{
    int *n = arg;

    n[0]++;
    n[1] += strcmp(name, "brief") == 0;
    n[2] += strcmp(name, "mine") == 0;
}

static void look(void *arg, const char *name)
{
    ebb_buf text = { 0 };
    int *n = arg;

    assert_int_equal(ebb_system_prompt_read(NULL, name, &text, NULL), EBB_OK);
    assert_true(text.len > 100 && text.len < 1000);
    assert_int_equal(text.data[text.len - 1], '.');
    assert_int_equal(strlen(text.data), text.len);
    ebb_buf_fini(&text);
    ++*n;
}

static void test_shipped(void **state)
{
    int n = 0;

    (void)state;
    ebb_system_prompt_each(NULL, look, &n);
    assert_int_equal(n, 10);
}

static void test_mine_come_first(void **state)
{
    char dir[] = "/tmp/ebb-library-XXXXXX";
    int n[3] = { 0 };
    ebb_buf text = { 0 };
    ebb_error err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_file(dir, "brief.txt", "\n  Be short. \n");
    write_file(dir, "mine.txt", "Mine");
    write_file(dir, "mine.txt~", "no");
    write_file(dir, ".txt", "no");
    ebb_buf_adds(&text, ">");
    assert_int_equal(ebb_system_prompt_read(dir, "brief", &text, &err), EBB_OK);
    assert_string_equal(text.data, ">Be short.");
    assert_int_equal(ebb_system_prompt_read(dir, "mine", &text, &err), EBB_OK);
    assert_int_equal(ebb_system_prompt_read(dir, "teacher", &text, &err), EBB_OK);
    assert_int_equal(ebb_system_prompt_read(dir, "absent", &text, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_system_prompt_read(dir, "../mine", &text, &err), EBB_USAGE);
    assert_int_equal(ebb_system_prompt_read(dir, "", &text, &err), EBB_USAGE);
    ebb_system_prompt_each(dir, count_name, n);
    assert_int_equal(n[0], 11);
    assert_int_equal(n[1], 1);
    assert_int_equal(n[2], 1);
    ebb_buf_fini(&text);
    assert_int_equal(ebb_own_folder_end(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shipped), cmocka_unit_test(test_mine_come_first) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
