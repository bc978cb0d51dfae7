/* ebb/experimental/cache_salt.h - K and V that a context shift has moved, told from computed ones.
 *
 * For programs that store conversations and want to find moved K and V again after a restart. */
#ifndef EBB_EXPERIMENTAL_CACHE_SALT_H
#define EBB_EXPERIMENTAL_CACHE_SALT_H
#include "ebb/session.h"

/* Enters the block hashes (vLLM: cache_salt) from position `pos` on, where a context shift dropped
 * tokens, so that moved K and V are never found in place of computed ones. */
typedef struct ebb_cache_salt {
    bool     is_on;              /* false: the sequence was never shifted */
    uint32_t pos;
    uint8_t  salt[16];
} ebb_cache_salt;
/* The salt of the sequence as it is now; may be stored with a conversation. */
ebb_cache_salt ebb_session_get_cache_salt(const ebb_session *s);
/* The next sync, and ebb_session_common_prefix until then, looks for cached blocks with this
 * salt first, in memory and on disk, and computes those it does not find.  Without this call a
 * sync keeps the salt of the sequence as long as its ids reach beyond `pos`. */
void ebb_session_set_cache_salt(ebb_session *s, const ebb_cache_salt *cache_salt);

#endif
