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
