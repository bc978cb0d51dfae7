/* The interpreter: what Jinja2 gives, limits, errors, who wrote what, and hostile
 * templates and contexts. */
#include "ebb_alloc.h"
#include "ebb_test.h"

#include <dirent.h>
#include <jansson.h>
#include <time.h>

#include "os/file.h"
#include "template/family.h"
#include "template/template.h"

static json_t *own_cases(void)
{
    json_error_t e;
    json_t *j = json_load_file("tests/chat/template/jinja_cases.json", 0, &e);

    if (!j)
        fail_msg("jinja_cases.json, line %d: %s", e.line, e.text);
    return j;
}

static const char *text_at(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

/* Compile and render; the result is the caller's to fini. */
static ebb_status render(const char *source, size_t n, const json_t *context, const ebb_template_opts *o,
                         ebb_template_result *r, ebb_error *err)
{
    ebb_template *t;
    ebb_status st = ebb_template_compile(source, n, &t, err);

    memset(r, 0, sizeof *r);
    if (st == EBB_OK)
        st = ebb_template_render(t, context, o, r, err);
    ebb_template_free(t);
    return st;
}

/* -- What Jinja2 gives ------------------------------------------------------------------- */

static void check_case(const json_t *row, const json_t *context, const ebb_template_opts *o)
{
    const char *source = text_at(row, "template"), *result = text_at(row, "result"), *raises = text_at(row, "raises");
    ebb_template_result r;
    ebb_error err = { 0 };
    ebb_status st = render(source, strlen(source), context, o, &r, &err);

    if (result && st != EBB_OK)
        fail_msg("%s: %s", source, err.msg);
    if (result && strcmp(ebb_buf_text(&r.text), result) != 0)
        fail_msg("%s:\nexpected %s\ngot      %s", source, result, ebb_buf_text(&r.text));
    if (!result && st == EBB_OK)
        fail_msg("%s: did not fail but gave %s", source, ebb_buf_text(&r.text));
    if (!result && st != EBB_FORMAT && st != EBB_LIMIT && !raises)
        fail_msg("%s: status %d", source, (int)st);
    if (raises)
        assert_string_equal(ebb_buf_text(&r.message), raises);
    ebb_template_result_fini(&r);
}

static void test_as_jinja2(void **state)
{
    json_t *all = own_cases(), *row;
    struct tm now = { 0 };
    size_t i;

    (void)state;
    strptime(text_at(all, "now"), "%Y-%m-%dT%H:%M:%S", &now);
    for (int attribute = 0; attribute < 2; attribute++) {
        ebb_template_opts o = { .now = &now, .attribute = attribute };
        json_array_foreach(json_object_get(all, "cases"), i, row)
            check_case(row, json_object_get(all, "context"), &o);
    }
    json_decref(all);
}

/* -- Limits ---------------------------------------------------------------------------------- */

static void expect_limit(const char *source, size_t n)
{
    json_t *context = json_object();
    ebb_template_opts o = { .max_steps = 300000, .max_memory_bytes = 24 << 20, .max_output_bytes = 1 << 20 };
    ebb_template_result r;
    ebb_error err = { 0 };
    ebb_status st = render(source, n, context, &o, &r, &err);

    if (st != EBB_LIMIT)
        fail_msg("%.100s: status %d, %s", source, (int)st, err.msg);
    assert_true(err.msg[0] != '\0');
    ebb_template_result_fini(&r);
    json_decref(context);
}

static void test_bombs(void **state)
{
    static const char *const bombs[] = {
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}0123456789abcdef{% endfor %}",
        "{{ 'a' * 1000000000 }}", "{{ ([1] * 1000000000) | length }}",
        "{{ 'ab' | replace('', 'x' * 900000) | length }}",
        "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s=['ab']) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
        "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x "
        "| tojson }}",
        "{% set ns = namespace(x=[], y=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] "
        "%}{% endfor %}"
        "{{ ns.x == ns.y }}",
        "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", "{{ range(1000000000) }}",
        "{{ '%999999999d' % 1 }}", "{{ '{:999999999}'.format(1) }}", "{{ 'a'.center(999999999) }}",
        "{{ 'a' | indent(999999999) }}",
        "{{ '%.999999f' % 1 }}", "{{ 'a'.zfill(99999999) }}", "{{ [1] | tojson(indent=999999999) }}",
        "{% set s = 'x' * 900000 %}{% for i in range(100000) %}{% if 'y' in s %}{% endif %}{% endfor %}",
        "{% set l = range(90000) | list %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++)
        expect_limit(bombs[i], strlen(bombs[i]));
}

/* `before`, then n times `part`, `middle`, n times `close`. */
static void expect_deep(const char *before, const char *part, const char *middle, const char *close, const char *behind)
{
    ebb_buf source = { 0 };

    ebb_buf_adds(&source, before);
    for (int i = 0; i < 20000; i++)
        ebb_buf_adds(&source, part);
    ebb_buf_adds(&source, middle);
    for (int i = 0; i < 20000; i++)
        ebb_buf_adds(&source, close);
    ebb_buf_adds(&source, behind);
    expect_limit(ebb_buf_text(&source), source.len);
    ebb_buf_fini(&source);
}

static void test_deep_sources(void **state)
{
    (void)state;
    expect_deep("{{ ", "(", "1", ")", " }}");
    expect_deep("{{ ", "[", "1", "]", " }}");
    expect_deep("{{ ", "{1:", "1", "}", " }}");
    expect_deep("{{ ", "- ", "1", "", " }}");
    expect_deep("{{ ", "not ", "1", "", " }}");
    expect_deep("{{ 1", " + 1", "", "", " }}");
    expect_deep("{{ 1", " or 0", "", " and 1", " }}");
    expect_deep("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns", ".a", "", "", " }}");
    expect_deep("{{ 1", "|string", "", "", " }}");
    expect_deep("{{ 1", " is odd == 1", "", "", " if 0 }}{{ range(10**9) }}");
    expect_deep("{{ ", "1 if 0 else ", "2", "", " }}");
    expect_deep("", "{% if 1 %}", "", "{% endif %}", "");
    expect_deep("", "{% for a in [1] %}", "", "{% endfor %}", "");
    expect_deep("{% set ", "(", "a", ",)", " = 1 %}");
    expect_deep("{% set x", "|trim", "%}", "", "{% endset %}");
}

/* `before`, then n numbered parts, `after`; "#" in a part is its number. */
static void add_numbered(ebb_buf *out, const char *before, const char *part, int n, const char *after)
{
    ebb_buf_adds(out, before);
    for (int i = 0; i < n; i++)
        for (const char *p = part; *p; p++)
            *p == '#' ? ebb_buf_addf(out, "%d", i) : ebb_buf_add(out, p, 1);
    ebb_buf_adds(out, after);
}

/* Names are searched for one after the other: that is work, too. */
static void test_many_names(void **state)
{
    enum { N = 5000 };
    static const struct { const char *before, *part, *middle, *more, *after; } rows[] = {
        { "{% set ", "a#,", "= range(5000) %}", "", "" },
        { "{% macro m(", "a#,", "x) %}{% endmacro %}{{ m() }}", "", "" },
        { "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(", "b#=1,", "c=1) }}{{ dict(", "b#=1,", "c=1) }}" },
        { "{% macro m(", "a#=1,", "x=1) %}{% endmacro %}{% set d = 1 %}{{ m(", "a#=2,", "x=1) }}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_buf source = { 0 };

        add_numbered(&source, rows[i].before, rows[i].part, N, rows[i].middle);
        add_numbered(&source, "", rows[i].more, N, rows[i].after);
        expect_limit(ebb_buf_text(&source), source.len);
        ebb_buf_fini(&source);
    }
}

/* What a source becomes is many times as large as the source. */
static void test_tree_is_bounded(void **state)
{
    static const char *const parts[] = { "{{ a }}", "{% set a = 1 %}" };

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ebb_buf source = { 0 };
        ebb_template *t;
        ebb_error err = { 0 };

        while (source.len < (4 << 20) - strlen(parts[i]))
            ebb_buf_adds(&source, parts[i]);
        assert_int_equal(ebb_template_compile(ebb_buf_text(&source), source.len, &t, &err), EBB_LIMIT);
        assert_null(t);
        if (!strstr(err.msg, "more than 32 MiB of memory are needed"))
            fail_msg("%s", err.msg);
        ebb_buf_fini(&source);
    }
}

/* -- Errors -------------------------------------------------------------------------------------- */

static void test_errors_name_the_line(void **state)
{
    static const struct { const char *source, *line, *what; } rows[] = {
        { "a\nb\n{{ x.y }}", "line 3", "'x' is undefined" },
        { "a\r\nb\r\n{% if %}", "line 3", "an expression is wanted" },
        { "{% for x in [1] %}\n{{ 1 + 'a' }}{% endfor %}", "line 2", "'+' does not take a int and a str" },
        { "\n{{ 'a' | nosuch }}", "line 2", "no filter 'nosuch'" },
        { "\n\n{{ x is nosuch }}", "line 3", "no test 'nosuch'" },
        { "{% if true %}", "line 1", "endif is wanted, but the template ends" },
        { "{% include 'x' %}", "line 1", "a tag that is known here is wanted, not 'include'" },
        { "{{ 'abc", "line 1", "a string has no end" },
        { "{% break %}", "line 1", "break outside of a loop" },
        { "{{ 9223372036854775807 + 1 }}", "line 1", "64 bits" },
        { "{{ 'x' | replace('a') }}", "line 1", "replace wants the argument 'new'" },
    };
    json_t *context = json_object();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_template_result r;
        ebb_error err = { 0 };
        assert_int_equal(render(rows[i].source, strlen(rows[i].source), context, NULL, &r, &err), EBB_FORMAT);
        if (!strstr(err.msg, rows[i].line) || !strstr(err.msg, rows[i].what))
            fail_msg("%s: '%s' lacks '%s' or '%s'", rows[i].source, err.msg, rows[i].line, rows[i].what);
        assert_false(r.raised);
        assert_int_equal(r.text.len, 0);
        ebb_template_result_fini(&r);
    }
    assert_int_equal(render("x", 1, NULL, NULL, &(ebb_template_result){ 0 }, NULL), EBB_FORMAT);
    json_decref(context);
}

