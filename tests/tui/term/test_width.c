#include "ebb_test.h"

#include <sys/mman.h>

#include "base/utf8.h"
#include "os/file.h"
#include "term/width.h"

static int width(const char *s)
{
    return ebb_width_text(s, strlen(s));
}

static void widths(void **state)
{
    (void)state;
    assert_int_equal(width("abc"), 3);
    assert_int_equal(width("\u4F60\u597D"), 4);
    assert_int_equal(width("e\u0301"), 1);
    assert_int_equal(width("\U0001F44D\U0001F3FD"), 2);                            /* skin tone */
    assert_int_equal(width("\U0001F468\u200D\U0001F469\u200D\U0001F467"), 2);      /* family */
    assert_int_equal(width("\U0001F1E9\U0001F1EA"), 2);                            /* flag */
    assert_int_equal(width("\u2764\uFE0F"), 1);
    assert_int_equal(width("\u1112\u1161\u11AB"), 2);                              /* Jamo */
    assert_int_equal(width("a\tb"), EBB_TAB_COLUMNS + 1);
    assert_int_equal(width("\u0915\u094D\u0937\u093F"), 3);                        /* ksi: two letters, a vowel sign */
}

static void parts_are_what_is_drawn(void **state)
{
    char out[64];
    size_t at = 0;
    int w;

    (void)state;
    assert_int_equal(ebb_cluster_part("\U0001F1E9\U0001F1EA", 8, &at, out, sizeof out, &w), 4);
    assert_string_equal(out, "D");
    ebb_cluster_part("\U0001F1E9\U0001F1EA", 8, &at, out, sizeof out, &w);
    assert_string_equal(out, "E");
    at = 0;
    ebb_cluster_part("\U0001F468\u200D\U0001F469", 11, &at, out, sizeof out, &w);
    assert_string_equal(out, "\U0001F468");
    assert_int_equal(w, 2);
    assert_int_equal(at, 11);
}

/* "÷ 0020 × 0308 ÷" to text and the offsets at which it breaks. */
static size_t parse(const char *line, char *text, size_t *breaks, size_t *n_breaks)
{
    size_t len = 0;

    *n_breaks = 0;
    for (const char *p = line; *p && *p != '#' && *p != '\n';) {
        if (memcmp(p, "\u00F7", 2) == 0) {
            breaks[(*n_breaks)++] = len;
            p += 2;
        } else if (memcmp(p, "\u00D7", 2) == 0) {
            p += 2;
        } else if (*p == ' ' || *p == '\t') {
            p++;
        } else {
            char *end;
            len += ebb_utf8_encode((uint32_t)strtoul(p, &end, 16), text + len);
            p = end;
        }
    }
    return len;
}

static bool breaks_right(const char *text, size_t len, const size_t *breaks, size_t n)
{
    size_t at = 0, i = 1;

    for (; at < len; i++) {
        at += ebb_cluster_next(text + at, len - at, NULL);
        if (i >= n || breaks[i] != at)
            return false;
    }
    if (i != n)
        return false;
    for (i = n - 1; i > 0; i--) {
        if (ebb_cluster_prev(text, len, at) != breaks[i - 1])
            return false;
        at = breaks[i - 1];
    }
    return true;
}

