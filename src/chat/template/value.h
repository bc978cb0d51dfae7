/* template/value.h - the values of a template, with Python's semantics, and the
 * machine they live in.
 *
 * Values are immutable (namespaces, loops and iterators apart) and never freed one
 * by one: the machine's heap goes as a whole.  A failure anywhere jumps out of the
 * rendering (ebb_tpl_fail), so that code reads like the expression it computes;
 * nothing but the heap is held across a jump.
 *
 * A string knows, if the machine attributes, for each byte which message it came
 * from: mark[i] = index of the message + 1, 0 for the template's own. */
#ifndef EBB_TEMPLATE_VALUE_H
#define EBB_TEMPLATE_VALUE_H
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "ebb/status.h"
#include "template/heap.h"

typedef enum tpl_kind {
    TPL_ABSENT,                  /* an argument that was not given */
    TPL_UNDEF, TPL_NONE, TPL_BOOL, TPL_INT, TPL_FLOAT, TPL_STR, TPL_LIST, TPL_TUPLE, TPL_DICT,
    TPL_RANGE,
    TPL_ITER,                    /* a generator or a view of a dict */
    TPL_NS,                      /* namespace(): a dict whose values change */
    TPL_LOOP, TPL_MACRO, TPL_BUILTIN, TPL_METHOD, TPL_CYCLER, TPL_JOINER,
} tpl_kind;

typedef uint16_t tpl_taint;

typedef struct tpl_str {
    const char     *p;           /* valid UTF-8, no final NUL */
    size_t          n;           /* bytes */
    size_t          n_cp;        /* code points; SIZE_MAX: not counted yet */
    const tpl_taint *taint;      /* n, or NULL: all 0 */
} tpl_str;

typedef struct tpl_val {
    tpl_kind kind;
    union {
        bool     b;
        int64_t  i;
        double   f;
        tpl_str *s;              /* TPL_STR; TPL_UNDEF: the name that was looked for, or NULL */
        struct tpl_list  *list;  /* TPL_LIST, TPL_TUPLE */
        struct tpl_dict  *dict;  /* TPL_DICT, TPL_NS */
        struct tpl_range *range;
        struct tpl_iter  *iter;
        struct tpl_loop  *loop;
        struct tpl_macro *macro;
        struct tpl_bound *bound; /* TPL_METHOD */
        struct tpl_cycle *cycle; /* TPL_CYCLER, TPL_JOINER */
        const struct tpl_builtin *fn;
    };
} tpl_val;

typedef struct tpl_list { size_t n, cap; tpl_val *v; } tpl_list;
typedef struct tpl_dict { size_t n, cap; tpl_val *key, *val; } tpl_dict;
typedef struct tpl_range { int64_t start, stop, step; } tpl_range;
typedef struct tpl_iter {
    tpl_list   *items;
    size_t      at;
    bool        once;            /* a generator: gone when used, no length; else a view */
    const char *type;            /* "dict_items" */
} tpl_iter;
typedef struct tpl_cycle { tpl_list *items; size_t at; tpl_str *sep; } tpl_cycle;
typedef struct tpl_bound { tpl_val self; const struct tpl_builtin *fn; } tpl_bound;

/* The arguments of a call. */
typedef struct tpl_call {
    size_t    n_pos, n_named;
    tpl_val  *pos, *named;
    tpl_str **names;
} tpl_call;

/* A filter, test, method or global function.  params: names in order, separated
 * by blanks, "!" after a name: required, a last "*": any more.  `a` holds one value
 * per name, TPL_ABSENT where none was given. */
enum { TPL_MAX_PARAMS = 6 };
typedef struct tpl_vm tpl_vm;
typedef tpl_val tpl_fn(tpl_vm *vm, tpl_val self, const tpl_val *a, const tpl_call *call);
typedef struct tpl_builtin { const char *name, *params; tpl_fn *fn; } tpl_builtin;

typedef struct tpl_var { const tpl_str *name; tpl_val val; } tpl_var;
typedef struct tpl_scope {
    struct tpl_scope *up;
    size_t n, cap;
    tpl_var *vars;
} tpl_scope;

/* Text under construction, in the machine's heap. */
typedef struct tpl_sb {
    tpl_vm   *vm;
    char     *p;
    tpl_taint *taint;            /* NULL unless the machine attributes */
    size_t    n, cap;
} tpl_sb;

#define TPL_STEPS_PER_LOOK 4096u

struct tpl_vm {
    tpl_heap   heap;
    jmp_buf    jump;
    ebb_status code;             /* what failed, after a jump */
    bool       raised;
    uint32_t   line;             /* of the source, now */
    tpl_str   *message;
    uint64_t   steps, max_steps;
    uint64_t   next_look;        /* at the clock: the step after which it is asked again */
    uint64_t   until_ns;         /* of the thread's clock; 0: no limit of time */
    bool     (*stop)(void *arg); /* asked at each look at the clock; may be NULL */
    void      *stop_arg;
    size_t     max_output_bytes;
    unsigned   depth;
    bool       tracks_taint;
    struct tm  now;
    tpl_sb    *out;
    tpl_scope *scope;
    struct {                     /* room behind the string that was concatenated last */
        char *end; tpl_taint *taint_end; size_t capacity;
    } tail;
};

