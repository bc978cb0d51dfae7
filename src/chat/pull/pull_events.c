/* Events of a download as lines of JSON (pull_events.h). */
#include "pull/pull_events.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_load.h"
#include "json/json_text.h"

static const char *const kinds[] = { "notice", "progress", "done", "error" };
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* -- Writing ------------------------------------------------------------------------------------ */

/* null where it is not known. */
static json_t *known_real(double v)
{
    return v < 0 ? json_null() : json_real(v);
}

static json_t *event_json(const ebb_pull_event *e)
{
    const ebb_download_progress *p = &e->progress;

    if (e->kind == EBB_PULL_PROGRESS)
        return json_pack("{s:s, s:o, s:i, s:i, s:I, s:o, s:o, s:o, s:b}", "event", kinds[e->kind], "file",
                         ebb_json_text(e->file, strlen(e->file)), "index", (int)e->i_file, "files",
                         (int)e->n_files, "done", (json_int_t)p->done, "total",
                         p->total == UINT64_MAX ? json_null() : json_integer((json_int_t)p->total), "bytes_s",
                         known_real(p->bytes_s), "left_s", known_real(p->left_s), "checking", (int)p->is_check);
    if (e->kind == EBB_PULL_DONE)
        return json_pack("{s:s, s:o, s:o, s:I, s:b, s:b, s:f}", "event", kinds[e->kind], "file",
                         ebb_json_text(e->file, strlen(e->file)), "path", ebb_json_text(e->path, strlen(e->path)),
                         "bytes", (json_int_t)e->n_bytes, "was_there", (int)e->was_there, "verified",
                         (int)e->is_verified, "seconds", e->seconds);
    return json_pack("{s:s, s:o}", "event", kinds[e->kind], "text", ebb_json_text(e->text, strlen(e->text)));
}

bool ebb_pull_event_add(ebb_buf *out, const ebb_pull_event *e)
{
    json_t *root = event_json(e);
    char *line = root ? json_dumps(root, JSON_COMPACT) : NULL;
    bool ok = line && ebb_buf_adds(out, line) && ebb_buf_addc(out, '\n');

    free(line);
    json_decref(root);
    return ok;
}

/* -- Reading -------------------------------------------------------------------------------------- */

static void read_event_text(const json_t *root, const char *key, char *out, size_t cap)
{
    const char *s = json_string_value(json_object_get(root, key));

    snprintf(out, cap, "%s", s ? s : "");
}

static uint64_t read_event_size(const json_t *root, const char *key, uint64_t otherwise)
{
    const json_t *v = json_object_get(root, key);

    return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) : otherwise;
}

static double read_event_real(const json_t *root, const char *key)
{
    const json_t *v = json_object_get(root, key);

    return json_is_number(v) ? json_number_value(v) : -1;
}

static bool read_event(const json_t *root, ebb_pull_event *out)
{
    const char *kind = json_string_value(json_object_get(root, "event"));
    int k = 0;

    while (kind && k < N_KINDS && strcmp(kind, kinds[k]) != 0)
        k++;
    if (!kind || k == N_KINDS)
        return false;
    *out = (ebb_pull_event){ .kind = (ebb_pull_event_kind)k };
    read_event_text(root, "text", out->text, sizeof out->text);
    read_event_text(root, "file", out->file, sizeof out->file);
    read_event_text(root, "path", out->path, sizeof out->path);
    out->i_file = (unsigned)read_event_size(root, "index", 0);
    out->n_files = (unsigned)read_event_size(root, "files", 1);
    out->progress = (ebb_download_progress){
        .done = read_event_size(root, "done", 0), .total = read_event_size(root, "total", UINT64_MAX),
        .bytes_s = read_event_real(root, "bytes_s"), .left_s = read_event_real(root, "left_s"),
        .is_check = json_is_true(json_object_get(root, "checking")),
    };
    out->n_bytes = read_event_size(root, "bytes", 0);
    out->was_there = json_is_true(json_object_get(root, "was_there"));
    out->is_verified = json_is_true(json_object_get(root, "verified"));
    out->seconds = read_event_real(root, "seconds");
    return true;
}

bool ebb_pull_event_read(const char *line, size_t n, ebb_pull_event *out)
{
    json_t *root = ebb_json_load(line, n, 0, NULL);
    bool ok = root && read_event(root, out);

    json_decref(root);
    return ok;
}
