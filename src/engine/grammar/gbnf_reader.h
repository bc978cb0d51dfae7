/* grammar/gbnf_reader.h - a place in GBNF text, what is said about it, and the nodes that are made
 * of it: for gbnf.c and gbnf_chars.c. */
#ifndef EBB_GRAMMAR_GBNF_READER_H
#define EBB_GRAMMAR_GBNF_READER_H
#include "grammar/gbnf.h"

enum { EBB_GBNF_MOST_DEPTH = 200 };

typedef struct ebb_gbnf_reader {
    const char  *begin, *at, *end;
    const char  *known;          /* a position whose line is known: */
    const char  *known_begin;    /* where that line begins, */
    uint32_t     known_line;     /* and its number */
    ebb_gbnf    *t;
    ebb_grammar *g;
    uint32_t    *table;          /* rules (+ 1) by the hash of their name */
    size_t       n_table;
    uint64_t    *names;          /* [rules] hashes of whole names */
    size_t       cap_names;
    ebb_error   *err;
    ebb_status   st;
} ebb_gbnf_reader;

/* The line and column of a position, from 1 on.  Cheap where positions ascend. */
void ebb_gbnf_locate(ebb_gbnf_reader *p, const char *at, uint32_t *line, uint32_t *column);
/* The first error counts.  Always false. */
__attribute__((format(printf, 4, 5)))
bool ebb_gbnf_fail_at(ebb_gbnf_reader *p, const char *at, ebb_status code, const char *format, ...);
bool ebb_gbnf_fail_no_memory(ebb_gbnf_reader *p);        /* likewise */

/* A node of the tree; NONE if there was an error, or is one now. */
uint32_t ebb_gbnf_add_node(ebb_gbnf_reader *p, ebb_gbnf_kind kind, uint32_t first, uint32_t n,
                           uint32_t depth);

static inline bool ebb_gbnf_is_next(const ebb_gbnf_reader *p, char c)
{
    return p->at < p->end && *p->at == c;
}

/* -- gbnf_chars.c: what begins here is read, to a node or NONE ------------------------------ */
uint32_t ebb_gbnf_read_literal(ebb_gbnf_reader *p);      /* "text" */
uint32_t ebb_gbnf_read_set(ebb_gbnf_reader *p);          /* [a-z], [^a-z] */
uint32_t ebb_gbnf_read_any_char(ebb_gbnf_reader *p);     /* . */

#endif
