/* tui/text/pattern.h - finding text in text: without regard to case unless the pattern has
 * capitals. */
#ifndef EBB_TUI_PATTERN_H
#define EBB_TUI_PATTERN_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct ebb_pattern {
    ebb_buf text;                /* empty: nothing is looked for */
    bool    is_exact;            /* it has capitals */
} ebb_pattern;

void ebb_pattern_fini(ebb_pattern *p);           /* and it is empty */
/* A copy of s[0..n) is what is looked for; a zeroed pattern may be set. */
void ebb_pattern_set(ebb_pattern *p, const char *s, size_t n);

/* The first match of the pattern in s[from..n); SIZE_MAX: none.  *len receives its bytes
 * there. */
size_t ebb_pattern_find(const ebb_pattern *p, const char *s, size_t n, size_t from, size_t *len);
/* The last that begins in front of `before`. */
size_t ebb_pattern_find_last(const ebb_pattern *p, const char *s, size_t n, size_t before,
                             size_t *len);

#endif
