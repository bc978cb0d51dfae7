/* tui/command/frontend.h - what commands see of the screen or of the plain front end. */
#ifndef EBB_TUI_FRONTEND_H
#define EBB_TUI_FRONTEND_H
#include "conversation/chat.h"
#include "edit/typed.h"
#include "pull/pull_process.h"
#include "transcript/transcript.h"
#include "tui.h"

typedef enum ebb_view_act { EBB_VIEW_RAW, EBB_VIEW_BARE, EBB_VIEW_FIND,
                            EBB_VIEW_EDITING } ebb_view_act;

typedef struct ebb_frontend ebb_frontend;
struct ebb_frontend {
    ebb_chat           *chat;
    const ebb_tui_opts *opts;
    ebb_buf             config_dir, state_dir;   /* empty: none */
    char                theme[64];
    bool                has_chosen_theme;        /* by /theme */
    ebb_buf             model;                   /* path of the one that answers; empty: none yet */
    bool                quit;
    size_t              editing;                 /* /edit: what is sent next replaces message
                                                  * editing - 1; 0: none */
    ebb_buf             rewritten;               /* /edit N TEXT: the text; who has run the
                                                  * command takes it, and sends it as if it
                                                  * was typed; empty: none */
    bool                is_cutting;              /* /cut: what is sent next is how the last answer
                                                  * begins */
    ebb_pull_process    pull;                    /* /pull: a model on its way (pull_follow.h) */
    bool                has_warned_of_pull;      /* that leaving would end it */
    bool                has_warned_of_job;       /* the same of an import */
    /* One or more lines for the user; passes the display filter later. */
    void (*say)(ebb_frontend *f, ebb_say say, const char *text, size_t n);
    /* Offer text to be edited and sent again.  NULL: there is no editor. */
    void (*edit)(ebb_frontend *f, const char *text, size_t n);
    /* Have the user choose what follows `line`, a command and a blank.  NULL: there is no menu. */
    void (*pick)(ebb_frontend *f, const char *line);
    /* NULL: this front end has no colours, or no way to the terminal's clipboard. */
    ebb_status (*set_theme)(ebb_frontend *f, const char *name, ebb_error *err);
    void (*send)(ebb_frontend *f, const char *bytes, size_t n);
    /* NULL: there is one view only. */
    ebb_status (*view)(ebb_frontend *f, ebb_view_act act, const char *arg, ebb_error *err);
};

/* Fill directories and theme from opts; the rest is the front end's. */
void ebb_frontend_init(ebb_frontend *f, ebb_chat *chat, const ebb_tui_opts *opts);
void ebb_frontend_fini(ebb_frontend *f);
/* Offer text to be edited, as it must be typed (edit/typed.h). */
void ebb_frontend_offer(ebb_frontend *f, const char *text, size_t n);
/* A text that begins with """ goes on over line ends until they come again; not in the first n_open
 * bytes, as was found before. */
bool ebb_frontend_is_open(const char *s, size_t n, size_t n_open);
/* Take such quotes away from around s[0..n); other text stays as it is. */
void ebb_frontend_unquote(const char **s, size_t *n);
/* Send a message, or what /edit or /cut asked for. */
EBB_MUST_CHECK
ebb_status ebb_frontend_send(ebb_frontend *f, const char *text, size_t n, ebb_error *err);
/* What that would cost. */
bool ebb_frontend_preview(ebb_frontend *f, const char *text, size_t n, ebb_chat_cost *out);
/* The user types it and rests: what stays of it may be computed. */
void ebb_frontend_prefill(ebb_frontend *f, const char *text, size_t n);
/* Whether what is sent next replaces a message or the beginning of the last answer. */
bool ebb_frontend_edits(const ebb_frontend *f);
/* The message of this number (`editing`); for 0 (`is_cutting`) the last one; NULL: none. */
const ebb_message *ebb_frontend_edited(const ebb_frontend *f, size_t number);
/* Whether files that the text names go along: with a question.  All else is only text. */
bool ebb_frontend_takes_files(const ebb_frontend *f);
/* What went along with a question, by its number (`editing`), in front of its words: that goes
 * along again when it is edited.  The result: its bytes, valid until the next event or action. */
size_t ebb_frontend_kept_files(const ebb_frontend *f, size_t number, const char **files);
/* Append that, as it goes along in front of new words: none where these begin with files
 * themselves.  Behind it stands @name of each file that is one only because words name it, as what
 * has no ending, which these do not.  The result: the bytes of the files. */
size_t ebb_frontend_add_kept(const ebb_frontend *f, size_t number, const char *words,
                             size_t n_words, ebb_buf *out);
/* What is sent next is a message like any other. */
void ebb_frontend_leave_edit(ebb_frontend *f);
/* An empty line was entered: an answer that was stopped or cut goes on, a question that
 * has none gets one, a remote engine that is not connected is looked for.  False: nothing of it. */
bool ebb_frontend_go_on(ebb_frontend *f);
/* A model can answer: said, if another one did before. */
void ebb_frontend_ready(ebb_frontend *f);
/* Leave, unless something is not saved: then that is said first, and the second time counts. */
void ebb_frontend_quit(ebb_frontend *f);
void ebb_frontend_sayf(ebb_frontend *f, ebb_say say, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

#endif
