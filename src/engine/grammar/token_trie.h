/* grammar/token_trie.h - the texts of a vocabulary as a trie: a token for each path.
 *
 * Immutable but for the count of its owners, the model and constraints, which may be closed in any
 * order; threads may share it.  Nodes are in preorder, so that going through all of them is
 * going through an array, and leaving out what is below a node is a jump. */
#ifndef EBB_GRAMMAR_TOKEN_TRIE_H
#define EBB_GRAMMAR_TOKEN_TRIE_H
#include <stdatomic.h>

#include "ebb/model.h"

typedef struct ebb_trie_node {
    uint32_t end;                /* the first node that is not below this one */
    uint32_t first;              /* its tokens: tokens[first] .. tokens[first of the next node] */
    uint16_t depth;              /* 1: below the root, which is no node */
    uint8_t  byte;
} ebb_trie_node;

typedef struct ebb_token_trie {
    atomic_uint    n_owners;
    ebb_trie_node *nodes;        /* [n_nodes + 1]: behind the last one stands where its tokens
                                    end */
    uint32_t   n_nodes, n_tokens;
    uint32_t   n_vocab, depth;   /* of the deepest node */
    ebb_token *tokens;           /* in the order of their texts */
    ebb_token *ends;             /* tokens that end a turn */
    uint32_t   n_ends;
    char      *text;             /* of token id: text[at[id]] .. text[at[id + 1]] */
    uint32_t  *at;               /* [n_vocab + 1] */
} ebb_token_trie;

/* Of all tokens of m that are text; it needs m no more.  NULL: no memory.  Cost: about 0.4 us for
 * each token. */
ebb_token_trie *ebb_token_trie_new(const ebb_model *m);
ebb_token_trie *ebb_token_trie_share(ebb_token_trie *t); /* another owner */
void ebb_token_trie_free(ebb_token_trie *t);     /* NULL is fine */

#endif
