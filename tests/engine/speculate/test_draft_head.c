/* A model whose file has a draft head: the plan counts it, the text is that of plain decoding for every seed and
 * temperature, in memory and streamed; a head that is always wrong is soon left alone, one that is damaged is left
 * out. */
#include "ebb_test.h"

#include <math.h>

#include "ebb/experimental/plan.h"
#include "open/engine_state.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

#define N_CTX   96u
#define N_START 5u
#define N_TEXT  40u
#define N_SEEDS 20u

static const ebb_tiny_opts small = { .arch = "qwen35", .type = EBB_TYPE_F16, .n_embd = 64, .n_ff = 64,
                                     .has_draft_head = true };

typedef struct writer {
    ebb_engine  *engine;
    ebb_session *s;
} writer;

static void open_writer(const ebb_model *m, ebb_engine_opts o, writer *w)
{
    ebb_error err = { 0 };

    o.n_ctx = N_CTX;
    o.n_threads = 2;
    o.no_kv_cache = true;
    if (ebb_engine_open(m, &o, NULL, NULL, &w->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(w->engine, &w->s, &err), EBB_OK);
}

static void close_writer(writer *w)
{
    ebb_session_free(w->s);
    ebb_engine_close(w->engine);
}

/* N_TEXT tokens behind a prompt of the seed's. */
static void write_text(const writer *w, uint64_t seed, float temperature, ebb_token out[N_TEXT])
{
    ebb_sampler_params p = { .temp = temperature, .seed = seed, .repeat_penalty = 1, .top_p = 1 };
    ebb_sampler *sampler = ebb_sampler_new(&p, EBB_TINY_VOCAB);
    ebb_token start[N_START];

    assert_non_null(sampler);
    for (uint32_t i = 0; i < N_START; i++)
        start[i] = (ebb_token)((seed * 31 + i * 7) % 200);
    assert_int_equal(ebb_session_sync(w->s, start, N_START, NULL, NULL), EBB_OK);
    for (uint32_t i = 0; i < N_TEXT; i++) {
        out[i] = ebb_session_sample(w->s, sampler);
        assert_int_equal(ebb_session_append(w->s, out[i], NULL), EBB_OK);
    }
    ebb_sampler_free(sampler);
}

static ebb_stats stats_of(const writer *w)
{
    ebb_stats st;

    ebb_engine_stats(w->engine, &st);
    return st;
}

static void expect_same_texts(const char *name, const writer *plain, const writer *guess, uint32_t n_seeds)
{
    static const float temperatures[] = { 0, 0.7f, 1 };
    ebb_token a[N_TEXT], b[N_TEXT];

    for (uint64_t seed = 1; seed <= n_seeds; seed++)     /* 0 is the clock's */
        for (size_t t = 0; t < 3; t++) {
            write_text(plain, seed, temperatures[t], a);
            write_text(guess, seed, temperatures[t], b);
            if (memcmp(a, b, sizeof a) != 0)
                fail_msg("%s: another text for seed %u at temperature %g", name, (unsigned)seed,
                         (double)temperatures[t]);
        }
}

static void the_same_text_for_every_seed(void **state)
{
    static const char *const archs[] = { "qwen35", "qwen35moe", "glm4moe" };

    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        ebb_tiny_opts tiny = small;
        writer plain, forced, free_length;
        char *bytes;
        ebb_model *m;
        ebb_stats st;

        tiny.arch = archs[i];
        m = ebb_tiny_open(&tiny, &bytes);
        open_writer(m, (ebb_engine_opts){ .no_speculation = true }, &plain);
        open_writer(m, (ebb_engine_opts){ .n_draft = 3 }, &forced);
        open_writer(m, (ebb_engine_opts){ 0 }, &free_length);
        expect_same_texts(archs[i], &plain, &forced, N_SEEDS / ebb_test_one_in(4));
        expect_same_texts(archs[i], &plain, &free_length, 3 / ebb_test_one_in(3));
        st = stats_of(&forced);
        print_message("%s: %u of %u accepted\n", archs[i], (unsigned)st.n_accepted, (unsigned)st.n_drafted);
        assert_true(st.n_accepted > st.n_drafted / 20);
        assert_int_equal(stats_of(&plain).n_drafted, 0);
        close_writer(&plain);
        close_writer(&forced);
        close_writer(&free_length);
        ebb_model_close(m);
        free(bytes);
    }
}

