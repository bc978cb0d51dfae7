/* A conversation with remote engines: what needs no ids goes on, counts are the server's or about, and what cannot
 * be is said. */
#include "ebb_test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "conversation/chat_ops.h"
#include "conversation/chat_priv.h"
#include "models/models.h"
#include "turn/context_view.h"
#include "support/fake_hub.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

static test_hub server;
static char folder[64], db[96];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(folder, sizeof folder, "/tmp/ebb-engines-XXXXXX") != 0)
        return -1;
    snprintf(db, sizeof db, "%s/sessions.db", folder);
    setenv("XDG_CONFIG_HOME", folder, 1);
    setenv("XDG_STATE_HOME", folder, 1);
    (void)test_hub_start_script(&server, "tests/support/engine.py");     /* without python3 the tests are skipped */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (server.pid > 0)
        test_hub_stop(&server);
    return ebb_own_folder_end(folder);
}

/* Events until one of this kind; what was said before, in notices, if they are wanted. */
static void wait_event_and_notices(ebb_chat *c, ebb_chat_event_kind kind, char *text, size_t cap, ebb_buf *notices)
{
    ebb_chat_event ev;

    for (int i = 0; i < EBB_TEST_WAIT_S * 10;) {
        struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };

        if (!ebb_chat_event_next(c, &ev)) {
            poll(&p, 1, 100);
            i++;
            continue;
        }
        if (ev.kind == EBB_EVENT_NOTICE && notices)
            ebb_buf_addf(notices, "%s\n", ev.text);
        if (ev.kind == kind) {
            if (text)
                snprintf(text, cap, "%.*s", (int)ev.n_text, ev.text ? ev.text : "");
            return;
        }
    }
    fail_msg("no event %d came", (int)kind);
}

static void wait_event(ebb_chat *c, ebb_chat_event_kind kind, char *text, size_t cap)
{
    wait_event_and_notices(c, kind, text, cap, NULL);
}

