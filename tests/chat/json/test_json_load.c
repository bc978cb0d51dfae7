/* What JSON takes in memory is known before it is read. */
#include "ebb_test.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json_load.h"

static size_t held, peak;

static void *count_malloc(size_t n)
{
    void *p = malloc(n);

    held += p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    peak = held > peak ? held : peak;
    return p;
}

static void count_free(void *p)
{
    held -= p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    free(p);
}

static uint32_t noise_state;

static uint32_t noise(uint32_t n)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return (noise_state >> 8) % n;
}

static void add_value(ebb_buf *b, int depth)
{
    uint32_t kind = noise(depth > 0 ? 7 : 5), n = noise(12);

    switch (kind) {
    case 0: ebb_buf_adds(b, "null"); break;
    case 1: ebb_buf_addf(b, "%u", noise(100000)); break;
    case 2: ebb_buf_addf(b, "-%u.5e3", noise(100)); break;
    case 3: ebb_buf_addf(b, "\"%.*s\"", (int)noise(20), "a\\\"b[{,:\\\\ xyzxyzxyz"); break;
    case 4: ebb_buf_adds(b, noise(2) ? "{}" : "[]"); break;
    default:
        ebb_buf_addc(b, kind == 5 ? '{' : '[');
        for (uint32_t i = 0; i < n; i++) {
            ebb_buf_adds(b, i ? "," : "");
            if (kind == 5)
                ebb_buf_addf(b, "\"k%u\":", i);
            add_value(b, depth - 1);
        }
        ebb_buf_addc(b, kind == 5 ? '}' : ']');
    }
}

static void check_counted(const char *s, size_t n)
{
    json_t *o;
    size_t before = held;

    peak = held;
    o = json_loadb(s, n, JSON_DECODE_ANY, NULL);
    if (peak - before > ebb_json_memory(s, n) + 4096)
        fail_msg("%zu bytes took %zu, not %zu: %.200s", n, peak - before, ebb_json_memory(s, n), s);
    json_decref(o);
    assert_int_equal(held, before);
}

static void add_many(ebb_buf *b, const char *one, size_t n)
{
    ebb_buf_clear(b);
    ebb_buf_addc(b, '[');
    for (size_t i = 0; i < n; i++) {
        ebb_buf_adds(b, i ? "," : "");
        ebb_buf_adds(b, one);
    }
    ebb_buf_addc(b, ']');
}

static void test_no_more_than_said(void **state)
{
    static const char *const ones[] = { "{}", "[]", "1", "1.5", "\"\"", "{\"\":{}}", "[[]]", "{\"a\":1}", "null" };
    ebb_buf b = { 0 };

    (void)state;
    json_set_alloc_funcs(count_malloc, count_free);
    json_object_seed(7);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        add_many(&b, ones[i], 20000);
        check_counted(b.data, b.len);
    }
    for (uint32_t seed = 1; seed < 2000; seed++) {
        noise_state = seed;
        ebb_buf_clear(&b);
        add_value(&b, 4);
        check_counted(b.data, b.len);
    }
    ebb_buf_fini(&b);
    json_set_alloc_funcs(malloc, free);
}

/* A megabyte that would take a hundred is refused unread; a text of that size is not. */
static void test_refused(void **state)
{
    ebb_buf b = { 0 };
    json_error_t where;
    json_t *o;

    (void)state;
    json_set_alloc_funcs(count_malloc, count_free);
    peak = held;
    add_many(&b, "{}", 700000);
    assert_null(ebb_json_load(b.data, b.len, 0, &where));
    assert_non_null(strstr(where.text, "so many values that they would take more than 80 MiB"));
    assert_int_equal(peak, held);
    add_many(&b, "\"some words of a text, as long as those of a letter are\"", 40000);
    o = ebb_json_load(b.data, b.len, 0, NULL);
    assert_int_equal(json_array_size(o), 40000);
    json_decref(o);
    json_set_alloc_funcs(malloc, free);
    ebb_buf_fini(&b);
}

static void test_error_names_no_flag(void **state)
{
    static const char text[] = "{\"a\": \"\\u0000\"}";
    json_error_t where;

    (void)state;
    assert_null(ebb_json_load(text, sizeof text - 1, 0, &where));
    assert_non_null(strstr(where.text, "\\u0000 is not allowed"));
    assert_null(strstr(where.text, "JSON_"));
}

/* The first value of a text ends with its last bracket, whatever its strings hold. */
static void test_extent(void **state)
{
    static const struct { const char *text; size_t n; } values[] = {
        { "{}", 2 }, { "[1],[2]", 3 }, { " {\"a\":[{}]} ,", 11 }, { "{\"}\\\"}\":1}x", 10 }, { "\"{\" [] []", 6 },
        { "]", 1 }, { "", 0 }, { "{", 1 }, { "\"a", 2 }, { "\"a\\", 3 }, { "1, 2", 4 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(ebb_json_extent(values[i].text, strlen(values[i].text)), values[i].n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_more_than_said),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_error_names_no_flag),
        cmocka_unit_test(test_extent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
