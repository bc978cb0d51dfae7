/* The configuration file: the same options, errors that name their line, and what comes before what. */
#include "ebb_test.h"

#include "args.h"
#include "tui.h"

static char said[1024];
static ebb_error refused;

static void complain(const char *line)
{
    size_t n = strlen(said);

    snprintf(said + n, sizeof said - n, "%s\n", line);
}

static ebb_args read_config(const char *text, unsigned mask)
{
    static char copy[1024];                      /* options point into it, and the name of an engine into its struct */
    static ebb_args a;

    a = (ebb_args){ .sampling = ebb_sampler_params_default() };
    said[0] = '\0';
    snprintf(copy, sizeof copy, "%s", text);
    refused = (ebb_error){ 0 };
    refused.code = ebb_args_config(&a, copy, "config", mask, complain, &refused);
    return a;
}

static void test_values(void **state)
{
    ebb_args a = read_config("# mine\n\n model=/m/a b.gguf # the big one\r\n"
                             "ram = 6G\nmode = max-tps\nplain\nascii = off\nsystem = \" # short \"\npredict = 100",
                             EBB_FOR_CHAT);

    (void)state;
    assert_string_equal(said, "");
    assert_string_equal(a.model, "/m/a b.gguf");
    assert_true(a.engine.ram_bytes == 6ull << 30);
    assert_int_equal(a.engine.mode, 1);
    assert_true(a.plain && !a.ascii);
    assert_string_equal(a.system, " # short ");
    assert_int_equal(a.n_predict, 100);
    assert_int_equal(a.sampling_config, EBB_SAMPLING_PREDICT);
    assert_int_equal(a.sampling_given, 0);
}

/* As editors of Windows write it: the first line is one like the others. */
static void test_byte_order_mark(void **state)
{
    ebb_args a = read_config("\xEF\xBB\xBFtemp = 0.5\r\nplain = perhaps\r\n", EBB_FOR_CHAT);

    (void)state;
    assert_string_equal(said, "config:2: plain: give on or off, not 'perhaps'\n");
    assert_true(a.sampling.temp == 0.5f);
    read_config("\xEF\xBB\xBF", EBB_FOR_CHAT);
    assert_string_equal(said, "");
}

/* Each wrong line is told with its number, and the others count. */
static void test_errors(void **state)
{
    ebb_args a = read_config("tempp = 1\ntemp = hot\n= 3\nplain = perhaps\ntemp = 0.25\n", EBB_FOR_CHAT);

    (void)state;
    assert_string_equal(said, "config:1: unknown option 'tempp'\n"
                              "config:2: --temp hot: give a number\n"
                              "config:3: expected name = value\n"
                              "config:4: plain: give on or off, not 'perhaps'\n");
    assert_true(a.sampling.temp == 0.25f);
}

/* Scores are divided by the penalty: what /set and ebb serve refuse ruins every answer from here, too. */
static void test_ranges_of_sampling(void **state)
{
    ebb_args a = read_config("temp = -3\ntop-p = 7\nmin-p = nan\nrepeat-penalty = 0\ntop-k = 2000000\n", EBB_FOR_CHAT);

    (void)state;
    assert_string_equal(said, "config:1: --temp -3: it takes 0 to 10 (0: greedy)\n"
                              "config:2: --top-p 7: it takes 0 to 1 (1: off)\n"
                              "config:3: --min-p nan: it takes 0 to 1 (0: off)\n"
                              "config:4: --repeat-penalty 0: it takes 0.1 to 10 (1: off)\n"
                              "config:5: --top-k 2000000: it takes 0 to 1000000 (0: off)\n");
    assert_int_equal(a.sampling_config, 0);
    a = read_config("temp = 10\nrepeat-penalty = 0.1\ntop-k = 1000000\n", EBB_FOR_CHAT);
    assert_string_equal(said, "");
    assert_true(a.sampling.temp == 10 && a.sampling.repeat_penalty == 0.1f && a.sampling.top_k == 1000000);
}

static void test_status(void **state)
{
    ebb_args a = read_config("status = one\nstatus = three\n", EBB_FOR_CHAT);

    (void)state;
    assert_string_equal(said, "config:2: --status three: give auto, panel, two, one or hidden\n");
    assert_int_equal(a.layout, EBB_LAYOUT_LINE);
}

