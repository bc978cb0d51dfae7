/* Known-good logits: the tiny models of ../shared/golden, and those of ../shared/golden-next whose
 * architecture is supported, written by its tool into build/golden, must give the exact logits within
 * each entry's limit, and the greedy continuation where it was won clearly; a draft head likewise. */
#include "ebb_test.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "model/arch.h"
#include "open/engine_state.h"

#define N_TOKENS 48
#define N_STORED 5
#define N_GREEDY 16

static const uint32_t stored[N_STORED] = { 0, 1, 15, 31, 47 };
static const uint32_t stored_mtp[N_STORED] = { 0, 1, 15, 31, 46 };      /* row t: token t + 1 and the state at t */
typedef struct golden_entry {
    char   dir[600], gguf[600];
    double limit, gap[N_GREEDY];         /* by how much a step was decided: its token, or the closest choice of experts
                                            before */
    size_t n_vocab;
    ebb_token tokens[N_TOKENS], greedy[N_GREEDY];
    float *exact;                /* [N_STORED][n_vocab] */
    float *exact_mtp;            /* the same of the draft head; NULL: the entry has none */
    double limit_mtp;
} golden_entry;

static void read_golden_ids(const char *dir, const char *file, ebb_token *out, int n)
{
    char path[700];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    f = fopen(path, "r");
    assert_non_null(f);
    for (int i = 0; i < n; i++)
        assert_int_equal(fscanf(f, "%d", &out[i]), 1);
    fclose(f);
}

/* Write the model if it is not there yet; false: no Python with numpy. */
static bool write_model(const golden_entry *e)
{
    char cmd[4096];
    struct stat st;

    if (stat(e->gguf, &st) == 0)
        return true;
    mkdir("build/golden", 0755);
    snprintf(cmd, sizeof cmd, "/usr/bin/python3 '%s/tools/golden.py' model '%s' '%s.part' "
             ">build/golden/log 2>&1 && mv '%s.part' '%s'",
             ebb_test_shared(), e->dir, e->gguf, e->gguf, e->gguf);
    return system(cmd) == 0;
}

static float *read_golden_rows(const golden_entry *e, const char *file)
{
    float *rows = calloc(N_STORED * e->n_vocab, sizeof *rows);
    char path[700];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", e->dir, file);
    f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(rows, sizeof *rows, N_STORED * e->n_vocab, f), N_STORED * e->n_vocab);
    fclose(f);
    return rows;
}

static void load_entry(golden_entry *e, const char *folder, const char *name)
{
    char path[700];
    json_t *meta, *gaps, *routes;

    memset(e, 0, sizeof *e);
    snprintf(e->dir, sizeof e->dir, "%s/%s/%s", ebb_test_shared(), folder, name);
    snprintf(e->gguf, sizeof e->gguf, "build/golden/%s.gguf", name);
    snprintf(path, sizeof path, "%s/meta.json", e->dir);
    meta = json_load_file(path, 0, NULL);
    assert_non_null(meta);
    e->limit = json_number_value(json_object_get(meta, "limit_nmse"));
    e->n_vocab = (size_t)json_integer_value(json_object_get(meta, "vocab"));
    gaps = json_object_get(meta, "greedy_gap");
    routes = json_object_get(meta, "router_gap");
    for (size_t i = 0; i < N_GREEDY; i++) {
        double router = json_array_size(routes) > i ? json_number_value(json_array_get(routes, i)) : INFINITY;

        e->gap[i] = fmin(json_number_value(json_array_get(gaps, i)), router);
    }
    e->limit_mtp = json_number_value(json_object_get(json_object_get(meta, "mtp"), "limit_nmse"));
    if (json_object_get(meta, "mtp"))
        e->exact_mtp = read_golden_rows(e, "mtp-exact.f32");
    json_decref(meta);
    read_golden_ids(e->dir, "tokens.txt", e->tokens, N_TOKENS);
    read_golden_ids(e->dir, "greedy.txt", e->greedy, N_GREEDY);
    e->exact = read_golden_rows(e, "exact.f32");
}

