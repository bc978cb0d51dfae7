/* The words of an answer, and not its own marks (answer_words.h). */
#include "prompt/answer_words.h"

#include <string.h>

/* Behind those that are there. */
static void add_range(ebb_answer_words *w, size_t begin, size_t end)
{
    if (begin < end && w->n > 0 && w->list[w->n - 1].end == begin)
        w->list[w->n - 1].end = end;
    else if (begin < end)
        w->list[w->n++] = (ebb_text_range){ begin, end };
}

ebb_answer_words ebb_answer_find_words(const char *s, size_t n, ebb_thought_begin begin)
{
    ebb_answer_words w = { .n = 0 };
    ebb_thought t;

    if (n == 0)
        return w;
    t = ebb_thought_find(s, n, begin, false);
    if (t.in_channels) {
        w.n = ebb_thought_texts(s, n, w.list, EBB_ANSWER_WORDS);
        return w;
    }
    add_range(&w, t.start, t.end);
    add_range(&w, t.body, n);
    return w;
}

bool ebb_answer_join(const ebb_answer_parts *a, ebb_buf *out, ebb_answer_words *words)
{
    size_t thought;
    bool ok = a->n_thought == 0 || ebb_buf_adds(out, a->before);

    *words = (ebb_answer_words){ .n = 0 };
    thought = out->len;
    if (a->n_thought > 0)
        ok = ok && ebb_buf_add(out, a->thought, a->n_thought) && ebb_buf_adds(out, a->behind);
    add_range(words, thought, thought + a->n_thought);
    add_range(words, out->len, out->len + a->n_text);
    return ok && ebb_buf_add(out, a->text, a->n_text);
}

static size_t skip_blanks(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && s[i] && strchr(" \t\r\n", s[i]))
        i++;
    return i;
}

ebb_answer_words ebb_answer_words_in(const ebb_buf *given, const ebb_answer_words *words, const char *s, size_t n)
{
    ebb_answer_words w = { .n = 0 };
    size_t from = skip_blanks(ebb_buf_text(given), given->len), at = skip_blanks(s, n), same = 0;
    bool is_of_one = false;

    for (size_t i = 0; i < words->n && !is_of_one; i++) {
        ebb_text_range r = words->list[i];
        is_of_one = memmem(given->data + r.begin, r.end - r.begin, s, n) != NULL;
    }
    while (!is_of_one && from + same < given->len && at + same < n && given->data[from + same] == s[at + same])
        same++;
    for (size_t i = 0; i < words->n && words->list[i].begin < from + same; i++) {
        ebb_text_range r = words->list[i];
        add_range(&w, at + (r.begin > from ? r.begin - from : 0), at + (r.end < from + same ? r.end - from : same));
    }
    add_range(&w, same ? at + same : 0, n);
    return w;
}