static void unicode_break_test(void **state)
{
    ebb_buf file = { 0 };
    ebb_error err;
    const char *path = ebb_test_shared_path("data/unicode/GraphemeBreakTest.txt");
    size_t n_cases = 0, n_wrong = 0, breaks[64], n;
    char text[256], *save = NULL;

    (void)state;
    assert_int_equal(ebb_file_slurp(path, 1 << 20, &file, &err), EBB_OK);
    for (char *line = strtok_r(file.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t len = line[0] == '#' ? 0 : parse(line, text, breaks, &n);
        if (len == 0)
            continue;
        n_cases++;
        n_wrong += !breaks_right(text, len, breaks, n);
    }
    ebb_buf_fini(&file);
    assert_int_equal(n_cases, 766);
    /* Left over: U+2701, which is no pictograph any more since tables younger than the library's. */
    assert_true(n_wrong <= 1);
}

/* Every emoji is one step, and its columns are those of what is drawn. */
static void every_emoji(void **state)
{
    ebb_buf file = { 0 };
    ebb_error err;
    char text[256], part[160], *save = NULL;
    size_t n_emoji = 0;

    (void)state;
    assert_int_equal(ebb_file_slurp(ebb_test_shared_path("data/unicode/emoji-test.txt"), 1 << 20, &file, &err), EBB_OK);
    for (char *line = strtok_r(file.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t len = 0, at = 0;
        int width, w, sum = 0;
        if (line[0] == '#' || !strchr(line, ';'))
            continue;
        for (char *p = line, *end; *p != ';'; p = end + strspn(end, " "))
            len += ebb_utf8_encode((uint32_t)strtoul(p, &end, 16), text + len);
        n_emoji++;
        assert_int_equal(ebb_cluster_next(text, len, &width), len);
        while (ebb_cluster_part(text, len, &at, part, sizeof part, &w) > 0)
            sum += w;
        assert_int_equal(sum, width);
        assert_in_range(width, 1, 2);
    }
    assert_true(n_emoji > 3000);
    ebb_buf_fini(&file);
}

static void prev_in_long_runs(void **state)
{
    char text[3000];
    size_t len = 0;

    (void)state;
    while (len + 3 < sizeof text)
        len += ebb_utf8_encode(0x4E00 + (uint32_t)len % 500, text + len);
    for (size_t at = len; at > 0; at -= 3)
        assert_int_equal(ebb_cluster_prev(text, len, at), at - 3);
}

/* Where the cluster in front of `at` begins for whoever measures all the clusters from a kilobyte before. */
static size_t measured_prev(const char *s, size_t n, size_t at)
{
    size_t start = at > 1024 ? at - 1024 : 0, last = 0;

    while (start > 0 && ((unsigned char)s[start] & 0xC0) == 0x80)
        start--;
    for (; start < at; start += ebb_cluster_next(s + start, n - start, NULL))
        last = start;
    return last;
}

/* Letters whose clusters depend on one in front of them: flags, emoji that are joined, consonants behind a linker. */
static size_t random_clusters(char *out, size_t cap)
{
    static const char *const letters[] = {
        "a", "b", " ", "\r", "\n", "\t", "\u0441", "\u6F22", "\u0301", "\u0308", "\u200D", "\uFE0F", "\U0001F468",
        "\U0001F3FD", "\u00A9", "\U0001F1E9", "\U0001F1EA", "\u0915", "\u0937", "\u094D", "\u093F", "\u0941", "\u09BC",
        "\u0995", "\u09CD", "\u1000", "\u1039", "\u1B13", "\u1B44", "\u0600", "\u1112", "\u1161", "\u11AB", "\uAC00",
        "\u0E33", "\uFFFD", "\u0D4E",
    };
    size_t n_kinds = sizeof letters / sizeof *letters, n_used = 1 + (size_t)rand() % 6, n = 0;
    const char *used[6];

    for (size_t i = 0; i < n_used; i++)
        used[i] = letters[(size_t)rand() % n_kinds];
    for (size_t left = (size_t)rand() % 400; left > 0; left--) {
        const char *s = rand() % 40 ? used[(size_t)rand() % n_used] : letters[(size_t)rand() % n_kinds];
        if (n + strlen(s) > cap)
            break;
        memcpy(out + n, s, strlen(s));
        n += strlen(s);
    }
    return n;
}

static void prev_is_what_is_measured(void **state)
{
    char text[2000];

    (void)state;
    srand(5);
    for (unsigned i = 0; i < 20000; i += ebb_test_one_in(100)) {
        size_t n = random_clusters(text, sizeof text);
        for (int k = 0; k < 20 && n > 0; k++) {
            size_t at = 1 + (size_t)rand() % n;
            assert_int_equal(ebb_cluster_prev(text, n, at), measured_prev(text, n, at));
        }
    }
}

/* Behind memory that kills whoever reads it. */
static void prev_reads_what_is_near(void **state)
{
    static const char *const words[] = { "\u0441\u043B\u043E\u0432\u043E", "\u6F22\u5B57", "e\u0301a\u0308",
                                         "\u0915\u0941\u0916\u0941", "\U0001F600\U0001F600", "word" };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n;
    char *text = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(text != MAP_FAILED);
    assert_int_equal(mprotect(text, page, PROT_NONE), 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (n = 0; n < 100;)
            n = (size_t)(stpcpy(text + page + n, words[i]) - text) - page;
        for (size_t at = n, before; at > 32; at = before) {
            before = ebb_cluster_prev(text, page + n, page + at) - page;
            assert_in_range(at - before, 1, 6);
        }
    }
    munmap(text, 2 * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths),
        cmocka_unit_test(parts_are_what_is_drawn),
        cmocka_unit_test(unicode_break_test),
        cmocka_unit_test(every_emoji),
        cmocka_unit_test(prev_in_long_runs),
        cmocka_unit_test(prev_is_what_is_measured),
        cmocka_unit_test(prev_reads_what_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
