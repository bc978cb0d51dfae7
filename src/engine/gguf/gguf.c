/* A GGUF model as one or more files (gguf.h): loading headers and joining the
 * parts of a split model. */
#include "gguf/gguf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "ebb/experimental/inspect.h"
#include "ebb/experimental/type.h"
#include "gguf/gguf_impl.h"
#include "gguf/gguf_parse.h"
#include "gguf/gguf_zip.h"
#include "os/file.h"

#define FIRST_READ_BYTES ((uint64_t)1 << 20)     /* most headers without a vocabulary fit */
#define SLACK_BYTES      ((uint64_t)1 << 16)     /* kept behind a header rather than parsing again */
#define MAX_PARTS        512u
#define SPLIT_SUFFIX     20u                     /* strlen("-00001-of-00003.gguf") */

typedef unsigned long long ull;

/* -- One part ---------------------------------------------------------------------- */
/* What messages call a file: its base name, at most 80 bytes of it. */
static void make_file_label(char label[84], const char *path)
{
    const char *base = ebb_text_file_name(path);
    size_t n = strlen(base);

    snprintf(label, 84, "%s%s", n > 80 ? "..." : "", n > 80 ? base + n - 80 : base);
}

static void part_fini(ebb_gguf_part *p)
{
    ebb_file_close(p->fd);
    free(p->path);
    free(p->header);
    memset(p, 0, sizeof *p);
    p->fd = -1;
}

/* p->header = the first `want` bytes, with room for a NUL behind them. */
static ebb_status read_header(ebb_gguf_part *p, uint64_t want, ebb_error *err)
{
    free(p->header);
    p->header = malloc((size_t)want + 1);
    if (!p->header)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a header of %llu bytes", p->path, (ull)want);
    if (p->memory) {
        memcpy(p->header, p->memory, (size_t)want);
        return EBB_OK;
    }
    return ebb_file_read_at(p->fd, p->path, p->header, (size_t)want, p->begin, err);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Read and parse, with more bytes each time until the header is whole, and
 * once more with exactly its length if that saves memory.  BUSY: what is there of the file ends before. */
static ebb_status load_header(ebb_gguf_part *p, ebb_gguf_header *h, ebb_error *err)
{
    char label[84];
    uint64_t present = min_u64(p->n_present, p->gguf_bytes), want = min_u64(present, FIRST_READ_BYTES), need = 0;

    make_file_label(label, p->path);
    for (;;) {
        ebb_status st = read_header(p, want, err);
        if (st != EBB_OK)
            return st;
        st = ebb_gguf_parse(p->header, want, p->gguf_bytes, label, h, &need, err);
        if (st == EBB_OK && want <= h->n_bytes + SLACK_BYTES)
            return EBB_OK;
        if (st == EBB_BUSY && need > EBB_GGUF_MAX_HEADER)
            return EBB_FAIL(err, EBB_LIMIT, "%s: its header has more than %llu bytes", label, (ull)EBB_GGUF_MAX_HEADER);
        if (st == EBB_BUSY && want == present)
            return EBB_FAIL(err, EBB_BUSY, "%s: its header needs more than the %llu bytes downloaded so far", label,
                            (ull)want);
        if (st != EBB_OK && st != EBB_BUSY)
            return st;
        if (st == EBB_OK)
            want = h->n_bytes;
        else
            want = min_u64(min_u64(present, EBB_GGUF_MAX_HEADER), need > 2 * want ? need : 2 * want);
        ebb_gguf_header_fini(h);
    }
}

/* Load a part whose source (fd or memory) is set. */
static ebb_status load_part(ebb_gguf_part *p, ebb_gguf_header *h, ebb_error *err)
{
    ebb_status st = load_header(p, h, err);

    for (size_t i = 0; st == EBB_OK && i < h->n_tensors; i++)
        h->tensors[i].offset += p->begin;
    p->data_at = h->data_at + p->begin;
    return st;
}

static ebb_status open_part_file(const char *path, ebb_gguf_part *p, ebb_gguf_header *h, ebb_error *err)
{
    ebb_gguf_span at;
    ebb_status st;

    *p = (ebb_gguf_part){ .fd = -1, .path = strdup(path) };
    if (!p->path)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);
    st = ebb_file_open(path, EBB_FILE_READ, &p->fd, err);
    if (st == EBB_NOTFOUND && path[ebb_model_path_file(path)]) {
        p->path[ebb_model_path_file(path)] = '\0';
        p->member = p->path + strlen(p->path) + 1;
        st = ebb_file_open(p->path, EBB_FILE_READ, &p->fd, err);
    }
    if (st == EBB_OK)
        st = ebb_file_size(p->fd, p->path, &p->n_bytes, err);
    if (st == EBB_OK)
        st = ebb_gguf_find_span(p->fd, p->path, p->member, p->n_bytes, &at, err);
    p->n_present = p->n_bytes;
    p->begin = st == EBB_OK ? at.begin : 0;
    p->gguf_bytes = st == EBB_OK ? at.n_bytes : 0;
    return st == EBB_OK ? load_part(p, h, err) : st;
}