/* -- Rows of the output -------------------------------------------------------------- */

static bool is_chosen(const ebb_draft_rows *d, uint32_t token)
{
    uint32_t i = 0;

    while (i < d->n_chosen && d->chosen[i] != token)
        i++;
    return i < d->n_chosen;
}

/* Logits of the rows are those of all rows; the others are none. */
static void some_rows_have_the_same_logits(void **state)
{
    static const uint32_t few[] = { 0, 1, 2, 9, 63, 64, 65, 128, 200, EBB_TINY_VOCAB - 1 };
    static const ebb_token start[] = { 5, 6, 7 };
    ebb_draft_rows *rows;
    char *bytes;
    ebb_model *m = ebb_tiny_open(&small, &bytes);
    float all[EBB_TINY_VOCAB], some[EBB_TINY_VOCAB], hidden[2][64];
    writer w;

    (void)state;
    open_writer(m, (ebb_engine_opts){ 0 }, &w);
    assert_int_equal(ebb_session_sync(w.s, start, 3, NULL, NULL), EBB_OK);
    memcpy(hidden[0], ebb_hidden_before(w.s, 3), sizeof hidden[0]);
    memcpy(hidden[1], hidden[0], sizeof hidden[0]);
    assert_int_equal(ebb_session_reserve(w.s, 4, NULL), EBB_OK);
    rows = &w.engine->head_drafter.rows;
    assert_int_equal(rows->n_rows, EBB_TINY_VOCAB);
    assert_int_equal(rows->n_chosen, EBB_TINY_VOCAB);    /* of so few all */
    assert_int_equal(ebb_draft_head_step(w.s, 9, 3, hidden[0], all, NULL), EBB_OK);
    rows->n_chosen = sizeof few / sizeof *few;
    memcpy(rows->chosen, few, sizeof few);
    assert_int_equal(ebb_draft_head_step(w.s, 9, 3, hidden[1], some, NULL), EBB_OK);
    assert_memory_equal(hidden[0], hidden[1], sizeof hidden[0]);
    for (uint32_t i = 0; i < EBB_TINY_VOCAB; i++) {
        if (is_chosen(rows, i))
            assert_memory_equal(&some[i], &all[i], sizeof all[i]);
        else
            assert_true(isinf(some[i]) && some[i] < 0);
    }
    ebb_kv_truncate(w.engine->kv, &w.s->table, 3);
    close_writer(&w);
    ebb_model_close(m);
    free(bytes);
}

static void rows_follow_the_text(void **state)
{
    ebb_draft_rows d;
    ebb_token text[300];

    (void)state;
    for (uint32_t i = 0; i < 300; i++)
        text[i] = (ebb_token)(90000 + i % 3 * 1000);
    assert_true(ebb_draft_rows_init(&d, 100000));
    assert_int_equal(d.n_chosen, 25000);
    assert_true(is_chosen(&d, 0) && is_chosen(&d, 20000) && !is_chosen(&d, 90000));
    ebb_draft_rows_learn(&d, text, 300);
    ebb_draft_rows_update(&d);
    assert_true(is_chosen(&d, 0) && is_chosen(&d, 90000) && is_chosen(&d, 91000) && is_chosen(&d, 92000) &&
                !is_chosen(&d, 93000));
    for (uint32_t i = 1; i < d.n_chosen; i++)
        assert_true(d.chosen[i] > d.chosen[i - 1]);
    ebb_draft_rows_fini(&d);
}

