/* Placement of layers on GPUs as Ollama 0.13.3 does it (ebb/experimental/ollama.h): from the
 * back, the smallest sufficient share of each card's memory, found by bisection
 * in single precision.  A layout entry may be empty: a GPU that was passed over. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ebb/experimental/ollama.h"

typedef struct card {
    size_t      index;           /* in the caller's order */
    uint64_t    free;
    const char *library;
    bool        integrated;
} card;

typedef struct entries {
    size_t   n;
    struct { size_t gpu, first, n; } e[EBB_OLLAMA_GPUS];
    uint64_t placed;
} entries;

typedef struct placer {
    const uint64_t           *sizes;             /* of the layers, the output last */
    uint64_t                  n_sizes;
    const ebb_ollama_options *opts;
    const ebb_ollama_gpu     *gpus;
    size_t                    n_gpus;
    uint64_t                  free[EBB_OLLAMA_GPUS], graph[EBB_OLLAMA_GPUS];
} placer;

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void open_in_front(entries *l, size_t gpu, size_t layer)
{
    memmove(&l->e[1], &l->e[0], l->n * sizeof l->e[0]);
    l->e[0].gpu = gpu;
    l->e[0].first = layer;
    l->e[0].n = 0;
    l->n++;
}

/* Fill from the last layer and the last card. */
static entries fill_cards_greedily(const uint64_t *sizes, uint64_t n, const card *cards, size_t n_cards, float capacity,
                                   int64_t wanted)
{
    entries l = { 0 };
    size_t d = n_cards - 1;
    uint64_t room = (uint64_t)((float)cards[d].free * capacity);

    open_in_front(&l, cards[d].index, n);
    for (uint64_t layer = n; layer-- > 0;) {
        if (wanted >= 0 && l.placed >= (uint64_t)wanted)
            break;
        while (sizes[layer] > room) {
            if (d == 0)
                return l;
            d--;
            open_in_front(&l, cards[d].index, layer + 1);
            room = (uint64_t)((float)cards[d].free * capacity);
        }
        l.e[0].first = layer;
        l.e[0].n++;
        l.placed++;
        room -= sizes[layer];
    }
    return l;
}

/* The smallest share of each card that still takes as many layers as the whole. */
static entries smallest_share(const uint64_t *sizes, uint64_t n, const card *cards, size_t n_cards, bool force,
                              int64_t wanted)
{
    float high = wanted >= 0 && force ? 1000.0f : 1.0f, low = 0.0f;
    entries best = fill_cards_greedily(sizes, n, cards, n_cards, high, wanted);

    while (high - low > 1e-6f) {
        float mid = (low + high) / 2;
        if (mid == low || mid == high)           /* neighbours: further apart than 1e-6 from 16 on */
            break;
        entries attempt = fill_cards_greedily(sizes, n, cards, n_cards, mid, wanted);
        if (attempt.placed == best.placed) {
            high = mid;
            best = attempt;
        } else
            low = mid;
    }
    return best;
}

static void put_in_front(entries *l, const entries *front)
{
    memmove(&l->e[front->n], &l->e[0], l->n * sizeof l->e[0]);
    memcpy(&l->e[0], &front->e[0], front->n * sizeof l->e[0]);
    l->n += front->n;
    l->placed += front->placed;
}

/* Discrete cards take the last layers, integrated ones what is left. */
static entries fit(const uint64_t *sizes, uint64_t n, const card *cards, size_t n_cards, int64_t wanted, bool force)
{
    entries l = { 0 };

    for (int pass = 0; pass < 2; pass++) {
        bool integrated = pass == 0 ? cards[0].integrated : !cards[0].integrated;
        card class[EBB_OLLAMA_GPUS];
        size_t n_class = 0;
        for (size_t i = 0; i < n_cards; i++)
            if (cards[i].integrated == integrated)
                class[n_class++] = cards[i];
        if (n_class == 0)
            continue;
        entries best = smallest_share(sizes, n, class, n_class, force, wanted);
        n -= best.placed;
        wanted -= (int64_t)best.placed;
        put_in_front(&l, &best);
    }
    return l;
}

