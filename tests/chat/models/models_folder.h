/* A folder of models of a test's own, in which everything else that ebb keeps goes, too. */
#ifndef EBB_TESTS_MODELS_FOLDER_H
#define EBB_TESTS_MODELS_FOLDER_H
#include "ebb_test.h"

#include "support/own_folder.h"

static char dir[64];

static int models_folder_setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/var/tmp/ebb-models-XXXXXX") != 0)
        return -1;
    setenv("EBB_MODELS", dir, 1);
    setenv("XDG_DATA_HOME", "/nonexistent", 1);
    setenv("XDG_STATE_HOME", dir, 1);
    return 0;
}

static int models_folder_teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

#endif
