/* One message of another program's JSON (import_priv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "store/head_line.h"
#include "store/import_priv.h"
#include "tree/attachment.h"

/* What stands behind a time, "Z", "+01:00", ".5-0800": seconds by which its zone is ahead. */
static int zone_of(const char *s)
{
    int sign, hours, minutes = 0;

    if (*s == '.')
        s += 1 + strspn(s + 1, "0123456789");
    sign = *s == '+' ? 1 : *s == '-' ? -1 : 0;
    if (sign == 0 || (sscanf(s + 1, "%2d:%2d", &hours, &minutes) < 2 && sscanf(s + 1, "%2d%2d", &hours, &minutes) < 1))
        return 0;
    return sign * 60 * (60 * hours + minutes);
}

int64_t ebb_import_date(json_t *when)
{
    static const double least_ms = 1e11, latest_ms = 1e14;       /* as seconds: the year 5138 */
    const char *text = json_string_value(when), *rest;
    double number = json_number_value(when);
    struct tm tm = { 0 };

    if (json_is_number(when))
        return number > 0 && number < latest_ms ? (int64_t)(number < least_ms ? number * 1000 : number) : 0;
    rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return rest ? ((int64_t)timegm(&tm) - zone_of(rest)) * 1000 : 0;
}

json_t *ebb_import_either(json_t *o, const char *name, const char *other)
{
    json_t *found = json_object_get(o, name);

    return found && !json_is_null(found) ? found : json_object_get(o, other);
}

/* -- What a message says, part by part --------------------------------------------------- */

typedef enum part_kind { NOTHING, THOUGHT, WORDS } part_kind;

typedef struct writer {
    ebb_buf  *out;
    part_kind in;
    bool      is_apart;          /* something stood here that has no place */
    bool      has_words;
} writer;

/* As all answers are kept whose thought came apart. */
static void change_part(writer *w, part_kind to)
{
    if (w->in == THOUGHT)
        ebb_buf_adds(w->out, EBB_THOUGHT_BEHIND);
    else if (w->in == WORDS && to != NOTHING)
        ebb_buf_adds(w->out, "\n\n");
    if (to == THOUGHT)
        ebb_buf_adds(w->out, EBB_THOUGHT_BEFORE);
    w->in = to;
}

/* Nothing, if s is no string. */
static void write_part(writer *w, part_kind kind, json_t *s)
{
    if (json_string_length(s) == 0)
        return;
    if (w->in != kind || w->is_apart)
        change_part(w, kind);
    w->is_apart = false;
    w->has_words = w->has_words || kind == WORDS;
    ebb_buf_add(w->out, json_string_value(s), json_string_length(s));
}

/* Texts of one kind follow each other as they are, unless a call of a tool stood between them in an answer. */
static void write_parts(writer *w, json_t *list, bool thinks)
{
    size_t i;
    json_t *part;

    json_array_foreach(list, i, part) {
        json_t *text = json_is_string(part) ? part : json_object_get(part, "text");
        json_t *thought = json_object_get(part, "thinking");

        if (thinks && json_is_string(thought))
            write_part(w, THOUGHT, thought);
        else if (json_is_string(text))
            write_part(w, WORDS, text);
        else
            w->is_apart = w->is_apart || (thinks && json_object_get(part, "type"));
    }
}

/* A string, or parts; false: it is neither. */
static bool write_content(writer *w, json_t *content, bool thinks)
{
    if (json_is_array(content))
        write_parts(w, content, thinks);
    else
        write_part(w, WORDS, content);
    return !content || json_is_null(content) || json_is_string(content) || json_is_array(content);
}

/* Engines' names for it. */
static void write_thoughts(writer *w, json_t *m)
{
    static const char *const names[] = { "reasoning_content", "reasoning", "thinking" };

    for (size_t i = 0; i < sizeof names / sizeof *names && w->in == NOTHING; i++)
        write_part(w, THOUGHT, json_object_get(m, names[i]));
}

/* Of Claude and llama.cpp. */
static void write_attachments(ebb_buf *out, json_t *list)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item) {
        json_t *text = ebb_import_either(item, "extracted_content", "content");
        const char *name = json_string_value(ebb_import_either(item, "file_name", "name"));
        ebb_buf line = { 0 };

        if (json_string_length(text) == 0)
            continue;
        ebb_utf8_add_line(&line, name ? name : "", name ? strlen(name) : 0, false);
        ebb_attachment_add_file(out, line.len ? ebb_buf_text(&line) : "pasted.txt", json_string_value(text),
                                json_string_length(text));
        ebb_buf_fini(&line);
    }
}

/* The words stand in `content`, in Claude's older exports in `text` alone. */
static bool write_words(ebb_buf *out, json_t *m, bool thinks)
{
    writer w = { .out = out };
    bool is_text;

    if (thinks)
        write_thoughts(&w, m);
    is_text = write_content(&w, json_object_get(m, "content"), thinks);
    if (!w.has_words)
        is_text = write_content(&w, json_object_get(m, "text"), thinks) && is_text;
    if (w.in == THOUGHT)
        change_part(&w, NOTHING);
    return is_text;
}

const char *ebb_import_message(json_t *m, ebb_import_said *out)
{
    const char *role = json_string_value(ebb_import_either(m, "role", "sender"));
    const char *type = json_string_value(json_object_get(m, "type"));
    json_t *when = ebb_import_either(m, "created", "created_at");        /* ebb's own; others' */

    ebb_buf_clear(&out->text);
    if (!role)
        return "has no role";
    out->has_place = ebb_import_role(role, strlen(role), &out->role);
    if (!out->has_place)
        return NULL;
    out->created_ms = ebb_import_date(when ? when : json_object_get(m, "timestamp"));
    write_attachments(&out->text, json_object_get(m, "attachments"));
    write_attachments(&out->text, json_object_get(m, "extra"));
    if (!write_words(&out->text, m, out->role == EBB_ROLE_ASSISTANT))
        return "has no text as content";
    if (out->text.len == 0)                      /* calls of tools alone; the root of llama.cpp's trees */
        out->has_place = !json_array_size(json_object_get(m, "tool_calls")) && (!type || strcmp(type, "root") != 0);
    return NULL;
}

/* -- Into the tree ------------------------------------------------------------------------ */

/* A name that is no longer than that of a session's model; NULL: there is none. */
static char *copy_name(json_t *name)
{
    size_t n = json_string_length(name);

    return n > 0 && n < sizeof ((ebb_session_facts *)0)->model ? strndup(json_string_value(name), n) : NULL;
}

ebb_node *ebb_import_add(ebb_tree *t, ebb_node *above, const ebb_import_said *said, json_t *m)
{
    bool has_room = t->n_nodes < EBB_IMPORT_MESSAGES && !said->text.failed;
    ebb_node *made = has_room ? ebb_tree_add(t, above, said->role, ebb_buf_text(&said->text), said->text.len) : NULL;
    const char *finish = json_string_value(json_object_get(m, "finish"));

    if (!made)
        return NULL;
    made->m.finish = EBB_FINISH_STOP;
    if (said->created_ms > 0)
        made->m.created_ms = said->created_ms;
    if (said->role == EBB_ROLE_ASSISTANT) {      /* what ebb writes beside the text */
        made->m.model = copy_name(json_object_get(m, "model"));
        made->m.engine = copy_name(json_object_get(m, "engine"));
        if (finish)
            ebb_finish_parse(finish, &made->m.finish);
        made->m.finish = ebb_message_finish_left(&made->m);
    }
    return made;
}
