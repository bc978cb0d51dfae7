/* chat/turn/overflow.h - a context that is full: what is decided then, and done.
 *
 * overflow.c decides, overflow_forget.c leaves turns out, overflow_slide.c tokens,
 * overflow_compact.c has the model write a summary, overflow_grow.c opens the model with a larger
 * context, overflow_shrink.c has a price for a smaller one; overflow_note.c is what they share.
 * Each decision is a note in the tree (message.h), below the question that did not fit; an answer
 * that was under way is copied below the note and goes on there. */
#ifndef EBB_CHAT_OVERFLOW_H
#define EBB_CHAT_OVERFLOW_H
#include "backend/backend.h"
#include "conversation/chat.h"
#include "prompt/prompt.h"
#include "tree/tree.h"

/* What follows when the context has space again. */
typedef enum ebb_overflow_next {
    EBB_NEXT_ANSWER, EBB_NEXT_NOTHING,
    EBB_NEXT_CONTINUE, EBB_NEXT_STAY,    /* with the unfinished answer at the leaf; STAY: when the
                                          * user says so, and the model at hand can */
} ebb_overflow_next;

/* What came of a decision: the prompt can be answered; the user was asked; a summary is being
 * written; the model is being opened with a larger context. */
typedef enum ebb_overflow_outcome {
    EBB_OVERFLOW_RESOLVED, EBB_OVERFLOW_ASKED, EBB_OVERFLOW_SUMMING_UP, EBB_OVERFLOW_GROWING,
} ebb_overflow_outcome;

typedef struct ebb_chat_overflow {
    bool            is_unattended;   /* ebb_chat_opts */
    bool            is_forced;   /* the user asked for `forced`, for n_turns (0: as many as it
                                  * takes) */
    ebb_overflow_policy forced;
    uint32_t        n_turns;
    const ebb_node *asked_at;    /* the leaf at which the user was asked; NULL: he was not */
    bool            is_warned, is_untrained_said;
    bool            is_view_changed; /* decided just now: what is computed again is part of it */
    /* Tokens that went from the middle of the sequence, until the backend has been told. */
    ebb_backend_gap gap;         /* its ids are ours */
    const ebb_node *gap_note, *prefill_note;     /* that it is of; that was told last */
    /* A summary is being written. */
    ebb_truncation  truncation;
    ebb_overflow_next next;
    ebb_node       *cut_off;
    size_t          n_header;    /* bytes of the note before the summary */
    bool            has_compacted;
    /* The model is being opened with another context or budget: the context at hand is full, or the
     * user asked for it. */
    bool            has_grown, was_asked;
    bool            cannot_grow; /* the policy's growth failed: "grow" forgets, until there is
                                  * another model, context, budget or conversation, or the policy
                                  * is set again */
    uint32_t        n_ctx_before;
    uint64_t        ram_bytes_before;
    uint64_t        budget_asked; /* of the engine at hand, last (ebb_chat_set_budget) */
    /* A smaller context than the conversation needs: the price of shrink_to was said at shrink_at;
     * and while turns are chosen for it, n_ctx_wanted (0: for the context at hand). */
    uint32_t        shrink_to, n_ctx_wanted;
    const ebb_node *shrink_at;
    char           *path;        /* of its file (ebb_chat_model_path) */
} ebb_chat_overflow;

/* -- overflow.c ------------------------------------------------------------------------ */
/* Does `p`, the prompt of the path, leave space for an answer?  If not, the policy decides.
 * RESOLVED: the path may be another one now and *p is its prompt; else the answer waits for what
 * the outcome says.  On failure nodes may have been added: the caller takes them back. */
EBB_MUST_CHECK
ebb_status ebb_overflow_resolve(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next,
                                ebb_overflow_outcome *outcome, ebb_error *err);
/* What should follow when the user frees context at this leaf. */
ebb_overflow_next ebb_overflow_choose_next(const ebb_chat *c, const ebb_node *leaf);
/* Say it once when the context is nearly full. */
void ebb_overflow_warn(ebb_chat *c);
/* An answer that filled the context goes on by itself. */
bool ebb_overflow_continues(const ebb_chat *c, const ebb_message *answer);
/* Another conversation begins: what is remembered of this one's nodes goes. */
void ebb_overflow_reset(ebb_chat *c);

/* -- overflow_forget.c ------------------------------------------------------------------- */
/* Half of the context is free after that; if sizes were estimated wrong, more turns go. */
EBB_MUST_CHECK
ebb_status ebb_overflow_forget(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_error *err);
/* No answer follows now: the gap is closed in the background. */
void ebb_overflow_close_gap(ebb_chat *c, const ebb_prompt *p);

/* Everything that was added to the tree since it had n_nodes goes; `st`, or NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_overflow_undo(ebb_chat *c, size_t n_nodes, ebb_node *leaf, ebb_status st,
                             ebb_error *err);
/* Carry out a decision whose note is in the path: the prompt *now replaces *p.  If the two
 * differ only by messages that were left out, K and V of the later ones are shifted (RoPE
 * re-rotation) and not computed again. */
void ebb_overflow_take_prompt(ebb_chat *c, ebb_prompt *p, ebb_prompt *now,
                              const ebb_cache_salt *before);

