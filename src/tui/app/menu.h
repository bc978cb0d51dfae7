/* tui/app/menu.h - what may be meant by what is being typed, to choose from: commands behind /,
 * their arguments, files behind @.  The candidates are collected once for a place in the line;
 * while the word grows they are only sorted. */
#ifndef EBB_TUI_MENU_H
#define EBB_TUI_MENU_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "term/term.h"

#define EBB_MENU_ROWS 8

typedef struct ebb_menu_item {
    char *text, *note;           /* what is put into the line; what is said of it, or "" */
    int   score;                 /* how well it fits what was typed; < 0: not at all */
} ebb_menu_item;

typedef struct ebb_menu {
    ebb_menu_item *items;
    size_t  n_items, cap_items;
    size_t *shown, n_shown;      /* items that fit, the best first */
    ebb_buf source;              /* what the items are of: the line before the word, and the word's
                                  * folder */
    size_t  at;                  /* where the word begins in the line */
    size_t  selected, top;       /* of `shown` */
    bool    is_open;
    bool    is_file;             /* the word is a file's, behind @ */
    bool    is_picked;           /* a command has put the line there, which Esc takes away again */
    bool    is_chosen;           /* an arrow has moved the selection: Enter takes it */
    bool    is_previewed;        /* the screen has the colours of the theme that is selected */
} ebb_menu;

void ebb_menu_fini(ebb_menu *m);
/* Forget the items; those of `source` come next. */
void ebb_menu_begin(ebb_menu *m, const char *source);
/* An item more; arg is the menu (an ebb_candidate_fn). */
void ebb_menu_add(void *arg, const char *text, const char *note);
/* Sort by how well the items fit what was typed, and select the first. */
void ebb_menu_match(ebb_menu *m, const char *typed);
void ebb_menu_move(ebb_menu *m, int direction);
/* The selected item; NULL: there is none. */
const ebb_menu_item *ebb_menu_selected(const ebb_menu *m);
/* Rows that it wants; 0: it is not open. */
int  ebb_menu_rows(const ebb_menu *m);
/* Draw it into `rows` rows of columns [0, cols). */
void ebb_menu_draw(ebb_menu *m, ebb_term *term, int row, int rows, int cols);

#endif
