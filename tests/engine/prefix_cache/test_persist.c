/* The KV cache on disk: what one engine has computed another one, opened later,
 * does not compute again, and its logits have the same bits; files that are
 * damaged, foreign or gone, a full disk and a small cap cost time and nothing else. */
#include "ebb_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/kv_cache.h"
#include "ebb/session.h"
#include "kv/kv_swept.h"
#include "os/fault.h"
#include "store/sealed_kv.h"
#include "support/own_key.h"
#include "support/tiny_engine.h"

#define N 150u

static char dir[64];

static void open_kept(tiny_engine *f, const ebb_tiny_opts *tiny, ebb_engine_opts o)
{
    o.n_ctx = o.n_ctx ? o.n_ctx : 256;
    o.n_threads = 2;
    o.kv_cache_dir = dir;
    o.kv_seal = ebb_sealed_kv();
    open_tiny_engine(f, tiny, &o);
}

/* Compute ids in an engine of their own and keep them. */
static void compute(const ebb_tiny_opts *tiny, ebb_engine_opts o, const ebb_token *ids, uint32_t n)
{
    tiny_engine f;

    open_kept(&f, tiny, o);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    ebb_session_persist(f.s);
    close_tiny_engine(&f);
}

static void fresh(const ebb_tiny_opts *tiny, ebb_engine_opts o, const ebb_token *ids, uint32_t n, float *out)
{
    tiny_engine f;

    o.no_kv_cache = true;
    open_kept(&f, tiny, o);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    memcpy(out, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *out);
    close_tiny_engine(&f);
}

/* Sync in a new engine: so many tokens come from disk, and the logits are those computed anew. */
static void expect_restored(const ebb_tiny_opts *tiny, ebb_engine_opts o, const ebb_token *ids, uint32_t n,
                            uint32_t n_disk)
{
    float want[EBB_TINY_VOCAB];
    ebb_sync_result r;
    tiny_engine f;

    fresh(tiny, o, ids, n, want);
    open_kept(&f, tiny, o);
    assert_int_equal(ebb_session_common_prefix(f.s, ids, n), n_disk);
    assert_int_equal(ebb_session_sync(f.s, ids, n, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused_disk, n_disk);
    assert_int_equal(r.n_reused, n_disk);
    assert_int_equal(r.n_computed, n - n_disk);
    assert_memory_equal(ebb_session_logits(f.s), want, sizeof want);
    close_tiny_engine(&f);
}

/* -- Files -------------------------------------------------------------------------- */

typedef void file_fn(const char *path, void *arg);

static unsigned each_file(file_fn *fn, void *arg)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[400];

        if (e->d_name[0] == '.' || strcmp(e->d_name, "key") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        n++;
        if (fn)
            fn(path, arg);
    }
    closedir(d);
    return n;
}

static void remove_it(const char *path, void *arg)
{
    (void)arg;
    unlink(path);
}

static void add_size(const char *path, void *arg)
{
    struct stat st;

    if (stat(path, &st) == 0)
        *(uint64_t *)arg += ((uint64_t)st.st_size + 4095) / 4096 * 4096;
}

/* An hour older than it is. */
static void age(const char *path, void *arg)
{
    struct timespec both[2];
    struct stat st;

    (void)arg;
    assert_int_equal(stat(path, &st), 0);
    both[0] = both[1] = st.st_mtim;
    both[0].tv_sec = both[1].tv_sec -= 3600;
    assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
}

/* Change a byte at a share of the file's length. */
static void damage(const char *path, void *share)
{
    FILE *f = fopen(path, "r+b");
    long at;
    int c;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    at = (long)((double)ftell(f) * *(double *)share);
    fseek(f, at, SEEK_SET);
    c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 0x10, f);
    fclose(f);
}

