/* json/json_mend.h - JSON whose texts are not all text. */
#ifndef EBB_CHAT_JSON_MEND_H
#define EBB_CHAT_JSON_MEND_H
#include "base/buf.h"

/* Where s[0..n) has bytes that are no UTF-8, or an escape of one half of a surrogate pair without
 * the other (\ud83c, of programs that cut a text within a pair): append it to *out, which is empty,
 * with U+FFFD in their place; else *out stays empty.  false: no memory. */
bool ebb_json_mend(const char *s, size_t n, ebb_buf *out);

#endif
