/* Which types of KV suit a network (plan/layout.h). */

#include "plan/layout.h"

#define NARROW 32u               /* elements of a block */

static bool has_vector(const ebb_net *net, const float *const *to)
{
    for (uint32_t i = 0; i < net->n_vectors; i++)
        if (net->vectors[i].to == to)
            return true;
    return false;
}

static bool has_k_bias(const ebb_net *net)
{
    for (uint32_t i = 0; i < net->n_layers; i++)
        if (has_vector(net, (const float *const *)&net->layers[i].k.bias))
            return true;
    return false;
}

static bool has_sinks(const ebb_net *net)
{
    for (uint32_t i = 0; i < net->n_layers; i++)
        if (has_vector(net, (const float *const *)&net->layers[i].sinks))
            return true;
    return false;
}

const char *ebb_plan_fix_kv_types(const ebb_net *net, ebb_kv_type *k, ebb_kv_type *v)
{
    bool is_k = *k == EBB_KV_Q8_0 || *k == EBB_KV_Q4_0, is_v = *v == EBB_KV_Q8_0 || *v == EBB_KV_Q4_0;

    if ((is_k || is_v) && has_sinks(net)) {
        *k = is_k ? EBB_KV_F16 : *k;
        *v = is_v ? EBB_KV_F16 : *v;
        return "KV stays f16: attention sinks do not tolerate less precision";
    }
    if (*k == EBB_KV_Q4_0 && has_k_bias(net)) {
        *k = EBB_KV_Q8_0;
        return "K stays q8_0: with biases on K, 4 bits are too few";
    }
    if (*k == EBB_KV_Q4_0 && net->dim_k < NARROW) {
        *k = EBB_KV_Q8_0;
        return "K stays q8_0: narrow heads that share a block do not tolerate 4 bits";
    }
    return NULL;
}
