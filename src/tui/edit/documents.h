/* tui/edit/documents.h - the text of attached files that a filter makes (filter.h).
 *
 * Making it takes a while, so it is done beside: ebb_attach_expand says BUSY where a text is not
 * there yet, the caller starts the filter, waits, and asks again.  What was made is kept until the
 * file changes, or the message is sent. */
#ifndef EBB_TUI_DOCUMENTS_H
#define EBB_TUI_DOCUMENTS_H
#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "edit/filter.h"
#include "edit/piped.h"

typedef struct ebb_document {
    char       *path;
    struct stat st;              /* of the file it was made of */
    ebb_buf     text;            /* through the display filter */
    ebb_error   err;             /* code is EBB_OK, or there is no text */
} ebb_document;

/* Zero it but for `filters`; fini ends what runs. */
typedef struct ebb_documents {
    const ebb_filters *filters;  /* not owned; NULL: files are taken as they are */
    ebb_document *list;
    size_t        n;
    ebb_document  next;          /* whose text is wanted, or being made; path is NULL: none */
    ebb_piped     run;
} ebb_documents;

/* The text of the file at `path`, to *text (*d owns it); NULL: the file is taken as it is.  BUSY:
 * its filter has to run first (ebb_documents_start).  Other errors say why there is none. */
EBB_MUST_CHECK
ebb_status ebb_documents_find(ebb_documents *d, const char *path, const ebb_buf **text,
                              ebb_error *err);
/* Start the filter that was found wanting last.  Errors: NOTFOUND (a program that is not installed,
 * with the package that brings it), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_documents_start(ebb_documents *d, double now_s, ebb_error *err);
bool ebb_documents_is_running(const ebb_documents *d);
/* "report.pdf with pdftotext", while it runs. */
void ebb_documents_add_name(const ebb_documents *d, ebb_buf *out);
void ebb_documents_stop(ebb_documents *d);
/* Never blocks.  true: it has ended, well or not; whoever asks for the text again gets either. */
bool ebb_documents_poll(ebb_documents *d, double now_s);
void ebb_documents_forget(ebb_documents *d);     /* all texts */
void ebb_documents_fini(ebb_documents *d);

#endif
