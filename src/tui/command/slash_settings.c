/* Commands that choose: settings, theme, model (slash_impl.h). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/utf8.h"
#include "ebb/experimental/kv_cache.h"
#include "ebb/experimental/plan.h"
#include "command/slash_impl.h"
#include "models/models.h"
#include "os/paths.h"
#include "text/humanize.h"

/* "name = value (range): help" */
static ebb_status say_setting(ebb_frontend *f, const char *name, ebb_buf *out, ebb_error *err)
{
    char text[300];
    ebb_status st = ebb_chat_set(f->chat, name, NULL, text, sizeof text, err);

    if (st == EBB_OK)
        ebb_buf_adds(out, text);
    return st;
}

/* "name = value    help": what a number means says more in a list than between which others it must be. */
static ebb_status list_setting(ebb_frontend *f, const char *name, ebb_buf *out, ebb_error *err)
{
    char text[300], *range, *help;
    ebb_status st = ebb_chat_set(f->chat, name, NULL, text, sizeof text, err);

    if (st != EBB_OK)
        return st;
    range = strstr(text, " (");
    help = range ? strstr(range, "): ") : NULL;
    if (help)
        *range = '\0';
    ebb_slash_explain(out, text, help ? help + 3 : "");
    return EBB_OK;
}

/* The context size is not a setting of a session but an option with which the model is opened. */
static bool is_context(const char *name)
{
    static const char *const names[] = { "ctx", "context", "num_ctx", "n_ctx", "ctx-size" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static const char context_help[] = "how much of the conversation the model sees, in tokens";

static void add_context(const ebb_frontend *f, ebb_buf *out, bool is_list)
{
    char now[32];
    ebb_stats s;

    ebb_chat_stats(f->chat, &s);
    snprintf(now, sizeof now, "ctx = %u", s.n_ctx);
    if (is_list)
        ebb_slash_explain(out, now, context_help);
    else
        ebb_buf_addf(out, "%s (a number, or max): %s; max is the longest context that stays in memory. A change opens "
                     "the model again", now, context_help);
}

static ebb_status set_context(ebb_frontend *f, const char *value, ebb_error *err)
{
    char *end;
    unsigned long n = strtoul(value, &end, 10);

    if (strcmp(value, "max") == 0)
        return ebb_chat_set_ctx(f->chat, EBB_CTX_MAX, err);
    if (value[0] < '0' || value[0] > '9' || *end || n == 0 || n > 100000000)
        return EBB_FAIL(err, EBB_USAGE, "/set ctx %.40s: give a number of tokens, or max", value);
    return ebb_chat_set_ctx(f->chat, (uint32_t)n, err);
}

static bool is_template(const char *name)
{
    return strcmp(name, "template") == 0 || strcmp(name, "chat-template") == 0 || strcmp(name, "chat_template") == 0;
}

static void add_template(const ebb_frontend *f, ebb_buf *out, bool is_list)
{
    ebb_buf now = { 0 };

    ebb_buf_addf(&now, "template = %s", ebb_chat_template(f->chat));
    if (is_list)
        ebb_slash_explain(out, ebb_buf_text(&now), "how messages become a prompt");
    else
        ebb_buf_addf(out, "%s (auto, none, a family like chatml, or a file): how messages become a prompt; auto takes "
                     "the model's own, or else one that suits it; none joins the texts as they are",
                     ebb_buf_text(&now));
    ebb_buf_fini(&now);
}

bool ebb_slash_is_setting(ebb_frontend *f, const char *s, size_t n)
{
    char name[64], text[300];

    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), s);
    return is_context(name) || ebb_chat_set(f->chat, name, NULL, text, sizeof text, NULL) == EBB_OK;
}

ebb_status ebb_slash_set(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf out = { 0 };
    char name[64] = "", text[300] = "";
    size_t n = strcspn(arg, " \t=");
    const char *value = arg + n;
    ebb_status st = EBB_OK;

    if (n == 9 && strncmp(arg, "parameter", n) == 0) {    /* /set parameter temperature 0.5, as elsewhere */
        arg += n + strspn(arg + n, " \t");
        n = strcspn(arg, " \t=");
        value = arg + n;
    }
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), arg);
    value += strspn(value, " \t=");
    if (*name == '\0') {
        const char *each;
        for (size_t i = 0; st == EBB_OK && (each = ebb_chat_setting_name(i)) != NULL; i++)
            st = list_setting(f, each, &out, err);
        add_context(f, &out, true);
        add_template(f, &out, true);
        ebb_buf_adds(&out, "\n/set NAME shows what it takes, /set NAME VALUE changes it");
    } else if (strcmp(name, "system") == 0) {    /* as elsewhere */
        st = EBB_FAIL(err, EBB_USAGE, "there is no setting 'system'; /system TEXT sets the system prompt");
    } else if (is_context(name)) {
        if (*value)
            st = set_context(f, value, err);
        else
            add_context(f, &out, false);
    } else if (is_template(name)) {
        if (*value)
            st = ebb_chat_set_template(f->chat, value, err);
        else
            add_template(f, &out, false);
    } else {
        if (*value)
            st = ebb_chat_set(f->chat, name, value, text, sizeof text, err);
        if (st == EBB_OK)
            st = say_setting(f, name, &out, err);
    }
    if (st == EBB_OK && out.len > 0)
        f->say(f, EBB_SAY_PAGE, out.data, out.len);
    ebb_buf_fini(&out);
    return st;
}

