/* Limits of memory and CPUs (limits.h). */
#include "os/limits.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/proc.h"

#define MAX_BYTES     ((size_t)1 << 20)  /* of one file of /proc or /sys */
#define V1_UNLIMITED  ((uint64_t)1 << 62)/* version 1 writes "no limit" as a number near 2^63 */
#define MOUNT         "/sys/fs/cgroup"
#define OVERCOMMIT_NEVER 2                 /* of vm.overcommit_memory */
#define MAX_CPUS      (1 << 16)

/* Replace *out by the file's text.  A file that is not there is silent: most of them need not be. */
static bool read_file_text(const char *path, ebb_buf *out)
{
    ebb_error err = { 0 };
    ebb_status st;

    ebb_buf_clear(out);
    st = ebb_file_slurp(path, MAX_BYTES, out, &err);
    if (st != EBB_OK && st != EBB_NOTFOUND)
        ebb_log("limits", "%s", err.msg);
    return st == EBB_OK;
}

/* The number in a file of one number; NONE for "max". */
static bool slurp_number(const char *dir, const char *name, ebb_buf *text, uint64_t *out)
{
    ebb_buf path = { 0 };
    char *end;
    bool ok = ebb_buf_addf(&path, "%s/%s", dir, name) && read_file_text(path.data, text);

    ebb_buf_fini(&path);
    if (!ok)
        return false;
    if (strncmp(ebb_buf_text(text), "max", 3) == 0) {
        *out = EBB_LIMIT_NONE;
        return true;
    }
    *out = strtoull(ebb_buf_text(text), &end, 10);
    if (*out >= V1_UNLIMITED)
        *out = EBB_LIMIT_NONE;
    return end != ebb_buf_text(text);
}

/* -- From our cgroup up to the root ------------------------------------------- */
typedef struct cgroup_walk {
    ebb_buf dir;                 /* the directory of the current level */
    size_t  mount_bytes;         /* how much of it is the mount point */
    bool    v2;
} cgroup_walk;

/* Is `name` one of the comma-separated controllers list[0..n)? */
static bool has_controller(const char *list, size_t n, const char *name)
{
    size_t want = strlen(name);

    for (const char *p = list; p < list + n;) {
        size_t len = strcspn(p, ",:");
        if (len == want && strncmp(p, name, want) == 0)
            return true;
        p += len + 1;
    }
    return false;
}

/* Our path in the hierarchy of `controller` out of /proc/self/cgroup's lines
 * "4:memory:/path" (version 1) and "0::/path" (version 2). */
static const char *find_cgroup_path(const char *lines, const char *controller, bool *v2)
{
    const char *path = NULL;

    for (const char *line = lines; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *list = strchr(line, ':'), *end = list ? strchr(list + 1, ':') : NULL;
        if (!end)
            break;
        if (has_controller(list + 1, (size_t)(end - list - 1), controller)) {
            *v2 = false;
            return end + 1;
        }
        if (end == list + 1 && line[0] == '0') {
            *v2 = true;
            path = end + 1;
        }
    }
    return path;
}

/* Begin the walk up the hierarchy of `controller` at our own cgroup; false if there is none. */
static bool walk_begin(cgroup_walk *w, const char *root, const char *controller)
{
    ebb_buf text = { 0 }, file = { 0 };
    const char *path = NULL;

    memset(w, 0, sizeof *w);
    if (ebb_buf_addf(&file, "%s/proc/self/cgroup", root) && read_file_text(file.data, &text))
        path = find_cgroup_path(ebb_buf_text(&text), controller, &w->v2);
    if (path) {
        size_t n = strcspn(path, "\n");
        ebb_buf_addf(&w->dir, "%s" MOUNT, root);
        if (!w->v2)
            ebb_buf_addf(&w->dir, "/%s", controller);
        w->mount_bytes = w->dir.len;
        if (n > 1 && !strstr(path, "/.."))       /* above our name space: only the mount can be seen */
            ebb_buf_add(&w->dir, path, n);
    }
    ebb_buf_fini(&text);
    ebb_buf_fini(&file);
    return path && !w->dir.failed;
}

/* One level up; false at the mount point. */
static bool walk_up(cgroup_walk *w)
{
    char *slash;

    if (w->dir.len <= w->mount_bytes)
        return false;
    slash = strrchr(w->dir.data, '/');
    ebb_buf_remove(&w->dir, (size_t)(slash - w->dir.data), w->dir.len - (size_t)(slash - w->dir.data));
    return true;
}

static const char *walk_name(const cgroup_walk *w)
{
    const char *name = w->dir.data + w->mount_bytes;

    return *name ? name : "/";
}