/* Store, sampling and, where no model is named, engine of `o` are filled in. */
static ebb_chat *begin_chat_with(const char *how, ebb_chat_opts o)
{
    ebb_error err;
    ebb_chat *c;

    if (server.pid <= 0)
        skip();
    test_hub_how(&server, how);
    o.engine_name = o.model_path ? NULL : server.url;
    o.store_path = db;
    o.sampling = ebb_sampler_params_default();
    if (ebb_chat_open(&o, &c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return c;
}

static ebb_chat *begin_chat(const char *how, const char *session)
{
    return begin_chat_with(how, (ebb_chat_opts){ .session_name = session });
}

static ebb_chat *open_chat(const char *how, const char *session)
{
    ebb_chat *c = begin_chat(how, session);

    wait_event(c, EBB_EVENT_READY, NULL, 0);
    return c;
}

static const ebb_message *last(const ebb_chat *c)
{
    return ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
}

static void say(ebb_chat *c, const char *text)
{
    ebb_error err;

    if (ebb_chat_send(c, text, strlen(text), &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
}

/* What speaks OpenAI's protocol and is nothing that is known has the longest name. */
static void test_a_server_is_named(void **state)
{
    ebb_chat *c = begin_chat("kind=any", "named");
    char text[256];

    (void)state;
    wait_event(c, EBB_EVENT_NOTICE, text, sizeof text);
    assert_non_null(strstr(text, " answers: an OpenAI-style server at 127.0.0.1, "));
    ebb_chat_close(c);
}

static void test_figures_are_kept(void **state)
{
    ebb_chat *c = open_chat("kind=llama", "kept");
    ebb_remote_figures f;
    ebb_chat_cost cost;
    ebb_stats s;
    uint32_t n;

    (void)state;
    assert_true(ebb_chat_preview(c, EBB_ACT_SEND, 0, "blue sky", 8, &cost));
    assert_true(cost.is_about && cost.n_new > 0);
    say(c, "blue sky");
    assert_string_equal(last(c)->text, "You said blue sky in 1 messages.");
    assert_string_equal(last(c)->model, "tiny");
    assert_string_equal(last(c)->engine, "127.0.0.1");
    assert_int_equal(last(c)->n_ids, 0);
    n = last(c)->turn_stats.n_prompt + last(c)->turn_stats.n_generated;
    ebb_chat_stats(c, &s);
    assert_true(ebb_chat_remote(c, &f));
    assert_int_equal(s.n_ctx_used, n);               /* exact: nothing was said since */
    assert_false(f.is_about);
    assert_int_equal(s.n_ctx, 4096);
    assert_true(f.has_cached && f.first_s > 0 && f.connected_ms > 0);
    ebb_chat_close(c);

    c = open_chat("kind=llama", "kept");         /* and after a restart */
    assert_string_equal(last(c)->engine, "127.0.0.1");
    assert_true(last(c)->turn_stats.first_s > 0);
    assert_int_equal(last(c)->turn_stats.about, 0);
    ebb_chat_stats(c, &s);
    assert_int_equal(s.n_ctx_used, n);
    say(c, "more");
    assert_string_equal(last(c)->text, "You said more in 3 messages.");
    ebb_chat_close(c);
}

static void test_tree_needs_no_ids(void **state)
{
    ebb_chat *c = open_chat("kind=vllm", NULL);
    ebb_error err;
    char text[600];

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_int_equal(ebb_chat_edit(c, 0, "two", 3, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(last(c)->text, "You said two in 1 messages.");
    assert_int_equal(ebb_chat_go(c, "2a", &err), EBB_OK);
    assert_string_equal(last(c)->text, "You said one in 1 messages.");
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_redo(c, &err), EBB_OK);
    test_hub_how(&server, "kind=vllm say=_tail");        /* other words for the end */
    assert_int_equal(ebb_chat_cut(c, "You said", 8, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(last(c)->text, "You said tail");
    test_hub_how(&server, "kind=vllm say=half_an_answer nofinish nodone");  /* cut off: the part is kept, and goes on */
    assert_int_equal(ebb_chat_send(c, "x", 1, &err), EBB_OK);
    wait_event(c, EBB_EVENT_ERROR, text, sizeof text);
    assert_non_null(strstr(text, "Enter continues"));
    assert_string_equal(last(c)->text, "half an answer");
    test_hub_how(&server, "kind=vllm say=_and_the_rest");
    assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(last(c)->text, "half an answer and the rest");
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    ebb_chat_close(c);
}

/* What is left of an answer is sent as it was shown: the thought apart, also where a quoted mark has ended it. */
static void test_the_thought_of_a_cut_answer(void **state)
{
    static const char *const cases[][3] = {
        { "kind=vllm say=[THINK]Say_hi.[/THINK]**Hello**_world", "[THINK]Say hi.[/THINK]**Hello**", "**Hello**" },
        { "kind=vllm say=[THINK]Say_hi.`[/THINK]`_Hello_world", "[THINK]Say hi.`[/THINK]` Hello", "` Hello" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_chat *c = open_chat(cases[i][0], NULL);
        char log[8192], content[60];
        ebb_error err;

        say(c, "one");
        assert_int_equal(ebb_chat_cut(c, cases[i][1], strlen(cases[i][1]), &err), EBB_OK);
        wait_event(c, EBB_EVENT_DONE, NULL, 0);
        test_hub_last_post(&server, log, sizeof log);
        snprintf(content, sizeof content, "\"content\": \"%s\"", cases[i][2]);
        assert_non_null(strstr(log, content));
        assert_non_null(strstr(log, "Say hi."));
        assert_null(strstr(log, "[THINK]"));
        ebb_chat_close(c);
    }
}

static void test_refusals_say_who_can(void **state)
{
    ebb_chat *c = open_chat("kind=openai ctx=100", NULL);
    ebb_error err;
    char text[600];

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_plan(c, &err), EBB_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "/engine here"));
    assert_int_equal(ebb_chat_set_budget(c, 1 << 30, &err), EBB_UNSUPPORTED);
    assert_int_equal(ebb_chat_set_draft(c, "x", &err), EBB_UNSUPPORTED);
    assert_int_equal(ebb_chat_cut(c, "You", 3, &err), EBB_UNSUPPORTED);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_GROW, 0, &err), EBB_UNSUPPORTED);
    test_hub_how(&server, "kind=openai nofinish nodone");
    assert_int_equal(ebb_chat_send(c, "x", 1, &err), EBB_OK);
    wait_event(c, EBB_EVENT_ERROR, text, sizeof text);
    assert_null(strstr(text, "Enter continues"));
    assert_non_null(strstr(text, "; what arrived is kept, and /retry asks again"));
    assert_int_equal(ebb_chat_continue(c, &err), EBB_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "starts each answer"));
    assert_int_equal(ebb_chat_set_engine(c, "nowhere", NULL, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_chat_set_engine(c, "here", "/nowhere/m.gguf", &err), EBB_NOTFOUND);
    assert_true(ebb_chat_is_ready(c));           /* a slip costs nothing */
    ebb_chat_close(c);
}

/* What nobody chose is not sent, and so not known here. */
static void test_the_servers_sampling(void **state)
{
    ebb_chat *c = open_chat("kind=llama", NULL);
    char text[300];
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_chat_set(c, "temp", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "temp = the server's (0 to 10)"));
    assert_int_equal(ebb_chat_set(c, "temp", "0.7", text, sizeof text, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "temp", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "temp = 0.7 ("));
    assert_int_equal(ebb_chat_set(c, "predict", NULL, text, sizeof text, &err), EBB_OK);
    assert_null(strstr(text, "the server's"));
    assert_int_equal(ebb_chat_set(c, "top-k", "7", text, sizeof text, &err), EBB_OK);
    assert_string_equal(text, "top-k = 7");
    test_hub_how(&server, "kind=openai");        /* OpenAI's protocol knows temp, but no top-k */
    assert_int_equal(ebb_chat_set_engine(c, server.url, NULL, &err), EBB_OK);
    wait_event(c, EBB_EVENT_WARNING, text, sizeof text);
    assert_non_null(strstr(text, " is sent no top-k: "));
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_set(c, "top-k", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "top-k = 7 for other engines; this one is not sent it ("));
    assert_int_equal(ebb_chat_set(c, "min-p", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "min-p = the server's ("));
    assert_int_equal(ebb_chat_set(c, "min-p", "0.1", text, sizeof text, &err), EBB_OK);
    assert_string_equal(text, "min-p = 0.1 for other engines; this one is not sent it");
    assert_int_equal(ebb_chat_set(c, "thinking", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "thinking = default ("));
    assert_int_equal(ebb_chat_set(c, "thinking", "off", text, sizeof text, &err), EBB_OK);
    assert_string_equal(text, "thinking = off for other engines; this one is not sent it");
    assert_int_equal(ebb_chat_set(c, "repeat-last", "9", text, sizeof text, &err), EBB_OK);
    test_hub_how(&server, "kind=vllm");          /* which has all but one */
    assert_int_equal(ebb_chat_set_engine(c, server.url, NULL, &err), EBB_OK);
    wait_event(c, EBB_EVENT_WARNING, text, sizeof text);
    assert_non_null(strstr(text, " is sent no repeat-last: vLLM has none"));
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_set(c, "repeat-last", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "repeat-last = 9 for other engines; "));
    assert_int_equal(ebb_chat_set(c, "top-k", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "top-k = 7 ("));
    assert_int_equal(ebb_chat_set(c, "thinking", NULL, text, sizeof text, &err), EBB_OK);
    assert_non_null(strstr(text, "thinking = off ("));
    ebb_chat_close(c);
}

/* Messages that the engine was asked with last: it says so. */
static size_t n_messages_asked(const ebb_chat *c)
{
    return strtoul(strstr(last(c)->text, " in ") + 4, NULL, 10);
}

/* The oldest turns go by estimate; where the context is not told, nothing is ever full. */
static void test_overflow_by_estimate(void **state)
{
    ebb_chat *c = open_chat("kind=vllm ctx=200", NULL);
    ebb_error err;
    char text[64], words[400];
    size_t n_asked = 0;

    (void)state;
    assert_int_equal(ebb_chat_set(c, "overflow", "forget", text, sizeof text, &err), EBB_OK);
    for (int i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "question %d: %s", i, "these are some words that take room, and more of them");
        say(c, words);
        n_asked = n_messages_asked(c);
        assert_true(last(c)->turn_stats.n_prompt < 200);
    }
    assert_true(n_asked > 0 && n_asked < 15);    /* of 15 messages */
    assert_non_null(ebb_chat_truncation_note(c));
    ebb_chat_close(c);
    c = open_chat("kind=any", NULL);
    for (int i = 0; i < 4; i++)
        say(c, words);
    assert_string_equal(strstr(last(c)->text, " in ") + 1, "in 7 messages.");
    ebb_chat_close(c);
}