static void test_raise_is_verbatim(void **state)
{
    const char *source = "text{{ raise_exception('a\nb\t' + 'x' * 1000) }}";
    json_t *context = json_object();
    ebb_template_result r;
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(render(source, strlen(source), context, NULL, &r, &err), EBB_UNSUPPORTED);
    assert_true(r.raised);
    assert_int_equal(r.message.len, 1004);
    assert_memory_equal(r.message.data, "a\nb\txxx", 7);
    assert_int_equal(r.text.len, 0);
    ebb_template_result_fini(&r);
    json_decref(context);
}

/* -- Who wrote what ---------------------------------------------------------------------------------- */

/* The result with the bytes of message i in upper case letters a -> A + i, as "<0:text>". */
static const char *attributed(const char *source, const json_t *context)
{
    static ebb_buf out;
    ebb_template_opts o = { .attribute = true };
    ebb_template_result r;
    ebb_error err = { 0 };
    size_t at = 0;

    if (render(source, strlen(source), context, &o, &r, &err) != EBB_OK)
        fail_msg("%s: %s", source, err.msg);
    ebb_buf_clear(&out);
    for (size_t i = 0; i < r.n_ranges; i++) {
        assert_true(r.ranges[i].begin >= at && r.ranges[i].end > r.ranges[i].begin && r.ranges[i].end <= r.text.len);
        ebb_buf_add(&out, r.text.data + at, r.ranges[i].begin - at);
        ebb_buf_addf(&out, "<%u:%.*s>", r.ranges[i].message, (int)(r.ranges[i].end - r.ranges[i].begin),
                     r.text.data + r.ranges[i].begin);
        at = r.ranges[i].end;
    }
    ebb_buf_add(&out, ebb_buf_text(&r.text) + at, r.text.len - at);
    ebb_template_result_fini(&r);
    return ebb_buf_text(&out);
}

