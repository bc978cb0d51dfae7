/* chat/models/plan_text.h - a plan for people to read: `ebb plan`, /plan, /mem. */
#ifndef EBB_CHAT_PLAN_TEXT_H
#define EBB_CHAT_PLAN_TEXT_H
#include "base/buf.h"
#include "base/size.h"
#include "ebb/experimental/plan.h"

/* Tokens per second with as many digits as they are worth: "0.35", "4.0", "49", "6000". */
const char *ebb_speed_text(double tok_s, char out[16]);
/* "f16", "q8_0/q4_0". */
const char *ebb_plan_kv_text(const ebb_plan *p, char out[24]);

/* "f16", "q8_0/q4_0": o->kv_k and kv_v; false: it is no such type, and nothing was changed. */
bool ebb_kv_parse(const char *text, ebb_engine_opts *o);

/* The parts of total_bytes, in the order in which the budget is filled from below. */
#define EBB_PLAN_PARTS 8
typedef struct ebb_plan_part {
    const char *key, *label;     /* "kv", "KV cache" */
    uint64_t    bytes;
} ebb_plan_part;
void ebb_plan_parts(const ebb_plan *p, ebb_plan_part out[EBB_PLAN_PARTS]);

/* The longest context that the model was trained for, or its positions are stretched to: by YaRN
 * or linearly, where the file says how long it was before and by how much. */
uint32_t ebb_plan_trained_ctx(const ebb_model *m);

/* The whole plan as a table with bars, and what it means; lines of 72 columns at most
 * but for names.  The model's name is as the file has it: unfiltered. */
void ebb_plan_text(ebb_buf *out, const ebb_model *m, const ebb_machine *machine, const ebb_plan *p);

/* What a budget would bring, in one line: tier, resident layers, predicted speed. */
void ebb_plan_line(ebb_buf *out, const ebb_plan *p);

#endif