/* Where nobody can be asked, what is too long is refused: with about how much it is, and a step that leads on. */
static void test_too_long_by_estimate(void **state)
{
    ebb_chat *c = begin_chat_with("kind=vllm ctx=200", (ebb_chat_opts){ .is_unattended = true });
    char words[4000];
    ebb_error err;

    (void)state;
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    memset(words, 'x', sizeof words);
    assert_int_equal(ebb_chat_send(c, words, sizeof words, &err), EBB_CONTEXT);
    assert_non_null(strstr(err.msg, "the input has about "));
    assert_non_null(strstr(err.msg, " holds 200 with its answer: shorten it, or ask the engine here (-e here "));
    assert_null(strstr(err.msg, "/set ctx"));
    free(c->remote.name);                        /* one that was found: its address is ebb's own */
    c->remote.name = strdup(EBB_SHARED_PREFIX "/home/u/models/m.gguf");
    assert_int_equal(ebb_chat_send(c, words, sizeof words, &err), EBB_CONTEXT);
    assert_non_null(strstr(err.msg, "the context of the ebb serve that shares this model holds 200 "));
    assert_int_equal(ebb_chat_need_ids(c, "x", &err), EBB_UNSUPPORTED);
    assert_null(strstr(err.msg, EBB_SHARED_PREFIX));
    ebb_chat_close(c);
}

