/* The configuration file (args.h). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/text.h"

/* Whoever gave the wrong file is told so, and the screen stays his: a file of a megabyte has 500,000 lines. */
enum { COMPLAINTS = 20 };

/* The quote that ends a value: the first behind which nothing stands but a comment.  NULL: none does. */
static char *closing_quote(char *s)
{
    for (char *q = strchr(s, '"'); q; q = strchr(q + 1, '"')) {
        size_t n_blanks = strspn(q + 1, " \t");

        if (q[1 + n_blanks] == '\0' || (n_blanks && q[1 + n_blanks] == '#'))
            return q;
    }
    return NULL;
}

/* "text" without its quotes, which keep blanks and a # in it. */
static char *config_value(char *s)
{
    char *hash, *end;

    s = ebb_text_trim(s);
    if (*s == '"' && (end = closing_quote(s + 1))) {
        *end = '\0';
        return s + 1;
    }
    for (hash = strchr(s, '#'); hash; hash = strchr(hash + 1, '#'))
        if (hash == s || isblank((unsigned char)hash[-1])) {
            *hash = '\0';
            break;
        }
    return ebb_text_trim(s);
}

static ebb_status read_config_line(ebb_args *a, char *line, unsigned mask, ebb_error *err)
{
    char *equals = strchr(line, '='), *name;

    if (equals)
        *equals = '\0';
    name = ebb_text_trim(line);
    if (*name == '\0')
        return EBB_FAIL(err, EBB_USAGE, "expected name = value");
    if (strncmp(name, "filter", 6) == 0 && isblank((unsigned char)name[6]) && equals) {
        name = ebb_text_trim(name + 6);
        return ebb_args_add_filter(a, (ebb_filter_choice){ name, strlen(name), config_value(equals + 1) }, err);
    }
    return ebb_args_set(a, name, equals ? config_value(equals + 1) : "on", mask, err);
}

ebb_status ebb_args_config(ebb_args *a, char *text, const char *path, unsigned mask, ebb_complain_fn *complain,
                           ebb_error *err)
{
    int number = 0, n_wrong = 0;
    char said[512];
    ebb_status st = EBB_OK;

    for (char *line = text + ebb_text_mark(text, strlen(text)), *next; line; line = next) {
        ebb_args before;
        ebb_error why = { 0 };

        number++;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line += strspn(line, " \t\r");
        if (*line == '\0' || *line == '#')
            continue;
        before = *a;
        if (read_config_line(a, line, mask, &why) == EBB_OK)
            continue;
        *a = before;                             /* nor does it count in part */
        snprintf(said, sizeof said, "%s:%d: %s", path, number, why.msg);
        if (st == EBB_OK && strcmp(ebb_text_trim(line), "private") == 0)
            st = EBB_FAIL(err, why.code, "%s", said);
        else if (n_wrong++ < COMPLAINTS)
            complain(said);
    }
    if (n_wrong > COMPLAINTS) {
        snprintf(said, sizeof said, "%s: %d more lines are wrong", path, n_wrong - COMPLAINTS);
        complain(said);
    }
    a->sampling_config |= a->sampling_given;
    a->sampling_given = 0;
    a->overflow_given = false;
    return st;
}