/* Where much was seen, fewer rows do; of rows that were used too often for all of them the most used stay. */
static void fewer_rows_where_much_was_seen(void **state)
{
    ebb_draft_rows d;
    ebb_token once[20000], often[1000];

    (void)state;
    for (uint32_t i = 0; i < 20000; i++)
        once[i] = (ebb_token)(60000 + i);
    for (uint32_t i = 0; i < 1000; i++)
        often[i] = (ebb_token)(99000 + i);
    assert_true(ebb_draft_rows_init(&d, 100000));
    ebb_draft_rows_learn(&d, once, 20000);
    for (uint32_t i = 0; i < 20; i++)
        ebb_draft_rows_learn(&d, often, 1000);
    ebb_draft_rows_learn(&d, (ebb_token[]){ -1, 100000 }, 2);    /* no tokens */
    ebb_draft_rows_update(&d);
    assert_int_equal(d.n_chosen, 12500);
    assert_true(is_chosen(&d, 99000) && is_chosen(&d, 99999) && is_chosen(&d, 60000) && is_chosen(&d, 71499));
    assert_false(is_chosen(&d, 71500) || is_chosen(&d, 0));
    ebb_draft_rows_forget(&d);
    ebb_draft_rows_update(&d);
    assert_int_equal(d.n_chosen, 25000);
    assert_true(is_chosen(&d, 0) && !is_chosen(&d, 99000));
    ebb_draft_rows_fini(&d);
}

