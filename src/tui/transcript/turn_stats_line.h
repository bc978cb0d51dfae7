/* tui/transcript/turn_stats_line.h - the line beneath an answer: what it cost, and how it ended if
 * not by itself.  "reused 7,412 | computed 318 @ 41 tok/s | 212 tok @ 6.3 tok/s" */
#ifndef EBB_TUI_TURN_STATS_LINE_H
#define EBB_TUI_TURN_STATS_LINE_H
#include "base/buf.h"
#include "tree/message.h"

/* Append it, without a line break.  `ascii`: nothing but ASCII. */
void ebb_turn_stats_line(const ebb_message *m, bool ascii, ebb_buf *out);

#endif
