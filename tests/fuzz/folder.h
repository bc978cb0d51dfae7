/* The folder in which a fuzzer has its files. */
#ifndef EBB_FUZZ_FOLDER_H
#define EBB_FUZZ_FOLDER_H

/* Its path: in memory where the machine has /dev/shm, as a disk would set the pace.  Made at the
 * first call; goes with the program, with all that is in it. */
const char *fuzz_folder(void);

#endif
