#include "support/own_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[4096], ebb[sizeof dir + 8], speeds[sizeof ebb + 8];

int ebb_own_cache(void **state)
{
    char here[sizeof dir - 32];

    (void)state;
    if (!getcwd(here, sizeof here))
        return -1;
    snprintf(dir, sizeof dir, "%s/build/cache.XXXXXX", here);
    if (!mkdtemp(dir))
        return -1;
    snprintf(ebb, sizeof ebb, "%s/ebb", dir);
    snprintf(speeds, sizeof speeds, "%s/speeds", ebb);
    return setenv("XDG_CACHE_HOME", dir, 1);
}

const char *ebb_own_cache_speeds(void)
{
    return speeds;
}

int ebb_own_cache_end(void **state)
{
    (void)state;
    unlink(speeds);
    rmdir(ebb);
    return rmdir(dir);
}