static void halve(const char *path, void *arg)
{
    struct stat st;

    (void)arg;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void remove_key(void)
{
    char path[80];

    snprintf(path, sizeof path, "%s/key", dir);
    unlink(path);
}

static void remove_mark(void)
{
    char path[80];

    snprintf(path, sizeof path, "%s/.swept", dir);
    unlink(path);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/ebb-keep-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    each_file(remove_it, NULL);
    remove_key();
    remove_mark();
    return rmdir(dir);
}

/* -- Restoring ------------------------------------------------------------------------ */

static const ebb_tiny_opts small = { .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96 };

static void test_restored_logits_have_the_same_bits(void **state)
{
    static const char *const archs[] = { "llama",  "qwen3", "gemma3",        "gemma3n", "gemma4",
                                         "qwen35", "lfm2",  "granitehybrid", "mamba2" };
    static const ebb_kv_type types[] = { EBB_KV_F16, EBB_KV_F32, EBB_KV_Q8_0, EBB_KV_Q4_0 };
    ebb_token ids[N];

    (void)state;
    fill_ids(ids, N, 1);
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            ebb_tiny_opts tiny = { .arch = archs[a], .type = EBB_TYPE_Q8_0, .n_ff = 96 };
            ebb_engine_opts o = { .n_batch = 32, .has_kv = true, .kv_k = types[t], .kv_v = types[t] };

            compute(&tiny, o, ids, N - 20);
            expect_restored(&tiny, o, ids, N, N - 20);
        }
    }
}

static void test_every_architecture_is_restored(void **state)
{
    ebb_token ids[N];

    (void)state;
    fill_ids(ids, N, 1);
    for (size_t a = 0; ebb_tiny_archs[a]; a++) {
        ebb_tiny_opts tiny = { .arch = ebb_tiny_archs[a], .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 96 };

        compute(&tiny, (ebb_engine_opts){ .n_batch = 32 }, ids, N - 20);
        expect_restored(&tiny, (ebb_engine_opts){ .n_batch = 32 }, ids, N, N - 20);
    }
}

static void test_the_last_token_is_computed_for_its_logits(void **state)
{
    ebb_token ids[N];

    (void)state;
    fill_ids(ids, N, 1);
    compute(&small, (ebb_engine_opts){ 0 }, ids, N);
    expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, N - 1);
    compute(&small, (ebb_engine_opts){ 0 }, ids, 128);
    expect_restored(&small, (ebb_engine_opts){ 0 }, ids, 128, 127);
}

static void test_branches_share_their_beginning(void **state)
{
    ebb_token ids[N], other[N];

    (void)state;
    fill_ids(ids, N, 1);
    memcpy(other, ids, sizeof ids);
    fill_ids(other + 70, N - 70, 2);
    other[70] = ids[70] ^ 1;
    compute(&small, (ebb_engine_opts){ 0 }, ids, N);
    expect_restored(&small, (ebb_engine_opts){ 0 }, other, N, 64);
    compute(&small, (ebb_engine_opts){ 0 }, other, N);
    expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, N - 1);
    expect_restored(&small, (ebb_engine_opts){ 0 }, other, N, N - 1);
    assert_int_equal(each_file(NULL, NULL), 4 + 2 + 2);  /* blocks of one; those of the other; tails */
}

static void test_another_model_or_type_gets_nothing(void **state)
{
    ebb_tiny_opts trained = small;
    ebb_token ids[N];

    (void)state;
    fill_ids(ids, N, 1);
    trained.seed = 7;                            /* the same header, other weights */
    compute(&small, (ebb_engine_opts){ 0 }, ids, N);
    expect_restored(&trained, (ebb_engine_opts){ 0 }, ids, N, 0);
    expect_restored(&small, (ebb_engine_opts){ .has_kv = true, .kv_k = EBB_KV_Q8_0 }, ids, N, 0);
    expect_restored(&small, (ebb_engine_opts){ .n_ctx = 512 }, ids, N, N - 1);
}

