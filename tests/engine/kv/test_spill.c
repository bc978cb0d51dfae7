/* K and V in a file: the bits of every logit are those of K and V in memory, whatever goes out and comes back and
 * when; what fails leaves things as they were, and a file that is lost costs a computation. */
#include "ebb_test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ebb/experimental/kv_cache.h"
#include "open/engine_state.h"
#include "os/fault.h"
#include "os/limits.h"
#include "support/own_folder.h"
#include "support/small_disk.h"
#include "support/tiny_engine.h"

enum { N_CTX = 320, N_IDS = 300, ALL = 1000 };

static char dir[64], path[80];   /* of its own; a model in it */
static ebb_token ids[N_IDS];

static const ebb_kv_type types[] = { EBB_KV_F16, EBB_KV_F32, EBB_KV_Q8_0, EBB_KV_Q4_0 };

static ebb_engine_opts options(ebb_kv_type type)
{
    return (ebb_engine_opts){ .n_ctx = N_CTX, .n_batch = 48, .n_threads = 2, .has_kv = true, .kv_k = type, .kv_v = type,
                              .kv_cache_dir = dir };
}

static void open_tiny(tiny_engine *f, ebb_kv_type type, const char *arch)
{
    ebb_engine_opts o = options(type);
    ebb_tiny_opts tiny = { .arch = arch, .seed = 3, .type = EBB_TYPE_Q8_0, .n_embd = 256, .n_head = 4, .n_head_kv = 2,
                           .n_ff = 256, .n_layers = 3 };

    open_tiny_engine(f, &tiny, &o);
}

