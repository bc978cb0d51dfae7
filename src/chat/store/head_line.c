/* Heads of messages in Markdown and text (head_line.h). */
#include "store/head_line.h"

#include <string.h>

#include "base/utf8.h"

bool ebb_import_role(const char *name, size_t n, ebb_role *out)
{
    static const struct {
        const char *name;
        ebb_role    role;
    } roles[] = {
        { "system", EBB_ROLE_SYSTEM }, { "developer", EBB_ROLE_SYSTEM }, { "user", EBB_ROLE_USER },
        { "human", EBB_ROLE_USER }, { "assistant", EBB_ROLE_ASSISTANT }, { "model", EBB_ROLE_ASSISTANT },
        { "note", EBB_ROLE_NOTE },
    };

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strlen(roles[i].name) == n && memcmp(roles[i].name, name, n) == 0) {
            *out = roles[i].role;
            return true;
        }
    return false;
}

bool ebb_head_line_is(ebb_export_format format, const char *line, size_t n, ebb_role *role)
{
    if (format == EBB_EXPORT_MD)
        return n > 3 && memcmp(line, "## ", 3) == 0 && ebb_import_role(line + 3, n - 3, role);
    return n > 1 && line[n - 1] == ':' && ebb_import_role(line, n - 1, role);
}

/* Bytes of the line at text, with its end. */
static size_t line_bytes(const char *text, size_t n)
{
    const char *nl = memchr(text, '\n', n);

    return nl ? (size_t)(nl - text) + 1 : n;
}

/* Is it a head, perhaps behind backslashes?  *n_slashes: how many.  With a \r at its end it is one as soon as somebody
 * gives the file the lines of Windows. */
static bool is_like_head(ebb_export_format format, const char *line, size_t n, size_t *n_slashes)
{
    ebb_role role;

    n -= n > 0 && line[n - 1] == '\n';
    n -= n > 0 && line[n - 1] == '\r';
    for (*n_slashes = 0; *n_slashes < n && line[*n_slashes] == '\\';)
        ++*n_slashes;
    return ebb_head_line_is(format, line + *n_slashes, n - *n_slashes, &role);
}

void ebb_head_line_add_text(ebb_buf *out, ebb_export_format format, const char *text, size_t n)
{
    for (size_t at = 0, len, n_slashes; at < n; at += len) {
        len = line_bytes(text + at, n - at);
        if (is_like_head(format, text + at, len, &n_slashes))
            ebb_buf_addc(out, '\\');
        ebb_utf8_add_valid(out, text + at, len);
    }
}

void ebb_head_line_read_text(ebb_buf *out, ebb_export_format format, const char *text, size_t n)
{
    for (size_t at = 0, len, n_slashes; at < n; at += len) {
        bool is_escaped;

        len = line_bytes(text + at, n - at);
        is_escaped = is_like_head(format, text + at, len, &n_slashes) && n_slashes > 0;
        ebb_buf_add(out, text + at + is_escaped, len - is_escaped);
    }
}
