#include "template/context.h"

#include <string.h>

#include "template/interp.h"
#include "template/strings.h"

enum { TAINT_MAX = UINT16_MAX };                 /* messages beyond it share the last taint */

static tpl_str *key_of(tpl_vm *vm, const char *key)
{
    tpl_str *s = ebb_tpl_str_new(vm, key, strlen(key), 0);

    ebb_tpl_str_cps(vm, s);
    return s;
}

static tpl_val object_of(tpl_vm *vm, const json_t *j, tpl_taint taint)
{
    tpl_dict *d = ebb_tpl_dict_new(vm, json_object_size(j));
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)j, key, value) {       /* keys differ: no look-up */
        d->key[d->n] = ebb_tpl_str(key_of(vm, key));
        d->val[d->n++] = ebb_tpl_from_json(vm, value, taint);
    }
    return ebb_tpl_of_dict(d);
}

static tpl_val array_of(tpl_vm *vm, const json_t *j, tpl_taint taint)
{
    tpl_list *l = ebb_tpl_list_new(vm, json_array_size(j));
    json_t *value;
    size_t i;

    json_array_foreach(j, i, value)
        l->v[l->n++] = ebb_tpl_from_json(vm, value, taint);
    return ebb_tpl_of_list(TPL_LIST, l);
}

tpl_val ebb_tpl_from_json(tpl_vm *vm, const json_t *j, tpl_taint taint)
{
    tpl_val v = ebb_tpl_none();

    ebb_tpl_step(vm, 1);
    ebb_tpl_enter(vm);
    switch (json_typeof(j)) {
    case JSON_OBJECT:  v = object_of(vm, j, taint); break;
    case JSON_ARRAY:   v = array_of(vm, j, taint); break;
    case JSON_STRING:  v = ebb_tpl_str(ebb_tpl_str_new(vm, json_string_value(j), json_string_length(j), taint)); break;
    case JSON_INTEGER: v = ebb_tpl_int(json_integer_value(j)); break;
    case JSON_REAL:    v = ebb_tpl_float(json_real_value(j)); break;
    case JSON_TRUE: case JSON_FALSE: v = ebb_tpl_bool(json_is_true(j)); break;
    case JSON_NULL: break;
    }
    ebb_tpl_leave(vm);
    return v;
}

static tpl_val message_of(tpl_vm *vm, const json_t *j, tpl_taint taint)
{
    tpl_val v = ebb_tpl_from_json(vm, j, taint),
    *role = v.kind == TPL_DICT ? ebb_tpl_dict_get(vm, v.dict, "role") : NULL;

    if (role)
        *role = ebb_tpl_from_json(vm, json_object_get(j, "role"), 0);
    return v;
}

static tpl_val messages_of(tpl_vm *vm, const json_t *j)
{
    tpl_list *l;
    json_t *value;
    size_t i;

    if (!vm->tracks_taint || !json_is_array(j))
        return ebb_tpl_from_json(vm, j, 0);
    l = ebb_tpl_list_new(vm, json_array_size(j));
    json_array_foreach(j, i, value)
        l->v[l->n++] = message_of(vm, value, (tpl_taint)(i < TAINT_MAX ? i + 1 : TAINT_MAX));
    return ebb_tpl_of_list(TPL_LIST, l);
}

void ebb_tpl_context(tpl_vm *vm, const json_t *context)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)context, key, value) {
        bool messages = strcmp(key, "messages") == 0;
        ebb_tpl_scope_set(vm, key_of(vm, key), messages ? messages_of(vm, value) : ebb_tpl_from_json(vm, value, 0));
    }
}
