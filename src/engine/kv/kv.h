/* kv/kv.h - keys and values of the positions that stand: pools of blocks.
 *
 * A block holds EBB_KV_BLOCK positions (aligned to absolute positions) of the
 * layers of a group.  Layers that see everything are one group, those that see
 * a window another one, whose pool is smaller: a sequence keeps only the blocks
 * that its next position sees.
 *
 *     block:  layer 0 | layer 1 | ...        each layer at a multiple of 64 bytes
 *     layer:  K [head][position][dim_k] | V [head][position][dim_v]
 *
 * All is one allocation, made at open.  A table is the list of blocks of one
 * sequence, for each group.  Sequences share the blocks of
 * a common beginning by counting references.  A full block may be given a name
 * (a hash of all tokens up to its end); when its last reference goes it stays in
 * the pool and can be found again, until its room is needed: the one that was let
 * go longest ago first, which of one sequence is the deepest.
 *
 * Invariants:
 *  K1  A block that is shared or has a name is never written: growing a sequence
 *      whose last, partly filled block is such a one copies that block first.
 *      (Where no block is free it loses its name instead.)
 *  K2  A table has exactly ceil(n_pos / EBB_KV_BLOCK) places in each group.  A place of the
 *      windows' group may be EBB_KV_NONE; before a table grows, all that its next
 *      position sees (from ebb_kv_first_visible on) must be there.
 *  K3  free blocks (those that can only be found among them) + blocks with references = n_blocks.
 *  K4  No two blocks of a group have the same name.
 *
 * A block is
 *
 *     free       no references, no name                     on the stack
 *     findable   no references, a name                      on the list, oldest first; in a bucket
 *     own        one reference, no name                     the only state in which it is written
 *     shared     two references or more, or a name and one  read by all who hold it
 *
 * and of the states with a name each may be out as well (spill.c).  All moves are made by the
 * thread that runs passes; a writer of the disk cache holds a reference that this thread took and
 * gives back for it (ebb_kv_ref), and reads meanwhile.
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
    bool     has_window;         /* sees the last `window` positions only */
} ebb_kv_layer;

typedef struct ebb_kv_shape {
    uint32_t            n_layers;
    const ebb_kv_layer *layers;  /* read by open and by the size functions, not kept */
    ebb_kv_type         k_type, v_type;
    uint32_t            window;  /* of the layers that have one */
    uint32_t            n_ctx, n_batch;  /* positions of the longest sequence; of the longest
                                          * step */
} ebb_kv_shape;

/* Layers that see everything; a window.  Where a window's pool would not be the smaller one, all
 * layers are of the first. */
enum { EBB_KV_ALL, EBB_KV_WINDOW, EBB_KV_GROUPS };

typedef struct ebb_kv ebb_kv;

typedef struct ebb_block_table {
    uint32_t *blocks[EBB_KV_GROUPS];     /* owned; room for cap */
    uint32_t  n_blocks, cap;
    uint32_t  n_pos;             /* positions that stand */
} ebb_block_table;

/* Bytes of EBB_KV_BLOCK positions in all layers; the blocks that n positions take. */
uint64_t ebb_kv_block_bytes(const ebb_kv_shape *shape);
uint64_t ebb_kv_all_block_bytes(const ebb_kv_shape *shape);      /* in those that see everything */
uint32_t ebb_kv_blocks_of(uint32_t n_pos);
/* Bytes of all pools.  n_ctx positions, and a block more, for the copy of a shared one; of a
 * window w
 *     w + n_batch + min(w, 1024) positions and three blocks:
 * what the tokens of a batch see, and so much to go back without computing all again. */
uint64_t ebb_kv_pool_bytes(const ebb_kv_shape *shape);

