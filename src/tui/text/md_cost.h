/* tui/text/md_cost.h - what md4c would do with a text beyond reading it.
 *
 * md4c (0.4.8) is not linear in the label of a link, which it reads again for every pair of
 * brackets around it, in the lines before it, in the address of a definition, in the marks between
 * one "~" and another, and in lists that are open at a blank line.  It calls nobody meanwhile, so
 * that it could be stopped. */
#ifndef EBB_TUI_MD_COST_H
#define EBB_TUI_MD_COST_H
#include <stddef.h>

/* Steps, some nanoseconds each, that md4c takes at most for s[0..n) besides n of its own.  n is at
 * most some MiB: the sum is no larger than n * n. */
size_t ebb_md_cost(const char *s, size_t n);

#endif
