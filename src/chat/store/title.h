/* chat/store/title.h - the title of a session: its first question, cut short. */
#ifndef EBB_CHAT_TITLE_H
#define EBB_CHAT_TITLE_H
#include <stddef.h>

/* text as one line of at most 50 columns with a final "…" if it was cut; white
 * space is one blank, controls are left out.  Writes at most cap bytes with a final NUL. */
void ebb_title_make(const char *text, size_t n, char *out, size_t cap);
/* A title or a name that stands in a file, in the same way, but as long as `cap` lets it be. */
void ebb_title_read(const char *text, size_t n, char *out, size_t cap);

/* Where the words of a message begin, behind the files that go with it; 0: it has none of its own,
 * or no files. */
size_t ebb_title_own_words(const char *text, size_t n);

#endif
