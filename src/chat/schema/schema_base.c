/* Shared by the parts of the schema compiler: errors with a JSON pointer, references, grammar text (schema_priv.h). */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "base/utf8.h"
#include "schema/schema_priv.h"

/* -- Errors and places --------------------------------------------------------------- */

bool ebb_schema_fail(ebb_compiler *c, ebb_status code, const char *format, ...)
{
    char what[240];
    va_list list;

    if (c->st != EBB_OK)
        return false;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    c->st = EBB_FAIL(c->err, code, "the schema, %.120s: %s", ebb_buf_text(&c->path), what);
    return false;
}

bool ebb_schema_fail_no_memory(ebb_compiler *c)
{
    if (c->st == EBB_OK)
        c->st = EBB_FAIL(c->err, EBB_NOMEM, "no memory for the schema");
    return false;
}

static bool is_stopped(ebb_compiler *c)
{
    enum { ASK_STEPS = 10000 };          /* about a millisecond */

    if (!c->stop || c->spent < c->ask_at)
        return false;
    c->ask_at = c->spent + ASK_STEPS;
    return c->stop(c->stop_arg);
}

bool ebb_schema_spend(ebb_compiler *c, uint64_t n)
{
    enum { MOST = 6000000 };

    if (c->st != EBB_OK)
        return false;
    c->spent = n < MOST - c->spent ? c->spent + n : MOST;
    if (c->spent >= MOST)
        return ebb_schema_fail(c, EBB_LIMIT, "too much work: long lists, or what allOf, oneOf and $ref combine here");
    return !is_stopped(c) || ebb_schema_fail(c, EBB_CANCELED, "stopped before it was compiled");
}

bool ebb_schema_spend_name(ebb_compiler *c, const char *name)
{
    return ebb_schema_spend(c, EBB_SCHEMA_COPY + strlen(name) / EBB_SCHEMA_COPIED_BYTES);
}

bool ebb_schema_spend_names(ebb_compiler *c, const json_t *names)
{
    const char *name;
    json_t *v;

    json_object_foreach((json_t *)names, name, v)
        if (!ebb_schema_spend_name(c, name))
            return false;
    return c->st == EBB_OK;
}

bool ebb_schema_has_room(ebb_compiler *c, const ebb_buf *body)
{
    enum { MOST_OUT = 4 << 20 };         /* no grammar is longer */

    return c->out->len + (body ? body->len : 0) <= MOST_OUT ||
           ebb_schema_fail(c, EBB_LIMIT, "too large: its grammar is more than %d MiB", MOST_OUT >> 20);
}

size_t ebb_schema_enter(ebb_compiler *c, const char *keyword, const char *name)
{
    size_t n = c->path.len;

    ebb_buf_addf(&c->path, "/%s%s%.60s", keyword, name ? "/" : "", name ? name : "");
    return n;
}

void ebb_schema_leave(ebb_compiler *c, size_t n_path)
{
    ebb_buf_remove(&c->path, n_path, c->path.len - n_path);
}

/* -- References ------------------------------------------------------------------------ */

/* %25, ~1 and ~0 of a part of a pointer, in place. */
static void decode_percents(char *s)
{
    char *to = s;

    for (; *s; s++) {
        bool is_code = s[0] == '%' && ebb_hex_digit(s[1]) >= 0 && ebb_hex_digit(s[2]) >= 0;

        *to++ = (char)(is_code ? ebb_hex_digit(s[1]) * 16 + ebb_hex_digit(s[2]) : *s);
        s += is_code ? 2 : 0;
    }
    *to = '\0';
}

static void decode_tildes(char *s)
{
    char *to = s;

    for (; *s; s++) {
        bool is_code = s[0] == '~' && (s[1] == '0' || s[1] == '1');

        *to++ = !is_code ? *s : s[1] == '1' ? '/' : '~';
        s += is_code;
    }
    *to = '\0';
}

static const json_t *child_of(const json_t *at, char *part)
{
    char *end;
    unsigned long i;

    decode_percents(part);
    decode_tildes(part);
    if (json_is_object(at))
        return json_object_get(at, part);
    i = strtoul(part, &end, 10);
    return *part && !*end ? json_array_get(at, i) : NULL;
}

/* An $id that is only a fragment names a place, and begins nothing. */
static bool has_id(const ebb_compiler *c, const json_t *at)
{
    const char *id = json_string_value(json_object_get(at, c->id));

    return id && id[0] != '#' && at != c->root;
}

