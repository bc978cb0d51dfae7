/* Memory of K and V that the context does not use yet keeps layers there (memory/lend.h): within what the plan sets
 * aside at every moment, given back as the context grows, each step said, and the bits are those of a model that is all
 * in memory. */
#include "ebb_test.h"

#include "ebb/experimental/plan.h"
#include "memory/lend.h"
#include "open/engine_state.h"
#include "os/fault.h"
#include "support/tiny_engine.h"

#ifdef __SANITIZE_THREAD__
enum { N_CTX = 1024 };
#else
enum { N_CTX = 2048 };
#endif
enum { CHUNK = 64 };

#define MIB ((uint64_t)1 << 20)

static char path[64];
static ebb_token ids[N_CTX];

typedef struct lend_fixture {
    ebb_model   *model;
    ebb_engine  *engine;
    ebb_session *s;
} lend_fixture;

static int write_model(void **state)
{
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 16, .n_embd = 512, .n_head = 8, .n_head_kv = 8,
                           .head_dim = 64, .n_ff = 1024, .n_ctx = N_CTX, .seed = 18 };

    (void)state;
    strcpy(path, "/var/tmp/ebb-lend-XXXXXX.gguf");
    close(mkstemps(path, 5));
    fill_ids(ids, N_CTX, 3);
    return ebb_tiny_write(&tiny, path) ? 0 : -1;
}

static int remove_model(void **state)
{
    (void)state;
    return remove(path);
}

static ebb_engine_opts options(uint64_t ram_bytes)
{
    return (ebb_engine_opts){ .n_ctx = N_CTX, .n_batch = CHUNK, .n_threads = 2, .has_kv = true, .kv_k = EBB_KV_Q8_0,
                              .kv_v = EBB_KV_Q8_0, .io = EBB_IO_PREAD, .no_kv_cache = true, .no_speculation = true,
                              .ram_bytes = ram_bytes };
}

