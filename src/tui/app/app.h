/* tui/app/app.h - the full screen as a state machine: inputs and chat events in, frames out.
 *
 * tui.c runs it on a real terminal; tests drive it on a terminal in memory with a scripted
 * chat.  One thread.  Time is given by the caller, in seconds.
 *
 *   +--------------------------+--------+
 *   | transcript               | panel  |   the panel from EBB_PANEL_WIDE columns on
 *   | ...                      |        |
 *   |--------------------------|        |
 *   | queued messages          |        |
 *   | > editor                 |        |
 *   |--------------------------|        |
 *   | status (one or two rows) |        |
 *   +--------------------------+--------+
 *
 * A menu covers the transcript's last rows while it is open.
 *
 * Inline, what is finished belongs to the terminal; below it stand what is still being
 * written, the editor, queued messages and the status row.
 */
#ifndef EBB_TUI_APP_H
#define EBB_TUI_APP_H
#include "app/greeting.h"
#include "app/menu.h"
#include "command/frontend.h"
#include "ebb/experimental/plan.h"
#include "edit/attach.h"
#include "edit/command_output.h"
#include "edit/documents.h"
#include "edit/editor.h"
#include "edit/history.h"
#include "edit/unsent.h"
#include "edit/vi.h"
#include "panel/panel.h"
#include "term/job.h"
#include "term/term.h"
#include "transcript/transcript.h"

typedef enum ebb_search_state { EBB_FIND_OFF, EBB_FIND_TYPING, EBB_FIND_GOING } ebb_search_state;

#define EBB_TEXT_COLUMNS 100     /* longer lines are hard to read */

/* What sending the typed text would cost. */
typedef struct ebb_preview {
    size_t   n_bytes, n_edits;   /* of the typed text it is about */
    double   due_s;              /* when to count; -1: it is counted */
    double   cost_s;             /* that counting took */
    bool     is_known, is_command;
    bool     is_counting;        /* now; whatever comes meanwhile goes before it */
    ebb_chat_cost cost;
    uint32_t n_read;             /* of cost.n_tokens, those that stand by now */
} ebb_preview;

/* What has the terminal in our place; all but drawing and typing goes on meanwhile. */
typedef struct ebb_external {
    enum { EBB_EXTERNAL_NONE, EBB_EXTERNAL_EDITOR, EBB_EXTERNAL_BARE } program;
    ebb_job  job;                /* the editor */
    char     path[512];          /* of the message file that it has */
    int      lock;               /* beside that; -1: none */
    double   began_s;            /* ebb_clock_s, when the editor did */
    bool     is_as_lent;         /* the text that it has given back */
    bool     has_more;           /* it was ended when we were, and left what only vi can read */
} ebb_external;

/* Messages that wait for their turn.  One that replaces another goes first: it is about what is
 * there now. */
typedef struct ebb_message_queue {
    struct ebb_queued {
        char *text;              /* marked */
        char *row;               /* what a row shows of it, before the display filter */
    }       *messages;
    size_t   n;
    uint32_t generation;         /* of the chat, when the last one came: they are for that
                                  * conversation */
    bool     is_held;            /* the question before them got an error in place of an answer */
    size_t   editing;            /* what the first one replaces, as ebb_frontend has it of the */
    bool     is_cutting;         /* input; the others are new */
    int64_t  edited_id;          /* of that message */
} ebb_message_queue;

/* Edits of the line (ebb_editor.n_edits) that something belongs to. */
typedef struct ebb_line_marks {
    size_t menu_edits, menu_caret;       /* the line that the menu was made for */
    bool   menu_typed;           /* its word has changed since, and ... */
    double menu_due_s;           /* ... when the list follows; -1: it is as it should be */
    size_t offered_edits;        /* the edit that put a text there which nobody typed, and which the
                                  * conversation has, too; 0: none */
    size_t rewritten_edits;      /* the edit that put the text of a command there: the history has
                                  * it in that; 0: none */
    size_t asked_edits;          /* the edit at which a word was asked about: a command, or a
                                  * message? */
    size_t document_edits;       /* the edit whose message is sent once its documents are read */
    bool   is_unsent_given;      /* is_given of the line that waits below the history's */
    size_t files_edits;          /* the edit at which files were asked about that a given line
                                  * names */
} ebb_line_marks;

/* What has come for the line while an editor or Ctrl-R had it; it is put there after that. */
typedef struct ebb_line_arrivals {
    ebb_buf front;               /* output of !command */
    ebb_buf behind;              /* messages that did not go; marked */
} ebb_line_arrivals;

/* Ctrl-R: what was typed before. */
typedef struct ebb_history_finder {
    bool    is_on;
    ebb_buf pattern, before;     /* before: the line as it was when the search began, ... */
    bool    was_given;           /* ... and its is_given */
    size_t  i_found;             /* shown; history.n: none yet */
} ebb_history_finder;

/* Ctrl-S: the transcript. */
typedef struct ebb_transcript_finder {
    ebb_search_state state;
    ebb_buf          text;
} ebb_transcript_finder;

