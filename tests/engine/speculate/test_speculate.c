/* Guessing ahead: the logits behind every token have the same bits with and without
 * it, whatever comes between; and it does save passes. */
#include "ebb_test.h"

#include "ebb/experimental/inspect.h"
#include "ebb/session.h"
#include "open/engine_state.h"
#include "support/tiny_model.h"

#define N_CTX 160u

typedef struct side {
    ebb_engine  *engine;
    ebb_session *s;
} side;

/* The same model twice: `guess` guesses ahead, `plain` does not. */
typedef struct pair {
    char      *bytes;
    ebb_model *model;
    side       guess, plain;
} pair;

static void open_side(const ebb_model *m, bool no_speculation, side *out)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .n_threads = 2, .no_kv_cache = true, .no_speculation = no_speculation };
    ebb_error err = { 0 };

    if (ebb_engine_open(m, &o, NULL, NULL, &out->engine, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_session_new(out->engine, &out->s, &err), EBB_OK);
}

static void open_pair(const char *arch, pair *p)
{
    ebb_tiny_opts tiny = { .arch = arch, .type = EBB_TYPE_Q8_0 };

    p->model = ebb_tiny_open(&tiny, &p->bytes);
    open_side(p->model, false, &p->guess);
    open_side(p->model, true, &p->plain);
}

static void close_pair(pair *p)
{
    ebb_session_free(p->guess.s);
    ebb_session_free(p->plain.s);
    ebb_engine_close(p->guess.engine);
    ebb_engine_close(p->plain.engine);
    ebb_model_close(p->model);
    free(p->bytes);
}

static void check_same(const pair *p)
{
    const float *a = ebb_session_logits(p->guess.s), *b = ebb_session_logits(p->plain.s);
    size_t n_a, n_b;
    const ebb_token *ids_a = ebb_session_ids(p->guess.s, &n_a), *ids_b = ebb_session_ids(p->plain.s, &n_b);

    assert_int_equal(n_a, n_b);
    assert_memory_equal(ids_a, ids_b, n_a * sizeof *ids_a);
    assert_non_null(a);
    assert_memory_equal(a, b, EBB_TINY_VOCAB * sizeof *a);
}

static void sync_both(pair *p, const ebb_token *ids, size_t n)
{
    assert_int_equal(ebb_session_sync(p->guess.s, ids, n, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(p->plain.s, ids, n, NULL, NULL), EBB_OK);
    check_same(p);
}

static void append_both(pair *p, ebb_token id)
{
    assert_int_equal(ebb_session_append(p->guess.s, id, NULL), EBB_OK);
    assert_int_equal(ebb_session_append(p->plain.s, id, NULL), EBB_OK);
    check_same(p);
}

/* A text of a period of nine tokens, every 23rd token another one. */
static ebb_token token_at(uint32_t i)
{
    return (ebb_token)(i % 23 == 22 ? 5 + i % 200 : 10 + i % 9);
}

static ebb_stats stats_of(const side *a)
{
    ebb_stats st;

    ebb_engine_stats(a->engine, &st);
    return st;
}

static void check_arch(const char *arch)
{
    pair p;
    ebb_token start[12];
    ebb_stats with, without;

    for (uint32_t i = 0; i < 12; i++)
        start[i] = token_at(i);
    open_pair(arch, &p);
    sync_both(&p, start, 12);
    for (uint32_t i = 12; i < N_CTX; i++)        /* to the last place of the context */
        append_both(&p, token_at(i));
    assert_int_equal(ebb_session_append(p.guess.s, 1, NULL), EBB_CONTEXT);
    check_same(&p);
    with = stats_of(&p.guess);
    without = stats_of(&p.plain);
    assert_int_equal(without.n_drafted, 0);
    if (with.n_drafted <= with.n_accepted || with.n_accepted == 0)
        fail_msg("%s: %u of %u draft tokens were accepted", arch, (unsigned)with.n_accepted, (unsigned)with.n_drafted);
    assert_int_equal(with.n_passes + with.n_accepted, without.n_passes);
    close_pair(&p);
}

static void same_bits_for_every_architecture(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        const char *arch = ebb_tiny_archs[i];

        if (i % ebb_test_one_in(8) == 0)
            check_arch(arch);
    }
}

