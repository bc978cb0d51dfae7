/* The choices of a plan: context, KV type, layers, chunk (ebb/experimental/plan.h, plan/layout.h). */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "open/model_file.h"
#include "plan/planning.h"

#define CHUNK_DEFAULT   512u
#define CHUNK_MAX       EBB_MAX_BATCH
#define WIDER_COST      0.03                     /* what an answer may be slower by for a wider chunk */
#define CHUNK_MIN       64u
#define CTX_MIN         512u
#define OPEN_BLOCKS     4u                       /* of K and V, that are in memory beside those of a step */
#define COMFORT_PERCENT 90u                      /* of the budget: up to here the page cache holds the weights */

/* -- Everything in memory, or as much as fits -------------------------------------- */

static uint32_t usual_ctx(const ebb_net *net, ebb_mode mode)
{
    uint32_t want = mode == EBB_MODE_MAX_CONTEXT ? net->n_ctx_train : mode == EBB_MODE_MAX_TPS ? 4096
                                                                                                 : EBB_CTX_USUAL;

    return want < net->n_ctx_train ? want : net->n_ctx_train;
}

/* The context that is worth more than resident layers. */
static uint32_t min_ctx(const ebb_planning *q)
{
    uint32_t usual = usual_ctx(q->net, q->o->mode);
    uint32_t least = q->o->mode == EBB_MODE_MAX_CONTEXT ? usual : q->o->mode == EBB_MODE_MAX_TPS ? 2048 : 4096;

    return q->o->n_ctx ? q->o->n_ctx : least < usual ? least : usual;
}

static void set_why(ebb_plan *p, ebb_tier tier, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void set_why(ebb_plan *p, ebb_tier tier, const char *fmt, ...)
{
    va_list ap;

    p->tier = tier;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof p->why, fmt, ap);
    va_end(ap);
}

static bool use_q8_kv(const ebb_planning *q)
{
    bool has_k = q->o->has_kv && q->o->kv_k != EBB_KV_AUTO, has_v = q->o->has_kv && q->o->kv_v != EBB_KV_AUTO;
    ebb_kv_type k = has_k ? q->p->kv_k : EBB_KV_Q8_0, v = has_v ? q->p->kv_v : EBB_KV_Q8_0;

    if ((has_k && has_v) || !ebb_net_kv_unit(q->net, EBB_KV_Q8_0, EBB_KV_Q8_0) || ebb_plan_fix_kv_types(q->net, &k, &v))
        return false;
    q->p->kv_k = k;
    q->p->kv_v = v;
    ebb_planning_count(q);
    return true;
}

static uint64_t whole_bytes(const ebb_net *net)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < net->n_extents; i++)
        sum += ebb_plan_pinned_bytes(&net->extents[i]);
    return sum;
}

/* The layers that the bytes make up are for the reader's eye. */
static void set_spread(const ebb_planning *q, uint64_t bytes)
{
    ebb_plan *p = q->p;
    uint64_t whole = whole_bytes(q->net);

    assert(whole > 0);                           /* no model is bound without weights */
    p->is_spread = p->streams_output = true;
    p->spread_bytes = bytes;
    p->n_resident = (uint32_t)(ebb_size_times(bytes, p->n_layers) / whole);
    ebb_planning_count(q);
}

/* As many bytes of weights as fit. */
static bool fit_spread(const ebb_planning *q)
{
    ebb_plan *p = q->p;

    p->n_resident = p->n_layers;
    ebb_planning_count(q);
    if (p->total_bytes <= p->budget_bytes)
        return true;
    set_spread(q, 0);
    if (p->total_bytes > p->budget_bytes)
        return false;
    set_spread(q, (p->budget_bytes - p->total_bytes) / (EBB_PLAN_FIXED_SHARE + 1) * EBB_PLAN_FIXED_SHARE);
    return true;
}

/* Everything resident. */
static void set_full(const ebb_planning *q)
{
    ebb_plan *p = q->p;

    p->is_spread = p->streams_output = false;
    p->n_resident = p->n_layers;
    ebb_planning_count(q);
}

