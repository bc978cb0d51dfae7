/* base/buf.h - a growing byte buffer with a limit.
 *
 * Invariants: data is NULL only while cap == 0; data[len] is 0 whenever data is
 * not NULL, so a buffer of text is a C string; len <= max.  `failed` latches:
 * after a failed append later appends do nothing, so a writer may check once. */
#ifndef EBB_BASE_BUF_H
#define EBB_BASE_BUF_H
#include <stdbool.h>
#include <stddef.h>

typedef struct ebb_buf {
    char  *data;
    size_t len, cap;
    size_t max;                  /* bytes; 0: no limit */
    bool   failed;               /* out of memory, or beyond max */
} ebb_buf;

/* A zeroed ebb_buf is an empty one without limit. */
void ebb_buf_fini(ebb_buf *b);                   /* free and zero */
void ebb_buf_wipe(ebb_buf *b);                   /* the same, overwritten before: for secrets */
void ebb_buf_clear(ebb_buf *b);                  /* len = 0, failed = false; keeps the memory */
bool ebb_buf_reserve(ebb_buf *b, size_t extra);  /* room for `extra` more bytes */
bool ebb_buf_add(ebb_buf *b, const void *bytes, size_t n);
bool ebb_buf_addc(ebb_buf *b, char c);
bool ebb_buf_adds(ebb_buf *b, const char *s);
bool ebb_buf_addf(ebb_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ebb_buf_remove(ebb_buf *b, size_t at, size_t n);          /* n bytes from at */
bool ebb_buf_insert(ebb_buf *b, size_t at, const void *bytes, size_t n);
const char *ebb_buf_text(const ebb_buf *b);      /* data, or "" */
/* Give the memory to the caller (free()); the buffer is empty after.  NULL if out of memory. */
char *ebb_buf_take(ebb_buf *b);

#endif
