/* Writing conversations for other programs (export.h). */
#include "store/export.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/json_text.h"
#include "store/head_line.h"

bool ebb_export_format_parse(const char *name, ebb_export_format *out)
{
    static const char *const endings[] = { "md", "json", "txt" };
    const char *dot = strrchr(name, '.');
    const char *ending = dot ? dot + 1 : name;

    for (int i = 0; i < 3; i++)
        if (strcmp(ending, endings[i]) == 0) {
            *out = (ebb_export_format)i;
            return true;
        }
    return false;
}

bool ebb_export_is_file(const char *name)
{
    ebb_export_format format;

    return strchr(name, '/') || (strchr(name, '.') && ebb_export_format_parse(name, &format));
}

static void export_date(ebb_buf *out, int64_t ms)
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    char day[32];

    if (gmtime_r(&t, &tm) && strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", &tm))
        ebb_buf_adds(out, day);
}

static void export_md(const ebb_session_facts *f, const ebb_tree *t, ebb_buf *out)
{
    ebb_buf_addf(out, "# %s\n", ebb_session_facts_label(f));
    for (size_t i = 0; i < t->n_path; i++) {
        const ebb_message *m = &t->path[i]->m;

        ebb_buf_addf(out, "\n## %s\n\n", ebb_role_name(m->role));
        ebb_head_line_add_text(out, EBB_EXPORT_MD, m->text, m->n_text);
        ebb_buf_addc(out, '\n');
    }
}

static void export_txt(const ebb_tree *t, ebb_buf *out)
{
    for (size_t i = 0; i < t->n_path; i++) {
        const ebb_message *m = &t->path[i]->m;

        ebb_buf_addf(out, "%s%s:\n", i ? "\n" : "", ebb_role_name(m->role));
        ebb_head_line_add_text(out, EBB_EXPORT_TXT, m->text, m->n_text);
        ebb_buf_addc(out, '\n');
    }
}

static json_t *json_message(const ebb_message *m)
{
    json_t *o = json_object();
    ebb_buf date = { 0 };

    export_date(&date, m->created_ms);
    json_object_set_new(o, "role", json_string(ebb_role_name(m->role)));
    json_object_set_new(o, "content", ebb_json_text(m->text, m->n_text));
    json_object_set_new(o, "created", json_string(ebb_buf_text(&date)));
    if (m->role == EBB_ROLE_ASSISTANT) {
        if (m->model)
            json_object_set_new(o, "model", ebb_json_text(m->model, strlen(m->model)));
        if (m->engine)
            json_object_set_new(o, "engine", ebb_json_text(m->engine, strlen(m->engine)));
        json_object_set_new(o, "finish", json_string(ebb_finish_name(ebb_message_finish_left(m))));
    }
    ebb_buf_fini(&date);
    return o;
}

static bool export_json(const ebb_session_facts *f, const ebb_tree *t, ebb_buf *out)
{
    const char *label = ebb_session_facts_label(f);
    json_t *o = json_object(), *list = json_array();
    char *text;

    for (size_t i = 0; i < t->n_path; i++)
        json_array_append_new(list, json_message(&t->path[i]->m));
    json_object_set_new(o, "title", ebb_json_text(label, strlen(label)));
    json_object_set_new(o, "model", ebb_json_text(f->model, strlen(f->model)));
    json_object_set_new(o, "messages", list);
    text = json_dumps(o, JSON_INDENT(2));
    json_decref(o);
    if (text)
        ebb_buf_addf(out, "%s\n", text);
    free(text);
    return text != NULL;
}

ebb_status ebb_export(const ebb_session_facts *f, const ebb_tree *t, ebb_export_format format, ebb_buf *out,
                      ebb_error *err)
{
    bool ok = true;

    if (format == EBB_EXPORT_MD)
        export_md(f, t, out);
    else if (format == EBB_EXPORT_TXT)
        export_txt(t, out);
    else
        ok = export_json(f, t, out);
    return ok && !out->failed ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory to write the conversation");
}