static void ignore(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    (void)arg, (void)pos, (void)logits, (void)n_vocab;
}

/* A guess under way when the sequence is cut, synced, kept or taken by another session. */
static void anything_may_come_between(void **state)
{
    ebb_token ids[N_CTX];
    pair p;
    ebb_session *other;
    size_t n;

    (void)state;
    for (uint32_t i = 0; i < N_CTX; i++)
        ids[i] = token_at(i);
    open_pair("llama", &p);
    assert_int_equal(ebb_session_new(p.guess.engine, &other, NULL), EBB_OK);
    sync_both(&p, ids, 20);
    for (uint32_t round = 0; round < 12; round++) {
        uint32_t from = 20 + round;

        for (uint32_t i = from; i < from + 1 + round; i++)
            append_both(&p, token_at(i));
        ebb_session_ids(p.guess.s, &n);
        if (round % 4 == 0)                      /* writes the rows that a guess stands in */
            assert_int_equal(ebb_session_eval(other, ids, 30, 8, ignore, NULL, NULL), EBB_OK);
        else if (round % 4 == 1)
            assert_int_equal(ebb_session_sync(other, ids, n, NULL, NULL), EBB_OK);
        else if (round % 4 == 2)
            ebb_session_persist(p.guess.s);
        append_both(&p, token_at((uint32_t)n));
        sync_both(&p, ids, 21 + round);
    }
    ebb_session_free(other);
    close_pair(&p);
}

/* Two sequences in turn, each with its own guesses. */
static void two_sessions_in_turn(void **state)
{
    ebb_token ids[20];
    pair a;
    side b;
    float want[EBB_TINY_VOCAB];

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        ids[i] = token_at(i);
    open_pair("llama", &a);
    b.engine = a.guess.engine;
    assert_int_equal(ebb_session_new(b.engine, &b.s, NULL), EBB_OK);
    sync_both(&a, ids, 20);
    assert_int_equal(ebb_session_sync(b.s, ids, 20, NULL, NULL), EBB_OK);
    for (uint32_t i = 20; i < 60; i++) {
        append_both(&a, token_at(i));
        memcpy(want, ebb_session_logits(a.guess.s), sizeof want);
        assert_int_equal(ebb_session_append(b.s, token_at(i), NULL), EBB_OK);
        assert_memory_equal(ebb_session_logits(b.s), want, sizeof want);
    }
    ebb_session_free(b.s);
    close_pair(&a);
}

/* -- A text of elsewhere -------------------------------------------------------------------- */

#define SAID 60u                 /* tokens of the other conversation */

/* No three of them stand together twice. */
static ebb_token said_at(uint32_t i)
{
    return (ebb_token)(10 + i * i % 151);
}

static void set_reference(const pair *p, uint32_t before)
{
    ebb_token text[2 * SAID + 1];

    for (uint32_t i = 0; i < before; i++)
        text[i] = (ebb_token)(200 + i % 40);
    text[before] = EBB_TOKEN_NONE;
    for (uint32_t i = 0; i < SAID; i++)
        text[before + 1 + i] = said_at(i);
    assert_int_equal(ebb_engine_set_reference_text(p->guess.engine, text, before + 1 + SAID, NULL), EBB_OK);
}

/* What another conversation said is drafted when it is said again, and bits are those of plain decoding. */
static void check_reference(const char *arch)
{
    pair p;
    ebb_token start[2] = { 5, 6 };
    ebb_stats with, without;

    open_pair(arch, &p);
    set_reference(&p, 30);
    sync_both(&p, start, 2);
    for (uint32_t i = 0; i < SAID; i++)
        append_both(&p, said_at(i));
    with = stats_of(&p.guess);
    without = stats_of(&p.plain);
    if (with.n_accepted_reference < SAID / 4)
        fail_msg("%s: %u of %u draft tokens were accepted, %u of elsewhere", arch, (unsigned)with.n_accepted,
                 (unsigned)with.n_drafted, (unsigned)with.n_accepted_reference);
    assert_int_equal(with.n_passes + with.n_accepted, without.n_passes);
    append_both(&p, 7);                          /* behind the end of that text */
    close_pair(&p);
}

