/* The chat template of a conversation (template_choice.h). */
#include "conversation/template_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "conversation/chat_priv.h"
#include "os/file.h"
#include "os/paths.h"
#include "template/family.h"

static bool has_own(const ebb_chat *c)
{
    return c->settings.template_name[0] && !c->settings.is_template_lost;
}

/* The name that ebb_prompter_new_named takes; NULL: none was chosen. */
static const char *name_in_force(const ebb_chat *c)
{
    return has_own(c) ? c->settings.template_name : c->template_name;
}

static bool is_template_file(const char *name)
{
    return strcmp(name, "auto") != 0 && strcmp(name, "none") != 0 && !ebb_template_family_named(name);
}

/* That of a template is read while keys wait, and again whenever the session is opened: no pipe gives it twice. */
static ebb_status expect_file(const char *name, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = EBB_OK;

    if (is_template_file(name) && ebb_path_expand(name, &path, NULL) == EBB_OK &&
        ebb_file_expect_regular(path.data, NULL) != EBB_OK)
        st = EBB_FAIL(err, EBB_FORMAT, "chat template %.150s: is no regular file; copy its text into one", name);
    ebb_buf_fini(&path);
    return st;
}

/* What the command line names may be a pipe: it is read while the model is opened. */
static ebb_status make_prompter(ebb_chat *c, const char *name, const ebb_model_info **info, ebb_prompter **out,
                                char notice[256], ebb_error *err)
{
    ebb_status st = name == c->template_name ? EBB_OK : expect_file(name, err);

    return st == EBB_OK ? c->ops.ready(c->ops.arg, c->backend, name, info, out, notice, err) : st;
}

static void report_lost(ebb_chat *c, const ebb_error *why)
{
    ebb_chat_notice(c, "the chat template of this session: %s; the default is used", why->msg);
}

ebb_status ebb_template_choice_ready(ebb_chat *c, char notice[256], ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st;

    c->settings.is_template_lost = false;        /* its file may be there by now */
    st = make_prompter(c, name_in_force(c), &c->info, &c->prompter, notice, &why);
    if (st != EBB_OK && has_own(c)) {
        c->settings.is_template_lost = true;
        report_lost(c, &why);
        st = make_prompter(c, name_in_force(c), &c->info, &c->prompter, notice, &why);
    }
    return st == EBB_OK ? st : EBB_FAIL(err, st, "%s", why.msg);
}

/* Render with `name` from now on; on failure all is as it was. */
static ebb_status take_template(ebb_chat *c, const char *name, bool is_reported, ebb_error *err)
{
    const ebb_model_info *info;
    ebb_prompter *p = NULL;
    char notice[256] = "";
    ebb_status st = make_prompter(c, name, &info, &p, notice, err);

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

    if (!c->prompter || c->remote.name || take_template(c, name_in_force(c), false, &err) == EBB_OK)
        return;
    c->settings.is_template_lost = has_own(c);
    report_lost(c, &err);
    if (take_template(c, name_in_force(c), false, &err) != EBB_OK)
        ebb_chat_notice(c, "%s; the template of the session before stays", err.msg);
}

void ebb_template_choice_begin(ebb_chat *c)
{
    if (c->settings.is_template_lost)
        c->settings.template_name[0] = '\0';
    c->settings.is_template_lost = false;
}

/* A file is found again from any folder; what is the name of a template is no file. */
static bool copy_name(const char *name, char *out, size_t cap)
{
    ebb_buf whole = { 0 };
    bool is_file = is_template_file(name) && ebb_path_expand(name, &whole, NULL) == EBB_OK;
    char *path = is_file ? realpath(whole.data, NULL) : NULL;
    int n = snprintf(out, cap, "%s", path ? path : name);

    ebb_buf_fini(&whole);
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
    c->settings.is_template_lost = false;
    ebb_chat_save(c, false);
    return EBB_OK;
}

const char *ebb_chat_template(const ebb_chat *c)
{
    const char *name = name_in_force(c);

    return name ? name : "auto";
}
