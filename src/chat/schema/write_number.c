/* Numbers between bounds, digit by digit (schema_priv.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema_priv.h"

enum { MOST_DIGITS = 15 };               /* that a double holds exactly */
#define MOST_WHOLE INT64_C(999999999999999)

/* -- Whole numbers ------------------------------------------------------------------- */

static void add_digit(ebb_buf *b, char first, char last)
{
    if (first == last)
        ebb_buf_addf(b, "\"%c\"", first);
    else
        ebb_buf_addf(b, "[%c-%c]", first, last);
}

static void add_any_digits(ebb_buf *b, size_t n)
{
    if (n > 0)
        ebb_buf_addf(b, " [0-9]{%zu}", n);
}

/* Numbers of n digits from lo to hi; is_low, is_high: the digits before are those of the bound, so
 * that the bound still limits the next digit. */
static void add_digits(ebb_buf *b, const char *lo, const char *hi, size_t n, bool is_low, bool is_high)
{
    char first = is_low ? lo[0] : '0', last = is_high ? hi[0] : '9';
    bool cuts_low, cuts_high;

    if (n == 0)
        return;
    if (n == 1 || (!is_low && !is_high)) {
        add_digit(b, first, last);
        add_any_digits(b, n - 1);
        return;
    }
    if (first == last) {
        add_digit(b, first, last);
        ebb_buf_addc(b, ' ');
        add_digits(b, lo + 1, hi + 1, n - 1, is_low, is_high);
        return;
    }
    cuts_low = is_low && strspn(lo + 1, "0") < n - 1;
    cuts_high = is_high && strspn(hi + 1, "9") < n - 1;
    ebb_buf_addc(b, '(');
    if (cuts_low) {
        ebb_buf_addf(b, "\"%c\" ", first++);
        add_digits(b, lo + 1, hi + 1, n - 1, true, false);
    }
    last = (char)(last - cuts_high);
    if (first <= last) {
        ebb_buf_adds(b, cuts_low ? " | " : "");
        add_digit(b, first, last);
        add_any_digits(b, n - 1);
    }
    if (cuts_high) {
        ebb_buf_addf(b, "%s\"%c\" ", cuts_low || first <= last ? " | " : "", hi[0]);
        add_digits(b, lo + 1, hi + 1, n - 1, false, true);
    }
    ebb_buf_addc(b, ')');
}

/* Whole numbers from lo to hi, both not negative, without a sign: one length after the other. */
static void add_whole(ebb_buf *b, int64_t lo, int64_t hi)
{
    bool is_first = true;

    ebb_buf_addc(b, '(');
    for (int64_t from = lo; from <= hi;) {
        char first[24], last[24];
        int n = snprintf(first, sizeof first, "%" PRId64, from);
        int64_t end = 9;

        for (int i = 1; i < n; i++)
            end = 10 * end + 9;
        if (end > hi)
            end = hi;
        snprintf(last, sizeof last, "%" PRId64, end);
        ebb_buf_adds(b, is_first ? "" : " | ");
        add_digits(b, first, last, (size_t)n, true, true);
        is_first = false;
        from = end + 1;
    }
    ebb_buf_addc(b, ')');
}

static int64_t whole_bound(const ebb_bound *x, bool is_lower)
{
    double v = is_lower ? ceil(x->value) : floor(x->value);

    if (x->is_open && v == x->value)
        v += is_lower ? 1 : -1;
    return v > MOST_WHOLE ? MOST_WHOLE + 1 : v < -MOST_WHOLE ? -MOST_WHOLE - 1 : (int64_t)v;
}

/* Bounds beyond what is written leave no number; that is not because none is valid. */
static void write_integer(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    int64_t lo = s->min.is_set ? whole_bound(&s->min, true) : -MOST_WHOLE;
    int64_t hi = s->max.is_set ? whole_bound(&s->max, false) : MOST_WHOLE;

    if ((lo > MOST_WHOLE && !(s->max.is_set && s->max.value < s->min.value)) ||
        (hi < -MOST_WHOLE && !(s->min.is_set && s->min.value > s->max.value))) {
        ebb_schema_fail(c, EBB_LIMIT, "whole numbers of more than %d digits are not written", MOST_DIGITS);
        return;
    }
    lo = lo < -MOST_WHOLE ? -MOST_WHOLE : lo;
    hi = hi > MOST_WHOLE ? MOST_WHOLE : hi;
    if (lo > hi)
        return;
    if (lo < 0) {
        ebb_write_way(b);
        ebb_buf_adds(b, "\"-\" ");
        add_whole(b, hi < 0 ? -hi : 1, -lo);
    }
    if (hi >= 0) {
        ebb_write_way(b);
        add_whole(b, lo > 0 ? lo : 0, hi);
    }
}

