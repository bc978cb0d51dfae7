/* Headers of models of every architecture, damaged or cut off anywhere and opened as files: each is refused with one
 * line, or can be asked everything.  EBB_GGUF_OPENS: how often, instead of 2,000.  EBB_GGUF_HEADERS: a folder of model
 * files whose headers are taken instead, of which at most 32 MiB.  EBB_GGUF_SEED: another sequence. */
#include "gguf_damage.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>

#include "ebb/experimental/inspect.h"
#include "os/file.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

enum { N_HEADERS = 208, MAX_HEADER = 32 << 20 };

static struct { char *bytes; size_t n, span; } headers[N_HEADERS];
static size_t n_headers;
static char folder[64], path[128];
static int fd;

/* -- Headers --------------------------------------------------------------------------- */

/* The span of a header is what stands before the tensors' data. */
static void add_header(char *bytes, size_t n)
{
    ebb_gguf *g;
    ebb_error err = { 0 };

    assert_non_null(bytes);
    if (ebb_gguf_open_memory(bytes, n, "header", &g, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    headers[n_headers].bytes = bytes;
    headers[n_headers].n = n;
    headers[n_headers++].span = (size_t)ebb_gguf_get_part(g, 0)->data_at;
    ebb_gguf_close(g);
}

static void make_headers(void)
{
    for (uint32_t layers = 1; n_headers < N_HEADERS; layers++)
        for (size_t i = 0; ebb_tiny_archs[i] && n_headers < N_HEADERS; i++) {
            ebb_tiny_opts o = { .arch = ebb_tiny_archs[i], .n_layers = layers, .n_embd = 32, .n_head = 2,
                                .n_head_kv = 1, .head_dim = 16, .n_ff = 32, .n_ctx = 32 };
            size_t n;
            char *bytes = ebb_tiny_bytes(&o, &n);

            add_header(bytes, n);
        }
}

/* Of real models the header alone: a file that ends behind it is like one whose end did not come. */
static void read_headers(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    char name[4096];

    assert_non_null(d);
    while (n_headers < N_HEADERS && (e = readdir(d)) != NULL) {
        ebb_gguf *g;
        int from;
        size_t n;

        snprintf(name, sizeof name, "%s/%s", dir, e->d_name);
        if (!strstr(e->d_name, ".gguf") || ebb_gguf_open(name, &g, NULL) != EBB_OK)
            continue;
        n = (size_t)ebb_gguf_get_part(g, 0)->data_at;
        ebb_gguf_close(g);
        if (n > MAX_HEADER)
            continue;
        headers[n_headers].bytes = malloc(n);
        headers[n_headers].n = headers[n_headers].span = n;
        assert_int_equal(ebb_file_open(name, EBB_FILE_READ, &from, NULL), EBB_OK);
        assert_int_equal(ebb_file_read_at(from, name, headers[n_headers++].bytes, n, 0, NULL), EBB_OK);
        ebb_file_close(from);
    }
    closedir(d);
}

static int setup(void **state)
{
    const char *dir = getenv("EBB_GGUF_HEADERS"), *seed = getenv("EBB_GGUF_SEED");

    (void)state;
    if (seed)
        gguf_rng += strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15u;
    if (ebb_own_folder(folder, sizeof folder, "/dev/shm/ebb-gguf-opens-XXXXXX") != 0 &&
        ebb_own_folder(folder, sizeof folder, "/tmp/ebb-gguf-opens-XXXXXX") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (dir)
        read_headers(dir);
    else
        make_headers();
    return n_headers > 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    close(fd);
    for (size_t i = 0; i < n_headers; i++)
        free(headers[i].bytes);
    return ebb_own_folder_end(folder);
}

/* -- Opening ---------------------------------------------------------------------------- */

/* All of a model: its header, kind, vocabulary. */
static bool open_model(void)
{
    static const char text[] = "Once <s> caf\xc3\xa9\xff 12";
    ebb_token ids[64];
    ebb_error err = { 0 };
    ebb_model_kind kind;
    ebb_model *m;
    size_t n = 0;

    if (ebb_model_read_kind(path, &kind, &err) != EBB_OK)
        gguf_check_failure(&err);
    if (ebb_model_open(path, &m, &err) != EBB_OK) {
        gguf_check_failure(&err);
        return false;
    }
    if (ebb_model_tokenize(m, text, sizeof text - 1, EBB_TOK_BOS | EBB_TOK_SPECIAL, ids, 64, &n, &err) != EBB_OK)
        gguf_check_failure(&err);
    ebb_model_close(m);
    return true;
}

static bool open_header(uint64_t n_promised)
{
    const ebb_partial_file begun = { path, "m.gguf", n_promised };
    ebb_error err = { 0 };
    size_t i_busy;
    ebb_gguf *g;
    ebb_status st = n_promised ? ebb_gguf_open_partial(&begun, 1, &i_busy, &g, &err) : ebb_gguf_open(path, &g, &err);

    assert_true((st == EBB_OK) == (g != NULL));
    if (g)
        gguf_use(g);
    else
        gguf_check_failure(&err);
    ebb_gguf_close(g);
    return st == EBB_OK;
}

static void test_damaged_headers(void **state)
{
    const char *words = getenv("EBB_GGUF_OPENS");
    uint64_t n_opens = words ? strtoull(words, NULL, 10) : 2000, n_open = 0;
    struct timespec from, to;

    (void)state;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint64_t i = 0; i < n_opens; i++) {
        size_t k = gguf_random_below(n_headers);
        ebb_buf f = { 0 };

        assert_true(ebb_buf_add(&f, headers[k].bytes, headers[k].n));
        if (gguf_random_below(4) == 0)
            f.len = gguf_random_below(headers[k].span + 1);
        else
            for (uint64_t edits = 1 + gguf_random_below(4); edits > 0; edits--)
                gguf_damage(&f, headers[k].span);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, f.data, f.len, 0), f.len);
        n_open += i % 4 == 3 ? open_header(i % 8 == 7 ? headers[k].n : 0) : open_model();
        ebb_buf_fini(&f);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    print_message("%llu opens of %zu headers in %.1f s of CPU, %llu could be opened\n", (unsigned long long)n_opens,
                  n_headers, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9,
                  (unsigned long long)n_open);
    assert_true(n_open > 0 && n_open < n_opens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_headers),
    };

    return cmocka_run_group_tests_name("gguf opens", tests, setup, teardown);
}