typedef struct sums {
    const golden_entry *e;
    const uint32_t *stored;
    const float    *rows;        /* [N_STORED][n_vocab] */
    double diff[N_STORED], exact[N_STORED], kl[N_STORED];
} sums;

static double log_sum_exp(const float *x, size_t n)
{
    double top = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}

static void compare_golden(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    sums *s = arg;

    assert_int_equal(n_vocab, s->e->n_vocab);
    for (int i = 0; i < N_STORED; i++) {
        const float *exact = s->rows + (size_t)i * n_vocab;
        double za, zb;

        if (s->stored[i] != pos)
            continue;
        za = log_sum_exp(exact, n_vocab);
        zb = log_sum_exp(logits, n_vocab);
        for (size_t j = 0; j < n_vocab; j++) {
            double d = (double)logits[j] - exact[j], la = exact[j] - za, lb = logits[j] - zb;

            s->diff[i] += d * d;
            s->exact[i] += (double)exact[j] * exact[j];
            s->kl[i] += exp(la) * (la - lb);
        }
    }
}

static bool check_logits(const char *name, const sums *s, double limit)
{
    double diff = 0, exact = 0, kl = 0, worst = 0;

    for (int i = 0; i < N_STORED; i++) {
        diff += s->diff[i];
        exact += s->exact[i];
        kl += s->kl[i] / N_STORED;
        worst = fmax(worst, s->diff[i] / s->exact[i]);
    }
    if (diff / exact <= limit && worst <= 5 * limit && kl <= limit)
        return true;
    print_error("%s: NMSE %.2e, KL %.2e, worst position %.2e; limit %.1e\n", name, diff / exact, kl, worst, limit);
    return false;
}

static bool check_greedy(const char *name, ebb_session *s, const golden_entry *e, double limit)
{
    ebb_sampler_params p = { .repeat_penalty = 1, .top_p = 1 };
    ebb_sampler *sampler = ebb_sampler_new(&p, e->n_vocab);
    bool ok = true;

    for (int i = 0; i < N_GREEDY; i++) {
        ebb_token id = ebb_sampler_sample(sampler, ebb_session_logits(s), NULL, 0);

        if (id != e->greedy[i]) {
            ok = e->gap[i] < fmax(1e-3, 2 * sqrt(limit));
            if (!ok)
                print_error("%s: greedy token %d is %d, not %d, by a gap of %g\n", name, i, id, e->greedy[i],
                            e->gap[i]);
            break;
        }
        assert_int_equal(ebb_session_append(s, id, NULL), EBB_OK);
    }
    ebb_sampler_free(sampler);
    return ok;
}

/* The draft head at every position: row t guesses the token at t + 2. */
static bool check_draft_head(const char *name, ebb_session *s, const golden_entry *e, double limit)
{
    sums got = { .e = e, .stored = stored_mtp, .rows = e->exact_mtp };
    float *hidden = calloc(s->engine->net.n_embd, sizeof *hidden), *logits = calloc(e->n_vocab, sizeof *logits);

    assert_true(s->engine->net.has_draft_head);
    ebb_session_clear(s);
    assert_int_equal(ebb_session_sync(s, e->tokens, 1, NULL, NULL), EBB_OK);
    for (uint32_t t = 0; t + 1 < N_TOKENS; t++) {
        memcpy(hidden, ebb_hidden_before(s, t + 1), s->engine->net.n_embd * sizeof *hidden);
        assert_int_equal(ebb_session_reserve(s, t + 2, NULL), EBB_OK);
        assert_int_equal(ebb_draft_head_step(s, e->tokens[t + 1], t + 1, hidden, logits, NULL), EBB_OK);
        ebb_kv_truncate(s->engine->kv, &s->table, t + 1);
        compare_golden(&got, t, logits, e->n_vocab);
        assert_int_equal(ebb_session_sync(s, e->tokens, t + 2, NULL, NULL), EBB_OK);
    }
    free(hidden);
    free(logits);
    return check_logits(name, &got, limit);
}

