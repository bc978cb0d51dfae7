/* A chat whose model is the test: it says when it is ready, what it answers and when. */
#ifndef FAKE_CHAT_H
#define FAKE_CHAT_H
#include "backend/backend.h"
#include "conversation/chat.h"

ebb_chat *fake_chat_new(void);                   /* not ready yet; freed by ebb_chat_close */
void fake_ready(ebb_chat *c);
void fake_fail(ebb_chat *c, const char *line);   /* the model could not be loaded */
void fake_loading(ebb_chat *c, uint64_t done, uint64_t total);
void fake_text(ebb_chat *c, const char *s);      /* more of the answer */
void fake_text_n(ebb_chat *c, const char *s, size_t n);
void fake_done(ebb_chat *c, ebb_finish finish);
void fake_error(ebb_chat *c, const char *line);  /* this comes in place of an answer */
/* Process `writer` writes an answer to this question; fake_text and fake_done are what it does. */
void fake_attached(ebb_chat *c, long writer, const char *question);
/* The same on a branch that begins behind the first n messages. */
void fake_attached_after(ebb_chat *c, size_t n, long writer, const char *question);
void fake_notice(ebb_chat *c, const char *line);
uint32_t fake_n_answers(const ebb_chat *c);      /* asked for by the last retry */
ebb_stats *fake_stats(ebb_chat *c);
ebb_remote_figures *fake_remote(ebb_chat *c);    /* with a name the engine is elsewhere */
void fake_add(ebb_chat *c, ebb_role role, const char *text);   /* a finished message */
void fake_unsaved(ebb_chat *c, const char *line);        /* leaving fails with this, once */
/* Something long is under way and this far; NULL: no more.  Stopping ends it. */
void fake_job(ebb_chat *c, const char *what, double share);
void fake_refuse(ebb_chat *c, const char *line); /* the next send fails with this */

/* From now on every chat that is opened is ready at once and answers "You said: ..." itself. */
extern bool fake_echoes;
/* Such a chat begins with this question and this answer; NULL: with nothing. */
extern const char *fake_question, *fake_answer;
/* Called when a chat is opened, and then whenever nothing is left to be told of it (NULL: not). */
extern void (*fake_step)(ebb_chat *c);
/* The name of a third session, behind number 2 (trip) and number 1 (tree); NULL: there is none. */
extern const char *fake_third;

#endif
