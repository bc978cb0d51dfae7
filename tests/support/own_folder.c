/* A folder of a test's own (own_folder.h). */
#include "support/own_folder.h"

#include <stdio.h>
#include <stdlib.h>

int ebb_own_folder(char *dir, size_t cap, const char *pattern)
{
    snprintf(dir, cap, "%s", pattern);
    return mkdtemp(dir) ? 0 : -1;
}

int ebb_own_folder_end(const char *dir)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

char ebb_own_dir[64];

int ebb_own_dir_make(void **state)
{
    (void)state;
    return ebb_own_folder(ebb_own_dir, sizeof ebb_own_dir, "/tmp/ebb-test-XXXXXX");
}

int ebb_own_dir_drop(void **state)
{
    (void)state;
    return ebb_own_folder_end(ebb_own_dir);
}
