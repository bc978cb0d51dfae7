/* The text, and the logits behind each of its tokens, are those of plain decoding: for each architecture, with draft
 * tokens from the text, from a draft model and from a draft head, as chains and as trees, in memory and streamed, by
 * each instruction set that this machine has, for one thread and for several, for each seed and temperature.  One seed
 * of each, which is streamed, or as many as $EBB_SPECULATE_SEEDS says. */
#include "ebb_test.h"

#include "open/engine_state.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

#define N_CTX   96u
#define N_START 12u
#define N_TEXT  24u

typedef enum drafter { LOOKUP, MODEL, HEAD, MODEL_TREE, HEAD_TREE } drafter;
static const char *const names[] = { "the text", "a draft model", "a draft head", "a draft model, as trees",
                                     "a draft head, as trees" };

static bool is_tree(drafter d)
{
    return d == MODEL_TREE || d == HEAD_TREE;
}

static bool has_head(drafter d)
{
    return d == HEAD || d == HEAD_TREE;
}

typedef struct writer {
    ebb_engine  *engine;
    ebb_session *s;
} writer;

static void open_writer(const ebb_model *m, ebb_engine_opts o, writer *w)
{
    ebb_error err = { 0 };

    o.n_ctx = N_CTX;
    o.no_kv_cache = true;
    if (ebb_engine_open(m, &o, NULL, NULL, &w->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(w->engine, &w->s, NULL), EBB_OK);
}

static void close_writer(writer *w)
{
    ebb_session_free(w->s);
    ebb_engine_close(w->engine);
}

/* A prompt that repeats itself, so that there is something to look up. */
static void start(const writer *w, uint64_t seed)
{
    ebb_token ids[N_START];

    for (uint32_t i = 0; i < N_START; i++)
        ids[i] = (ebb_token)((seed * 31 + i % 4 * 7) % 200);
    assert_int_equal(ebb_session_sync(w->s, ids, N_START, NULL, NULL), EBB_OK);
}

/* Some way on that was computed: by a branch, if there is one here. */
static ebb_token drafted_token(const ebb_session *s, ebb_token otherwise)
{
    const ebb_draft_tree *tree = &s->drafts.tree;

    for (uint32_t i = 0; i < tree->n_branches && s->n_pending > 0 && !s->drafts.taken; i++)
        if (tree->branches[i].from == s->drafts.n_followed)
            return tree->ids[tree->branches[i].first];
    return s->n_pending > 0 ? s->ids[ebb_session_length(s)] : otherwise;
}

/* The first half is what is sampled, the second repeats the text or follows branches, so that drafts are accepted of
 * any model. */
static void write_beside(const char *what, const writer *plain, const writer *guess, bool follows, uint64_t seed,
                         float temperature)
{
    ebb_sampler_params p = { .temp = temperature, .seed = seed, .repeat_penalty = 1, .top_p = 1 };
    ebb_sampler *a = ebb_sampler_new(&p, EBB_TINY_VOCAB), *b = ebb_sampler_new(&p, EBB_TINY_VOCAB);

    assert_true(a && b);
    start(plain, seed);
    start(guess, seed);
    if (follows)
        guess->s->lookup.n_pause = UINT32_MAX;   /* it would know the text already */
    for (uint32_t i = 0; i < N_TEXT; i++) {
        ebb_token id = ebb_session_sample(plain->s, a);
        size_t n;
        const ebb_token *ids = ebb_session_ids(plain->s, &n);

        if (ebb_session_sample(guess->s, b) != id)
            fail_msg("%s: another text for seed %u at temperature %g", what, (unsigned)seed, (double)temperature);
        if (i >= N_TEXT / 2)
            id = follows ? drafted_token(guess->s, id) : ids[n - 4];
        assert_int_equal(ebb_session_append(plain->s, id, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(guess->s, id, NULL), EBB_OK);
        if (memcmp(ebb_session_logits(plain->s), ebb_session_logits(guess->s), EBB_TINY_VOCAB * sizeof(float)) != 0)
            fail_msg("%s: other bits for seed %u at temperature %g", what, (unsigned)seed, (double)temperature);
    }
    ebb_sampler_free(a);
    ebb_sampler_free(b);
}

static uint32_t n_seeds(void)
{
    const char *text = getenv("EBB_SPECULATE_SEEDS");

    return text ? (uint32_t)atol(text) : 1;
}

/* Seeds by turns in memory and streamed, by other instruction sets and threads. */
static ebb_engine_opts opts_of(uint32_t i, const ebb_model *draft)
{
    static const ebb_isa sets[] = { EBB_ISA_AUTO, EBB_ISA_SCALAR, EBB_ISA_AVX2, EBB_ISA_AVXVNNI, EBB_ISA_NEON };

    return (ebb_engine_opts){
        .draft = draft, .n_draft = draft ? 3 : 0, .n_threads = 1 + i % 3,
        .cpu = sets[i / 2 % (sizeof sets / sizeof *sets)],
        .has_resident = i % 2, .resident = 1,
    };
}

/* The engine does not open for an instruction set that this machine lacks. */
static bool has_isa(const ebb_model *m, ebb_engine_opts o)
{
    ebb_engine *e;
    ebb_error err = { 0 };
    ebb_status st;

    o.n_ctx = N_CTX;
    o.no_kv_cache = true;
    st = ebb_engine_open(m, &o, NULL, NULL, &e, &err);
    if (st == EBB_OK)
        ebb_engine_close(e);
    else if (st != EBB_UNSUPPORTED)
        fail_msg("%s", err.msg);
    return st == EBB_OK;
}

typedef struct total { unsigned n_drafted, n_accepted, n_branched, n_streamed; } total;

static void run_seed(const char *arch, const ebb_model *m, const ebb_model *draft, const writer *plain, drafter d,
                     uint32_t seed, total *sum)
{
    static const float temperatures[] = { 0, 0.7f, 1 };
    ebb_engine_opts o = opts_of(seed, draft);
    char what[128];
    ebb_stats st;
    writer guess;

    if (has_head(d))
        o.n_draft = 3;
    if (o.cpu != EBB_ISA_AUTO && !has_isa(m, o))
        o.cpu = EBB_ISA_AUTO;
    snprintf(what, sizeof what, "%s, drafts from %s, %s", arch, names[d], o.has_resident ? "streamed" : "in memory");
    open_writer(m, o, &guess);
    if (is_tree(d))
        guess.engine->draft_model.draft_length.n_fixed_branches =
            guess.engine->head_drafter.draft_length.n_fixed_branches = 1 + seed % 4;
    for (size_t t = 0; t < 3; t++)
        write_beside(what, plain, &guess, is_tree(d), seed, temperatures[t]);
    ebb_engine_stats(guess.engine, &st);
    sum->n_drafted += (unsigned)st.n_drafted;
    sum->n_accepted += (unsigned)st.n_accepted;
    sum->n_branched += (unsigned)st.n_branched;
    sum->n_streamed += o.has_resident;
    close_writer(&guess);
}

static ebb_model *open_file(const ebb_tiny_opts *o, const char *name)
{
    char path[96];
    ebb_error err = { 0 };
    ebb_model *m;

    snprintf(path, sizeof path, "%s/%s.gguf", ebb_own_dir, name);
    assert_true(ebb_tiny_write(o, path));
    if (ebb_model_open(path, &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

/* With one drafter, all seeds of one architecture. */
static void run_arch(const char *arch, drafter d, total *sum)
{
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_F16, .n_embd = 64, .n_ff = 64,
                           .has_draft_head = has_head(d) };
    ebb_tiny_opts small = { .arch = "llama", .type = EBB_TYPE_F16, .n_layers = 1, .n_embd = 64, .n_ff = 64 };
    ebb_model *m = open_file(&tiny, "model");
    ebb_model *draft = d == MODEL || d == MODEL_TREE ? open_file(&small, "draft") : NULL;
    writer plain;

    open_writer(m, (ebb_engine_opts){ .no_speculation = true, .n_threads = 1 }, &plain);
    for (uint32_t seed = 1; seed <= n_seeds(); seed++)
        run_seed(arch, m, draft, &plain, d, seed, sum);
    close_writer(&plain);
    ebb_model_close(m);
    ebb_model_close(draft);
}

static void expect_drafts(drafter d, const total *sum)
{
    print_message("drafts from %s: %u of %u accepted, %u in branches, %u engines streamed\n", names[d], sum->n_accepted,
                  sum->n_drafted, sum->n_branched, sum->n_streamed);
    assert_int_equal(sum->n_branched > 0, is_tree(d));
    assert_true(sum->n_accepted > 0 && sum->n_drafted > sum->n_accepted);
    assert_true(sum->n_streamed > 0);
}

static void with_every_architecture(drafter d)
{
    total sum = { 0 };

    for (size_t i = 0; ebb_tiny_archs[i]; i++)
        if (i % ebb_test_one_in(6) == 0)
            run_arch(ebb_tiny_archs[i], d, &sum);
    expect_drafts(d, &sum);
}

static void every_architecture_from_the_text(void **state)
{
    (void)state;
    with_every_architecture(LOOKUP);
}

static void every_architecture_with_a_draft_model(void **state)
{
    (void)state;
    with_every_architecture(MODEL);
}

static void with_every_head(drafter d)
{
    static const char *const archs[] = { "qwen35", "qwen35moe", "qwen3next", "glm4moe", "deepseek2" };
    total sum = { 0 };

    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        run_arch(archs[i], d, &sum);
    expect_drafts(d, &sum);
}

static void every_draft_head(void **state)
{
    (void)state;
    with_every_head(HEAD);
}

/* Those with recurrent layers draft chains, whatever is wanted. */
static void every_architecture_with_trees(void **state)
{
    (void)state;
    with_every_architecture(MODEL_TREE);
}

static void every_draft_head_with_trees(void **state)
{
    (void)state;
    with_every_head(HEAD_TREE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_from_the_text),
        cmocka_unit_test(every_architecture_with_a_draft_model),
        cmocka_unit_test(every_draft_head),
        cmocka_unit_test(every_architecture_with_trees),
        cmocka_unit_test(every_draft_head_with_trees),
    };

    return cmocka_run_group_tests(tests, ebb_own_dir_make, ebb_own_dir_drop);
}
