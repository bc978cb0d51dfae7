/* A plan with a draft model or a draft head: counted before the layers are chosen, and judged (plan/layout.h).
 *
 * First the plan without a draft model: that decides context and KV, so that it changes no answer. What it takes then
 * is known, and layers are chosen in what is left.  A draft head takes little, so the plan with it comes first, and
 * the other one only where a part of the model has no place.  Both plans are predicted; the speed with draft tokens is
 *
 *     E(k) / (t(1 + k) + k d),  E(k) = 1 + a + ... + a^k
 *
 * for the best k, with t(n) the time of a pass over n tokens, d that of a draft token, and an acceptance rate a that
 * can only be assumed here. */
#include <stdio.h>
#include <string.h>

#include "open/model_file.h"
#include "plan/layout.h"
#include "speculate/draft_head.h"

#define MIB         ((uint64_t)1 << 20)
#define DRAFT_CHUNK 128u         /* columns in which the draft model takes in a text: its buffers are small */

ebb_status ebb_plan_draft(ebb_net *net, const ebb_engine_opts *opts, const ebb_plan *host, ebb_plan *out,
                          ebb_error *err)
{
    ebb_machine room = { .available_bytes = UINT64_MAX / 4, .n_cpus = host->n_threads };
    bool has_q8 = ebb_net_kv_unit(net, EBB_KV_Q8_0, EBB_KV_Q8_0) > 0;
    ebb_engine_opts o = {
        .n_ctx = host->n_ctx < net->n_ctx_train ? host->n_ctx : net->n_ctx_train, .n_threads = host->n_threads,
        .n_batch = host->n_batch < DRAFT_CHUNK ? host->n_batch : DRAFT_CHUNK, .has_resident = true,
        .resident = net->n_layers,
        .has_kv = true, .kv_k = has_q8 ? EBB_KV_Q8_0 : EBB_KV_F16, .kv_v = has_q8 ? EBB_KV_Q8_0 : EBB_KV_F16,
    };
    ebb_status st;

    ebb_net_drop_draft_head(net);                /* it drafts for another */
    st = ebb_plan_beside_draft(net, opts->draft, &o, &room, 0, 0, out, err);
    out->is_mapped = out->is_mapped || (host->is_mapped && host->stream_bytes == 0);
    out->predicted_decode_tok_s = out->predicted_prefill_tok_s = 0;      /* its host measures them, as draft tokens */
    return st;
}

/* -- Judging --------------------------------------------------------------------- */

typedef struct judging {
    const ebb_net     *net;
    const ebb_machine *machine;
    double             accept_rate;      /* assumed */
    double             draft_s;          /* of a draft token */
    uint32_t           n_most;           /* draft tokens of a pass */
} judging;

/* The same network in other types agrees more often than a smaller one of the family. */
static double assumed_accept_rate(const ebb_model *m, const ebb_model *draft)
{
    const ebb_model_info *a = ebb_model_get_info(m), *b = ebb_model_get_info(draft);
    bool is_same = strcmp(a->arch, b->arch) == 0 && a->n_layers == b->n_layers && a->n_embd == b->n_embd &&
                   a->n_ff == b->n_ff;

    return is_same ? EBB_ACCEPT_RATE_SAME : EBB_ACCEPT_RATE_FAMILY;
}

static void find_best_length(const judging *j, ebb_plan *p)
{
    double chance = 1, tokens = 1;

    p->draft_accept_rate = j->accept_rate;
    p->draft_length = 0;
    p->draft_tok_s = 1 / ebb_plan_pass_s(j->net, j->machine, p, 1);
    for (uint32_t k = 1; k <= j->n_most; k++) {
        double rate;

        chance *= p->draft_accept_rate;
        tokens += chance;
        rate = tokens / (ebb_plan_pass_s(j->net, j->machine, p, k + 1) + k * j->draft_s);
        if (rate > p->draft_tok_s) {
            p->draft_tok_s = rate;
            p->draft_length = k;
        }
    }
}

static void leave_draft_out(ebb_plan *p, const ebb_plan *alone, const char *why)
{
    double right = p->draft_accept_rate;

    *p = *alone;
    p->draft_accept_rate = right;
    snprintf(p->draft_why, sizeof p->draft_why, "left out: %s", why);
}

