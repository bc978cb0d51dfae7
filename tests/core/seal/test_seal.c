/* What is sealed opens with its key, at its place, unchanged, and not otherwise. */
#include "ebb_test.h"

#include <sys/stat.h>

#include "os/fault.h"
#include "os/file.h"
#include "seal/key_file.h"
#include "seal/sodium.h"
#include "support/own_folder.h"

static char dir[64], path[96];
static uint8_t data_key[EBB_SEAL_KEY];
static ebb_seal *seal;

static int setup(void **state)
{
    const ebb_sodium *sodium;

    (void)state;
    if (ebb_sodium_load(&sodium, NULL) != EBB_OK) {
        print_message("libsodium is not installed\n");
        exit(77);
    }
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-seal-XXXXXX") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/sessions.key", dir);
    assert_int_equal(ebb_key_draw(data_key, NULL), EBB_OK);
    return ebb_seal_new(data_key, &seal, NULL) == EBB_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ebb_seal_free(seal);
    return ebb_own_folder_end(dir);
}

static void test_blocks(void **state)
{
    static const char text[] = "the zanzibar quokka of the fjord";
    uint8_t sealed[sizeof text], again[sizeof text], extra[EBB_SEAL_EXTRA], other[EBB_SEAL_EXTRA];
    char out[sizeof text];

    (void)state;
    ebb_seal_block(seal, EBB_SEAL_PAGE, 7, text, sizeof text, sealed, extra);
    assert_null(memmem(sealed, sizeof sealed, "quokka", 6));
    assert_true(ebb_seal_open(seal, EBB_SEAL_PAGE, 7, sealed, sizeof text, extra, out));
    assert_memory_equal(out, text, sizeof text);
    assert_false(ebb_seal_open(seal, EBB_SEAL_PAGE, 8, sealed, sizeof text, extra, out));
    assert_false(ebb_seal_open(seal, EBB_SEAL_LOG, 7, sealed, sizeof text, extra, out));
    ebb_seal_block(seal, EBB_SEAL_PAGE, 7, text, sizeof text, again, other);
    assert_memory_not_equal(sealed, again, sizeof text);         /* another nonce each time */
    for (size_t i = 0; i < sizeof sealed; i++) {
        sealed[i] ^= 1;
        assert_false(ebb_seal_open(seal, EBB_SEAL_PAGE, 7, sealed, sizeof text, extra, out));
        sealed[i] ^= 1;
    }
    for (size_t i = 0; i < sizeof extra; i++) {
        extra[i] ^= 0x80;
        assert_false(ebb_seal_open(seal, EBB_SEAL_PAGE, 7, sealed, sizeof text, extra, out));
        extra[i] ^= 0x80;
    }
    ebb_seal_block(seal, EBB_SEAL_PAGE, 1, out, sizeof out, out, extra);     /* in place */
    assert_true(ebb_seal_open(seal, EBB_SEAL_PAGE, 1, out, sizeof out, extra, out));
}

static void test_another_key(void **state)
{
    uint8_t key[EBB_SEAL_KEY], extra[EBB_SEAL_EXTRA], a[16], b[16];
    ebb_seal *other;
    char text[8] = "secret", out[8];

    (void)state;
    assert_int_equal(ebb_key_draw(key, NULL), EBB_OK);
    assert_memory_not_equal(key, data_key, sizeof key);
    assert_int_equal(ebb_seal_new(key, &other, NULL), EBB_OK);
    ebb_seal_block(seal, EBB_SEAL_TEXT, 0, text, sizeof text, text, extra);
    assert_false(ebb_seal_open(other, EBB_SEAL_TEXT, 0, text, sizeof text, extra, out));
    ebb_seal_name_key(seal, EBB_SEAL_KV_NAME, a);
    ebb_seal_name_key(other, EBB_SEAL_KV_NAME, b);
    assert_memory_not_equal(a, b, sizeof a);
    ebb_seal_name_key(seal, EBB_SEAL_KV_NAME, b);
    assert_memory_equal(a, b, sizeof a);
    ebb_seal_free(other);
}

static void test_texts(void **state)
{
    static const char text[] = "a line\nwith \\ all \001 sorts";
    ebb_buf word = { 0 }, out = { 0 };

    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        ebb_buf_clear(&word);
        ebb_buf_clear(&out);
        assert_true(ebb_seal_add_text(seal, text, n, &word));
        assert_true(ebb_seal_is_text(word.data, word.len));
        assert_null(strpbrk(word.data, "\n\\ "));
        assert_true(ebb_seal_open_text(seal, word.data, word.len, &out));
        assert_int_equal(out.len, n);
        assert_memory_equal(ebb_buf_text(&out), text, n);
    }
    assert_false(ebb_seal_open_text(seal, word.data, word.len - 1, &out));
    word.data[12] = word.data[12] == 'A' ? 'B' : 'A';
    assert_false(ebb_seal_open_text(seal, word.data, word.len, &out));
    assert_false(ebb_seal_open_text(seal, "plain", 5, &out));
    assert_false(ebb_seal_open_text(seal, "~sealed1~", 9, &out));
    assert_false(ebb_seal_open_text(seal, "~sealed1~*", 10, &out));
    ebb_buf_fini(&word);
    ebb_buf_fini(&out);
}

