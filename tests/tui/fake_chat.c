/* All of chat.h, scripted (fake_chat.h). */
#include "tui/fake_chat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

bool fake_echoes;
const char *fake_third;
const char *fake_question, *fake_answer;
void (*fake_step)(ebb_chat *c);

enum { MESSAGES_MAX = 20000 };

typedef struct event {
    ebb_chat_event_kind kind;
    uint64_t done, total;
    char *text;
} event;

struct ebb_chat {
    ebb_message *messages;
    ebb_buf     *texts;
    bool         is_undecided;
    size_t       n_typed;        /* bytes of the draft that may be computed ahead */
    size_t       n, n_undone, note;  /* note: number of the message that decides, 0: none */
    event        events[4096];
    size_t       first, end;
    int          fds[2];
    bool         ready, busy, has_failed;
    long         writer;
    uint32_t     generation;
    uint32_t     n_answers;              /* asked for by the last retry */
    ebb_remote_figures remote;   /* name "": the engine is here */
    ebb_stats    stats;
    ebb_model_info info;
    char         session[128], title[128], refuse[128], unsaved[128], temp[32], draft[64];
    char        *said;
    int64_t      clock;
    const char  *job;            /* of ebb_chat_job_under_way */
    double       job_share;
};

static void post(ebb_chat *c, ebb_chat_event_kind kind, uint64_t done, uint64_t total, const char *text)
{
    event *ev = &c->events[c->end++ % 4096];

    if (c->end - c->first > 4096)
        abort();
    free(ev->text);
    *ev = (event){ kind, done, total, text ? strdup(text) : NULL };
    if (write(c->fds[1], "x", 1) < 0)
        return;                                  /* full: readable as it is */
}

static ebb_message *add(ebb_chat *c, ebb_role role, const char *text, ebb_finish finish)
{
    ebb_message *m = &c->messages[c->n];
    ebb_buf *b = &c->texts[c->n++];

    if (c->n > MESSAGES_MAX)
        abort();
    ebb_buf_clear(b);
    ebb_buf_adds(b, text);
    c->clock++;
    *m = (ebb_message){ .id = c->clock, .role = role, .finish = finish, .created_ms = c->clock,
                        .text = b->data, .n_text = b->len };
    return m;
}