/* What is to be private is not taken for the contrary; where nobody keeps anything, it says nothing. */
static void test_wrong_private(void **state)
{
    static const char text[] = "temp = hot\n  private = onn # really\ntemp = 0.25\n";
    ebb_args a = read_config(text, EBB_FOR_CHAT);

    (void)state;
    assert_int_equal(refused.code, EBB_USAGE);
    assert_string_equal(refused.msg, "config:2: private: give on or off, not 'onn'");
    assert_string_equal(said, "config:1: --temp hot: give a number\n");
    assert_true(a.sampling.temp == 0.25f);
    read_config("private = off\ntemp = hot\n", EBB_FOR_CHAT);
    assert_int_equal(refused.code, EBB_OK);
}

/* A seed is taken to its last digit, or not at all. */
static void test_seeds(void **state)
{
    ebb_args a = read_config("seed = 9223372036854775807\nseed = 9223372036854775808\nseed = -1\n", EBB_FOR_CHAT);

    (void)state;
    assert_string_equal(said, "config:2: --seed 9223372036854775808: give a whole number up to 9223372036854775807\n"
                              "config:3: --seed -1: give a whole number up to 9223372036854775807\n");
    a = read_config("seed = 9223372036854775807\n", EBB_FOR_CHAT);
    assert_true(a.sampling.seed == INT64_MAX);
}

/* A line that is told as wrong has changed nothing, not even that something was said. */
static void test_wrong_lines_change_nothing(void **state)
{
    ebb_args a = read_config("resident = all\nresident = 200%\nsession =\nengine =\nhost =\ntemp = hot\n"
                             "top-k = many\n", EBB_FOR_CHAT);

    (void)state;
    assert_non_null(strstr(said, "config:1: "));
    assert_non_null(strstr(said, "config:7: "));
    assert_false(a.engine.has_resident);
    assert_null(a.session);
    assert_null(a.engine_name);
    assert_false(a.is_engine_given);
    assert_int_equal(a.sampling_config, 0);
}

