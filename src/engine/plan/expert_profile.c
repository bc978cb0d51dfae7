/* What is known of a model's experts (expert_profile.h). */
#include "plan/expert_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "os/file.h"
#include "os/paths.h"

#define MAGIC      "ebb experts 1\n"
#define N_MAGIC    (sizeof MAGIC - 1)
#define N_HEAD     (N_MAGIC + sizeof(uint64_t) + 3 * sizeof(double))
#define N_HASH     16u
#define FILE_MAX   ((size_t)16 << 20)
#define OFTEN_MAX  1e6f
#define FACTOR_MAX 4.0

bool ebb_expert_profile_init(ebb_expert_profile *u, uint32_t n)
{
    *u = (ebb_expert_profile){ .n = n, .uses = calloc(n + 1, sizeof *u->uses) };
    return u->uses != NULL;
}

void ebb_expert_profile_fini(ebb_expert_profile *u)
{
    free(u->uses);
    memset(u, 0, sizeof *u);
}

/* -- The file ----------------------------------------------------------------------- */

static ebb_status profile_path(const uint8_t fingerprint[16], ebb_buf *path, ebb_error *err)
{
    char name[48] = "experts/";

    for (int i = 0; i < 16; i++)
        snprintf(name + 8 + 2 * i, 3, "%02x", fingerprint[i]);
    return ebb_path_in(EBB_DIR_CACHE, name, path, err);
}

static bool in_range(double x, double max)
{
    return x >= 0 && x <= max;                   /* false of what is no number, too */
}

/* Everything is validated before anything is used. */
static bool parse_profile(ebb_expert_profile *u, const char *data, size_t n_data)
{
    size_t n_body = N_HEAD + u->n * sizeof *u->uses;
    double v[3];
    uint8_t hash[N_HASH];
    uint64_t n;

    if (n_data != n_body + N_HASH || memcmp(data, MAGIC, N_MAGIC) != 0)
        return false;
    ebb_hash128(data, n_body, (const uint8_t[N_HASH]){ 0 }, hash);
    memcpy(&n, data + N_MAGIC, sizeof n);
    memcpy(v, data + N_MAGIC + sizeof n, sizeof v);
    if (memcmp(hash, data + n_body, N_HASH) != 0 || n != u->n || !in_range(v[0], 1) || !in_range(v[1], FACTOR_MAX) ||
        !in_range(v[2], FACTOR_MAX))
        return false;
    for (uint32_t i = 0; i < u->n; i++) {
        float x;

        memcpy(&x, data + N_HEAD + i * sizeof x, sizeof x);
        if (!in_range(x, OFTEN_MAX))
            return false;
    }
    memcpy(u->uses, data + N_HEAD, u->n * sizeof *u->uses);
    u->cache_share = v[0];
    u->miss_rate = v[1];
    u->slowdown = v[2];
    return true;
}

/* As many as the file says it has, if it has their bytes. */
static bool init_as(ebb_expert_profile *u, const ebb_buf *data)
{
    uint64_t n = data->len > N_HEAD + N_HASH ? (data->len - N_HEAD - N_HASH) / sizeof *u->uses : 0;

    return n > 0 && ebb_expert_profile_init(u, (uint32_t)n);
}

bool ebb_expert_profile_load(ebb_expert_profile *u, const uint8_t fingerprint[16])
{
    ebb_buf path = { 0 }, data = { 0 };
    bool ok = profile_path(fingerprint, &path, NULL) == EBB_OK &&
              ebb_file_slurp_kept(path.data, FILE_MAX, &data, NULL) == EBB_OK && !data.failed &&
              (u->uses || init_as(u, &data)) && parse_profile(u, data.data, data.len);

    ebb_buf_fini(&path);
    ebb_buf_fini(&data);
    return ok;
}

static void serialize_profile(const ebb_expert_profile *u, ebb_buf *out)
{
    const double v[3] = { u->cache_share, u->miss_rate, u->slowdown };
    uint8_t hash[N_HASH];
    uint64_t n = u->n;

    ebb_buf_add(out, MAGIC, N_MAGIC);
    ebb_buf_add(out, (const char *)&n, sizeof n);
    ebb_buf_add(out, (const char *)v, sizeof v);
    ebb_buf_add(out, (const char *)u->uses, u->n * sizeof *u->uses);
    if (out->failed)
        return;
    ebb_hash128(out->data, out->len, (const uint8_t[N_HASH]){ 0 }, hash);
    ebb_buf_add(out, (const char *)hash, N_HASH);
}

void ebb_expert_profile_save(const ebb_expert_profile *u, const uint8_t fingerprint[16])
{
    ebb_buf dir = { 0 }, path = { 0 }, data = { 0 };
    ebb_error err = { 0 };
    ebb_status st = ebb_path_in(EBB_DIR_CACHE, "experts", &dir, &err);

    serialize_profile(u, &data);
    if (st == EBB_OK)
        st = profile_path(fingerprint, &path, &err);
    if (st == EBB_OK && (data.failed || dir.failed))
        st = EBB_FAIL(&err, EBB_NOMEM, "no memory for a list of experts");
    if (st == EBB_OK)
        st = ebb_file_mkdirs(dir.data, &err);
    if (st == EBB_OK)
        st = ebb_file_replace(path.data, data.data, data.len, &err);
    if (st != EBB_OK)
        ebb_log("plan", "the use of experts is not kept: %s", err.msg);
    ebb_buf_fini(&dir);
    ebb_buf_fini(&path);
    ebb_buf_fini(&data);
}

/* -- What it says ------------------------------------------------------------------- */

static int compare_uses(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* Share of all uses that those behind the most used ones have. */
static double share_of_rest(const float *sorted, uint32_t n, double cache_share)
{
    double all = 0, most = 0;

    for (uint32_t i = 0; i < n; i++) {
        all += sorted[i];
        most += i < cache_share * n ? sorted[i] : 0;
    }
    return all > 0 ? 1 - most / all : 1 - cache_share;
}

double ebb_expert_profile_miss_rate(const ebb_expert_profile *u, double cache_share)
{
    float *sorted = malloc((u->n + 1) * sizeof *sorted);
    double miss_rate = 1 - cache_share, then;

    if (sorted && cache_share < 1) {
        memcpy(sorted, u->uses, u->n * sizeof *sorted);
        qsort(sorted, u->n, sizeof *sorted, compare_uses);
        miss_rate = share_of_rest(sorted, u->n, cache_share);
        then = u->cache_share > 0 ? share_of_rest(sorted, u->n, u->cache_share) : 0;
        if (then > 0)
            miss_rate *= u->miss_rate / then;
        /* Where nearly all experts had room, `then` is next to nothing, and its quotient noise: chance is the worst. */
        miss_rate = fmin(miss_rate, fmax(1 - cache_share, u->miss_rate));
    }
    free(sorted);
    return cache_share >= 1 || miss_rate < 0 ? 0 : miss_rate;
}
