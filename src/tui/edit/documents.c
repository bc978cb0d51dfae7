/* Texts of documents (documents.h). */
#include "edit/documents.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"
#include "base/utf8.h"
#include "edit/attach.h"
#include "os/file.h"

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void document_fini(ebb_document *doc)
{
    free(doc->path);
    ebb_buf_fini(&doc->text);
    *doc = (ebb_document){ 0 };
}

ebb_status ebb_documents_find(ebb_documents *d, const char *path, const ebb_buf **text, ebb_error *err)
{
    const ebb_filter *f = d && d->filters ? ebb_filters_find(d->filters, path) : NULL;
    struct stat st;

    *text = NULL;
    if (!f || stat(path, &st) != 0)
        return EBB_OK;
    for (size_t i = 0; i < d->n; i++) {
        const ebb_document *doc = &d->list[i];
        if (strcmp(doc->path, path) != 0 || !is_same_file(&doc->st, &st))
            continue;
        *text = &doc->text;
        return doc->err.code == EBB_OK ? EBB_OK : EBB_FAIL(err, doc->err.code, "%s", doc->err.msg);
    }
    if (!ebb_filter_is_installed(f))
        return EBB_FAIL(err, EBB_NOTFOUND, "%s: %s could turn it into text, but is not installed; it is in the "
                                           "package %s", ebb_text_file_name(path), f->program, f->package);
    if (!ebb_documents_is_running(d)) {
        document_fini(&d->next);
        d->next = (ebb_document){ .path = strdup(path), .st = st };
    }
    return EBB_FAIL(err, EBB_BUSY, "%s: %s turns it into text", ebb_text_file_name(path), f->program);
}

ebb_status ebb_documents_start(ebb_documents *d, double now_s, ebb_error *err)
{
    const ebb_filter *f = d->next.path ? ebb_filters_find(d->filters, d->next.path) : NULL;
    int fd = -1;
    ebb_status st;

    if (!f)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the file's name");
    st = ebb_file_open(d->next.path, EBB_FILE_READ, &fd, err);
    if (st == EBB_OK)
        st = ebb_piped_start(&d->run, f->argv, fd, ebb_filter_group(f), false, now_s, err);
    ebb_file_close(fd);
    return st;
}

bool ebb_documents_is_running(const ebb_documents *d)
{
    return ebb_piped_is_running(&d->run);
}

void ebb_documents_add_name(const ebb_documents *d, ebb_buf *out)
{
    const ebb_filter *f = d->next.path ? ebb_filters_find(d->filters, d->next.path) : NULL;

    if (!f)
        return;
    ebb_utf8_add_line(out, ebb_text_file_name(d->next.path), strlen(ebb_text_file_name(d->next.path)), false);
    ebb_buf_addf(out, " with %s", f->program);
}

void ebb_documents_stop(ebb_documents *d)
{
    ebb_piped_stop(&d->run);
}

/* The last line is what programs end with. */
static void add_last_line(ebb_buf *out, const ebb_buf *messages)
{
    const char *s = ebb_buf_text(messages);
    size_t n = messages->len, start;

    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == ' '))
        n--;
    for (start = n; start > 0 && s[start - 1] != '\n'; start--)
        ;
    ebb_utf8_add_line(out, s + start, n - start, false);
}

/* Of a command of the user's: what it calls is not there, as the shell ends then. */
static bool lacks_program(const ebb_filter *f, const ebb_piped *run, int status)
{
    enum { NOT_FOUND = 127 };

    return !f->package && !run->is_stopped && WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND;
}

/* What the filter has printed becomes the text, or its messages the reason why there is none. */
static void finish(ebb_documents *d, int status)
{
    const ebb_filter *f = ebb_filters_find(d->filters, d->next.path);
    const char *name = ebb_text_file_name(d->next.path);
    ebb_buf end = { 0 }, said = { 0 };

    ebb_piped_add_end(&d->run, status, &end);
    add_last_line(&said, &d->run.messages);
    for (size_t i = 0; i < d->run.text.len; i++)        /* pages end with a form feed, which is not shown */
        if (d->run.text.data[i] == '\f')
            d->run.text.data[i] = '\n';
    ebb_utf8_add_visible(&d->next.text, ebb_buf_text(&d->run.text), d->run.text.len, false);
    if (d->run.is_cut)
        EBB_FAIL(&d->next.err, EBB_LIMIT, "%s: its text is larger than %d MiB: too much for a message", name,
                 EBB_ATTACH_BYTES >> 20);
    else if (lacks_program(f, &d->run, status))
        EBB_FAIL(&d->next.err, EBB_NOTFOUND, "%s: the filter for %s calls a program that is not installed: %.160s",
                 name, f->ending, ebb_buf_text(&said));
    else if (end.len > 0)
        EBB_FAIL(&d->next.err, EBB_FORMAT, "%s: no text from %s (%s)%s%.120s", name,
                 f->program, ebb_buf_text(&end), said.len ? ": " : "", ebb_buf_text(&said));
    else if (strspn(ebb_buf_text(&d->next.text), " \t\r\n") == d->next.text.len)
        EBB_FAIL(&d->next.err, EBB_FORMAT, "%s: %s found no text in it; scanned pages are pictures", name, f->program);
    ebb_buf_fini(&end);
    ebb_buf_fini(&said);
}

bool ebb_documents_poll(ebb_documents *d, double now_s)
{
    ebb_document *list;
    int status = 0;

    if (!ebb_piped_poll(&d->run, now_s, &status))
        return false;
    if (!d->run.is_stopped)
        finish(d, status);
    list = d->run.is_stopped ? NULL : realloc(d->list, (d->n + 1) * sizeof *list);
    ebb_piped_fini(&d->run);
    if (!list) {
        document_fini(&d->next);
        return true;
    }
    d->list = list;
    d->list[d->n++] = d->next;
    d->next = (ebb_document){ 0 };
    return true;
}

void ebb_documents_forget(ebb_documents *d)
{
    for (size_t i = 0; i < d->n; i++)
        document_fini(&d->list[i]);
    free(d->list);
    d->list = NULL;
    d->n = 0;
}

void ebb_documents_fini(ebb_documents *d)
{
    ebb_piped_fini(&d->run);
    document_fini(&d->next);
    ebb_documents_forget(d);
}
