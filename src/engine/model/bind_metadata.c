/* What a network takes from the file's metadata, and the first failure (bind.h). */
#include "model/bind.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "model/arch.h"

/* -- Failing ----------------------------------------------------------------- */

void ebb_bind_fail(ebb_binder *b, ebb_status st, const char *fmt, ...)
{
    char msg[400];
    va_list ap;

    if (b->st != EBB_OK)
        return;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    b->st = EBB_FAIL(b->err, st, "%s", msg);
}

/* -- Numbers ----------------------------------------------------------------- */

const ebb_gguf_kv *ebb_bind_key(ebb_binder *b, const char *key)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(b->g, key);

    if (kv)
        b->is_read[kv - ebb_gguf_get_key(b->g, 0)] = true;
    return kv;
}

/* "llama.block_count"; keys without a prefix of the architecture are whole already. */
static const char *prefix_of(const ebb_binder *b, const char *key)
{
    return key[0] == '.' ? b->net->arch->name : "";
}

static void fail_value(ebb_binder *b, const char *key, const char *why)
{
    ebb_bind_fail(b, EBB_UNSUPPORTED, "metadata %s%s: %s", prefix_of(b, key), key, why);
}

uint32_t ebb_bind_u32_or(ebb_binder *b, const char *key, uint32_t otherwise, uint32_t min, uint32_t max)
{
    uint64_t v = otherwise;

    if (b->st != EBB_OK)
        return min;
    if (ebb_bind_key(b, key) && !ebb_gguf_get_u64(b->g, key, &v))
        fail_value(b, key, "is not a whole number");
    else if (v < min || v > max)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: %llu is not in %u..%u", b->net->arch->name, key,
                      (unsigned long long)v, min, max);
    return b->st == EBB_OK ? (uint32_t)v : min;
}

uint32_t ebb_bind_u32_at(ebb_binder *b, const char *key, uint32_t i, uint32_t otherwise, uint32_t min, uint32_t max)
{
    const ebb_gguf_kv *kv = ebb_bind_key(b, key);
    uint64_t v = otherwise;

    if (!kv || kv->type != EBB_GGUF_ARRAY)
        return ebb_bind_u32_or(b, key, otherwise, min, max);
    if (!ebb_gguf_item_u64(kv, i, &v))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: has no whole number for layer %u", b->net->arch->name, key, i);
    else if (v < min || v > max)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: %llu of layer %u is not in %u..%u", b->net->arch->name, key,
                      (unsigned long long)v, i, min, max);
    return b->st == EBB_OK ? (uint32_t)v : min;
}

uint32_t ebb_bind_u32_most(ebb_binder *b, const char *key, uint32_t otherwise, uint32_t min, uint32_t max)
{
    const ebb_gguf_kv *kv = ebb_bind_key(b, key);
    uint32_t most = min;

    if (!kv || kv->type != EBB_GGUF_ARRAY)
        return ebb_bind_u32_or(b, key, otherwise, min, max);
    for (uint32_t i = 0; i < b->net->n_layers && b->st == EBB_OK; i++) {
        uint32_t v = ebb_bind_u32_at(b, key, i, otherwise, 0, max);

        most = v > most ? v : most;
    }
    return most;
}

uint32_t ebb_bind_u32(ebb_binder *b, const char *key, uint32_t min, uint32_t max)
{
    if (b->st == EBB_OK && !ebb_bind_key(b, key))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s is missing", b->net->arch->name, key);
    return ebb_bind_u32_or(b, key, min, min, max);
}

uint32_t ebb_bind_product(ebb_binder *b, const char *key, uint64_t a, uint64_t n, uint32_t max)
{
    uint64_t v = 0;

    if (b->st == EBB_OK && (!ebb_size_mul(a, n, &v) || v > max))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: %llu x %llu is an impossible size, above %u",
                      b->net->arch->name, key, (unsigned long long)a, (unsigned long long)n, max);
    return b->st == EBB_OK ? (uint32_t)v : 0;
}

double ebb_bind_f64_or(ebb_binder *b, const char *key, double otherwise)
{
    double v = otherwise;

    if (ebb_bind_key(b, key) && !ebb_gguf_get_f64(b->g, key, &v))
        fail_value(b, key, "is not a number");
    if (!isfinite(v))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s is not finite", prefix_of(b, key), key);
    return v;
}

double ebb_bind_f64_at(ebb_binder *b, const char *key, uint32_t i, double otherwise)
{
    const ebb_gguf_kv *kv = ebb_bind_key(b, key);
    double v = otherwise;

    if (!kv || kv->type != EBB_GGUF_ARRAY)
        return ebb_bind_f64_or(b, key, otherwise);
    if (!ebb_gguf_item_f64(kv, i, &v) || !isfinite(v))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: has no number for layer %u", prefix_of(b, key), key, i);
    return v;
}

bool ebb_bind_bool_or(ebb_binder *b, const char *key, bool otherwise)
{
    if (ebb_bind_key(b, key) && !ebb_gguf_get_bool(b->g, key, &otherwise))
        fail_value(b, key, "is neither true nor false");
    return otherwise;
}

const char *ebb_bind_string(ebb_binder *b, const char *key)
{
    const char *s = ebb_gguf_get_string(b->g, key);

    if (ebb_bind_key(b, key) && !s)
        fail_value(b, key, "is not a string");
    return s;
}

void ebb_bind_leave_out(ebb_binder *b, ebb_status st, const char *name, const char *why)
{
    ebb_net *net = b->net;

    if (b->st != EBB_OK)
        return;
    if (!b->is_forced)
        ebb_bind_fail(b, st, "%s: %s; --force leaves it out, and answers may then be wrong", name, why);
    else if (net->n_left_out++ == 0)
        snprintf(net->left_out, sizeof net->left_out, "%s", name);
}

bool ebb_bind_is_listed(const char *const *list, const char *key)
{
    for (; list && *list; list++) {
        size_t n = strlen(*list);

        if (strcmp(*list, key) == 0 || ((*list)[n - 1] == '.' && strncmp(*list, key, n) == 0))
            return true;
    }
    return false;
}

void ebb_bind_only(ebb_binder *b, const char *key, double value)
{
    ebb_bind_either(b, key, value, value);
}

void ebb_bind_either(ebb_binder *b, const char *key, double value, double or_value)
{
    double v = ebb_bind_is_listed(b->net->arch->harmless, key) ? value : ebb_bind_f64_or(b, key, value);
    char name[160], why[120];

    if (fabs(v - value) <= 1e-4 * fabs(value) || fabs(v - or_value) <= 1e-4 * fabs(or_value))
        return;
    snprintf(name, sizeof name, "metadata %s%s", prefix_of(b, key), key);
    snprintf(why, sizeof why, "is %g; %s is supported only with %g", v, b->net->arch->name, value);
    ebb_bind_leave_out(b, EBB_UNSUPPORTED, name, why);
}
