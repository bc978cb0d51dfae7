/* Finding text in text: the matches of a search by hand, and how much is read for them. */
#include "ebb_test.h"

#include <sys/mman.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/pattern.h"

static void matches(void **state)
{
    ebb_pattern p = { 0 };
    size_t len;

    (void)state;
    ebb_pattern_set(&p, "\u00E4b", 3);
    assert_int_equal(ebb_pattern_find(&p, "x \u00C4B \u00E4b", 9, 0, &len), 2);
    assert_int_equal(len, 3);
    assert_int_equal(ebb_pattern_find_last(&p, "x \u00C4B \u00E4b", 9, SIZE_MAX, &len), 6);
    ebb_pattern_set(&p, "\u00C4b", 3);
    assert_int_equal(ebb_pattern_find(&p, "x \u00E4b", 5, 0, &len), SIZE_MAX);
    ebb_pattern_set(&p, "", 0);
    assert_int_equal(ebb_pattern_find(&p, "x", 1, 0, &len), SIZE_MAX);
    assert_int_equal(ebb_pattern_find_last(&p, "x", 1, SIZE_MAX, &len), SIZE_MAX);
    ebb_pattern_fini(&p);
}

/* -- Against a search that tries each place ------------------------------------------------ */

typedef struct piece { const char *s; size_t n; } piece;

static uint32_t cp_at(piece t, size_t *at)
{
    uint32_t cp = EBB_UTF8_BAD;
    size_t used = ebb_utf8_decode(t.s + *at, t.n - *at, &cp);

    *at += used > 0 ? used : t.n - *at;
    return cp;
}

static uint32_t folded(uint32_t cp, bool is_exact)
{
    return is_exact ? cp : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

/* Bytes that the pattern covers at t.s + at; 0: none. */
static size_t naive_match(piece pattern, bool is_exact, piece t, size_t at)
{
    size_t begin = at;

    if (((unsigned char)t.s[at] & 0xC0) == 0x80)
        return 0;
    for (size_t k = 0; k < pattern.n;)
        if (at >= t.n || cp_at(pattern, &k) != folded(cp_at(t, &at), is_exact))
            return 0;
    return at - begin;
}

static void assert_same(const ebb_pattern *p, piece pattern, piece t, size_t from)
{
    size_t first = SIZE_MAX, last = SIZE_MAX, n_first = 0, n_last = 0, len = 0;

    for (size_t at = 0; at < t.n; at++) {
        size_t n = naive_match(pattern, p->is_exact, t, at);
        if (n > 0 && at >= from && first == SIZE_MAX) {
            first = at;
            n_first = n;
        }
        if (n > 0 && at < from) {
            last = at;
            n_last = n;
        }
    }
    assert_int_equal(ebb_pattern_find(p, t.s, t.n, from, &len), first);
    assert_int_equal(first == SIZE_MAX ? 0 : len, n_first);
    assert_int_equal(ebb_pattern_find_last(p, t.s, t.n, from, &len), last);
    assert_int_equal(last == SIZE_MAX ? 0 : len, n_last);
}

/* Few letters, so that much is alike: some of one length in both cases, some of two (U+212A is a K, U+2C65 has a
 * capital of two bytes), and parts of characters. */
static size_t random_text(char *out, size_t n_letters, bool is_valid)
{
    static const char *const letters[] = { "a", "b", "a", "b", "A", "\u00E4", "\u00C4", "k", "\u212A", "\u2C65",
                                           "\u023A", "\uFFFD", "\U0001F600", "\xA4", "\xC3", "\xF0\x9F",
                                           "\xE2\x84" };
    size_t n = 0, n_kinds = sizeof letters / sizeof *letters - (is_valid ? 4 : 0);
    size_t n_used = 1 + (size_t)rand() % n_kinds, first = (size_t)rand() % n_kinds;

    for (size_t i = 0; i < n_letters; i++) {
        const char *s = letters[(first + (size_t)rand() % n_used) % n_kinds];
        memcpy(out + n, s, strlen(s));
        n += strlen(s);
    }
    return n;
}

static void same_as_trying_each_place(void **state)
{
    static char text[40000];
    char pattern[200];
    ebb_pattern p = { 0 };

    (void)state;
    srand(7);
    for (unsigned i = 0; i < 60000; i += ebb_test_one_in(50)) {
        bool is_long = i % 200 == 0;             /* longer than what is read at once on the way back */
        size_t n = random_text(text, (size_t)rand() % (is_long ? 8000 : 40), i % 2),
            n_pattern = random_text(pattern, 1 + (size_t)rand() % (i % 3 ? 4 : 40), i % 2);
        if (i % 5 < 2 && n > 0) {                /* one that the text has, or a part of one */
            size_t at = (size_t)rand() % n;
            n_pattern = 1 + (size_t)rand() % (n - at < 60 ? n - at : 60);
            memcpy(pattern, text + at, n_pattern);
        }
        ebb_pattern_set(&p, pattern, n_pattern);
        assert_same(&p, (piece){ pattern, n_pattern }, (piece){ text, n }, (size_t)rand() % (n + 2));
    }
    ebb_pattern_fini(&p);
}

/* -- How much is read ------------------------------------------------------------------------ */

/* A search that tried each place would compare sixteen thousand million letters here. */
static void long_patterns_end(void **state)
{
    size_t n = (4u << 20) / ebb_test_one_in(50), len;
    char *text = malloc(n), pattern[EBB_PATTERN_MAX];
    ebb_pattern p = { 0 };

    (void)state;
    assert_non_null(text);
    memset(text, 'a', n);
    memset(pattern, 'a', sizeof pattern);
    pattern[sizeof pattern - 1] = 'b';
    ebb_pattern_set(&p, pattern, sizeof pattern);
    assert_int_equal(ebb_pattern_find(&p, text, n, 0, &len), SIZE_MAX);
    assert_int_equal(ebb_pattern_find_last(&p, text, n, SIZE_MAX, &len), SIZE_MAX);
    text[n - 1] = 'B';
    assert_int_equal(ebb_pattern_find(&p, text, n, 0, &len), n - sizeof pattern);
    assert_int_equal(ebb_pattern_find_last(&p, text, n, SIZE_MAX, &len), n - sizeof pattern);
    assert_int_equal(len, sizeof pattern);
    ebb_pattern_fini(&p);
    free(text);
}

static void the_last_is_found_from_the_end(void **state)
{
    size_t n = 1u << 20, len;
    char *text = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ebb_pattern p = { 0 };

    (void)state;
    assert_true(text != MAP_FAILED);
    memset(text, 'a', n);
    memcpy(text + n - 8000, "here", 4);
    assert_int_equal(mprotect(text, n - 65536, PROT_NONE), 0);       /* whoever reads there is killed */
    ebb_pattern_set(&p, "here", 4);
    assert_int_equal(ebb_pattern_reach(&p), 16);
    assert_int_equal(ebb_pattern_find_last(&p, text, n, SIZE_MAX, &len), n - 8000);
    ebb_pattern_fini(&p);
    munmap(text, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches), cmocka_unit_test(same_as_trying_each_place), cmocka_unit_test(long_patterns_end),
        cmocka_unit_test(the_last_is_found_from_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
