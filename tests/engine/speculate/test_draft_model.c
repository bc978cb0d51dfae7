/* A draft model: text, seed and logits are the same bits with and without it, whatever it is and whatever happens
 * to it; and its draft tokens do save passes. */
#include "ebb_test.h"

#include <fcntl.h>
#include <math.h>

#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "gguf/gguf.h"
#include "open/engine_state.h"
#include "open/model_file.h"
#include "os/fault.h"
#include "support/tiny_model.h"

#define N_CTX   160u
#define N_START 12u
#define N_FIXED 5u

typedef struct side {
    ebb_engine  *engine;
    ebb_session *s;
} side;

/* A model with a draft model, and the same without. */
typedef struct pair {
    char      *bytes, *draft_bytes;
    ebb_model *model, *draft;
    side       with, plain;
} pair;

static char path[64], draft_path[64];

static void open_side(const ebb_model *m, ebb_engine_opts o, side *out)
{
    ebb_error err = { 0 };

    o.n_ctx = N_CTX;
    o.n_threads = 2;
    o.no_kv_cache = !o.kv_cache_dir;
    if (ebb_engine_open(m, &o, NULL, NULL, &out->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(out->engine, &out->s, &err), EBB_OK);
}

static void open_sides(pair *p, ebb_engine_opts o)
{
    ebb_engine_opts plain = o;

    o.draft = p->draft;
    plain.no_speculation = true;
    open_side(p->model, o, &p->with);
    open_side(p->model, plain, &p->plain);
    assert_true(ebb_draft_model_is_open(p->with.engine));
}

static void open_pair(pair *p, const ebb_tiny_opts *tiny, const ebb_tiny_opts *draft, ebb_engine_opts o)
{
    p->model = ebb_tiny_open(tiny, &p->bytes);
    p->draft = ebb_tiny_open(draft, &p->draft_bytes);
    open_sides(p, o);
}

static void write_files(const ebb_tiny_opts *tiny, const ebb_tiny_opts *draft)
{
    assert_true(ebb_tiny_write(tiny, path));
    assert_true(ebb_tiny_write(draft, draft_path));
}

static void open_written(pair *p, ebb_engine_opts o)
{
    p->bytes = p->draft_bytes = NULL;
    assert_int_equal(ebb_model_open(path, &p->model, NULL), EBB_OK);
    assert_int_equal(ebb_model_open(draft_path, &p->draft, NULL), EBB_OK);
    open_sides(p, o);
}

/* The same, but both are files. */
static void open_files(pair *p, const ebb_tiny_opts *tiny, const ebb_tiny_opts *draft, ebb_engine_opts o)
{
    write_files(tiny, draft);
    open_written(p, o);
}

static void close_side(side *s)
{
    ebb_session_free(s->s);
    ebb_engine_close(s->engine);
}

static void close_pair(pair *p)
{
    close_side(&p->with);
    close_side(&p->plain);
    ebb_model_close(p->model);
    ebb_model_close(p->draft);
    free(p->bytes);
    free(p->draft_bytes);
}

static void check_same(const pair *p)
{
    size_t n_a, n_b;
    const ebb_token *a = ebb_session_ids(p->with.s, &n_a), *b = ebb_session_ids(p->plain.s, &n_b);

    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a * sizeof *a);
    assert_non_null(ebb_session_logits(p->with.s));
    assert_memory_equal(ebb_session_logits(p->with.s), ebb_session_logits(p->plain.s), EBB_TINY_VOCAB * sizeof(float));
}

