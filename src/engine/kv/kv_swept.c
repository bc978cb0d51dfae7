/* When a folder of cache files was swept (kv_swept.h). */
#include "kv/kv_swept.h"

#include <string.h>

#include "base/buf.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/random.h"

static ebb_status add_mark_path(ebb_buf *path, const char *dir, ebb_error *err)
{
    if (!*dir)                                   /* else it would be that of the root */
        return EBB_FAIL(err, EBB_NOTFOUND, "a folder without a name is none");
    return ebb_buf_addf(path, "%s/.swept", dir) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a path", dir);
}

bool ebb_kv_swept_read(const char *dir, ebb_kv_swept *out)
{
    ebb_kv_swept now = { 0 };
    ebb_buf path = { 0 };
    int fd = -1;
    ebb_status st = add_mark_path(&path, dir, NULL);

    if (st == EBB_OK)
        st = ebb_file_open(path.data, EBB_FILE_READ_HERE, &fd, NULL);
    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path.data, &now, sizeof now, 0, NULL);
    ebb_file_close(fd);
    ebb_buf_fini(&path);
    if (st == EBB_FORMAT)                        /* cut short on a full disk: another one than any before */
        memset(&now, 0xff, sizeof now);
    if (st != EBB_OK && st != EBB_NOTFOUND && st != EBB_FORMAT)
        return false;
    *out = now;
    return true;
}

/* In place: whoever reads half of it finds that it has changed, too. */
ebb_status ebb_kv_swept_renew(const char *dir, ebb_error *err)
{
    ebb_kv_swept next;
    ebb_buf path = { 0 };
    int fd = -1;
    ebb_status st = ebb_random(&next, sizeof next, err);

    if (st == EBB_OK)
        st = add_mark_path(&path, dir, err);
    if (st == EBB_OK)
        st = ebb_file_open(path.data, EBB_FILE_UPDATE_HERE, &fd, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(fd, path.data, &next, sizeof next, 0, err);
    if (st == EBB_IO && path.len > 0 && ebb_file_has_readonly_folder(path.data))
        st = EBB_OK;
    ebb_file_close(fd);
    ebb_buf_fini(&path);
    return st;
}
