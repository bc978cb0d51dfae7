/* Random operations on two sequences whose model has recurrent layers or a draft head, or drafts trees: drafts from the
 * text, from a draft model that may have recurrent layers itself and from the head, accepted and rejected, branches of
 * trees taken, cuts, other branches of the text, stops, what is persisted, a new engine that goes on from the files.
 * After each operation the logits are, bit for bit, those of plain decoding in an engine that reuses nothing.  10,000
 * operations of recurrent layers, fewer of the others; $EBB_SPECULATE_OPS of each network for another number. */
#include "ebb_test.h"

#include "open/engine_state.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

#define N_CTX   192u
#define N_LINES 2u
#define PERIOD  4u
#define N_OPS   10000u
#define N_HEAD_OPS 250u          /* of each */

typedef enum drafter { LOOKUP, MODEL, HEAD, MODEL_TREE, HEAD_TREE } drafter;
static const char *const names[] = { "", " with a draft model", " with a draft head", " with trees of a draft model",
                                     " with trees of a draft head" };

static bool has_model(drafter d)
{
    return d == MODEL || d == MODEL_TREE;
}

static bool has_head(drafter d)
{
    return d == HEAD || d == HEAD_TREE;
}

typedef struct line {
    ebb_token ids[N_CTX];
    uint32_t  n;
    ebb_session *s, *again;      /* speculates; plain */
} line;

typedef struct world {
    char        *bytes, *draft_bytes;
    ebb_model   *model, *draft;
    ebb_engine  *engine, *reference;
    line         lines[N_LINES];
    uint64_t     random;
    uint32_t     n_threads;
    drafter      drafter;
    unsigned     n_drafted, n_accepted, n_branched, n_disk, n_cut, n_stopped;
} world;

static uint32_t draw_below(world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

/* -- The engines -------------------------------------------------------------------- */

static void open_speculating(world *w)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = w->n_threads, .n_batch = 32, .kv_cache_dir = ebb_own_dir,
                          .draft = w->draft,
                          .n_draft = w->drafter != LOOKUP ? 1 + draw_below(w, 7) : 0 };
    ebb_error err = { 0 };

    if (ebb_engine_open(w->model, &o, NULL, NULL, &w->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_draft_model_is_open(w->engine), has_model(w->drafter));
    assert_int_equal(ebb_draft_head_is_open(w->engine), has_head(w->drafter));
    if (w->drafter == MODEL_TREE || w->drafter == HEAD_TREE)
        w->engine->draft_model.draft_length.n_fixed_branches =
            w->engine->head_drafter.draft_length.n_fixed_branches = 1 + draw_below(w, EBB_DRAFT_BRANCHES);
    for (uint32_t i = 0; i < N_LINES; i++)
        assert_int_equal(ebb_session_new(w->engine, &w->lines[i].s, NULL), EBB_OK);
}

static void close_speculating(world *w)
{
    ebb_stats st;

    ebb_engine_stats(w->engine, &st);
    w->n_drafted += (unsigned)st.n_drafted;
    w->n_accepted += (unsigned)st.n_accepted;
    w->n_branched += (unsigned)st.n_branched;
    for (uint32_t i = 0; i < N_LINES; i++)
        ebb_session_free(w->lines[i].s);
    ebb_engine_close(w->engine);
}

