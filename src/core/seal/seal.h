/* seal/seal.h - encryption at rest: what is written to a disk is sealed with XChaCha20-Poly1305, so
 * that nobody reads it without the data key, and no byte of it changes unnoticed.
 *
 * Each use has a key of its own, derived from the data key.  A nonce of 24 bytes is drawn at random
 * for each block; `place`, where a block stands, is sealed with it, so that one cannot be moved.
 * What is not hidden is how many bytes there are, and that an older state was put back.
 *
 * Keys stand in memory that is locked, apart from cores, and overwritten at the end. */
#ifndef EBB_SEAL_SEAL_H
#define EBB_SEAL_SEAL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "ebb/status.h"

#define EBB_SEAL_KEY   32u       /* bytes of a key */
#define EBB_SEAL_NONCE 24u
#define EBB_SEAL_TAG   16u
#define EBB_SEAL_EXTRA (EBB_SEAL_NONCE + EBB_SEAL_TAG)   /* what a sealed block is longer by */

typedef enum ebb_seal_use {
    EBB_SEAL_PAGE = 1,           /* pages of the database */
    EBB_SEAL_LOG,                /* of its write-ahead log */
    EBB_SEAL_TEXT,               /* lines of the history, drafts */
    EBB_SEAL_KV,                 /* files of K and V */
    EBB_SEAL_KV_NAME,            /* their names */
    EBB_SEAL_USES
} ebb_seal_use;

typedef struct ebb_seal ebb_seal;

/* The keys of a data key, for any thread.  Errors: UNSUPPORTED (no libsodium), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_seal_new(const uint8_t data_key[EBB_SEAL_KEY], ebb_seal **out, ebb_error *err);
void ebb_seal_free(ebb_seal *s);                 /* NULL is fine */

/* n random bytes that nobody can guess. */
void ebb_seal_random(const ebb_seal *s, void *out, size_t n);

/* out[0..n) = in[0..n) sealed, which may be the same place; extra = nonce and tag.
 * Cost: about 1 ns a byte, and a system call. */
void ebb_seal_block(const ebb_seal *s, ebb_seal_use use, uint64_t place, const void *in, size_t n,
                    void *out, uint8_t extra[EBB_SEAL_EXTRA]);
/* The way back.  false: it was not sealed so, and out is no text to be used. */
EBB_MUST_CHECK
bool ebb_seal_open(const ebb_seal *s, ebb_seal_use use, uint64_t place, const void *in, size_t n,
                   const uint8_t extra[EBB_SEAL_EXTRA], void *out);

/* The same under a nonce of the caller's, which must never come again. */
void ebb_seal_with_nonce(const ebb_seal *s, ebb_seal_use use, const uint8_t nonce[EBB_SEAL_NONCE],
                         const void *in, size_t n, void *out, uint8_t tag[EBB_SEAL_TAG]);
EBB_MUST_CHECK
bool ebb_seal_open_with_nonce(const ebb_seal *s, ebb_seal_use use,
                              const uint8_t nonce[EBB_SEAL_NONCE], const void *in, size_t n,
                              const uint8_t tag[EBB_SEAL_TAG], void *out);

/* 16 bytes that depend on the key of a use, for names. */
void ebb_seal_name_key(const ebb_seal *s, ebb_seal_use use, uint8_t out[16]);

/* Append text[0..n) as one sealed word of printable characters, which begins with a mark. */
EBB_MUST_CHECK
bool ebb_seal_add_text(const ebb_seal *s, const void *text, size_t n, ebb_buf *out);
/* Whether word[0..n) begins as such a word does. */
bool ebb_seal_is_text(const char *word, size_t n);
/* Append what such a word holds.  false: it is none, of another key, or damaged. */
EBB_MUST_CHECK
bool ebb_seal_open_text(const ebb_seal *s, const char *word, size_t n, ebb_buf *out);

/* What this process seals with; NULL: nothing is encrypted.  It is said once, before any thread. */
void ebb_seal_use_here(const ebb_seal *s);
const ebb_seal *ebb_seal_here(void);

#endif