static void sync_both(pair *p, const ebb_token *ids, size_t n)
{
    assert_int_equal(ebb_session_sync(p->with.s, ids, n, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(p->plain.s, ids, n, NULL, NULL), EBB_OK);
    check_same(p);
}

static void start(pair *p)
{
    ebb_token ids[N_START];

    for (uint32_t i = 0; i < N_START; i++)
        ids[i] = (ebb_token)(i * 29 % 250);
    sync_both(p, ids, N_START);
}

/* Both choose n tokens by the same sampler and agree. */
static void answer(pair *p, const ebb_sampler_params *how, uint32_t n)
{
    ebb_sampler *a = ebb_sampler_new(how, EBB_TINY_VOCAB), *b = ebb_sampler_new(how, EBB_TINY_VOCAB);

    for (uint32_t i = 0; i < n; i++) {
        ebb_token id = ebb_session_sample(p->with.s, a);

        assert_int_equal(ebb_session_sample(p->plain.s, b), id);
        assert_int_equal(ebb_session_append(p->with.s, id, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(p->plain.s, id, NULL), EBB_OK);
        check_same(p);
    }
    ebb_sampler_free(a);
    ebb_sampler_free(b);
}

static ebb_sampler_params greedy(void)
{
    ebb_sampler_params how = ebb_sampler_params_default();

    how.temp = 0;
    return how;
}

static ebb_sampler_params sampled(void)
{
    ebb_sampler_params how = ebb_sampler_params_default();

    how.temp = 1;
    how.repeat_penalty = 1.1f;
    how.seed = 7;
    return how;
}

static ebb_stats stats_of(const side *a)
{
    ebb_stats st;

    ebb_engine_stats(a->engine, &st);
    return st;
}

/* -- Bits -------------------------------------------------------------------------- */

static void same_bits_for_every_architecture(void **state)
{
    ebb_engine_opts o = { .n_draft = N_FIXED };
    ebb_sampler_params how = sampled(), likeliest = greedy();

    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = { .arch = ebb_tiny_archs[i], .type = EBB_TYPE_F16 };
        ebb_tiny_opts draft = { .arch = ebb_tiny_archs[i], .type = EBB_TYPE_Q8_0 };
        pair p;

        if (i % ebb_test_one_in(8) != 0)
            continue;
        open_pair(&p, &tiny, &draft, o);
        start(&p);
        answer(&p, &likeliest, 24);
        answer(&p, &how, 24);
        if (stats_of(&p.with).n_drafted == 0)
            fail_msg("%s: nothing was guessed", tiny.arch);
        close_pair(&p);
    }
}

/* Resident, streamed, in every type of K and V; to the last place of the context. */
static void same_bits_streamed(void **state)
{
    static const ebb_kv_type kinds[] = { EBB_KV_F16, EBB_KV_Q8_0, EBB_KV_Q4_0, EBB_KV_F32 };
    ebb_tiny_opts tiny = { .type = EBB_TYPE_F16, .n_layers = 4 }, draft = { .type = EBB_TYPE_Q4_0, .n_layers = 4 };
    ebb_sampler_params how = sampled();

    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        ebb_engine_opts o = { .n_draft = N_FIXED, .has_kv = true, .kv_k = kinds[i / 2], .kv_v = kinds[i / 2],
                              .has_resident = true,
                              .resident = i % 2 ? 4 : 1 };
        pair p;

        open_files(&p, &tiny, &draft, o);
        start(&p);
        answer(&p, &how, N_CTX - N_START);
        assert_int_equal(ebb_session_append(p.with.s, 1, NULL), EBB_CONTEXT);
        check_same(&p);
        assert_true(stats_of(&p.with).n_drafted > 0);
        close_pair(&p);
    }
}

/* As many draft tokens as pay, whatever that is on the machine at this moment. */
static void same_bits_at_its_own_pace(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_F32, .n_layers = 6,
                           .seed = 5 }, draft = { .type = EBB_TYPE_Q4_0, .n_layers = 1, .seed = 9 };
    ebb_sampler_params how = sampled(), likeliest = greedy();
    pair p;

    (void)state;
    open_pair(&p, &tiny, &draft, (ebb_engine_opts){ 0 });
    start(&p);
    answer(&p, &likeliest, 70);
    answer(&p, &how, 70);
    close_pair(&p);
}

/* -- What it saves ------------------------------------------------------------------ */