/* All blocks free, untouched until written.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_open(const ebb_kv_shape *shape, ebb_kv **out, ebb_error *err);
void ebb_kv_close(ebb_kv *kv);                   /* NULL is fine */
uint64_t ebb_kv_bytes(const ebb_kv *kv);         /* of the pools */
uint32_t ebb_kv_n_blocks(const ebb_kv *kv, int group);
/* Named ones without references among them. */
uint32_t ebb_kv_n_free(const ebb_kv *kv, int group);
size_t   ebb_kv_group_block_bytes(const ebb_kv *kv, int group);
void    *ebb_kv_data(const ebb_kv *kv, int group, uint32_t block);       /* all layers of a block */
/* The first block of the group that a position sees. */
uint32_t ebb_kv_first_visible(const ebb_kv *kv, int group, uint32_t pos);
uint32_t ebb_kv_window(const ebb_kv *kv);        /* of the second group; 0: it has no layers */

/* A table for at most n_ctx positions.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_block_table_init(ebb_block_table *t, uint32_t n_ctx, ebb_error *err);
void ebb_block_table_fini(ebb_kv *kv, ebb_block_table *t); /* a zeroed table is fine */

/* Make positions [t->n_pos, n_pos) writable; t->n_pos = n_pos.  Blocks that position t->n_pos
 * does not see any more are given back.  On failure nothing else has changed.
 * Errors: BUDGET (no free block), CONTEXT (beyond cap). */
EBB_MUST_CHECK
ebb_status ebb_kv_grow(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos, ebb_error *err);
/* Keep the first n_pos positions. */
void ebb_kv_truncate(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos);
/* Make the blocks from block i on the table's own, writable and without a name: what others hold
 * is copied.  On failure no content has changed.  Error: BUDGET (no free block). */
EBB_MUST_CHECK
ebb_status ebb_kv_make_writable(ebb_kv *kv, ebb_block_table *t, uint32_t i, ebb_error *err);

/* Bytes of the blocks of the first n_pos positions, as far as they are held: in memory, and in a
 * file.  Cost: looks at each. */
void ebb_kv_table_use(const ebb_kv *kv, const ebb_block_table *t, uint32_t n_pos,
                      uint64_t *memory_bytes, uint64_t *file_bytes);

/* -- Whether all this holds (kv_check.c): NULL, or the rule that does not ------------ */

/* K3, K4 and K5.  Cost: looks at all blocks. */
const char *ebb_kv_check(const ebb_kv *kv);
/* K2 of a table that may grow, and K1 of its positions from writable_from on (n_pos: of none). */
const char *ebb_block_table_check(const ebb_kv *kv, const ebb_block_table *t,
                                  uint32_t writable_from);
/* K3: `tables` are all there are, and hold what is counted. */
const char *ebb_kv_check_refs(const ebb_kv *kv, const ebb_block_table *const *tables, size_t n);

/* -- Putting a table together ---------------------------------------------------- */

#define EBB_KV_NONE UINT32_MAX
/* Hold `block` (or NONE) at place i < t->n_blocks of the group, and not what was there. */
void ebb_kv_set_block(ebb_kv *kv, ebb_block_table *t, int group, uint32_t i, uint32_t block);
/* A free block at that place.  Error: BUDGET. */
EBB_MUST_CHECK
ebb_status ebb_kv_alloc_block(ebb_kv *kv, ebb_block_table *t, int group, uint32_t i,
                              ebb_error *err);
/* n_pos positions (within cap): places that there were not are NONE. */
void ebb_kv_resize_table(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos);
/* The blocks at places to + n and beyond go to `to` and beyond; those before them are given
 * back. */
void ebb_kv_shift_blocks(ebb_kv *kv, ebb_block_table *t, int group, uint32_t to, uint32_t n);

/* -- Blocks that can be found --------------------------------------------------- */

typedef struct ebb_block_hash {
    uint8_t        hash[16], parent_hash[16]; /* of all tokens up to the block's end; up to its
                                               * beginning */
    const int32_t *ids;          /* [EBB_KV_BLOCK] its own */
} ebb_block_hash;
/* Name block i of the table, which is full; does nothing if a block of the group has that name. */
void ebb_kv_set_hash(ebb_kv *kv, const ebb_block_table *t, int group, uint32_t i,
                     const ebb_block_hash *block_hash);
