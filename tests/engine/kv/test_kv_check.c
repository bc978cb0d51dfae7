/* The checkers of the KV pool: silent while all is well, and each rule's breach has a name. */
#include "ebb_test.h"

#include "base/invariant.h"
#include "kv/kv_impl.h"

static const ebb_kv_layer layers[2] = { { .n_head = 2, .dim_k = 8,
                                          .dim_v = 8 }, { .n_head = 1, .dim_k = 8, .dim_v = 8 } };

/* Two tables that share two full blocks with names and differ in a third; a findable block that nobody holds. */
typedef struct check_fixture {
    ebb_kv         *kv;
    ebb_block_table a, b, gone;
    ebb_kv_pool    *pool;
} check_fixture;

static void name_block(check_fixture *f, const ebb_block_table *t, uint32_t i, uint8_t name)
{
    static const int32_t ids[EBB_KV_BLOCK];
    ebb_block_hash h = { .hash = { name }, .parent_hash = { (uint8_t)(name - 1) }, .ids = ids };

    ebb_kv_set_hash(f->kv, t, EBB_KV_ALL, i, &h);
}

static int open_check_fixture(void **state)
{
    static check_fixture f;
    const ebb_kv_shape shape = { .n_layers = 2, .layers = layers, .k_type = EBB_KV_F16, .v_type = EBB_KV_F16,
                                 .n_ctx = 7 * EBB_KV_BLOCK, .n_batch = 32 };

    memset(&f, 0, sizeof f);
    assert_int_equal(ebb_kv_open(&shape, &f.kv, NULL), EBB_OK);
    assert_int_equal(ebb_block_table_init(&f.a, shape.n_ctx, NULL), EBB_OK);
    assert_int_equal(ebb_block_table_init(&f.b, shape.n_ctx, NULL), EBB_OK);
    assert_int_equal(ebb_block_table_init(&f.gone, shape.n_ctx, NULL), EBB_OK);
    assert_int_equal(ebb_kv_grow(f.kv, &f.a, 2 * EBB_KV_BLOCK + 5, NULL), EBB_OK);
    name_block(&f, &f.a, 0, 1);
    name_block(&f, &f.a, 1, 2);
    ebb_kv_resize_table(f.kv, &f.b, 2 * EBB_KV_BLOCK);
    for (uint32_t i = 0; i < 2; i++)
        ebb_kv_set_block(f.kv, &f.b, EBB_KV_ALL, i, f.a.blocks[EBB_KV_ALL][i]);
    assert_int_equal(ebb_kv_grow(f.kv, &f.b, 2 * EBB_KV_BLOCK + 1, NULL), EBB_OK);
    assert_int_equal(ebb_kv_grow(f.kv, &f.gone, EBB_KV_BLOCK, NULL), EBB_OK);
    name_block(&f, &f.gone, 0, 9);
    ebb_kv_truncate(f.kv, &f.gone, 0);
    f.pool = &f.kv->pools[EBB_KV_ALL];
    *state = &f;
    return 0;
}

static int close_check_fixture(void **state)
{
    check_fixture *f = *state;

    ebb_block_table_fini(f->kv, &f->a);
    ebb_block_table_fini(f->kv, &f->b);
    ebb_block_table_fini(f->kv, &f->gone);
    ebb_kv_close(f->kv);
    return 0;
}

static const char *check_all(const check_fixture *f)
{
    const ebb_block_table *const tables[] = { &f->a, &f->b, &f->gone };
    const char *rule = ebb_kv_check(f->kv);

    for (size_t i = 0; i < 3 && !rule; i++)
        rule = ebb_block_table_check(f->kv, tables[i], tables[i]->n_pos);
    return rule ? rule : ebb_kv_check_refs(f->kv, tables, 3);
}

static void expect_rule(const check_fixture *f, const char *name)
{
    const char *rule = check_all(f);

    assert_non_null(rule);
    if (strncmp(rule, name, strlen(name)) != 0)
        fail_msg("%s was broken, and this was said: %s", name, rule);
}

/* *n is off by one, and as it was again. */
static void expect_count(const check_fixture *f, uint32_t *n, const char *name)
{
    ++*n;
    expect_rule(f, name);
    --*n;
    assert_null(check_all(f));
}

static void expect_flag(const check_fixture *f, bool *flag, const char *name)
{
    *flag = !*flag;
    expect_rule(f, name);
    *flag = !*flag;
    assert_null(check_all(f));
}

static void test_counts(void **state)
{
    check_fixture *f = *state;
    ebb_kv_block *shared = &f->pool->blocks[f->a.blocks[EBB_KV_ALL][0]];

    assert_null(check_all(f));
    expect_count(f, &f->pool->n_free, "KV3");
    expect_count(f, &shared->n_refs, "KV3");
    expect_count(f, &f->kv->spill.n_spilled, "KV5");
    expect_count(f, &f->a.n_blocks, "KV2");
    shared->n_writer_refs = 5;
    expect_rule(f, "KV3");
    shared->n_writer_refs = 0;
}

static void test_lists(void **state)
{
    check_fixture *f = *state;
    uint32_t oldest = f->pool->oldest, next = f->pool->free[0];

    assert_int_not_equal(oldest, EBB_KV_NONE);
    f->pool->oldest = EBB_KV_NONE;
    expect_rule(f, "KV3");
    f->pool->oldest = oldest;
    f->pool->blocks[oldest].older = oldest;
    expect_rule(f, "KV3");
    f->pool->blocks[oldest].older = EBB_KV_NONE;
    f->pool->free[0] = f->a.blocks[EBB_KV_ALL][0];
    expect_rule(f, "KV3");
    f->pool->free[0] = next;
    assert_null(check_all(f));
}

