/* Memory is taken and given back at random while a model answers: the same tokens and logits as
 * undisturbed, nobody is killed, and the layers come back.
 *
 *     fuzz_pressure MODEL ROUNDS TAKE_MIB [CTX [FOLDER]]     in a cgroup (tests/engine/memory/pressure.sh makes one);
 *                                                        FOLDER: K and V may go to a file in it
 *
 *     fuzz_pressure --write FILE                     a model of 330 MB for that
 *
 * The neighbour is a process of its own, so that its memory is not ours. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "support/broken_rule.h"
#include "support/tiny_model.h"

enum { N_PROMPT = 24, N_ANSWER = 24, N_PROMPTS = 4 };

extern char **environ;

static uint64_t seed = 20240229;

static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static void sleep_ms(unsigned ms)
{
    struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

/* -- The neighbour ------------------------------------------------------------------ */

/* mib_s: of memory that it takes in a second; 0: as fast as it can. */
static int neighbour(unsigned mib, unsigned ms, unsigned mib_s)
{
    size_t n = (size_t)mib << 20;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double begin = ebb_clock_s();

    if (p == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < n; i += 4096) {
        p[i] = 1;
        while (mib_s > 0 && i % ((size_t)1 << 20) == 0 &&
               (double)(i >> 20) > (ebb_clock_s() - begin) * mib_s)
            sleep_ms(1);
    }
    sleep_ms(ms);
    return 0;
}

static pid_t start_neighbour(unsigned mib, unsigned ms, unsigned mib_s)
{
    char a[16], b[16], c[16], self[] = "/proc/self/exe", take[] = "--take";
    char *argv[] = { self, take, a, b, c, NULL };
    pid_t pid;

    snprintf(a, sizeof a, "%u", mib);
    snprintf(b, sizeof b, "%u", ms);
    snprintf(c, sizeof c, "%u", mib_s);
    return posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0 ? pid : -1;
}

/* -- The model ------------------------------------------------------------------------ */

typedef struct answer {
    ebb_token ids[N_ANSWER];
    float    *logits;            /* [n_vocab] behind the last */
} answer;

typedef struct run {
    ebb_engine  *e;
    ebb_session *s;
    uint32_t     n_vocab;
    ebb_token    prompts[N_PROMPTS][N_PROMPT];
    answer       want[N_PROMPTS];
    unsigned     n_wrong, n_killed, n_failed;
    uint32_t     least;          /* resident layers, the fewest there were */
    double       answer_s;       /* spent on the answers of the rounds */
    uint64_t     n_layers;       /* that were resident behind each, in sum */
} run;

static ebb_token largest(const float *x, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return (ebb_token)best;
}

static uint32_t resident(run *r)
{
    ebb_stats s;

    ebb_engine_stats(r->e, &s);
    return s.n_resident;
}

/* Answer prompt k anew; at token `at` a neighbour comes. */
static bool answer_once(run *r, int k, ebb_token *out, uint32_t at, unsigned mib, unsigned ms, unsigned mib_s,
                        pid_t *child)
{
    ebb_error err = { 0 };
    bool ok = ebb_session_sync(r->s, NULL, 0, NULL, &err) == EBB_OK &&
              ebb_session_sync(r->s, r->prompts[k], N_PROMPT, NULL, &err) == EBB_OK;

    for (uint32_t i = 0; ok && i < N_ANSWER; i++) {
        if (child && i == at)
            *child = start_neighbour(mib, ms, mib_s);
        out[i] = largest(ebb_session_logits(r->s), r->n_vocab);
        ok = ebb_session_append(r->s, out[i], &err) == EBB_OK;
    }
    if (!ok)
        fprintf(stderr, "failed: %s\n", err.msg);
    return ok;
}

static bool make_want(run *r)
{
    for (int k = 0; k < N_PROMPTS; k++) {
        for (int i = 0; i < N_PROMPT; i++)
            r->prompts[k][i] = (ebb_token)below(r->n_vocab);
        r->want[k].logits = malloc(r->n_vocab * sizeof(float));
        if (!r->want[k].logits || !answer_once(r, k, r->want[k].ids, 0, 0, 0, 0, NULL))
            return false;
        memcpy(r->want[k].logits, ebb_session_logits(r->s), r->n_vocab * sizeof(float));
    }
    return true;
}

