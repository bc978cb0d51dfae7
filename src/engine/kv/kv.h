/* kv/kv.h - the KV cache in memory: pools of blocks (PagedAttention, Kwon et al. 2023).
 *
 * A block holds K and V of EBB_KV_BLOCK consecutive positions, aligned to absolute positions, in
 * the layers of a group.  Layers with full attention are one group, those with a sliding window
 * another one, whose pool is smaller: a sequence keeps only the blocks that its next position sees.
 *
 *     block:  layer 0 | layer 1 | ...        each layer at a multiple of 64 bytes
 *     layer:  K [head][position][dim_k] | V [head][position][dim_v]
 *
 * All pools are one allocation, made at open.  A block table lists the blocks of one sequence, for
 * each group.  Sequences share the blocks of a common prefix by reference counts.  A full block may
 * be hashed (the block hash covers all tokens up to its end); when its last reference is dropped it
 * stays in the pool and can be found by its hash until its memory is needed.  The least recently
 * used block is evicted first, which of one sequence is the last one.
 *
 * Invariants:
 *  KV1  A block that is shared or hashed is never written: growing a sequence whose last, partly
 *      filled block is shared or hashed copies that block first (or, where no block is free and no
 *      other sequence has it, drops its hash).
 *  KV2  A table has exactly ceil(n_pos / EBB_KV_BLOCK) entries in each group.  In EBB_KV_WINDOW an
 *      entry may be EBB_KV_NONE; before a table grows, all blocks that its next position sees (from
 *      ebb_kv_first_visible on) must be in it.
 *  KV3  free blocks (cached ones included) + blocks with references = n_blocks.
 *  KV4  No two blocks of a group have the same hash.
 *
 * A block is
 *
 *     free       no references, no hash                     on the free stack
 *     cached     no references, a hash                      on the LRU list; in a hash bucket
 *     own        one reference, no hash                     the only state in which it is written
 *     shared     two references or more, or a hash and one  read by all whose tables list it
 *
 * and cached and shared blocks with a hash may be spilled as well (spill.c).  All transitions are
 * made by the thread that runs passes; a writer of the KV cache on disk has a reference that this
 * thread takes and drops for it (ebb_kv_ref), and only reads.
 *
 * Threads: all calls from the thread that runs passes; rows of different positions or heads may be
 * written by different threads at once. */
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
    const ebb_kv_layer *layers;  /* [n_layers]; not kept after the call */
    ebb_kv_type         k_type, v_type;
    uint32_t            window;  /* positions; of the layers that have one */
    uint32_t            n_ctx, n_batch;  /* positions of the longest sequence; of the largest
                                          * batch */
    uint32_t            n_sequences;     /* that have room for their windows; 0: 1 */
    bool                has_file;        /* blocks go to a file before all have memory (spill.c) */
} ebb_kv_shape;

/* The groups: layers with full attention; with a sliding window.  Where the window's pool would not
 * be smaller, all layers are in the first group. */
enum { EBB_KV_ALL, EBB_KV_WINDOW, EBB_KV_GROUPS };

typedef struct ebb_kv ebb_kv;

typedef struct ebb_block_table {
    uint32_t *blocks[EBB_KV_GROUPS];     /* [cap] block numbers in the group's pool */
    uint32_t  n_blocks, cap;     /* entries in use, allocated */
    uint32_t  n_pos;             /* positions whose K and V are valid */
} ebb_block_table;

/* Bytes of EBB_KV_BLOCK positions in all layers. */
uint64_t ebb_kv_block_bytes(const ebb_kv_shape *shape);
/* Of them, those in the layers of EBB_KV_ALL. */
uint64_t ebb_kv_all_block_bytes(const ebb_kv_shape *shape);
/* How many blocks n_pos positions take, the last one perhaps not full. */
uint32_t ebb_kv_blocks_of(uint32_t n_pos);
/* Bytes of all pools.  EBB_KV_ALL: n_ctx positions and one block, for the copy of a shared one.
 * EBB_KV_WINDOW of w positions:
 *     w + n_batch + min(w, 1024) positions and three blocks,
 * the positions that a batch sees, and some to go back to without computing everything again; and
 * w positions and two blocks for each further sequence. */
uint64_t ebb_kv_pool_bytes(const ebb_kv_shape *shape);

