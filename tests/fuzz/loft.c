/* The database that is damaged or changed (loft.h). */
#include "loft.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "folder.h"
#include "fuzz.h"
#include "os/file.h"
#include "store/store.h"

static void make_database(const char *path)
{
    static const char text[] = "Who lives in the loft?";
    ebb_session_facts f = { .title = "Loft", .model = "m" };
    ebb_store *s = NULL;
    ebb_tree t = { 0 };

    FUZZ_MUST(ebb_store_open(path, &s, NULL) == EBB_OK);
    FUZZ_MUST(ebb_tree_set_leaf(&t, ebb_tree_add(&t, NULL, EBB_ROLE_USER, text, sizeof text - 1)));
    FUZZ_MUST(ebb_tree_set_leaf(&t, ebb_tree_add(&t, ebb_tree_leaf(&t), EBB_ROLE_ASSISTANT, "Owls.", 5)));
    FUZZ_MUST(ebb_store_save(s, &f, &t, false, NULL) == EBB_OK);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

const char *fuzz_loft(size_t *n)
{
    static ebb_buf bytes;
    char path[128];

    if (bytes.len == 0) {
        snprintf(path, sizeof path, "%s/loft.db", fuzz_folder());
        make_database(path);
        FUZZ_MUST(ebb_file_slurp(path, 1 << 20, &bytes, NULL) == EBB_OK && unlink(path) == 0);
    }
    *n = bytes.len;
    return bytes.data;
}