ebb_chat *fake_chat_new(void)
{
    ebb_chat *c = calloc(1, sizeof *c);

    c->messages = calloc(MESSAGES_MAX, sizeof *c->messages);
    c->texts = calloc(MESSAGES_MAX, sizeof *c->texts);
    if (pipe2(c->fds, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    c->info = (ebb_model_info){ .path = "/models/fake.gguf", .name = "Fake 8B", .arch = "llama",
                                .quantization = "Q4_K_M", .n_layers = 32, .weight_bytes = 4920734720u };
    strcpy(c->session, "new session");
    strcpy(c->temp, "0.7");
    return c;
}

ebb_status ebb_chat_open(const ebb_chat_opts *opts, ebb_chat **out, ebb_error *err)
{
    (void)opts;
    (void)err;
    *out = fake_chat_new();
    if (fake_question) {
        fake_add(*out, EBB_ROLE_USER, fake_question);
        fake_add(*out, EBB_ROLE_ASSISTANT, fake_answer);
    }
    if (fake_echoes)
        fake_ready(*out);
    if (fake_step)
        fake_step(*out);
    return EBB_OK;
}

void ebb_chat_end(ebb_chat *c) { (void)c; }

void ebb_chat_close(ebb_chat *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < MESSAGES_MAX; i++)
        ebb_buf_fini(&c->texts[i]);
    for (size_t i = 0; i < 4096; i++)
        free(c->events[i].text);
    close(c->fds[0]);
    close(c->fds[1]);
    free(c->messages);
    free(c->texts);
    free(c->said);
    free(c);
}

/* -- The script --------------------------------------------------------------------- */

void fake_ready(ebb_chat *c)
{
    c->ready = true;
    c->has_failed = false;
    post(c, EBB_EVENT_READY, 0, 0, c->info.name);
}

void fake_fail(ebb_chat *c, const char *line)
{
    c->has_failed = true;
    post(c, EBB_EVENT_ERROR, 0, 0, line);
}

void fake_loading(ebb_chat *c, uint64_t done, uint64_t total)
{
    post(c, EBB_EVENT_LOADING, done, total, NULL);
}

void fake_text_n(ebb_chat *c, const char *s, size_t n)
{
    ebb_message *m = &c->messages[c->n - 1];

    ebb_buf_add(&c->texts[c->n - 1], s, n);
    m->text = c->texts[c->n - 1].data;
    m->n_text = c->texts[c->n - 1].len;
    m->turn_stats.n_generated++;
    if (c->first == c->end)
        post(c, EBB_EVENT_TEXT, 0, 0, s);
}

void fake_text(ebb_chat *c, const char *s)
{
    fake_text_n(c, s, strlen(s));
}

void fake_done(ebb_chat *c, ebb_finish finish)
{
    ebb_message *m = &c->messages[c->n - 1];

    c->busy = false;
    c->writer = 0;
    m->finish = finish;
    m->turn_stats = (ebb_turn_stats){ .n_prompt = 7730, .n_reused = 7412, .n_computed = 318, .n_generated = 212,
                               .prefill_s = 7.75, .decode_s = 33.5 };
    post(c, EBB_EVENT_DONE, 0, 0, NULL);
}

void fake_error(ebb_chat *c, const char *line)
{
    c->busy = false;
    c->n--;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    post(c, EBB_EVENT_ERROR, 0, 0, line);
}

void fake_attached(ebb_chat *c, long writer, const char *question)
{
    add(c, EBB_ROLE_USER, question, EBB_FINISH_STOP);
    add(c, EBB_ROLE_ASSISTANT, "", EBB_FINISH_NONE);
    c->busy = true;
    c->writer = writer;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
}

void fake_attached_after(ebb_chat *c, size_t n, long writer, const char *question)
{
    c->n = n;
    fake_attached(c, writer, question);
}

void fake_notice(ebb_chat *c, const char *line)
{
    post(c, EBB_EVENT_NOTICE, 0, 0, line);
}

ebb_stats *fake_stats(ebb_chat *c)
{
    return &c->stats;
}

void fake_add(ebb_chat *c, ebb_role role, const char *text)
{
    add(c, role, text, EBB_FINISH_STOP);
}

void fake_unsaved(ebb_chat *c, const char *line)
{
    snprintf(c->unsaved, sizeof c->unsaved, "%s", line);
}

void fake_refuse(ebb_chat *c, const char *line)
{
    snprintf(c->refuse, sizeof c->refuse, "%s", line);
}

/* -- chat.h ---------------------------------------------------------------------------- */

int ebb_chat_fd(const ebb_chat *c)
{
    return c->fds[0];
}

bool ebb_chat_event_next(ebb_chat *c, ebb_chat_event *out)
{
    char bytes[4096];

    if (c->first == c->end && fake_step)
        fake_step(c);
    while (c->first == c->end)
        if (read(c->fds[0], bytes, sizeof bytes) <= 0)
            return false;
    const event *ev = &c->events[c->first++ % 4096];
    *out = (ebb_chat_event){ ev->kind, ev->done, ev->total, ev->text ? ev->text : "", ev->text ? strlen(ev->text) : 0 };
    return true;
}

bool ebb_chat_is_ready(const ebb_chat *c) { return c->ready; }
bool ebb_chat_awaits_overflow_choice(const ebb_chat *c) { return c->is_undecided; }
bool ebb_chat_awaits_report(const ebb_chat *c) { (void)c; return false; }
long ebb_chat_writer_pid(const ebb_chat *c) { return c->writer; }
bool ebb_chat_is_busy(const ebb_chat *c) { return c->busy || c->job; }
bool ebb_chat_is_question_open(const ebb_chat *c)
{
    return c->n > 0 && c->messages[c->n - 1].role == EBB_ROLE_USER;
}
const ebb_model_info *ebb_chat_model(const ebb_chat *c) { return c->ready ? &c->info : NULL; }
const char *ebb_chat_session_name(const ebb_chat *c) { return c->session; }
const char *ebb_chat_session_title(const ebb_chat *c) { return c->title; }
int64_t ebb_chat_session_id(const ebb_chat *c)
{
    return strcmp(c->session, "trip") == 0 || strcmp(c->session, "sea") == 0 ? 2 : strcmp(c->session, "tree") == 0;
}

void ebb_chat_session_word(const ebb_chat *c, char out[static EBB_SESSION_WORD])
{
    snprintf(out, EBB_SESSION_WORD, "%lld", (long long)ebb_chat_session_id(c));
}
void ebb_chat_session_key(const ebb_chat *c, char out[EBB_SESSION_KEY_BYTES])
{
    snprintf(out, EBB_SESSION_KEY_BYTES, ebb_chat_session_id(c) ? "%lld\t1" : "", (long long)ebb_chat_session_id(c));
}
bool ebb_chat_is_newest_session(const ebb_chat *c) { (void)c; return true; }
uint32_t ebb_chat_generation(const ebb_chat *c) { return c->generation; }
ebb_status ebb_chat_check_saved(ebb_chat *c, ebb_error *err)
{
    ebb_status st = c->unsaved[0] ? EBB_FAIL(err, EBB_IO, "%s", c->unsaved) : EBB_OK;

    c->unsaved[0] = '\0';
    return st;
}

bool ebb_chat_is_saved(const ebb_chat *c) { return ebb_chat_n_messages(c) > 0; }
void ebb_chat_stats(const ebb_chat *c, ebb_stats *out) { *out = c->stats; }
size_t ebb_chat_n_messages(const ebb_chat *c) { return c->n; }
const ebb_message *ebb_chat_message(const ebb_chat *c, size_t i) { return &c->messages[i]; }

bool ebb_chat_preview(ebb_chat *c, ebb_chat_action act, size_t i, const char *text, size_t n, ebb_chat_cost *out)
{
    uint32_t n_before = c->stats.n_ctx_used;

    (void)i;
    (void)text;
    switch (act) {
    case EBB_ACT_SEND: case EBB_ACT_EDIT:
        *out = (ebb_chat_cost){ n_before, n_before + (uint32_t)(n / 4), (uint32_t)(n / 4), (uint32_t)(n / 4),
                                c->remote.name[0] != 0 };
        return n > 0;
    case EBB_ACT_UNDO: *out = (ebb_chat_cost){ n_before, n_before / 2, 0, 0, false }; return c->n >= 2;
    case EBB_ACT_LOAD: *out = (ebb_chat_cost){ n_before, 4000, 0, 4000, false }; return strcmp(text, "trip") == 0;
    case EBB_ACT_CUT: case EBB_ACT_GO: return false;
    }
    return false;
}

void ebb_chat_prefill_input(ebb_chat *c, ebb_chat_action act, size_t i, const char *text, size_t n)
{
    (void)act;
    (void)i;
    (void)text;
    c->n_typed = n;
}

const ebb_message *ebb_chat_truncation_note(const ebb_chat *c)
{
    return c->note > 0 && c->note <= c->n ? &c->messages[c->note - 1] : NULL;
}

ebb_status ebb_chat_check_idle(const ebb_chat *c, ebb_error *err)
{
    if (!ebb_chat_is_busy(c))
        return EBB_OK;
    return EBB_FAIL(err, EBB_BUSY,
                    c->job ? "a file is being read: stop that first" : "an answer is under way: stop it first");
}

const char *ebb_chat_engine(const ebb_chat *c) { return c->remote.name[0] ? c->remote.name : NULL; }
const char *ebb_chat_engine_word(const ebb_chat *c) { return ebb_chat_engine(c); }
const char *ebb_chat_engine_model(const ebb_chat *c, size_t i)
{
    static const char *const names[] = { "big-model", "other-model", "" };

    return c->remote.name[0] ? names[i] : NULL;
}

ebb_remote_figures *fake_remote(ebb_chat *c) { return &c->remote; }

bool ebb_chat_remote(const ebb_chat *c, ebb_remote_figures *out)
{
    *out = c->remote;
    return c->remote.name[0] != '\0';
}

ebb_status ebb_chat_set_engine(ebb_chat *c, const char *name, const char *model, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    (void)model;
    snprintf(c->remote.name, sizeof c->remote.name, "%s", strcmp(name, "here") == 0 ? "" : name);
    return EBB_OK;
}

bool ebb_chat_can_reconnect(const ebb_chat *c) { return c->has_failed && c->remote.name[0]; }

ebb_status ebb_chat_reconnect(ebb_chat *c, ebb_error *err)
{
    (void)err;
    c->has_failed = false;
    post(c, EBB_EVENT_LOADING, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_test_engine(ebb_chat *c, const char *name, ebb_error *err)
{
    (void)c;
    return EBB_FAIL(err, EBB_NOTFOUND, "there is no engine %s", name ? name : "at hand");
}

const char *ebb_chat_draft(const ebb_chat *c) { return c->draft[0] ? c->draft : NULL; }

ebb_status ebb_chat_set_draft(ebb_chat *c, const char *name, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    if (ebb_chat_engine(c))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "its draft model is the server's");
    snprintf(c->draft, sizeof c->draft, "%s", name ? name : "");
    return EBB_OK;
}

ebb_status ebb_chat_send(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    char *copy;

    if (ebb_chat_can_reconnect(c))
        c->ready = ebb_chat_reconnect(c, err) == EBB_OK;
    if (!c->ready || c->busy)
        return EBB_FAIL(err, EBB_BUSY, "an answer is under way: stop it first");
    c->n_undone = 0;
    if (c->refuse[0]) {
        ebb_status st = EBB_FAIL(err, EBB_CONTEXT, "%s", c->refuse);
        c->refuse[0] = '\0';
        return st;
    }
    copy = strndup(text, n);
    add(c, EBB_ROLE_USER, copy, EBB_FINISH_STOP);
    free(copy);
    add(c, EBB_ROLE_ASSISTANT, "", EBB_FINISH_NONE);
    c->busy = true;
    if (fake_echoes) {
        fake_text(c, "You said: ");
        fake_text_n(c, text, n);
        fake_done(c, EBB_FINISH_STOP);
    }
    return EBB_OK;
}

const char *ebb_chat_offers_model(const ebb_chat *c, char file[40])
{
    (void)c;
    file[0] = '\0';
    return NULL;
}

void ebb_chat_share_model(ebb_chat *c) { (void)c; }      /* it offers none */

void ebb_chat_stop(ebb_chat *c)
{
    if (c->job) {
        c->job = NULL;
        post(c, EBB_EVENT_REFUSED, 0, 0, "stopped: nothing from old.json is kept");
    } else if (c->busy) {
        fake_done(c, EBB_FINISH_CANCELED);
    }
}

void fake_job(ebb_chat *c, const char *what, double share)
{
    c->job = what;
    c->job_share = share;
}

ebb_status ebb_chat_continue(ebb_chat *c, ebb_error *err)
{
    if (c->n > 0 && c->messages[c->n - 1].finish == EBB_FINISH_CANCELED) {
        c->messages[c->n - 1].finish = EBB_FINISH_NONE;
        c->busy = true;
        if (fake_echoes) {
            fake_text(c, " (more)");
            fake_done(c, EBB_FINISH_STOP);
        }
        return EBB_OK;
    }
    if (c->n > 0 && c->messages[c->n - 1].role == EBB_ROLE_USER) {
        add(c, EBB_ROLE_ASSISTANT, "", EBB_FINISH_NONE);
        c->busy = true;
        return EBB_OK;
    }
    return EBB_FAIL(err, EBB_USAGE, "the last answer is complete");
}

ebb_status ebb_chat_cut(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    char *copy = strndup(text, n);

    if (c->busy)
        return ebb_chat_check_idle(c, err);
    c->n--;
    add(c, EBB_ROLE_ASSISTANT, copy, EBB_FINISH_NONE);
    free(copy);
    c->busy = true;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_retry(ebb_chat *c, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    if (c->n < 2)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer yet");
    c->n_undone = 0;
    c->n--;
    add(c, EBB_ROLE_ASSISTANT, "", EBB_FINISH_NONE);
    c->busy = true;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_retry_several(ebb_chat *c, uint32_t n_answers, ebb_error *err)
{
    c->n_answers = n_answers;
    return ebb_chat_retry(c, err);
}

uint32_t fake_n_answers(const ebb_chat *c)
{
    return c->n_answers;
}

ebb_status ebb_chat_undo(ebb_chat *c, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    if (c->n < 2)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to undo");
    c->n -= 2;
    c->n_undone += 2;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_redo(ebb_chat *c, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    if (c->n_undone == 0)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to redo");
    c->n += 2;
    c->n_undone -= 2;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_edit(ebb_chat *c, size_t i, const char *text, size_t n, ebb_error *err)
{
    (void)err;
    c->n = i;
    return ebb_chat_send(c, text, n, err);
}

const char *ebb_chat_advised_system(const ebb_chat *c)
{
    (void)c;
    return NULL;
}

ebb_status ebb_chat_set_system(ebb_chat *c, const char *text, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    c->n = c->n_undone = 0;
    if (*text)
        add(c, EBB_ROLE_SYSTEM, text, EBB_FINISH_STOP);
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_new_session(ebb_chat *c, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    c->n = c->n_undone = 0;
    c->generation++;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_save_as(ebb_chat *c, const char *name, ebb_error *err)
{
    (void)err;
    snprintf(c->session, sizeof c->session, "%s", name);
    return EBB_OK;
}

ebb_status ebb_chat_load(ebb_chat *c, const char *name, ebb_error *err)
{
    if (c->busy)
        return ebb_chat_check_idle(c, err);
    if (strcmp(name, "trip") != 0)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no session '%s'; /list shows them", name);
    c->n = c->n_undone = 0;
    c->generation++;
    add(c, EBB_ROLE_USER, "Where to?", EBB_FINISH_STOP);
    add(c, EBB_ROLE_ASSISTANT, "To the sea.", EBB_FINISH_STOP);
    snprintf(c->session, sizeof c->session, "%s", name);
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_load_model(ebb_chat *c, const char *path, ebb_error *err)
{
    if (strstr(path, ".gguf") == NULL)
        return EBB_FAIL(err, EBB_NOTFOUND, "%s: no such file", path);
    c->ready = false;
    return EBB_OK;
}

ebb_status ebb_chat_set(ebb_chat *c, const char *name, const char *value, char *text, size_t cap, ebb_error *err)
{
    if (strcmp(name, "temp") != 0 && strcmp(name, "top-k") != 0)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no setting '%s'", name);
    if (value)
        snprintf(c->temp, sizeof c->temp, "%s", value);
    snprintf(text, cap, "%s = %s (0 to 2): warmth", name, strcmp(name, "temp") == 0 ? c->temp : "40");
    return EBB_OK;
}

const char *ebb_chat_setting_name(size_t i)
{
    static const char *const names[] = { "temp", "top-k" };

    return i < 2 ? names[i] : NULL;
}

ebb_status ebb_chat_answer_better(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    return n ? ebb_chat_send(c, text, n, err) : ebb_chat_retry(c, err);
}

ebb_status ebb_chat_price_better(ebb_chat *c, ebb_error *err)
{
    (void)c;
    return EBB_FAIL(err, EBB_NOTFOUND, "no better file is found here");
}

ebb_status ebb_chat_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err)
{
    (void)c;
    return n_ctx == EBB_CTX_MAX ? EBB_OK
                                : EBB_FAIL(err, EBB_BUDGET, "that context does not fit the memory (%u)", n_ctx);
}

ebb_status ebb_chat_free_context(ebb_chat *c, ebb_overflow_policy how, uint32_t n_turns, ebb_error *err)
{
    ebb_message *m;

    if (c->n < 4)
        return EBB_FAIL(err, EBB_CONTEXT, "nothing is left to forget");
    m = add(c, EBB_ROLE_NOTE, "The oldest turns are forgotten.", EBB_FINISH_STOP);
    m->truncation = (ebb_truncation){ .how = how, .first = 2 * (n_turns ? n_turns : 1), .n_turns = 1 };
    c->note = c->n;
    post(c, EBB_EVENT_NOTE, 0, 0, m->text);
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_set_budget(ebb_chat *c, uint64_t bytes, ebb_error *err)
{
    char line[64];

    if (bytes && bytes < 1 << 20)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    snprintf(line, sizeof line, "budget %llu: about 2.50 tok/s", (unsigned long long)bytes);
    post(c, EBB_EVENT_NOTICE, 0, 0, line);
    return EBB_OK;
}

static const char *form_name;

ebb_status ebb_chat_set_form(ebb_chat *c, bool is_schema, const char *word, ebb_error *err)
{
    (void)c;
    (void)is_schema;
    if (strcmp(word, "wrong") == 0)
        return EBB_FAIL(err, EBB_FORMAT, "wrong: no schema");
    form_name = strcmp(word, "off") == 0 ? NULL : "book.json";
    ebb_chat_tell_form(c);
    return EBB_OK;
}

void ebb_chat_tell_form(ebb_chat *c)
{
    post(c, EBB_EVENT_NOTICE, 0, 0,
         form_name ? "answers are JSON under the schema book.json from here on" : "answers have no form");
}

const char *ebb_chat_form(const ebb_chat *c, bool *is_schema)
{
    (void)c;
    *is_schema = true;
    return form_name;
}

static char template_name[64] = "auto";

ebb_status ebb_chat_set_template(ebb_chat *c, const char *name, ebb_error *err)
{
    if (strcmp(name, "wrong") == 0)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no template wrong");
    snprintf(template_name, sizeof template_name, "%s", name);
    post(c, EBB_EVENT_NOTICE, 0, 0, "chat template: another");
    return EBB_OK;
}

const char *ebb_chat_template(const ebb_chat *c)
{
    (void)c;
    return template_name;
}

ebb_status ebb_chat_replan(ebb_chat *c, uint64_t bytes, ebb_error *err)
{
    char line[64];

    (void)err;
    snprintf(line, sizeof line, "opened anew for %llu", (unsigned long long)bytes);
    post(c, EBB_EVENT_NOTICE, 0, 0, line);
    return EBB_OK;
}

ebb_status ebb_chat_plan(ebb_chat *c, ebb_error *err)
{
    (void)err;
    post(c, EBB_EVENT_REPORT, 0, 0, "Fake 8B  llama\n  KV cache  256 MiB\n");
    return EBB_OK;
}

bool ebb_chat_linger(ebb_chat *c, const ebb_linger *how)
{
    (void)how;
    return !c->busy;
}

ebb_status ebb_chat_set_title(ebb_chat *c, const char *title, ebb_error *err)
{
    snprintf(c->title, sizeof c->title, "%s", title);
    return strcmp(c->session, "new session") == 0 ? ebb_chat_save_as(c, title, err) : EBB_OK;
}

ebb_status ebb_chat_export(ebb_chat *c, const char *path, ebb_error *err)
{
    (void)c;
    return strstr(path, ".md") ? EBB_OK : EBB_FAIL(err, EBB_USAGE, "%s: the name must end in .md", path);
}

ebb_status ebb_chat_import(ebb_chat *c, const char *path, ebb_error *err)
{
    if (strcmp(path, "old.json") == 0) {
        post(c, EBB_EVENT_NOTICE, 0, 0, "2 new sessions; this is the last one");
        return ebb_chat_load(c, "trip", err);
    }
    post(c, EBB_EVENT_REFUSED, 0, 0, "nope: no such file");
    return EBB_OK;
}

const char *ebb_chat_job_under_way(const ebb_chat *c, double *share)
{
    *share = c->job_share;
    return c->job;
}

/* "the" is everywhere. */
ebb_status ebb_chat_search(ebb_chat *c, const char *words, size_t limit, ebb_chat_hit **out, size_t *n, ebb_error *err)
{
    (void)c;
    (void)err;
    *n = strcmp(words, "the") == 0 ? limit : strcmp(words, "sea") == 0;
    *out = calloc(limit, sizeof **out);
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = (ebb_chat_hit){ .session = 2, .created_ms = 1700000000000, .role = EBB_ROLE_ASSISTANT,
                                    .name = "trip", .snippet = "To the sea." };
    return EBB_OK;
}

ebb_status ebb_chat_delete(ebb_chat *c, const char *name, ebb_error *err)
{
    return *name && strcmp(name, "trip") != 0 ? EBB_FAIL(err, EBB_NOTFOUND, "there is no session '%s'", name)
                                              : ebb_chat_new_session(c, err);
}

ebb_status ebb_chat_undelete(ebb_chat *c, ebb_error *err)
{
    return ebb_chat_load(c, "trip", err);
}

/* Two answers to the first question; the second is where it stands. */
ebb_status ebb_chat_branches(ebb_chat *c, ebb_branch **out, size_t *n, ebb_error *err)
{
    (void)err;
    *n = c->n < 2 ? c->n : 4;
    *out = calloc(4, sizeof **out);
    (*out)[0] = (ebb_branch){ .message = &c->messages[0], .parent = SIZE_MAX, .is_only = true, .is_on_path = true,
                              .label = "1" };
    (*out)[1] = (ebb_branch){ .message = &c->messages[1], .has_next = true, .label = "2a" };
    (*out)[2] = (ebb_branch){ .message = &c->messages[0], .parent = 1, .is_only = true, .label = "3" };
    (*out)[3] = (ebb_branch){ .message = &c->messages[1], .is_on_path = true, .is_leaf = true, .label = "2b" };
    return EBB_OK;
}

ebb_status ebb_chat_go(ebb_chat *c, const char *label, ebb_error *err)
{
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return strcmp(label, "2a") == 0
               ? EBB_OK : EBB_FAIL(err, EBB_USAGE, "there is no message %s; /tree shows them all", label);
}

ebb_status ebb_chat_branch(ebb_chat *c, size_t i, ebb_error *err)
{
    (void)err;
    c->n = i;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_pin(ebb_chat *c, size_t i, bool is_pinned, ebb_error *err)
{
    (void)err;
    c->messages[i].pinned = is_pinned;
    post(c, EBB_EVENT_CHANGED, 0, 0, NULL);
    return EBB_OK;
}

ebb_status ebb_chat_list(ebb_chat *c, ebb_session_row **out, size_t *n, ebb_error *err)
{
    (void)c;
    (void)err;
    *n = fake_third ? 3 : 2;
    *out = calloc(3, sizeof **out);
    (*out)[0] = (ebb_session_row){ .id = 2, .word = "2", .name = "trip", .model = "Fake 8B",
                                   .updated_ms = 1700000000000, .n_messages = 2 };
    (*out)[1] = (ebb_session_row){ .id = 1, .word = "1", .name = "tree", .model = "Fake 8B",
                                   .updated_ms = 1600000000000, .n_messages = 9 };
    (*out)[2] = (ebb_session_row){ .id = 3, .word = "3", .updated_ms = 1500000000000, .n_messages = 2 };
    if (fake_third) {
        (*out)[2].has_namesake = strlen(fake_third) == 1;        /* another one's number */
        snprintf((*out)[2].name, sizeof (*out)[2].name, "%s", fake_third);
    }
    return EBB_OK;
}
