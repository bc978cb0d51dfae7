/* tui/term/keys.h - bytes of a terminal to keys, pastes and nothing else.
 *
 * The decoder is fed what one read gave.  A lone ESC at the end of a read is
 * ambiguous (the key, or the beginning of a sequence that the link cut): it waits for
 * EBB_KEYS_WAIT_MS, then ebb_keys_flush makes it a key.  ESC and a character in
 * one read is Alt and that character.
 *
 * Answers of the terminal to questions are no keys.  One that the link cut is waited for longer,
 * EBB_KEYS_WAIT_MS 25 times: its rest would be text.
 *
 * A paste of which the end never comes (a link that lost it, a terminal that is broken) would keep
 * every key: whoever reads ends it by ebb_keys_end_paste.
 *
 * On their second screen many terminals send the wheel as arrows, three or more in one piece: where
 * has_wheel is set, Up and Down of such a run become PgUp and PgDn with Shift, which move by one
 * row.  Elsewhere they are keys that a slow link has brought together. */
#ifndef EBB_TUI_KEYS_H
#define EBB_TUI_KEYS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define EBB_KEYS_WAIT_MS 40

enum { EBB_MOD_ALT = 1, EBB_MOD_CTRL = 2, EBB_MOD_SHIFT = 4 };

/* Beyond Unicode: keys that are no characters. */
enum {
    EBB_KEY_UP = 0x110000, EBB_KEY_DOWN, EBB_KEY_LEFT, EBB_KEY_RIGHT,
    EBB_KEY_HOME, EBB_KEY_END, EBB_KEY_PGUP, EBB_KEY_PGDN,
    EBB_KEY_INSERT, EBB_KEY_DELETE, EBB_KEY_BACKSPACE,
    EBB_KEY_TAB, EBB_KEY_ENTER, EBB_KEY_ESC,
    EBB_KEY_F1, EBB_KEY_F12 = EBB_KEY_F1 + 11,
};

/* code: a Unicode scalar value or EBB_KEY_*.  Ctrl-A is 'a' with CTRL, Ctrl-J
 * 'j' with CTRL; Enter, Tab, Esc and Backspace have codes of their own. */
typedef struct ebb_key {
    uint32_t code;
    uint8_t  mods;
} ebb_key;

/* Of one paste; a message of more is none that a chat template renders. */
#define EBB_PASTE_BYTES (16u << 20)

typedef enum ebb_input_kind {
    EBB_INPUT_NONE,
    EBB_INPUT_KEY,
    EBB_INPUT_PASTE,             /* text, n: unfiltered, line ends are \n; n_lost */
    EBB_INPUT_RESIZE,
    EBB_INPUT_RESUME,            /* back from a stop: everything is to be drawn anew */
    EBB_INPUT_SUSPEND,           /* asked to stop */
    EBB_INPUT_CHILD,             /* a program that we run has stopped or ended */
    EBB_INPUT_STOP,              /* another process wants the answer stopped */
    EBB_INPUT_SHARE,             /* another process wants the model, too */
    EBB_INPUT_SIGNAL,            /* number: leave */
    EBB_INPUT_HANGUP,            /* the terminal is gone */
    EBB_INPUT_REPLY,             /* the terminal has said something of itself (ebb_term.answers) */
} ebb_input_kind;

typedef struct ebb_input {
    ebb_input_kind kind;
    ebb_key        key;
    int            number;
    const char    *text;         /* valid until the next call */
    size_t         n;            /* EBB_PASTE_BYTES at most */
    size_t         n_lost;       /* bytes of the paste that were more, or for which there was no
                                  * memory */
} ebb_input;

typedef struct ebb_keys {
    ebb_buf in;                  /* bytes not yet decoded */
    size_t  at;                  /* of these, how many are decoded */
    ebb_buf paste;               /* the one under way, or given out with the last call */
    size_t  n_lost;              /* of it */
    bool    in_paste;
    bool    has_wheel;           /* set by the caller: runs of arrows are steps of the wheel */
    size_t  n_wheel;             /* arrow keys to come that are steps of the wheel */
    bool    expects_reply;       /* set by the caller: a lone ESC may begin one, too */
    int     n_patience;          /* deadlines granted to a reply that is incomplete */
} ebb_keys;

void ebb_keys_fini(ebb_keys *k);
/* Take what one read gave; a zeroed decoder is ready.  Without memory the bytes are lost. */
void ebb_keys_feed(ebb_keys *k, const char *bytes, size_t n);
/* The next key or paste; false if more bytes are needed. */
bool ebb_keys_next(ebb_keys *k, ebb_input *out);
/* Take the first whole answer of the terminal, a private control sequence or a control string, out
 * of what is not decoded, also from behind keys; false: there is none.  What is pasted is none. */
bool ebb_keys_take_reply(ebb_keys *k, ebb_buf *out);
/* Take the first Ctrl-C out of what is not decoded, also from behind other keys, which stay; false:
 * there is none.  What is pasted is none. */
bool ebb_keys_take_interrupt(ebb_keys *k);
/* The end of the paste under way does not come: what there is of it is the next input. */
void ebb_keys_end_paste(ebb_keys *k, ebb_input *out);
/* Bytes wait for the rest of a sequence. */
bool ebb_keys_is_waiting(const ebb_keys *k);
/* The rest does not come: take what there is.  Call ebb_keys_next after. */
bool ebb_keys_flush(ebb_keys *k, ebb_input *out);

#endif
