/* The words of a search, and whether a text has them (search_words.h). */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "store/search_words.h"

enum { INDEXED_LETTERS = 4 };

/* -- Words, as the index has them: letters and digits, without case and accents ---------- */

static size_t decode_char(const char *s, size_t n, uint32_t *cp)
{
    size_t used = ebb_utf8_decode(s, n, cp);

    if (used)
        return used;
    *cp = EBB_UTF8_BAD;
    return 1;
}

static bool is_letter(uint32_t cp)
{
    utf8proc_category_t cat;

    if (cp < 0x80)
        return (cp >= '0' && cp <= '9') || (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
    cat = utf8proc_category((utf8proc_int32_t)cp);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_NO) || cat == UTF8PROC_CATEGORY_CO;
}

/* Of a script without blanks between words. */
static bool is_unspaced(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        { 0xE01, 0xE4E }, { 0xE81, 0xECD },      /* Thai, Lao */
        { 0x1000, 0x103F }, { 0x1050, 0x108F }, { 0x1780, 0x17D3 },      /* Burmese, Khmer */
        { 0x3005, 0x3007 }, { 0x3041, 0x30FF }, { 0x31F0, 0x31FF }, { 0xFF66, 0xFF9F },  /* Japanese */
        { 0x3400, 0x4DBF }, { 0x4E00, 0x9FFF }, { 0xF900, 0xFAFF }, { 0x20000, 0x3FFFD },        /* Chinese */
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i][0] && cp <= ranges[i][1])
            return true;
    return false;
}

/* 0: an accent that stands by itself, as in text of macOS: the index leaves it out, too. */
static uint32_t fold_char(uint32_t cp)
{
    utf8proc_int32_t out[8];
    utf8proc_ssize_t n;

    if (cp < 0x80)
        return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    n = utf8proc_decompose_char((utf8proc_int32_t)cp, out, 8,
                                UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_STRIPMARK, NULL);
    return n < 0 ? cp : n == 0 ? 0 : (uint32_t)out[0];
}

/* Bytes of the word at s[0..n); 0: none begins there. */
static size_t word_bytes(const char *s, size_t n)
{
    size_t at = 0, used;
    uint32_t cp;

    for (; at < n; at += used) {
        used = decode_char(s + at, n - at, &cp);
        if (!is_letter(cp))
            break;
    }
    return at;
}

/* The folded letter at or behind *at, which moves behind it; 0: there is none. */
static uint32_t next_letter(const char *s, size_t n, size_t *at)
{
    uint32_t cp, letter = 0;

    while (*at < n && letter == 0) {
        *at += decode_char(s + *at, n - *at, &cp);
        letter = fold_char(cp);
    }
    return letter;
}

/* Whether the rest of a word is at *at, which moves behind it. */
static bool goes_on_with(const char *s, size_t n, size_t *at, const char *w, size_t n_w)
{
    size_t k = 0;
    uint32_t letter;

    while ((letter = next_letter(w, n_w, &k)) != 0)
        if (next_letter(s, n, at) != letter)
            return false;
    return true;
}

bool ebb_search_word_begins(const char *s, size_t n, const char *w, size_t n_w)
{
    return goes_on_with(s, n, &(size_t){ 0 }, w, n_w);
}

/* To the next word at or behind *at; its bytes. */
size_t ebb_search_next_word(const char *s, size_t n, size_t *at)
{
    uint32_t cp;

    while (*at < n) {
        size_t len = word_bytes(s + *at, n - *at);
        if (len > 0)
            return len;
        *at += decode_char(s + *at, n - *at, &cp);
    }
    return 0;
}

static bool has_word(const char *s, size_t n, const ebb_search_word *w)
{
    for (size_t at = 0, len; (len = ebb_search_next_word(s, n, &at)) > 0; at += len)
        if (ebb_search_word_begins(s + at, len, w->s, w->n))
            return true;
    return false;
}

/* The folded letter before *at, which moves to it; 0: there is none. */
static uint32_t previous_letter(const char *s, size_t *at)
{
    uint32_t cp, letter = 0;
    size_t end;

    while (*at > 0 && letter == 0) {
        end = *at;
        *at = ebb_utf8_before(s, end);
        decode_char(s + *at, end - *at, &cp);
        letter = fold_char(cp);
    }
    return letter;
}

/* Whether s[0..*at) ends with this beginning of a word, which *at moves to. */
static bool ends_with(const char *s, size_t *at, const char *w, size_t n_w)
{
    uint32_t letter;

    while ((letter = previous_letter(w, &n_w)) != 0)
        if (previous_letter(s, at) != letter)
            return false;
    return true;
}

