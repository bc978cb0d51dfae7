/* Rules that do not hold (invariant.h). */
#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef NDEBUG
bool ebb_invariants_are_on;
#else
bool ebb_invariants_are_on = true;
#endif

__attribute__((constructor)) static void switch_invariants_on(void)
{
    const char *by = getenv("EBB_CHECK");

    if (by && *by)
        ebb_invariants_are_on = *by != '0';
}

void ebb_invariant_fail(const char *rule, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, rule);
    abort();
}
