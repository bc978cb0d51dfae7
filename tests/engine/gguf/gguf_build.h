/* Build GGUF files of every kind, sound and broken, byte by byte.
 *
 *     ebb_buf f = { 0 };
 *     gguf_head(&f, 3, n_tensors, n_keys);
 *     gguf_kv_str(&f, "general.architecture", "llama");
 *     gguf_tensor(&f, "output_norm.weight", EBB_TYPE_F32, 0, 1, 64);
 *     gguf_data(&f, 32, 256);
 */
#ifndef EBB_TEST_GGUF_BUILD_H
#define EBB_TEST_GGUF_BUILD_H
#include "ebb_test.h"

#include "base/buf.h"
#include "ebb/experimental/type.h"
#include "gguf/gguf.h"

static inline void gguf_u32(ebb_buf *f, uint32_t v) { ebb_buf_add(f, &v, sizeof v); }
static inline void gguf_u64(ebb_buf *f, uint64_t v) { ebb_buf_add(f, &v, sizeof v); }

static inline void gguf_text(ebb_buf *f, const char *text, size_t n)
{
    gguf_u64(f, n);
    ebb_buf_add(f, text, n);
}

static inline void gguf_head(ebb_buf *f, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    ebb_buf_add(f, "GGUF", 4);
    gguf_u32(f, version);
    gguf_u64(f, n_tensors);
    gguf_u64(f, n_keys);
}

/* A scalar of any type from its bytes. */
static inline void gguf_kv_raw(ebb_buf *f, const char *key, uint32_t type, const void *bytes,
                               size_t n)
{
    gguf_text(f, key, strlen(key));
    gguf_u32(f, type);
    ebb_buf_add(f, bytes, n);
}

static inline void gguf_kv_u32(ebb_buf *f, const char *key, uint32_t v)
{
    gguf_kv_raw(f, key, EBB_GGUF_U32, &v, sizeof v);
}

static inline void gguf_kv_str(ebb_buf *f, const char *key, const char *text)
{
    gguf_text(f, key, strlen(key));
    gguf_u32(f, EBB_GGUF_STRING);
    gguf_text(f, text, strlen(text));
}

/* Begin an array; its n items follow. */
static inline void gguf_kv_array(ebb_buf *f, const char *key, uint32_t item_type, uint64_t n)
{
    gguf_text(f, key, strlen(key));
    gguf_u32(f, EBB_GGUF_ARRAY);
    gguf_u32(f, item_type);
    gguf_u64(f, n);
}

/* The dimensions follow n_dims, as uint64_t. */
static inline void gguf_tensor(ebb_buf *f, const char *name, uint32_t type, uint64_t offset,
                               int n_dims, ...)
{
    va_list ap;

    gguf_text(f, name, strlen(name));
    gguf_u32(f, (uint32_t)n_dims);
    va_start(ap, n_dims);
    for (int i = 0; i < n_dims; i++)
        gguf_u64(f, va_arg(ap, uint64_t));
    va_end(ap);
    gguf_u32(f, type);
    gguf_u64(f, offset);
}

/* Pad to the alignment, then n bytes of tensor data. */
static inline void gguf_data(ebb_buf *f, size_t alignment, size_t n)
{
    while (f->len % alignment != 0)
        ebb_buf_addc(f, 0);
    for (size_t i = 0; i < n; i++)
        ebb_buf_addc(f, (char)i);
}

/* Part `no` of n_parts as a whole file: a key of each type and two tensors. */
static inline void gguf_part(ebb_buf *f, uint32_t no, uint32_t n_parts)
{
    static const char bytes[8] = { 1 };
    const uint64_t n_tensors = 2 * (uint64_t)n_parts;
    const uint16_t count = (uint16_t)n_parts;

    gguf_head(f, 3, 2, EBB_GGUF_TYPE_COUNT + 4);
    gguf_kv_str(f, "general.architecture", "llama");
    gguf_kv_raw(f, "split.count", EBB_GGUF_U16, &count, sizeof count);
    gguf_kv_u32(f, "split.no", no);
    gguf_kv_raw(f, "split.tensors.count", EBB_GGUF_U64, &n_tensors, sizeof n_tensors);
    for (uint32_t type = 0; type < EBB_GGUF_TYPE_COUNT; type++) {
        static const uint8_t n_bytes[EBB_GGUF_TYPE_COUNT] = {
            1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8
        };
        char key[32];

        snprintf(key, sizeof key, "test.%s", ebb_gguf_type_name(type));
        if (type == EBB_GGUF_STRING)
            gguf_kv_str(f, key, "text");
        else if (type != EBB_GGUF_ARRAY)
            gguf_kv_raw(f, key, type, bytes, n_bytes[type]);
        else
            gguf_kv_array(f, key, EBB_GGUF_STRING, 2);
        if (type == EBB_GGUF_ARRAY) {
            gguf_text(f, "first", 5);
            gguf_text(f, "second", 6);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        char name[32];

        snprintf(name, sizeof name, "blk.%u.ffn_%u.weight", no, i);
        gguf_tensor(f, name, EBB_TYPE_F32, 32 * i, 2, (uint64_t)4, (uint64_t)2);
    }
    gguf_data(f, 32, 64);
}
#endif