/* -- Memory ------------------------------------------------------------------------ */
static uint64_t slurp_cache(const cgroup_walk *w, ebb_buf *text)
{
    uint64_t inactive = 0, active = 0;
    ebb_buf path = { 0 };

    if (ebb_buf_addf(&path, "%s/memory.stat", w->dir.data) && read_file_text(path.data, text)) {
        ebb_proc_field(ebb_buf_text(text), w->v2 ? "inactive_file" : "total_inactive_file", &inactive);
        ebb_proc_field(ebb_buf_text(text), w->v2 ? "active_file" : "total_active_file", &active);
    }
    ebb_buf_fini(&path);
    return inactive + active;
}

static uint64_t headroom_of(uint64_t limit, uint64_t used, uint64_t cache)
{
    uint64_t hard = used > cache ? used - cache : 0;

    return limit > hard ? limit - hard : 0;
}

/* Take the level's limit, kept in file `name`, if it leaves less headroom than that of *out. */
static void take_tighter_limit(const cgroup_walk *w, const char *name, ebb_buf *text, ebb_limits *out)
{
    uint64_t limit = EBB_LIMIT_NONE, used = 0, cache;

    if (!slurp_number(w->dir.data, name, text, &limit) || limit == EBB_LIMIT_NONE)
        return;
    if (!slurp_number(w->dir.data, w->v2 ? "memory.current" : "memory.usage_in_bytes", text, &used))
        used = 0;
    cache = slurp_cache(w, text);
    if (cache > used)
        cache = used;             /* two files, read one after the other; and `used` may be unreadable */
    if (out->cgroup_limit_bytes != EBB_LIMIT_NONE &&
        headroom_of(limit, used, cache) >=
            headroom_of(out->cgroup_limit_bytes, out->cgroup_used_bytes, out->cgroup_cache_bytes))
        return;
    out->cgroup_limit_bytes = limit;
    out->cgroup_used_bytes = used;
    out->cgroup_cache_bytes = cache;
    snprintf(out->cgroup, sizeof out->cgroup, "%s of %s", name, walk_name(w));
}

static bool read_pressure(const char *dir, const char *name, ebb_buf *text, double *out)
{
    ebb_buf path = { 0 };
    double v = -1;
    bool ok = ebb_buf_addf(&path, "%s/%s", dir, name) && read_file_text(path.data, text) &&
              sscanf(ebb_buf_text(text), "some avg10=%lf", &v) == 1;

    ebb_buf_fini(&path);
    if (ok)
        *out = v;
    return ok;
}

static void read_refaults(const char *dir, const char *name, ebb_buf *text, ebb_limits *out)
{
    ebb_buf path = { 0 };

    if (ebb_buf_addf(&path, "%s/%s", dir, name) && read_file_text(path.data, text) &&
        !ebb_proc_field(ebb_buf_text(text), "workingset_refault_file", &out->n_refaults))
        ebb_proc_field(ebb_buf_text(text), "workingset_refault", &out->n_refaults);      /* before Linux 5.9 */
    ebb_buf_fini(&path);
}

static void read_cgroups(const char *root, ebb_limits *out, ebb_buf *text)
{
    cgroup_walk w;
    bool found = walk_begin(&w, root, "memory");

    if (found && w.v2)
        read_pressure(w.dir.data, "memory.pressure", text, &out->pressure_some_avg10);
    if (found && w.v2)
        read_refaults(w.dir.data, "memory.stat", text, out);
    while (found) {
        take_tighter_limit(&w, w.v2 ? "memory.max" : "memory.limit_in_bytes", text, out);
        if (w.v2)
            take_tighter_limit(&w, "memory.high", text, out); /* beyond it the kernel slows us down */
        found = walk_up(&w);
    }
    ebb_buf_fini(&w.dir);
}

