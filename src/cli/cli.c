/* What the commands share (cli.h). */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "cli.h"
#include "models/guide.h"
#include "models/models.h"

int ebb_cli_fail(const ebb_error *err)
{
    fprintf(stderr, "ebb: %s\n", err->msg);      /* has no control characters: ebb_error_set */
    return err->code == EBB_USAGE ? EBB_EXIT_USAGE : EBB_EXIT_FAILED;
}

static void print_filtered(const char *text, size_t n, bool (*filter)(ebb_buf *, const char *, size_t, bool))
{
    ebb_buf visible = { 0 };

    if (!isatty(STDOUT_FILENO)) {
        fwrite(text, 1, n, stdout);
        return;
    }
    if (filter(&visible, text, n, false))
        fwrite(ebb_buf_text(&visible), 1, visible.len, stdout);
    ebb_buf_fini(&visible);
}

void ebb_cli_print(const char *text, size_t n)
{
    print_filtered(text, n, ebb_utf8_add_visible);
}

void ebb_cli_print_name(const char *name)
{
    print_filtered(name, strlen(name), ebb_utf8_add_line);
}

int ebb_cli_print_json(json_t *root)
{
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    bool ok = text != NULL;

    if (ok)
        ebb_cli_print(text, strlen(text));
    ok = ok && putchar('\n') != EOF && !ferror(stdout);
    free(text);
    json_decref(root);
    return ok ? EBB_EXIT_OK : EBB_EXIT_FAILED;
}

void ebb_cli_catch_hangup(void (*handler)(int))
{
    struct sigaction was, act = { .sa_handler = handler };

    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &act, NULL);
}

void ebb_cli_tell(const ebb_args *a, const char *line)
{
    ebb_buf visible = { 0 };

    if (line[0] && !a->quiet && ebb_utf8_add_visible(&visible, line, strlen(line), false))
        fprintf(stderr, "%s\n", ebb_buf_text(&visible));
    ebb_buf_fini(&visible);
}

bool ebb_cli_is_model_file(const char *word)
{
    const char *dot = strrchr(word, '.');

    return dot && dot > word && (strcasecmp(dot, ".gguf") == 0 || strcasecmp(dot, ".llamafile") == 0);
}

bool ebb_cli_progress(const ebb_args *a)
{
    return !a->quiet && (a->verbose || isatty(STDERR_FILENO));
}

ebb_status ebb_cli_open_model(const ebb_args *a, ebb_model **out, ebb_error *err)
{
    bool is_named = a->model && strcmp(a->model, "auto") != 0;
    ebb_buf why = { 0 };
    char *found = NULL;
    ebb_status st = EBB_OK;

    *out = NULL;
    if (!is_named)
        st = ebb_models_choose(&a->engine, &found, &why, err);
    else if (strcmp(a->model, EBB_MODELS_GUIDE) != 0)
        st = ebb_models_resolve(a->model, &found, err);
    if (why.len && ebb_cli_progress(a))
        fprintf(stderr, "%s\n", why.data);      /* of a header: its texts were made visible */
    ebb_buf_fini(&why);
    if (st == EBB_OK && found)
        st = ebb_model_open(found, out, err);
    else if (st == EBB_OK && ebb_guide_bytes)
        st = ebb_model_open_memory(ebb_guide_data, ebb_guide_bytes, EBB_MODELS_GUIDE, out, err);
    else if (st == EBB_OK)
        st = EBB_FAIL(err, EBB_NOTFOUND, "no model: give one with -m FILE");
    free(found);
    return st;
}

const char *ebb_cli_draft_model_name(const ebb_args *a)
{
    return a->draft && strcmp(a->draft, "none") != 0 && !a->engine.no_speculation ? a->draft : NULL;
}

ebb_status ebb_cli_open_draft_model(ebb_args *a, const ebb_model *host, ebb_model **out, ebb_error *err)
{
    const char *name = ebb_cli_draft_model_name(a);
    ebb_buf why = { 0 };
    ebb_status st;

    *out = NULL;
    if (!name)
        return EBB_OK;
    st = ebb_models_open_draft(name, host, &a->engine, false, out, &why, err);
    if (why.len && !a->quiet)
        fprintf(stderr, "%s\n", why.data);
    a->engine.draft = *out;
    ebb_buf_fini(&why);
    return st;
}

bool ebb_cli_is_model_said(const ebb_args *a)
{
    return a->model && !a->is_model_of_config;
}

void ebb_cli_model_from_words(ebb_args *a, size_t at)
{
    const char *word = at < a->n_words ? a->words[at] : NULL;

    if (ebb_cli_is_model_said(a) || !word || !(ebb_cli_is_model_file(word) || strcmp(word, EBB_MODELS_GUIDE) == 0))
        return;
    a->model = word;
    memmove(a->words + at, a->words + at + 1, (--a->n_words - at) * sizeof *a->words);
}

ebb_status ebb_cli_only_model(ebb_args *a, ebb_error *err)
{
    size_t n_most = ebb_cli_is_model_said(a) ? 0 : 1;

    if (a->n_words > n_most)
        return EBB_FAIL(err, EBB_USAGE, "%s: unexpected argument; see --help", a->words[n_most]);
    if (a->n_words)
        a->model = a->words[0];
    return EBB_OK;
}

ebb_status ebb_cli_tokenize(const ebb_model *m, const ebb_buf *text, unsigned flags, ebb_token **ids, size_t *n,
                            ebb_error *err)
{
    ebb_status st = ebb_model_tokenize(m, ebb_buf_text(text), text->len, flags, NULL, 0, n, err);

    *ids = NULL;
    if (st != EBB_OK)
        return st;
    *ids = malloc((*n + 1) * sizeof **ids);
    if (!*ids)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %zu ids", *n);
    return ebb_model_tokenize(m, ebb_buf_text(text), text->len, flags, *ids, *n, n, err);
}
