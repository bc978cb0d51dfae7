/* Regular expressions (ECMA-262, what is regular of them) as the inside of a JSON string (schema_priv.h).
 *
 * A character stands for itself, or, where JSON wants that, for its escape; so what is read back matches. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "schema/schema_priv.h"

enum { MOST_RANGES = 512, MOST_DEPTH = 60, LAST_CHAR = 0x10FFFF, MOST_WRITTEN = 4 << 20 /* of any grammar */ };

typedef struct char_set {
    uint32_t range[MOST_RANGES][2];
    size_t   n;
} char_set;

typedef struct pattern {
    ebb_compiler *c;
    const char   *begin, *at;
    ebb_buf      *b;
    unsigned      depth;
} pattern;

static bool refuse_pattern(const pattern *p, const char *what)
{
    return ebb_schema_fail(p->c, EBB_UNSUPPORTED, "pattern, character %zu: %s", (size_t)(p->at - p->begin) + 1, what);
}

/* -- Sets of characters ------------------------------------------------------------------ */

static bool add_chars(const pattern *p, char_set *s, uint32_t first, uint32_t last)
{
    if (s->n == MOST_RANGES)
        return refuse_pattern(p, "too many characters in [ ]");
    s->range[s->n][0] = first;
    s->range[s->n++][1] = last;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Ascending and apart. */
static void sort_set(char_set *s)
{
    size_t kept = 0;

    qsort(s->range, s->n, sizeof *s->range, compare_ranges);
    for (size_t i = 0; i < s->n; i++) {
        if (kept > 0 && s->range[i][0] <= s->range[kept - 1][1] + 1) {
            if (s->range[i][1] > s->range[kept - 1][1])
                s->range[kept - 1][1] = s->range[i][1];
            continue;
        }
        memmove(s->range[kept++], s->range[i], sizeof *s->range);
    }
    s->n = kept;
}

static bool invert_set(const pattern *p, char_set *s)
{
    char_set out = { .n = 0 };
    uint32_t from = 0;
    bool ok = true;

    sort_set(s);
    for (size_t i = 0; ok && i < s->n; i++) {
        if (s->range[i][0] > from)
            ok = add_chars(p, &out, from, s->range[i][0] - 1);
        from = s->range[i][1] + 1;
    }
    ok = ok && (from > LAST_CHAR || add_chars(p, &out, from, LAST_CHAR));
    *s = out;
    return ok;
}

static bool has_char(const char_set *s, uint32_t cp)
{
    for (size_t i = 0; i < s->n; i++)
        if (cp >= s->range[i][0] && cp <= s->range[i][1])
            return true;
    return false;
}

/* \d, \w, \s and their opposites. */
static bool add_class(const pattern *p, char_set *s, char name)
{
    static const uint32_t digits[][2] = { { '0', '9' } };
    static const uint32_t words[][2] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
    static const uint32_t blanks[][2] = { { '\t', '\r' }, { ' ', ' ' }, { 0xA0, 0xA0 }, { 0x1680, 0x1680 },
                                          { 0x2000, 0x200A }, { 0x2028, 0x2029 }, { 0x202F, 0x202F },
                                          { 0x205F, 0x205F }, { 0x3000, 0x3000 }, { 0xFEFF, 0xFEFF } };
    char lower = (char)tolower((unsigned char)name);
    const uint32_t (*list)[2] = lower == 'd' ? digits : lower == 'w' ? words : blanks;
    size_t n = lower == 'd' ? 1 : lower == 'w' ? 4 : sizeof blanks / sizeof *blanks;
    char_set one = { .n = 0 };
    bool ok = true;

    for (size_t i = 0; ok && i < n; i++)
        ok = add_chars(p, &one, list[i][0], list[i][1]);
    if (ok && lower != name)
        ok = invert_set(p, &one);
    for (size_t i = 0; ok && i < one.n; i++)
        ok = add_chars(p, s, one.range[i][0], one.range[i][1]);
    return ok;
}

/* -- Sets as grammar ------------------------------------------------------------------------ */

/* Those that a JSON string holds as they are: above the blanks, but for " and \. */
static bool write_plain(ebb_buf *b, const char_set *s)
{
    static const uint32_t plain[][2] = { { 0x20, '"' - 1 }, { '"' + 1, '\\' - 1 }, { '\\' + 1, 0x7E },
                                         { 0x80, LAST_CHAR } };
    size_t before = b->len;

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
            uint32_t first = s->range[i][0] > plain[k][0] ? s->range[i][0] : plain[k][0];
            uint32_t last = s->range[i][1] < plain[k][1] ? s->range[i][1] : plain[k][1];

            if (first >= 0xD800 && first <= 0xDFFF)          /* halves of a pair: no characters */
                first = 0xE000;
            if (last >= 0xD800 && last <= 0xDFFF)
                last = 0xD7FF;
            if (first <= last) {
                ebb_buf_adds(b, b->len == before ? "[" : "");
                ebb_buf_addf(b, "\\U%08x-\\U%08x", first, last);
            }
        }
    if (b->len > before)
        ebb_buf_addc(b, ']');
    return b->len > before;
}

