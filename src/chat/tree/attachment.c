/* Files in front of a message (attachment.h). */
#include "tree/attachment.h"

#include <stdbool.h>
#include <string.h>

static const char *last_of(const char *s, size_t n, char c)
{
    return n > 0 ? memrchr(s, c, n) : NULL;
}

/* Whether s[0..n) ends with the name, as a path of its own or as the last part of one. */
static bool names(const char *word, size_t n, const char *name, size_t n_name)
{
    return n >= n_name && memcmp(word + n - n_name, name, n_name) == 0 && (n == n_name || word[n - n_name - 1] == '/');
}

/* Whether the word behind an @ means that file, or is a folder or a pattern, which may. */
static bool may_mean(const char *word, size_t n, const char *name, size_t n_name)
{
    size_t len = 0;

    if (n > 0 && *word == '"') {
        const char *quote = memchr(word + 1, '"', n - 1);

        word++;
        len = quote ? (size_t)(quote - word) : 0;
    } else {
        while (len < n && !strchr(" \t\n", word[len]))
            len++;
    }
    for (; len > 0; len--) {
        if (names(word, len, name, n_name) || word[len - 1] == '/' || memchr(word, '*', len) ||
            memchr(word, '?', len - 1) || memchr(word, '[', len))
            return true;
        if (!strchr(".,;:!?)", word[len - 1]))
            return false;
    }
    return false;
}

/* From the end, where the words are. */
static bool is_named(const char *s, size_t n, const char *name, size_t n_name)
{
    for (const char *at = s + n; (at = last_of(s, (size_t)(at - s), '@')) != NULL;)
        if ((at == s || strchr(" \t\n(", at[-1])) && may_mean(at + 1, n - (size_t)(at + 1 - s), name, n_name))
            return true;
    return false;
}

/* Whether the fence says the ending of a name without blanks. */
static bool has_ending(const char *name, size_t n, const char *language, size_t n_language)
{
    const char *slash = last_of(name, n, '/'), *last = slash ? slash + 1 : name;
    const char *dot = last_of(last, n - (size_t)(last - name), '.');

    return dot && dot > last && n_language > 0 && !memchr(name, ' ', n) &&
           (size_t)(name + n - (dot + 1)) == n_language && memcmp(dot + 1, language, n_language) == 0;
}

size_t ebb_attachment_next(const char *s, size_t n, size_t at, ebb_attachment *out)
{
    const char *colon = at < n ? memchr(s + at, '\n', n - at) : NULL, *end, *name = s + at;
    size_t fence, n_fence = 0, n_language;

    if (!colon || colon == name || colon[-1] != ':')
        return 0;
    fence = (size_t)(colon + 1 - s);
    while (fence + n_fence < n && s[fence + n_fence] == '`')
        n_fence++;
    end = n_fence >= 3 ? memchr(s + fence, '\n', n - fence) : NULL;
    if (!end)
        return 0;
    out->name = at;
    out->n_name = (size_t)(colon - 1 - name);
    out->text = (size_t)(end + 1 - s);
    n_language = out->text - 1 - (fence + n_fence);
    for (const char *line = end; line; line = memchr(line + 1, '\n', n - (size_t)(line + 1 - s))) {
        size_t from = (size_t)(line + 1 - s), run = 0;
        while (from + run < n && s[from + run] == '`')
            run++;
        if (run != n_fence || from + run + 2 > n || memcmp(s + from + run, "\n\n", 2) != 0)
            continue;
        out->n_text = from - out->text;
        from += run + 2;
        return (out->n_name > 2 && memcmp(name, "$ ", 2) == 0) ||
               has_ending(name, out->n_name, s + fence + n_fence, n_language) ||
               is_named(s + from, n - from, name, out->n_name) ? from : 0;
    }
    return 0;
}

size_t ebb_attachments_end(const char *s, size_t n)
{
    ebb_attachment file;
    size_t at = 0, end;

    while ((end = ebb_attachment_next(s, n, at, &file)) > 0)
        at = end;
    return at;
}
