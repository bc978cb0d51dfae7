/* tui/term/questions.h - what a terminal is asked when it is opened, and what it has answered.
 *
 * All questions go out in one write.  The last one (DA1) is answered by nearly every terminal, and
 * answers come in order: once it is answered, nothing else will come.  Nobody has to wait for
 * answers: they are taken out of the input whenever they come (ebb_keys_take_reply).
 *
 *     OSC 11 ; ? ST        the background's colour           xterm, "Operating System Commands"
 *     CSI ? 2026 $ p       is output synchronized? DECRQM    the specification of mode 2026
 *     CSI ? u              the keyboard protocol's flags     kitty, "Keyboard protocol"
 *     CSI > q              who are you? XTVERSION            xterm, "Functions using CSI"
 *     CSI c                what are you? DA1                 DEC STD 070 */
#ifndef EBB_TUI_QUESTIONS_H
#define EBB_TUI_QUESTIONS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef enum ebb_background { EBB_BACKGROUND_UNKNOWN, EBB_BACKGROUND_DARK,
                              EBB_BACKGROUND_LIGHT } ebb_background;

typedef struct ebb_term_answers {
    ebb_background background;
    bool has_sync;               /* a frame may be announced, and is shown as a whole */
    bool has_key_protocol;       /* keys may come as CSI u, without ambiguity */
    bool has_links;              /* it is one that follows OSC 8 */
    bool is_complete;            /* the last question is answered */
} ebb_term_answers;

/* Terminals that obey or swallow control strings; the others are asked nothing. */
bool ebb_questions_suit(const char *term_name);
/* Append the questions.  `program` ($TERM_PROGRAM, may be NULL): Apple's Terminal would draw the
 * end of DECRQM and is not asked it. */
void ebb_questions_add(ebb_buf *out, const char *program);
/* Terminals that follow addresses behind cells (OSC 8), by the name of their kind. */
bool ebb_questions_has_links(const char *term_name);
/* s[0..n) is one control sequence that the terminal sent; what is no answer changes nothing.  true:
 * something is known now that was not. */
bool ebb_questions_take(ebb_term_answers *a, const char *s, size_t n);

/* A frame begins and ends, for terminals that have_sync. */
#define EBB_SYNC_BEGIN "\033[?2026h"
#define EBB_SYNC_END   "\033[?2026l"
#define EBB_SYNC_FROM_BYTES 128  /* less arrives in one piece as it is */
/* The keyboard protocol, for terminals that have it: keys without ambiguity, with what Shift makes
 * of them.  Each screen of a terminal keeps flags of its own. */
#define EBB_KEY_PROTOCOL_ON  "\033[>5u"
#define EBB_KEY_PROTOCOL_OFF "\033[<u"

#endif