static void test_attribution(void **state)
{
    static const struct { const char *source, *want; } rows[] = {
        { "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}",
          "[user]<0: ab c\n>[assistant]<1:D\xC3\xA9>" },
        { "{% for m in messages %}{{ '<' + m.role + '>' + m.content | trim + '$' }}{% endfor %}",
          "<user><0:ab c>$<assistant><1:D\xC3\xA9>$" },
        { "{{ messages[0].content ~ messages[1].content ~ 'x' }}", "<0: ab c\n><1:D\xC3\xA9>x" },
        { "{{ messages[0].content | upper }}{{ messages[1].content[1] }}", "<0: AB C\n><1:\xC3\xA9>" },
        { "{{ messages[0].content.split(' ')[1] }}|{{ messages[0].content.replace('b', 'xx') }}",
          "<0:ab>|<0: a>xx<0: c\n>" },
        { "{{ messages[0].content[::-1] }}", "<0:\nc ba >" },
        { "{{ messages[0].content | tojson }}", "\"<0: ab c\\n>\"" },
        { "{{ messages | string }}",
          "[{'role': 'user', 'content': '<0: ab c\\n>'}, {'role': 'assistant', 'content': '<1:D\xC3\xA9>'}]" },
        { "{{ '%s-%s' % (messages[0].content, 'y') }}{{ '{}'.format(messages[1].content) }}",
          "<0: ab c\n>-y<1:D\xC3\xA9>" },
        { "{{ messages | map(attribute='content') | join('|') }}", "<0: ab c\n>|<1:D\xC3\xA9>" },
        { "{{ messages[0].content | indent(2) }}{{ messages[1].content | title | center(4) }}",
          "<0: ab c>\n <1:D\xC3\xA9> " },
        { "{% set ns = namespace(s='') %}{% for i in range(40) %}{% set ns.s = ns.s + 'tttttttttttttttttttt' + "
          "messages[1].content %}"
          "{% endfor %}{{ ns.s[-42:] }}", "tttttttttttttttttt<1:D\xC3\xA9>tttttttttttttttttttt<1:D\xC3\xA9>" },
        { "{% macro m(x) %}({{ x }}){% endmacro %}{% set y %}{{ m(messages[1].content) }}{% endset %}{{ y | "
          "trim('(') }}", "<1:D\xC3\xA9>)" },
        { "{{ messages[1].content | escape | urlencode }}", "<1:D%C3%A9>" },
        { "{{ messages[0].content | length }}{{ bos_token }}", "6<s>" },
    };
    json_t *context = json_pack("{s:[{s:s,s:s},{s:s,s:s}],s:s}", "messages", "role", "user", "content",
                                " ab c\n", "role", "assistant", "content", "D\xC3\xA9", "bos_token", "<s>");

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(attributed(rows[i].source, context), rows[i].want) != 0)
            fail_msg("%s:\nexpected %s\ngot      %s", rows[i].source, rows[i].want,
                     attributed(rows[i].source, context));
    json_decref(context);
}

