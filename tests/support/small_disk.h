/* A file system of a few MB of its own, to be filled: a tmpfs on a folder.  Needs the right to
 * mount. */
#ifndef EBB_TESTS_SMALL_DISK_H
#define EBB_TESTS_SMALL_DISK_H
#include <stdbool.h>

/* Mount one of `kib` on the folder; false: it is not allowed here, and the test is skipped. */
bool ebb_small_disk_mount(const char *dir, unsigned kib);
/* Nothing is written to it or removed from it any more. */
bool ebb_small_disk_read_only(const char *dir);
void ebb_small_disk_unmount(const char *dir);
/* Take all room that is left, in a file of the folder; and give it back. */
bool ebb_small_disk_fill(const char *dir);
void ebb_small_disk_empty(const char *dir);

#endif
