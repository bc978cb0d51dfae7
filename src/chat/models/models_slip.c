/* The model that a mistyped name was nearly (models.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "models/models.h"

/* Of a beginning, which is often one word: another slip, or less of it, and it is near to any text's first. */
enum { FEWEST_LETTERS = 4, MOST_IN_BEGINNING = 1 };

typedef struct slip {
    ebb_closest near;
    char       *best;            /* in small letters; NULL: none is near */
    const char *name;            /* what it is of: name[0..n) */
    size_t      n;
} slip;

/* Without its ".gguf". */
static size_t stem_length(const char *name)
{
    size_t n = strlen(name);

    return n > 5 && strcasecmp(name + n - 5, ".gguf") == 0 ? n - 5 : n;
}

static char *small_letters(const char *s, size_t n)
{
    char *out = strndup(s, n);

    for (size_t i = 0; out && out[i]; i++)
        out[i] = (char)tolower((unsigned char)out[i]);
    return out;
}

static void try_name(slip *s, const char *name, size_t n)
{
    char *candidate = small_letters(name, n);

    if (candidate)
        ebb_closest_try(&s->near, candidate);
    if (!candidate || s->near.best != candidate) {
        free(candidate);
        return;
    }
    free(s->best);
    s->best = candidate;
    s->name = name;
    s->n = n;
}

/* "tiny-llama3-q8_0" begins with tiny, tiny-llama3, tiny-llama3-q8. */
static void try_beginnings(slip *s, const char *name, size_t n)
{
    for (size_t i = FEWEST_LETTERS; i < n; i++)
        if (!isalnum((unsigned char)name[i]))
            try_name(s, name, i);
}

static void try_files(slip *s, const ebb_model_file *files, size_t n, void (*try)(slip *, const char *, size_t))
{
    for (size_t i = 0; i < n; i++) {
        const char *name = ebb_models_name(&files[i]);

        if (files[i].kind == EBB_KIND_CHAT)
            try(s, name, stem_length(name));
    }
}

char *ebb_models_nearly(const char *name, const ebb_model_file *files, size_t n)
{
    char *small = small_letters(name, stem_length(name)), *found = NULL;
    slip s = { 0 };

    if (!small)
        return NULL;
    s.near = ebb_closest_begin(small, strlen(small));
    try_files(&s, files, n, try_name);
    if (!s.best && s.near.n_slips > MOST_IN_BEGINNING + 1)
        s.near.n_slips = MOST_IN_BEGINNING + 1;
    if (!s.best)
        try_files(&s, files, n, try_beginnings);
    if (s.best)
        found = strndup(s.name, s.n);
    free(s.best);
    free(small);
    return found;
}
