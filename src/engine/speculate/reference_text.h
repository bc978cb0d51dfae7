/* speculate/reference_text.h - texts beside the sequences of an engine in which prompt lookup looks
 * for what they repeat: what was said in other conversations (ebb_engine_set_reference_text).
 *
 * One text of them all, with an id below 0 behind each, so that no draft goes on from one into the
 * next.  It is in memory only and ends with the engine. */
#ifndef EBB_REFERENCE_TEXT_H
#define EBB_REFERENCE_TEXT_H
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"
#include "speculate/suffix_index.h"

typedef struct ebb_reference_text {
    ebb_token *ids;              /* [n] */
    uint32_t   n;                /* 0: there is none */
    ebb_suffix_index index;
} ebb_reference_text;

/* A copy of the last of ids[0..n) in place of what it was; ids from n_vocab on are EBB_TOKEN_NONE
 * in it.  On failure it is empty.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_reference_text_set(ebb_reference_text *t, const ebb_token *ids, size_t n,
                                  uint32_t n_vocab, ebb_error *err);
void ebb_reference_text_fini(ebb_reference_text *t);     /* a zeroed one is fine */

#endif
