/* tui/term/theme.h - faces: what a piece of the screen is; a theme gives each its
 * colours.  Nothing above term.h knows a colour.
 *
 * A theme file has one line per face:
 *
 *     face = foreground [background] [bold dim italic underline reverse]
 *
 * A colour is a name of the terminal's 16 (red, bright-red ...), 0..255, #rrggbb, or
 * `default`.  Colours that a terminal lacks become the nearest it has. */
#ifndef EBB_TUI_THEME_H
#define EBB_TUI_THEME_H
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "ebb/status.h"

#define EBB_FACE_MAP(X)                                                                     \
    X(TEXT, "text")             X(DIM, "dim")               X(USER, "user")                 \
    X(MODEL, "model")           X(SYSTEM, "system")         X(NOTICE, "notice")             \
    X(ERROR, "error")           X(TURN_STATS, "receipt")    X(BOLD, "bold")                 \
    X(ITALIC, "italic")         X(CODE, "code")             X(HEADING, "heading")           \
    X(MARKUP, "markup")         X(PROMPT, "prompt")         X(STATUS, "status")             \
    X(LABEL, "label")           X(VALUE, "value")           X(METER, "meter")               \
    X(METER_EMPTY, "meter-empty") X(METER_HIGH, "meter-high") X(PINNED, "layer-pinned")     \
    X(MAPPED, "layer-mapped")   X(READING, "layer-reading") X(DISK, "layer-disk")           \
    X(BORDER, "border")         X(SELECTION, "selection")   X(QUEUED, "queued")                 \
    X(LINK, "link")             X(THINKING, "thinking")     X(MATCH, "match")               \
    X(KEYWORD, "code-keyword")  X(STRING, "code-string")    X(COMMENT, "code-comment")      \
    X(NUMBER, "code-number")    X(NAME, "code-name")        X(ADDED, "code-added")          \
    X(REMOVED, "code-removed")

typedef enum ebb_face {
#define X(name, text) EBB_FACE_##name,
    EBB_FACE_MAP(X)
#undef X
    EBB_FACE_COUNT
} ebb_face;

enum { EBB_ATTR_BOLD = 1, EBB_ATTR_DIM = 2, EBB_ATTR_ITALIC = 4, EBB_ATTR_UNDERLINE = 8,
       EBB_ATTR_REVERSE = 16 };

#define EBB_COLOR_DEFAULT (-1)
#define EBB_COLOR_RGB     0x1000000      /* plus 0xrrggbb */

typedef struct ebb_style {
    int32_t fg, bg;              /* EBB_COLOR_DEFAULT, 0..255, or EBB_COLOR_RGB + rgb */
    uint8_t attrs;
} ebb_style;

typedef struct ebb_theme {
    char      name[64];
    ebb_style style[EBB_FACE_COUNT];
} ebb_theme;

/* Read a theme's text.  Faces that it does not name are plain text.  FORMAT: the
 * message begins with "where:line:"; *out is unchanged then. */
EBB_MUST_CHECK
ebb_status ebb_theme_parse(const char *text, size_t n, const char *where, const char *name,
                           ebb_theme *out, ebb_error *err);

/* The theme `name`: <config_dir>/themes/name.theme if there is one (config_dir
 * may be NULL), else one of those compiled in.  NOTFOUND names what there is. */
EBB_MUST_CHECK
ebb_status ebb_theme_load(const char *config_dir, const char *name, ebb_theme *out, ebb_error *err);
/* The theme for the background that $COLORFGBG tells ("0;15": black on white); NULL: it does
 * not. */
const char *ebb_theme_for_background(const char *colorfgbg);
/* Names compiled in; NULL past the last. */
const char *ebb_theme_builtin(size_t i);
/* All of them: "dark, light and mono". */
void ebb_theme_add_names(ebb_buf *out);

/* `color` in a terminal with n_colors (8, 16, 88, 256 or more): an index or EBB_COLOR_DEFAULT. */
int ebb_color_fit(int32_t color, int n_colors);

#endif
