/* ebb pull: get a model. */
#include "cmd_pull.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "confinement.h"
#include "os/file.h"
#include "os/paths.h"

static volatile sig_atomic_t pull_stop_signal;

static void on_pull_signal(int sig)
{
    pull_stop_signal = sig;
}

typedef struct pulling {
    const ebb_args *a;
    ebb_pull       *p;
    ebb_pull_line   line;
    char            too_large[160];      /* why it was stopped when its plan was known; "" */
} pulling;

/* -- Where from ------------------------------------------------------------------------------ */

/* The file of hub programs that holds the user's token; "" where there is none.  One that the user has named himself
 * has to be readable, or his token would stay away without a word. */
static ebb_status read_token_file(ebb_buf *out, ebb_error *err)
{
    const char *named = getenv("HF_TOKEN_PATH"), *hub = getenv("HF_HOME"), *cache = getenv("XDG_CACHE_HOME");
    ebb_buf path = { 0 }, whole = { 0 };
    ebb_status st;

    if (named && *named)
        ebb_buf_adds(&path, named);
    else if (hub && *hub)
        ebb_buf_addf(&path, "%s/token", hub);
    else
        ebb_buf_addf(&path, "%s/huggingface/token", cache && *cache ? cache : "~/.cache");
    st = ebb_path_expand(ebb_buf_text(&path), &whole, err);
    if (st == EBB_OK)
        st = ebb_file_slurp(ebb_buf_text(&whole), 4096, out, err);
    if (st != EBB_OK)
        ebb_buf_clear(out);
    ebb_buf_fini(&path);
    ebb_buf_fini(&whole);
    return named && *named && st != EBB_NOTFOUND ? st : EBB_OK;
}

/* What is left of a token without space around; "" if it is none. */
static ebb_status read_token(ebb_buf *out, ebb_error *err)
{
    const char *set = getenv("HF_TOKEN");
    ebb_status st = EBB_OK;

    if (set && *set)
        ebb_buf_adds(out, set);
    else
        st = read_token_file(out, err);
    while (out->len && isspace((unsigned char)out->data[out->len - 1]))
        ebb_buf_remove(out, out->len - 1, 1);
    while (out->len && isspace((unsigned char)out->data[0]))
        ebb_buf_remove(out, 0, 1);
    for (size_t i = 0; i < out->len; i++)
        if (!isgraph((unsigned char)out->data[i]))
            return EBB_FAIL(err, EBB_USAGE, "HF_TOKEN, or ~/.cache/huggingface/token, does not hold a token: it has "
                                            "blanks or control characters in it");
    return st;
}

static ebb_status read_endpoint(ebb_buf *out, ebb_error *err)
{
    const char *set = getenv("HF_ENDPOINT");

    if (!set || !*set)
        return EBB_OK;
    if (strncasecmp(set, "https://", 8) != 0 && strncasecmp(set, "http://", 7) != 0)
        return EBB_FAIL(err, EBB_USAGE, "HF_ENDPOINT=%.100s: give an address like " EBB_HUB, set);
    ebb_buf_adds(out, set);
    while (out->len && out->data[out->len - 1] == '/')
        ebb_buf_remove(out, out->len - 1, 1);
    return out->failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for an address") : EBB_OK;
}

/* -- Following ------------------------------------------------------------------------------- */

static bool is_pull_stopped(void *arg)
{
    const pulling *u = arg;

    return pull_stop_signal != 0 || u->line.is_unread;
}

static void on_pull_message(void *arg, const char *text)
{
    pulling *u = arg;

    ebb_pull_line_say(&u->line, text);
}

static void on_pull_progress(void *arg, const char *name, unsigned i_file, unsigned n_files,
                             const ebb_download_progress *p)
{
    pulling *u = arg;

    ebb_pull_line_move(&u->line, name, i_file, n_files, p);
}

static bool on_pull_plan(void *arg, const ebb_model *m, const ebb_machine *machine, const ebb_plan *plan)
{
    pulling *u = arg;

    (void)machine;
    ebb_pull_say_plan(&u->line, m, plan);
    if (!plan->fits && !u->a->yes)
        snprintf(u->too_large, sizeof u->too_large, "%s", plan->why);
    return !u->too_large[0];
}