/* -- overflow_slide.c -------------------------------------------------------------------- */
/* A quarter of the context is free after that.  *slid is false where tokens cannot go one by one:
 * without ids, with pinned messages, if the last question is all there is, or if nobody can say
 * which tokens the system prompt has; then nothing has changed. */
EBB_MUST_CHECK
ebb_status ebb_overflow_slide(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, bool *slid,
                              ebb_error *err);

/* -- overflow_compact.c ------------------------------------------------------------------ */
EBB_MUST_CHECK
ebb_status ebb_overflow_compact(ebb_chat *c, const ebb_prompt *p, ebb_overflow_next next,
                                ebb_error *err);
/* The summary has ended.  false: nothing came of it, which the user was told; true: the note holds
 * it, and *next should follow unless *st is a failure. */
bool ebb_overflow_end_summary(ebb_chat *c, const ebb_backend_event *ev, ebb_overflow_next *next,
                              ebb_status *st, ebb_error *err);

/* -- overflow_grow.c --------------------------------------------------------------------- */
EBB_MUST_CHECK
ebb_status ebb_overflow_grow(ebb_chat *c, const ebb_prompt *p, ebb_overflow_next next,
                             ebb_error *err);
/* "takes a context of 8192 tokens (2.1 GiB of 16 GiB)" for `need` tokens and an answer; false:
 * nothing can. */
bool ebb_overflow_describe_growth(ebb_chat *c, size_t need, char *out, size_t cap);
/* Open the model with a context of n_ctx tokens (ebb_chat_set_ctx). */
EBB_MUST_CHECK
ebb_status ebb_overflow_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err);
/* Open the model at hand, as its path says by now, with other options; it stays where the other one
 * cannot be begun. */
EBB_MUST_CHECK
ebb_status ebb_overflow_reopen(ebb_chat *c, uint32_t n_ctx, uint64_t ram_bytes, ebb_error *err);
/* It could not be had, for the reason of `ev`: the model is opened as it was.  false: no growth was
 * under way, or it cannot be opened. */
bool ebb_overflow_undo_growth(ebb_chat *c, const ebb_backend_event *ev);

/* -- overflow_shrink.c ------------------------------------------------------------------- */
/* Say what a context of n_ctx would cost where the conversation is longer, unless that was said at
 * this leaf; *was_reported: it was now, and nothing else is to be done.  Errors: CONTEXT (what
 * cannot be left out is longer), those of the plan. */
EBB_MUST_CHECK
ebb_status ebb_overflow_price_ctx(ebb_chat *c, uint32_t n_ctx, bool *was_reported, ebb_error *err);
/* Leave out the turns that n_ctx has no room for. */
EBB_MUST_CHECK
ebb_status ebb_overflow_shrink(ebb_chat *c, uint32_t n_ctx, ebb_error *err);

/* -- overflow_trained.c ------------------------------------------------------------------ */
/* The longest context that the open model was trained for; 0: nobody can say, or a server decides.
 */
uint32_t ebb_overflow_trained(const ebb_chat *c);
/* Say it once for each opening when n_tokens are more than that, of a context that is longer. */
void ebb_overflow_warn_untrained(ebb_chat *c, size_t n_tokens);

/* -- overflow_note.c --------------------------------------------------------------------- */
enum { RESERVE_MAX = 512 };      /* tokens */
/* Tokens that an answer should find free: an eighth of the context, as long as that is not
 * absurd. */
uint32_t ebb_overflow_reserve(const ebb_chat *c);
bool ebb_overflow_fits(const ebb_chat *c, size_t n_ids);         /* with the reserve */
/* With its reserve that is more than the longest context that is advised (ebb_overflow_trained). */
bool ebb_overflow_is_untrained(const ebb_chat *c, size_t n_ids);
bool ebb_overflow_fills(const ebb_chat *c, size_t n_ids);        /* nothing is left */
/* CONTEXT, in the words of a script: what it gave is too long, and what would help. */
EBB_MUST_CHECK
ebb_status ebb_overflow_refuse_input(const ebb_chat *c, size_t n_tokens, ebb_error *err);
/* Tokens that should stay of n_all, so that half of the context is free; where nobody has told it,
 * half of them. */
size_t ebb_overflow_target(const ebb_chat *c, size_t n_all);
/* The oldest turns that must go for the tokens of `p`, the path's prompt, to become `target`; the
 * caller frees l->kept.  false: none. */
bool ebb_overflow_choose_turns(const ebb_chat *c, const ebb_prompt *p, size_t target,
                               ebb_truncation *l);
/* A note below the question; the path does not change.  NULL: no memory. */
ebb_node *ebb_overflow_add_note(ebb_chat *c, ebb_overflow_policy how, ebb_overflow_next next,
                                const char *text);
/* The path ends at the note, or at a copy of the answer below it.  false: no memory. */
bool ebb_overflow_move_below(ebb_chat *c, ebb_node *note, ebb_node *cut_off);
/* The note decides on the path: make the ids of what it has settled. */
EBB_MUST_CHECK
ebb_status ebb_overflow_tokenize_head(ebb_chat *c, ebb_node *note, ebb_error *err);
void ebb_overflow_drop_gap(ebb_chat *c);
#endif
