/* Themes: reading, finding, fitting colours (theme.h). */
#include "term/theme.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/embed.h"
#include "base/text.h"
#include "os/file.h"

enum { THEME_BYTES_MAX = 64 << 10 };

/* The files of themes/ that are part of the program. */
EBB_EMBED(ebb_theme_text_dark, "themes/dark.theme");
EBB_EMBED(ebb_theme_text_light, "themes/light.theme");
EBB_EMBED(ebb_theme_text_contrast, "themes/contrast.theme");
EBB_EMBED(ebb_theme_text_dusk, "themes/dusk.theme");
EBB_EMBED(ebb_theme_text_ansi, "themes/ansi.theme");
EBB_EMBED(ebb_theme_text_mono, "themes/mono.theme");

static const struct builtin { const char *name, *text, *end; } builtins[] = {
    { "dark", ebb_theme_text_dark, ebb_theme_text_dark_end },
    { "light", ebb_theme_text_light, ebb_theme_text_light_end },
    { "contrast", ebb_theme_text_contrast, ebb_theme_text_contrast_end },
    { "dusk", ebb_theme_text_dusk, ebb_theme_text_dusk_end },
    { "ansi", ebb_theme_text_ansi, ebb_theme_text_ansi_end },
    { "mono", ebb_theme_text_mono, ebb_theme_text_mono_end },
};

static const char *const color_names[16] = {
    "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    "bright-black", "bright-red", "bright-green", "bright-yellow",
    "bright-blue", "bright-magenta", "bright-cyan", "bright-white",
};
static const char *const attr_names[] = { "bold", "dim", "italic", "underline", "reverse" };

/* As themes spell it: "meter-empty". */
static const char *face_name(ebb_face face)
{
    static const char *const names[] = {
#define X(name, text) text,
        EBB_FACE_MAP(X)
#undef X
    };
    return names[face];
}

const char *ebb_theme_for_background(const char *colorfgbg)
{
    const char *last = colorfgbg ? strrchr(colorfgbg, ';') : NULL;
    char *end;
    unsigned long background = last ? strtoul(last + 1, &end, 10) : 0;

    if (!last || end == last + 1 || *end || background > 15)
        return NULL;
    return background == 7 || background > 8 ? "light" : "dark";
}

const char *ebb_theme_builtin(size_t i)
{
    return i < sizeof builtins / sizeof *builtins ? builtins[i].name : NULL;
}

static bool parse_color(const char *word, int32_t *out)
{
    char *end;
    unsigned long n;

    if (strcmp(word, "default") == 0) {
        *out = EBB_COLOR_DEFAULT;
        return true;
    }
    for (int i = 0; i < 16; i++)
        if (strcmp(word, color_names[i]) == 0) {
            *out = i;
            return true;
        }
    if (word[0] == '#') {
        n = strtoul(word + 1, &end, 16);
        *out = EBB_COLOR_RGB + (int32_t)(n & 0xFFFFFF);
        return *end == '\0' && strlen(word) == 7;
    }
    n = strtoul(word, &end, 10);
    *out = (int32_t)(n & 255);
    return *end == '\0' && word[0] >= '0' && word[0] <= '9' && n <= 255;
}

static int find_face(const char *word)
{
    for (int f = 0; f < EBB_FACE_COUNT; f++)
        if (strcmp(word, face_name((ebb_face)f)) == 0)
            return f;
    return -1;
}

static int find_attr(const char *word)
{
    for (size_t i = 0; i < sizeof attr_names / sizeof *attr_names; i++)
        if (strcmp(word, attr_names[i]) == 0)
            return (int)i;
    return -1;
}

