/* Short texts (text.h). */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

char *ebb_text_copy(const char *s, size_t n)
{
    char *copy = malloc(n + 1);

    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *ebb_text_copy_or_null(const char *s, bool *ok)
{
    char *copy = s ? strdup(s) : NULL;

    *ok &= !s || copy;
    return copy;
}

size_t ebb_text_mark(const char *s, size_t n)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const size_t n_mark = sizeof mark - 1;

    return n >= n_mark && memcmp(s, mark, n_mark) == 0 ? n_mark : 0;
}

const char *ebb_text_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int ebb_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

char *ebb_text_trim(char *s)
{
    static const char blanks[] = " \t\r";
    size_t n;

    s += strspn(s, blanks);
    for (n = strlen(s); n > 0 && strchr(blanks, s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}
