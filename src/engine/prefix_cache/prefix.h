/* prefix_cache/prefix.h - what is there already of a sequence (prefix.c), and fetching it
 * (prefix_fetch.c): in this session, in another one, in blocks of the pool that no session holds,
 * on disk. */
#ifndef EBB_PREFIX_H
#define EBB_PREFIX_H
#include <stdbool.h>

#include "ebb/experimental/cache_salt.h"
#include "ebb/session.h"
#include "kv/kv.h"
#include "kv/kv_file.h"

/* Where a block is to be had. */
typedef enum ebb_block_source {
    EBB_BLOCK_UNKNOWN,
    EBB_BLOCK_NOWHERE,
    EBB_BLOCK_IN_TABLE,
    EBB_BLOCK_IN_POOL,
    EBB_BLOCK_ON_DISK,
} ebb_block_source;

/* The hash of all tokens up to the end of a block: H(hash of the block before, ids of the
 * block). */
typedef struct ebb_prefix_block {
    uint8_t    hash[16];
    uint8_t    next_parent[16];  /* parent of the block behind it: the hash; where shifted K and V
                                    begin, H(hash, salt) */
    ebb_block_source source[EBB_KV_GROUPS]; /* of s->wanted: where the block is */
    bool       is_read, is_bad;  /* of s->wanted: it was read from disk; it could not be */
} ebb_prefix_block;

/* The longest beginning of ids that is there. */
typedef struct ebb_prefix {
    const ebb_token *ids;
    uint32_t         n_ids;
    const ebb_cache_salt *cache_salt;      /* under which they are looked for */
    ebb_session     *from;       /* whose sequence shares most with them, and ... */
    uint32_t         n_common;   /* ... how many positions */
    uint32_t         n_full;     /* blocks that are there from the beginning on, and ... */
    ebb_block_source part;       /* ... where the ... */
    uint32_t         n_part;     /* ... n_part positions behind them are */
    uint32_t         child[EBB_KV_GROUPS]; /* in the pool: blocks that begin with them */
    uint32_t         n_pos;      /* positions that can be gone on from, as far as K and V are
                                    concerned */
    bool             is_current; /* these are all that s holds, and nothing changes */
} ebb_prefix;

/* Fill the links s->wanted and *p.  with_logits: those of the last id shall be known or be
 * computed. */
void ebb_prefix_lookup(const ebb_session *s, const ebb_token *ids, uint32_t n,
                       const ebb_cache_salt *cache_salt, bool with_logits, ebb_prefix *p);
/* The file of a kind for block i of s->wanted and what is behind it, of which n_ids are of
 * interest. */
ebb_kv_file ebb_prefix_disk_item(const ebb_session *s, ebb_kv_file_kind kind, const ebb_token *ids,
                                 uint32_t i, uint32_t n_ids);
/* The state on disk that stands deepest in ids[0..n), deeper than n_min; its position, or 0. */
uint32_t ebb_prefix_checkpoint_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n,
                                       uint32_t n_min, ebb_kv_file *out);
/* The shift under which ids are looked for first. */
ebb_cache_salt ebb_prefix_choose_salt(const ebb_session *s, const ebb_token *ids, size_t n);
/* Hold the longest prefix of ids that can be gone on from; returns its length.
 * Where all of ids are found but their logits, the last one is left out. */
uint32_t ebb_prefix_reuse(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t *n_disk);
/* Name the blocks that were filled. */
void ebb_prefix_hash_blocks(ebb_session *s);
/* Another shift: the blocks from there on get other names. */
void ebb_prefix_set_salt(ebb_session *s, const ebb_cache_salt *cache_salt);

#endif
