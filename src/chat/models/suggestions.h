/* models/suggestions.h - which model to get, by the memory that is free: the one table
 * (models/suggestions.txt) that the greeting, `ebb doctor` and `ebb pull --suggest` read. */
#ifndef EBB_CHAT_SUGGESTIONS_H
#define EBB_CHAT_SUGGESTIONS_H
#include "ebb/experimental/plan.h"

typedef struct ebb_suggestion {
    char   name[32];             /* "gpt-oss-20b" */
    char   source[96], what[96]; /* OWNER/NAME[:TYPE] for `ebb pull`; in words */
    double file_bytes, pass_bytes;               /* of the file; of weights that a token takes */
    double context_bytes;                        /* of K and V, a token in f16 */
} ebb_suggestion;

/* Row i of the table, the best first; false: there are no more.  Cost: reads the embedded text. */
bool ebb_suggestion_at(size_t i, ebb_suggestion *out);
/* The day of the table: "2026-11-22". */
const char *ebb_suggestions_date(char out[16]);
/* The first row that stays in memory on this machine with 4096 tokens of context and is fast
 * enough to talk to, by what a core takes in as a rule, so that a busy moment changes no advice;
 * false: none does, and *out is the last row.  *plan is the estimate. */
bool ebb_suggestion_best(const ebb_machine *machine, ebb_suggestion *out, ebb_plan *plan);

/* Tier, context and predicted_decode_tok_s of a file by its size alone: a token takes pass_bytes
 * from memory, and from the disk what did not fit; of a mixture less, as routers come back to the
 * experts they chose.  `context_bytes` is what a token of context takes in f16. */
void ebb_suggestion_estimate(ebb_plan *p, double file_bytes, double pass_bytes,
                             double context_bytes, const ebb_machine *m);

#endif
