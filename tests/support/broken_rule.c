/* A test that meets a broken rule ends (broken_rule.h). */
#include "support/broken_rule.h"

#include <stdio.h>
#include <stdlib.h>

void ebb_test_rule_is_broken(const char *rule, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, rule);
    abort();
}
