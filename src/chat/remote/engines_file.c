/* Reading and writing named engines (engines_file.h). */
#include "remote/engines_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/closest.h"
#include "base/text.h"
#include "base/utf8.h"
#include "os/file.h"
#include "os/paths.h"
#include "remote/address.h"
#include "remote/dialect.h"

enum { MAX_FILE = 1 << 20, MAX_ENGINES = 500, MAX_SILENCE = 86400, MAX_CTX = 100000000 };

/* The values that are texts; header is a list, the rest are numbers and switches. */
static const struct { const char *name; size_t at; } texts[] = {
    { "address", offsetof(ebb_engine_entry, address) },
    { "kind", offsetof(ebb_engine_entry, kind) },
    { "model", offsetof(ebb_engine_entry, model) },
    { "key", offsetof(ebb_engine_entry, key) },
    { "key-file", offsetof(ebb_engine_entry, key_file) },
    { "key-variable", offsetof(ebb_engine_entry, key_variable) },
    { "key-command", offsetof(ebb_engine_entry, key_command) },
    { "ca-file", offsetof(ebb_engine_entry, ca_file) },
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

static char **text_field(ebb_engine_entry *e, size_t i)
{
    return (char **)((char *)e + texts[i].at);
}

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void ebb_engine_entry_fini(ebb_engine_entry *e)
{
    for (size_t i = 0; i < N_TEXTS; i++)
        wipe(*text_field(e, i));
    for (size_t i = 0; e->headers[i]; i++)
        wipe(e->headers[i]);
    *e = (ebb_engine_entry){ 0 };
}

void ebb_engines_free(ebb_engine_entry *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ebb_engine_entry_fini(&list[i]);
    free(list);
}

/* -- Values -------------------------------------------------------------------------------- */

static bool is_engine_name(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n >= EBB_ENGINE_NAME || s[0] == '-' || s[0] == '.' || strcmp(s, EBB_ENGINE_HERE) == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    return true;
}

static ebb_status set_number(uint32_t *to, uint32_t most, const char *name, const char *value, ebb_error *err)
{
    char *end;
    unsigned long v = strtoul(value, &end, 10);

    if (!isdigit((unsigned char)*value) || *end || v > most)
        return EBB_FAIL(err, EBB_USAGE, "%s: give a whole number up to %u", name, most);
    *to = (uint32_t)v;
    return EBB_OK;
}

static ebb_status add_header(ebb_engine_entry *e, const char *value, ebb_error *err)
{
    size_t n = 0, name = strcspn(value, ":");

    while (e->headers[n])
        n++;
    if (n == EBB_ENGINE_HEADERS)
        return EBB_FAIL(err, EBB_USAGE, "header: there are at most %d", EBB_ENGINE_HEADERS);
    for (size_t i = 0; i < name; i++)
        if (!isalnum((unsigned char)value[i]) && value[i] != '-' && value[i] != '_')
            name = 0;
    if (name == 0 || value[name] != ':')
        return EBB_FAIL(err, EBB_USAGE, "header: give it as Name: value");
    e->headers[n] = strdup(value);
    return e->headers[n] ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
}

static ebb_status check_text(const char *name, const char *value, ebb_error *err)
{
    ebb_address a;

    if (strcmp(name, "address") == 0)
        return ebb_address_parse(value, &a, err);
    if (strcmp(name, "kind") == 0 && ebb_server_kind_parse(value) == EBB_SERVER_COUNT)
        return EBB_FAIL(err, EBB_USAGE, "kind = %.40s: give openai, llama-server, vllm, sglang, ollama, lm-studio or "
                                        "ebb",
                        value);
    return EBB_OK;
}

static ebb_status set_value(ebb_engine_entry *e, const char *name, const char *value, ebb_error *err)
{
    ebb_status st;

    if (ebb_utf8_has_controls(value) || !*value)
        return EBB_FAIL(err, EBB_USAGE, "%.40s: needs a value without control characters", name);
    for (size_t i = 0; i < N_TEXTS; i++) {
        char **field = text_field(e, i);
        if (strcmp(name, texts[i].name) != 0)
            continue;
        st = check_text(name, value, err);
        if (st != EBB_OK)
            return st;
        wipe(*field);
        *field = strdup(value);
        return *field ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
    }
    if (strcmp(name, "header") == 0)
        return add_header(e, value, err);
    if (strcmp(name, "context") == 0)
        return set_number(&e->n_ctx, MAX_CTX, name, value, err);
    if (strcmp(name, "silence") == 0)
        return set_number(&e->silence_s, MAX_SILENCE, name, value, err);
    if (strcmp(name, "insecure") != 0)
        return EBB_FAIL(err, EBB_USAGE, "%.40s: is not a setting of an engine", name);
    e->is_insecure = strcmp(value, "on") == 0;
    return e->is_insecure || strcmp(value, "off") == 0 ? EBB_OK : EBB_FAIL(err, EBB_USAGE, "insecure: give on or off");
}

/* -- The file -------------------------------------------------------------------------------- */

typedef struct reader {
    const char       *path;
    int               line;
    ebb_engine_entry *list;
    size_t            n;
    bool              has_secret;
} reader;

static ebb_status begin_entry(reader *r, char *line, ebb_error *err)
{
    size_t n = strlen(line);
    ebb_engine_entry *more;

    if (line[n - 1] == ']')
        line[n - 1] = '\0';
    line = ebb_text_trim(line + 1);
    if (!is_engine_name(line))
        return EBB_FAIL(err, EBB_USAGE, "a name has 1 to %d letters, digits, . _ or -, and cannot be " EBB_ENGINE_HERE,
                        EBB_ENGINE_NAME - 1);
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->list[i].name, line) == 0)
            return EBB_FAIL(err, EBB_USAGE, "there is a second engine %s", line);
    if (r->n == MAX_ENGINES)
        return EBB_FAIL(err, EBB_LIMIT, "more than %d engines", MAX_ENGINES);
    more = realloc(r->list, (r->n + 1) * sizeof *more);
    if (!more)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
    r->list = more;
    r->list[r->n] = (ebb_engine_entry){ 0 };
    strcpy(r->list[r->n++].name, line);
    return EBB_OK;
}

