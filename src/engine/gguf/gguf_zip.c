/* A GGUF inside a zip archive (gguf_zip.h).  Of what the archive says, nothing is believed that does not lie in the
 * file. */
#include "gguf/gguf_zip.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"

#define END_BYTES      22u       /* end record, without its comment */
#define LOCATOR_BYTES  20u
#define END64_BYTES    56u
#define ENTRY_BYTES    46u
#define LOCAL_BYTES    30u
#define MAX_COMMENT    65535u
#define MAX_LIST       ((uint64_t)16 << 20)
#define MAX_MEMBERS    64u       /* of GGUFs */

typedef unsigned long long ull;

typedef struct zip_member {
    const char *name;            /* in the list; no NUL behind it */
    uint32_t    n_name;
    bool        is_plain;        /* neither compressed nor encrypted */
    uint64_t    n_bytes, header_at;
} zip_member;

typedef struct zip_file {
    int         fd;
    const char *path;
    uint64_t    n_bytes;
    uint64_t    list_at, list_bytes;             /* the list of members */
    uint64_t    shift;           /* bytes before the archive, where its offsets do not count them */
    char       *list;
    zip_member  members[MAX_MEMBERS];
    size_t      n_members;
} zip_file;

static uint64_t read_le(const char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = n; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

static ebb_status fail_damaged(const zip_file *z, const char *what, ebb_error *err)
{
    return EBB_FAIL(err, EBB_FORMAT, "%s: damaged: %s of the zip archive lies outside the file; download it again",
                    z->path, what);
}

/* -- The end ---------------------------------------------------------------------------------- */

/* The last end record in tail[0..n) whose comment ends with the file; NULL: this is no zip. */
static const char *find_end_record(const char *tail, size_t n)
{
    for (size_t i = n < END_BYTES ? 0 : n - END_BYTES + 1; i-- > 0;)
        if (memcmp(tail + i, "PK\5\6", 4) == 0 && i + END_BYTES + read_le(tail + i + 20, 2) == n)
            return tail + i;
    return NULL;
}

/* The central directory, as the end record at `end_at` describes it. */
static ebb_status locate_list(zip_file *z, const char *end, uint64_t end_at, ebb_error *err)
{
    uint64_t size = read_le(end + 12, 4), offset = read_le(end + 16, 4);

    if (size > end_at || offset > end_at - size)
        return fail_damaged(z, "the list of members", err);
    z->list_bytes = size;
    z->list_at = end_at - size;
    z->shift = z->list_at - offset;
    return EBB_OK;
}

static ebb_status locate_list64(zip_file *z, const char *locator, uint64_t locator_at, ebb_error *err)
{
    char end[END64_BYTES];
    uint64_t at = read_le(locator + 8, 8), size, offset;
    ebb_status st;

    if (at > locator_at || locator_at - at < END64_BYTES)
        return fail_damaged(z, "the end record", err);
    st = ebb_file_read_at(z->fd, z->path, end, sizeof end, at, err);
    if (st != EBB_OK)
        return st;
    size = read_le(end + 40, 8);
    offset = read_le(end + 48, 8);
    if (memcmp(end, "PK\6\6", 4) != 0 || size > at || offset > at - size)
        return fail_damaged(z, "the list of members", err);
    z->list_bytes = size;
    z->list_at = offset;
    z->shift = 0;
    return EBB_OK;
}

/* Find the central directory.  list_bytes stays 0 where there is no zip. */
static ebb_status find_list(zip_file *z, ebb_error *err)
{
    size_t n = z->n_bytes < END_BYTES + MAX_COMMENT + LOCATOR_BYTES ? (size_t)z->n_bytes
                                                                    : END_BYTES + MAX_COMMENT + LOCATOR_BYTES;
    char *tail = malloc(n + 1);
    const char *end;
    uint64_t tail_at = z->n_bytes - n;
    ebb_status st = tail ? ebb_file_read_at(z->fd, z->path, tail, n, tail_at, err)
                         : EBB_FAIL(err, EBB_NOMEM, "%s: no memory for the end of a zip archive", z->path);

    end = st == EBB_OK ? find_end_record(tail, n) : NULL;
    if (end && end - tail >= (ptrdiff_t)LOCATOR_BYTES && memcmp(end - LOCATOR_BYTES, "PK\6\7", 4) == 0)
        st = locate_list64(z, end - LOCATOR_BYTES, tail_at + (uint64_t)(end - tail) - LOCATOR_BYTES, err);
    else if (end)
        st = locate_list(z, end, tail_at + (uint64_t)(end - tail), err);
    if (st == EBB_OK && z->list_bytes > MAX_LIST)
        st = EBB_FAIL(err, EBB_LIMIT, "%s: its list of members has %llu bytes; at most %llu are accepted",
                      z->path, (ull)z->list_bytes, (ull)MAX_LIST);
    free(tail);
    return st;
}

/* -- The members ------------------------------------------------------------------------------- */

/* Sizes and offsets that do not fit 32 bits are in an extra field, in this order, and only those that do not. */
static void read_extra64(zip_member *m, const char *extra, size_t n, bool has_packed)
{
    while (n >= 4) {
        size_t id = (size_t)read_le(extra, 2), k = (size_t)read_le(extra + 2, 2), at = 0;

        if (k > n - 4)
            return;
        if (id == 1) {
            if (m->n_bytes == UINT32_MAX && at + 8 <= k) {
                m->n_bytes = read_le(extra + 4 + at, 8);
                at += 8;
            }
            at += has_packed ? 8 : 0;
            if (m->header_at == UINT32_MAX && at + 8 <= k)
                m->header_at = read_le(extra + 4 + at, 8);
            return;
        }
        extra += 4 + k;
        n -= 4 + k;
    }
}

static bool is_gguf_name(const char *name, size_t n)
{
    return n > 5 && strncasecmp(name + n - 5, ".gguf", 5) == 0 && !memchr(name, '\0', n);
}

static ebb_status read_list(zip_file *z, ebb_error *err)
{
    uint64_t at = 0;
    ebb_status st;

    z->list = malloc((size_t)z->list_bytes + 1);
    if (!z->list)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a list of members", z->path);
    st = ebb_file_read_at(z->fd, z->path, z->list, (size_t)z->list_bytes, z->list_at, err);
    while (st == EBB_OK && z->list_bytes - at >= ENTRY_BYTES && z->n_members < MAX_MEMBERS) {
        const char *e = z->list + at;
        uint64_t n_name = read_le(e + 28, 2), n_extra = read_le(e + 30, 2), n_comment = read_le(e + 32, 2),
                 packed = read_le(e + 20, 4);
        zip_member m = { .name = e + ENTRY_BYTES, .n_name = (uint32_t)n_name, .n_bytes = read_le(e + 24, 4),
                         .header_at = read_le(e + 42, 4),
                         .is_plain = read_le(e + 10, 2) == 0 && !(read_le(e + 8, 2) & 1) };

        if (memcmp(e, "PK\1\2", 4) != 0 || n_name + n_extra + n_comment > z->list_bytes - at - ENTRY_BYTES)
            return fail_damaged(z, "the list of members", err);
        read_extra64(&m, e + ENTRY_BYTES + n_name, (size_t)n_extra, packed == UINT32_MAX);
        if (is_gguf_name(m.name, m.n_name))
            z->members[z->n_members++] = m;
        at += ENTRY_BYTES + n_name + n_extra + n_comment;
    }
    return st;
}

/* Where the bytes of a member are: behind its own header, whose lengths are not those of the list. */
static ebb_status locate_member(const zip_file *z, const zip_member *m, ebb_gguf_span *out, ebb_error *err)
{
    char head[LOCAL_BYTES];
    uint64_t at;
    ebb_status st;

    if (!m->is_plain)
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "%s: its member %.*s is compressed or encrypted; extract it with `unzip`", z->path,
                        (int)m->n_name, m->name);
    if (m->header_at > z->n_bytes - z->shift || z->n_bytes - z->shift - m->header_at < LOCAL_BYTES)
        return fail_damaged(z, "a member", err);
    at = m->header_at + z->shift;
    st = ebb_file_read_at(z->fd, z->path, head, sizeof head, at, err);
    if (st != EBB_OK)
        return st;
    if (memcmp(head, "PK\3\4", 4) != 0)
        return fail_damaged(z, "a member", err);
    at += LOCAL_BYTES + read_le(head + 26, 2) + read_le(head + 28, 2);
    if (at > z->n_bytes || m->n_bytes > z->n_bytes - at)
        return EBB_FAIL(
            err, EBB_FORMAT,
            "%s: its member %.*s is truncated: it has %llu bytes, of which the file holds %llu; download it again",
            z->path, (int)m->n_name, m->name, (ull)m->n_bytes, (ull)(at > z->n_bytes ? 0 : z->n_bytes - at));
    *out = (ebb_gguf_span){ at, m->n_bytes };
    return EBB_OK;
}

