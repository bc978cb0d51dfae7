/* Commands that choose: settings, theme, model (slash_impl.h). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/size.h"
#include "command/slash_impl.h"
#include "models/models.h"
#include "os/paths.h"
#include "text/humanize.h"

/* "name = value (range): help"; in a list without the help. */
static ebb_status say_setting(ebb_frontend *f, const char *name, bool is_list, ebb_buf *out, ebb_error *err)
{
    char text[300];
    ebb_status st = ebb_chat_set(f->chat, name, NULL, text, sizeof text, err);

    if (st == EBB_OK)
        ebb_buf_addf(out, "%s%.*s", out->len ? "\n" : "", (int)(is_list ? strcspn(text, ":") : strlen(text)), text);
    return st;
}

ebb_status ebb_slash_set(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf out = { 0 };
    char name[64] = "", text[300] = "";
    size_t n = strcspn(arg, " \t=");
    const char *value = arg + n;
    ebb_status st = EBB_OK;

    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), arg);
    value += strspn(value, " \t=");
    if (*name == '\0') {
        const char *each;
        for (size_t i = 0; st == EBB_OK && (each = ebb_chat_setting_name(i)) != NULL; i++)
            st = say_setting(f, each, true, &out, err);
        ebb_buf_adds(&out, "\n/set NAME says more, /set NAME VALUE changes it");
    } else {
        if (*value)
            st = ebb_chat_set(f->chat, name, value, text, sizeof text, err);
        if (st == EBB_OK)
            st = say_setting(f, name, false, &out, err);
    }
    if (st == EBB_OK && out.len > 0)
        f->say(f, EBB_SAY_PAGE, out.data, out.len);
    ebb_buf_fini(&out);
    return st;
}

void ebb_complete_set(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    const char *name;

    (void)f;
    (void)typed;
    for (size_t i = 0; (name = ebb_chat_setting_name(i)) != NULL; i++)
        fn(arg, name);
}

ebb_status ebb_slash_theme(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf names = { 0 };
    ebb_status st;

    if (!f->set_theme)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "plain text has no themes");
    if (*arg == '\0') {
        ebb_theme_add_names(&names);
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "theme %s; built in are %s; yours are looked for in %s/themes", f->theme,
                       ebb_buf_text(&names), f->config_dir.len ? f->config_dir.data : "(no directory)");
        ebb_buf_fini(&names);
        return EBB_OK;
    }
    st = f->set_theme(f, arg, err);
    if (st == EBB_OK)
        snprintf(f->theme, sizeof f->theme, "%s", arg);
    return st;
}

void ebb_complete_theme(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    ebb_buf path = { 0 };
    DIR *dir = NULL;

    (void)typed;
    for (size_t i = 0; ebb_theme_builtin(i); i++)
        fn(arg, ebb_theme_builtin(i));
    if (f->config_dir.len && ebb_buf_addf(&path, "%s/themes", f->config_dir.data))
        dir = opendir(path.data);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n > 6 && strcmp(e->d_name + n - 6, ".theme") == 0) {
            e->d_name[n - 6] = '\0';
            fn(arg, e->d_name);
        }
    }
    if (dir)
        closedir(dir);
    ebb_buf_fini(&path);
}

/* What there is to choose from, the newest first. */
static void add_models(ebb_buf *out)
{
    enum { SHOWN = 12 };
    ebb_model_file *files;
    size_t n;

    if (ebb_models_find(&files, &n, NULL) != EBB_OK)
        return;
    ebb_buf_adds(out, n ? "\n" : "");
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const char *slash = strrchr(files[i].path, '/');
        char size[16];
        ebb_buf_addf(out, "\n%10s  %s", ebb_size_text(files[i].n_bytes, size), slash ? slash + 1 : files[i].path);
    }
    if (n > SHOWN)
        ebb_buf_addf(out, "\n%10s  and %zu more: `ebb models` lists them", "", n - SHOWN);
    ebb_models_free(files, n);
}

ebb_status ebb_slash_model(ebb_frontend *f, const char *arg, ebb_error *err)
{
    const ebb_model_info *m = ebb_chat_model(f->chat);
    ebb_buf out = { 0 };

    if (*arg)
        return ebb_chat_load_model(f->chat, arg, err);
    if (!m)
        return EBB_FAIL(err, EBB_BUSY, "the model is still being loaded");
    ebb_buf_addf(&out, "%s, %s %s, %u layers, ", m->name, m->arch, m->quantization, m->n_layers);
    ebb_humanize_bytes(&out, m->weight_bytes);
    ebb_buf_addf(&out, "\n%s", strcmp(m->path, EBB_MODELS_GUIDE) == 0 ? "built in" : m->path);
    add_models(&out);
    ebb_buf_adds(&out, "\n/model NAME or /model FILE loads another");
    f->say(f, EBB_SAY_PAGE, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
    return EBB_OK;
}

/* Names in the folder that is being typed, in order: folders, and files that end so. */
static void complete_files(const char *typed, const char *ending, ebb_candidate_fn *fn, void *arg)
{
    const char *slash = strrchr(typed, '/');
    size_t n_dir = slash ? (size_t)(slash - typed) + 1 : 0, n_ending = strlen(ending);
    ebb_buf path = { 0 }, whole = { 0 };
    struct dirent **all = NULL;
    int n_all = -1;

    ebb_buf_add(&path, typed, n_dir);
    if (ebb_path_expand(n_dir ? ebb_buf_text(&path) : ".", &whole, NULL) == EBB_OK)
        n_all = scandir(whole.data, &all, NULL, alphasort);
    ebb_buf_fini(&whole);
    for (int i = 0; i < n_all; i++) {
        const struct dirent *e = all[i];
        size_t n = strlen(e->d_name);
        bool is_dir = e->d_type == DT_DIR || e->d_type == DT_LNK;
        if (e->d_name[0] != '.' && (is_dir || (n > n_ending && strcasecmp(e->d_name + n - n_ending, ending) == 0))) {
            ebb_buf_clear(&path);
            ebb_buf_add(&path, typed, n_dir);
            ebb_buf_addf(&path, "%s%s", e->d_name, e->d_type == DT_DIR ? "/" : "");
            fn(arg, ebb_buf_text(&path));
        }
        free(all[i]);
    }
    free(all);
    ebb_buf_fini(&path);
}

void ebb_complete_model(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    ebb_model_file *files;
    size_t n;

    (void)f;
    if (!strchr(typed, '/') && ebb_models_find(&files, &n, NULL) == EBB_OK) {
        for (size_t i = 0; i < n; i++) {
            const char *slash = strrchr(files[i].path, '/'), *base = slash ? slash + 1 : files[i].path;
            if (access(base, F_OK) != 0)         /* what is in this folder is listed below */
                fn(arg, base);
        }
        ebb_models_free(files, n);
        fn(arg, EBB_MODELS_GUIDE);
    }
    complete_files(typed, ".gguf", fn, arg);
}

void ebb_complete_file(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    complete_files(typed, "", fn, arg);
}
