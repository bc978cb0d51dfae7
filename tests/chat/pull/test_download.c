/* A file from the net: every system call that fails, and what is left then. */
#include "ebb_test.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/dynlib.h"
#include "os/fault.h"
#include "pull/download.h"
#include "pull/part_sidecar.h"
#include "support/fake_hub.h"
#include "support/small_disk.h"

#define N_BYTES 150000u

static bool has_no_locks;

int flock(int fd, int how)
{
    if (has_no_locks) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, how);
}

/* The first sync of a file of so many bytes fails, and the next one does not: the kernel tells of a loss once. */
static uint64_t lost_at = UINT64_MAX;

int fdatasync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < lost_at)
        return (int)syscall(SYS_fdatasync, fd);
    lost_at = UINT64_MAX;
    errno = EIO;
    return -1;
}

/* What was written from there on. */
static uint64_t counted_from, n_counted;

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if ((uint64_t)at >= counted_from)
        n_counted += n;
    return syscall(SYS_pwrite64, fd, bytes, n, at);
}

static test_hub hub;
static char folder[96], data[N_BYTES];

/* What the hub has under the name. */
static void publish(const char *bytes, size_t n)
{
    char path[160];
    FILE *f;

    snprintf(path, sizeof path, "%s/files/x.gguf", hub.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    char path[160];

    (void)state;
    if (!test_hub_start(&hub))
        return 0;
    snprintf(path, sizeof path, "%s/files", hub.dir);
    if (mkdir(path, 0700) != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/here", hub.dir);
    for (size_t i = 0; i < N_BYTES; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    memcpy(data, "GGUF", 4);
    publish(data, N_BYTES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (hub.pid > 0)
        test_hub_stop(&hub);
    return 0;
}

static void name(char out[160], const char *ending)
{
    snprintf(out, 160, "%s/x.gguf%s", folder, ending);
}

static bool is_there(const char *ending, uint64_t *n)
{
    char path[160];
    struct stat st;
    bool ok;

    name(path, ending);
    ok = stat(path, &st) == 0;
    *n = ok ? (uint64_t)st.st_size : 0;
    return ok;
}

static void clear(void)
{
    static const char *const endings[] = { "", ".part", ".part.json" };
    char path[160];

    for (int i = 0; i < 3; i++) {
        name(path, endings[i]);
        remove(path);
    }
}

static void assert_whole(void)
{
    static char got[N_BYTES];
    char path[160];
    FILE *f;
    uint64_t n;

    assert_true(is_there("", &n) && n == N_BYTES);
    assert_false(is_there(".part", &n));
    name(path, "");
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, N_BYTES, f), N_BYTES);
    fclose(f);
    assert_memory_equal(got, data, N_BYTES);
}

static ebb_status get(uint64_t n_bytes, const char *sha256, ebb_download_result *got, ebb_error *err)
{
    static const ebb_pull_env env = { .pause_ms = 1 };
    char url[96];

    snprintf(url, sizeof url, "%s/x.gguf", hub.url);
    return ebb_download_file(&env, &(ebb_download_request){ .url = url, .folder = folder, .name = "x.gguf",
                                                            .n_bytes = n_bytes, .sha256 = sha256,
                                                .command = "ebb pull x" }, got, err);
}

/* As kill -9 leaves it: some bytes, and the note of their file. */
static void put_part(size_t n, const char *sha256)
{
    ebb_pull_sidecar note = { .command = "ebb pull x", .n_bytes = N_BYTES };
    char path[160];
    FILE *f;

    snprintf(note.sha256, sizeof note.sha256, "%s", sha256);
    name(path, ".part");
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
    assert_int_equal(ebb_pull_sidecar_write(path, &note, NULL), EBB_OK);
}

static void hash(char out[65])
{
    ebb_sha256 *s;

    assert_int_equal(ebb_sha256_new(&s, NULL), EBB_OK);
    ebb_sha256_add(s, "abc", 3);
    ebb_sha256_end(s, out);
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  /* FIPS 180-2, B.1 */
    ebb_sha256_begin(s);
    ebb_sha256_add(s, data, N_BYTES);
    ebb_sha256_end(s, out);
    ebb_sha256_free(s);
}

/* An empty folder; sha256: what the server's file has, or NULL. */
static void begin(char *sha256)
{
    if (hub.pid == 0)
        skip();
    if (sha256)
        hash(sha256);
    clear();
}

/* The nth call fails, for each n that a download that goes on reaches: a line says so, what carries the final name is
 * whole, and the next pull finishes. */
static void test_each_fault(void **state)
{
    char sha256[65];
    int n = 0;
    bool reached = true;

    (void)state;
    if (hub.pid == 0)
        skip();
    hash(sha256);
    for (n = 1; reached && n < 500; n++) {
        ebb_download_result got;
        ebb_error err = { 0 };
        ebb_status st;
        uint64_t size;

        clear();
        assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);      /* the folder is there */
        clear();
        put_part(50000, sha256);
        ebb_os_fail_nth(n);
        st = get(N_BYTES, sha256, &got, &err);
        reached = ebb_os_fail_off();
        if (is_there("", &size))
            assert_whole();
        else
            assert_int_not_equal(st, EBB_OK);
        if (st != EBB_OK)
            assert_true(err.msg[0] != '\0');
        assert_int_equal(get(N_BYTES, sha256, &got, &err), EBB_OK);
        assert_whole();
    }
    assert_false(reached);
    assert_true(n > 12);
}

static void test_resumes(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };
    char sha256[65], other[65];

    (void)state;
    begin(sha256);
    put_part(100000, sha256);
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_int_equal(got.n_resumed, 100000);
    assert_int_equal(got.n_fetched, N_BYTES - 100000);
    assert_true(got.is_verified);
    assert_string_equal(got.sha256, sha256);
    assert_whole();
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_true(got.was_there);
    /* All of it is there but the name. */
    clear();
    put_part(N_BYTES, sha256);
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_int_equal(got.n_fetched, 0);
    assert_whole();
    /* Of another file. */
    clear();
    memcpy(other, sha256, sizeof other);
    other[0] = other[0] == '0' ? '1' : '0';
    put_part(100000, other);
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_int_equal(got.n_resumed, 0);
    assert_whole();
    /* Damaged on this disk. */
    clear();
    data[7] ^= 1;
    put_part(100000, sha256);
    data[7] ^= 1;
    assert_int_equal(get(N_BYTES, sha256, &got, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, sha256));
    assert_false(is_there("", &(uint64_t){ 0 }) || is_there(".part", &(uint64_t){ 0 }) ||
                 is_there(".part.json", &(uint64_t){ 0 }));
}

