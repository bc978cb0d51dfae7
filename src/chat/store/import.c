/* Reading conversations that other programs wrote (export.h). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json_load.h"
#include "json/json_mend.h"
#include "store/export.h"
#include "store/head_line.h"
#include "store/import_priv.h"
#include "store/title.h"

/* What the JSON of a conversation may take in memory, by the bytes of its file.  A message of a few words in ChatGPT's
 * exports, where it has thirty values beside it, takes twelve times its bytes. */
enum { JSON_MEMORY_FREE = 128 << 20, JSON_MEMORY_PER_BYTE = 4 };

ebb_status ebb_import_fail(const ebb_tree *t, ebb_error *err)
{
    if (t->n_nodes >= EBB_IMPORT_MESSAGES)
        return EBB_FAIL(err, EBB_LIMIT, "a conversation in it has more than %u messages", EBB_IMPORT_MESSAGES);
    return EBB_FAIL(err, EBB_NOMEM, "no memory for the conversation");
}

/* created_ms 0: it is not known. */
static bool import_message(ebb_tree *t, ebb_role role, const char *text, size_t n, int64_t created_ms)
{
    ebb_node *node = t->n_nodes < EBB_IMPORT_MESSAGES ? ebb_tree_add(t, ebb_tree_leaf(t), role, text, n) : NULL;

    if (!node)
        return false;
    if (created_ms > 0)
        node->m.created_ms = created_ms;
    node->m.finish = EBB_FINISH_STOP;
    return ebb_tree_set_leaf(t, node);
}

/* -- JSON ------------------------------------------------------------------------------ */

static ebb_status import_list(json_t *list, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    ebb_import_said said = { 0 };
    ebb_status st = EBB_OK;
    size_t i;
    json_t *m;

    json_array_foreach(list, i, m) {
        const char *fault = ebb_import_message(m, &said);
        ebb_node *made;

        if (fault)
            st = EBB_FAIL(err, EBB_FORMAT, "message %zu %s", i + 1, fault);
        else if (said.has_place) {
            made = ebb_import_add(t, ebb_tree_leaf(t), &said, m);
            st = made && ebb_tree_set_leaf(t, made) ? EBB_OK : ebb_import_fail(t, err);
            f->changed_ms = said.created_ms > f->changed_ms ? said.created_ms : f->changed_ms;
        }
        if (st != EBB_OK)
            break;
    }
    ebb_buf_fini(&said.text);
    return st;
}

/* `current`: the id of the last one, where they have ids; NULL: it is the file's last one. */
static ebb_status import_messages(json_t *list, const char *current, ebb_session_facts *f, ebb_tree *t,
                                  ebb_error *err)
{
    json_t *nodes = ebb_import_list_nodes(list);
    int64_t changed_ms = 0;
    ebb_status st;

    if (!nodes)
        return import_list(list, f, t, err);
    st = ebb_import_nodes(nodes, current, ebb_import_message, t, &changed_ms, err);
    f->changed_ms = changed_ms > f->changed_ms ? changed_ms : f->changed_ms;
    json_decref(nodes);
    return st;
}

/* An object with its messages: OpenAI's, Ollama's, Claude's, our own; llama.cpp's with facts beside them. */
static ebb_status import_object(json_t *o, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    json_t *list = ebb_import_either(o, "messages", "chat_messages"), *reply = json_object_get(o, "message");
    json_t *facts = json_object_get(o, "conv") ? json_object_get(o, "conv") : o;
    const char *title = json_string_value(ebb_import_either(facts, "title", "name"));
    const char *model = json_string_value(json_object_get(o, "model"));
    const char *current = json_string_value(ebb_import_either(facts, "currNode", "current_leaf_message_uuid"));
    ebb_status st = EBB_OK;

    f->changed_ms = ebb_import_date(ebb_import_either(facts, "created_at", "lastModified"));
    if (title)
        ebb_title_read(title, strlen(title), f->title, sizeof f->title);
    if (model)
        ebb_title_read(model, strlen(model), f->model, sizeof f->model);
    if (!json_is_array(list) && !json_is_object(reply))
        return EBB_FAIL(err, EBB_FORMAT, "there is no array of messages in it");
    if (json_is_array(list))
        st = import_messages(list, current, f, t, err);
    if (st == EBB_OK && json_is_object(reply)) {
        json_t *one = json_pack("[O]", reply);
        st = import_list(one, f, t, err);
        json_decref(one);
    }
    return st;
}

static ebb_status import_conversation(json_t *o, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    if (json_is_array(o))
        return import_messages(o, NULL, f, t, err);
    return json_is_object(json_object_get(o, "mapping")) ? ebb_import_mapping(o, f, t, err)
                                                         : import_object(o, f, t, err);
}

/* An object that is no message itself. */
static bool is_conversation(json_t *o)
{
    return json_is_object(o) && !json_object_get(o, "role") &&
           (ebb_import_either(o, "messages", "chat_messages") || json_object_get(o, "mapping"));
}

/* -- Markdown and text ------------------------------------------------------------------- */

