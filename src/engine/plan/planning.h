/* plan/planning.h - a plan under way: what was chosen so far, and the bytes that takes. */
#ifndef EBB_PLANNING_H
#define EBB_PLANNING_H
#include "plan/layout.h"

/* Heap, stacks, page tables and what the kernel holds for us: so much ... */
#define EBB_PLAN_FIXED_BYTES ((uint64_t)16 << 20)
/* ... and one part in so many of the resident weights. */
#define EBB_PLAN_FIXED_SHARE 200u

/* Addresses that a process has beside what is planned, memory or not: program and heaps ... */
#define EBB_PLAN_OWN_ADDRESSES ((uint64_t)128 << 20)
/* ... and the stack of each thread that computes. */
#define EBB_PLAN_STACK_ADDRESSES ((uint64_t)8 << 20)

typedef struct ebb_planning {
    ebb_net      *net;           /* written to by the layout only */
    const ebb_engine_opts *o;
    ebb_kv_layer *layers;        /* [ebb_net_n_kv_layers] */
    bool         *is_resident;   /* [n_extents] by the choices made so far */
    bool          in_memory;     /* the whole file is: nothing to pin or stream */
    bool          is_live;       /* the buffers are placed: they are not laid out again */
    const ebb_machine *machine;
    ebb_plan     *p;             /* choices and bytes */
} ebb_planning;

/* Bytes of memory of a pinned extent: whole pages, as direct reads need them. */
uint64_t ebb_plan_pinned_bytes(const ebb_res_extent *x);
/* Fills in the bytes of the plan for the choices made so far.  Cost: linear in the extents. */
void ebb_planning_count(const ebb_planning *q);

#endif