static void round_of(run *r, unsigned take_mib)
{
    int k = (int)below(N_PROMPTS), status = 0;
    static const unsigned rates[] = { 0, 1024, 256, 64 };
    unsigned mib = 1 + below(take_mib), ms = below(3000), mib_s = rates[below(4)];
    ebb_token got[N_ANSWER];
    pid_t child = -1;
    uint32_t left;
    double begin = ebb_clock_s();
    bool ok = answer_once(r, k, got, below(N_ANSWER), mib, ms, mib_s, &child);

    r->answer_s += ebb_clock_s() - begin;
    if (!ok)
        r->n_failed++;
    else if (memcmp(got, r->want[k].ids, sizeof got) != 0 ||
             memcmp(ebb_session_logits(r->s), r->want[k].logits, r->n_vocab * sizeof(float)) != 0)
        r->n_wrong++;
    if (child > 0 && below(2))                   /* or it stays into the next answers */
        waitpid(child, &status, 0);
    left = resident(r);
    r->least = left < r->least ? left : r->least;
    r->n_layers += left;
    for (uint32_t i = below(5) ? below(4) : 80; i > 0; i--) {
        ebb_engine_idle(r->e);
        sleep_ms(200);
    }
    while (waitpid(-1, &status, WNOHANG) > 0)
        ;
    r->n_killed += WIFSIGNALED(status);
}

/* Everybody has left: all layers come back; of mapped ones a pass has to fetch the pages. */
static bool comes_back(run *r, uint32_t all)
{
    double until = ebb_clock_s() + 180, answered = ebb_clock_s();
    ebb_token got[N_ANSWER];
    int status;

    while (waitpid(-1, &status, 0) > 0)
        r->n_killed += WIFSIGNALED(status);
    while (resident(r) < all && ebb_clock_s() < until) {
        ebb_engine_idle(r->e);
        sleep_ms(200);
        if (ebb_clock_s() - answered > 5) {
            r->n_failed += !answer_once(r, 0, got, 0, 0, 0, 0, NULL);
            answered = ebb_clock_s();
        }
    }
    return resident(r) == all;
}

static int rounds(run *r, unsigned n, unsigned take_mib)
{
    char line[EBB_MEMORY_EVENT_TEXT];
    uint32_t n_said = 0;
    double begin = ebb_clock_s();
    uint32_t all;
    ebb_stats s;
    bool back;

    if (!make_want(r))
        return 1;
    all = resident(r);                           /* what was read in the background is there now */
    ebb_engine_stats(r->e, &s);
    printf("tier %s, %u of %u layers resident; %u rounds of up to %u MiB\n", ebb_tier_name(s.tier), all, s.n_layers, n,
           take_mib);
    r->least = all;
    for (unsigned i = 0; i < n; i++) {
        round_of(r, take_mib);
        ebb_engine_stats(r->e, &s);
        if (s.memory_event.number != n_said)
            printf("round %u: %s\n", i + 1, ebb_memory_event_text(&s.memory_event, line, sizeof line));
        n_said = s.memory_event.number;
    }
    back = comes_back(r, all);
    printf("%u rounds in %.0f s: %u wrong, %u failed, %u neighbours killed, at least %u of %u layers resident, %s\n", n,
           ebb_clock_s() - begin, r->n_wrong, r->n_failed, r->n_killed, r->least, all,
           back ? "all came back" : "NOT ALL CAME BACK");
    ebb_engine_stats(r->e, &s);
    if (!back)
        printf("%lld MiB available, %u of %u layers; %s\n", (long long)(s.available_bytes / (1 << 20)), resident(r),
               all, ebb_memory_event_text(&s.memory_event, line, sizeof line));
    printf("%.1f tokens/s, %.1f layers resident on average, %u events\n",
           r->answer_s > 0 ? n * (N_PROMPT + N_ANSWER) / r->answer_s : 0, n > 0 ? (double)r->n_layers / n : 0, n_said);
    return r->n_wrong || r->n_failed || r->n_killed || !back;
}

static int write_model(const char *path)
{
    ebb_tiny_opts o = { .type = EBB_TYPE_Q8_0, .n_layers = 24, .n_embd = 1024, .n_head = 16, .n_head_kv = 4,
                        .n_ff = 3584, .seed = 5 };

    return !ebb_tiny_write(&o, path);
}

int main(int argc, char **argv)
{
    ebb_engine_opts o = { .no_kv_cache = true };
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    run r = { 0 };
    int status = 1;

    if (argc == 5 && strcmp(argv[1], "--take") == 0)
        return neighbour((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_model(argv[2]);
    if (argc < 4) {
        fprintf(stderr, "fuzz_pressure MODEL ROUNDS TAKE_MIB [CTX [FOLDER]]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    o.n_ctx = argc > 4 ? (uint32_t)atoi(argv[4]) : 512;
    o.kv_cache_dir = argc > 5 ? argv[5] : NULL;
    o.no_kv_cache = !o.kv_cache_dir;
    if (ebb_model_open(argv[1], &m, &err) == EBB_OK && ebb_engine_open(m, &o, NULL, NULL, &r.e, &err) == EBB_OK &&
        ebb_session_new(r.e, &r.s, &err) == EBB_OK) {
        r.n_vocab = ebb_model_get_info(m)->n_vocab;
        status = rounds(&r, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
    } else {
        fprintf(stderr, "%s\n", err.msg);
    }
    for (int k = 0; k < N_PROMPTS; k++)
        free(r.want[k].logits);
    ebb_session_free(r.s);
    ebb_engine_close(r.e);
    ebb_model_close(m);
    return status;
}
