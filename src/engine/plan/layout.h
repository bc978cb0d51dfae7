/* plan/layout.h - the one function by which buffers are counted and placed.
 *
 * `ebb plan`, the panel and ebb_engine_open all use it, so what is planned and
 * what is allocated cannot differ. */
#ifndef EBB_LAYOUT_H
#define EBB_LAYOUT_H
#include "ebb/experimental/plan.h"
#include "model/forward.h"
#include "plan/expert_profile.h"
#include "plan/kernel_meter.h"
#include "plan/speeds.h"
#include "residency/read_speed.h"

#define EBB_DRAFT_MAX_LOOKUP 7u  /* draft tokens of a pass by prompt lookup ... */
#define EBB_DRAFT_MAX_MODEL 31u  /* ... and by a draft model; the rows of logits are one more */
/* States: a live one, some at fixed distances, the ends of the last prompts ... */
#define EBB_N_STATE_SLOTS 6u
/* ... which are fewer where passes are to take several sequences, with a live one each: beside
 * those one is written to disk and one free at least. */
#define EBB_N_STATE_SPARE 2u
#define EBB_MAX_STATE_SLOTS (EBB_MAX_SEQUENCES + EBB_N_STATE_SPARE)
static inline uint32_t ebb_n_state_slots(uint32_t n_sequences)
{
    uint32_t least = n_sequences + EBB_N_STATE_SPARE;

    return least > EBB_N_STATE_SLOTS ? least : EBB_N_STATE_SLOTS;
}

/* Vectors of `net` and buffers of `run`, whose net, n_threads, cap_tokens, n_ctx
 * and cap_logits are set. */
void ebb_layout_arena(ebb_net *net, ebb_forward *run, ebb_arena *a);
/* Set those fields of *run after what was planned. */
void ebb_layout_run(const ebb_plan *plan, const ebb_net *net, ebb_forward *run);
/* What is kept of keys and values; layers[n_layers] is filled. */
ebb_kv_shape ebb_layout_kv(const ebb_plan *plan, const ebb_net *net, ebb_kv_layer *layers);
/* Heap of a session and its sampler. */
uint64_t ebb_layout_session_bytes(const ebb_net *net, uint32_t n_ctx);

/* ebb_plan_make for a network that is bound already.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_plan_net(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                        const ebb_machine *machine, ebb_plan *out, ebb_error *err);
/* The same beside a draft model that takes draft_bytes, for passes with n_draft_max draft tokens;
 * opts->draft is ignored. */
EBB_MUST_CHECK
ebb_status ebb_plan_beside_draft(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                                 const ebb_machine *machine,
                           uint64_t draft_bytes, uint32_t n_draft_max, ebb_plan *out,
                           ebb_error *err);

/* The plan of opts->draft as the draft model of `host`: all of it in memory, the same context if it
 * was trained for that. */
EBB_MUST_CHECK
ebb_status ebb_plan_draft(ebb_net *net, const ebb_engine_opts *opts, const ebb_plan *host,
                          ebb_plan *out, ebb_error *err);
/* What a draft of that plan takes beside its host. */
uint64_t ebb_plan_draft_bytes(const ebb_plan *draft);

/* ebb_plan_refit below, with a draft of draft_bytes (0: none) if it is worth its room there, else
 * without.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_plan_refit_draft(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                                const ebb_machine *machine,
                                uint64_t budget_bytes, uint64_t draft_bytes, ebb_plan *p,
                                ebb_error *err);
/* Plan anew for another budget with the context, KV, chunk and draft_bytes that *p has:
 * only the layers that are resident change, and what is predicted.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_plan_refit(ebb_net *net, const ebb_model *m, const ebb_engine_opts *opts,
                          const ebb_machine *machine, uint64_t budget_bytes, ebb_plan *p,
                          ebb_error *err);
/* The types that `model` has a part of its weights in, a bit each. */
uint64_t ebb_machine_types(const ebb_model *model);
/* What *m does not have yet of `types`, from what was measured before; true: it has all of them
 * then. */
bool ebb_machine_recall_types(ebb_machine *m, const ebb_speeds *known, uint64_t types);
/* Time those of `types` that *m does not have yet, for now and for later. */
void ebb_machine_measure_types(ebb_machine *m, ebb_meter *meter, uint64_t types, ebb_speeds *known);

/* The readers of one disk, as they were measured on it. */
typedef struct ebb_disk_speeds {
    uint64_t       device;
    ebb_io         io;           /* of the machine's figures: the one that is asked for, AUTO: the
                                  * best */
    ebb_read_speed rest[EBB_IO_MMAP + 1];
} ebb_disk_speeds;
/* Of the disk d->device and d->io, from what was measured in the last day; false: nothing is
 * known. */
bool ebb_machine_recall_disk(ebb_machine *m, const ebb_speeds *known, ebb_disk_speeds *d);
/* Time all readers with `measure`, at rest, and the chosen one while the meter multiplies
 * load_bytes, for now and for later.  Error: NOMEM. */
typedef void ebb_measure_disk_fn(void *arg, ebb_io only, ebb_read_speed speeds[EBB_IO_MMAP + 1]);
EBB_MUST_CHECK
ebb_status ebb_machine_measure_disk(ebb_machine *m, ebb_meter *meter, uint64_t load_bytes,
                                    ebb_measure_disk_fn *measure, void *arg,
                                    ebb_disk_speeds *d, ebb_speeds *known, ebb_error *err);