/* What was synced is there once the machine was started anew; what is behind it may be holes, as they are here. */
static void test_resumes_after_a_loss_of_power(void **state)
{
    ebb_pull_sidecar note = { .command = "ebb pull x", .n_bytes = N_BYTES, .boot = "another", .n_synced = 60000 };
    ebb_download_result got;
    char path[160];

    (void)state;
    begin(NULL);
    test_hub_how(&hub, "etag=one");
    memset(data + 60000, 0, 30000);
    put_part(100000, "");
    for (size_t i = 60000; i < 90000; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    snprintf(note.etag, sizeof note.etag, "\"one\"");
    name(path, ".part");
    assert_int_equal(ebb_pull_sidecar_write(path, &note, NULL), EBB_OK);
    assert_int_equal(get(N_BYTES, "", &got, NULL), EBB_OK);
    assert_int_equal(got.n_resumed, 60000);
    assert_whole();
    test_hub_how(&hub, "");
}

static ebb_status get_syncing(ebb_download_result *got)
{
    static const ebb_pull_env env = { .pause_ms = 1, .sync_bytes = 40000 };
    char url[96];

    snprintf(url, sizeof url, "%s/x.gguf", hub.url);
    return ebb_download_file(&env, &(ebb_download_request){ .url = url, .folder = folder, .name = "x.gguf",
                                                            .n_bytes = N_BYTES, .sha256 = "",
                                                            .command = "ebb pull x" }, got, NULL);
}

/* What a sync has lost is fetched again, and written, whether the page cache still has it or has read holes. */
static void test_resumes_after_a_failed_sync(void **state)
{
    ebb_download_result got;
    ebb_pull_sidecar note;
    char path[160];
    uint64_t n;

    (void)state;
    for (int has_holes = 0; has_holes <= 1; has_holes++) {
        begin(NULL);
        test_hub_how(&hub, "etag=one");
        lost_at = 80000;
        assert_int_equal(get_syncing(&got), EBB_IO);
        assert_int_equal(lost_at, UINT64_MAX);
        name(path, ".part");
        assert_true(ebb_pull_sidecar_read(path, &note) && is_there(".part", &n));
        assert_true(note.n_synced >= 40000 && note.n_synced < 80000 && n >= 80000);
        if (has_holes)
            assert_true(truncate(path, (off_t)note.n_synced) == 0 && truncate(path, (off_t)n) == 0);
        counted_from = note.n_synced;
        n_counted = 0;
        assert_int_equal(get_syncing(&got), EBB_OK);
        assert_int_equal(got.n_resumed, note.n_synced);
        assert_true(n_counted >= N_BYTES - note.n_synced);
        assert_whole();
        test_hub_how(&hub, "");
    }
}

/* As another pull does that has fetched all of it. */
static ebb_status give_name(void *arg, const char *part_path, uint64_t n_bytes, ebb_error *err)
{
    char path[160];

    (void)arg;
    (void)n_bytes;
    (void)err;
    name(path, "");
    if (rename(part_path, path) == 0)
        ebb_pull_sidecar_remove(part_path);
    return EBB_OK;
}

/* Without locks two pulls may be at one file: the one that comes later leaves no note of a part that is gone. */
static void test_moved_by_another(void **state)
{
    static const ebb_pull_env env = { .pause_ms = 1 };
    ebb_download_result got;
    ebb_error err = { 0 };
    char url[96];

    (void)state;
    begin(NULL);
    snprintf(url, sizeof url, "%s/x.gguf", hub.url);
    assert_int_equal(ebb_download_file(&env, &(ebb_download_request){ .url = url, .folder = folder, .name = "x.gguf",
                                                                      .n_bytes = N_BYTES, .sha256 = "",
                                                                      .command = "ebb pull x",
                                                                      .on_header = give_name }, &got, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "x.gguf.part: it was moved meanwhile"));
    assert_false(is_there(".part.json", &(uint64_t){ 0 }));
    assert_whole();
}

/* A folder of models on a file system that has none. */
static void test_without_locks(void **state)
{
    ebb_download_result got;

    (void)state;
    begin(NULL);
    has_no_locks = true;
    assert_int_equal(get(N_BYTES, "", &got, NULL), EBB_OK);
    has_no_locks = false;
    assert_whole();
}

static void count_checks(void *arg, const ebb_download_progress *p)
{
    *(unsigned *)arg += p->is_check;
}

/* One file of several; *n_checks: how often it was told that what is here is being read. */
static ebb_status get_joined(uint64_t n_bytes, const char *sha256, ebb_download_result *got, unsigned *n_checks,
                             ebb_error *err)
{
    static const ebb_pull_env env = { .pause_ms = 1 };
    char url[96];

    *n_checks = 0;
    snprintf(url, sizeof url, "%s/x.gguf", hub.url);
    return ebb_download_file(&env, &(ebb_download_request){ .url = url, .folder = folder, .name = "x.gguf",
                                                            .n_bytes = n_bytes, .sha256 = sha256, .is_joined = true,
                                                            .on_progress = count_checks, .arg = n_checks,
                                                            .command = "ebb pull x" }, got, err);
}

/* A whole file of a model whose other files are still to come: its version is known without reading it again, is found
 * by reading it once, and another one is not joined. */
static void test_one_of_several(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };
    char sha256[65], other[65], note[160];
    unsigned n_checks;

    (void)state;
    begin(sha256);
    memcpy(other, sha256, sizeof other);
    other[0] = other[0] == '0' ? '1' : '0';
    name(note, ".part.json");
    assert_int_equal(get_joined(N_BYTES, sha256, &got, &n_checks, NULL), EBB_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(get_joined(N_BYTES, sha256, &got, &n_checks, NULL), EBB_OK);
        assert_true(got.was_there && n_checks == 0);
        assert_int_equal(get_joined(N_BYTES, other, &got, &n_checks, &err), EBB_FORMAT);
        assert_non_null(strstr(err.msg, "of another version"));
        assert_whole();
        assert_int_equal(remove(note), 0);
        assert_int_equal(get_joined(N_BYTES, other, &got, &n_checks, &err), EBB_FORMAT);
        assert_int_equal(get_joined(N_BYTES, sha256, &got, &n_checks, NULL), EBB_OK);
        assert_true(got.was_there && n_checks > 0);
    }
    assert_int_equal(get(N_BYTES, other, &got, NULL), EBB_OK);   /* alone, or with all the others: nothing is joined */
    assert_true(got.was_there);
}