static void sync_to(tiny_engine *f, uint32_t n)
{
    ebb_error err = { 0 };

    if (ebb_session_sync(f->s, ids, n, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static uint32_t send(tiny_engine *f, uint32_t n)
{
    uint32_t n_out;

    f->engine->budget.evicted_ns = ebb_clock_ns(); /* so that none comes back by itself */
    assert_int_equal(ebb_kv_spill(f->engine->kv, n, &n_out, NULL), EBB_OK);
    return n_out;
}

static void expect_same(tiny_engine *a, tiny_engine *b)
{
    assert_memory_equal(ebb_session_logits(a->s), ebb_session_logits(b->s), EBB_TINY_VOCAB * sizeof(float));
}

/* The same steps in an engine that has room, and in one whose K and V go out between them. */
static void walk(ebb_kv_type type, const char *arch)
{
    ebb_error err = { 0 };
    tiny_engine in, out;

    open_tiny(&in, type, arch);
    open_tiny(&out, type, arch);
    sync_to(&in, 150);
    sync_to(&out, 150);
    assert_true(send(&out, ALL) >= 4);
    sync_to(&in, 260);
    sync_to(&out, 260);
    expect_same(&in, &out);
    (void)send(&out, 2);
    for (int i = 260; i < 270; i++) {
        assert_int_equal(ebb_session_append(in.s, ids[i], NULL), EBB_OK);
        assert_int_equal(ebb_session_append(out.s, ids[i], NULL), EBB_OK);
        expect_same(&in, &out);
        if (i % 3 == 0)
            (void)ebb_kv_unspill(out.engine->kv, 1);
    }
    (void)send(&out, ALL);
    sync_to(&in, 70);                            /* back into the middle of a block that is out, and on otherwise */
    sync_to(&out, 70);
    expect_same(&in, &out);
    assert_int_equal(ebb_session_append(in.s, 7, NULL), EBB_OK);
    assert_int_equal(ebb_session_append(out.s, 7, NULL), EBB_OK);
    expect_same(&in, &out);
    sync_to(&in, N_IDS);
    sync_to(&out, N_IDS);
    expect_same(&in, &out);
    (void)send(&out, ALL);
    if (!ebb_session_cannot_shift(out.s)) {
        assert_int_equal(ebb_session_shift(in.s, 40, 50, &err), EBB_OK);
        assert_int_equal(ebb_session_shift(out.s, 40, 50, &err), EBB_OK);
        (void)send(&out, ALL);
        assert_int_equal(ebb_session_append(in.s, 9, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(out.s, 9, NULL), EBB_OK);
        expect_same(&in, &out);
    }
    while (ebb_kv_n_spilled(out.engine->kv) > 0)
        assert_int_equal(ebb_kv_unspill(out.engine->kv, 3) > 0, 1);
    assert_int_equal(ebb_session_append(in.s, 11, NULL), EBB_OK);
    assert_int_equal(ebb_session_append(out.s, 11, NULL), EBB_OK);
    expect_same(&in, &out);
    close_tiny_engine(&in);
    close_tiny_engine(&out);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        walk(types[i], NULL);
    walk(EBB_KV_F16, "gemma2");
    walk(EBB_KV_Q8_0, "qwen3");
}

/* What is kept on disk of a turn whose blocks are out is what a later session finds. */
static void test_kept_while_out(void **state)
{
    ebb_sync_result receipt;
    tiny_engine a, b;

    (void)state;
    open_tiny(&a, EBB_KV_F16, NULL);
    sync_to(&a, 200);
    (void)send(&a, ALL);
    ebb_session_persist(a.s);
    (void)send(&a, ALL);
    close_tiny_engine(&a);
    open_tiny(&a, EBB_KV_F16, NULL);
    open_tiny(&b, EBB_KV_F16, NULL);
    ebb_session_free(b.s);
    ebb_engine_close(b.engine);
    {
        ebb_engine_opts o = options(EBB_KV_F16);

        o.no_kv_cache = true;
        assert_int_equal(ebb_engine_open(b.model, &o, NULL, NULL, &b.engine, NULL), EBB_OK);
        assert_int_equal(ebb_session_new(b.engine, &b.s, NULL), EBB_OK);
    }
    assert_int_equal(ebb_session_sync(a.s, ids, 230, &receipt, NULL), EBB_OK);
    assert_true(receipt.n_reused_disk >= 192);
    sync_to(&b, 230);
    expect_same(&a, &b);
    close_tiny_engine(&a);
    close_tiny_engine(&b);
}

/* Writing fails at every call it makes: K and V stay where they were. */
static void test_the_nth_write_fails(void **state)
{
    tiny_engine in, out;

    (void)state;
    open_tiny(&in, EBB_KV_Q8_0, NULL);
    sync_to(&in, 200);
    assert_int_equal(ebb_session_append(in.s, 5, NULL), EBB_OK);
    for (int n = 1; n < 30; n += (int)ebb_test_one_in(6)) {
        ebb_error err = { 0 };
        uint32_t n_out;
        ebb_status st;

        open_tiny(&out, EBB_KV_Q8_0, NULL);
        sync_to(&out, 200);
        ebb_os_fail_nth(n);
        st = ebb_kv_spill(out.engine->kv, ALL, &n_out, &err);
        ebb_os_fail_off();
        assert_true(st == EBB_OK || err.msg[0] != '\0');
        assert_int_equal(n_out, ebb_kv_n_spilled(out.engine->kv));
        assert_int_equal(ebb_session_append(out.s, 5, NULL), EBB_OK);
        expect_same(&in, &out);
        close_tiny_engine(&out);
    }
    close_tiny_engine(&in);
}

/* A file that may not grow, as on a full disk: some blocks go, the others stay, and it is said which. */
static void test_full_disk(void **state)
{
    struct rlimit old, low;
    ebb_error err = { 0 };
    uint32_t n_out;
    tiny_engine in, out;

    (void)state;
    open_tiny(&in, EBB_KV_F32, NULL);
    open_tiny(&out, EBB_KV_F32, NULL);
    sync_to(&in, 200);
    sync_to(&out, 200);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = old;
    low.rlim_cur = 2 * ebb_kv_group_block_bytes(out.engine->kv, EBB_KV_ALL) + 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(ebb_kv_spill(out.engine->kv, ALL, &n_out, &err), EBB_OK);
    assert_int_equal(n_out, 2);
    assert_int_equal(ebb_kv_spill(out.engine->kv, ALL, &n_out, &err), EBB_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(err.msg[0] != '\0');
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ebb_session_append(in.s, 20 + i, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(out.s, 20 + i, NULL), EBB_OK);
        expect_same(&in, &out);
    }
    close_tiny_engine(&in);
    close_tiny_engine(&out);
}

/* Cut off our files without a name in `dir`. */
static int cut_off(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d))) {
        char name[300], target[300];
        ssize_t len;

        snprintf(name, sizeof name, "/proc/self/fd/%s", e->d_name);
        len = readlink(name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        n += strstr(target, "/overflow-") && truncate(name, 0) == 0;
    }
    closedir(d);
    return n;
}

static void test_the_file_is_cut_off(void **state)
{
    ebb_error err = { 0 };
    tiny_engine in, out;

    (void)state;
    open_tiny(&in, EBB_KV_Q8_0, NULL);
    open_tiny(&out, EBB_KV_Q8_0, NULL);
    sync_to(&in, 200);
    sync_to(&out, 200);
    assert_true(send(&out, ALL) > 0);
    assert_int_equal(cut_off(), 1);
    assert_int_equal(ebb_session_append(out.s, 5, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "computed again"));
    assert_int_equal(ebb_kv_n_spilled(out.engine->kv), 0);
    sync_to(&out, 200);
    expect_same(&in, &out);
    assert_true(send(&out, ALL) > 0);            /* to another file */
    assert_int_equal(ebb_session_append(in.s, 5, NULL), EBB_OK);
    assert_int_equal(ebb_session_append(out.s, 5, NULL), EBB_OK);
    expect_same(&in, &out);
    close_tiny_engine(&in);
    close_tiny_engine(&out);
}

/* The file is cut off while a turn is being kept, or before blocks come back: nobody ever finds the zeroes. */
static void test_what_was_lost_is_not_kept(void **state)
{
    tiny_engine in, out;

    (void)state;
    ids[0]++;                                    /* a text that no other test has kept */
    open_tiny(&out, EBB_KV_F16, NULL);
    sync_to(&out, 200);
    assert_true(send(&out, ALL) > 0);
    assert_int_equal(cut_off(), 1);
    ebb_session_persist(out.s);
    while (ebb_persist_reap(out.engine, true))
        ;
    assert_int_equal(ebb_kv_unspill(out.engine->kv, ALL), 0);
    assert_int_equal(ebb_session_append(out.s, 5, NULL), EBB_IO);
    sync_to(&out, 200);
    open_tiny(&in, EBB_KV_F16, NULL);            /* would read from disk what was kept */
    assert_int_equal(ebb_session_common_prefix(in.s, ids, 200), 0);
    sync_to(&in, 200);
    expect_same(&in, &out);
    close_tiny_engine(&in);
    close_tiny_engine(&out);
    ids[0]--;
}

/* A model, and a memory that takes it with half of K and V in a file, which the options do not allow yet. */
static ebb_engine_opts open_large_context(ebb_model **m)
{
    ebb_engine_opts o = { .n_ctx = 4096, .n_batch = 64, .n_threads = 2, .no_kv_cache = true, .ram_bytes = 1 << 20,
                          .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q8_0, .kv_cache_dir = dir };
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 8, .n_embd = 512, .n_head = 8, .n_head_kv = 8,
                           .n_ff = 512, .n_ctx = 4096, .seed = 11 };
    ebb_machine machine;
    ebb_plan p;

    assert_true(ebb_tiny_write(&tiny, path));
    assert_int_equal(ebb_model_open(path, m, NULL), EBB_OK);
    assert_int_equal(ebb_machine_probe(NULL, false, &machine, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(*m, &o, &machine, &p, NULL), EBB_OK);
    assert_false(p.fits);
    o.ram_bytes = p.min_bytes - p.kv_bytes / 2;
    return o;
}

/* It is refused, and the message says why K and V cannot go to a file. */
static void expect_no_room(const ebb_model *m, const ebb_engine_opts *o, const char *why)
{
    ebb_error err = { 0 };
    ebb_engine *e;

    assert_int_equal(ebb_engine_open(m, o, NULL, NULL, &e, &err), EBB_BUDGET);
    if (!strstr(err.msg, why))
        fail_msg("%s", err.msg);
}

/* A machine too small for the context: planned with a file from the beginning. */
static void test_planned(void **state)
{
    static ebb_token many[2600];
    static float want[EBB_TINY_VOCAB];
    ebb_error err = { 0 };
    ebb_engine_opts o;
    uint64_t least;
    ebb_session *s;
    ebb_engine *e;
    ebb_model *m;

    (void)state;
    fill_ids(many, 2600, 4);
    o = open_large_context(&m);
    least = o.ram_bytes;
    expect_no_room(m, &o, "--no-kv-cache");
    for (int is_small = 0; is_small < 2; is_small++) {
        o.ram_bytes = is_small ? least : 0;
        o.no_kv_cache = !is_small;
        assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, &err), EBB_OK);
        assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
        assert_int_equal(e->plan.kv_spill_bytes > 0, is_small);
        if (is_small)
            assert_int_equal(e->plan.tier, EBB_TIER_CRITICAL);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(ebb_session_sync(s, NULL, 0, NULL, &err), EBB_OK);
            assert_int_equal(ebb_session_sync(s, many, 2600, NULL, &err), EBB_OK);
            for (int i = 0; i < 20; i++)
                assert_int_equal(ebb_session_append(s, many[i], &err), EBB_OK);
        }
        assert_int_equal(ebb_kv_n_spilled(e->kv) > 0, is_small);
        if (is_small)
            assert_memory_equal(ebb_session_logits(s), want, sizeof want);
        memcpy(want, ebb_session_logits(s), sizeof want);
        ebb_session_free(s);
        ebb_engine_close(e);
    }
    ebb_model_close(m);
}

