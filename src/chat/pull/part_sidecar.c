/* The sidecar of a part (part_sidecar.h). */
#include "pull/part_sidecar.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_load.h"
#include "os/file.h"
#include "os/folder.h"
#include "pull/pull_source.h"

#define MAX_SIDECAR 65536u

/* Replaces *out by the sidecar's path.  Error: NOMEM. */
static ebb_status sidecar_path(const char *part_path, ebb_buf *out, ebb_error *err)
{
    ebb_buf_clear(out);
    return ebb_buf_addf(out, "%s.json", part_path) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
}

/* Whoever may write to the folder may have written it: plain text alone goes into requests and onto the screen. */
static void read_string(const json_t *root, const char *key, char *out, size_t cap)
{
    const char *text = json_string_value(json_object_get(root, key));

    if (text && strlen(text) < cap && ebb_pull_is_plain(text))
        memcpy(out, text, strlen(text) + 1);
}

static bool read_size(const json_t *root, const char *key, uint64_t *out)
{
    const json_t *size = json_object_get(root, key);

    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return false;
    *out = (uint64_t)json_integer_value(size);
    return true;
}

bool ebb_pull_sidecar_read(const char *part_path, ebb_pull_sidecar *n)
{
    ebb_buf path = { 0 }, text = { 0 };
    json_t *root = NULL;

    memset(n, 0, sizeof *n);
    n->n_bytes = UINT64_MAX;
    if (sidecar_path(part_path, &path, NULL) == EBB_OK &&
        ebb_file_slurp_kept(path.data, MAX_SIDECAR, &text, NULL) == EBB_OK)
        root = ebb_json_load(ebb_buf_text(&text), text.len, 0, NULL);
    read_string(root, "command", n->command, sizeof n->command);
    read_string(root, "sha256", n->sha256, sizeof n->sha256);
    read_string(root, "etag", n->etag, sizeof n->etag);
    read_string(root, "modified", n->modified, sizeof n->modified);
    (void)!read_size(root, "bytes", &n->n_bytes);
    if (read_size(root, "synced", &n->n_synced))
        read_string(root, "boot", n->boot, sizeof n->boot);
    json_decref(root);
    ebb_buf_fini(&path);
    ebb_buf_fini(&text);
    return n->command[0] != '\0';
}

static void write_text(json_t *root, const char *key, const char *text)
{
    if (text[0])
        json_object_set_new(root, key, json_string(text));
}

ebb_status ebb_pull_sidecar_write(const char *part_path, const ebb_pull_sidecar *n, ebb_error *err)
{
    json_t *root = json_object();
    ebb_buf path = { 0 };
    char *text;
    ebb_status st = sidecar_path(part_path, &path, err);

    write_text(root, "command", n->command);
    if (n->n_bytes != UINT64_MAX)
        json_object_set_new(root, "bytes", json_integer((json_int_t)n->n_bytes));
    write_text(root, "sha256", n->sha256);
    write_text(root, "etag", n->etag);
    write_text(root, "modified", n->modified);
    write_text(root, "boot", n->boot);
    if (n->boot[0])
        json_object_set_new(root, "synced", json_integer((json_int_t)n->n_synced));
    text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    if (st == EBB_OK && !text)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the sidecar");
    if (st == EBB_OK)
        st = ebb_file_replace(path.data, text, strlen(text), err);
    free(text);
    json_decref(root);
    ebb_buf_fini(&path);
    return st;
}

void ebb_pull_sidecar_remove(const char *part_path)
{
    ebb_buf path = { 0 };

    if (sidecar_path(part_path, &path, NULL) == EBB_OK)
        ebb_file_remove(path.data);
    ebb_buf_fini(&path);
}
