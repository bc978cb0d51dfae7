/* Finding thoughts (thought.h). */
#include "tree/thought.h"

#include <ctype.h>
#include <string.h>

static const struct { const char *begin, *end; } marks[] = {
    { "<think>", "</think>" },
    { "<thinking>", "</thinking>" },
    { "<|channel>thought", "<channel|>" },
    { "", "</think>" },                          /* the template has opened it */
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

/* -- Thoughts ------------------------------------------------------------------------------------- */

ebb_thought ebb_thought_find(const char *s, size_t n)
{
    ebb_thought t = { 0 };
    size_t from = skip_blanks(s, n, 0);

    if (find_in_channels(s, n, from, &t))
        return t;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t start = from + strlen(marks[i].begin);
        if (!text_begins_with(s + from, n - from, marks[i].begin))
            continue;
        const char *end = memmem(s + start, n - start, marks[i].end, strlen(marks[i].end));
        if (!end && *marks[i].begin == '\0')
            break;
        t.start = skip_blanks(s, n, start);
        t.end = end ? (size_t)(end - s) : n;
        if (t.start > t.end)
            t.start = t.end;
        t.is_open = !end;
        t.body = end ? skip_blanks(s, n, t.end + strlen(marks[i].end)) : n;
        break;
    }
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
