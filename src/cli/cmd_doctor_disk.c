/* The disk that holds the models, for the doctor (cmd_doctor.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cmd_doctor.h"
#include "os/file.h"

#define CACHE_READ ((size_t)32 << 20)            /* read twice for the speed of the page cache */
#define SLOW_DISK  0.4e9

static double cached_speed(const char *path)
{
    double begin, speed = 0;
    int fd = -1;
    char *to = malloc(CACHE_READ);
    uint64_t n = 0;

    if (to && ebb_file_open(path, EBB_FILE_READ, &fd, NULL) == EBB_OK && ebb_file_size(fd, path, &n, NULL) == EBB_OK &&
        n >= CACHE_READ && ebb_file_read_at(fd, path, to, CACHE_READ, 0, NULL) == EBB_OK) {
        begin = ebb_clock_s();
        if (ebb_file_read_at(fd, path, to, CACHE_READ, 0, NULL) == EBB_OK)
            speed = (double)CACHE_READ / (ebb_clock_s() - begin);
    }
    ebb_file_close(fd);
    free(to);
    return speed;
}

/* The kernel's rotational flag; virtual disks often claim it wrongly. */
static bool says_rotational(const char *root, const char *path)
{
    ebb_buf text = { 0 };
    char name[300];
    ebb_file_id id;
    bool is = false;
    int fd;

    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return false;
    if (ebb_file_get_id(fd, path, &id, NULL) == EBB_OK) {
        for (int i = 0; i < 2 && text.len == 0; i++) {   /* a partition's queue is its disk's */
            snprintf(name, sizeof name, "%.200s/sys/dev/block/%u:%u%s/queue/rotational", root, major(id.device),
                     minor(id.device), i ? "/.." : "");
            is = ebb_file_slurp(name, 64, &text, NULL) == EBB_OK && text.len > 0 && text.data[0] == '1';
        }
    }
    ebb_buf_fini(&text);
    ebb_file_close(fd);
    return is;
}

/* Disks of virtual machines say that they rotate, whatever they are: it is believed of slow ones. */
void ebb_doctor_file_system(ebb_doctor_report *r, const char *name, bool is_rotational, double best_bytes_s)
{
    bool is_slow = best_bytes_s > 0 && best_bytes_s < SLOW_DISK;
    ebb_doctor_finding *f = ebb_doctor_add(r, "file_system", "%s%s", name,
                                           is_rotational && is_slow ? ", on a rotating disk" : "");

    if (strcmp(name, "btrfs") == 0 || strcmp(name, "zfs") == 0)
        ebb_doctor_advise(f, "compression defeats direct reads: keep models in a folder without it (chattr +m; zfs set "
                             "compression=off)");
    else if (strcmp(name, "nfs") == 0 || strcmp(name, "cifs") == 0 || strcmp(name, "9p") == 0 ||
             strcmp(name, "fuse") == 0)
        ebb_doctor_advise(f, "a model that does not fit is read from it for every token: a local disk is faster");
    else if (strcmp(name, "tmpfs") == 0)
        ebb_doctor_advise(f, "files on tmpfs take memory: a model is better kept on a disk");
    else if (is_slow)
        ebb_doctor_advise(f, "at %.2f GB/s a model that does not fit is slow: choose one that fits, or a faster disk",
                          best_bytes_s / 1e9);
}

static void report_reader(ebb_doctor_report *r, const ebb_disk_reader *d)
{
    char key[40];

    snprintf(key, sizeof key, "disk_%.7s_bytes_s", d->name);
    ebb_doctor_figure(r, key, d->bytes_s);
    if (!d->is_allowed)
        ebb_doctor_add(r, "disk", "%s: %.90s", d->name, d->why_not);
    else if (d->bytes_s > 0)
        ebb_doctor_add(r, "disk", "%s: %.2f GB/s cold, %.2f CPU seconds per GB%s", d->name, d->bytes_s / 1e9,
                       d->cpu_s_per_gb, d->is_best ? "; --io auto takes it" : "");
    else
        ebb_doctor_add(r, "disk", "%s: works (the file is too small to measure)", d->name);
}

void ebb_doctor_disk(ebb_doctor_report *r, const char *root, const char *path)
{
    ebb_disk_reader readers[EBB_N_DISK_READERS];
    ebb_error err = { 0 };
    double cached = cached_speed(path), best = 0;
    ebb_status st = ebb_machine_measure_readers(path, readers, &err);
    char fs[16];

    for (int i = 0; i < EBB_N_DISK_READERS && st == EBB_OK; i++)
        best = readers[i].bytes_s > best ? readers[i].bytes_s : best;
    ebb_file_system_name(path, fs);
    ebb_doctor_file_system(r, fs, says_rotational(root, path), best);
    if (st != EBB_OK)
        ebb_doctor_add(r, "disk", "%.150s", err.msg);
    for (int i = 0; i < EBB_N_DISK_READERS && st == EBB_OK; i++)
        report_reader(r, &readers[i]);
    if (st == EBB_OK)
        ebb_doctor_io_uring(r, root, &readers[0]);
    if (cached > 0)
        ebb_doctor_add(r, "page_cache", "%.1f GB/s from the page cache", cached / 1e9);
    ebb_doctor_figure(r, "cached_bytes_s", cached);
}
