/* store/search_words.h - the words of a search: what is looked for, and where a text has it.
 *
 * Words are what the index has (store_schema.c): letters and digits, without case and accents; the
 * beginning of one is enough.  Scripts that put no blanks between words (Chinese, Japanese,
 * Thai ...) are looked for within a run of letters, too. */
#ifndef EBB_STORE_SEARCH_WORDS_H
#define EBB_STORE_SEARCH_WORDS_H
#include <stdbool.h>
#include <stddef.h>

enum { EBB_SEARCH_PHRASES = 32, EBB_SEARCH_WORDS = 256 };

typedef struct ebb_search_word {
    const char *s;               /* the caller's text */
    size_t      n;
    size_t      n_indexed;       /* bytes of its first letters, as many as the index has, if it is
                                  * longer and a word by itself; else n */
    size_t      unspaced, n_unspaced;    /* the first letters in it that may stand within a run;
                                          * 0 bytes: there are none */
    bool        is_beside;       /* such letters are in its phrase, and may touch it in a text: it
                                  * is found anywhere */
} ebb_search_word;

typedef struct ebb_search {
    ebb_search_word words[EBB_SEARCH_WORDS];
    size_t          n_words, n_phrases;
    bool            has_long, has_unspaced, has_spaced;
} ebb_search;

/* What is between two blanks is a phrase.  False: there is none, or more than EBB_SEARCH_PHRASES.
 * `words` is kept, not copied. */
bool ebb_search_parse(const char *words, ebb_search *q);

/* Has the text s[0..n) what the index cannot tell: words with letters of such a script, those
 * beside them, and those longer than it knows? */
bool ebb_search_has_all(const ebb_search *q, const char *s, size_t n);

/* To the next word of s[0..n) at or behind *at; its bytes, 0: there is none. */
size_t ebb_search_next_word(const char *s, size_t n, size_t *at);

/* Does the word s[0..n) begin with w[0..n_w)? */
bool ebb_search_word_begins(const char *s, size_t n, const char *w, size_t n_w);

/* Where a word with letters of such a script stands, within others too, and its bytes there; NULL:
 * nowhere. */
const char *ebb_search_find_unspaced(const char *s, size_t n, const ebb_search_word *w,
                                     size_t *n_hit);

/* The words of the text around the first that is looked for, each hit between EBB_HIT_BEGIN and
 * EBB_HIT_END; as many whole characters as out[0..cap) has room for. */
void ebb_search_snippet(const ebb_search *q, const char *s, size_t n, char *out, size_t cap);

#endif