/* Without a checksum the server is asked what its file is called now. */
static void test_one_of_several_by_name(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };
    unsigned n_checks;

    (void)state;
    begin(NULL);
    test_hub_how(&hub, "etag=one");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, NULL), EBB_OK);
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, NULL), EBB_OK);
    assert_true(got.was_there && got.n_fetched == 0);
    test_hub_how(&hub, "etag=two");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "of another version"));
    test_hub_how(&hub, "status=404");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, &err), EBB_NOTFOUND);
    test_hub_how(&hub, "mute");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, NULL), EBB_OK);
    test_hub_how(&hub, "etag=one weak");         /* of a proxy that packs what it sends on */
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, NULL), EBB_OK);
    test_hub_how(&hub, "");
    assert_whole();
}

/* The question is tried again like all else, and what is no model says nothing of a version. */
static void test_one_of_several_asked_again(void **state)
{
    static const char *const pages[] = { "<html>Log in!</html>", "GGU", "" };
    ebb_download_result got;
    ebb_error err = { 0 };
    unsigned n_checks;

    (void)state;
    begin(NULL);
    test_hub_how(&hub, "etag=one");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, NULL), EBB_OK);
    test_hub_how(&hub, "etag=one busy=2");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, NULL), EBB_OK);
    assert_true(got.was_there && got.n_fetched == 0);
    test_hub_how(&hub, "etag=one busy=9");
    assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "answers 503"));
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        publish(pages[i], strlen(pages[i]));
        test_hub_how(&hub, i == 0 ? "etag=page" : "mute");
        assert_int_equal(get_joined(UINT64_MAX, "", &got, &n_checks, &err), EBB_FORMAT);
        assert_non_null(strstr(err.msg, "127.0.0.1 sends something that is no model"));
    }
    publish(data, N_BYTES);
    test_hub_how(&hub, "");
    assert_whole();
}

