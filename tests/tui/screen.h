/* A full screen in memory with a scripted chat: what test_app and test_fuzz drive. */
#ifndef SCREEN_H
#define SCREEN_H
#include "app/app.h"
#include "tui/fake_chat.h"
#include "tui/term_mem.h"

typedef struct screen {
    ebb_app   app;
    ebb_term *term;
    ebb_chat *chat;
    double    now;               /* seconds; moves when a test says so */
} screen;

void screen_open(screen *s, int rows, int cols, const char *state_dir);
/* With a model that is loaded, and figures of its engine. */
void screen_open_ready(screen *s, int rows, int cols);
void screen_open_inline(screen *s, int rows, int cols);
void screen_close(screen *s);
void screen_keys(screen *s, const char *bytes);  /* types, takes events, draws */
void screen_step(screen *s, double seconds);     /* time passes */
/* The model says `text`, and its answer ends there; a tenth of a second passes. */
void screen_answer(screen *s, const char *text);
/* A !command, or a filter, that waits for screen_go_on, which returns when it has ended. */
const char *screen_hold(const char *command);
void screen_go_on(screen *s);
/* Behind screen_open, until the next one. */
void screen_use_editor(const char *command);
/* Ctrl-G, with `command` as the user's editor, until that has ended. */
void screen_edit(screen *s, const char *command);
/* Until the user's editor has ended; the chat goes on. */
void screen_wait_editor(screen *s);
const char *screen_text(screen *s);
/* The test fails, and shows the screen, if the text is not there; if it is. */
void assert_has(screen *s, const char *want);
void assert_lacks(screen *s, const char *unwanted);

#endif
