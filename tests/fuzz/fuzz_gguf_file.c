/* Headers as they come: a file, the beginning of one, one of two parts, the beginnings of both.  The bytes are those
 * of the files, or what is changed in two parts that are sound: where they end, then 2 of where, 1 of what, again and
 * again. */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include "ebb/experimental/inspect.h"
#include "engine/gguf/gguf_damage.h"
#include "support/own_folder.h"

enum { IS_BEGUN = 1, IS_TWO = 2, IS_RAW = 4, IS_SECOND = 8, IS_PROMISED = 16 };

static char folder[64], paths[2][128];
static int fds[2];

static void remove_folder(void)
{
    (void)ebb_own_folder_end(folder);
}

static void make_files(void)
{
    if (ebb_own_folder(folder, sizeof folder, "/dev/shm/ebb-fuzz-XXXXXX") != 0)
        FUZZ_MUST(ebb_own_folder(folder, sizeof folder, "/tmp/ebb-fuzz-XXXXXX") == 0);
    FUZZ_MUST(atexit(remove_folder) == 0);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/m-%05d-of-00002.gguf", folder, i + 1);
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

/* Edits of the parts in turn; 2 bytes say how much of the first one's end is not there, or of the second one's. */
static void put_edited(const uint8_t *data, size_t n, bool is_second, uint32_t n_parts)
{
    ebb_buf parts[2] = { { 0 }, { 0 } };
    size_t cut = n < 2 ? 0 : data[0] | (size_t)data[1] << 8;

    for (uint32_t i = 0; i < 2; i++)
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

static void use(ebb_status st, ebb_gguf *g, const ebb_error *err)
{
    FUZZ_MUST((st == EBB_OK) == (g != NULL));
    if (g)
        gguf_use(g);
    else
        FUZZ_MUST(err->msg[0] && !strchr(err->msg, '\n'));
    ebb_gguf_close(g);
}

static void open_file(const char *path)
{
    ebb_error err = { 0 };
    ebb_gguf *g;
    ebb_model *m;
    ebb_status st = ebb_gguf_open(path, &g, &err);

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
    if (!folder[0])
        make_files();
    how = data[0];
    if (how & IS_RAW)
        put_raw((const char *)data + 1, n - 1);
    else
        put_edited(data + 1, n - 1, (how & IS_SECOND) != 0, how & IS_TWO ? 2 : 1);
    if (how & IS_BEGUN)
        open_beginnings(how & IS_TWO ? 2 : 1, how & IS_PROMISED ? 4096 : 0);
    else
        open_file(paths[how & IS_SECOND ? 1 : 0]);
    return 0;
}
