/* Grammars: which texts they are of, what is no grammar and where, and that none of them does harm. */
#include "ebb_test.h"

#include "ebb/grammar.h"

static ebb_grammar *compile(const char *text)
{
    ebb_grammar *g;
    ebb_error err = { 0 };

    if (ebb_grammar_new(text, strlen(text), &g, &err) != EBB_OK)
        fail_msg("%s\n%s", text, err.msg);
    return g;
}

static ebb_match match(const ebb_grammar *g, const char *text, size_t n)
{
    ebb_match m;
    ebb_error err = { 0 };

    if (ebb_grammar_match(g, text, n, &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

typedef struct golden { const char *grammar, *whole[8], *prefix[8], *none[8]; } golden;

#define JSON                                                                                   \
    "root ::= value\n"                                                                         \
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"           \
    "object ::= \"{\" ( string \":\" value (\",\" string \":\" value)* )? \"}\"\n"             \
    "array ::= \"[\" ( value (\",\" value)* )? \"]\"\n"                                        \
    "string ::= \"\\\"\" ( [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}) )* \"\\\"\"\n" \
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)?\n"

static const golden table[] = {
    { "root ::= \"yes\" | \"no\"", { "yes", "no" }, { "", "y", "ye", "n" }, { "x", "yess", "No", "yesno" } },
    { "# a comment\nroot ::= a b # another\n\na ::= \"x\"*\nb ::= \"y\"+\n", { "y", "xy", "xxxyy" }, { "", "xx" },
      { "yx", "z", "xyx" } },
    { "root ::= (\n  \"a\"\n  | \"b\"\n) |\n \"c\"", { "a", "b", "c" }, { "" }, { "ab", "d" } },
    { "root ::= \"ab\"{2}", { "abab" }, { "", "ab", "aba" }, { "ababa", "b" } },
    { "root ::= \"a\"{2,}", { "aa", "aaa", "aaaaaaaaa" }, { "", "a" }, { "ab" } },
    { "root ::= \"a\"{1,3} \"b\"", { "ab", "aaab" }, { "aaa", "a" }, { "b", "aaaa" } },
    { "root ::= \"a\"{0}\"b\"{0,1}", { "", "b" }, { 0 }, { "a", "bb" } },
    { "root ::= [a-c^-] [^a-c] .", { "a-x", "^z\n", "-d." }, { "", "b", "cx" }, { "d", "ab", "axyz" } },
    { "root ::= \"\\x41\\u00e4\\U0001F600\\n\\\"\\\\\\[\\]\"", { "A\xC3\xA4\xF0\x9F\x98\x80\n\"\\[]" },
      { "A\xC3", "A\xC3\xA4\xF0\x9F" }, { "a", "A\xC4" } },
    /* Characters of each length, and the edges of ranges. */
    { "root ::= [\\x7e-\\u0801]", { "~", "\x7f", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xE0\xA0\x81" },
      { "\xE0", "\xE0\xA0", "\xC2" }, { "}", "\xE0\xA0\x82", "\xE1", "\x80", "\xC1" } },
    { "root ::= [^a]", { "b", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80" },
      { "\xF4\x8F", "\xED\x9F" }, { "a", "\xED\xA0", "\xF4\x90", "\xF5", "\xC0", "\xE0\x9F" } },
    /* Rules within rules: what a stack is for. */
    { "root ::= \"(\" root \")\" | \"\"", { "", "()", "((()))" }, { "(", "(((", "(()" }, { ")", "())", "()()" } },
    { "root ::= x x\nx ::= \"a\" root? \"b\"", { "abab", "aababbab" }, { "ab", "aab" }, { "b", "ababab" } },
    { "root ::= item tail\ntail ::= \",\" root | \"\"\nitem ::= [0-9]+", { "1", "12,3,456" }, { "1,", "" },
      { ",", "1,," } },
    /* What may be nothing, over and over. */
    { "root ::= (a* b?)* \"!\"\na ::= \"x\"? \nb ::= a a", { "!", "xxxx!" }, { "", "xx" }, { "y", "!!" } },
    { "root ::= \"\"", { "" }, { 0 }, { "a" } },
    /* A way that can never end is none. */
    { "root ::= \"a\" | \"b\" never | \"c\" (\"d\" never)?\nnever ::= \"n\" never", { "a", "c" }, { "" },
      { "b", "cd" } },
    { JSON, { "{}", "[1,2.5e-3,{\"a\":null}]", "\"\\u00e4\\\\\"", "-0.0", "{\"\xC3\xA4\":[[],[[]]]}" },
      { "{", "[1,", "\"\\u0", "-", "{\"\xC3", "tr", "1.", "1e" }, { "}", "[,", "\"\n", "01", "+", "{a", "nul1",
      "1.." } },
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const golden *t = &table[i];
        ebb_grammar *g = compile(t->grammar);

        for (size_t k = 0; k < 8 && t->whole[k]; k++)
            if (match(g, t->whole[k], strlen(t->whole[k])) != EBB_MATCH_WHOLE)
                fail_msg("%s\nis not whole: %s", t->grammar, t->whole[k]);
        for (size_t k = 0; k < 8 && t->prefix[k]; k++)
            if (match(g, t->prefix[k], strlen(t->prefix[k])) != EBB_MATCH_PREFIX)
                fail_msg("%s\nis no beginning: %s", t->grammar, t->prefix[k]);
        for (size_t k = 0; k < 8 && t->none[k]; k++)
            if (match(g, t->none[k], strlen(t->none[k])) != EBB_MATCH_NONE)
                fail_msg("%s\nis allowed: %s", t->grammar, t->none[k]);
        ebb_grammar_free(g);
    }
}

/* All bytes, one or two of them, against what UTF-8 says. */
static void test_any_char_is_utf8(void **state)
{
    ebb_grammar *g = compile("root ::= .");

    (void)state;
    for (int a = 0; a < 256; a++) {
        char text[2] = { (char)a };
        bool is_lead = (a >= 0xC2 && a <= 0xF4);

        assert_int_equal(match(g, text, 1), a < 0x80 ? EBB_MATCH_WHOLE : is_lead ? EBB_MATCH_PREFIX : EBB_MATCH_NONE);
        for (int b = 0; b < 256 && is_lead; b++) {
            bool follows = b >= 0x80 && b <= 0xBF && !(a == 0xE0 && b < 0xA0) && !(a == 0xED && b > 0x9F) &&
                           !(a == 0xF0 && b < 0x90) && !(a == 0xF4 && b > 0x8F);
            text[1] = (char)b;
            assert_int_equal(match(g, text, 2), !follows ? EBB_MATCH_NONE : a < 0xE0 ? EBB_MATCH_WHOLE
                             : EBB_MATCH_PREFIX);
        }
    }
    ebb_grammar_free(g);
}

/* -- What is no grammar ------------------------------------------------------------- */

static const struct { const char *grammar; ebb_status code; const char *says; } broken[] = {
    { "", EBB_FORMAT, "no rule root" },
    { "a ::= \"x\"", EBB_FORMAT, "no rule root" },
    { "root ::= a", EBB_FORMAT, "line 1, column 10: there is no rule a" },
    { "root ::= \"x\"\n\n  ::= \"y\"", EBB_FORMAT, "line 3, column 3: expected the name" },
    { "root = \"x\"", EBB_FORMAT, "line 1, column 6: expected ::= after the name of a rule" },
    { "root ::= \"x", EBB_FORMAT, "line 1, column 10: the \" that begins here is never closed" },
    { "root ::= [a", EBB_FORMAT, "line 1, column 10: the [ that begins" },
    { "root ::= (\"a\"", EBB_FORMAT, "an earlier ( is never closed" },
    { "root ::= \"a\")", EBB_FORMAT, "line 1, column 13" },
    { "root ::= \"\\q\"", EBB_FORMAT, "line 1, column 11: unknown escape" },
    { "root ::= \"\\x4\"", EBB_FORMAT, "2 hexadecimal digits" },
    { "root ::= \"\\ud800\"", EBB_FORMAT, "not a character" },
    { "root ::= \"\xFF\"", EBB_FORMAT, "invalid UTF-8" },
    { "root ::= [z-a]", EBB_FORMAT, "ends before it begins" },
    { "root ::= []", EBB_FORMAT, "no character is in this set" },
    { "root ::= \"a\"{3,2}", EBB_FORMAT, "ends before it begins" },
    { "root ::= \"a\"{,2}", EBB_FORMAT, "number of repetitions" },
    { "root ::= \"a\"{1000001}", EBB_LIMIT, "repetitions" },
    { "root ::= *", EBB_FORMAT, "line 1, column 10" },
    { "root ::= \"a\"\n| \"b\"", EBB_FORMAT, "line 2, column 1" },
    { "root ::= \"a\"\nroot ::= \"b\"", EBB_FORMAT, "line 2, column 1: the rule root is defined a second time" },
    { "root ::= <think>", EBB_UNSUPPORTED, "tokens by name" },
    { "root ::= !<[12]>", EBB_UNSUPPORTED, "tokens by name" },
    { "root ::= root \"a\" | \"b\"", EBB_FORMAT, "rule root (line 1) begins with itself" },
    { "root ::= x\nx ::= y? z \"a\"\ny ::= \"b\"\nz ::= \"\" | x", EBB_FORMAT, "begins with itself" },
    { "root ::= \"a\" root", EBB_FORMAT, "can never end" },
    { "root ::= ((((\"a\"{1000}){1000}){1000}){1000})", EBB_LIMIT, "too large at its rule root" },
    { "root ::= (((((\"\"{1000}){1000}){1000}){1000}){1000})? \"x\"", EBB_OK, NULL },
};

static void test_errors_name_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        ebb_grammar *g;
        ebb_error err = { 0 };
        ebb_status st = ebb_grammar_new(broken[i].grammar, strlen(broken[i].grammar), &g, &err);

        if (st != broken[i].code || (broken[i].says && !strstr(err.msg, broken[i].says)))
            fail_msg("%s\nsays %d: %s", broken[i].grammar, st, err.msg);
        assert_true((g == NULL) == (st != EBB_OK));
        ebb_grammar_free(g);
    }
}

static void fill(char *text, const char *what, size_t n)
{
    *text = '\0';
    for (size_t i = 0; i < n; i++)
        text = stpcpy(text, what);
}

static void test_depth_has_a_limit(void **state)
{
    static const char *const deep[] = { "(", "\"a\"*", "*", "(\"a\" | " };
    static char text[400000];
    ebb_grammar *g;

    (void)state;
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        size_t n = (size_t)sprintf(text, "root ::= \"x\"");
        ebb_error err = { 0 };

        fill(text + n, deep[i], 50000);
        if (ebb_grammar_new(text, strlen(text), &g, &err) != EBB_OK)
            assert_true(err.code == EBB_LIMIT || err.code == EBB_FORMAT);
        ebb_grammar_free(g);
    }
}

