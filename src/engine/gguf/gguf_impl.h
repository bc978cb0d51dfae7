/* gguf/gguf_impl.h - the inside of a header: for gguf.c and gguf_index.c. */
#ifndef EBB_GGUF_IMPL_H
#define EBB_GGUF_IMPL_H
#include "gguf/gguf.h"

struct ebb_gguf {
    uint32_t         n_parts;
    ebb_gguf_part   *parts;
    ebb_gguf_kv     *kvs;
    size_t           n_kvs;
    ebb_gguf_tensor *tensors;
    size_t           n_tensors;
    uint32_t        *kv_order;   /* indices sorted by key */
    uint32_t        *tensor_order;               /* indices sorted by name */
    size_t           header_bytes;
    uint8_t          digest[16];
};

/* Make kv_order and tensor_order.  Errors: FORMAT (names what is there twice), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_gguf_index(ebb_gguf *g, ebb_error *err);

#endif
