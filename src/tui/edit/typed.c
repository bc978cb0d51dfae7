/* The beginning of a typed line (typed.h). */
#include "edit/typed.h"

#include <string.h>

#include "tree/attachment.h"

bool ebb_typed_has_quotes(const char *line, size_t n)
{
    return n >= EBB_QUOTES_BYTES && memcmp(line, "\"\"\"", EBB_QUOTES_BYTES) == 0;
}

bool ebb_typed_is_special(const char *line, size_t n)
{
    return (n > 0 && line[0] == '!') || ebb_typed_has_quotes(line, n);
}

static size_t count_blanks(const char *s, size_t n)
{
    size_t blanks = 0;

    while (blanks < n && s[blanks] == ' ')
        blanks++;
    return blanks;
}

/* One that has blanks in front gets one more: what is taken off is always the first. */
const char *ebb_typed_prefix(const char *message, size_t n)
{
    size_t blanks = count_blanks(message, n);

    if (n > 0 && message[0] == '/')
        return "/";
    return ebb_typed_is_special(message + blanks, n - blanks) ? " " : "";
}

size_t ebb_typed_skip(const char *line, size_t n)
{
    size_t blanks = count_blanks(line, n);

    return (n > 0 && line[0] == '/') || (blanks > 0 && ebb_typed_is_special(line + blanks, n - blanks));
}

/* No command's name has another slash, or a colon at its end: a whole path has one of them. */
static bool begins_with_name(const char *line, size_t n)
{
    size_t word = 0;

    while (word < n && !strchr(" \t\n", line[word]))
        word++;
    return word > 0 && line[0] == '/' && line[word - 1] != ':' && !memchr(line + 1, '/', word - 1);
}

size_t ebb_typed_files(const char *line, size_t n)
{
    return begins_with_name(line, n) ? 0 : ebb_attachments_end(line, n);
}
