/* A turn as a table: in which state what may happen, what is done then, and which state follows (chat_turn.h). */
#include <assert.h>
#include <string.h>

#include "backend/sampling_bits.h"
#include "base/clock.h"
#include "conversation/chat_priv.h"
#include "conversation/template_choice.h"
#include "models/models.h"
#include "turn/replan.h"

typedef enum turn_event {
    NOTHING,
    /* From the user. */
    BEGIN, STOP, FREE, OPEN, RESIZE,
    /* From the backend. */
    READY, FAILED, TOKEN, END,
    /* Raised by what was done: no model; an answer or a summary has been asked for; the model is being opened with a
     * larger context, with a question that waits for it or without; an answer, a summary has ended; a server has no
     * room for the prompt; the model is there for the question that waited. */
    UNOPENED, ANSWERS, SUMS_UP, GROWS, GROWS_ASKED, ENDED, SUMMED_UP, REFUSED, WAITED,
} turn_event;

typedef struct turn_input {
    bool                     continues;  /* BEGIN */
    ebb_overflow_next        next;       /* FREE, SUMMED_UP */
    const char              *path;       /* OPEN */
    uint32_t                 n_ctx;      /* RESIZE: this context, or ... */
    uint64_t                 ram_bytes;  /* ... what is planned for this budget, if it is not 0 */
    const ebb_backend_event *ev;         /* of the backend */
    turn_event               raises;     /* what happens next, at once; set by an action */
} turn_input;

/* On failure the state stays, and what is raised happens all the same. */
typedef ebb_status turn_action(ebb_chat *c, turn_input *in, ebb_error *err);

/* -- Beginning an answer ---------------------------------------------------------------- */

static void set_date_once(ebb_chat *c)
{
    if (c->facts.pinned_ms == 0)
        c->facts.pinned_ms = ebb_clock_unix_ms();
}

/* What was asked waits: for the user, for a summary, for the model.  Where there is no user its turn has come all the
 * same: what others ask meanwhile waits for it. */
static void save_deferred(ebb_chat *c)
{
    ebb_chat_save(c, true);
    if (c->overflow.is_unattended)
        (void)ebb_chat_lock_writer(c);
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
}

static turn_event event_of(ebb_overflow_outcome outcome, ebb_overflow_next next)
{
    bool is_asked = next == EBB_NEXT_ANSWER || next == EBB_NEXT_CONTINUE;

    switch (outcome) {
    case EBB_OVERFLOW_SUMMING_UP: return SUMS_UP;
    case EBB_OVERFLOW_GROWING: return is_asked ? GROWS_ASKED : GROWS;
    default: return NOTHING;
    }
}

static ebb_status begin_answer(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_overflow_next next = in->continues ? EBB_NEXT_CONTINUE : EBB_NEXT_ANSWER;
    ebb_overflow_outcome outcome = EBB_OVERFLOW_RESOLVED;
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    size_t n_nodes = c->tree.n_nodes;
    ebb_prompt p = { 0 };
    ebb_status st;

    set_date_once(c);
    st = in->continues && leaf ? ebb_turn_check_continue(c, &leaf->m, err) : EBB_OK;
    if (st == EBB_OK)
        st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, err);
    if (st == EBB_OK)
        st = ebb_overflow_resolve(c, &p, next, &outcome, err);
    if (st == EBB_OK && outcome == EBB_OVERFLOW_RESOLVED) {
        st = ebb_chat_record_ids(c, &p) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
        if (st == EBB_OK)
            st = ebb_turn_request_at_leaf(c, &p, in->continues, err);
        in->raises = st == EBB_OK ? ANSWERS : NOTHING;
    } else if (st == EBB_OK) {
        c->turn.continues = in->continues;
        in->raises = event_of(outcome, next);
        save_deferred(c);
    }
    ebb_prompt_fini(&p);
    if (st == EBB_OK)
        return EBB_OK;
    c->turn.n_wanted = 0;
    in->raises = c->backend ? NOTHING : UNOPENED;        /* it was closed for a larger context that could not be had */
    while (c->tree.n_nodes > n_nodes)
        ebb_tree_drop_newest(&c->tree);
    if (ebb_tree_leaf(&c->tree) != leaf && !ebb_tree_set_leaf(&c->tree, leaf))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the path");
    return st;
}

