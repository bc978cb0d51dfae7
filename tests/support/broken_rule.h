/* tests/support/broken_rule.h - a program that includes this checks every rule (base/invariant.h),
 * in every build, and ends at the first that is broken. */
#ifndef EBB_BROKEN_RULE_H
#define EBB_BROKEN_RULE_H
#include "base/invariant.h"

/* Prints the rule and the place, and aborts. */
void ebb_test_rule_is_broken(const char *rule, const char *file, int line);

__attribute__((constructor)) static void ebb_test_check_rules(void)
{
    ebb_invariant_broken = ebb_test_rule_is_broken;
}
#endif
