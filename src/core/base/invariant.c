/* Who wants to know of broken rules (invariant.h). */
#include "base/invariant.h"

ebb_invariant_fn *ebb_invariant_broken;