static ebb_status open_partial_file(const ebb_partial_file *file, ebb_gguf_part *p, ebb_gguf_header *h, ebb_error *err)
{
    ebb_status st;

    p->path = strdup(file->name);
    if (!p->path)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", file->name);
    st = ebb_file_open(file->path, EBB_FILE_READ, &p->fd, err);
    if (st == EBB_NOTFOUND)
        st = EBB_FAIL(err, EBB_BUSY, "%s: none of it has been downloaded yet", file->name);
    if (st == EBB_OK)
        st = ebb_file_size(p->fd, file->path, &p->n_present, err);
    /* Of an unknown size: as large as any file that is accepted. */
    p->n_bytes = file->n_bytes == UINT64_MAX ? EBB_GGUF_MAX_FILE : file->n_bytes;
    if (p->n_bytes < p->n_present)
        p->n_bytes = p->n_present;
    p->gguf_bytes = p->n_bytes;
    return st == EBB_OK ? load_part(p, h, err) : st;
}

/* -- Joining ----------------------------------------------------------------------- */
static uint64_t header_number(const ebb_gguf_header *h, const char *key, uint64_t otherwise)
{
    size_t n = strlen(key);
    uint64_t v = otherwise;

    for (size_t i = 0; i < h->n_kvs; i++)
        if (h->kvs[i].key_bytes == n && memcmp(h->kvs[i].key, key, n) == 0 && h->kvs[i].type != EBB_GGUF_ARRAY &&
            ebb_gguf_item_u64(&h->kvs[i], 0, &v))
            break;
    return v;
}

/* Hand part i with header h over to g, which owns both afterwards, also on failure. */
static ebb_status adopt_header(ebb_gguf *g, uint32_t i, ebb_gguf_header *h, ebb_error *err)
{
    ebb_gguf_part *p = &g->parts[i];
    size_t n = g->n_tensors + h->n_tensors;
    ebb_gguf_tensor *tensors = NULL;

    if (g->header_bytes + h->n_bytes > EBB_GGUF_MAX_HEADER) {
        ebb_gguf_header_fini(h);
        return EBB_FAIL(err, EBB_LIMIT, "%s: the headers of its parts have more than %llu bytes together", p->path,
                        (ull)EBB_GGUF_MAX_HEADER);
    }
    ebb_hash128(p->header, (size_t)h->n_bytes, g->digest, g->digest);
    ebb_gguf_terminate(h, p->header);
    if (n <= EBB_GGUF_MAX_TENSORS)
        tensors = realloc(g->tensors, (n + 1) * sizeof *tensors);
    if (!tensors) {
        ebb_gguf_header_fini(h);
        return n > EBB_GGUF_MAX_TENSORS
                   ? EBB_FAIL(err, EBB_LIMIT, "%s: more than %llu tensors", p->path, (ull)EBB_GGUF_MAX_TENSORS)
                   : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for the index of %zu tensors", p->path, n);
    }
    g->tensors = tensors;
    memcpy(tensors + g->n_tensors, h->tensors, h->n_tensors * sizeof *tensors);
    for (size_t t = g->n_tensors; t < n; t++)
        tensors[t].part = i;
    g->n_tensors = n;
    g->header_bytes += (size_t)h->n_bytes;
    if (i == 0) {
        g->kvs = h->kvs;
        g->n_kvs = h->n_kvs;
        h->kvs = NULL;
    }
    ebb_gguf_header_fini(h);
    return EBB_OK;
}

static ebb_status alloc_parts(ebb_gguf *g, uint32_t n, ebb_error *err)
{
    g->parts = calloc(n, sizeof *g->parts);
    if (!g->parts)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %u model parts", n);
    for (uint32_t i = 0; i < n; i++)
        g->parts[i].fd = -1;
    g->n_parts = n;
    return EBB_OK;
}