/* -- Decimals ---------------------------------------------------------------------------- */

/* A bound of a magnitude: whole.fraction, without zeros at the end of the fraction. */
typedef struct decimal {
    int64_t whole;
    char    fraction[24];
    bool    is_open;
} decimal;

/* The shortest decimal that reads as this double.  false: it has more than MOST_DIGITS digits. */
static bool read_decimal(double v, bool is_open, decimal *out)
{
    char text[64], *point, *end;
    int n_digits = 0;

    if (!(v >= 0 && v < (double)MOST_WHOLE))
        return false;
    do
        snprintf(text, sizeof text, "%.*f", n_digits, v);
    while (strtod(text, NULL) != v && ++n_digits <= MOST_DIGITS);
    if (n_digits > MOST_DIGITS)
        return false;
    *out = (decimal){ .whole = strtoll(text, &point, 10), .is_open = is_open };
    if (*point == '.')
        memcpy(out->fraction, point + 1, strlen(point + 1) + 1);
    for (end = out->fraction + strlen(out->fraction); end > out->fraction && end[-1] == '0';)
        *--end = '\0';
    return true;
}

typedef struct fraction_range {
    const decimal *lo, *hi;      /* NULL: no bound */
    int            n_most;       /* digits */
} fraction_range;

static int digit_at(const decimal *d, int i)
{
    return i < (int)strlen(d->fraction) ? d->fraction[i] - '0' : 0;
}

/* May a fraction end after i digits?  is_low, is_high: those digits are the bound's own. */
static bool may_stop(const fraction_range *r, int i, bool is_low, bool is_high)
{
    return !(is_low && ((int)strlen(r->lo->fraction) > i || r->lo->is_open)) &&
           !(is_high && (int)strlen(r->hi->fraction) <= i && r->hi->is_open);
}

/* The digits that may follow i digits of a fraction, at least one if i is 0; false: neither a digit
 * nor the end may follow. */
static bool add_fraction(ebb_buf *b, const fraction_range *r, int i, bool is_low, bool is_high)
{
    int first = is_low ? digit_at(r->lo, i) : 0, last = is_high ? digit_at(r->hi, i) : 9;
    bool stops = i > 0 && may_stop(r, i, is_low, is_high), has_way = false;
    size_t before = b->len;

    if (!is_low && !is_high) {
        if (r->n_most > i)
            ebb_buf_addf(b, "[0-9]{%d,%d}", i == 0, r->n_most - i);
        return r->n_most > i || stops;
    }
    ebb_buf_addc(b, '(');
    if (stops) {
        ebb_buf_adds(b, "\"\"");
        has_way = true;
    }
    for (int d = first; i < r->n_most && d <= last;) {
        bool low = is_low && d == first, high = is_high && d == last;
        int until = low || high ? d : is_high ? last - 1 : last;
        size_t at = b->len;

        ebb_buf_adds(b, has_way ? " | " : "");
        add_digit(b, (char)('0' + d), (char)('0' + until));
        ebb_buf_addc(b, ' ');
        if (add_fraction(b, r, i + 1, low, high))
            has_way = true;
        else
            ebb_buf_remove(b, at, b->len - at);
        d = until + 1;
    }
    ebb_buf_addc(b, ')');
    if (!has_way)
        ebb_buf_remove(b, before, b->len - before);
    return has_way;
}

/* One whole part with the fractions that the bounds allow behind it. */
static void add_edge(ebb_buf *b, size_t begin, int64_t whole, const fraction_range *r)
{
    bool is_low = r->lo, is_high = r->hi, stops = may_stop(r, 0, is_low, is_high);
    size_t at = b->len;

    ebb_buf_addf(b, "%s\"%" PRId64 "\" ", b->len > begin ? " | " : "", whole);
    ebb_buf_adds(b, stops ? "(\".\" " : "\".\" ");
    if (add_fraction(b, r, 0, is_low, is_high))
        ebb_buf_adds(b, stops ? ")?" : "");
    else {
        ebb_buf_remove(b, at, b->len - at);
        if (stops)
            ebb_buf_addf(b, "%s\"%" PRId64 "\"", b->len > begin ? " | " : "", whole);
    }
}

