/* Getting a model (pull.h). */
#include "pull/pull.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ebb/experimental/inspect.h"
#include "ebb/experimental/kv_cache.h"
#include "pull/part_sidecar.h"

/* -- The listing ------------------------------------------------------------------------------ */

ebb_status ebb_pull_open(const ebb_pull_env *env, const char *text, ebb_pull *p, ebb_error *err)
{
    ebb_status st;

    memset(p, 0, sizeof *p);
    p->env = *env;
    st = ebb_pull_parse(text, &p->source, err);
    if (st != EBB_OK || p->source.is_url)
        return st;
    st = ebb_hub_files(&p->env, &p->source, &p->list, err);
    return st == EBB_OK ? ebb_pull_group_variants(&p->list, &p->variants, &p->n_variants, err) : st;
}

void ebb_pull_fini(ebb_pull *p)
{
    free(p->variants);
    ebb_hub_list_fini(&p->list);
    memset(p, 0, sizeof *p);
}

/* The file by which the disk's speed is measured: a model above 100 MiB, else our executable. */
static char *file_to_measure(void)
{
    ebb_model_file *files = NULL;
    char *path = NULL;
    size_t n = 0;

    if (ebb_models_find(&files, &n, NULL) != EBB_OK)
        return strdup("/proc/self/exe");
    for (size_t i = 0; i < n && !path; i++)
        if (files[i].n_bytes > 100u << 20)
            path = strdup(files[i].path);
    ebb_models_free(files, n);
    return path ? path : strdup("/proc/self/exe");
}

static ebb_status measure_for_plan(ebb_pull *p, ebb_error *err)
{
    char *path;
    ebb_status st;

    if (p->machine.n_cpus)
        return EBB_OK;
    path = file_to_measure();
    st = path ? ebb_machine_probe(path, true, &p->machine, err) : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    free(path);
    if (st == EBB_OK && p->ram_bytes) {
        p->machine.available_bytes = p->ram_bytes;
        p->machine.os_reserve_bytes = 0;
        snprintf(p->machine.available_why, sizeof p->machine.available_why, "--ram");
    }
    return st;
}

ebb_status ebb_pull_rate(ebb_pull *p, ebb_error *err)
{
    ebb_status st = measure_for_plan(p, err);

    if (st == EBB_OK)
        ebb_pull_rate_variants(p->variants, p->n_variants, &p->machine);
    return st;
}

/* -- The files of a model ----------------------------------------------------------------------- */

typedef struct model_file {
    ebb_buf  url, part, path;
    char     name[256];
    uint64_t n_bytes;
    const char *sha256;
} model_file;

typedef struct pull_job {
    ebb_pull              *p;
    const ebb_engine_opts *opts;
    const ebb_pull_callbacks *watch;
    ebb_pull_done         *done;
    ebb_buf                folder, command;
    model_file            *files;
    unsigned               n, i;                 /* which one is being fetched */
    bool                   is_joined;            /* of several files, not all of which are here */
    bool                   is_planned;
    bool                   is_stopped;           /* by the caller, after seeing the plan */
} pull_job;

static bool file_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Open the partial model from the files so far; BUSY as ebb_model_open_partial. */
static ebb_status open_partial_model(const pull_job *j, size_t *i_busy, ebb_model **m, ebb_error *err)
{
    ebb_partial_file *partial = calloc(j->n, sizeof *partial);
    ebb_status st;

    if (!partial)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of files");
    for (unsigned i = 0; i < j->n; i++) {
        const model_file *f = &j->files[i];

        partial[i] = (ebb_partial_file){ .path = file_exists(f->path.data) ? f->path.data : f->part.data,
                                         .name = f->name, .n_bytes = f->n_bytes };
    }
    st = ebb_model_open_partial(partial, j->n, i_busy, m, err);
    free(partial);
    return st;
}

/* Tell the plan, once. */
static ebb_status report_plan(pull_job *j, const ebb_model *m, ebb_error *err)
{
    const ebb_engine_opts o = ebb_kv_cache_opts_for_plan(j->opts);
    ebb_plan plan;
    ebb_status st = measure_for_plan(j->p, err);

    if (st == EBB_OK)
        st = ebb_machine_measure(&j->p->machine, m, &o, false, err);
    if (st == EBB_OK)
        st = ebb_plan_make(m, &o, &j->p->machine, &plan, err);
    if (st != EBB_OK)
        return st;
    j->is_planned = true;
    j->is_stopped = j->watch->on_plan && !j->watch->on_plan(j->watch->arg, m, &j->p->machine, &plan);
    return j->is_stopped ? EBB_FAIL(err, EBB_CANCELED, "stopped") : EBB_OK;
}

