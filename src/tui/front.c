/* What the two front ends have in common (front.h). */
#include "front.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "os/paths.h"

static void fill_dir(ebb_buf *out, const char *given, ebb_dir dir)
{
    if (given)
        ebb_buf_adds(out, given);
    else if (ebb_path_in(dir, NULL, out, NULL) != EBB_OK)
        ebb_buf_clear(out);                      /* no home: nothing is read or kept */
}

void ebb_front_init(ebb_front *f, ebb_chat *chat, const ebb_tui_opts *opts)
{
    memset(f, 0, sizeof *f);
    f->chat = chat;
    f->opts = opts;
    fill_dir(&f->config_dir, opts->config_dir, EBB_DIR_CONFIG);
    fill_dir(&f->state_dir, opts->state_dir, EBB_DIR_STATE);
    snprintf(f->theme, sizeof f->theme, "%s", opts->no_color ? "mono" : opts->theme ? opts->theme : "dark");
}

void ebb_front_fini(ebb_front *f)
{
    ebb_buf_fini(&f->config_dir);
    ebb_buf_fini(&f->state_dir);
}

void ebb_front_sayf(ebb_front *f, ebb_say say, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    f->say(f, say, text, strlen(text));
}
