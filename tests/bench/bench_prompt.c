/* A prompt chunk by chunk: seconds of each, bytes read for it, seconds waited for reads.
 *
 *     bench_prompt MODEL TOKENS [RAM_MIB [READER [CHUNK]]]
 *
 * RAM_MIB 0: what the machine has; CHUNK: another one than the plan's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "ebb/stats.h"

static ebb_io reader(const char *name)
{
    return strcmp(name, "uring") == 0 ? EBB_IO_URING : strcmp(name, "pread") == 0 ? EBB_IO_PREAD
                                      : strcmp(name, "mmap") == 0 ? EBB_IO_MMAP : EBB_IO_AUTO;
}

/* Returns the chunk. */
static uint32_t show_plan(ebb_engine *e, double open_s)
{
    ebb_machine machine;
    ebb_plan p;

    ebb_engine_get_plan(e, &p, &machine);
    printf("%s, opened in %.2f s: %u of %u layers, %.0f MB read per pass; disk %.2f GB/s, %.2f beside work; %s\n",
           ebb_tier_name(p.tier), open_s, p.n_resident, p.n_layers, (double)p.stream_bytes / 1e6,
           machine.disk_bytes_s / 1e9, machine.disk_busy_bytes_s / 1e9, p.why);
    printf("chunks of %u\n", p.n_batch);
    return p.n_batch;
}

static int chunks(ebb_engine *e, ebb_session *s, ebb_token *ids, uint32_t n, uint32_t chunk, ebb_error *err)
{
    double begin = ebb_clock_s();
    ebb_stats before, now;

    ebb_engine_stats(e, &before);
    for (uint32_t at = 0; at < n;) {
        uint32_t m = n - at < chunk ? n - at : chunk;
        double from = ebb_clock_s();

        if (ebb_session_sync(s, ids, at + m, NULL, err) != EBB_OK)
            return 1;
        ebb_engine_stats(e, &now);
        printf("%5u: %6.2f s, %5.1f tok/s, %7.0f MB read, %4.1f %% waited\n", at + m, ebb_clock_s() - from,
               m / (ebb_clock_s() - from), (double)(now.read_bytes - before.read_bytes) / 1e6, 100 * now.stall_share);
        before = now;
        at += m;
    }
    printf("  all: %6.2f s, %5.1f tok/s, %.2f MB read per token, reader %s\n", ebb_clock_s() - begin,
           n / (ebb_clock_s() - begin), (double)now.read_bytes / 1e6 / n, now.io);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    ebb_engine_opts o = { .no_kv_cache = true, .n_ctx = (n + 63) / 32 * 32 };
    ebb_token *ids = calloc(n + 1, sizeof *ids);
    double begin = ebb_clock_s();
    ebb_engine *e = NULL;
    ebb_session *s = NULL;
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    int status = 1;

    if (argc < 3 || !ids) {
        fprintf(stderr, "bench_prompt MODEL TOKENS [RAM_MIB [READER [CHUNK]]]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    o.ram_bytes = argc > 3 ? (uint64_t)atoi(argv[3]) << 20 : 0;
    o.io = argc > 4 ? reader(argv[4]) : EBB_IO_AUTO;
    o.n_batch = argc > 5 ? (uint32_t)atoi(argv[5]) : 0;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (ebb_token)(1 + (i * 2654435761u) % 20000);
    if (ebb_model_open(argv[1], &m, &err) == EBB_OK && ebb_engine_open(m, &o, NULL, NULL, &e, &err) == EBB_OK &&
        ebb_session_new(e, &s, &err) == EBB_OK) {
        uint32_t chunk = show_plan(e, ebb_clock_s() - begin);

        status = chunks(e, s, ids, n, chunk, &err);
    }
    if (err.msg[0])
        fprintf(stderr, "%s\n", err.msg);
    ebb_session_free(s);
    ebb_engine_close(e);
    ebb_model_close(m);
    free(ids);
    return status;
}
