/* A folder of a test's own. */
#ifndef EBB_TESTS_OWN_FOLDER_H
#define EBB_TESTS_OWN_FOLDER_H
#include <stddef.h>

/* Make it: dir[0..cap) receives its path, `pattern` ("/tmp/ebb-chat-XXXXXX") with other letters at
 * the end.  0, or -1, as setups return it. */
int ebb_own_folder(char *dir, size_t cap, const char *pattern);
/* It goes, with all that is in it.  0, or what went wrong. */
int ebb_own_folder_end(const char *dir);

/* One for a test or a group, as its set-up and tear-down. */
extern char ebb_own_dir[64];
int ebb_own_dir_make(void **state);
int ebb_own_dir_drop(void **state);

#endif
