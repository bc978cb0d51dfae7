/* A place in GBNF text (gbnf_reader.h). */
#include "grammar/gbnf_reader.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/grow.h"

/* -- Errors -------------------------------------------------------------------------- */

void ebb_gbnf_locate(ebb_gbnf_reader *p, const char *at, uint32_t *line, uint32_t *column)
{
    if (!p->known || at < p->known) {
        p->known = p->known_begin = p->begin;
        p->known_line = 1;
    }
    for (; p->known < at; p->known++)
        if (*p->known == '\n') {
            p->known_line++;
            p->known_begin = p->known + 1;
        }
    *line = p->known_line;
    *column = (uint32_t)(at - p->known_begin) + 1;
}

bool ebb_gbnf_fail_at(ebb_gbnf_reader *p, const char *at, ebb_status code, const char *format, ...)
{
    uint32_t line, column;
    char what[200];
    va_list list;

    if (p->st != EBB_OK)
        return false;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    ebb_gbnf_locate(p, at, &line, &column);
    p->st = EBB_FAIL(p->err, code, "the grammar, line %u, column %u: %s", line, column, what);
    return false;
}

bool ebb_gbnf_fail_no_memory(ebb_gbnf_reader *p)
{
    if (p->st == EBB_OK)
        p->st = EBB_FAIL(p->err, EBB_NOMEM, "no memory for the grammar");
    return false;
}

/* -- Nodes --------------------------------------------------------------------------- */

uint32_t ebb_gbnf_add_node(ebb_gbnf_reader *p, ebb_gbnf_kind kind, uint32_t first, uint32_t n, uint32_t depth)
{
    ebb_gbnf *t = p->t;
    ebb_gbnf_node *grown;

    if (p->st != EBB_OK)
        return EBB_GRAMMAR_NONE;
    if (depth > EBB_GBNF_MOST_DEPTH) {
        ebb_gbnf_fail_at(p, p->at, EBB_LIMIT, "nested more than %d deep", EBB_GBNF_MOST_DEPTH);
        return EBB_GRAMMAR_NONE;
    }
    grown = ebb_grow(t->nodes, t->n_nodes, &t->cap_nodes, sizeof *grown);
    if (!grown) {
        ebb_gbnf_fail_no_memory(p);
        return EBB_GRAMMAR_NONE;
    }
    t->nodes = grown;
    grown[t->n_nodes] = (ebb_gbnf_node){ .kind = (uint8_t)kind, .depth = (uint16_t)depth, .first = first, .n = n,
                                         .next = EBB_GRAMMAR_NONE };
    return (uint32_t)t->n_nodes++;
}
