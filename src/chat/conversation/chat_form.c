/* The form of a session's answers, as the user asks for it (chat.h): compiled beside the chat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_job.h"
#include "conversation/chat_priv.h"
#include "schema/answer_form.h"
#include "store/title.h"

enum { MAX_KEPT = 256 << 10 };   /* of a grammar: it is saved with the session, each time */

/* Some remote engines take no grammar, and say so before a question is lost on them. */
static ebb_status check_engine(const ebb_chat *c, ebb_error *err)
{
    const ebb_backend_facts *facts = ebb_chat_facts(c);

    if (facts && !facts->takes_grammar)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s (%s) takes no grammar; /engine here has this process answer",
                        facts->name, facts->kind);
    return EBB_OK;
}

void ebb_chat_tell_form(ebb_chat *c)
{
    bool is_schema;
    const char *name = ebb_chat_form(c, &is_schema);
    const char *what = is_schema ? "JSON under the schema" : "of the grammar";

    if (!name)
        ebb_chat_notice(c, "answers have no form; /schema FILE makes them JSON, /grammar FILE texts of a grammar");
    else
        ebb_chat_notice(c, "answers are %s%s%.200s from here on; /%s off frees them", what, *name ? " " : "", name,
                        is_schema ? "schema" : "grammar");
}

/* -- Compiling ----------------------------------------------------------------------------------- */

typedef struct form_job {
    char    *word;
    bool     is_schema;
    uint32_t generation;         /* of the session that asked */
    ebb_buf  grammar;
} form_job;

static void form_fini(void *arg)
{
    form_job *job = arg;

    ebb_buf_fini(&job->grammar);
    free(job->word);
    free(job);
}

static ebb_status form_run(void *arg, ebb_progress *p, ebb_error *err)
{
    form_job *job = arg;
    ebb_status st;

    (void)p;                                     /* what is compiled has limits: there is nothing to be stopped */
    st = job->is_schema ? ebb_answer_form_schema(job->word, "the schema", &job->grammar, err)
                        : ebb_answer_form_grammar(job->word, &job->grammar, err);

    if (st == EBB_OK && job->grammar.len > MAX_KEPT)
        st = EBB_FAIL(err, EBB_LIMIT, "its grammar has %zu KiB; a session keeps up to %d, `ebb run` takes more",
                      job->grammar.len >> 10, MAX_KEPT >> 10);
    if (st == EBB_OK && job->grammar.failed)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    return st;
}

/* NULL word: none. */
static void set_form(ebb_chat *c, bool is_schema, const char *word, ebb_buf *grammar)
{
    ebb_form_choice *f = &c->settings.form;

    ebb_form_choice_fini(f);
    f->is_schema = is_schema;
    f->grammar = word && grammar->len ? ebb_buf_take(grammar) : NULL;
    if (f->grammar && !(is_schema && ebb_answer_form_is_schema(word)))
        ebb_title_read(word, strlen(word), f->name, sizeof f->name);
    ebb_chat_save(c, false);
    ebb_chat_tell_form(c);
}

static ebb_status form_end(ebb_chat *c, void *arg, bool was_stopped, ebb_status st, ebb_error *err)
{
    form_job *job = arg;

    if (was_stopped)
        return EBB_FAIL(err, EBB_CANCELED, "stopped: answers keep the form they had");
    if (st == EBB_OK && job->generation != c->generation)
        return EBB_FAIL(err, EBB_CANCELED, "another session is open by now; its answers stay as they are");
    if (st == EBB_OK)
        set_form(c, job->is_schema, job->word, &job->grammar);
    return st;
}

static const ebb_chat_job_kind form_kind = { "compiling the form", form_run, form_end, form_fini };

ebb_status ebb_chat_set_form(ebb_chat *c, bool is_schema, const char *word, ebb_error *err)
{
    ebb_status st = ebb_chat_check_idle(c, err);
    bool is_off = strcmp(word, "off") == 0;
    form_job *job;

    if (st == EBB_OK && !is_off)
        st = check_engine(c, err);
    if (st != EBB_OK)
        return st;
    if (is_off) {
        set_form(c, is_schema, NULL, NULL);
        return EBB_OK;
    }
    job = calloc(1, sizeof *job);
    if (job)
        *job = (form_job){ .word = strdup(word), .is_schema = is_schema, .generation = c->generation };
    if (!job || !job->word) {
        free(job);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the form of answers");
    }
    return ebb_chat_job_start(c, &form_kind, job, err);
}

const char *ebb_chat_form(const ebb_chat *c, bool *is_schema)
{
    *is_schema = c->settings.form.is_schema;
    return c->settings.form.grammar ? c->settings.form.name : NULL;
}