static void open_lending(lend_fixture *f, uint64_t ram_bytes)
{
    ebb_engine_opts o = options(ram_bytes);
    ebb_error err = { 0 };

    if (ebb_model_open(path, &f->model, &err) != EBB_OK ||
        ebb_engine_open(f->model, &o, NULL, NULL, &f->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(f->engine, &f->s, &err), EBB_OK);
}

static void close_lending(lend_fixture *f)
{
    ebb_session_free(f->s);
    ebb_engine_close(f->engine);
    ebb_model_close(f->model);
}

/* A budget in which nearly no layer fits beside all of K and V. */
static uint64_t tight_budget(void)
{
    ebb_machine machine = { .available_bytes = UINT64_MAX / 4, .n_cpus = 2 };
    ebb_engine_opts o = options(0);
    ebb_model *m;
    ebb_plan p;

    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    o.has_resident = true;
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    ebb_model_close(m);
    return p.total_bytes + MIB;
}

static uint64_t count_lent(const lend_fixture *f)
{
    ebb_stats s;

    ebb_engine_stats(f->engine, &s);
    return s.kv_lent_bytes;
}

/* What always holds. */
static void check_rules(const lend_fixture *f)
{
    uint64_t lent = count_lent(f), taken = ebb_kv_taken_bytes(f->engine->kv);
    const char *rule = ebb_kv_check(f->engine->kv);

    rule = rule ? rule : ebb_res_check_rules(f->engine->res);
    if (rule)
        fail_msg("%s", rule);
    assert_true(lent == 0 || taken + lent <= f->engine->plan.kv_bytes);
}

static void sync_to(lend_fixture *f, const ebb_token *of, uint32_t n)
{
    ebb_error err = { 0 };

    if (ebb_session_sync(f->s, of, n, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static void test_gives_way_step_by_step_with_the_same_bits(void **state)
{
    lend_fixture whole, lending;
    uint64_t lent, all;
    uint32_t n_steps = 0, number;
    ebb_stats s;

    (void)state;
    open_lending(&whole, 0);
    open_lending(&lending, tight_budget());
    assert_true(lending.engine->plan.stream_bytes > 0);
    lent = all = count_lent(&lending);
    assert_true(all > 0);
    assert_int_equal(all, lending.engine->plan.lent_bytes);
    assert_int_equal(ebb_res_lent_read_bytes(lending.engine->res), lending.engine->plan.lent_read_bytes);
    ebb_engine_stats(lending.engine, &s);
    assert_int_equal(s.memory_event.code, EBB_MEMORY_PLANNED);   /* the first line is the plan's */
    number = s.memory_event.number;
    for (uint32_t n = CHUNK; n <= N_CTX; n += CHUNK) {
        uint64_t now;

        sync_to(&whole, ids, n);
        sync_to(&lending, ids, n);
        assert_memory_equal(ebb_session_logits(whole.s), ebb_session_logits(lending.s),
                            EBB_TINY_VOCAB * sizeof(float));
        check_rules(&lending);
        now = count_lent(&lending);
        ebb_engine_stats(lending.engine, &s);
        assert_true(now <= lent);
        if (now < lent) {                        /* said, with its values */
            char line[EBB_MEMORY_EVENT_TEXT];

            n_steps++;
            assert_int_equal(s.memory_event.code, EBB_MEMORY_KV_TAKEN_BACK);
            assert_in_range(s.memory_event.number - number, 1, 2);       /* a short context begins with two steps */
            assert_true(s.memory_event.number - number == 2 ? s.memory_event.bytes < lent - now
                                                            : s.memory_event.bytes == lent - now);
            number = s.memory_event.number;
            assert_int_equal(s.memory_event.bytes_left, now);
            assert_true(s.memory_event.n_layers > 0);
            assert_non_null(strstr(ebb_memory_event_text(&s.memory_event, line, sizeof line), "the context grows: "));
        }
        lent = now;
    }
    assert_true(n_steps >= 3);
    assert_int_equal(lent, 0);                   /* all of it is K and V's now */
    assert_int_equal(ebb_res_lent_read_bytes(lending.engine->res), 0);
    close_lending(&whole);
    close_lending(&lending);
}

/* The plan says both ends; a full context reads what it read without lending. */
static void test_plan_has_both_ends(void **state)
{
    ebb_machine machine = { .available_bytes = UINT64_MAX / 4, .n_cpus = 2, .memory_bytes_s = 20e9, .disk_bytes_s = 1e9,
                            .disk_busy_bytes_s = 1e9, .busy_share = 1 };
    ebb_engine_opts o = options(tight_budget()), fixed;
    ebb_plan p, without;
    ebb_model *m;

    (void)state;
    assert_int_equal(ebb_model_open(path, &m, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, NULL), EBB_OK);
    fixed = o;
    fixed.has_resident = fixed.resident_is_percent = true;       /* who says how many stay gets no more */
    fixed.resident = 1;
    assert_int_equal(ebb_plan_make(m, &fixed, &machine, &without, NULL), EBB_OK);
    assert_true(p.lent_bytes > 0 && without.lent_bytes == 0);
    assert_true(p.lent_read_bytes <= p.stream_bytes && p.lent_read_bytes <= p.lent_bytes);
    assert_true(p.lent_bytes < p.kv_bytes && p.total_bytes <= p.budget_bytes);
    assert_true(p.n_resident_first > p.n_resident && without.n_resident_first == without.n_resident);
    assert_true(p.predicted_decode_tok_s > without.predicted_decode_tok_s);
    assert_true(p.predicted_full_tok_s < p.predicted_decode_tok_s);
    assert_true(p.predicted_full_tok_s >= without.predicted_full_tok_s * 0.999);
    assert_non_null(strstr(p.why, "beside an empty one"));
    /* A bit of the way is a speed between both. */
    for (uint32_t n = 0; n + CHUNK <= N_CTX; n += CHUNK)
        assert_true(ebb_plan_decode_tok_s_at(&p, &machine, n) >= ebb_plan_decode_tok_s_at(&p, &machine, n + CHUNK));
    ebb_model_close(m);
}

/* Every group once, what is outside the layers first. */
static void test_order(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 9; n++) {
        uint32_t seen = 0;

        assert_int_equal(ebb_plan_lend_order(n, 0), n);
        for (uint32_t i = 0; i <= n; i++)
            seen |= 1u << ebb_plan_lend_order(n, i);
        assert_int_equal(seen, (1u << (n + 1)) - 1);
    }
}

/* A second conversation takes the memory of the first one's blocks before that of layers; and once nobody holds them,
 * layers take it again where the blocks can be found on disk. */
static void test_conversations_share_memory(void **state)
{
    lend_fixture f;
    ebb_session *second;
    uint64_t lent, taken, n_bytes;

    (void)state;
    open_lending(&f, tight_budget());
    sync_to(&f, ids, N_CTX / 2);
    lent = count_lent(&f);
    taken = ebb_kv_taken_bytes(f.engine->kv);
    assert_true(lent > 0);
    ebb_session_free(f.s);
    assert_int_equal(ebb_session_new(f.engine, &second, NULL), EBB_OK);
    f.s = second;
    for (uint32_t n = CHUNK; n <= N_CTX / 4; n += CHUNK)
        sync_to(&f, ids + N_CTX / 2, n);         /* other ids: nothing of the first one fits */
    check_rules(&f);
    assert_true(ebb_kv_taken_bytes(f.engine->kv) <= taken + lent);
    assert_int_equal(count_lent(&f), lent);
    /* Without a cache on disk what can be found is not given away. */
    assert_false(ebb_lend_is_due(f.engine, &n_bytes));
    assert_true(ebb_kv_unheld_bytes(f.engine->kv) > 0);
    ebb_kv_release_unheld(f.engine->kv, UINT64_MAX);
    assert_int_equal(ebb_kv_unheld_bytes(f.engine->kv), 0);
    while (ebb_lend_is_due(f.engine, &n_bytes)) {
        uint64_t before = count_lent(&f);

        ebb_lend_step(f.engine);
        assert_true(count_lent(&f) > before);
        check_rules(&f);
    }
    assert_true(count_lent(&f) > lent);
    sync_to(&f, ids, N_CTX / 2);
    check_rules(&f);
    close_lending(&f);
}

/* Who needs memory gets that of lent layers first, and what stays stays; then it is lent again. */
static void test_goes_first_under_pressure(void **state)
{
    lend_fixture f;
    ebb_res_stats before, after;
    uint64_t n_bytes;
    uint32_t n;

    (void)state;
    open_lending(&f, tight_budget() + 3 * MIB);
    sync_to(&f, ids, CHUNK);
    ebb_res_get_stats(f.engine->res, &before);
    assert_true(before.pinned_bytes > before.lent_bytes && before.lent_bytes > 0);
    assert_true(ebb_res_evict(f.engine->res, before.lent_bytes, &n) >= before.lent_bytes);
    assert_true(n > 1);
    ebb_res_get_stats(f.engine->res, &after);
    assert_int_equal(after.lent_bytes, 0);
    assert_int_equal(after.pinned_bytes, before.pinned_bytes - before.lent_bytes);
    check_rules(&f);
    sync_to(&f, ids, 2 * CHUNK);
    for (n = 0; ebb_lend_is_due(f.engine, &n_bytes); n++)
        ebb_lend_step(f.engine);
    assert_true(n > 1);
    sync_to(&f, ids, 3 * CHUNK);
    check_rules(&f);
    close_lending(&f);
}

/* Another budget in the middle of a conversation: lent anew, as much as K and V leave. */
static void test_another_budget(void **state)
{
    lend_fixture f;
    uint64_t lent;
    ebb_error err = { 0 };

    (void)state;
    open_lending(&f, tight_budget());
    sync_to(&f, ids, N_CTX / 4);
    lent = count_lent(&f);
    if (ebb_engine_set_budget(f.engine, tight_budget() + 2 * MIB, NULL, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    check_rules(&f);
    assert_true(count_lent(&f) > 0 && lent > 0);
    sync_to(&f, ids, N_CTX / 2);
    check_rules(&f);
    if (ebb_engine_set_budget(f.engine, 4096 * MIB, NULL, NULL, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(count_lent(&f), 0);         /* all layers stay */
    sync_to(&f, ids, N_CTX);
    check_rules(&f);
    close_lending(&f);
}

/* No memory for a layer's copy: it is read as it would be. */
static void test_no_memory(void **state)
{
    lend_fixture f;
    float want[EBB_TINY_VOCAB];

    (void)state;
    open_lending(&f, tight_budget());
    sync_to(&f, ids, CHUNK);
    memcpy(want, ebb_session_logits(f.s), sizeof want);
    for (int n = 1; n < 12; n++) {
        ebb_lend_close(f.engine);
        ebb_os_fail_nth(n);
        ebb_lend_open(f.engine);
        ebb_os_fail_off();
        check_rules(&f);
        sync_to(&f, NULL, 0);
        sync_to(&f, ids, CHUNK);
        assert_memory_equal(ebb_session_logits(f.s), want, sizeof want);
    }
    close_lending(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_plan_has_both_ends),
        cmocka_unit_test(test_gives_way_step_by_step_with_the_same_bits),
        cmocka_unit_test(test_conversations_share_memory), cmocka_unit_test(test_goes_first_under_pressure),
        cmocka_unit_test(test_another_budget), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, write_model, remove_model);
}