/* K and V that are larger than memory and swap together: the system reserves what only the file will ever fill. */
static void test_planned_larger_than_memory(void **state)
{
    ebb_engine_opts o = { .n_ctx = 65536, .n_batch = 64, .n_threads = 2, .kv_cache_dir = dir, .has_kv = true,
                          .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q8_0 };
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 8, .n_embd = 512, .n_head = 8, .n_head_kv = 8,
                           .n_ff = 512, .n_ctx = 4096, .seed = 11 };
    const ebb_machine boundless = { .available_bytes = UINT64_MAX / 4, .n_cpus = 2 };
    ebb_error err = { 0 };
    ebb_machine machine;
    ebb_limits limits;
    ebb_session *s;
    ebb_engine *e;
    ebb_model *m;
    ebb_plan p;

    (void)state;
    assert_int_equal(ebb_limits_read(NULL, &limits, NULL), EBB_OK);
    assert_int_equal(ebb_machine_probe(NULL, false, &machine, NULL), EBB_OK);
    if (machine.address_bytes > 0 || machine.promised_bytes > 0)
        skip();                                  /* test_plan.c: then it is not planned */
    assert_true(ebb_tiny_write(&tiny, path));
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(m, &o, &boundless, &p, NULL), EBB_OK);
    o.n_ctx = (uint32_t)((limits.total_bytes + limits.swap_total_bytes) / 16 * 17 / (p.kv_bytes / o.n_ctx));
    assert_int_equal(ebb_plan_make(m, &o, &boundless, &p, NULL), EBB_OK);
    o.ram_bytes = p.total_bytes - p.kv_bytes + (64 << 20);
    if (ebb_engine_open(m, &o, NULL, NULL, &e, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(e->plan.kv_spill_bytes > limits.total_bytes / 2);
    assert_int_equal(ebb_session_new(e, &s, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(s, ids, 40, NULL, NULL), EBB_OK);
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
}

/* Who plans without an engine is told the same. */
static void expect_no_spill(const ebb_engine_opts *o, const char *why)
{
    ebb_error err = { 0 };

    assert_int_not_equal(ebb_kv_cache_check_spill(o, &err), EBB_OK);
    assert_non_null(strstr(err.msg, why));
}

/* Where K and V cannot go to a file, no plan counts on it: a smaller context, or none. */
static void test_planned_without_a_folder(void **state)
{
    char disk[] = "/var/tmp/ebb-spill-disk-XXXXXX";
    ebb_engine_opts o;
    ebb_engine *e;
    ebb_model *m;

    (void)state;
    o = open_large_context(&m);
    expect_no_spill(&o, "--no-kv-cache");
    o.no_kv_cache = false;
    assert_int_equal(ebb_kv_cache_check_spill(&o, NULL), EBB_OK);
    assert_false(ebb_kv_cache_opts_for_plan(&o).no_kv_cache);
    assert_int_equal(chmod(dir, 0777), 0);
    expect_no_room(m, &o, "chmod 700");
    expect_no_spill(&o, "chmod 700");
    assert_true(ebb_kv_cache_opts_for_plan(&o).no_kv_cache);
    o.n_ctx = 0;
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &e, NULL), EBB_OK);
    assert_true(e->plan.kv_spill_bytes == 0 && e->plan.n_ctx < 4096);
    ebb_engine_close(e);
    assert_int_equal(chmod(dir, 0700), 0);
    o.n_ctx = 4096;
    o.kv_cache_dir = mkdtemp(disk);
    if (ebb_small_disk_mount(disk, 64)) {
        assert_true(ebb_small_disk_read_only(disk));
        expect_no_room(m, &o, "cannot be written to");
        expect_no_spill(&o, "cannot be written to");
        ebb_small_disk_unmount(disk);
    }
    assert_int_equal(rmdir(disk), 0);
    ebb_model_close(m);
}

