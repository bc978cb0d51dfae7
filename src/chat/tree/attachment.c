/* Files in front of a message (attachment.h). */
#include "tree/attachment.h"

#include <stdbool.h>
#include <string.h>

enum { SIGNS = 8, MOST_LOOKED = 16 << 20 };

static const char *last_of(const char *s, size_t n, char c)
{
    return n > 0 ? memrchr(s, c, n) : NULL;
}

/* Whether s[0..n) ends with the name, as a path of its own or as the last part of one. */
static bool names(const char *word, size_t n, const char *name, size_t n_name)
{
    return n >= n_name && memcmp(word + n - n_name, name, n_name) == 0 && (n == n_name || word[n - n_name - 1] == '/');
}

/* The word behind an @, to the next blank or in quotes.  Returns the bytes until it is over. */
static size_t word_at(const char *s, size_t n, const char **word, size_t *n_word)
{
    const char *quote = n > 0 && *s == '"' ? memchr(s + 1, '"', n - 1) : NULL;
    size_t len = 0;

    if (quote) {
        *word = s + 1;
        *n_word = (size_t)(quote - *word);
        return *n_word + 2;
    }
    while (len < n && !strchr(" \t\n", s[len]))
        len++;
    *word = s;
    *n_word = len;
    return len;
}

/* Whether the word means that file, or is a folder or a pattern, which may; some signs of the sentence may end it. */
static bool may_mean(const char *word, size_t n, const char *name, size_t n_name)
{
    for (int n_signs = 0; n > 0 && n_signs < SIGNS; n_signs++, n--) {
        if (names(word, n, name, n_name) || word[n - 1] == '/')
            return true;
        if (!strchr(".,;:!?)", word[n - 1]))
            break;
    }
    return n > 0 && (memchr(word, '*', n) || memchr(word, '?', n) || memchr(word, '[', n));
}

/* Each byte is looked at once: a word that begins in another one is a part of that. */
static bool is_named(const char *s, size_t n, const char *name, size_t n_name)
{
    const char *at, *word;

    for (size_t from = 0, n_word; from < n && (at = memchr(s + from, '@', n - from)) != NULL;) {
        from = (size_t)(at + 1 - s);
        if (at > s && !strchr(" \t\n(", at[-1]))
            continue;
        from += word_at(at + 1, n - from, &word, &n_word);
        if (may_mean(word, n_word, name, n_name))
            return true;
    }
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
        if ((out->n_name > 2 && memcmp(name, "$ ", 2) == 0) ||
            has_ending(name, out->n_name, s + fence + n_fence, n_language))
            return from;
        out->n_looked += n - from;
        return out->n_looked < MOST_LOOKED && is_named(s + from, n - from, name, out->n_name) ? from : 0;
    }
    return 0;
}

size_t ebb_attachments_end(const char *s, size_t n)
{
    ebb_attachment file = { 0 };
    size_t at = 0, end;

    while ((end = ebb_attachment_next(s, n, at, &file)) > 0)
        at = end;
    return at;
}

/* Backticks: more than any run of them inside. */
static size_t fence_length(const char *text, size_t n)
{
    size_t longest = 2, run = 0;

    for (size_t i = 0; i < n; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest + 1;
}

bool ebb_attachment_add(ebb_buf *out, const char *name, const char *language, const char *text, size_t n)
{
    size_t n_fence = fence_length(text, n);

    ebb_buf_addf(out, "%s:\n", name);
    for (size_t i = 0; i < n_fence; i++)
        ebb_buf_addc(out, '`');
    ebb_buf_addf(out, "%s\n", language);
    ebb_buf_add(out, text, n);
    if (n > 0 && text[n - 1] != '\n')
        ebb_buf_addc(out, '\n');
    for (size_t i = 0; i < n_fence; i++)
        ebb_buf_addc(out, '`');
    return ebb_buf_adds(out, "\n\n");
}

bool ebb_attachment_add_file(ebb_buf *out, const char *name, const char *text, size_t n)
{
    const char *last = strrchr(name, '/'), *dot = strrchr(last ? last : name, '.');

    return ebb_attachment_add(out, name, dot ? dot + 1 : "", text, n);
}
