/* Commands about what is said: answers once more, turns back, the system prompt, a copy (slash_impl.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/clipboard.h"
#include "command/slash_impl.h"
#include "prompt/system_prompts.h"
#include "store/title.h"

/* At temperature 0 a retry gives the same answer: the user gets a notice of that. */
ebb_status ebb_slash_retry(ebb_frontend *f, const char *arg, ebb_error *err)
{
    char temp[300] = "", *end = NULL;
    unsigned long n = *arg ? strtoul(arg, &end, 10) : 1;
    ebb_status st;

    if (*arg && (*arg < '1' || *arg > '9' || *end || n > EBB_CHAT_MAX_ANSWERS))
        return EBB_FAIL(err, EBB_USAGE, "/retry %.20s: give how many answers, 1 to %u", arg, EBB_CHAT_MAX_ANSWERS);
    st = ebb_chat_retry_several(f->chat, (uint32_t)n, err);
    if (st == EBB_OK && n > 1)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%lu answers are being written side by side; this one is shown, the "
                                             "others are branches beside it", n);
    if (st == EBB_OK && ebb_chat_set(f->chat, "temp", NULL, temp, sizeof temp, NULL) == EBB_OK &&
        strncmp(temp, "temp = 0 ", 9) == 0)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE,
                          "at temperature 0 the same question gives the same answer; try /set temp 0.8");
    return st;
}

/* Undo a turn; its question comes back into the input, to be rephrased. */
ebb_status ebb_slash_undo(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf question = { 0 };
    ebb_status st;

    (void)arg;
    for (size_t i = ebb_chat_n_messages(f->chat); i > 0 && question.len == 0; i--) {
        const ebb_message *m = ebb_chat_message(f->chat, i - 1);
        if (m->role == EBB_ROLE_USER)
            ebb_buf_add(&question, m->text, m->n_text);
    }
    st = ebb_chat_undo(f->chat, err);
    if (st == EBB_OK && f->edit && question.len > 0)
        ebb_frontend_offer(f, question.data, question.len);
    ebb_buf_fini(&question);
    return st;
}

ebb_status ebb_slash_redo(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    return ebb_chat_redo(f->chat, err);
}

ebb_status ebb_slash_continue(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    return ebb_chat_continue(f->chat, err);
}

ebb_status ebb_slash_system(ebb_frontend *f, const char *arg, ebb_error *err)
{
    const ebb_message *m = ebb_chat_n_messages(f->chat) ? ebb_chat_message(f->chat, 0) : NULL;
    ebb_status st;

    if (*arg == '\0') {
        if (m && m->role == EBB_ROLE_SYSTEM)
            f->say(f, EBB_SAY_TEXT, m->text, m->n_text);
        else
            ebb_frontend_sayf(f, EBB_SAY_NOTICE, "there is no system prompt; /system TEXT sets one");
        return EBB_OK;
    }
    st = ebb_chat_set_system(f->chat, strcmp(arg, "-") == 0 ? "" : arg, err);
    if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, strcmp(arg, "-") == 0 ? "the system prompt is gone"
                                                                  : "the system prompt is set");
    return st;
}

/* The folder of the user's prompts; NULL: none. */
static const char *prompt_dir(ebb_frontend *f, ebb_buf *out)
{
    return f->config_dir.len && ebb_buf_addf(out, "%s/prompts", f->config_dir.data) ? out->data : NULL;
}

static void add_prompt_name(void *arg, const char *name)
{
    ebb_buf_addf(arg, "%s%s", ((ebb_buf *)arg)->len ? "  " : "", name);
}

ebb_status ebb_slash_prompt(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf dir = { 0 }, text = { 0 };
    const char *mine = prompt_dir(f, &dir), *advised = ebb_chat_advised_system(f->chat);
    ebb_status st = EBB_OK;

    if (*arg) {
        if (advised && strcmp(arg, "model") == 0)
            ebb_buf_adds(&text, advised);
        else
            st = ebb_system_prompt_read(mine, arg, &text, err);
        if (st == EBB_OK)
            st = ebb_chat_set_system(f->chat, ebb_buf_text(&text), err);
        if (st == EBB_OK)
            ebb_frontend_sayf(f, EBB_SAY_NOTICE, "the system prompt is %s; /system shows it", arg);
    } else {
        ebb_system_prompt_each(mine, add_prompt_name, &text);
        if (advised)
            add_prompt_name(&text, "model");
        ebb_buf_adds(&text, "\n/prompt NAME uses one, /system - removes it");
        f->say(f, EBB_SAY_TEXT, ebb_buf_text(&text), text.len);
    }
    ebb_buf_fini(&dir);
    ebb_buf_fini(&text);
    return st;
}

typedef struct prompt_candidates {
    const char       *dir;
    ebb_candidate_fn *fn;
    void             *arg;
} prompt_candidates;

/* With the beginning of its text. */
static void complete_prompt_name(void *arg, const char *name)
{
    const prompt_candidates *c = arg;
    ebb_buf text = { 0 };
    char title[128] = "";

    if (ebb_system_prompt_read(c->dir, name, &text, NULL) == EBB_OK)
        ebb_title_make(ebb_buf_text(&text), text.len, title, sizeof title);
    c->fn(c->arg, name, title);
    ebb_buf_fini(&text);
}

void ebb_complete_prompt(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    ebb_buf dir = { 0 };
    prompt_candidates c = { prompt_dir(f, &dir), fn, arg };

    (void)typed;
    ebb_system_prompt_each(c.dir, complete_prompt_name, &c);
    ebb_buf_fini(&dir);
}

ebb_status ebb_slash_copy(ebb_frontend *f, const char *arg, ebb_error *err)
{
    char how[400];
    ebb_status st = ebb_clipboard_copy_answer(f, arg, how, sizeof how, err);

    if (st == EBB_OK)
        f->say(f, EBB_SAY_NOTICE, how, strlen(how));
    return st;
}