/* ebb_download_request.on_header: the header of the file that is being fetched is whole when another one's is asked
 * for. */
static ebb_status check_model_header(void *arg, const char *part_path, uint64_t n_bytes, ebb_error *err)
{
    pull_job *j = arg;
    ebb_model *m = NULL;
    size_t i_busy = 0;
    ebb_status st;

    (void)part_path;
    j->files[j->i].n_bytes = n_bytes;
    st = open_partial_model(j, &i_busy, &m, err);
    if (st == EBB_BUSY && i_busy > j->i)
        return EBB_OK;
    if (st == EBB_OK && !j->is_planned)
        st = report_plan(j, m, err);
    ebb_model_close(m);
    return st;
}

static void report_file_progress(void *arg, const ebb_download_progress *p)
{
    const pull_job *j = arg;

    if (j->watch->on_progress)
        j->watch->on_progress(j->watch->arg, j->files[j->i].name, j->i, j->n, p);
}

/* Fetch file i, or no more of it than its header. */
static ebb_status get_file(pull_job *j, unsigned i, bool header_only, ebb_download_result *got, ebb_error *err)
{
    const model_file *f = &j->files[i];
    bool is_hub = !j->p->source.is_url;

    j->i = i;
    return ebb_download_file(&j->p->env, &(ebb_download_request){
        .url = f->url.data, .folder = j->folder.data, .name = f->name, .is_hub = is_hub, .n_bytes = f->n_bytes,
        .sha256 = f->sha256,
        .command = j->command.data, .repo = is_hub ? j->p->source.repo : NULL, .on_header = header_only ||
        j->n == 1 ? check_model_header : NULL,
        .header_only = header_only, .is_joined = j->is_joined, .on_progress = report_file_progress, .arg = j },
        got, err);
}

/* Of a model in parts: the headers of all before the rest of any. */
static ebb_status get_headers(pull_job *j, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (unsigned i = 0; i < j->n && st == EBB_OK; i++) {
        ebb_download_result got;

        st = get_file(j, i, true, &got, err);
        if (st == EBB_OK && got.was_there) {
            j->i = i;
            st = check_model_header(j, j->files[i].path.data, j->files[i].n_bytes, err);
        }
        j->done->n_fetched += got.n_fetched;
        j->done->n_resumed += got.n_resumed;
    }
    return st;
}

static bool has_all_files(const pull_job *j)
{
    for (unsigned i = 0; i < j->n; i++)
        if (!file_exists(j->files[i].path.data))
            return false;
    return true;
}

static ebb_status get_all(pull_job *j, ebb_error *err)
{
    ebb_pull_done *d = j->done;
    ebb_status st;

    j->is_joined = j->n > 1 && !has_all_files(j);
    st = j->n > 1 ? get_headers(j, err) : EBB_OK;

    d->was_there = d->is_verified = true;
    for (unsigned i = 0; i < j->n && st == EBB_OK; i++) {
        ebb_download_result got;

        st = get_file(j, i, false, &got, err);
        d->n_bytes += got.n_bytes;
        d->n_resumed += j->n == 1 ? got.n_resumed : 0;   /* of parts it was counted with their headers */
        d->n_fetched += got.n_fetched;
        d->was_there &= got.was_there;
        d->is_verified &= got.is_verified;
        if (!d->sha256[0])
            memcpy(d->sha256, got.sha256, sizeof d->sha256);
    }
    for (unsigned i = 0; i < j->n && st == EBB_OK && j->n > 1; i++)
        ebb_pull_sidecar_remove(j->files[i].part.data);  /* whole, and of one version */
    return st;
}

/* -- What is to be fetched ------------------------------------------------------------------------ */

static void set_hub_file(pull_job *j, const ebb_hub_file *from, model_file *to)
{
    ebb_hub_add_url(&to->url, &j->p->env, &j->p->source, from->path);
    snprintf(to->name, sizeof to->name, "%s", from->name);
    to->n_bytes = from->n_bytes;
    to->sha256 = from->sha256;
}

/* The URL with another name at the end of its path. */
static void add_url_beside(ebb_buf *out, const char *url, const char *name)
{
    size_t end = strcspn(url, "?"), begin = end;

    while (begin > 0 && url[begin - 1] != '/')
        begin--;
    ebb_buf_add(out, url, begin);
    ebb_http_escape(out, name);
    ebb_buf_adds(out, url + end);
}

