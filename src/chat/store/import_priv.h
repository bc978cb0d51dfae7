/* chat/store/import_priv.h - what the readers of other programs' files share: import*.c only. */
#ifndef EBB_CHAT_IMPORT_PRIV_H
#define EBB_CHAT_IMPORT_PRIV_H
#include <jansson.h>

#include "store/export.h"

#define EBB_IMPORT_MESSAGES 100000u      /* of a conversation: 2 KiB each in a chat, at least */
/* Why a message could not be added to the tree.  Always fails: LIMIT, NOMEM. */
ebb_status ebb_import_fail(const ebb_tree *t, ebb_error *err);

/* A date as numbers of seconds or as 2026-01-31T12:00:00Z; Unix time, 0: it is none. */
int64_t ebb_import_date(json_t *when);
/* Append a string, or the text parts of an array one after the other; false: it is neither. */
bool ebb_import_content(json_t *content, ebb_buf *out);
/* A conversation of ChatGPT's export: nodes by id, each with its parent.  Errors: FORMAT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_import_mapping(json_t *o, ebb_session_facts *f, ebb_tree *t, ebb_error *err);

#endif
