/* os/proc.h - what this process uses, as the kernel counts it. */
#ifndef EBB_OS_PROC_H
#define EBB_OS_PROC_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebb/status.h"

typedef struct ebb_proc {
    uint64_t rss_anon_bytes;     /* heap, stacks, pinned layers: cannot be dropped */
    uint64_t rss_file_bytes;     /* mapped file pages: the kernel may drop them */
    uint64_t rss_shmem_bytes;
    uint64_t rss_peak_bytes;     /* the highest sum of the three so far (VmHWM) */
    uint64_t swap_bytes;
    uint64_t n_major_faults;     /* page faults that waited for the disk, since start */
    uint64_t read_bytes;         /* fetched from storage since start; 0 where the kernel does not
                                    say */
} ebb_proc;

/* Figures of now.  `root` is the prefix of /proc (a test's fake tree); NULL: none.
 * Errors: IO, NOTFOUND (no /proc), NOMEM.  Cost: three small files, about 50 us. */
EBB_MUST_CHECK
ebb_status ebb_proc_read(const char *root, ebb_proc *out, ebb_error *err);

/* Whether that process was stopped (Ctrl-Z, SIGSTOP, a debugger).  false: it was not, is not there,
 * or the system does not say. */
bool ebb_proc_is_stopped(pid_t pid);

/* CPU seconds that this process has used, user and system, of all its threads. */
double ebb_proc_cpu_s(void);
/* Of the calling thread, to the nanosecond: the process's time lacks up to a tick of each thread
 * that runs. */
uint64_t ebb_thread_cpu_ns(void);

/* Processor time of the whole machine since boot, in seconds of one processor: what its processors
 * did, for whomever, other guests of the host included where it says so; and all of it. */
typedef struct ebb_cpu_use {
    double busy_s, all_s;
} ebb_cpu_use;
/* In ticks of 10 ms.  false: the system does not say.  Cost: one file, 20 to 100 us. */
bool ebb_cpu_use_read(const char *root, ebb_cpu_use *out);

/* Bytes that a block device (ebb_file_id.device) has read and written since boot, for whomever.
 * false: the system does not say, or the files are on no single device.  Cost: one file. */
bool ebb_disk_use_read(const char *root, uint64_t device, uint64_t *out);

/* The number behind `name` at the beginning of a line of `text`, as the files of
 * /proc and of cgroups have it: "MemTotal:   123 kB", "inactive_file 4096".
 * A unit of kB is applied.  false: there is none. */
bool ebb_proc_field(const char *text, const char *name, uint64_t *out);

#endif
