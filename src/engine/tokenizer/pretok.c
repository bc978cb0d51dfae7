/* Pre-tokenizers: the patterns by name, and how they are run (pretok.h).
 *
 * The patterns are those of the models' tokenizer.json.  Two liberties, neither
 * of which changes a match: white space is spelt out (PCRE2's \s knows U+180E,
 * Unicode's White_Space does not), and (?i:...) became letter pairs. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pretok.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define WS  "\\x09-\\x0D\\x20\\x85\\xA0\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define S   "[" WS "]"
#define NS  "[^" WS "]"

#define CONTRACTION "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
#define WORD        "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define OTHER       " ?[^" WS "\\p{L}\\p{N}]+"
#define SPACES      S "*[\\r\\n]+|" S "+(?!" NS ")|" S "+"

#define GPT2   "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+|" OTHER "|" S "+(?!" NS ")|" S "+"
#define LLAMA3 CONTRACTION "|" WORD "|\\p{N}{1,3}|" OTHER "[\\r\\n]*|" SPACES
#define QWEN2  CONTRACTION "|" WORD "|\\p{N}|" OTHER "[\\r\\n]*|" SPACES
#define QWEN35 CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS \
               "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES

/* Runs of letters that a change from lower to upper case ends.  gpt-4o:
 * readers of GGUF files leave marks out and know case in ASCII only, so the
 * ids here agree with theirs; tekken is as the model's own tokenizer has it. */
#define CASED(upper, lower, end) \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+" end "|[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower "*" end
#define GPT4O  CASED("[^\\P{L}a-z]", "[^\\P{L}A-Z]", "(?:" CONTRACTION ")?") \
               "|\\p{N}{1,3}|" OTHER "[\\r\\n/]*|" SPACES
#define UPPER  "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define TEKKEN CASED(UPPER, LOWER, "") "|\\p{N}|" OTHER "[\\r\\n/]*|" SPACES
#define AYA    CASED(UPPER, LOWER, "(?:" CONTRACTION ")?") "|\\p{N}{1,3}|" OTHER "[\\r\\n/]*|" SPACES
#define YOUTU  CASED(UPPER, LOWER, "(?:" CONTRACTION ")?") "|\\p{N}|" OTHER "[\\r\\n/]*|" SPACES

#define NO_HAN "(?!\\p{sc:Han})"
#define KIMI   "\\p{sc:Han}+|" CASED("(?:" NO_HAN UPPER ")", "(?:" NO_HAN LOWER ")", "(?:" CONTRACTION ")?") \
               "|\\p{N}{1,3}|" OTHER "[\\r\\n]*|" SPACES

#define ASCII_PUNCT "[!-/:-@\\[-`{-~]"
#define DEEPSEEK3 ASCII_PUNCT "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define HAN_HANGUL "[\\x{800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+"
#define YOUTU_CJK  "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}" \
                   "\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}" \
                   "\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|" HAN_KANA
#define HAN_KANA   "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{30FF}]+"
/* Digits by threes from the right, where their run ends with `end`: how many the first group takes is found by looking
 * at the run once; the groups behind it are full.  To look ahead from each of them takes time with the run's square. */
#define THREES(end) "(?<!\\p{Nd})\\p{Nd}{1,3}(?=(?:\\p{Nd}{3})*+" end ")|\\G(?<=\\p{Nd})\\p{Nd}{3}"
#define BLOOM  " ?[^(" WS "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

#define MAX_PATTERNS 6

typedef struct family {
    const char *names;           /* separated by spaces */
    bool        ignore_merges, add_bos;
    const char *patterns[MAX_PATTERNS];
} family;

