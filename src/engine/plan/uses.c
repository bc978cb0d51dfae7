/* What is known of a model's experts (uses.h). */
#include "plan/uses.h"

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

bool ebb_uses_init(ebb_uses *u, uint32_t n)
{
    *u = (ebb_uses){ .n = n, .often = calloc(n + 1, sizeof *u->often) };
    return u->often != NULL;
}

void ebb_uses_fini(ebb_uses *u)
{
    free(u->often);
    memset(u, 0, sizeof *u);
}

/* -- The file ----------------------------------------------------------------------- */

static ebb_status find_path(const uint8_t fingerprint[16], ebb_buf *path, ebb_error *err)
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

/* Everything is looked at before anything is believed. */
static bool parse(ebb_uses *u, const char *data, size_t n_data)
{
    size_t n_body = N_HEAD + u->n * sizeof *u->often;
    double v[3];
    uint8_t hash[N_HASH];
    uint64_t n;

    if (n_data != n_body + N_HASH || memcmp(data, MAGIC, N_MAGIC) != 0)
        return false;
    ebb_hash128(data, n_body, (const uint8_t[N_HASH]){ 0 }, hash);
    memcpy(&n, data + N_MAGIC, sizeof n);
    memcpy(v, data + N_MAGIC + sizeof n, sizeof v);
    if (memcmp(hash, data + n_body, N_HASH) != 0 || n != u->n || !in_range(v[0], 1) || !in_range(v[1], FACTOR_MAX) || !in_range(v[2], FACTOR_MAX))
        return false;
    for (uint32_t i = 0; i < u->n; i++) {
        float x;

        memcpy(&x, data + N_HEAD + i * sizeof x, sizeof x);
        if (!in_range(x, OFTEN_MAX))
            return false;
    }
    memcpy(u->often, data + N_HEAD, u->n * sizeof *u->often);
    u->room = v[0];
    u->missed = v[1];
    u->pace = v[2];
    return true;
}

/* As many as the file says it has, if it has their bytes. */
static bool init_as(ebb_uses *u, const ebb_buf *data)
{
    uint64_t n = data->len > N_HEAD + N_HASH ? (data->len - N_HEAD - N_HASH) / sizeof *u->often : 0;

    return n > 0 && ebb_uses_init(u, (uint32_t)n);
}

bool ebb_uses_load(ebb_uses *u, const uint8_t fingerprint[16])
{
    ebb_buf path = { 0 }, data = { 0 };
    bool ok = find_path(fingerprint, &path, NULL) == EBB_OK && ebb_file_slurp(path.data, FILE_MAX, &data, NULL) == EBB_OK &&
              !data.failed && (u->often || init_as(u, &data)) && parse(u, data.data, data.len);

    ebb_buf_fini(&path);
    ebb_buf_fini(&data);
    return ok;
}

static void write_all(const ebb_uses *u, ebb_buf *out)
{
    const double v[3] = { u->room, u->missed, u->pace };
    uint8_t hash[N_HASH];
    uint64_t n = u->n;

    ebb_buf_add(out, MAGIC, N_MAGIC);
    ebb_buf_add(out, (const char *)&n, sizeof n);
    ebb_buf_add(out, (const char *)v, sizeof v);
    ebb_buf_add(out, (const char *)u->often, u->n * sizeof *u->often);
    if (out->failed)
        return;
    ebb_hash128(out->data, out->len, (const uint8_t[N_HASH]){ 0 }, hash);
    ebb_buf_add(out, (const char *)hash, N_HASH);
}

void ebb_uses_save(const ebb_uses *u, const uint8_t fingerprint[16])
{
    ebb_buf dir = { 0 }, path = { 0 }, data = { 0 };
    ebb_error err = { 0 };
    ebb_status st = ebb_path_in(EBB_DIR_CACHE, "experts", &dir, &err);

    write_all(u, &data);
    if (st == EBB_OK)
        st = find_path(fingerprint, &path, &err);
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

static int by_use(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* Share of all uses that those behind the most used ones have. */
static double rest(const float *sorted, uint32_t n, double room)
{
    double all = 0, most = 0;

    for (uint32_t i = 0; i < n; i++) {
        all += sorted[i];
        most += i < room * n ? sorted[i] : 0;
    }
    return all > 0 ? 1 - most / all : 1 - room;
}

double ebb_uses_missed(const ebb_uses *u, double room)
{
    float *sorted = malloc((u->n + 1) * sizeof *sorted);
    double missed = 1 - room, then;

    if (sorted && room < 1) {
        memcpy(sorted, u->often, u->n * sizeof *sorted);
        qsort(sorted, u->n, sizeof *sorted, by_use);
        missed = rest(sorted, u->n, room);
        then = u->room > 0 ? rest(sorted, u->n, u->room) : 0;
        if (then > 0)
            missed *= u->missed / then;
    }
    free(sorted);
    return room >= 1 || missed < 0 ? 0 : missed;
}