/* What of the choices takes least: all streamed, but where the model is in memory already or smaller than the ring. */
static void set_least(const ebb_planning *q)
{
    uint64_t full;

    set_full(q);
    full = q->p->total_bytes;
    if (!q->in_memory)
        set_spread(q, 0);
    if (full < q->p->total_bytes && !q->o->has_resident)
        set_full(q);
}

static uint32_t asked_layers(const ebb_planning *q)
{
    uint64_t n = q->net->n_layers;

    if (q->o->has_resident)
        n = q->o->resident_is_percent ? n * q->o->resident / 100 : q->o->resident;
    return n < q->net->n_layers ? (uint32_t)n : q->net->n_layers;
}

/* Nobody can choose them where all are in memory already. */
static bool asks_for_layers(const ebb_planning *q)
{
    return q->o->has_resident && q->o->resident > 0 && !q->in_memory;
}

/* As many bytes as fit, or the layers that the user asked for, with the output or without. */
static bool fit_layers(const ebb_planning *q)
{
    ebb_plan *p = q->p;

    p->is_spread = p->streams_output = false;
    if (q->in_memory) {
        set_full(q);
        return p->total_bytes <= p->budget_bytes;
    }
    if (!q->o->has_resident && q->o->placement == EBB_PLACEMENT_INTERLEAVED)
        return fit_spread(q);
    if (q->o->has_resident && q->o->resident_is_percent && q->o->placement == EBB_PLACEMENT_INTERLEAVED) {
        set_spread(q, ebb_size_times(whole_bytes(q->net), q->o->resident) / 100);
        return p->total_bytes <= p->budget_bytes;
    }
    p->n_resident = asked_layers(q);             /* whatever was tried before */
    for (int without = 0; without < 2; without++) {
        p->streams_output = without;
        for (uint32_t n = p->n_layers + 1; !q->o->has_resident && n-- > 0;) {
            p->n_resident = n;
            ebb_planning_count(q);
            if (p->total_bytes <= p->budget_bytes)
                return true;
        }
        ebb_planning_count(q);
        if (q->o->has_resident && p->total_bytes <= p->budget_bytes)
            return true;
    }
    p->streams_output = false;
    ebb_planning_count(q);
    return false;
}

/* Everything in memory: f16 KV, then q8_0, then less context. */
static bool try_full(const ebb_planning *q)
{
    ebb_plan *p = q->p;

    p->n_resident = p->n_layers;
    ebb_planning_count(q);
    set_why(p, EBB_TIER_FULL, "everything fits");
    if (p->total_bytes <= p->budget_bytes)
        return true;
    if (use_q8_kv(q))
        set_why(p, EBB_TIER_TIGHT, "everything fits with KV in q8_0");
    while (p->total_bytes > p->budget_bytes && p->n_ctx / 2 >= min_ctx(q)) {
        p->n_ctx /= 2;
        ebb_planning_count(q);
        set_why(p, EBB_TIER_TIGHT, "everything fits with a context of %u", p->n_ctx);
    }
    return p->total_bytes <= p->budget_bytes;
}

/* The pool is reserved as a whole whatever is in memory of it, and its file is mapped beside it; as is the model's, and
 * what the process has of its own, of which nothing is promised. */
static bool has_addresses_for_file(const ebb_planning *q)
{
    const ebb_machine *m = q->machine;
    uint64_t n = ebb_size_plus(q->p->total_bytes, q->p->kv_bytes), own = EBB_PLAN_OWN_ADDRESSES;

    own += q->p->n_threads * EBB_PLAN_STACK_ADDRESSES + (q->in_memory ? 0 : ebb_net_weight_bytes(q->net));
    return (m->promised_bytes == 0 || n <= m->promised_bytes) &&
           (m->address_bytes == 0 || ebb_size_plus(n, own) <= m->address_bytes);
}

