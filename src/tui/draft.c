/* What was not sent (draft.h). */
#include "draft.h"

#include <string.h>
#include <unistd.h>

#include "os/file.h"

#define DRAFT_BYTES_MAX ((size_t)16 << 20)

ebb_status ebb_draft_keep(const char *state_dir, const char *session, const char *text, size_t n, ebb_error *err)
{
    ebb_buf path = { 0 }, whole = { 0 };
    ebb_status st = EBB_OK;

    ebb_buf_addf(&path, "%s/draft", state_dir);
    ebb_buf_add(&whole, session, strcspn(session, "\n"));
    ebb_buf_addc(&whole, '\n');
    ebb_buf_add(&whole, text, n);
    if (path.failed || whole.failed)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to keep what was not sent");
    if (st == EBB_OK)
        st = ebb_file_mkdirs(state_dir, err);
    if (st == EBB_OK)
        st = ebb_file_replace(path.data, whole.data, whole.len, err);
    ebb_buf_fini(&path);
    ebb_buf_fini(&whole);
    return st;
}

bool ebb_draft_take(const char *state_dir, const char *session, ebb_buf *out)
{
    ebb_buf path = { 0 }, whole = { 0 };
    size_t n = strlen(session);
    bool is_it = ebb_buf_addf(&path, "%s/draft", state_dir) &&
                 ebb_file_slurp(path.data, DRAFT_BYTES_MAX, &whole, NULL) == EBB_OK && whole.len > n &&
                 memcmp(whole.data, session, n) == 0 && whole.data[n] == '\n';

    if (is_it)
        is_it = ebb_buf_add(out, whole.data + n + 1, whole.len - n - 1) && unlink(path.data) == 0;
    ebb_buf_fini(&path);
    ebb_buf_fini(&whole);
    return is_it;
}
