/* The header of one GGUF file (gguf_parse.h): a cursor that never leaves the
 * file, the metadata, the tensor index. */
#include "gguf/gguf_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "ebb/experimental/type.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF numbers are read in place: this needs a little-endian machine"
#endif

#define MIN_KV_BYTES     14u     /* length, one letter, type, one byte */
#define MIN_TENSOR_BYTES 25u     /* length, one letter, number of dimensions, type, offset */
#define MAX_ALIGNMENT    ((uint64_t)1 << 30)

/* Bytes of a value; 0 for strings and arrays. */
static const uint8_t value_bytes[EBB_GGUF_TYPE_COUNT] = {
    [EBB_GGUF_U8] = 1,  [EBB_GGUF_I8] = 1,  [EBB_GGUF_U16] = 2, [EBB_GGUF_I16] = 2, [EBB_GGUF_U32] = 4,
    [EBB_GGUF_I32] = 4, [EBB_GGUF_F32] = 4, [EBB_GGUF_BOOL] = 1, [EBB_GGUF_U64] = 8, [EBB_GGUF_I64] = 8,
    [EBB_GGUF_F64] = 8,
};

typedef unsigned long long ull;

/* -- The cursor --------------------------------------------------------------- */
typedef struct cursor {
    const char *bytes;           /* the first `have` of the `size` bytes of the file */
    uint64_t    have, size, pos;
    uint64_t    need;            /* set with BUSY */
    const char *name;            /* for messages */
    ebb_error  *err;
} cursor;

/* *p = the next n bytes.  `what` and `of` name them if the file ends before. */
static ebb_status cursor_take(cursor *c, uint64_t n, const char **p, const char *what, const char *of)
{
    if (n > c->size - c->pos)
        return EBB_FAIL(c->err, EBB_FORMAT,
                        "%s: damaged or truncated: at byte %llu the %s of %.60s takes %llu bytes, but the file has "
                        "%llu; download it again", c->name, (ull)c->pos, what, of, (ull)n, (ull)c->size);
    if (n > c->have - c->pos) {
        c->need = c->pos + n;
        return EBB_BUSY;
    }
    *p = c->bytes + c->pos;
    c->pos += n;
    return EBB_OK;
}

static ebb_status cursor_take_u32(cursor *c, uint32_t *out, const char *what, const char *of)
{
    const char *p = NULL;
    ebb_status st = cursor_take(c, sizeof *out, &p, what, of);

    if (st == EBB_OK)
        memcpy(out, p, sizeof *out);
    return st;
}

static ebb_status cursor_take_u64(cursor *c, uint64_t *out, const char *what, const char *of)
{
    const char *p = NULL;
    ebb_status st = cursor_take(c, sizeof *out, &p, what, of);

    if (st == EBB_OK)
        memcpy(out, p, sizeof *out);
    return st;
}

/* *n_bytes and *text are set together or not at all. */
static ebb_status cursor_take_text(cursor *c, const char **text, uint64_t *n_bytes, const char *what, const char *of)
{
    uint64_t n = 0;
    ebb_status st = cursor_take_u64(c, &n, what, of);

    if (st == EBB_OK)
        st = cursor_take(c, n, text, what, of);
    if (st == EBB_OK)
        *n_bytes = n;
    return st;
}

/* A key or a tensor name: rule G1 (gguf.h). */
static ebb_status cursor_take_name(cursor *c, const char **text, uint32_t *n_bytes, uint64_t max, const char *what,
                            const char *of)
{
    const char *name = NULL;
    uint64_t n = 0;
    ebb_status st = cursor_take_u64(c, &n, what, of);

    if (st != EBB_OK)
        return st;
    if (n == 0 || n > max)
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: the %s of %s has %llu bytes (1 to %llu are allowed)",
                        c->name, what, of, (ull)n, (ull)max);
    st = cursor_take(c, n, &name, what, of);
    if (st != EBB_OK)
        return st;
    if (memchr(name, '\0', n))
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: the %s of %s holds a NUL byte", c->name, what, of);
    *text = name;
    *n_bytes = (uint32_t)n;
    return EBB_OK;
}