/* Of the user, not of a full context that was made larger: the limit begins anew. */
static ebb_status begin_asked_answer(ebb_chat *c, turn_input *in, ebb_error *err)
{
    c->turn.n_spent = 0;
    return begin_answer(c, in, err);
}

static ebb_status defer_question(ebb_chat *c, turn_input *in, ebb_error *err)
{
    if (in->continues)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    c->turn.n_spent = 0;
    set_date_once(c);
    c->turn.continues = false;
    save_deferred(c);
    return EBB_OK;
}

/* A remote engine is perhaps there by now. */
static ebb_status reopen_engine(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_status st;

    if (!c->remote.name || in->continues)
        return EBB_FAIL(err, EBB_NOTFOUND, "no model is loaded: /model FILE loads one%s",
                        c->remote.name ? ", /engine another engine" : "");
    st = ebb_chat_open_backend(c, NULL, err);
    in->raises = st == EBB_OK ? BEGIN : NOTHING;
    return st;
}

static ebb_status withdraw_question(ebb_chat *c, turn_input *in, ebb_error *err)
{
    (void)in, (void)err;
    c->turn.n_wanted = 0;
    ebb_turn_release_lock(c);
    ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    return EBB_OK;
}

static ebb_status free_context(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_overflow_outcome outcome;
    ebb_prompt p;
    ebb_status st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, err);

    c->turn.n_spent = 0;                         /* what goes on behind it was asked for */
    if (st == EBB_OK)
        st = ebb_overflow_resolve(c, &p, in->next, &outcome, err);
    if (st == EBB_OK && outcome == EBB_OVERFLOW_RESOLVED)
        ebb_overflow_close_gap(c, &p);
    ebb_prompt_fini(&p);
    if (st != EBB_OK) {
        in->raises = c->backend ? NOTHING : UNOPENED;
        return st;
    }
    in->raises = event_of(outcome, in->next);
    ebb_chat_save(c, true);                      /* no answer waits for it: nobody else has to */
    ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    return EBB_OK;
}

/* -- The model comes -------------------------------------------------------------------- */

static ebb_status open_model(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_status st = ebb_chat_open_backend(c, in->path, err);

    c->overflow.cannot_grow = false;
    in->raises = st == EBB_OK ? NOTHING : UNOPENED;
    return st;
}

static ebb_status resize_memory(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_status st = in->ram_bytes ? ebb_replan(c, in->ram_bytes, err) : ebb_overflow_set_ctx(c, in->n_ctx, err);

    in->raises = c->backend ? NOTHING : UNOPENED;
    return st;
}

/* The model could not be opened: back to the earlier context if it was to grow, else no model. */
static ebb_status report_failed(ebb_chat *c, turn_input *in, ebb_error *err)
{
    (void)err;
    if (ebb_overflow_undo_growth(c, in->ev) || ebb_chat_share_failed(c, in->ev->text))
        return EBB_OK;
    ebb_turn_release_lock(c);
    ebb_chat_emit_event(c, EBB_EVENT_ERROR, in->ev->text, in->ev->n_text, 0, 0);
    in->raises = UNOPENED;
    return EBB_OK;
}

/* Remember the model that the user has named, for a start without a name; also where a server was found to have it. */
static void remember_user_model(ebb_chat *c)
{
    const char *path = c->remote.name ? c->remote.here_model : c->info->path;
    ebb_error err;

    if (!c->opening.is_chosen || !path || (c->saving.path && strcmp(c->saving.path, ":memory:") == 0))
        return;
    if (ebb_models_remember(path, &err) != EBB_OK)
        ebb_chat_notice(c, "the choice of this model is not kept: %s", err.msg);
}

/* A server renders with its own template.  Where another one was chosen for this run or this session it has to be known
 * without a terminal, too; one of the configuration is for models of this process. */
static void report_template(ebb_chat *c)
{
    const char *name = ebb_chat_template(c);
    char line[400];

    if (!c->remote.name || strcmp(name, "auto") == 0)
        return;
    snprintf(line, sizeof line, "%.80s renders with its own chat template, the chosen '%.100s' is left out; the engine "
             "of this process takes it (-e here, /engine here)", ebb_chat_engine_word(c), name);
    if (c->template_given || c->settings.template_name[0])
        ebb_chat_warn(c, line);
    else
        ebb_chat_notice(c, "%s", line);
}

