/* A cache folder of the test's own, as group set-up and tear-down: what ebb remembers of speeds
 * goes there. */
#ifndef EBB_TESTS_OWN_CACHE_H
#define EBB_TESTS_OWN_CACHE_H

int ebb_own_cache(void **state);
/* The file of speeds in it, which need not be there. */
const char *ebb_own_cache_speeds(void);
/* The folder goes, and must hold nothing but that file. */
int ebb_own_cache_end(void **state);

#endif
