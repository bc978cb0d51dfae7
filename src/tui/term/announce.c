/* Titles and notifications (announce.h). */
#include "term/announce.h"

#include <string.h>

#include "base/utf8.h"
#include "term/width.h"

enum { TEXT_BYTES_MAX = 120 };

/* One line of it; a ';' would begin another part of the control string. */
static void add_filtered(ebb_buf *out, const char *s, size_t n, bool ascii)
{
    ebb_buf visible = { 0 };
    size_t len = 0, used;

    ebb_utf8_add_visible(&visible, s, n, ascii);
    while (len < visible.len && (used = ebb_cluster_next(visible.data + len, visible.len - len, NULL)) > 0 &&
           len + used <= TEXT_BYTES_MAX)
        len += used;
    for (size_t i = 0; i < len; i++)
        ebb_buf_addc(out, visible.data[i] == ';' ? ',' : (unsigned char)visible.data[i] < ' ' ? ' ' : visible.data[i]);
    ebb_buf_fini(&visible);
}

void ebb_announce_add_title(ebb_buf *out, const char *text, size_t n, bool ascii)
{
    ebb_buf_adds(out, "\033]2;");
    add_filtered(out, text, n, ascii);
    ebb_buf_adds(out, n > 0 ? " - ebb\a" : "ebb\a");
}

static bool knows_777_alone(const char *term_name, bool is_vte)
{
    return is_vte || strncmp(term_name, "foot", 4) == 0 || strncmp(term_name, "rxvt", 4) == 0;
}

void ebb_announce_add_notification(ebb_buf *out, const char *text, size_t n, const char *term_name, bool is_vte,
                                   bool in_tmux, bool ascii)
{
    ebb_buf_adds(out, in_tmux ? "\033Ptmux;\033" : "");
    ebb_buf_adds(out, knows_777_alone(term_name, is_vte) ? "\033]777;notify;ebb;" : "\033]9;ebb: ");
    add_filtered(out, text, n, ascii);
    ebb_buf_adds(out, in_tmux ? "\a\033\\" : "\a");
}
