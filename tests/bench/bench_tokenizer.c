/* Speed of the tokenizer: opening a vocabulary, real text, and texts that are
 * hard for a merge loop.  One line each: MB/s of one thread.
 * Usage: bench_tokenizer [TEXT_FILE] (default: the data beside the checkout) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "ebb/model.h"
#include "os/file.h"

#define N_HARD ((size_t)1 << 20)
#define REPEATS 3

static void measure_text(const ebb_model *m, const char *what, const char *text, size_t n)
{
    ebb_token *ids = malloc((n + 16) * sizeof *ids);
    double best = 1e9;
    size_t n_ids = 0;

    for (int i = 0; ids && i < REPEATS; i++) {
        double t = ebb_clock_s();
        if (ebb_model_tokenize(m, text, n, 0, ids, n + 16, &n_ids, NULL) != EBB_OK)
            break;
        t = ebb_clock_s() - t;
        best = t < best ? t : best;
    }
    printf("  %-22s %9zu bytes %9zu ids %8.1f ms %7.1f MB/s\n", what, n, n_ids, best * 1e3, (double)n / best * 1e-6);
    free(ids);
}

static void measure_hard(const ebb_model *m, const char *what, const char *unit)
{
    char *text = malloc(N_HARD);
    size_t len = strlen(unit);
    uint32_t r = 1;

    for (size_t i = 0; text && i < N_HARD; i++) {
        r = r * 1664525u + 1013904223u;
        text[i] = len > 1 ? unit[(r >> 16) % len] : unit[0];
    }
    if (text)
        measure_text(m, what, text, N_HARD);
    free(text);
}

static void measure_vocab(const char *path, const ebb_buf *text)
{
    double t = ebb_clock_s();
    ebb_model *m;
    ebb_error err;

    if (ebb_model_open(path, &m, &err) != EBB_OK) {
        printf("%s\n", err.msg);
        return;
    }
    printf("%s: opened in %.1f ms\n", path, (ebb_clock_s() - t) * 1e3);
    measure_text(m, "text", text->data, text->len);
    measure_hard(m, "one letter", "a");
    measure_hard(m, "letters without spaces", "abcdefghijklmnopqrstuvwxyz");
    measure_hard(m, "spaces", " ");
    ebb_model_close(m);
}

int main(int argc, char **argv)
{
    static const char *const vocabs[] = { "vocab-llama3.2", "vocab-qwen2.5", "vocab-smollm2", "ggml-vocab-llama-spm" };
    const char *shared = getenv("EBB_SHARED");
    char path[600];
    ebb_buf text = { 0 };

    if (!shared)
        shared = "../shared";
    snprintf(path, sizeof path, "%s/data/conversations/wiki.test.raw", shared);
    if (ebb_file_slurp(argc > 1 ? argv[1] : path, (size_t)64 << 20, &text, NULL) != EBB_OK || text.len == 0) {
        printf("bench_tokenizer: no text and no vocabularies in %s: skipped\n", shared);
        ebb_buf_fini(&text);
        return 0;
    }
    for (size_t i = 0; i < sizeof vocabs / sizeof vocabs[0]; i++) {
        snprintf(path, sizeof path, "%s/data/tokenizers/%s.gguf", shared, vocabs[i]);
        measure_vocab(path, &text);
    }
    ebb_buf_fini(&text);
    return 0;
}
