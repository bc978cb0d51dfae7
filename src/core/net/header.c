/* A line of a reply's header (net/header.h). */
#include "net/header.h"

#include <string.h>
#include <strings.h>

bool ebb_header_text(const char *line, size_t n, const char *name, char *out, size_t cap)
{
    size_t k = strlen(name);

    if (n <= k || line[k] != ':' || strncasecmp(line, name, k) != 0)
        return false;
    for (line += k + 1, n -= k + 1; n && (*line == ' ' || *line == '\t'); line++)
        n--;
    while (n && (unsigned char)line[n - 1] <= ' ')
        n--;
    if (n >= cap)
        return false;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)line[i] < ' ' || line[i] == 127 ? '?' : line[i];
    out[n] = '\0';
    return true;
}
