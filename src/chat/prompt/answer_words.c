/* The words of an answer, and not its own marks (answer_words.h). */
#include "prompt/answer_words.h"

size_t ebb_answer_words(const char *s, size_t n, const ebb_thought *t, ebb_text_range words[EBB_ANSWER_WORDS])
{
    size_t k = 0;

    if (t->in_channels)
        return ebb_thought_texts(s, n, words, EBB_ANSWER_WORDS);
    if (t->end > t->start)
        words[k++] = (ebb_text_range){ t->start, t->end };
    if (n > t->body)
        words[k++] = (ebb_text_range){ t->body, n };
    return k;
}
