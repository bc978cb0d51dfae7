/* Random operations on timelines that share a pool and a cache on disk, against a
 * session that computes everything anew: the same logits after each, no block
 * lost, the cap held.  About a second; $EBB_KV_OPS operations instead (of each
 * network) for a longer run. */
#include "ebb_test.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "engine_impl.h"
#include "os/fault.h"
#include "support/tiny_model.h"

#define N_CTX     160u
#define N_LINES   4u             /* timelines; more than there are sessions */
#define N_SESSION 2u
#define CAP       ((uint64_t)1 << 20)
#define SECONDS   0.5            /* for each network */

static char dir[64];

typedef struct line {
    ebb_token ids[N_CTX];
    uint32_t  n;
} line;

typedef struct world {
    char        *bytes;
    ebb_model   *model;
    ebb_engine  *engine, *reference;
    ebb_session *s[N_SESSION], *again;
    line         lines[N_LINES];
    float        want[EBB_TINY_VOCAB];
    uint64_t     random;
    unsigned     n_disk, n_computed;
} world;

static uint32_t draw(world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static ebb_token draw_id(world *w)
{
    return (ebb_token)draw(w, EBB_TINY_VOCAB);
}

static void open_engine(world *w)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_chunk = 32, .kv_cache_dir = dir, .kv_cache_bytes = CAP };

    assert_int_equal(ebb_engine_open(w->model, &o, NULL, NULL, &w->engine, NULL), EBB_OK);
    for (unsigned i = 0; i < N_SESSION; i++)
        assert_int_equal(ebb_session_new(w->engine, &w->s[i], NULL), EBB_OK);
}

static void close_engine(world *w)
{
    for (unsigned i = 0; i < N_SESSION; i++)
        ebb_session_free(w->s[i]);
    while (ebb_keep_reap(w->engine, true))
        ;
    for (int g = 0; g < EBB_KV_GROUPS; g++)      /* no block is lost */
        assert_int_equal(ebb_kv_n_free(w->engine->kv, g), ebb_kv_n_blocks(w->engine->kv, g));
    ebb_engine_close(w->engine);
}

static void open_world(world *w, const char *arch)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .no_kv_cache = true };
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 64 };

    memset(w, 0, sizeof *w);
    w->random = 42;
    w->model = ebb_tiny_open(&tiny, &w->bytes);
    assert_int_equal(ebb_engine_open(w->model, &o, NULL, NULL, &w->reference, NULL), EBB_OK);
    assert_int_equal(ebb_session_new(w->reference, &w->again, NULL), EBB_OK);
    for (unsigned i = 0; i < N_LINES; i++)
        w->lines[i].ids[w->lines[i].n++] = (ebb_token)i;
    open_engine(w);
}

static void close_world(world *w)
{
    close_engine(w);
    ebb_session_free(w->again);
    ebb_engine_close(w->reference);
    ebb_model_close(w->model);
    free(w->bytes);
}

/* -- Files ---------------------------------------------------------------------------- */

/* Do something to the nth file of the folder; returns the bytes of all. */
static uint64_t at_file(uint32_t nth, void (*fn)(const char *path))
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    uint64_t n_bytes = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[400];
        struct stat st;

        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (stat(path, &st) != 0)
            continue;
        n_bytes += ((uint64_t)st.st_size + 4095) / 4096 * 4096;
        if (fn && nth-- == 0)
            fn(path);
    }
    closedir(d);
    return n_bytes;
}

static void vanish(const char *path)
{
    unlink(path);
}

static void truncate_it(const char *path)
{
    assert_int_equal(truncate(path, 300), 0);
}

static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");

    if (!f)
        return;
    fseek(f, 2000, SEEK_SET);
    fputs("damaged", f);
    fclose(f);
}

/* -- Operations ----------------------------------------------------------------------- */

static void look_away(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    (void)arg;
    (void)pos;
    (void)logits;
    (void)n_vocab;
}