/* Its own draft: every draft token is accepted, and a pass brings k + 1 tokens. */
static void itself_is_always_right(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    ebb_sampler_params how = greedy();
    uint64_t before;
    pair p;

    (void)state;
    open_pair(&p, &tiny, &tiny, (ebb_engine_opts){ .n_draft = N_FIXED });
    start(&p);
    p.with.s->lookup.n_pause = UINT32_MAX;       /* no prompt lookup */
    before = stats_of(&p.with).n_passes;
    answer(&p, &how, 60);
    assert_int_equal(stats_of(&p.with).n_passes - before, 10);
    assert_int_equal(stats_of(&p.with).n_drafted, 50);
    assert_int_equal(stats_of(&p.with).n_accepted, 50);
    close_pair(&p);
}

/* Also where tokens are drawn: with the numbers that its host will draw by.  (Of the same K and V, that is.) */
static void it_draws_as_its_host(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    ebb_engine_opts o = { .n_draft = N_FIXED, .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q8_0 };
    ebb_sampler_params how = sampled();
    ebb_stats st;
    pair p;

    (void)state;
    open_pair(&p, &tiny, &tiny, o);
    start(&p);
    p.with.s->lookup.n_pause = UINT32_MAX;
    answer(&p, &how, 80);
    st = stats_of(&p.with);
    if (st.n_accepted < 40 || st.n_drafted - st.n_accepted > N_FIXED)
        fail_msg("%u of %u were right", (unsigned)st.n_accepted, (unsigned)st.n_drafted);
    close_pair(&p);
}

/* A draft that is often right but not always, for its K and V are other ones: with branches beside its chains there are
 * fewer passes for the same text. */
static void branches_save_passes(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    ebb_engine_opts o = { .n_draft = N_FIXED, .has_kv = true, .kv_k = EBB_KV_Q4_0, .kv_v = EBB_KV_Q4_0 };
    uint64_t n_passes[2], n_branched = 0;

    (void)state;
    for (uint32_t with = 0; with < 2; with++) {
        ebb_sampler_params how = sampled();
        uint64_t before;
        pair p;

        open_pair(&p, &tiny, &tiny, o);
        p.with.engine->draft_model.draft_length.n_fixed_branches = with ? EBB_DRAFT_BRANCHES : 0;
        start(&p);
        p.with.s->lookup.n_pause = UINT32_MAX;
        before = stats_of(&p.with).n_passes;
        for (how.seed = 1; how.seed <= 4; how.seed++)
            answer(&p, &how, 35);
        n_passes[with] = stats_of(&p.with).n_passes - before;
        n_branched += stats_of(&p.with).n_branched;
        close_pair(&p);
    }
    print_message("%u passes, with branches %u; %u tokens in branches\n", (unsigned)n_passes[0], (unsigned)n_passes[1],
                  (unsigned)n_branched);
    assert_true(n_branched > 0 && n_passes[1] < n_passes[0]);
}

/* -- What comes between --------------------------------------------------------------- */

