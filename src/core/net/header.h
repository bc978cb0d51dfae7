/* net/header.h - a line of a reply's header, as it comes from outside. */
#ifndef EBB_NET_HEADER_H
#define EBB_NET_HEADER_H
#include <stdbool.h>
#include <stddef.h>

/* The value of the header `name` in a line of n bytes, without blanks around it and with a '?'
 * for each control character (H3 of net/http.h).  False, and out as it was: it is another header,
 * or too long for cap bytes, that is, to be believed. */
bool ebb_header_text(const char *line, size_t n, const char *name, char *out, size_t cap);

#endif
