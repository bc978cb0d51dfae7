/* Fuzzy matching of names (fuzzy.h). */
#include "text/fuzzy.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { EXACT = 5000, BEGINS = 4000, WORD_BEGINS = 3000, INSIDE = 2000, LETTERS = 1000, NO_MORE_THAN = 900 };

static int fuzzy_lower(char c)
{
    return tolower((unsigned char)c);
}

static int at_most(size_t n)
{
    return n < NO_MORE_THAN ? (int)n : NO_MORE_THAN;
}

/* Bytes of the name that are passed over between the typed letters; -1: they are not all there. */
static int fuzzy_gaps(const char *typed, const char *name)
{
    size_t gaps = 0, run = 0;

    for (; *typed; name++) {
        if (*name == '\0')
            return -1;
        if (fuzzy_lower(*name) == fuzzy_lower(*typed)) {
            typed++;
            gaps += run;
            run = 0;
        } else {
            run++;
        }
    }
    return at_most(gaps);
}

int ebb_fuzzy_score(const char *typed, const char *name)
{
    size_t n = strlen(typed), rest = strlen(name) - (strlen(name) < n ? strlen(name) : n);
    int best = -1, gaps;

    if (n == 0)
        return 0;
    if (strncasecmp(name, typed, n) == 0)
        return rest == 0 ? EXACT : BEGINS - at_most(rest);
    for (const char *s = name + 1; *name && *s && best < WORD_BEGINS - NO_MORE_THAN; s++) {
        if (strncasecmp(s, typed, n) == 0)
            best = (isalnum((unsigned char)s[-1]) ? INSIDE : WORD_BEGINS) - at_most((size_t)(s - name));
    }
    if (best >= 0)
        return best;
    gaps = fuzzy_gaps(typed, name);
    return gaps < 0 ? -1 : LETTERS - gaps;
}
