/* The folder in which a fuzzer has its files (folder.h). */
#include "folder.h"

#include <stdlib.h>

#include "fuzz.h"
#include "support/own_folder.h"

static char folder[64];

static void remove_folder(void)
{
    (void)ebb_own_folder_end(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0])
        return folder;
    if (ebb_own_folder(folder, sizeof folder, "/dev/shm/ebb-fuzz-XXXXXX") != 0)
        FUZZ_MUST(ebb_own_folder(folder, sizeof folder, "/tmp/ebb-fuzz-XXXXXX") == 0);
    FUZZ_MUST(atexit(remove_folder) == 0);
    return folder;
}