static void test_a_timeline_that_ended_is_found_in_the_pool(void **state)
{
    ebb_engine_opts o = { .n_ctx = 256, .no_kv_cache = true };
    ebb_token ids[N], other[N];
    float want[EBB_TINY_VOCAB];
    ebb_sync_result r;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    fill_ids(other, N, 2);
    other[0] = ids[0] ^ 1;
    fresh(&small, o, ids, N, want);
    open_kept(&f, &small, o);
    assert_int_equal(ebb_session_sync(f.s, ids, 100, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f.s, other, 100, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 0);
    assert_int_equal(ebb_session_common_prefix(f.s, ids, N), 96);
    assert_int_equal(ebb_session_sync(f.s, ids, N, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 96);
    assert_int_equal(r.n_reused_disk, 0);
    assert_memory_equal(ebb_session_logits(f.s), want, sizeof want);
    assert_int_equal(ebb_session_sync(f.s, other, 100, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 96);
    close_tiny_engine(&f);
}

/* An edit in the middle of a block does not spoil the block for the old branch. */
static void test_an_edit_leaves_the_old_branch(void **state)
{
    ebb_engine_opts o = { .n_ctx = 512, .no_kv_cache = true };
    ebb_token ids[N], other[N];
    float want[EBB_TINY_VOCAB];
    ebb_sync_result r;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    memcpy(other, ids, sizeof ids);
    other[50] ^= 1;
    fresh(&small, o, ids, 128, want);
    open_kept(&f, &small, o);
    assert_int_equal(ebb_session_sync(f.s, ids, 128, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f.s, other, N, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 50);
    assert_int_equal(ebb_session_sync(f.s, ids, 128, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused, 127);
    assert_memory_equal(ebb_session_logits(f.s), want, sizeof want);
    close_tiny_engine(&f);
}

/* What another sequence has is announced as what a sync reuses, also of a state that exists only at some places. */
static void test_what_is_announced_is_reused(void **state)
{
    static const char *const archs[] = { "llama", "mamba2" };
    ebb_engine_opts o = { .n_ctx = 512, .no_kv_cache = true };
    enum { LONG = 300 };
    ebb_token ids[LONG];
    ebb_session *twin;
    ebb_sync_result r;
    tiny_engine f;
    size_t n;

    (void)state;
    fill_ids(ids, LONG, 1);
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        open_kept(&f, &(ebb_tiny_opts){ .arch = archs[a], .type = EBB_TYPE_Q8_0, .n_ff = 96 }, o);
        assert_int_equal(ebb_session_new(f.engine, &twin, NULL), EBB_OK);
        assert_int_equal(ebb_session_sync(f.s, ids, 80, NULL, NULL), EBB_OK);
        for (uint32_t i = 80; i < LONG; i++)
            assert_int_equal(ebb_session_append(f.s, ids[i], NULL), EBB_OK);
        ebb_session_persist(f.s);
        assert_int_equal(ebb_session_common_prefix(f.s, ids, LONG), LONG);
        n = ebb_session_common_prefix(twin, ids, LONG);
        assert_int_equal(ebb_session_sync(twin, ids, LONG, &r, NULL), EBB_OK);
        assert_int_equal(n, r.n_reused);
        ebb_session_free(twin);
        close_tiny_engine(&f);
    }
}

/* -- What was deleted ---------------------------------------------------------------------- */

static bool keep_none(void *arg, const ebb_token *ids, size_t n)
{
    (void)arg;
    (void)ids;
    (void)n;
    return false;
}

static void sweep_all(void)
{
    size_t n;

    assert_int_equal(ebb_kv_cache_sweep(dir, NULL, keep_none, NULL, false, &n, NULL), EBB_OK);
}

/* A conversation is deleted while its K and V wait to be written: they are not; what is computed afterwards is, and so
 * is what somebody keeps all the same. */
static void test_what_was_swept_is_not_written(void **state)
{
    ebb_token ids[N], other[N];
    ebb_session *twin;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    fill_ids(other, N, 2);
    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_fork(f.s, &twin, NULL), EBB_OK);
    sweep_all();
    ebb_session_persist(f.s);
    ebb_session_persist(twin);
    assert_int_equal(ebb_session_sync(f.s, ids, 2000, NULL, NULL), EBB_CONTEXT);  /* it holds what it held */
    ebb_session_persist(f.s);
    ebb_session_free(twin);
    close_tiny_engine(&f);
    assert_int_equal(each_file(NULL, NULL), 0);

    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
    sweep_all();
    assert_int_equal(ebb_session_sync(f.s, other, 40, NULL, NULL), EBB_OK);
    ebb_session_persist(f.s);
    close_tiny_engine(&f);
    assert_int_equal(each_file(NULL, NULL), 2);  /* a block and a tail of the other one */

    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
    sweep_all();
    ebb_session_persist_kept(f.s);
    close_tiny_engine(&f);
    assert_int_equal(each_file(NULL, NULL), 5);
}

/* A folder that was swept once, and a sequence that no sync has begun: a new one, or one that became empty. */
static void test_what_is_computed_after_a_sweep_is_written(void **state)
{
    ebb_token ids[N], other[N];
    ebb_session_step step;
    float all[N * EBB_TINY_VOCAB];
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    fill_ids(other, N, 2);
    sweep_all();
    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    step = (ebb_session_step){ .session = f.s, .ids = ids, .n = N };
    assert_int_equal(ebb_sessions_append(&step, 1, NULL), EBB_OK);
    ebb_session_persist(f.s);
    close_tiny_engine(&f);
    assert_int_equal(each_file(NULL, NULL), 5);
    each_file(remove_it, NULL);

    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
    sweep_all();
    assert_int_equal(ebb_session_eval(f.s, other, N, 0, keep_logits, all, NULL), EBB_OK);
    ebb_session_persist(f.s);
    close_tiny_engine(&f);
    assert_int_equal(each_file(NULL, NULL), 5);
}

/* "" is no folder, and not the root. */
static void test_a_folder_without_a_name(void **state)
{
    ebb_kv_swept mark;
    ebb_stats stats;
    ebb_token ids[N];
    tiny_engine f;
    size_t n;

    (void)state;
    fill_ids(ids, N, 1);
    assert_int_equal(ebb_kv_swept_renew("", NULL), EBB_NOTFOUND);
    assert_true(ebb_kv_swept_read("", &mark));
    assert_int_equal(ebb_kv_cache_sweep("", NULL, keep_none, NULL, false, &n, NULL), EBB_OK);
    assert_int_equal(access("/.swept", F_OK), -1);
    open_tiny_engine(&f, &small, &(ebb_engine_opts){ .n_ctx = 256, .n_threads = 1, .kv_cache_dir = "" });
    ebb_engine_stats(f.engine, &stats);
    assert_non_null(strstr(stats.memory_event.detail, "without a name"));
    assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
    close_tiny_engine(&f);
}

/* -- What goes wrong --------------------------------------------------------------------- */

static void test_damaged_files_are_never_trusted(void **state)
{
    ebb_token ids[N];

    (void)state;
    fill_ids(ids, N, 1);
    for (double share = 0; share < 1; share += 0.09) {
        tiny_engine f;
        float want[EBB_TINY_VOCAB];
        ebb_stats stats;

        compute(&small, (ebb_engine_opts){ 0 }, ids, N);
        each_file(damage, &share);
        fresh(&small, (ebb_engine_opts){ 0 }, ids, N, want);
        open_kept(&f, &small, (ebb_engine_opts){ 0 });
        assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
        assert_memory_equal(ebb_session_logits(f.s), want, sizeof want);
        ebb_engine_stats(f.engine, &stats);
        assert_int_equal(stats.reused_disk_tok, 0);
        assert_non_null(strstr(stats.memory_event.detail, "ignored"));
        ebb_session_persist(f.s);                /* written anew */
        close_tiny_engine(&f);
        compute(&small, (ebb_engine_opts){ 0 }, ids, N); /* finds the tail damaged, which no one has read before */
        expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, N - 1);
    }
    each_file(halve, NULL);
    expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, 0);
}

static void test_a_full_disk_costs_only_time(void **state)
{
    ebb_token ids[N];

    (void)state;
    fill_ids(ids, N, 1);
    for (int nth = 1; nth < 60; nth += 3) {
        tiny_engine f;

        open_kept(&f, &small, (ebb_engine_opts){ 0 });
        assert_int_equal(ebb_session_sync(f.s, ids, N, NULL, NULL), EBB_OK);
        ebb_os_fail_nth(nth);
        ebb_session_persist(f.s);
        close_tiny_engine(&f);
        (void)ebb_os_fail_off();
        compute(&small, (ebb_engine_opts){ 0 }, ids, N);
        expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, N - 1);
        each_file(remove_it, NULL);
    }
}