/* "x-00002-of-00003.gguf" at the end of a path is x-0000i there. */
static ebb_status list_url_files(pull_job *j, const char *name, ebb_error *err)
{
    const ebb_pull_source *s = &j->p->source;
    unsigned part, of;

    if (name ? !ebb_pull_is_name(name) : !s->name[0])
        return EBB_FAIL(err, EBB_USAGE, "%.120s: %s; give a name after the address: ebb pull ADDRESS NAME.gguf",
                        name ? name : s->url, name ? "is not the name of a model file" : "does not end in .gguf");
    j->n = 1;
    if (!name && ebb_models_is_part(s->name, &part, &of) && of >= 1 && of <= EBB_MODELS_MAX_PARTS)
        j->n = of;
    j->files = calloc(j->n, sizeof *j->files);
    if (!j->files)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of files");
    for (unsigned i = 0; i < j->n; i++) {
        model_file *f = &j->files[i];

        snprintf(f->name, sizeof f->name, "%s", name ? name : s->name);
        if (j->n > 1) {
            char digits[12];

            snprintf(digits, sizeof digits, "%05u", i + 1);
            memcpy(f->name + strlen(f->name) - 19, digits, 5);
            add_url_beside(&f->url, s->url, f->name);
        } else {
            ebb_buf_adds(&f->url, s->url);
        }
        f->n_bytes = UINT64_MAX;
        f->sha256 = "";
    }
    return EBB_OK;
}

static ebb_status list_variant_files(pull_job *j, const ebb_pull_variant *o, ebb_error *err)
{
    if (o->n_parts > EBB_MODELS_MAX_PARTS)
        return EBB_FAIL(err, EBB_LIMIT, "%s: a model of %u files; ebb opens those of %u at most", o->parts[0].name,
                        o->n_parts, EBB_MODELS_MAX_PARTS);
    j->files = calloc(o->n_parts, sizeof *j->files);
    if (!j->files)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of files");
    j->n = o->n_parts;
    for (unsigned i = 0; i < j->n; i++)
        set_hub_file(j, &o->parts[i], &j->files[i]);
    return EBB_OK;
}

static ebb_status begin_job(pull_job *j, size_t i_variant, const char *name, ebb_error *err)
{
    ebb_pull *p = j->p;
    bool ok = true;
    ebb_status st = p->source.is_url ? list_url_files(j, name, err)
                                     : list_variant_files(j, &p->variants[i_variant], err);

    if (st == EBB_OK)
        st = ebb_models_folder(&j->folder, err);
    if (st != EBB_OK)
        return st;
    ebb_pull_add_command(&j->command, &p->source,
                         p->source.is_url ? NULL : ebb_pull_variant_spec(p->variants, p->n_variants, i_variant));
    if (p->source.is_url && name)
        ebb_buf_addf(&j->command, " %s", name);
    for (unsigned i = 0; i < j->n; i++) {
        model_file *f = &j->files[i];

        ok = ok && ebb_buf_addf(&f->path, "%s/%s", j->folder.data, f->name) &&
             ebb_buf_addf(&f->part, "%s/%s.part", j->folder.data, f->name) &&
             !f->url.failed;
    }
    return ok && !j->command.failed ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the names of files");
}

ebb_status ebb_pull_fetch(ebb_pull *p, size_t i_variant, const char *name, const ebb_engine_opts *opts,
                          const ebb_pull_callbacks *watch, ebb_pull_done *done, ebb_error *err)
{
    pull_job j = { .p = p, .opts = opts, .watch = watch, .done = done };
    double start = ebb_clock_s();
    ebb_status st;

    *done = (ebb_pull_done){ 0 };
    st = begin_job(&j, i_variant, name, err);
    done->n_files = j.n;
    if (st == EBB_OK && !ebb_buf_adds(&done->path, j.files[0].path.data))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    if (st == EBB_OK)
        st = get_all(&j, err);
    done->seconds = ebb_clock_s() - start;
    for (unsigned i = 0; i < j.n; i++) {
        ebb_buf_fini(&j.files[i].url);
        ebb_buf_fini(&j.files[i].part);
        ebb_buf_fini(&j.files[i].path);
    }
    free(j.files);
    ebb_buf_fini(&j.folder);
    ebb_buf_fini(&j.command);
    return st;
}
