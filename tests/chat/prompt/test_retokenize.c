/* Other words for an answer: what agrees keeps its ids, and its marks stay marks. */
#include "chat/prompt/chat_vocab.h"

#include "prompt/retokenize.h"

static const chat_vocab gpt_oss = { .tokens = { "<|startoftext|>", "<|return|>", "<|start|>", "<|channel|>",
                                                "<|message|>", "<|end|>", "<|call|>" } };
static const chat_vocab magistral = { .tokens = { "<s>", "</s>", "[INST]", "[/INST]", "[THINK]", "[/THINK]" } };

/* The ids of the answer `old` (NULL: it has none), which reads `old_text`, behind `before` when it becomes `text`:
 * control tokens in "{}", what was kept before "#". */
static void assert_ids_of(const ebb_model *m, const char *before, const char *old, const char *old_text,
                          const char *text, const char *want)
{
    ebb_token before_ids[64], ids[256];
    ebb_retokenization r = { .before = before_ids, .old = ids, .text = text, .n_text = strlen(text) };
    ebb_error err = { 0 };
    ebb_buf got = { 0 };

    assert_int_equal(ebb_model_tokenize(m, before, strlen(before), EBB_TOK_SPECIAL, before_ids, 64, &r.n_before, NULL),
                     EBB_OK);
    r.old_text = old_text;
    r.n_old_text = old_text ? strlen(old_text) : 0;
    if (old)
        assert_int_equal(ebb_model_tokenize(m, old, strlen(old), EBB_TOK_SPECIAL, ids, 256, &r.n_old, NULL), EBB_OK);
    if (ebb_retokenize(m, &r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < r.n_ids; i++) {
        bool is_control = ebb_model_is_control(m, r.ids[i]);
        char piece[64];

        ebb_buf_adds(&got, i == r.n_kept ? "#" : "");
        ebb_buf_adds(&got, is_control ? "{" : "");
        ebb_buf_add(&got, piece, ebb_model_piece(m, r.ids[i], true, piece, sizeof piece));
        ebb_buf_adds(&got, is_control ? "}" : "");
    }
    assert_string_equal(ebb_buf_text(&got), want);
    ebb_buf_fini(&got);
    free(r.ids);
}

static void assert_ids(const ebb_model *m, const char *before, const char *old, const char *text, const char *want)
{
    assert_ids_of(m, before, old, old, text, want);
}

static void test_frames_of_an_edited_answer(void **state)
{
    static const char before[] = "<|start|>assistant", old[] = "<|channel|>analysis<|message|>Hm hm<|end|><|start|>"
                                 "assistant<|channel|>final<|message|>It is 42.";
    ebb_buf file;
    ebb_model *m = chat_vocab_open(&gpt_oss, &file);

    (void)state;
    assert_ids(m, before, old,
               "<|channel|>analysis<|message|>Ho hm<|end|><|start|>assistant<|channel|>final<|message|>It is <|end|>",
               "{<|channel|>}analysis{<|message|>}H#o hm{<|end|>}{<|start|>}assistant{<|channel|>}final{<|message|>}"
               "It is <|end|>");
    assert_ids(m, before, old, "<|channel|>analysis<|message|>Hm hm<|end|><|start|>assistant<|channel|>final<|message|>"
               "It is 4", "{<|channel|>}analysis{<|message|>}Hm hm{<|end|>}{<|start|>}assistant{<|channel|>}final"
               "{<|message|>}It is 4");
    assert_ids(m, before, NULL, "<|channel|>final<|message|>No<|end|>",
               "#{<|channel|>}final{<|message|>}No<|end|>");
    assert_ids(m, before, NULL, "No <|channel|>", "#No <|channel|>");
    ebb_model_close(m);
    ebb_buf_fini(&file);
}

static void test_marks_of_an_edited_thought(void **state)
{
    ebb_buf file;
    ebb_model *m = chat_vocab_open(&magistral, &file);

    (void)state;
    assert_ids(m, "[/INST]", "[THINK]Hm[/THINK]Yes", "[THINK]Ho[/THINK]No[/THINK]",
               "{[THINK]}H#o{[/THINK]}No[/THINK]");
    assert_ids(m, "[/INST]", NULL, "[THINK]Ho[/THINK]No", "#{[THINK]}Ho{[/THINK]}No");
    assert_ids(m, "[/INST][THINK]", NULL, "Ho[/THINK]No", "#Ho{[/THINK]}No");
    assert_ids(m, "[/INST]", NULL, "Ho[/THINK]No", "#Ho[/THINK]No");
    ebb_model_close(m);
    ebb_buf_fini(&file);
}

/* As an ebb stored it that did not show them; what is taken out of a text that has them is gone. */
static void test_marks_that_the_text_lacks(void **state)
{
    static const char ids[] = "[THINK]Hm[/THINK]It is";
    ebb_buf file;
    ebb_model *m = chat_vocab_open(&magistral, &file);

    (void)state;
    assert_ids_of(m, "[/INST]", ids, "HmIt is", "HmIt", "{[THINK]}Hm{[/THINK]}It");
    assert_ids_of(m, "[/INST]", ids, "HmIt is", "HmIt was", "{[THINK]}Hm{[/THINK]}It #was");
    assert_ids_of(m, "[/INST]", ids, "Hm[/THINK]It is", "Hm[/THINK]It", "{[THINK]}Hm{[/THINK]}It");
    assert_ids_of(m, "[/INST]", ids, "HmIt is", "[THINK]Hm[/THINK]It is", "{[THINK]}Hm{[/THINK]}It is");
    assert_ids_of(m, "[/INST]", ids, "HmIt is", "[THINK]Hm[/THINK]It was", "{[THINK]}Hm{[/THINK]}It #was");
    assert_ids_of(m, "[/INST]", ids, "HmIt is", "Hm[/THINK]It is", "{[THINK]}Hm{[/THINK]}It is");
    assert_ids(m, "[/INST]", ids, "It is", "#It is");
    assert_ids(m, "[/INST]", ids, "Hm[/THINK]It", "#Hm[/THINK]It");
    ebb_model_close(m);
    ebb_buf_fini(&file);
}

/* An answer goes on, and so does its turn. */
static void test_end_of_an_edited_turn(void **state)
{
    ebb_buf file;
    ebb_model *m = chat_vocab_open(&magistral, &file);

    (void)state;
    assert_ids_of(m, "[/INST]", "It is</s>", "It is", "It is no", "It is# no");
    assert_ids_of(m, "[/INST]", "It is</s>", "It is", "It is", "It is");
    ebb_model_close(m);
    ebb_buf_fini(&file);
}

/* What the text speaks of is no mark, where no other ends its thought, either. */
static void test_a_quoted_mark(void **state)
{
    ebb_buf file;
    ebb_model *m = chat_vocab_open(&magistral, &file);

    (void)state;
    assert_ids(m, "[/INST][THINK]", NULL, "I say `[/THINK]`[/THINK]Yes `[/THINK]`", "#I say `[/THINK]`{[/THINK]}Yes "
               "`[/THINK]`");
    assert_ids(m, "[/INST][THINK]", "Hm[/THINK]It", "Write `[/THINK]` so", "#Write `[/THINK]` so");
    ebb_model_close(m);
    ebb_buf_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_frames_of_an_edited_answer),
                                        cmocka_unit_test(test_marks_of_an_edited_thought),
                                        cmocka_unit_test(test_marks_that_the_text_lacks),
                                        cmocka_unit_test(test_end_of_an_edited_turn),
                                        cmocka_unit_test(test_a_quoted_mark) };

    return cmocka_run_group_tests_name("retokenize", tests, NULL, NULL);
}
