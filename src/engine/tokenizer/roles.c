/* Special tokens by id and by text (roles.h). */
#include "tokenizer/roles.h"

#include <ctype.h>
#include <string.h>

#include "ebb/experimental/thought_marks.h"

#define COUNT(a) (sizeof (a) / sizeof (a)[0])

/* Texts that end a generation.  What ends a turn comes first, the surest before the others: where the file has no
 * eot_token_id, the first of them is the one. */
static const struct { const char *text; bool ends_turn; } ends[] = {
    { "<|eot_id|>", true },
    { "<|im_end|>", true },
    { "<end_of_turn>", true },
    { "<turn|>", true },
    { "<|end|>", true },
    { "<EOT>", true },
    { "_<EOT>", true },
    { "[EOT]", true },
    { "<end_of_utterance>", true },
    { "<｜end▁of▁sentence｜>", true },
    { "<|end_of_text|>", true },
    { "<|endoftext|>", true },
    { "<|eom_id|>", false },
    { "<|return|>", false },
    { "<|call|>", false },
    { "<|calls|>", false },
    { "<|flush|>", false },
    { "<|tool_response>", false },
    { "</s>", false },
    { "<eos>", false },
    { "[EOS]", false },
    /* of fill-in-the-middle models: padding, next repository, next file */
    { "<|fim_pad|>", false },
    { "<fim-pad>", false },
    { "<fim_pad>", false },
    { "<PAD>", false },
    { "[PAD]", false },
    { "<|fim_repo|>", false },
    { "<|repo_name|>", false },
    { "<fim-repo>", false },
    { "<REPO>", false },
    { "<reponame>", false },
    { "<|file_sep|>", false },
};

/* Control tokens that end nothing, whatever the file calls them. */
static const char *const controls[] = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
};

/* The frame of a harmony message (gpt-oss): its reader must see it in the text. */
static const char *const harmony[] = { EBB_CHANNEL_START, EBB_CHANNEL_NAME, EBB_CHANNEL_TEXT, "<|constrain|>" };

/* Between them a model thinks: a reader who did not see them would take the thought for the answer. */
#define ROW(begin, end, before, behind, kind) { begin, end, kind },
static const struct { const char *begin, *end; ebb_thought_mark_kind kind; } thoughts[] = { EBB_THOUGHT_MARKS(ROW) };

static ebb_tok_entry *find_entry(const ebb_tok_table *t, const char *text)
{
    ebb_token id = ebb_tok_table_find(t, text, strlen(text));

    return id >= 0 ? &t->entries[id] : NULL;
}

static void add_attr(const ebb_tok_table *t, const char *text, uint16_t attr)
{
    ebb_tok_entry *e = find_entry(t, text);

    if (e)
        e->attr |= attr;
}

/* In harmony <|end|> ends a message of several, not the turn. */
static void fix_harmony(const ebb_tok_table *t)
{
    const ebb_tok_entry *call = find_entry(t, "<|call|>");
    ebb_tok_entry *end = find_entry(t, "<|end|>");

    if (!call)
        call = find_entry(t, "<|calls|>");
    if (end && call && (find_entry(t, "<|return|>") || find_entry(t, "<|flush|>")))
        end->attr = EBB_TOK_IS_CONTROL | EBB_TOK_IS_SHOWN | EBB_TOK_IS_OPEN;
    for (size_t i = 0; i < COUNT(harmony); i++) {
        ebb_tok_entry *e = find_entry(t, harmony[i]);
        if (e)
            e->attr = EBB_TOK_IS_CONTROL | EBB_TOK_IS_SHOWN | EBB_TOK_IS_OPEN;
    }
}

/* A name between these marks. */
static bool is_enclosed(const ebb_tok_entry *e, const char *begin, const char *end)
{
    size_t n_begin = strlen(begin), n_end = strlen(end);

    return e->len > n_begin + n_end && memcmp(e->ptr, begin, n_begin) == 0 &&
           memcmp(e->ptr + e->len - n_end, end, n_end) == 0 && isalpha((unsigned char)e->ptr[n_begin]);
}

/* Turns begin with such tokens.  Older files type them as user-defined, as which they would be found in what a user
 * writes, too; newer ones are typed by the same look of their texts. */
