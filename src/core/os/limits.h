/* os/limits.h - what this machine and its keepers let a process have.
 *
 * Facts only; whoever plans draws the conclusions.  Three keepers count
 * memory: the machine (/proc/meminfo), every cgroup on the way from ours to
 * the root (version 1 and 2), and the process's own rlimits.  Page cache
 * counts as used in a cgroup although the kernel drops it when memory is
 * asked for, so it is given apart.
 *
 * `root` is the prefix of /proc and /sys (a test's fake tree); NULL: none. */
#ifndef EBB_OS_LIMITS_H
#define EBB_OS_LIMITS_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/status.h"

#define EBB_LIMIT_NONE UINT64_MAX

typedef struct ebb_limits {
    /* the machine */
    uint64_t total_bytes;
    uint64_t available_bytes;    /* MemAvailable: counts pages of files, ours too, as free */
    uint64_t swap_total_bytes, swap_free_bytes;
    uint64_t commit_bytes;       /* that may still be promised to processes where no more is than
                                    there is (vm.overcommit_memory 2); NONE elsewhere */

    /* of all cgroups above us the one with the least room, which is limit - used + cache */
    uint64_t cgroup_limit_bytes; /* NONE: no cgroup limits memory; the next three are then 0 and
                                    "" */
    uint64_t cgroup_used_bytes;  /* by all of its processes, cache included */
    uint64_t cgroup_cache_bytes; /* file pages among them: never more than cgroup_used_bytes */
    char     cgroup[120];        /* who limits: "memory.max of /user.slice/x" */

    /* the process; NONE if unlimited */
    uint64_t rlimit_as_bytes, rlimit_data_bytes, rlimit_memlock_bytes;

    /* percent of the last 10 s in which some task waited for memory (PSI), of
     * our cgroup or else of the machine; below 0: the kernel does not say */
    double   pressure_some_avg10;

    /* pages of files that had to be read again soon after they were dropped, since boot or since
     * our cgroup was made: they grow while memory is too small for what is in use */
    uint64_t n_refaults;
} ebb_limits;

/* Without /proc/meminfo the kernel is asked (sysinfo).  Errors: those of reading it.  Other files
 * that are missing or unreadable limit nothing; the trace says which.  Cost: ten to thirty small
 * files, < 1 ms. */
EBB_MUST_CHECK
ebb_status ebb_limits_read(const char *root, ebb_limits *out, ebb_error *err);

/* The use of memory by the cgroup that limits it most, for looks that cost a microsecond; and what
 * the machine has. */
typedef struct ebb_limits_gauge {
    int      fd;                 /* -1: no cgroup limits memory, or none can be read */
    int      machine_fd;         /* /proc/meminfo; -1: not to be had */
    uint64_t limit_bytes;
    bool     is_v2;
    char     dir[240];           /* of that cgroup */
} ebb_limits_gauge;
void ebb_limits_gauge_open(const char *root, ebb_limits_gauge *out);
void ebb_limits_gauge_close(ebb_limits_gauge *g);
/* What is used, page cache included; false: unknown. */
bool ebb_limits_gauge_used(const ebb_limits_gauge *g, uint64_t *bytes);
/* What could still be taken there and of the machine, page cache as it is now counted as free;
 * false: unknown.  Costs some 50 microseconds. */
bool ebb_limits_gauge_available(const ebb_limits_gauge *g, uint64_t *bytes);

/* CPUs that this process may use: those of its affinity mask, and not more
 * than its cgroups' CPU quotas, rounded down (a throttled thread would hold up
 * all others).  At least 1. */
uint32_t ebb_limits_cpus(const char *root);

/* Files, sockets among them, that this process may have open at a time; NONE if unlimited. */
uint64_t ebb_limits_files(void);

#endif
