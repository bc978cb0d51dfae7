/* cli/unlock.h - the key of encrypted sessions: from a file that --unlock or EBB_UNLOCK names, or
 * asked for on the terminal.  Before the confinement (confinement.h) and before any thread. */
#ifndef EBB_CLI_UNLOCK_H
#define EBB_CLI_UNLOCK_H
#include "args.h"
#include "base/buf.h"
#include "seal/key_file.h"

/* What a key is wrapped with: a passphrase, or the bytes of a file. */
typedef struct ebb_secret_text {
    ebb_key_kind kind;
    ebb_buf      text;           /* fini by ebb_secret_text_fini, which overwrites it */
} ebb_secret_text;
void ebb_secret_text_fini(ebb_secret_text *s);

/* Whether the sessions of this user are encrypted. */
bool ebb_cli_is_encrypted(void);

/* For a command that keeps something: where sessions are encrypted, take the key and let this
 * process use it (ebb_seal_here, a->engine.kv_seal); from here on nobody turns them until it ends.
 * One that needs no session asks nobody: without a file it keeps no K and V.  Nothing with
 * --private.  Errors: USAGE (there is no way to ask), IO (a wrong key), those of a key file. */
EBB_MUST_CHECK
ebb_status ebb_cli_unlock(ebb_args *a, bool needs_sessions, ebb_error *err);

/* The data key of the key file at `path`, by the secret that is named or asked for. */
EBB_MUST_CHECK
ebb_status ebb_cli_open_key(const ebb_args *a, const char *path, uint8_t data_key[EBB_SEAL_KEY],
                            ebb_error *err);
/* A secret for a new key: the bytes of `file`, which is made with a random one where it is not
 * there; NULL: a passphrase, asked for twice. */
EBB_MUST_CHECK
ebb_status ebb_cli_new_secret(const char *file, ebb_secret_text *out, ebb_error *err);
/* --unlock, else EBB_UNLOCK; NULL: neither. */
const char *ebb_cli_unlock_file(const ebb_args *a);

#endif