/* Real passes were `factor` times as fast as *m says, while others had `contention` of the
 * machine's processor time: *known learns that the types are, or the disk (d not NULL), and *m is
 * what is known then. */
void ebb_machine_correct_speeds(ebb_machine *m, uint64_t types, const ebb_disk_speeds *d,
                                double factor, double contention, ebb_speeds *known);
/* The file's device; 0: unknown. */
uint64_t ebb_machine_device(const ebb_model *model);
/* Bytes of a ring that any layer can be streamed through. */
uint64_t ebb_plan_ring_bytes(const ebb_net *net);
/* The least: one slot, for the largest part. */
uint64_t ebb_plan_ring_min_bytes(const ebb_net *net);
/* The least memory for streamed experts: twice what a layer chooses. */
uint64_t ebb_plan_experts_min_bytes(const ebb_net *net);
/* USAGE: more threads than are of any use on the machine, so many that a pass takes minutes. */
EBB_MUST_CHECK
ebb_status ebb_machine_check_threads(const ebb_machine *m, const ebb_engine_opts *opts,
                                     ebb_error *err);
/* What earlier runs learned of the model's experts (expert_profile.h). */
void ebb_machine_recall_experts(ebb_machine *m, const ebb_model *model);
void ebb_machine_set_experts(ebb_machine *m, const ebb_expert_profile *u);
/* A share `miss_rate` of what is chosen is read: *p streams so much. */
void ebb_plan_set_miss_rate(const ebb_net *net, ebb_plan *p, double miss_rate);
/* Fill the predicted figures (plan_predict.c). */
void ebb_plan_predict(const ebb_net *net, const ebb_machine *machine, ebb_plan *p);
/* Seconds of n_tokens of a prompt after n_past that are cached, in chunks of p->n_batch; is_first:
 * of the first ones after opening, which find no experts in their cache and the page cache as it
 * was. */
double ebb_plan_prompt_s(const ebb_net *net, const ebb_machine *machine, const ebb_plan *p,
                         uint32_t n_past, uint32_t n_tokens, bool is_first);
/* Seconds of a draft token of the net's draft head, whose experts are in memory. */
double ebb_plan_head_s(const ebb_net *net, const ebb_machine *machine, const ebb_plan *p);
/* Seconds of a pass of n_tokens columns at depth 0, logits of all of them wanted. */
double ebb_plan_pass_s(const ebb_net *net, const ebb_machine *machine, const ebb_plan *p,
                       uint32_t n_tokens);
/* How much faster or slower the disk was than *machine says, where a pass at depth 0 took pass_s
 * and waited for reads; 0: it did not wait. */
double ebb_plan_disk_factor(const ebb_net *net, const ebb_machine *machine, const ebb_plan *p,
                            double pass_s);
/* Its predicted decode speed at a depth of n_pos positions, whose K and V are read too: as far as
 * the plan has them in memory from there, the rest from the file; and less weights are in memory
 * than at first. */
double ebb_plan_decode_tok_s_at(const ebb_plan *p, const ebb_machine *machine, uint32_t n_pos);
/* The same where so many bytes of them are in memory and in the file, and so many of what the plan
 * streams are in memory at present. */
double ebb_plan_decode_tok_s_with(const ebb_plan *p, const ebb_machine *machine,
                                  double memory_bytes, double file_bytes, double lent_read_bytes);
/* The plan as it is while lent_read_bytes of what it streams are in memory and no more is lent. */
ebb_plan ebb_plan_with_lent(const ebb_plan *p, const ebb_machine *machine,
                            uint64_t lent_read_bytes);

/* -- Memory of K and V that is lent to layers (plan_lend.c) -- */

/* The group that is lent memory as the i-th, i <= n_layers, and gives it back as the i-th last:
 * what is outside the layers, then every other layer, then the others, so that what is read again
 * is placed beside what is not. */
uint32_t ebb_plan_lend_order(uint32_t n_layers, uint32_t i);
/* What of kv_bytes can be lent while taken_bytes of them are in use: the next chunk has room in any
 * case.  0: the plan lends nothing. */
uint64_t ebb_plan_lendable_bytes(const ebb_plan *p, uint64_t taken_bytes);
/* What K and V may take while so much is lent; UINT64_MAX: nothing is. */
uint64_t ebb_plan_kv_limit(const ebb_plan *p, uint64_t lent_bytes);
/* Fill lent_bytes and what belongs to them; is_resident as ebb_plan_resident_extents has it. */
void ebb_plan_lend(const ebb_net *net, ebb_plan *p, const bool *is_resident);
/* Replace the types that would hurt this network (of 4-bit K where K has biases or heads are
 * narrower than a block: stories260K's perplexity rises by half; whatever is below f16 where heads
 * have sinks); the reason, or NULL: they suit. */
const char *ebb_plan_fix_kv_types(const ebb_net *net, ebb_kv_type *k, ebb_kv_type *v);
/* Which extents the plan keeps in memory, to stays[net->n_extents]; placement as in the options.
 * Returns what is left of its bytes for experts as they are used. */
uint64_t ebb_plan_resident_extents(const ebb_net *net, const ebb_plan *plan,
                                   ebb_placement placement, bool *is_resident);

#endif
