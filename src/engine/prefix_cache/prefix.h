/* prefix_cache/prefix.h - the prefix cache: the longest prefix of given ids whose K and V exist in
 * this session, in another one, in cached blocks of the pool or on disk (prefix.c); putting it into
 * a session (prefix_fetch.c). */
#ifndef EBB_PREFIX_H
#define EBB_PREFIX_H
#include <stdbool.h>

#include "ebb/experimental/cache_salt.h"
#include "ebb/session.h"
#include "kv/kv.h"
#include "kv/kv_file.h"

/* Where a block was found. */
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
    uint8_t    next_parent[16];  /* parent hash of the next block: the hash; where shifted K and V
                                    begin, H(hash, salt) */
    ebb_block_source source[EBB_KV_GROUPS]; /* in s->wanted: where the block was found */
    bool       is_read, is_bad;  /* in s->wanted: it was read from disk; that failed */
} ebb_prefix_block;

/* The longest cached prefix of ids. */
typedef struct ebb_prefix {
    const ebb_token *ids;
    uint32_t         n_ids;
    const ebb_cache_salt *cache_salt;      /* of the lookup */
    ebb_session     *from;       /* the session with the longest common prefix ... */
    uint32_t         n_common;   /* ... and its length, positions */
    uint32_t         n_full;     /* full blocks that were found, from position 0 on */
    ebb_block_source part;       /* where the n_part positions behind them were found */
    uint32_t         n_part;
    uint32_t         child[EBB_KV_GROUPS]; /* part IN_POOL: blocks that begin with these */
    uint32_t         n_pos;      /* positions whose K and V were found */
    bool             is_current; /* they are the whole sequence of s: nothing changes */
} ebb_prefix;

/* Looks ids[0..n) up and fills s->wanted and *p.  with_logits: the logits of the last id are
 * needed, so it is computed again unless s has them. */
void ebb_prefix_lookup(const ebb_session *s, const ebb_token *ids, uint32_t n,
                       const ebb_cache_salt *cache_salt, bool with_logits, ebb_prefix *p);
/* The cache file of a kind for block i of s->wanted; of a tail or state, for the n_ids tokens
 * behind the block before. */
ebb_kv_file ebb_prefix_disk_item(const ebb_session *s, ebb_kv_file_kind kind, const ebb_token *ids,
                                 uint32_t i, uint32_t n_ids);
/* The recurrent state on disk of the longest prefix of ids[0..n), longer than n_min; its length, or
 * 0. */
uint32_t ebb_prefix_checkpoint_on_disk(const ebb_session *s, const ebb_token *ids, uint32_t n,
                                       uint32_t n_min, ebb_kv_file *out);
/* The salt with which ids are looked up first. */
ebb_cache_salt ebb_prefix_choose_salt(const ebb_session *s, const ebb_token *ids, size_t n);
/* Puts the longest cached prefix of ids into s; returns its length, and in *n_disk how much of
 * it was read from disk.  If all K and V were found but no logits, the last id is left out. */
uint32_t ebb_prefix_reuse(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t *n_disk);
/* Hashes the blocks that have become full. */
void ebb_prefix_hash_blocks(ebb_session *s);
/* Sets the salt of the sequence; the blocks from its position on are hashed again. */
void ebb_prefix_set_salt(ebb_session *s, const ebb_cache_salt *cache_salt);

#endif
