/* Which part of an answer is a thought: marks that end one, and marks that are spoken of. */
#include "ebb_test.h"

#include "base/buf.h"
#include "tree/message.h"

static void assert_body(const char *text, ebb_thought_begin begin, const char *body)
{
    ebb_thought t = ebb_thought_find(text, strlen(text), begin, true);

    assert_string_equal(text + t.body, body);
    assert_true(t.start <= t.end && t.end <= strlen(text));
}

/* The template has opened the thought in the prompt, so that nothing begins it here. */
static void test_ends_without_a_beginning(void **state)
{
    static const char *const ends[][2] = {
        { "Let me see.\n</think>\n\nYes", "Yes" }, { "Let me see.\n  </think>  \r\nYes", "Yes" },
        { "Let me see.</think>Yes", "Yes" }, { "Let me see</think>\nYes", "Yes" }, { "Let me see.</think> Yes", "Yes" },
        { "\n</think>\n\nYes", "Yes" }, { "</think>Yes", "Yes" }, { "Hm.\n</think>", "" },
        { "它是。</think>对", "对" },
        { "It asks how `</think>` works.\n```\n</think>\n```\n</think>\n\nYes", "Yes" },
        { "It's a ` mark.</think>Yes", "Yes" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_body(ends[i][0], EBB_THOUGHT_UNSURE, ends[i][1]);
        assert_body(ends[i][0], EBB_THOUGHT_OPENED, ends[i][1]);
        assert_body(ends[i][0], EBB_THOUGHT_UNOPENED, ends[i][0]);
    }
}

static void test_spoken_of(void **state)
{
    static const char *const texts[] = {
        "A model ends its thought with `</think>`; what stands before it is hidden.",
        "Important first paragraph.\n\nWrite the tag </think> on a line of its own. Then the answer follows.",
        "It ends with \"</think>\".", "It ends with “</think>”, always.", "(see </think>)",
        "It ends with </think>\nand goes on.",
        "</think> is the tag that ends it.", "Between <think> and </think>\nit thinks.",
        "So it looks:\n\n<think>\nHm.\n</think>\n\nThen comes the answer.",
        "So it looks:\n\n```\nHm.\n</think>\nYes\n```\n\nThat is all.", "~~~\n</think>\n~~~\nThat is all.",
        "The tags <think></think> are empty.", "**</think>**", "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_body(texts[i], EBB_THOUGHT_UNSURE, texts[i]);
        assert_body(texts[i], EBB_THOUGHT_UNOPENED, texts[i]);
    }
}

/* Marks of other models, which are control tokens there. */
static void test_other_marks(void **state)
{
    static const char *const texts[][2] = {
        { "[THINK]Hm.[/THINK]Yes", "Yes" }, { "<seed:think>Hm.</seed:think>Yes", "Yes" },
        { "<|inner_prefix|>Hm.<|inner_suffix|>Yes", "Yes" },
        { "<|START_THINKING|>Hm, `<|END_THINKING|>`.<|END_THINKING|>Yes", "Yes" },
        { "<|START_THINKING|>Hm\n[THINK]\nx\n[/THINK]\n<|END_THINKING|>Yes", "Yes" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *opened = strstr(texts[i][0], "Hm");
        assert_body(texts[i][0], EBB_THOUGHT_UNOPENED, texts[i][1]);
        assert_body(opened, EBB_THOUGHT_OPENED, texts[i][1]);
        assert_body(opened, EBB_THOUGHT_UNSURE, texts[i][1]);
        assert_non_null(ebb_thought_opened_by(texts[i][0], (size_t)(opened - texts[i][0])));
        assert_null(ebb_thought_opened_by(texts[i][0], strlen(texts[i][0])));
    }
    assert_non_null(ebb_thought_opened_by("a\n<think>\n\n", 11));
    assert_null(ebb_thought_opened_by(" \n", 2));
}

/* What is known to be a thought may speak of the mark that ends it. */
static void test_a_thought_on_marks(void **state)
{
    static const char on_marks[] = "<think>\nIt asks for `</think>`, \"</think>\", “</think>”, `<i></think>x`.\n"
                                   "```\n<think>\nHm\n</think>\nYes\n```\n</think>\n\nYes";
    ebb_thought t;

    (void)state;
    assert_body(on_marks, EBB_THOUGHT_UNSURE, "Yes");
    assert_body(on_marks, EBB_THOUGHT_UNOPENED, "Yes");
    assert_body(on_marks + 8, EBB_THOUGHT_OPENED, "Yes");
    assert_body("<think>\nA tag `</think>` yes", EBB_THOUGHT_UNSURE, "` yes");     /* no other has come */
    t = ebb_thought_find("A tag `</think>` yes", 20, EBB_THOUGHT_OPENED, false);
    assert_true(t.is_open && t.body == 20);      /* the end may still come */
    t = ebb_thought_find("A tag \"</think>", 15, EBB_THOUGHT_OPENED, false);
    assert_true(t.is_open);                      /* as may the quotation mark */
    assert_body("A tag. </think>\nYes", EBB_THOUGHT_OPENED, "Yes");
    t = ebb_thought_find("Hm", 2, EBB_THOUGHT_OPENED, true);
    assert_true(t.is_open && t.start == 0 && t.end == 2 && t.body == 2);
}

/* In code, too, that is in no fence. */
static void test_quoted_in_a_thought(void **state)
{
    static const char *const lines[] = {
        "The config has marker=\"</think>\" in it.", "JSON: {\"end\":\"</think>\"}", "JSON: [1,\"</think>\"]",
        "f(a,'</think>')", "a+'</think>'", "he says *</think>* and **</think>**", "(</think>)", "<</think>>",
        "it's '</think>'", "\"</think>\"",
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        size_t end;

        snprintf(text, sizeof text, "<think>\n%s\n</think>\n\nYes", lines[i]);
        assert_body(text, EBB_THOUGHT_UNSURE, "Yes");
        assert_body(text + 8, EBB_THOUGHT_OPENED, "Yes");
        end = 8 + strlen(lines[i]) + 1;
        for (size_t n = 7; n <= end; n++)
            assert_true(ebb_thought_find(text, n, EBB_THOUGHT_UNSURE, false).is_open);
    }
}

/* A thought is not over where an example of one is, as long as that may go on. */
static void test_an_example_as_it_comes(void **state)
{
    static const char text[] = "<think>\nSo:\n```\n<think>\nHm\n</think>\nYes\n```\nI say <think> once.\n</think>\n\n"
                               "It is so.";
    size_t end = (size_t)(strstr(text, "once.") - text) + 6;

    (void)state;
    for (size_t n = 7; n <= end; n++) {
        assert_true(ebb_thought_find(text, n, EBB_THOUGHT_UNSURE, false).is_open);
        assert_true(ebb_thought_find(text + 8, n - 7, EBB_THOUGHT_OPENED, false).is_open);
    }
    assert_body(text, EBB_THOUGHT_UNSURE, "It is so.");
    assert_body(text + 8, EBB_THOUGHT_OPENED, "It is so.");
    assert_body("<think>\n```\n<think>\nHm\n</think>\nYes\n</think>\n\nIt is so.", EBB_THOUGHT_UNSURE, "It is so.");
}

/* Code that names the mark begins no example: in a fence that was forgotten the thought ends where it does.  Code may
 * name both. */
static void test_code_that_names_the_beginning(void **state)
{
    static const char *const codes[] = { "print('<think>')", "s.find(\"<think>\", 0)" };
    static const char both[] = "Look:\n```\nreturn \"<think>\" + x + \"</think>\\n\"\nx = 1\n";
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        int end = snprintf(text, sizeof text, "Look:\n```\n%s\nso that is done.\n</think>\n\n", codes[i]);

        snprintf(text + end, sizeof text - (size_t)end, "Yes it is:\n\n```c\nint x;\n```\n");
        for (size_t n = (size_t)end; n <= strlen(text); n++)
            assert_int_equal(ebb_thought_find(text, n, EBB_THOUGHT_OPENED, false).body, end);
        assert_body(text, EBB_THOUGHT_OPENED, text + end);
    }
    for (size_t n = 1; n < sizeof both; n++)
        assert_true(ebb_thought_find(both, n, EBB_THOUGHT_OPENED, false).is_open);
}

/* However an answer goes on, and whatever the thought's last word is: what has begun is seen as it comes. */
static void test_an_answer_that_has_begun(void **state)
{
    static const char *const texts[][2] = {
        { "<|channel>thought\nSay hi.<channel|>", "**Hello** it is." },
        { "<|channel>thought\nSay \"Hello\"<channel|>", "\"Hello\" it is." },
        { "<|channel>thought\nSay hi.<channel|>", "```c\nint x;\n```\n" },
        { "<|channel>thought\n```c\nint x;\n```<channel|>", "```c\nint x;\n```\n" },
        { "<|channel>thought\n*   Final: \"4\".*<channel|>", "Hello" },
        { "<|channel>thought\nuse `x`<channel|>", "`x` it is." },
        { "[THINK]We need $x_{1}$[/THINK]", "**4** it is." }, { "[THINK] Hm. [/THINK] ", "Yes" },
        { "<|inner_prefix|>Ok `x`<|inner_suffix|>", "**Hi**" },
        { "<think>\nuse ` for it. done</think>", "The answer is `x`, and `y`." },
        { "<think>\nHe said \"Hi!\"</think>", "\"Hi!\" it is." }, { "<think>\n**ok**</think>", "**Yes** it is." },
        { "<think>\n**ok**</think>\n\n", "Yes" }, { "<think>\n~~~ hm\nfoo\n</think>\n\n", "Yes" },
        { "<think>\n~~~</think>\n", "Yes" },
        { "<think>\n```c\nint x;\n</think>\n\n", "The code:\n```\nint x;\n```\n\n```c\nint y;\n```\nYes" },
        { "<think>\n```c\nint x;\n</think>\n\n", "It is\r\n\r\n```\nint x;\n```\nYes" },
        { "<think> I add 2 and 2. </think> ", "The answer is 4." },
        { "<think> Hm.\nMore lines.\n</think> ", "The answer is 42." },
        { "<think>\nOk. </think> ", "The answer.\n\nIn XML:\n</think>\nfoo" },
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t body = strlen(texts[i][0]);

        snprintf(text, sizeof text, "%s%s", texts[i][0], texts[i][1]);
        for (size_t n = body; n <= strlen(text); n++) {
            ebb_thought t = ebb_thought_find(text, n, EBB_THOUGHT_UNSURE, false);
            assert_true(!t.is_open && t.body == body && t.end > t.start);
        }
        assert_body(text, EBB_THOUGHT_UNOPENED, texts[i][1]);
    }
}

/* A thought that the prompt began, by whichever mark, may have examples of the others. */
static void test_examples_of_other_marks(void **state)
{
    (void)state;
    assert_body("A prompt:\n<thinking>\nsteps\n</thinking>\n<answer>x</answer>\n</think>\n\nHere is 42.",
                EBB_THOUGHT_OPENED, "Here is 42.");
    assert_body("Magistral writes\n[THINK]\n..\n[/THINK]\nOk.\n</think>\n\nYes", EBB_THOUGHT_OPENED, "Yes");
    assert_body("Write:\nsteps\n</thinking>\nYes", EBB_THOUGHT_UNSURE, "Write:\nsteps\n</thinking>\nYes");
    assert_body("Let me see.\n```c\nint x;\n</think>\n\nYes", EBB_THOUGHT_UNSURE, "Yes");
}

/* A million marks in a line take no longer than any other line. */
static void test_many_marks(void **state)
{
    enum { N = 200000 };
    char *text = malloc(9 * N + 1);

    (void)state;
    for (size_t i = 0; i < N; i++)
        memcpy(text + 9 * i, " </think>", 10);
    memcpy(text + 9 * N - 3, "x y", 4);
    assert_body(text, EBB_THOUGHT_UNSURE, text);
    free(text);
}

/* Nor do runs of "`", each longer than those before: none closes code, and the mark behind them is one. */
static void test_many_runs(void **state)
{
    enum { N = 4000 };
    ebb_buf text = { 0 };

    (void)state;
    ebb_buf_adds(&text, "<think>Hm");
    for (int n = 1; n < N; n++) {
        for (int i = 0; i < n; i++)
            ebb_buf_addc(&text, '`');
        ebb_buf_addc(&text, 'x');
    }
    ebb_buf_adds(&text, ".</think>Yes");
    assert_body(ebb_buf_text(&text), EBB_THOUGHT_UNSURE, "Yes");
    ebb_buf_clear(&text);
    ebb_buf_adds(&text, "<think>``a `b </think> c` d`` ```e </think>\nYes");
    assert_body(ebb_buf_text(&text), EBB_THOUGHT_UNSURE, "Yes");
    ebb_buf_fini(&text);
}

static ebb_message answer_of(const char *text, ebb_finish finish)
{
    return (ebb_message){ .role = EBB_ROLE_ASSISTANT, .text = (char *)text, .n_text = strlen(text), .finish = finish };
}

static void test_of_a_message(void **state)
{
    ebb_sample_record record = { .begin = EBB_THOUGHT_OPENED };
    ebb_message m = answer_of("Hm.\n</think>\nYes", EBB_FINISH_STOP);

    (void)state;
    assert_int_equal(ebb_message_thought(&m).body, 13);
    m.role = EBB_ROLE_USER;
    assert_int_equal(ebb_message_thought(&m).body, 0);
    m = answer_of("Hm", EBB_FINISH_NONE);
    assert_int_equal(ebb_message_thought(&m).body, 0);
    m.sample_records = &record;
    m.n_sample_records = 1;
    assert_true(ebb_message_thought(&m).is_open);
    m.finish = EBB_FINISH_CANCELED;
    assert_true(ebb_message_thought(&m).is_open);
    m.finish = EBB_FINISH_STOP;                  /* the model has said all it wanted */
    assert_int_equal(ebb_message_thought(&m).body, 0);
    m = answer_of("<think>\nYes", EBB_FINISH_STOP);
    assert_int_equal(ebb_message_thought(&m).body, 0);
    record.begin = EBB_THOUGHT_UNSURE;           /* of the part that a continuation added */
    m = answer_of("x </think> y", EBB_FINISH_STOP);
    m.sample_records = &record;
    m.n_sample_records = 1;
    assert_int_equal(ebb_message_thought(&m).body, 0);
}

/* What its text needs of the records stays. */
static void test_begin_is_kept(void **state)
{
    static const ebb_thought_begin begins[] = { EBB_THOUGHT_OPENED, EBB_THOUGHT_UNSURE };

    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        ebb_sample_record d = { .from = 0, .n = 3, .begin = begins[i], .sampling.seed = 7, .grammar = strdup("g") };
        ebb_message m = answer_of("Hm.\n</think>\nYes", EBB_FINISH_STOP);

        assert_true(ebb_message_add_sample_record(&m, &d));
        d = (ebb_sample_record){ .from = 3, .sampling.seed = 7, .grammar = strdup("g") };
        assert_true(ebb_message_add_sample_record(&m, &d));
        assert_true(ebb_message_is_sampled(&m));
        ebb_message_keep_begin(&m);
        assert_int_equal(m.n_sample_records, begins[i] != EBB_THOUGHT_UNSURE);
        assert_false(ebb_message_is_sampled(&m));
        assert_int_equal(ebb_message_thought(&m).body, 13);
        free(m.sample_records);
    }
}

