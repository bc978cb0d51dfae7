/* kv/kv_impl.h - what kv.c (blocks, tables, hashes), kv_layout.c (sizes), kv_memory.c and
 * spill.c (blocks in a file) share. */
#ifndef EBB_KV_IMPL_H
#define EBB_KV_IMPL_H
#include "kv/kv.h"
#include "os/guard.h"
#include "os/map.h"

typedef struct ebb_kv_layout {
    int    group;
    uint32_t n_head;
    size_t offset;               /* in a block */
    size_t k_head, v_head;       /* bytes of a head's rows */
    size_t v_offset;             /* of V, in the layer */
} ebb_kv_layout;

typedef struct ebb_kv_block {
    uint32_t n_refs;             /* of tables and writers */
    uint32_t n_writer_refs;      /* of writers, who read the block from their own thread */
    uint32_t next_hashed;        /* in its hash bucket */
    uint32_t older, newer;       /* in the LRU list of cached blocks */
    bool     is_hashed;
    bool     is_spilled;         /* its bytes are in the spill file, not in memory */
    bool     has_memory;         /* of its own: it was written since it had none */
    uint8_t  hash[16], parent_hash[16];
    int32_t  ids[EBB_KV_BLOCK];
} ebb_kv_block;

/* The blocks of a group. */
typedef struct ebb_kv_pool {
    char     *data;
    size_t    block_bytes;
    uint32_t  n_blocks, n_free;
    uint32_t *free;              /* stack of free blocks without a hash */
    uint32_t  n_stack;
    uint32_t  oldest, newest;    /* ends of the LRU list of cached blocks */
    ebb_kv_block *blocks;
    uint32_t *buckets;           /* [n_blocks] hash table of hashed blocks */
} ebb_kv_pool;

/* The spill file of EBB_KV_ALL (spill.c): each block is at its offset in the pool. */
typedef struct ebb_kv_spill_file {
    char     *path;              /* for messages; the file is unlinked */
    int       fd;
    ebb_map   map;               /* empty: no file is open */
    ebb_guard *guard;
    uint32_t  n_spilled;
    uint32_t  max_resident;      /* blocks that may be in memory; 0: all */
} ebb_kv_spill_file;

struct ebb_kv {
    ebb_map  map;                /* of all pools */
    ebb_kv_pool pools[EBB_KV_GROUPS];
    uint32_t window;             /* of EBB_KV_WINDOW; 0: no layers */
    ebb_kv_layout *layers;
    uint32_t n_layers;
    ebb_kv_spill_file spill;
    uint64_t taken_bytes;        /* by blocks with memory */
    uint64_t limit_bytes;        /* before they take more, the host is asked */
    ebb_kv_host host;
};

/* The bytes of a block, in memory or in the spill file; a spilled block must not be written. */
static inline void *ebb_kv_bytes_of(const ebb_kv *kv, const ebb_kv_pool *p, uint32_t b)
{
    return (p->blocks[b].is_spilled ? (char *)kv->spill.map.data : p->data) + b * p->block_bytes;
}

/* Whether layers with a window are a group of their own: their pool is the smaller one then. */
bool ebb_kv_is_split(const ebb_kv_shape *shape);
/* Blocks of a group's pool. */
uint32_t ebb_kv_blocks_for(const ebb_kv_shape *shape, int group);
/* Bytes of a block of each group, and each layer's place in it, to out[n_layers] (may be NULL). */
void ebb_kv_lay_out(const ebb_kv_shape *shape, size_t block_bytes[EBB_KV_GROUPS],
                    ebb_kv_layout *out);
/* The block with that hash, or EBB_KV_NONE. */
uint32_t ebb_kv_pool_find(const ebb_kv_pool *p, const uint8_t hash[16]);
/* The block is about to be written: it has memory from here on. */
void ebb_kv_take_memory(ebb_kv *kv, ebb_kv_pool *p, uint32_t block);
/* Its whole pages go back; those that it shares with a neighbour stay. */
void ebb_kv_release_memory(ebb_kv *kv, ebb_kv_pool *p, uint32_t block);
/* Reloads a block that is to be written; drops the spilled bytes of a block that was reused. */
void ebb_kv_unspill_block(ebb_kv *kv, uint32_t block);
void ebb_kv_forget_spilled(ebb_kv *kv, uint32_t block);
/* Drops the hash of a block. */
void ebb_kv_clear_hash(ebb_kv_pool *p, uint32_t b);
void ebb_kv_lru_remove(ebb_kv_pool *p, uint32_t b);
void ebb_kv_close_spill(ebb_kv *kv);

#endif
