/* Finding thoughts (thought.h). */
#include "tree/thought.h"

#include <ctype.h>
#include <string.h>

#define BEGIN_OF_THOUGHT "<think>"
#define END_OF_THOUGHT   "</think>"

static const struct { const char *begin, *end; } marks[] = {
    { BEGIN_OF_THOUGHT, END_OF_THOUGHT },
    { "<thinking>", "</thinking>" },
    { "<|channel>thought", "<channel|>" },
    { "[THINK]", "[/THINK]" },
    { "<seed:think>", "</seed:think>" },
    { "<|inner_prefix|>", "<|inner_suffix|>" },
    { "<|START_THINKING|>", "<|END_THINKING|>" },
};

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

#define CHANNEL "<|channel|>"
#define MESSAGE "<|message|>"
#define END     "<|end|>"

typedef struct channel_message {
    size_t text, end;            /* bytes of what it says */
    bool   is_final, has_ended;
} channel_message;

/* The message that begins at `at`.  false: none does, or its head is not complete. */
static bool find_message(const char *s, size_t n, size_t at, channel_message *m)
{
    static const char start[] = "<|start|>assistant";
    const char *end;
    size_t name;

    if (text_begins_with(s + at, n - at, start))
        at += sizeof start - 1;
    if (!text_begins_with(s + at, n - at, CHANNEL))
        return false;
    at = name = at + strlen(CHANNEL);
    while (at < n && (isalnum((unsigned char)s[at]) || (s[at] && strchr(" ._=-", s[at]))))       /* no other mark */
        at++;
    if (at == name || !text_begins_with(s + at, n - at, MESSAGE))
        return false;
    m->text = at + strlen(MESSAGE);
    m->is_final = text_begins_with(s + name, n - name, "final");
    end = memmem(s + m->text, n - m->text, END, strlen(END));
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
        at = m.end + strlen(END);
    } while (m.has_ended && find_message(s, n, at, &m));
    if (has_thought && !t->is_open && !m.is_final && at < n && !text_begins_with(s + at, n - at, "<|start|>"))
        t->body = skip_blanks(s, n, at);         /* what has no head */
    return true;
}

size_t ebb_thought_texts(const char *s, size_t n, ebb_text_range *texts, size_t cap)
{
    channel_message m = { .has_ended = true };
    size_t k = 0, at = skip_blanks(s, n, 0);

    while (k < cap && m.has_ended && find_message(s, n, at, &m)) {
        texts[k++] = (ebb_text_range){ m.text, m.end };
        at = m.has_ended ? m.end + strlen(END) : n;
    }
    if (k > 0 && k < cap && at < n)
        texts[k++] = (ebb_text_range){ at, n };
    else if (k == cap && at < n)
        texts[k - 1].end = n;
    return k;
}

/* -- Marks in a text ------------------------------------------------------------------------------ */

#define LINE_BLANKS " \t"

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

/* A line of the text: where it begins and ends, where its first letter is, and its last "`". */
typedef struct text_line {
    size_t      begin, end, letter;
    const char *last_tick;
} text_line;

static text_line line_at(const char *s, size_t n, size_t at)
{
    const char *newline = memchr(s + at, '\n', n - at);
    text_line l = { .begin = at, .end = newline ? (size_t)(newline - s) : n, .letter = at };

    while (l.letter < l.end && is_one_of(s[l.letter], LINE_BLANKS))
        l.letter++;
    l.last_tick = memrchr(s + at, '`', l.end - at);
    return l;
}

/* Whether the mark s[at..next) of a line is one, and not what a sentence speaks of: a thought ends with a line of its
 * own or directly behind its last word. */
static bool is_own_mark(const char *s, const text_line *l, size_t at, size_t next, bool is_thought)
{
    size_t rest = next;
    bool ends_line;

    while (rest < l->end && is_one_of(s[rest], LINE_BLANKS "\r"))
        rest++;
    ends_line = rest == l->end;
    if (at == l->letter)
        return ends_line || rest == next;
    if (is_one_of(s[at - 1], LINE_BLANKS))
        return is_thought && ends_line;
    if (is_one_of(s[at - 1], "\"'`([{<*_~|") || is_open_quote(s, at))
        return false;
    return ends_line || (rest == next ? !is_one_of(s[next], "\"'`)]}*_~|.,;:!?") : is_one_of(s[at - 1], ".!?"));
}

