/* Random operations on sequences that share a pool and a cache on disk, against a
 * session that computes everything anew: the same logits after each, no block
 * lost, the cap held.  Then two processes on one cache.  Some 600 operations in all;
 * $EBB_KV_OPS of each network, and turns of the processes, for a longer run. */
#include "ebb_test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ebb/experimental/inspect.h"
#include "open/engine_state.h"
#include "os/fault.h"
#include "support/tiny_model.h"

#define N_CTX     160u
#define N_LINES   4u             /* sequences; more than there are sessions */
#define N_SESSION 2u
#define CAP       ((uint64_t)1 << 20)
#define N_OPS     64u

static char dir[64];
static uint64_t cap = CAP;       /* that is held */

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
    ebb_kv_type  type;
    unsigned     n_disk, n_computed, n_forgotten;
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
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .n_batch = 32, .kv_cache_dir = dir, .kv_cache_bytes = CAP,
                          .has_kv = true, .kv_k = w->type, .kv_v = w->type };

    assert_int_equal(ebb_engine_open(w->model, &o, NULL, NULL, &w->engine, NULL), EBB_OK);
    for (unsigned i = 0; i < N_SESSION; i++)
        assert_int_equal(ebb_session_new(w->engine, &w->s[i], NULL), EBB_OK);
}

static void close_engine(world *w)
{
    for (unsigned i = 0; i < N_SESSION; i++)
        ebb_session_free(w->s[i]);
    while (ebb_persist_reap(w->engine, true))
        ;
    for (int g = 0; g < EBB_KV_GROUPS; g++)      /* no block is lost */
        assert_int_equal(ebb_kv_n_free(w->engine->kv, g), ebb_kv_n_blocks(w->engine->kv, g));
    ebb_engine_close(w->engine);
}

static void open_world(world *w, const char *arch, ebb_kv_type type, uint64_t seed)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 1, .no_kv_cache = true, .has_kv = true, .kv_k = type,
                          .kv_v = type };
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_Q8_0, .n_embd = 64, .n_ff = 64 };

    memset(w, 0, sizeof *w);
    w->random = seed;
    w->type = type;
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
        if (strcmp(e->d_name, "key") != 0)        /* is no part of what has a cap */
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

/* Change the sequence: a turn more, an edit, a branch of another one, back by some tokens. */
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

/* Forget in the middle, here and there: the same again, and nothing of it is found later. */
static void forget(world *w, ebb_session *s, line *l)
{
    uint32_t from = draw(w, l->n - 2), n = draw(w, l->n - from - 2) + 1;
    size_t n_held;

    if (ebb_session_shift(s, from, n, NULL) != EBB_OK)
        return;
    assert_int_equal(ebb_session_shift(w->again, from, n, NULL), EBB_OK);
    memmove(l->ids + from, l->ids + from + n, (l->n - from - n) * sizeof *l->ids);
    l->n -= n;
    l->ids[l->n] = draw_id(w);
    assert_int_equal(ebb_session_append(s, l->ids[l->n], NULL), EBB_OK);
    assert_int_equal(ebb_session_append(w->again, l->ids[l->n++], NULL), EBB_OK);
    assert_memory_equal(ebb_session_ids(s, &n_held), l->ids, l->n * sizeof *l->ids);
    assert_memory_equal(ebb_session_logits(s), ebb_session_logits(w->again), EBB_TINY_VOCAB * sizeof(float));
    w->n_forgotten += n;
    ebb_session_persist(s);
    assert_int_equal(ebb_session_sync(s, NULL, 0, NULL, NULL), EBB_OK);
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
    ebb_sync_result r;

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
    if (l->n > 4 && draw(w, 6) == 0)
        forget(w, s, l);
    if (draw(w, 10) == 0)                        /* the disk is full, or refuses */
        ebb_os_fail_nth((int)draw(w, 60) + 1);
    if (draw(w, 3) > 0)
        ebb_session_persist(s);
    if (draw(w, 8) == 0) {
        close_engine(w);
        (void)ebb_os_fail_off();
        open_engine(w);
        assert_true(at_file(0, NULL) <= cap);
    }
    if (ebb_os_fail_off() || draw(w, 6) == 0)
        spoil(w);
}

