/* The KV cache's folder on a small disk, or at its cap: when it is full one line says so, what is there stays
 * readable, and when there is room again turns are kept again. */
#include "ebb_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ebb/experimental/kv_cache.h"
#include "kv/kv_disk.h"
#include "os/fault.h"
#include "support/own_folder.h"
#include "support/small_disk.h"

enum { N_DATA = 100000, N_WELL = 8 };

/* A block was removed, and no folder synced since: with the power it may come back. */
static bool may_come_back;

int unlink(const char *path)
{
    int rc = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);

    may_come_back = may_come_back || (rc == 0 && strstr(path, ".block"));
    return rc;
}

int fsync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        may_come_back = false;
    return (int)syscall(SYS_fsync, fd);
}

static char dir[64];
static uint8_t data[N_DATA];

static int setup(void **state)
{
    static int no_mount;

    snprintf(dir, sizeof dir, "/tmp/ebb-disk-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    *state = ebb_small_disk_mount(dir, 4096) ? NULL : &no_mount;
    memset(data, 7, sizeof data);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ebb_small_disk_unmount(dir);
    return rmdir(dir);
}

static ebb_kv_file item(uint8_t name)
{
    static const ebb_token ids[4] = { 1, 2, 3, 4 };

    return (ebb_kv_file){ .kind = EBB_KV_FILE_BLOCK, .hash = { name }, .ids = ids, .n_ids = 4, .data = data,
                          .n_data = N_DATA };
}

/* Keep a block, and say whether it is there then. */
static bool write_block(ebb_kv_disk *d, uint8_t name)
{
    ebb_kv_file it = item(name);
    ebb_kv_disk_job job = { .items = &it, .n_items = 1 };
    uint32_t n_ids;

    ebb_kv_disk_submit(d, &job);
    assert_ptr_equal(ebb_kv_disk_reap(d, true), &job);
    return ebb_kv_disk_has(d, &it, &n_ids);
}

static void need_disk(void **state)
{
    if (!*state)
        return;
    puts("no tmpfs can be mounted here");
    skip();
}

static void expect_full(ebb_kv_disk *d, uint8_t name)
{
    char line[160];

    assert_false(write_block(d, name));
    assert_true(ebb_kv_disk_take_notice(d, line));
    assert_non_null(strstr(line, dir));
    assert_non_null(strstr(line, "free some space"));
    assert_false(write_block(d, name));
    assert_false(ebb_kv_disk_take_notice(d, line));      /* said once */
}

static void expect_read(ebb_kv_disk *d, uint8_t name)
{
    ebb_kv_file it = item(name);

    memset(data, 0, sizeof data);
    assert_true(ebb_kv_disk_read(d, &it));
    assert_int_equal(data[N_DATA - 1], 7);
}

static void test_full_and_again(void **state)
{
    char line[160];
    ebb_kv_disk *d;

    need_disk(state);
    assert_int_equal(ebb_kv_disk_open(dir, 4 << 20, &d, NULL), EBB_OK);
    assert_true(write_block(d, 1));
    assert_true(ebb_small_disk_fill(dir));
    expect_full(d, 2);
    expect_read(d, 1);
    ebb_small_disk_empty(dir);
    assert_true(write_block(d, 2));
    expect_read(d, 1);
    expect_read(d, 2);
    assert_true(ebb_small_disk_fill(dir));
    assert_false(write_block(d, 3));
    assert_false(ebb_kv_disk_take_notice(d, line));      /* it was well for one turn */
    ebb_small_disk_empty(dir);
    for (uint8_t name = 3; name < 3 + N_WELL; name++)
        assert_true(write_block(d, name));
    assert_true(ebb_small_disk_fill(dir));
    expect_full(d, 3 + N_WELL);                  /* said again, after it was well for a while */
    ebb_kv_disk_close(d);
}

static void set_time(const char *path, time_t t)
{
    struct timespec both[2] = { { .tv_sec = t }, { .tv_sec = t } };

    assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
}

/* As if it had been used at t for the last time. */
static void set_used(const char *folder, uint8_t name, time_t t)
{
    ebb_kv_file it = item(name);
    char path[256];

    ebb_kv_file_path(folder, &it, path, sizeof path);
    set_time(path, t);
}

static bool is_there(ebb_kv_disk *d, uint8_t name)
{
    ebb_kv_file it = item(name);
    uint32_t n_ids;

    return ebb_kv_disk_has(d, &it, &n_ids);
}

/* The cap that is a share of the disk's room follows it, and never falls below what is there. */
static void test_share_of_the_disk(void **state)
{
    ebb_kv_disk *d;

    need_disk(state);
    assert_true(ebb_small_disk_fill(dir));
    assert_int_equal(ebb_kv_disk_open(dir, 0, &d, NULL), EBB_OK);
    expect_full(d, 1);
    ebb_small_disk_empty(dir);
    assert_true(write_block(d, 1));
    assert_true(write_block(d, 2));
    for (uint8_t name = 1; name <= 2; name++)    /* what is younger may be of the turn under way */
        set_used(dir, name, time(NULL) - 60 + name);
    assert_true(ebb_small_disk_fill(dir));
    assert_true(write_block(d, 3));              /* in the place of the oldest */
    expect_read(d, 2);
    expect_read(d, 3);
    ebb_kv_disk_close(d);
}

/* Files whose removal gives no room: a write finds the disk full first, and then there is no share of it for a cap. */
static void test_full_is_told_once(void **state)
{
    char line[160], path[256], other[256];
    ebb_kv_disk *d;

    need_disk(state);
    assert_int_equal(ebb_kv_disk_open(dir, 0, &d, NULL), EBB_OK);
    for (uint8_t name = 1; name <= 2; name++) {
        ebb_kv_file it = item(name);

        assert_true(write_block(d, name));
        ebb_kv_file_path(dir, &it, path, sizeof path);
        snprintf(other, sizeof other, "%s/other-%u", dir, name);
        assert_int_equal(link(path, other), 0);
        set_time(path, time(NULL) - 60 + name);
    }
    assert_true(ebb_small_disk_fill(dir));
    assert_false(write_block(d, 3));
    assert_true(ebb_kv_disk_take_notice(d, line));
    assert_non_null(strstr(line, "the disk is full"));
    for (uint8_t name = 4; name <= 6; name++)
        assert_false(write_block(d, name));
    assert_false(ebb_kv_disk_take_notice(d, line));
    ebb_kv_disk_close(d);
}

/* A clock that was ahead for a while: files of the future are the first to go, as nobody knows how old they are. */
static void test_clock_that_went_back(void **state)
{
    time_t future = time(NULL) + 10 * 365 * 86400;
    char own[] = "/tmp/ebb-disk-XXXXXX", path[256], left[sizeof path + 16];
    uint32_t n_ids;
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    assert_int_equal(ebb_kv_disk_open(own, 256 << 10, &d, NULL), EBB_OK);
    for (uint8_t name = 1; name <= 2; name++) {
        ebb_kv_file it = item(name);

        assert_true(write_block(d, name));
        ebb_kv_file_path(own, &it, path, sizeof path);
        set_time(path, future + name);
    }
    snprintf(left, sizeof left, "%s.1.0.new", path);
    fclose(fopen(left, "w"));
    set_time(left, future);
    assert_true(write_block(d, 3));
    assert_false(ebb_kv_disk_has(d, &(ebb_kv_file){ .kind = EBB_KV_FILE_BLOCK, .hash = { 1 },
                                                    .n_data = N_DATA }, &n_ids));
    assert_int_not_equal(access(left, F_OK), 0);
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

static void expect_refused(const char *folder, const char *why)
{
    ebb_error err = { 0 };
    ebb_kv_disk *d;

    assert_int_equal(ebb_kv_disk_open(folder, 0, &d, &err), EBB_IO);
    assert_null(d);
    assert_non_null(strstr(err.msg, why));
    err = (ebb_error){ 0 };
    assert_int_equal(ebb_kv_disk_check(folder, &err), EBB_IO);
    assert_non_null(strstr(err.msg, why));
}

static void test_a_folder_of_others(void **state)
{
    char own[] = "/tmp/ebb-disk-XXXXXX", below[64];
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    snprintf(below, sizeof below, "%s/a/b", own);
    assert_int_equal(ebb_kv_disk_check(below, NULL), EBB_OK);    /* it can be made, and is not */
    assert_int_equal(ebb_kv_disk_check(own, NULL), EBB_OK);
    assert_int_equal(chmod(own, 0770), 0);
    expect_refused(own, "other users may write to it");
    assert_int_equal(chmod(own, 0755), 0);
    assert_int_equal(ebb_kv_disk_open(own, 0, &d, NULL), EBB_OK);
    ebb_kv_disk_close(d);
    if (geteuid() == 0) {
        assert_int_equal(chown(own, 12345, 12345), 0);
        expect_refused(own, "belongs to another user");
    }
    assert_int_equal(rmdir(own), 0);
}

/* Of a disk that is not mounted. */
static void test_a_link_that_leads_nowhere(void **state)
{
    char own[] = "/tmp/ebb-disk-XXXXXX", link[40], below[64];

    (void)state;
    assert_non_null(mkdtemp(own));
    snprintf(link, sizeof link, "%s/link", own);
    snprintf(below, sizeof below, "%s/a/b", link);
    assert_int_equal(symlink("/nowhere/kv", link), 0);
    expect_refused(link, "No such file");
    expect_refused(below, "No such file");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(own, link), 0);
    assert_int_equal(ebb_kv_disk_check(below, NULL), EBB_OK);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(own), 0);
}