static void test_key_files(void **state)
{
    static const char *const secrets[] = { [EBB_KEY_OF_PASSPHRASE] = "correct horse", [EBB_KEY_OF_FILE] = "\1\2\3" };
    uint8_t got[EBB_SEAL_KEY];
    ebb_key_kind found;
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_key_file_kind(path, &found, &err), EBB_NOTFOUND);
    for (ebb_key_kind kind = EBB_KEY_OF_PASSPHRASE; kind <= EBB_KEY_OF_FILE; kind++) {
        assert_int_equal(ebb_key_file_write(path, kind, secrets[kind], strlen(secrets[kind]), data_key, &err), EBB_OK);
        assert_int_equal(ebb_key_file_kind(path, &found, &err), EBB_OK);
        assert_int_equal(found, kind);
        assert_int_equal(ebb_key_file_read(path, secrets[kind], strlen(secrets[kind]), got, &err), EBB_OK);
        assert_memory_equal(got, data_key, sizeof got);
        assert_int_equal(ebb_key_file_read(path, "wrong", 5, got, &err), EBB_IO);
        assert_null(strchr(err.msg, '\n'));
    }
}

/* Whatever byte of the file is another one, no key comes out of it, and no gigabyte is asked for. */
static void test_damaged_key_file(void **state)
{
    uint8_t bytes[EBB_KEY_FILE_BYTES + 1], got[EBB_SEAL_KEY];
    ebb_error err;
    FILE *f;

    (void)state;
    assert_int_equal(ebb_key_file_write(path, EBB_KEY_OF_FILE, "k", 1, data_key, &err), EBB_OK);
    f = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), EBB_KEY_FILE_BYTES);
    fclose(f);
    for (size_t i = 0; i < EBB_KEY_FILE_BYTES; i++) {
        if (i == 12)                             /* the kind: it would be one of a passphrase */
            continue;
        bytes[i] ^= 4;
        f = fopen(path, "wb");
        fwrite(bytes, 1, EBB_KEY_FILE_BYTES, f);
        fclose(f);
        assert_int_not_equal(ebb_key_file_read(path, "k", 1, got, &err), EBB_OK);
        bytes[i] ^= 4;
    }
    assert_int_equal(truncate(path, EBB_KEY_FILE_BYTES - 1), 0);
    assert_int_equal(ebb_key_file_read(path, "k", 1, got, &err), EBB_FORMAT);
}

/* What may wait for its writer is not read: a pipe, or one of the kernel's files, which have no size. */
/* Version 1 has one cost of a passphrase: another one is damage, and nobody waits for sixteen rounds of a gigabyte. */
static void test_foreign_costs(void **state)
{
    static const uint64_t costs[][2] = {
        { 16, (uint64_t)1 << 30 }, { 3, (uint64_t)512 << 20 }, { 4, (uint64_t)256 << 20 }, { 3, 100 }, { 0, 0 },
        { UINT64_MAX, UINT64_MAX },
    };
    uint8_t got[EBB_SEAL_KEY];
    ebb_key_kind kind;
    ebb_error err;
    FILE *f;

    (void)state;
    assert_int_equal(ebb_key_file_write(path, EBB_KEY_OF_PASSPHRASE, "k", 1, data_key, &err), EBB_OK);
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        f = fopen(path, "r+b");
        assert_int_equal(fseek(f, 16, SEEK_SET), 0);
        assert_int_equal(fwrite(costs[i], sizeof costs[i], 1, f), 1);
        fclose(f);
        assert_int_equal(ebb_key_file_kind(path, &kind, &err), EBB_FORMAT);
        assert_int_equal(ebb_key_file_read(path, "k", 1, got, &err), EBB_FORMAT);
        assert_non_null(strstr(err.msg, "damaged; put it back from a copy"));
    }
}

static void test_no_key_file(void **state)
{
    ebb_key_kind found;
    ebb_error err;

    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(ebb_key_file_kind(path, &found, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "is not a regular file"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/proc/version", path), 0);
    assert_int_equal(ebb_key_file_kind(path, &found, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "is empty"));
    assert_int_equal(unlink(path), 0);
}

/* Another key leaves nothing of the old one, which would open the same data key. */
static void test_replaced_key(void **state)
{
    uint8_t left[EBB_KEY_FILE_BYTES];
    static const uint8_t zeros[EBB_KEY_FILE_BYTES];
    ebb_error err;
    int fd;

    (void)state;
    assert_int_equal(ebb_key_file_write(path, EBB_KEY_OF_FILE, "old", 3, data_key, &err), EBB_OK);
    assert_int_equal(ebb_file_open(path, EBB_FILE_READ, &fd, &err), EBB_OK);     /* stands for its blocks */
    assert_int_equal(ebb_key_file_write(path, EBB_KEY_OF_FILE, "new", 3, data_key, &err), EBB_OK);
    assert_int_equal(ebb_file_read_at(fd, path, left, sizeof left, 0, &err), EBB_OK);
    assert_memory_equal(left, zeros, sizeof left);
    ebb_file_close(fd);
}

/* The old key is there until the new one is. */
static void test_failing_calls(void **state)
{
    uint8_t got[EBB_SEAL_KEY];
    bool failed = true;
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_key_file_write(path, EBB_KEY_OF_FILE, "old", 3, data_key, &err), EBB_OK);
    for (int n = 1; failed; n++) {
        ebb_status st;

        ebb_os_fail_nth(n);
        st = ebb_key_file_write(path, EBB_KEY_OF_FILE, "new", 3, data_key, &err);
        failed = ebb_os_fail_off();
        assert_int_equal(ebb_key_file_read(path, st == EBB_OK ? "new" : "old", 3, got, &err), EBB_OK);
        assert_memory_equal(got, data_key, sizeof got);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_blocks), T(test_another_key), T(test_texts), T(test_key_files), T(test_damaged_key_file),
        T(test_foreign_costs), T(test_no_key_file), T(test_replaced_key), T(test_failing_calls),
    };
    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