static void test_breaks(void **state)
{
    ebb_download_result got;

    (void)state;
    begin(NULL);
    test_hub_how(&hub, "cut=20000");
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_OK);
    assert_whole();
    clear();
    test_hub_how(&hub, "cut=0");
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_IO);
    assert_false(is_there(".part", &(uint64_t){ 0 }));   /* nothing came */
    test_hub_how(&hub, "");
}

/* A server that hangs up, or is not there any more, is left sooner than a network that is gone; what came stays. */
static void test_refused(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };
    uint64_t n;

    (void)state;
    begin(NULL);
    test_hub_how(&hub, "cut=20000 gone");
    assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "tried 6 times"));
    assert_int_equal(got.n_fetched, 20000);
    assert_true(is_there(".part", &n) && n == 20000);
    test_hub_how(&hub, "");
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_OK);
    assert_int_equal(got.n_resumed, 20000);
    assert_whole();
}

/* Nothing is begun that the disk has no room for; it is said how much is missing. */
static void test_no_room(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };

    (void)state;
    begin(NULL);
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_OK);
    clear();
    if (!ebb_small_disk_mount(folder, 4096))
        skip();
    assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "146 KiB still to come"));
    assert_non_null(strstr(err.msg, "too little"));
    assert_int_equal(got.n_fetched, 0);
    assert_false(is_there(".part", &(uint64_t){ 0 }));
    ebb_small_disk_unmount(folder);
}

