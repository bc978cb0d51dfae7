/* tui/text/fuzzy.h - how well a few typed letters fit a name. */
#ifndef EBB_TUI_FUZZY_H
#define EBB_TUI_FUZZY_H
#include <stddef.h>

/* How well `typed` fits `name`, whatever the case of ASCII letters: the higher, the better; -1: not
 * at all.  In this order: it is the name; the name begins so; a word of it does; it is somewhere in
 * it; its letters are, in their order, and with few others between them.  "" fits everything alike
 * (0). */
int ebb_fuzzy_score(const char *typed, const char *name);

#endif