/* Counts from before a decision are of what it leaves out, too: they do not make the rest seem as full as before. */
static void test_half_stays_where_the_engine_counts(void **state)
{
    ebb_chat *c = open_chat("kind=llama ctx=400", NULL);
    char words[100];
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_chat_set(c, "overflow", "forget", NULL, 0, &err), EBB_OK);
    for (int i = 0; !ebb_chat_truncation_note(c); i++) {
        snprintf(words, sizeof words, "question %d: %s", i, "these are some words that take room, and more of them");
        say(c, words);
        assert_in_range(i, 0, 30);
    }
    assert_true(n_messages_asked(c) > 4);
    ebb_chat_close(c);
}

/* What the engine's own model has counted in this process counts at the engine, too; what another one has does not. */
static void test_counts_of_the_same_model(void **state)
{
    ebb_chat *c = open_chat("kind=llama", NULL);
    ebb_remote_figures f;
    ebb_message *m;
    uint32_t n;

    (void)state;
    say(c, "blue sky");
    m = &ebb_tree_leaf(&c->tree)->m;
    m->turn_stats.n_prompt += 100;
    n = ebb_chat_n_tokens(c);
    assert_true(n > 100);
    free(m->engine);
    m->engine = NULL;
    assert_int_equal(ebb_chat_n_tokens(c), n);
    assert_true(ebb_chat_remote(c, &f) && f.is_about);
    m->model[0] ^= 1;
    assert_true(ebb_chat_n_tokens(c) < 100);
    ebb_chat_close(c);
}

/* More tokens than were estimated: what the engine has counted decides, as if it had been known. */
static void test_a_refusal_is_a_count(void **state)
{
    ebb_chat *c = open_chat("kind=vllm ctx=400 full=1", "refused");
    char words[100], text[600];
    ebb_error err;

    (void)state;
    test_hub_how(&server, "kind=vllm ctx=400 nousage");
    for (int i = 0; i < 6; i++) {
        snprintf(words, sizeof words, "question %d: %s", i, "these are some words that take room");
        say(c, words);
    }
    assert_null(ebb_chat_truncation_note(c));
    test_hub_how(&server, "kind=vllm ctx=400 full=1");
    assert_int_equal(ebb_chat_send(c, "and now?", 8, &err), EBB_OK);
    wait_event(c, EBB_EVENT_NOTICE, text, sizeof text);
    assert_non_null(strstr(text, "/forget leaves the oldest "));
    assert_non_null(strstr(text, " out (about "));
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_false(ebb_chat_is_busy(c));
    assert_string_equal(last(c)->text, "and now?");
    ebb_chat_close(c);

    c = open_chat("kind=vllm ctx=400 full=1", "refused");        /* it is known from then on */
    assert_true(ebb_chat_n_tokens(c) > 400);
    assert_int_equal(ebb_chat_undo(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "overflow", "forget", NULL, 0, &err), EBB_OK);
    say(c, "and then?");
    assert_non_null(strstr(last(c)->text, "You said and then? in "));
    assert_in_range(n_messages_asked(c), 3, 11);
    assert_non_null(strstr(ebb_chat_truncation_note(c)->text, " turns (about "));
    memset(words, 'x', sizeof words);
    test_hub_how(&server, "kind=vllm ctx=20 full=1");            /* what nothing can be left out for is refused */
    assert_int_equal(ebb_chat_send(c, words, sizeof words, &err), EBB_OK);
    wait_event(c, EBB_EVENT_ERROR, text, sizeof text);
    assert_non_null(strstr(text, "the request has "));
    assert_false(ebb_chat_is_busy(c));
    ebb_chat_close(c);
}

/* The copy of an unfinished answer stands below the note, but was counted above it. */
static void test_forgetting_counts_at_once(void **state)
{
    ebb_chat *c = open_chat("kind=llama ctx=4000 why=length", NULL);
    ebb_error err;
    uint32_t n;

    (void)state;
    for (int i = 0; i < 4; i++)
        say(c, "these are some words that take room, and there are more of them in each of the questions");
    n = ebb_chat_n_tokens(c);
    assert_int_equal(last(c)->finish, EBB_FINISH_LENGTH);
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 2, &err), EBB_OK);
    assert_int_equal(last(c)->role, EBB_ROLE_ASSISTANT);
    assert_true(ebb_chat_n_tokens(c) < n - n / 4);
    ebb_chat_close(c);
}

/* What it does not have leaves it as it is. */
static void test_models_of_the_server(void **state)
{
    ebb_chat *c = open_chat("kind=ollama models=1", NULL);
    ebb_error err;

    (void)state;
    assert_string_equal(ebb_chat_engine_model(c, 0), "tiny");
    assert_string_equal(ebb_chat_engine_model(c, 1), "other0");
    assert_string_equal(ebb_chat_engine_model(c, 2), "");
    assert_int_equal(ebb_chat_load_model(c, "guide", &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "but tiny and others; /engine here guide "));
    assert_true(ebb_chat_is_ready(c));
    say(c, "one");
    assert_int_equal(ebb_chat_load_model(c, "other0", &err), EBB_OK);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_string_equal(ebb_chat_model(c)->name, "other0");
    ebb_chat_close(c);
}

