/* ebb/experimental/cache_salt.h - K and V that a context shift has moved, told from computed ones.
 *
 * For a program that stores conversations and wants to find moved K and V again after a restart. */
#ifndef EBB_EXPERIMENTAL_CACHE_SALT_H
#define EBB_EXPERIMENTAL_CACHE_SALT_H
#include "ebb/session.h"

/* Tells moved K and V from computed ones: from position `pos` on they are those that stood
 * there when something was dropped. */
typedef struct ebb_cache_salt {
    bool     is_on;              /* false: all are computed */
    uint32_t pos;
    uint8_t  salt[16];
} ebb_cache_salt;
/* That of the sequence as it stands now; may be stored with a conversation. */
ebb_cache_salt ebb_session_get_cache_salt(const ebb_session *s);
/* The next sync (and `common` until then) looks for its ids under this salt first, in RAM and on
 * disk, and computes them where it does not find them.  Without this call a sync keeps the salt of
 * the sequence as long as its ids reach beyond its pos. */
void ebb_session_set_cache_salt(ebb_session *s, const ebb_cache_salt *cache_salt);

#endif