/* The text between two heads, without the blank line that separates them; behind the last one there is none. */
static bool say_lines(ebb_export_format format, ebb_tree *t, ebb_role role, const char *from, const char *to,
                      bool is_last)
{
    ebb_buf text = { 0 };
    bool ok;

    if (format == EBB_EXPORT_MD && from < to && *from == '\n')
        from++;
    for (int i = is_last; i < 2 && from < to && to[-1] == '\n'; i++)
        to--;
    ebb_head_line_read_text(&text, format, from, (size_t)(to - from));
    ok = !text.failed && import_message(t, role, ebb_buf_text(&text), text.len, 0);
    ebb_buf_fini(&text);
    return ok;
}

static ebb_status import_lines(ebb_export_format format, const char *data, size_t n, ebb_session_facts *f, ebb_tree *t,
                               ebb_error *err)
{
    const char *p = data, *end = data + n, *from = NULL;
    ebb_role role = EBB_ROLE_USER, next;
    bool ok = true;

    while (ok && p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;

        if (ebb_head_line_is(format, p, (size_t)(stop - p), &next)) {
            ok = !from || say_lines(format, t, role, from, p, false);
            role = next;
            from = nl ? nl + 1 : end;
        } else if (!from && format == EBB_EXPORT_MD && stop - p > 2 && memcmp(p, "# ", 2) == 0) {
            ebb_title_read(p + 2, (size_t)(stop - p - 2), f->title, sizeof f->title);
        }
        p = nl ? nl + 1 : end;
    }
    ok = ok && (!from || say_lines(format, t, role, from, end, true));
    return ok ? EBB_OK : ebb_import_fail(t, err);
}

/* Whether the first head in it ends as lines of Windows do: then so do all lines, and no text has a \r of its own
 * there. */
static bool has_windows_lines(ebb_export_format format, const char *data, size_t n)
{
    const char *nl;
    ebb_role role;

    for (const char *p = data, *end = data + n; p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1) {
        bool has_return = nl > p && nl[-1] == '\r';

        if (ebb_head_line_is(format, p, (size_t)(nl - p) - has_return, &role))
            return has_return;
    }
    return false;
}

static ebb_status import_windows_lines(ebb_export_format format, const char *data, size_t n, ebb_session_facts *f,
                                       ebb_tree *t, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = ebb_buf_reserve(&text, n) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for its text");

    for (size_t i = 0; st == EBB_OK && i < n; i++)
        if (data[i] != '\r' || i + 1 == n || data[i + 1] != '\n')
            text.data[text.len++] = data[i];
    if (st == EBB_OK)
        st = import_lines(format, text.data, text.len, f, t, err);
    ebb_buf_fini(&text);
    return st;
}

static ebb_status import_text(ebb_export_format format, const char *data, size_t n, ebb_session_facts *f, ebb_tree *t,
                              ebb_error *err)
{
    return (has_windows_lines(format, data, n) ? import_windows_lines : import_lines)(format, data, n, f, t, err);
}

static void title_from_tree(ebb_session_facts *f, const ebb_tree *t)
{
    for (size_t i = 0; i < t->n_path && !f->title[0]; i++)
        if (t->path[i]->m.role == EBB_ROLE_USER)
            ebb_title_make(t->path[i]->m.text, t->path[i]->m.n_text, f->title, sizeof f->title);
}

/* Pass a session that has messages to fn, and empty it. */
static ebb_status deliver_session(ebb_status st, ebb_session_facts *f, ebb_tree *t, ebb_import_fn *fn, void *arg,
                                  size_t *n_done, ebb_error *err)
{
    if (st == EBB_OK && t->n_path) {
        title_from_tree(f, t);
        if (!f->title[0])
            strcpy(f->title, "untitled");
        st = fn(arg, f, t, err);
        *n_done += st == EBB_OK;
    }
    ebb_session_facts_fini(f);
    ebb_tree_fini(t);
    return st;
}

/* A file of JSON, and how far it is read: jansson reads it in pieces, so that somebody may stop it. */
typedef struct json_file {
    const char   *data;
    size_t        n, at;
    size_t        end;           /* of the value that is being read */
    ebb_progress *progress;
} json_file;

static size_t next_piece(void *to, size_t cap, void *arg)
{
    json_file *file = arg;
    size_t take = file->end - file->at < cap ? file->end - file->at : cap;

    if (!ebb_progress_at(file->progress, file->at, file->n))
        return (size_t)-1;
    memcpy(to, file->data + file->at, take);
    file->at += take;
    return take;
}

static ebb_status fail_at(const json_file *file, size_t at, const char *what, ebb_error *err)
{
    size_t line = 1, column = 1;

    for (size_t i = 0; i < at && i < file->n; i++, column++)
        if (file->data[i] == '\n') {
            line++;
            column = 0;
        }
    return EBB_FAIL(err, EBB_FORMAT, "is not JSON: line %zu, column %zu: %s; conversations are read from .json, .md "
                    "and .txt files", line, column, what);
}

