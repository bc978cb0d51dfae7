/* Filters by ending (filter.h). */
#include "edit/filter.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Where there are several programs for an ending, the one that keeps most of the layout. */
static const struct { const char *ending, *command, *package; } usual[] = {
    { ".pdf", "pdftotext -layout %s -", "poppler-utils" },
    { ".docx", "pandoc -f docx -t gfm --wrap=none %s", "pandoc" },
    { ".odt", "pandoc -f odt -t gfm --wrap=none %s", "pandoc" },
    { ".epub", "pandoc -f epub -t gfm --wrap=none %s", "pandoc" },
    { ".rtf", "pandoc -f rtf -t gfm --wrap=none %s", "pandoc" },
    { ".doc", "antiword %s", "antiword" },
    { ".xlsx", "xlsx2csv %s", "xlsx2csv" },
    { ".djvu", "djvutxt %s", "djvulibre-bin" },
};

ebb_status ebb_filter_choice_check(const ebb_filter_choice *c, ebb_error *err)
{
    ebb_filter room;

    if (c->n_ending < 2 || c->ending[0] != '.' || c->n_ending >= sizeof room.ending)
        return EBB_FAIL(err, EBB_USAGE, "filter %.*s: give the ending of a file's name, as in .pdf",
                        (int)(c->n_ending < 40 ? c->n_ending : 40), c->ending);
    if (!*c->command || strlen(c->command) >= sizeof room.command)
        return EBB_FAIL(err, EBB_USAGE, "filter %.*s: give a command of at most %zu characters, or none",
                        (int)c->n_ending, c->ending, sizeof room.command - 1);
    return EBB_OK;
}

/* Each %s becomes /dev/stdin; the shell reads the rest. */
static void make_script(const char *command, char *out, size_t size)
{
    static const char file[] = "/dev/stdin";
    size_t n = 0;

    while (*command && n + sizeof file < size)
        if (strncmp(command, "%s", 2) == 0) {
            memcpy(out + n, file, sizeof file - 1);
            n += sizeof file - 1;
            command += 2;
        } else {
            out[n++] = *command++;
        }
    out[n] = '\0';
}

static void add_filter(ebb_filters *all, const char *ending, size_t n_ending, const char *command, const char *package)
{
    static char shell[] = "/bin/sh", option[] = "-c";
    ebb_filter *f = &all->list[all->n];

    if (all->n == EBB_MAX_FILTERS)
        return;
    all->n++;
    for (size_t i = 0; i <= n_ending; i++)
        f->ending[i] = i < n_ending ? (char)tolower((unsigned char)ending[i]) : '\0';
    snprintf(f->command, sizeof f->command, "%s", command);
    snprintf(f->program, sizeof f->program, "%.*s", (int)strcspn(command, " \t"), command);
    f->package = package;
    make_script(command, f->script, sizeof f->script);
    memcpy(f->argv, (char *[]){ shell, option, f->script, NULL }, sizeof f->argv);
}

void ebb_filters_init(ebb_filters *f, const ebb_filter_choice *own, size_t n_own)
{
    f->n = 0;
    for (size_t i = n_own; i-- > 0; )            /* the last word about an ending counts */
        add_filter(f, own[i].ending, own[i].n_ending, own[i].command, NULL);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add_filter(f, usual[i].ending, strlen(usual[i].ending), usual[i].command, usual[i].package);
}

const ebb_filter *ebb_filters_find(const ebb_filters *f, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

    for (size_t i = 0; dot && i < f->n; i++)
        if (strcasecmp(f->list[i].ending, dot) == 0)
            return strcmp(f->list[i].command, "none") == 0 ? NULL : &f->list[i];
    return NULL;
}

bool ebb_filter_is_installed(const ebb_filter *f)
{
    const char *path = getenv("PATH");
    char file[4096];

    if (!f->package)
        return true;
    for (path = path ? path : "/usr/bin:/bin"; *path; path += strcspn(path, ":"), path += *path == ':') {
        int n = snprintf(file, sizeof file, "%.*s/%s", (int)strcspn(path, ":"), path, f->program);
        if (n > 0 && (size_t)n < sizeof file && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

ebb_spawn_group ebb_filter_group(const ebb_filter *f)
{
    return f->package ? EBB_SPAWN_FILTER : EBB_SPAWN_SESSION;
}