/* Bytes of a block of K and V, and how many can be in a file: all but those of a step. */
static uint64_t spillable_blocks(const ebb_planning *q, uint64_t *block)
{
    ebb_kv_shape shape = ebb_layout_kv(q->p, q->net, q->layers);
    uint64_t n = ebb_kv_blocks_of(q->p->n_ctx) + 1, least = ebb_kv_blocks_of(q->p->n_batch) + OPEN_BLOCKS;

    *block = ebb_kv_all_block_bytes(&shape);
    if (q->o->no_kv_cache || q->o->kv_seal || asks_for_layers(q) || *block == 0 || n <= least)
        return 0;
    return n - least;
}

/* As many blocks of K and V in a file as are too many. */
static bool spill_kv_to_file(const ebb_planning *q)
{
    ebb_plan *p = q->p;
    uint64_t block, most = spillable_blocks(q, &block), more;

    if (most == 0 || p->kv_spill_bytes > 0)
        return false;
    set_least(q);
    more = (p->total_bytes - p->budget_bytes + block - 1) / block;
    if (p->total_bytes <= p->budget_bytes || p->total_bytes == UINT64_MAX || more > most ||
        !has_addresses_for_file(q))
        return false;
    p->kv_spill_bytes = more * block;
    return true;
}

static void why_streaming(ebb_plan *p)
{
    char read[16], out[16], all[16];

    set_why(p, p->n_resident ? EBB_TIER_STREAMING : EBB_TIER_CRITICAL,
            "%u of %u layers fit; %s are read for each token", p->n_resident, p->n_layers,
            ebb_size_text(p->stream_bytes, read));
    if (p->lent_bytes > 0)
        set_why(p, p->tier, "%u of %u layers fit beside a full context, %u beside an empty one; "
                            "up to %s are read for each token", p->n_resident, p->n_layers, p->n_resident_first, read);
    ebb_size_text(p->kv_spill_bytes, out);
    ebb_size_text(p->kv_bytes + p->kv_spill_bytes, all);
    if (p->kv_spill_bytes && p->stream_bytes == 0)
        set_why(p, EBB_TIER_CRITICAL, "the weights fit; %s of %s of K and V go to a file", out, all);
    else if (p->kv_spill_bytes)
        set_why(p, EBB_TIER_CRITICAL,
                "no layer fits, and %s of %s of K and V go to a file; up to %s are read for each token", out, all,
                ebb_size_text(p->stream_bytes + p->kv_spill_bytes, read));
}

/* What K and V do not use yet.  Who says how many layers stay gets no more. */
static void lend_memory(const ebb_planning *q)
{
    ebb_plan *p = q->p;

    p->lent_bytes = p->lent_read_bytes = 0;
    p->n_resident_first = p->n_resident;
    if (!q->o->has_resident)
        ebb_plan_lend(q->net, p, q->is_resident);
}

static bool halve_chunk(const ebb_planning *q)
{
    if (q->o->n_batch || q->p->n_batch / 2 < CHUNK_MIN)
        return false;
    q->p->n_batch /= 2;
    return true;
}

static bool halve_ctx(const ebb_planning *q, uint32_t least)
{
    if (q->o->n_ctx || q->p->n_ctx / 2 < least)
        return false;
    q->p->n_ctx /= 2;
    return true;
}

/* Part of the weights is read for each pass. */
static bool try_streaming(const ebb_planning *q)
{
    ebb_plan *p = q->p;

    if (!q->o->has_resident || !fit_layers(q))   /* layers that are not asked for cost room */
        (void)use_q8_kv(q);
    while (!fit_layers(q))
        if (!halve_chunk(q) && !halve_ctx(q, min_ctx(q)) && !spill_kv_to_file(q) && !halve_ctx(q, CTX_MIN))
            return false;
    lend_memory(q);
    why_streaming(p);
    if (p->stream_bytes == 0 && p->kv_spill_bytes == 0)
        set_why(p, EBB_TIER_TIGHT, "everything fits with a chunk of %u and a context of %u", p->n_batch, p->n_ctx);
    return true;
}

/* What the least would be: with the layers that the user asked for; else with K and V in a file as far as they can be,
 * where that is still to be chosen.  true: with them there less would do, and there are no addresses for that file. */
