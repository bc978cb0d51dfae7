/* chat/prompt/retokenize.h - ids for other words of an answer: the old ones as far as their text
 * agrees, then new ones. */
#ifndef EBB_CHAT_RETOKENIZE_H
#define EBB_CHAT_RETOKENIZE_H
#include "ebb/model.h"

typedef struct ebb_retokenization {
    const int32_t *before;       /* what the answer follows */
    size_t         n_before;
    const int32_t *old;          /* of the answer as it was, */
    size_t         n_old;
    const char    *old_text;     /* and how it reads: an older ebb left out marks that have ids */
    size_t         n_old_text;
    const char    *text;
    size_t         n_text;       /* may become less: where no ids spell all of it */
    int32_t       *ids;          /* the result; the caller frees */
    size_t         n_ids, n_kept;        /* ids[0..n_kept) are old ones */
} ebb_retokenization;

/* The marks of the text's own thought and channels are control tokens, and nothing else of what is
 * new.  Errors: USAGE (there are no ids for any of it), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_retokenize(const ebb_model *m, ebb_retokenization *r, ebb_error *err);

#endif
