/* BPE of characters (bpe.h): nothing cuts the text but the edges of runs of newlines. */
#include "tokenizer/bpe.h"
#include "tokenizer/spm.h"

/* Bytes of the run of newlines, or of anything else, that text[0..n) begins with. */
static size_t run_of(const char *text, size_t n)
{
    size_t i = 1;

    while (i < n && (text[i] == '\n') == (text[0] == '\n'))
        i++;
    return i;
}

/* A symbol that is no token. */
static void emit_bytes(const ebb_bpe *b, ebb_tok_work *w, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (b->byte_id[(unsigned char)p[i]] >= 0)
            ebb_tok_emit(w, b->byte_id[(unsigned char)p[i]]);
}

/* w->text holds a spelt run. */
static bool encode_run(const ebb_bpe *b, ebb_tok_work *w)
{
    const char *text = w->text.data;
    size_t n = w->text.len;
    ebb_token whole = text[0] == '\n' ? ebb_tok_table_find(b->table, text, n) : -1;

    if (whole >= 0) {
        ebb_tok_emit(w, whole);
        return true;
    }
    if (!ebb_tok_work_begin_chars(w, b->table))
        return false;
    ebb_bpe_join_all(b, w);
    for (size_t at = 0, next; at < n && ebb_tok_spend(&w->budget, 1); at = next) {
        next = ebb_tok_symbol_next(w, at);
        if (w->ids[at] >= 0)
            ebb_tok_emit(w, w->ids[at]);
        else
            emit_bytes(b, w, text + at, next - at);
    }
    return !w->failed;
}

ebb_status ebb_bpe_encode_chars(const ebb_bpe *b, const char *text, size_t n, ebb_tok_work *w, ebb_error *err)
{
    while (n > 0 && w->budget.left > 0) {
        size_t len = run_of(text, n);

        ebb_buf_clear(&w->text);
        if (!ebb_spm_spell(&w->text, text, len) || !encode_run(b, w))
            return EBB_FAIL(err, EBB_NOMEM, "no memory to tokenize %zu bytes of text", n);
        text += len;
        n -= len;
    }
    return EBB_OK;
}
