/* store/sealed_kv.h - what encrypts the files of K and V, for an engine's options (kv_seal). */
#ifndef EBB_CHAT_SEALED_KV_H
#define EBB_CHAT_SEALED_KV_H
#include "ebb/experimental/kv_cache.h"

/* With the key of this process (ebb_seal_here), for as long as that stays; NULL: there is none. */
const ebb_kv_seal *ebb_sealed_kv(void);

#endif
