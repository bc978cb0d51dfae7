/* The XDG base directories (paths.h). */
#include "os/paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

static const struct {
    const char *variable, *below_home;
} dirs[] = {
    [EBB_DIR_CONFIG] = { "XDG_CONFIG_HOME", ".config" },
    [EBB_DIR_STATE]  = { "XDG_STATE_HOME", ".local/state" },
    [EBB_DIR_CACHE]  = { "XDG_CACHE_HOME", ".cache" },
    [EBB_DIR_DATA]   = { "XDG_DATA_HOME", ".local/share" },
};

static bool is_absolute(const char *path)
{
    return path && path[0] == '/';
}

ebb_status ebb_path_in(ebb_dir dir, const char *name, ebb_buf *out, ebb_error *err)
{
    const char *base = getenv(dirs[dir].variable), *home = getenv("HOME");

    ebb_buf_clear(out);
    if (is_absolute(base))
        ebb_buf_addf(out, "%s/ebb", base);
    else if (is_absolute(home))
        ebb_buf_addf(out, "%s/%s/ebb", home, dirs[dir].below_home);
    else
        return EBB_FAIL(err, EBB_NOTFOUND, "no place for ebb's files: set HOME or %s", dirs[dir].variable);
    if (name)
        ebb_buf_addf(out, "/%s", name);
    return out->failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for a path") : EBB_OK;
}

/* The runtime folder is gone when the last login of its user has ended, while tmux lives on, and after su it is another
 * user's. */
static bool is_usable(const char *base, const char *below)
{
    struct stat st;

    return ((stat(base, &st) == 0 || ebb_file_mkdirs(base, NULL) == EBB_OK) && stat(base, &st) == 0) &&
           S_ISDIR(st.st_mode) && st.st_uid == geteuid() && access(base, W_OK | X_OK) == 0 &&
           (lstat(below, &st) != 0 || st.st_uid == geteuid());
}

ebb_status ebb_path_run(ebb_buf *out, ebb_error *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");

    ebb_buf_clear(out);
    if (is_absolute(base) && !ebb_buf_addf(out, "%s/ebb", base))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    return out->len && is_usable(base, out->data) ? EBB_OK : ebb_path_in(EBB_DIR_STATE, "run", out, err);
}

ebb_status ebb_path_expand(const char *path, ebb_buf *out, ebb_error *err)
{
    const char *home = getenv("HOME");
    bool is_below = strncmp(path, "~/", 2) == 0 && is_absolute(home);

    ebb_buf_clear(out);
    return ebb_buf_addf(out, "%s%s", is_below ? home : "", path + is_below)
             ? EBB_OK
             : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
}

bool ebb_path_below(const char *variable, const char *below, ebb_buf *out)
{
    const char *base = getenv(variable);

    ebb_buf_clear(out);
    if (!is_absolute(base))
        return false;
    return below ? ebb_buf_addf(out, "%s/%s", base, below) : ebb_buf_adds(out, base);
}

const char *ebb_path_models(void)
{
    const char *list = getenv("EBB_MODELS");

    return list && *list ? list : NULL;
}

bool ebb_path_next(const char **list, ebb_buf *out)
{
    const char *path = *list ? *list + strspn(*list, ":") : "";
    size_t n = strcspn(path, ":");

    ebb_buf_clear(out);
    *list = path + n;
    return n > 0 && ebb_buf_add(out, path, n);
}
