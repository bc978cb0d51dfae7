/* tree/thought.h - what a model thinks before it answers, as it is written in the text:
 * <think>...</think> and its kin, gpt-oss's channels in front of the final one. */
#ifndef EBB_TREE_THOUGHT_H
#define EBB_TREE_THOUGHT_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/experimental/thought_marks.h"
#include "ebb/model.h"

typedef struct ebb_thought {
    size_t start, end;           /* bytes of the thought; start == end: there is none */
    size_t body;                 /* where the answer begins; everything, if nothing was thought */
    bool   is_open;              /* it has not ended yet */
    bool   in_channels;          /* the answer is a row of messages in gpt-oss's channels */
} ebb_thought;

/* Did the prompt end with <think> or the like, so that the answer begins within the thought? */
typedef enum ebb_thought_begin { EBB_THOUGHT_UNSURE, EBB_THOUGHT_OPENED, EBB_THOUGHT_UNOPENED }
        ebb_thought_begin;

/* A row of EBB_THOUGHT_MARKS. */
typedef struct ebb_thought_marks {
    const char *begin, *end;
    const char *before, *behind; /* the same with the blanks that stand there */
    ebb_thought_mark_kind kind;
} ebb_thought_marks;
/* Row i, <think> first; NULL: there are no more.  Channels are none. */
const ebb_thought_marks *ebb_thought_marks_at(size_t i);

/* Look at s[0..n), an answer, or what there is of it.  A thought that is known to have begun ends
 * with the first mark of its kind that is not in quotes, brackets or code; where no other comes, in
 * the whole answer, with that.  Where it is UNSURE whether one has begun, an end on a line of its
 * own or directly behind a word says so, outside of code.  Cost: a search for the end marks. */
ebb_thought ebb_thought_find(const char *s, size_t n, ebb_thought_begin begin, bool is_whole);
/* The marks of the thought that a prompt which ends so, but for white space, opens; NULL: none. */
const ebb_thought_marks *ebb_thought_opened_by(const char *s, size_t n);
/* Or closes, so that nothing is thought behind it. */
bool ebb_thought_is_closed_by(const char *s, size_t n);
/* Of an answer in channels, the ranges of what its messages say, in order: what is between them are
 * marks.  At most cap > 0, of which the last then has all the rest; 0: it is not in channels. */
size_t ebb_thought_texts(const char *s, size_t n, ebb_text_range *texts, size_t cap);
size_t ebb_thought_words(const char *s, size_t n);

#endif