static int count_digits(int64_t x)
{
    return snprintf(NULL, 0, "%" PRId64, x);
}

/* Magnitudes from lo to hi (NULL: no bound), in brackets; false: there is none. */
static bool add_magnitudes(ebb_buf *b, const decimal *lo, const decimal *hi)
{
    int64_t whole_lo = lo->whole, whole_hi = hi ? hi->whole : MOST_WHOLE + 1;
    int room = MOST_DIGITS - count_digits(hi && hi->whole > whole_lo ? hi->whole : whole_lo);
    int longest = (int)strlen(lo->fraction), n = hi ? (int)strlen(hi->fraction) : 0;
    fraction_range r;
    size_t start = b->len, begin;

    longest = (longest > n ? longest : n) + 1;   /* what is beyond a bound differs behind its digits at the latest */
    r = (fraction_range){ .n_most = room > longest ? room : longest };
    ebb_buf_addc(b, '(');
    begin = b->len;
    if (whole_lo == whole_hi) {
        r.lo = lo;
        r.hi = hi;
        add_edge(b, begin, whole_lo, &r);
    } else if (whole_lo < whole_hi) {
        r.lo = lo;
        add_edge(b, begin, whole_lo, &r);
        if (whole_lo + 1 < whole_hi) {
            ebb_buf_adds(b, b->len > begin ? " | " : "");
            add_whole(b, whole_lo + 1, whole_hi - 1);
            if (r.n_most > 0)
                ebb_buf_addf(b, " (\".\" [0-9]{1,%d})?", hi ? r.n_most : 6);
        }
        r.lo = NULL;
        r.hi = hi;
        if (hi)
            add_edge(b, begin, whole_hi, &r);
    }
    if (b->len == begin) {
        ebb_buf_remove(b, start, b->len - start);
        return false;
    }
    ebb_buf_addc(b, ')');
    return true;
}

/* A sign, if there are numbers of it. */
static void write_magnitudes(ebb_buf *b, const char *sign, const decimal *lo, const decimal *hi)
{
    ebb_buf way = { 0 };

    if (add_magnitudes(&way, lo, hi)) {
        ebb_write_way(b);
        ebb_buf_adds(b, sign);
        ebb_buf_add(b, way.data, way.len);
    }
    b->failed = b->failed || way.failed;
    ebb_buf_fini(&way);
}

/* A bound beyond the largest number that the grammar allows is no bound. */
static void write_decimal(ebb_compiler *c, const ebb_shape *given, ebb_buf *b)
{
    const decimal zero = { 0 };
    ebb_shape copy = *given, *s = &copy;
    decimal min = { 0 }, max = { 0 };

    s->min.is_set = s->min.is_set && s->min.value > -(double)MOST_WHOLE;
    s->max.is_set = s->max.is_set && s->max.value < (double)MOST_WHOLE;
    if ((s->min.is_set && !read_decimal(fabs(s->min.value), s->min.is_open, &min)) ||
        (s->max.is_set && !read_decimal(fabs(s->max.value), s->max.is_open, &max))) {
        ebb_schema_fail(c, EBB_LIMIT, "a bound of a number has more than %d digits", MOST_DIGITS);
        return;
    }
    if (!s->min.is_set || s->min.value < 0) {
        if (s->max.is_set && s->max.value <= 0)
            write_magnitudes(b, "\"-\" ", &max, s->min.is_set ? &min : NULL);
        else
            write_magnitudes(b, "\"-\" ", &zero, s->min.is_set ? &min : NULL);
    }
    if (!s->max.is_set || s->max.value >= 0) {
        if (s->min.is_set && s->min.value >= 0)
            write_magnitudes(b, "", &min, s->max.is_set ? &max : NULL);
        else
            write_magnitudes(b, "", &zero, s->max.is_set ? &max : NULL);
    }
}

void ebb_write_number(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    bool is_free = !s->min.is_set && !s->max.is_set;

    if (is_free) {
        ebb_write_way(b);
        ebb_buf_adds(b, s->types & EBB_TYPE_FRACTION ? "number" : "integer");
    } else if (s->types & EBB_TYPE_FRACTION) {
        write_decimal(c, s, b);
    } else {
        write_integer(c, s, b);
    }
}
