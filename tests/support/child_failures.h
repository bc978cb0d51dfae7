/* tests/support/child_failures.h - a test that fails in a child that it forked ends the child.
 * cmocka would go on there with the tests that follow, take down what the parent uses, and report
 * all of it once more. */
#ifndef EBB_CHILD_FAILURES_H
#define EBB_CHILD_FAILURES_H
#include <pthread.h>

/* From here on a failing assertion aborts this process; so it does in programs that it starts. */
void ebb_test_abort_at_failure(void);

__attribute__((constructor)) static void ebb_test_watch_children(void)
{
    pthread_atfork(NULL, NULL, ebb_test_abort_at_failure);
}
#endif