/* -- The choice -------------------------------------------------------------------------------- */

static bool is_called(const zip_member *m, const char *wanted)
{
    size_t n = strlen(wanted);

    return n <= m->n_name && strncmp(m->name + m->n_name - n, wanted, n) == 0 &&
           (n == m->n_name || m->name[m->n_name - n - 1] == '/');
}

static void list_names(const zip_file *z, char *out, size_t cap)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < z->n_members && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%.*s", i ? ", " : "", (int)z->members[i].n_name, z->members[i].name);
}

static ebb_status choose_by_name(const zip_file *z, const char *wanted, ebb_gguf_span *out, ebb_error *err)
{
    char names[160];

    for (size_t i = 0; i < z->n_members; i++)
        if (is_called(&z->members[i], wanted))
            return locate_member(z, &z->members[i], out, err);
    list_names(z, names, sizeof names);
    return EBB_FAIL(err, EBB_NOTFOUND, "%s: has no member %.80s; its members are %s", z->path, wanted, names);
}

/* Of several members the one that is a language model; the only member may be anything. */
static ebb_status choose_by_kind(const zip_file *z, ebb_gguf_span *out, ebb_error *err)
{
    const zip_member *chosen = NULL;
    char names[160];
    ebb_status st = EBB_OK;

    if (z->n_members == 1)
        return locate_member(z, &z->members[0], out, err);
    for (size_t i = 0; i < z->n_members && st == EBB_OK; i++) {
        ebb_model_kind kind = EBB_KIND_CHAT;
        ebb_gguf_span at;

        st = locate_member(z, &z->members[i], &at, err);
        if (st == EBB_OK)
            st = ebb_gguf_read_kind(z->fd, z->path, at, &kind, err);
        if (st != EBB_OK || kind != EBB_KIND_CHAT)
            continue;
        if (chosen) {
            list_names(z, names, sizeof names);
            return EBB_FAIL(err, EBB_LIMIT, "%s: holds several models; name one, as in %s@%.*s; its members are %s",
                            z->path, z->path, (int)chosen->n_name, chosen->name, names);
        }
        chosen = &z->members[i];
        *out = at;
    }
    if (st == EBB_OK && !chosen)
        st = locate_member(z, &z->members[0], out, err);
    return st;
}

