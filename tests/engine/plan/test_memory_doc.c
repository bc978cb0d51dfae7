/* The tables of docs/MEMORY.md, computed: a row that is not in the page word for word fails. */
#include "ebb_test.h"

#include "base/buf.h"
#include "kv/kv.h"
#include "os/file.h"

static ebb_buf page;

static int setup(void **state)
{
    (void)state;
    return ebb_file_slurp("docs/MEMORY.md", 1 << 20, &page, NULL) == EBB_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ebb_buf_fini(&page);
    return 0;
}

static void expect_row(const char *row)
{
    if (!strstr(ebb_buf_text(&page), row))
        fail_msg("docs/MEMORY.md has no row\n%s", row);
}

typedef struct shape {
    const char *name;
    uint32_t    n_layers, n_head_kv, head_dim;
    double      weights_gb;      /* layers and output of a Q4_K_M file, 10^9 bytes */
} shape;

static const shape models[] = {
    { "Llama-3.1-8B", 32, 8, 128, 4.62 },
    { "Qwen2.5-7B", 28, 4, 128, 4.37 },
    { "Gemma-2-9B", 42, 8, 256, 5.75 },
};

/* Bytes per position, by the pool's own arithmetic. */
static uint64_t kv_per_token(const shape *m, ebb_kv_type type)
{
    ebb_kv_layer layers[64];
    ebb_kv_shape s = { .n_layers = m->n_layers, .layers = layers, .k_type = type, .v_type = type };

    for (uint32_t i = 0; i < m->n_layers; i++)
        layers[i] = (ebb_kv_layer){ .n_head = m->n_head_kv, .dim_k = m->head_dim, .dim_v = m->head_dim };
    return ebb_kv_block_bytes(&s) / EBB_KV_BLOCK;
}

static void test_kv_per_token(void **state)
{
    char row[200];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const shape *m = &models[i];

        snprintf(row, sizeof row, "| %s | %u | %u | %u | %llu | %llu |", m->name, m->n_layers, m->n_head_kv,
                 m->head_dim, (unsigned long long)kv_per_token(m, EBB_KV_F16),
                 (unsigned long long)kv_per_token(m, EBB_KV_Q8_0));
        expect_row(row);
    }
}

static void test_kv_by_context(void **state)
{
    char row[200];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const shape *m = &models[i];
        double f16 = (double)kv_per_token(m, EBB_KV_F16) / (1 << 20),
               q8 = (double)kv_per_token(m, EBB_KV_Q8_0) / (1 << 20);

        snprintf(row, sizeof row, "| %s | %.0f / %.0f | %.0f / %.0f | %.0f / %.0f | %.0f / %.0f |", m->name, f16 * 1024,
                 q8 * 1024, f16 * 2048, q8 * 2048, f16 * 4096, q8 * 4096, f16 * 8192, q8 * 8192);
        expect_row(row);
    }
}

#define ROOM_GIB 5.05            /* of a machine with 6 GB: 5.8 GiB less the system's 0.4 and 0.35 for others */
#define REST_GIB (150.0 / 1024)  /* activations, ring or slack, code, tokenizer */

static void test_what_fits_6_gb(void **state)
{
    char row[200];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const shape *m = &models[i];
        double kv = (double)kv_per_token(m, EBB_KV_Q8_0) * 4096 / (1 << 30), weights = m->weights_gb * 1e9 / (1 << 30);
        double sum = weights + kv + REST_GIB;

        snprintf(row, sizeof row, "| %s | %.2f | %.2f | %.2f | %s |", m->name, weights, kv, sum,
                 sum <= ROOM_GIB ? "fits whole" : "part is streamed");
        expect_row(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kv_per_token),
        cmocka_unit_test(test_kv_by_context),
        cmocka_unit_test(test_what_fits_6_gb),
    };

    return cmocka_run_group_tests_name("memory page", tests, setup, teardown);
}
