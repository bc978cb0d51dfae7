/* A file system to be filled (small_disk.h). */
#include "support/small_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

bool ebb_small_disk_mount(const char *dir, unsigned kib)
{
    char size[32];

    snprintf(size, sizeof size, "size=%uk,mode=700", kib);
    return mount("none", dir, "tmpfs", 0, size) == 0;
}

bool ebb_small_disk_read_only(const char *dir)
{
    return mount("none", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

void ebb_small_disk_unmount(const char *dir)
{
    if (umount2(dir, MNT_DETACH) != 0)
        return;                                  /* it never was mounted */
}

bool ebb_small_disk_fill(const char *dir)
{
    static const char zeroes[4096];
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/filler", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    while (write(fd, zeroes, sizeof zeroes) > 0)
        ;
    return errno == ENOSPC && close(fd) == 0;
}

void ebb_small_disk_empty(const char *dir)
{
    char path[256];

    snprintf(path, sizeof path, "%s/filler", dir);
    unlink(path);
}
