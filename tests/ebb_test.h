/* What every test file includes: cmocka in the order it wants, the rules that are checked, and the
 * paths of optional data. */
#ifndef EBB_TEST_H
#define EBB_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/broken_rule.h"
#include "support/child_failures.h"

/* Whether valgrind or an emulator runs this (EBB_RUN of tests/run.sh): all takes some hundred
 * times as long. */
static inline bool ebb_test_is_emulated(void)
{
    const char *run = getenv("EBB_RUN");

    return run && *run;
}

/* Of cases that are alike one in so many is computed: in n there, all of them elsewhere. */
static inline unsigned ebb_test_one_in(unsigned n)
{
    return ebb_test_is_emulated() ? n : 1;
}

/* How long a test waits for what must come.  Only what hangs takes so long: machines are slow,
 * busy, or stand still for a while. */
#ifdef __SANITIZE_THREAD__
#define EBB_TEST_WAIT_S 1500
#else
#define EBB_TEST_WAIT_S (ebb_test_is_emulated() ? 3000 : 300)
#endif

/* CPU seconds of this process: others on the machine, and a machine that stands still, do not
 * count. */
static inline double ebb_test_cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The directory of shared test data beside the checkout ($EBB_SHARED or
 * ../shared), or NULL: then the test calls skip(), and the summary counts it. */
static inline const char *ebb_test_shared(void)
{
    const char *dir = getenv("EBB_SHARED");

    if (!dir)
        dir = "../shared";
    return access(dir, R_OK) == 0 ? dir : NULL;
}

/* path = shared directory + rest, in a static buffer; skips the test if there is none. */
static inline const char *ebb_test_shared_path(const char *rest)
{
    static char path[8][512];
    static unsigned turn;
    const char *dir = ebb_test_shared();
    char *p = path[turn++ % 8];

    if (!dir)
        skip();
    snprintf(p, sizeof path[0], "%s/%s", dir, rest);
    return p;
}
#endif
