/* Headers as they come: a file, the beginning of one, one of two parts, the beginnings of both, two members of a
 * llamafile.  The bytes are those of the files, or what is changed in files that are sound: where they end, then 2 of
 * where, 1 of what, again and again. */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include "ebb/experimental/inspect.h"
#include "engine/gguf/gguf_damage.h"
#include "folder.h"

enum { IS_BEGUN = 1, IS_TWO = 2, IS_RAW = 4, IS_SECOND = 8, IS_PROMISED = 16, IS_ZIP = 32, IS_ZIP64 = 64,
       HAS_SHIFT = 128 };

static char paths[2][128];
static int fds[2];

static void make_files(void)
{
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/m-%05d-of-00002.gguf", fuzz_folder(), i + 1);
        fds[i] = open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        FUZZ_MUST(fds[i] >= 0);
    }
}

static void put(int i, const char *bytes, size_t n)
{
    FUZZ_MUST(ftruncate(fds[i], 0) == 0 && pwrite(fds[i], bytes, n, 0) == (ssize_t)n);
}

/* -- Contents --------------------------------------------------------------------- */

/* Two files, one behind the other: 2 bytes say where the second begins. */
static void put_raw(const char *data, size_t n)
{
    size_t first = n < 2 ? n : ((uint8_t)data[0] | (size_t)(uint8_t)data[1] << 8) % (n - 1);

    if (n >= 2) {
        data += 2;
        n -= 2;
    }
    first = first < n ? first : n;
    put(0, data, first);
    put(1, data + first, n - first);
}

static void add_le(ebb_buf *f, uint64_t v, size_t n)
{
    ebb_buf_add(f, &v, n);
}

