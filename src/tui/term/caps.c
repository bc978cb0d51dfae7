/* Terminfo (caps.h). */
#include "term/caps.h"

#include <string.h>
#include <unistd.h>

#include <curses.h>
#include <ncursesw/term.h>             /* ours is called so, too */

bool ebb_caps_open(void)
{
    int how;

    return setupterm(NULL, STDOUT_FILENO, &how) == OK;
}

const char *ebb_caps_name(void)
{
    return termname();
}

const char *ebb_cap(const char *name)
{
    const char *s = tigetstr(name);

    return s && s != (const char *)-1 ? s : "";
}

bool ebb_cap_flag(const char *name)
{
    return tigetflag(name) == 1;
}

int ebb_cap_number(const char *name)
{
    int n = tigetnum(name);

    return n >= 0 ? n : -1;
}

static void add_without_delays(ebb_buf *out, const char *s)
{
    for (; *s; s++) {
        if (s[0] == '$' && s[1] == '<') {
            while (*s && *s != '>')
                s++;
            if (!*s)
                return;
        } else {
            ebb_buf_addc(out, *s);
        }
    }
}

void ebb_cap_add(ebb_buf *out, const char *name)
{
    add_without_delays(out, ebb_cap(name));
}

/* An entry that is damaged, or made to be, may take a number for the address of a string: by "%s", or "%l". */
static bool takes_numbers(const char *s)
{
    for (; (s = strchr(s, '%')) != NULL; s++) {
        char conversion = s[1 + strspn(s + 1, ":-+# 0123456789.")];
        if (conversion == 's' || conversion == 'l')
            return false;
    }
    return true;
}

void ebb_cap_add_n(ebb_buf *out, const char *name, int n)
{
    const char *s = ebb_cap(name);

    s = *s && takes_numbers(s) ? tiparm(s, n) : NULL;
    if (s)
        add_without_delays(out, s);
}

/* -- Faces ------------------------------------------------------------------------------ */

static void add_color(ebb_buf *out, const char *cap, int32_t color, int n_colors)
{
    int fit = color == EBB_COLOR_DEFAULT ? -1 : ebb_color_fit(color, n_colors);

    if (fit >= 0)
        ebb_cap_add_n(out, cap, fit);
}

void ebb_caps_face(const ebb_style *s, int n_colors, ebb_buf *out)
{
    static const struct { uint8_t attr; const char *cap; } attrs[] = {
        { EBB_ATTR_BOLD, "bold" }, { EBB_ATTR_DIM, "dim" }, { EBB_ATTR_ITALIC, "sitm" },
        { EBB_ATTR_UNDERLINE, "smul" }, { EBB_ATTR_REVERSE, "rev" },
    };
    int32_t fg = s->fg;

    ebb_buf_clear(out);
    ebb_cap_add(out, "sgr0");
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        if (s->attrs & attrs[i].attr)
            ebb_cap_add(out, attrs[i].cap);
    if (n_colors < 8)
        return;
    if (n_colors == 8 && fg >= 8 && fg < 16) {        /* bold: bright; dim: grey, else black */
        ebb_cap_add(out, fg == 8 ? "dim" : "bold");
        fg = fg == 8 ? EBB_COLOR_DEFAULT : fg;
    }
    add_color(out, "setaf", fg, n_colors);
    add_color(out, "setab", s->bg, n_colors);
}
