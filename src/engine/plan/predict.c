/* What a plan will cost in time (plan/layout.h): t = max(S / Bd, F / Bm, C) + t_sync. */
#include "plan/layout.h"

#define MEMORY_BYTES_S  10e9                     /* per core, where it was not measured */
#define DISK_BYTES_S    1e9
#define INT8_MAC_S      60e9
#define SYNC_S          40e-6                    /* of an operation: handing slices out and back */
#define OPS_PER_LAYER   7
#define PROMPT_TOKENS   64

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void ebb_plan_predict(const ebb_net *net, const ebb_machine *m, ebb_plan *p)
{
    double memory = m->memory_bytes_s > 0 ? m->memory_bytes_s : MEMORY_BYTES_S * p->n_threads;
    double disk = m->disk_bytes_s > 0 ? m->disk_bytes_s : DISK_BYTES_S;
    double mac_s = m->int8_mac_s > 0 ? m->int8_mac_s : INT8_MAC_S * p->n_threads;
    double read_s = (double)p->stream_bytes / disk, touch_s = (double)p->pass_bytes / memory;
    double sync_s = SYNC_S * OPS_PER_LAYER * p->n_layers, pass_s = larger(read_s, touch_s) + sync_s;
    double macs = 0;

    for (uint32_t i = 0; i < net->n_extents && net->extents[i].group < net->n_layers; i++)  /* few columns need the output */
        macs += (double)net->extents[i].n_elems * (net->extents[i].is_certain ? 1 : (double)net->n_expert_used / net->n_expert);
    p->predicted_decode_tok_s = 1 / pass_s;
    p->predicted_prefill_tok_s = p->n_chunk / (larger(macs * p->n_chunk / mac_s, read_s) + sync_s);
    p->predicted_load_s = p->is_mapped ? 0 : (double)(p->weights_resident_bytes) / disk;
    p->predicted_first_token_s = p->predicted_load_s + pass_s + larger(macs * PROMPT_TOKENS / mac_s, read_s);
    if (p->is_mapped)                            /* its pages come with the first pass */
        p->predicted_first_token_s += (double)p->weights_resident_bytes / disk;
}