/* Edits, undo, branches, another session, an evaluation, and what is forgotten. */
static void anything_may_come_between(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    ebb_sampler_params how = greedy();
    ebb_token ids[40];
    ebb_session *other;
    pair p;

    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        ids[i] = (ebb_token)(i * 31 % 250);
    open_pair(&p, &tiny, &tiny, (ebb_engine_opts){ .n_draft = N_FIXED });
    assert_int_equal(ebb_session_new(p.with.engine, &other, NULL), EBB_OK);
    for (uint32_t round = 0; round < 8; round++) {
        sync_both(&p, ids, 40 - 4 * round);      /* cut */
        answer(&p, &how, 7 + round);
        ids[20] = (ebb_token)round;              /* another branch */
        sync_both(&p, ids, 33);
        answer(&p, &how, 3);
        assert_int_equal(ebb_session_sync(other, ids, 11, NULL, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(other, 5, NULL), EBB_OK);
        answer(&p, &how, 4);
        assert_int_equal(ebb_session_shift(p.with.s, 6, 9, NULL), EBB_OK);
        assert_int_equal(ebb_session_shift(p.plain.s, 6, 9, NULL), EBB_OK);
        answer(&p, &how, 8);
    }
    assert_true(stats_of(&p.with).n_accepted > 0);
    ebb_session_free(other);
    close_pair(&p);
}

/* A stop reaches the draft model, too, and costs nothing but the pass. */
static void a_stop_is_no_end(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    ebb_sampler_params how = greedy();
    pair p;

    (void)state;
    open_pair(&p, &tiny, &tiny, (ebb_engine_opts){ .n_draft = N_FIXED });
    start(&p);
    for (int i = 0; i < 5; i++) {
        ebb_engine_cancel(p.with.engine);
        assert_int_equal(ebb_session_append(p.with.s, 3, NULL), EBB_CANCELED);
        assert_true(ebb_draft_model_is_open(p.with.engine));
        ebb_engine_cancel_clear(p.with.engine);
        start(&p);
        answer(&p, &how, 9);
    }
    assert_true(stats_of(&p.with).n_accepted > 0);
    close_pair(&p);
}

/* The file is cut off while it is in use: one line, and answers go on. */
static void a_broken_file_ends_it(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 }, draft = { .type = EBB_TYPE_Q4_0 };
    ebb_sampler_params how = greedy();
    pair p;

    (void)state;
    open_files(&p, &tiny, &draft, (ebb_engine_opts){ .n_draft = N_FIXED });
    start(&p);
    answer(&p, &how, 9);
    assert_int_equal(truncate(draft_path, 4096), 0);
    answer(&p, &how, 20);
    assert_false(ebb_draft_model_is_open(p.with.engine));
    assert_int_equal(stats_of(&p.with).memory_event.code, EBB_MEMORY_DRAFT_ENDED);
    assert_int_equal(stats_of(&p.with).draft_bytes, 0);
    close_pair(&p);
}

/* Of the draft model's embedding, all rows from that of `first` on are NaN; n_embd: of the draft. */
static void spoil_embedding(uint32_t first, uint32_t n_embd)
{
    const float nan_value = NAN;
    const ebb_gguf_tensor *t;
    ebb_model *m;
    int fd = open(draft_path, O_WRONLY);

    assert_int_equal(ebb_model_open(draft_path, &m, NULL), EBB_OK);
    t = ebb_gguf_find_tensor(ebb_model_gguf(m), "token_embd.weight");
    assert_non_null(t);
    assert_true(fd >= 0);
    for (uint32_t id = first; id < EBB_TINY_VOCAB; id++)
        assert_int_equal(pwrite(fd, &nan_value, sizeof nan_value,
                                (off_t)(t->offset + (uint64_t)id * n_embd * sizeof nan_value)), sizeof nan_value);
    close(fd);
    ebb_model_close(m);
}

/* It can compute what is there, and not what it guesses: it ends while a tree is grown, of which more is wanted. */
static void what_it_guesses_may_end_it(void **state)
{
    const uint32_t n_known = 64;
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 },
                  draft = { .type = EBB_TYPE_F32, .n_layers = 1, .n_embd = 64, .n_ff = 64, .n_head = 2, .n_head_kv = 1,
                            .head_dim = 32 };
    ebb_token ids[N_START];
    pair p;

    (void)state;
    write_files(&tiny, &draft);
    spoil_embedding(n_known, draft.n_embd);
    open_written(&p, (ebb_engine_opts){ .n_draft = N_FIXED });
    p.with.s->lookup.n_pause = UINT32_MAX;
    p.with.engine->draft_model.draft_length.n_fixed_branches = 3;
    for (uint32_t i = 0; i < N_START; i++)
        ids[i] = (ebb_token)(i * 29 % n_known);
    sync_both(&p, ids, N_START);
    for (ebb_token id = 1; id < 20; id++) {
        assert_int_equal(ebb_session_append(p.with.s, id, NULL), EBB_OK);
        assert_int_equal(ebb_session_append(p.plain.s, id, NULL), EBB_OK);
        check_same(&p);
    }
    assert_true(stats_of(&p.with).n_drafted > 0);        /* what it had guessed until then */
    assert_false(ebb_draft_model_is_open(p.with.engine));
    assert_int_equal(stats_of(&p.with).memory_event.code, EBB_MEMORY_DRAFT_ENDED);
    close_pair(&p);
}