/* One member, and its entry in the list. */
static void add_member(ebb_buf *f, ebb_buf *list, const char *name, const ebb_buf *data, bool is_64, size_t shift)
{
    const uint64_t at = f->len - shift, size = is_64 ? UINT32_MAX : data->len;

    ebb_buf_add(f, "PK\3\4\55\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
    add_le(f, size, 4);
    add_le(f, size, 4);
    add_le(f, strlen(name), 2);
    add_le(f, 6, 2);
    ebb_buf_adds(f, name);
    ebb_buf_add(f, "\xca\xfe\2\0\0\0", 6);
    ebb_buf_add(f, data->data, data->len);
    ebb_buf_add(list, "PK\1\2\55\0\55\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    add_le(list, size, 4);
    add_le(list, size, 4);
    add_le(list, strlen(name), 2);
    add_le(list, is_64 ? 37 : 9, 2);
    add_le(list, 0, 8);                          /* comment, disk, attributes */
    add_le(list, 0, 2);
    add_le(list, is_64 ? UINT32_MAX : at, 4);
    ebb_buf_adds(list, name);
    ebb_buf_add(list, "UT\5\0time.", 9);
    if (is_64) {
        ebb_buf_add(list, "\1\0\30\0", 4);
        add_le(list, data->len, 8);
        add_le(list, data->len, 8);
        add_le(list, at, 8);
    }
}

/* A program and behind it an archive of two models; `has_shift`: offsets do not count the program. */
static void put_llamafile(ebb_buf *f, bool is_64, bool has_shift)
{
    ebb_buf models[2] = { { 0 }, { 0 } }, list = { 0 };
    size_t shift, list_at;

    for (uint32_t i = 0; i < 2; i++)
        gguf_part(&models[i], 0, 1);
    memcpy(memmem(models[1].data, models[1].len, "llama", 5), "vocab", 5);       /* no model that chats */
    ebb_buf_adds(f, "MZqFpD='\n");
    shift = has_shift && !is_64 ? f->len : 0;
    add_member(f, &list, "dir/chat.gguf", &models[0], is_64, shift);
    add_member(f, &list, "clip.gguf", &models[1], is_64, shift);
    list_at = f->len - shift;
    ebb_buf_add(f, list.data, list.len);
    if (is_64) {
        const size_t end = f->len;

        ebb_buf_add(f, "PK\6\6\54\0\0\0\0\0\0\0\55\0\55\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 40);
        add_le(f, list.len, 8);
        add_le(f, list_at, 8);
        ebb_buf_add(f, "PK\6\7\0\0\0\0", 8);
        add_le(f, end, 8);
        add_le(f, 1, 4);
    }
    ebb_buf_add(f, "PK\5\6\0\0\0\0\2\0\2\0", 12);
    add_le(f, is_64 ? UINT32_MAX : list.len, 4);
    add_le(f, is_64 ? UINT32_MAX : list_at, 4);
    add_le(f, 0, 2);
    ebb_buf_fini(&list);
    for (int i = 0; i < 2; i++)
        ebb_buf_fini(&models[i]);
}

/* Edits of the parts in turn; 2 bytes say how much of the first one's end is not there, or of the second one's. */
static void put_edited(const uint8_t *data, size_t n, bool is_second, uint32_t n_parts, unsigned how)
{
    ebb_buf parts[2] = { { 0 }, { 0 } };
    size_t cut = n < 2 ? 0 : data[0] | (size_t)data[1] << 8;

    for (uint32_t i = 0; i < 2; i++)
        if (how & IS_ZIP)
            put_llamafile(&parts[i], how & IS_ZIP64, how & HAS_SHIFT);
        else
            gguf_part(&parts[i], i, n_parts);
    for (size_t i = 2; i + 3 <= n; i += 3) {
        ebb_buf *f = &parts[(i / 3 + is_second) % 2];

        f->data[(data[i] | (size_t)data[i + 1] << 8) % f->len] = (char)data[i + 2];
    }
    parts[is_second].len -= cut % parts[is_second].len;
    for (int i = 0; i < 2; i++) {
        put(i, parts[i].data, parts[i].len);
        ebb_buf_fini(&parts[i]);
    }
}

/* -- Opening ---------------------------------------------------------------------- */

/* Each key as a number, each tensor by its type. */
static void ask(const ebb_gguf *g)
{
    ebb_error err = { 0 };
    int64_t i;
    double d;

    for (size_t k = 0; k < ebb_gguf_n_keys(g); k++) {
        const char *key = ebb_gguf_get_key(g, k)->key;
        bool is_number = ebb_gguf_get_f64(g, key, &d);

        FUZZ_MUST(!ebb_gguf_get_i64(g, key, &i) || is_number);
    }
    for (size_t k = 0; k < ebb_gguf_n_tensors(g); k++)
        FUZZ_MUST(ebb_gguf_check_type(ebb_gguf_get_tensor(g, k), &err) == EBB_OK || err.msg[0]);
}

static void use(ebb_status st, ebb_gguf *g, const ebb_error *err)
{
    FUZZ_MUST((st == EBB_OK) == (g != NULL));
    if (g) {
        gguf_use(g);
        ask(g);
    }
    if (!g)
        FUZZ_MUST(err->msg[0] && !strchr(err->msg, '\n'));
    ebb_gguf_close(g);
}

static void open_member(const char *path, const char *member)
{
    char name[160];
    ebb_error err = { 0 };
    ebb_gguf *g;
    ebb_status st;

    snprintf(name, sizeof name, "%s@%s", path, member);
    st = ebb_gguf_open(name, &g, &err);
    use(st, g, &err);
}

static void open_file(const char *path)
{
    ebb_error err = { 0 };
    ebb_model_kind kind;
    ebb_gguf *g;
    ebb_model *m;
    ebb_status st = ebb_model_read_kind(path, &kind, &err);

    FUZZ_MUST(st == EBB_OK ? ebb_model_kind_name(kind)[0] : err.msg[0]);
    err = (ebb_error){ 0 };
    st = ebb_gguf_open(path, &g, &err);

    use(st, g, &err);
    if (ebb_model_open(path, &m, &err) == EBB_OK) {
        FUZZ_MUST(st == EBB_OK);
        ebb_model_close(m);
    }
}

static void open_beginnings(size_t n, uint64_t n_bytes)
{
    const ebb_partial_file files[] = { { paths[0], "m-1", n_bytes }, { paths[1], "m-2", n_bytes } };
    ebb_error err = { 0 };
    size_t i_busy = n;
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open_partial(files, n, &i_busy, &g, &err);

    FUZZ_MUST(i_busy < n);
    use(st, g, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    unsigned how;

    if (n == 0)
        return 0;
    if (!paths[0][0])
        make_files();
    how = data[0];
    if (how & IS_RAW)
        put_raw((const char *)data + 1, n - 1);
    else
        put_edited(data + 1, n - 1, (how & IS_SECOND) != 0, how & IS_TWO ? 2 : 1, how);
    if (how & IS_BEGUN)
        open_beginnings(how & IS_TWO ? 2 : 1, how & IS_PROMISED ? 4096 : 0);
    else
        open_file(paths[how & IS_SECOND ? 1 : 0]);
    if (how & IS_ZIP && how & IS_TWO)
        open_member(paths[0], how & IS_PROMISED ? "none.gguf" : "clip.gguf");
    return 0;
}