/* Ways that all can be meant are followed side by side, up to a limit that is told. */
static void test_ambiguity_has_a_limit(void **state)
{
    ebb_grammar *g = compile("root ::= (\"a\"? ){3000} (\"a\"? ){3000}\n");
    ebb_match m;
    ebb_error err = { 0 };
    char text[600];

    (void)state;
    memset(text, 'a', sizeof text);
    if (ebb_grammar_match(g, text, sizeof text, &m, &err) != EBB_OK)
        assert_int_equal(err.code, EBB_LIMIT);
    ebb_grammar_free(g);
    g = compile("root ::= x*\nx ::= \"a\" | \"a\" \"a\" | \"a\" x");
    assert_int_equal(match(g, text, sizeof text), EBB_MATCH_WHOLE);
    ebb_grammar_free(g);
}

/* Memory is given back while a long text is followed, and the stack below stays. */
static void test_long_texts(void **state)
{
    enum { N = 300000 };
    ebb_grammar *g = compile("root ::= \"(\" root \")\" | [a-z]*");
    char *text = malloc(2 * N + 4);

    (void)state;
    memset(text, '(', N);
    memcpy(text + N, "xyz", 3);
    memset(text + N + 3, ')', N);
    assert_int_equal(match(g, text, 2 * N + 3), EBB_MATCH_WHOLE);
    assert_int_equal(match(g, text, 2 * N + 2), EBB_MATCH_PREFIX);
    text[2 * N + 3] = ')';
    assert_int_equal(match(g, text, 2 * N + 4), EBB_MATCH_NONE);
    free(text);
    ebb_grammar_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_any_char_is_utf8),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_depth_has_a_limit),
        cmocka_unit_test(test_ambiguity_has_a_limit),
        cmocka_unit_test(test_long_texts),
    };

    return cmocka_run_group_tests_name("gbnf", tests, NULL, NULL);
}