/* The block of that name, or EBB_KV_NONE. */
uint32_t ebb_kv_find_block(const ebb_kv *kv, int group, const uint8_t hash[16]);
/* The named block behind `before` that begins with most of ids[0..n); how many.  EBB_KV_NONE: none
 * with any.  Cost: looks at all blocks. */
uint32_t ebb_kv_find_child(const ebb_kv *kv, int group, const uint8_t parent_hash[16],
                           const int32_t *ids, uint32_t n, uint32_t *n_same);
/* Of a named block. */
const uint8_t *ebb_kv_hash_of(const ebb_kv *kv, int group, uint32_t block);
/* A reference that no table holds (a writer's), and its end. */
void ebb_kv_ref(ebb_kv *kv, int group, uint32_t block);
void ebb_kv_unref(ebb_kv *kv, int group, uint32_t block);

/* First row (position 0 of the block) of a KV head in block i of a table. */
void *ebb_kv_k(const ebb_kv *kv, const ebb_block_table *t, uint32_t i, uint32_t layer,
               uint32_t head);
void *ebb_kv_v(const ebb_kv *kv, const ebb_block_table *t, uint32_t i, uint32_t layer,
               uint32_t head);
size_t ebb_kv_k_row_bytes(const ebb_kv *kv, uint32_t layer);
size_t ebb_kv_v_row_bytes(const ebb_kv *kv, uint32_t layer);
uint32_t ebb_kv_n_heads(const ebb_kv *kv, uint32_t layer);       /* 0: a layer without KV */
/* The group of a layer. */
int ebb_kv_group(const ebb_kv *kv, uint32_t layer);

/* -- Blocks in a file (spill.c) ------------------------------------------------
 *
 * Where there is no memory for all of K and V, full blocks of the layers that see everything are
 * spilled: written to a file that has no name any more, and read from its mapping where attention
 * needs them.  The bits are the same.  Which ones does not matter to a pass, which reads them all;
 * so those go first that no sequence holds, then those that came first, and they stay spilled.  A
 * block that shall be written comes in again.
 *
 *  K5  A block is spilled only while it has a hash (so nobody writes it), and only while no writer
 *      holds it. */

/* From now on blocks may go out, to a file in `dir`; max_resident: at most so many stay in memory
 * (0: all may).  Nothing is opened yet.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_set_spill(ebb_kv *kv, const char *dir, uint32_t max_resident, ebb_error *err);
/* Send at most `n` blocks out; *n_spilled receives how many went.  Errors: IO (the disk is full),
 * NOMEM, UNSUPPORTED (there is no folder for it): what has not gone is in memory as it was. */
EBB_MUST_CHECK
ebb_status ebb_kv_spill(ebb_kv *kv, uint32_t n, uint32_t *n_spilled, ebb_error *err);
/* Room in memory for n blocks more, where there is a limit.  Errors: those of ebb_kv_spill. */
EBB_MUST_CHECK
ebb_status ebb_kv_spill_for(ebb_kv *kv, uint32_t n, ebb_error *err);
/* At most n blocks come in again, as far as the limit allows; how many did. */
uint32_t ebb_kv_unspill(ebb_kv *kv, uint32_t n);
uint32_t ebb_kv_n_spilled(const ebb_kv *kv);
/* Let the system read ahead what the table has out of a layer. */
void ebb_kv_prefetch_spilled(const ebb_kv *kv, const ebb_block_table *t, uint32_t layer);
/* The guard of the file's mapping, which may be read until no writer holds a block any more; NULL:
 * there is none. */
const struct ebb_guard *ebb_kv_spill_guard(const ebb_kv *kv);
/* The file was cut off or could not be read: what is out is lost, and what came in last may be.
 * Then no writer may hold a block any more, every table that may hold such blocks is to be emptied,
 * and ebb_kv_drop_spilled called. */
bool ebb_kv_spill_is_lost(const ebb_kv *kv);
void ebb_kv_drop_spilled(ebb_kv *kv);

#endif