/* The value that stands at file->at and ends at file->end. */
static ebb_status load_json(json_file *file, json_t **out, ebb_error *err)
{
    size_t most = JSON_MEMORY_FREE + JSON_MEMORY_PER_BYTE * file->n, begin = file->at;
    json_error_t where;

    *out = NULL;
    if (ebb_json_memory(file->data + begin, file->end - begin) > most)
        return EBB_FAIL(err, EBB_LIMIT,
                        "has so many values that it would take more than %zu MiB; no conversation has", most >> 20);
    *out = json_load_callback(next_piece, file, JSON_ALLOW_NUL, &where);
    file->at = file->end;
    if (ebb_progress_is_stopped(file->progress)) {
        json_decref(*out);
        *out = NULL;
        return EBB_FAIL(err, EBB_CANCELED, "stopped");
    }
    return *out ? EBB_OK : fail_at(file, begin + (size_t)where.position, where.text, err);
}

static void skip_blanks(json_file *file)
{
    while (file->at < file->n && memchr(" \t\r\n", file->data[file->at], 4))
        file->at++;
}

/* Is that the next character?  Then it is read. */
static bool take_sign(json_file *file, char sign)
{
    bool is_next;

    skip_blanks(file);
    is_next = file->at < file->n && file->data[file->at] == sign;
    file->at += is_next;
    return is_next;
}

/* The next item of the file's array. */
static ebb_status load_item(json_file *file, json_t **out, ebb_error *err)
{
    skip_blanks(file);
    file->end = file->at + ebb_json_extent(file->data + file->at, file->n - file->at);
    return load_json(file, out, err);
}

static ebb_status import_one(json_t *o, ebb_import_fn *fn, void *arg, size_t *n_done, ebb_error *err)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_status st = deliver_session(import_conversation(o, &f, &t, err), &f, &t, fn, arg, n_done, err);

    json_decref(o);
    return st;
}

/* An array of conversations behind its first item.  Of the JSON, which takes several times its text, one conversation
 * is in memory at a time. */
static ebb_status import_several(json_file *file, json_t *first, ebb_import_fn *fn, void *arg, size_t *n_done,
                                 ebb_error *err)
{
    ebb_status st = import_one(first, fn, arg, n_done, err);

    while (st == EBB_OK && take_sign(file, ',')) {
        json_t *one;

        st = load_item(file, &one, err);
        if (st == EBB_OK)
            st = import_one(one, fn, arg, n_done, err);
    }
    if (st == EBB_OK && !take_sign(file, ']'))
        st = fail_at(file, file->at, "',' or ']' expected", err);
    skip_blanks(file);
    return st == EBB_OK && file->at < file->n ? fail_at(file, file->at, "end of file expected", err) : st;
}

static ebb_status import_valid_json(const char *data, size_t n, ebb_progress *p, ebb_import_fn *fn, void *arg,
                                    size_t *n_done, ebb_error *err)
{
    json_file file = { .data = data, .n = n, .progress = p };
    json_t *o = NULL;
    ebb_status st;

    if (take_sign(&file, '[') && load_item(&file, &o, NULL) == EBB_OK && is_conversation(o))
        return import_several(&file, o, fn, arg, n_done, err);
    json_decref(o);
    file.at = 0;                                 /* one conversation, perhaps a list of its messages */
    file.end = n;
    st = load_json(&file, &o, err);
    return st == EBB_OK ? import_one(o, fn, arg, n_done, err) : st;
}

static ebb_status import_json(const char *data, size_t n, ebb_progress *p, ebb_import_fn *fn, void *arg,
                              size_t *n_done, ebb_error *err)
{
    ebb_buf mended = { 0 };
    ebb_status st;

    if (!ebb_json_mend(data, n, &mended))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for its text");
    if (mended.len)
        st = import_valid_json(mended.data, mended.len, p, fn, arg, n_done, err);
    else
        st = import_valid_json(data, n, p, fn, arg, n_done, err);
    ebb_buf_fini(&mended);
    return st;
}

/* What is wrong with a file's content is said with its name. */
static ebb_status name_file(const char *name, ebb_status st, ebb_error *err)
{
    ebb_error what;

    if (!err || (st != EBB_FORMAT && st != EBB_LIMIT))
        return st;
    what = *err;
    return EBB_FAIL(err, st, "%.150s: %s", name, what.msg);
}

ebb_status ebb_import_all(const char *name, const char *data, size_t n, ebb_progress *p, ebb_import_fn *fn, void *arg,
                          size_t *n_done, ebb_error *err)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_export_format format = EBB_EXPORT_JSON;
    size_t n_mark = ebb_text_mark(data, n);
    ebb_status st;

    *n_done = 0;
    data += n_mark;
    n -= n_mark;
    ebb_export_format_parse(name, &format);
    if (format == EBB_EXPORT_JSON)
        st = import_json(data, n, p, fn, arg, n_done, err);
    else
        st = deliver_session(import_text(format, data, n, &f, &t, err), &f, &t, fn, arg, n_done, err);
    if (st == EBB_OK && *n_done == 0)
        st = EBB_FAIL(err, EBB_FORMAT, "has no messages");
    return name_file(name, st, err);
}
