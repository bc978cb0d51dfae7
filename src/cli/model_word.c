/* The first word of `ebb run`, where it names a model, as elsewhere: ebb run llama3 "Once upon" (cli.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli.h"
#include "models/models.h"

enum { FEWEST_LETTERS = 3, NAMES_TOLD = 4 };

/* Letters and digits of a name, in small letters; what ends it (.gguf) is left out. */
static void add_plain(ebb_buf *out, const char *name)
{
    size_t n = strlen(name);

    if (n > 5 && strcasecmp(name + n - 5, ".gguf") == 0)
        n -= 5;
    for (size_t i = 0; i < n; i++)
        if (isalnum((unsigned char)name[i]))
            ebb_buf_addc(out, (char)tolower((unsigned char)name[i]));
}

/* Could it be the name of a model, and not the first word of a sentence? */
static bool may_be_name(const ebb_args *a)
{
    const char *word = a->words[0];
    bool is_quoted = a->n_words > 1 && strpbrk(a->words[1], " \n\t") != NULL;

    return isalpha((unsigned char)*word) && strlen(word) >= FEWEST_LETTERS && !strpbrk(word, " \n\t,;?!'\"") &&
           (is_quoted || strpbrk(word, "0123456789") || a->n_words == 1);
}

/* How the word is the name of a model, the better the higher. */
typedef enum fit { FIT_NONE, FIT_BEGINNING, FIT_LETTERS, FIT_VERBATIM } fit;

static ebb_status fail_several(const char *word, const ebb_model_file *files, const fit *fits, fit best, size_t n,
                               ebb_error *err)
{
    ebb_buf names = { 0 };
    size_t told = 0;
    ebb_status st;

    for (size_t i = 0; i < n && told < NAMES_TOLD; i++)
        if (fits[i] == best)
            ebb_buf_addf(&names, "%s%s", told++ ? ", " : "", ebb_models_word(&files[i]));
    st = EBB_FAIL(err, EBB_USAGE, "run: several models %s %s (%s): name one with -m, or give the whole text with -p",
                  best == FIT_BEGINNING ? "begin with" : "are called", word, ebb_buf_text(&names));
    ebb_buf_fini(&names);
    return st;
}

/* The only one that is called so, else the only one whose name begins so; *which is `n` for none. */
static ebb_status match_word(const char *word, const ebb_model_file *files, size_t n, fit *fits, size_t *which,
                             ebb_error *err)
{
    ebb_buf plain = { 0 }, name = { 0 };
    fit best = FIT_NONE;
    size_t n_best = 0;

    *which = n;
    add_plain(&plain, word);
    for (size_t i = 0; i < n && plain.len > 0; i++) {
        ebb_buf_clear(&name);
        add_plain(&name, ebb_models_name(&files[i]));
        if (strcmp(ebb_models_name(&files[i]), word) == 0)
            fits[i] = FIT_VERBATIM;
        else if (name.len >= plain.len && memcmp(name.data, plain.data, plain.len) == 0)
            fits[i] = name.len == plain.len ? FIT_LETTERS : FIT_BEGINNING;
        if (fits[i] > best) {
            best = fits[i];
            n_best = 0;
        }
        if (fits[i] != FIT_NONE && fits[i] == best) {
            *which = i;
            n_best++;
        }
    }
    ebb_buf_fini(&plain);
    ebb_buf_fini(&name);
    return n_best > 1 ? fail_several(word, files, fits, best, n, err) : EBB_OK;
}

static bool is_of_letters(const char *word)
{
    while (isalpha((unsigned char)*word))
        word++;
    return *word == '\0';
}

static bool is_name_of_one(const char *name, const ebb_model_file *files, size_t n)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < n; i++) {
        const char *all = ebb_models_name(&files[i]);

        if (strncmp(all, name, len) == 0 && (all[len] == '\0' || strcasecmp(all + len, ".gguf") == 0))
            return true;
    }
    return false;
}

/* "node" is a word of many texts, however near it is to the beginning of code-llama. */
static ebb_status ask_about_slip(const char *word, const ebb_model_file *files, size_t n, ebb_error *err)
{
    char *nearly = ebb_models_nearly(word, files, n);
    ebb_status st = EBB_OK;

    if (nearly && (!is_of_letters(word) || is_name_of_one(nearly, files, n)))
        st = EBB_FAIL(err, EBB_USAGE, "run: no model %s; did you mean %s? If it belongs to the text: -p TEXT",
                      word, nearly);
    free(nearly);
    return st;
}

ebb_status ebb_cli_model_from_first_word(ebb_args *a, ebb_error *err)
{
    static char *path;                           /* for as long as the program runs, as all arguments are */
    const char *word = a->n_words > 0 ? a->words[0] : NULL;
    ebb_model_file *files = NULL;
    size_t n = 0, which = 0;
    fit *fits = NULL;
    ebb_status st = EBB_OK;

    if (ebb_cli_is_model_said(a) || a->engine_name || !word ||
        (a->n_words == 1 && isatty(STDIN_FILENO) && !a->prompt) || !may_be_name(a))
        return EBB_OK;
    if (ebb_models_find_chat(&files, &n, NULL) == EBB_OK && n > 0)
        fits = calloc(n, sizeof *fits);
    if (fits)
        st = match_word(word, files, n, fits, &which, err);
    if (fits && st == EBB_OK && which == n && a->n_words > 1)
        st = ask_about_slip(word, files, n, err);
    if (fits && st == EBB_OK && which < n) {
        free(path);
        a->model = path = strdup(files[which].path);
        memmove(a->words, a->words + 1, --a->n_words * sizeof *a->words);
        if (!path)
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for the path of %s", word);
    }
    free(fits);
    ebb_models_free(files, n);
    return st;
}
