/* /cut: an answer with another end. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "command/slash_impl.h"

/* -- Where the cut is -------------------------------------------------------------------- */

typedef enum unit { WORDS, LINES, SENTENCES, N_UNITS } unit;
static const char *const unit_names[] = { "words", "lines", "sentences" };

static bool is_blank_in_cut(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t without_blanks(const char *s, size_t n)
{
    while (n > 0 && is_blank_in_cut(s[n - 1]))
        n--;
    return n;
}

/* Does a sentence end in front of byte i, which is no blank? */
static bool ends_sentence(const char *s, size_t i)
{
    size_t end = without_blanks(s, i);

    if (end == i || end == 0)
        return false;
    while (end > 1 && strchr("\"')]*_", s[end - 1]))
        end--;
    return strchr(".!?:", s[end - 1]) != NULL || memchr(s + end, '\n', i - end) != NULL;
}

/* One unit less; what is left has no blanks at its end. */
static size_t drop_last_unit(const char *s, size_t n, unit u)
{
    n = without_blanks(s, n);
    if (u == WORDS)
        while (n > 0 && !is_blank_in_cut(s[n - 1]))
            n--;
    else if (u == LINES)
        while (n > 0 && s[n - 1] != '\n')
            n--;
    else
        do
            n--;
        while (n > 0 && !(ends_sentence(s, n) && !is_blank_in_cut(s[n])));
    return without_blanks(s, n);
}

/* "3", "3 words", "1 line": a beginning of a unit's name will do. */
static bool parse_count(const char *what, unsigned long *n, unit *u)
{
    char *end;
    size_t len;

    if (!isdigit((unsigned char)*what))
        return false;
    *n = strtoul(what, &end, 10);
    end += strspn(end, " \t");
    len = strlen(end);
    *u = WORDS;
    if (len == 0)
        return *n > 0;
    for (int i = 0; i < N_UNITS; i++)
        if (strncmp(end, unit_names[i], len) == 0) {
            *u = (unit)i;
            return *n > 0;
        }
    return false;
}

/* Behind the last place that has this text. */
static bool end_of_text(const char *s, size_t n, const char *what, size_t *end)
{
    size_t len = strlen(what);

    if (len > 1 && what[0] == '"' && what[len - 1] == '"') {
        what++;
        len -= 2;
    }
    for (size_t at = n; len > 0 && len <= n && at >= len; at--)
        if (memcmp(s + at - len, what, len) == 0) {
            *end = without_blanks(s, at);
            return *end < without_blanks(s, n);
        }
    return false;
}

bool ebb_cut_at(const char *text, size_t n, const char *what, size_t *end)
{
    unsigned long count;
    unit u;

    if (!parse_count(what, &count, &u))
        return end_of_text(text, n, what, end);
    for (*end = n; count > 0 && *end > 0; count--)
        *end = drop_last_unit(text, *end, u);
    return true;
}

/* -- The command --------------------------------------------------------------------------- */

/* Put the answer into the editor; the model then continues the text that the user leaves. */
static ebb_status offer_cut(ebb_frontend *f, const ebb_message *m, ebb_error *err)
{
    if (!f->edit)
        return EBB_FAIL(err, EBB_USAGE, "/cut 3 words, 2 lines, 1 sentence, or a text after which to cut");
    ebb_frontend_offer(f, m->text, m->n_text);
    f->is_cutting = true;
    return EBB_OK;
}

ebb_status ebb_slash_cut(ebb_frontend *f, const char *arg, ebb_error *err)
{
    size_t n = ebb_chat_n_messages(f->chat), end;
    const ebb_message *m = n ? ebb_chat_message(f->chat, n - 1) : NULL;
    ebb_status st;

    if (!m || m->role != EBB_ROLE_ASSISTANT)
        return EBB_FAIL(err, EBB_USAGE, "there is no answer to cut");
    st = ebb_chat_check_idle(f->chat, err);
    if (st != EBB_OK)
        return st;
    if (*arg == '\0')
        return offer_cut(f, m, err);
    if (!ebb_cut_at(m->text, m->n_text, arg, &end))
        return EBB_FAIL(err, EBB_USAGE, "the answer has no '%.100s', or nothing after it; /cut takes a number of "
                                        "words, lines or sentences, or a text", arg);
    return ebb_chat_cut(f->chat, m->text, end, err);
}

void ebb_complete_cut(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    (void)typed;
    fn(arg, "1 sentence", "");
    fn(arg, "1 line", "");
    fn(arg, "3 words", "");
}
