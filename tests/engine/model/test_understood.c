/* Nothing is computed that is not understood: of each architecture, a key or a tensor that it does not know is refused
 * with its name, and --force computes as if it were not there and says so; a key whose value is changed is refused, or
 * it changes what is computed. */
#include "ebb_test.h"

#include <math.h>

#include "ebb/experimental/plan.h"
#include "ebb/session.h"
#include "gguf/gguf.h"
#include "model/arch.h"
#include "support/tiny_engine.h"

#define N_IDS 70u                /* windows are 16 long, contexts before scaling 64 */
#define N_RECORD 96u             /* of what add_value adds to a file */

static ebb_tiny_opts tiny_of(const char *arch)
{
    return (ebb_tiny_opts){ .arch = arch, .type = EBB_TYPE_F32, .n_embd = 64, .n_ff = 96, .head_dim = 32 };
}

/* Logits of the last of N_IDS ids; false: *err says why there are none. */
static bool compute(const char *bytes, size_t n, bool is_forced, float out[EBB_TINY_VOCAB], ebb_plan *plan,
                    ebb_error *err)
{
    ebb_engine_opts o = { .n_ctx = 128, .n_threads = 1, .is_forced = is_forced, .no_kv_cache = true };
    tiny_engine f = { 0 };
    ebb_token ids[N_IDS];
    ebb_machine machine;
    bool ok;

    fill_ids(ids, N_IDS, 1);
    ok = ebb_model_open_memory(bytes, n, "tiny", &f.model, err) == EBB_OK &&
         ebb_engine_open(f.model, &o, NULL, NULL, &f.engine, err) == EBB_OK &&
         ebb_session_new(f.engine, &f.s, err) == EBB_OK && ebb_session_sync(f.s, ids, N_IDS, NULL, err) == EBB_OK;
    if (ok) {
        memcpy(out, ebb_session_logits(f.s), EBB_TINY_VOCAB * sizeof *out);
        ebb_engine_get_plan(f.engine, plan, &machine);
    }
    close_tiny_engine(&f);
    return ok;
}

/* -- More than it knows ------------------------------------------------------------------ */

/* `n_more` bytes before `at`, a multiple of the alignment, and one more in the count of keys or tensors. */
static char *insert(const char *bytes, size_t n, size_t at, const char *more, size_t n_more, size_t count_at)
{
    char *out = malloc(n + n_more);
    uint64_t count;

    assert_int_equal(n_more % 32, 0);
    memcpy(out, bytes, at);
    memcpy(out + at, more, n_more);
    memcpy(out + at + n_more, bytes + at, n - at);
    memcpy(&count, out + count_at, 8);
    count++;
    memcpy(out + count_at, &count, 8);
    return out;
}

static size_t put_text(char *to, const char *text, size_t n)
{
    uint64_t len = n;

    memcpy(to, &len, 8);
    memcpy(to + 8, text, n);
    return 8 + n;
}

/* A key "ARCH.surplus..." whose record is 96 bytes long, a u32 in front of all others. */
static char *add_key(const char *bytes, size_t n, const char *arch, char name[128])
{
    static const uint32_t type = 4, value = 1;
    char record[96] = "";

    snprintf(name, 128, "%s.surplus", arch);
    while (strlen(name) < 96 - 16)
        strcat(name, "_");
    put_text(record, name, strlen(name));
    memcpy(record + 88, &type, 4);
    memcpy(record + 92, &value, 4);
    return insert(bytes, n, 24, record, sizeof record, 16);
}

/* A key in front of all others, its type and value as in the file; N_RECORD bytes with one more key behind it, of
 * nobody's. */
static char *add_value(const char *bytes, size_t n, const char *name, const void *value, size_t n_value)
{
    char record[N_RECORD] = "", padding[N_RECORD];
    size_t at = put_text(record, name, strlen(name));
    uint64_t count;
    char *out;

    memcpy(record + at, value, n_value);
    at += n_value;
    memset(padding, '_', sizeof padding);
    at += put_text(record + at, padding, sizeof record - at - 16);
    memcpy(record + at, &(uint32_t){ 4 }, 4);
    out = insert(bytes, n, 24, record, sizeof record, 16);
    memcpy(&count, out + 16, 8);
    count++;                                     /* of these two `insert` has counted one */
    memcpy(out + 16, &count, 8);
    return out;
}

