/* Addresses of engines: what comes out must be safe to connect to, or nothing does. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "remote/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    ebb_address *a = malloc(sizeof *a);
    ebb_error err = { 0 };

    FUZZ_MUST(text && a);
    memcpy(text, data, n);
    text[n] = '\0';
    if (ebb_address_parse(text, a, &err) == EBB_OK) {
        FUZZ_MUST(ebb_address_is(text) && strcmp(a->text, text) == 0);
        FUZZ_MUST(strncmp(a->url, "http://", 7) == 0 || strncmp(a->url, "https://", 8) == 0);
        FUZZ_MUST(!strchr(a->url, '@') && !strchr(a->url, ' ') && !strchr(a->host, '/'));
        FUZZ_MUST(!a->is_here || a->is_private);
        if (strncmp(text, "ssh://", 6) == 0)     /* nothing of an address is an option of ssh */
            for (int i = 0; a->argv[i]; i++)
                FUZZ_MUST(a->argv[i][0] != '-' || i < 6 || strcmp(a->argv[i], "--attach") == 0);
        for (int i = 0; a->argv[i]; i++)
            FUZZ_MUST(a->argv[i] >= a->parts && a->argv[i] < a->parts + sizeof a->parts);
    } else {
        FUZZ_MUST(err.msg[0] && !strchr(err.msg, '\n'));
    }
    free(text);
    free(a);
    return 0;
}
