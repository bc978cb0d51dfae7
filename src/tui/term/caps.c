/* Terminfo (caps.h). */
#include "term/caps.h"

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

void ebb_cap_add_n(ebb_buf *out, const char *name, int n)
{
    const char *s = ebb_cap(name);

    s = *s ? tiparm(s, n) : NULL;
    if (s)
        add_without_delays(out, s);
}
