/* The chat template of a conversation (template_choice.h). */
#include "conversation/template_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "conversation/chat_priv.h"

const char *ebb_template_choice_name(const ebb_chat *c)
{
    return c->settings.template_name[0] ? c->settings.template_name : c->template_name;
}

/* Render with `name` from now on; on failure all is as it was. */
static ebb_status take_template(ebb_chat *c, const char *name, bool is_reported, ebb_error *err)
{
    const ebb_model_info *info;
    ebb_prompter *p = NULL;
    char notice[256] = "";
    ebb_status st = c->ops.ready(c->ops.arg, c->backend, name, &info, &p, notice, err);

    if (st != EBB_OK)
        return st;
    c->ops.unready(c->ops.arg, c->prompter);
    c->prompter = p;
    if (is_reported)
        ebb_chat_notice(c, "%s", notice[0] ? notice : "chat template: the file's own template");
    return EBB_OK;
}

void ebb_template_choice_apply(ebb_chat *c)
{
    ebb_error err = { 0 };

    if (!c->prompter || c->remote.name || take_template(c, ebb_template_choice_name(c), false, &err) == EBB_OK)
        return;
    ebb_chat_notice(c, "the chat template of this session: %s; the default is used", err.msg);
    c->settings.template_name[0] = '\0';
}

/* A file is found again from any folder. */
static bool copy_name(const char *name, char *out, size_t cap)
{
    char *path = strpbrk(name, "/.") ? realpath(name, NULL) : NULL;
    int n = snprintf(out, cap, "%s", path ? path : name);

    free(path);
    return n >= 0 && (size_t)n < cap;
}

ebb_status ebb_chat_set_template(ebb_chat *c, const char *name, ebb_error *err)
{
    char chosen[sizeof c->settings.template_name];
    ebb_status st = ebb_chat_need_ids(c, "the chat template is the server's", err);

    if (st == EBB_OK)
        st = ebb_chat_check_idle(c, err);
    if (st == EBB_OK && !c->prompter)
        st = EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (st == EBB_OK && !copy_name(name, chosen, sizeof chosen))
        st = EBB_FAIL(err, EBB_USAGE, "the path of that template is too long: %.60s...", name);
    if (st == EBB_OK && !ebb_utf8_is_valid(chosen, strlen(chosen)))
        st = EBB_FAIL(err, EBB_USAGE, "%.60s: this path is no UTF-8, which a session cannot keep; rename it", name);
    if (st == EBB_OK)
        st = take_template(c, chosen, true, err);
    if (st != EBB_OK)
        return st;
    memcpy(c->settings.template_name, chosen, sizeof chosen);
    ebb_chat_save(c, false);
    return EBB_OK;
}

const char *ebb_chat_template(const ebb_chat *c)
{
    const char *name = ebb_template_choice_name(c);

    return name ? name : "auto";
}