static bool set_smallest_plan(const ebb_planning *q)
{
    ebb_plan *p = q->p;
    uint64_t block, n;

    if (asks_for_layers(q)) {
        p->kv_spill_bytes = 0;
        (void)fit_layers(q);
        p->streams_output = true;
        ebb_planning_count(q);
        return false;
    }
    set_least(q);
    n = q->is_live || p->total_bytes == UINT64_MAX ? 0 : spillable_blocks(q, &block);
    if (n == 0)
        return false;
    if (!has_addresses_for_file(q))
        return p->total_bytes - n * block <= p->budget_bytes;
    p->kv_spill_bytes = n * block;
    set_least(q);
    return false;
}

/* For the message. */
static void explain_refusal(const ebb_planning *q, const char *limit)
{
    ebb_plan *p = q->p;
    uint64_t n = q->machine->address_bytes;
    bool lacks_addresses = set_smallest_plan(q) && (n == 0 || p->budget_bytes < n);   /* else limit says it */
    char need[16], have[16];

    p->min_bytes = p->total_bytes;
    ebb_size_text_up(p->total_bytes, need);      /* whoever gives what is named gets it */
    ebb_size_text_down(p->budget_bytes, have);
    if (asks_for_layers(q) && p->n_resident > 0)
        set_why(p, EBB_TIER_CRITICAL, "%u resident layers take %s; there is room for %s (%.60s); fewer would fit",
                p->n_resident, need, have, limit);
    else
        set_why(p, EBB_TIER_CRITICAL, "a context of %u needs at least %s; there is room for %s (%.60s)%s", p->n_ctx,
                need, have, limit, lacks_addresses ? "; K and V in a file lack addresses (ulimit -v, overcommit)" : "");
}

/* Half a thousand tokens choose nearly every expert of every layer, and so do several thousand: each doubling of the
 * chunk halves what a token of a long prompt reads.  It costs memory for activations, which experts then lack; so a
 * chunk is doubled as long as a prompt gains by it and an answer loses little. */
static void widen_chunk(const ebb_planning *q)
{
    ebb_plan *p = q->p;
    double least_tok_s;

    if (q->o->n_batch || p->expert_read_bytes == 0)
        return;
    ebb_plan_predict(q->net, q->machine, p);
    least_tok_s = p->predicted_decode_tok_s * (1 - WIDER_COST);
    for (ebb_plan narrow = *p; p->n_batch * 2 <= CHUNK_MAX && p->n_batch * 2 <= p->n_ctx; narrow = *p) {
        p->n_batch *= 2;
        if (fit_layers(q)) {
            ebb_plan_predict(q->net, q->machine, p);
            if (p->predicted_decode_tok_s >= least_tok_s &&
                p->predicted_prefill_tok_s >= narrow.predicted_prefill_tok_s)
                continue;
        }
        *p = narrow;
        ebb_planning_count(q);
        break;
    }
    why_streaming(p);
}

static void choose_plan(const ebb_planning *q, const char *limit)
{
    ebb_plan *p = q->p;
    const char *other_kv;

    p->n_ctx = q->o->n_ctx ? q->o->n_ctx : usual_ctx(q->net, q->o->mode);
    p->kv_k = q->o->has_kv && q->o->kv_k != EBB_KV_AUTO ? q->o->kv_k : EBB_KV_F16;
    p->kv_v = q->o->has_kv && q->o->kv_v != EBB_KV_AUTO ? q->o->kv_v : EBB_KV_F16;
    other_kv = ebb_plan_fix_kv_types(q->net, &p->kv_k, &p->kv_v);
    p->n_resident = asked_layers(q);
    p->is_mapped = q->in_memory;
    if (q->in_memory || p->n_resident == p->n_layers) {
        p->fits = try_full(q);
        if (!q->o->has_resident && p->total_bytes <= p->budget_bytes / 100 * COMFORT_PERCENT)
            p->is_mapped = true;
        ebb_planning_count(q);
    }
    if (!p->fits) {
        p->fits = try_streaming(q);
        if (p->fits)
            widen_chunk(q);
    }
    if (!p->fits)
        explain_refusal(q, limit);
    if (p->lent_bytes == 0)
        p->n_resident_first = p->n_resident;
    if (other_kv) {
        size_t n = strlen(p->why);

        snprintf(p->why + n, sizeof p->why - n, "; %s", other_kv);
    }
}

