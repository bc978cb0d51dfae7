/* chat/store/import_file.h - the conversations of a file, read and then kept: all of them or none.
 * Both steps can be watched and stopped (base/progress.h), and need no thread in particular. */
#ifndef EBB_CHAT_IMPORT_FILE_H
#define EBB_CHAT_IMPORT_FILE_H
#include "base/progress.h"
#include "ebb/status.h"
#include "store/store.h"
#include "tree/tree.h"

typedef struct ebb_imported {
    ebb_session_facts facts;     /* id: once it is kept */
    ebb_tree          tree;
} ebb_imported;

typedef struct ebb_import_set {
    ebb_imported *items;         /* [n] in the order of the file */
    size_t        n, cap;
} ebb_import_set;
void ebb_import_set_fini(ebb_import_set *set);   /* zeroed is fine, too */

#define EBB_IMPORT_BYTES (256u << 20)            /* of a file; more is no conversation */
#define EBB_IMPORT_SESSIONS 50000u               /* in a file, for each takes a kilobyte at least */

/* Read a file (export.h says of which kinds) into *out, which is zeroed; on failure it is empty.
 * Errors: those of ebb_file_slurp and ebb_import_all, CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_import_read(const char *path, ebb_progress *p, ebb_import_set *out, ebb_error *err);
/* Save them in one transaction, which is durable; on failure nothing is kept.  Another program may
 * have locked the store: that is waited for as long as a watched import is not stopped, else for
 * the store's usual time.  Errors: CANCELED, BUSY, those of ebb_store_save. */
EBB_MUST_CHECK
ebb_status ebb_import_keep(ebb_store *s, ebb_import_set *set, ebb_progress *p, ebb_error *err);

#endif