static void test_server_that_was_away(void **state)
{
    ebb_chat *c = open_chat("kind=llama", NULL);
    ebb_error err;
    char text[600];

    (void)state;
    say(c, "one");
    assert_int_equal(ebb_chat_set_engine(c, "http://127.0.0.1:1", NULL, &err), EBB_OK);
    assert_false(ebb_chat_can_reconnect(c));     /* that is under way */
    wait_event(c, EBB_EVENT_ERROR, text, sizeof text);
    assert_true(ebb_chat_can_reconnect(c));
    assert_int_equal(ebb_chat_reconnect(c, &err), EBB_OK);
    assert_false(ebb_chat_can_reconnect(c));
    assert_int_equal(ebb_chat_set_engine(c, server.url, NULL, &err), EBB_OK);
    say(c, "two");                               /* it waits until the engine stands */
    assert_string_equal(last(c)->text, "You said two in 3 messages.");
    assert_int_equal(ebb_chat_test_engine(c, NULL, &err), EBB_OK);
    wait_event(c, EBB_EVENT_REPORT, text, sizeof text);
    assert_non_null(strstr(text, "llama-server b1-test"));
    test_hub_how(&server, "hold");               /* a test that hangs does not hold up the end */
    assert_int_equal(ebb_chat_test_engine(c, NULL, &err), EBB_OK);
    ebb_chat_close(c);
    test_hub_how(&server, "");
}

static pid_t wait_for_number(const char *path)
{
    FILE *f;
    int pid = 0;

    for (int i = 0; i < EBB_TEST_WAIT_S * 100 && access(path, R_OK) != 0; i++)
        usleep(10000);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &pid), 1);
    fclose(f);
    unlink(path);
    return pid;
}

/* It ends a second after it is stopped, and whoever waits for that sees it gone.  On a machine that stands still for
 * so long it is gone as well: then once more. */
static void test_another_test_waits_for_none(void **state)
{
    char number[96], address[400], text[600];
    bool was_there = false;
    ebb_error err;
    ebb_chat *c;

    (void)state;
    snprintf(number, sizeof number, "%s/number", folder);
    snprintf(address, sizeof address, "exec:trap '' TERM; echo $$ >%s.new; mv %s.new %s; exec sleep 1000", number,
             number, number);
    c = open_chat("kind=llama", NULL);
    for (int i = 0; i < 10 && !was_there; i++) {
        pid_t pid;

        assert_int_equal(ebb_chat_test_engine(c, address, &err), EBB_OK);
        pid = wait_for_number(number);
        assert_int_equal(ebb_chat_test_engine(c, server.url, &err), EBB_OK);
        was_there = kill(pid, 0) == 0;
        wait_event(c, EBB_EVENT_REPORT, text, sizeof text);      /* the second one's; the first has none */
        assert_non_null(strstr(text, "llama-server b1-test"));
    }
    assert_true(was_there);
    assert_int_equal(ebb_chat_test_engine(c, "nowhere", &err), EBB_NOTFOUND);
    ebb_chat_close(c);
}

/* The model that answered here before has no file any more: said, and neither does the server leave nor does the guide
 * take its place. */
static void test_the_way_back_is_gone(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 2, .n_ctx = 512 };
    ebb_chat *c = open_chat("kind=openai ctx=100", NULL);
    char path[96];
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/tiny.gguf", folder);
    assert_true(ebb_tiny_write(&tiny, path));
    assert_int_equal(ebb_chat_set_engine(c, "here", path, &err), EBB_OK);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ebb_chat_set_engine(c, server.url, NULL, &err), EBB_OK);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_set_engine(c, "here", NULL, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "tiny.gguf: no such file"));
    assert_true(ebb_chat_is_ready(c));
    ebb_chat_close(c);
}

/* What broke off in the middle of a thought cannot go on, and nobody says that it can: neither now nor later. */
static void test_a_thought_that_breaks_off(void **state)
{
    ebb_chat *c = open_chat("kind=vllm", "hm");
    char text[600];
    ebb_error err;

    (void)state;
    test_hub_how(&server, "kind=vllm think=let_me_see say= nofinish nodone");
    assert_int_equal(ebb_chat_send(c, "x", 1, &err), EBB_OK);
    wait_event(c, EBB_EVENT_ERROR, text, sizeof text);
    assert_non_null(strstr(text, "; what arrived is kept, and /retry asks again"));
    assert_int_equal(ebb_chat_continue(c, &err), EBB_USAGE);
    assert_int_equal(last(c)->finish, EBB_FINISH_ERROR);
    ebb_tree_leaf(&c->tree)->m.finish = EBB_FINISH_CUT_OFF;      /* by a crash */
    ebb_chat_report_interrupted(c);
    wait_event(c, EBB_EVENT_NOTICE, text, sizeof text);
    assert_string_equal(text, "the last answer was cut off; /retry asks for another one");
    ebb_chat_close(c);
}