static bool check_entry(const char *name, const golden_entry *e, const ebb_model *m, ebb_kv_type kv, double room)
{
    ebb_engine_opts o = { .n_ctx = 256, .has_kv = true, .kv_k = kv, .kv_v = kv, .n_threads = 2 };
    ebb_error err = { 0 };
    ebb_engine *engine = NULL;
    ebb_session *s = NULL;
    sums got = { .e = e, .stored = stored, .rows = e->exact };
    bool ok;

    if (ebb_engine_open(m, &o, NULL, NULL, &engine, &err) != EBB_OK) {
        print_error("%s: %s\n", name, err.msg);
        return false;
    }
    assert_int_equal(ebb_session_new(engine, &s, &err), EBB_OK);
    assert_int_equal(ebb_session_eval(s, e->tokens, N_TOKENS, 0, compare_golden, &got, &err), EBB_OK);
    ok = check_logits(name, &got, e->limit + room) && check_greedy(name, s, e, e->limit + room);
    if (e->exact_mtp)
        ok = check_draft_head(name, s, e, e->limit_mtp + room) && ok;
    ebb_session_free(s);
    ebb_engine_close(engine);
    return ok;
}

static bool is_supported(const ebb_model *m)
{
    size_t i = 0;

    while (ebb_archs[i] && strcmp(ebb_archs[i]->name, ebb_model_get_info(m)->arch) != 0)
        i++;
    return ebb_archs[i];
}

typedef enum outcome { GOOD, BAD, UNSUPPORTED } outcome;

static outcome run_entry(const char *name, const golden_entry *e)
{
    ebb_error err = { 0 };
    ebb_model *m = NULL;
    outcome o = UNSUPPORTED;

    if (ebb_model_open(e->gguf, &m, &err) != EBB_OK) {
        print_error("%s: %s\n", name, err.msg);
        return BAD;
    }
    if (is_supported(m))
        o = check_entry(name, e, m, EBB_KV_F32, 0) && check_entry(name, e, m, EBB_KV_F16, 2e-5) ? GOOD : BAD;
    ebb_model_close(m);
    return o;
}

/* All entries of a folder; those of architectures that are not supported count as *n_left. */
static int run_folder(const char *folder, int *n_left)
{
    const char *dir = ebb_test_shared_path(folder);
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort), n_run = 0, n_bad = 0;

    *n_left = 0;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        golden_entry e;

        if (name[0] != '.' && strchr(name, '-') && i % (int)ebb_test_one_in(20) == 0) {
            outcome o;

            load_entry(&e, folder, name);
            if (!write_model(&e)) {
                print_message("no /usr/bin/python3 with numpy to write %s (build/golden/log)\n", name);
                skip();
            }
            o = run_entry(name, &e);
            n_run += o != UNSUPPORTED;
            n_bad += o == BAD;
            *n_left += o == UNSUPPORTED;
            if (o == UNSUPPORTED)
                unlink(e.gguf);
            free(e.exact);
            free(e.exact_mtp);
        }
        free(list[i]);
    }
    free(list);
    assert_int_equal(n_bad, 0);
    return n_run;
}

static void test_goldens(void **state)
{
    int n_left, n = run_folder("golden", &n_left);

    (void)state;
    print_message("%d models\n", n);
    assert_true(n > (ebb_test_is_emulated() ? 3 : 80));
    assert_int_equal(n_left, 0);
}

static void test_newer_goldens(void **state)
{
    int n_left, n = run_folder("golden-next", &n_left);

    (void)state;
    print_message("%d models, %d of architectures that are not supported\n", n, n_left);
    assert_true(n > (ebb_test_is_emulated() ? 6 : 150));
    assert_int_equal(n_left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_goldens), cmocka_unit_test(test_newer_goldens) };

    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