static bool write_set(const pattern *p, char_set *s)
{
    static const struct { char c; const char *grammar; } escapes[] = {
        { '"', "\"\\\\\\\"\"" }, { '\\', "\"\\\\\\\\\"" }, { '\n', "\"\\\\n\"" }, { '\t', "\"\\\\t\"" },
        { '\r', "\"\\\\r\"" }, { '\b', "\"\\\\b\"" }, { '\f', "\"\\\\f\"" },
    };
    bool has_way;

    sort_set(s);
    ebb_buf_addc(p->b, '(');
    has_way = write_plain(p->b, s);
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (has_char(s, (unsigned char)escapes[i].c)) {
            ebb_buf_addf(p->b, "%s%s", has_way ? " | " : "", escapes[i].grammar);
            has_way = true;
        }
    ebb_buf_addc(p->b, ')');
    return has_way || refuse_pattern(p, "no character that is followed here is one of these");
}

/* -- Reading ------------------------------------------------------------------------------- */

static bool read_hex(pattern *p, int n, uint32_t *cp)
{
    *cp = 0;
    for (int i = 0; i < n; i++, p->at++) {
        int digit = ebb_hex_digit(*p->at);

        if (digit < 0)
            return refuse_pattern(p, "the escape needs hexadecimal digits");
        *cp = *cp << 4 | (uint32_t)digit;
    }
    return true;
}

/* \u and four digits, which with the other half behind them are a pair; half a character alone is none. */
static bool read_unicode(pattern *p, uint32_t *cp)
{
    const char *behind;
    uint32_t low;

    if (!read_hex(p, 4, cp))
        return false;
    behind = p->at;
    if (*cp < 0xD800 || *cp > 0xDBFF || behind[0] != '\\' || behind[1] != 'u')
        return true;
    p->at += 2;
    if (!read_hex(p, 4, &low))
        return false;
    if (low >= 0xDC00 && low <= 0xDFFF)
        *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
    else
        p->at = behind;                          /* it is the next character */
    return true;
}

/* Behind a backslash: a character, or a class, which is added to *s (*is_class). */
static bool read_escape(pattern *p, char_set *s, uint32_t *cp, bool *is_class)
{
    static const char names[] = "tnrfv0", chars[] = "\t\n\r\f\v";
    char c = *p->at;
    const char *name = c ? strchr(names, c) : NULL;

    *is_class = c && strchr("dwsDWS", c);
    if (c)
        p->at++;
    if (*is_class)
        return add_class(p, s, c);
    if (c == 'x')
        return read_hex(p, 2, cp);
    if (c == 'u')
        return read_unicode(p, cp);
    if (name) {
        *cp = (unsigned char)chars[name - names];
        return true;
    }
    *cp = (unsigned char)c;
    return (c && !isalnum((unsigned char)c)) ||
           refuse_pattern(p, "this escape is not supported (\\b, \\p, a reference to a group ...)");
}

static bool read_one(pattern *p, char_set *s, uint32_t *cp, bool *is_class)
{
    *is_class = false;
    if (*p->at == '\\') {
        p->at++;
        return read_escape(p, s, cp, is_class);
    }
    p->at += ebb_utf8_decode(p->at, strnlen(p->at, 4), cp);
    return true;
}

static bool read_brackets(pattern *p, char_set *s)
{
    bool is_inverted = *++p->at == '^', is_class;

    p->at += is_inverted;
    while (*p->at && *p->at != ']') {
        uint32_t first = 0, last;

        if (!read_one(p, s, &first, &is_class))
            return false;
        if (is_class)
            continue;
        last = first;
        if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            if (!read_one(p, s, &last, &is_class))
                return false;
            if (is_class || last < first)
                return refuse_pattern(p, "no range of characters");
        }
        if (!add_chars(p, s, first, last))
            return false;
    }
    if (!*p->at++)
        return refuse_pattern(p, "[ is never closed");
    return !is_inverted || invert_set(p, s);
}