/* -- The choice ------------------------------------------------------------------------------ */

static bool is_asking(const ebb_args *a)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !a->json && !a->quiet;
}

/* A line that was typed, without what is around it; false: no more. */
static bool read_typed_line(char out[200])
{
    char *end;

    if (!fgets(out, 200, stdin))
        return false;
    for (end = out + strlen(out); end > out && isspace((unsigned char)end[-1]); end--)
        ;
    *end = '\0';
    return true;
}

/* Ask until the answer is one of them; false: none is wanted. */
static bool ask_for_offer(const ebb_pull *p, size_t *i)
{
    size_t best = p->n_variants;
    char word[200];
    ebb_error err = { 0 };

    for (size_t k = 0; k < p->n_variants; k++)
        if (p->variants[k].is_recommended)
            best = k;
    for (;;) {
        if (best < p->n_variants)
            printf("\nPull which one?  Enter takes %s, n none: ",
                   ebb_pull_variant_spec(p->variants, p->n_variants, best));
        else
            printf("\nPull which one?  Enter takes none: ");
        fflush(stdout);
        if (!read_typed_line(word) || pull_stop_signal || strcasecmp(word, "n") == 0 || strcasecmp(word, "no") == 0 ||
            strcasecmp(word, "q") == 0)
            return false;
        if (!word[0] || strcasecmp(word, "y") == 0 || strcasecmp(word, "yes") == 0) {
            *i = best;
            return best < p->n_variants;
        }
        if (ebb_pull_find_variant(p->variants, p->n_variants, word, i, &err) == EBB_OK)
            return true;
        printf("%s\n", err.msg);
    }
}

/* Which of the listed files; EBB_CANCELED: none, and *status is the exit status. */
static ebb_status choose_offer(pulling *u, size_t *i, int *status, ebb_error *err)
{
    const ebb_args *a = u->a;
    ebb_pull *p = u->p;
    ebb_status st;

    if (p->source.is_url)
        return EBB_OK;
    if (p->source.want[0])
        return ebb_pull_find_variant(p->variants, p->n_variants, p->source.want, i, err);
    st = ebb_pull_rate(p, err);
    for (size_t k = 0; st == EBB_OK && (a->yes || a->json_lines) && k < p->n_variants; k++)
        if (p->variants[k].is_recommended) {
            *i = k;
            return EBB_OK;
        }
    if (st == EBB_OK && a->json_lines)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%s: none of its files suits this machine; name one, for example %s:%s",
                      p->source.repo, p->source.repo, ebb_pull_variant_spec(p->variants, p->n_variants, 0));
    if (st != EBB_OK)
        return st;
    *status = a->json ? ebb_pull_print_list_json(p) : (ebb_pull_print_list(p), EBB_EXIT_OK);
    return is_asking(a) && ask_for_offer(p, i) ? EBB_OK : EBB_CANCELED;
}

/* -- The command ------------------------------------------------------------------------------ */

static int fail_pull(const pulling *u, const ebb_error *err)
{
    if (u->a->json_lines && !pull_stop_signal)
        ebb_pull_lines_error(err);
    return ebb_cli_fail(err);
}

/* How to resume a download that was stopped or failed. */
static void tell_way(pulling *u, size_t i)
{
    ebb_buf command = { 0 };
    const ebb_pull *p = u->p;

    ebb_pull_line_clear(&u->line);
    if (u->line.share <= 0 || u->a->quiet || u->a->json_lines)
        return;
    ebb_pull_add_command(&command, &p->source, p->source.is_url ? NULL
                                                                : ebb_pull_variant_spec(p->variants, p->n_variants, i));
    if (p->source.is_url && u->a->n_words > 1)
        ebb_buf_addf(&command, " %s", u->a->words[1]);
    fprintf(stderr, "%s%.0f %% are here; `%s` continues\n", pull_stop_signal ? "stopped: " : "", 100 * u->line.share,
            ebb_buf_text(&command));
    ebb_buf_fini(&command);
}

