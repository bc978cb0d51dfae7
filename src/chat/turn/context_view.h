/* chat/turn/context_view.h - what the model gets of a path, and the prompt that this becomes. */
#ifndef EBB_CHAT_CONTEXT_VIEW_H
#define EBB_CHAT_CONTEXT_VIEW_H
#include "base/buf.h"
#include "conversation/chat_ops.h"
#include "ebb/experimental/cache_salt.h"
#include "prompt/prompt.h"
#include "tree/tree.h"

/* list[0..n).  Where a note decides, list[0..n_head) is what it has settled, and list[n_above..n)
 * was said below it. */
typedef struct ebb_context_view {
    ebb_node           *note;            /* NULL: nothing is left out */
    ebb_message        *messages;        /* copies; texts and ids are the tree's */
    const ebb_message **list;            /* them, for a prompter */
    ebb_node          **nodes;           /* of the same messages; NULL: of no node's own */
    size_t              n, n_head, n_above;
    ebb_buf             system;          /* a system message with a summary */
} ebb_context_view;

bool ebb_chat_has_ids(const ebb_chat *c, const ebb_message *m);      /* of the model at hand */
/* The note that decides on this path, or NULL. */
ebb_node *ebb_context_view_note(ebb_node *const *path, size_t n_path);
/* Whether each question is answered by itself, without those before it: the embedded guide is,
 * which is too small to follow a conversation. */
bool ebb_context_view_is_last_turn(const char *model_path);
/* The same of what answers now: also of a server that nobody has named, which answers as its model
 * here would. */
bool ebb_context_view_takes_last_turn(const ebb_chat *c);
/* From the last question on, the system message before it; the answer to it, if there is one, with
 * it.  `more` as below. */
EBB_MUST_CHECK
ebb_status ebb_context_view_make_last_turn(ebb_node *const *path, size_t n_path,
                                           const ebb_message *more,
                                           ebb_context_view *out, ebb_error *err);
/* With `more` at the end, a message that is not in the tree (or NULL). */
EBB_MUST_CHECK
ebb_status ebb_context_view_make(ebb_node *const *path, size_t n_path, const ebb_message *more,
                                 ebb_context_view *out, ebb_error *err);
/* One of them, as the open model gets it. */
EBB_MUST_CHECK
ebb_status ebb_context_view_for_model(const ebb_chat *c, ebb_node *const *path, size_t n_path,
                                      const ebb_message *more, ebb_context_view *out,
                                      ebb_error *err);
void ebb_context_view_fini(ebb_context_view *v);
/* The prompt for list[0..n). */
EBB_MUST_CHECK
ebb_status ebb_context_view_prompt(ebb_chat *c, const ebb_context_view *v, size_t n,
                                   ebb_prompt *out, ebb_error *err);
/* Both. */
EBB_MUST_CHECK
ebb_status ebb_chat_prompt(ebb_chat *c, ebb_node *const *path, size_t n_path,
                           const ebb_message *more, ebb_prompt *out, ebb_error *err);
/* How many of ids[0..n) are those of the message `system` in front; 0: it is no system message, the
 * ids do not begin with it, or where it ends cannot be told.  Its own count does not say: the
 * question behind it has the ids of both. */
size_t ebb_chat_count_system(const ebb_chat *c, const ebb_message *system, const int32_t *ids,
                             size_t n);
/* The same in *count, or, where `first` is no system message, of the text that the template prints
 * in front of it by itself.  false: there is a text, and where it ends cannot be told. */
bool ebb_chat_count_front(const ebb_chat *c, const ebb_message *first, const int32_t *ids, size_t n,
                          size_t *count);
/* The prompt is of the tree's path: its ids become those of the messages.  false: no memory. */
bool ebb_chat_record_ids(ebb_chat *c, const ebb_prompt *p);

/* Tokens that the model has of the path; the end of the last turn may come on top. */
uint32_t ebb_chat_n_tokens(const ebb_chat *c);
/* How K and V behind the note's gap came to be (NULL: no gap). */
ebb_cache_salt ebb_chat_cache_salt(const ebb_node *note);
/* The note that decides on the path remembers what its gap has become. */
void ebb_chat_record_cache_salt(ebb_chat *c, const ebb_cache_salt *cache_salt);

/* -- chat_estimate.c --------------------------------------------------------------- */
/* Tokens of a message, where the engine at hand has no ids of it: by what a token had of bytes on
 * this path. */
uint32_t ebb_chat_tokens_of(const ebb_chat *c, const ebb_message *m);
/* What each message of the path has of `p`, its prompt: ids that are the last one's of a run of
 * messages (prompt.h) are shared among these by their bytes, and the system prompt has its own, so
 * that no message of the prompt counts nothing.  [n_path], free() it; NULL: no memory. */
uint32_t *ebb_chat_share_tokens(const ebb_chat *c, const ebb_prompt *p);
/* Tokens that the path will have, of which the model may not have all yet. */
size_t ebb_chat_expect_tokens(const ebb_chat *c);
/* The prompt for list[0..n) in messages, with its counts. */
EBB_MUST_CHECK
ebb_status ebb_chat_prompt_messages(const ebb_chat *c, const ebb_context_view *v, size_t n,
                                    ebb_prompt *out, ebb_error *err);
/* Before tokens of turns: "about " where the engine has no ids, and no turn was counted alone. */
const char *ebb_chat_about(const ebb_chat *c);
/* Tokens of list[0..n); *is_about: nobody has counted all of them. */
size_t ebb_chat_estimate(const ebb_chat *c, const ebb_context_view *v, size_t n, bool *is_about);

/* -- chat_cut.c -------------------------------------------------------------------- */
/* Ids for other words of the answer `old`; the caller frees r->ids. */
EBB_MUST_CHECK
ebb_status ebb_chat_retokenize(ebb_chat *c, const ebb_node *old, const char *text, size_t n,
                               ebb_retokenization *r, ebb_error *err);

#endif
