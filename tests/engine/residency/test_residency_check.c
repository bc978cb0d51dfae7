/* The checkers of residency, ring and loads: silent while all is well, and each rule's breach has a name. */
#include "ebb_test.h"

#include <fcntl.h>

#include "residency/residency_impl.h"
#include "residency/ring_impl.h"

#define N_EXTENTS 6u
#define BYTES     20000u

typedef struct rules_fixture {
    char     path[64];
    int      fd;
    ebb_res *r;
} rules_fixture;

static ebb_res_extent extents[N_EXTENTS];

/* Layer 0 pinned, layer 1 in the ring, layer 2 mapped; an extent of the ring is held. */
static int open_rules_fixture(void **state)
{
    static rules_fixture f;
    static const char noise[N_EXTENTS * BYTES] = "anything";
    ebb_res_part part;
    const void *p;

    strcpy(f.path, "/var/tmp/ebb-rules-XXXXXX");
    f.fd = mkstemp(f.path);
    assert_true(f.fd >= 0);
    assert_int_equal(write(f.fd, noise, sizeof noise), (ssize_t)sizeof noise);
    assert_int_equal(fsync(f.fd), 0);
    for (uint32_t i = 0; i < N_EXTENTS; i++)
        extents[i] = (ebb_res_extent){ .name = "t", .offset = i * BYTES, .n_bytes = BYTES, .n_elems = BYTES,
                                       .group = i / 2,
                                       .is_certain = true };
    part = (ebb_res_part){ .path = f.path, .fd = f.fd, .n_bytes = sizeof noise };
    assert_int_equal(ebb_res_open(&part, 1, extents, N_EXTENTS, 2, &f.r, NULL), EBB_OK);
    assert_int_equal(ebb_res_set_reader(f.r, EBB_IO_PREAD, NULL, 1 << 20, NULL), EBB_OK);
    assert_int_equal(ebb_res_set_state(f.r, 0, EBB_LAYER_PINNED, NULL), EBB_OK);
    assert_int_equal(ebb_res_set_state(f.r, 1, EBB_LAYER_DISK, NULL), EBB_OK);
    assert_int_equal(ebb_res_acquire(f.r, 2, &p, NULL), EBB_OK);
    assert_int_equal(ebb_res_acquire(f.r, 3, &p, NULL), EBB_OK); /* the reader has nothing left to do */
    *state = &f;
    return 0;
}

static int close_rules_fixture(void **state)
{
    rules_fixture *f = *state;

    ebb_res_release(f->r, 2);
    ebb_res_release(f->r, 3);
    ebb_res_close(f->r);
    close(f->fd);
    unlink(f->path);
    return 0;
}

static void expect_rule(rules_fixture *f, const char *name)
{
    const char *rule = ebb_res_check_rules(f->r);

    assert_non_null(rule);
    if (strncmp(rule, name, strlen(name)) != 0)
        fail_msg("%s was broken, and this was said: %s", name, rule);
}

/* The bytes of *field are others, and then as they were again. */
#define expect_broken(f, field, value, name)            \
    do {                                                \
        __typeof__(field) was_ = (field);               \
                                                        \
        (field) = (value);                              \
        expect_rule(f, name);                           \
        (field) = was_;                                 \
        assert_null(ebb_res_check_rules((f)->r));       \
    } while (0)

static void test_owners(void **state)
{
    rules_fixture *f = *state;
    ebb_res *r = f->r;

    assert_null(ebb_res_check_rules(r));
    expect_broken(f, r->at[0], r->at[4], "R1");
    expect_broken(f, r->at[0], NULL, "R6");
    expect_broken(f, r->at[2], r->at[0], "R1");
    expect_broken(f, r->at[4], r->at[5], "R1");
    expect_broken(f, r->owner[0], EBB_LAYER_MAPPED, "R1");
    expect_broken(f, r->groups[2].state, EBB_LAYER_PINNED, "R1");
    expect_broken(f, r->groups[2].state, EBB_LAYER_DISK, "R1");
    expect_broken(f, r->pinned_bytes, 1, "R1");
    expect_broken(f, r->mapped_bytes, 1, "R1");
}