static void fix_types(const ebb_tok_table *t)
{
    const ebb_tok_entry *gemma = find_entry(t, "<start_of_turn>");

    for (size_t i = 0; i < t->n; i++) {
        ebb_tok_entry *e = &t->entries[i];
        bool frames = e == gemma || is_enclosed(e, "<|", "|>") || is_enclosed(e, "<｜", "｜>");
        if (frames && (e->attr & EBB_TOK_IS_USER) && !(e->attr & EBB_TOK_IS_CONTROL))
            e->attr = EBB_TOK_IS_CONTROL | EBB_TOK_IS_SHOWN | EBB_TOK_IS_OPEN;
    }
}

static void show_mark(const ebb_tok_table *t, const char *text)
{
    ebb_tok_entry *e = find_entry(t, text);

    if (e && (e->attr & EBB_TOK_IS_CONTROL))
        e->attr |= EBB_TOK_IS_SHOWN;
}

static void show_thoughts(const ebb_tok_table *t)
{
    for (size_t i = 0; i < COUNT(thoughts); i++)
        if (thoughts[i].kind == EBB_THOUGHT_MARK_TOKENS) {
            show_mark(t, thoughts[i].begin);
            show_mark(t, thoughts[i].end);
        }
}

static bool contains_nocase(const char *s, const char *word)
{
    for (; *s; s++) {
        size_t i = 0;
        while (word[i] && tolower((unsigned char)s[i]) == word[i])
            i++;
        if (!word[i])
            return true;
    }
    return false;
}

/* Phi-3 swallows the white space behind its special tokens; no key says so. */
static void fix_phi3(const ebb_tok_table *t, const char *name)
{
    static const char *const keeps[] = { "<unk>", "<s>", "<|endoftext|>" };

    if (!name || !(contains_nocase(name, "phi-3") || contains_nocase(name, "phi3")))
        return;
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].attr & (EBB_TOK_IS_CONTROL | EBB_TOK_IS_USER | EBB_TOK_IS_UNKNOWN))
            t->entries[i].attr |= EBB_TOK_IS_RSTRIP;
    for (size_t i = 0; i < COUNT(keeps); i++) {
        ebb_tok_entry *e = find_entry(t, keeps[i]);
        if (e)
            e->attr &= (uint16_t)~EBB_TOK_IS_RSTRIP;
    }
}

/* `id` if it names a token; else `usual` if that is one of type `attr`. */
static ebb_token choose_token(const ebb_tok_table *t, ebb_token id, ebb_token usual, uint16_t attr)
{
    if (id >= 0 && (size_t)id < t->n)
        return id;
    return (size_t)usual < t->n && (t->entries[usual].attr & attr) ? usual : -1;
}

static ebb_token find_eot(const ebb_tok_table *t, ebb_token id)
{
    if (id >= 0 && (size_t)id < t->n)
        return id;
    for (size_t i = 0; i < COUNT(ends) && ends[i].ends_turn; i++) {
        const ebb_tok_entry *e = find_entry(t, ends[i].text);
        if (e && (e->attr & EBB_TOK_IS_EOG))
            return (ebb_token)(e - t->entries);
    }
    return -1;
}

static void set_eog(const ebb_tok_table *t, ebb_token id)
{
    if (id >= 0 && (size_t)id < t->n)
        t->entries[id].attr |= EBB_TOK_IS_EOG;
}

void ebb_tok_roles_init(ebb_tok_roles *r, ebb_tok_table *t, const ebb_vocab *v, bool is_spm, bool add_bos)
{
    r->bos = choose_token(t, v->bos, is_spm ? 1 : 11, EBB_TOK_IS_CONTROL);
    r->eos = choose_token(t, v->eos, is_spm ? 2 : 11, EBB_TOK_IS_CONTROL);
    r->unk = choose_token(t, v->unk, 0, EBB_TOK_IS_UNKNOWN);
    r->add_bos = v->add_bos < 0 ? add_bos : v->add_bos > 0;
    r->add_eos = v->add_eos > 0;
    r->add_space_prefix = v->add_space_prefix < 0 ? is_spm : v->add_space_prefix > 0;

    for (size_t i = 0; i < COUNT(ends); i++)
        add_attr(t, ends[i].text, EBB_TOK_IS_CONTROL | EBB_TOK_IS_EOG);
    for (size_t i = 0; i < COUNT(controls); i++)
        add_attr(t, controls[i], EBB_TOK_IS_CONTROL);
    fix_harmony(t);
    fix_types(t);
    show_thoughts(t);
    fix_phi3(t, v->name);
    r->eot = find_eot(t, v->eot);
    set_eog(t, r->eos);
    set_eog(t, r->eot);
    set_eog(t, v->eom);
    for (size_t i = 0; i < v->n_eos_ids; i++)
        set_eog(t, v->eos_ids[i]);
}