/* -- What is shown of it -- */

typedef struct watcher {
    ebb_engine *engine;
    double      tok_bytes;
    atomic_bool stop;
    uint32_t    n_frames, n_in_pass, n_with_file, n_wrong;
    ebb_stats   wrong;           /* the first that is not as it should be */
} watcher;

/* One frame: K and V in memory and in the file are those of the tokens that are shown, within a block. */
static void look_once(watcher *w)
{
    ebb_stats s;
    double sum, should;

    ebb_engine_stats(w->engine, &s);
    sum = (double)(s.kv_memory_bytes + s.kv_file_bytes);
    should = s.n_ctx_used * w->tok_bytes;
    w->n_frames++;
    w->n_in_pass += s.phase == EBB_PHASE_PREFILL && s.n_ctx_used % EBB_KV_BLOCK != 0;
    w->n_with_file += s.kv_file_bytes > 0;
    if ((sum < should - EBB_KV_BLOCK * w->tok_bytes || sum > should + EBB_KV_BLOCK * w->tok_bytes ||
         s.kv_memory_bytes > s.kv_bytes) &&
        w->n_wrong++ == 0)
        w->wrong = s;
}

static void *watch(void *arg)
{
    watcher *w = arg;

    while (!atomic_load(&w->stop)) {
        look_once(w);
        usleep(500);
    }
    return NULL;
}