/* What is typed, for the case of a kill -9. */
typedef struct ebb_autosave {
    ebb_unsent_file file;
    double          due_s;       /* when to keep it; -1: it is kept */
    size_t          n_edits;     /* changes of it, when it was looked at */
    size_t          n_queued;    /* messages that waited then */
    char            session[EBB_SESSION_KEY_BYTES];         /* whose it was when it was kept last */
} ebb_autosave;

/* An empty screen. */
typedef struct ebb_greeting {
    ebb_machine machine;
    bool        has_machine;
    bool        is_first_run;    /* nothing was ever typed here */
    bool        is_touched;      /* something was, since it was opened */
    ebb_greeting_meter *meter;   /* NULL: none was needed */
} ebb_greeting;

/* When to draw. */
typedef struct ebb_redraw {
    bool   is_dirty;             /* something on the screen is old */
    bool   is_urgent;            /* and a key did it: do not wait for the next frame */
    double drawn_s, figures_s;   /* when last */
    double pulled_s;             /* when it was last shown how far /pull is */
    int    n_settling;           /* slow looks at the figures left, after work has ended */
} ebb_redraw;

typedef struct ebb_app {
    ebb_frontend   frontend;     /* first: commands get it and give it back */
    ebb_term      *term;         /* not owned */
    ebb_transcript view;
    ebb_editor     editor;
    ebb_vi         vi;
    ebb_history    history;
    ebb_figures    figures;

    ebb_menu       menu;         /* to choose from what may be meant */
    ebb_line_marks marks;
    ebb_preview    preview;
    ebb_autosave   unsent;
    ebb_message_queue queue;
    ebb_line_arrivals arrived;
    ebb_history_finder search;
    ebb_transcript_finder find;
    ebb_greeting   greeting;
    ebb_redraw     frame;

    ebb_buf        hint;         /* shown in the status row until the next key */
    ebb_layout     layout;       /* F2, --status */
    bool           after_ctrl_x;
    ebb_external   external;     /* Ctrl-G, /bare */
    ebb_command_output output;   /* !command */
    ebb_documents  documents;    /* texts of attached files that are none */
    bool           is_stopping;  /* the answer was told to end and has not yet */
    bool           is_fullscreen; /* inline: the whole screen is taken */
    int            signal;       /* that made us leave; 0: none */
} ebb_app;

/* `term` must outlive the app, `chat` too.  Failing to read the history or
 * the theme is said in the transcript. */
void ebb_app_init(ebb_app *a, ebb_term *term, ebb_chat *chat, const ebb_tui_opts *opts);
/* Before fini, on leaving: messages that wait and the line under way are kept, and are in the
 * editor when the conversation is opened next; *has_unsent: there were any.  Errors: IO, NOMEM:
 * what was autosaved of them is what will be there, if *has_unsent. */
EBB_MUST_CHECK
ebb_status ebb_app_leave(ebb_app *a, bool *has_unsent, ebb_error *err);
void ebb_app_fini(ebb_app *a);

void ebb_app_input(ebb_app *a, const ebb_input *in);     /* one key, paste, resize or signal */
/* ebb_chat_opts.stop, for the ebb_app `arg`: between two inputs, Ctrl-C was pressed, or a signal
 * came that ends something; while costs are counted, any input. */
bool ebb_app_wants_stop(void *arg);
void ebb_app_events(ebb_app *a);                 /* take all that the chat has */
void ebb_app_tick(ebb_app *a, double now_s);     /* figures, if it is time */
void ebb_app_draw(ebb_app *a, double now_s);     /* a frame, if something is old and it is time */
/* How long nothing needs to happen but for inputs and events; -1: for ever. */
int  ebb_app_timeout_ms(const ebb_app *a, double now_s);

/* -- Between the files of the app: each calls only those below it ------------------------ */
void ebb_app_key(ebb_app *a, ebb_key key);       /* app_keys.c */
/* Ctrl-R's, with what it shows; typed text that this has replaced stays below it. */
void ebb_app_search_end(ebb_app *a);
void ebb_app_frame(ebb_app *a);                  /* app_draw.c */
/* What F2 changes, as a number that differs where the screen does. */
int  ebb_app_layout_shape(ebb_app *a);

/* app_inline.c.  Looking back or searching takes the whole screen until one is at the end again. */
bool ebb_app_inline_is_fullscreen(ebb_app *a);
/* is_end: the last one, everything moves to the scrollback. */
void ebb_app_inline_frame(ebb_app *a, bool is_end);

/* app_unsent.c: what was not sent the last time is offered. */
void ebb_app_restore_unsent(ebb_app *a);
bool ebb_app_unsent_save(ebb_app *a);            /* keep what is typed, now; false: it failed */
void ebb_app_unsent_tick(ebb_app *a, double now_s);      /* keep what is typed, if it is time */

/* app_menu.c: the menu of the line as it is by now, before it is drawn; its list follows what was
 * typed if it is time. */
