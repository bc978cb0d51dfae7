/* Encrypted cache files (kv_sealed.h). */
#include "kv/kv_sealed.h"

#include <stdlib.h>
#include <string.h>

#include "os/file.h"

enum { PIECE = 64 << 10, TAG = 16, NONCE = 24, MAX_HEAD = 512 };

#define VERSION 1u

/* In the clear. */
typedef struct file_lead {
    char     magic[8];
    uint32_t version, reserved;
    uint8_t  salt[EBB_KV_SALT_BYTES];
} file_lead;

_Static_assert(sizeof(file_lead) == 32, "the lead of a file has no padding");

static const char sealed_magic[8] = "EBB-KVS\n";

static size_t count_pieces(size_t n_data)
{
    return (n_data + PIECE - 1) / PIECE;
}

static size_t data_offset(size_t n_head)
{
    return sizeof(file_lead) + n_head + TAG;
}

static size_t piece_bytes(size_t n_data, size_t at)
{
    return n_data - at < PIECE ? n_data - at : PIECE;
}

static void make_nonce(const uint8_t salt[EBB_KV_SALT_BYTES], uint64_t number, uint8_t out[NONCE])
{
    memcpy(out, salt, EBB_KV_SALT_BYTES);
    memcpy(out + EBB_KV_SALT_BYTES, &number, sizeof number);
}

uint64_t ebb_kv_sealed_bytes(size_t n_head, size_t n_data)
{
    return data_offset(n_head) + n_data + count_pieces(n_data) * TAG;
}

static ebb_status write_lead(int fd, const char *path, const ebb_kv_seal *seal, const file_lead *lead,
                             const void *head, size_t n_head, ebb_error *err)
{
    uint8_t out[sizeof *lead + MAX_HEAD + TAG], nonce[NONCE];

    memcpy(out, lead, sizeof *lead);
    make_nonce(lead->salt, 0, nonce);
    seal->seal(seal->arg, nonce, head, n_head, out + sizeof *lead, out + sizeof *lead + n_head);
    return ebb_file_write_at(fd, path, out, data_offset(n_head), 0, err);
}

ebb_status ebb_kv_sealed_write(int fd, const char *path, const ebb_kv_seal *seal, const void *head, size_t n_head,
                               const void *data, size_t n_data, ebb_error *err)
{
    size_t n_tags = count_pieces(n_data) * TAG, from = data_offset(n_head);
    file_lead lead = { .version = VERSION };
    uint8_t *piece = malloc(PIECE), *tags = malloc(n_tags + 1), nonce[NONCE];
    ebb_status st = piece && tags && n_head <= MAX_HEAD ? EBB_OK
                                                        : EBB_FAIL(err, EBB_NOMEM, "%s: no memory to encrypt it", path);

    memcpy(lead.magic, sealed_magic, sizeof sealed_magic);
    seal->random(seal->arg, lead.salt, sizeof lead.salt);
    if (st == EBB_OK)
        st = write_lead(fd, path, seal, &lead, head, n_head, err);
    for (size_t at = 0; st == EBB_OK && at < n_data; at += PIECE) {
        size_t n = piece_bytes(n_data, at);

        make_nonce(lead.salt, at / PIECE + 1, nonce);
        seal->seal(seal->arg, nonce, (const uint8_t *)data + at, n, piece, tags + at / PIECE * TAG);
        st = ebb_file_write_at(fd, path, piece, n, from + at, err);
    }
    if (st == EBB_OK)
        st = ebb_file_write_at(fd, path, tags, n_tags, from + n_data, err);
    free(piece);
    free(tags);
    return st;
}

ebb_status ebb_kv_sealed_read_head(int fd, const char *path, const ebb_kv_seal *seal, void *head, size_t n_head,
                                   uint8_t salt[EBB_KV_SALT_BYTES], ebb_error *err)
{
    uint8_t in[sizeof(file_lead) + MAX_HEAD + TAG], nonce[NONCE];
    file_lead lead;
    ebb_status st;

    if (n_head > MAX_HEAD)
        return EBB_FAIL(err, EBB_FORMAT, "%s: is not a file of the KV cache", path);
    st = ebb_file_read_at(fd, path, in, data_offset(n_head), 0, err);
    if (st != EBB_OK)
        return st;
    memcpy(&lead, in, sizeof lead);
    if (memcmp(lead.magic, sealed_magic, sizeof sealed_magic) != 0 || lead.version != VERSION)
        return EBB_FAIL(err, EBB_FORMAT, "%s: is not an encrypted file of the KV cache", path);
    memcpy(head, in + sizeof lead, n_head);
    make_nonce(lead.salt, 0, nonce);
    if (!seal->open(seal->arg, nonce, head, n_head, in + sizeof lead + n_head))
        return EBB_FAIL(err, EBB_FORMAT, "%s: damaged, or encrypted with another key", path);
    memcpy(salt, lead.salt, sizeof lead.salt);
    return EBB_OK;
}

ebb_status ebb_kv_sealed_read_data(int fd, const char *path, const ebb_kv_seal *seal,
                                   const uint8_t salt[EBB_KV_SALT_BYTES], size_t n_head, void *data, size_t n_data,
                                   ebb_error *err)
{
    size_t n_tags = count_pieces(n_data) * TAG, from = data_offset(n_head);
    uint8_t *tags = malloc(n_tags + 1), nonce[NONCE];
    ebb_status st = tags ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "%s: no memory to decrypt it", path);

    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path, data, n_data, from, err);
    if (st == EBB_OK)
        st = ebb_file_read_at(fd, path, tags, n_tags, from + n_data, err);
    for (size_t at = 0; st == EBB_OK && at < n_data; at += PIECE) {
        make_nonce(salt, at / PIECE + 1, nonce);
        if (!seal->open(seal->arg, nonce, (uint8_t *)data + at, piece_bytes(n_data, at), tags + at / PIECE * TAG))
            st = EBB_FAIL(err, EBB_FORMAT, "%s: damaged: its bytes are not those that were encrypted", path);
    }
    free(tags);
    return st;
}
