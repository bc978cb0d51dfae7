/* Remote engines against a scripted server: every dialect, and what no server should do. */
#include "ebb_test.h"

#include <sys/resource.h>

#include "chat/remote/remote_fixture.h"
#include "conversation/chat.h"
#include "remote/probe.h"

static test_hub server;
static const char *const kinds[] = { "llama", "vllm", "sglang", "ollama", "lmstudio", "openai", "any" };

static int setup(void **state)
{
    (void)state;
    unsetenv("http_proxy");
    unsetenv("HTTP_PROXY");
    return test_hub_start_script(&server, "tests/support/engine.py") ? 0 : 0;
}

static int teardown(void **state)
{
    (void)state;
    if (server.pid > 0)
        test_hub_stop(&server);
    return 0;
}

static void need_server(void)
{
    if (server.pid <= 0)
        skip();
}

/* From now on it answers so: how("kind=%s cut=%d", ...) */
__attribute__((format(printf, 1, 2)))
static void how(const char *fmt, ...)
{
    char words[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    test_hub_how(&server, words);
}

/* The same, and a backend for it, ready or failed; without a server the test is skipped. */
#define open_as(h, ...) (need_server(), how(__VA_ARGS__), remote_open((h), server.url))

static void assert_heard(heard *h, const char *text)
{
    assert_string_equal(ebb_buf_text(&h->text), text);
}

/* -- Dialects ------------------------------------------------------------------------------ */

static void test_answers_of_every_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        heard h;
        ebb_backend *b = open_as(&h, "kind=%s ctx=8192 loaded ping", kinds[i]);
        const ebb_backend_facts *facts = b->ops->facts(b);

        assert_true(h.is_ready);
        assert_non_null(facts);
        assert_string_equal(facts->info.name, "tiny");
        assert_int_equal(b->ops->n_ctx(b), strcmp(kinds[i], "openai") && strcmp(kinds[i], "any") ? 8192 : 0);
        remote_say(&h, b, "blue");
        assert_int_equal(h.finish, EBB_FINISH_STOP);
        assert_heard(&h, "You said blue in 1 messages.");
        assert_int_equal(h.cost.n_prompt, 5);
        assert_int_equal(h.cost.n_generated, 7);
        assert_int_equal(h.cost.about & (EBB_ABOUT_PROMPT | EBB_ABOUT_GENERATED), 0);
        if (i < 3 || i == 5) {
            assert_int_equal(h.cost.about, 0);
            assert_int_equal(h.cost.n_reused + h.cost.n_computed, 5);
            assert_int_equal(h.cost.n_reused, 2);
        } else {
            assert_int_equal(h.cost.about, EBB_ABOUT_REUSED);
            assert_int_equal(h.cost.n_reused, 0);
        }
        assert_true(h.cost.first_s > 0);
        assert_int_equal(h.n_prefills > 0, strcmp(kinds[i], "llama") == 0);
        remote_close(&h, b);
    }
}

static void test_thoughts_of_both_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        heard h;
        ebb_backend *b = open_as(&h, "kind=%s think=let_me_see", kinds[i]);

        remote_say(&h, b, "x");
        assert_heard(&h, "<think>\nlet me see \n</think>\n\nYou said x in 1 messages.");
        remote_close(&h, b);
    }
}

/* What an engine says instead of an answer is shown, whichever way it comes, and as what it is. */
static void test_refusals_are_shown(void **state)
{
    static const char *const ways[] = { "kind=openai", "kind=openai plain", "kind=openai bytes=1" };
    heard h;
    ebb_backend *b;

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        b = open_as(&h, "%s refuses say=I_cannot_help.", ways[i]);
        remote_say(&h, b, "x");
        assert_int_equal(h.finish, EBB_FINISH_STOP);
        assert_heard(&h, "The engine refuses: I cannot help.");
        remote_close(&h, b);
    }
    b = open_as(&h, "kind=vllm think=hm refuses say=no");
    remote_say(&h, b, "x");
    assert_heard(&h, "<think>\nhm \n</think>\n\nThe engine refuses: no");
    remote_close(&h, b);
}