static ebb_status read_value(reader *r, char *line, ebb_error *err)
{
    char *equals = strchr(line, '='), *name, *hash;

    if (!equals)
        return EBB_FAIL(err, EBB_USAGE, "expected [name] or name = value");
    if (r->n == 0)
        return EBB_FAIL(err, EBB_USAGE, "expected a [name] before this");
    *equals = '\0';
    name = ebb_text_trim(line);
    for (hash = strstr(equals + 1, " #"); hash; hash = NULL)
        *hash = '\0';
    r->has_secret |= strcmp(name, "key") == 0 || strcmp(name, "header") == 0;
    return set_value(&r->list[r->n - 1], name, ebb_text_trim(equals + 1), err);
}

static ebb_status read_lines(reader *r, char *text, ebb_error *err)
{
    ebb_error why = { 0 };

    for (char *line = text, *next; line; line = next) {
        ebb_status st = EBB_OK;

        r->line++;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line = ebb_text_trim(line);
        if (*line == '[')
            st = begin_entry(r, line, &why);
        else if (*line && *line != '#')
            st = read_value(r, line, &why);
        if (st != EBB_OK)
            return EBB_FAIL(err, st, "%s:%d: %s", r->path, r->line, why.msg);
    }
    for (size_t i = 0; i < r->n; i++)
        if (!r->list[i].address)
            return EBB_FAIL(err, EBB_USAGE, "%s: [%s] has no address", r->path, r->list[i].name);
    return EBB_OK;
}

static ebb_status check_mode(const reader *r, ebb_error *err)
{
    struct stat s;

    if (!r->has_secret || stat(r->path, &s) != 0 || (s.st_mode & 077) == 0)
        return EBB_OK;
    return EBB_FAIL(err, EBB_IO, "%s holds secrets, and other users can read it: chmod 600 %s", r->path, r->path);
}

static ebb_status read_engines(ebb_buf *path, ebb_buf *text, ebb_error *err)
{
    ebb_status st = ebb_path_in(EBB_DIR_CONFIG, "engines", path, err);

    if (st == EBB_OK)
        st = ebb_file_slurp(path->data, MAX_FILE, text, err);
    if (st == EBB_OK && text->len && memchr(text->data, '\0', text->len))    /* lines behind it would not be read */
        st = EBB_FAIL(err, EBB_USAGE, "%s: not a text file; it may be damaged", path->data);
    if (st == EBB_OK)
        ebb_buf_remove(text, 0, ebb_text_mark(ebb_buf_text(text), text->len));
    if (st == EBB_OK && text->len)               /* keys and engines may be commands */
        st = ebb_file_expect_trusted(path->data, err);
    return st;
}