/* A run through the critical tier: a long prompt, an answer, back to the middle, K and V that go out and come in. */
static void test_every_frame_adds_up(void **state)
{
    static ebb_token many[2600];
    watcher w = { 0 };
    ebb_engine_opts o;
    ebb_session *s;
    pthread_t thread;
    ebb_model *m;
    uint32_t n;

    (void)state;
    fill_ids(many, 2600, 9);
    o = open_large_context(&m);
    o.no_kv_cache = false;
    assert_int_equal(ebb_engine_open(m, &o, NULL, NULL, &w.engine, NULL), EBB_OK);
    assert_int_equal(w.engine->plan.tier, EBB_TIER_CRITICAL);
    assert_true(w.engine->plan.kv_spill_bytes > 0);
    assert_int_equal(ebb_session_new(w.engine, &s, NULL), EBB_OK);
    w.tok_bytes = (double)ebb_kv_group_block_bytes(w.engine->kv, EBB_KV_ALL) / EBB_KV_BLOCK;
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    assert_int_equal(ebb_session_sync(s, many, 2500, NULL, NULL), EBB_OK);
    for (int i = 0; i < 40; i++)
        assert_int_equal(ebb_session_append(s, many[i], NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(s, many, 1000, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_kv_spill(w.engine->kv, 10, &n, NULL), EBB_OK);
    ebb_stats_kv(w.engine);
    assert_int_equal(ebb_session_sync(s, many, 2600, NULL, NULL), EBB_OK);
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    look_once(&w);
    print_message("          %u frames, %u of them within a pass, %u with K and V in the file\n", w.n_frames,
                  w.n_in_pass, w.n_with_file);
    if (w.n_wrong)
        fail_msg("%u frames do not add up: %u tokens, %llu + %llu bytes, room for %llu", w.n_wrong, w.wrong.n_ctx_used,
                 (unsigned long long)w.wrong.kv_memory_bytes, (unsigned long long)w.wrong.kv_file_bytes,
                 (unsigned long long)w.wrong.kv_bytes);
    assert_true(w.n_in_pass > 0 && w.n_with_file > 0);
    ebb_session_free(s);
    ebb_engine_close(w.engine);
    ebb_model_close(m);
}

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/var/tmp/ebb-spill-XXXXXX") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    fill_ids(ids, N_IDS, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_kept_while_out),
        cmocka_unit_test(test_the_nth_write_fails),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_the_file_is_cut_off),
        cmocka_unit_test(test_what_was_lost_is_not_kept),
        cmocka_unit_test(test_planned),
        cmocka_unit_test(test_planned_larger_than_memory),
        cmocka_unit_test(test_planned_without_a_folder),
        cmocka_unit_test(test_every_frame_adds_up),
    };

    return cmocka_run_group_tests_name("overflow", tests, setup, teardown);
}