/* The same of parameters of the sampler, and of whether to think. */
static void report_unsent(ebb_chat *c)
{
    char names[120], line[320];
    bool is_said = ebb_chat_settings_unsent(c, false, names, sizeof names), is_bare;

    if (!is_said && !ebb_chat_settings_unsent(c, true, names, sizeof names))
        return;
    is_bare = !(ebb_chat_facts(c)->sampling & EBB_SAMPLING_BIT(top_k));      /* nothing but OpenAI's protocol */
    snprintf(line, sizeof line, "%.80s is sent no %s: %s has none%s", ebb_chat_engine_word(c), names,
             is_bare ? "OpenAI's protocol" : ebb_chat_facts(c)->kind,
             is_bare ? "; `ebb engines add` with --kind names a server that takes more" : "");
    if (is_said)
        ebb_chat_warn(c, line);
    else
        ebb_chat_notice(c, "%s", line);
}

/* What the user should know of the model before the first answer. */
static void report_model(ebb_chat *c)
{
    ebb_stats s = { 0 };
    char unfollowed[200];

    report_template(c);
    report_unsent(c);
    c->overflow.is_untrained_said = false;
    if (!c->overflow.is_unattended || c->overflow.was_asked)     /* else it is said when it comes to that */
        ebb_overflow_warn_untrained(c, c->backend->ops->n_ctx(c->backend));
    ebb_chat_stats(c, &s);
    if (s.left_out[0])
        ebb_chat_notice(c, "%s", s.left_out);
    if (ebb_chat_settings_unfollowed(c, unfollowed, sizeof unfollowed))
        ebb_chat_notice(c, EBB_UNFOLLOWED_LINE, unfollowed);
    if (c->advice.system && !(ebb_chat_n_messages(c) && ebb_chat_message(c, 0)->role == EBB_ROLE_SYSTEM))
        ebb_chat_notice(c, "Ollama's %.80s comes with a system prompt; /prompt model takes it", c->advice.name);
}

static ebb_status enter_model(ebb_chat *c, turn_input *in, ebb_error *err)
{
    char notice[256] = "";
    ebb_status st = ebb_template_choice_ready(c, notice, err);

    c->overflow.cannot_grow &= !c->overflow.has_grown;
    c->overflow.has_grown = false;
    c->overflow.asked_at = NULL;                 /* its context may have room: who asks again is told if not */
    if (st == EBB_OK) {
        if (ebb_chat_engine_is_found(c) ? c->remote.here_model : !c->remote.name ? c->info->path : NULL)
            ebb_models_read_advice(c->remote.name ? c->remote.here_model : c->info->path, &c->advice);
        ebb_chat_settings_apply_model(c);
        remember_user_model(c);
        ebb_quality_recognise(c);
        report_model(c);
        ebb_chat_emit_event(c, EBB_EVENT_READY, c->info->name, strlen(c->info->name), 0, 0);
    }
    if (notice[0])
        ebb_chat_notice(c, "%s", notice);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_chat_emit_event(c, EBB_EVENT_ERROR, err->msg, strlen(err->msg), 0, 0);
    in->raises = UNOPENED;
    return st;
}

static ebb_status enter_model_asked(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_status st = enter_model(c, in, err);

    in->raises = st == EBB_OK ? WAITED : in->raises;
    return st;
}

static ebb_status answer_waiting(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_status st;

    in->continues = c->turn.continues;
    st = begin_answer(c, in, err);
    if (st != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err->msg, strlen(err->msg), 0, 0);
    return st;
}

/* -- The answer comes ------------------------------------------------------------------- */

static ebb_status add_token(ebb_chat *c, turn_input *in, ebb_error *err)
{
    (void)err;
    ebb_turn_add_token(c, in->ev);
    return EBB_OK;
}

static ebb_status cancel_answer(ebb_chat *c, turn_input *in, ebb_error *err)
{
    (void)in, (void)err;
    c->backend->ops->cancel(c->backend);
    return EBB_OK;
}

static ebb_status end_answer(ebb_chat *c, turn_input *in, ebb_error *err)
{
    (void)err;
    ebb_chat_record_cache_salt(c, &in->ev->cache_salt);
    if (c->turn.state == EBB_TURN_ANSWERING && ebb_turn_learn_count(c, in->ev))
        in->raises = REFUSED;
    else
        in->raises = ebb_turn_end_answer(c, in->ev) ? ENDED : NOTHING;
    return EBB_OK;
}