/* What is behind the quotes is a comment, and what is within them is not. */
static void test_quotes(void **state)
{
    static const struct { const char *value, *want; } cases[] = {
        { "\"a b\"", "a b" }, { "\"a\" # the good one", "a" }, { "\"Say # 1\"\t# c", "Say # 1" },
        { "\"Say \"x\" twice\" # \"c\"", "Say \"x\" twice" }, { "\"\" # none", "" }, { "\"a\"#b", "\"a\"#b" },
        { "\"a # c", "\"a" }, { "\"", "\"" }, { "\"\"", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[100];

        snprintf(line, sizeof line, "system = %s\n", cases[i].value);
        assert_string_equal(read_config(line, EBB_FOR_CHAT).system, cases[i].want);
    }
}

/* A file that is none fills no screen, and its last line counts all the same. */
static void test_many_errors(void **state)
{
    char text[1000] = "";
    ebb_args a;

    (void)state;
    for (int i = 0; i < 100; i++)
        strcat(text, "a = 1\n");
    strcat(text, "temp = 0.25\n");
    a = read_config(text, EBB_FOR_CHAT);
    assert_non_null(strstr(said, "config:20: "));
    assert_null(strstr(said, "config:21: "));
    assert_non_null(strstr(said, "config: 80 more lines are wrong\n"));
    assert_true(a.sampling.temp == 0.25f);
}

static void test_options_of_other_commands(void **state)
{
    ebb_args a = read_config("temp = 0.25\ntheme = light\nram = 1G\n", EBB_FOR_PLAN);

    (void)state;
    assert_string_equal(said, "");
    assert_null(a.theme);
    assert_int_equal(a.sampling_config, 0);
    assert_true(a.engine.ram_bytes == 1ull << 30);
}

/* What commands call by one name is, in the file, what chats and runs mean by it; others pass it over.  What `engines`
 * are told they keep, so the file tells them nothing. */
static void test_names_of_several_commands(void **state)
{
    static const char text[] = "ctx = max\nhost = user@box\ngreedy = on\nkv = q8_0/q4_0\nprompt = hello\n"
                               "key-file = /k\nram = 2G\nmodel = m\nkind = vllm\nquiet = on\n";
    ebb_args run = read_config(text, EBB_FOR_RUN), serve, engines, bench, ollama, inspect;

    (void)state;
    assert_string_equal(said, "");
    assert_int_equal(run.engine.n_ctx, EBB_CTX_MAX);
    assert_string_equal(run.engine_name, "ssh://user@box");
    assert_string_equal(run.prompt, "hello");
    serve = read_config(text, EBB_FOR_SERVE);
    assert_string_equal(said, "");
    assert_null(serve.host);
    assert_string_equal(serve.key_file, "/k");
    assert_true(serve.sampling.temp == 0);
    engines = read_config(text, EBB_FOR_ENGINES);
    assert_string_equal(said, "");
    assert_true(!engines.model && !engines.key_file && !engines.engine_kind && !engines.engine.n_ctx && engines.quiet);
    bench = read_config(text, EBB_FOR_BENCH);
    assert_string_equal(said, "");
    assert_null(bench.prompt);
    ollama = read_config(text, EBB_FOR_OLLAMA);
    assert_string_equal(said, "");
    assert_true(!ollama.engine.has_kv && !ollama.engine.ram_bytes && !ollama.engine.n_ctx);
    assert_string_equal(ollama.model, "m");
    inspect = read_config(text, EBB_FOR_INSPECT);
    assert_string_equal(said, "");
    assert_true(inspect.greedy_steps == 0 && inspect.engine.n_ctx == EBB_CTX_MAX);
}

/* The server that --attach starts reads the file, too, and would attach to another one, and so on. */
static void test_not_in_the_file(void **state)
{
    ebb_args a = read_config("attach = on\n", EBB_FOR_SERVE);

    (void)state;
    assert_string_equal(said, "config:1: attach: only the command line can say it\n");
    assert_false(a.attaches);
}

static ebb_args read_both(const char *config, unsigned mask, const char *first, const char *second)
{
    char *argv[] = { (char *)(uintptr_t)"ebb", (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL };
    ebb_args a = read_config(config, mask);

    assert_string_equal(said, "");
    assert_int_equal(ebb_args_parse(&a, second ? 3 : 2, argv, mask, NULL), EBB_OK);
    return a;
}

/* Where only one of two can be. */
static void test_command_line_takes_the_place(void **state)
{
    ebb_args a = read_both("continue = on\n", EBB_FOR_RUN, "-s", "foo");

    (void)state;
    assert_true(!a.continue_last && strcmp(a.session, "foo") == 0);
    a = read_both("session = foo\n", EBB_FOR_RUN, "-c", NULL);
    assert_true(a.continue_last && !a.session);
    a = read_both("continue = on\n", EBB_FOR_RUN, "--private", NULL);
    assert_true(a.is_private && !a.continue_last);
    a = read_both("grammar = f\n", EBB_FOR_RUN, "--json-schema", "{}");
    assert_true(a.json_schema && !a.grammar);
    a = read_both("json-schema = {}\n", EBB_FOR_RUN, "--grammar", "f");
    assert_true(a.grammar && !a.json_schema);
    a = read_both("port = 0\n", EBB_FOR_SERVE, "--socket", "s");
    assert_true(a.socket_path && !a.has_port);
    a = read_both("socket = s\n", EBB_FOR_SERVE, "--port", "0");
    assert_true(a.has_port && !a.socket_path);
    a = read_both("no-draft = on\n", EBB_FOR_RUN, "--draft", "small");
    assert_true(a.draft && !a.engine.no_speculation);
    a = read_both("no-draft = on\n", EBB_FOR_RUN, "--draft", "none");
    assert_true(a.engine.no_speculation);
    a = read_both("plain = on\n", EBB_FOR_CHAT, "--inline", NULL);
    assert_true(a.is_inline && !a.plain);
    a = read_both("private = on\n", EBB_FOR_CHAT, "-s", "foo");
    assert_true(a.is_private);
}

/* A model in the file is no model on the command line, where a word may name another. */
static void test_model_of_the_file(void **state)
{
    ebb_args a = read_both("model = m\n", EBB_FOR_RUN, "word", NULL);

    (void)state;
    assert_true(a.model && a.is_model_of_config);
    a = read_both("model = m\n", EBB_FOR_RUN, "-m", "n");
    assert_string_equal(a.model, "n");
    assert_false(a.is_model_of_config);
}

/* The file's model is one of the file's engine. */
static void test_model_of_another_engine(void **state)
{
    (void)state;
    assert_null(read_both("model = m\n", EBB_FOR_RUN, "-e", "box").model);
    assert_null(read_both("model = m\n", EBB_FOR_RUN, "--host", "box").model);
    assert_null(read_both("engine = box\nmodel = m\n", EBB_FOR_RUN, "-e", "here").model);
    assert_non_null(read_both("engine = box\nmodel = m\n", EBB_FOR_RUN, "-e", "box").model);
    assert_non_null(read_both("model = m\n", EBB_FOR_RUN, "-e", "here").model);
}

/* For a command that asks no engine the model of a remote one is no file. */
static void test_model_without_engines(void **state)
{
    static const unsigned masks[] = { EBB_FOR_PLAN, EBB_FOR_BENCH, EBB_FOR_INSPECT, EBB_FOR_SESSIONS, EBB_FOR_SERVE,
                                      EBB_FOR_DOCTOR, EBB_FOR_OLLAMA };

    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        assert_null(read_both("engine = box\nmodel = m\n", masks[i], "word", NULL).model);
        assert_null(read_both("model = m\nhost = box\n", masks[i], "word", NULL).model);
        assert_string_equal(read_both("engine = box\nmodel = m\n", masks[i], "-m", "n").model, "n");
        assert_string_equal(read_both("engine = here\nmodel = m\n", masks[i], "word", NULL).model, "m");
    }
}

/* Without --ollama they say nothing: on the command line a mistake, in the file what was set for another time. */
static void test_options_of_the_estimate(void **state)
{
    (void)state;
    assert_null(read_both("parallel = 2\n", EBB_FOR_PLAN, "--table", NULL).ollama_option);
    assert_string_equal(read_both("", EBB_FOR_PLAN, "--parallel", "2").ollama_option, "--parallel");
}

static void test_one_place_to_listen(void **state)
{
    char *argv[] = { (char *)(uintptr_t)"ebb", (char *)(uintptr_t)"--socket", (char *)(uintptr_t)"s",
                     (char *)(uintptr_t)"--port", (char *)(uintptr_t)"0", NULL };
    ebb_args a = { 0 };

    (void)state;
    assert_int_equal(ebb_args_parse(&a, 5, argv, EBB_FOR_SERVE, NULL), EBB_USAGE);
}

static void test_command_line_comes_after(void **state)
{
    char ebb[] = "ebb", temp[] = "--temp", half[] = "0.5", plain[] = "--plain";
    char *argv[] = { ebb, temp, half, plain, NULL };
    ebb_args a = read_config("temp = 0.25\ntop-k = 7\n", EBB_FOR_CHAT);

    (void)state;
    assert_int_equal(ebb_args_parse(&a, 4, argv, EBB_FOR_CHAT, NULL), EBB_OK);
    assert_true(a.sampling.temp == 0.5f && a.sampling.top_k == 7 && a.plain);
    assert_int_equal(a.sampling_given, EBB_SAMPLING_BIT(temp));
    assert_int_equal(a.sampling_config, EBB_SAMPLING_BIT(temp) | EBB_SAMPLING_BIT(top_k));
}

/* Values stay with their options, and operands behind them. */
/* The value of a variable that is not set is no model and no file. */
static void test_empty_names(void **state)
{
    static const char *const lines[][2] = {
        { "-m", "--model: needs MODEL" }, { "--json-schema", "--json-schema: needs FILE|TEXT" },
        { "--unlock", "--unlock: needs FILE" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *argv[] = { (char *)"ebb", (char *)lines[i][0], (char *)"" };
        ebb_args a = { 0 };
        ebb_error err = { 0 };

        assert_int_equal(ebb_args_parse(&a, 3, argv, EBB_FOR_RUN, &err), EBB_USAGE);
        assert_string_equal(err.msg, lines[i][1]);
    }
    assert_null(read_config("model =\n", EBB_FOR_RUN).model);
    assert_string_equal(said, "config:1: --model: needs MODEL\n");
    assert_string_equal(read_config("system = \"\"\n", EBB_FOR_RUN).system, "");
}

static void test_rewritten(void **state)
{
    static const char *const lines[][2] = {
        { "serve --attach", "serve --idle 3" },
        { "serve --ctx 9 --attach --kv=f16 m.gguf", "serve --ctx 9 --kv=f16 m.gguf --idle 3" },
        { "serve --trace --attach -m x --attach -- --attach", "serve --trace --attach -m x --idle 3 -- --attach" },
        { "serve --idle", "serve --idle --idle 3" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char copy[100], got[100] = "", *argv[10];
        const char *out[14];
        int argc = 0;

        snprintf(copy, sizeof copy, "%s", lines[i][0]);
        for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
            argv[argc++] = word;
        ebb_args_rewrite(argc, argv, EBB_FOR_SERVE, "--attach", (const char *const[]){ "--idle", "3" }, 2, out);
        for (const char **word = out; *word; word++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", word > out ? " " : "", *word);
        assert_string_equal(got, lines[i][1]);
    }
}

static ebb_args_question asks(const char *line, unsigned mask)
{
    char copy[100], *argv[10] = { (char *)(uintptr_t)"ebb" };
    int argc = 1;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return ebb_args_asks(argc, argv, mask);
}

/* What an option is given is no question. */
static void test_questions(void **state)
{
    (void)state;
    assert_int_equal(asks("", EBB_FOR_RUN), EBB_ASKS_NOTHING);
    assert_int_equal(asks("-p -h", EBB_FOR_RUN), EBB_ASKS_NOTHING);
    assert_int_equal(asks("run --system --version word", EBB_FOR_RUN), EBB_ASKS_NOTHING);
    assert_int_equal(asks("--system=x --version", EBB_FOR_RUN), EBB_ASKS_VERSION);
    assert_int_equal(asks("-c -h --version", EBB_FOR_RUN), EBB_ASKS_HELP);
    assert_int_equal(asks("--no-such-option --help", EBB_FOR_RUN), EBB_ASKS_HELP);
    assert_int_equal(asks("-- --help", EBB_FOR_RUN), EBB_ASKS_NOTHING);
    assert_int_equal(asks("-p", EBB_FOR_RUN), EBB_ASKS_NOTHING);
}

/* Of memory a G is 2^30, of speeds 10^9. */
static void test_disk_speed(void **state)
{
    static const struct { const char *text; double bytes_s; } cases[] = {
        { "3G/s", 3e9 }, { "2.5G", 2.5e9 }, { "500M/s", 5e8 }, { "3GiB/s", 3.0 * (1 << 30) }, { "800000k", 8e8 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char option[] = "--disk", value[16];
        char *argv[] = { (char *)(uintptr_t)"plan", option, value, NULL };
        ebb_args a = { 0 };

        snprintf(value, sizeof value, "%s", cases[i].text);
        assert_int_equal(ebb_args_parse(&a, 3, argv, EBB_FOR_PLAN, NULL), EBB_OK);
        assert_true(a.disk_bytes_s > cases[i].bytes_s * 0.999 && a.disk_bytes_s < cases[i].bytes_s * 1.001);
    }
}

static void test_garbage(void **state)
{
    uint32_t seed = 5;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        char text[200];
        for (size_t k = 0; k + 1 < sizeof text; k++) {
            static const char likely[] = "temp=plain \"#\n\n0.5";
            seed = seed * 1664525u + 1013904223u;
            text[k] = seed >> 28 ? likely[(seed >> 8) % (sizeof likely - 1)] : (char)(seed >> 16);
        }
        text[sizeof text - 1] = '\0';
        read_config(text, EBB_FOR_CHAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_wrong_private),
        cmocka_unit_test(test_wrong_lines_change_nothing),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_seeds), cmocka_unit_test(test_status), cmocka_unit_test(test_ranges_of_sampling),
        cmocka_unit_test(test_many_errors),
        cmocka_unit_test(test_options_of_other_commands),
        cmocka_unit_test(test_names_of_several_commands),
        cmocka_unit_test(test_not_in_the_file),
        cmocka_unit_test(test_command_line_takes_the_place),
        cmocka_unit_test(test_model_of_the_file),
        cmocka_unit_test(test_model_of_another_engine),
        cmocka_unit_test(test_model_without_engines),
        cmocka_unit_test(test_options_of_the_estimate),
        cmocka_unit_test(test_one_place_to_listen),
        cmocka_unit_test(test_command_line_comes_after),
        cmocka_unit_test(test_questions), cmocka_unit_test(test_empty_names), cmocka_unit_test(test_rewritten),
        cmocka_unit_test(test_disk_speed), cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
