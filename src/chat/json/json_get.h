/* json/json_get.h - members of an object that may have anything in their place. */
#ifndef EBB_CHAT_JSON_GET_H
#define EBB_CHAT_JSON_GET_H
#include <jansson.h>
#include <stdint.h>

/* The text of this name, which lives as long as o; "": there is none. */
const char *ebb_json_get_text(const json_t *o, const char *name);
/* The whole number of this name; 0: there is none, or one below 0 or above INT32_MAX. */
uint32_t ebb_json_get_count(const json_t *o, const char *name);

#endif
