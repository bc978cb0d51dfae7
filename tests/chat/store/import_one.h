/* One conversation out of a file, for tests. */
#ifndef EBB_TEST_IMPORT_ONE_H
#define EBB_TEST_IMPORT_ONE_H
#include "store/export.h"

typedef struct single {
    ebb_session_facts *f;
    ebb_tree          *t;
} single;

static ebb_status take_single(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    const single *to = arg;

    if (to->t->n_nodes)
        return EBB_FAIL(err, EBB_FORMAT, "there are several conversations in it");
    *to->f = *f;
    *to->t = *t;
    *f = (ebb_session_facts){ 0 };
    *t = (ebb_tree){ 0 };
    return EBB_OK;
}

static inline ebb_status import_one(const char *name, const char *data, size_t n,
                                    ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    single to = { .f = f, .t = t };
    size_t n_done;
    ebb_status st = ebb_import_all(name, data, n, NULL, take_single, &to, &n_done, err);

    if (st != EBB_OK) {
        ebb_session_facts_fini(f);
        ebb_tree_fini(t);
    }
    return st;
}

#endif