/* A name of n bytes as a C string for a message. */
static const char *visible_name(char buf[64], const char *name, uint32_t n)
{
    size_t keep = n < 63 ? n : 63;

    memcpy(buf, name, keep);
    buf[keep] = '\0';
    return buf;
}

/* -- Metadata ------------------------------------------------------------------ */
static ebb_status check_value_type(const cursor *c, uint32_t type, const char *key)
{
    if (type < EBB_GGUF_TYPE_COUNT)
        return EBB_OK;
    return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: key %s has a value of unknown type %u", c->name, key, type);
}

static ebb_status parse_array(cursor *c, ebb_gguf_kv *kv, const char *key)
{
    uint32_t item = 0;
    uint64_t n = 0, n_bytes, start, min_bytes;
    const char *data;
    ebb_status st = cursor_take_u32(c, &item, "type", key);

    if (st == EBB_OK)
        st = check_value_type(c, item, key);
    if (st == EBB_OK && item == EBB_GGUF_ARRAY)
        return EBB_FAIL(c->err, EBB_UNSUPPORTED, "%s: key %s is an array of arrays, which ebb does not read", c->name,
                        key);
    if (st == EBB_OK)
        st = cursor_take_u64(c, &n, "length", key);
    if (st != EBB_OK)
        return st;
    start = c->pos;
    data = c->bytes + start;
    min_bytes = item == EBB_GGUF_STRING ? 8 : value_bytes[item];
    if (n > (c->size - start) / min_bytes)
        return EBB_FAIL(c->err, EBB_FORMAT,
                        "%s: damaged or truncated: array %s has %llu items, but the file has %llu bytes; "
                        "download it again",
                        c->name, key, (ull)n, (ull)c->size);
    if (item != EBB_GGUF_STRING)
        st = cursor_take(c, n * min_bytes, &data, "array", key);
    for (uint64_t i = 0; item == EBB_GGUF_STRING && i < n && st == EBB_OK; i++) {
        const char *text;

        st = cursor_take_text(c, &text, &n_bytes, "array", key);
    }
    if (st != EBB_OK)
        return st;
    kv->item_type = (ebb_gguf_type)item;
    kv->n = n;
    kv->n_bytes = c->pos - start;
    kv->data = data;
    return EBB_OK;
}

static ebb_status parse_string(cursor *c, ebb_gguf_kv *kv, const char *key)
{
    ebb_status st = cursor_take_text(c, &kv->data, &kv->n_bytes, "text", key);

    if (st == EBB_OK && memchr(kv->data, '\0', kv->n_bytes))
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: the text of key %s holds a NUL byte", c->name, key);
    return st;
}

static ebb_status parse_kv(cursor *c, ebb_gguf_kv *kv)
{
    char key[64];
    uint32_t type = 0;
    ebb_status st = cursor_take_name(c, &kv->key, &kv->key_bytes, EBB_GGUF_MAX_KEY, "name", "a metadata key");

    if (st != EBB_OK)
        return st;
    visible_name(key, kv->key, kv->key_bytes);
    st = cursor_take_u32(c, &type, "type", key);
    if (st == EBB_OK)
        st = check_value_type(c, type, key);
    if (st != EBB_OK)
        return st;
    kv->type = kv->item_type = (ebb_gguf_type)type;
    kv->n = 1;
    if (type == EBB_GGUF_ARRAY)
        return parse_array(c, kv, key);
    if (type == EBB_GGUF_STRING)
        return parse_string(c, kv, key);
    st = cursor_take(c, value_bytes[type], &kv->data, "value", key);
    kv->n_bytes = st == EBB_OK ? value_bytes[type] : 0;
    return st;
}

static ebb_status read_alignment(const cursor *c, const ebb_gguf_kv *kv, ebb_gguf_header *h)
{
    static const char name[] = "general.alignment";
    uint64_t a = 0;

    if (kv->key_bytes != sizeof name - 1 || memcmp(kv->key, name, sizeof name - 1) != 0)
        return EBB_OK;
    if (kv->type == EBB_GGUF_ARRAY || !ebb_gguf_item_u64(kv, 0, &a) || a == 0 || a > MAX_ALIGNMENT || (a & (a - 1)))
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: general.alignment is not a power of two up to 2^30", c->name);
    h->alignment = a;
    return EBB_OK;
}