/* The estimate was too small: with the server's count the policy decides, as if it had been known. */
static ebb_status answer_refused(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_status st;

    in->continues = false;
    st = begin_answer(c, in, err);
    if (st != EBB_OK)
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err->msg, strlen(err->msg), 0, 0);
    else if (in->raises == NOTHING)              /* the user is asked */
        ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    if (in->raises == NOTHING)
        ebb_turn_release_lock(c);
    return EBB_OK;
}

/* An answer that has filled the context is continued if the overflow policy frees some of it. */
static ebb_status continue_or_finish(ebb_chat *c, turn_input *in, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);

    if (c->backend) {                            /* else it was closed, and this is the last of it */
        ebb_overflow_warn(c);
        in->continues = true;
        if (leaf && ebb_overflow_continues(c, &leaf->m)) {
            if (begin_answer(c, in, err) == EBB_OK)
                return EBB_OK;
            ebb_chat_notice(c, "%s", err->msg);
        }
    }
    ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    return EBB_OK;
}

static ebb_status end_summary(ebb_chat *c, turn_input *in, ebb_error *err)
{
    ebb_backend_event end = *in->ev;
    ebb_status st;

    ebb_chat_record_cache_salt(c, &end.cache_salt);
    ebb_turn_end_with_loss(c, &end);
    if (ebb_overflow_end_summary(c, &end, &in->next, &st, err)) {
        bool goes_on = c->backend && (in->next == EBB_NEXT_ANSWER || in->next == EBB_NEXT_CONTINUE);

        if (st == EBB_OK && goes_on) {
            in->raises = SUMMED_UP;
            return EBB_OK;
        }
        if (st != EBB_OK)
            ebb_chat_emit_event(c, EBB_EVENT_ERROR, err->msg, strlen(err->msg), 0, 0);
        ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    }
    ebb_turn_release_lock(c);
    return EBB_OK;
}

static ebb_status answer_after_summary(ebb_chat *c, turn_input *in, ebb_error *err)
{
    in->continues = in->next == EBB_NEXT_CONTINUE;
    c->overflow.has_compacted = true;            /* what still does not fit is not summed up again */
    if (begin_answer(c, in, err) != EBB_OK) {
        ebb_chat_emit_event(c, EBB_EVENT_ERROR, err->msg, strlen(err->msg), 0, 0);
        ebb_chat_emit_event(c, EBB_EVENT_DONE, NULL, 0, 0, 0);
    }
    c->overflow.has_compacted = false;
    ebb_turn_release_lock(c);
    return EBB_OK;
}

/* -- The table --------------------------------------------------------------------------- */

#define LOADING      EBB_TURN_LOADING
#define WAITING      EBB_TURN_WAITING
#define NO_MODEL     EBB_TURN_NO_MODEL
#define IDLE         EBB_TURN_IDLE
#define ANSWERING    EBB_TURN_ANSWERING
#define STOPPING     EBB_TURN_STOPPING
#define SUMMING      EBB_TURN_SUMMING_UP
#define STOPPING_SUM EBB_TURN_STOPPING_SUMMARY

static const struct turn_row {
    ebb_turn_state in;
    turn_event     on;
    turn_action   *does;         /* NULL: nothing */
    ebb_turn_state then;
} table[] = {
    { LOADING,      BEGIN,       defer_question,       WAITING },
    { LOADING,      OPEN,        open_model,           LOADING },
    { LOADING,      READY,       enter_model,          IDLE },
    { LOADING,      FAILED,      report_failed,        LOADING },
    { LOADING,      UNOPENED,    NULL,                 NO_MODEL },

    { WAITING,      OPEN,        open_model,           WAITING },
    { WAITING,      STOP,        withdraw_question,    LOADING },
    { WAITING,      READY,       enter_model_asked,    IDLE },
    { WAITING,      FAILED,      report_failed,        WAITING },
    { WAITING,      UNOPENED,    NULL,                 NO_MODEL },

    { NO_MODEL,     BEGIN,       reopen_engine,        LOADING },
    { NO_MODEL,     OPEN,        open_model,           LOADING },

    { IDLE,         BEGIN,       begin_asked_answer,   IDLE },
    { IDLE,         WAITED,      answer_waiting,       IDLE },
    { IDLE,         ENDED,       continue_or_finish,   IDLE },
    { IDLE,         SUMMED_UP,   answer_after_summary, IDLE },
    { IDLE,         REFUSED,     answer_refused,       IDLE },
    { IDLE,         FREE,        free_context,         IDLE },
    { IDLE,         ANSWERS,     NULL,                 ANSWERING },
    { IDLE,         SUMS_UP,     NULL,                 SUMMING },
    { IDLE,         GROWS,       NULL,                 LOADING },
    { IDLE,         GROWS_ASKED, NULL,                 WAITING },
    { IDLE,         OPEN,        open_model,           LOADING },
    { IDLE,         RESIZE,      resize_memory,        LOADING },
    { IDLE,         UNOPENED,    NULL,                 NO_MODEL },

    { ANSWERING,    TOKEN,       add_token,            ANSWERING },
    { ANSWERING,    STOP,        cancel_answer,        STOPPING },
    { ANSWERING,    END,         end_answer,           IDLE },
    { STOPPING,     TOKEN,       add_token,            STOPPING },
    { STOPPING,     STOP,        cancel_answer,        STOPPING },
    { STOPPING,     END,         end_answer,           IDLE },

    { SUMMING,      TOKEN,       add_token,            SUMMING },
    { SUMMING,      STOP,        cancel_answer,        STOPPING_SUM },
    { SUMMING,      END,         end_summary,          IDLE },
    { STOPPING_SUM, TOKEN,       add_token,            STOPPING_SUM },
    { STOPPING_SUM, STOP,        cancel_answer,        STOPPING_SUM },
    { STOPPING_SUM, END,         end_summary,          IDLE },
};

