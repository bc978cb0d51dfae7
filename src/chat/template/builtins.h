/* template/builtins.h - the tables of filters, tests, methods and global functions. */
#ifndef EBB_TEMPLATE_BUILTINS_H
#define EBB_TEMPLATE_BUILTINS_H
#include "template/value.h"

/* By name; NULL: there is none. */
const tpl_builtin *ebb_tpl_filter_find(const tpl_str *name);
const tpl_builtin *ebb_tpl_test_find(const tpl_str *name);
const tpl_builtin *ebb_tpl_global_find(const tpl_str *name);
const tpl_builtin *ebb_tpl_method_find(tpl_kind kind, const tpl_str *name);

/* The tables, each ended by a NULL name. */
extern const tpl_builtin ebb_tpl_filters_text[];         /* filters_text.c */
extern const tpl_builtin ebb_tpl_filters_number[];       /* filters_text.c */
extern const tpl_builtin ebb_tpl_filters_list[];         /* filters_list.c */
extern const tpl_builtin ebb_tpl_filters_pick[];         /* filters_pick.c */
extern const tpl_builtin ebb_tpl_tests[];                /* is_tests.c */
extern const tpl_builtin ebb_tpl_globals[];              /* globals.c */
extern const tpl_builtin ebb_tpl_methods_str[];          /* methods.c */
extern const tpl_builtin ebb_tpl_methods_dict[];
extern const tpl_builtin ebb_tpl_methods_list[];
extern const tpl_builtin ebb_tpl_methods_loop[];         /* globals.c */
extern const tpl_builtin ebb_tpl_methods_cycler[];

#endif
