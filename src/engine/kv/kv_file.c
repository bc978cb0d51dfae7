/* A file of the KV cache on disk (kv_file.h). */
#include "kv/kv_file.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "kernels/kernels.h"
#include "kv/kv_sealed.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/guard.h"

#define VERSION    3u
#define SYNC_BYTES ((size_t)1 << 20)             /* files of this size do not stay in the page cache */

/* The head as it stands in the file, little-endian as every machine that ebb runs on. */
typedef struct file_head {
    char     magic[8];
    uint32_t version, kind;
    uint8_t  shape[EBB_KV_HASH_BYTES];
    uint8_t  hash[EBB_KV_HASH_BYTES];
    uint32_t pos, n_ids;
    uint64_t n_data;
    int32_t  ids[EBB_KV_BLOCK];
} file_head;

_Static_assert(sizeof(file_head) == 192, "the head of a file has no padding");

static const char kv_magic[8] = "EBB-KV\r\n";
static const char *const suffixes[EBB_KV_FILE_KINDS] = { "block", "window", "tail", "window-tail", "state" };

uint64_t ebb_kv_file_bytes(const ebb_kv_file *item)
{
    return item->seal ? ebb_kv_sealed_bytes(sizeof(file_head), item->n_data)
                      : sizeof(file_head) + item->n_data + EBB_KV_HASH_BYTES;
}

static bool is_suffix(const char *suffix)
{
    for (int kind = 0; kind < EBB_KV_FILE_KINDS; kind++)
        if (strcmp(suffix, suffixes[kind]) == 0)
            return true;
    return false;
}

