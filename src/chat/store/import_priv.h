/* chat/store/import_priv.h - what the readers of other programs' files share: import*.c only. */
#ifndef EBB_CHAT_IMPORT_PRIV_H
#define EBB_CHAT_IMPORT_PRIV_H
#include <jansson.h>

#include "store/export.h"
#include "tree/tree.h"

#define EBB_IMPORT_MESSAGES 100000u      /* of a conversation: 2 KiB each in a chat, at least */
/* Why a message could not be added to the tree.  Always fails: LIMIT, NOMEM. */
ebb_status ebb_import_fail(const ebb_tree *t, ebb_error *err);

/* A date as a number of seconds or milliseconds, or as 2026-01-31T12:00:00Z, perhaps with a zone
 * (+01:00); Unix time, 0: it is none. */
int64_t ebb_import_date(json_t *when);
/* The value of one of two names, whichever has one. */
json_t *ebb_import_either(json_t *o, const char *name, const char *other);

/* What a message of a file says here: what went along with it, its thoughts, its words. */
typedef struct ebb_import_said {
    bool     has_place;          /* else it is a tool's, a note of that program, or nothing */
    ebb_role role;
    ebb_buf  text;
    int64_t  created_ms;         /* 0: unknown */
} ebb_import_said;

/* Read into *out, which is zeroed at first and then used again; ebb_buf_fini(&out->text) frees it.
 * Returns NULL, or what is wrong with it ("has no role"). */
typedef const char *ebb_import_reader(json_t *m, ebb_import_said *out);
ebb_import_reader ebb_import_message;    /* of OpenAI, Ollama, Claude, llama.cpp, ebb */
/* Add it below `above`; NULL: there is no room for it. */
ebb_node *ebb_import_add(ebb_tree *t, ebb_node *above, const ebb_import_said *said, json_t *m);

/* Read a tree of messages: an object of nodes by id, each with the ids of its "parent", if that is
 * among them, and "children"; what none of those without a parent leads to is read all the same, as
 * branches.  The conversation stands at the node `current` (NULL: at the last one).  The nodes are
 * changed.  *changed_ms: the newest date.  Errors: FORMAT, LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_import_nodes(json_t *nodes, const char *current, ebb_import_reader *read,
                            ebb_tree *t, int64_t *changed_ms, ebb_error *err);
/* A list of messages that have ids and say their parents, as such nodes; NULL: it is none. */
json_t *ebb_import_list_nodes(json_t *list);

/* A conversation of ChatGPT's export ("mapping").  Errors: those of ebb_import_nodes. */
EBB_MUST_CHECK
ebb_status ebb_import_mapping(json_t *o, ebb_session_facts *f, ebb_tree *t, ebb_error *err);

#endif
