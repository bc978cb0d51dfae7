/* chat/tree/message.h - what a conversation is made of. */
#ifndef EBB_CHAT_MESSAGE_H
#define EBB_CHAT_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/session.h"
#include "tree/thought.h"

typedef enum ebb_role {
    EBB_ROLE_SYSTEM, EBB_ROLE_USER, EBB_ROLE_ASSISTANT,
    EBB_ROLE_NOTE,               /* what ebb did, at this place of the conversation: ebb_truncation;
                                  * no template sees it */
} ebb_role;
const char *ebb_role_name(ebb_role role);        /* "system", "user", "assistant", "note" */

typedef enum ebb_finish {
    EBB_FINISH_NONE,             /* under way, or cut off by a crash that nobody has noted yet */
    EBB_FINISH_STOP,             /* the model ended its turn */
    EBB_FINISH_LENGTH,           /* the token limit or the context */
    EBB_FINISH_CANCELED,         /* the user stopped it */
    EBB_FINISH_ERROR,
    EBB_FINISH_CUT_OFF,          /* by a crash */
} ebb_finish;
/* "none", "stop", "length", "cancelled", "error", "cut off". */
const char *ebb_finish_name(ebb_finish finish);
bool ebb_finish_parse(const char *name, ebb_finish *out);        /* false: none of these */

/* Figures of a turn that say less than they seem to: nobody has counted them, or others shared
 * the time. */
enum {
    EBB_ABOUT_PROMPT = 1, EBB_ABOUT_GENERATED = 2,
    EBB_ABOUT_REUSED = 4,        /* the server does not say what it had already: n_reused is 0,
                                  * n_computed the whole prompt */
    EBB_ABOUT_SIDE_BY_SIDE = 8,  /* others shared its passes: decode_s is not that of one alone */
};

/* What an answer cost: shown beneath it and stored with it. */
typedef struct ebb_turn_stats {
    uint32_t n_prompt, n_reused, n_reused_disk, n_computed, n_generated;
    double   prefill_s, decode_s;
    uint32_t n_prefilled_early;  /* of the reused: computed while the question was typed */
    uint32_t n_accepted;         /* of the generated: draft tokens, computed together with others */
    uint32_t about;              /* EBB_ABOUT_* */
    double   first_s;            /* from the request to the first word, of a remote engine */
    uint32_t n_accepted_reference;       /* of the accepted, found in other conversations; not
                                          * stored */
} ebb_turn_stats;

/* What to do when a conversation no longer fits the context. */
typedef enum ebb_overflow_policy {
    EBB_OVERFLOW_ASK,
    EBB_OVERFLOW_FORGET,         /* the oldest turns are left out of what the model gets */
    EBB_OVERFLOW_COMPACT,        /* and a summary that the model writes stands for them */
    EBB_OVERFLOW_GROW,           /* a larger context */
    EBB_OVERFLOW_STOP,
    EBB_OVERFLOW_SLIDE,          /* the oldest tokens behind the system prompt are left out */
} ebb_overflow_policy;

extern const char *const ebb_overflow_policy_names[]; /* "ask" ..., up to a NULL */

/* What a note has truncated: from here on the model gets of the path (as indices, root 0) the
 * system message, the messages in `kept`, and those from `first` on.  A path obeys the last
 * note with first > 0.  The note's ids are those of all that up to and with message `first`,
 * and its text stands for what is left out if `how` is COMPACT. */
typedef struct ebb_truncation {
    ebb_overflow_policy how;
    uint32_t  first;             /* a question; 0: nothing is left out */
    uint32_t  n_turns, n_tokens; /* left out by this note */
    uint32_t *kept;              /* ascending, below first: whole turns with a pinned message */
    uint32_t  n_kept;
    bool      has_cache_salt;    /* K behind the gap was moved, not computed: ebb_cache_salt
                                  * (ebb/session.h) */
    uint32_t  salt_pos;
    uint8_t   salt[16];
} ebb_truncation;

/* How the tokens of an answer were drawn, from one of them on to its end or the next stop: what
 * draws the same again. */
typedef struct ebb_sample_record {
    uint32_t     from, n;        /* of the message's ids; n 0: none, or the program was ended */
    ebb_sampler_params sampling; /* its seed is never 0, but where only `begin` is known, of an
                                  * answer copied from another, or that a server went on with */
    uint32_t     sampler;        /* EBB_SAMPLER_VERSION of that time */
    char         kv[16];         /* type of K and V; "": not known */
    uint32_t     n_ctx;
    bool         is_shifted;     /* K before it were moved, not computed */
    ebb_thought_begin begin;     /* of the answer's first: how its prompt ended */
    char        *grammar;        /* of the whole answer; NULL: none */
    uint8_t      context_hash[16]; /* ebb_token_ids_hash of all ids before them, and of theirs */
    uint8_t      ids_hash[16];
} ebb_sample_record;
/* The name of these ids, by which they are known again. */
void ebb_token_ids_hash(const int32_t *ids, size_t n, uint8_t out[16]);

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
    char         *engine;        /* the name of the engine it answered in; NULL: that of a process
                                  * like this one */
    ebb_turn_stats turn_stats;
    ebb_truncation truncation;   /* of a note */
    ebb_sample_record *sample_records; /* of an answer */
    size_t        n_sample_records;
} ebb_message;

/* How the prompt of an answer ended. */
ebb_thought_begin ebb_message_thought_begin(const ebb_message *m);
/* What was thought in an answer; nothing in any other message.  An answer whose turn the model
 * itself has ended is not all thought: then the mark in front of it is part of the text. */
ebb_thought ebb_message_thought(const ebb_message *m);
/* Where text[0..n), an answer, begins behind what the model thought; NULL: it thought nothing. */
const char *ebb_message_behind_thought(const char *text, size_t n);

/* d->grammar is the message's then; false: no memory, and it stays the caller's. */
bool ebb_message_add_sample_record(ebb_message *m, const ebb_sample_record *d);
void ebb_message_drop_sample_record(ebb_message *m);     /* the last one, which there is */
/* Its tokens cannot be drawn again: of the records only `begin` is left, which its text needs. */
void ebb_message_keep_begin(ebb_message *m);
/* Was it kept how the answer was drawn? */
bool ebb_message_is_sampled(const ebb_message *m);
/* Of an answer that has the beginning of another one's text: whether its prompt began a thought.
 * false: no memory. */
bool ebb_message_copy_begin(ebb_message *m, const ebb_message *from);

/* How an answer has ended where nobody goes on writing it, as in a file. */
ebb_finish ebb_message_finish_left(const ebb_message *m);
/* Does the note leave message i of its path out of what the model gets?  NULL: no note. */
bool ebb_message_omits(const ebb_message *note, size_t i);

#endif
