/* A session database that somebody damaged. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "loft.h"
#include "store/store.h"

static char path[128];

/* Bytes of the fuzzer at places of its choice: 3 of where, 1 of what. */
static void write_damaged(const uint8_t *data, size_t n)
{
    size_t n_good;
    const char *good = fuzz_loft(&n_good);
    char *bad = malloc(n_good);
    FILE *file = fopen(path, "w");

    FUZZ_MUST(bad && file);
    memcpy(bad, good, n_good);
    for (size_t i = 0; i + 4 <= n; i += 4)
        bad[(data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16) % n_good] = (char)data[i + 3];
    fwrite(bad, 1, n_good, file);
    fclose(file);
    free(bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ebb_session_facts f = { 0 };
    ebb_session_row *rows = NULL;
    ebb_store_hit *hits = NULL;
    ebb_store *s = NULL;
    ebb_tree t = { 0 };
    size_t k;

    if (!path[0])
        snprintf(path, sizeof path, "%s/sessions.db", fuzz_folder());
    write_damaged(data, n);
    if (ebb_store_open(path, &s, NULL) != EBB_OK)
        return 0;
    if (ebb_store_list(s, &rows, &k, NULL) == EBB_OK)
        free(rows);
    if (ebb_store_search(s, "owls lofty", 5, &hits, &k, NULL) == EBB_OK)
        free(hits);
    if (ebb_store_load(s, 1, &f, &t, NULL) == EBB_OK) {
        ebb_node *node = ebb_tree_add(&t, ebb_tree_leaf(&t), EBB_ROLE_USER, "And?", 4);

        FUZZ_MUST(node && ebb_tree_set_leaf(&t, node));
        if (ebb_store_save(s, &f, &t, false, NULL) == EBB_OK)
            FUZZ_MUST(node->m.id > 0);
    }
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
    return 0;
}
