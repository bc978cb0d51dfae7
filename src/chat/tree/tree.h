/* chat/tree/tree.h - the tree of messages of one conversation, in memory.
 *
 * A message hangs below the one it answers; another answer or an edited question
 * is a sibling.  The leaf is the conversation's last message, and the path from its
 * root down to the leaf is what is seen and what the model gets.  Nothing is lost
 * by undo, retry or edit: what leaves the path stays as a branch.
 *
 * Invariants: the path is the chain of parents of the leaf; an id is unique;
 * a message's `parent` is its parent's id, 0 for a root. */
#ifndef EBB_CHAT_TREE_H
#define EBB_CHAT_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tree/message.h"

/* A message and its place.  The tree's users change `m` and `is_dirty` only. */
typedef struct ebb_node {
    ebb_message m;
    struct ebb_node *parent, *first_child, *last_child, *next_sibling;
    bool is_dirty;               /* not in the store as it stands here */
    size_t n_stored;             /* bytes of its text in the store when it was last read or saved */
} ebb_node;

typedef struct ebb_tree {
    ebb_node **nodes;            /* in the order they were added: parents before children */
    size_t     n_nodes, cap_nodes;
    ebb_node **path;             /* root first; the last is the leaf */
    size_t     n_path, cap_path;
    ebb_node **undone;           /* leaves that undo left, the latest last */
    size_t     n_undone, cap_undone;
    int64_t    last_memory_id;   /* negative: ids of messages that no store numbered */
} ebb_tree;

/* A zeroed tree is an empty one. */
void ebb_tree_fini(ebb_tree *t);

/* A new message below `parent` (NULL: a root), dirty, with a negative id; the path
 * is not changed.  NULL: out of memory. */
ebb_node *ebb_tree_add(ebb_tree *t, ebb_node *parent, ebb_role role, const char *text,
                       size_t n_text);
/* Replace or append text, ids.  false: out of memory, nothing was changed. */
bool ebb_node_set_text(ebb_node *node, const char *text, size_t n);
bool ebb_node_add_text(ebb_node *node, const char *text, size_t n);
bool ebb_node_set_ids(ebb_node *node, const int32_t *ids, size_t n, const uint8_t model[16]);
bool ebb_node_add_id(ebb_node *node, int32_t id);
/* Give the node its number; its children's `parent` follows. */
void ebb_node_set_id(ebb_node *node, int64_t id);
/* No store has any of the messages (any more): all are dirty, with negative ids. */
void ebb_tree_forget_ids(ebb_tree *t);

/* Remove a message without children that is the newest of the tree; if it was
 * the leaf, its parent is. */
void ebb_tree_drop_newest(ebb_tree *t);

/* By id: O(log n) for stored messages while the tree is being loaded in order of
 * ids, else O(n).  NULL if there is none. */
ebb_node *ebb_tree_find(const ebb_tree *t, int64_t id);

/* -- The path ----------------------------------------------------------------- */
ebb_node *ebb_tree_leaf(const ebb_tree *t);                  /* NULL: before the first message */
/* Stand at `leaf` (NULL: before everything).  Forgets what undo left.
 * false: out of memory, nothing was changed. */
bool ebb_tree_set_leaf(ebb_tree *t, ebb_node *leaf);
/* Back before the last question of the path: its parent becomes the leaf.
 * false: there is none (or no memory). */
bool ebb_tree_undo(ebb_tree *t);
/* Where the last undo left.  false: nothing was undone since the path was changed. */
bool ebb_tree_redo(ebb_tree *t);
/* Whether a path ends with a question that has no answer, notes below it aside. */
bool ebb_tree_is_question_open(const ebb_node *leaf);
/* Where the next question hangs: `leaf`, but above a question that has no answer, and the notes
 * below it. */
ebb_node *ebb_tree_above_question(ebb_node *leaf);
/* The deepest message reached from `node` by always taking the newest child. */
ebb_node *ebb_tree_deepest(ebb_node *node);

#endif