void ebb_complete_set(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    const char *name;
    char text[300];

    (void)typed;
    for (size_t i = 0; (name = ebb_chat_setting_name(i)) != NULL; i++) {
        if (ebb_chat_set(f->chat, name, NULL, text, sizeof text, NULL) != EBB_OK)
            *text = '\0';
        fn(arg, name, text + strcspn(text, "="));
    }
    fn(arg, "template", "= auto, none, a family or a file: how messages become a prompt");
    fn(arg, "ctx", "= tokens, or max: how much of the conversation the model sees");
}

ebb_status ebb_slash_theme(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf names = { 0 };
    ebb_status st;

    if (!f->set_theme)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "plain mode has no themes");
    if (*arg == '\0') {
        ebb_theme_add_names(&names);
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "theme %s; built in are %s; yours are looked for in %s/themes", f->theme,
                       ebb_buf_text(&names), f->config_dir.len ? f->config_dir.data : "(no directory)");
        ebb_buf_fini(&names);
        return EBB_OK;
    }
    st = f->set_theme(f, arg, err);
    if (st == EBB_OK) {
        snprintf(f->theme, sizeof f->theme, "%s", arg);
        f->has_chosen_theme = true;
    }
    return st;
}

void ebb_complete_theme(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    ebb_buf path = { 0 };
    DIR *dir = NULL;

    (void)typed;
    for (size_t i = 0; ebb_theme_builtin(i); i++)
        fn(arg, ebb_theme_builtin(i), strcmp(ebb_theme_builtin(i), f->theme) == 0 ? "(now)" : "");
    if (f->config_dir.len && ebb_buf_addf(&path, "%s/themes", f->config_dir.data))
        dir = opendir(path.data);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n > 6 && strcmp(e->d_name + n - 6, ".theme") == 0) {
            e->d_name[n - 6] = '\0';
            fn(arg, e->d_name, strcmp(e->d_name, f->theme) == 0 ? "(now), yours" : "yours");
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

    if (ebb_models_find_chat(&files, &n, NULL) != EBB_OK)
        return;
    ebb_buf_adds(out, n ? "\n" : "");
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const char *name = ebb_models_word(&files[i]);
        char size[16];
        ebb_buf_addf(out, "\n%10s  ", ebb_size_text(files[i].n_bytes, size));
        ebb_utf8_add_line(out, name, strlen(name), false);
        if (files[i].store)
            ebb_buf_addf(out, "  (%s's)", files[i].store);
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
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (ebb_chat_engine(f->chat)) {
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "%s answers, in the engine %s (%s); /engine test lists its models, /model "
                                             "NAME takes one of them, "
                       "/engine here goes back to this machine", m->name, ebb_chat_engine(f->chat), m->arch);
        return EBB_OK;
    }
    ebb_buf_addf(&out, "%s, %s %s, %u layers, ", m->name, m->arch, m->quantization, m->n_layers);
    ebb_humanize_bytes(&out, m->weight_bytes);
    ebb_buf_addf(&out, "\n%s", strcmp(m->path, EBB_MODELS_GUIDE) == 0 ? "built in" : m->path);
    add_models(&out);
    ebb_buf_adds(&out, "\n/model NAME or /model FILE loads another");
    f->say(f, EBB_SAY_PAGE, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
    return EBB_OK;
}

/* *out becomes the size of what is in the folder `dir` under this name; of a folder nothing. */
static void say_file_size(ebb_buf *out, const struct dirent *e, const char *dir)
{
    ebb_buf path = { 0 };
    struct stat st;

    ebb_buf_clear(out);
    if (ebb_buf_addf(&path, "%s/%s", dir, e->d_name) && stat(path.data, &st) == 0 && S_ISREG(st.st_mode))
        ebb_humanize_bytes(out, (uint64_t)st.st_size);
    ebb_buf_fini(&path);
}

