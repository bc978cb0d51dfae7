/* Finding thoughts (thought.h). */
#include "tree/thought.h"

#include <ctype.h>
#include <string.h>

#define ROW(begin, end, before, behind, kind) { begin, end, before, behind, kind },
static const ebb_thought_marks marks[] = { EBB_THOUGHT_MARKS(ROW) };

const ebb_thought_marks *ebb_thought_marks_at(size_t i)
{
    return i < sizeof marks / sizeof *marks ? &marks[i] : NULL;
}

static bool text_begins_with(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);

    return n >= len && memcmp(s, what, len) == 0;
}

static size_t skip_blanks(const char *s, size_t n, size_t at)
{
    while (at < n && (s[at] == ' ' || s[at] == '\n' || s[at] == '\r' || s[at] == '\t'))
        at++;
    return at;
}

/* -- Channels: an answer of gpt-oss is a row of messages ------------------------------------------ */

typedef struct channel_message {
    size_t text, end;            /* bytes of what it says */
    bool   is_final, has_ended;
} channel_message;

/* The message that begins at `at`.  false: none does, or its head is not complete. */
static bool find_message(const char *s, size_t n, size_t at, channel_message *m)
{
    static const char start[] = EBB_CHANNEL_START "assistant";
    const char *end;
    size_t name;

    if (text_begins_with(s + at, n - at, start))
        at += sizeof start - 1;
    if (!text_begins_with(s + at, n - at, EBB_CHANNEL_NAME))
        return false;
    at = name = at + strlen(EBB_CHANNEL_NAME);
    while (at < n && (isalnum((unsigned char)s[at]) || (s[at] && strchr(" ._=-", s[at]))))       /* no other mark */
        at++;
    if (at == name || !text_begins_with(s + at, n - at, EBB_CHANNEL_TEXT))
        return false;
    m->text = at + strlen(EBB_CHANNEL_TEXT);
    m->is_final = text_begins_with(s + name, n - name, "final");
    end = memmem(s + m->text, n - m->text, EBB_CHANNEL_END, strlen(EBB_CHANNEL_END));
    m->has_ended = end && !m->is_final;
    m->end = m->has_ended ? (size_t)(end - s) : n;
    return true;
}

/* What is said in the last channel is the answer, all before it a thought. */
static bool find_in_channels(const char *s, size_t n, size_t from, ebb_thought *t)
{
    channel_message m = { 0 };
    size_t at = from;
    bool has_thought = false;

    if (!find_message(s, n, from, &m))
        return false;
    *t = (ebb_thought){ .in_channels = true, .body = n };
    do {
        if (m.is_final) {
            t->body = skip_blanks(s, n, m.text);
            break;
        }
        if (!has_thought)
            t->start = skip_blanks(s, m.end, m.text);
        has_thought = true;
        t->end = m.end;
        t->is_open = !m.has_ended;
        at = m.end + strlen(EBB_CHANNEL_END);
    } while (m.has_ended && find_message(s, n, at, &m));
    if (has_thought && !t->is_open && !m.is_final && at < n && !text_begins_with(s + at, n - at, EBB_CHANNEL_START))
        t->body = skip_blanks(s, n, at);         /* what has no head */
    return true;
}

size_t ebb_thought_texts(const char *s, size_t n, ebb_text_range *texts, size_t cap)
{
    channel_message m = { .has_ended = true };
    size_t k = 0, at = skip_blanks(s, n, 0);

    while (k < cap && m.has_ended && find_message(s, n, at, &m)) {
        texts[k++] = (ebb_text_range){ m.text, m.end };
        at = m.has_ended ? m.end + strlen(EBB_CHANNEL_END) : n;
    }
    if (k > 0 && k < cap && at < n)
        texts[k++] = (ebb_text_range){ at, n };
    else if (k == cap && at < n)
        texts[k - 1].end = n;
    return k;
}

/* -- Marks in a text ------------------------------------------------------------------------------ */

#define LINE_BLANKS " \t"

/* What ends a thought that is known to have begun is its first mark that is not quoted; where that is not known, one
 * that stands on its own. */
