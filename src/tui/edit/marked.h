/* tui/edit/marked.h - typed text in which what was pasted, and the files that go along, stand
 * between two marks.  They are folded again when the text comes back from the history, a draft, the
 * queue or the kill ring, and name no files (attach.h).  The marks are characters that no text from
 * outside has when it reaches the editor (editor.h). */
#ifndef EBB_TUI_MARKED_H
#define EBB_TUI_MARKED_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define EBB_MARK_BEGIN "\xF4\x8F\xBF\xBE"
#define EBB_MARK_END   "\xF4\x8F\xBF\xBF"
enum { EBB_MARK_BYTES = 4 };

/* Append s[0..n) without its marks.  false: no memory. */
bool ebb_marked_add_plain(ebb_buf *out, const char *s, size_t n);
/* Whether s[0..n) begins with that mark. */
bool ebb_marked_begins(const char *s, size_t n);
bool ebb_marked_ends(const char *s, size_t n);
/* Bytes in front of the next mark, of either kind; n: there is none. */
size_t ebb_marked_next(const char *s, size_t n);

#endif
