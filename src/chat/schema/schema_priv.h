/* schema/schema_priv.h - the inside of the compiler of schemas: this folder only.
 *
 * A schema is brought to shapes (shape.c): alternatives in which every keyword occurs once, so
 * allOf, anyOf, oneOf and $ref are gone.  A shape becomes a piece of grammar for each of its types
 * (write_*.c).  Schemas of properties and items stay schemas and become rules of their own, one for
 * each, so that recursion ends. */
#ifndef EBB_SCHEMA_PRIV_H
#define EBB_SCHEMA_PRIV_H
#include "schema/schema.h"

enum {
    EBB_TYPE_NULL = 1, EBB_TYPE_BOOLEAN = 2, EBB_TYPE_INTEGER = 4, EBB_TYPE_FRACTION = 8, /* number:
                                                                                           * both */
    EBB_TYPE_STRING = 16, EBB_TYPE_ARRAY = 32, EBB_TYPE_OBJECT = 64, EBB_TYPE_ANY = 127,
};
#define EBB_NO_LIMIT UINT64_MAX

typedef struct ebb_bound {
    bool          is_set, is_open;       /* open: the value itself is beyond it */
    double        value;
    const json_t *number;        /* of the schema: the value, exactly */
} ebb_bound;

/* One alternative; every json_t is held. */
typedef struct ebb_shape {
    unsigned    types;
    json_t     *values;          /* of enum and const: a list; NULL: any */
    ebb_bound   min, max;
    uint64_t    min_length, max_length;
    const char *pattern, *format;        /* of the schema; NULL: none */
    uint64_t    min_items, max_items;
    json_t     *prefix;          /* schemas of the first items, a list; NULL: none */
    json_t     *items;           /* of those behind; NULL: anything */
    json_t     *properties;      /* name: schema, in order; NULL: none */
    json_t     *required;        /* name: true */
    json_t     *absent;          /* name: true, that must not be there */
    json_t     *additional;      /* of other properties; NULL: anything */
    uint64_t    min_properties, max_properties;
} ebb_shape;

typedef struct ebb_shapes {
    ebb_shape *list;
    size_t     n, cap;
} ebb_shapes;

typedef struct ebb_schema_rule {
    const json_t *schema;
    int           rule;          /* -1: nothing is valid */
} ebb_schema_rule;

/* A reference that begins at a part with an $id of its own, not at the root. */
typedef struct ebb_schema_base {
    const json_t *ref;           /* the value of $ref, itself */
    const json_t *base;
} ebb_schema_base;

typedef struct ebb_compiler {
    const json_t    *root;
    bool             ref_ignores_siblings;   /* until draft 7: what is beside $ref does not count */
    bool             has_no_prefix_items;    /* until draft 2019-09: `items` is of all of them */
    const char      *id;         /* the keyword: "$id", "id" until draft 4 */
    ebb_schema_base *bases;      /* by ref (ebb_schema_find_bases) */
    size_t           n_bases, cap_bases;
    ebb_buf         *out;        /* rules */
    ebb_buf          path;       /* of the schema at hand: "#/properties/a" */
    json_t          *made;       /* list: what was made by merging */
    ebb_schema_rule *rules;
    size_t           n_rules, cap_rules;
    unsigned         depth;
    uint64_t         spent;      /* ebb_schema_spend */
    uint64_t         ask_at;     /* when so much is spent, `stop` is asked */
    bool           (*stop)(void *arg);   /* NULL: nobody stops it */
    void            *stop_arg;
    unsigned         n_objects;  /* whose rules have a number of their own */
    ebb_error       *err;
    ebb_status       st;         /* the first error */
} ebb_compiler;

