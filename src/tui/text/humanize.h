/* tui/text/humanize.h - small texts for people: numbers, sizes, times. */
#ifndef EBB_TUI_HUMANIZE_H
#define EBB_TUI_HUMANIZE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

void ebb_humanize_count(ebb_buf *out, uint64_t n);             /* 12,345 */
void ebb_humanize_bytes(ebb_buf *out, uint64_t n);             /* 4.58 GiB */
void ebb_humanize_rate(ebb_buf *out, double per_s);            /* 6.3, 412 */
void ebb_humanize_seconds(ebb_buf *out, double s);             /* 0.4 s, 2 min 05 s */

#endif
