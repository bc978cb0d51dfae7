/* tree/attachment.h - the files that went along with a message, as they stand in front of its text:
 * each as its name, a colon and its text in a fence. */
#ifndef EBB_TREE_ATTACHMENT_H
#define EBB_TREE_ATTACHMENT_H
#include <stddef.h>

#include "base/buf.h"

typedef struct ebb_attachment {
    size_t name, n_name;         /* in the message: its name ... */
    size_t text, n_text;         /* ... and its text */
    size_t n_looked;             /* bytes that were looked through for names: 0 before the first */
} ebb_attachment;

/* The attachment at s[at], to *out.  Returns where it ends; 0: there is none.  People put code into
 * fences, too, below lines that end with a colon: it is a file if the name has an ending and no
 * blanks, and the fence says that ending; if it is "$ " and a command; or if the text behind it
 * says @ and such a name, a folder or a pattern.  That is looked for in 16 MiB of all files of a
 * message together; where they are over, the next one is none.  Cost: the bytes of it. */
size_t ebb_attachment_next(const char *s, size_t n, size_t at, ebb_attachment *out);
/* Where the words of a message begin, behind all that went along. */
size_t ebb_attachments_end(const char *s, size_t n);

/* Append text[0..n) as one: `name` and its text in a fence that says its language, which "" leaves
 * open, and that of a file is its ending.  false: no memory. */
bool ebb_attachment_add(ebb_buf *out, const char *name, const char *language, const char *text,
                        size_t n);
bool ebb_attachment_add_file(ebb_buf *out, const char *name, const char *text, size_t n);

#endif