/* *p is the plan with the draft, *alone that without. */
static void judge_draft(const judging *j, const ebb_plan *alone, ebb_plan *p)
{
    unsigned long long mib = p->draft_bytes / MIB;
    char why[140];

    p->no_draft_tok_s = alone->predicted_decode_tok_s;
    if (p->fits)
        find_best_length(j, p);
    if (!p->fits || p->kv_spill_bytes > alone->kv_spill_bytes) {
        snprintf(why, sizeof why, "its %llu MiB do not fit beside the model", mib);
        leave_draft_out(p, alone, why);
    } else if (p->stream_bytes > alone->stream_bytes && p->draft_tok_s <= p->no_draft_tok_s) {
        snprintf(why, sizeof why,
                 "its %llu MiB take the place of layers; %.2f tok/s are expected with it and %.2f without", mib,
                 p->draft_tok_s, p->no_draft_tok_s);
        leave_draft_out(p, alone, why);
    } else if (p->draft_length == 0) {
        snprintf(p->draft_why, sizeof p->draft_why, "no gain is expected: a draft token costs more than it saves");
    } else {
        snprintf(p->draft_why, sizeof p->draft_why,
                 "%.2f tok/s are expected with %u draft tokens a pass if %.0f %% are accepted, %.2f without it",
                 p->draft_tok_s, p->draft_length, 100 * p->draft_accept_rate, p->no_draft_tok_s);
    }
}

static judging judging_of(const ebb_net *net, const ebb_machine *machine, const ebb_model *m,
                          const ebb_engine_opts *opts, const ebb_net *draft_net, const ebb_plan *draft)
{
    return (judging){
        .net = net, .machine = machine, .accept_rate = assumed_accept_rate(m, opts->draft),
        .draft_s = ebb_plan_pass_s(draft_net, machine, draft, 1), .n_most = EBB_DRAFT_MAX_MODEL,
    };
}

/* -- Plans ------------------------------------------------------------------------- */

/* *p, a plan without a draft, becomes one with it if that is worth it. */
static ebb_status add_draft_model(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                                  const ebb_machine *machine, ebb_net *draft_net, ebb_plan *p, ebb_error *err)
{
    ebb_engine_opts o = *opts;
    ebb_plan alone = *p, draft;
    ebb_status st = ebb_plan_draft(draft_net, opts, p, &draft, err);
    judging j;

    if (st != EBB_OK)
        return st;
    j = judging_of(net, machine, m, opts, draft_net, &draft);
    o.n_ctx = p->n_ctx;
    o.has_kv = true;
    o.kv_k = p->kv_k;
    o.kv_v = p->kv_v;
    st = ebb_plan_beside_draft(net, m, &o, machine, ebb_plan_draft_bytes(&draft), EBB_DRAFT_MAX_MODEL, p, err);
    if (st != EBB_OK)
        return st;
    if (p->tier < alone.tier) {                  /* context and KV, which are given here, had been made to fit */
        p->tier = alone.tier;
        memcpy(p->why, alone.why, sizeof p->why);
    }
    judge_draft(&j, &alone, p);
    return EBB_OK;
}

/* What a forced file asks for and does not get. */
static void name_left_out(const ebb_net *net, ebb_plan *p)
{
    if (net->n_left_out == 1)
        snprintf(p->left_out, sizeof p->left_out,
                 "%s is not understood and is left out (--force): answers may be wrong",
                 net->left_out);
    else if (net->n_left_out > 1)
        snprintf(p->left_out, sizeof p->left_out,
                 "%.150s and %u more are not understood and are left out (--force): answers may be wrong",
                 net->left_out, net->n_left_out - 1);
}

/* Where layers are streamed, a head that is not worth their memory leaves it to them: *p is the plan without it then.
 * One that is told how many tokens to draft stays. */