/* A server, or a proxy before it, that sends the file from its beginning when its rest was asked for, and breaks off:
 * what is here stays, though the server does not say which version it sends. */
static void test_no_ranges(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };
    char sha256[65];
    uint64_t n;

    (void)state;
    begin(sha256);
    put_part(100000, sha256);
    test_hub_how(&hub, "norange cut=90000");
    assert_int_equal(get(N_BYTES, sha256, &got, &err), EBB_IO);
    assert_true(is_there(".part", &n) && n == 100000);
    test_hub_how(&hub, "norange mute");
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_OK);
    assert_whole();
    test_hub_how(&hub, "");
}

/* Where the server's bytes become other ones than those of the part, it ends; one that is longer than the file, too. */
static void test_other_version(void **state)
{
    ebb_download_result got;
    char sha256[65];

    (void)state;
    begin(sha256);
    data[70000] ^= 1;
    put_part(100000, "");
    data[70000] ^= 1;
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_OK);
    assert_string_equal(got.sha256, sha256);
    assert_whole();
    clear();
    publish(data, 90000);
    put_part(100000, "");
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_OK);
    assert_int_equal(got.n_bytes, 90000);
    publish(data, N_BYTES);
}

/* A page that stands in the place of the file (some nets want a login first), and a body that a proxy has compressed,
 * cost nothing of what is here. */
static void test_something_else(void **state)
{
    static const char page[] = "<html>Log in!</html>";
    ebb_download_result got;
    ebb_error err = { 0 };
    char sha256[65];
    uint64_t n;

    (void)state;
    begin(sha256);
    put_part(100000, "");
    publish(page, sizeof page - 1);
    assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "no model"));
    assert_true(is_there(".part", &n) && n == 100000);
    publish(data, N_BYTES);
    put_part(100000, sha256);
    test_hub_how(&hub, "gzip");
    assert_int_equal(get(N_BYTES, sha256, &got, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "compresses"));
    assert_true(is_there(".part", &n) && n == 100000);
    test_hub_how(&hub, "");
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_whole();
}

/* A line that only drips is given up, and tries that bring next to nothing are counted. */
static void test_drips(void **state)
{
    ebb_download_result got;
    ebb_http_reply r;
    ebb_error err = { 0 };
    char url[96];

    (void)state;
    begin(NULL);
    snprintf(url, sizeof url, "%s/x.gguf", hub.url);
    test_hub_how(&hub, "hold=10");
    assert_int_equal(ebb_http_get(&(ebb_http_request){ .url = url, .stall_s = 1 }, &r, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "less than 1 KiB/s"));
    assert_int_equal(ebb_http_get(&(ebb_http_request){ .url = url, .limit_s = 1 }, &r, &err), EBB_IO);
    if (!strstr(err.msg, "within 1 s")) fail_msg("%s", err.msg);
    test_hub_how(&hub, "cut=100");
    assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "tried 10 times"));
    assert_int_equal(got.n_fetched, 1000);
    test_hub_how(&hub, "");
}

/* All is there, by the listing, but the reply does not end. */
static void test_reply_without_end(void **state)
{
    ebb_download_result got;
    char sha256[65];
    size_t n_before;

    (void)state;
    begin(sha256);
    test_hub_how(&hub, "chunked open");
    n_before = test_hub_n_requests(&hub);
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_int_equal(test_hub_n_requests(&hub), n_before + 1);
    assert_true(got.is_verified);
    assert_whole();
    test_hub_how(&hub, "");
}

