/* base/invariant.h - rules that hold whatever comes from outside, checked while tests run.
 *
 * A checker looks at a whole structure and returns NULL, or the rule that is broken.  It is called
 * where the structure has just been changed, if somebody wants to know: the tests and the fuzzers
 * always do, the program does in builds with assertions (DEBUG, SAN) and in a process whose
 * environment has EBB_CHECK=1.  In a program that links libebb nobody does, and such a place costs
 * a branch. */
#ifndef EBB_INVARIANT_H
#define EBB_INVARIANT_H

/* Gets the text of a broken rule and the place that found it, on any thread and under its locks, so
 * it calls nothing of the structure.  If it returns, the caller goes on as if nothing was wrong. */
typedef void ebb_invariant_fn(const char *rule, const char *file, int line);

/* NULL (at the start): no rule is checked.  Set before threads are begun. */
extern ebb_invariant_fn *ebb_invariant_broken;

#define EBB_INVARIANT(checker)                                       \
    do {                                                             \
        if (ebb_invariant_broken) {                                  \
            const char *rule_ = (checker);                           \
                                                                     \
            if (rule_)                                               \
                ebb_invariant_broken(rule_, __FILE__, __LINE__);     \
        }                                                            \
    } while (0)

#endif
