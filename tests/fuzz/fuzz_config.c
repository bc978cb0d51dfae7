/* A configuration file, and its lines as a command line. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"

static void count_complaint(const char *line)
{
    FUZZ_MUST(line[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char name[] = "ebb";
    ebb_args a = { .sampling = ebb_sampler_params_default() }, b = a;
    char *text = malloc(n + 1), *words[64] = { name }, *rest = NULL;
    int n_words = 1;
    ebb_error err = { 0 };

    FUZZ_MUST(text);
    memcpy(text, data, n);
    text[n] = '\0';
    if (ebb_args_config(&a, text, "config", n % 2 ? EBB_FOR_CHAT : EBB_FOR_PLAN, count_complaint, &err) != EBB_OK)
        FUZZ_MUST(err.msg[0]);
    memcpy(text, data, n);
    text[n] = '\0';
    for (char *w = strtok_r(text, "\n", &rest); w && n_words < 63; w = strtok_r(NULL, "\n", &rest))
        words[n_words++] = w;
    if (ebb_args_parse(&b, n_words, words, n % 2 ? EBB_FOR_CHAT : EBB_FOR_ALL, &err) != EBB_OK)
        FUZZ_MUST(err.msg[0]);
    free(text);
    return 0;
}
