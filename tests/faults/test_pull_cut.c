/* The power goes while a file is fetched of which nobody says the checksum: whoever goes on with what is left of it,
 * and ends, has the server's file. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "faults/disk_record.h"
#include "pull/download.h"
#include "support/fake_hub.h"
#include "support/own_folder.h"

enum { N_BYTES = 150000, SYNC_BYTES = 40000, CUTS = 25 };

static test_hub hub;
static char dir[64], root[80], image[80], data[N_BYTES];

static int setup(void **state)
{
    char path[160];

    (void)state;
    if (!test_hub_start(&hub))
        return 0;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-pull-cut-XXXXXX") != 0)
        return -1;
    snprintf(root, sizeof root, "%s/root", dir);
    snprintf(image, sizeof image, "%s/image", dir);
    snprintf(path, sizeof path, "%s/files", hub.dir);
    memcpy(data, "GGUF", 4);
    for (size_t i = 4; i < N_BYTES; i++)
        data[i] = (char)(1 + (i * 2654435761u >> 13) % 200);     /* no byte looks like a hole */
    disk_record_no_sync();
    return mkdir(root, 0700) == 0 ? mkdir(path, 0700) : -1;
}

static int teardown(void **state)
{
    (void)state;
    if (hub.pid <= 0)
        return 0;
    test_hub_stop(&hub);
    return ebb_own_folder_end(dir);
}

static void publish(void)
{
    char path[160];
    FILE *f;

    snprintf(path, sizeof path, "%s/files/x.gguf", hub.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, N_BYTES, f), N_BYTES);
    assert_int_equal(fclose(f), 0);
}

static ebb_status get(const char *folder, const char *boot, ebb_error *err)
{
    ebb_pull_env env = { .pause_ms = 1, .sync_bytes = SYNC_BYTES, .boot = boot };
    ebb_download_result got;
    char url[96];

    snprintf(url, sizeof url, "%s/x.gguf", hub.url);
    return ebb_download_file(&env, &(ebb_download_request){ .url = url, .folder = folder, .name = "x.gguf",
                                                            .n_bytes = N_BYTES, .sha256 = "",
                                                .command = "ebb pull x" }, &got, err);
}

static void expect_the_servers(size_t moment, unsigned seed)
{
    static char got[N_BYTES + 1];
    char path[120];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/x.gguf", image);
    f = fopen(path, "r");
    if (f) {
        n = fread(got, 1, sizeof got, f);
        fclose(f);
    }
    if (n != N_BYTES || memcmp(got, data, N_BYTES) != 0)
        fail_msg("power cut before operation %zu, seed %u: not the server's file", moment, seed);
}

/* What is recorded from here on, cut at some moments, and gone on with. */
static void cut_and_go_on(void)
{
    size_t n_ops = disk_record_n();
    ebb_error err;

    disk_record_end();
    for (unsigned i = 0; i < CUTS; i++) {
        size_t moment = n_ops * (i + 1) / CUTS;

        disk_replay_to(moment);
        assert_true(disk_replay_cut(i * 7919 + 1, image));
        if (get(image, "second", &err) != EBB_OK)
            fail_msg("power cut before operation %zu, seed %u: %s", moment, i * 7919 + 1, err.msg);
        expect_the_servers(moment, i * 7919 + 1);
    }
}

static void test_cut(void **state)
{
    (void)state;
    if (hub.pid == 0)
        skip();
    publish();
    test_hub_how(&hub, "etag=one");
    disk_record_begin(root);
    assert_int_equal(get(root, "first", NULL), EBB_OK);
    cut_and_go_on();
}

/* The server has another version by now: what is here of the old one is compared, and ends where they differ. */
static void test_cut_in_another_version(void **state)
{
    char path[120];

    (void)state;
    if (hub.pid == 0)
        skip();
    snprintf(path, sizeof path, "%s/x.gguf", root);
    assert_int_equal(unlink(path), 0);
    disk_record_begin(root);
    data[30000] ^= 1;
    publish();
    data[30000] ^= 1;
    test_hub_how(&hub, "etag=one cut=90000 gone");
    assert_int_equal(get(root, "first", NULL), EBB_IO);
    publish();
    test_hub_how(&hub, "etag=two");
    assert_int_equal(get(root, "first", NULL), EBB_OK);
    cut_and_go_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_in_another_version),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