/* -- The cap of files ---------------------------------------------------------------------- */

static unsigned count_files(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += e->d_name[0] != '.' && strcmp(e->d_name, "key") != 0;
    closedir(d);
    return n;
}

static void unfinished_path(const char *folder, char path[128])
{
    snprintf(path, 128, "%s/%032x.block.1.0.new", folder, 1u);
}

/* A file that the next look at the folder removes. */
static void leave_unfinished(const char *folder)
{
    char path[128];

    unfinished_path(folder, path);
    fclose(fopen(path, "w"));
    set_time(path, time(NULL) - 7200);
}

static bool is_looked_at(const char *folder)
{
    char path[128];

    unfinished_path(folder, path);
    return access(path, F_OK) != 0;
}

static void open_few(const char *folder, ebb_kv_disk **d, uint8_t max_files, uint8_t n_there)
{
    assert_int_equal(ebb_kv_disk_open(folder, 0, d, NULL), EBB_OK);
    ebb_kv_disk_set_limits(*d, &(ebb_kv_disk_limits){ max_files, UINT64_MAX });
    for (uint8_t name = 1; name <= n_there; name++) {
        assert_true(write_block(*d, name));
        set_used(folder, name, time(NULL) - 60 + name);
    }
}

/* At the cap each new file takes the place of the oldest, also where the folder was at its cap already. */
static void test_as_many_files_as_may_be(void **state)
{
    enum { N_FILES = 3, N_MORE = 4 };
    char own[] = "/tmp/ebb-disk-XXXXXX", line[160];
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    open_few(own, &d, N_FILES, N_FILES);
    for (uint8_t name = N_FILES + 1; name <= N_FILES + N_MORE; name++) {
        assert_true(write_block(d, name));
        assert_false(is_there(d, name - N_FILES));
        assert_true(is_there(d, name - N_FILES + 1));
        set_used(own, name, time(NULL) - 60 + name);
    }
    assert_false(ebb_kv_disk_take_notice(d, line));
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

static void open_looking(const char *folder, ebb_kv_disk **d, uint64_t max_files, uint64_t look_ns)
{
    assert_int_equal(ebb_kv_disk_open(folder, 1 << 30, d, NULL), EBB_OK);
    ebb_kv_disk_set_limits(*d, &(ebb_kv_disk_limits){ max_files, look_ns });
    leave_unfinished(folder);
}

/* The folder is not listed where nothing is to be written; else when something was not looked at yet, or a while ago,
 * or a sixteenth of the cap was written. */
static void test_when_the_folder_is_listed(void **state)
{
    char own[] = "/tmp/ebb-disk-XXXXXX";
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    open_looking(own, &d, 1000, UINT64_MAX);
    assert_true(write_block(d, 1));
    assert_true(is_looked_at(own));              /* for the first time */
    leave_unfinished(own);
    assert_true(write_block(d, 1));
    assert_true(write_block(d, 2));
    assert_false(is_looked_at(own));
    ebb_kv_disk_close(d);

    open_looking(own, &d, 1000, 0);
    assert_true(write_block(d, 2));
    assert_false(is_looked_at(own));             /* nothing to write */
    assert_true(write_block(d, 3));
    assert_true(is_looked_at(own));
    leave_unfinished(own);
    assert_true(write_block(d, 4));
    assert_true(is_looked_at(own));              /* that was a while ago */
    ebb_kv_disk_close(d);

    open_looking(own, &d, 32, UINT64_MAX);
    assert_true(write_block(d, 5));
    leave_unfinished(own);
    assert_true(write_block(d, 6));
    assert_false(is_looked_at(own));
    assert_true(write_block(d, 7));
    assert_true(is_looked_at(own));              /* two of 32 were written */
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

/* What another program has written meanwhile is seen by a look, and counts. */
static void test_two_programs_at_the_cap(void **state)
{
    enum { N_FILES = 4 };
    char own[] = "/tmp/ebb-disk-XXXXXX";
    ebb_kv_disk *both[2];

    (void)state;
    assert_non_null(mkdtemp(own));
    open_few(own, &both[0], N_FILES, 1);
    open_few(own, &both[1], N_FILES, 0);
    for (uint8_t name = 2; name < 12; name++) {
        assert_true(write_block(both[name / 2 % 2], name));
        assert_true(is_there(both[0], name));
        assert_int_equal(count_files(own), name < N_FILES ? name : N_FILES);
        set_used(own, name, time(NULL) - 60 + name);
    }
    ebb_kv_disk_close(both[0]);
    ebb_kv_disk_close(both[1]);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

/* What does not fit is its beginning, and the line is about files. */
static void test_more_files_than_may_be(void **state)
{
    char own[] = "/tmp/ebb-disk-XXXXXX", line[160];
    ebb_kv_file three[] = { item(1), item(2), item(3) };
    ebb_kv_disk_job job = { .items = three, .n_items = 3 };
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    open_few(own, &d, 2, 0);
    ebb_kv_disk_submit(d, &job);
    assert_ptr_equal(ebb_kv_disk_reap(d, true), &job);
    assert_true(is_there(d, 1) && is_there(d, 2) && !is_there(d, 3));
    assert_true(ebb_kv_disk_take_notice(d, line));
    assert_non_null(strstr(line, own));
    assert_non_null(strstr(line, "the cap of 2 files"));
    assert_null(strstr(line, "MiB"));
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

/* -- A sweep while files are written ------------------------------------------------------- */

static bool keep_none(void *arg, const ebb_token *ids, size_t n)
{
    (void)arg;
    (void)ids;
    (void)n;
    return false;
}

static void sweep_all(const char *folder, size_t n_want)
{
    size_t n;

    assert_int_equal(ebb_kv_cache_sweep(folder, NULL, keep_none, NULL, false, &n, NULL), EBB_OK);
    assert_int_equal(n, n_want);
}

/* Called by the writer, between the beginning of a file and its name. */
typedef struct in_the_middle {
    const char *folder;
    bool        lists;           /* the sweep also finds what is begun */
    unsigned    n_calls;
} in_the_middle;

static void no_random(void *arg, void *out, size_t n)
{
    (void)arg;
    memset(out, 0, n);
}

static void sweep_meanwhile(void *arg, const uint8_t nonce[24], const void *in, size_t n, void *out, uint8_t tag[16])
{
    in_the_middle *m = arg;

    (void)nonce;
    memcpy(out, in, n);
    memset(tag, 0, 16);
    if (m->n_calls++ > 0)
        return;
    if (m->lists)
        sweep_all(m->folder, 1);
    else
        assert_int_equal(ebb_kv_swept_renew(m->folder, NULL), EBB_OK);
}

static bool opens_all(void *arg, const uint8_t nonce[24], void *sealed, size_t n, const uint8_t tag[16])
{
    (void)arg;
    (void)nonce;
    (void)sealed;
    (void)n;
    (void)tag;
    return true;
}

/* What was computed before a sweep is not written behind its back: not what waits, not what is just being written,
 * whether the sweep finds that or not, nor does a loss of power bring it back; and that is no failure to be told. */
static void test_sweep_while_writing(void **state)
{
    char own[] = "/tmp/ebb-disk-XXXXXX", line[160];
    ebb_kv_swept before = { 0 };
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    assert_int_equal(ebb_kv_disk_open(own, 0, &d, NULL), EBB_OK);
    assert_true(write_block(d, 1));
    sweep_all(own, 1);
    assert_false(write_block(d, 2));             /* as of before */
    for (int lists = 0; lists < 2; lists++) {
        in_the_middle m = { own, lists, 0 };
        ebb_kv_seal seal = { .arg = &m, .random = no_random, .seal = sweep_meanwhile, .open = opens_all };
        ebb_kv_file two[2] = { item(3), item(4) };
        ebb_kv_disk_job job = { .items = two, .n_items = 2 };

        two[0].seal = two[1].seal = &seal;
        ebb_kv_disk_note_swept(d, &job.swept);
        assert_memory_not_equal(&job.swept, &before, sizeof before);
        before = job.swept;
        ebb_kv_disk_submit(d, &job);
        assert_ptr_equal(ebb_kv_disk_reap(d, true), &job);
        assert_int_not_equal(m.n_calls, 0);
        assert_int_equal(count_files(own), 0);
        assert_false(may_come_back);
    }
    assert_false(ebb_kv_disk_take_notice(d, line));
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

/* Another program uses the oldest file, and leaves an unfinished one behind. */
static void use_meanwhile(void *arg, const uint8_t nonce[24], const void *in, size_t n, void *out, uint8_t tag[16])
{
    in_the_middle *m = arg;

    (void)nonce;
    memcpy(out, in, n);
    memset(tag, 0, 16);
    if (m->n_calls++ > 0)
        return;
    set_used(m->folder, 1, time(NULL) - 30);
    leave_unfinished(m->folder);
}

/* One look at the folder is enough for a job at the cap, and what was used since that look stays. */
static void test_used_since_the_look(void **state)
{
    enum { N_THERE = 5, N_NEW = 4 };
    char own[] = "/tmp/ebb-disk-XXXXXX";
    in_the_middle m = { own, false, 0 };
    ebb_kv_seal seal = { .arg = &m, .random = no_random, .seal = use_meanwhile, .open = opens_all };
    ebb_kv_file fresh[N_NEW];
    ebb_kv_disk_job job = { .items = fresh, .n_items = N_NEW };
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    open_few(own, &d, N_THERE + 1, N_THERE);
    for (uint8_t i = 0; i < N_NEW; i++) {
        fresh[i] = item(100 + i);
        fresh[i].seal = &seal;
    }
    ebb_kv_disk_submit(d, &job);                 /* one has room, three take the places of others */
    assert_ptr_equal(ebb_kv_disk_reap(d, true), &job);
    assert_true(is_there(d, 1) && is_there(d, N_THERE));
    for (uint8_t name = 2; name < N_THERE; name++)
        assert_false(is_there(d, name));
    assert_int_equal(count_files(own), N_THERE + 1 + 1);
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

/* A full disk leaves a mark without its bytes: what was computed before is not written, and what comes then is. */
static void test_short_mark(void **state)
{
    char own[] = "/tmp/ebb-disk-XXXXXX", mark[64];
    ebb_kv_file one = item(2);
    ebb_kv_disk_job job = { .items = &one, .n_items = 1 };
    ebb_kv_disk *d;

    (void)state;
    assert_non_null(mkdtemp(own));
    assert_int_equal(ebb_kv_disk_open(own, 0, &d, NULL), EBB_OK);
    sweep_all(own, 0);
    snprintf(mark, sizeof mark, "%s/.swept", own);
    assert_int_equal(truncate(mark, 0), 0);
    assert_false(write_block(d, 1));
    ebb_kv_disk_note_swept(d, &job.swept);
    ebb_kv_disk_submit(d, &job);
    assert_ptr_equal(ebb_kv_disk_reap(d, true), &job);
    assert_int_equal(count_files(own), 1);
    ebb_kv_disk_close(d);
    assert_int_equal(ebb_own_folder_end(own), 0);
}

/* Of a folder that cannot be written to nothing can be removed, which is no success. */
static void test_sweep_readonly(void **state)
{
    ebb_error err = { 0 };
    ebb_kv_disk *d;
    size_t n;

    need_disk(state);
    assert_int_equal(ebb_kv_disk_open(dir, 4 << 20, &d, NULL), EBB_OK);
    assert_true(write_block(d, 1));
    ebb_kv_disk_close(d);
    assert_true(ebb_small_disk_read_only(dir));
    for (int overwrites = 0; overwrites < 2; overwrites++) {
        assert_int_equal(ebb_kv_cache_sweep(dir, NULL, keep_none, NULL, overwrites, &n, &err), EBB_IO);
        assert_int_equal(n, 0);
        assert_non_null(strstr(err.msg, dir));
        assert_non_null(strstr(err.msg, ": 1 files of K and V cannot be removed"));
        assert_int_equal(count_files(dir), 1);
    }
}

/* Where the folder cannot be listed to its end, what was not seen may be there still. */
static void test_sweep_sees_all(void **state)
{
    char own[64];
    bool failed = true;

    (void)state;
    assert_int_equal(ebb_own_folder(own, sizeof own, "/tmp/ebb-disk-XXXXXX"), 0);
    for (int call = 1; failed; call++) {
        ebb_kv_file it = item(1);
        ebb_error err = { 0 };
        char path[256];
        ebb_status st;
        size_t n;

        ebb_kv_file_path(own, &it, path, sizeof path);
        fclose(fopen(path, "w"));
        ebb_os_fail_nth_here(call);
        st = ebb_kv_cache_sweep(own, NULL, keep_none, NULL, true, &n, &err);
        failed = ebb_os_fail_off();
        if (st != EBB_OK)
            assert_non_null(strstr(err.msg, own));
        else
            assert_int_equal(count_files(own), 0);
    }
    assert_int_equal(ebb_own_folder_end(own), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_and_again, setup, teardown),
        cmocka_unit_test(test_clock_that_went_back),
        cmocka_unit_test(test_a_folder_of_others), cmocka_unit_test(test_sweep_while_writing),
        cmocka_unit_test(test_a_link_that_leads_nowhere),
        cmocka_unit_test(test_short_mark),
        cmocka_unit_test(test_as_many_files_as_may_be), cmocka_unit_test(test_more_files_than_may_be),
        cmocka_unit_test(test_used_since_the_look), cmocka_unit_test(test_when_the_folder_is_listed),
        cmocka_unit_test(test_two_programs_at_the_cap),
        cmocka_unit_test_setup_teardown(test_share_of_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_is_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sweep_readonly, setup, teardown),
        cmocka_unit_test(test_sweep_sees_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