/* What was said elsewhere counts, and no longer when it is taken back; the sequence at hand always does. */
static void rows_follow_the_reference_text(void **state)
{
    static const ebb_token elsewhere[] = { 100, 101, 102, EBB_TOKEN_NONE, 103 }, start[] = { 5, 6, 7 };
    char *bytes;
    ebb_model *m = ebb_tiny_open(&small, &bytes);
    const ebb_draft_rows *rows;
    writer w;

    (void)state;
    open_writer(m, (ebb_engine_opts){ 0 }, &w);
    rows = &w.engine->head_drafter.rows;
    assert_int_equal(ebb_session_sync(w.s, start, 3, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_engine_set_reference_text(w.engine, elsewhere, 5, NULL), EBB_OK);
    assert_int_equal(rows->uses[103], 1);
    assert_int_equal(rows->uses[5], 1);
    assert_int_equal(rows->n_seen, 7);
    assert_int_equal(ebb_engine_set_reference_text(w.engine, NULL, 0, NULL), EBB_OK);
    assert_int_equal(rows->uses[103], 0);
    assert_int_equal(rows->uses[5], 1);
    close_writer(&w);
    ebb_model_close(m);
    free(bytes);
}

/* A quarter of the rows: other draft tokens, the same text. */
static void the_same_text_with_some_rows(void **state)
{
    char *bytes;
    ebb_model *m = ebb_tiny_open(&small, &bytes);
    writer plain, guess;

    (void)state;
    open_writer(m, (ebb_engine_opts){ .no_speculation = true }, &plain);
    open_writer(m, (ebb_engine_opts){ .n_draft = 3 }, &guess);
    guess.engine->head_drafter.rows.n_chosen = EBB_TINY_VOCAB / 4;
    for (uint32_t i = 0; i < EBB_TINY_VOCAB / 4; i++)
        guess.engine->head_drafter.rows.chosen[i] = 4 * i;
    expect_same_texts("some rows", &plain, &guess, 4);
    assert_true(stats_of(&guess).n_drafted > 0);
    close_writer(&plain);
    close_writer(&guess);
    ebb_model_close(m);
    free(bytes);
}

/* -- The plan ---------------------------------------------------------------------- */

static void plan_of(const ebb_model *m, const ebb_engine_opts *o, ebb_plan *p)
{
    ebb_machine machine = { .available_bytes = (uint64_t)8 << 30, .n_cpus = 2 };
    ebb_error err = { 0 };

    if (ebb_plan_make(m, o, &machine, p, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static void the_plan_counts_it(void **state)
{
    ebb_engine_opts without = { .n_ctx = N_CTX, .no_speculation = true }, with = { .n_ctx = N_CTX };
    ebb_tiny_opts headless = small;
    char *bytes, *headless_bytes;
    ebb_model *m = ebb_tiny_open(&small, &bytes), *other;
    ebb_plan a, b;

    (void)state;
    headless.has_draft_head = false;
    other = ebb_tiny_open(&headless, &headless_bytes);
    plan_of(m, &with, &a);
    plan_of(m, &without, &b);
    assert_true(a.draft_head_bytes > 0);
    assert_non_null(strstr(a.draft_head, "if 75 % of its draft tokens are accepted"));
    assert_true(a.draft_tok_s > a.no_draft_tok_s && a.draft_length > 0);
    assert_int_equal(a.weights_resident_bytes - b.weights_resident_bytes, a.draft_head_bytes);
    assert_int_equal(a.kv_bytes, 2 * b.kv_bytes);        /* of four layers one attends; the head is another */
    assert_int_equal(b.draft_head_bytes, 0);
    assert_true(strncmp(b.draft_head, "not used: ", 10) == 0);
    plan_of(other, &with, &b);
    assert_string_equal(b.draft_head, "");
    ebb_model_close(m);
    ebb_model_close(other);
    free(bytes);
    free(headless_bytes);
}

static ebb_model *open_file(const ebb_tiny_opts *tiny)
{
    char path[96];
    ebb_error err = { 0 };
    ebb_model *m;

    snprintf(path, sizeof path, "%s/head.gguf", ebb_own_dir);
    assert_true(ebb_tiny_write(tiny, path));
    if (ebb_model_open(path, &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

/* Half of the model has space; a further column costs what its multiply-adds do. */
static void plan_streamed(const ebb_model *m, uint32_t n_draft, double mac_s, ebb_plan *p)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_draft = n_draft, .has_resident = true, .resident_is_percent = true,
                          .resident = 50 };
    ebb_machine machine = { .available_bytes = (uint64_t)8 << 30, .n_cpus = 2, .memory_bytes_s = 20e9,
                            .int8_mac_s = mac_s, .disk_bytes_s = 1e9 };
    ebb_error err = { 0 };

    if (ebb_plan_make(m, &o, &machine, p, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(p->stream_bytes > 0);
}

/* Its memory is that of a layer: worth it where a pass waits for the disk, not where each column takes as long. */
static void the_plan_judges_it(void **state)
{
    ebb_tiny_opts tiny = { .arch = "qwen35", .type = EBB_TYPE_F16, .n_layers = 8, .n_embd = 256, .n_ff = 2048,
                           .has_draft_head = true };
    ebb_model *m = open_file(&tiny);
    ebb_plan p;

    (void)state;
    plan_streamed(m, 0, 1e12, &p);
    assert_true(p.draft_head_bytes > 0);
    assert_true(p.draft_tok_s > 2 * p.no_draft_tok_s);
    plan_streamed(m, 0, 1e8, &p);
    assert_int_equal(p.draft_head_bytes, 0);
    assert_non_null(strstr(p.draft_head, "not used: its memory is worth more to layers"));
    plan_streamed(m, 3, 1e8, &p);
    assert_true(p.draft_head_bytes > 0);
    assert_non_null(strstr(p.draft_head, "drafts 3 tokens in each pass"));
    ebb_model_close(m);
}

/* -- Streamed ---------------------------------------------------------------------- */

/* Layers are read from disk; the head stays, or is done without where it has no room. */
static void the_same_text_streamed(void **state)
{
    ebb_tiny_opts tiny = { .arch = "qwen35", .type = EBB_TYPE_F16, .n_layers = 8, .n_embd = 256, .n_ff = 2048,
                           .has_draft_head = true };
    ebb_model *m = open_file(&tiny);
    bool was_on = false, was_off = false;
    writer plain;

    (void)state;
    open_writer(m, (ebb_engine_opts){ .no_speculation = true }, &plain);
    for (uint32_t percent = 0; percent <= 80; percent += 40) {
        ebb_engine_opts o = { .n_draft = 4, .has_resident = true, .resident_is_percent = true, .resident = percent };
        writer guess;

        open_writer(m, o, &guess);
        assert_true(guess.engine->plan.stream_bytes > 0);
        assert_int_equal(ebb_draft_head_is_open(guess.engine), guess.engine->plan.draft_head_bytes > 0);
        was_on |= ebb_draft_head_is_open(guess.engine);
        was_off |= !ebb_draft_head_is_open(guess.engine);
        expect_same_texts("streamed", &plain, &guess, 1);
        close_writer(&guess);
    }
    assert_true(was_on && was_off);
    close_writer(&plain);
    ebb_model_close(m);
}

/* -- Heads that are of no use ----------------------------------------------------------- */

/* Blocks are random: the head copies nothing and is never right. */
static void a_wrong_head_rests(void **state)
{
    ebb_tiny_opts tiny = small;
    char *bytes;
    ebb_model *m;
    writer w;
    ebb_token text[N_TEXT];
    ebb_stats before, behind;

    (void)state;
    tiny.type = EBB_TYPE_Q8_0;
    m = ebb_tiny_open(&tiny, &bytes);
    open_writer(m, (ebb_engine_opts){ 0 }, &w);
    assert_true(ebb_draft_head_is_open(w.engine));
    write_text(&w, 1, 1, text);
    before = stats_of(&w);
    for (uint64_t seed = 2; seed < 4; seed++)
        write_text(&w, seed, 1, text);
    behind = stats_of(&w);
    print_message("%u draft tokens in the first %u tokens, %u in the next %u\n", (unsigned)before.n_drafted, N_TEXT,
                  (unsigned)(behind.n_drafted - before.n_drafted), 2 * N_TEXT);
    assert_true(before.n_drafted > 0 && before.n_drafted <= 30);
    ebb_session_free(w.s);
    ebb_engine_close(w.engine);
    ebb_model_close(m);
    free(bytes);
}

/* The same bytes but for a name: the model opens, and has no head. */
static void a_damaged_head_is_left_out(void **state)
{
    size_t n;
    char *bytes = ebb_tiny_bytes(&small, &n), *name = NULL;
    ebb_error err = { 0 };
    ebb_model *m;
    writer w;
    ebb_token text[N_TEXT];

    (void)state;
    for (size_t i = 0; i + 11 < n && !name; i++)
        name = memcmp(bytes + i, "nextn.hnorm", 11) == 0 ? bytes + i : NULL;
    assert_non_null(name);
    memcpy(name, "nextn.xnorm", 11);
    assert_int_equal(ebb_model_open_memory(bytes, n, "damaged", &m, &err), EBB_OK);
    open_writer(m, (ebb_engine_opts){ 0 }, &w);
    assert_false(ebb_draft_head_is_open(w.engine));
    assert_int_equal(w.engine->plan.draft_head_bytes, 0);
    assert_non_null(strstr(w.engine->plan.draft_head, "not understood"));
    write_text(&w, 1, 1, text);
    close_writer(&w);
    ebb_model_close(m);
    free(bytes);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_text_for_every_seed), cmocka_unit_test(the_plan_counts_it),
        cmocka_unit_test(the_plan_judges_it),
        cmocka_unit_test(the_same_text_streamed),       cmocka_unit_test(some_rows_have_the_same_logits),
        cmocka_unit_test(fewer_rows_where_much_was_seen), cmocka_unit_test(rows_follow_the_reference_text),
        cmocka_unit_test(rows_follow_the_text),         cmocka_unit_test(the_same_text_with_some_rows),
        cmocka_unit_test(a_wrong_head_rests),           cmocka_unit_test(a_damaged_head_is_left_out),
    };

    return cmocka_run_group_tests(tests, ebb_own_dir_make, ebb_own_dir_drop);
}
