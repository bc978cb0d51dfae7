/* template/context.h - JSON as values of a template. */
#ifndef EBB_TEMPLATE_CONTEXT_H
#define EBB_TEMPLATE_CONTEXT_H
#include <jansson.h>

#include "template/value.h"

/* `mark` goes to every string of the value. */
tpl_val ebb_tpl_from_json(tpl_vm *vm, const json_t *j, tpl_taint taint);
/* Every member of `context` becomes a variable of the current scope.  With
 * vm->marks, texts of messages[i] (but its role) are marked i + 1. */
void ebb_tpl_context(tpl_vm *vm, const json_t *context);

#endif