/* -- The longest context ---------------------------------------------------------- */

#define CTX_STEP  256u           /* of the search */
#define CTX_LEAST 4096u          /* with less than that in f16, q8_0 is worth more */

typedef struct longest {
    const ebb_planning *q;
    const char     *limit;
    ebb_plan        start;       /* the plan as it is before any choice */
    bool            may_stream;  /* only K and V have to be in memory */
} longest;

/* The plan for so many tokens; whether it keeps in memory what has to be there. */
static bool try_ctx(const longest *l, ebb_engine_opts *o, uint32_t n_ctx)
{
    ebb_planning q = *l->q;
    ebb_plan *p = q.p;

    o->n_ctx = n_ctx;
    q.o = o;
    *p = l->start;
    choose_plan(&q, l->limit);
    return p->fits && p->kv_spill_bytes == 0 && (l->may_stream || p->stream_bytes == 0);
}

/* The most tokens that try_ctx takes; 0: none.  Bytes grow with the context, so halving finds it. */
static uint32_t find_longest(const longest *l, ebb_engine_opts *o)
{
    uint32_t train = l->q->net->n_ctx_train, low = 0, high = train / CTX_STEP + 1;

    if (try_ctx(l, o, train))
        return train;
    while (low + 1 < high) {
        uint32_t mid = low + (high - low) / 2;
        *(try_ctx(l, o, mid * CTX_STEP) ? &low : &high) = mid;
    }
    return low * CTX_STEP;
}

static uint32_t find_longest_with(const longest *l, ebb_engine_opts *o, ebb_kv_type type)
{
    o->has_kv = true;
    o->kv_k = o->kv_v = type;
    return find_longest(l, o);
}

/* A plan for EBB_CTX_MAX (ebb/engine.h). */
static void choose_longest(const ebb_planning *q, const char *limit)
{
    longest l = { .q = q, .limit = limit, .start = *q->p };
    ebb_engine_opts o = *q->o, f16 = o, q8_0 = o;
    uint32_t n, n_q8;
    size_t end;

    n = o.has_kv ? find_longest(&l, &o) : find_longest_with(&l, &f16, EBB_KV_F16);
    if (!o.has_kv && n < CTX_LEAST && ebb_net_kv_unit(q->net, EBB_KV_Q8_0, EBB_KV_Q8_0)) {
        n_q8 = find_longest_with(&l, &q8_0, EBB_KV_Q8_0);
        o = n_q8 > n ? q8_0 : f16;
        n = n_q8 > n ? n_q8 : n;
    } else if (!o.has_kv) {
        o = f16;
    }
    if (n == 0) {
        l.may_stream = true;
        o = *q->o;
        n = find_longest(&l, &o);
    }
    (void)try_ctx(&l, &o, n);                    /* n is 0 where nothing runs: then choose_plan says what would */
    end = strlen(q->p->why);
    if (n > 0)
        snprintf(q->p->why + end, sizeof q->p->why - end, "; the longest context in memory");
}

static ebb_status begin_planning(ebb_planning *q, const ebb_model *m, ebb_error *err)
{
    const ebb_net *net = q->net;

    q->layers = calloc(ebb_net_n_kv_layers(net), sizeof *q->layers);
    q->is_resident = calloc(net->n_extents, sizeof *q->is_resident);
    if (!q->layers || !q->is_resident)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %u layers", net->n_layers);
    q->in_memory = ebb_model_is_in_memory(m);
    return EBB_OK;
}

static void end_planning(ebb_planning *q)
{
    free(q->layers);
    free(q->is_resident);
}

static const ebb_engine_opts defaults;

