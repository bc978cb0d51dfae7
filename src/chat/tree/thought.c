/* Finding thoughts (thought.h). */
#include "tree/thought.h"

#include <string.h>

static const struct { const char *begin, *end, *after; } marks[] = {
    { "<think>", "</think>", NULL },
    { "<thinking>", "</thinking>", NULL },
    { "<|channel>thought", "<channel|>", NULL },
    { "<|channel|>analysis<|message|>", "<|end|>", "<|message|>" },
    { "", "</think>", NULL },                    /* the template has opened it */
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

/* The answer may have a channel of its own: its head is no text. */
static size_t body_start(const char *s, size_t n, size_t at, const char *after)
{
    const char *head = after ? memmem(s + at, n - at, after, strlen(after)) : NULL;

    if (after && text_begins_with(s + at, n - at, "<|start|>"))
        at = head ? (size_t)(head - s) + strlen(after) : n;
    return skip_blanks(s, n, at);
}

ebb_thought ebb_thought_find(const char *s, size_t n)
{
    ebb_thought t = { 0 };
    size_t from = skip_blanks(s, n, 0);

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
        t.body = end ? body_start(s, n, t.end + strlen(marks[i].end), marks[i].after) : n;
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