static char *add_empty_list(const char *bytes, size_t n, const char *name)
{
    static const struct { uint32_t type, of; uint64_t n; } list = { 9, 8, 0 };

    return add_value(bytes, n, name, &list, sizeof list);
}

/* A vector of one F32 in the first layer, in front of all others and of their data. */
static char *add_tensor(const char *bytes, size_t n, char name[128])
{
    static const struct { uint32_t n_dims; } one = { 1 };
    const char *first = memmem(bytes, n, "token_embd.weight", 17);
    uint64_t dim = 1, offset = 0;
    uint32_t type = 0;
    char record[64] = "";
    size_t at;

    snprintf(name, 128, "blk.0.surplus");
    while (strlen(name) < 64 - 32)
        strcat(name, "_");
    at = put_text(record, name, strlen(name));
    memcpy(record + at, &one.n_dims, 4);
    memcpy(record + at + 4, &dim, 8);
    memcpy(record + at + 12, &type, 4);
    memcpy(record + at + 16, &offset, 8);
    return insert(bytes, n, (size_t)(first - 8 - bytes), record, sizeof record, 8);
}

static void check_surplus(const char *arch, const char *bytes, size_t n, size_t n_more, const char *name,
                          const float *want)
{
    float got[EBB_TINY_VOCAB];
    ebb_error err = { 0 };
    ebb_plan plan = { 0 };

    if (compute(bytes, n + n_more, false, got, &plan, &err))
        fail_msg("%s computes with %s", arch, name);
    if (!strstr(err.msg, name) || !strstr(err.msg, "--force"))
        fail_msg("%s: \"%s\" names no %s", arch, err.msg, name);
    if (!compute(bytes, n + n_more, true, got, &plan, &err))
        fail_msg("%s, forced: %s", arch, err.msg);
    assert_memory_equal(got, want, sizeof got);
    assert_non_null(strstr(plan.left_out, name));
}

/* So what holds for these holds for all that is supported. */
static void test_every_architecture_has_a_small_model(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_archs[i]; i++) {
        size_t k = 0;

        while (ebb_tiny_archs[k] && strcmp(ebb_tiny_archs[k], ebb_archs[i]->name) != 0)
            k++;
        if (!ebb_tiny_archs[k])
            fail_msg("no small model of %s", ebb_archs[i]->name);
    }
}

static void test_what_is_not_known_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);
        float want[EBB_TINY_VOCAB];
        ebb_error err = { 0 };
        ebb_plan plan = { 0 };
        char name[128], *other;
        size_t n;
        char *bytes = ebb_tiny_bytes(&tiny, &n);

        if (!compute(bytes, n, false, want, &plan, &err))
            fail_msg("%s: %s", tiny.arch, err.msg);
        assert_string_equal(plan.left_out, "");
        other = add_key(bytes, n, tiny.arch, name);
        check_surplus(tiny.arch, other, n, 96, name, want);
        free(other);
        other = add_tensor(bytes, n, name);
        check_surplus(tiny.arch, other, n, 64, name, want);
        free(other);
        free(bytes);
    }
}

/* Keys about single tensors stand apart from the architecture's: their names, and which products may round inputs to
 * 4 bits, are known; another is refused by its name. */
static void test_keys_about_tensors(void **state)
{
    static const struct { const char *name; bool is_known; } keys[] = {
        { "general.tensor_extra.name", true }, { "general.tensor_extra.prec_a4", true },
        { "general.tensor_extra.rotation", false },
    };
    ebb_tiny_opts tiny = tiny_of("llama");
    float want[EBB_TINY_VOCAB], got[EBB_TINY_VOCAB];
    ebb_error err = { 0 };
    ebb_plan plan = { 0 };
    size_t n;
    char *bytes = ebb_tiny_bytes(&tiny, &n);

    (void)state;
    assert_true(compute(bytes, n, false, want, &plan, &err));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *more = add_empty_list(bytes, n, keys[i].name);

        if (!keys[i].is_known)
            check_surplus("llama", more, n, N_RECORD, keys[i].name, want);
        else if (!compute(more, n + N_RECORD, false, got, &plan, &err))
            fail_msg("%s", err.msg);
        else
            assert_memory_equal(got, want, sizeof got);
        free(more);
    }
    free(bytes);
}

