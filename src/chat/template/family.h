/* template/family.h - chat templates of our own, for files that carry none.
 *
 * A family is chosen by what its models cannot do without: special tokens in the
 * vocabulary, then the architecture, then the model's name.  A new family is one row. */
#ifndef EBB_TEMPLATE_FAMILY_H
#define EBB_TEMPLATE_FAMILY_H
#include <stddef.h>

#include "ebb/model.h"

typedef struct ebb_template_family {
    const char *name;            /* "chatml" */
    const char *source;          /* Jinja */
} ebb_template_family;

/* Row i of the table; NULL past the last. */
const ebb_template_family *ebb_template_family_at(size_t i);
/* NULL: no such family. */
const ebb_template_family *ebb_template_family_named(const char *name);

/* The family for `m`, and in why[0..cap) what chose it ("its token <|im_start|>").
 * Never NULL: without any sign it is "plain", which only joins the messages. */
const ebb_template_family *ebb_template_family_choose(const ebb_model *m, char *why, size_t cap);

#endif
