/* What a server is made of, but for its connections and its thread (serve_priv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "serve/serve_priv.h"

void ebb_serve_free(ebb_serve *s)
{
    if (!s)
        return;
    ebb_serve_free_answers(s);
    ebb_buf_fini(&s->figures);
    for (size_t i = 0; i < SERVE_SESSIONS; i++)
        ebb_session_free(s->sessions[i]);
    ebb_engine_close(s->engine);
    ebb_prompter_free(s->prompter);
    ebb_model_close(s->draft);
    ebb_model_close(s->model);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->large_ended);
    pthread_mutex_destroy(&s->lock);
    if (s->key)
        explicit_bzero(s->key, strlen(s->key));
    free((char *)s->opts.engine.kv_cache_dir);
    free(s->key);
    free(s->host);
    free(s->path);
    free(s->name);
    free(s->draft_path);
    free(s);
}

bool ebb_serve_is_leaving(ebb_serve *s)
{
    bool is;

    pthread_mutex_lock(&s->lock);
    is = s->quit;
    pthread_mutex_unlock(&s->lock);
    return is;
}

/* A file's path from the root: only of such a one do clients not get to know the folders (ebb_serve_hide_folders). */
static char *copy_path(const char *from, bool *ok)
{
    bool is_relative = from && from[0] != '/' && strchr(from, '/') && access(from, F_OK) == 0;
    char *here = is_relative ? getcwd(NULL, 0) : NULL, *path;

    if (!here)
        return ebb_text_copy_or_null(from, ok);
    if (asprintf(&path, "%s/%s", here, from) < 0)
        path = NULL;
    free(here);
    *ok &= path != NULL;
    return path;
}

ebb_serve *ebb_serve_new(const ebb_serve_opts *opts)
{
    ebb_serve *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;
    bool ok = true;

    if (!s)
        return NULL;
    s->opts = *opts;
    s->used_s = ebb_clock_s();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->large_ended, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    s->path = copy_path(opts->models.path, &ok);
    s->draft_path = copy_path(opts->models.draft, &ok);
    s->key = ebb_text_copy_or_null(opts->key, &ok);
    s->host = ebb_text_copy_or_null(opts->host, &ok);
    s->opts.engine.kv_cache_dir = ebb_text_copy_or_null(opts->engine.kv_cache_dir, &ok);
    if (ok)
        return s;
    ebb_serve_free(s);
    return NULL;
}
