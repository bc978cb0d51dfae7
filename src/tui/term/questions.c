/* Questions to the terminal (questions.h). */
#include "term/questions.h"

#include <stdlib.h>
#include <string.h>

bool ebb_questions_suit(const char *name)
{
    static const char *const kinds[] = { "xterm", "tmux", "screen", "rxvt", "foot", "alacritty", "kitty", "ghostty",
                                         "wezterm", "konsole", "gnome", "vte", "iterm", "mintty", "contour", "putty",
                                         "st-", "mlterm" };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

void ebb_questions_add(ebb_buf *out, const char *program)
{
    ebb_buf_adds(out, "\033]11;?\033\\");
    if (!program || strcmp(program, "Apple_Terminal") != 0)
        ebb_buf_adds(out, "\033[?2026$p");
    ebb_buf_adds(out, "\033[?u\033[>q\033[c");
}

/* A colour's part of one to four hexadecimal digits, as a share of the most that so many can say;
 * *s is behind it then.  Below 0: there is none. */
static double read_share(const char **s, const char *end)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    unsigned value = 0, most = 0;
    const char *digit;

    for (int n = 0; n < 4 && *s < end && **s && (digit = strchr(digits, **s)) != NULL; n++, ++*s) {
        value = value * 16 + (unsigned)(digit - digits) % 16;
        most = most * 16 + 15;
    }
    return most ? (double)value / most : -1;
}

/* "rgb:r/g/b" or "rgba:r/g/b/a" (XParseColor); light is what black text is the easier to read on:
 * luma as of ITU-R BT.601. */
static ebb_background read_background(const char *s, const char *end)
{
    static const double weights[] = { 0.299, 0.587, 0.114 };
    double luma = 0;

    if (end - s < 5 || memcmp(s, "rgb", 3) != 0)
        return EBB_BACKGROUND_UNKNOWN;
    s += 3 + (s[3] == 'a');
    for (size_t i = 0; i < 3; i++) {
        double share;

        if (s >= end || *s++ != (i == 0 ? ':' : '/') || (share = read_share(&s, end)) < 0)
            return EBB_BACKGROUND_UNKNOWN;
        luma += weights[i] * share;
    }
    return luma > 0.5 ? EBB_BACKGROUND_LIGHT : EBB_BACKGROUND_DARK;
}

static bool begins(const char *s, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(s, with, strlen(with)) == 0;
}

/* One of a list of beginnings. */
static bool begins_with_one(const char *s, size_t n, const char *const *list)
{
    for (; *list; list++)
        if (begins(s, n, *list))
            return true;
    return false;
}

bool ebb_questions_has_links(const char *name)
{
    static const char *const kinds[] = { "foot", "xterm-kitty", "alacritty", "wezterm", "xterm-ghostty", "ghostty",
                                         "contour", "mintty", NULL };

    return begins_with_one(name, strlen(name), kinds);
}

/* XTVERSION's answer: a name and a version.  tmux passes links on since 3.4, to terminals that follow them. */
static bool version_has_links(const char *s, size_t n)
{
    static const char *const names[] = { "kitty", "foot", "WezTerm", "iTerm2", "VTE", "Konsole", "contour", "ghostty",
                                         "mintty", "tmux 3.4", "tmux 3.5", "tmux 3.6", "tmux 3.7", "tmux 3.8",
                                         "tmux 3.9", "tmux 4", "tmux next-3", NULL };

    return begins_with_one(s, n, names);
}

bool ebb_questions_take(ebb_term_answers *a, const char *s, size_t n)
{
    static const char color[] = "\033]11;", sync[] = "\033[?2026;",
                      version[] = "\033P>|";
    ebb_term_answers was = *a;

    if (begins(s, n, version)) {
        a->has_links |= version_has_links(s + sizeof version - 1, n - (sizeof version - 1));
    } else if (begins(s, n, color)) {
        ebb_background found = read_background(s + sizeof color - 1, s + n);
        a->background = found ? found : a->background;
    } else if (begins(s, n, sync)) {
        const char *value = s + sizeof sync - 1;
        a->has_sync |= n >= sizeof sync - 1 + 3 && (*value == '1' || *value == '2') && value[1] == '$';
    } else if (begins(s, n, "\033[?")) {
        a->has_key_protocol |= n > 4 && s[n - 1] == 'u';
        a->is_complete |= s[n - 1] == 'c';
    }
    return a->background != was.background || a->has_links != was.has_links || a->has_sync != was.has_sync ||
           a->has_key_protocol != was.has_key_protocol || a->is_complete != was.is_complete;
}