static entries place_on_cards(const placer *p, card *cards, size_t n_cards, size_t last_used)
{
    int64_t wanted = p->opts->num_gpu;
    bool spread = p->opts->spread, force = !p->opts->require_full;
    uint64_t n = p->n_sizes;
    entries l = { 0 };

    if (wanted >= 0 || spread)
        for (size_t i = 0; i < n_cards; i++)
            cards[i].integrated = false;
    for (int round = 0; round < 2; round++) {
        if (wanted > (int64_t)n)
            wanted = (int64_t)n;
        if (spread)
            l = fit(p->sizes, n, cards, n_cards, wanted, force);
        else
            for (size_t i = last_used; i < n_cards; i++) {
                l = fit(p->sizes, n, cards, i + 1, wanted, force && i + 1 == n_cards);
                if (l.placed == n || (wanted >= 0 && l.placed == (uint64_t)wanted))
                    break;
            }
        if (l.placed == n)
            return l;
        n--;                                     /* the output layer is the first to stay behind */
    }
    return l;
}

/* Non-integrated cards first, then by free memory; equal ones keep their order. */
static void sort_cards(card *cards, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0; j--) {
            card *a = &cards[j - 1], *b = &cards[j];
            if (a->integrated < b->integrated || (a->integrated == b->integrated && a->free >= b->free))
                break;
            card t = *a;
            *a = *b;
            *b = t;
        }
}

static entries build_placement(const placer *p)
{
    card cards[EBB_OLLAMA_GPUS];
    entries best = { 0 };

    for (size_t i = 0; i < p->n_gpus; i++)
        cards[i] = (card){ i, p->free[i], p->gpus[i].library, p->gpus[i].integrated };
    sort_cards(cards, p->n_gpus);
    for (size_t i = 0; i < p->n_gpus; i++) {
        card group[EBB_OLLAMA_GPUS];
        size_t n = 0, last_used = 0;
        bool seen = false;
        for (size_t j = 0; j < i; j++)
            seen |= strcmp(cards[j].library, cards[i].library) == 0;
        for (size_t j = i; j < p->n_gpus && !seen; j++) {
            if (strcmp(cards[j].library, cards[i].library) != 0)
                continue;
            uint64_t minimum = (uint64_t)(strcmp(cards[j].library, "Metal") == 0 ? 512 : 457) << 20;
            group[n] = cards[j];
            if (p->graph[cards[j].index])
                last_used = n;
            group[n].free = minus(group[n].free, minimum + p->opts->overhead_bytes + p->graph[cards[j].index]);
            n++;
        }
        if (n == 0)
            continue;
        entries l = place_on_cards(p, group, n, last_used);
        if (l.placed > best.placed)
            best = l;
    }
    return best;
}

static ebb_status check_placement(const placer *p, const entries *l, uint64_t cpu_bytes, ebb_error *err)
{
    const ebb_ollama_options *o = p->opts;

    if (o->require_full && p->n_gpus > 0 && l->placed < p->n_sizes &&
        (o->num_gpu < 0 || l->placed < (uint64_t)o->num_gpu))
        return EBB_FAIL(err, EBB_BUDGET, "%llu of %llu layers fit the GPUs, but all are required",
                        (unsigned long long)l->placed, (unsigned long long)p->n_sizes);
    if (o->system_free_bytes && cpu_bytes > o->system_free_bytes)
        return EBB_FAIL(err, EBB_BUDGET, "%llu bytes would be left to the CPU, which has %llu",
                        (unsigned long long)cpu_bytes, (unsigned long long)o->system_free_bytes);
    return EBB_OK;
}

static uint64_t left_for_cpu(const placer *p, const entries *l)
{
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < p->n_sizes; i++)
        bytes += p->sizes[i];
    for (size_t i = 0; i < l->n; i++)
        for (size_t j = 0; j < l->e[i].n; j++)
            bytes -= p->sizes[l->e[i].first + j];
    return bytes;
}

/* Place, charge the graph to the cards in use, place again, until no further card is needed. */
static ebb_status iterate(placer *p, uint64_t graph, entries *l, ebb_error *err)
{
    size_t previous;

    memset(l, 0, sizeof *l);
    do {
        previous = l->n;
        *l = build_placement(p);
        ebb_status st = check_placement(p, l, left_for_cpu(p, l), err);
        if (st != EBB_OK)
            return st;
        if (l->n <= previous)
            break;
        for (size_t i = 0; i < l->n; i++)
            p->graph[l->e[i].gpu] = graph;
    } while (1);
    return EBB_OK;
}