/* An answer that fills a context of 400, behind a turn that can be left out; what was said when it had ended. */
static ebb_chat *fill_context(const char *kind, const char *how, ebb_buf *said)
{
    ebb_chat *c = open_chat(kind, NULL);
    char words[621];
    ebb_error err;

    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    assert_int_equal(ebb_chat_set(c, "overflow", "forget", NULL, 0, &err), EBB_OK);
    say(c, "these are some words that take room, so that it is known how many bytes a token has here");
    test_hub_how(&server, how);
    assert_int_equal(ebb_chat_send(c, words, strlen(words), &err), EBB_OK);
    wait_event_and_notices(c, EBB_EVENT_DONE, NULL, 0, said);
    assert_int_equal(last(c)->finish, EBB_FINISH_LENGTH);
    assert_null(ebb_chat_truncation_note(c));
    return c;
}

/* Its next answer would be glued to this one: it ends here.  When turns go, it stays as it is, and can be tried again
 * without them. */
static void test_a_full_context_of_who_cannot_go_on(void **state)
{
    char how[900] = "kind=lmstudio ctx=400 why=length say=", answer[769];
    ebb_buf said = { 0 };
    ebb_error err;
    ebb_chat *c;

    (void)state;
    memset(answer, 'y', sizeof answer - 1);
    answer[sizeof answer - 1] = '\0';
    strcat(how, answer);
    c = fill_context("kind=lmstudio ctx=400", how, &said);
    assert_non_null(strstr(ebb_buf_text(&said),
                           "(LM Studio) starts each answer from the beginning; /retry asks again"));
    assert_string_equal(last(c)->text, answer);
    test_hub_how(&server, "kind=lmstudio ctx=400 say=anew");
    assert_int_equal(ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 1, &err), EBB_OK);
    assert_false(ebb_chat_is_busy(c));
    assert_non_null(ebb_chat_truncation_note(c));
    assert_string_equal(last(c)->text, answer);
    assert_int_equal(ebb_chat_retry(c, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(last(c)->text, "anew");
    assert_non_null(ebb_chat_truncation_note(c));
    ebb_chat_close(c);
    ebb_buf_fini(&said);
}

/* No server goes on with a thought. */
static void test_a_thought_that_fills_the_context(void **state)
{
    char how[900] = "kind=vllm ctx=400 why=length say= think=hm";
    ebb_buf said = { 0 };
    ebb_chat *c;

    (void)state;
    for (int i = 0; i < 192; i++)
        strcat(how, "_hm");
    c = fill_context("kind=vllm ctx=400", how, &said);
    assert_non_null(strstr(ebb_buf_text(&said),
                           "the answer was cut off while thinking, which no server can continue; /retry"));
    assert_null(strstr(last(c)->text + 1, "<think>"));
    ebb_chat_close(c);
    ebb_buf_fini(&said);
}

/* Nor does what this process cannot use: the engine at hand stays. */
static void test_an_engine_that_cannot_be_used(void **state)
{
    static const char *const cases[][2] = {
        { "address = http://10.0.0.1:8080\nkey = secret\n", "over http, where others could read it" },
        { "address = http://127.0.0.1:1\nkey-file = /nowhere/key\n", "/nowhere/key" },
        { "address = http://127.0.0.1:1\nkey-variable = EBB_NO_SUCH_KEY\n", "EBB_NO_SUCH_KEY" },
    };
    ebb_chat *c = open_chat("kind=llama", NULL);
    char path[96];
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/ebb", folder);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/ebb/engines", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_int_equal(fchmod(fileno(f), 0600), 0);
        fprintf(f, "[box]\n%s", cases[i][0]);
        fclose(f);
        assert_int_not_equal(ebb_chat_set_engine(c, "box", NULL, &err), EBB_OK);
        if (!strstr(err.msg, cases[i][1]))
            fail_msg("%s", err.msg);
        assert_true(ebb_chat_is_ready(c));
    }
    unlink(path);
    say(c, "one");
    assert_string_equal(last(c)->engine, "127.0.0.1");
    ebb_chat_close(c);
}

