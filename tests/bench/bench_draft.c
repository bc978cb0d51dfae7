/* What drafting brings with real weights: the acceptance of draft tokens by depth and the tokens of a pass, at several
 * temperatures.  tests/bench/train_pair.py makes the models; random weights agree with nothing.
 *
 * Usage: bench_draft MODEL.gguf [--draft MODEL.gguf] [--k N] [--branches N] [--n N] [--temp T] [--likeliest] [--rows N]
 *        PROMPT...
 * --k: draft tokens of each pass; --branches: those of a tree beside them; --n: tokens of each answer; --likeliest: the
 * drafter's likeliest tokens, not those that would win the coming races; --rows: the head multiplies by so many rows of
 * the output, those whose tokens the prompts use most (evenly spread ones of a large vocabulary).  A PROMPT is a
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "open/engine_state.h"
#include "os/file.h"

#define DEPTHS  EBB_DRAFT_MAX_MODEL
#define N_CTX   2048u
#define MAX_PROMPT ((size_t)1 << 20)
#define MAX_VOCAB  16384u        /* with --rows */

typedef struct bench {
    const char *draft;
    uint32_t    k, n, n_rows, n_branches;
    float       temp;
    bool        is_likeliest;
    ebb_model  *model, *draft_model;
    ebb_engine *engine;
    uint64_t    n_passes, n_tokens;
    bool        is_in[MAX_VOCAB];        /* the rows of --rows */
    uint64_t    n_out;                   /* tokens that are outside of them */
    uint64_t    reached[DEPTHS + 1], accepted[DEPTHS + 1];   /* by depth: all before it were accepted; so was it */
} bench;

/* The draft tokens of a pass are over. */
static void count_pass(bench *b, uint32_t n_drafted, uint32_t n_accepted)
{
    b->n_passes++;
    for (uint32_t d = 0; d < n_drafted && d <= n_accepted && d < DEPTHS; d++) {
        b->reached[d]++;
        b->accepted[d] += d < n_accepted;
    }
}

static void generate(bench *b, ebb_session *s, ebb_sampler *sampler)
{
    uint32_t n_drafted = 0, n_accepted = 0;
    ebb_error err = { 0 };

    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t before = b->engine->stats.n_passes;
        size_t n;
        const ebb_token *ids = ebb_session_ids(s, &n);
        ebb_token id = b->is_likeliest ? ebb_sampler_sample(sampler, ebb_session_logits(s), ids, n)
                                       : ebb_session_sample(s, sampler);

        if (ebb_model_is_eog(b->model, id) || ebb_session_append(s, id, &err) != EBB_OK)
            break;
        b->n_tokens++;
        b->n_out += b->n_rows > 0 && !b->is_in[(uint32_t)id % MAX_VOCAB];
        if (b->engine->stats.n_passes == before) {
            n_accepted++;
            continue;
        }
        if (i > 0)
            count_pass(b, n_drafted, n_accepted);
        n_drafted = s->drafts.tree.n_trunk;
        n_accepted = 0;
    }
    if (n_accepted == n_drafted)                 /* else the answer ended within the draft */
        count_pass(b, n_drafted, n_accepted);
}

/* The tokens of a file, N_CTX at most; 0: it could not be read, and a line says why. */
static size_t read_prompt(const bench *b, const char *path, ebb_token *ids)
{
    ebb_buf text = { 0 };
    ebb_error err = { 0 };
    size_t n = 0;

    if (ebb_file_slurp(path, MAX_PROMPT, &text, &err) != EBB_OK ||
        ebb_model_tokenize(b->model, text.data, text.len, EBB_TOK_SPECIAL, ids, N_CTX, &n, &err) != EBB_OK)
        printf("%s\n", err.msg);
    ebb_buf_fini(&text);
    return n < N_CTX ? n : N_CTX;
}

static void answer(bench *b, const char *path, uint64_t seed)
{
    ebb_sampler_params p = { .temp = b->temp, .top_p = 1, .repeat_penalty = 1, .seed = seed };
    ebb_token ids[N_CTX];
    size_t n = read_prompt(b, path, ids);
    ebb_sampler *sampler = ebb_sampler_new(&p, ebb_model_get_info(b->model)->n_vocab);
    ebb_session *s = NULL;
    ebb_error err = { 0 };

    if (sampler && n > 0 && n + b->n + DEPTHS < N_CTX && ebb_session_new(b->engine, &s, &err) == EBB_OK &&
        ebb_session_sync(s, ids, n, NULL, &err) == EBB_OK) {
        s->lookup.n_pause = UINT32_MAX;          /* what is measured is the model or the head */
        generate(b, s, sampler);
    }
    if (err.msg[0])
        printf("%s: %s\n", path, err.msg);
    ebb_session_free(s);
    ebb_sampler_free(sampler);
}

/* -- Some rows of the output ---------------------------------------------------------------- */

/* So many of a large vocabulary, no two of them neighbours: for the time alone. */
static void spread_rows(const bench *b, ebb_draft_rows *rows)
{
    rows->n_chosen = b->n_rows < rows->n_rows ? b->n_rows : rows->n_rows;
    for (uint32_t i = 0; i < rows->n_chosen; i++)
        rows->chosen[i] = (uint32_t)((uint64_t)i * rows->n_rows / rows->n_chosen);
    rows->n_new = 0;
}