typedef struct mark_search {
    const char *mark, *pair;     /* where `pair` stands before the mark, both are of an example: */
    bool        is_paired;       /* anywhere, not in code alone */
    bool        is_known, is_whole;
    size_t      n_open;          /* pairs that were begun */
    size_t      n_named;         /* ... by a word in quotation marks: what stands on its own ends none of them */
} mark_search;

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* A quotation mark that opens: U+201C and its kin. */
static bool is_open_quote(const char *s, size_t at)
{
    return at >= 3 && memcmp(s + at - 3, "\xE2\x80", 2) == 0 &&
           is_one_of(s[at - 1], "\x98\x9A\x9B\x9C\x9E\x9F");
}

/* Does the quotation mark that ends at s[at), or a pair of them, open?  Behind a word, or what ends a sentence, it
 * closes. */
static bool is_opening(const char *s, size_t at)
{
    at -= at > 1 && s[at - 2] == s[at - 1] ? 2 : 1;
    return at == 0 || is_one_of(s[at - 1], LINE_BLANKS "\r\n([{<=:,;+&");
}

/* Quotation marks, or brackets, around s[at..next), or one before it where nothing is behind it yet.  One that closes,
 * as at the end of a draft, quotes nothing. */
static bool is_quoted(const char *s, size_t n, size_t at, size_t next)
{
    static const char opens[] = "\"'`*_([{<", closes[] = "\"'`*_)]}>";
    const char *open = at > 0 && s[at - 1] ? strchr(opens, s[at - 1]) : NULL;
    char close = open ? closes[open - opens] : 0;

    if (is_open_quote(s, at))
        return next == n || (text_begins_with(s + next, n - next, "\xE2\x80") && n - next > 2 &&
                             is_one_of(s[next + 2], "\x98\x99\x9A\x9B\x9C\x9D\x9E\x9F"));
    return close && (next == n || s[next] == close) && (close != *open || is_opening(s, at));
}

/* A line of the text: where it begins and ends, and where its first letter is. */
typedef struct text_line {
    size_t begin, end, letter;
} text_line;

static text_line line_at(const char *s, size_t n, size_t at)
{
    const char *newline = memchr(s + at, '\n', n - at);
    text_line l = { .begin = at, .end = newline ? (size_t)(newline - s) : n, .letter = at };

    while (l.letter < l.end && is_one_of(s[l.letter], LINE_BLANKS))
        l.letter++;
    return l;
}

/* Whether the mark s[at..next) of a line is one, and not what a sentence speaks of: a thought ends with a line of its
 * own or directly behind its last word. */
static bool is_own_mark(const char *s, const text_line *l, size_t at, size_t next)
{
    size_t rest = next;
    bool ends_line;

    while (rest < l->end && is_one_of(s[rest], LINE_BLANKS "\r"))
        rest++;
    ends_line = rest == l->end;
    if (at == l->letter)
        return ends_line || rest == next;
    if (is_one_of(s[at - 1], LINE_BLANKS "\"'`([{<*_~|") || is_open_quote(s, at))
        return false;
    return ends_line || (rest == next ? !is_one_of(s[next], "\"'`)]}*_~|.,;:!?") : is_one_of(s[at - 1], ".!?"));
}

static size_t behind_run(const char *s, size_t end, size_t at)
{
    size_t next = at;

    while (next < end && s[next] == s[at])
        next++;
    return next;
}

enum { SPAN_MARKS = 32 };        /* a run of more begins no code, as on the screen */

/* For each length up to SPAN_MARKS where the last run of that many "`" begins in s[at..end); 0: there is none.  So a
 * run that nothing closes is not searched for to the line's end. */
static void find_last_runs(const char *s, size_t end, size_t at, size_t *last)
{
    memset(last, 0, (SPAN_MARKS + 1) * sizeof *last);
    for (size_t next; at < end; at = next) {
        next = s[at] == '`' ? behind_run(s, end, at) : at + 1;
        if (s[at] == '`' && next - at <= SPAN_MARKS)
            last[next - at] = at;
    }
}

/* Behind the span of code that begins at `at`, a "`"; where none does, behind what stands there.  Code touches both of
 * its ends: a "`" too many in a thought would else pair with the first of the answer. */