/* What is lent is pinned, and goes alone; a group's other extents stay as they are. */
static void test_lent(void **state)
{
    rules_fixture *f = *state;
    ebb_res *r = f->r;
    uint64_t lent;
    const void *p;
    uint32_t n;

    ebb_res_release(r, 2);
    ebb_res_release(r, 3);
    assert_int_equal(ebb_res_lendable_bytes(r, 0), 0);   /* it stays */
    assert_int_equal(ebb_res_lend(r, 1, UINT64_MAX, &lent, NULL), EBB_OK);
    assert_int_equal(lent, 0);                   /* so would it, if it was pinned */
    assert_int_equal(ebb_res_set_resident(r, (const bool[N_EXTENTS]){ 1, 1, 0, 0, 1, 1 }, NULL), EBB_OK);
    assert_int_equal(ebb_res_lend(r, 1, 100, &lent, NULL), EBB_OK);
    assert_int_equal(lent, 0);                   /* the first one is larger */
    assert_int_equal(ebb_res_lend(r, 1, ebb_pin_bytes(&extents[2]), &lent, NULL), EBB_OK);
    assert_int_equal(lent, ebb_pin_bytes(&extents[2]));
    assert_int_equal(ebb_res_lendable_bytes(r, 1), ebb_pin_bytes(&extents[3]));
    assert_int_equal(ebb_res_lend(r, 1, UINT64_MAX, &lent, NULL), EBB_OK);
    assert_int_equal(ebb_res_lent_bytes(r, 1), lent);
    assert_int_equal(ebb_res_lent_read_bytes(r), 2 * BYTES);
    assert_int_equal(ebb_res_acquire(r, 2, &p, NULL), EBB_OK);
    assert_memory_equal(p, r->bases[0] + extents[2].offset, BYTES);
    expect_broken(f, r->is_lent[2], false, "R1");
    expect_broken(f, r->is_lent[0], true, "R1");
    expect_broken(f, r->lent_bytes, 1, "R1");
    expect_broken(f, r->resident[3], true, "R1");
    assert_int_equal(ebb_res_evict(r, lent, &n), ebb_pin_bytes(&extents[0]) + ebb_pin_bytes(&extents[1]));
    assert_int_equal(n, 1);                      /* what is acquired is not taken; another group is */
    ebb_res_release(r, 2);
    assert_int_equal(ebb_res_take_back(r, 1), lent);
    assert_int_equal(ebb_res_take_back(r, 1), 0);
    assert_null(ebb_res_check_rules(r));
    assert_int_equal(ebb_res_acquire(r, 2, &p, NULL), EBB_OK);   /* by the ring again */
    assert_int_equal(ebb_res_acquire(r, 3, &p, NULL), EBB_OK);
}

static void test_ring(void **state)
{
    rules_fixture *f = *state;
    ebb_ring *g = f->r->ring;
    ebb_ring_entry *e = ebb_ring_find(g, 2);

    assert_non_null(e);
    expect_broken(f, e->at, e->at + 1, "G1");
    expect_broken(f, e->n_bytes, e->n_bytes + EBB_READ_ALIGN, "G");
    expect_broken(f, e->n_in_flight, 1, "G2");
    expect_broken(f, e->is_dead, true, "G2");
    expect_broken(f, e->st, EBB_IO, "G2");
    expect_broken(f, g->head, g->head + g->cap + 1, "G3");
    expect_broken(f, g->is_streamed[2], false, "G1");
    expect_broken(f, g->cursor, 0, "G1");
}

static void test_loads(void **state)
{
    rules_fixture *f = *state;
    ebb_loads *l = &f->r->ring->loads;
    char home[1];

    expect_broken(f, l->state[4], EBB_LOAD_LOADED, "L1");
    expect_broken(f, l->home[4], home, "L1");
    expect_broken(f, l->state[4], EBB_LOAD_IN_FLIGHT, "L1");
    expect_broken(f, l->n_in[EBB_LOAD_IN_FLIGHT], 1, "L2");
    expect_broken(f, l->n_in[EBB_LOAD_LOADED], 1, "L2");
    expect_broken(f, l->takes_memory[4], true, "L3");
    expect_broken(f, l->pending_bytes, 1, "L3");
    expect_broken(f, l->state[2], EBB_LOAD_BACKGROUND, "L1");
}

static char told_rule[200];

static void note_broken_rule(const char *rule, const char *file, int line)
{
    (void)line;
    assert_string_equal(strrchr(file, '/'), "/group_states.c");
    snprintf(told_rule, sizeof told_rule, "%s", rule);
}

/* A change of state checks the rules if somebody wants to know, and only then. */
static void test_rules_are_checked(void **state)
{
    rules_fixture *f = *state;
    ebb_invariant_fn *of_tests = ebb_invariant_broken;

    assert_non_null(of_tests);
    f->r->pinned_bytes++;
    told_rule[0] = '\0';
    ebb_invariant_broken = NULL;
    assert_int_equal(ebb_res_set_state(f->r, 2, EBB_LAYER_DISK, NULL), EBB_OK);
    assert_string_equal(told_rule, "");
    ebb_invariant_broken = note_broken_rule;
    assert_int_equal(ebb_res_set_state(f->r, 2, EBB_LAYER_MAPPED, NULL), EBB_OK);
    f->r->pinned_bytes--;
    ebb_invariant_broken = of_tests;
    assert_memory_equal(told_rule, "R1", 2);
    assert_null(ebb_res_check_rules(f->r));
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, open_rules_fixture, close_rules_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = { with_fixture(test_owners), with_fixture(test_lent), with_fixture(test_ring),
                                        with_fixture(test_loads), with_fixture(test_rules_are_checked) };

    return cmocka_run_group_tests_name("residency rules", tests, NULL, NULL);
}