/* Words after '=': at most two colours, then attributes. */
static ebb_status parse_style(char *words, const char *where, int line, ebb_style *out, ebb_error *err)
{
    char *save = NULL;
    int n_colors = 0;
    bool has_attr = false;

    *out = (ebb_style){ EBB_COLOR_DEFAULT, EBB_COLOR_DEFAULT, 0 };
    for (char *w = strtok_r(words, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
        int attr = find_attr(w);
        if (strcmp(w, "#") == 0)
            break;                               /* the rest is a comment */
        if (attr >= 0) {
            out->attrs |= (uint8_t)(1 << attr);
            has_attr = true;
        } else if (has_attr || n_colors == 2 || !parse_color(w, n_colors ? &out->bg : &out->fg)) {
            return EBB_FAIL(err, EBB_FORMAT, "%s:%d: '%.40s' is not a colour or attribute that belongs here",
                            where, line, w);
        } else {
            n_colors++;
        }
    }
    return EBB_OK;
}

static ebb_status parse_line(char *s, const char *where, int line, ebb_theme *theme, ebb_error *err)
{
    char *eq, *end;
    int face;

    s += strspn(s, " \t\r");
    if (*s == '\0' || *s == '#')
        return EBB_OK;
    eq = strchr(s, '=');
    if (!eq)
        return EBB_FAIL(err, EBB_FORMAT, "%s:%d: expected face = colours", where, line);
    for (end = eq; end > s && (end[-1] == ' ' || end[-1] == '\t'); end--)
        ;
    *end = '\0';
    face = find_face(s);
    if (face < 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s:%d: there is no face '%.40s'", where, line, s);
    return parse_style(eq + 1, where, line, &theme->style[face], err);
}

ebb_status ebb_theme_parse(const char *text, size_t n, const char *where, const char *name,
                           ebb_theme *out, ebb_error *err)
{
    ebb_theme theme = { 0 };
    size_t n_mark = ebb_text_mark(text, n);
    char line[256];
    ebb_status st = EBB_OK;

    snprintf(theme.name, sizeof theme.name, "%s", name);
    for (int f = 0; f < EBB_FACE_COUNT; f++)
        theme.style[f] = (ebb_style){ EBB_COLOR_DEFAULT, EBB_COLOR_DEFAULT, 0 };
    text += n_mark;
    n -= n_mark;
    for (int i = 1; st == EBB_OK && n > 0; i++) {
        const char *nl = memchr(text, '\n', n);
        size_t len = nl ? (size_t)(nl - text) : n;
        if (len >= sizeof line || memchr(text, '\0', len))
            return EBB_FAIL(err, EBB_FORMAT, "%s:%d: this line is too long, or not text", where, i);
        memcpy(line, text, len);
        line[len] = '\0';
        st = parse_line(line, where, i, &theme, err);
        len += nl != NULL;
        text += len;
        n -= len;
    }
    if (st == EBB_OK)
        *out = theme;
    return st;
}

void ebb_theme_add_names(ebb_buf *out)
{
    const char *name;

    for (size_t i = 0; (name = ebb_theme_builtin(i)) != NULL; i++)
        ebb_buf_addf(out, "%s%s", i == 0 ? "" : ebb_theme_builtin(i + 1) ? ", " : " and ", name);
}

static ebb_status theme_not_found(const char *name, ebb_error *err)
{
    ebb_buf names = { 0 };
    ebb_status st;

    ebb_theme_add_names(&names);
    st = EBB_FAIL(err, EBB_NOTFOUND, "there is no theme '%.60s'; built in are %s", name, ebb_buf_text(&names));
    ebb_buf_fini(&names);
    return st;
}

ebb_status ebb_theme_load(const char *config_dir, const char *name, ebb_theme *out, ebb_error *err)
{
    ebb_buf path = { 0 }, text = { 0 };
    ebb_status st = EBB_NOTFOUND;

    if (strchr(name, '/') || name[0] == '.' || name[0] == '\0')
        return theme_not_found(name, err);
    if (config_dir) {
        ebb_buf_addf(&path, "%s/themes/%s.theme", config_dir, name);
        if (path.failed)
            st = EBB_FAIL(err, EBB_NOMEM, "theme %.60s: no memory", name);
        else
            st = ebb_file_slurp_kept(path.data, THEME_BYTES_MAX, &text, err);
        if (st == EBB_OK)
            st = ebb_theme_parse(ebb_buf_text(&text), text.len, path.data, name, out, err);
    }
    ebb_buf_fini(&path);
    ebb_buf_fini(&text);
    if (st != EBB_NOTFOUND)
        return st;
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return ebb_theme_parse(builtins[i].text, (size_t)(builtins[i].end - builtins[i].text),
                                   name, name, out, err);
    return theme_not_found(name, err);
}

/* -- Fitting colours -------------------------------------------------------- */

static int32_t rgb_of_16(int i)
{
    static const int32_t rgb[16] = {
        0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5,
        0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF,
    };
    return rgb[i];
}

static int32_t rgb_of(int i)
{
    static const int step[6] = { 0, 95, 135, 175, 215, 255 };

    if (i < 16)
        return rgb_of_16(i);
    if (i >= 232)
        return (8 + 10 * (i - 232)) * 0x010101;
    i -= 16;
    return step[i / 36] << 16 | step[i / 6 % 6] << 8 | step[i % 6];
}

static int color_distance(int32_t a, int32_t b)
{
    int red = (a >> 16) - (b >> 16), green = (a >> 8 & 255) - (b >> 8 & 255), blue = (a & 255) - (b & 255);

    return 2 * red * red + 4 * green * green + 3 * blue * blue;
}

int ebb_color_fit(int32_t color, int n_colors)
{
    int32_t rgb = color & 0xFFFFFF;
    int first = 0, last, best = 0, least = INT_MAX;

    if (color == EBB_COLOR_DEFAULT || n_colors < 8)
        return EBB_COLOR_DEFAULT;
    if (color < EBB_COLOR_RGB) {
        if (color < n_colors)
            return color;
        if (color < 16)
            return color - 8;                    /* bright ones as the plain ones */
        rgb = rgb_of(color);
    }
    if (n_colors >= 256)
        first = 16;                              /* the first 16 are the user's own */
    last = n_colors >= 256 ? 255 : n_colors >= 16 ? 15 : 7;
    for (int i = first; i <= last; i++)
        if (color_distance(rgb, rgb_of(i)) < least) {
            least = color_distance(rgb, rgb_of(i));
            best = i;
        }
    return best;
}