static size_t behind_span(const char *s, size_t end, size_t at, const size_t *last)
{
    size_t text = behind_run(s, end, at), n = text - at, next;

    if (n > SPAN_MARKS || last[n] <= at || is_one_of(s[text], LINE_BLANKS "\r"))
        return text;
    for (size_t i = text; i < end; i = next) {
        next = s[i] == '`' ? behind_run(s, end, i) : i + 1;
        if (s[i] == '`' && next - i == n)
            return is_one_of(s[i - 1], LINE_BLANKS) ? text : next;
    }
    return text;
}

/* The first mark in the line's rest from `i` on that is one and no code; its end: there is none. */
static size_t find_in_line(const char *s, size_t n, const text_line *l, size_t i, bool is_paired, mark_search *m)
{
    size_t len = strlen(m->mark), last[SPAN_MARKS + 1];
    bool has_last = false;

    while (i < l->end) {
        if (s[i] == '`') {
            if (!has_last)
                find_last_runs(s, l->end, i, last);
            has_last = true;
            i = behind_span(s, l->end, i, last);
            continue;
        }
        if (is_paired && s[i] == *m->pair && text_begins_with(s + i, l->end - i, m->pair))
            (*(m->is_known && is_quoted(s, n, i, i + strlen(m->pair)) ? &m->n_named : &m->n_open))++;
        else if (s[i] == *m->mark && text_begins_with(s + i, l->end - i, m->mark)) {
            if (m->n_open > 0)
                m->n_open--;
            else if (m->n_named > 0 && !is_own_mark(s, l, i, i + len))
                m->n_named--;
            else if (m->is_known ? !is_quoted(s, n, i, i + len) : is_own_mark(s, l, i, i + len))
                return i;
        }
        i++;
    }
    return i;
}

/* The letter of the fence of code that a line is, 0: it is none.  *rest: where the words behind it begin. */
static char fence_of(const char *s, const text_line *l, size_t *rest)
{
    size_t at = l->begin;

    while (at < l->end && at < l->begin + 3 && s[at] == ' ')
        at++;
    if (!text_begins_with(s + at, l->end - at, "```") && !text_begins_with(s + at, l->end - at, "~~~"))
        return 0;
    *rest = behind_run(s, l->end, at);
    while (*rest < l->end && is_one_of(s[*rest], LINE_BLANKS "\r"))
        (*rest)++;
    return s[at];
}

/* Does what stands before a line, one with a fence and nothing else, end as code does?  Behind an empty line or a ":"
 * code begins. */
static bool may_close(const char *s, size_t line)
{
    return line >= 2 && !is_one_of(s[line - 2], "\n:") && !(line >= 3 && s[line - 2] == '\r' && s[line - 3] == '\n');
}

/* The first mark behind `from` that is one, and not in code; n: there is none.  One behind a fence that was opened and
 * not closed counts: where a fence follows that opens, the one before was forgotten. */
static size_t find_mark(const char *s, size_t n, size_t from, mark_search m)
{
    size_t in_fence = n, n_open = 0, n_named = 0, rest = n, len = strlen(m.mark);
    text_line l;
    char fence = 0;

    for (; from < n; from = l.end + 1) {
        char here;
        size_t i;

        l = line_at(s, n, from);
        here = fence_of(s, &l, &rest);
        i = l.begin;
        if (here && !fence && !memchr(s + rest, '`', l.end - rest) && !memmem(s + rest, l.end - rest, m.mark, len)) {
            fence = here;
            n_open = m.n_open;
            n_named = m.n_named;
            continue;
        }
        if (here && here == fence) {
            bool is_plain = rest == l.end || text_begins_with(s + rest, l.end - rest, m.mark);

            if (in_fence < n && m.is_known && !(is_plain && may_close(s, l.begin)))
                return in_fence;
            if (is_plain) {
                fence = 0;
                in_fence = n;
                m.n_open = n_open;
                m.n_named = n_named;
            }
            i = rest;
        }
        if (in_fence < n)
            continue;
        i = find_in_line(s, n, &l, i, fence || m.is_paired, &m);
        if (i < l.end && !fence)
            return i;
        if (i < l.end)
            in_fence = i;
    }
    return m.is_known || m.is_whole ? in_fence : n;
}

