/* store/sealed.h - the database of sessions encrypted, and in the clear again.
 *
 * What is in the file says which it is, so that one rename turns it.  Everybody who has the
 * database open holds PATH-lock shared, whoever turns it holds it alone: nobody goes on writing
 * into a file that has lost its name. */
#ifndef EBB_CHAT_SEALED_H
#define EBB_CHAT_SEALED_H
#include "base/buf.h"
#include "ebb/status.h"
#include "seal/seal.h"

typedef enum ebb_stored {
    EBB_STORED_NOTHING,          /* no file and no link, or a file without a byte */
    EBB_STORED_PLAIN,
    EBB_STORED_SEALED,
    EBB_STORED_UNKNOWN           /* unreadable, none of ours, or damaged at its beginning */
} ebb_stored;

/* How the database at `path` stands, by its first bytes.  Error: IO, *how is UNKNOWN then: it
 * cannot be opened or read, or is a link that leads nowhere. */
EBB_MUST_CHECK
ebb_status ebb_stored_look(const char *path, ebb_stored *how, ebb_error *err);
/* The same without a reason. */
ebb_stored ebb_stored_how(const char *path);

/* FORMAT if it is UNKNOWN, and the error of a look. */
EBB_MUST_CHECK
ebb_status ebb_stored_check(const char *path, ebb_error *err);

/* Replace *out by the path of the usual database, or of the file with its key. */
EBB_MUST_CHECK
ebb_status ebb_stored_path(ebb_buf *out, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_stored_key_path(ebb_buf *out, ebb_error *err);

/* Take PATH-lock, shared or alone; *fd is to be closed, -1 where it cannot be made and nobody needs
 * to be alone.  BUSY: another program has it. */
EBB_MUST_CHECK
ebb_status ebb_stored_lock(const char *path, bool is_alone, int *fd, ebb_error *err);

/* Make an empty sealed database where there is none, or one without a byte. */
EBB_MUST_CHECK
ebb_status ebb_stored_make_sealed(const char *path, const ebb_seal *s, ebb_error *err);

/* Turn the database at `path` and its copies of before migrations; one that is turned already stays
 * as it is.  The caller holds PATH-lock alone, from before it chose the key.  Killed at any moment,
 * it is there as it was or as it shall be, and the next call ends what was begun.  What was in the
 * clear is overwritten, as far as the file system writes in place.
 * Cost: that of reading and writing all, some times; room for two copies.
 * Errors: BUSY (an older ebb, which knows no PATH-lock, has it open), FORMAT (damaged, another
 * key), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_store_encrypt(const char *path, const ebb_seal *s, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_store_decrypt(const char *path, const ebb_seal *s, ebb_error *err);

#endif
