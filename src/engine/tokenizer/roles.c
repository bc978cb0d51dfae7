/* Special tokens by id and by text (roles.h). */
#include "tokenizer/roles.h"

#include <ctype.h>
#include <string.h>

#define COUNT(a) (sizeof (a) / sizeof (a)[0])

/* Texts that end a generation. */
static const char *const eog_names[] = {
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    /* of fill-in-the-middle models: padding, next repository, next file */
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

/* Control tokens that end nothing, whatever the file calls them. */
static const char *const controls[] = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
};

/* The frame of a harmony message (gpt-oss): its reader must see it in the text. */
static const char *const harmony[] = { "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>" };

/* Between them a model thinks: a reader who did not see them would take the thought for the answer. */
static const char *const thought_marks[] = {
    "[THINK]", "[/THINK]", "<seed:think>", "</seed:think>", "<|inner_prefix|>", "<|inner_suffix|>",
    "<|START_THINKING|>", "<|END_THINKING|>", "<think>", "</think>",
};

/* What ends a turn, the surest first, where the file has no eot_token_id. */
static const char *const turn_ends[] = {
    "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<turn|>", "<|end|>", "<EOT>", "_<EOT>", "[EOT]", "<end_of_utterance>",
    "<｜end▁of▁sentence｜>", "<|end_of_text|>", "<|endoftext|>",
};

static ebb_tok_entry *find_entry(const ebb_tok_table *t, const char *text)
{
    ebb_token id = ebb_tok_table_find(t, text, strlen(text));

    return id >= 0 ? &t->entries[id] : NULL;
}

static void add_attr(const ebb_tok_table *t, const char *const *texts, size_t n, uint16_t attr)
{
    for (size_t i = 0; i < n; i++) {
        ebb_tok_entry *e = find_entry(t, texts[i]);
        if (e)
            e->attr |= attr;
    }
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

static void show_thoughts(const ebb_tok_table *t)
{
    for (size_t i = 0; i < COUNT(thought_marks); i++) {
        ebb_tok_entry *e = find_entry(t, thought_marks[i]);
        if (e && (e->attr & EBB_TOK_IS_CONTROL))
            e->attr |= EBB_TOK_IS_SHOWN;
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
    for (size_t i = 0; i < COUNT(turn_ends); i++) {
        const ebb_tok_entry *e = find_entry(t, turn_ends[i]);
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

    add_attr(t, eog_names, COUNT(eog_names), EBB_TOK_IS_CONTROL | EBB_TOK_IS_EOG);
    add_attr(t, controls, COUNT(controls), EBB_TOK_IS_CONTROL);
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
