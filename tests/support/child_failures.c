/* Failures in children (child_failures.h). */
#include "support/child_failures.h"

#include <stdlib.h>

void ebb_test_abort_at_failure(void)
{
    setenv("CMOCKA_TEST_ABORT", "1", 1);
}