static ebb_status judge_head(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts, const ebb_machine *machine,
                             ebb_plan *p, ebb_error *err)
{
    judging j = { .net = net, .machine = machine, .accept_rate = EBB_ACCEPT_RATE_HEAD,
                  .draft_s = ebb_plan_head_s(net, machine, p), .n_most = EBB_DRAFT_HEAD_MOST };
    ebb_net alone_net = *net;
    ebb_plan alone = *p;
    ebb_status st = EBB_OK;

    ebb_net_drop_draft_head(&alone_net);
    if (p->stream_bytes > 0)
        st = ebb_plan_beside_draft(&alone_net, m, opts, machine, 0, EBB_DRAFT_MAX_LOOKUP, &alone, err);
    if (st != EBB_OK)
        return st;
    p->no_draft_tok_s = alone.predicted_decode_tok_s;
    find_best_length(&j, p);
    if (opts && opts->n_draft > 0) {
        snprintf(p->draft_head, sizeof p->draft_head, "drafts %u tokens in each pass, as was asked", opts->n_draft);
    } else if (p->draft_tok_s > p->no_draft_tok_s) {
        snprintf(p->draft_head, sizeof p->draft_head,
                 "%.2f tok/s are expected if %.0f %% of its draft tokens are accepted, %.2f without it",
                 p->draft_tok_s, 100 * p->draft_accept_rate, p->no_draft_tok_s);
    } else if (p->stream_bytes > alone.stream_bytes) {
        snprintf(alone.draft_head, sizeof alone.draft_head,
                 "not used: its memory is worth more to layers; %.2f tok/s are expected with it and %.2f without",
                 p->draft_tok_s, p->no_draft_tok_s);
        alone.draft_accept_rate = p->draft_accept_rate;
        alone.draft_tok_s = p->draft_tok_s;
        alone.no_draft_tok_s = p->no_draft_tok_s;
        *p = alone;
        *net = alone_net;
    } else {
        snprintf(p->draft_head, sizeof p->draft_head, "no gain is expected: a draft token costs more than it saves");
    }
    return EBB_OK;
}

/* The plan with the file's draft head, where it is of use; else without. */
static ebb_status plan_with_head(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                                 const ebb_machine *machine, ebb_plan *p, ebb_error *err)
{
    const char *why = opts && opts->no_speculation ? "drafting is off"
                    : opts && opts->draft          ? "a draft model is named"
                                                   : NULL;
    bool has_head = net->has_draft_head;
    ebb_status st = EBB_OK;

    if (has_head && !why) {
        st = ebb_plan_beside_draft(net, m, opts, machine, 0, EBB_DRAFT_MAX_LOOKUP, p, err);
        if (st != EBB_OK)
            return st;
        if (p->fits && !p->streams_draft_head)
            return judge_head(net, m, opts, machine, p, err);
        why = "what it reads for each draft token does not fit in memory";
    }
    ebb_net_drop_draft_head(net);
    st = ebb_plan_beside_draft(net, m, opts, machine, 0, EBB_DRAFT_MAX_LOOKUP, p, err);
    if (has_head)
        snprintf(p->draft_head, sizeof p->draft_head, "not used: %s", why);
    else if (net->n_mtp_layers > 0)
        snprintf(p->draft_head, sizeof p->draft_head,
                 "the file declares one, but its tensors are missing or not understood");
    return st;
}

ebb_status ebb_plan_net(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                        const ebb_machine *machine, ebb_plan *p, ebb_error *err)
{
    ebb_status st = plan_with_head(net, m, opts, machine, p, err);
    ebb_net draft_net;

    name_left_out(net, p);
    if (st != EBB_OK || !opts || !opts->draft || opts->no_speculation || !p->fits)
        return st;
    st = ebb_net_bind(&draft_net, ebb_model_gguf(opts->draft), false, err);
    if (st != EBB_OK)
        return st;
    st = ebb_model_check_draft(m, opts->draft, err);
    if (st == EBB_OK)
        st = add_draft_model(net, m, opts, machine, &draft_net, p, err);
    ebb_net_fini(&draft_net);
    return st;
}

ebb_status ebb_plan_refit_draft(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                                const ebb_machine *machine, uint64_t budget_bytes, uint64_t draft_bytes, ebb_plan *p,
                                ebb_error *err)
{
    ebb_plan alone = *p, draft;
    ebb_net draft_net;
    ebb_status st;

    alone.draft_bytes = 0;
    alone.draft_tok_s = alone.draft_length = 0;
    p->draft_bytes = draft_bytes;
    st = ebb_plan_refit(net, m, opts, machine, budget_bytes, &alone, err);
    if (st == EBB_OK && draft_bytes == 0)
        *p = alone;
    if (st != EBB_OK || draft_bytes == 0)
        return st;
    st = ebb_net_bind(&draft_net, ebb_model_gguf(opts->draft), false, err);
    if (st != EBB_OK)
        return st;
    st = ebb_plan_refit(net, m, opts, machine, budget_bytes, p, err);
    if (st == EBB_OK)
        st = ebb_plan_draft(&draft_net, opts, p, &draft, err);
    if (st == EBB_OK) {
        judging j = judging_of(net, machine, m, opts, &draft_net, &draft);

        judge_draft(&j, &alone, p);
    }
    ebb_net_fini(&draft_net);
    return st;
}
