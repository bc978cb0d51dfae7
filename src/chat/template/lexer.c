/* Source text -> tokens, with Jinja's rules for white space around tags. */
#include <string.h>

#include "template/ast.h"
#include "template/strings.h"

typedef struct lexer {
    tpl_vm     *vm;
    const char *src;
    size_t      n, at;
    uint32_t    line;
    bool        line_starts;     /* what came before `at` ended a line */
    tpl_tokens *out;
} lexer;

static void emit(lexer *l, tpl_token_type type, size_t from, size_t to)
{
    tpl_tokens *t = l->out;

    t->v = ebb_tpl_grow(l->vm, t->v, t->n, &t->cap, sizeof *t->v);
    t->v[t->n++] = (tpl_token){ .type = type, .line = l->line, .p = l->src + from, .n = to - from };
}

static void advance_to(lexer *l, size_t to)
{
    for (; l->at < to; l->at++)
        l->line += l->src[l->at] == '\n';
    l->vm->line = l->line;
}

static char peek_char(const lexer *l, size_t at)
{
    return at < l->n ? l->src[at] : '\0';
}

static uint32_t decode_source(const lexer *l, size_t at, size_t *len)
{
    tpl_str s = { .p = l->src, .n = l->n };

    return ebb_tpl_str_cp(&s, at, len);
}

static size_t skip_source_space(const lexer *l, size_t at)
{
    size_t len;

    while (at < l->n && ebb_tpl_cp_is_space(decode_source(l, at, &len)))
        at += len;
    return at;
}

/* -- Text between tags ---------------------------------------------------------------- */

static bool all_space(const lexer *l, size_t from, size_t to)
{
    return from < to && skip_source_space(l, from) >= to;
}

/* The text [at, to) before a tag whose sign is '-', '+' or 0. */
static void emit_data(lexer *l, size_t to, char sign, bool is_print)
{
    size_t from = l->at, end = to;
    tpl_str s = { .p = l->src + from, .n = to - from };

    if (sign == '-') {
        end = from + ebb_tpl_str_strip(l->vm, &s, NULL, TPL_RIGHT)->n;
    } else if (sign != '+' && !is_print) {
        size_t bol = to;
        while (bol > from && l->src[bol - 1] != '\n')
            bol--;
        if ((bol > from || l->line_starts) && all_space(l, bol, to))
            end = bol;
    }
    if (end > from)
        emit(l, TPL_T_DATA, from, end);
    if (to > from)
        l->line_starts = l->src[to - 1] == '\n';
    advance_to(l, to);
}

/* End a tag whose "#}" or "%}" is at `close`, and skip the white space that `sign` strips. */
static void end_tag(lexer *l, size_t close, char sign)
{
    size_t to = close + 2;

    if (sign == '-')
        to = skip_source_space(l, to);
    else if (sign != '+' && peek_char(l, to) == '\n')
        to++;
    advance_to(l, to);
    l->line_starts = l->src[to - 1] == '\n';
}

static size_t find_in_source(const lexer *l, size_t from, const char *what)
{
    const char *hit = from < l->n ? memmem(l->src + from, l->n - from, what, strlen(what)) : NULL;

    return hit ? (size_t)(hit - l->src) : SIZE_MAX;
}

static void lex_comment(lexer *l, size_t from)
{
    size_t close = find_in_source(l, from, "#}");
    char sign;

    if (close == SIZE_MAX)
        ebb_tpl_fail(l->vm, EBB_FORMAT, "a comment {# has no end #}");
    sign = close > from ? l->src[close - 1] : '\0';
    end_tag(l, close, sign);
}

/* If a tag at `from` (behind "{%" and its sign) is just `word`: the position behind
 * "%}", and in *sign the character before "%}".  Else 0. */
static size_t is_tag(const lexer *l, size_t from, const char *word, char *sign)
{
    size_t at = skip_source_space(l, from), n = strlen(word);

    if (l->n - at < n || memcmp(l->src + at, word, n) != 0)
        return 0;
    at = skip_source_space(l, at + n);
    *sign = peek_char(l, at) == '-' || peek_char(l, at) == '+' ? l->src[at++] : '\0';
    return peek_char(l, at) == '%' && peek_char(l, at + 1) == '}' ? at + 2 : 0;
}

static void lex_raw(lexer *l, size_t from, char sign)
{
    size_t tag = sign == '-' ? skip_source_space(l, from) : from;

    advance_to(l, tag);
    l->line_starts = l->src[tag - 1] == '\n';
    while ((tag = find_in_source(l, tag, "{%")) != SIZE_MAX) {
        char first = peek_char(l, tag + 2), last;
        bool has_sign = first == '-' || first == '+';
        size_t to = is_tag(l, tag + 2 + has_sign, "endraw", &last);
        if (to) {
            emit_data(l, tag, has_sign ? first : '\0', false);
            end_tag(l, to - 2, last);
            return;
        }
        tag += 2;
    }
    ebb_tpl_fail(l->vm, EBB_FORMAT, "raw has no endraw");
}

/* -- Inside tags --------------------------------------------------------------------------- */

static bool is_name_cp(uint32_t cp, bool first)
{
    return first ? cp == '_' || ebb_tpl_cp_is_alpha(cp) : ebb_tpl_cp_is_word(cp);
}

static void lex_name(lexer *l)
{
    size_t to = l->at, len;

    while (to < l->n && is_name_cp(decode_source(l, to, &len), false))
        to += len;
    emit(l, TPL_T_NAME, l->at, to);
    advance_to(l, to);
}