/* Text that grows in place must not change what was cut from it before. */
static void test_growing_text(void **state)
{
    const char *source =
        "{% set ns = namespace(s='0123456789' * 30, old=[]) %}"
        "{% for i in range(50) %}{% set ns.old = ns.old + [ns.s] %}{% set ns.s = ns.s + i | string %}{% endfor %}"
        "{% set a = ns.s + 'AAAA' %}{% set b = ns.s + 'BBBB' %}{% set c = ns.old[7] + 'C' %}"
        "{{ a[-6:] }} {{ b[-6:] }} {{ c[-4:] }} {{ ns.old | map('length') | join(',') }} {{ ns.old[3][-3:] }}";
    json_t *context = json_object();
    ebb_template_result r;

    (void)state;
    assert_int_equal(render(source, strlen(source), context, NULL, &r, NULL), EBB_OK);
    assert_non_null(strstr(r.text.data, "49AAAA 49BBBB 456C 300,301,302"));
    assert_string_equal(r.text.data + r.text.len - 4, " 012");
    ebb_template_result_fini(&r);
    json_decref(context);
}

/* -- Hostile input ----------------------------------------------------------------------------------------- */

static uint64_t rng_state;

static uint32_t rnd(uint32_t n)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((rng_state >> 33) % n);
}

