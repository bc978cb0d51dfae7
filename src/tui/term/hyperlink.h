/* tui/term/hyperlink.h - addresses behind cells (OSC 8), for terminals that follow them.
 *
 * Addresses come from models: an address is told to a terminal only if it is one of http, https or
 * mailto, of printable ASCII without blanks, and not long.  A screen keeps those of a frame, and
 * cells name them by a number that is the same in each frame. */
#ifndef EBB_TUI_HYPERLINK_H
#define EBB_TUI_HYPERLINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { EBB_HYPERLINK_BYTES = 1024, EBB_HYPERLINKS = 128 };

typedef struct ebb_hyperlinks {
    uint32_t id[EBB_HYPERLINKS];
    size_t   at[EBB_HYPERLINKS]; /* of its address, with a 0, in `text` */
    size_t   n;
    ebb_buf  text;
} ebb_hyperlinks;

/* Whether a terminal may be told this address, as above. */
bool ebb_hyperlink_is_safe(const char *address, size_t n);
/* Its number, from now on found in *l; 0: it is not told to a terminal. */
uint32_t ebb_hyperlink_add(ebb_hyperlinks *l, const char *address, size_t n);
void ebb_hyperlinks_clear(ebb_hyperlinks *l);    /* another frame */
void ebb_hyperlinks_fini(ebb_hyperlinks *l);
/* Append what switches the link on; id 0, or one that is not there: off. */
void ebb_hyperlink_switch(const ebb_hyperlinks *l, uint32_t id, ebb_buf *out);

#endif
