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
static inline void gguf_kv_raw(ebb_buf *f, const char *key, uint32_t type, const void *bytes, size_t n)
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
static inline void gguf_tensor(ebb_buf *f, const char *name, uint32_t type, uint64_t offset, int n_dims, ...)
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
#endif
