/* kv/kv_impl.h - what kv.c (blocks, tables, names) and spill.c (blocks in a file) share. */
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
    uint32_t n_refs;             /* tables and writers that hold it */
    uint32_t n_writer_refs;      /* by writers, who read its memory from their own thread */
    uint32_t next_hashed;        /* in its bucket */
    uint32_t older, newer;       /* among those that are named and have no references */
    bool     is_hashed;
    bool     is_spilled;         /* its bytes are in the file (spill.c), not in memory */
    uint8_t  hash[16], parent_hash[16];
    int32_t  ids[EBB_KV_BLOCK];
} ebb_kv_block;

/* The blocks of a group. */
typedef struct ebb_kv_pool {
    char     *data;
    size_t    block_bytes;
    uint32_t  n_blocks, n_free;
    uint32_t *free;              /* stack of free blocks without a name */
    uint32_t  n_stack;
    uint32_t  oldest, newest;    /* named blocks without references */
    ebb_kv_block *blocks;
    uint32_t *buckets;           /* [n_blocks] named blocks by name */
} ebb_kv_pool;

/* Blocks of the first group that are out (spill.c), each at the place that it has in the pool. */
typedef struct ebb_kv_spill_file {
    char     *path;              /* for messages; the file has no name any more */
    int       fd;
    ebb_map   map;               /* empty: there is no file */
    ebb_guard *guard;
    uint32_t  n_spilled;
    uint32_t  max_resident;      /* blocks that may be in memory; 0: all */
} ebb_kv_spill_file;

struct ebb_kv {
    ebb_map  map;                /* of all pools */
    ebb_kv_pool pools[EBB_KV_GROUPS];
    uint32_t window;             /* of the second group; 0: it has no layers */
    ebb_kv_layout *layers;
    uint32_t n_layers;
    ebb_kv_spill_file spill;
};

/* The bytes of a block, wherever they are; of one that is out they must not be written. */
static inline void *ebb_kv_bytes_of(const ebb_kv *kv, const ebb_kv_pool *p, uint32_t b)
{
    return (p->blocks[b].is_spilled ? (char *)kv->spill.map.data : p->data) + b * p->block_bytes;
}

/* The block of that name, or EBB_KV_NONE. */
uint32_t ebb_kv_pool_find(const ebb_kv_pool *p, const uint8_t hash[16]);
/* Back into memory, to be written; and what is out of a block that was given to another use. */
void ebb_kv_unspill_block(ebb_kv *kv, uint32_t block);
void ebb_kv_forget_spilled(ebb_kv *kv, uint32_t block);
/* Free, without a name. */
void ebb_kv_clear_hash(ebb_kv_pool *p, uint32_t b);
void ebb_kv_lru_remove(ebb_kv_pool *p, uint32_t b);
void ebb_kv_close_spill(ebb_kv *kv);

#endif
