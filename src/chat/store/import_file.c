/* The conversations of a file, read and kept (import_file.h). */
#include "store/import_file.h"

#include <stdlib.h>

#include "base/grow.h"
#include "os/file.h"
#include "store/export.h"

enum { READ_PERMILLE = 300, WHOLE_PERMILLE = 1000 };

void ebb_import_set_fini(ebb_import_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        ebb_session_facts_fini(&set->items[i].facts);
        ebb_tree_fini(&set->items[i].tree);
    }
    free(set->items);
    *set = (ebb_import_set){ 0 };
}

static ebb_status take_imported(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    ebb_import_set *set = arg;
    ebb_imported *p;

    if (set->n == EBB_IMPORT_SESSIONS)
        return EBB_FAIL(err, EBB_LIMIT, "it has more than %u conversations, the most that are imported at once; "
                        "split it", EBB_IMPORT_SESSIONS);
    p = ebb_grow(set->items, set->n, &set->cap, sizeof *p);

    if (!p)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the conversations");
    set->items = p;
    set->items[set->n++] = (ebb_imported){ *f, *t };
    *f = (ebb_session_facts){ 0 };
    *t = (ebb_tree){ 0 };
    return EBB_OK;
}

ebb_status ebb_import_read(const char *path, ebb_progress *p, ebb_import_set *out, ebb_error *err)
{
    ebb_buf data = { 0 };
    size_t n;
    ebb_status st = ebb_file_slurp(path, EBB_IMPORT_BYTES, &data, err);

    ebb_progress_part(p, 0, READ_PERMILLE);
    if (st == EBB_OK)
        st = ebb_import_all(path, ebb_buf_text(&data), data.len, p, take_imported, out, &n, err);
    ebb_buf_fini(&data);
    if (st != EBB_OK)
        ebb_import_set_fini(out);
    return st;
}

ebb_status ebb_import_keep(ebb_store *s, ebb_import_set *set, ebb_progress *p, ebb_error *err)
{
    size_t n_nodes = 0;
    ebb_status st;

    for (size_t i = 0; i < set->n; i++)
        n_nodes += set->items[i].tree.n_nodes;
    ebb_progress_part(p, READ_PERMILLE, WHOLE_PERMILLE);
    st = ebb_store_batch_begin(s, n_nodes, p, err);
    if (st != EBB_OK)
        return st;
    for (size_t i = 0; st == EBB_OK && i < set->n; i++)
        st = ebb_store_save(s, &set->items[i].facts, &set->items[i].tree, true, err);
    if (st == EBB_OK)
        return ebb_store_batch_commit(s, err);
    ebb_store_batch_drop(s);
    return st;
}
