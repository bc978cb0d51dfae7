/* What Ollama makes of its environment and a request, and the short prediction. */
#include <math.h>
#include <string.h>

#include "ebb/experimental/ollama.h"

static bool is_in(const char *arch, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(arch, *list) == 0)
            return true;
    return false;
}

/* Blanks, then quotes, are cut off both ends. */
static const char *trimmed_env(const char *s, size_t *n)
{
    static const char *const cut[] = { " \t\r\n", "\"'" };

    *n = strlen(s);
    for (int i = 0; i < 2; i++) {
        while (*n && strchr(cut[i], s[0])) {
            s++;
            --*n;
        }
        while (*n && strchr(cut[i], s[*n - 1]))
            --*n;
    }
    return s;
}

static uint64_t parse_number(const char *s, uint64_t otherwise)
{
    uint64_t v = 0;
    size_t n;

    if (!s)
        return otherwise;
    s = trimmed_env(s, &n);
    if (n == 0 || n > 19)
        return otherwise;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return otherwise;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    return v;
}

static bool boolean(const char *s, bool otherwise)
{
    static const char *const no[] = { "0", "f", "F", "false", "FALSE", "False" };
    size_t n;

    if (!s)
        return otherwise;
    s = trimmed_env(s, &n);
    if (n == 0)
        return otherwise;
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        if (strlen(no[i]) == n && memcmp(no[i], s, n) == 0)
            return false;
    return true;                                 /* what cannot be parsed counts as true */
}

static const char *cache_type(const char *s)
{
    static const char *const known[] = { "f16", "q8_0", "q4_0" };
    size_t n;

    if (!s)
        return "f16";
    s = trimmed_env(s, &n);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t j = 0;
        while (j < n && known[i][j] && (s[j] | 0x20) == (known[i][j] | 0x20))
            j++;
        if (j == n && known[i][j] == '\0')
            return known[i];
    }
    return "f16";
}

static bool flash_of(const ebb_ollama_model *o, const ebb_ollama_request *r)
{
    static const char *const by_default[] = { "gemma3", "gptoss", "gpt-oss", "mistral3", "qwen3", "qwen3moe",
                                              "qwen3vl", "qwen3vlmoe", NULL };
    uint64_t h_min = o->heads.n ? o->heads.values[0] : 1, d, dim_k, dim_v;

    for (size_t i = 1; i < o->heads.n; i++)
        h_min = o->heads.values[i] < h_min ? o->heads.values[i] : h_min;
    d = h_min ? o->n_embd / h_min : 0;
    dim_k = o->has_dim_k ? o->dim_k : d;
    dim_v = o->has_dim_v ? o->dim_v : d;
    return boolean(r->env_flash, is_in(o->arch, by_default)) && r->flash_ok_on_gpus && !o->is_embedding &&
           strcmp(o->arch, "gemma2") != 0 && dim_k == dim_v && dim_k != 0;
}

ebb_ollama_settings ebb_ollama_resolve(const ebb_ollama_model *o, const ebb_ollama_request *r)
{
    static const char *const long_by_default[] = { "gptoss", "gpt-oss", "qwen3vl", "qwen3vlmoe", NULL };
    static const char *const one_sequence[] = { "mllama", "qwen3vl", "qwen3vlmoe", NULL };
    const uint64_t usual_batch = 512, usual_ctx = 4096, long_ctx = 8192, vision_ctx = 2048;
    ebb_ollama_settings s = { 0 };

    s.n_ctx = r->n_ctx ? r->n_ctx : parse_number(r->env_ctx, usual_ctx);
    if (is_in(o->arch, long_by_default) && r->total_vram_bytes >= (uint64_t)20 << 30 && s.n_ctx < long_ctx)
        s.n_ctx = long_ctx;
    if (s.n_ctx < 4)
        s.n_ctx = 4;
    if (r->vision && s.n_ctx < vision_ctx)
        s.n_ctx = vision_ctx;
    if (o->n_ctx_train && s.n_ctx > o->n_ctx_train)
        s.n_ctx = o->n_ctx_train;
    s.n_batch = r->n_batch ? r->n_batch : usual_batch;
    if (s.n_batch > s.n_ctx)
        s.n_batch = s.n_ctx;
    s.n_parallel = parse_number(r->env_parallel, 1);
    if (s.n_parallel < 1 || o->is_embedding || is_in(o->arch, one_sequence))
        s.n_parallel = 1;
    if (o->is_embedding && s.n_batch < s.n_ctx)
        s.n_batch = s.n_ctx;
    s.flash = flash_of(o, r);
    s.kv_type = s.flash ? cache_type(r->env_kv_type) : "f16";
    s.overhead_bytes = parse_number(r->env_overhead, 0);
    s.spread = boolean(r->env_spread, false);
    return s;
}

bool ebb_ollama_needs_engine(const char *arch)
{
    static const char *const list[] = { "gemma3",      "gemma3n",   "gptoss",     "gpt-oss",  "llama4",  "mistral3",
                                        "mllama",      "qwen25vl",  "qwen3",      "qwen3moe", "qwen3vl", "qwen3vlmoe",
                                        "deepseekocr", "deepseek2", "nomic-bert", NULL };

    return is_in(arch, list);
}

ebb_ollama_prediction ebb_ollama_predict(uint64_t vram_bytes, uint64_t kv_total, uint64_t partial, uint64_t full,
                                         uint64_t buffer, uint64_t weights, uint64_t n_total)
{
    ebb_ollama_prediction p = { 0 };
    uint64_t taken = kv_total + partial + buffer;

    p.total_bytes = weights + kv_total + full + buffer;
    p.splits = p.total_bytes > vram_bytes;
    p.weight_room_bytes = vram_bytes > taken ? vram_bytes - taken : 0;
    p.gpu_ratio = weights ? (double)p.weight_room_bytes / (double)weights : 0;
    p.n_layers = weights ? p.weight_room_bytes * n_total / weights : 0;
    if (p.n_layers > n_total)
        p.n_layers = n_total;
    return p;
}

static double round_to(double x, double unit)
{
    return round(x / unit) * unit;
}

ebb_ollama_paper ebb_ollama_predict_on_paper(uint64_t vram_bytes, uint64_t kv_total, uint64_t partial, uint64_t buffer,
                                             uint64_t weights)
{
    const double gib = 1024.0 * 1024 * 1024;
    ebb_ollama_paper p = { .vram = round_to((double)vram_bytes / gib, 0.01),
                           .kv = round_to((double)kv_total / gib, 0.01),
                           .graph = round_to((double)partial / gib, 0.01),
                           .buffer = round_to((double)buffer / gib, 0.1),
                           .weights = round((double)weights / 1e9) };

    p.available = fmax(p.vram - p.kv - p.graph - p.buffer, 0);
    p.ratio = p.weights > 0 ? p.available / p.weights : 0;
    return p;
}
