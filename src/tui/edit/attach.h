/* tui/edit/attach.h - @path in a message: the text of files goes with it.
 *
 * The files' text precedes what was typed, each file as its name, a colon and its text in
 * a fence (tree/attachment.h); so the files stay where they are while the question is typed, and a
 * screen can fold them again.
 *
 * Only typed words name files.  What stands between fences names none: it is code, or a file or the
 * output of a command that is attached already.  What is marked (marked.h) names none, either: a
 * paste that shows as "[pasted 11 lines]" would have files sent that nobody has thought of. */
#ifndef EBB_TUI_ATTACH_H
#define EBB_TUI_ATTACH_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "edit/documents.h"

#define EBB_ATTACH_BYTES (1 << 20)               /* most of one file ... */
#define EBB_ATTACH_ALL_BYTES (4 << 20)           /* ... and of all that one message takes along */

typedef struct ebb_attached {
    size_t n_files, n_bytes;     /* that go along */
    size_t n_left_out;           /* of folders and patterns: no text, too large, or too many */
    char   missing[128];         /* the first word that looks like a file's name and is none; "" */
    char   only_text[128];       /* the first word that names a file, but in what was pasted; "" */
} ebb_attached;

/* Append the files that s[0..n) names with @, then s[0..n) itself: @file, @folder/ (the files in
 * it), @*.c (a pattern of the shell).  A point or comma behind the name is the sentence's.  A word
 * that names nothing is only a word; `report` (may be NULL) says which of them look like names.
 * So is what follows when 20,000 words, names in folders of patterns and files (ten each) were
 * looked at.  Of a text that was expanded before, with the files in front, none goes a second time.
 * `docs` (may be NULL) has the texts of files that are none.  BUSY: one has to be made first
 * (documents.h).  LIMIT, FORMAT, NOTFOUND: a file named by itself is too large or no text, or all
 * are too large together.  Nothing is appended then. */
EBB_MUST_CHECK
ebb_status ebb_attach_expand(const char *s, size_t n, ebb_documents *docs, ebb_buf *out,
                             ebb_attached *report, ebb_error *err);

/* Append text that brings nothing along, though it may begin as attached files do: then it has a
 * line end in front.  false: no memory. */
bool ebb_attach_add_text(ebb_buf *out, const char *s, size_t n);
/* Append the output of `command`, one line, as a file of the name "$ command" would stand there. */
void ebb_attach_add_output(ebb_buf *out, const char *command, const ebb_buf *text);

#endif
