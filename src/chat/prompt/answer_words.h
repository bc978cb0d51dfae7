/* chat/prompt/answer_words.h - what of an answer is words: the rest are the marks around what is
 * thought in it, control tokens where the vocabulary has such.
 *
 * Own marks are those which its thought was found by or written with.  None is what stands in
 * quotes or in the answer behind the thought, nor what a template made of either. */
#ifndef EBB_CHAT_ANSWER_WORDS_H
#define EBB_CHAT_ANSWER_WORDS_H
#include "base/buf.h"
#include "tree/thought.h"

enum { EBB_ANSWER_WORDS = 8 };

/* Ranges in which nothing is a control token: what they speak of is none. */
typedef struct ebb_answer_words {
    ebb_text_range list[EBB_ANSWER_WORDS + 1];
    size_t         n;
} ebb_answer_words;

/* Of s[0..n), an answer.  A quoted mark ends no thought here: the true one may still come. */
ebb_answer_words ebb_answer_find_words(const char *s, size_t n, ebb_thought_begin begin);

/* An answer whose thought is known apart from its text; n_thought 0: nothing was thought. */
typedef struct ebb_answer_parts {
    const char *thought, *text;
    size_t      n_thought, n_text;
    const char *before, *behind; /* the thought, where one is: its marks */
} ebb_answer_parts;
/* Append it as one text, of whose beginning are *words.  false: no memory. */
EBB_MUST_CHECK
bool ebb_answer_join(const ebb_answer_parts *a, ebb_buf *out, ebb_answer_words *words);

/* Of s[0..n), with which a template begins to print the answer `given`, whose words are these: what
 * agrees with its beginning has its marks.  Cost: a search of s in each of the words. */
ebb_answer_words ebb_answer_words_in(const ebb_buf *given, const ebb_answer_words *words,
                                     const char *s, size_t n);

#endif
