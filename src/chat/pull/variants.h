/* pull/variants.h - the models of a listing: files grouped, named by type, rated for this
 * machine. */
#ifndef EBB_PULL_VARIANTS_H
#define EBB_PULL_VARIANTS_H
#include "models/models.h"
#include "pull/hub_listing.h"

typedef struct ebb_pull_variant {
    const ebb_hub_file *parts;   /* in order, of the listing */
    unsigned  n_parts;
    bool      is_whole;          /* all parts are in the listing */
    uint64_t  n_bytes;
    char      type[24];          /* "Q4_K_M", as the name has it; "" */
    ebb_model_rating rating;     /* file.path is borrowed; of the plan: tier, speed and context */
    bool      is_recommended;    /* the one to take */
} ebb_pull_variant;

/* The type in a file's name, upper case: its last part that is one; "" if none is. */
void ebb_pull_type_in_name(const char *name, char out[24]);

/* The models of a listing, which must outlive them, by size, the largest first; *out is for
 * free().  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_pull_group_variants(const ebb_hub_list *l, ebb_pull_variant **out, size_t *n,
                                   ebb_error *err);

/* Which one `want` means: a file's name or path, a type, or the end of a name.  NOTFOUND names
 * those that are spelled like it; LIMIT: several are meant. */
EBB_MUST_CHECK
ebb_status ebb_pull_find_variant(const ebb_pull_variant *o, size_t n, const char *want, size_t *i,
                                 ebb_error *err);

/* Fill rating and suits from sizes and names alone: a token takes every weight from memory once, or
 * from the disk; of a mixture of experts the share that its name says ("30B-A3B").  The headers
 * know better, but are not here yet. */
void ebb_pull_rate_variants(ebb_pull_variant *o, size_t n, const ebb_machine *machine);

/* What to type for this one and no other: its type, else the file's name. */
const char *ebb_pull_variant_spec(const ebb_pull_variant *o, size_t n, size_t i);

#endif