static void test_the_cap_is_held(void **state)
{
    ebb_engine_opts o = { .kv_cache_bytes = 400000 };
    ebb_token ids[N];

    (void)state;
    for (uint32_t seed = 1; seed < 12; seed++) {
        uint64_t n = 0;

        fill_ids(ids, N, seed);
        ids[0] = (ebb_token)seed;
        each_file(age, NULL);                    /* files used just now are never the ones to go */
        compute(&small, o, ids, N);
        each_file(add_size, &n);
        assert_in_range(n, 1, o.kv_cache_bytes);
        expect_restored(&small, o, ids, N, N - 1);       /* the newest is whole */
    }
    ids[0] = 1;
    fill_ids(ids + 1, N - 1, 1);
    o.kv_cache_bytes = 30000;                    /* not even one fits */
    compute(&small, o, ids, N);
}

static void test_files_are_for_their_owner_alone(void **state)
{
    ebb_token ids[N];
    struct stat st;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    compute(&small, (ebb_engine_opts){ 0 }, ids, N);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    assert_int_equal(each_file(NULL, NULL), 5);
    open_kept(&f, &small, (ebb_engine_opts){ .no_kv_cache = true });
    assert_int_equal(ebb_session_common_prefix(f.s, ids, N), 0);
    close_tiny_engine(&f);
}

