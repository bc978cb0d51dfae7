/* tokenizer/roles.h - which tokens begin and end things.
 *
 * The file names some by id.  Others are only known by their text, and files
 * often give them the wrong type: those are made control tokens here, by the
 * same list of texts as other readers of these files use.  What others make user-defined so
 * that it is printed (gpt-oss's frames) is a control token that is shown: else what a user
 * writes would hold it, too. */
#ifndef EBB_TOKENIZER_ROLES_H
#define EBB_TOKENIZER_ROLES_H
#include "tokenizer/table.h"

typedef struct ebb_tok_roles {
    ebb_token bos, eos, eot, unk;                /* -1: none */
    bool      add_bos, add_eos, add_space_prefix;
} ebb_tok_roles;

/* Fill *r from the file and the texts, and complete the attributes in `t`.
 * add_bos: what the vocabulary's family does where the file does not say. */
void ebb_tok_roles_init(ebb_tok_roles *r, ebb_tok_table *t, const ebb_vocab *v, bool is_spm,
                        bool add_bos);

#endif