/* *out = the name of part i of n beside `path`.  FORMAT if `path` is not such a name itself. */
static ebb_status part_path(const char *path, uint32_t i, uint32_t n, char **out, ebb_error *err)
{
    char label[84], tail[40];
    size_t len = strlen(path);

    snprintf(tail, sizeof tail, "-of-%05u.gguf", n);
    if (len <= SPLIT_SUFFIX || strcmp(path + len - strlen(tail), tail) != 0 || path[len - SPLIT_SUFFIX] != '-') {
        make_file_label(label, path);
        return EBB_FAIL(err, EBB_FORMAT,
                        "%s: is one of %u parts, but its name does not end in -00001%s: rename the parts", label, n,
                        tail);
    }
    *out = malloc(len + 1);
    if (!*out)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", path);
    snprintf(*out, len + 1, "%.*s-%05u%s", (int)(len - SPLIT_SUFFIX), path, i + 1, tail);
    return EBB_OK;
}

static ebb_status check_part(const ebb_gguf_header *h, uint32_t i, uint32_t n, const char *path, ebb_error *err)
{
    uint64_t no = header_number(h, "split.no", UINT64_MAX), count = header_number(h, "split.count", 1);
    char label[84];

    make_file_label(label, path);
    if (count != n)
        return EBB_FAIL(err, EBB_FORMAT,
                        "%s: belongs to a model of %llu parts, the others to one of %u: from another download?", label,
                        (ull)count, n);
    if (no != i)
        return EBB_FAIL(err, EBB_FORMAT,
                        "%s: says it is part %llu (split.no), but its name says %u: rename or download it again", label,
                        (ull)no + 1, i + 1);
    return EBB_OK;
}

static ebb_status open_one_of(ebb_gguf *g, const char *path, uint32_t i, uint32_t n, ebb_error *err)
{
    ebb_gguf_header h = { 0 };
    char *name = NULL, label[84];
    ebb_status st = part_path(path, i, n, &name, err);

    if (st != EBB_OK)
        return st;
    st = open_part_file(name, &g->parts[i], &h, err);
    if (st == EBB_NOTFOUND) {
        make_file_label(label, name);
        st = EBB_FAIL(err, EBB_NOTFOUND, "%s: part %u of %u is missing: download it into the same folder", label,
                      i + 1, n);
    }
    if (st == EBB_OK)
        st = check_part(&h, i, n, name, err);
    if (st == EBB_OK)
        st = adopt_header(g, i, &h, err);
    ebb_gguf_header_fini(&h);
    free(name);
    return st;
}

static ebb_status open_split(ebb_gguf *g, const char *path, uint32_t n, uint64_t n_tensors, ebb_error *err)
{
    char label[84];
    ebb_status st = alloc_parts(g, n, err);

    for (uint32_t i = 0; i < n && st == EBB_OK; i++)
        st = open_one_of(g, path, i, n, err);
    if (st != EBB_OK || n_tensors == UINT64_MAX || n_tensors == g->n_tensors)
        return st;
    make_file_label(label, path);
    return EBB_FAIL(err, EBB_FORMAT, "%s: its %u parts hold %zu of %llu tensors: download them again", label, n,
                    g->n_tensors, (ull)n_tensors);
}

/* -- Opening ------------------------------------------------------------------------- */
static ebb_status build_index(ebb_gguf *g, ebb_error *err)
{
    char label[84];
    ebb_error why = { 0 };
    ebb_status st = ebb_gguf_index(g, &why);

    if (st == EBB_OK)
        return st;
    make_file_label(label, g->parts[0].path);
    return EBB_FAIL(err, st, "%s: damaged: %.140s", label, why.msg);
}

/* Finish *out from g, or give g up. */
static ebb_status finish_open(ebb_gguf *g, ebb_status st, ebb_gguf **out, ebb_error *err)
{
    if (st == EBB_OK)
        st = build_index(g, err);
    if (st != EBB_OK) {
        ebb_gguf_close(g);
        g = NULL;
    }
    *out = g;
    return st;
}

/* The model of which *p, with header *h, is the only part or one of several; *p is empty if it was taken over. */
static ebb_status open_parts(ebb_gguf *g, const char *path, ebb_gguf_part *p, ebb_gguf_header *h, ebb_error *err)
{
    uint64_t n = header_number(h, "split.count", 1);
    ebb_status st;

    if (n > MAX_PARTS)
        return EBB_FAIL(err, EBB_LIMIT, "%s: claims %llu parts; at most %u are accepted", path, (ull)n,
                        MAX_PARTS);
    if (n > 1)
        return open_split(g, path, (uint32_t)n, header_number(h, "split.tensors.count", UINT64_MAX), err);
    st = alloc_parts(g, 1, err);
    if (st != EBB_OK)
        return st;
    g->parts[0] = *p;
    *p = (ebb_gguf_part){ .fd = -1 };
    return adopt_header(g, 0, h, err);
}