enum { TPL_MAX_DEPTH = 400 };

/* -- The machine ---------------------------------------------------------------- */
_Noreturn void ebb_tpl_fail(tpl_vm *vm, ebb_status code, const char *fmt,
                            ...) __attribute__((format(printf, 3, 4)));
_Noreturn void ebb_tpl_raise(tpl_vm *vm, tpl_str *message);
/* n bytes, or n elements of `size`, of the machine's heap, until the rendering ends; fails if there
 * is no more. */
void *ebb_tpl_alloc(tpl_vm *vm, size_t n);
void *ebb_tpl_alloc_array(tpl_vm *vm, size_t n, size_t size);
/* Room for one more element behind the n of a list; returns the list, moved or not, and sets
 * *cap. */
void *ebb_tpl_grow(tpl_vm *vm, void *list, size_t n, size_t *cap, size_t size);
/* Account for n units of work, each of some 100 ns or less.  Whatever takes longer for longer data
 * is accounted for where it is done, as the limits of time and the stop are looked at here only. */
void  ebb_tpl_step(tpl_vm *vm, uint64_t n);
void  ebb_tpl_enter(tpl_vm *vm);                 /* one level deeper; every recursion does */
void  ebb_tpl_leave(tpl_vm *vm);

/* -- Making values ---------------------------------------------------------------- */
tpl_val ebb_tpl_undef(tpl_str *name);
tpl_val ebb_tpl_none(void);
tpl_val ebb_tpl_bool(bool b);
tpl_val ebb_tpl_int(int64_t i);
tpl_val ebb_tpl_float(double f);
tpl_val ebb_tpl_str(tpl_str *s);
/* Copied, own text of the template. */
tpl_val ebb_tpl_text(tpl_vm *vm, const char *text);
tpl_val ebb_tpl_of_list(tpl_kind kind, tpl_list *list);
tpl_val ebb_tpl_of_dict(tpl_dict *dict);
tpl_val ebb_tpl_of_iter(tpl_vm *vm, tpl_list *items, bool once, const char *type);

/* Lists and dicts live in the machine's heap; cap is room to begin with.  A dict keeps the order of
 * insertion. */
tpl_list *ebb_tpl_list_new(tpl_vm *vm, size_t cap);
void      ebb_tpl_list_add(tpl_vm *vm, tpl_list *l, tpl_val v);
tpl_dict *ebb_tpl_dict_new(tpl_vm *vm, size_t cap);
void      ebb_tpl_dict_set(tpl_vm *vm, tpl_dict *d, tpl_val key, tpl_val val);
tpl_val  *ebb_tpl_dict_find(tpl_vm *vm, const tpl_dict *d, tpl_val key);      /* NULL: not there */
tpl_val  *ebb_tpl_dict_get(tpl_vm *vm, const tpl_dict *d, const char *key);   /* the same by text */

/* -- What Python asks of values ------------------------------------------------------ */
const char *ebb_tpl_type_name(tpl_val v);        /* "str" */
/* The ith number of a range that has it. */
int64_t  ebb_tpl_range_item(const tpl_range *r, size_t i);
bool     ebb_tpl_truth(tpl_val v);
bool     ebb_tpl_is_number(tpl_val v);           /* int, float, bool */
double   ebb_tpl_as_float(tpl_val v);            /* of a number */
bool     ebb_tpl_eq(tpl_vm *vm, tpl_val a, tpl_val b);
int      ebb_tpl_cmp(tpl_vm *vm, tpl_val a, tpl_val b);          /* fails for types without order */
size_t   ebb_tpl_len(tpl_vm *vm, tpl_val v);     /* fails where len() does */
bool     ebb_tpl_is_iterable(tpl_val v);
tpl_list *ebb_tpl_items(tpl_vm *vm, tpl_val v);  /* what iterating gives; uses up a generator */
bool     ebb_tpl_contains(tpl_vm *vm, tpl_val where, tpl_val what);
_Noreturn void ebb_tpl_fail_undef(tpl_vm *vm, tpl_val v);        /* "'x' is undefined" */

/* Arguments of filters and methods: fail with the name of the argument. */
int64_t  ebb_tpl_want_int(tpl_vm *vm, tpl_val v, int64_t absent);
tpl_str *ebb_tpl_want_str(tpl_vm *vm, tpl_val v);
bool     ebb_tpl_want_bool(tpl_val v, bool absent);
bool     ebb_tpl_given(tpl_val v);               /* neither absent nor None */

/* -- Values as text (text.c) ----------------------------------------------------------- */
tpl_str *ebb_tpl_to_str(tpl_vm *vm, tpl_val v);  /* Python's str() */
void     ebb_tpl_sb_str(tpl_sb *sb, tpl_val v);
void     ebb_tpl_sb_repr(tpl_sb *sb, tpl_val v);
typedef struct tpl_json_style {
    bool     ascii, sort_keys;
    bool     has_indent;
    tpl_str *indent;             /* one level */
    tpl_str *item_sep, *key_sep;
} tpl_json_style;
void     ebb_tpl_sb_json(tpl_sb *sb, tpl_val v, const tpl_json_style *style);

#endif
