/* tui/edit/vi.h - vi's keys over the editor: insert and normal mode, counts, operators, motions,
 * `.`
 *
 * Commands and motions are tables (vi.c, vi_motion.c).  The unnamed register is the
 * editor's newest kill, so that what was cut with one set of keys is put with the other.
 *
 *     vi_key -> insert mode: the key is the caller's, and remembered for `.`
 *            -> normal mode: [count] operator [count] motion | [count] command
 *
 * Left out, since the text is a message and not a file: `:`, marks, macros, visual mode. */
#ifndef EBB_TUI_VI_H
#define EBB_TUI_VI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edit/editor.h"

#define EBB_VI_KEYS 1024         /* of a change that `.` repeats; a longer one is not repeated */

typedef enum ebb_vi_act {
    EBB_VI_PASS,                 /* not vi's: the caller goes on with the key */
    EBB_VI_DONE,
    EBB_VI_BACK, EBB_VI_FORWARD, /* to the line before or after, of what was typed before */
    EBB_VI_SEARCH,               /* look for a line among them */
    EBB_VI_OLDER, EBB_VI_NEWER,  /* n, N: the next place of what was looked for */
} ebb_vi_act;

typedef struct ebb_vi_find {     /* f F t T */
    char     kind;               /* 0: none yet */
    uint32_t code;
    bool     is_big;             /* W B E instead: only white space parts words */
    bool     is_again;           /* ; and , */
} ebb_vi_find;

typedef struct ebb_vi {
    bool     is_on;
    bool     is_normal;
    unsigned count;              /* typed so far; 0: none */
    unsigned op_count;           /* in front of the operator */
    char     op;                 /* operator that waits for its motion: d c y; 0: none */
    char     wait;               /* r f F t T: waits for a character; 0: none */
    bool     is_linewise;        /* what was cut last are whole lines ... */
    bool     is_blank;           /* ... of no text: an empty one, which the editor's kills lack */
    size_t   n_kills;            /* the editor's then: other keys may have cut something since */
    ebb_vi_find find;

    ebb_key  keys[EBB_VI_KEYS], change[EBB_VI_KEYS];     /* of this command; of the last change */
    size_t   n_keys, n_change, i_insert;                 /* i_insert: first key that was inserted */
    unsigned n_inserts;          /* times what is inserted is to stand there ... */
    bool     opens_lines;        /* ... each on a line of its own: o, O */
    bool     is_change, is_replay;
} ebb_vi;

/* A zeroed ebb_vi is off.  On: insert mode. */
void ebb_vi_set(ebb_vi *v, ebb_editor *e, bool is_on);
/* The text was sent or replaced: insert mode, nothing pending. */
void ebb_vi_reset(ebb_vi *v, ebb_editor *e);
ebb_vi_act ebb_vi_key(ebb_vi *v, ebb_editor *e, ebb_key key);
/* What is pending, as it was typed: "2d". */
void ebb_vi_pending(const ebb_vi *v, ebb_buf *out);

/* -- vi_motion.c ---------------------------------------------------------------------- */

typedef struct ebb_vi_motion {
    uint32_t key;
    /* One step; `at`: there is none. */
    size_t (*go)(const ebb_editor *e, size_t at, ebb_vi_find find);
    bool     is_inclusive;       /* an operator takes the character it ends on, too */
} ebb_vi_motion;

/* The motion of a key; NULL: it is none. */
const ebb_vi_motion *ebb_vi_motion_of(uint32_t key);
/* `;` and `,`: the motion of a find, in its direction or the other. */
const ebb_vi_motion *ebb_vi_motion_find(char kind, bool is_reversed);
/* The character before or after, of the same line; `at`: there is none. */
size_t ebb_vi_beside(const ebb_editor *e, size_t at, bool is_before);
/* Where cw ends: at the word's end, not at the next word. */
size_t ebb_vi_change_end(const ebb_editor *e, size_t at, unsigned count, bool is_big);
size_t ebb_vi_first_nonblank(const ebb_editor *e, size_t at);

#endif