/* Opens pools in which all blocks are free; pages are taken when written.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_open(const ebb_kv_shape *shape, ebb_kv **out, ebb_error *err);
void ebb_kv_close(ebb_kv *kv);                   /* NULL is fine */
uint64_t ebb_kv_bytes(const ebb_kv *kv);         /* of all pools */
uint32_t ebb_kv_n_blocks(const ebb_kv *kv, int group);
/* Free and cached blocks. */
uint32_t ebb_kv_n_free(const ebb_kv *kv, int group);
size_t   ebb_kv_group_block_bytes(const ebb_kv *kv, int group);
void    *ebb_kv_data(const ebb_kv *kv, int group, uint32_t block);       /* block_bytes */
/* The number, within a sequence, of the first block that position pos sees in the group. */
uint32_t ebb_kv_first_visible(const ebb_kv *kv, int group, uint32_t pos);
uint32_t ebb_kv_window(const ebb_kv *kv);        /* of EBB_KV_WINDOW; 0: no layers */

/* A table for at most n_ctx positions.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_block_table_init(ebb_block_table *t, uint32_t n_ctx, ebb_error *err);
void ebb_block_table_fini(ebb_kv *kv, ebb_block_table *t); /* a zeroed table is fine */

/* Makes positions [t->n_pos, n_pos) writable and sets t->n_pos = n_pos.  Blocks that the old
 * t->n_pos no longer sees are released, also on failure; nothing else changes then.
 * Errors: BUDGET (no free block), CONTEXT (beyond cap). */
EBB_MUST_CHECK
ebb_status ebb_kv_grow(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos, ebb_error *err);
/* Keeps the first n_pos positions and releases the blocks behind them. */
void ebb_kv_truncate(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos);
/* Makes the blocks from entry i on the table's own, writable and without a hash: shared ones are
 * copied.  On failure no content has changed.  Error: BUDGET (no free block). */
EBB_MUST_CHECK
ebb_status ebb_kv_make_writable(ebb_kv *kv, ebb_block_table *t, uint32_t i, ebb_error *err);

/* Bytes of the blocks of the first n_pos positions: in memory, and spilled.  Cost: O(blocks). */
void ebb_kv_table_use(const ebb_kv *kv, const ebb_block_table *t, uint32_t n_pos,
                      uint64_t *memory_bytes, uint64_t *file_bytes);

/* -- Checkers (kv_check.c): NULL, or the rule that is broken ------------------------- */

/* KV3 to KV6.  Cost: O(blocks of the pools). */
const char *ebb_kv_check(const ebb_kv *kv);
/* KV2 of a table that may grow, and KV1 of its positions from writable_from on (n_pos: of none). */
const char *ebb_block_table_check(const ebb_kv *kv, const ebb_block_table *t,
                                  uint32_t writable_from);
/* KV3: the reference counts are those of `tables`, which are all tables of the pools. */
const char *ebb_kv_check_refs(const ebb_kv *kv, const ebb_block_table *const *tables, size_t n);

/* -- Putting a table together ---------------------------------------------------- */

#define EBB_KV_NONE UINT32_MAX
/* Sets entry i < t->n_blocks of the group to `block` (or NONE) and takes a reference; that of the
 * block that was there is dropped. */
void ebb_kv_set_block(ebb_kv *kv, ebb_block_table *t, int group, uint32_t i, uint32_t block);
/* Sets the entry to a free block.  Error: BUDGET. */
EBB_MUST_CHECK
ebb_status ebb_kv_alloc_block(ebb_kv *kv, ebb_block_table *t, int group, uint32_t i,
                              ebb_error *err);
/* Sets t->n_pos (within cap); new entries are NONE, entries behind it are released. */
void ebb_kv_resize_table(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos);
/* Makes the empty table `to` share the blocks of the first n_pos <= from->n_pos positions; whoever
 * grows first in a block that is not full gets a copy of it (KV1). */
void ebb_kv_share(ebb_kv *kv, const ebb_block_table *from, uint32_t n_pos, ebb_block_table *to);
/* Releases the n entries from `to` on and moves those behind them there. */
void ebb_kv_shift_blocks(ebb_kv *kv, ebb_block_table *t, int group, uint32_t to, uint32_t n);

/* -- The prefix cache in memory ----------------------------------------------------- */

typedef struct ebb_block_hash {
    uint8_t        hash[16], parent_hash[16]; /* of all tokens up to the block's end; up to its
                                               * beginning */
    const int32_t *ids;          /* [EBB_KV_BLOCK] the block's tokens */
} ebb_block_hash;
/* Hashes the full block at entry i; does nothing if a block of the group has that hash. */
void ebb_kv_set_hash(ebb_kv *kv, const ebb_block_table *t, int group, uint32_t i,
                     const ebb_block_hash *block_hash);
/* The block with that hash, or EBB_KV_NONE. */
uint32_t ebb_kv_find_block(const ebb_kv *kv, int group, const uint8_t hash[16]);
/* Of the hashed blocks with this parent hash, the one that has the longest common prefix with
 * ids[0..n); *n_same is its length.  EBB_KV_NONE: none begins with ids[0].  Cost: O(blocks). */