static void assert_behind(const char *text, const char *want)
{
    const char *behind = ebb_message_behind_thought(text, strlen(text));

    if (want)
        assert_string_equal(behind, want);
    else
        assert_null(behind);
}

/* What a summary keeps of what the model wrote. */
static void test_behind_a_thought(void **state)
{
    (void)state;
    assert_behind("<think>\nHm\n</think>\n\nThey spoke of `</think>`; then of X.",
                  "They spoke of `</think>`; then of X.");
    assert_behind("They spoke of `</think>`; then of X.", NULL);
    assert_behind("They spoke of <channel|> and </think> in turn.", NULL);
    assert_behind("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>They met.",
                  "They met.");
    assert_behind("<|channel|>final<|message|>They met.", "They met.");
    assert_behind("", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_without_a_beginning), cmocka_unit_test(test_spoken_of),
        cmocka_unit_test(test_other_marks), cmocka_unit_test(test_a_thought_on_marks),
        cmocka_unit_test(test_quoted_in_a_thought), cmocka_unit_test(test_an_example_as_it_comes),
        cmocka_unit_test(test_code_that_names_the_beginning), cmocka_unit_test(test_many_marks),
        cmocka_unit_test(test_many_runs),
        cmocka_unit_test(test_an_answer_that_has_begun), cmocka_unit_test(test_examples_of_other_marks),
        cmocka_unit_test(test_of_a_message), cmocka_unit_test(test_begin_is_kept),
        cmocka_unit_test(test_behind_a_thought),
    };

    return cmocka_run_group_tests_name("thoughts", tests, NULL, NULL);
}