static void go_to(ebb_chat *c, const char *engine, const char *model)
{
    ebb_error err;

    if (ebb_chat_set_engine(c, engine, model, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
}

/* The ids of an answer's first half are not those of all of it. */
static void test_a_server_goes_on_with_an_answer_of_here(void **state)
{
    static const ebb_tiny_opts tiny = { .seed = 2, .n_ctx = 512 };
    ebb_chat *c = open_chat("kind=vllm say=_and_what_the_server_has_to_say_of_it", NULL);
    char path[96], text[600];
    ebb_error err;
    size_t n_half;

    (void)state;
    snprintf(path, sizeof path, "%s/half.gguf", folder);
    assert_true(ebb_tiny_write(&tiny, path));
    go_to(c, "here", path);
    assert_int_equal(ebb_chat_set(c, "temp", "0", NULL, 0, &err), EBB_OK);
    assert_int_equal(ebb_chat_set(c, "predict", "4", NULL, 0, &err), EBB_OK);
    say(c, "one");
    assert_int_equal(last(c)->n_ids, 4);
    assert_true(ebb_message_is_sampled(last(c)));
    n_half = last(c)->n_text;
    snprintf(text, sizeof text, "%s and what the server has to say of it", last(c)->text);
    go_to(c, server.url, NULL);
    assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
    wait_event(c, EBB_EVENT_DONE, NULL, 0);
    assert_true(last(c)->n_text > n_half);
    assert_string_equal(last(c)->text, text);
    assert_int_equal(last(c)->n_ids, 0);
    assert_false(ebb_message_is_sampled(last(c)));
    assert_string_equal(last(c)->engine, "127.0.0.1");
    assert_string_equal(last(c)->model, "tiny");
    go_to(c, "here", NULL);
    say(c, "two");                               /* now the model here has read all of it */
    assert_true(ebb_chat_message(c, 1)->n_ids > 4);
    assert_string_equal(ebb_chat_message(c, 1)->text, text);
    ebb_chat_close(c);
}

/* A tiny model, whose path is the caller's. */
static void write_tiny(char path[96])
{
    const ebb_tiny_opts tiny = { .seed = 2, .n_ctx = 512 };

    snprintf(path, 96, "%s/found.gguf", folder);
    assert_true(ebb_tiny_write(&tiny, path));
}

static void assert_answers_here(const ebb_chat *c, const char *path)
{
    assert_null(ebb_chat_engine(c));
    assert_string_equal(ebb_chat_model(c)->path, path);
}

/* The way back from a server that was found leads to the model that it was found for, which is remembered. */
static void test_the_way_back_from_a_found_one(void **state)
{
    ebb_buf remembered = { 0 };
    char path[96];
    ebb_error err;
    ebb_chat *c;

    (void)state;
    write_tiny(path);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    ebb_chat_close(c);
    (void)ebb_models_remembered(&remembered);            /* one of an earlier test, or none */
    assert_string_not_equal(ebb_buf_text(&remembered), path);
    ebb_buf_clear(&remembered);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path, .here_is_chosen = true });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_string_equal(ebb_chat_engine(c), server.url);
    assert_true(ebb_models_remembered(&remembered));
    assert_string_equal(ebb_buf_text(&remembered), path);
    ebb_buf_fini(&remembered);
    assert_int_equal(ebb_chat_set_engine(c, "here", NULL, &err), EBB_OK);
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_answers_here(c, path);
    ebb_chat_close(c);
}

/* A server renders with a template of its own: where the session has another one, the model is opened here. */
static void test_a_template_leaves_a_found_one(void **state)
{
    ebb_buf notices = { 0 };
    char path[96];
    ebb_error err;
    ebb_chat *c;

    (void)state;
    write_tiny(path);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .model_path = path, .session_name = "own", .n_predict = 2 });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_set_template(c, "none", &err), EBB_OK);
    say(c, "one");
    ebb_chat_close(c);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path, .session_name = "own" });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_answers_here(c, path);
    assert_string_equal(ebb_chat_template(c), "none");
    ebb_chat_close(c);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_string_equal(ebb_chat_engine(c), server.url);
    assert_int_equal(ebb_chat_load(c, "own", &err), EBB_OK);
    wait_event_and_notices(c, EBB_EVENT_READY, NULL, 0, &notices);
    assert_non_null(strstr(ebb_buf_text(&notices), "the chosen chat template is 'none'"));
    ebb_buf_fini(&notices);
    assert_answers_here(c, path);
    ebb_chat_close(c);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_delete(c, "own", &err), EBB_OK);
    assert_string_equal(ebb_chat_engine(c), server.url);
    assert_int_equal(ebb_chat_undelete(c, &err), EBB_OK);
    assert_null(ebb_chat_engine(c));
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_answers_here(c, path);
    ebb_chat_close(c);
}

