/* Attached files (attach.h). */
#include "edit/attach.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "os/file.h"
#include "os/paths.h"

size_t ebb_attach_word(const char *s, size_t n, size_t at, size_t *path, size_t *n_path)
{
    size_t end = at + 1;

    if (at + 1 >= n || s[at] != '@' || (at > 0 && !strchr(" \t\n(", s[at - 1])))
        return 0;
    if (s[end] == '"') {
        const char *quote = memchr(s + end + 1, '"', n - end - 1);
        *path = end + 1;
        *n_path = quote ? (size_t)(quote - s) - *path : 0;
        return *n_path > 0 ? *n_path + 3 : 0;
    }
    while (end < n && !strchr(" \t\n", s[end]))
        end++;
    *path = at + 1;
    *n_path = end - *path;
    return *n_path > 0 ? end - at : 0;
}

static bool is_text(const char *s, size_t n)
{
    uint32_t cp;

    if (memchr(s, '\0', n))
        return false;
    for (size_t at = 0, used; at < n; at += used) {
        used = ebb_utf8_decode(s + at, n - at, &cp);
        if (used == 0 || (cp == EBB_UTF8_BAD && (unsigned char)s[at] != 0xEF))
            return false;
    }
    return true;
}

/* A fence longer than any run of backticks inside. */
static int fence_length(const ebb_buf *text)
{
    int longest = 2, run = 0;

    for (size_t i = 0; i < text->len; i++) {
        run = text->data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest + 1;
}

static void add_attachment(ebb_buf *out, const char *path, const ebb_buf *text)
{
    const char *name = strrchr(path, '/'), *dot;
    int n = fence_length(text);

    name = name ? name + 1 : path;
    dot = strrchr(name, '.');
    ebb_buf_addf(out, "%s:\n", name);
    for (int i = 0; i < n; i++)
        ebb_buf_addc(out, '`');
    ebb_buf_addf(out, "%s\n", dot ? dot + 1 : "");
    ebb_buf_add(out, text->data, text->len);
    if (text->len > 0 && text->data[text->len - 1] != '\n')
        ebb_buf_addc(out, '\n');
    for (int i = 0; i < n; i++)
        ebb_buf_addc(out, '`');
    ebb_buf_adds(out, "\n\n");
}

static ebb_status attach_word(const char *word, ebb_buf *out, ebb_error *err)
{
    ebb_buf text = { 0 }, whole = { 0 };
    struct stat st;
    ebb_status status = ebb_path_expand(word, &whole, err);
    const char *path = ebb_buf_text(&whole);

    if (status == EBB_OK && (stat(path, &st) != 0 || !S_ISREG(st.st_mode))) {
        ebb_buf_fini(&whole);
        return EBB_OK;                           /* only a word */
    }
    if (status == EBB_OK)
        status = ebb_file_slurp(path, EBB_ATTACH_BYTES, &text, err);
    if (status == EBB_OK && !is_text(ebb_buf_text(&text), text.len))
        status = EBB_FAIL(err, EBB_FORMAT, "%s is no text: it cannot go with a message", path);
    if (status == EBB_OK)
        add_attachment(out, path, &text);
    ebb_buf_fini(&whole);
    ebb_buf_fini(&text);
    return status;
}

ebb_status ebb_attach_expand(const char *s, size_t n, ebb_buf *out, ebb_error *err)
{
    size_t before = out->len, path, n_path, len;
    ebb_buf name = { 0 };
    ebb_status st = EBB_OK;

    for (size_t at = 0; st == EBB_OK && at < n; at += len > 0 ? len : 1) {
        len = ebb_attach_word(s, n, at, &path, &n_path);
        if (len == 0)
            continue;
        ebb_buf_clear(&name);
        ebb_buf_add(&name, s + path, n_path);
        st = attach_word(ebb_buf_text(&name), out, err);
    }
    ebb_buf_fini(&name);
    ebb_buf_add(out, s, n);
    if (st == EBB_OK && out->failed)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the message and its files");
    if (st != EBB_OK)
        ebb_buf_remove(out, before, out->len - before);
    return st;
}
