/* Typed access to metadata (gguf.h): any number as the number that is wanted. */
#include "gguf/gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *ebb_gguf_type_name(ebb_gguf_type type)
{
    static const char *const names[EBB_GGUF_TYPE_COUNT] = {
        [EBB_GGUF_U8] = "u8",   [EBB_GGUF_I8] = "i8",         [EBB_GGUF_U16] = "u16",     [EBB_GGUF_I16] = "i16",
        [EBB_GGUF_U32] = "u32", [EBB_GGUF_I32] = "i32",       [EBB_GGUF_F32] = "f32",     [EBB_GGUF_BOOL] = "bool",
        [EBB_GGUF_STRING] = "string", [EBB_GGUF_ARRAY] = "array", [EBB_GGUF_U64] = "u64", [EBB_GGUF_I64] = "i64",
        [EBB_GGUF_F64] = "f64",
    };

    return (unsigned)type < EBB_GGUF_TYPE_COUNT ? names[type] : "unknown";
}

/* -- One item as the widest number of its kind ---------------------------------- */
typedef struct number {
    enum { NONE, UNSIGNED, SIGNED, REAL } kind;
    uint64_t u;
    int64_t  i;
    double   f;
} number;

#define READ(type, kind_, field)                                   \
    do {                                                           \
        type v_;                                                   \
        memcpy(&v_, kv->data + at * sizeof v_, sizeof v_);         \
        return (number){ .kind = kind_, .field = v_ };             \
    } while (0)

static number read_item(const ebb_gguf_kv *kv, uint64_t at)
{
    if (!kv || at >= kv->n)
        return (number){ .kind = NONE };
    switch (kv->item_type) {
    case EBB_GGUF_U8:  READ(uint8_t, UNSIGNED, u);
    case EBB_GGUF_U16: READ(uint16_t, UNSIGNED, u);
    case EBB_GGUF_U32: READ(uint32_t, UNSIGNED, u);
    case EBB_GGUF_U64: READ(uint64_t, UNSIGNED, u);
    case EBB_GGUF_I8:  READ(int8_t, SIGNED, i);
    case EBB_GGUF_I16: READ(int16_t, SIGNED, i);
    case EBB_GGUF_I32: READ(int32_t, SIGNED, i);
    case EBB_GGUF_I64: READ(int64_t, SIGNED, i);
    case EBB_GGUF_F32: READ(float, REAL, f);
    case EBB_GGUF_F64: READ(double, REAL, f);
    case EBB_GGUF_BOOL: return (number){ .kind = UNSIGNED, .u = kv->data[at] != 0 };
    default: return (number){ .kind = NONE };
    }
}

bool ebb_gguf_item_u64(const ebb_gguf_kv *kv, uint64_t i, uint64_t *out)
{
    number v = read_item(kv, i);

    if (v.kind == SIGNED && v.i >= 0)
        v = (number){ .kind = UNSIGNED, .u = (uint64_t)v.i };
    else if (v.kind == REAL && v.f >= 0 && v.f < 0x1p64 && v.f == floor(v.f))
        v = (number){ .kind = UNSIGNED, .u = (uint64_t)v.f };
    if (v.kind != UNSIGNED)
        return false;
    *out = v.u;
    return true;
}

bool ebb_gguf_item_i64(const ebb_gguf_kv *kv, uint64_t i, int64_t *out)
{
    number v = read_item(kv, i);

    if (v.kind == UNSIGNED && v.u <= INT64_MAX)
        v = (number){ .kind = SIGNED, .i = (int64_t)v.u };
    else if (v.kind == REAL && v.f >= -0x1p63 && v.f < 0x1p63 && v.f == floor(v.f))
        v = (number){ .kind = SIGNED, .i = (int64_t)v.f };
    if (v.kind != SIGNED)
        return false;
    *out = v.i;
    return true;
}

bool ebb_gguf_item_f64(const ebb_gguf_kv *kv, uint64_t i, double *out)
{
    number v = read_item(kv, i);

    if (v.kind == NONE)
        return false;
    *out = v.kind == REAL ? v.f : v.kind == SIGNED ? (double)v.i : (double)v.u;
    return true;
}

/* -- By key ---------------------------------------------------------------------- */
static const ebb_gguf_kv *find_scalar(const ebb_gguf *g, const char *key)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, key);

    return kv && kv->type != EBB_GGUF_ARRAY ? kv : NULL;
}

bool ebb_gguf_get_u64(const ebb_gguf *g, const char *key, uint64_t *out)
{
    return ebb_gguf_item_u64(find_scalar(g, key), 0, out);
}

bool ebb_gguf_get_i64(const ebb_gguf *g, const char *key, int64_t *out)
{
    return ebb_gguf_item_i64(find_scalar(g, key), 0, out);
}

bool ebb_gguf_get_f64(const ebb_gguf *g, const char *key, double *out)
{
    return ebb_gguf_item_f64(find_scalar(g, key), 0, out);
}

bool ebb_gguf_get_bool(const ebb_gguf *g, const char *key, bool *out)
{
    double v;

    if (!ebb_gguf_get_f64(g, key, &v))
        return false;
    *out = v != 0;
    return true;
}

bool ebb_gguf_get_u64_at(const ebb_gguf *g, const char *key, uint64_t i, uint64_t *out)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, key);

    return ebb_gguf_item_u64(kv, kv && kv->type == EBB_GGUF_ARRAY ? i : 0, out);
}

const char *ebb_gguf_get_string(const ebb_gguf *g, const char *key)
{
    const ebb_gguf_kv *kv = find_scalar(g, key);

    return kv && kv->type == EBB_GGUF_STRING ? kv->data : NULL;
}

ebb_gguf_strings ebb_gguf_strings_of(const ebb_gguf_kv *kv)
{
    if (!kv || kv->item_type != EBB_GGUF_STRING)
        return (ebb_gguf_strings){ 0 };
    return (ebb_gguf_strings){ .at = kv->data, .left = kv->n, .n_scalar = kv->n_bytes,
                               .is_scalar = kv->type == EBB_GGUF_STRING };
}

bool ebb_gguf_strings_next(ebb_gguf_strings *s, const char **text, size_t *n_bytes)
{
    uint64_t n;

    if (s->left == 0)
        return false;
    s->left--;
    if (s->is_scalar) {
        *text = s->at;
        *n_bytes = (size_t)s->n_scalar;
        return true;
    }
    memcpy(&n, s->at, sizeof n);
    *text = s->at + sizeof n;
    *n_bytes = (size_t)n;
    s->at += sizeof n + n;
    return true;
}