/* Every seventh call to the system from the nth on fails once while it is opened and used: an error of the host has
 * words, one of the draft ends that, and what is answered has the same bits. */
static void fail_every_seventh(pair *p, const ebb_engine_opts *o, void (*fail_nth)(int n), int first, int *n_opened,
                               int *n_without)
{
    ebb_sampler_params how = greedy();
    bool was_reached = true;

    for (int n = first; was_reached; n += 7) {
        const ebb_token ids[] = { 1, 2, 3 };
        ebb_error err = { 0 };
        ebb_status st;

        fail_nth(n);
        st = ebb_engine_open(p->model, o, NULL, NULL, &p->with.engine, &err);
        if (st == EBB_OK && ebb_session_new(p->with.engine, &p->with.s, NULL) == EBB_OK) {
            if (ebb_session_sync(p->with.s, ids, 3, NULL, NULL) == EBB_OK)
                (void)!ebb_session_append(p->with.s, 4, NULL);
            was_reached = ebb_os_fail_off();
            start(p);
            answer(p, &how, 7);
            *n_without += !ebb_draft_model_is_open(p->with.engine);
            (*n_opened)++;
            close_side(&p->with);
        } else {
            was_reached = ebb_os_fail_off();
            assert_true(err.msg[0] != '\0');
        }
    }
}

/* Calls of all threads: which is the nth is chance.  Those of this thread, which opens the draft and reads from it, are
 * always the same: some are the draft's. */
static void faults_end_it_at_most(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 }, draft = { .type = EBB_TYPE_Q4_0 };
    ebb_engine_opts o = { .n_draft = N_FIXED, .n_ctx = N_CTX, .n_threads = 2, .no_kv_cache = true, .has_resident = true,
                          .resident = 2 };
    int n_without = 0, n_opened = 0;
    pair p;

    (void)state;
    open_files(&p, &tiny, &draft, o);
    close_side(&p.with);
    o.draft = p.draft;
    fail_every_seventh(&p, &o, ebb_os_fail_nth, 1, &n_opened, &n_without);
    n_opened = n_without = 0;
    fail_every_seventh(&p, &o, ebb_os_fail_nth_here, 1, &n_opened, &n_without);
    print_message("%d of %d went on without it\n", n_without, n_opened);
    assert_true(n_opened > 20);
    assert_true(n_without > 0);
    open_side(p.model, o, &p.with);
    close_pair(&p);
}

/* -- Memory ------------------------------------------------------------------------------ */

/* Given away by the pass or by the monitor, in the middle of an answer, and back again. */
static void it_goes_first_and_comes_back(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 4 }, draft = { .type = EBB_TYPE_Q4_0 };
    ebb_sampler_params how = greedy();
    pair p;

    (void)state;
    open_files(&p, &tiny, &draft, (ebb_engine_opts){ .n_draft = N_FIXED, .has_resident = true, .resident = 2 });
    start(&p);
    answer(&p, &how, 9);
    assert_true(stats_of(&p.with).draft_bytes > 0);
    assert_true(ebb_draft_model_release(p.with.engine, 0));
    assert_false(ebb_draft_model_release(p.with.engine, 0));
    assert_int_equal(stats_of(&p.with).draft_bytes, 0);
    answer(&p, &how, 9);
    ebb_draft_model_reload(p.with.engine);
    assert_true(ebb_draft_model_is_open(p.with.engine));
    answer(&p, &how, 9);
    assert_true(ebb_draft_model_evict(p.with.engine) > 0);
    answer(&p, &how, 3);
    ebb_draft_model_follow_monitor(p.with.engine);
    assert_false(ebb_draft_model_is_open(p.with.engine));
    ebb_draft_model_reload(p.with.engine);
    answer(&p, &how, 9);
    assert_true(ebb_draft_model_is_open(p.with.engine));
    close_pair(&p);
}

