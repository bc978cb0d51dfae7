/* tui/app/plain.h - the inside of the plain front end: lines in, lines out (plain*.c only).
 *
 * plain.c waits and reads, plain_message.c makes messages and commands of what was read,
 * plain_output.c prints what the chat has to say. */
#ifndef EBB_TUI_PLAIN_H
#define EBB_TUI_PLAIN_H
#include "app/stat_server.h"
#include "command/frontend.h"
#include "edit/attach.h"

enum { EBB_PLAIN_READ_BYTES = 64 << 10 };

/* Why a message is not whole, and so is not sent. */
typedef enum ebb_plain_loss {
    EBB_PLAIN_WHOLE,
    EBB_PLAIN_TOO_LONG,          /* it had more than EBB_PASTE_BYTES: the most of it is lost */
    EBB_PLAIN_CUT_LINE,          /* the terminal has kept only the beginning of a line */
} ebb_plain_loss;

typedef struct ebb_plain {
    ebb_frontend frontend;       /* first: commands get it and give it back */

    /* What was read. */
    char      in[EBB_PLAIN_READ_BYTES];  /* from in_at to in_end it is not in the message yet */
    size_t    in_at, in_end;
    ebb_buf   message;           /* the line under way, behind those that go on in it */
    size_t    n_open;            /* bytes of it in which quotes are not closed */
    ebb_plain_loss loss;         /* of the message */
    bool      is_end;            /* of standard input */
    bool      is_unreadable;     /* that end was an error */
    bool      is_terminal;

    /* What is being sent. */
    ebb_documents documents;
    ebb_buf   waiting;           /* a message whose documents are being read */
    bool      is_rewriting;      /* /edit N TEXT is under way: where it fails, nothing is edited any
                                  * more */

    /* What was printed. */
    size_t    n_shown;           /* bytes of the answer */
    ebb_buf   shown;             /* these */
    int64_t   shown_id;          /* of that answer, once it is kept; 0: none */
    unsigned  milestone;         /* quarters of the prompt that were announced */
    unsigned  pulled_quarter;    /* of a model that is fetched, likewise */
    size_t    n_known;           /* messages when last spoken of, and the id of the last one */
    int64_t   last_known;
    bool      has_told;          /* the command that is run has said itself what it did */
    bool      is_opening;        /* /load: its messages are shown once it is loaded */
    bool      has_prompt;        /* the output ends with "You: " */
    bool      in_answer;         /* "Model: " was printed */
    bool      at_line_start;
    bool      has_greeted;

    bool      has_failed;        /* no model: commands still work */
    int       signal;            /* that made us leave; 0: none */
    ebb_stat_server stat;
} ebb_plain;

/* -- plain_output.c ---------------------------------------------------------------- */
void ebb_plain_fresh_line(ebb_plain *p);         /* the output goes on at the beginning of one */
/* ebb_frontend.say of an ebb_plain. */
void ebb_plain_say(ebb_frontend *f, ebb_say kind, const char *text, size_t n);
void ebb_plain_show_history(ebb_plain *p);       /* what was said before, all of it */
/* true: the messages are not those that were last spoken of. */
bool ebb_plain_note_messages(ebb_plain *p);
void ebb_plain_take_events(ebb_plain *p);        /* print all that the chat has */
/* The text of an answer that is still generated counts as printed so far. */
void ebb_plain_skip_shown(ebb_plain *p);

/* -- plain_message.c --------------------------------------------------------------- */
bool ebb_plain_is_free(const ebb_plain *p);      /* what is typed can be sent */
/* What is read goes to the message, if that may be run now, up to the end of a line; true: it was
 * run, or goes on. */
bool ebb_plain_run_next_line(ebb_plain *p);
/* Ctrl-C at the prompt: lines of a message that goes on, or an edit that was begun.  false: there
 * is neither. */
bool ebb_plain_drop_message(ebb_plain *p);
/* Has a filter ended?  Then its message goes, unless it was stopped. */
void ebb_plain_documents_tick(ebb_plain *p);

#endif