static int fetch_offer(pulling *u, size_t i, ebb_error *err)
{
    const ebb_args *a = u->a;
    ebb_pull_callbacks watch = { .on_plan = on_pull_plan, .on_progress = on_pull_progress, .arg = u };
    ebb_pull_done done;
    int status;
    ebb_status st = ebb_pull_fetch(u->p, i, a->n_words > 1 ? a->words[1] : NULL, &a->engine, &watch, &done, err);

    ebb_pull_line_clear(&u->line);
    if (st == EBB_CANCELED && u->too_large[0])
        EBB_FAIL(err, EBB_BUDGET, "it does not run on this machine: %s; -y pulls it anyway", u->too_large);
    if (st == EBB_OK) {
        status = ebb_pull_print_done(a, &done);
    } else {
        status = pull_stop_signal && st == EBB_CANCELED ? 0 : fail_pull(u, err);
        if (st == EBB_CANCELED || st == EBB_IO)
            tell_way(u, i);
    }
    ebb_buf_fini(&done.path);
    return status;
}

static int run_pull(pulling *u, const ebb_pull_env *env, ebb_error *err)
{
    size_t i = 0;
    int status = EBB_EXIT_OK;
    ebb_status st = ebb_pull_open(env, u->a->words[0], u->p, err);

    u->p->ram_bytes = u->a->engine.ram_bytes;
    if (st == EBB_OK && !u->p->source.is_url && u->a->n_words > 1)
        st = EBB_FAIL(err, EBB_USAGE, "%s: unexpected argument; see --help", u->a->words[1]);
    if (st == EBB_OK)
        st = choose_offer(u, &i, &status, err);
    if (st == EBB_OK)
        return fetch_offer(u, i, err);
    return st == EBB_CANCELED ? status : fail_pull(u, err);
}

/* For --suggest: this machine, as the user lets it be used. */
static int suggest_models(const ebb_args *a)
{
    ebb_machine machine;
    ebb_error err = { 0 };

    if (a->n_words)
        return EBB_FAIL(&err, EBB_USAGE, "pull --suggest: it takes no name; ebb pull %s lists its files", a->words[0]),
               ebb_cli_fail(&err);
    if (ebb_machine_probe(NULL, false, &machine, &err) != EBB_OK)
        return ebb_cli_fail(&err);
    if (a->engine.ram_bytes && a->engine.ram_bytes < machine.available_bytes)
        machine.available_bytes = a->engine.ram_bytes;
    if (ebb_machine_measure_usual(&machine, "/proc/self/exe", &err) != EBB_OK)
        return ebb_cli_fail(&err);
    return ebb_pull_print_suggestions(&machine, a->json);
}

int ebb_cmd_pull(ebb_args *a)
{
    struct sigaction act = { .sa_handler = on_pull_signal };
    ebb_buf token = { 0 }, endpoint = { 0 };
    ebb_pull p = { 0 };
    pulling u = { .a = a, .p = &p };
    ebb_error err = { 0 };
    int status = EBB_EXIT_FAILED;
    ebb_status st = a->n_words >= 1 && a->n_words <= 2
                        ? EBB_OK : EBB_FAIL(&err, EBB_USAGE, "pull: give OWNER/NAME on huggingface.co, or an "
                                                             "address; ebb pull --suggest names some");

    if (a->suggests)
        return suggest_models(a);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    ebb_cli_catch_hangup(on_pull_signal);
    ebb_pull_line_begin(&u.line, a);
    if (st == EBB_OK)
        st = read_token(&token, &err);
    if (st == EBB_OK)
        st = read_endpoint(&endpoint, &err);
    if (st == EBB_OK) {                          /* the token may be in a hidden folder */
        ebb_cli_confine(a, EBB_CLI_PULL, NULL);
        status = run_pull(&u, &(ebb_pull_env){ .endpoint = endpoint.len ? endpoint.data : NULL,
                                               .token = token.len ? token.data : NULL,
                                           .is_canceled = is_pull_stopped, .on_notice = on_pull_message,
                                           .arg = &u }, &err);
    } else {
        status = fail_pull(&u, &err);
    }
    ebb_pull_fini(&p);
    ebb_buf_wipe(&token);
    ebb_buf_fini(&endpoint);
    return pull_stop_signal ? 128 + (int)pull_stop_signal : status;
}
