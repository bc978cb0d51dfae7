/* turn/quality.h - two files of one network: the one at hand answers every day, a better one a
 * question that matters.
 *
 * The better one is opened for one answer, with the everyday one as its draft model, and closed
 * behind it.  Ids are the same in both, so nothing is tokenized again, and the K and V of both are
 * kept on disk under their own names. */
#ifndef EBB_CHAT_QUALITY_H
#define EBB_CHAT_QUALITY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conversation/chat.h"

typedef struct ebb_quality {
    char    *named;              /* --quality; NULL: the best that is found */
    bool     is_open;            /* the better file is at hand, for this answer */
    char     quantization[16];   /* of it */
    bool     has_pair;           /* fingerprints of the everyday and of the better file, as far as
                                  * they are known */
    uint8_t  pair[2][16];
    /* How the everyday file was opened. */
    char    *everyday;
    char    *draft_path;
    bool     draft_is_optional, is_chosen;
    uint32_t n_ctx;
} ebb_quality;

/* Ids of that model are ids of the one at hand: it is the same, or the other file of the pair. */
bool ebb_quality_shares_ids(const ebb_chat *c, const uint8_t fingerprint[16]);
struct ebb_better_model;
/* The model at hand and the better one are files of one network. */
void ebb_quality_set_pair(ebb_chat *c, const struct ebb_better_model *better);
/* The model at hand is ready: is what others wrote here of its better file? */
void ebb_quality_recognise(ebb_chat *c);
/* Behind every event of the backend: back to the everyday file when the answer has ended. */
void ebb_quality_end_turn(ebb_chat *c);
/* Back to the everyday file now. */
void ebb_quality_go_back(ebb_chat *c);
/* The user takes another model or engine: there is nothing to go back to. */
void ebb_quality_forget(ebb_chat *c);
void ebb_quality_fini(ebb_quality *q);

#endif
