/* KV and compute-graph sizes, architecture by architecture, as Ollama 0.13.3's
 * GraphSize computes them (ebb/experimental/ollama.h).  One function per rule; names follow
 * the formulas: B batch, C context of all sequences, E embedding, H heads,
 * K KV heads, V vocabulary, Dk and Dv the widths of a head. */
#include <string.h>

#include "ebb/experimental/ollama.h"

typedef struct facts {
    uint64_t B, C, E, FF, V, H, K, K_min, D, Dk, Dv, Np;
    double   P;                  /* bytes of a KV element */
    bool     flash;
    const ebb_ollama_model *o;
    ebb_ollama_graph       *g;
} facts;

static uint64_t max2(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t or_one(uint64_t v)
{
    return v ? v : 1;
}

static uint64_t largest(const ebb_ollama_heads *h)
{
    uint64_t v = h->n ? h->values[0] : 1;

    for (size_t i = 1; i < h->n; i++)
        v = max2(v, h->values[i]);
    return v;
}

static uint64_t smallest(const ebb_ollama_heads *h)
{
    uint64_t v = h->n ? h->values[0] : 1;

    for (size_t i = 1; i < h->n; i++)
        v = h->values[i] < v ? h->values[i] : v;
    return v;
}

static uint64_t of_layer(const ebb_ollama_heads *h, uint64_t i)
{
    if (h->n == 0)
        return 1;
    return h->n == 1 ? h->values[0] : i < h->n ? h->values[i] : 1;
}

static double element_bytes(const char *kv_type)
{
    if (kv_type && strcmp(kv_type, "q8_0") == 0)
        return 1;
    if (kv_type && strcmp(kv_type, "q4_0") == 0)
        return 0.5;
    return kv_type && strcmp(kv_type, "f32") == 0 ? 4 : 2;
}

static uint64_t scale_bytes(uint64_t n, double p)
{
    return (uint64_t)((double)n * p);
}

static uint64_t kv_generic(const facts *f, uint64_t i)
{
    const ebb_ollama_model *o = f->o;
    uint64_t k = of_layer(&o->kv_heads, i), conv;

    if (of_layer(&o->heads, i) > 0 && k > 0)
        return scale_bytes(f->C * (f->Dk + f->Dv) * k, f->P);
    conv = o->ssm_conv > 0 ? (o->ssm_conv - 1) * (o->ssm_inner + 2 * o->ssm_groups * o->ssm_state) : 0;
    return (conv + o->ssm_state * o->ssm_inner) * 4;
}

/* The output layer's share, which many rules have. */
static uint64_t logits_full(const facts *f)
{
    return 4 * f->B * (f->E + f->V);
}

static uint64_t logits_partial(const facts *f)
{
    return logits_full(f) + 105 * f->E * f->V / 128;
}

static void merged_experts(const facts *f)
{
    uint64_t B = f->B, C = f->C, H = f->H, K = f->K, X = f->Dk;

    f->g->partial = max2(3 * f->o->gate_exps_bytes + 4 * B * (2 * f->FF + K + f->E + C + X * K),
                         4 * (C * B * H + C * X * K + 1024 * B + X * K * B));
}

static void split_experts(const facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H, K = f->K, X = f->Dk, w = f->o->gate_expert_width;
    uint64_t per_head = H ? 6 * C * K / H : 0;

    f->g->full = 4 * B * (2 + 3 * E + C * (1 + H) + 2 * K + w);
    f->g->partial = max2(4 * B * (3 + X * K + E + C * (1 + H) + w) + 9 * (E * E + 3 * E * K * w) / 16,
                         4 * B * (1 + 2 * E + C * (1 + H)) + E * (per_head + 9 * E / 16));
}

static void rule_llama(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H;
    /* The head width of this term is E / H in the original, whatever key_length says. */
    uint64_t attention = 4 * B * (1 + E + max2(C, E)) + 9 * E * E / 16 + 4 * C * (B * H + f->D * f->K);

    f->g->full = max2(4 * B * (1 + 4 * E + C * (1 + H)), logits_full(f));
    f->g->partial = 4 * B * E + max2(attention, logits_partial(f));
    if (f->o->gate_exps_bytes)
        merged_experts(f);
    else if (f->o->gate_expert_width)
        split_experts(f);
}

static void rule_mllama(facts *f)
{
    const uint64_t n_image_tok = 1601, n_tiles = 4;
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H;

    for (size_t i = 0; i < f->o->cross_layers.n; i++)
        if (f->o->cross_layers.values[i] < f->o->n_layers)
            f->g->kv[f->o->cross_layers.values[i]] = f->K * (f->Dk + f->Dv) * 4 * n_image_tok * n_tiles;
    f->g->full = max2(4 * B * (2 + 3 * E + f->Dk * H + C * (1 + H)), logits_full(f));
    f->g->partial = max2(4 * (B * (2 * E + 1 + C * (1 + H) + f->Dk * H) + f->o->rope_freqs_elements + f->Dk * C * f->K),
                         logits_partial(f));
}

static void rule_gemma(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H, Dk = f->Dk;

    f->g->full = max2(logits_full(f), 4 * B * (2 + C + C * H + 2 * E + 2 * Dk * H));
    f->g->partial = max2(logits_partial(f),
                         4 * B * (2 * E + 1 + 2 * Dk * H + C + C * H) + 4 * Dk * C * 8 + 9 * E * Dk * H / 16);
}

static void rule_gemma3n(facts *f)
{
    rule_gemma(f);
    f->g->full *= 4;
    f->g->partial *= 4;
}

static void rule_gemma3(facts *f)
{
    rule_gemma(f);
    for (uint64_t i = 0; i < f->o->n_layers; i++)
        if ((i + 1) % 6 != 0)
            f->g->kv[i] = scale_bytes((f->Np * f->o->window + f->B) * (f->Dk + f->Dv) * f->K, f->P);
}

static void rule_command_r(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H;

    f->g->full = max2(logits_full(f), 4 * B * (2 + 4 * E + C * (1 + H)));
    f->g->partial = max2(logits_partial(f), 4 * B * (1 + 2 * E + C * (1 + H)) + 4 * E * C + 9 * E * E / 16);
}

static void rule_qwen2(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H;

    f->g->full = max2(logits_full(f), 4 * B * (1 + 2 * E + C + C * H));
    f->g->partial = max2(logits_partial(f), 4 * (B * (1 + 2 * E + C * (1 + H)) + E * (1 + C)));
}

static void rule_phi2(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H;

    f->g->full = max2(logits_full(f), 4 * B * (1 + 4 * E + C + C * H));
    f->g->partial = max2(4 * B * (2 * E + f->V) + 105 * E * f->V / 128, 4 * B * (2 + 3 * E + C + C * H));
}

static void rule_stablelm(facts *f)
{
    f->g->full = 4 * f->B * (f->C * (1 + f->H) + 3 * f->E + 2);
    f->g->partial = max2(4 * f->B * (f->V + 2 * f->E), f->g->full);
}

static void rule_deepseek2(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, K = f->K, Dk = f->Dk;

    f->g->full = max2(4 * B * (3 * E + f->V), 4 * B * (3 * E + 2 + C * (1 + K) + 2 * Dk * K));
    f->g->partial = max2(4 * B * (3 * E + f->V) + 105 * E * f->V / 128,
                         4 * B * (2 * E + 1 + 2 * Dk * K + C + C * K) + 4 * Dk * C * K + 9 * E * Dk * K / 16);
}

static void rule_chatglm(facts *f)
{
    uint64_t B = f->B, C = f->C, E = f->E, H = f->H, Dk = f->Dk, S = f->o->qkv_bias_dim;

    f->g->full = logits_full(f);
    f->g->partial = logits_partial(f);
    if (!S)
        return;
    f->g->full = max2(f->g->full, 4 * B * (2 + 2 * E + C + C * H + Dk * H + S));
    f->g->partial = max2(f->g->partial, 4 * B * (1 + 2 * E + Dk * H + C + C * H) + 4 * Dk * C + 4 * C * Dk + 4 * S);
}

static void rule_gpt_oss(facts *f)
{
    const uint64_t window = 4096;
    uint64_t unit = scale_bytes((f->Dk + f->Dv) * f->K, f->P);

    for (uint64_t i = 0; i < f->o->n_layers; i++)
        f->g->kv[i] = unit * (i % 2 == 0 ? f->Np * window + f->B : f->C);
    f->g->full = 0;
    f->g->partial = 2 * f->H / or_one(f->K_min) * f->g->kv_generic_total / 6;
    if (f->flash)
        f->g->partial = (4 * f->Np + f->C / 1024 + 110) << 20;
}

static facts gather_facts(const ebb_ollama_model *o, const ebb_ollama_load *l)
{
    uint64_t h_min = smallest(&o->heads), d = h_min ? o->n_embd / h_min : 0;

    return (facts){
        .B = l->n_batch, .C = l->n_ctx * l->n_parallel, .E = o->n_embd, .FF = o->n_ff, .V = o->n_vocab,
        .H = largest(&o->heads), .K = largest(&o->kv_heads), .K_min = smallest(&o->kv_heads), .D = d,
        .Dk = o->has_dim_k ? o->dim_k : d, .Dv = o->has_dim_v ? o->dim_v : d, .Np = l->n_parallel,
        .P = element_bytes(l->kv_type), .flash = l->flash, .o = o,
    };
}

/* More than any rule comes to: every product of theirs is in one of these, with the largest of their factors. */
bool ebb_ollama_graph_is_in_range(const ebb_ollama_model *o, const ebb_ollama_load *l)
{
    const double factor = 64, limit = 0x1p62;
    facts f = gather_facts(o, l);
    double B = (double)l->n_batch + 1, C = (double)l->n_ctx * (double)l->n_parallel + 1, Np = (double)l->n_parallel + 1;
    double H = (double)f.H + (double)f.K + 1, head = (double)f.Dk + (double)f.Dv + 1;
    double wide = (double)f.E + (double)f.FF + (double)f.V + (double)o->gate_expert_width + (double)o->qkv_bias_dim +
                  head * H;
    double kept = C + B + Np * ((double)o->window + 8192);       /* positions in a layer's K and V */
    double kv = kept * head * H * ((double)o->n_layers + 1);
    double sum = B * C * H + (B + C + wide) * wide * H + kv * H + Np * 0x1p22;

    return factor * sum < limit;
}

static const struct { const char *arch; void (*rule)(facts *); } rules[] = {
    { "llama", rule_llama },       { "llama4", rule_llama },       { "mllama", rule_mllama },
    { "gemma", rule_gemma },       { "gemma2", rule_gemma },       { "gemma3", rule_gemma3 },
    { "gemma3n", rule_gemma3n },   { "command-r", rule_command_r }, { "qwen2", rule_qwen2 },
    { "phi2", rule_phi2 },         { "stablelm", rule_stablelm },  { "deepseek2", rule_deepseek2 },
    { "chatglm", rule_chatglm },   { "gptoss", rule_gpt_oss },     { "gpt-oss", rule_gpt_oss },
};

static uint64_t sum_kv(const facts *f)
{
    uint64_t total = 0;

    for (uint64_t i = 0; i < f->o->n_layers; i++)
        total += f->g->kv[i];
    return total;
}

void ebb_ollama_graph_size(const ebb_ollama_model *o, const ebb_ollama_load *l, bool metal, ebb_ollama_graph *g)
{
    facts f = gather_facts(o, l);

    f.g = g;
    for (uint64_t i = 0; i < o->n_layers; i++)
        g->kv[i] = kv_generic(&f, i);
    g->kv_generic_total = sum_kv(&f);
    g->full = g->partial = 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].arch, o->arch) == 0)
            rules[i].rule(&f);
    g->kv_total = sum_kv(&f);
    g->resolved_partial = g->partial ? g->partial : f.H / or_one(f.K_min) * g->kv_total / 6;
    g->resolved_full = g->full ? g->full : g->resolved_partial;
    if (metal)
        g->resolved_partial = g->resolved_full;
}