static void test_names(void **state)
{
    check_fixture *f = *state;
    ebb_kv_block *first = &f->pool->blocks[f->a.blocks[EBB_KV_ALL][0]],
                 *second = &f->pool->blocks[f->a.blocks[EBB_KV_ALL][1]];
    uint8_t name = second->hash[0];

    memcpy(second->hash, first->hash, sizeof second->hash);
    expect_rule(f, "KV4");
    second->hash[0] = name;
    assert_null(check_all(f));
    expect_flag(f, &first->is_hashed, "KV4");
    expect_flag(f, &f->pool->blocks[f->a.blocks[EBB_KV_ALL][2]].is_spilled, "KV5");
    expect_flag(f, &first->is_spilled, "KV5");
}

static void test_memory(void **state)
{
    check_fixture *f = *state;

    assert_int_equal(ebb_kv_taken_bytes(f->kv), 5 * f->pool->block_bytes);
    assert_int_equal(ebb_kv_unheld_bytes(f->kv), f->pool->block_bytes);
    expect_flag(f, &f->pool->blocks[f->a.blocks[EBB_KV_ALL][0]].has_memory, "KV6");
    expect_flag(f, &f->pool->blocks[f->pool->free[0]].has_memory, "KV6");
    f->kv->taken_bytes++;
    expect_rule(f, "KV6");
    f->kv->taken_bytes--;
    assert_null(check_all(f));
}

typedef struct room_asked {
    uint32_t n;
    uint64_t last;
} room_asked;

static void make_room(void *arg, uint64_t n_bytes)
{
    room_asked *r = arg;

    r->n++;
    r->last = n_bytes;
}

/* Beyond the limit a block that only can be found is used again; where there is none, the host is asked. */
static void test_limit(void **state)
{
    check_fixture *f = *state;
    uint64_t one = f->pool->block_bytes;
    room_asked asked = { 0 };

    ebb_kv_set_limit(f->kv, 5 * one, (ebb_kv_host){ make_room, &asked });
    assert_int_equal(ebb_kv_grow(f->kv, &f->a, 3 * EBB_KV_BLOCK + 1, NULL), EBB_OK);
    assert_int_equal(asked.n, 0);                /* that of `gone` */
    assert_int_equal(ebb_kv_unheld_bytes(f->kv), 0);
    assert_int_equal(ebb_kv_grow(f->kv, &f->a, 4 * EBB_KV_BLOCK + 1, NULL), EBB_OK);
    assert_int_equal(asked.n, 1);
    assert_int_equal(asked.last, 6 * one);
    assert_null(check_all(f));
    ebb_kv_truncate(f->kv, &f->a, 0);
    ebb_kv_truncate(f->kv, &f->b, 0);
    assert_int_equal(ebb_kv_release_unheld(f->kv, one), one);
    assert_int_equal(ebb_kv_release_unheld(f->kv, UINT64_MAX), 5 * one);
    assert_int_equal(ebb_kv_taken_bytes(f->kv), 0);
    assert_null(check_all(f));
}

static void test_tables(void **state)
{
    check_fixture *f = *state;
    uint32_t *place = &f->a.blocks[EBB_KV_ALL][1], was = *place;

    *place = EBB_KV_NONE;
    expect_rule(f, "KV2");
    *place = f->pool->free[0];
    expect_rule(f, "KV2");
    *place = f->a.blocks[EBB_KV_ALL][0];
    expect_rule(f, "KV3");
    *place = was;
    assert_null(ebb_block_table_check(f->kv, &f->a, 2 * EBB_KV_BLOCK));
    assert_non_null(ebb_block_table_check(f->kv, &f->a, 2 * EBB_KV_BLOCK - 1));  /* KV1: it is shared and hashed */
}

static char told_rule[200];

static void note_broken_rule(const char *rule, const char *file, int line)
{
    (void)line;
    assert_string_equal(strrchr(file, '/'), "/kv.c");
    snprintf(told_rule, sizeof told_rule, "%s", rule);
}

/* A change to the pool checks its rules if somebody wants to know, and only then. */
static void test_rules_are_checked(void **state)
{
    check_fixture *f = *state;
    ebb_invariant_fn *of_tests = ebb_invariant_broken;
    uint32_t n_free = f->pool->n_free;

    assert_non_null(of_tests);
    f->pool->n_free--;
    told_rule[0] = '\0';
    ebb_invariant_broken = NULL;
    ebb_kv_truncate(f->kv, &f->gone, 0);
    assert_string_equal(told_rule, "");
    ebb_invariant_broken = note_broken_rule;
    ebb_kv_truncate(f->kv, &f->gone, 0);
    ebb_invariant_broken = of_tests;
    assert_memory_equal(told_rule, "KV3", 3);
    f->pool->n_free = n_free;
    ebb_kv_truncate(f->kv, &f->gone, 0);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, open_check_fixture, close_check_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(test_counts), with_fixture(test_lists), with_fixture(test_names), with_fixture(test_tables),
        with_fixture(test_memory), with_fixture(test_limit), with_fixture(test_rules_are_checked),
    };

    return cmocka_run_group_tests_name("kv rules", tests, NULL, NULL);
}