uint32_t ebb_kv_find_child(const ebb_kv *kv, int group, const uint8_t parent_hash[16],
                           const int32_t *ids, uint32_t n, uint32_t *n_same);
/* The hash of a hashed block. */
const uint8_t *ebb_kv_hash_of(const ebb_kv *kv, int group, uint32_t block);
/* Takes a reference for a writer; drops it. */
void ebb_kv_ref(ebb_kv *kv, int group, uint32_t block);
void ebb_kv_unref(ebb_kv *kv, int group, uint32_t block);

/* -- Memory of the pools ---------------------------------------------------------
 *
 * The pools are address space; a block takes memory when it is used for the first time, and gives
 * it back when it goes to a file or is released.  What is not taken yet may serve for something
 * else meanwhile, down to a limit: before a block would take memory beyond it, one that can only be
 * found and has memory is used instead, and where there is none the host is asked, who raises the
 * limit.
 *
 *  KV6  What is counted as taken is the blocks that have memory. */

/* Called with the bytes that blocks will have taken, from the calls that give a table blocks. */
typedef struct ebb_kv_host {
    void (*make_room)(void *arg, uint64_t n_bytes);
    void *arg;
} ebb_kv_host;
/* No block takes memory beyond limit_bytes before host.make_room was called; UINT64_MAX: no
 * limit. */
void ebb_kv_set_limit(ebb_kv *kv, uint64_t limit_bytes, ebb_kv_host host);
/* What blocks have taken, in all pools. */
uint64_t ebb_kv_taken_bytes(const ebb_kv *kv);
/* Of that, what blocks without references have. */
uint64_t ebb_kv_unheld_bytes(const ebb_kv *kv);
/* Bytes of the blocks with references, each once: in memory, and spilled.  Cost: O(blocks). */
void ebb_kv_held_use(const ebb_kv *kv, uint64_t *memory_bytes, uint64_t *file_bytes);
/* Blocks without references lose their hashes and give their memory back, those that were let go
 * longest ago first, until n_bytes have come; how many did. */
uint64_t ebb_kv_release_unheld(ebb_kv *kv, uint64_t n_bytes);

/* The row of the first position of the block at entry i of a table, for a KV head. */
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
 * Where there is no memory for all of K and V, full blocks of EBB_KV_ALL are spilled: written to an
 * unlinked file, and read by attention from its mapping.  The bits are the same.  A pass reads all
 * blocks, so the choice does not matter for speed: cached blocks are spilled first, then those of
 * the earliest positions, and they stay spilled.  A block that is to be written is reloaded.
 *
 *  KV5  A block is spilled only while it has a hash (so nobody writes it), and only while no writer
 *      has a reference. */

/* Allows spilling to a file in `dir`; max_resident: blocks that may be in memory (0: all).  Nothing
 * is opened yet.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_kv_set_spill(ebb_kv *kv, const char *dir, uint32_t max_resident, ebb_error *err);
/* Spills at most n blocks; *n_spilled receives how many were.  Errors: IO (the disk is full),
 * NOMEM, UNSUPPORTED (no directory is set): blocks that were not spilled stay in memory. */
EBB_MUST_CHECK
ebb_status ebb_kv_spill(ebb_kv *kv, uint32_t n, uint32_t *n_spilled, ebb_error *err);
/* Spills blocks until n more fit under max_resident.  Errors: those of ebb_kv_spill. */
EBB_MUST_CHECK
ebb_status ebb_kv_spill_for(ebb_kv *kv, uint32_t n, ebb_error *err);
/* Reloads at most n blocks, as far as max_resident allows; returns how many. */
uint32_t ebb_kv_unspill(ebb_kv *kv, uint32_t n);
uint32_t ebb_kv_n_spilled(const ebb_kv *kv);
/* Starts read-ahead of the spilled blocks of a table's layer. */
void ebb_kv_prefetch_spilled(const ebb_kv *kv, const ebb_block_table *t, uint32_t layer);
/* The guard (os/guard.h) of the file's mapping, which is valid as long as a writer has a reference
 * to a block; NULL: there is none. */
const struct ebb_guard *ebb_kv_spill_guard(const ebb_kv *kv);
/* The file was truncated or could not be read: spilled blocks are lost, and recently reloaded ones
 * may be.  Then wait until no writer has a reference, empty every table that may list such blocks,
 * and call ebb_kv_drop_spilled. */
bool ebb_kv_spill_is_lost(const ebb_kv *kv);
void ebb_kv_drop_spilled(ebb_kv *kv);

#endif