void ebb_app_menu_tick(ebb_app *a, double now_s);
void ebb_app_menu_close(ebb_app *a);
bool ebb_app_menu_key(ebb_app *a, ebb_key key);  /* false: the key is not the menu's */
void ebb_app_pick(ebb_frontend *f, const char *line);

/* app_select.c; false: the key is not about a selected message. */
bool ebb_app_select_key(ebb_app *a, ebb_key key);
/* What can be done with it; nothing: none is selected. */
void ebb_app_select_status(const ebb_app *a, ebb_buf *out);

void ebb_app_find_begin(ebb_app *a);             /* app_find.c */
bool ebb_app_find(ebb_app *a, const char *text, size_t n);       /* false: it is nowhere */
bool ebb_app_find_key(ebb_app *a, ebb_key key);  /* false: the key is not the search's */
void ebb_app_find_leave(ebb_app *a);             /* the marks go; the window stays */
/* What is looked for; nothing: no search is on. */
void ebb_app_find_status(const ebb_app *a, ebb_buf *out);

void ebb_app_preview_tick(ebb_app *a, double now_s);     /* app_preview.c */
/* Nothing if there is little to say. */
void ebb_app_preview_text(const ebb_app *a, ebb_buf *out);

void ebb_app_external_editor(ebb_app *a);        /* app_external.c */
void ebb_app_bare(ebb_app *a);
bool ebb_app_is_lent(const ebb_app *a);          /* nothing may be drawn */
void ebb_app_external_tick(ebb_app *a);          /* has the editor ended? */
/* A key or a signal about stopping, while outside. */
void ebb_app_external_input(ebb_app *a, const ebb_input *in);
/* We are leaving: what the editor has saved is the unsent text. */
void ebb_app_external_end(ebb_app *a);
void ebb_app_suspend(ebb_app *a);

/* app_messages.c: what is typed becomes a message or a command. */
void ebb_app_submit(ebb_app *a);
/* Whether a line, here also without its marks, is a slash command: what is folded begins none. */
bool ebb_app_is_command(const ebb_buf *marked, const char *line);
/* Append the line marked[0..n), behind the files that it brings along: ebb_attach_expand. */
EBB_MUST_CHECK
ebb_status ebb_app_attach(ebb_app *a, const char *marked, size_t n, ebb_buf *out,
                          ebb_attached *files, ebb_error *err);
/* Has a filter ended?  The message that waits for its text is sent. */
void ebb_app_documents_tick(ebb_app *a, double now_s);
/* The line may become another one elsewhere: that message is sent by Enter only. */
void ebb_app_documents_await_enter(ebb_app *a);
void ebb_app_documents_stop(ebb_app *a);

/* app_queue.c: messages are sent, or wait. */
/* Send a message, or have it wait.  `line` as it was typed; `whole` as it is sent, with the files
 * that go with it; both marked.  false: it was refused, and is back in the editor. */
bool ebb_app_send_or_queue(ebb_app *a, const char *line, const char *whole);
/* The oldest waiting message, if it is its turn; all of them back into the editor if the
 * conversation is another one by now. */
void ebb_app_send_next(ebb_app *a);
/* After an error: what waits stays where it is while the question before it has no answer, since
 * it would take that question's place.  Enter asks that again. */
void ebb_app_hold_queue(ebb_app *a);
/* The newest waiting message, back into the editor; all of them. */
void ebb_app_unqueue(ebb_app *a);
void ebb_app_take_back_queue(ebb_app *a);

/* app_line.c: what comes to the line from elsewhere. */
/* A message that did not go, marked: behind what is typed by now. */
void ebb_app_put_back(ebb_app *a, const char *text);
/* Has the command of !command ended?  Its output goes to the beginning of the line, once that is
 * the user's; so does what came back meanwhile. */
void ebb_app_output_tick(ebb_app *a, double now_s);

/* app_hint.c: in the status row until the next key. */
void ebb_app_hint(ebb_app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ebb_app_say_error(ebb_app *a, const ebb_error *err);         /* in the transcript */
/* The same as a hint if all of it can be seen there. */
void ebb_app_hint_error(ebb_app *a, const ebb_error *err);
/* The same of a file that an editor left, and that is not removed. */
void ebb_app_hint_left(ebb_app *a, const ebb_error *err);

/* app_rows.c: rows that the full screen and the inline region share. */
/* Nothing: the figures have the row. */
void ebb_app_status_message(const ebb_app *a, ebb_buf *out);
int  ebb_app_queue_rows(const ebb_app *a);
void ebb_app_draw_queue(ebb_app *a, int row, int n, int cols);
bool ebb_app_greets(const ebb_app *a);           /* nothing was said or asked yet */
int  ebb_app_greeting_rows(ebb_app *a, int cols);                        /* that it would take */
int  ebb_app_draw_greeting(ebb_app *a, int row, int rows, int cols);      /* rows taken */
void ebb_app_draw_prompt(ebb_app *a, int row, int rows, int cols, int *caret_row, int *caret_col);

#endif
