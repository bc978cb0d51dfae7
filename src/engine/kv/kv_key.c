/* The key of a folder of cache files (kv_key.h). */
#include "kv/kv_key.h"

#include "base/buf.h"
#include "os/file.h"
#include "os/random.h"

/* Errors: NOTFOUND, and FORMAT for one that is not to be used. */
static ebb_status read_key(const char *path, uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err)
{
    uint64_t n_bytes;
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ_HERE, &fd, err);

    if (st != EBB_OK)
        return st;
    if (!ebb_file_is_private(fd))
        st = EBB_FAIL(err, EBB_FORMAT, "%s: other users can read it", path);
    if (st == EBB_OK)
        st = ebb_file_size(fd, path, &n_bytes, err);
    if (st == EBB_OK && n_bytes != EBB_KV_KEY_BYTES)
        st = EBB_FAIL(err, EBB_FORMAT, "%s: damaged: has %llu bytes", path, (unsigned long long)n_bytes);
    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path, key, EBB_KV_KEY_BYTES, 0, err);
    ebb_file_close(fd);
    return st;
}

ebb_status ebb_kv_key_open(const char *dir, uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = EBB_OK, was;

    if (!ebb_buf_addf(&path, "%s/key", dir)) {
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a path", dir);
        goto done;
    }
    was = read_key(path.data, key, NULL);
    if (was == EBB_OK)
        goto done;
    st = ebb_random(key, EBB_KV_KEY_BYTES, err);
    if (st == EBB_OK)
        st = was == EBB_NOTFOUND ? ebb_file_create(path.data, key, EBB_KV_KEY_BYTES, err)
                                 : ebb_file_replace(path.data, key, EBB_KV_KEY_BYTES, err);
    if (st == EBB_OK || st == EBB_USAGE)         /* USAGE: another program was quicker, and its key is the one */
        st = read_key(path.data, key, err);
done:
    ebb_buf_fini(&path);
    return st;
}