/* n_kvs counts those that are whole. */
static ebb_status parse_metadata(cursor *c, ebb_gguf_header *h, size_t n)
{
    ebb_status st = EBB_OK;

    h->alignment = 32;
    h->kvs = calloc(n + 1, sizeof *h->kvs);
    if (!h->kvs)
        return EBB_FAIL(c->err, EBB_NOMEM, "%s: no memory for %zu metadata keys", c->name, n);
    for (size_t i = 0; i < n && st == EBB_OK; i++) {
        st = parse_kv(c, &h->kvs[i]);
        if (st == EBB_OK)
            st = read_alignment(c, &h->kvs[i], h);
        h->n_kvs += st == EBB_OK;
    }
    return st;
}

/* -- Tensor index -------------------------------------------------------------- */
static ebb_status parse_dims(cursor *c, ebb_gguf_tensor *t, const char *name)
{
    ebb_status st = cursor_take_u32(c, &t->n_dims, "number of dimensions", name);

    if (st == EBB_OK && t->n_dims > 4)
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: tensor %s has %u dimensions", c->name, name, t->n_dims);
    t->n_elems = 1;
    for (uint32_t i = 0; i < 4; i++)
        t->dims[i] = 1;
    for (uint32_t i = 0; i < t->n_dims && st == EBB_OK; i++) {
        st = cursor_take_u64(c, &t->dims[i], "dimensions", name);
        if (st == EBB_OK && (t->dims[i] == 0 || t->dims[i] > INT64_MAX / t->n_elems))
            return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: dimension %u of tensor %s is %llu", c->name, i, name,
                            (ull)t->dims[i]);
        t->n_elems *= t->dims[i];
    }
    if (t->n_dims == 0)                          /* a scalar is a row of one */
        t->n_dims = 1;
    return st;
}

static ebb_status size_tensor(const cursor *c, ebb_gguf_tensor *t, const char *name)
{
    const ebb_type_info *type = ebb_type_get(t->type);

    if (!type->name)
        return EBB_OK;
    if (t->dims[0] % type->block_len != 0)
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: tensor %s has rows of %llu; %s needs a multiple of %u",
                        c->name, name, (ull)t->dims[0], type->name, type->block_len);
    if (__builtin_mul_overflow(t->n_elems / type->block_len, (uint64_t)type->block_bytes, &t->n_bytes))
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: tensor %s has %llu elements", c->name, name, (ull)t->n_elems);
    return EBB_OK;
}

static ebb_status parse_tensor(cursor *c, ebb_gguf_tensor *t)
{
    char name[64];
    ebb_status st = cursor_take_name(c, &t->name, &t->name_bytes, EBB_GGUF_MAX_NAME, "name", "a tensor");

    if (st != EBB_OK)
        return st;
    visible_name(name, t->name, t->name_bytes);
    st = parse_dims(c, t, name);
    if (st == EBB_OK)
        st = cursor_take_u32(c, &t->type, "type", name);
    if (st == EBB_OK)
        st = cursor_take_u64(c, &t->offset, "offset", name);
    return st == EBB_OK ? size_tensor(c, t, name) : st;
}

/* n_tensors counts those that are whole. */
static ebb_status parse_tensors(cursor *c, ebb_gguf_header *h, size_t n)
{
    ebb_status st = EBB_OK;

    h->tensors = calloc(n + 1, sizeof *h->tensors);
    if (!h->tensors)
        return EBB_FAIL(c->err, EBB_NOMEM, "%s: no memory for the index of %zu tensors", c->name, n);
    for (size_t i = 0; i < n && st == EBB_OK; i++) {
        st = parse_tensor(c, &h->tensors[i]);
        h->n_tensors += st == EBB_OK;
    }
    return st;
}