/* Where a word with letters of such a script stands, within others too, and its bytes there; NULL: nowhere.  Such
 * letters know no case; those around them do, and accents. */
const char *ebb_search_find_unspaced(const char *s, size_t n, const ebb_search_word *w, size_t *n_hit)
{
    size_t behind = w->unspaced + w->n_unspaced, from, to;

    for (const char *p = s; (p = memmem(p, n - (size_t)(p - s), w->s + w->unspaced, w->n_unspaced)) != NULL; p++) {
        from = (size_t)(p - s);
        to = from + w->n_unspaced;
        if (!ends_with(s, &from, w->s, w->unspaced) || !goes_on_with(s, n, &to, w->s + behind, w->n - behind))
            continue;
        *n_hit = to - from;
        return s + from;
    }
    return NULL;
}

/* Whether a text has these letters, at the beginning of a word or not. */
static bool has_letters(const char *s, size_t n, const ebb_search_word *w)
{
    for (size_t at = 0, to; at < n; at += decode_char(s + at, n - at, &(uint32_t){ 0 })) {
        to = at;
        if (goes_on_with(s, n, &to, w->s, w->n))
            return true;
    }
    return false;
}

/* -- What is looked for ------------------------------------------------------------------- */

static bool find_unspaced_run(ebb_search_word *w)
{
    uint32_t cp;

    for (size_t at = 0, used; at < w->n; at += used) {
        used = decode_char(w->s + at, w->n - at, &cp);
        if (is_unspaced(cp) && w->n_unspaced == 0)
            w->unspaced = at;
        if (is_unspaced(cp))
            w->n_unspaced = at + used - w->unspaced;
        else if (w->n_unspaced > 0)
            break;
    }
    return w->n_unspaced > 0;
}

/* One that the index finds. */
static void add_spaced(ebb_search *q, const char *s, size_t n)
{
    ebb_search_word *w = &q->words[q->n_words++];
    size_t at = 0;
    uint32_t cp;

    *w = (ebb_search_word){ .s = s, .n = n, .n_indexed = n };
    q->has_spaced = true;
    for (int i = 0; i < INDEXED_LETTERS && at < n; i++)
        at += decode_char(s + at, n - at, &cp);
    if (at < n && word_bytes(s, n) == n) {
        w->n_indexed = at;
        q->has_long = true;
    }
}

/* The words of a phrase that have such letters, or those beside them, as far as each phrase that may follow has room:
 * a text with so many words of a long one is the one that it is of. */
static void add_words_of(ebb_search *q, const char *s, size_t n, bool are_beside)
{
    size_t most = EBB_SEARCH_WORDS - (EBB_SEARCH_PHRASES - q->n_phrases);

    for (size_t at = 0, len; q->n_words < most && (len = ebb_search_next_word(s, n, &at)) > 0; at += len) {
        ebb_search_word w = { .s = s + at, .n = len, .n_indexed = len, .is_beside = are_beside };

        if (find_unspaced_run(&w) != are_beside)
            q->words[q->n_words++] = w;
    }
}

/* What is between two blanks is one phrase to the index, which knows no marks.  Texts have them: where they are looked
 * through, the words of it are looked for one by one, those with letters of such a script first, as few texts have
 * them.  false: there are too many phrases. */
static bool add_phrase(ebb_search *q, const char *s, size_t n)
{
    ebb_search_word whole = { .s = s, .n = n, .n_indexed = n };

    if (q->n_phrases == EBB_SEARCH_PHRASES)
        return false;
    q->n_phrases++;
    if (!find_unspaced_run(&whole)) {
        add_spaced(q, s, n);
        return true;
    }
    q->has_unspaced = true;
    if (ebb_search_next_word(s, n, &(size_t){ 0 }) == 0) {  /* marks of such a script */
        q->words[q->n_words++] = whole;
        return true;
    }
    add_words_of(q, s, n, false);
    add_words_of(q, s, n, true);
    return true;
}

bool ebb_search_parse(const char *words, ebb_search *q)
{
    memset(q, 0, sizeof *q);
    while (*words) {
        size_t n = strcspn(words, " \t\r\n");
        if (n > 0 && !add_phrase(q, words, n))
            return false;
        words += n + strspn(words + n, " \t\r\n");
    }
    return q->n_words > 0;
}

bool ebb_search_has_all(const ebb_search *q, const char *s, size_t n)
{
    size_t n_hit;

    for (size_t i = 0; i < q->n_words; i++) {
        const ebb_search_word *w = &q->words[i];
        if (w->n_unspaced ? !ebb_search_find_unspaced(s, n, w, &n_hit)
            : w->is_beside ? !has_letters(s, n, w) : w->n_indexed < w->n && !has_word(s, n, w))
            return false;
    }
    return true;
}