/* -- schema_base.c -- */
/* The first error counts; it names the place at hand.  Always false. */
bool ebb_schema_fail(ebb_compiler *c, ebb_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool ebb_schema_fail_no_memory(ebb_compiler *c);
/* So much work is done next, in comparisons of two values.  false: a schema of any use takes less
 * (references and allOf can double it at each step), or it is stopped; it has failed.  What grows
 * with the schema is spent wherever it is done: a few bytes ($ref) do it again. */
bool ebb_schema_spend(ebb_compiler *c, uint64_t n);
enum {
    EBB_SCHEMA_STEP = 100,               /* a schema that is read, two shapes that are merged */
    EBB_SCHEMA_ITEM = 4,                 /* an item of a list that is merged or written */
    EBB_SCHEMA_COPY = 10,                /* a name or a value that is copied or written, and .. */
    EBB_SCHEMA_COPIED_BYTES = 16,        /* .. 1 for so many bytes of it */
    EBB_SCHEMA_SEEN_BYTES = 64,          /* 1 for so many that are only looked at */
    EBB_SCHEMA_WRITTEN_BYTES = 8,        /* 1 for so many of a rule's body */
};
/* A name, all names of an object (NULL is fine), that are copied next. */
bool ebb_schema_spend_name(ebb_compiler *c, const char *name);
bool ebb_schema_spend_names(ebb_compiler *c, const json_t *names);
/* Whether the rules, with this body of one (NULL: none), are no longer than a grammar may be; if
 * not, it has failed.  To be asked in each loop that writes. */
bool ebb_schema_has_room(ebb_compiler *c, const ebb_buf *body);
/* Go down to a part, and come back: the length of the path to give to leave. */
size_t ebb_schema_enter(ebb_compiler *c, const char *keyword, const char *name);
void ebb_schema_leave(ebb_compiler *c, size_t n_path);
/* A call of rule `rule` of this compiler. */
void ebb_schema_add_call(ebb_buf *b, int rule);
/* Text as a literal of the grammar, in quotes. */
void ebb_schema_add_literal(ebb_buf *b, const char *text, size_t n);
/* " | ", if an alternative precedes. */
void ebb_write_way(ebb_buf *b);
/* Of the first character of a text; 0: it is empty. */
size_t ebb_schema_char_bytes(const char *s);
/* For qsort of texts, by their bytes. */
int ebb_schema_compare_texts(const void *a, const void *b);
/* Fill c->bases, once: looked for at each reference, a large schema would take too long. */
bool ebb_schema_find_bases(ebb_compiler *c);
/* Where `#` is of the $ref whose value is `ref` itself, not one equal to it. */
const json_t *ebb_schema_base_of(const ebb_compiler *c, const json_t *ref);
/* The schema that $ref names: from the part with an $id of its own that it stands in, or from the
 * root.  NULL: it failed (LIMIT: it has more than 4,096 bytes). */
const json_t *ebb_schema_find_ref(ebb_compiler *c, const json_t *ref);

/* -- schema.c -- */
/* The rule that a schema becomes, by number; -1: nothing is valid under it, or it failed. */
int ebb_schema_rule_of(ebb_compiler *c, const json_t *schema);

/* -- shape.c, shape_merge.c -- */
void ebb_shapes_fini(ebb_shapes *l);
/* Append the alternatives of a schema; none: nothing is valid. */
bool ebb_schema_shapes(ebb_compiler *c, const json_t *schema, ebb_shapes *out);
/* What is of both. */
bool ebb_shape_merge(ebb_compiler *c, const ebb_shape *a, const ebb_shape *b, ebb_shape *out);
/* Nothing is of both shapes, or they are narrowed until nothing is.  false: that cannot be
 * shown. */
bool ebb_shape_part(ebb_compiler *c, ebb_shape *a, ebb_shape *b);
/* As numbers, exactly: < 0, 0, > 0. */
int ebb_schema_compare_numbers(const json_t *a, const json_t *b);
/* Whether a list has a value; 1.0 is 1.  What is compared is spent. */
bool ebb_schema_has_value(ebb_compiler *c, const json_t *list, const json_t *value);
/* Whether a value of enum is of the rest of the shape; *is_known false: that cannot be told. */
bool ebb_shape_admits(ebb_compiler *c, const ebb_shape *s, const json_t *value, bool *is_known);

/* -- write_*.c: alternatives of a rule, each behind " | " but for the first -- */
void ebb_write_number(ebb_compiler *c, const ebb_shape *s, ebb_buf *b);
void ebb_write_string(ebb_compiler *c, const ebb_shape *s, ebb_buf *b);
void ebb_write_array(ebb_compiler *c, const ebb_shape *s, ebb_buf *b);
void ebb_write_object(ebb_compiler *c, const ebb_shape *s, ebb_buf *b);
/* Of a shape that has them. */
void ebb_write_values(ebb_compiler *c, const ebb_shape *s, ebb_buf *b);
/* pattern.c: the inside of a JSON string that matches a regular expression. */
bool ebb_write_pattern(ebb_compiler *c, const char *pattern, ebb_buf *b);

#endif
