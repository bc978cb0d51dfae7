/* ebb inspect template: what a chat template makes of a conversation, byte for byte. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "cli.h"
#include "json/json_load.h"
#include "json/json_text.h"
#include "os/file.h"
#include "prompt/prompt.h"
#include "template/family.h"
#include "template/template.h"

#define MAX_FILE ((size_t)64 << 20)

typedef struct job {
    ebb_model    *m;             /* with -m */
    ebb_template *t;
    json_t       *context;
    struct tm     now;
    bool          has_now;
} job;

static ebb_status read_now(const char *text, job *j, ebb_error *err)
{
    const char *end;

    if (!text)
        return EBB_OK;
    end = strptime(text, "%Y-%m-%dT%H:%M:%S", &j->now);
    if (!end || *end)
        return EBB_FAIL(err, EBB_USAGE, "--now %.60s: write the time as 2025-03-07T09:05:03", text);
    j->now.tm_isdst = -1;
    mktime(&j->now);
    j->has_now = true;
    return EBB_OK;
}

static ebb_status read_context(const char *path, job *j, ebb_error *err)
{
    ebb_buf text = { 0 };
    json_error_t e;
    ebb_status st;

    st = ebb_file_slurp(path, MAX_FILE, &text, err);
    if (st != EBB_OK)
        return st;
    j->context = ebb_json_load(ebb_buf_text(&text), text.len, 0, &e);
    ebb_buf_fini(&text);
    if (!j->context)
        return EBB_FAIL(err, EBB_FORMAT, "%s, line %d: %s", path, e.line, e.text);
    if (!json_is_object(j->context))
        return EBB_FAIL(err, EBB_FORMAT, "%s: not a JSON object", path);
    return EBB_OK;
}

/* bos_token or eos_token of the model, unless the context has its own. */
static void set_token(job *j, const char *key, ebb_token id)
{
    char text[256];
    size_t n = id >= 0 ? ebb_model_piece(j->m, id, true, text, sizeof text) : 0;

    if (!json_object_get(j->context, key))
        json_object_set_new(j->context, key, json_stringn(text, n < sizeof text ? n : 0));
}

/* The one that --template or the configuration names, as a chat takes it. */
static ebb_status compile_named(const ebb_args *a, job *j, ebb_error *err)
{
    ebb_prompter *p = NULL;
    ebb_buf source = { 0 };
    ebb_status st = ebb_prompter_new_named(j->m, a->template_name, &p, err);

    if (st == EBB_OK)
        st = ebb_prompter_source(p, &source, err);
    if (st == EBB_OK)
        st = ebb_template_compile(ebb_buf_text(&source), source.len, &j->t, err);
    ebb_buf_fini(&source);
    ebb_prompter_free(p);
    return st;
}

static ebb_status open_template(const ebb_args *a, job *j, ebb_error *err)
{
    ebb_buf source = { 0 };
    char why[80];
    const char *own;
    ebb_status st;

    if (a->file_path) {
        st = ebb_file_slurp(a->file_path, MAX_FILE, &source, err);
        if (st == EBB_OK)
            st = ebb_template_compile(ebb_buf_text(&source), source.len, &j->t, err);
        ebb_buf_fini(&source);
        return st;
    }
    st = ebb_cli_open_model(a, &j->m, err);
    if (st != EBB_OK)
        return st;
    set_token(j, "bos_token", ebb_model_bos(j->m));
    set_token(j, "eos_token", ebb_model_eos(j->m));
    if (a->template_name && strcmp(a->template_name, "auto") != 0)
        return compile_named(a, j, err);
    own = ebb_model_template(j->m, NULL);
    if (!own) {
        const ebb_template_family *f = ebb_template_family_choose(j->m, why, sizeof why);
        fprintf(stderr, "ebb: the file has no template; using %s, chosen by %s\n", f->name, why);
        own = f->source;
    }
    return ebb_template_compile(own, strlen(own), &j->t, err);
}

/* What the template said, whole, as one that raises may say much. */
static int print_refusal(const ebb_buf *message)
{
    ebb_buf shown = { 0 };

    ebb_utf8_add_visible(&shown, ebb_buf_text(message), message->len, false);
    fprintf(stderr, "ebb: %s\n", ebb_buf_text(&shown));
    ebb_buf_fini(&shown);
    return EBB_EXIT_FAILED;
}

static int print_rendered(const ebb_args *a, const job *j)
{
    ebb_template_opts o = { .no_generation_prompt = a->no_generation_prompt, .now = j->has_now ? &j->now : NULL };
    ebb_template_result r;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;

    if (ebb_template_render(j->t, j->context, &o, &r, &err) != EBB_OK)
        status = r.raised ? print_refusal(&r.message) : ebb_cli_fail(&err);
    else if (a->json)
        status = ebb_cli_print_json(json_pack("{s:o}", "text", ebb_json_text(ebb_buf_text(&r.text), r.text.len)));
    else
        ebb_cli_print(ebb_buf_text(&r.text), r.text.len);
    ebb_template_result_fini(&r);
    return status;
}

static int print_choice_json(const ebb_buf *source, const char *origin)
{
    return ebb_cli_print_json(json_pack("{s:o, s:o}", "template", ebb_json_text(ebb_buf_text(source), source->len),
                                        "origin", ebb_json_text_or_null(origin)));
}

/* Which template a chat would take, and why, on standard error; its text on standard output. */
static int print_choice(ebb_args *a)
{
    ebb_prompter *p = NULL;
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    ebb_buf source = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st = ebb_cli_open_model(a, &m, &err);

    if (st == EBB_OK)
        st = ebb_prompter_new_named(m, a->template_name, &p, &err);
    if (st == EBB_OK)
        st = ebb_prompter_source(p, &source, &err);
    if (st == EBB_OK && a->json) {
        status = print_choice_json(&source, ebb_prompter_origin(p));
    } else if (st == EBB_OK) {
        ebb_cli_print(ebb_buf_text(&source), source.len);
        if (source.len > 0 && source.data[source.len - 1] != '\n')
            putchar('\n');
        fprintf(stderr, "chat template: %s\n", ebb_prompter_origin(p));
    }
    ebb_buf_fini(&source);
    ebb_prompter_free(p);
    ebb_model_close(m);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}

int ebb_cmd_inspect_template(ebb_args *a)
{
    job j = { 0 };
    ebb_error err = { 0 };
    ebb_status st = read_now(a->now, &j, &err);
    int status;

    if (!a->context_path && !a->file_path && st == EBB_OK)
        return print_choice(a);
    if (st == EBB_OK && !a->context_path)
        st = EBB_FAIL(&err, EBB_USAGE, "inspect template: --file needs --context FILE, a JSON object with messages");
    if (st == EBB_OK)
        st = read_context(a->context_path, &j, &err);
    if (st == EBB_OK)
        st = open_template(a, &j, &err);
    status = st == EBB_OK ? print_rendered(a, &j) : ebb_cli_fail(&err);
    ebb_template_free(j.t);
    ebb_model_close(j.m);
    json_decref(j.context);
    return status;
}
