/* The callback for broken invariants (invariant.h). */
#include "base/invariant.h"

ebb_invariant_fn *ebb_invariant_broken;