static void choose_rows(bench *b, char **paths, int n_paths)
{
    ebb_draft_rows *rows = &b->engine->head_drafter.rows;
    ebb_token ids[N_CTX];
    uint32_t n = b->n_rows < rows->n_rows ? b->n_rows : rows->n_rows;

    for (int i = 0; i < n_paths; i++)
        ebb_draft_rows_learn(rows, ids, read_prompt(b, paths[i], ids));
    memset(b->is_in, 0, sizeof b->is_in);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < rows->n_rows && i < MAX_VOCAB; i++)
            if (!b->is_in[i] && (b->is_in[best] || rows->uses[i] > rows->uses[best]))
                best = i;
        b->is_in[best] = true;
    }
    rows->n_chosen = 0;
    for (uint32_t i = 0; i < rows->n_rows && i < MAX_VOCAB; i++)
        if (b->is_in[i])
            rows->chosen[rows->n_chosen++] = i;
}

/* -- The whole -------------------------------------------------------------------------------- */

static bool open_all(bench *b, const char *path)
{
    ebb_engine_opts o = { .n_ctx = N_CTX, .no_kv_cache = true, .n_draft = b->k };
    ebb_error err = { 0 };

    if (ebb_model_open(path, &b->model, &err) != EBB_OK ||
        (b->draft && ebb_model_open(b->draft, &b->draft_model, &err) != EBB_OK)) {
        printf("%s\n", err.msg);
        return false;
    }
    o.draft = b->draft_model;
    o.no_speculation = b->k == 0;
    if (ebb_engine_open(b->model, &o, NULL, NULL, &b->engine, &err) != EBB_OK) {
        printf("%s\n", err.msg);
        return false;
    }
    b->engine->draft_model.draft_length.n_fixed_branches = b->n_branches;
    b->engine->head_drafter.draft_length.n_fixed_branches = b->n_branches;
    return true;
}

static void close_all(bench *b)
{
    ebb_engine_close(b->engine);
    ebb_model_close(b->draft_model);
    ebb_model_close(b->model);
}

static void report(const bench *b, double seconds)
{
    printf("T %.1f %s k %u, %u branches: %.3f tokens a pass, %llu tokens, %.1f tok/s", b->temp,
           b->is_likeliest ? "likeliest" : "coupled", b->k, b->n_branches,
           b->n_passes ? (double)b->n_tokens / (double)b->n_passes : 0, (unsigned long long)b->n_tokens,
           (double)b->n_tokens / seconds);
    if (b->n_rows > 0)
        printf(", %u rows, %.2f %% of the tokens outside", b->n_rows, 100.0 * (double)b->n_out / (double)b->n_tokens);
    if (ebb_draft_head_is_open(b->engine))
        printf(", %.3f ms a draft token of the head, %.3f ms a pass of one",
               b->engine->head_drafter.draft_length.draft_s * 1e3, b->engine->head_drafter.draft_length.alone_s * 1e3);
    printf("; accepted by depth, percent:");
    for (uint32_t d = 0; d < b->k && d < DEPTHS; d++)
        printf(" %.1f", b->reached[d] ? 100.0 * (double)b->accepted[d] / (double)b->reached[d] : 0);
    printf("\n");
}

/* Takes the option at argv[i]; how many words it has, 0: it is none. */
static int take_option(bench *b, char **argv, int left)
{
    if (strcmp(argv[0], "--likeliest") == 0) {
        b->is_likeliest = true;
        return 1;
    }
    if (left < 2 || argv[0][0] != '-')
        return 0;
    if (strcmp(argv[0], "--draft") == 0)
        b->draft = argv[1];
    else if (strcmp(argv[0], "--k") == 0)
        b->k = (uint32_t)atoi(argv[1]);
    else if (strcmp(argv[0], "--branches") == 0)
        b->n_branches = (uint32_t)atoi(argv[1]);
    else if (strcmp(argv[0], "--n") == 0)
        b->n = (uint32_t)atoi(argv[1]);
    else if (strcmp(argv[0], "--rows") == 0)
        b->n_rows = (uint32_t)atoi(argv[1]);
    else if (strcmp(argv[0], "--temp") == 0)
        b->temp = (float)atof(argv[1]);
    else
        return 0;
    return 2;
}

int main(int argc, char **argv)
{
    static bench b = { .k = 4, .n = 128 };
    double begin;
    int i = 2, n;

    while (i < argc && (n = take_option(&b, argv + i, argc - i)) > 0)
        i += n;
    if (argc < 3 || i == argc) {
        fputs("bench_draft MODEL.gguf [OPTIONS] PROMPT...: tests/bench/train_pair.py makes what it needs\n", stderr);
        return 2;
    }
    if (open_all(&b, argv[1])) {
        if (b.n_rows > 0 && b.engine->net.n_vocab > MAX_VOCAB)
            spread_rows(&b, &b.engine->head_drafter.rows);
        else if (b.n_rows > 0)
            choose_rows(&b, argv + i, argc - i);
        begin = ebb_clock_s();
        for (uint64_t seed = 1; i < argc; i++)
            answer(&b, argv[i], seed++);
        report(&b, ebb_clock_s() - begin);
    }
    close_all(&b);
    return 0;
}