ebb_status ebb_engines_read(ebb_engine_entry **out, size_t *n, ebb_error *err)
{
    ebb_buf path = { 0 }, text = { 0 };
    reader r = { 0 };
    ebb_status st = read_engines(&path, &text, err);

    r.path = ebb_buf_text(&path);
    *out = NULL;
    *n = 0;
    if (st == EBB_OK && text.len)
        st = read_lines(&r, text.data, err);
    if (st == EBB_OK)
        st = check_mode(&r, err);
    if (st == EBB_OK) {
        *out = r.list;
        *n = r.n;
    } else {
        ebb_engines_free(r.list, r.n);
    }
    ebb_buf_wipe(&text);
    ebb_buf_fini(&path);
    return st == EBB_NOTFOUND ? EBB_OK : st;
}

static ebb_status unknown_engine(const char *name, const ebb_engine_entry *list, size_t n, ebb_error *err)
{
    ebb_closest near = ebb_closest_begin(name, strlen(name));

    for (size_t i = 0; i < n; i++)
        ebb_closest_try(&near, list[i].name);
    if (near.best)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no engine %.40s; did you mean %s?", name, near.best);
    return EBB_FAIL(err, EBB_NOTFOUND, "there is no engine %.40s; %s", name,
                    n ? "ebb engines list shows them" : "ebb engines add NAME ADDRESS adds one");
}

ebb_status ebb_engines_find(const char *name, ebb_engine_entry *out, ebb_error *err)
{
    ebb_engine_entry *list = NULL;
    ebb_address a;
    size_t n = 0, at = 0;
    ebb_status st;

    *out = (ebb_engine_entry){ 0 };
    if (ebb_address_is(name)) {
        st = ebb_address_parse(name, &a, err);
        if (st != EBB_OK)
            return st;
        snprintf(out->name, sizeof out->name, "%.40s", a.host);
        out->address = strdup(name);
        return out->address ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
    }
    st = ebb_engines_read(&list, &n, err);
    while (st == EBB_OK && at < n && strcmp(list[at].name, name) != 0)
        at++;
    if (st == EBB_OK && at == n)
        st = unknown_engine(name, list, n, err);
    if (st == EBB_OK) {
        *out = list[at];
        list[at] = (ebb_engine_entry){ 0 };
    }
    ebb_engines_free(list, n);
    return st;
}

static void print_entry(const ebb_engine_entry *e, ebb_buf *out)
{
    ebb_buf_addf(out, "%s[%s]\n", out->len ? out->data[out->len - 1] == '\n' ? "\n" : "\n\n" : "", e->name);
    for (size_t i = 0; i < N_TEXTS; i++) {
        const char *value = *text_field((ebb_engine_entry *)e, i);
        if (value)
            ebb_buf_addf(out, "%s = %s\n", texts[i].name, value);
    }
    for (size_t i = 0; e->headers[i]; i++)
        ebb_buf_addf(out, "header = %s\n", e->headers[i]);
    if (e->n_ctx)
        ebb_buf_addf(out, "context = %u\n", e->n_ctx);
    if (e->silence_s)
        ebb_buf_addf(out, "silence = %u\n", e->silence_s);
    if (e->is_insecure)
        ebb_buf_adds(out, "insecure = on\n");
}

/* An entry must be the same after writing and reading; else it is refused. */
static ebb_status check_entry(const ebb_engine_entry *e, ebb_error *err)
{
    ebb_engine_entry copy = { 0 };
    ebb_status st = EBB_OK;

    if (!is_engine_name(e->name))
        return EBB_FAIL(err, EBB_USAGE,
                        "%.60s: a name has 1 to %d letters, digits, . _ or -, and cannot be " EBB_ENGINE_HERE, e->name,
                        EBB_ENGINE_NAME - 1);
    for (size_t i = 0; st == EBB_OK && i < N_TEXTS; i++) {
        const char *value = *text_field((ebb_engine_entry *)e, i);
        if (value && strstr(value, " #"))
            st = EBB_FAIL(err, EBB_USAGE, "%s: \" #\" begins a comment in the file of engines", texts[i].name);
        if (st == EBB_OK && value)
            st = set_value(&copy, texts[i].name, value, err);
    }
    ebb_engine_entry_fini(&copy);
    return st;
}

