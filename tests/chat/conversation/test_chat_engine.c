/* A chat on the real engine with a model that the test writes: what stands is not
 * computed again, whatever the user does. */
#include "engine_fixture.h"

static ebb_chat *open_with(const ebb_chat_opts *o)
{
    ebb_chat *c;
    ebb_error err;

    if (ebb_chat_open(o, &c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    return c;
}

static ebb_chat *open_chat(bool continue_last)
{
    ebb_chat_opts o = { .model_path = model, .store_path = db, .continue_last = continue_last, .n_predict = 8,
                        .system = continue_last ? NULL : "Be brief.",
                        .engine = { .n_ctx = 1024, .n_threads = 1, .no_kv_cache = true },
                        .sampling = ebb_sampler_params_default() };

    o.sampling.temp = 0;
    return open_with(&o);
}

static const ebb_message *last(const ebb_chat *c)
{
    return ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
}

/* Send and wait; what was foretold is what was computed. */
static const ebb_turn_stats *say(ebb_chat *c, const char *text)
{
    ebb_chat_cost foretold;
    ebb_error err;

    assert_true(ebb_chat_preview(c, EBB_ACT_SEND, 0, text, strlen(text), &foretold));
    if (ebb_chat_send(c, text, strlen(text), &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_int_equal(last(c)->turn_stats.n_computed, foretold.n_compute);
    assert_int_equal(last(c)->turn_stats.n_prompt, last(c)->turn_stats.n_reused + last(c)->turn_stats.n_computed);
    return &last(c)->turn_stats;
}

static size_t n_ids(const ebb_chat *c, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ebb_chat_message(c, i)->n_ids;
    return sum;
}

static void test_turns(void **state)
{
    ebb_chat *c = open_chat(false);
    const ebb_turn_stats *turn_stats;
    ebb_error err;
    size_t n;
    char first[256];

    (void)state;
    say(c, "What is this?");
    n = ebb_chat_n_messages(c);
    assert_int_equal(last(c)->n_ids, last(c)->turn_stats.n_generated);
    turn_stats = say(c, "And that?");
    assert_int_equal(turn_stats->n_prompt, n_ids(c, n + 1));
    /* All but the question, and the last token of the answer, which nobody needed until now. */
    assert_true(turn_stats->n_computed <= ebb_chat_message(c, n)->n_ids + 1);
    snprintf(first, sizeof first, "%s", last(c)->text);

    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_true(last(c)->turn_stats.n_computed <= 1);
    assert_string_equal(last(c)->text, first);   /* greedy: the same logits to the bit */

    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    turn_stats = say(c, "Something else.");
    assert_true(turn_stats->n_computed <= ebb_chat_message(c, n)->n_ids + 1);

    if (last(c)->finish == EBB_FINISH_LENGTH) {
        assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
        wait_event(c, EBB_EVENT_DONE, NULL, 0);
        assert_true(last(c)->n_ids > 8 || last(c)->finish == EBB_FINISH_STOP);
    }
    ebb_chat_close(c);
}

/* The ids on disk are the truth: the next run computes those, and says so. */
static void test_restart(void **state)
{
    ebb_chat *c = open_chat(false);
    char notice[240] = "";
    size_t before;
    ebb_error err;

    (void)state;
    say(c, "What is this?");
    before = n_ids(c, ebb_chat_n_messages(c));
    ebb_chat_close(c);
    c = open_chat(true);
    assert_int_equal(n_ids(c, ebb_chat_n_messages(c)), before);
    assert_int_equal(ebb_chat_send(c, "Go on.", 6, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, notice, sizeof notice);
    assert_non_null(strstr(notice, "computed again"));
    assert_int_equal(last(c)->turn_stats.n_prompt, n_ids(c, ebb_chat_n_messages(c) - 1));
    assert_true(last(c)->turn_stats.n_reused == 0);
    say(c, "And on.");
    assert_true(last(c)->turn_stats.n_reused > before);
    ebb_chat_close(c);
}

/* A slip costs nothing: what is no model closes none. */
static void test_no_model_for_a_model(void **state)
{
    ebb_chat *c = open_chat(false);
    char path[96];
    ebb_error err;
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/notes.txt", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 100; i++)
        fputs("bread, salt\n", f);
    fclose(f);
    assert_int_equal(ebb_chat_load_model(c, path, &err), EBB_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "notes.txt"));
    assert_true(ebb_chat_is_ready(c));
    say(c, "Hello");
    ebb_chat_close(c);
}

/* Nor for one that only later turns out to be none for a chat. */
static void test_no_unknown_model_for_a_model(void **state)
{
    static const struct { const char *word, *by, *say; } wrong[] = {
        { "gpt-2", "gpt-9", "pre-tokenizer 'gpt-9'" }, { "llama", "llxxa", "architecture 'llxxa'" },
    };
    ebb_chat *c = open_chat(false);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ebb_tiny_opts o = { .n_embd = 256 };
        char path[96], *bytes;
        ebb_error err = { 0 };
        size_t n;
        FILE *f;

        bytes = ebb_tiny_bytes(&o, &n);
        memcpy(memmem(bytes, n, wrong[i].word, 5), wrong[i].by, 5);
        snprintf(path, sizeof path, "%s/unknown.gguf", dir);
        f = fopen(path, "w");
        assert_true(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
        free(bytes);
        assert_int_equal(ebb_chat_load_model(c, path, &err), EBB_UNSUPPORTED);
        if (!strstr(err.msg, wrong[i].say))
            fail_msg("%s", err.msg);
        assert_int_equal(unlink(path), 0);
        say(c, "Hello");
    }
    ebb_chat_close(c);
}

static void test_stop(void **state)
{
    ebb_chat *c = open_chat(false);
    ebb_error err;
    char text[64];

    (void)state;
    assert_int_equal(ebb_chat_set(c, "predict", "0", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "temp", "10", text, sizeof text, &err), EBB_OK);     /* noise ends no turn soon */
    assert_int_equal(ebb_chat_set(c, "top-k", "0", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "min-p", "0", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "seed", "2", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_send(c, "Talk.", 5, &err), EBB_OK);
    wait_event(c, EBB_EVENT_TEXT, NULL, 0);
    ebb_chat_stop(c);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_true(last(c)->finish == EBB_FINISH_CANCELED || last(c)->finish == EBB_FINISH_STOP);
    assert_true(last(c)->n_ids > 0);
    assert_int_equal(ebb_chat_set(c, "predict", "4", text, sizeof text, &err), EBB_OK);
    say(c, "Thanks.");
    assert_true(last(c)->turn_stats.n_computed <= ebb_chat_message(c, ebb_chat_n_messages(c) - 2)->n_ids + 1);
    ebb_chat_close(c);
}

/* Cut after k of its tokens the answer goes on as it was: greedy, from the same logits; nothing of
 * the history is computed again, and letters in the middle of a token come out as they were. */
static void test_cut(void **state)
{
    ebb_chat *c = open_chat(false);
    char whole[512];
    ebb_error err;
    size_t n;

    (void)state;
    say(c, "What is this?");
    snprintf(whole, sizeof whole, "%s", last(c)->text);
    n = last(c)->n_text;
    for (size_t k = 1; k < n && k < 12; k++) {
        ebb_status st = ebb_chat_cut(c, whole, k, &err);

        if (st == EBB_USAGE)                     /* half a character, and nothing before it */
            continue;
        assert_int_equal(st, EBB_OK);
        wait_event(c, EBB_EVENT_DONE, NULL, 0);
        assert_memory_equal(last(c)->text, whole, last(c)->n_text < k ? last(c)->n_text : k);
        assert_true(last(c)->turn_stats.n_computed <= k + 1);
    }
    ebb_chat_close(c);
}

/* -- A full context ----------------------------------------------------------------------------- */

static ebb_chat *open_kept(bool continue_last, const char *system)
{
    char cache[96];
    ebb_chat_opts o = { .model_path = model, .store_path = db, .continue_last = continue_last, .n_predict = 8,
                        .system = system, .overflow = EBB_OVERFLOW_FORGET,
                        .engine = { .n_ctx = 256, .n_threads = 1 }, .sampling = ebb_sampler_params_default() };

    snprintf(cache, sizeof cache, "%s/kv", dir);
    o.engine.kv_cache_dir = cache;
    o.sampling.temp = 0;
    return open_with(&o);
}

static ebb_chat *open_small(bool continue_last)
{
    return open_kept(continue_last, continue_last ? NULL : "Be brief.");
}

/* 50 turns, several contexts long.  Where something is forgotten the rest is moved: a turn never computes more
 * than its own tokens and those that began the conversation. */
static void test_forget(void **state)
{
    ebb_chat *c = open_small(false);
    const ebb_message *note;
    size_t n_ui_events = 0, n_tokens = 0;
    uint32_t most = 0;
    ebb_error err;

    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ebb_chat_send(c, "What is this?", 13, &err), EBB_OK);
        wait_event(c, EBB_EVENT_DONE, NULL, 0);
        assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
        assert_true(last(c)->turn_stats.n_prompt < 256);
        most = i > 0 && last(c)->turn_stats.n_computed > most ? last(c)->turn_stats.n_computed : most;
    }
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++) {
        n_ui_events += ebb_chat_message(c, i)->role == EBB_ROLE_NOTE;
        n_tokens += ebb_chat_message(c, i)->role != EBB_ROLE_NOTE ? ebb_chat_message(c, i)->n_ids : 0;
    }
    note = ebb_chat_truncation_note(c);
    assert_true(n_ui_events >= 3);
    assert_true(n_tokens > 3 * 256);
    assert_true(note->truncation.has_cache_salt);
    assert_true(most < 100);
    /* What the note has settled begins as the conversation did: the system prompt holds. */
    assert_memory_equal(note->ids, ebb_chat_message(c, 1)->ids, 10 * sizeof *note->ids);
    ebb_chat_close(c);

    /* After a restart: the same view, its K and V from the disk. */
    c = open_small(true);
    assert_true(ebb_chat_truncation_note(c)->truncation.has_cache_salt);
    assert_int_equal(ebb_chat_send(c, "And?", 4, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_true(last(c)->turn_stats.n_reused_disk > 50);
    assert_true(last(c)->turn_stats.n_computed < 100);
    ebb_chat_close(c);
}

/* The question comes before anybody has heard what the gap has become: what was moved is not computed. */
static void test_forget_and_ask_at_once(void **state)
{
    ebb_chat *c = open_small(false);
    ebb_error err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb_chat_send(c, "What is this?", 13, &err), EBB_OK);
        wait_event(c, EBB_EVENT_DONE, NULL, 0);
    }
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 1, &err), EBB_OK);
    assert_int_equal(ebb_chat_send(c, "And?", 4, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_true(ebb_chat_truncation_note(c)->truncation.has_cache_salt);
    assert_true(last(c)->turn_stats.n_computed < 50);
    assert_true(last(c)->turn_stats.n_reused > last(c)->turn_stats.n_computed);
    ebb_chat_close(c);
}

/* A system prompt that another session has used is read from the disk: all whole blocks of 32 tokens. */
static void test_system_prompt_is_shared(void **state)
{
    static const char prompt[] =
        "You review code.  Say first what is wrong, then what may be, then how it could be simpler. "
                                 "Name lines and files, and never praise.";
    ebb_chat *c = open_kept(false, prompt);
    uint32_t n_system;
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_chat_send(c, "int x;", 6, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    n_system = last(c)->turn_stats.n_computed - 40; /* the question, its frame */
    ebb_chat_close(c);
    assert_true(n_system > 64);
    c = open_kept(false, prompt);
    assert_int_equal(ebb_chat_n_messages(c), 1);
    assert_int_equal(ebb_chat_send(c, "char y[3];", 10, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_true(last(c)->turn_stats.n_reused_disk >= n_system / 32 * 32);
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_turns), T(test_restart), T(test_stop), T(test_cut), T(test_forget),
                                        T(test_forget_and_ask_at_once),
                                        T(test_system_prompt_is_shared), T(test_no_model_for_a_model),
                                        T(test_no_unknown_model_for_a_model) };

    return cmocka_run_group_tests_name("chat_model_ops", tests, NULL, NULL);
}
