/* chat/prompt/prompt.h - from a conversation to the token ids the model reads.
 *
 * Token ids are the truth: what was computed or generated is never tokenised
 * again.  The next prompt is the old ids and those of what the template prints
 * after them.  Only where a template rewrites history (drops the thinking of
 * earlier answers, moves the system prompt) are ids made anew from the first
 * changed place, and the prompt says how many and why.
 *
 * A template gets an answer as the model wrote it, its thought included, or both apart where it has
 * a field for thoughts and does not find them in a text, as gpt-oss's.
 *
 * Text of a message cannot forge a turn: control tokens are read in what the
 * template prints, never in what a message says, but for the marks around an
 * answer's own thought, which the model wrote as such. */
#ifndef EBB_CHAT_PROMPT_H
#define EBB_CHAT_PROMPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/model.h"
#include "base/buf.h"
#include "ebb/status.h"
#include "tree/message.h"

typedef struct ebb_prompter ebb_prompter;

/* Ready the template of `m`, which must outlive the prompter: the file's own, or
 * where it has none or one that does not compile, the family that its special
 * tokens and architecture suggest.  Errors: NOMEM.  Cost: a pass over the vocabulary. */
EBB_MUST_CHECK
ebb_status ebb_prompter_new(const ebb_model *m, ebb_prompter **out, ebb_error *err);
/* The same with a template that the user names: a family ("chatml"), a file, "none" (texts one
 * after the other, for models that only continue a text); "auto" or NULL: as above.  NOTFOUND names
 * the families; FORMAT: the file is no template. */
EBB_MUST_CHECK
ebb_status ebb_prompter_new_named(const ebb_model *m, const char *name, ebb_prompter **out,
                                  ebb_error *err);
void ebb_prompter_free(ebb_prompter *p);         /* NULL is fine */

/* Where the template is from, one line for the user: "the file's own template",
 * "chatml (the file has no template; chosen by <|im_start|>)". */
const char *ebb_prompter_origin(const ebb_prompter *p);
/* Does the template read a variable or a field of this name? */
bool ebb_prompter_reads(const ebb_prompter *p, const char *name);
/* Append the template's text.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_prompter_source(const ebb_prompter *p, ebb_buf *out, ebb_error *err);

typedef enum ebb_thinking { EBB_THINKING_DEFAULT, EBB_THINKING_ON, EBB_THINKING_OFF } ebb_thinking;

typedef struct ebb_prompt_thought { const char *text; size_t n; } ebb_prompt_thought;

typedef struct ebb_prompt_opts {
    int64_t      now_ms;         /* Unix time of the conversation: pinned, so that a date in the
                                  * prompt stays; 0: now */
    ebb_thinking thinking;       /* enable_thinking, where the template knows it */
    const struct json_t *variables;      /* an object: more variables of the template, which are
                                  * trusted as its text is; NULL: none.  Those that ebb sets stay */
    bool       (*stop)(void *arg);       /* as ebb_tokenize_opts has it */
    void        *stop_arg;
    bool         counts_system;  /* fill in n_system and has_open_system, for messages without
                                  * ids */
    const ebb_prompt_thought *thoughts;  /* of each message, what was thought before its text where
                                  * that is known apart, n 0: nothing; NULL: of no message */
} ebb_prompt_opts;

/* A message as a remote engine gets it. */
typedef struct ebb_prompt_message {
    ebb_role role;
    char    *text;               /* a copy, terminated; free() it */
    size_t   n_text;             /* bytes before its end */
    ebb_thought thought;         /* in an answer */
} ebb_prompt_message;
/* Nothing is thought in it; text[0..n) is copied, and may be NULL if n is 0.  false: no memory,
 * *out is unchanged. */
EBB_MUST_CHECK
bool ebb_prompt_message_init(ebb_prompt_message *out, ebb_role role, const char *text, size_t n);

typedef struct ebb_prompt {
    int32_t *ids;                /* the whole sequence, up to where the model goes on; NULL where
                                  * the engine takes messages: */
    ebb_prompt_message *messages;        /* these; n_ids and the other counts are about right
                                          * then */
    size_t   n_messages;
    size_t   n_ids;
    size_t   n_old;              /* ids of the messages that had some */
    size_t   n_kept;             /* ids[0..n_kept) are old ids unchanged: everything else is
                                  * computed */
    /* ids per message, in order; their sum is n_ids.  What a message is printed as
     * belongs to the last of a run of new messages; a count of 0 is usual for the
     * system message.  Where history was rewritten, older counts may differ from
     * those given: then the slices of `ids` are the new truth of these messages. */
    size_t  *n_ids_of;
    size_t   n_suffix;           /* of the last ids, those behind the last question's words: once
                                  * there is an answer, a template may print them in another way */
    size_t   n_system;           /* opts->counts_system: ids[0..n_system) are all that the template
                                  * prints of a system message in front, or of a text of its own
                                  * where there is none; 0: neither is there, or ... */
    bool     has_open_system;    /* ... no token is where it ends */
    bool     rewritten;          /* n_kept < n_old: old ids were dropped */
    char     notice[240];        /* one line for the user, "" if there is nothing to say */
} ebb_prompt;
void ebb_prompt_fini(ebb_prompt *p);

/* The prompt for an answer to messages[0..n).  Those with n_ids > 0 were computed
 * before, as this function made them or as the model generated them, with this
 * model and these options; the others are new.  With no new message the old ids
 * are returned: an answer is tried again or continued.
 * If the template refuses a system message, its text goes in front of the first
 * user message, and `notice` says so.
 * Errors: UNSUPPORTED (the template refuses the conversation: its own words),
 * FORMAT (the template fails), LIMIT, CANCELED (opts->stop), NOMEM.
 * Cost: two renderings; only new text is tokenised unless history was rewritten. */
EBB_MUST_CHECK
ebb_status ebb_prompt_delta(const ebb_prompter *p, const ebb_message *const *messages, size_t n,
                            const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err);

/* Do these ids of `m`, a prompt, open a thought (ebb_thought_opened_by)? */
bool ebb_prompt_opens_thought(const ebb_model *m, const int32_t *ids, size_t n);

#endif