static const family families[] = {
    { "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", true, true, { LLAMA3 } },
    { "dbrx smaug-bpe glm4 chatglm-bpe", false, false, { LLAMA3 } },
    { "qwen2 deepseek-r1-qwen kormo openpangu f2llmv2 megrez stablelm2 hunyuan grok-2 solar-open",
      false,
      false,
      { QWEN2 } },
    { "qwen35", false, false, { QWEN35 } },
    { "gpt-4o llama4 kanana2 talkie minimax-m2", false, false, { GPT4O } },
    { "tekken", true, true, { TEKKEN } },
    { "tiny_aya cohere2moe", false, false, { THREES("\\b"), AYA } },
    { "kimi-k2", false, false, { KIMI } },
    { "superbpe",
      false,
      false,
      { "\\p{N}+", THREES("(?!\\p{Nd})") } }, /* words may hold spaces */
    { "exaone-moe",
      false,
      false,
      { CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|" OTHER "[\\r\\n/]?|" S
                    "*[\\r\\n]|" S "+(?!" NS ")|" S "+" } },
    { "youtu", true, false, { YOUTU_CJK, YOUTU } },
    { "minicpm5", false, false, { "\\p{N}{1,3}", CONTRACTION "|" WORD "|\\p{N}+|" OTHER "[\\r\\n]*|" SPACES } },
    { "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum modern-bert "
      "jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe",
      false,
      false,
      { GPT2 } },
    { "smollm starcoder refact command-r cohere2_moe codeshell exaone minerva-7b mellum2",
      false,
      false,
      { "\\p{N}", GPT2 } },
    { "falcon", false, false, { "[\\p{P}$+<=>^~|`]+", GPT2, "[0-9]{3}" } },
    { "default", false, false, { "[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9]{3}" } },
    { "deepseek-coder", false, false, { "[\\r\\n]", S "?\\p{L}+", S "?\\p{P}+", HAN_HANGUL, "\\p{N}" } },
    { "deepseek-llm",
      false,
      false,
      { "[\\r\\n]", S "?[\\p{L&}]+",
        S "?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
        "(?<!" S ")" S "++$", HAN_HANGUL, "\\p{N}+" } },
    { "deepseek-v3 hunyuan-dense joyai-llm", false, false, { "\\p{N}{1,3}", HAN_KANA, DEEPSEEK3 } },
    { "bailingmoe bailingmoe2 llada-moe",
      false,
      false,
      { CONTRACTION "|" WORD "|\\p{N}|" OTHER "[\\r\\n]*|" S "*[\\r\\n]|" S "+(?!" NS ")|" S "+" } },
    { "seed-coder", false, false, { CONTRACTION "|" WORD "|\\p{N}| ?[^" WS "\\p{L}\\p{N}\\r\\n]+|" SPACES } },
    { "poro-chat bloom gpt3-finnish", false, false, { BLOOM } },
    { "viking", false, false, { BLOOM, "\\p{N}" } },
};

struct ebb_pretok {
    const family *family;
    pcre2_code   *code[MAX_PATTERNS];
    size_t        n;
};