static bool read_choice(pattern *p, bool is_whole);

static bool read_group(pattern *p)
{
    bool ok;

    if (p->at[1] == '?' && p->at[2] != ':')
        return refuse_pattern(p, "looking ahead or back, and names of groups, are not supported");
    if (++p->depth > MOST_DEPTH)
        return refuse_pattern(p, "nested too deeply");
    p->at += p->at[1] == '?' ? 3 : 1;
    ebb_buf_addc(p->b, '(');
    ok = read_choice(p, false);
    ebb_buf_addc(p->b, ')');
    p->depth--;
    return ok && (*p->at++ == ')' || refuse_pattern(p, "( is never closed"));
}

static bool read_set(pattern *p)
{
    static const uint32_t ends[] = { '\n', '\r', 0x2028, 0x2029 };
    char_set s = { .n = 0 };
    bool is_class, ok = true;
    uint32_t cp = 0;

    if (*p->at == '[') {
        ok = read_brackets(p, &s);
    } else if (*p->at == '.') {
        p->at++;
        for (size_t i = 0; ok && i < 4; i++)
            ok = add_chars(p, &s, ends[i], ends[i]);
        ok = ok && invert_set(p, &s);
    } else {
        ok = read_one(p, &s, &cp, &is_class) && (is_class || add_chars(p, &s, cp, cp));
    }
    return ok && write_set(p, &s);
}

static bool is_braces(const char *s)
{
    s++;
    if (!isdigit((unsigned char)*s))
        return false;
    s += strspn(s, "0123456789,");
    return *s == '}';
}

/* How often; one that takes as little as it can is of the same language. */
static bool read_times(pattern *p)
{
    if (*p->at == '*' || *p->at == '+' || *p->at == '?') {
        ebb_buf_addc(p->b, *p->at++);
    } else if (*p->at == '{' && is_braces(p->at)) {
        size_t n = strcspn(p->at, "}") + 1;
        ebb_buf_add(p->b, p->at, n);
        p->at += n;
    } else {
        return true;
    }
    p->at += *p->at == '?';
    return !((*p->at && strchr("*+?", *p->at)) || (*p->at == '{' && is_braces(p->at))) ||
           refuse_pattern(p, "nothing that could repeat");
}

static bool read_sequence(pattern *p, bool is_whole)
{
    bool is_begin = is_whole && *p->at == '^', is_end = false;

    p->at += is_begin;
    if (is_whole && !is_begin)
        ebb_buf_adds(p->b, "char* ");
    ebb_buf_adds(p->b, "\"\"");
    while (*p->at && *p->at != '|' && *p->at != ')') {
        if (*p->at == '$' && is_whole && (p->at[1] == '\0' || p->at[1] == '|')) {
            p->at++;
            is_end = true;
            break;
        }
        if (strchr("^$*+?", *p->at))
            return refuse_pattern(p, strchr("^$", *p->at) ? "^ and $ are followed at the ends of the whole only"
                                                          : "nothing that could repeat");
        if (p->b->len > MOST_WRITTEN)
            return ebb_schema_fail(p->c, EBB_LIMIT, "a pattern of %zu bytes is too long", strlen(p->begin));
        ebb_buf_addc(p->b, ' ');
        if (!(*p->at == '(' ? read_group(p) : read_set(p)) || !read_times(p))
            return false;
    }
    if (is_whole && !is_end)
        ebb_buf_adds(p->b, " char*");
    return true;
}

static bool read_choice(pattern *p, bool is_whole)
{
    bool ok = read_sequence(p, is_whole);

    while (ok && *p->at == '|') {
        p->at++;
        ebb_buf_adds(p->b, " | ");
        ok = read_sequence(p, is_whole);
    }
    return ok;
}

bool ebb_write_pattern(ebb_compiler *c, const char *text, ebb_buf *b)
{
    enum { BYTES_OF_STEP = 4 };
    pattern p = { .c = c, .begin = text, .at = text, .b = b };

    return ebb_schema_spend(c, strlen(text) / BYTES_OF_STEP) &&
           read_choice(&p, true) && (!*p.at || refuse_pattern(&p, ") without ("));
}
