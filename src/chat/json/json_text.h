/* json/json_text.h - JSON strings of text that may not be UTF-8: what is invalid becomes U+FFFD. */
#ifndef EBB_CHAT_JSON_TEXT_H
#define EBB_CHAT_JSON_TEXT_H
#include <jansson.h>
#include <stddef.h>

/* Of text[0..n); the caller owns it.  NULL: out of memory. */
json_t *ebb_json_text(const char *text, size_t n);
/* The same of a text that ends with NUL; JSON's null without memory. */
json_t *ebb_json_text_or_null(const char *text);

#endif
