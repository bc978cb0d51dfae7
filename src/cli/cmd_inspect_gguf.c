/* ebb inspect gguf: what a model file holds. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli.h"
#include "ebb/experimental/inspect.h"
#include "json/json_text.h"

/* A draft head: the layer that has this tensor. */
typedef struct draft_head { bool is_named, is_there; unsigned layer; uint64_t n_bytes; } draft_head;

static draft_head find_draft_head(const ebb_model *m)
{
    static const char key_end[] = ".nextn_predict_layers";
    draft_head h = { 0 };
    char value[64], layer[32];
    ebb_tensor_info t;

    for (size_t i = 0; i < ebb_model_n_meta(m); i++) {
        const char *key = ebb_model_meta(m, i, value, sizeof value);
        size_t n = strlen(key);

        if (n > strlen(key_end) && strcmp(key + n - strlen(key_end), key_end) == 0)
            h.is_named = strcmp(value, "0") != 0;
    }
    for (size_t i = 0; i < ebb_model_n_tensors(m) && !h.is_there; i++) {
        ebb_model_tensor(m, i, &t);
        h.is_there = strstr(t.name, ".nextn.eh_proj.weight") && sscanf(t.name, "blk.%u.", &h.layer) == 1;
    }
    snprintf(layer, sizeof layer, "blk.%u.", h.layer);
    for (size_t i = 0; i < ebb_model_n_tensors(m) && h.is_there; i++) {
        ebb_model_tensor(m, i, &t);
        h.n_bytes += strncmp(t.name, layer, strlen(layer)) == 0 ? t.n_bytes : 0;
    }
    return h;
}

static int gguf_json(const ebb_model *m)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    json_t *meta = json_object(), *tensors = json_array(), *root;
    char value[4096];

    for (size_t i = 0; i < ebb_model_n_meta(m); i++) {
        const char *key = ebb_model_meta(m, i, value, sizeof value);
        json_object_set_new(meta, key, ebb_json_text_or_null(value));
    }
    for (size_t i = 0; i < ebb_model_n_tensors(m); i++) {
        ebb_tensor_info t;
        json_t *dims = json_array();
        ebb_model_tensor(m, i, &t);
        for (uint32_t d = 0; d < t.n_dims; d++)
            json_array_append_new(dims, json_integer((json_int_t)t.dims[d]));
        const char *type = ebb_type_get(t.type)->name;
        json_array_append_new(tensors, json_pack("{s:s, s:s, s:o, s:I, s:i, s:I}", "name", t.name,
                                                 "type", type ? type : "unknown", "dims", dims,
                                                 "bytes", (json_int_t)t.n_bytes, "part", (int)t.part,
                                                 "offset", (json_int_t)t.offset));
    }
    root = json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o}", "name", ebb_json_text_or_null(info->name), "path",
                     ebb_json_text_or_null(info->path),
                     "architecture", info->arch, "parameters", (json_int_t)info->n_params,
                     "weight_bytes", (json_int_t)info->weight_bytes,
                     "draft_head_bytes", (json_int_t)find_draft_head(m).n_bytes, "metadata", meta, "tensors", tensors);
    return ebb_cli_print_json(root);
}

static void gguf_text(const ebb_model *m)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    char value[200], size[16];
    ebb_buf line = { 0 };

    bool is_large = info->n_params >= 100000000;
    draft_head head = find_draft_head(m);

    ebb_buf_addf(&line, "%s: %s, %s, %.2f %s parameters, %s in %zu tensors\n", info->path, info->arch,
                 info->quantization,
                 (double)info->n_params * (is_large ? 1e-9 : 1e-6), is_large ? "G" : "M",
                 ebb_size_text(info->weight_bytes, size), ebb_model_n_tensors(m));
    if (head.is_there)
        ebb_buf_addf(&line, "draft head: layer %u, %s\n", head.layer, ebb_size_text(head.n_bytes, size));
    else if (head.is_named)
        ebb_buf_addf(&line, "draft head: named, but its tensors are not in the file\n");
    ebb_buf_addc(&line, '\n');
    for (size_t i = 0; i < ebb_model_n_meta(m); i++) {
        const char *key = ebb_model_meta(m, i, value, sizeof value);
        for (char *p = value; *p; p++)
            if (*p == '\n')
                *p = ' ';
        ebb_buf_addf(&line, "%-44s %s\n", key, value);
    }
    ebb_buf_addc(&line, '\n');
    for (size_t i = 0; i < ebb_model_n_tensors(m); i++) {
        ebb_tensor_info t;
        char dims[96];
        int at = 0;
        ebb_model_tensor(m, i, &t);
        const char *type = ebb_type_get(t.type)->name;
        for (uint32_t d = 0; d < t.n_dims; d++)
            at += snprintf(dims + at, sizeof dims - (size_t)at, "%s%" PRIu64, d ? " x " : "", t.dims[d]);
        ebb_buf_addf(&line, "%-44s %-8s %-24s %s\n", t.name, type ? type : "unknown", dims,
                     ebb_size_text(t.n_bytes, size));
    }
    ebb_cli_print(ebb_buf_text(&line), line.len);
    ebb_buf_fini(&line);
}

int ebb_cmd_inspect_gguf(ebb_args *a)
{
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;

    if (ebb_cli_open_model(a, &m, &err) != EBB_OK)
        return ebb_cli_fail(&err);
    if (a->json)
        status = gguf_json(m);
    else
        gguf_text(m);
    ebb_model_close(m);
    return status;
}