static bool add_base(ebb_compiler *c, const json_t *ref, const json_t *base)
{
    ebb_schema_base *p = ebb_grow(c->bases, c->n_bases, &c->cap_bases, sizeof *p);

    if (!p)
        return ebb_schema_fail_no_memory(c);
    c->bases = p;
    p[c->n_bases++] = (ebb_schema_base){ .ref = ref, .base = base };
    return true;
}

/* Of `at` and all below it; `base`: of what is around it. */
static bool add_bases(ebb_compiler *c, const json_t *at, const json_t *base)
{
    const json_t *ref = json_object_get(at, "$ref");
    const char *name;
    json_t *part;
    bool ok = true;
    size_t i;

    if (has_id(c, at) && !(json_is_string(ref) && c->ref_ignores_siblings))
        base = at;
    if (json_is_string(ref) && base != c->root)
        ok = add_base(c, ref, base);
    json_object_foreach((json_t *)at, name, part)
        ok = ok && add_bases(c, part, base);
    json_array_foreach(at, i, part)
        ok = ok && add_bases(c, part, base);
    return ok;
}

static int compare_bases(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const ebb_schema_base *)a)->ref, y = (uintptr_t)((const ebb_schema_base *)b)->ref;

    return (x > y) - (x < y);
}

bool ebb_schema_find_bases(ebb_compiler *c)
{
    bool ok = add_bases(c, c->root, c->root);

    if (ok && c->n_bases > 0)
        qsort(c->bases, c->n_bases, sizeof *c->bases, compare_bases);
    return ok;
}

const json_t *ebb_schema_base_of(const ebb_compiler *c, const json_t *ref)
{
    const ebb_schema_base wanted = { .ref = ref }, *found = NULL;

    if (c->n_bases > 0)
        found = bsearch(&wanted, c->bases, c->n_bases, sizeof *c->bases, compare_bases);
    return found ? found->base : c->root;
}

static bool check_ref(ebb_compiler *c, const json_t *ref)
{
    enum { MOST_REF = 4096, BYTES_OF_STEP = 16 };    /* a part of it, with its slash, may have two bytes */
    const char *text = json_string_value(ref);

    if (!text)
        return ebb_schema_fail(c, EBB_FORMAT, "$ref must be a text");
    if (json_string_length(ref) > MOST_REF)
        return ebb_schema_fail(c, EBB_LIMIT, "$ref %.80s...: longer than %d bytes", text, MOST_REF);
    if (text[0] != '#' || (text[1] && text[1] != '/'))
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "$ref %.80s: only places of the schema itself are followed (#/...)",
                               text);
    return ebb_schema_spend(c, json_string_length(ref) / BYTES_OF_STEP);
}

const json_t *ebb_schema_find_ref(ebb_compiler *c, const json_t *ref)
{
    const char *text = json_string_value(ref);
    const json_t *at = ebb_schema_base_of(c, ref);
    char *copy, *part;

    if (!check_ref(c, ref))
        return NULL;
    copy = part = strdup(text + 1);
    if (!copy)
        return ebb_schema_fail_no_memory(c) ? at : NULL;
    while (at && *part == '/') {
        char *begin = part + 1, end;

        part = begin + strcspn(begin, "/");
        end = *part;
        *part = '\0';
        at = child_of(at, begin);
        *part = end;
    }
    free(copy);
    if (!at)
        ebb_schema_fail(c, EBB_FORMAT, "$ref %.80s: there is no such place in the schema", text);
    return at;
}

/* -- Pieces of grammar ------------------------------------------------------------------ */

void ebb_schema_add_call(ebb_buf *b, int rule)
{
    if (rule < 0)
        ebb_buf_adds(b, "value");
    else
        ebb_buf_addf(b, "r%d", rule);
}

void ebb_schema_add_literal(ebb_buf *b, const char *text, size_t n)
{
    ebb_buf_addc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char x = (unsigned char)text[i];
        if (x == '"' || x == '\\')
            ebb_buf_addf(b, "\\%c", x);
        else if (x < 0x20 || x == 0x7F)
            ebb_buf_addf(b, "\\x%02x", x);
        else
            ebb_buf_addc(b, (char)x);
    }
    ebb_buf_addc(b, '"');
}

void ebb_write_way(ebb_buf *b)
{
    if (b->len > 0)
        ebb_buf_adds(b, " | ");
}

size_t ebb_schema_char_bytes(const char *s)
{
    uint32_t cp;

    return ebb_utf8_decode(s, strnlen(s, 4), &cp);
}

int ebb_schema_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
