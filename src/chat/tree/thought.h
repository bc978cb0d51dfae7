/* tree/thought.h - what a model thinks before it answers, as it is written in the text:
 * <think>...</think>, gpt-oss's analysis channel, Gemma 4's thought channel. */
#ifndef EBB_TREE_THOUGHT_H
#define EBB_TREE_THOUGHT_H
#include <stdbool.h>
#include <stddef.h>

typedef struct ebb_thought {
    size_t start, end;           /* bytes of the thought; start == end: there is none */
    size_t body;                 /* where the answer begins; everything, if nothing was thought */
    bool   is_open;              /* it has not ended yet */
} ebb_thought;

/* Look at s[0..n), an answer so far.  Cost: a search for the end mark. */
ebb_thought ebb_thought_find(const char *s, size_t n);
size_t ebb_thought_words(const char *s, size_t n);

#endif