/* Names in the folder that is being typed, in order: folders, and files that end so. */
static void complete_files(const char *typed, const char *ending, ebb_candidate_fn *fn, void *arg)
{
    const char *slash = strrchr(typed, '/');
    size_t n_dir = slash ? (size_t)(slash - typed) + 1 : 0, n_ending = strlen(ending);
    ebb_buf path = { 0 }, whole = { 0 }, folder = { 0 };
    struct dirent **all = NULL;
    int n_all = -1;

    ebb_buf_add(&path, typed, n_dir);
    if (ebb_path_expand(n_dir ? ebb_buf_text(&path) : ".", &whole, NULL) == EBB_OK)
        n_all = scandir(whole.data, &all, NULL, alphasort);
    ebb_buf_adds(&folder, ebb_buf_text(&whole));
    for (int i = 0; i < n_all; i++) {
        const struct dirent *e = all[i];
        size_t n = strlen(e->d_name);
        bool is_dir = e->d_type == DT_DIR || e->d_type == DT_LNK;
        if (e->d_name[0] != '.' && (is_dir || (n > n_ending && strcasecmp(e->d_name + n - n_ending, ending) == 0))) {
            ebb_buf_clear(&path);
            ebb_buf_add(&path, typed, n_dir);
            ebb_buf_addf(&path, "%s%s", e->d_name, e->d_type == DT_DIR ? "/" : "");
            say_file_size(&whole, e, ebb_buf_text(&folder));
            fn(arg, ebb_buf_text(&path), ebb_buf_text(&whole));
        }
        free(all[i]);
    }
    free(all);
    ebb_buf_fini(&path);
    ebb_buf_fini(&whole);
    ebb_buf_fini(&folder);
}

/* "4.58 GiB, full, about 6.3 tok/s", and whether it is the one that is loaded. */
static void note_rating(ebb_buf *out, const ebb_model_rating *r, const ebb_model_info *loaded)
{
    ebb_buf_clear(out);
    ebb_humanize_bytes(out, r->file.n_bytes);
    if (r->why_not[0]) {
        ebb_buf_addf(out, ", %s", r->why_not);
    } else {
        ebb_buf_addf(out, ", %s, about ", ebb_tier_name(r->plan.tier));
        ebb_humanize_rate(out, r->plan.predicted_decode_tok_s);
        ebb_buf_adds(out, " tok/s");
    }
    if (loaded && strcmp(loaded->path, r->file.path) == 0)
        ebb_buf_adds(out, ", loaded");
}

/* All models found, the best first, by the name that their files have; *files is taken over.  The next key waits for
 * it, and headers may be large, cold and many. */
static void complete_ratings(ebb_frontend *f, ebb_model_file *files, size_t n, ebb_candidate_fn *fn, void *arg)
{
    static const double rating_s = 0.25;
    ebb_model_rating *r;
    ebb_buf note = { 0 };
    ebb_machine machine;
    const ebb_engine_opts opts = ebb_kv_cache_opts_for_plan(NULL);
    ebb_stats now;

    if (ebb_machine_probe(NULL, false, &machine, NULL) != EBB_OK) {
        ebb_models_free(files, n);
        return;
    }
    ebb_chat_stats(f->chat, &now);
    machine.available_bytes += now.rss_anon_bytes;       /* another model replaces the open one */
    if (ebb_models_rate(files, n, &opts, &machine, false, ebb_clock_s() + rating_s, &r, NULL) != EBB_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        const char *name = ebb_models_word(&r[i].file);
        note_rating(&note, &r[i], ebb_chat_model(f->chat));
        if (name == r[i].file.path || access(name, F_OK) != 0)       /* what is in this folder is listed below */
            fn(arg, name, ebb_buf_text(&note));
    }
    ebb_buf_fini(&note);
    ebb_models_rating_free(r, n);
}

/* The remote engine's; false: models are files of this machine. */
static bool complete_engine_models(ebb_frontend *f, ebb_candidate_fn *fn, void *arg)
{
    const ebb_model_info *m = ebb_chat_model(f->chat);
    const char *name;

    for (size_t i = 0; (name = ebb_chat_engine_model(f->chat, i)) != NULL && *name; i++)
        fn(arg, name, m && strcmp(m->name, name) == 0 ? "answers now" : "");
    return name != NULL;
}

void ebb_complete_model(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    const ebb_model_info *m = ebb_chat_model(f->chat);
    ebb_model_file *files;
    size_t n;

    if (complete_engine_models(f, fn, arg))
        return;
    if (!strchr(typed, '/') && ebb_models_find_chat(&files, &n, NULL) == EBB_OK) {
        complete_ratings(f, files, n, fn, arg);
        fn(arg, EBB_MODELS_GUIDE, m && strcmp(m->path, EBB_MODELS_GUIDE) == 0 ? "built in, loaded" : "built in");
    }
    complete_files(typed, ".gguf", fn, arg);
}

void ebb_complete_file(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    complete_files(typed, "", fn, arg);
}