/* A thought goes back under its name, apart from the words. */
static void test_thoughts_go_back(void **state)
{
    static const struct { const char *kind, *name; } back[] = {
        { "llama", "\"reasoning_content\": \"hm\"" }, { "vllm", "\"reasoning\": \"hm\"" },
        { "ollama", "\"thinking\": \"hm\"" },
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const ebb_prompt_message messages[] = {
            { EBB_ROLE_USER, (char *)"a", 1, { 0 } },
            { EBB_ROLE_ASSISTANT, (char *)"<think>\nhm\n</think>\n\nb", 22, { .start = 8, .end = 11, .body = 21 } },
            { EBB_ROLE_USER, (char *)"c", 1, { 0 } },
            { EBB_ROLE_ASSISTANT, (char *)"one ends\n</think>\nhere", 22, { 0 } },   /* no thought: all of it is sent */
            { EBB_ROLE_USER, (char *)"d", 1, { 0 } },
        };
        const ebb_backend_request r = { .messages = messages, .n_messages = 5 };
        ebb_error err;
        heard h;
        char log[8192];
        ebb_backend *b = open_as(&h, "kind=%s", back[i].kind);

        assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
        HEARD_WAIT(&h, h.n_ends > 0);
        test_hub_last_post(&server, log, sizeof log);
        assert_non_null(strstr(log, "\"content\": \"b\""));
        assert_non_null(strstr(log, back[i].name));
        assert_null(strstr(log, "<think>"));
        assert_non_null(strstr(log, "\"content\": \"one ends\\n</think>\\nhere\""));
        remote_close(&h, b);
    }
}

static ebb_prompt_message answer_of(const char *text, ebb_thought_begin begin)
{
    return (ebb_prompt_message){ EBB_ROLE_ASSISTANT, (char *)text, strlen(text),
                                 ebb_thought_find(text, strlen(text), begin, true) };
}

/* An ebb finds it where it was written, as the engine here does, whatever it knows of thoughts; but for what it cannot
 * find so: where the prompt had opened it, and in an answer that goes on. */
static void test_thoughts_stay_where_an_ebb_finds_them(void **state)
{
    const ebb_prompt_message messages[] = {
        { EBB_ROLE_USER, (char *)"a", 1, { 0 } },
        answer_of("<think>hm</think> b", EBB_THOUGHT_UNOPENED),
        answer_of("<think>\n\n</think>\n\ne", EBB_THOUGHT_UNSURE),
        answer_of("ah\n</think>\n\nf", EBB_THOUGHT_OPENED),
        answer_of("<think>oh</think> g", EBB_THOUGHT_UNOPENED),
    };
    const ebb_backend_request r = { .messages = messages, .n_messages = 5, .continues = true };
    ebb_error err;
    heard h;
    char log[8192];
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=ebb");
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    HEARD_WAIT(&h, h.n_ends > 0);
    test_hub_last_post(&server, log, sizeof log);
    assert_non_null(strstr(log, "\"content\": \"<think>hm</think> b\""));
    assert_non_null(strstr(log, "\"content\": \"<think>\\n\\n</think>\\n\\ne\""));
    assert_non_null(strstr(log, "\"content\": \"f\""));
    assert_non_null(strstr(log, "\"content\": \"g\""));
    assert_non_null(strstr(log, "\"reasoning_content\": \"ah\""));
    assert_non_null(strstr(log, "\"reasoning_content\": \"oh\""));
    assert_null(strstr(log, "\"reasoning_content\": \"hm\""));
    remote_close(&h, b);
}

