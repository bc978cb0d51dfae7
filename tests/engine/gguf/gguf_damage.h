/* GGUF files, damaged by one edit after the other, always the same ones; and all that a file is
 * asked that still opens. */
#ifndef EBB_TEST_GGUF_DAMAGE_H
#define EBB_TEST_GGUF_DAMAGE_H
#include "gguf_build.h"

static uint64_t gguf_rng = 0x9e3779b97f4a7c15u;

/* The same numbers in every run. */
static inline uint64_t gguf_random_below(uint64_t n)
{
    gguf_rng ^= gguf_rng << 13;
    gguf_rng ^= gguf_rng >> 7;
    gguf_rng ^= gguf_rng << 17;
    return gguf_rng % n;
}

/* 4 or 8 bytes there become a number that is likely to hurt. */
static inline void gguf_put_number(ebb_buf *f, size_t at, size_t width)
{
    static const uint64_t values[] = {
        0,
        1,
        8,
        9,
        255,
        65536,
        INT32_MAX,
        UINT32_MAX,
        (uint64_t)1 << 32,
        (uint64_t)1 << 40,
        (uint64_t)1 << 61,
        INT64_MAX,
        UINT64_MAX - 7,
        UINT64_MAX,
    };
    uint64_t v = values[gguf_random_below(sizeof values / sizeof values[0])];

    if (at + width > f->len)
        return;
    if (gguf_random_below(3) == 0) {             /* or almost what was there */
        memcpy(&v, f->data + at, width);
        v += gguf_random_below(9) - 4;
    }
    memcpy(f->data + at, &v, width);
}

/* One edit within the first `span` bytes. */
static inline void gguf_damage(ebb_buf *f, size_t span)
{
    if (f->len == 0)
        return;
    size_t at = gguf_random_below(span < f->len ? span : f->len);

    switch (gguf_random_below(8)) {
    case 0: case 1: f->data[at] = (char)(f->data[at] ^ (1 << gguf_random_below(8))); break;
    case 2: f->data[at] = (char)gguf_random_below(256); break;
    case 3: gguf_put_number(f, at, 8); break;
    case 4: gguf_put_number(f, at & ~(size_t)3, 4); break;
    case 5:
        ebb_buf_remove(f, at, f->len - at < 16 ? f->len - at : 1 + gguf_random_below(16));
        break;
    case 6:
        ebb_buf_insert(f, at, "\0\1\2\3\4\5\6\7\xff\xff\xff\xff\xff\xff\xff",
                       1 + gguf_random_below(15));
        break;
    default: ebb_buf_remove(f, at, f->len - at); break;
    }
}

/* Everything that a header can be asked. */
static inline void gguf_use(const ebb_gguf *g)
{
    const char *text;
    uint64_t total = 0, v;
    size_t n;

    for (size_t i = 0; i < ebb_gguf_n_keys(g); i++) {
        const ebb_gguf_kv *kv = ebb_gguf_get_key(g, i);
        ebb_gguf_strings s = ebb_gguf_strings_of(kv);
        if (kv->key[0] != '.')                 /* such names stand for others (gguf.h) */
            assert_ptr_equal(ebb_gguf_find(g, kv->key), kv);
        while (ebb_gguf_strings_next(&s, &text, &n))
            total += n > 0 ? (uint8_t)text[0] + (uint8_t)text[n - 1] : 0;
        for (uint64_t k = 0; k < kv->n && k < 1000; k++)
            total += ebb_gguf_item_u64(kv, k, &v);
    }
    for (size_t i = 0; i < ebb_gguf_n_tensors(g); i++) {
        const ebb_gguf_tensor *t = ebb_gguf_get_tensor(g, i);
        assert_ptr_equal(ebb_gguf_find_tensor(g, t->name), t);
        uint64_t size = ebb_gguf_get_part(g, t->part)->n_bytes;
        assert_true(t->n_bytes <= size && t->offset <= size - t->n_bytes);
    }
    assert_true(total < UINT64_MAX);
}

/* A failure is one line. */
static inline void gguf_check_failure(const ebb_error *err)
{
    if (err->msg[0] == '\0' || strchr(err->msg, '\n'))
        fail_msg("a failure without one clear line: \"%s\"", err->msg);
}
#endif