/* Who is to wait for an hour hears that, and the part stays. */
static void test_to_wait_for_long(void **state)
{
    ebb_download_result got;
    ebb_error err = { 0 };
    uint64_t n;

    (void)state;
    begin(NULL);
    test_hub_how(&hub, "cut=20000 gone");
    assert_int_equal(get(UINT64_MAX, "", &got, NULL), EBB_IO);
    test_hub_how(&hub, "status=429 wait=3000");
    assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "too many requests from here (429); try again in 50 minutes"));
    assert_true(is_there(".part", &n) && n == 20000);
    test_hub_how(&hub, "");
}

/* A server that refuses the rest of a file that is longer than the part: the part is kept. */
static void test_rest_refused(void **state)
{
    ebb_download_result got;
    char sha256[65];
    uint64_t n;

    (void)state;
    begin(sha256);
    put_part(100000, sha256);
    test_hub_how(&hub, "status=416");
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_IO);
    assert_true(is_there(".part", &n) && n == 100000);
    test_hub_how(&hub, "");
    assert_int_equal(get(N_BYTES, sha256, &got, NULL), EBB_OK);
    assert_int_equal(got.n_resumed, 100000);
    assert_whole();
}

/* In the place of a part or of the file: what is no file, and what is somebody's file under another name. */
static void test_others_in_place(void **state)
{
    static const char *const endings[] = { ".part", "" };
    char path[160], copy[160], other[65];
    ebb_download_result got;
    ebb_error err = { 0 };
    struct stat st;

    (void)state;
    begin(NULL);
    for (int i = 0; i < 2; i++) {
        name(path, endings[i]);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_FORMAT);
        assert_non_null(strstr(err.msg, "a named pipe, not a file"));
        assert_int_equal(remove(path), 0);       /* it is still there */
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(get(UINT64_MAX, "", &got, &err), EBB_FORMAT);
        assert_non_null(strstr(err.msg, "a folder, not a file"));
        assert_int_equal(remove(path), 0);
    }
    hash(other);
    other[0] = other[0] == '0' ? '1' : '0';
    put_part(100000, other);
    name(path, ".part");
    name(copy, ".copy");
    assert_int_equal(link(path, copy), 0);
    hash(other);
    assert_int_equal(get(N_BYTES, other, &got, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "is a hard link"));
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_size, 100000);
    assert_int_equal(remove(copy), 0);
}

/* What stands in a sidecar goes into a request and onto the screen. */
static void test_sidecar_is_plain(void **state)
{
    ebb_pull_sidecar note = { .command = "ebb pull x\nrm -rf x", .n_bytes = 7, .etag = "\"x\"\r\nX-Other: 1",
                              .modified = "now\x1b[31m", .sha256 = "abc" };
    char path[160];

    (void)state;
    if (hub.pid == 0)
        skip();
    name(path, ".part");
    assert_int_equal(ebb_pull_sidecar_write(path, &note, NULL), EBB_OK);
    assert_false(ebb_pull_sidecar_read(path, &note));
    assert_string_equal(note.command, "");
    assert_string_equal(note.etag, "");
    assert_string_equal(note.modified, "");
    assert_string_equal(note.sha256, "abc");
    assert_int_equal(note.n_bytes, 7);
    ebb_pull_sidecar_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault),
        cmocka_unit_test(test_resumes),
        cmocka_unit_test(test_resumes_after_a_loss_of_power),
        cmocka_unit_test(test_resumes_after_a_failed_sync),
        cmocka_unit_test(test_moved_by_another),
        cmocka_unit_test(test_without_locks),
        cmocka_unit_test(test_one_of_several),
        cmocka_unit_test(test_one_of_several_by_name),
        cmocka_unit_test(test_one_of_several_asked_again),
        cmocka_unit_test(test_breaks),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_no_ranges),
        cmocka_unit_test(test_other_version),
        cmocka_unit_test(test_something_else),
        cmocka_unit_test(test_drips),
        cmocka_unit_test(test_reply_without_end),
        cmocka_unit_test(test_to_wait_for_long),
        cmocka_unit_test(test_rest_refused),
        cmocka_unit_test(test_others_in_place),
        cmocka_unit_test(test_sidecar_is_plain),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