/* -- Other values ---------------------------------------------------------------------------- */

/* Keys that another value does not reach in so few tokens and layers, or that are there for other readers. */
static bool may_change_nothing(const char *arch, const char *key)
{
    static const struct { const char *arch, *key;
    } keys[] = {
        { NULL, ".context_length" },
        { NULL, ".rope.dimension_sections" }, /* of images: a text's positions are the same in all */
        { NULL, ".feed_forward_length" }, /* of mixtures without a dense layer; else tensors have that
                                                            width */
        { "phi3", ".attention.sliding_window" }, /* full attention, whatever it says */
        { "phimoe", ".attention.sliding_window" },
        { "smallthinker", ".attention.sliding_window" }, /* 4096, whatever it says but 0 */
        { "phi3", ".rope.scaling.original_context_length" }, /* as long as the context is longer */
        { "phimoe", ".rope.scaling.original_context_length" },
        { "gemma3", ".rope.freq_base" },
        { "gemma3", ".rope.scaling.factor" }, /* of global layers: here is none */
        { "plamo3", ".rope.freq_base" },
        { "gpt2", ".rope.freq_base" },
        { "gpt2", ".rope.dimension_count" }, /* nothing is rotated */
        { "nemotron_h", ".rope.freq_base" },
        { "nemotron_h", ".rope.dimension_count" },
        { "nemotron_h_moe", ".rope.freq_base" },
        { "nemotron_h_moe", ".rope.dimension_count" },
        { "jamba", ".rope.freq_base" },
        { "jamba", ".rope.dimension_count" },
        { "granitehybrid", ".rope.freq_base" },
        { "granitehybrid", ".rope.dimension_count" },
        { "deepseek2", ".expert_group_count" },
        { "deepseek2", ".expert_group_used_count" }, /* the best of all are of one group */
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if ((!keys[i].arch || strcmp(keys[i].arch, arch) == 0) && strcmp(keys[i].key, key) == 0)
            return true;
    return false;
}

/* What stands at `p` becomes another value of its type; false: of a type that is left alone. */
static bool change_value(char *p, uint32_t type)
{
    uint32_t u;
    float f;

    memcpy(&u, p, 4);
    memcpy(&f, p, 4);
    u = u > 1 ? u / 2 : u + 1;
    f = f * 1.5f + 0.01f;
    if (type == 4 || type == 5)
        memcpy(p, &u, 4);
    else if (type == 6)
        memcpy(p, &f, 4);
    else if (type == 7)
        *p = !*p;
    else if (type == 8)
        *p ^= 1;
    return type >= 4 && type <= 8;
}

/* Whether another value of the key makes a difference, or an error that names a key or a tensor: this one, or what does
 * not go with it. */
static bool check_key(const char *arch, char *bytes, size_t n, const ebb_tiny_key *k, const float *want)
{
    char before[4];
    float got[EBB_TINY_VOCAB];
    ebb_error err = { 0 };
    ebb_plan plan = { 0 };
    bool ok;

    memcpy(before, k->value, 4);
    if (!change_value(k->value, k->type))
        fail_msg("%s%s: of a type that is not changed here", arch, k->name);
    if (compute(bytes, n, false, got, &plan, &err)) {
        ok = memcmp(got, want, sizeof got) != 0 || may_change_nothing(arch, k->name);
        if (!ok)
            print_error("%s%s: another value changes nothing\n", arch, k->name);
    } else {
        ok = strstr(err.msg, ": metadata ") || strstr(err.msg, ": tensor ");
        if (!ok)
            print_error("%s%s: refused with \"%s\"\n", arch, k->name, err.msg);
    }
    memcpy(k->value, before, 4);
    return ok;
}

static void test_another_value_is_refused_or_counts(void **state)
{
    bool ok = true;

    (void)state;
    for (size_t i = 0; ebb_tiny_archs[i]; i++) {
        ebb_tiny_opts tiny = tiny_of(ebb_tiny_archs[i]);
        float want[EBB_TINY_VOCAB];
        ebb_error err = { 0 };
        ebb_plan plan = { 0 };
        size_t n;
        char *bytes = ebb_tiny_bytes(&tiny, &n);

        assert_true(compute(bytes, n, false, want, &plan, &err));
        for (ebb_tiny_key k = { 0 }; ebb_tiny_next_key(bytes, n, tiny.arch, &k);)
            ok = check_key(tiny.arch, bytes, n, &k, want) && ok;
        free(bytes);
    }
    assert_true(ok);
}

/* -- Keys that files of some models have not, or have for nothing ------------------------------ */

static ebb_tiny_key find_key(char *bytes, size_t n, const char *arch, const char *name)
{
    ebb_tiny_key k = { 0 };

    while (ebb_tiny_next_key(bytes, n, arch, &k))
        if (strcmp(k.name, name) == 0)
            return k;
    fail_msg("%s has no %s", arch, name);
    return k;
}

/* The file of the key is without it: it is called as what belongs to images. */
static void hide_key(const ebb_tiny_key *k)
{
    size_t n_before = k->type == 8 ? 12 : 4;     /* between name and value; no array is hidden */

    memcpy(k->value - n_before - strlen(k->name), ".vision.", 8);
}

static void must_compute(const char *bytes, size_t n, float out[EBB_TINY_VOCAB])
{
    ebb_error err = { 0 };
    ebb_plan plan;

    if (!compute(bytes, n, false, out, &plan, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(plan.left_out, "");
}

/* As in files of Rnj-1: every layer is global, and has the global layers' rope. */
static void test_gemma3_without_a_window(void **state)
{
    static const uint32_t none = 0;
    ebb_tiny_opts tiny = tiny_of("gemma3");
    float local[EBB_TINY_VOCAB], want[EBB_TINY_VOCAB], got[EBB_TINY_VOCAB];
    ebb_tiny_key window, base;
    size_t n;
    char *bytes = ebb_tiny_bytes(&tiny, &n);

    (void)state;
    window = find_key(bytes, n, "gemma3", ".attention.sliding_window");
    base = find_key(bytes, n, "gemma3", ".rope.freq_base");
    must_compute(bytes, n, local);
    memcpy(window.value, &none, sizeof none);
    must_compute(bytes, n, want);
    assert_memory_not_equal(want, local, sizeof want);
    hide_key(&window);
    must_compute(bytes, n, got);
    assert_memory_equal(got, want, sizeof got);
    assert_true(change_value(base.value, base.type));
    must_compute(bytes, n, got);
    assert_memory_not_equal(got, want, sizeof got);
    free(bytes);
}

/* YaRN in a file that says nothing of it, or something else; for free(). */
static char *add_yarn(const char *arch, char *bytes, size_t n)
{
    static const struct __attribute__((packed)) { uint32_t type; uint64_t len; char text[4]; } yarn = { 8, 4, "yarn" };
    ebb_tiny_key type = find_key(bytes, n, arch, ".rope.scaling.type");
    char name[64];

    snprintf(name, sizeof name, "%s.rope.scaling.type", arch);
    hide_key(&type);
    return add_value(bytes, n, name, &yarn, sizeof yarn);
}

/* A beta of YaRN that the architecture's files have without its being read; of others it is refused. */
static void test_beta_of_yarn(void **state)
{
    static const struct { const char *arch; bool is_harmless; } cases[] = { { "gemma3", true }, { "olmo2", false } };
    static const struct { uint32_t type; float beta; } value = { 6, 64 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_tiny_opts tiny = tiny_of(cases[i].arch);
        float want[EBB_TINY_VOCAB], got[EBB_TINY_VOCAB];
        ebb_error err = { 0 };
        ebb_plan plan;
        char name[64];
        size_t n;
        char *bytes = ebb_tiny_bytes(&tiny, &n), *yarn = add_yarn(tiny.arch, bytes, n), *more;

        snprintf(name, sizeof name, "%s.rope.scaling.yarn_beta_fast", tiny.arch);
        more = add_value(yarn, n + N_RECORD, name, &value, sizeof value);
        must_compute(yarn, n + N_RECORD, want);
        assert_int_equal(compute(more, n + 2 * N_RECORD, false, got, &plan, &err), cases[i].is_harmless);
        if (cases[i].is_harmless)
            assert_memory_equal(got, want, sizeof got);
        else if (!strstr(err.msg, name))
            fail_msg("\"%s\" names no %s", err.msg, name);
        free(more);
        free(yarn);
        free(bytes);
    }
}

/* Rows of heads whose turned pairs are half of what is turned apart come to stand side by side. */
static void set_side_by_side(char *rows, size_t row_bytes, size_t n_rows, const ebb_tiny_opts *tiny, uint32_t n_rot)
{
    char *head = malloc(n_rot * row_bytes);

    for (size_t first = 0; first < n_rows; first += tiny->head_dim) {
        char *to = rows + first * row_bytes;

        memcpy(head, to, n_rot * row_bytes);
        for (uint32_t i = 0; i < n_rot; i++)
            memcpy(to + i * row_bytes, head + (i % 2 * (n_rot / 2) + i / 2) * row_bytes, row_bytes);
    }
    free(head);
}

/* The weights and biases of all q and k. */
static void set_pairs_side_by_side(char *bytes, size_t n, const ebb_tiny_opts *tiny, uint32_t n_rot)
{
    ebb_gguf *g = NULL;

    assert_int_equal(ebb_gguf_open_memory(bytes, n, "tiny", &g, NULL), EBB_OK);
    for (size_t i = 0; i < ebb_gguf_n_tensors(g); i++) {
        const ebb_gguf_tensor *t = ebb_gguf_get_tensor(g, i);
        size_t n_rows = t->n_dims == 1 ? t->dims[0] : t->dims[1];

        if (strstr(t->name, ".attn_q.") || strstr(t->name, ".attn_k."))
            set_side_by_side(bytes + t->offset, t->n_bytes / n_rows, n_rows, tiny, n_rot);
    }
    ebb_gguf_close(g);
}

static float max_difference(const float a[EBB_TINY_VOCAB], const float b[EBB_TINY_VOCAB])
{
    float most = 0;

    for (size_t i = 0; i < EBB_TINY_VOCAB; i++)
        most = fmaxf(most, fabsf(a[i] - b[i]));
    return most;
}

/* As in files of GLM 4.1V, whose rows of q and k are in another order; sections of no length are none. */
static void test_glm4_with_sections(void **state)
{
    struct { uint32_t type, of; uint64_t n; uint32_t sections[4]; } value = { 9, 5, 4, { 3, 3, 2, 0 } };
    ebb_tiny_opts tiny = tiny_of("glm4");
    float plain[EBB_TINY_VOCAB], halves[EBB_TINY_VOCAB], got[EBB_TINY_VOCAB];
    uint32_t n_rot;
    ebb_tiny_key k;
    size_t n;
    char *bytes = ebb_tiny_bytes(&tiny, &n), *more = add_value(bytes, n, "glm4.rope.dimension_sections", &value,
                                                               sizeof value);

    (void)state;
    must_compute(bytes, n, plain);
    must_compute(more, n + N_RECORD, halves);
    assert_true(max_difference(plain, halves) > 0.1f);
    k = find_key(bytes, n, "glm4", ".rope.dimension_count");
    memcpy(&n_rot, k.value, sizeof n_rot);
    set_pairs_side_by_side(bytes, n, &tiny, n_rot);
    must_compute(bytes, n, got);
    assert_true(max_difference(got, halves) < 1e-4f);    /* sums in another order */
    k = find_key(more, n + N_RECORD, "glm4", ".rope.dimension_sections");
    memset(k.value, 0, 4);
    must_compute(more, n + N_RECORD, got);
    assert_memory_equal(got, plain, sizeof got);
    free(more);
    free(bytes);
}

/* As the network is defined, whatever base the global layers have; here is none of these. */
static void test_local_base_of_plamo3(void **state)
{
    static const struct { uint32_t type; float base; } local = { 6, 10000 };
    static const float global = 1000000;
    ebb_tiny_opts tiny = tiny_of("plamo3");
    float want[EBB_TINY_VOCAB], got[EBB_TINY_VOCAB];
    ebb_tiny_key base;
    size_t n;
    char *bytes = ebb_tiny_bytes(&tiny, &n), *more;

    (void)state;
    base = find_key(bytes, n, "plamo3", ".rope.freq_base");
    memcpy(base.value, &global, sizeof global);
    more = add_value(bytes, n, "plamo3.rope.freq_base_swa", &local, sizeof local);
    must_compute(more, n + N_RECORD, want);
    must_compute(bytes, n, got);
    assert_memory_equal(got, want, sizeof got);
    free(more);
    free(bytes);
}

/* The weights of q's norm in the layers of a mask, times 4. */
static void enlarge_queries(char *bytes, size_t n, uint32_t layers)
{
    ebb_gguf *g = NULL;

    assert_int_equal(ebb_gguf_open_memory(bytes, n, "tiny", &g, NULL), EBB_OK);
    for (uint32_t i = 0; i < 32; i++) {
        char name[64];
        const ebb_gguf_tensor *t;

        snprintf(name, sizeof name, "blk.%u.attn_q_norm.weight", i);
        t = ebb_gguf_find_tensor(g, name);
        for (uint64_t k = 0; t && (layers >> i & 1) && k < t->n_elems; k++) {
            float w;

            memcpy(&w, bytes + t->offset + 4 * k, sizeof w);
            w *= 4;
            memcpy(bytes + t->offset + 4 * k, &w, sizeof w);
        }
    }
    ebb_gguf_close(g);
}

/* A factor of 2 makes q and k twice as long in all layers that turn them, local ones too; OLMo 3's local ones have
 * nothing of the scaling. */
static void test_attn_factor(void **state)
{
    static const struct { const char *arch; uint32_t layers; } cases[] = {
        { "gemma3", ~0u }, { "gemma3n", ~0u }, { "gemma4", ~0u }, { "plamo3", ~0u }, { "muse-glimmer", 7 },
        { "olmo2", 8 },
    };
    static const struct { uint32_t type; float factor; } value = { 6, 2 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_tiny_opts tiny = tiny_of(cases[i].arch);
        float plain[EBB_TINY_VOCAB], want[EBB_TINY_VOCAB], got[EBB_TINY_VOCAB];
        char name[64], *more;
        size_t n;
        char *bytes = ebb_tiny_bytes(&tiny, &n);

        snprintf(name, sizeof name, "%s.rope.scaling.attn_factor", tiny.arch);
        more = add_value(bytes, n, name, &value, sizeof value);
        must_compute(bytes, n, plain);
        must_compute(more, n + N_RECORD, got);
        enlarge_queries(bytes, n, cases[i].layers);
        must_compute(bytes, n, want);
        assert_memory_not_equal(want, plain, sizeof want);
        if (memcmp(got, want, sizeof got) != 0)
            fail_msg("%s: differs by %g", tiny.arch, (double)max_difference(got, want));
        free(more);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_architecture_has_a_small_model),
        cmocka_unit_test(test_what_is_not_known_is_refused),
        cmocka_unit_test(test_keys_about_tensors),
        cmocka_unit_test(test_another_value_is_refused_or_counts),
        cmocka_unit_test(test_gemma3_without_a_window),
        cmocka_unit_test(test_beta_of_yarn),
        cmocka_unit_test(test_glm4_with_sections),
        cmocka_unit_test(test_local_base_of_plamo3),
        cmocka_unit_test(test_attn_factor),
    };

    return cmocka_run_group_tests_name("understood", tests, NULL, NULL);
}
