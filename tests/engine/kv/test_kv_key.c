/* The key of a folder of cache files: drawn once, secret, and drawn anew when it cannot be. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kv/kv_key.h"
#include "os/fault.h"

static char dir[64], path[80], elsewhere[80];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/ebb-key-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/key", dir);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    unlink(elsewhere);
    return rmdir(dir);
}

static void open_key(uint8_t key[EBB_KV_KEY_BYTES])
{
    ebb_error err = { 0 };

    assert_int_equal(ebb_kv_key_open(dir, key, &err), EBB_OK);
    assert_string_equal(err.msg, "");
}

static void expect_private(void)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, EBB_KV_KEY_BYTES);
}

static void test_drawn_once(void **state)
{
    static const uint8_t zeros[EBB_KV_KEY_BYTES];
    uint8_t first[EBB_KV_KEY_BYTES], again[EBB_KV_KEY_BYTES];

    (void)state;
    open_key(first);
    expect_private();
    open_key(again);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, zeros, sizeof first);
    unlink(path);
    open_key(again);
    assert_memory_not_equal(first, again, sizeof first);
}

static void write_key(const char *to, size_t n)
{
    FILE *f = fopen(to, "w");

    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        fputc('k', f);
    fclose(f);
}

/* One that others can read, a link to one, and one of another length. */
static void test_drawn_anew(void **state)
{
    static const uint8_t known[EBB_KV_KEY_BYTES] = "kkkkkkkkkkkkkkkk";

    (void)state;
    for (int i = 0; i < 3; i++) {
        uint8_t key[EBB_KV_KEY_BYTES];

        unlink(path);
        write_key(i == 1 ? elsewhere : path, i == 2 ? 15 : EBB_KV_KEY_BYTES);
        assert_int_equal(chmod(i == 1 ? elsewhere : path, i == 0 ? 0644 : 0600), 0);
        if (i == 1)
            assert_int_equal(symlink(elsewhere, path), 0);
        open_key(key);
        assert_memory_not_equal(key, known, sizeof key);
        expect_private();
    }
}

static void test_each_call_fails(void **state)
{
    uint8_t key[EBB_KV_KEY_BYTES], again[EBB_KV_KEY_BYTES];
    bool is_reached = true;

    (void)state;
    for (int nth = 1; is_reached; nth++) {
        ebb_error err = { 0 };
        ebb_status st;

        unlink(path);
        ebb_os_fail_nth(nth);
        st = ebb_kv_key_open(dir, key, &err);
        is_reached = ebb_os_fail_off();
        assert_int_equal(st != EBB_OK, err.msg[0] != '\0');
        open_key(again);
        if (st == EBB_OK)
            assert_memory_equal(key, again, sizeof key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_drawn_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drawn_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_call_fails, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
