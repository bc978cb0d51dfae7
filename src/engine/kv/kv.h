/* kv/kv.h - keys and values of the positions that stand: one pool of blocks.
 *
 * The pool is one allocation made at open.  A block holds EBB_KV_BLOCK positions
 * (aligned to absolute positions) of all layers:
 *
 *     block:  layer 0 | layer 1 | ...        each layer at a multiple of 64 bytes
 *     layer:  K [head][position][dim_k] | V [head][position][dim_v]
 *
 * A table is the list of blocks of one timeline.  Timelines share the blocks of
 * a common beginning by counting references.  A full block may be given a name
 * (a hash of all tokens up to its end); when its last reference goes it stays in
 * the pool and can be found again, until its room is needed: the one that was let
 * go longest ago first, which of one timeline is the deepest.
 *
 * Invariants:
 *  K1  A block that is shared or has a name is never written: growing a timeline
 *      whose last, partly filled block is such a one copies that block first.
 *      (Where no block is free it loses its name instead.)
 *  K2  A table holds exactly ceil(n_pos / EBB_KV_BLOCK) blocks.
 *  K3  free blocks (those that can only be found among them) + blocks with references = n_blocks.
 *  K4  No two blocks have the same name.
 *
 * Threads: the calls from the thread that runs passes; rows of different
 * positions or heads may be written by different threads at once. */
#ifndef EBB_KV_H
#define EBB_KV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"
#include "kernels/kernels.h"

typedef struct ebb_kv_layer {
    uint32_t n_head;             /* KV heads; 0: a layer without KV */
    uint32_t dim_k, dim_v;       /* elements of a row */
} ebb_kv_layer;

typedef struct ebb_kv_shape {
    uint32_t            n_layers;
    const ebb_kv_layer *layers;  /* read by open and by the size functions, not kept */
    ebb_kv_type         k_type, v_type;
} ebb_kv_shape;

typedef struct ebb_kv ebb_kv;

typedef struct ebb_kv_table {
    uint32_t *blocks;            /* owned; room for cap */
    uint32_t  n_blocks, cap;
    uint32_t  n_pos;             /* positions that stand */
} ebb_kv_table;

/* Bytes of one block, and the blocks that n_ctx positions take (one more than
 * they fill: the copy of a shared block needs room). */
uint64_t ebb_kv_block_bytes(const ebb_kv_shape *shape);
uint32_t ebb_kv_blocks_for(uint32_t n_ctx);

/* n_blocks blocks, untouched until written.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_open(const ebb_kv_shape *shape, uint32_t n_blocks, ebb_kv **out, ebb_error *err);
void ebb_kv_close(ebb_kv *kv);                   /* NULL is fine */
uint64_t ebb_kv_bytes(const ebb_kv *kv);         /* of the pool */
uint32_t ebb_kv_n_free(const ebb_kv *kv);        /* blocks, named ones without references among them */
size_t   ebb_kv_size_of_block(const ebb_kv *kv);
void    *ebb_kv_data(const ebb_kv *kv, uint32_t block);  /* all layers of a block */

/* A table for at most n_ctx positions.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_table_init(ebb_kv_table *t, uint32_t n_ctx, ebb_error *err);
void ebb_kv_table_fini(ebb_kv *kv, ebb_kv_table *t);     /* a zeroed table is fine */

/* Make positions [t->n_pos, n_pos) writable; t->n_pos = n_pos.  On failure
 * nothing has changed.  Errors: BUDGET (no free block), CONTEXT (beyond cap). */
EBB_MUST_CHECK
ebb_status ebb_kv_grow(ebb_kv *kv, ebb_kv_table *t, uint32_t n_pos, ebb_error *err);
/* Make the blocks from block i on the table's own, writable and without a name: what others hold
 * is copied.  On failure no content has changed.  Error: BUDGET (no free block). */
EBB_MUST_CHECK
ebb_status ebb_kv_own(ebb_kv *kv, ebb_kv_table *t, uint32_t i, ebb_error *err);
/* Keep the first n_pos positions. */
void ebb_kv_cut(ebb_kv *kv, ebb_kv_table *t, uint32_t n_pos);
/* Make *t the first n_pos positions of *from (n_pos <= from->n_pos); what it held goes. */
void ebb_kv_share(ebb_kv *kv, ebb_kv_table *t, const ebb_kv_table *from, uint32_t n_pos);

/* -- Blocks that can be found --------------------------------------------------- */

#define EBB_KV_NONE UINT32_MAX
/* Name block i of the table, which is full; does nothing if a block has that name. */
void ebb_kv_name(ebb_kv *kv, const ebb_kv_table *t, uint32_t i, const uint8_t name[16]);
/* The block of that name, or EBB_KV_NONE. */
uint32_t ebb_kv_find(const ebb_kv *kv, const uint8_t name[16]);
/* Append a full block to a table of full blocks. */
void ebb_kv_adopt(ebb_kv *kv, ebb_kv_table *t, uint32_t block);
/* A reference that no table holds (a writer's), and its end. */
void ebb_kv_hold(ebb_kv *kv, uint32_t block);
void ebb_kv_release(ebb_kv *kv, uint32_t block);

/* First row (position 0 of the block) of a KV head. */
void *ebb_kv_k(const ebb_kv *kv, uint32_t block, uint32_t layer, uint32_t head);
void *ebb_kv_v(const ebb_kv *kv, uint32_t block, uint32_t layer, uint32_t head);
size_t ebb_kv_k_row_bytes(const ebb_kv *kv, uint32_t layer);
size_t ebb_kv_v_row_bytes(const ebb_kv *kv, uint32_t layer);

#endif
