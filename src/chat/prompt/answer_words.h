/* chat/prompt/answer_words.h - what of an answer is words: the rest are the marks around what is
 * thought in it, control tokens where the vocabulary has such. */
#ifndef EBB_CHAT_ANSWER_WORDS_H
#define EBB_CHAT_ANSWER_WORDS_H
#include "tree/thought.h"

enum { EBB_ANSWER_WORDS = 8 };

/* The ranges of s[0..n), an answer with this thought, in which nothing is a control token: what it
 * speaks of is none.  Returns how many. */
size_t ebb_answer_words(const char *s, size_t n, const ebb_thought *t,
                        ebb_text_range words[EBB_ANSWER_WORDS]);

#endif
