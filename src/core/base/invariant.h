/* base/invariant.h - rules that hold whatever comes from outside, asked while tests run.
 *
 * A checker looks at a whole structure and returns NULL, or which of its rules does not hold.  It
 * is asked where the structure has just been changed: in builds with assertions (DEBUG, SAN), and
 * in any build in a process whose environment has EBB_CHECK=1, as that of every test has.
 * Elsewhere such a place costs a branch. */
#ifndef EBB_INVARIANT_H
#define EBB_INVARIANT_H
#include <stdbool.h>

extern bool ebb_invariants_are_on;       /* constant from the program's start */

/* Say which rule is broken where, and abort: what comes next would be somebody's data. */
_Noreturn void ebb_invariant_fail(const char *rule, const char *file, int line);

#define EBB_INVARIANT(checker)                                            \
    do {                                                                  \
        const char *rule_ = ebb_invariants_are_on ? (checker) : (void *)0; \
                                                                          \
        if (rule_)                                                        \
            ebb_invariant_fail(rule_, __FILE__, __LINE__);                \
    } while (0)

#endif