static void what_was_said_elsewhere_is_drafted(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++)
        if (i % ebb_test_one_in(8) == 0)
            check_reference(ebb_tiny_archs[i]);
}

/* Where texts only begin alike, what that costs is charged to the text of elsewhere alone, which then pauses. */
static void a_text_of_elsewhere_is_judged_by_itself(void **state)
{
    pair p;
    ebb_token start[2] = { 5, 6 };
    const ebb_prompt_lookup *own, *elsewhere;

    (void)state;
    open_pair("llama", &p);
    set_reference(&p, 30);
    sync_both(&p, start, 2);
    own = &p.guess.s->lookup;
    elsewhere = &p.guess.s->reference_lookup;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5; i++)
            append_both(&p, said_at(20 * round + i));
        append_both(&p, 9);
        assert_int_equal(elsewhere->n_measured, round + 1);
        assert_int_equal(elsewhere->n_now, 1);
        assert_int_equal(own->n_measured, 0);
    }
    p.guess.s->reference_lookup.n_pause = UINT32_MAX;
    for (uint32_t i = 0; i < SAID; i++)
        append_both(&p, said_at(i));
    assert_int_equal(stats_of(&p.guess).n_accepted_reference, 0);
    close_pair(&p);
}

/* It can be another one, or none, in the middle of an answer. */
static void the_text_of_elsewhere_may_change(void **state)
{
    pair p;
    ebb_token start[2] = { 5, 6 };

    (void)state;
    open_pair("llama", &p);
    set_reference(&p, 30);
    sync_both(&p, start, 2);
    for (uint32_t i = 0; i < 20; i++)
        append_both(&p, said_at(i));
    set_reference(&p, 55);
    for (uint32_t i = 20; i < 40; i++)
        append_both(&p, said_at(i));
    assert_int_equal(ebb_engine_set_reference_text(p.guess.engine, NULL, 0, NULL), EBB_OK);
    for (uint32_t i = 40; i < SAID; i++)
        append_both(&p, said_at(i));
    close_pair(&p);
}

/* Of an id that the model does not have nothing is drafted, and no pass fails for it. */
static void an_unknown_id_of_elsewhere_is_not_drafted(void **state)
{
    ebb_token text[SAID], start[2] = { 5, 6 };
    pair p;

    (void)state;
    for (uint32_t i = 0; i < SAID; i++)
        text[i] = i < SAID / 2 ? said_at(i) : i % 2 ? (ebb_token)EBB_TINY_VOCAB : INT32_MAX;
    open_pair("llama", &p);
    assert_int_equal(ebb_engine_set_reference_text(p.guess.engine, text, SAID, NULL), EBB_OK);
    sync_both(&p, start, 2);
    for (uint32_t i = 0; i < SAID; i++)
        append_both(&p, said_at(i));
    assert_true(stats_of(&p.guess).n_accepted_reference > 0);
    close_pair(&p);
}

/* Of a text that is too long the end is taken. */
static void a_long_text_of_elsewhere_is_cut(void **state)
{
    size_t n = EBB_REFERENCE_MOST + 100u;
    ebb_token *text = calloc(n, sizeof *text);
    ebb_reference_text t = { 0 };

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = (ebb_token)i;
    assert_int_equal(ebb_reference_text_set(&t, text, n, (uint32_t)n, NULL), EBB_OK);
    assert_int_equal(t.n, EBB_REFERENCE_MOST + 1);
    assert_int_equal(t.ids[0], 100);
    assert_int_equal(t.ids[t.n - 1], EBB_TOKEN_NONE);
    ebb_reference_text_fini(&t);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_every_architecture),
        cmocka_unit_test(anything_may_come_between),
        cmocka_unit_test(two_sessions_in_turn),
        cmocka_unit_test(what_was_said_elsewhere_is_drafted),
        cmocka_unit_test(a_text_of_elsewhere_is_judged_by_itself),
        cmocka_unit_test(the_text_of_elsewhere_may_change),
        cmocka_unit_test(an_unknown_id_of_elsewhere_is_not_drafted),
        cmocka_unit_test(a_long_text_of_elsewhere_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