/* The card a separate vision projector goes to; n_gpus if there is none. */
static size_t projector_card(const placer *p)
{
    if (!p->opts->projector_bytes || !p->n_gpus)
        return p->n_gpus;
    for (size_t i = 0; i < p->n_gpus; i++)
        if (!p->gpus[i].integrated)
            return i;
    return 0;
}

static void display(ebb_ollama_layout *out)
{
    if (out->vram_bytes == 0)
        snprintf(out->ps, sizeof out->ps, "100%% CPU");
    else if (out->vram_bytes == out->total_bytes)
        snprintf(out->ps, sizeof out->ps, "100%% GPU");
    else if (out->vram_bytes > out->total_bytes)
        snprintf(out->ps, sizeof out->ps, "Unknown");
    else {
        int cpu = (int)round(100 * (double)(out->total_bytes - out->vram_bytes) / (double)out->total_bytes);
        snprintf(out->ps, sizeof out->ps, "%d%%/%d%% CPU/GPU", cpu, 100 - cpu);
    }
}

static void fill_layout(const placer *p, const entries *l, const ebb_ollama_graph *g, ebb_ollama_layout *out)
{
    size_t projector = projector_card(p);

    out->n_entries = l->n;
    out->n_on_gpu = l->placed;
    out->n_total = p->n_sizes;
    out->is_full = l->placed == p->n_sizes;
    memcpy(out->graph_per_gpu, p->graph, sizeof out->graph_per_gpu);
    for (size_t i = 0; i < l->n; i++) {
        size_t gpu = l->e[i].gpu;
        out->entry[i].gpu = gpu;
        out->entry[i].first = l->e[i].first;
        out->entry[i].n = l->e[i].n;
        out->graph_per_gpu[gpu] = out->is_full ? g->resolved_full : g->resolved_partial;
        for (size_t j = 0; j < l->e[i].n; j++)
            out->gpu_bytes[gpu] += p->sizes[l->e[i].first + j];
    }
    for (size_t i = 0; i < p->n_gpus; i++) {
        out->gpu_bytes[i] += out->graph_per_gpu[i];
        if (i == projector && i != 0)            /* the original's report leaves GPU 0's projector out */
            out->gpu_bytes[i] += p->opts->projector_bytes;
        out->vram_bytes += out->gpu_bytes[i];
    }
    out->cpu_bytes = left_for_cpu(p, l);
    out->total_bytes = out->vram_bytes + out->cpu_bytes;
    display(out);
}

ebb_status ebb_ollama_place(const ebb_ollama_model *o, const ebb_ollama_graph *g, const ebb_ollama_gpu *gpus,
                            size_t n_gpus, const ebb_ollama_options *opts, ebb_ollama_layout *out, ebb_error *err)
{
    placer p = { .n_sizes = o->n_layers + 1, .opts = opts, .gpus = gpus, .n_gpus = n_gpus };
    uint64_t *sizes, graph = g->resolved_partial > g->resolved_full ? g->resolved_partial : g->resolved_full;
    size_t projector;
    entries l;
    ebb_status st;

    memset(out, 0, sizeof *out);
    if (n_gpus > EBB_OLLAMA_GPUS)
        return EBB_FAIL(err, EBB_LIMIT, "%zu GPUs: at most %d can be described", n_gpus, EBB_OLLAMA_GPUS);
    p.sizes = sizes = calloc(p.n_sizes, sizeof *sizes);
    if (!sizes)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu layers", (unsigned long long)p.n_sizes);
    for (uint64_t i = 0; i < o->n_layers; i++) {
        sizes[i] = o->has_layer[i] ? o->layer_bytes[i] + g->kv[i] : 0;
        out->weight_bytes += o->layer_bytes[i];
    }
    sizes[o->n_layers] = o->output_norm_bytes + (o->has_output ? o->output_bytes : o->token_embd_bytes);
    out->weight_bytes += sizes[o->n_layers];
    out->buffer_bytes = o->n_layers && o->has_layer[0] ? sizes[0] : 0;
    projector = projector_card(&p);
    for (size_t i = 0; i < n_gpus; i++) {
        p.free[i] = minus(gpus[i].free_bytes, out->buffer_bytes);
        if (i == projector)
            p.free[i] = minus(p.free[i], opts->projector_bytes);
    }
    st = iterate(&p, graph, &l, err);
    if (st == EBB_OK)
        fill_layout(&p, &l, g, out);
    free(sizes);
    return st;
}