/* The first mark of a line that is one and no code; its end: there is none.  *has_pair: `pair` stands before it. */
static size_t own_mark_in_line(const char *s, const text_line *l, const char *mark, const char *pair, bool *has_pair)
{
    bool in_span = false;

    for (size_t i = l->begin; i < l->end; i++) {
        in_span ^= s[i] == '`' && (i == l->begin || s[i - 1] != '`');
        if ((s[i] != '<' && s[i] != *mark) || (in_span && l->last_tick > s + i))
            continue;
        *has_pair |= pair && text_begins_with(s + i, l->end - i, pair);
        if (text_begins_with(s + i, l->end - i, mark) && is_own_mark(s, l, i, i + strlen(mark), !pair))
            return i;
    }
    return l->end;
}

static char fence_of(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && i < 3 && s[i] == ' ')
        i++;
    return text_begins_with(s + i, n - i, "```") ? '`' : text_begins_with(s + i, n - i, "~~~") ? '~' : 0;
}

/* The first mark behind `from` that is one and no code.  `pair`: where that stands before it, both are of an example;
 * NULL: a thought is known to have begun.  n: there is none. */
static size_t find_own_mark(const char *s, size_t n, size_t from, const char *mark, const char *pair)
{
    bool is_example = false;
    char fence = 0;

    for (text_line l = { .end = from }; from < n && !is_example; from = l.end + 1) {
        char here;
        size_t at;

        l = line_at(s, n, from);
        here = fence_of(s + from, l.end - from);
        if (here && (!fence || fence == here))
            fence = fence ? 0 : here;
        else if (!fence && (at = own_mark_in_line(s, &l, mark, pair, &is_example)) < l.end)
            return is_example ? n : at;
    }
    return n;
}

/* -- Thoughts ------------------------------------------------------------------------------------- */

/* Where a thought ends that began before `from`; n: it has not ended.  A mark that might be spoken of ends none while
 * another can still come. */
static size_t find_end(const char *s, size_t n, size_t from, const char *mark, bool is_whole)
{
    const char *first = memmem(s + from, n - from, mark, strlen(mark));
    size_t own = first ? find_own_mark(s, n, from, mark, NULL) : n;

    return first && own == n && is_whole ? (size_t)(first - s) : own;
}

static ebb_thought make_thought(const char *s, size_t n, size_t from, size_t end, const char *mark)
{
    ebb_thought t = { .start = skip_blanks(s, n, from), .end = end, .is_open = end == n };

    if (t.start > t.end)
        t.start = t.end;
    t.body = t.is_open ? n : skip_blanks(s, n, end + strlen(mark));
    return t;
}

/* The prompt has opened it, by whichever mark: the first end counts. */
static ebb_thought find_opened(const char *s, size_t n, size_t from, bool is_whole)
{
    const char *mark = END_OF_THOUGHT;
    size_t end = find_end(s, n, from, mark, is_whole);

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t own = memmem(s + from, n - from, marks[i].end, strlen(marks[i].end))
                     ? find_own_mark(s, n, from, marks[i].end, NULL) : n;
        if (own < end) {
            end = own;
            mark = marks[i].end;
        }
    }
    return make_thought(s, n, from, end, mark);
}

bool ebb_thought_is_opened_by(const char *s, size_t n)
{
    while (n > 0 && skip_blanks(s, n, n - 1) == n)
        n--;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t len = strlen(marks[i].begin);
        if (n >= len && memcmp(s + n - len, marks[i].begin, len) == 0)
            return true;
    }
    return false;
}

ebb_thought ebb_thought_find(const char *s, size_t n, ebb_thought_begin begin, bool is_whole)
{
    ebb_thought t = { 0 };
    size_t from = skip_blanks(s, n, 0), end;

    if (find_in_channels(s, n, from, &t))
        return t;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t start = from + strlen(marks[i].begin);
        if (!text_begins_with(s + from, n - from, marks[i].begin))
            continue;
        end = find_end(s, n, start, marks[i].end, is_whole);
        if (end < n && s[start] == ' ' && find_own_mark(s, n, start, marks[i].end, NULL) == n)
            return t;                            /* a sentence on marks */
        return make_thought(s, n, start, end, marks[i].end);
    }
    if (begin == EBB_THOUGHT_OPENED)
        return find_opened(s, n, from, is_whole);
    if (begin == EBB_THOUGHT_UNSURE && memmem(s, n, END_OF_THOUGHT, strlen(END_OF_THOUGHT)) &&
        (end = find_own_mark(s, n, from, END_OF_THOUGHT, BEGIN_OF_THOUGHT)) < n)
        return make_thought(s, n, from, end, END_OF_THOUGHT);
    return t;
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