ebb_status ebb_plan_beside_draft(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                                 const ebb_machine *machine, uint64_t draft_bytes, uint32_t n_draft_max, ebb_plan *p,
                                 ebb_error *err)
{
    ebb_planning q = { .net = net, .o = opts ? opts : &defaults, .p = p, .machine = machine };
    bool is_capped = q.o->ram_bytes && q.o->ram_bytes < machine->available_bytes;
    uint32_t chunk = q.o->n_batch ? q.o->n_batch : CHUNK_DEFAULT;
    ebb_status st = begin_planning(&q, m, err);

    memset(p, 0, sizeof *p);
    p->n_threads = q.o->n_threads ? q.o->n_threads : machine->n_cpus > 0 ? machine->n_cpus : 1;
    p->n_layers = net->n_layers;
    p->draft_bytes = draft_bytes;
    p->n_draft_max = n_draft_max;
    p->n_sequences = q.o->n_sequences > 1 ? q.o->n_sequences : 1;
    p->n_sequences = p->n_sequences < EBB_MAX_SEQUENCES ? p->n_sequences : EBB_MAX_SEQUENCES;
    p->tokenizer_bytes = ebb_model_bytes(m);
    p->n_batch = chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
    p->budget_bytes = is_capped ? q.o->ram_bytes : machine->available_bytes;
    p->pass_bytes = ebb_net_pass_bytes(net);
    if (st == EBB_OK) {
        (q.o->n_ctx == EBB_CTX_MAX ? choose_longest : choose_plan)(&q, is_capped ? "--ram" : machine->available_why);
        ebb_plan_predict(net, machine, p);
    }
    end_planning(&q);
    if (st == EBB_OK && !ebb_net_kv_unit(net, p->kv_k, p->kv_v))
        st = EBB_FAIL(err, EBB_UNSUPPORTED,
                      "this KV type needs rows of a multiple of 32 elements; here they have %u heads of %u; "
                      "--kv f16 works",
                      net->n_head_kv, net->dim_k);
    return st;
}

ebb_status ebb_plan_refit(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                          const ebb_machine *machine, uint64_t budget_bytes, ebb_plan *p, ebb_error *err)
{
    ebb_engine_opts o = opts ? *opts : defaults;
    ebb_planning q = { .net = net, .o = &o, .p = p, .is_live = true, .machine = machine };
    ebb_status st = begin_planning(&q, m, err);

    if (st != EBB_OK) {
        end_planning(&q);
        return st;
    }
    o.has_resident = false;
    p->budget_bytes = budget_bytes;
    p->is_mapped = q.in_memory;
    p->fits = fit_layers(&q);
    lend_memory(&q);
    if (p->fits && (p->stream_bytes > 0 || p->kv_spill_bytes > 0))
        why_streaming(p);
    else if (p->fits)
        set_why(p, p->kv_k == EBB_KV_F16 ? EBB_TIER_FULL : EBB_TIER_TIGHT, "everything fits");
    else
        explain_refusal(&q, "the budget");
    if (p->fits && p->stream_bytes == 0 && p->total_bytes <= budget_bytes / 100 * COMFORT_PERCENT)
        p->is_mapped = true;
    if (p->fits)
        ebb_planning_count(&q);
    ebb_plan_predict(net, machine, p);
    end_planning(&q);
    return EBB_OK;
}

ebb_status ebb_plan_make(const ebb_model *m, const ebb_engine_opts *opts,
                         const ebb_machine *machine, ebb_plan *out, ebb_error *err)
{
    ebb_net net;
    ebb_status st = ebb_net_bind(&net, ebb_model_gguf(m), opts && opts->is_forced, err);

    memset(out, 0, sizeof *out);
    if (st != EBB_OK)
        return st;
    st = ebb_plan_net(&net, m, opts, machine, out, err);
    ebb_net_fini(&net);
    return st;
}

double ebb_plan_first_prompt_s(const ebb_model *m, const ebb_engine_opts *opts, const ebb_machine *machine,
                               const ebb_plan *plan, uint32_t n_tokens)
{
    ebb_net net;
    double s;

    if (ebb_net_bind(&net, ebb_model_gguf(m), opts && opts->is_forced, NULL) != EBB_OK)
        return 0;
    s = ebb_plan_prompt_s(&net, machine, plan, 0, n_tokens, true);
    ebb_net_fini(&net);
    return s;
}