static void test_sampling_is_sent_where_it_was_chosen(void **state)
{
    const ebb_prompt_message messages[] = { { .role = EBB_ROLE_USER, .text = (char *)"a", .n_text = 1 } };
    ebb_backend_request r = { .messages = messages, .n_messages = 1, .n_predict = 77,
                              .sampling = { .temp = 0.7f, .top_k = 40, .min_p = 0.05f, .seed = 5 },
                              .chosen = EBB_SAMPLING_BIT(min_p) };
    heard h;
    ebb_error err;
    char log[8192];
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=llama");
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    HEARD_WAIT(&h, h.n_ends == 1);
    test_hub_last_post(&server, log, sizeof log);
    assert_non_null(strstr(log, "\"min_p\": 0.05"));
    assert_non_null(strstr(log, "\"seed\": 5"));
    assert_non_null(strstr(log, "\"max_tokens\": 77"));
    assert_null(strstr(log, "temperature"));
    assert_null(strstr(log, "top_k"));
    remote_close(&h, b);
}

static void test_line_ends_and_small_writes(void **state)
{
    static const char *const forms[] = { "crlf", "cr", "bytes=1", "crlf bytes=1", "cr bytes=3 ping", "nodone",
                                         "nousage", "plain", "strict", "strict=422" };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        heard h;
        ebb_backend *b = open_as(&h, "kind=vllm %s", forms[i]);

        remote_say(&h, b, "x");
        assert_int_equal(h.finish, EBB_FINISH_STOP);
        assert_heard(&h, "You said x in 1 messages.");
        assert_int_equal((h.cost.about & EBB_ABOUT_PROMPT) != 0, strcmp(forms[i], "nousage") == 0 ||
                         strncmp(forms[i], "strict", 6) == 0);
        remote_close(&h, b);
    }
}

/* An answer that comes as one object may be as long as one that is streamed. */
static void test_a_long_answer_at_once(void **state)
{
    static char question[200001];
    heard h;
    ebb_backend *b;

    (void)state;
    memset(question, '\n', sizeof question - 1);         /* two bytes each in JSON */
    b = open_as(&h, "kind=vllm plain");
    remote_say(&h, b, question);
    assert_int_equal(h.finish, EBB_FINISH_STOP);
    assert_int_equal(h.text.len, sizeof question - 1 + strlen("You said  in 1 messages."));
    remote_close(&h, b);
}

/* A pair of escapes that a server has cut in two, in as many events; one that it has not, and what looks like one. */
static void test_halves_of_characters(void **state)
{
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=vllm halves say=a\U0001F60Bb\\ud83d");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_STOP);
    assert_heard(&h, "a\uFFFD\uFFFDb\\ud83d");
    how("kind=vllm say=a\U0001F60Bb\\ud83d");
    remote_say(&h, b, "x");
    assert_heard(&h, "a\U0001F60Bb\\ud83d");
    remote_close(&h, b);
}

/* What has ended has ended, whatever becomes of the connection. */
static void test_torn_behind_the_end(void **state)
{
    static const char *const ends[] = { "kind=vllm torn", "kind=vllm torn nodone", "kind=ollama torn" };
    heard h;
    ebb_backend *b;

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        b = open_as(&h, "%s", ends[i]);
        remote_say(&h, b, "x");
        assert_heard(&h, "You said x in 1 messages.");
        assert_int_equal(h.finish, EBB_FINISH_STOP);
        remote_close(&h, b);
    }
    b = open_as(&h, "kind=vllm torn nofinish nodone");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    remote_close(&h, b);
}

