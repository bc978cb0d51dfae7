/* A conversation of another program: what was read is written and read again alike. */
#include "fuzz.h"

#include "chat/store/import_one.h"

static void check_again(ebb_session_facts *f, ebb_tree *t)
{
    ebb_session_facts f2 = { 0 };
    ebb_tree t2 = { 0 };
    ebb_buf json = { 0 };

    FUZZ_MUST(ebb_export(f, t, EBB_EXPORT_JSON, &json, NULL) == EBB_OK);
    if (import_one("x.json", ebb_buf_text(&json), json.len, &f2, &t2, NULL) == EBB_OK) {
        FUZZ_MUST(t2.n_path == t->n_path);
        for (size_t i = 0; i < t->n_path; i++)
            FUZZ_MUST(t->path[i]->m.role == t2.path[i]->m.role);
    } else {
        FUZZ_MUST(t->n_path == 0);
    }
    ebb_buf_fini(&json);
    ebb_session_facts_fini(&f2);
    ebb_tree_fini(&t2);
}

static ebb_status take_message(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    ebb_buf out = { 0 };

    (void)arg;
    if (ebb_export(f, t, EBB_EXPORT_MD, &out, err) != EBB_OK || ebb_export(f, t, EBB_EXPORT_TXT, &out, err) != EBB_OK)
        __builtin_trap();
    ebb_buf_fini(&out);
    check_again(f, t);
    return EBB_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = { "a.json", "a.md", "a.txt", "a" };
    ebb_error err = { 0 };
    size_t n_done;

    if (n == 0)
        return 0;
    if (ebb_import_all(names[data[0] % 4], (const char *)data + 1, n - 1, NULL, take_message, NULL, &n_done,
                       &err) != EBB_OK)
        FUZZ_MUST(err.msg[0]);
    return 0;
}
