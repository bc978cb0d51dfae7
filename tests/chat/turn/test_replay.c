/* Answers computed again: the same after whatever the user did and however the engine is opened, and a difference is
 * found. */
#include "chat/conversation/engine_fixture.h"

#include "store/store.h"
#include "turn/replay.h"

static ebb_chat *open_seeded_chat(uint32_t n_predict, uint64_t seed)
{
    ebb_chat_opts o = { .model_path = model, .store_path = db, .continue_last = true, .n_predict = n_predict,
                        .engine = { .n_ctx = 1024, .n_threads = 1, .no_kv_cache = true },
                        .sampling = ebb_sampler_params_default() };
    ebb_chat *c;
    ebb_error err;

    o.sampling.seed = seed;
    if (ebb_chat_open(&o, &c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    return c;
}

static ebb_chat *open_chat(uint32_t n_predict)
{
    return open_seeded_chat(n_predict, 11);      /* no answer ends by chance before there is something to compare */
}

static void done(ebb_chat *c, ebb_status st)
{
    assert_int_equal(st, EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
}

/* A conversation with another answer, a part that goes on, one that is cut, an edit, and a second program. */
static void talk(void)
{
    ebb_chat *c = open_chat(12);
    ebb_error err;

    done(c, ebb_chat_send(c, "What is this?", 13, &err));
    done(c, ebb_chat_retry(c, &err));
    if (ebb_chat_message(c, 1)->finish == EBB_FINISH_LENGTH)
        done(c, ebb_chat_continue(c, &err));
    done(c, ebb_chat_send(c, "And that?", 9, &err));
    done(c, ebb_chat_cut(c, "th", 2, &err));
    done(c, ebb_chat_edit(c, 0, "What else?", 10, &err));
    ebb_chat_close(c);
    c = open_chat(9);
    done(c, ebb_chat_send(c, "So?", 3, &err));
    ebb_chat_close(c);
}

typedef struct seen {
    size_t   n[3];               /* by outcome */
    uint32_t n_tokens;
    ebb_replay_answer last;
} seen;

static void on_answer(void *arg, const ebb_replay_answer *a)
{
    seen *s = arg;

    s->n[a->outcome]++;
    s->n_tokens += a->n;
    s->last = *a;
}

static void load(ebb_tree *t)
{
    ebb_session_facts f = { 0 };
    ebb_store *s;
    ebb_error err;
    int64_t id;

    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    assert_int_equal(ebb_store_load(s, id, &f, t, &err), EBB_OK);
    ebb_session_facts_fini(&f);
    ebb_store_close(s);
}

static seen replay(const ebb_tree *t, ebb_engine_opts o)
{
    seen s = { 0 };
    ebb_model *m;
    ebb_error err;

    o.no_kv_cache = true;
    assert_int_equal(ebb_model_open(model, &m, &err), EBB_OK);
    if (ebb_replay(t, m, &o, on_answer, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    ebb_model_close(m);
    return s;
}

static void test_same(void **state)
{
    static const ebb_engine_opts ways[] = { { 0 }, { .n_threads = 2, .n_batch = 3 },
                                            { .n_threads = 1, .cpu = EBB_ISA_SCALAR },
                                            { .n_threads = 1, .has_resident = true },
                                            { .n_threads = 1, .no_speculation = true } };
    ebb_tree t = { 0 };
    size_t n_answers = 0, n_generated = 0;

    (void)state;
    talk();
    load(&t);
    for (size_t i = 0; i < t.n_nodes; i++) {
        n_answers += t.nodes[i]->m.role == EBB_ROLE_ASSISTANT;
        for (size_t k = 0; k < t.nodes[i]->m.n_sample_records; k++)
            n_generated += t.nodes[i]->m.sample_records[k].n;
    }
    assert_true(n_answers >= 6);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        seen s = replay(&t, ways[i]);
        assert_int_equal(s.n[EBB_REPLAY_SAME], n_answers);
        assert_int_equal(s.n_tokens, n_generated);
    }
    ebb_tree_fini(&t);
}

static ebb_message *last_answer(ebb_tree *t)
{
    return &ebb_tree_leaf(t)->m;
}

static void copy_answer(char text[1024])
{
    ebb_tree t = { 0 };
    const ebb_message *m;

    load(&t);
    m = last_answer(&t);
    assert_true(m->n_text < 1024);
    memcpy(text, m->text, m->n_text);
    text[m->n_text] = '\0';
    ebb_tree_fini(&t);
}

/* An answer in three pieces is what it is in one: its chance goes by the position. */
static void pieces(uint64_t seed, uint32_t n_pieces, uint32_t n, char text[1024])
{
    ebb_chat *c = open_seeded_chat(n, seed);
    ebb_error err;

    done(c, ebb_chat_send(c, "What is this?", 13, &err));
    for (uint32_t i = 1; i < n_pieces && ebb_chat_message(c, 1)->finish == EBB_FINISH_LENGTH; i++)
        done(c, ebb_chat_continue(c, &err));
    ebb_chat_close(c);
    copy_answer(text);
}

static void test_pieces(void **state)
{
    ebb_error err;
    ebb_chat *c;
    char once[1024], often[1024];
    uint64_t seed;
    ebb_tree t = { 0 };

    (void)state;
    pieces(11, 1, 30, once);
    assert_int_equal(unlink(db), 0);
    pieces(11, 3, 10, often);
    assert_true(once[0] != '\0');
    assert_string_equal(often, once);
    assert_int_equal(unlink(db), 0);
    c = open_seeded_chat(10, 0);                 /* a seed of the clock's is kept as well */
    done(c, ebb_chat_send(c, "What is this?", 13, &err));
    if (ebb_chat_message(c, 1)->finish == EBB_FINISH_LENGTH)
        done(c, ebb_chat_continue(c, &err));
    ebb_chat_close(c);
    load(&t);
    seed = last_answer(&t)->sample_records[0].sampling.seed;
    for (size_t i = 0; i < last_answer(&t)->n_sample_records; i++)
        assert_int_equal(last_answer(&t)->sample_records[i].sampling.seed, seed);
    ebb_tree_fini(&t);
}

/* Another seed, another token: that is found, and where. */
static void test_differs(void **state)
{
    ebb_tree t = { 0 };
    ebb_message *m;
    ebb_sample_record *d;
    seen s;

    (void)state;
    talk();
    load(&t);
    m = last_answer(&t);
    assert_int_equal(m->n_sample_records, 1);
    d = &m->sample_records[0];
    assert_true(d->n > 4);
    m->ids[d->from + 3] = m->ids[d->from + 3] == 'a' ? 'b' : 'a';
    ebb_token_ids_hash(m->ids + d->from, d->n, d->ids_hash); /* as if it had been drawn so */
    s = replay(&t, (ebb_engine_opts){ 0 });
    assert_int_equal(s.n[EBB_REPLAY_DIFFERS], 1);
    assert_int_equal(s.n[EBB_REPLAY_UNKNOWN], 0);
    assert_int_equal(s.last.outcome, EBB_REPLAY_DIFFERS);
    assert_int_equal(s.last.n, 3);
    assert_int_equal(s.last.was, m->ids[d->from + 3]);
    assert_int_not_equal(s.last.is, s.last.was);
    d->n = 0;                                    /* as if the turn had ended at once */
    m->n_ids = d->from;
    m->finish = EBB_FINISH_STOP;
    ebb_token_ids_hash(NULL, 0, d->ids_hash);
    s = replay(&t, (ebb_engine_opts){ 0 });
    assert_int_equal(s.last.outcome, EBB_REPLAY_DIFFERS);
    assert_true(s.last.n == 0 && s.last.was == -1 && s.last.is >= 0);
    ebb_tree_fini(&t);
}

/* What was changed behind ebb's back, or was never kept, is not called a difference. */
static void test_unknown(void **state)
{
    ebb_tree t = { 0 };
    ebb_message *m;
    seen s;

    (void)state;
    talk();
    load(&t);
    m = last_answer(&t);
    m->ids[m->sample_records[0].from]++;
    s = replay(&t, (ebb_engine_opts){ 0 });
    assert_int_equal(s.n[EBB_REPLAY_UNKNOWN], 1);
    assert_non_null(strstr(s.last.why, "not kept any more"));
    m->ids[m->sample_records[0].from]--;
    t.path[t.n_path - 2]->m.ids[0]++;
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "what stood before it"));
    t.path[t.n_path - 2]->m.ids[0]--;
    m->ids_model[0]++;
    assert_string_equal(replay(&t, (ebb_engine_opts){ 0 }).last.why, "it is of another model");
    m->ids_model[0]--;
    m->sample_records[0].sampler--;
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "other random numbers"));
    m->sample_records[0].sampler++;
    m->sample_records[0].is_shifted = true;
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "moved"));
    m->sample_records[0].n = 0;
    m->finish = EBB_FINISH_NONE;
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "ended before"));
    m->sample_records[0].sampling.seed = 0;
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "copied"));
    m->n_sample_records = 0;
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "imported"));
    m->engine = strdup("box");
    assert_non_null(strstr(replay(&t, (ebb_engine_opts){ 0 }).last.why, "a remote engine answered"));
    ebb_tree_fini(&t);
}

/* Kept with an answer: whether its prompt had opened a thought. */
static void test_opened_thoughts(void **state)
{
    static const char source[] = "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n";
    char path[sizeof db + 8];
    ebb_chat *c = open_chat(4);
    ebb_tree t = { 0 };
    ebb_error err;
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s.jinja", db);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(source, f);
    fclose(f);
    done(c, ebb_chat_send(c, "What?", 5, &err));
    assert_int_equal(ebb_chat_message(c, 1)->sample_records->begin, EBB_THOUGHT_UNOPENED);
    assert_int_equal(ebb_chat_set_template(c, path, &err), EBB_OK);
    done(c, ebb_chat_send(c, "Why?", 4, &err));
    assert_int_equal(ebb_chat_message(c, 3)->sample_records->begin, EBB_THOUGHT_OPENED);
    ebb_chat_close(c);
    unlink(path);
    load(&t);
    assert_int_equal(last_answer(&t)->sample_records->begin, EBB_THOUGHT_OPENED);
    ebb_tree_fini(&t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_same), T(test_pieces), T(test_differs), T(test_unknown),
                                        T(test_opened_thoughts) };

    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