/* A link stays one: the file may be kept elsewhere, with others of its kind. */
static ebb_status write_engines(const char *path, const ebb_buf *text, ebb_error *err)
{
    char *real = realpath(path, NULL);           /* NULL: there is no file yet */
    ebb_status st = text->failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for the file of engines")
                                 : ebb_file_replace(real ? real : path, ebb_buf_text(text), text->len, err);

    free(real);
    return st;
}

ebb_status ebb_engines_add(const ebb_engine_entry *e, ebb_error *err)
{
    ebb_buf path = { 0 }, text = { 0 }, dir = { 0 };
    ebb_engine_entry *list = NULL;
    size_t n = 0;
    ebb_status st = check_entry(e, err);

    if (st == EBB_OK)
        st = ebb_engines_read(&list, &n, err);
    for (size_t i = 0; st == EBB_OK && i < n; i++)
        if (strcmp(list[i].name, e->name) == 0)
            st = EBB_FAIL(err, EBB_USAGE, "there is already an engine %s, at %.200s", e->name, list[i].address);
    ebb_engines_free(list, n);
    if (st == EBB_OK)
        st = read_engines(&path, &text, err);
    st = st == EBB_NOTFOUND ? EBB_OK : st;
    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_CONFIG, NULL, &dir, err);
    if (st == EBB_OK)
        st = ebb_file_mkdirs(dir.data, err);
    if (st == EBB_OK) {
        print_entry(e, &text);
        st = write_engines(path.data, &text, err);
    }
    ebb_buf_wipe(&text);
    ebb_buf_fini(&path);
    ebb_buf_fini(&dir);
    return st;
}

/* The name in a line [name]; *n: its length.  NULL: it is no such line. */
static const char *section_name(const char *line, size_t *n)
{
    size_t end = strcspn(line, "\n");
    const char *at = line + strspn(line, " \t");

    if (*at != '[')
        return NULL;
    at += 1 + strspn(at + 1, " \t");
    while (end > (size_t)(at - line) && strchr(" \t\r]", line[end - 1]))
        end--;
    *n = (size_t)(line + end - at);
    return at;
}

/* Bytes [*from, *end) of the text are the lines of this engine: from its [name] to its last value and the empty lines
 * behind that.  A comment there is the next one's.  false: it is not in the file. */
static bool find_section(const char *text, const char *name, size_t *from, size_t *end)
{
    bool is_inside = false, has_ended = false;

    for (const char *line = text, *next; *line && !has_ended; line = next) {
        size_t n, blank = strspn(line, " \t\r");
        const char *found = section_name(line, &n);

        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (found && !is_inside && n == strlen(name) && memcmp(found, name, n) == 0) {
            is_inside = true;
            *from = (size_t)(line - text);
            *end = (size_t)(next - text);
        } else if (found) {
            has_ended = is_inside;
        } else if (is_inside && line[blank] != '#' && line[blank] != '\n' && line[blank]) {
            *end = (size_t)(next - text);
        }
    }
    while (is_inside && text[*end] == '\n')
        ++*end;
    return is_inside;
}

ebb_status ebb_engines_remove(const char *name, ebb_error *err)
{
    ebb_buf path = { 0 }, text = { 0 };
    ebb_engine_entry *list = NULL;
    size_t n = 0, at = 0, from = 0, end = 0;
    ebb_status st = ebb_engines_read(&list, &n, err);

    while (st == EBB_OK && at < n && strcmp(list[at].name, name) != 0)
        at++;
    if (st == EBB_OK && at == n)
        st = unknown_engine(name, list, n, err);
    ebb_engines_free(list, n);
    if (st == EBB_OK)
        st = read_engines(&path, &text, err);
    if (st == EBB_OK && !find_section(ebb_buf_text(&text), name, &from, &end))
        st = EBB_FAIL(err, EBB_NOTFOUND, "there is no longer an engine %.40s", name);
    if (st == EBB_OK) {
        ebb_buf_remove(&text, from, end - from);
        st = write_engines(path.data, &text, err);
    }
    ebb_buf_wipe(&text);
    ebb_buf_fini(&path);
    return st;
}