static void lex_string(lexer *l)
{
    char quote = l->src[l->at];
    size_t to = l->at + 1;

    while (to < l->n && l->src[to] != quote)
        to += l->src[to] == '\\' ? 2 : 1;
    if (to >= l->n)
        ebb_tpl_fail(l->vm, EBB_FORMAT, "a string has no end");
    emit(l, TPL_T_STRING, l->at + 1, to);
    advance_to(l, to + 1);
}

static size_t digits(const lexer *l, size_t at)
{
    while ((peek_char(l, at) >= '0' && peek_char(l, at) <= '9') ||
           (peek_char(l, at) == '_' && peek_char(l, at + 1) >= '0' && peek_char(l, at + 1) <= '9'))
        at++;
    return at;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void lex_number(lexer *l)
{
    size_t at = l->at, to = digits(l, at);
    char base = (char)(peek_char(l, at + 1) | 0x20);
    bool is_float = false;

    if (peek_char(l, at) == '0' && to == at + 1 && (base == 'x' || base == 'o' || base == 'b')) {
        for (to = at + 2; is_hex(peek_char(l, to)) || peek_char(l, to) == '_'; to++)
            ;
    } else {
        if (peek_char(l, to) == '.' && is_digit(peek_char(l, to + 1))) {
            to = digits(l, to + 1);
            is_float = true;
        }
        size_t e = to + 1 + (peek_char(l, to + 1) == '+' || peek_char(l, to + 1) == '-');
        if ((peek_char(l, to) | 0x20) == 'e' && is_digit(peek_char(l, e))) {
            to = digits(l, e);
            is_float = true;
        }
    }
    emit(l, is_float ? TPL_T_FLOAT : TPL_T_INT, at, to);
    advance_to(l, to);
}

static void lex_op(lexer *l)
{
    static const char *const two[] = { "//", "**", "==", "!=", ">=", "<=" };
    char c = l->src[l->at];
    size_t n = 1;

    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (c == two[i][0] && peek_char(l, l->at + 1) == two[i][1])
            n = 2;
    if (!c || (n == 1 && !strchr("+-/*%~[](){}><=.:|,;", c)))
        ebb_tpl_fail(l->vm, EBB_FORMAT, c > ' ' && c < 127 ? "'%c' is not an operator" : "an unexpected character", c);
    emit(l, TPL_T_OP, l->at, l->at + n);
    l->out->v[l->out->n - 1].op = TPL_OP(c, n == 2 ? l->src[l->at + 1] : 0);
    advance_to(l, l->at + n);
}

/* At the end of the tag?  Then it is consumed. */
static bool lex_end(lexer *l, char close)
{
    char c = peek_char(l, l->at);
    bool has_sign = c == '-' || (c == '+' && close == '%');
    size_t at = l->at + has_sign;

    if (peek_char(l, at) != close || peek_char(l, at + 1) != '}')
        return false;
    emit(l, close == '%' ? TPL_T_TAG_END : TPL_T_PRINT_END, at, at + 2);
    end_tag(l, at, has_sign ? c : close == '}' ? '+' : '\0');
    return true;
}

static void lex_inside(lexer *l, char close)
{
    char open[TPL_MAX_DEPTH];
    size_t n_open = 0, len;

    for (;;) {
        advance_to(l, skip_source_space(l, l->at));
        if (l->at >= l->n)
            ebb_tpl_fail(l->vm, EBB_FORMAT, "a tag has no end");
        if (n_open == 0 && lex_end(l, close))
            return;
        char c = l->src[l->at];
        if (is_digit(c))
            lex_number(l);
        else if (c == '"' || c == '\'')
            lex_string(l);
        else if (is_name_cp(decode_source(l, l->at, &len), true))
            lex_name(l);
        else {
            if (c == '(' || c == '[' || c == '{') {
                if (n_open == sizeof open)
                    ebb_tpl_fail(l->vm, EBB_LIMIT, "brackets are nested deeper than %d levels", TPL_MAX_DEPTH);
                open[n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
            } else if ((c == ')' || c == ']' || c == '}') && (n_open == 0 || open[--n_open] != c)) {
                ebb_tpl_fail(l->vm, EBB_FORMAT, "'%c' closes nothing", c);
            }
            lex_op(l);
        }
    }
}

static void lex_tag(lexer *l, size_t tag)
{
    char kind = l->src[tag + 1], sign = peek_char(l, tag + 2), last;
    size_t from = tag + 2;

    if (sign == '-' || sign == '+')
        from++;
    else
        sign = '\0';
    emit_data(l, tag, sign, kind == '{');
    if (kind == '#') {
        lex_comment(l, from);
        return;
    }
    if (kind == '%') {
        size_t raw = is_tag(l, from, "raw", &last);
        if (raw && last != '+') {
            lex_raw(l, raw, last);
            return;
        }
    }
    emit(l, kind == '%' ? TPL_T_TAG : TPL_T_PRINT, tag, from);
    advance_to(l, from);
    lex_inside(l, kind == '%' ? '%' : '}');
}

void ebb_tpl_lex(tpl_vm *vm, const char *src, size_t n, tpl_tokens *out)
{
    lexer l = { .vm = vm, .src = src, .n = n, .line = 1, .line_starts = true, .out = out };
    size_t at = 0;

    *out = (tpl_tokens){ 0 };
    vm->line = 1;
    while (at + 1 < n) {
        const char *brace = memchr(src + at, '{', n - at - 1);
        if (!brace)
            break;
        at = (size_t)(brace - src);
        if (brace[1] == '{' || brace[1] == '%' || brace[1] == '#') {
            lex_tag(&l, at);
            at = l.at;
        } else {
            at++;
        }
    }
    emit_data(&l, n, '+', true);
    emit(&l, TPL_T_END, n, n);
}