static void open_world(world *w, const char *arch, drafter d, uint64_t seed)
{
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_F16, .n_embd = 64, .n_ff = 64,
                           .has_draft_head = has_head(d) };
    ebb_engine_opts plain = { .n_ctx = N_CTX, .n_threads = 1, .no_kv_cache = true, .no_speculation = true };
    ebb_error err = { 0 };

    memset(w, 0, sizeof *w);
    w->random = seed;
    w->drafter = d;
    w->n_threads = 1 + (uint32_t)seed % 3;
    w->model = ebb_tiny_open(&tiny, &w->bytes);
    w->draft = has_model(d) ? ebb_tiny_open(&tiny, &w->draft_bytes) : NULL;
    if (ebb_engine_open(w->model, &plain, NULL, NULL, &w->reference, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    open_speculating(w);
    for (uint32_t i = 0; i < N_LINES; i++)
        assert_int_equal(ebb_session_new(w->reference, &w->lines[i].again, NULL), EBB_OK);
}

static void close_world(world *w)
{
    close_speculating(w);
    for (uint32_t i = 0; i < N_LINES; i++)
        ebb_session_free(w->lines[i].again);
    ebb_engine_close(w->reference);
    ebb_model_close(w->model);
    ebb_model_close(w->draft);
    free(w->bytes);
    free(w->draft_bytes);
}

/* -- Operations ----------------------------------------------------------------------- */

static void look_away(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    (void)arg, (void)pos, (void)logits, (void)n_vocab;
}

static void expect_same(const line *l, const char *arch, const char *what)
{
    size_t n;
    const ebb_token *ids = ebb_session_ids(l->s, &n);

    assert_int_equal(n, l->n);
    assert_memory_equal(ids, l->ids, n * sizeof *ids);
    assert_non_null(ebb_session_logits(l->s));
    if (memcmp(ebb_session_logits(l->s), ebb_session_logits(l->again), EBB_TINY_VOCAB * sizeof(float)) != 0)
        fail_msg("%s: %s: other bits behind %u tokens", arch, what, l->n);
}

/* The plain sequence is computed from its beginning. */
static void sync_line(world *w, line *l)
{
    ebb_sync_result r;

    assert_int_equal(ebb_session_sync(l->s, l->ids, l->n, &r, NULL), EBB_OK);
    w->n_disk += r.n_reused_disk;
    assert_int_equal(ebb_session_eval(l->again, l->ids, l->n, 0, look_away, NULL, NULL), EBB_OK);
}

static ebb_token likeliest(const line *l)
{
    const float *logits = ebb_session_logits(l->again);
    ebb_token best = 0;

    for (ebb_token i = 1; i < (ebb_token)EBB_TINY_VOCAB; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* The first token of a branch that could be followed now; EBB_TOKEN_NONE: there is none. */
static ebb_token branch_token(world *w, const ebb_session *s)
{
    const ebb_draft_tree *tree = &s->drafts.tree;
    uint32_t i = tree->n_branches > 0 ? draw_below(w, tree->n_branches) : 0;

    if (tree->n_branches == 0 || s->n_pending == 0 || s->drafts.taken || tree->branches[i].from != s->drafts.n_followed)
        return EBB_TOKEN_NONE;
    return tree->ids[tree->branches[i].first];
}

/* What the text has repeated, or what the model wants, or a branch has, and now and then anything. */
static ebb_token next_token(world *w, const line *l, bool repeats)
{
    ebb_token branch = branch_token(w, l->s);

    if (branch != EBB_TOKEN_NONE && draw_below(w, 2))
        return branch;
    if (draw_below(w, 8) == 0)
        return (ebb_token)draw_below(w, EBB_TINY_VOCAB);
    return repeats && l->n >= PERIOD ? l->ids[l->n - PERIOD] : likeliest(l);
}

/* The other sequence may have needed the room in the pool. */
static void bring_back(world *w, line *l)
{
    size_t n, n_again;

    (void)ebb_session_ids(l->s, &n);
    (void)ebb_session_ids(l->again, &n_again);
    if (n != l->n || n_again != l->n)
        sync_line(w, l);
}

static const char *append_some(world *w, line *l)
{
    bool repeats = draw_below(w, 2);

    bring_back(w, l);
    for (uint32_t more = 1 + draw_below(w, 12); more > 0 && l->n < N_CTX; more--) {
        ebb_token id = next_token(w, l, repeats);

        assert_int_equal(ebb_session_append(l->s, id, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(l->again, id, NULL), EBB_OK);
        l->ids[l->n++] = id;
        if (more > 1)
            assert_memory_equal(ebb_session_logits(l->s), ebb_session_logits(l->again), EBB_TINY_VOCAB * sizeof(float));
    }
    return "append";
}

/* Back by a few tokens, which the log may still know, or anywhere. */
static const char *cut(world *w, line *l)
{
    uint32_t back = draw_below(w, 2) ? 1 + draw_below(w, 8) : 1 + draw_below(w, l->n);

    l->n = back < l->n ? l->n - back : 1;
    w->n_cut++;
    sync_line(w, l);
    return "cut";
}

static const char *branch_off(world *w, line *l)
{
    const line *other = &w->lines[draw_below(w, N_LINES)];

    l->n = 1 + draw_below(w, other->n);
    memmove(l->ids, other->ids, l->n * sizeof *l->ids);
    for (uint32_t more = draw_below(w, 12); more > 0 && l->n < N_CTX - 16; more--)
        l->ids[l->n++] = (ebb_token)draw_below(w, EBB_TINY_VOCAB);
    sync_line(w, l);
    return "branch";
}

static const char *stop(world *w, line *l)
{
    ebb_token id = (ebb_token)draw_below(w, EBB_TINY_VOCAB);

    bring_back(w, l);
    ebb_engine_cancel(w->engine);
    if (ebb_session_append(l->s, id, NULL) == EBB_OK)    /* it was a draft that stood already */
        l->ids[l->n++] = id;
    ebb_engine_cancel_clear(w->engine);
    w->n_stopped++;
    sync_line(w, l);
    return "stop";
}

static const char *restore(world *w, line *l)
{
    for (uint32_t i = 0; i < N_LINES; i++)
        ebb_session_persist(w->lines[i].s);
    close_speculating(w);
    open_speculating(w);
    sync_line(w, l);
    return "restore";
}

static const char *step(world *w, line *l)
{
    uint32_t what = draw_below(w, 100);

    if (l->n > N_CTX - 8)
        return cut(w, l);
    if (what < 76)
        return append_some(w, l);
    if (what < 84)
        return cut(w, l);
    if (what < 90)
        return branch_off(w, l);
    if (what < 94)
        return stop(w, l);
    if (what < 98) {
        ebb_session_persist(l->s);
        return append_some(w, l);
    }
    return restore(w, l);
}

/* Operations of a world, of which there are `usual`; EBB_SPECULATE_OPS: so many. */
static unsigned ops_of(unsigned usual)
{
    const char *ops = getenv("EBB_SPECULATE_OPS");

    return ops ? (unsigned)atol(ops) : usual / ebb_test_one_in(10);
}

static void run(const char *arch, drafter d, uint64_t seed, unsigned n)
{
    world w;

    open_world(&w, arch, d, seed);
    for (uint32_t i = 0; i < N_LINES; i++) {
        w.lines[i].n = 3;
        sync_line(&w, &w.lines[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        line *l = &w.lines[draw_below(&w, N_LINES)];
        const char *what = step(&w, l);

        expect_same(l, arch, what);
    }
    close_world(&w);
    print_message("%s%s: %u operations, %u of %u drafts accepted, %u in branches, %u cuts, %u stops, %u tokens from "
                  "disk\n", arch, names[d], n, w.n_accepted, w.n_drafted, w.n_branched, w.n_cut, w.n_stopped, w.n_disk);
    if (n > 100 && (d == MODEL_TREE || d == HEAD_TREE))
        assert_true(w.n_branched > 0);
    if (n > 200)
        assert_true(w.n_accepted > 0 && w.n_drafted > w.n_accepted);
    if (n > 400)                                 /* the writer may not have been there in time for the few of less */
        assert_true(w.n_disk > 0);
}

static void recurrent_layers_speculate(void **state)
{
    static const char *const archs[] = {
        "qwen35", "qwen35moe", "qwen3next", "lfm2", "nemotron_h", "nemotron_h_moe", "granitehybrid", "falcon-h1",
        "mamba2", "mamba", "jamba",
    };
    unsigned n_worlds = 2 * sizeof archs / sizeof *archs, n = ops_of((N_OPS + n_worlds - 1) / n_worlds);

    (void)state;
    for (unsigned i = 0; i < n_worlds; i++)
        run(archs[i / 2], i % 2 ? MODEL : LOOKUP, 7 + i, n);
}

static void draft_heads_speculate(void **state)
{
    static const char *const archs[] = { "qwen35", "qwen35moe", "qwen3next", "glm4moe", "deepseek2" };
    unsigned n_worlds = sizeof archs / sizeof *archs, n = ops_of(N_HEAD_OPS);

    (void)state;
    for (unsigned i = 0; i < n_worlds; i++)
        run(archs[i], HEAD, 77 + i, n);
}

/* Full attention, a sliding window, compressed rows, K and V of other layers, a mixture. */
static void trees_speculate(void **state)
{
    static const char *const archs[] = { "llama", "gemma3", "deepseek2", "gemma4", "qwen3moe", "glm4moe", "deepseek2" };
    unsigned n_worlds = sizeof archs / sizeof *archs, n = ops_of(N_HEAD_OPS);

    (void)state;
    for (unsigned i = 0; i < n_worlds; i++)
        run(archs[i], i < n_worlds - 2 ? MODEL_TREE : HEAD_TREE, 177 + i, n);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(recurrent_layers_speculate),
                                               cmocka_unit_test(draft_heads_speculate),
                                               cmocka_unit_test(trees_speculate) };

    return cmocka_run_group_tests(tests, ebb_own_dir_make, ebb_own_dir_drop);
}
