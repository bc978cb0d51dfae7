/* What an editor has saved (message_file.h). */
#include "edit/message_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/paths.h"

enum { MESSAGE_BYTES_MAX = 16 << 20, N_RANDOM = 6 };

static const char name_begin[] = "ebb-draft-", name_end[] = ".md";

int ebb_message_file_make(char *path, size_t cap)
{
    ebb_buf dir = { 0 };
    bool has_own = ebb_path_run(&dir, NULL) == EBB_OK && ebb_file_mkdirs(dir.data, NULL) == EBB_OK;
    int n = snprintf(path, cap, "%s/%sXXXXXX%s", has_own ? dir.data : "/tmp", name_begin, name_end);

    ebb_buf_fini(&dir);
    if (n < 0 || (size_t)n >= cap) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkstemps(path, (int)strlen(name_end));
}

bool ebb_message_file_is_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n_begin = strlen(name_begin);

    return slash && strncmp(name, name_begin, n_begin) == 0 && strlen(name) == n_begin + N_RANDOM + strlen(name_end) &&
           strcmp(name + n_begin + N_RANDOM, name_end) == 0;
}

static ebb_status add_file(int fd, const char *path, ebb_buf *out, ebb_error *err)
{
    uint64_t n;
    ebb_status st = ebb_file_size(fd, path, &n, err);

    if (st != EBB_OK)
        return st;
    if (!ebb_file_is_own(fd))
        return EBB_FAIL(err, EBB_IO, "%s: belongs to another user", path);
    if (n > MESSAGE_BYTES_MAX)
        return EBB_FAIL(err, EBB_LIMIT, "%s: more than %d MiB", path, MESSAGE_BYTES_MAX >> 20);
    if (!ebb_buf_reserve(out, (size_t)n))
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
    st = ebb_file_read_at(fd, path, out->data, (size_t)n, 0, err);
    if (st == EBB_OK)
        out->len = (size_t)n;
    return st;
}

/* The end of the last line is no part of the message; a NUL would end it. */
static bool add_message(ebb_buf *out, const char *s, size_t n)
{
    while (n > 0 && s[n - 1] == '\n')
        n--;
    for (size_t n_part; (n_part = strnlen(s, n)) < n; s += n_part + 1, n -= n_part + 1)
        if (!ebb_buf_add(out, s, n_part) || !ebb_buf_adds(out, "\xEF\xBF\xBD"))
            return false;
    return ebb_buf_add(out, s, n);
}

ebb_status ebb_message_file_read(const char *path, ebb_buf *out, ebb_error *err)
{
    ebb_buf whole = { 0 };
    int fd;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ_HERE, &fd, err);

    if (st == EBB_OK)
        st = add_file(fd, path, &whole, err);
    if (st == EBB_OK && !add_message(out, ebb_buf_text(&whole), whole.len))
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its text", path);
    ebb_file_close(fd);
    ebb_buf_fini(&whole);
    return st;
}