/* Some servers end with "stop" where a tool is called, and there is no answer. */
static void test_calls_of_tools(void **state)
{
    static const char *const calls[] = {
        "kind=vllm calls", "kind=ollama calls",
        "kind=vllm object={\"choices\":[{\"message\":{\"content\":null,\"function_call\":{\"name\":\"f\"}},"
        "\"finish_reason\":\"stop\"}]}",
    };
    heard h;
    ebb_backend *b;

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        b = open_as(&h, "%s", calls[i]);
        remote_say(&h, b, "x");
        assert_int_equal(h.finish, EBB_FINISH_ERROR);
        assert_non_null(strstr(h.why, "the model calls a tool, and ebb has none for it (tool_calls)"));
        remote_close(&h, b);
    }
    b = open_as(&h, "kind=vllm object={\"choices\":[{\"message\":{\"content\":\"yes\",\"tool_calls\":[],"
        "\"function_call\":null},\"finish_reason\":\"stop\"}]}");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_STOP);
    assert_heard(&h, "yes");
    remote_close(&h, b);
}

static void test_endings(void **state)
{
    static const char *const broken_off[] = { "error", "insufficient_system_resource" };
    static const char *const lengths[] = { "max_tokens", "model_length" };
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=vllm");
    how("kind=vllm why=length");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_LENGTH);
    how("kind=vllm why=content_filter");         /* not all that the model had to say */
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_heard(&h, "You said x in 1 messages.");
    assert_non_null(strstr(h.why, "its filter has cut the answer off (content_filter)"));
    how("kind=vllm why=tool_calls");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_non_null(strstr(h.why, "the model calls a tool, and ebb has none for it (tool_calls)"));
    for (size_t i = 0; i < sizeof broken_off / sizeof *broken_off; i++) {
        how("kind=vllm why=%s", broken_off[i]);
        remote_say(&h, b, "x");
        assert_int_equal(h.finish, EBB_FINISH_ERROR);
        assert_heard(&h, "You said x in 1 messages.");
        assert_non_null(strstr(h.why, "the server could not go on with the answer"));
        assert_non_null(strstr(h.why, broken_off[i]));
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        how("kind=vllm why=%s", lengths[i]);
        remote_say(&h, b, "x");
        assert_int_equal(h.finish, EBB_FINISH_LENGTH);
        assert_string_equal(ebb_buf_text(&h.notices), "");
    }
    how("kind=vllm why=eos");                    /* a server's own word */
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_STOP);
    assert_non_null(strstr(ebb_buf_text(&h.notices), "has ended the answer: eos"));
    how("kind=vllm nofinish nodone");            /* cut off: what arrived is kept */
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_heard(&h, "You said x in 1 messages.");
    assert_non_null(strstr(h.why, "ended before the answer did"));
    how("kind=vllm error");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_non_null(strstr(h.why, "out of memory"));
    assert_true(h.text.len > 0);
    remote_close(&h, b);
}

/* -- Refusals ------------------------------------------------------------------------------- */

static void test_refusals_are_one_line(void **state)
{
    static const struct { const char *how, *says; } cases[] = {
        { "status=500 words=went_wrong", "went wrong (500)" }, { "status=502", "no (502)" },
        { "status=404 words=nothing_here", "nothing here" },
        { "status=401 words=who_are_you", "wants a key" }, { "status=403", "wants a key" },
        { "redirect", "redirects (307, to http://elsewhere.invalid/v1), which ebb does not follow; use that address" },
        { "redirect=file:///etc/passwd", "to file:///etc/passwd), which ebb does not follow; is its address right?" },
        { "redirect=exec:id", "to exec:id), which ebb does not follow; is its address right?" },
        { "html", "answers with a page for a browser" }, { "hugebody=text/html", "answers with a page for a browser" },
        { "html=504", "answers with status 504: it is down or too slow; try again later" },
        { "hugebody=application/json", "answers with more than 4 MiB" }, { "headers", "KiB of headers" },
        { "header", "sends a longer line of headers than libcurl takes" },
        { "status=429 retry=3000", "is overloaded (429)" }, { "parts", "a list of parts" },
    };
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=vllm");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        how("kind=vllm %s", cases[i].how);
        remote_say(&h, b, "x");
        assert_int_equal(h.finish, EBB_FINISH_ERROR);
        assert_int_equal(h.n_ends, 1);
        assert_int_equal(h.text.len, 0);
        if (!strstr(h.why, cases[i].says) || strncmp(h.why, "127.0.0.1", 9) != 0)
            fail_msg("%s: %s", cases[i].how, h.why);
        assert_null(strchr(h.why, '\n'));
        assert_null(strchr(h.why, 27));
    }
    how("kind=vllm");                            /* and it goes on */
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_STOP);
    remote_close(&h, b);
}

