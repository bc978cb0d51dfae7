/* tui/text/pattern.h - finding text in text: without regard to case unless the pattern has
 * capitals.  The time that a search takes grows with the text alone, whatever the pattern. */
#ifndef EBB_TUI_PATTERN_H
#define EBB_TUI_PATTERN_H
#include <stdbool.h>
#include <stddef.h>

/* Bytes.  Front ends take no longer ones: for each row drawn as much is read around it. */
#define EBB_PATTERN_MAX 4096

typedef struct ebb_pattern_point ebb_pattern_point;

typedef struct ebb_pattern {
    ebb_pattern_point *points;
    size_t n;                    /* code points; 0: nothing is looked for */
    bool   is_exact;             /* it has capitals */
} ebb_pattern;

void ebb_pattern_fini(ebb_pattern *p);           /* and it is empty */
/* A copy of s[0..n) is what is looked for; a zeroed pattern may be set.  Without memory for it,
 * nothing is. */
void ebb_pattern_set(ebb_pattern *p, const char *s, size_t n);
/* The bytes that a match has at most. */
size_t ebb_pattern_reach(const ebb_pattern *p);

/* The first match of the pattern in s[from..n); SIZE_MAX: none.  *len receives its bytes
 * there. */
size_t ebb_pattern_find(const ebb_pattern *p, const char *s, size_t n, size_t from, size_t *len);
/* The last that begins in front of `before`.  What is far in front of it is not read. */
size_t ebb_pattern_find_last(const ebb_pattern *p, const char *s, size_t n, size_t before,
                             size_t *len);

#endif