static uint64_t read_rlimit(int which)
{
    struct rlimit r;

    if (ebb_os_fault(EINVAL) || getrlimit((__rlimit_resource_t)which, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return EBB_LIMIT_NONE;
    return r.rlim_cur;
}

uint64_t ebb_limits_files(void)
{
    return read_rlimit(RLIMIT_NOFILE);
}

/* Without /proc the kernel can still be asked; file pages that it could drop are not told then. */
static ebb_status ask_kernel(ebb_limits *out, ebb_error *err)
{
    struct sysinfo s;

    if (ebb_os_fault(EINVAL) || sysinfo(&s) != 0)
        return EBB_FAIL(err, EBB_IO, "neither /proc/meminfo nor the kernel says how much memory there is: %s",
                        strerror(errno));
    out->total_bytes = (uint64_t)s.totalram * s.mem_unit;
    out->available_bytes = ((uint64_t)s.freeram + s.bufferram) * s.mem_unit;
    out->swap_total_bytes = (uint64_t)s.totalswap * s.mem_unit;
    out->swap_free_bytes = (uint64_t)s.freeswap * s.mem_unit;
    return EBB_OK;
}

static ebb_status read_meminfo(const char *root, ebb_limits *out, ebb_buf *text, ebb_error *err)
{
    uint64_t limit, promised, mode;
    ebb_buf path = { 0 };
    const char *s;
    bool is_told;
    ebb_error why = { 0 };
    ebb_status st;

    if (!ebb_buf_addf(&path, "%s/proc/meminfo", root))
        return EBB_FAIL(err, EBB_NOMEM, "/proc/meminfo: no memory for its name");
    ebb_buf_clear(text);
    st = ebb_file_slurp(path.data, MAX_BYTES, text, &why);
    if (st == EBB_NOTFOUND) {                    /* no error, and none is left in *err */
        ebb_buf_fini(&path);
        return ask_kernel(out, err);
    }
    if (st != EBB_OK && err)
        *err = why;
    s = ebb_buf_text(text);
    if (st == EBB_OK && !ebb_proc_field(s, "MemTotal:", &out->total_bytes))
        st = EBB_FAIL(err, EBB_FORMAT, "%s: has no MemTotal", path.data);
    if (st == EBB_OK && !ebb_proc_field(s, "MemAvailable:", &out->available_bytes))
        ebb_proc_field(s, "MemFree:", &out->available_bytes);
    ebb_proc_field(s, "SwapTotal:", &out->swap_total_bytes);
    ebb_proc_field(s, "SwapFree:", &out->swap_free_bytes);
    is_told = ebb_proc_field(s, "CommitLimit:", &limit) && ebb_proc_field(s, "Committed_AS:", &promised);
    ebb_buf_clear(&path);
    if (is_told && ebb_buf_addf(&path, "%s/proc/sys/vm", root) &&
        slurp_number(path.data, "overcommit_memory", text, &mode) && mode == OVERCOMMIT_NEVER)
        out->commit_bytes = limit > promised ? limit - promised : 0;
    ebb_buf_fini(&path);
    return st;
}

ebb_status ebb_limits_read(const char *root, ebb_limits *out, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st;

    root = root ? root : "";
    *out = (ebb_limits){ .commit_bytes = EBB_LIMIT_NONE, .cgroup_limit_bytes = EBB_LIMIT_NONE,
                         .pressure_some_avg10 = -1 };
    st = read_meminfo(root, out, &text, err);
    if (st == EBB_OK) {
        read_cgroups(root, out, &text);
        out->rlimit_as_bytes = read_rlimit(RLIMIT_AS);
        out->rlimit_data_bytes = read_rlimit(RLIMIT_DATA);
        out->rlimit_memlock_bytes = read_rlimit(RLIMIT_MEMLOCK);
    }
    ebb_buf proc = { 0 };
    if (st == EBB_OK && out->pressure_some_avg10 < 0 && ebb_buf_addf(&proc, "%s/proc/pressure", root))
        read_pressure(proc.data, "memory", &text, &out->pressure_some_avg10);
    ebb_buf_clear(&proc);
    if (st == EBB_OK && out->n_refaults == 0 && ebb_buf_addf(&proc, "%s/proc", root))
        read_refaults(proc.data, "vmstat", &text, out);
    ebb_buf_fini(&proc);
    ebb_buf_fini(&text);
    return st;
}

/* -- A gauge ----------------------------------------------------------------------- */

/* Beyond memory.high a cgroup is not killed but throttled to a stop, which is no better. */
static bool slurp_limit(const cgroup_walk *w, ebb_buf *text, uint64_t *out)
{
    uint64_t high;

    if (!slurp_number(w->dir.data, w->v2 ? "memory.max" : "memory.limit_in_bytes", text, out))
        return false;
    if (w->v2 && slurp_number(w->dir.data, "memory.high", text, &high) && high < *out)
        *out = high;
    return *out != EBB_LIMIT_NONE;
}

void ebb_limits_gauge_open(const char *root, ebb_limits_gauge *out)
{
    ebb_buf text = { 0 }, path = { 0 };
    uint64_t least = UINT64_MAX;
    cgroup_walk w;
    bool found = walk_begin(&w, root ? root : "", "memory");

    *out = (ebb_limits_gauge){ .fd = -1, .machine_fd = -1, .limit_bytes = EBB_LIMIT_NONE };
    if (ebb_buf_addf(&path, "%s/proc/meminfo", root ? root : ""))
        (void)!ebb_file_open(path.data, EBB_FILE_READ, &out->machine_fd, NULL);
    for (; found; found = walk_up(&w)) {
        const char *use = w.v2 ? "memory.current" : "memory.usage_in_bytes";
        uint64_t limit, used;

        if (!slurp_limit(&w, &text, &limit) || !slurp_number(w.dir.data, use, &text, &used) ||
            headroom_of(limit, used, 0) >= least)
            continue;
        least = headroom_of(limit, used, 0);
        ebb_file_close(out->fd);
        out->fd = -1;
        ebb_buf_clear(&path);
        if (!ebb_buf_addf(&path, "%s/%s", w.dir.data, use) ||
            ebb_file_open(path.data, EBB_FILE_READ, &out->fd, NULL) != EBB_OK)
            continue;
        out->limit_bytes = limit;
        out->is_v2 = w.v2;
        snprintf(out->dir, sizeof out->dir, "%s", w.dir.data);
    }
    ebb_buf_fini(&w.dir);
    ebb_buf_fini(&text);
    ebb_buf_fini(&path);
}

void ebb_limits_gauge_close(ebb_limits_gauge *g)
{
    ebb_file_close(g->fd);
    ebb_file_close(g->machine_fd);
    g->fd = g->machine_fd = -1;
}

bool ebb_limits_gauge_used(const ebb_limits_gauge *g, uint64_t *bytes)
{
    char text[32];
    ssize_t n = g->fd < 0 || ebb_os_fault(EIO) ? -1 : pread(g->fd, text, sizeof text - 1, 0);

    if (n <= 0)
        return false;
    text[n] = '\0';
    *bytes = strtoull(text, NULL, 10);
    return true;
}

static bool cgroup_available(const ebb_limits_gauge *g, uint64_t *bytes)
{
    cgroup_walk w = { .v2 = g->is_v2 };
    ebb_buf text = { 0 };
    uint64_t used;
    bool ok = ebb_limits_gauge_used(g, &used) && ebb_buf_adds(&w.dir, g->dir);

    if (ok)
        *bytes = headroom_of(g->limit_bytes, used, slurp_cache(&w, &text));
    ebb_buf_fini(&w.dir);
    ebb_buf_fini(&text);
    return ok;
}

static bool machine_available(const ebb_limits_gauge *g, uint64_t *bytes)
{
    char text[512];                              /* it is the third line */
    ssize_t n = g->machine_fd < 0 || ebb_os_fault(EIO) ? -1 : pread(g->machine_fd, text, sizeof text - 1, 0);

    if (n <= 0)
        return false;
    text[n] = '\0';
    return ebb_proc_field(text, "MemAvailable:", bytes);
}

bool ebb_limits_gauge_available(const ebb_limits_gauge *g, uint64_t *bytes)
{
    uint64_t cgroup = EBB_LIMIT_NONE, machine = EBB_LIMIT_NONE;
    bool has_cgroup = g->fd < 0 || cgroup_available(g, &cgroup), has_machine = machine_available(g, &machine);

    *bytes = cgroup < machine ? cgroup : machine;
    return has_cgroup && (has_machine || g->fd >= 0);
}

/* -- CPUs -------------------------------------------------------------------------- */
static uint32_t count_affinity(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    for (int n = CPU_SETSIZE; n <= MAX_CPUS; n *= 2) {       /* the kernel's own mask may be larger than ours */
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        size_t bytes = CPU_ALLOC_SIZE((size_t)n);
        int count = 0;
        if (set && !ebb_os_fault(EINVAL) && sched_getaffinity(0, bytes, set) == 0)
            count = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (count > 0)
            return (uint32_t)count;
    }
    return online > 0 ? (uint32_t)online : 1;
}

/* CPUs' worth of time that this level grants; 0: no quota. */
static double read_quota(const cgroup_walk *w, ebb_buf *text)
{
    uint64_t quota = EBB_LIMIT_NONE, period = 0;
    ebb_buf path = { 0 };
    unsigned long long q, p;

    if (!w->v2) {
        if (!slurp_number(w->dir.data, "cpu.cfs_quota_us", text, &quota) ||
            !slurp_number(w->dir.data, "cpu.cfs_period_us", text, &period))
            return 0;                            /* -1, no quota, reads as NONE */
    } else if (ebb_buf_addf(&path, "%s/cpu.max", w->dir.data) && read_file_text(path.data, text) &&
               sscanf(ebb_buf_text(text), "%llu %llu", &q, &p) == 2) {
        quota = q;
        period = p;
    }
    ebb_buf_fini(&path);
    return quota == EBB_LIMIT_NONE || period == 0 ? 0 : (double)quota / (double)period;
}

uint32_t ebb_limits_cpus(const char *root)
{
    uint32_t n = count_affinity();
    ebb_buf text = { 0 };
    cgroup_walk w;
    bool found = walk_begin(&w, root ? root : "", "cpu");

    while (found) {
        double quota = read_quota(&w, &text);
        if (quota > 0 && quota < n)
            n = quota < 1 ? 1 : (uint32_t)quota;
        found = walk_up(&w);
    }
    ebb_buf_fini(&w.dir);
    ebb_buf_fini(&text);
    return n;
}