void ebb_kv_file_path(const char *dir, const ebb_kv_file *item, char *path, size_t cap)
{
    char hex[2 * EBB_KV_HASH_BYTES + 1];

    for (unsigned i = 0; i < EBB_KV_HASH_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", item->hash[i]);
    snprintf(path, cap, "%s/%s.%s", dir, hex, suffixes[item->kind]);
}

bool ebb_kv_file_is_name(const char *name, bool *is_leftover)
{
    size_t n = strlen(name), hex = strspn(name, "0123456789abcdef");
    const char *kind = name + hex;

    if (hex != 2 * EBB_KV_HASH_BYTES)
        return false;
    *is_leftover = n > 4 && strcmp(name + n - 4, ".new") == 0;
    return *is_leftover || (*kind == '.' && is_suffix(kind + 1));
}

static void fill_head(const ebb_kv_file *item, file_head *h)
{
    memset(h, 0, sizeof *h);
    memcpy(h->magic, kv_magic, sizeof kv_magic);
    h->version = VERSION;
    h->kind = item->kind;
    memcpy(h->shape, item->shape, sizeof h->shape);
    memcpy(h->hash, item->hash, sizeof h->hash);
    h->pos = item->pos;
    h->n_ids = item->n_ids;
    h->n_data = item->n_data;
    memcpy(h->ids, item->ids, item->n_ids * sizeof *h->ids);
}

static void file_checksum(const uint8_t key[EBB_KV_KEY_BYTES], const file_head *h, const void *data, size_t n,
                          uint8_t out[EBB_KV_HASH_BYTES])
{
    ebb_hash128(h, sizeof *h, key, out);
    ebb_hash128(data, n, out, out);
}

/* -- Writing ----------------------------------------------------------------------- */

static ebb_status write_in_the_clear(int fd, const char *dir, const ebb_kv_file *item, const file_head *h,
                                     const uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err)
{
    uint8_t sum[EBB_KV_HASH_BYTES];
    ebb_status st;

    file_checksum(key, h, item->data, item->n_data, sum);
    st = ebb_file_write_at(fd, dir, h, sizeof *h, 0, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(fd, dir, item->data, item->n_data, sizeof *h, err);
    if (st == EBB_OK)
        st = ebb_file_write_at(fd, dir, sum, sizeof sum, sizeof *h + item->n_data, err);
    return st;
}

/* Errors name the folder: a file that is begun has no name that anybody knows. */
static ebb_status write_file_body(int fd, const char *dir, const ebb_kv_file *item,
                                  const uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err)
{
    ebb_status st;
    file_head h;

    fill_head(item, &h);
    st = item->seal ? ebb_kv_sealed_write(fd, dir, item->seal, &h, sizeof h, item->data, item->n_data, err)
                    : write_in_the_clear(fd, dir, item, &h, key, err);
    if (st == EBB_OK && ebb_guard_is_hit(item->guard))
        st = EBB_FAIL(err, EBB_IO, "%s: the K and V to be saved can no longer be read", dir);
    if (st != EBB_OK || item->n_data < SYNC_BYTES)
        return st;                               /* a small one that a crash tears is found out by its sum */
    st = ebb_file_sync(fd, dir, err);
    ebb_file_drop_cache(fd, 0, ebb_kv_file_bytes(item));
    return st;
}

ebb_status ebb_kv_file_write(const char *dir, const ebb_kv_file *item, const uint8_t key[EBB_KV_KEY_BYTES],
                             ebb_error *err)
{
    char path[4096];
    ebb_buf beside = { 0 };
    int fd;
    ebb_status st;

    ebb_kv_file_path(dir, item, path, sizeof path);
    st = ebb_file_begin_beside(path, &beside, &fd, err);
    if (st == EBB_OK)
        st = write_file_body(fd, dir, item, key, err);
    ebb_file_close(fd);
    if (st == EBB_OK)
        st = ebb_file_rename(beside.data, path, err);
    if (st != EBB_OK && fd >= 0)
        ebb_file_remove(beside.data);
    ebb_buf_fini(&beside);
    return st;
}

/* -- Reading ----------------------------------------------------------------------- */

/* The head of whatever cache file; the salt of one that is encrypted. */
static ebb_status read_any_head(int fd, const char *path, const ebb_kv_seal *seal, file_head *h,
                                uint8_t salt[EBB_KV_SALT_BYTES], ebb_error *err)
{
    ebb_status st = seal ? ebb_kv_sealed_read_head(fd, path, seal, h, sizeof *h, salt, err)
                         : ebb_file_read_at(fd, path, h, sizeof *h, 0, err);

    if (st != EBB_OK)
        return st;
    if (memcmp(h->magic, kv_magic, sizeof kv_magic) != 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s: is not a file of the KV cache", path);
    if (h->version < VERSION)                    /* an older ebb's: as good as none, and written anew */
        return EBB_FAIL(err, EBB_NOTFOUND, "%s: has version %u", path, h->version);
    if (h->version != VERSION)
        return EBB_FAIL(err, EBB_FORMAT, "%s: has version %u; this ebb reads %u", path, h->version, VERSION);
    if (h->n_ids > EBB_KV_BLOCK)
        return EBB_FAIL(err, EBB_FORMAT, "%s: damaged: has %u tokens", path, h->n_ids);
    return EBB_OK;
}

/* That of a file that could be the item's. */
static ebb_status read_head(int fd, const char *path, const ebb_kv_file *item, file_head *h,
                            uint8_t salt[EBB_KV_SALT_BYTES], ebb_error *err)
{
    uint64_t n_bytes;
    ebb_status st = ebb_file_size(fd, path, &n_bytes, err);

    if (st == EBB_OK)
        st = read_any_head(fd, path, item->seal, h, salt, err);
    if (st != EBB_OK)
        return st;
    if (h->kind != (uint32_t)item->kind || memcmp(h->hash, item->hash, sizeof h->hash) != 0 ||
        memcmp(h->shape, item->shape, sizeof h->shape) != 0 || h->pos != item->pos || h->n_data != item->n_data)
        return EBB_FAIL(err, EBB_FORMAT, "%s: belongs to another sequence or model", path);
    if (n_bytes != ebb_kv_file_bytes(item))
        return EBB_FAIL(err, EBB_FORMAT, "%s: damaged: has %llu bytes; %llu were expected", path,
                        (unsigned long long)n_bytes, (unsigned long long)ebb_kv_file_bytes(item));
    return EBB_OK;
}

static bool is_tail(const ebb_kv_file *item)
{
    return item->kind == EBB_KV_FILE_TAIL || item->kind == EBB_KV_FILE_WINDOW_TAIL;
}

bool ebb_kv_file_has(const char *dir, const ebb_kv_file *item, uint32_t *n_ids, ebb_error *err)
{
    char path[4096];
    uint8_t salt[EBB_KV_SALT_BYTES];
    uint32_t same = 0;
    int fd;
    file_head h;
    ebb_status st;

    *err = (ebb_error){ 0 };
    ebb_kv_file_path(dir, item, path, sizeof path);
    st = ebb_file_open(path, EBB_FILE_READ, &fd, err);
    if (st == EBB_OK)
        st = read_head(fd, path, item, &h, salt, err);
    ebb_file_close(fd);
    if (st == EBB_NOTFOUND)
        *err = (ebb_error){ 0 };
    if (st != EBB_OK)
        return false;
    while (same < item->n_ids && same < h.n_ids && h.ids[same] == item->ids[same])
        same++;
    *n_ids = same;
    return is_tail(item) ? same > 0
         : item->kind == EBB_KV_FILE_STATE ? same == h.n_ids : same == h.n_ids && same == item->n_ids;
}

static ebb_status read_in_the_clear(int fd, const char *path, const ebb_kv_file *item, const file_head *h,
                                    const uint8_t key[EBB_KV_KEY_BYTES], ebb_error *err)
{
    uint8_t sum[EBB_KV_HASH_BYTES], want[EBB_KV_HASH_BYTES];
    ebb_status st = ebb_file_read_at(fd, path, item->data, item->n_data, sizeof *h, err);

    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path, want, sizeof want, sizeof *h + item->n_data, err);
    if (st != EBB_OK)
        return st;
    file_checksum(key, h, item->data, item->n_data, sum);
    return memcmp(sum, want, sizeof sum) == 0 ? EBB_OK
                                              : EBB_FAIL(err, EBB_FORMAT, "%s: damaged: its checksum is wrong", path);
}

ebb_status ebb_kv_file_read(const char *dir, const ebb_kv_file *item, const uint8_t key[EBB_KV_KEY_BYTES],
                            ebb_error *err)
{
    char path[4096];
    uint8_t salt[EBB_KV_SALT_BYTES];
    int fd;
    file_head h;
    ebb_status st;

    ebb_kv_file_path(dir, item, path, sizeof path);
    st = ebb_file_open(path, EBB_FILE_READ, &fd, err);
    if (st != EBB_OK)
        return st;
    st = read_head(fd, path, item, &h, salt, err);
    if (st == EBB_OK)
        st = item->seal ? ebb_kv_sealed_read_data(fd, path, item->seal, salt, sizeof h, item->data, item->n_data, err)
                        : read_in_the_clear(fd, path, item, &h, key, err);
    if (st == EBB_OK && item->n_data >= SYNC_BYTES)
        ebb_file_drop_cache(fd, 0, ebb_kv_file_bytes(item));
    ebb_file_close(fd);
    if (st != EBB_OK)
        return st;
    if (h.n_ids < item->n_ids || (!is_tail(item) && h.n_ids > item->n_ids) ||
        memcmp(h.ids, item->ids, item->n_ids * sizeof *h.ids) != 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s: has changed in the meantime", path);
    return EBB_OK;
}

bool ebb_kv_file_read_ids(const char *path, const ebb_kv_seal *seal, ebb_token ids[], uint32_t cap, uint32_t *n_ids)
{
    uint8_t salt[EBB_KV_SALT_BYTES];
    file_head h;
    int fd;
    bool ok;

    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return false;
    ok = read_any_head(fd, path, seal, &h, salt, NULL) == EBB_OK && h.n_ids <= cap;
    ebb_file_close(fd);
    if (!ok)
        return false;
    memcpy(ids, h.ids, h.n_ids * sizeof *ids);
    *n_ids = h.n_ids;
    return true;
}