/* -- Who can ------------------------------------------------------------------------------ */

static ebb_status plan(const ebb_model *m, const ebb_model *draft, uint64_t ram, ebb_plan *p, ebb_error *err)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .draft = draft, .ram_bytes = ram };
    ebb_machine machine = { .available_bytes = (uint64_t)8 << 30, .n_cpus = 2 };

    return ebb_plan_make(m, &o, &machine, p, err);
}

/* Another token 262: the error names both files and the token. */
/* Its guesses are wrong again and again, and its memory would keep layers: it ends, and they get it.  The text is the
 * same, in the middle of an answer too. */
static void it_gives_its_place_to_layers(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_F32, .n_layers = 12, .n_embd = 256, .n_ff = 1024 },
                  draft = { .type = EBB_TYPE_Q4_0, .n_layers = 1, .seed = 9 };
    ebb_sampler_params how = greedy();
    uint64_t streamed;
    char line[200];
    ebb_stats st;
    pair p;

    (void)state;
    open_files(&p, &tiny, &draft, (ebb_engine_opts){ .ram_bytes = (uint64_t)60 << 20 });
    start(&p);
    answer(&p, &how, 3);
    streamed = p.with.engine->plan.stream_bytes;
    assert_true(ebb_draft_model_is_open(p.with.engine));
    assert_true(streamed > 0);
    p.with.engine->draft_model.draft_length.n_lost = 2;
    answer(&p, &how, 40);
    assert_false(ebb_draft_model_is_open(p.with.engine));
    assert_true(p.with.engine->plan.stream_bytes < streamed);
    assert_int_equal(p.with.engine->plan.draft_bytes, 0);
    st = stats_of(&p.with);
    assert_int_equal(st.memory_event.code, EBB_MEMORY_DRAFT_ENDED);
    assert_non_null(strstr(ebb_memory_event_text(&st.memory_event, line, sizeof line), "layers get its memory"));
    assert_int_equal(ebb_engine_set_budget(p.with.engine, (uint64_t)60 << 20, NULL, NULL, NULL), EBB_OK);
    assert_false(ebb_draft_model_is_open(p.with.engine));        /* nor does a new plan bring it back */
    close_pair(&p);
}

static void another_vocabulary_is_refused(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0 };
    char *bytes, *other, *at;
    size_t n;
    ebb_error err = { 0 };
    ebb_model *m = ebb_tiny_open(&tiny, &bytes), *draft;
    ebb_engine *e;
    ebb_plan p;

    (void)state;
    other = ebb_tiny_bytes(&tiny, &n);
    at = memmem(other, n, "<|im_end|>", 10);
    assert_non_null(at);
    memcpy(at, "<|in_end|>", 10);
    assert_int_equal(ebb_model_open_memory(other, n, "other.gguf", &draft, &err), EBB_OK);
    assert_int_equal(plan(m, draft, 0, &p, &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "other.gguf"));
    assert_non_null(strstr(err.msg, ebb_model_get_info(m)->path));
    assert_non_null(strstr(err.msg, "262"));
    assert_int_equal(ebb_engine_open(m, &(ebb_engine_opts){ .draft = draft }, NULL, NULL, &e, &err), EBB_USAGE);
    assert_int_equal(ebb_engine_open(m, &(ebb_engine_opts){ .draft = draft,
                                                            .no_speculation = true }, NULL, NULL, &e, &err), EBB_OK);
    ebb_engine_close(e);
    ebb_model_close(draft);
    ebb_model_close(m);
    free(other);
    free(bytes);
}

