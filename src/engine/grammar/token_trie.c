/* Whose a trie is (token_trie.h).  Apart from how it is made: who follows a grammar needs no model. */
#include "grammar/token_trie.h"

#include <stdlib.h>

ebb_token_trie *ebb_token_trie_share(ebb_token_trie *t)
{
    atomic_fetch_add(&t->n_owners, 1);
    return t;
}

void ebb_token_trie_free(ebb_token_trie *t)
{
    if (!t || atomic_fetch_sub(&t->n_owners, 1) > 1)
        return;
    free(t->nodes);
    free(t->tokens);
    free(t->ends);
    free(t->text);
    free(t->at);
    free(t);
}