/* Files that came without the folder's key: each is whole, and none is used. */
static void test_files_of_another_key_are_never_used(void **state)
{
    float want[EBB_TINY_VOCAB];
    ebb_sync_result r;
    ebb_token ids[N];
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    fresh(&small, (ebb_engine_opts){ 0 }, ids, N, want);
    compute(&small, (ebb_engine_opts){ 0 }, ids, N);
    remove_key();
    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    assert_int_equal(ebb_session_sync(f.s, ids, N, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused_disk, ebb_sealed_kv() ? N - 1 : 0);      /* what is encrypted has a key of its own */
    assert_memory_equal(ebb_session_logits(f.s), want, sizeof want);
    close_tiny_engine(&f);
}

/* Of a folder that others may write to nothing is read, nothing is written to it, and the user is told. */
static void test_a_folder_that_others_may_write_to(void **state)
{
    char line[200] = "";
    ebb_token ids[N];
    ebb_stats stats;
    tiny_engine f;

    (void)state;
    fill_ids(ids, N, 1);
    compute(&small, (ebb_engine_opts){ 0 }, ids, N);
    assert_int_equal(chmod(dir, 0777), 0);
    expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, 0);
    open_kept(&f, &small, (ebb_engine_opts){ 0 });
    ebb_engine_stats(f.engine, &stats);
    ebb_memory_event_text(&stats.memory_event, line, sizeof line);
    assert_non_null(strstr(line, dir));
    assert_non_null(strstr(line, "chmod 700"));
    close_tiny_engine(&f);
    assert_int_equal(chmod(dir, 0700), 0);
    expect_restored(&small, (ebb_engine_opts){ 0 }, ids, N, N - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_restored_logits_have_the_same_bits),
        TEST(test_every_architecture_is_restored),
        TEST(test_the_last_token_is_computed_for_its_logits),
        TEST(test_branches_share_their_beginning),
        TEST(test_another_model_or_type_gets_nothing),
        TEST(test_a_timeline_that_ended_is_found_in_the_pool),
        TEST(test_an_edit_leaves_the_old_branch),
        TEST(test_what_is_announced_is_reused),
        TEST(test_what_was_swept_is_not_written),
        TEST(test_what_is_computed_after_a_sweep_is_written),
        TEST(test_a_folder_without_a_name),
        TEST(test_damaged_files_are_never_trusted),
        TEST(test_a_full_disk_costs_only_time),
        TEST(test_the_cap_is_held),
        TEST(test_files_are_for_their_owner_alone),
        TEST(test_files_of_another_key_are_never_used),
        TEST(test_a_folder_that_others_may_write_to),
#undef TEST
    };

    int failed = cmocka_run_group_tests_name("persist", tests, NULL, NULL);

    return failed + run_encrypted("persist, encrypted", tests);
}