static unsigned n_ops(void)
{
    const char *ops = getenv("EBB_KV_OPS");

    return ops ? (unsigned)atol(ops) : N_OPS;
}

static void run(const char *arch, ebb_kv_type type, uint64_t seed, unsigned n)
{
    static const char *const types[] = { "f16", "q8_0", "q4_0", "f32" };
    world w;

    open_world(&w, arch, type, seed);
    for (unsigned i = 0; i < n; i++)
        step(&w);
    print_message("%s, %s: %u operations, %u tokens from disk, %u computed, %u forgotten\n", arch, types[type], n,
                  w.n_disk, w.n_computed, w.n_forgotten);
    if (n > 200)
        assert_true(w.n_disk > 0);
    close_world(&w);
}

static void clear_folder(void)
{
    while (at_file(0, vanish) > 0)
        ;
}

static void test_every_network_and_type(void **state)
{
    static const struct { const char *arch; ebb_kv_type type; } all[] = {
        { "llama", EBB_KV_F16 }, { "llama", EBB_KV_Q4_0 }, { "qwen3", EBB_KV_Q8_0 }, { "gemma3", EBB_KV_F16 },
        { "gemma4", EBB_KV_Q8_0 }, { "gemma3", EBB_KV_Q4_0 }, { "qwen35", EBB_KV_F16 }, { "qwen35", EBB_KV_Q8_0 },
        { "llama", EBB_KV_Q8_0 }, { "granitehybrid", EBB_KV_F16 }, { "mamba2", EBB_KV_F16 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        run(all[i].arch, all[i].type, 42 + i, n_ops());
        clear_folder();
    }
}

/* -- Several processes ------------------------------------------------------------------- */

enum { N_PROCESSES = 2 };

/* What such a process does: with the same beginnings as the other one, so that they meet. */
static void test_turns(void **state)
{
    const char *seed = getenv("EBB_KV_SEED");

    (void)state;
    cap = 2 * CAP;                               /* both may write at the same moment */
    run("llama", EBB_KV_F16, 42, n_ops() / N_PROCESSES / 2);
    run("gemma3", EBB_KV_Q8_0, 42 + (uint64_t)(seed ? atol(seed) : 0), n_ops() / N_PROCESSES / 2);
}

static pid_t start(int i)
{
    pid_t pid = fork();
    char seed[20], self[4096] = "";

    if (pid != 0)
        return pid;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        _exit(98);
    snprintf(seed, sizeof seed, "%d", i);
    setenv("EBB_KV_DIR", dir, 1);
    setenv("EBB_KV_SEED", seed, 1);
    execl(self, self, "turns", (char *)NULL);    /* by its name: under valgrind the link leads to valgrind */
    _exit(99);
}

static void test_two_processes_on_one_cache(void **state)
{
    pid_t pids[N_PROCESSES];

    (void)state;
    for (int i = 0; i < N_PROCESSES; i++)
        pids[i] = start(i);
    for (int i = 0; i < N_PROCESSES; i++) {
        int status = -1;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    clear_folder();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_network_and_type),
        cmocka_unit_test(test_two_processes_on_one_cache),
    };
    const struct CMUnitTest turns[] = { cmocka_unit_test(test_turns) };
    int status;

    if (argc > 1 && strcmp(argv[1], "turns") == 0) {
        snprintf(dir, sizeof dir, "%s", getenv("EBB_KV_DIR"));
        return cmocka_run_group_tests_name("turns", turns, NULL, NULL);
    }
    snprintf(dir, sizeof dir, "/tmp/ebb-random-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    status = cmocka_run_group_tests_name("kv random", tests, NULL, NULL);
    (void)rmdir(dir);
    return status;
}