static const struct turn_row *find_row(ebb_turn_state in, turn_event on)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].in == in && table[i].on == on)
            return &table[i];
    return NULL;
}

/* What the table has no row for does not happen: BUSY. */
static ebb_status handle_turn_event(ebb_chat *c, turn_event on, turn_input *in, ebb_error *err)
{
    const struct turn_row *row = find_row(c->turn.state, on);
    ebb_status st = row ? EBB_OK : EBB_FAIL(err, EBB_BUSY, "an answer is under way: stop it first");

    while (row) {
        ebb_status done;

        in->raises = NOTHING;
        done = row->does ? row->does(c, in, err) : EBB_OK;
        c->turn.state = done == EBB_OK ? row->then : row->in;
        st = st == EBB_OK ? done : st;
        row = in->raises ? find_row(c->turn.state, in->raises) : NULL;
    }
    assert((c->turn.answer != NULL) == (c->turn.state >= ANSWERING));
    return st;
}

/* -- What happens -------------------------------------------------------------------------- */

ebb_status ebb_chat_begin_answer(ebb_chat *c, bool continues, ebb_error *err)
{
    return handle_turn_event(c, BEGIN, &(turn_input){ .continues = continues }, err);
}

ebb_status ebb_chat_open_model(ebb_chat *c, const char *path, ebb_error *err)
{
    return handle_turn_event(c, OPEN, &(turn_input){ .path = path }, err);
}

ebb_status ebb_turn_free_context(ebb_chat *c, ebb_overflow_next next, ebb_error *err)
{
    return handle_turn_event(c, FREE, &(turn_input){ .next = next }, err);
}

ebb_status ebb_turn_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err)
{
    return handle_turn_event(c, RESIZE, &(turn_input){ .n_ctx = n_ctx }, err);
}

ebb_status ebb_turn_replan(ebb_chat *c, uint64_t ram_bytes, ebb_error *err)
{
    return handle_turn_event(c, RESIZE, &(turn_input){ .ram_bytes = ram_bytes }, err);
}

/* Nobody waits for the result: what fails is an event for the front end. */
static void tell_turn(ebb_chat *c, turn_event on, const ebb_backend_event *ev)
{
    ebb_error err = { 0 };
    ebb_status st = handle_turn_event(c, on, &(turn_input){ .ev = ev }, &err);

    (void)st;
}

void ebb_turn_stop(ebb_chat *c)
{
    tell_turn(c, STOP, NULL);
}

void ebb_turn_on_backend(ebb_chat *c, const ebb_backend_event *ev)
{
    switch (ev->kind) {
    case EBB_BACKEND_READY: tell_turn(c, READY, ev); break;
    case EBB_BACKEND_FAILED: tell_turn(c, FAILED, ev); break;
    case EBB_BACKEND_TOKEN: tell_turn(c, TOKEN, ev); break;
    case EBB_BACKEND_END:
        if (ev->which > 0)
            ebb_turn_end_other(c, ev);
        else
            tell_turn(c, END, ev);
        break;
    default: break;
    }
    ebb_quality_end_turn(c);
}
