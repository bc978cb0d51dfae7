/* Texts: their length, pattern or format (schema_priv.h). */
#include <inttypes.h>
#include <string.h>

#include "schema/schema_priv.h"

enum { MOST_LENGTH = 50000 };            /* of what is counted */

/* RFC 3339 without leap seconds; days that every month has, and those that some have; no 29 February, whose year would
 * have to be known. */
#define DATE "[0-9]{4} \"-\" ((\"0\" [1-9] | \"1\" [0-2]) \"-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8]) | " \
             "(\"0\" [13-9] | \"1\" [0-2]) \"-\" (\"29\" | \"30\") | (\"0\" [13578] | \"10\" | \"12\") \"-31\")"
#define CLOCK "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9]"
#define TIME CLOCK " \":\" [0-5] [0-9] (\".\" [0-9]{1,9})? (\"Z\" | [-+] " CLOCK ")"
#define BYTE "(\"25\" [0-5] | \"2\" [0-4] [0-9] | \"1\" [0-9]{2} | [1-9]? [0-9])"
#define HEX(n) "hex{" n "}"

static const struct { const char *name, *grammar; } formats[] = {
    { "date", DATE }, { "time", TIME }, { "date-time", DATE " \"T\" " TIME },
    { "uuid", HEX("8") " \"-\" " HEX("4") " \"-\" " HEX("4") " \"-\" " HEX("4") " \"-\" " HEX("12") },
    { "ipv4", BYTE " (\".\" " BYTE "){3}" },
};

static const char *format_grammar(const char *name)
{
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0)
            return formats[i].grammar;
    return NULL;                                 /* other formats are annotations, as in most drafts */
}

static void write_length(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    if (s->min_length > s->max_length)
        return;
    if (s->min_length > MOST_LENGTH || (s->max_length != EBB_NO_LIMIT && s->max_length > MOST_LENGTH)) {
        ebb_schema_fail(c, EBB_LIMIT, "minLength and maxLength are followed up to %d", MOST_LENGTH);
        return;
    }
    ebb_write_way(b);
    if (s->max_length == EBB_NO_LIMIT)
        ebb_buf_addf(b, "\"\\\"\" char{%" PRIu64 ",} \"\\\"\"", s->min_length);
    else
        ebb_buf_addf(b, "\"\\\"\" char{%" PRIu64 ",%" PRIu64 "} \"\\\"\"", s->min_length, s->max_length);
}

void ebb_write_string(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    const char *format = format_grammar(s->format);
    bool has_length = s->min_length > 0 || s->max_length != EBB_NO_LIMIT;

    if ((s->pattern && format) || ((s->pattern || format) && has_length)) {
        ebb_schema_fail(c, EBB_UNSUPPORTED, "%s beside %s", s->pattern ? "pattern" : "format",
                        s->pattern && format ? "format" : "minLength or maxLength");
    } else if (s->pattern || format) {
        ebb_write_way(b);
        ebb_buf_adds(b, "\"\\\"\" (");
        if (s->pattern)
            ebb_write_pattern(c, s->pattern, b);
        else
            ebb_buf_adds(b, format);
        ebb_buf_adds(b, ") \"\\\"\"");
    } else if (has_length) {
        write_length(c, s, b);
    } else {
        ebb_write_way(b);
        ebb_buf_adds(b, "string");
    }
}
