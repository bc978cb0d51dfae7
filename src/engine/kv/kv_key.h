/* kv/kv_key.h - the key of the checksums in a folder of cache files: DIR/key, 16 random bytes, this
 * user's alone.  Who cannot read it cannot make a file that is believed; without it the files there
 * are worth nothing, and are written anew. */
#ifndef EBB_KV_KEY_H
#define EBB_KV_KEY_H
#include <stdint.h>

#include "ebb/status.h"

#define EBB_KV_KEY_BYTES 16u

/* Reads the key of `dir`, which is known to be this user's and nobody else's to write
 * (ebb_kv_disk_open); draws a new one where there is none, or one that others could read or have
 * written.
 * Errors: IO, FORMAT (what another program put there meanwhile is no key), NOMEM.
 * Cost: one read; a write and a sync the first time. */
EBB_MUST_CHECK
ebb_status ebb_kv_key_open(const char *dir, uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err);

#endif