ebb_status ebb_gguf_open(const char *path, ebb_gguf **out, ebb_error *err)
{
    ebb_gguf *g = calloc(1, sizeof *g);
    ebb_gguf_part p = { .fd = -1 };
    ebb_gguf_header h = { 0 };
    ebb_status st;

    *out = NULL;
    if (!g)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a model handle", path);
    st = open_part_file(path, &p, &h, err);
    if (st == EBB_OK)
        st = open_parts(g, path, &p, &h, err);
    ebb_gguf_header_fini(&h);
    part_fini(&p);
    return finish_open(g, st, out, err);
}

ebb_status ebb_gguf_open_memory(const void *data, size_t n_bytes, const char *name, ebb_gguf **out, ebb_error *err)
{
    ebb_gguf *g = calloc(1, sizeof *g);
    ebb_gguf_header h = { 0 };
    ebb_status st;

    *out = NULL;
    if (!g)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a model handle", name);
    st = alloc_parts(g, 1, err);
    if (st != EBB_OK)
        return finish_open(g, st, out, err);
    g->parts[0] = (ebb_gguf_part){ .fd = -1, .path = strdup(name), .memory = data, .gguf_bytes = n_bytes,
                                   .n_bytes = n_bytes, .n_present = n_bytes };
    if (!g->parts[0].path)
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its name", name);
    if (st == EBB_OK)
        st = load_part(&g->parts[0], &h, err);
    if (st == EBB_OK && header_number(&h, "split.count", 1) > 1)
        st = EBB_FAIL(err, EBB_UNSUPPORTED, "%s: a split model cannot be opened from memory", name);
    if (st == EBB_OK)
        st = adopt_header(g, 0, &h, err);
    ebb_gguf_header_fini(&h);
    return finish_open(g, st, out, err);
}

ebb_status ebb_gguf_open_partial(const ebb_partial_file *files, size_t n, size_t *i_busy, ebb_gguf **out,
                                 ebb_error *err)
{
    ebb_gguf *g = calloc(1, sizeof *g);
    ebb_status st;

    *out = NULL;
    if (!g)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a model handle", files[0].name);
    st = alloc_parts(g, (uint32_t)n, err);
    for (uint32_t i = 0; i < n && st == EBB_OK; i++) {
        ebb_gguf_header h = { 0 };

        *i_busy = i;
        st = open_partial_file(&files[i], &g->parts[i], &h, err);
        if (st == EBB_OK && (n > 1 || header_number(&h, "split.count", 1) > 1))
            st = check_part(&h, i, (uint32_t)n, files[i].name, err);
        if (st == EBB_OK)
            st = adopt_header(g, i, &h, err);
        ebb_gguf_header_fini(&h);
    }
    return finish_open(g, st, out, err);
}

void ebb_gguf_close(ebb_gguf *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->n_parts; i++)
        part_fini(&g->parts[i]);
    free(g->parts);
    free(g->kvs);
    free(g->tensors);
    free(g->kv_order);
    free(g->tensor_order);
    free(g);
}

/* -- Looking ------------------------------------------------------------------------- */
uint32_t ebb_gguf_n_parts(const ebb_gguf *g) { return g->n_parts; }
const ebb_gguf_part *ebb_gguf_get_part(const ebb_gguf *g, uint32_t i) { return &g->parts[i]; }
const uint8_t *ebb_gguf_digest(const ebb_gguf *g) { return g->digest; }
size_t ebb_gguf_n_keys(const ebb_gguf *g) { return g->n_kvs; }
const ebb_gguf_kv *ebb_gguf_get_key(const ebb_gguf *g, size_t i) { return &g->kvs[i]; }
size_t ebb_gguf_n_tensors(const ebb_gguf *g) { return g->n_tensors; }
const ebb_gguf_tensor *ebb_gguf_get_tensor(const ebb_gguf *g, size_t i) { return &g->tensors[i]; }

size_t ebb_gguf_header_bytes(const ebb_gguf *g)
{
    return g->header_bytes + g->n_kvs * (sizeof *g->kvs + sizeof *g->kv_order) +
           g->n_tensors * (sizeof *g->tensors + sizeof *g->tensor_order);
}

ebb_status ebb_gguf_check_type(const ebb_gguf_tensor *t, ebb_error *err)
{
    if (ebb_type_get(t->type)->name)
        return EBB_OK;
    if (t->type >= 31 && t->type <= 33)          /* Q4_0_4_4, Q4_0_4_8, Q4_0_8_8 */
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "tensor %.80s: type %u was removed from the format; download the model as Q4_0", t->name,
                        t->type);
    return EBB_FAIL(err, EBB_UNSUPPORTED, "tensor %.80s: type %u is not supported", t->name, t->type);
}