static void expect_same(world *w, const ebb_session *s, const line *l)
{
    size_t n;

    assert_memory_equal(ebb_session_ids(s, &n), l->ids, l->n * sizeof *l->ids);
    assert_int_equal(n, l->n);
    /* eval reuses nothing */
    assert_int_equal(ebb_session_eval(w->again, l->ids, l->n, 0, look_away, NULL, NULL), EBB_OK);
    assert_memory_equal(ebb_session_logits(s), ebb_session_logits(w->again), EBB_TINY_VOCAB * sizeof(float));
}

static void grow(world *w, line *l)
{
    for (uint32_t more = draw(w, 40) + 1; more > 0 && l->n < N_CTX - 4; more--)
        l->ids[l->n++] = draw_id(w);
}

/* Change the timeline: a turn more, an edit, a branch of another one, back by some tokens. */
static void change(world *w, line *l)
{
    const line *other = &w->lines[draw(w, N_LINES)];

    switch (draw(w, 6)) {
    case 0:
        l->n = draw(w, l->n) + 1;
        break;
    case 1:
        l->n = draw(w, l->n) + 1;
        l->ids[l->n - 1] = draw_id(w);
        grow(w, l);
        break;
    case 2:
        l->n = draw(w, other->n) + 1;
        memmove(l->ids, other->ids, l->n * sizeof *l->ids);
        grow(w, l);
        break;
    default:
        grow(w, l);
    }
}

static void spoil(world *w)
{
    static void (*const ways[])(const char *) = { vanish, truncate_it, damage };

    (void)at_file(draw(w, 40), ways[draw(w, 3)]);
}

static void step(world *w)
{
    ebb_session *s = w->s[draw(w, N_SESSION)];
    line *l = &w->lines[draw(w, N_LINES)];
    ebb_receipt r;

    change(w, l);
    assert_int_equal(ebb_session_sync(s, l->ids, l->n, &r, NULL), EBB_OK);
    assert_int_equal(r.n_reused + r.n_computed, l->n);
    assert_true(r.n_reused_disk <= r.n_reused);
    w->n_disk += r.n_reused_disk;
    w->n_computed += r.n_computed;
    for (uint32_t more = draw(w, 3); more > 0 && l->n < N_CTX; more--) {
        l->ids[l->n] = draw_id(w);
        assert_int_equal(ebb_session_append(s, l->ids[l->n++], NULL), EBB_OK);
    }
    expect_same(w, s, l);
    if (draw(w, 10) == 0)                        /* the disk is full, or refuses */
        ebb_os_fail_nth((int)draw(w, 60) + 1);
    if (draw(w, 3) > 0)
        ebb_session_keep(s);
    if (draw(w, 8) == 0) {
        close_engine(w);
        (void)ebb_os_fail_off();
        open_engine(w);
        assert_true(at_file(0, NULL) <= CAP);
    }
    if (ebb_os_fail_off() || draw(w, 6) == 0)
        spoil(w);
}

static void run(const char *arch)
{
    const char *ops = getenv("EBB_KV_OPS");
    long n_ops = ops ? atol(ops) : 0, n = 0;
    double begin = ebb_clock_s();
    world w;

    open_world(&w, arch);
    while (n < n_ops || (!ops && ebb_clock_s() - begin < SECONDS) || n < 40) {
        step(&w);
        n++;
    }
    print_message("%s: %ld operations, %u tokens from disk, %u computed\n", arch, n, w.n_disk, w.n_computed);
    if (n > 200)
        assert_true(w.n_disk > 0);
    close_world(&w);
    for (int i = 0; i < 1000; i++)
        (void)at_file(0, vanish);
}

static void test_attention(void **state)
{
    (void)state;
    run("llama");
}

static void test_windows(void **state)
{
    (void)state;
    run("gemma3");
}

static void test_states(void **state)
{
    (void)state;
    run("qwen35");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_states),
    };
    int status;

    snprintf(dir, sizeof dir, "/tmp/ebb-random-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    status = cmocka_run_group_tests_name("kv random", tests, NULL, NULL);
    (void)rmdir(dir);
    return status;
}