ebb_status ebb_gguf_find_span(int fd, const char *path, const char *wanted, uint64_t n_bytes, ebb_gguf_span *out,
                              ebb_error *err)
{
    zip_file z = { .fd = fd, .path = path, .n_bytes = n_bytes };
    char magic[4] = "";
    ebb_status st = n_bytes < END_BYTES ? EBB_OK : ebb_file_read_at(fd, path, magic, sizeof magic, 0, err);

    *out = (ebb_gguf_span){ 0, n_bytes };
    if (st != EBB_OK || n_bytes < END_BYTES || memcmp(magic, "GGUF", 4) == 0)
        return st;
    st = find_list(&z, err);
    if (st == EBB_OK && z.list_bytes)
        st = read_list(&z, err);
    if (st == EBB_OK && z.n_members)
        st = wanted ? choose_by_name(&z, wanted, out, err) : choose_by_kind(&z, out, err);
    else if (st == EBB_OK && wanted)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%s: has no members, so none is named %.80s", path, wanted);
    free(z.list);
    return st;
}

size_t ebb_model_path_file(const char *path)
{
    size_t n = strlen(path);
    const char *at = n > 5 && strcasecmp(path + n - 5, ".gguf") == 0 ? strrchr(path, '@') : NULL;

    return at && at > path ? (size_t)(at - path) : n;
}
