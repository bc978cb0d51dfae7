/* A fake /proc and /sys below a temporary directory.
 *
 *     fake_root_put("/proc/meminfo", "MemTotal: 1 kB\n");
 *     ebb_limits_read(fake_root, ...);
 *     fake_root_clear();                        after each test */
#ifndef EBB_TEST_FAKE_ROOT_H
#define EBB_TEST_FAKE_ROOT_H
#include "ebb_test.h"

#include <ftw.h>

#include "os/file.h"

static char fake_root[] = "/tmp/ebb-root-XXXXXX";

static inline int fake_root_make(void **state)
{
    (void)state;
    return mkdtemp(fake_root) ? 0 : -1;
}

static inline void fake_root_put(const char *path, const char *text)
{
    char full[512], *slash;

    snprintf(full, sizeof full, "%s%s", fake_root, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    assert_int_equal(ebb_file_mkdirs(full, NULL), EBB_OK);
    *slash = '/';
    assert_int_equal(ebb_file_replace(full, text, strlen(text), NULL), EBB_OK);
}

static inline int fake_root_remove_one(const char *path, const struct stat *st, int type,
                                       struct FTW *ftw)
{
    (void)st;
    (void)type;
    return ftw->level == 0 ? 0 : remove(path);
}

static inline int fake_root_clear(void **state)
{
    (void)state;
    return nftw(fake_root, fake_root_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int fake_root_drop(void **state)
{
    return fake_root_clear(state) || rmdir(fake_root);
}
#endif
