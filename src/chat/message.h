/* chat/message.h - what a conversation is made of. */
#ifndef EBB_CHAT_MESSAGE_H
#define EBB_CHAT_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ebb_role { EBB_ROLE_SYSTEM, EBB_ROLE_USER, EBB_ROLE_ASSISTANT } ebb_role;
const char *ebb_role_name(ebb_role role);        /* "system", "user", "assistant" */

typedef enum ebb_finish {
    EBB_FINISH_NONE,             /* under way, or cut off by a crash */
    EBB_FINISH_STOP,             /* the model ended its turn */
    EBB_FINISH_LENGTH,           /* the token limit or the context */
    EBB_FINISH_CANCELED,         /* the user stopped it */
    EBB_FINISH_ERROR,
} ebb_finish;
const char *ebb_finish_name(ebb_finish finish);  /* "none", "stop", "length", "cancelled", "error" */

/* What an answer cost: shown beneath it and stored with it. */
typedef struct ebb_turn_cost {
    uint32_t n_prompt, n_reused, n_reused_disk, n_computed, n_generated;
    double   prefill_s, decode_s;
} ebb_turn_cost;

/* A node of the conversation tree.  `text` is exactly what was typed or
 * generated (no display filter); `ids` are the token ids that stand in the KV
 * for this message: the rendering of its turn for system and user messages,
 * the generated ids for the assistant's.  Owned by the tree. */
typedef struct ebb_message {
    int64_t       id;            /* row in the store; negative while only in memory */
    int64_t       parent;        /* 0: a root */
    ebb_role      role;
    ebb_finish    finish;
    bool          pinned;
    char         *text;
    size_t        n_text;        /* bytes */
    int32_t      *ids;
    size_t        n_ids;
    uint8_t       ids_model[16]; /* fingerprint of the model whose vocabulary the ids are of */
    int64_t       created_ms;    /* Unix time */
    char         *model;         /* who answered; NULL for the user */
    ebb_turn_cost cost;
} ebb_message;

#endif
