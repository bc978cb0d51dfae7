/* An array of the metadata that says of one layer what its tensors do not have, or not the layer whose K and V it uses:
 * refused, or it computes the same bits whatever the batch. */
#include "ebb_test.h"

#include "ebb/session.h"
#include "support/tiny_engine.h"

#define N_IDS   40u
#define N_ITEMS 14u              /* layers at most; and a record of an array is 64 bytes longer than one of a number */

static ebb_status compute(const char *bytes, size_t n, uint32_t n_batch, float out[EBB_TINY_VOCAB], ebb_error *err)
{
    ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1, .n_batch = n_batch, .no_kv_cache = true };
    tiny_engine f = { 0 };
    ebb_token ids[N_IDS];
    ebb_status st = ebb_model_open_memory(bytes, n, "tiny", &f.model, err);

    fill_ids(ids, N_IDS, 1);
    if (st == EBB_OK)
        st = ebb_engine_open(f.model, &o, NULL, NULL, &f.engine, err);
    if (st == EBB_OK)
        st = ebb_session_new(f.engine, &f.s, err);
    if (st == EBB_OK)
        st = ebb_session_sync(f.s, ids, N_IDS, NULL, err);
    if (st == EBB_OK)
        memcpy(out, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *out);
    close_tiny_engine(&f);
    return st;
}

static void check_file(const char *arch, const char *key, uint32_t layer, uint32_t value, const char *bytes, size_t n)
{
    float one[EBB_TINY_VOCAB], many[EBB_TINY_VOCAB];
    ebb_error err = { 0 };
    ebb_status st = compute(bytes, n, 1, one, &err);

    if (st != EBB_OK && !strstr(err.msg, ": metadata ") && !strstr(err.msg, ": tensor "))
        fail_msg("%s%s[%u] = %u: \"%s\"", arch, key, layer, value, err.msg);
    if (st != EBB_OK)
        return;
    assert_int_equal(compute(bytes, n, N_IDS, many, &err), EBB_OK);
    if (memcmp(one, many, sizeof one) != 0)
        fail_msg("%s%s[%u] = %u computes other bits in a batch", arch, key, layer, value);
}

/* The value of ARCH.key, behind its type; NULL: there is none. */
static char *find_key(char *bytes, size_t n, const char *arch, const char *key, uint32_t *type)
{
    char name[128];
    uint64_t len = (uint64_t)snprintf(name + 8, sizeof name - 8, "%s%s", arch, key);
    char *p;

    memcpy(name, &len, 8);
    p = memmem(bytes, n, name, 8 + len);
    if (!p)
        return NULL;
    memcpy(type, p + 8 + len, 4);
    return p + 8 + len + 4;
}

/* With an array of N_ITEMS in place of the number at `value`, all of them that number. */
static char *spread(const char *bytes, size_t n, size_t value, size_t *items)
{
    static const struct { uint32_t type, of; uint64_t n; } head = { 9, 4, N_ITEMS };
    char *out = malloc(n + 64);

    memcpy(out, bytes, value - 4);
    memcpy(out + value - 4, &head, sizeof head);
    *items = value - 4 + sizeof head;
    for (uint32_t i = 0; i < N_ITEMS; i++)
        memcpy(out + *items + 4 * i, bytes + value, 4);
    memcpy(out + *items + 4 * N_ITEMS, bytes + value + 4, n - value - 4);
    return out;
}

/* The key as an array, of which each item in turn has another value. */
static void check_key(const char *arch, char *bytes, size_t n, const char *key)
{
    uint32_t type, n_items = N_ITEMS, n_layers, before, layers_type;
    char *value = find_key(bytes, n, arch, key, &type), *array;
    char *layers = find_key(bytes, n, arch, ".block_count", &layers_type);
    size_t items, n_array = n;

    if (!value)
        return;
    if (type == 9) {
        array = malloc(n);
        memcpy(array, bytes, n);
        items = (size_t)(value - bytes) + 12;
        memcpy(&n_items, value + 4, 4);
    } else {
        array = spread(bytes, n, (size_t)(value - bytes), &items);
        n_array += 64;
    }
    memcpy(&n_layers, layers, 4);
    for (uint32_t i = 0; i < n_layers && i < n_items; i++) {
        memcpy(&before, array + items + 4 * i, 4);
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t values[] = { 0, 1, before / 2, 2 * before };

            memcpy(array + items + 4 * i, &values[k], 4);
            check_file(arch, key, i, values[k], array, n_array);
        }
        memcpy(array + items + 4 * i, &before, 4);
    }
    free(array);
}

static void test_arrays(void **state)
{
    static const char *const keys[] = { ".attention.head_count", ".attention.head_count_kv", ".feed_forward_length" };

    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts o = { .arch = ebb_tiny_archs[i], .type = EBB_TYPE_F32, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
        size_t n;
        char *bytes = ebb_tiny_bytes(&o, &n);

        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            check_key(o.arch, bytes, n, keys[k]);
        free(bytes);
    }
}

/* More elements than a local layer's heads have: the last head would be left. */
static void test_rope_of_local_layers(void **state)
{
    ebb_tiny_opts o = { .arch = "gemma4", .type = EBB_TYPE_F32, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
    const uint32_t wide = 64;
    float logits[EBB_TINY_VOCAB];
    ebb_error err = { 0 };
    uint32_t type;
    size_t n;
    char *bytes = ebb_tiny_bytes(&o, &n), *value = find_key(bytes, n, o.arch, ".rope.dimension_count_swa", &type);

    (void)state;
    memcpy(value, &wide, 4);
    assert_int_equal(compute(bytes, n, 1, logits, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "metadata gemma4.rope.dimension_count_swa"));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_arrays), cmocka_unit_test(test_rope_of_local_layers) };

    return cmocka_run_group_tests_name("bind check", tests, NULL, NULL);
}