static void mutate(ebb_buf *b)
{
    static const char *const parts[] = {
        "{{", "}}", "{%", "%}", "{%-", "-%}", "{#", "#}", "{% endfor %}", "{% endif %}",
        "{% for x in messages recursive %}", "|list", "[::-1]",
        "[-1]", "(", ")", "|tojson", "loop", "namespace(", " is defined", "messages", ".content", "'", "\"", "\\",
        "\xFF", "\xF0\x9F", "none",
        "**", "*", "[", "]", "{", "}", ":", ",", "-", "9999999999", " if ", " else ", "%s", "|map(", ".format(",
        "|sort", ".split(", "range(",
    };
    size_t at = b->len ? rnd((uint32_t)b->len) : 0, n = b->len - at;

    switch (rnd(6)) {
    case 0: ebb_buf_remove(b, at, n < 8 ? n : rnd(8)); break;
    case 1: ebb_buf_remove(b, at, rnd((uint32_t)n + 1)); break;
    case 2: if (n) b->data[at] = (char)rnd(256); break;
    case 3: if (n) b->data[at] ^= (char)(1u << rnd(8)); break;
    default: {
        const char *part = parts[rnd(sizeof parts / sizeof *parts)];
        ebb_buf_insert(b, at, part, strlen(part));
    } }
}

/* Every third time the context is not what templates expect. */
static json_t *odd_context(void)
{
    static const char *const messages[] = {
        "[{\"role\":\"user\",\"content\":\"hi \xF0\x9F\x98\x80\"},"
        "{\"role\":\"assistant\",\"content\":\"<think>a</think>b\"},{\"role\":\"user\",\"content\":\"x\"}]",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"image\"}]}]", "[]", "{}",
        "null", "\"text\"", "7", "[null,1,[],{}]", "[{\"role\":null,\"content\":null},{\"role\":{},\"content\":9}]",
        "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"f\","
        "\"arguments\":{\"a\":[1,2.5,null]}}}]},{\"role\":\"tool\",\"content\":\"r\"}]",
    };
    const char *chosen = messages[rnd(3) ? 0 : rnd(sizeof messages / sizeof *messages)];
    json_t *c = json_object();

    json_object_set_new(c, "messages", json_loads(chosen, JSON_DECODE_ANY, NULL));
    json_object_set_new(c, "bos_token", rnd(8) ? json_string("<s>") : json_integer(3));
    json_object_set_new(c, "eos_token", json_string("</s>"));
    if (rnd(2))
        json_object_set_new(c, "tools",
                            rnd(2) ? json_loads("[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
                            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}}}]", 0, NULL)
                            : json_null());
    return c;
}