/* It answers each question by itself, behind a server that was found, too; one that was named gets all of it. */
static void test_the_guide_behind_a_found_one(void **state)
{
    ebb_chat *c = begin_chat_with("kind=ebb ctx=120", (ebb_chat_opts){ .here_model = EBB_MODELS_GUIDE });

    (void)state;
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    for (int i = 0; i < 6; i++) {
        say(c, "these are some words that take room, and more of them");
        assert_int_equal(n_messages_asked(c), 1);
        assert_true(ebb_chat_n_tokens(c) < 40);
    }
    assert_null(ebb_chat_truncation_note(c));
    ebb_chat_close(c);
    c = open_chat("kind=ebb", NULL);
    say(c, "one");
    say(c, "two");
    assert_int_equal(n_messages_asked(c), 3);
    ebb_chat_close(c);
}

static bool is_remembered(const char *path)
{
    ebb_buf remembered = { 0 };
    bool is = ebb_models_remembered(&remembered) && strcmp(ebb_buf_text(&remembered), path) == 0;

    ebb_buf_fini(&remembered);
    return is;
}

/* Its model is remembered if the user has named it; one that is gone leaves the server where it is. */
static void test_what_a_template_opens(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 2, .n_ctx = 512 };
    ebb_buf notices = { 0 };
    char path[96], other[96];
    ebb_error err;
    ebb_chat *c;

    (void)state;
    snprintf(path, sizeof path, "%s/left.gguf", folder);
    assert_true(ebb_tiny_write(&tiny, path));
    write_tiny(other);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .model_path = other, .session_name = "framed", .n_predict = 2 });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_set_template(c, "none", &err), EBB_OK);
    say(c, "one");
    ebb_chat_close(c);
    for (int is_chosen = 0; is_chosen < 2; is_chosen++) {
        c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path, .here_is_chosen = is_chosen,
                                                         .session_name = "framed" });
        wait_event(c, EBB_EVENT_READY, NULL, 0);
        assert_answers_here(c, path);
        assert_int_equal(is_remembered(path), is_chosen);
        ebb_chat_close(c);
    }
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path });
    wait_event(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ebb_chat_load(c, "framed", &err), EBB_OK);
    assert_non_null(ebb_chat_engine(c));
    say(c, "two");
    ebb_chat_close(c);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .here_model = path, .session_name = "framed" });
    wait_event_and_notices(c, EBB_EVENT_READY, NULL, 0, &notices);
    assert_non_null(strstr(ebb_buf_text(&notices), "without the chosen 'none', as its model cannot be opened here"));
    ebb_buf_fini(&notices);
    assert_string_equal(ebb_chat_engine(c), server.url);
    ebb_chat_close(c);
}

/* One that was named stays, and what it leaves out is said, also where nobody looks. */
static void test_a_named_one_leaves_the_template_out(void **state)
{
    ebb_chat *c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .template_name = "chatml", .template_given = true });
    char text[300];

    (void)state;
    wait_event(c, EBB_EVENT_WARNING, text, sizeof text);
    assert_non_null(strstr(text, "its own chat template, the chosen 'chatml' is left out"));
    assert_string_equal(ebb_chat_engine(c), server.url);
    ebb_chat_close(c);
    c = begin_chat_with("kind=ebb", (ebb_chat_opts){ .template_name = "none", .template_given = true });
    wait_event(c, EBB_EVENT_WARNING, text, sizeof text);         /* its name is quoted, or it would say the opposite */
    assert_non_null(strstr(text, "the chosen 'none' is left out"));
    ebb_chat_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_is_named),
        cmocka_unit_test(test_figures_are_kept),
        cmocka_unit_test(test_tree_needs_no_ids), cmocka_unit_test(test_the_thought_of_a_cut_answer),
        cmocka_unit_test(test_refusals_say_who_can),
        cmocka_unit_test(test_the_servers_sampling),
        cmocka_unit_test(test_overflow_by_estimate),
        cmocka_unit_test(test_too_long_by_estimate),
        cmocka_unit_test(test_half_stays_where_the_engine_counts),
        cmocka_unit_test(test_forgetting_counts_at_once),
        cmocka_unit_test(test_counts_of_the_same_model), cmocka_unit_test(test_a_refusal_is_a_count),
        cmocka_unit_test(test_a_thought_that_breaks_off),
        cmocka_unit_test(test_a_full_context_of_who_cannot_go_on),
        cmocka_unit_test(test_a_thought_that_fills_the_context),
        cmocka_unit_test(test_an_engine_that_cannot_be_used),
        cmocka_unit_test(test_models_of_the_server),
        cmocka_unit_test(test_server_that_was_away),
        cmocka_unit_test(test_another_test_waits_for_none),
        cmocka_unit_test(test_the_way_back_is_gone),
        cmocka_unit_test(test_a_server_goes_on_with_an_answer_of_here),
        cmocka_unit_test(test_the_way_back_from_a_found_one),
        cmocka_unit_test(test_a_template_leaves_a_found_one),
        cmocka_unit_test(test_the_guide_behind_a_found_one), cmocka_unit_test(test_what_a_template_opens),
        cmocka_unit_test(test_a_named_one_leaves_the_template_out),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
