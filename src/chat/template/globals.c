/* Global functions, and the methods of what they make. */
#include <locale.h>
#include <string.h>
#include <time.h>

#include "template/builtins.h"
#include "template/interp.h"
#include "template/strings.h"

#define FUNCTION(name) static tpl_val name(tpl_vm *vm, tpl_val self, const tpl_val *a, const tpl_call *call)
#define UNUSED (void)vm, (void)self, (void)a, (void)call

enum { RANGE_MAX = 100000 };                     /* as Jinja's sandbox */

FUNCTION(range)
{
    tpl_range *r = ebb_tpl_alloc(vm, sizeof *r);
    bool one = a[1].kind == TPL_ABSENT;

    UNUSED;
    *r = (tpl_range){ .start = one ? 0 : ebb_tpl_want_int(vm, a[0], 0),
                      .stop = ebb_tpl_want_int(vm, one ? a[0] : a[1], 0), .step = ebb_tpl_want_int(vm, a[2], 1) };
    if (r->step == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "range() with step 0");
    tpl_val v = { .kind = TPL_RANGE, .range = r };
    if (ebb_tpl_len(vm, v) > RANGE_MAX)
        ebb_tpl_fail(vm, EBB_LIMIT, "range() longer than %d", RANGE_MAX);
    return v;
}

/* dict(...) and namespace(...): a dict or pairs first, then names. */
static tpl_dict *dict_of(tpl_vm *vm, const tpl_call *call)
{
    tpl_dict *d = ebb_tpl_dict_new(vm, 0);

    for (size_t k = 0; k < call->n_pos; k++) {
        tpl_val v = call->pos[k];
        tpl_list *l = v.kind == TPL_DICT ? NULL : ebb_tpl_items(vm, v);
        for (size_t i = 0; !l && i < v.dict->n; i++)
            ebb_tpl_dict_set(vm, d, v.dict->key[i], v.dict->val[i]);
        for (size_t i = 0; l && i < l->n; i++) {
            tpl_list *pair = ebb_tpl_items(vm, l->v[i]);
            if (pair->n != 2)
                ebb_tpl_fail(vm, EBB_FORMAT, "a dict is made of pairs");
            ebb_tpl_dict_set(vm, d, pair->v[0], pair->v[1]);
        }
    }
    for (size_t i = 0; i < call->n_named; i++)
        ebb_tpl_dict_set(vm, d, ebb_tpl_str(call->names[i]), call->named[i]);
    return d;
}

FUNCTION(dict)       { UNUSED; return ebb_tpl_of_dict(dict_of(vm, call)); }
FUNCTION(make_space) { UNUSED; return (tpl_val){ .kind = TPL_NS, .dict = dict_of(vm, call) }; }

FUNCTION(raise)
{
    UNUSED;
    ebb_tpl_raise(vm, ebb_tpl_to_str(vm, a[0]));
}

/* English names whatever the locale of the program: a prompt must not depend on it. */
FUNCTION(strftime_now)
{
    tpl_str *fmt = ebb_tpl_want_str(vm, a[0]);
    char text[512], *copy = ebb_tpl_alloc(vm, fmt->n + 2);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    size_t n;

    UNUSED;
    memcpy(copy, fmt->p, fmt->n);
    copy[fmt->n] = '.';                          /* so that 0 means: does not fit */
    copy[fmt->n + 1] = '\0';
    n = c ? strftime_l(text, sizeof text, copy, &vm->now, c) : 0;
    if (c)
        freelocale(c);
    if (n == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "strftime_now: the format gives more than %zu bytes", sizeof text);
    return ebb_tpl_str(ebb_tpl_str_new(vm, text, n - 1, 0));
}

/* -- cycler and joiner -------------------------------------------------------------------- */

static tpl_list *positional(tpl_vm *vm, const tpl_call *call)
{
    tpl_list *l = ebb_tpl_list_new(vm, call->n_pos);

    for (size_t i = 0; i < call->n_pos; i++)
        l->v[l->n++] = call->pos[i];
    return l;
}

FUNCTION(cycler)
{
    tpl_cycle *c = ebb_tpl_alloc(vm, sizeof *c);

    UNUSED;
    if (call->n_pos == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "cycler() wants something to cycle through");
    *c = (tpl_cycle){ .items = positional(vm, call) };
    return (tpl_val){ .kind = TPL_CYCLER, .cycle = c };
}

FUNCTION(cycler_next)
{
    tpl_val v = self.cycle->items->v[self.cycle->at];

    UNUSED;
    self.cycle->at = (self.cycle->at + 1) % self.cycle->items->n;
    return v;
}

FUNCTION(cycler_reset)
{
    UNUSED;
    self.cycle->at = 0;
    return ebb_tpl_none();
}

FUNCTION(joiner)
{
    tpl_cycle *c = ebb_tpl_alloc(vm, sizeof *c);

    UNUSED;
    *c = (tpl_cycle){ .sep = a[0].kind == TPL_ABSENT ? ebb_tpl_text(vm, ", ").s : ebb_tpl_to_str(vm, a[0]) };
    return (tpl_val){ .kind = TPL_JOINER, .cycle = c };
}

const tpl_builtin ebb_tpl_globals[] = {
    { "namespace", "*", make_space }, { "raise_exception", "message!", raise },
    { "strftime_now", "format!", strftime_now },
    { "range", "start! stop step", range }, { "dict", "*", dict }, { "cycler", "*", cycler },
    { "joiner", "sep", joiner }, { NULL, NULL, NULL },
};

const tpl_builtin ebb_tpl_methods_cycler[] = {
    { "next", "", cycler_next }, { "reset", "", cycler_reset },
    { NULL, NULL, NULL },
};

/* -- loop ------------------------------------------------------------------------------------ */

FUNCTION(loop_cycle)
{
    UNUSED;
    if (call->n_pos == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "loop.cycle() wants something to cycle through");
    return call->pos[self.loop->at % call->n_pos];
}

FUNCTION(loop_changed)
{
    tpl_list *now = positional(vm, call), *before = self.loop->changed;

    UNUSED;
    self.loop->changed = now;
    return ebb_tpl_bool(!before ||
                        !ebb_tpl_eq(vm, ebb_tpl_of_list(TPL_TUPLE, before), ebb_tpl_of_list(TPL_TUPLE, now)));
}

const tpl_builtin ebb_tpl_methods_loop[] = {
    { "cycle", "*", loop_cycle }, { "changed", "*", loop_changed },
    { NULL, NULL, NULL },
};
