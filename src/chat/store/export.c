/* Writing conversations for other programs (export.h). */
#include "store/export.h"

#include <jansson.h>
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

/* What there is no memory for is a failure: left out, it would be lost without a word. */
static bool set_member(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value) == 0;
}

static bool set_text(json_t *o, const char *key, const char *text, size_t n)
{
    return set_member(o, key, ebb_json_text(text, n));
}

static bool set_message(json_t *o, const ebb_message *m)
{
    ebb_buf date = { 0 };
    bool ok;

    export_date(&date, m->created_ms);
    ok = !date.failed && set_member(o, "role", json_string(ebb_role_name(m->role))) &&
         set_text(o, "content", m->text, m->n_text) &&
         set_member(o, "created", json_string(ebb_buf_text(&date)));
    if (m->role == EBB_ROLE_ASSISTANT)
        ok = ok && (!m->model || set_text(o, "model", m->model, strlen(m->model))) &&
             (!m->engine || set_text(o, "engine", m->engine, strlen(m->engine))) &&
             set_member(o, "finish", json_string(ebb_finish_name(ebb_message_finish_left(m))));
    ebb_buf_fini(&date);
    return ok;
}

static bool set_messages(json_t *o, const ebb_tree *t)
{
    json_t *list = json_array();
    bool ok = list != NULL;

    for (size_t i = 0; ok && i < t->n_path; i++) {
        json_t *m = json_object();

        ok = set_message(m, &t->path[i]->m);
        ok = json_array_append_new(list, m) == 0 && ok;
    }
    return set_member(o, "messages", list) && ok;
}

static int add_piece(const char *piece, size_t n, void *out)
{
    return ebb_buf_add(out, piece, n) ? 0 : -1;
}

/* json_dumps would go on behind a piece of a name that it had no memory for; a buffer that has failed stays so. */
static bool export_json(const ebb_session_facts *f, const ebb_tree *t, ebb_buf *out)
{
    const char *label = ebb_session_facts_label(f);
    json_t *o = json_object();
    bool ok = set_text(o, "title", label, strlen(label)) && set_text(o, "model", f->model, strlen(f->model)) &&
              set_messages(o, t) && json_dump_callback(o, add_piece, out, JSON_INDENT(2)) == 0;

    json_decref(o);
    return ok && ebb_buf_addc(out, '\n');
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
