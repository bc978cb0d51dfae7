/* json/json_load.h - JSON of somebody else: its memory is bounded before it is read. */
#ifndef EBB_CHAT_JSON_LOAD_H
#define EBB_CHAT_JSON_LOAD_H
#include <jansson.h>
#include <stddef.h>

/* What the values of s[0..n) take in memory at most: an empty object of two bytes takes 300. */
size_t ebb_json_memory(const char *s, size_t n);
/* Bytes of the value with which s[0..n) begins, as far as brackets and quotes tell; n: it does not
 * end.  Whoever reads it finds out whether it is one. */
size_t ebb_json_extent(const char *s, size_t n);
/* As json_loadb; also NULL, and *where (NULL is fine) says so, where that is more than 64 MiB and
 * eight times the text. */
json_t *ebb_json_load(const char *s, size_t n, size_t flags, json_error_t *where);

#endif