/* Recurrent layers on either side: what is taken back are the updates of a state, which the plans count. */
static void states_take_back(void **state)
{
    ebb_tiny_opts tiny = { .arch = "qwen35", .type = EBB_TYPE_Q8_0 };
    ebb_sampler_params how = greedy();
    uint64_t before;
    pair p;

    (void)state;
    open_pair(&p, &tiny, &tiny, (ebb_engine_opts){ .n_draft = N_FIXED });
    start(&p);
    p.with.s->lookup.n_pause = UINT32_MAX;
    before = stats_of(&p.with).n_passes;
    answer(&p, &how, 60);
    assert_int_equal(stats_of(&p.with).n_passes - before, 10);
    assert_int_equal(stats_of(&p.with).n_accepted, 50);
    /* a state for each of so many tokens would take */
    assert_true(p.with.engine->net.state_log_bytes * 3 < p.with.engine->net.state_bytes);
    close_pair(&p);
}

/* -- The plan ------------------------------------------------------------------------------ */

/* It is counted, and what it takes are layers: context and KV stay what they would be. */
static void the_plan_counts_it(void **state)
{
    ebb_tiny_opts big = { .type = EBB_TYPE_F32, .n_layers = 24, .n_embd = 512,
                          .n_ff = 2048 }, small = { .type = EBB_TYPE_Q4_0 };
    char *a, *b;
    ebb_model *m, *d = ebb_tiny_open(&small, &b);
    ebb_plan with, without;
    uint64_t full;

    (void)state;
    assert_true(ebb_tiny_write(&big, path));
    a = NULL;
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    assert_int_equal(plan(m, NULL, 0, &without, NULL), EBB_OK);
    assert_int_equal(plan(m, d, 0, &with, NULL), EBB_OK);
    assert_true(with.draft_bytes > 0);
    assert_true(with.total_bytes >= without.total_bytes + with.draft_bytes);
    full = without.total_bytes;
    for (uint64_t ram = full + ((uint64_t)8 << 20); ram > full / 2; ram -= (uint64_t)4 << 20) {
        assert_int_equal(plan(m, NULL, ram, &without, NULL), EBB_OK);
        assert_int_equal(plan(m, d, ram, &with, NULL), EBB_OK);
        assert_int_equal(with.fits, without.fits);
        assert_int_equal(with.n_ctx, without.n_ctx);
        assert_int_equal(with.kv_k, without.kv_k);
        assert_true(with.draft_why[0] || !with.fits);
        assert_true(with.total_bytes <= ram || !with.fits);
        assert_true(with.stream_bytes >= without.stream_bytes);
        if (with.draft_bytes && with.stream_bytes > without.stream_bytes)
            assert_true(with.draft_tok_s > without.predicted_decode_tok_s);
    }
    ebb_model_close(m);
    ebb_model_close(d);
    free(a);
    free(b);
}

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/var/tmp/ebb-helper-XXXXXX.gguf");
    snprintf(draft_path, sizeof draft_path, "/var/tmp/ebb-helper-draft-XXXXXX.gguf");
    return close(mkstemps(path, 5)) || close(mkstemps(draft_path, 5));   /* names of their own */
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    unlink(draft_path);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_every_architecture),
        cmocka_unit_test(same_bits_streamed),
        cmocka_unit_test(same_bits_at_its_own_pace),
        cmocka_unit_test(itself_is_always_right),
        cmocka_unit_test(it_draws_as_its_host),
        cmocka_unit_test(branches_save_passes),
        cmocka_unit_test(anything_may_come_between),
        cmocka_unit_test(a_stop_is_no_end),
        cmocka_unit_test(a_broken_file_ends_it),
        cmocka_unit_test(what_it_guesses_may_end_it),
        cmocka_unit_test(faults_end_it_at_most),
        cmocka_unit_test(it_goes_first_and_comes_back),
        cmocka_unit_test(it_gives_its_place_to_layers),
        cmocka_unit_test(another_vocabulary_is_refused),
        cmocka_unit_test(states_take_back),
        cmocka_unit_test(the_plan_counts_it),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