/* An object that is no answer is a refusal, whatever the status says; FastAPI and Google put it into a list. */
static void test_refusals_as_objects(void **state)
{
    static const struct { const char *how, *says; } cases[] = {
        { "kind=vllm object={\"detail\":\"Not-authenticated\"}", "Not-authenticated (200)" },
        { "kind=vllm object={\"message\":\"quota-exceeded\",\"code\":\"429\"}", "quota-exceeded (200)" },
        { "kind=vllm object={\"base_resp\":{\"status_code\":1004,\"status_msg\":\"login-fail\"}}", "login-fail (200)" },
        { "kind=vllm object={\"detail\":[{\"loc\":[\"body\"],\"msg\":\"field-required\"}]}", "field-required (200)" },
        { "kind=vllm code=400 object=[{\"error\":{\"message\":\"wrong-key\",\"code\":400}}]", "wrong-key (400)" },
        { "kind=vllm object={}", "something other than a stream of text" },
        { "kind=vllm object={\"choices\":[]}", "something other than a stream of text" },
        { "kind=vllm object={\"choices\":[{\"text\":\"x\"}]}", "something other than a stream of text" },
        { "kind=ollama object={\"message\":\"quota-exceeded\"}", "quota-exceeded (200)" },
        { "kind=ollama object={\"model\":\"tiny\"}", "something other than a stream of text" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h;
        ebb_backend *b = open_as(&h, "%.*s", (int)strcspn(cases[i].how, " "), cases[i].how);

        how("%s", cases[i].how);
        remote_say(&h, b, "x");
        if (h.finish != EBB_FINISH_ERROR || h.text.len || !strstr(h.why, cases[i].says))
            fail_msg("%s: %s", cases[i].how, h.why);
        remote_close(&h, b);
    }
}

static void test_errors_of_every_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        heard h;
        ebb_backend *b = open_as(&h, "kind=%s", kinds[i]);

        how("kind=%s status=500 words=it_broke", kinds[i]);
        remote_say(&h, b, "x");
        assert_non_null(strstr(h.why, "it broke (500)"));
        how("kind=%s error", kinds[i]);
        remote_say(&h, b, "x");
        assert_non_null(strstr(h.why, "out of memory"));
        remote_close(&h, b);
    }
}

/* An answer that failed there does not go on there: its error is told, and nothing is read on. */
static void test_error_of_a_kept_answer(void **state)
{
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=any error kept words=no_numbers");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_non_null(strstr(h.why, "the server reports: no numbers"));
    assert_string_equal(ebb_buf_text(&h.notices), "");
    remote_close(&h, b);
}

/* What has not begun is tried again, and said. */
static void test_busy_is_tried_again(void **state)
{
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=vllm");
    how("kind=vllm busy=1 retry=1");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_STOP);
    assert_heard(&h, "You said x in 1 messages.");
    assert_non_null(strstr(ebb_buf_text(&h.notices), "trying again in 1 s"));
    how("kind=vllm status=429 retry=30");        /* and a stop ends the wait */
    remote_begin(&h, b, "x");
    HEARD_WAIT(&h, h.notices.len > 0);
    b->ops->cancel(b);
    HEARD_WAIT(&h, h.n_ends == 1);
    assert_int_equal(h.finish, EBB_FINISH_CANCELED);
    remote_close(&h, b);
}

