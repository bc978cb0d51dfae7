/* Memory, faults and reads of this process (proc.h). */
#include "os/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"

#define MAX_BYTES ((size_t)1 << 20)  /* of one file of /proc */
#define SECTOR 512u                  /* of the kernel's counts, whatever the disk's are */
#define STAT_MAJFLT 10               /* field of /proc/self/stat, counted from the state */

bool ebb_proc_field(const char *text, const char *name, uint64_t *out)
{
    size_t n = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0)
            continue;
        const char *p = line + n + strspn(line + n, " \t");
        if (*p < '0' || *p > '9')
            continue;
        char *end;
        uint64_t v = strtoull(p, &end, 10);
        *out = strncmp(end, " kB", 3) == 0 ? v * 1024 : v;
        return true;
    }
    return false;
}

/* Replace *out by the text of <root>/proc/self/<name>. */
static ebb_status read_proc_text(const char *root, const char *name, ebb_buf *out, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st;

    ebb_buf_clear(out);
    if (!ebb_buf_addf(&path, "%s/proc/self/%s", root ? root : "", name))
        return EBB_FAIL(err, EBB_NOMEM, "/proc/self/%s: no memory for its name", name);
    st = ebb_file_slurp(path.data, MAX_BYTES, out, err);
    ebb_buf_fini(&path);
    return st;
}

bool ebb_proc_is_stopped(pid_t pid)
{
    char path[64];
    ebb_buf text = { 0 };
    const char *p = NULL;
    bool is_stopped;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (ebb_file_slurp(path, MAX_BYTES, &text, NULL) == EBB_OK)
        p = strrchr(ebb_buf_text(&text), ')');   /* the program's name may hold anything */
    is_stopped = p && (strncmp(p, ") T ", 4) == 0 || strncmp(p, ") t ", 4) == 0);
    ebb_buf_fini(&text);
    return is_stopped;
}

static uint64_t major_faults(const char *stat)
{
    const char *p = strrchr(stat, ')');          /* the program's name may hold anything */

    for (int i = 0; p && i < STAT_MAJFLT; i++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

ebb_status ebb_proc_read(const char *root, ebb_proc *out, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = read_proc_text(root, "status", &text, err);

    memset(out, 0, sizeof *out);
    if (st == EBB_OK) {
        const char *s = ebb_buf_text(&text);
        ebb_proc_field(s, "RssAnon:", &out->rss_anon_bytes);
        ebb_proc_field(s, "RssFile:", &out->rss_file_bytes);
        ebb_proc_field(s, "RssShmem:", &out->rss_shmem_bytes);
        ebb_proc_field(s, "VmHWM:", &out->rss_peak_bytes);
        ebb_proc_field(s, "VmSwap:", &out->swap_bytes);
        st = read_proc_text(root, "stat", &text, err);
    }
    if (st == EBB_OK) {
        out->n_major_faults = major_faults(ebb_buf_text(&text));
        if (read_proc_text(root, "io", &text, NULL) == EBB_OK) /* some kernels and containers hide it */
            ebb_proc_field(ebb_buf_text(&text), "read_bytes:", &out->read_bytes);
    }
    ebb_buf_fini(&text);
    return st;
}

uint64_t ebb_thread_cpu_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double ebb_proc_cpu_s(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) != 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

bool ebb_cpu_use_read(const char *root, ebb_cpu_use *out)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N };
    unsigned long long v[N] = { 0 }, all = 0;
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    ebb_buf path = { 0 }, text = { 0 };
    int n = 0;

    *out = (ebb_cpu_use){ 0 };
    if (ebb_buf_addf(&path, "%s/proc/stat", root ? root : "") &&
        ebb_file_slurp(path.data, MAX_BYTES, &text, NULL) == EBB_OK)
        n = sscanf(ebb_buf_text(&text), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[USER], &v[NICE], &v[SYSTEM],
                   &v[IDLE], &v[IOWAIT], &v[IRQ], &v[SOFTIRQ], &v[STEAL]);
    ebb_buf_fini(&path);
    ebb_buf_fini(&text);
    if (n <= IDLE)                               /* old kernels have fewer fields */
        return false;
    for (int i = 0; i < N; i++)
        all += v[i];
    out->all_s = (double)all * tick_s;
    out->busy_s = (double)(all - v[IDLE] - v[IOWAIT]) * tick_s;
    return all > 0;
}

bool ebb_disk_use_read(const char *root, uint64_t device, uint64_t *out)
{
    unsigned long long n_read, n_written;
    ebb_buf path = { 0 }, text = { 0 };
    int n = 0;

    *out = 0;
    if (ebb_buf_addf(&path, "%s/sys/dev/block/%u:%u/stat", root ? root : "", major((dev_t)device),
                     minor((dev_t)device)) &&
        ebb_file_slurp(path.data, MAX_BYTES, &text, NULL) == EBB_OK)
        n = sscanf(ebb_buf_text(&text), "%*u %*u %llu %*u %*u %*u %llu", &n_read, &n_written);
    ebb_buf_fini(&path);
    ebb_buf_fini(&text);
    if (n == 2)
        *out = (n_read + n_written) * SECTOR;
    return n == 2;
}
