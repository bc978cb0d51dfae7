/* faults/disk_record.h - what a program writes, as the disk sees it: recorded at the system's edge,
 * and given back as a loss of power may leave it.
 *
 * The test program's own open, pwrite, fdatasync, rename and so on stand in for libc's, for ebb and
 * for SQLite alike.  What is done below the recorded folder is done, and noted in its order.
 *
 * A disk promises little, and no more is taken for granted here: what a file got since its last
 * sync may be there, or not, in any selection of sectors of 512 bytes; its size may be any that it
 * had since; a name that was made, moved or taken away is so for certain once its folder was
 * synced.
 * Within one sector and one name the order stays. */
#ifndef EBB_TESTS_DISK_RECORD_H
#define EBB_TESTS_DISK_RECORD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Record what is done below `root`, an empty folder (an absolute path without links). */
void disk_record_begin(const char *root);
/* No more of it.  What was recorded stays until the next beginning. */
void disk_record_end(void);
/* Operations up to now. */
size_t disk_record_n(void);
/* From now on no sync of anything takes time: what checks an image needs none. */
void disk_record_no_sync(void);

/* Go on to the moment before operation `moment`, which is not less than at the last call. */
void disk_replay_to(size_t moment);
/* What may be there if the power goes now, into the folder `to`, which is made anew; another
 * selection for each seed.  false: it cannot be written. */
bool disk_replay_cut(uint64_t seed, const char *to);

#endif