static void test_nobody_is_there(void **state)
{
    heard h;
    ebb_backend *b = remote_open(&h, "http://127.0.0.1:1");

    (void)state;
    assert_true(h.has_failed);
    assert_null(b->ops->facts(b));
    assert_true(h.why[0] != '\0');
    assert_true(h.notices.len > 0);
    remote_close(&h, b);
}

static void test_no_list_of_models(void **state)
{
    static const struct { const char *how, *says; } cases[] = {
        { "html", "a page for a browser" }, { "status=401", "wants a key" }, { "redirect", "redirects" },
        { "hugebody", "MiB" }, { "headers", "KiB of headers" }, { "key=K", "wants a key" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h;
        ebb_backend *b = open_as(&h, "%s", cases[i].how);

        assert_true(h.has_failed);
        if (!strstr(h.why, cases[i].says))
            fail_msg("%s: %s", cases[i].how, h.why);
        remote_close(&h, b);
    }
}

/* Ask what is at the address, once. */
static ebb_status probe_once(char *address, uint32_t silence_s, ebb_error *err)
{
    ebb_engine_entry entry = { .name = "it", .address = address, .silence_s = silence_s };
    ebb_engine_link link;
    ebb_server found;
    bool may_retry;
    ebb_status st = ebb_engine_link_init(&link, &entry, err);

    assert_int_equal(st, EBB_OK);
    st = ebb_server_probe(&link, &found, &may_retry, err);
    ebb_engine_link_fini(&link);
    return st;
}

/* A list that comes byte by byte, for ever: only as long as the engine's entry bears silence. */
static void test_a_list_without_end(void **state)
{
    ebb_error err = { 0 };

    (void)state;
    need_server();
    how("drip");
    assert_int_equal(probe_once(server.url, 1, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "has not answered within 1 s"));
}

/* What a proxy says with its refusal has no end, and comes so fast that libcurl does nothing else. */
static void test_a_proxy_that_refuses(void **state)
{
    ebb_error err = { 0 };

    (void)state;
    need_server();
    how("kind=vllm");
    setenv("https_proxy", server.url, 1);
    assert_int_equal(probe_once((char *)"https://engine.invalid", 0, &err), EBB_IO);
    unsetenv("https_proxy");
    assert_non_null(strstr(err.msg, "the proxy of this machine refuses the connection (407)"));
}

/* -- Broken streams ------------------------------------------------------------------------------ */

/* Every byte of a stream as the place where it ends in this way. */
static void break_everywhere(const char *kind, const char *word, bool must_stop)
{
    static const char whole[] = "<think>\nhm \n</think>\n\nYou said x in 1 messages.";
    heard h;
    unsigned n_whole = 0, n_parts = 0;
    ebb_backend *b;

    b = open_as(&h, "kind=%s", kind);
    for (int at = 0; at < 4000 && n_whole < 3; at++) {
        how("kind=%s think=hm %s=%d", kind, word, at);
        remote_begin(&h, b, "x");
        if (must_stop)                           /* nothing more will come by itself, unless all did */
            b->ops->cancel(b);
        HEARD_WAIT(&h, h.n_ends > 0);
        assert_int_equal(h.n_ends, 1);
        assert_true(h.text.len <= sizeof whole - 1);
        if (h.text.len)                          /* a thought that is open is closed only where it ended */
            assert_memory_equal(h.text.data, whole, h.text.len);
        if (h.finish == EBB_FINISH_STOP)
            assert_heard(&h, whole);
        else if (h.finish == EBB_FINISH_ERROR)
            assert_true(h.why[0] && !strchr(h.why, '\n'));
        else
            assert_true(must_stop && h.finish == EBB_FINISH_CANCELED);
        n_parts += h.text.len > 0 && h.text.len < sizeof whole - 1;
        n_whole += h.finish == EBB_FINISH_STOP || (must_stop && at > 3000);
    }
    assert_true(n_whole == 3 || must_stop);
    assert_true(n_parts > 0 || must_stop);
    remote_close(&h, b);
}

static void test_close_at_every_byte(void **state)
{
    (void)state;
    need_server();
    break_everywhere("llama", "cut", false);
    break_everywhere("ollama", "cut", false);
}

static void test_reset_at_every_byte(void **state)
{
    (void)state;
    need_server();
    break_everywhere("vllm", "reset", false);
    break_everywhere("ollama", "reset", false);
}

/* Silence is waited for, and a stop ends it at once: it must not need what the server does. */
static void test_stall_at_every_byte(void **state)
{
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=llama");
    for (int at = 0; at < 1400; at++) {
        how("kind=llama stall=%d", at);
        remote_begin(&h, b, "x");
        if (at % 3 == 0)                         /* some of the stops come before, some behind the first words */
            nanosleep(&(struct timespec){ .tv_nsec = 4000000 }, NULL);
        b->ops->cancel(b);
        HEARD_WAIT(&h, h.n_ends > 0);
        assert_int_equal(h.n_ends, 1);
        assert_true(h.finish == EBB_FINISH_CANCELED || h.finish == EBB_FINISH_STOP);
    }
    remote_close(&h, b);
}

static uint64_t peak_bytes(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss * 1024;
}

/* A line of 100 MB, JSON as deep as it goes, words without end. */
static void test_floods_are_bounded(void **state)
{
    heard h;
    ebb_backend *b;
    uint64_t before;

    (void)state;
    b = open_as(&h, "kind=llama");
    before = peak_bytes();
    how("kind=llama hugeline");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_non_null(strstr(h.why, "the most that is accepted"));
    how("kind=llama nested");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    how("kind=llama flood");
    remote_say(&h, b, "x");
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_non_null(strstr(h.why, "MiB"));
    assert_true(h.text.len <= 1u << 20);
    assert_true(h.n_tokens < h.text.len / 500);  /* many pieces are handed over at once */
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
    assert_true(peak_bytes() - before < 64u << 20);
#endif
#endif
    (void)before;
    remote_close(&h, b);
}

/* Closing while everything stands still. */
static void test_close_while_it_waits(void **state)
{
    heard h;
    ebb_backend *b;

    (void)state;
    b = open_as(&h, "kind=llama");
    how("kind=llama hold");
    remote_begin(&h, b, "x");
    b->ops->close(b);
    how("kind=llama");
    heard_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_of_every_kind),
        cmocka_unit_test(test_thoughts_of_both_names),
        cmocka_unit_test(test_refusals_are_shown),
        cmocka_unit_test(test_thoughts_go_back), cmocka_unit_test(test_thoughts_stay_where_an_ebb_finds_them),
        cmocka_unit_test(test_sampling_is_sent_where_it_was_chosen),
        cmocka_unit_test(test_line_ends_and_small_writes),
        cmocka_unit_test(test_a_long_answer_at_once),
        cmocka_unit_test(test_halves_of_characters),
        cmocka_unit_test(test_torn_behind_the_end),
        cmocka_unit_test(test_calls_of_tools), cmocka_unit_test(test_endings),
        cmocka_unit_test(test_refusals_are_one_line),
        cmocka_unit_test(test_refusals_as_objects),
        cmocka_unit_test(test_errors_of_every_form),
        cmocka_unit_test(test_error_of_a_kept_answer),
        cmocka_unit_test(test_busy_is_tried_again),
        cmocka_unit_test(test_nobody_is_there),
        cmocka_unit_test(test_no_list_of_models),
        cmocka_unit_test(test_a_list_without_end),
        cmocka_unit_test(test_a_proxy_that_refuses),
        cmocka_unit_test(test_close_at_every_byte),
        cmocka_unit_test(test_reset_at_every_byte),
        cmocka_unit_test(test_stall_at_every_byte),
        cmocka_unit_test(test_floods_are_bounded),
        cmocka_unit_test(test_close_while_it_waits),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
