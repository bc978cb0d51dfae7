#include "template/builtins.h"

#include "template/strings.h"

static const tpl_builtin *find_builtin(const tpl_builtin *table, const tpl_str *name)
{
    for (; table->name; table++)
        if (ebb_tpl_str_is(name, table->name))
            return table;
    return NULL;
}

const tpl_builtin *ebb_tpl_filter_find(const tpl_str *name)
{
    const tpl_builtin *const tables[] = {
        ebb_tpl_filters_text, ebb_tpl_filters_number, ebb_tpl_filters_list, ebb_tpl_filters_pick,
    };
    const tpl_builtin *hit = NULL;

    for (size_t i = 0; !hit && i < sizeof tables / sizeof *tables; i++)
        hit = find_builtin(tables[i], name);
    return hit;
}

const tpl_builtin *ebb_tpl_test_find(const tpl_str *name)   { return find_builtin(ebb_tpl_tests, name); }
const tpl_builtin *ebb_tpl_global_find(const tpl_str *name) { return find_builtin(ebb_tpl_globals, name); }

const tpl_builtin *ebb_tpl_method_find(tpl_kind kind, const tpl_str *name)
{
    switch (kind) {
    case TPL_STR:    return find_builtin(ebb_tpl_methods_str, name);
    case TPL_DICT:   return find_builtin(ebb_tpl_methods_dict, name);
    case TPL_LIST: case TPL_TUPLE: return find_builtin(ebb_tpl_methods_list, name);
    case TPL_LOOP:   return find_builtin(ebb_tpl_methods_loop, name);
    case TPL_CYCLER: return find_builtin(ebb_tpl_methods_cycler, name);
    default:         return NULL;
    }
}