/* -- Thoughts ------------------------------------------------------------------------------------- */

static ebb_thought make_thought(const char *s, size_t n, size_t from, size_t end, const char *mark)
{
    ebb_thought t = { .start = skip_blanks(s, n, from), .end = end, .is_open = end == n };

    if (t.start > t.end)
        t.start = t.end;
    t.body = t.is_open ? n : skip_blanks(s, n, end + strlen(mark));
    return t;
}

/* Where a thought ends that began before `from`, by its mark; n: it has not ended.  In the whole answer a quoted mark
 * ends it where no other does. */
static size_t find_end(const char *s, size_t n, size_t from, const ebb_thought_marks *m, bool is_whole)
{
    const char *first = memmem(s + from, n - from, m->end, strlen(m->end));
    size_t end = first ? find_mark(s, n, from, (mark_search){ .mark = m->end, .pair = m->begin, .is_known = true }) : n;

    return first && end == n && is_whole ? (size_t)(first - s) : end;
}

/* No mark has begun it in the text, and by which the prompt has, if so, is not known: the first end counts.
 * false: none is there. */
static bool find_without_begin(const char *s, size_t n, size_t from, bool is_known, bool is_whole, ebb_thought *t)
{
    const char *mark = NULL;
    size_t end = n;

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        mark_search m = { .mark = marks[i].end, .pair = marks[i].begin, .is_paired = i > 0 || !is_known,
                          .is_known = is_known, .is_whole = is_whole };
        size_t at;

        if ((marks[i].kind == EBB_THOUGHT_MARK_TAG && !is_known) || !memmem(s + from, n - from, m.mark, strlen(m.mark)))
            continue;
        at = find_mark(s, n, from, m);
        if (at < end) {
            end = at;
            mark = m.mark;
        }
    }
    if (mark)
        *t = make_thought(s, n, from, end, mark);
    return mark != NULL;
}

static bool text_ends_with(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);

    return n >= len && memcmp(s + n - len, what, len) == 0;
}

static size_t without_last_blanks(const char *s, size_t n)
{
    while (n > 0 && skip_blanks(s, n, n - 1) == n)
        n--;
    return n;
}

const ebb_thought_marks *ebb_thought_opened_by(const char *s, size_t n)
{
    const ebb_thought_marks *m;

    n = without_last_blanks(s, n);
    for (size_t i = 0; (m = ebb_thought_marks_at(i)) != NULL; i++)
        if (text_ends_with(s, n, m->begin))
            return m;
    return NULL;
}

bool ebb_thought_is_closed_by(const char *s, size_t n)
{
    const ebb_thought_marks *m;

    n = without_last_blanks(s, n);
    for (size_t i = 0; (m = ebb_thought_marks_at(i)) != NULL; i++)
        if (text_ends_with(s, n, m->end))
            return true;
    return false;
}

ebb_thought ebb_thought_find(const char *s, size_t n, ebb_thought_begin begin, bool is_whole)
{
    ebb_thought t = { 0 };
    size_t from = skip_blanks(s, n, 0);
    bool is_known = begin == EBB_THOUGHT_OPENED;

    if (find_in_channels(s, n, from, &t))
        return t;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t start = from + strlen(marks[i].begin);
        if (text_begins_with(s + from, n - from, marks[i].begin))
            return make_thought(s, n, start, find_end(s, n, start, &marks[i], is_whole), marks[i].end);
    }
    if (begin == EBB_THOUGHT_UNOPENED || find_without_begin(s, n, from, is_known, is_whole, &t) || !is_known)
        return t;
    return make_thought(s, n, from, find_end(s, n, from, &marks[0], is_whole), marks[0].end);
}

size_t ebb_thought_words(const char *s, size_t n)
{
    size_t words = 0;
    bool in_word = false;

    for (size_t i = 0; i < n; i++) {
        bool is_blank = s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r';
        words += !is_blank && !in_word;
        in_word = !is_blank;
    }
    return words;
}