/* A search costs what it looks at, up to what it finds, and not the rest of the text each time. */
static void test_many_hits_are_cheap(void **state)
{
    enum { LINES = 20000 };
    static const char source[] = "{{ s.split('\n')|length }} {{ s.count('\n') }} {{ s.replace('\n', ' ')|length }}";
    const ebb_template_opts o = { .max_steps = 2000000, .max_ms = 60000 };      /* steps tell, on any machine */
    ebb_buf lines = { 0 };
    json_t *context;
    ebb_template_result r;
    ebb_error err = { 0 };

    (void)state;
    for (int i = 0; i < LINES; i++)
        ebb_buf_adds(&lines, "some text\n");
    context = json_pack("{s:s}", "s", ebb_buf_text(&lines));
    if (render(source, sizeof source - 1, context, &o, &r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(ebb_buf_text(&r.text), "20001 20000 200000");
    ebb_template_result_fini(&r);
    json_decref(context);
    ebb_buf_fini(&lines);
}

static void test_time_is_bounded(void **state)
{
    static const char forever[] = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    const ebb_template_opts o = { .max_steps = UINT64_MAX, .max_ms = 20 };
    json_t *context = json_object();
    ebb_template_result r;
    ebb_error err = { 0 };

    (void)state;
    assert_int_equal(render(forever, sizeof forever - 1, context, &o, &r, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "too long"));
    ebb_template_result_fini(&r);
    json_decref(context);
}

/* What looks at much data takes steps for it, in whatever it is done: once is little, a thousand times are refused. */
static void test_work_on_long_data_counts(void **state)
{
#define LOOP "{% for i in range(N) %}{% if "
#define TEXT "{% set s = ('a' * 1000) * 200 %}{% set t = s[:-1] ~ 'b' %}"
#define UMLAUTS "{% set s = ('\xC3\xA9' * 1000) * 100 %}"
#define LIST "{% set a = [1] * 9000 %}{% set b = [1] * 9000 %}{% set c = [1] * 8999 + [2] %}"
    static const char *const sources[] = {
        TEXT LOOP "s.startswith((t, t))", TEXT LOOP "s.endswith(('b' ~ s[1:], t))", TEXT LOOP "s.removeprefix(t)",
        TEXT LOOP "s.isalpha()", TEXT LOOP "s.isalnum()", TEXT LOOP "s is lower", TEXT LOOP "s.islower()",
        TEXT LOOP "s.find(s[:-1])", TEXT LOOP "s.rfind(t[2:], 1)", TEXT LOOP "'b'.strip(t)",
        UMLAUTS LOOP "s.count('')", UMLAUTS LOOP "s.startswith('x', 99990)", UMLAUTS LOOP "s[99999]",
        UMLAUTS LOOP "s.find('x', 99990)", UMLAUTS LOOP "s|wordcount",
        LIST LOOP "a == b", LIST LOOP "[a].count(b)", LIST LOOP "c in [a]", LIST LOOP "a < c", LIST LOOP "[a, b]|sort",
        LIST LOOP "[a, b]|unique|list", LIST LOOP "a|unique|list", LIST LOOP "{'x': a} == {'x': b}",
        "{% set a = (1,) * 9000 %}" LOOP "{a: 1}", "{% set a = [(1, 2)] * 9000 %}" LOOP "dict(a)",
        "{% set a = [('', '')] * 9000 %}" LOOP "a|urlencode", "{% set s = 'a' * 9000 %}" LOOP "s|urlencode",
        "{% set s = 'a' * 9000 %}" LOOP "s|escape", "{% set s = '%' ~ '-' * 9000 ~ 'd' %}" LOOP "s % 1",
        "{% set s = '{0[' ~ 'a' * 9000 ~ ']}' %}" LOOP "s.format({})", LOOP "'a'|center(9000)",
        LIST LOOP "false %}{% endif %}{% for x in a if false %}{% endfor %}{% if 1",
    };
    static const struct { const char *times; ebb_status st; } runs[] = { { "1", EBB_OK }, { "1000", EBB_LIMIT } };
    const ebb_template_opts o = { .max_steps = 150000, .max_ms = 60000, .max_memory_bytes = 512u << 20 };
    json_t *context = json_object();

    (void)state;
    for (size_t i = 0; i < 2 * sizeof sources / sizeof *sources; i++) {
        const char *source = sources[i / 2], *n = strchr(source, 'N'), *end = " %}{% endif %}{% endfor %}";
        ebb_buf b = { 0 };
        ebb_template_result r;
        ebb_error err = { 0 };

        ebb_buf_addf(&b, "%.*s%s%s%s", (int)(n - source), source, runs[i % 2].times, n + 1, end);
        if (render(ebb_buf_text(&b), b.len, context, &o, &r, &err) != runs[i % 2].st)
            fail_msg("%s: %s", ebb_buf_text(&b), err.msg);
        if (err.msg[0] && !strstr(err.msg, "steps"))
            fail_msg("%s: %s", ebb_buf_text(&b), err.msg);
        ebb_template_result_fini(&r);
        ebb_buf_fini(&b);
    }
    json_decref(context);
}

static bool stop_at_third_look(void *n_looks)
{
    return ++*(int *)n_looks == 3;
}

/* It is asked in the midst of one long operation, too. */
static void test_stop_is_asked(void **state)
{
    static const char *const sources[] = {
        "{% for i in range(100000) %}{{ i }}{% endfor %}", "{% set s = ('A' * 1000) * 500 %}{{ s is upper }}",
        "{{ ([1] * 30000) == ([1] * 30000) }}",
    };
    json_t *context = json_object();

    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        int n_looks = 0;
        const ebb_template_opts o = { .max_ms = 60000, .stop = stop_at_third_look, .stop_arg = &n_looks };
        ebb_template_result r;
        ebb_error err = { 0 };

        assert_int_equal(render(sources[i], strlen(sources[i]), context, &o, &r, &err), EBB_CANCELED);
        assert_int_equal(n_looks, 3);
        assert_non_null(strstr(err.msg, "stopped"));
        ebb_template_result_fini(&r);
    }
    json_decref(context);
}

/* From one end of 64 bits to the other. */
static void test_wide_range(void **state)
{
    static const char wide[] =
        "{% for i in range(-9223372036854775807, 9223372036854775807, 4611686018427387904) %}{{ i }} {% endfor %}"
                               "{{ range(-9223372036854775807, 9223372036854775807, 4611686018427387904)[3] }}";
    json_t *context = json_object();
    ebb_template_result r;

    (void)state;
    assert_int_equal(render(wide, sizeof wide - 1, context, NULL, &r, NULL), EBB_OK);
    assert_string_equal(ebb_buf_text(&r.text),
                        "-9223372036854775807 -4611686018427387903 1 4611686018427387905 4611686018427387905");
    ebb_template_result_fini(&r);
    json_decref(context);
}

/* The lowest count there is means "all", as every negative one. */
static void test_replace_without_bound(void **state)
{
    static const char source[] = "{{ 'aba'|replace('a', 'c', -9223372036854775807 - 1) }} "
                                 "{{ 'ab'.replace('', '-', -9223372036854775807 - 1) }} "
                                 "{{ 'aba'.replace('a', 'c', 1) }} {{ 'ab'.replace('', '-', 2) }}";
    json_t *context = json_object();
    ebb_template_result r;

    (void)state;
    assert_int_equal(render(source, sizeof source - 1, context, NULL, &r, NULL), EBB_OK);
    assert_string_equal(ebb_buf_text(&r.text), "cbc -a-b- cba -a-b");
    ebb_template_result_fini(&r);
    json_decref(context);
}

static void survive(const char *source, size_t n, int rounds)
{
    const ebb_template_opts limits = { .max_steps = 20000, .max_memory_bytes = 4 << 20, .max_output_bytes = 1 << 18,
                                       .attribute = true };

    for (int i = 0; i < rounds; i++) {
        ebb_buf b = { 0 };
        ebb_template_result r;
        ebb_error err = { 0 };
        json_t *context = odd_context();
        ebb_buf_add(&b, source, n);
        for (uint32_t k = i ? 1 + rnd(4) : 0; k > 0; k--)
            mutate(&b);
        ebb_status st = render(ebb_buf_text(&b), b.len, context, &limits, &r, &err);
        if (st != EBB_OK)
            assert_true(err.msg[0] != '\0');
        assert_true(st == EBB_OK || st == EBB_FORMAT || st == EBB_LIMIT || (st == EBB_UNSUPPORTED && r.raised));
        ebb_template_result_fini(&r);
        json_decref(context);
        ebb_buf_fini(&b);
    }
}

static void test_mutated_own(void **state)
{
    json_t *all = own_cases(), *row;
    size_t i;

    (void)state;
    rng_state = 1;
    json_array_foreach(json_object_get(all, "cases"), i, row)
        survive(text_at(row, "template"), strlen(text_at(row, "template")), 12);
    for (i = 0; ebb_template_family_at(i); i++)
        survive(ebb_template_family_at(i)->source, strlen(ebb_template_family_at(i)->source), 20);
    json_decref(all);
}

static void test_mutated_real(void **state)
{
    DIR *d = opendir(ebb_test_shared_path("data/templates"));
    const struct dirent *e;

    (void)state;
    rng_state = 2;
    while (d && (e = readdir(d)) != NULL) {
        char rest[400];
        ebb_buf source = { 0 };
        if (!strstr(e->d_name, ".jinja"))
            continue;
        snprintf(rest, sizeof rest, "data/templates/%s", e->d_name);
        assert_int_equal(ebb_file_slurp(ebb_test_shared_path(rest), 1 << 20, &source, NULL), EBB_OK);
        survive(ebb_buf_text(&source), source.len, 25);
        ebb_buf_fini(&source);
    }
    if (d)
        closedir(d);
}

static void test_out_of_memory(void **state)
{
#if ALLOC_CAN_FAIL
    const char *source =
        "{% for m in messages %}{{ m.role ~ m.content | upper }}{% endfor %}{{ range(5000) | list | length }}";
    json_t *context = json_pack("{s:[{s:s,s:s}]}", "messages", "role", "user", "content", "hi");

    (void)state;
    for (int n = 1;; n++) {
        ebb_template_opts o = { .attribute = true };
        ebb_template_result r;
        ebb_error err = { 0 };
        long long before = alloc_begin();
        alloc_fail_nth(n);
        ebb_status st = render(source, strlen(source), context, &o, &r, &err);
        bool reached = alloc_fail_nth(0);
        if (reached)
            assert_int_equal(st, EBB_NOMEM);
        else
            assert_string_equal(ebb_buf_text(&r.text), "userHI5000");
        ebb_template_result_fini(&r);
        assert_int_equal(alloc_begin(), before);
        if (!reached)
            break;
    }
    json_decref(context);
#else
    (void)state;
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_jinja2), cmocka_unit_test(test_bombs), cmocka_unit_test(test_deep_sources),
        cmocka_unit_test(test_many_names), cmocka_unit_test(test_tree_is_bounded),
        cmocka_unit_test(test_errors_name_the_line), cmocka_unit_test(test_raise_is_verbatim),
        cmocka_unit_test(test_attribution), cmocka_unit_test(test_growing_text), cmocka_unit_test(test_time_is_bounded),
        cmocka_unit_test(test_many_hits_are_cheap), cmocka_unit_test(test_work_on_long_data_counts),
        cmocka_unit_test(test_stop_is_asked),
        cmocka_unit_test(test_wide_range), cmocka_unit_test(test_replace_without_bound),
        cmocka_unit_test(test_mutated_own),
        cmocka_unit_test(test_mutated_real), cmocka_unit_test(test_out_of_memory),
    };

    alloc_start();
    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