/* Offsets from the start of the file, all inside it. */
static ebb_status locate_tensors(const cursor *c, ebb_gguf_header *h)
{
    uint64_t end = 0, sum = 0;

    h->n_bytes = c->pos;
    h->data_at = (c->pos + h->alignment - 1) & ~(h->alignment - 1);
    for (size_t i = 0; i < h->n_tensors; i++) {
        ebb_gguf_tensor *t = &h->tensors[i];
        uint64_t t_end;
        char name[64];

        if (t->offset % h->alignment != 0)
            return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: tensor %s at offset %llu is not aligned to %llu", c->name,
                            visible_name(name, t->name, t->name_bytes), (ull)t->offset, (ull)h->alignment);
        if (__builtin_add_overflow(t->offset, h->data_at, &t->offset) ||
            __builtin_add_overflow(t->offset, t->n_bytes, &t_end))
            return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: tensor %s has an impossible offset", c->name,
                            visible_name(name, t->name, t->name_bytes));
        end = t_end > end ? t_end : end;
        sum = ebb_size_plus(sum, t->n_bytes);
    }
    if (end > c->size)
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: truncated: has %llu of %llu bytes; download it again", c->name,
                        (ull)c->size, (ull)end);
    if (sum > c->size)                           /* then what they take in memory would be out of all proportion */
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: damaged: its tensors have %llu bytes together, but the file has %llu: "
                        "they overlap", c->name, (ull)sum, (ull)c->size);
    return EBB_OK;
}

/* -- The beginning ------------------------------------------------------------- */
/* Other formats that people pass as a model, by their first bytes. */
static const struct { char bytes[9]; const char *what; } lookalikes[] = {
    { "lmgg",     "an old GGML model; look for a GGUF of it" },
    { "tjgg",     "an old GGML model; look for a GGUF of it" },
    { "fmgg",     "an old GGML model; look for a GGUF of it" },
    { "algg",     "an old GGML adapter; look for a GGUF of it" },
    { "MZqFpD",   "a llamafile without its end, which lists what it holds; download it again" },
    { "\177ELF",  "a program; a llamafile has a model at its end" },
    { "PK\3\4",   "a zip archive or a PyTorch model; look for a GGUF of it" },
    { "version ", "a git-lfs pointer; fetch the model itself with `git lfs pull`" },
    { "{",        "JSON: a server's message, or part of another format; look for a .gguf file" },
    { "<",        "a web page, so the download failed; download the model again" },
};

static ebb_status not_gguf(const cursor *c, const char *magic)
{
    for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++) {
        size_t n = strlen(lookalikes[i].bytes);
        if (c->have >= n && memcmp(magic, lookalikes[i].bytes, n) == 0)
            return EBB_FAIL(c->err, EBB_UNSUPPORTED, "%s: is not a GGUF file but %s", c->name, lookalikes[i].what);
    }
    if (c->have > 8 && magic[8] == '{')          /* behind the length of its header */
        return EBB_FAIL(c->err, EBB_UNSUPPORTED, "%s: is not a GGUF file but safetensors; look for a GGUF of it",
                        c->name);
    return EBB_FAIL(c->err, EBB_UNSUPPORTED,
                    "%s: is not a GGUF file (it begins with bytes %02x %02x %02x %02x); models for ebb end in .gguf",
                    c->name, (uint8_t)magic[0], (uint8_t)magic[1], (uint8_t)magic[2], (uint8_t)magic[3]);
}

static ebb_status check_version(const cursor *c, uint32_t version)
{
    if (version == 2 || version == 3)
        return EBB_OK;
    if (version == 1)
        return EBB_FAIL(c->err, EBB_UNSUPPORTED,
                        "%s: is GGUF version 1 of 2023; ebb reads 2 and 3; look for a newer file", c->name);
    if (version != 0 && (version & 0xffff) == 0)
        return EBB_FAIL(c->err, EBB_UNSUPPORTED, "%s: is a big-endian GGUF; ebb reads little-endian ones", c->name);
    return EBB_FAIL(c->err, EBB_UNSUPPORTED, "%s: is GGUF version %u; ebb reads 2 and 3", c->name, version);
}

/* A count whose items cannot even fit into the file, or that no real file has, is not allocated. */
static ebb_status check_count(const cursor *c, uint64_t n, uint64_t item_bytes, uint64_t max, const char *what)
{
    if (n > (c->size - c->pos) / item_bytes)
        return EBB_FAIL(c->err, EBB_FORMAT,
                        "%s: damaged or truncated: claims %llu %s but has %llu bytes; download it again", c->name,
                        (ull)n, what, (ull)c->size);
    if (n > max)
        return EBB_FAIL(c->err, EBB_LIMIT, "%s: claims %llu %s; at most %llu are accepted", c->name, (ull)n, what,
                        (ull)max);
    return EBB_OK;
}