static bool lists_name(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = names; (p = strstr(p, name)) != NULL; p += n)
        if ((p == names || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

static const family *find_family(const char *name)
{
    if (!name || !name[0])
        name = "default";
    if (strchr(name, ' '))
        return NULL;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (lists_name(families[i].names, name))
            return &families[i];
    return NULL;
}

ebb_status ebb_pretok_new(const char *name, bool jit, ebb_pretok **out, ebb_error *err)
{
    const family *f = find_family(name);
    ebb_pretok *p;

    *out = NULL;
    if (!f)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "pre-tokenizer '%.60s' (tokenizer.ggml.pre) is not supported", name);
    p = calloc(1, sizeof *p);
    if (!p)
        return EBB_FAIL(err, EBB_NOMEM, "pre-tokenizer");
    p->family = f;
    for (; p->n < MAX_PATTERNS && f->patterns[p->n]; p->n++) {
        int code;
        PCRE2_SIZE at;
        p->code[p->n] = pcre2_compile((PCRE2_SPTR)f->patterns[p->n], PCRE2_ZERO_TERMINATED,
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
        if (!p->code[p->n]) {
            ebb_pretok_free(p);
            return EBB_FAIL(err, EBB_NOMEM, "pattern of pre-tokenizer '%.60s': error %d at %zu",
                            name ? name : "default", code, (size_t)at);
        }
        if (jit)
            (void)pcre2_jit_compile(p->code[p->n], PCRE2_JIT_COMPLETE);    /* or else the interpreter */
    }
    *out = p;
    return EBB_OK;
}

void ebb_pretok_free(ebb_pretok *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < MAX_PATTERNS; i++)
        pcre2_code_free(p->code[i]);
    free(p);
}

bool ebb_pretok_ignores_merges(const ebb_pretok *p)
{
    return p->family->ignore_merges;
}

bool ebb_pretok_adds_bos(const ebb_pretok *p)
{
    return p->family->add_bos;
}

size_t ebb_pretok_bytes(const ebb_pretok *p)
{
    size_t bytes = sizeof *p;

    for (size_t i = 0; i < p->n; i++) {
        size_t code = 0, jit = 0;
        pcre2_pattern_info(p->code[i], PCRE2_INFO_SIZE, &code);
        pcre2_pattern_info(p->code[i], PCRE2_INFO_JITSIZE, &jit);
        bytes += code + jit;
    }
    return bytes;
}

/* -- Running ------------------------------------------------------------------ */

typedef struct splitter {
    const ebb_pretok    *pretok;
    pcre2_match_data    *match;
    pcre2_match_context *limits;
    ebb_pretok_fn       *fn;
    void                *arg;
} splitter;

/* The next match at or after `at`; false if there is none, or if the matcher
 * gave up, which leaves the rest in one piece. */
static bool next_match(const splitter *s, const pcre2_code *code, const char *text, size_t n,
                       size_t at, size_t *from, size_t *to)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int rc = pcre2_match(code, subject, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, s->match, s->limits);
    const PCRE2_SIZE *at_to;

    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)     /* the JIT's stack is small */
        rc = pcre2_match(code, subject, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NO_JIT,
                         s->match, s->limits);
    if (rc < 0)
        return false;
    at_to = pcre2_get_ovector_pointer(s->match);
    *from = at_to[0];
    *to = at_to[1];
    return *to > *from;
}

/* Valid UTF-8 through pattern `level` and those that follow. */
static bool split_level(const splitter *s, size_t level, const char *text, size_t n)
{
    size_t at = 0, from, to;

    if (n == 0)
        return true;
    if (level == s->pretok->n)
        return s->fn(s->arg, text, n);
    while (at < n && next_match(s, s->pretok->code[level], text, n, at, &from, &to)) {
        if (!split_level(s, level + 1, text + at, from - at) ||
            !split_level(s, level + 1, text + from, to - from))
            return false;
        at = to;
    }
    return split_level(s, level + 1, text + at, n - at);
}

/* Bytes from `at` that are valid UTF-8; *bad receives the invalid ones after them. */
static size_t valid_run(const char *text, size_t n, size_t *bad)
{
    size_t at = 0;

    *bad = 0;
    while (at < n) {
        uint32_t cp;
        size_t used = ebb_utf8_decode(text + at, n - at, &cp);
        if (used == 0)
            *bad = n - at;
        else if (cp == EBB_UTF8_BAD && !(used == 3 && memcmp(text + at, "\xEF\xBF\xBD", 3) == 0))
            *bad = used;
        if (*bad > 0)
            break;
        at += used;
    }
    return at;
}

static bool split_text(const splitter *s, const char *text, size_t n)
{
    while (n > 0) {
        size_t bad, good = valid_run(text, n, &bad);

        if (!split_level(s, 0, text, good) || (bad > 0 && !s->fn(s->arg, text + good, bad)))
            return false;
        text += good + bad;
        n -= good + bad;
    }
    return true;
}

ebb_status ebb_pretok_split(const ebb_pretok *p, const char *text, size_t n,
                            ebb_pretok_fn *fn, void *arg, ebb_error *err)
{
    splitter s = { p, pcre2_match_data_create(1, NULL), pcre2_match_context_create(NULL), fn, arg };
    bool ok = s.match && s.limits;

    if (ok) {
        pcre2_set_match_limit(s.limits, UINT32_MAX);     /* our own patterns: all linear on a run */
        ok = split_text(&s, text, n);
    }
    pcre2_match_data_free(s.match);
    pcre2_match_context_free(s.limits);
    return ok ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory to cut %zu bytes of text into words", n);
}
