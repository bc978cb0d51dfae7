/* ebb inspect tokens, ebb inspect text: between text and ids, both by standard
 * input and output, so that one is the other backwards. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli.h"
#include "json/json_text.h"

#define MAX_INPUT ((size_t)512 << 20)

static ebb_status read_stdin_text(ebb_buf *in, ebb_error *err)
{
    char part[65536];
    size_t n;

    in->max = MAX_INPUT;
    while ((n = fread(part, 1, sizeof part, stdin)) > 0)
        if (!ebb_buf_add(in, part, n))
            return EBB_FAIL(err, EBB_LIMIT, "standard input has more than %zu MiB", MAX_INPUT >> 20);
    return ferror(stdin) ? EBB_FAIL(err, EBB_IO, "standard input cannot be read") : EBB_OK;
}

typedef ebb_status convert_fn(const ebb_args *a, const ebb_model *m, const ebb_buf *in, ebb_buf *out, ebb_error *err);

static int convert_input(const ebb_args *a, convert_fn *fn)
{
    ebb_model *m = NULL;
    ebb_buf in = { 0 }, out = { 0 };
    ebb_error err = { 0 };
    ebb_status st = ebb_cli_open_model(a, &m, &err);

    if (st == EBB_OK)
        st = read_stdin_text(&in, &err);
    if (st == EBB_OK)
        st = fn(a, m, &in, &out, &err);
    if (st == EBB_OK)
        ebb_cli_print(ebb_buf_text(&out), out.len);
    ebb_model_close(m);
    ebb_buf_fini(&in);
    ebb_buf_fini(&out);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(&err);
}

/* The ids of `in` on one line, or in an object. */
static ebb_status text_to_ids(const ebb_args *a, const ebb_model *m, const ebb_buf *in, ebb_buf *out, ebb_error *err)
{
    unsigned flags = (a->no_bos ? 0u : EBB_TOK_BOS) | (a->no_special ? 0u : EBB_TOK_SPECIAL);
    ebb_token *ids = NULL;
    size_t n = 0;
    ebb_status st = ebb_cli_tokenize(m, in, flags, &ids, &n, err);

    if (a->json)
        ebb_buf_adds(out, "{\"tokens\":[");
    for (size_t i = 0; st == EBB_OK && i < n; i++)
        ebb_buf_addf(out, "%s%d", i == 0 ? "" : a->json ? "," : " ", ids[i]);
    ebb_buf_adds(out, a->json ? "]}\n" : "\n");
    free(ids);
    if (st == EBB_OK && out->failed)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to print %zu ids", n);
    return st;
}

int ebb_cmd_inspect_tokens(ebb_args *a)
{
    return convert_input(a, text_to_ids);
}

static ebb_status add_token_piece(const ebb_model *m, ebb_token id, bool special, ebb_buf *out, ebb_error *err)
{
    size_t n = ebb_model_piece(m, id, special, NULL, 0);

    if (!ebb_buf_reserve(out, n))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the text");
    ebb_model_piece(m, id, special, out->data + out->len, n);
    out->len += n;
    return EBB_OK;
}

static ebb_status put_into_object(ebb_buf *text, ebb_error *err)
{
    json_t *o = json_pack("{s:o}", "text", ebb_json_text(ebb_buf_text(text), text->len));
    char *json = o ? json_dumps(o, JSON_COMPACT) : NULL;
    bool ok;

    ebb_buf_clear(text);
    ok = json && ebb_buf_addf(text, "%s\n", json);
    json_decref(o);
    free(json);
    return ok ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the text");
}

ebb_status ebb_cli_next_id(const char **at, const char *text_end, const ebb_model *m, const char *where, ebb_token *id,
                           ebb_error *err)
{
    enum { SHOWN = 20 };
    const long n_vocab = (long)ebb_model_get_info(m)->n_vocab;
    char *end;
    long n;

    while (isspace((unsigned char)**at) || **at == ',')
        ++*at;
    *id = EBB_TOKEN_NONE;
    if (*at == text_end)
        return EBB_OK;
    if (!**at)                                   /* what is behind it would not be read */
        return EBB_FAIL(err, EBB_FORMAT, "%s: a zero byte is among the ids, as in UTF-16; give them in UTF-8", where);
    errno = 0;
    n = strtol(*at, &end, 10);
    if (end == *at || errno || n < 0 || n >= n_vocab)
        return EBB_FAIL(err, EBB_FORMAT, "%s: '%.*s' is no token id below %ld", where,
                        (int)(strcspn(*at, ", \t\r\n") < SHOWN ? strcspn(*at, ", \t\r\n") : SHOWN), *at, n_vocab);
    *id = (ebb_token)n;
    *at = end;
    return EBB_OK;
}

/* The text of the ids in `in`. */
static ebb_status ids_to_text(const ebb_args *a, const ebb_model *m, const ebb_buf *in, ebb_buf *out, ebb_error *err)
{
    const char *p = ebb_buf_text(in), *end = p + in->len;
    ebb_token id;
    ebb_status st;

    while ((st = ebb_cli_next_id(&p, end, m, "standard input", &id, err)) == EBB_OK && id != EBB_TOKEN_NONE)
        if ((st = add_token_piece(m, id, !a->no_special, out, err)) != EBB_OK)
            break;
    return st == EBB_OK && a->json ? put_into_object(out, err) : st;
}

int ebb_cmd_inspect_text(ebb_args *a)
{
    return convert_input(a, ids_to_text);
}