/* What the beginning promises. */
typedef struct counts {
    uint64_t n_tensors, n_kvs;
} counts;

static ebb_status parse_beginning(cursor *c, ebb_gguf_header *h, counts *n)
{
    const char *magic = NULL;
    ebb_status st;

    if (c->size > EBB_GGUF_MAX_FILE)
        return EBB_FAIL(c->err, EBB_LIMIT, "%s: has %llu bytes; at most %llu are accepted", c->name, (ull)c->size,
                        (ull)EBB_GGUF_MAX_FILE);
    if (c->size < 4)
        return EBB_FAIL(c->err, EBB_FORMAT, "%s: is not a GGUF file: it has %llu bytes; download it again", c->name,
                        (ull)c->size);
    st = cursor_take(c, 4, &magic, "beginning", "the file");
    if (st == EBB_OK && memcmp(magic, "GGUF", 4) != 0)
        return not_gguf(c, magic);
    if (st == EBB_OK)
        st = cursor_take_u32(c, &h->version, "version", "the file");
    if (st == EBB_OK)
        st = check_version(c, h->version);
    if (st == EBB_OK)
        st = cursor_take_u64(c, &n->n_tensors, "number of tensors", "the file");
    if (st == EBB_OK)
        st = cursor_take_u64(c, &n->n_kvs, "number of keys", "the file");
    if (st == EBB_OK)
        st = check_count(c, n->n_tensors, MIN_TENSOR_BYTES, EBB_GGUF_MAX_TENSORS, "tensors");
    if (st == EBB_OK)
        st = check_count(c, n->n_kvs, MIN_KV_BYTES, EBB_GGUF_MAX_KEYS, "metadata keys");
    return st;
}

/* All before the tensor index. */
static ebb_status parse_front(cursor *c, ebb_gguf_header *h, counts *n)
{
    ebb_status st;

    memset(h, 0, sizeof *h);
    st = parse_beginning(c, h, n);
    return st == EBB_OK ? parse_metadata(c, h, (size_t)n->n_kvs) : st;
}

ebb_status ebb_gguf_parse(const char *bytes, uint64_t have, uint64_t size, const char *name,
                          ebb_gguf_header *h, uint64_t *need, ebb_error *err)
{
    cursor c = { .bytes = bytes, .have = have, .size = size, .name = name, .err = err };
    counts n = { 0 };
    ebb_status st = parse_front(&c, h, &n);

    if (st == EBB_OK)
        st = parse_tensors(&c, h, (size_t)n.n_tensors);
    if (st == EBB_OK)
        st = locate_tensors(&c, h);
    if (st != EBB_OK)
        ebb_gguf_header_fini(h);
    *need = c.need;
    return st;
}

ebb_status ebb_gguf_parse_keys(const char *bytes, uint64_t have, uint64_t size, const char *name, ebb_gguf_header *h,
                               uint64_t *n_tensors, ebb_error *err)
{
    cursor c = { .bytes = bytes, .have = have, .size = size, .name = name, .err = err };
    counts n = { 0 };
    ebb_status st = parse_front(&c, h, &n);

    if (st == EBB_BUSY)
        st = h->kvs ? EBB_OK : EBB_FAIL(err, EBB_FORMAT, "%s: its beginning is missing", name);
    if (st != EBB_OK)
        ebb_gguf_header_fini(h);
    *n_tensors = n.n_tensors;
    return st;
}

void ebb_gguf_header_fini(ebb_gguf_header *h)
{
    free(h->kvs);
    free(h->tensors);
    memset(h, 0, sizeof *h);
}

void ebb_gguf_terminate(const ebb_gguf_header *h, char *bytes)
{
    for (size_t i = 0; i < h->n_kvs; i++) {
        const ebb_gguf_kv *kv = &h->kvs[i];
        bytes[kv->key + kv->key_bytes - bytes] = '\0';
        if (kv->type == EBB_GGUF_STRING)
            bytes[kv->data + kv->n_bytes - bytes] = '\0';
    }
    for (size_t i = 0; i < h->n_tensors; i++)
        bytes[h->tensors[i].name + h->tensors[i].name_bytes - bytes] = '\0';
}
