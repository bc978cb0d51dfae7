/* Making a prompter: which template, and what the vocabulary says (prompt.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "os/file.h"
#include "os/paths.h"
#include "prompt/prompt_render.h"
#include "template/family.h"

/* Text of a token, on the heap; "" for -1.  NULL: out of memory. */
static char *token_text(const ebb_model *m, ebb_token id)
{
    size_t n = id >= 0 ? ebb_model_piece(m, id, true, NULL, 0) : 0;
    char *s = calloc(1, n + 1);

    if (s && n)
        ebb_model_piece(m, id, true, s, n);
    return s;
}

static bool collect_ends(ebb_prompter *p)
{
    ebb_token n = (ebb_token)ebb_model_get_info(p->m)->n_vocab;
    size_t cap = 0;

    for (ebb_token id = 0; id < n; id++) {
        char **grown;

        if (!ebb_model_is_eog(p->m, id))
            continue;
        grown = ebb_grow(p->ends, p->n_ends, &cap, sizeof *grown);
        if (!grown)
            return false;
        p->ends = grown;
        p->ends[p->n_ends] = token_text(p->m, id);
        if (!p->ends[p->n_ends++])
            return false;
    }
    return true;
}

static bool asks_for_bos(const ebb_model *m)
{
    ebb_token ids[4] = { -1 };
    size_t n;

    return ebb_model_tokenize(m, "", 0, EBB_TOK_BOS, ids, 4, &n, NULL) == EBB_OK && n > 0 &&
           ids[0] == ebb_model_bos(m) && ids[0] >= 0;
}

/* A question, this answer, and another question. */
static ebb_status render_sample(const ebb_prompter *p, const char *answer, ebb_rendering *out, ebb_error *err)
{
    char one[] = "1";
    const ebb_message user = { .role = EBB_ROLE_USER, .text = one, .n_text = 1 };
    const ebb_message assistant = { .role = EBB_ROLE_ASSISTANT, .text = (char *)answer, .n_text = strlen(answer) };
    const ebb_message *const list[] = { &user, &assistant, &user };
    const ebb_prompt_opts opts = { 0 };
    ebb_render_job job = { .messages = list, .n = 3, .opts = &opts };

    return ebb_prompt_render(p, &job, out, err);
}

/* The file's template counts if it can render a question and its answer.  A
 * template that refuses by raise_exception is no failure. */
static ebb_status try_template(const ebb_prompter *p, ebb_error *err)
{
    ebb_rendering r;
    ebb_status st = render_sample(p, "1", &r, err);
    bool raised = r.raised;

    ebb_rendering_fini(&r);
    return raised ? EBB_OK : st;
}

/* -- What it does with thoughts ------------------------------------------------------------ */

static bool names(const ebb_prompter *p, const char *what)
{
    return strstr(ebb_buf_text(&p->source), what) != NULL;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool ebb_prompter_reads(const ebb_prompter *p, const char *name)
{
    const char *source = ebb_buf_text(&p->source), *at = source;
    size_t n = strlen(name);

    for (; n > 0 && (at = strstr(at, name)) != NULL; at++)
        if ((at == source || !is_name_char(at[-1])) && !is_name_char(at[n]))
            return true;
    return false;
}

/* Is an earlier answer printed with the thought that its text begins with, as a text like any other?  Also if that is
 * refused. */
static bool keeps_a_thought(const ebb_prompter *p)
{
    ebb_rendering r;
    const char *mark = ebb_thought_marks_at(0)->end;
    bool keeps = render_sample(p, EBB_THOUGHT_BEFORE "Why not 2?" EBB_THOUGHT_BEHIND "1", &r, NULL) != EBB_OK;

    for (size_t i = 0; i < r.n_ranges; i++)
        keeps |= memmem(r.text.data + r.ranges[i].begin, r.ranges[i].end - r.ranges[i].begin, mark,
                        strlen(mark)) != NULL;
    ebb_rendering_fini(&r);
    return keeps;
}

static const ebb_thought_marks *choose_thought_marks(const ebb_prompter *p)
{
    const ebb_thought_marks *m;

    for (size_t i = 0; (m = ebb_thought_marks_at(i)) != NULL; i++)
        if (names(p, m->end))
            return m;
    for (size_t i = 0; (m = ebb_thought_marks_at(i)) != NULL; i++)
        if (ebb_model_find_token(p->m, m->end) >= 0)
            return m;
    return NULL;
}

static void learn_thoughts(ebb_prompter *p)
{
    static const char *const fields[] = { "reasoning_content", ".thinking", "'thinking'", "\"thinking\"" };
    bool takes = false;

    p->names_channels = names(p, EBB_CHANNEL_NAME);
    p->thought_marks = choose_thought_marks(p);
    p->keeps_channels = !p->names_channels && ebb_model_find_token(p->m, EBB_CHANNEL_NAME) >= 0;
    p->refuses_channels = p->names_channels && names(p, "raise_exception");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        takes |= names(p, fields[i]);
    p->keeps_thoughts = takes && keeps_a_thought(p);     /* as its text: no field is given yet */
    p->takes_thoughts = takes;
}

/* -- Which template -------------------------------------------------------------------------- */

static ebb_status compile_and_keep(ebb_prompter *p, const char *source, size_t n, ebb_error *err)
{
    ebb_buf_clear(&p->source);
    if (!ebb_buf_add(&p->source, source, n))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the chat template");
    return ebb_template_compile(source, n, &p->tpl, err);
}

static ebb_status choose_template(ebb_prompter *p, ebb_error *err)
{
    const char *own = ebb_model_template(p->m, NULL);
    const ebb_template_family *family;
    char why[80];
    ebb_error bad = { 0 };
    ebb_status st = own ? compile_and_keep(p, own, strlen(own), &bad) : EBB_NOTFOUND;

    if (st == EBB_OK)
        st = try_template(p, &bad);
    if (st == EBB_OK) {
        snprintf(p->origin, sizeof p->origin, "the file's own template");
        return EBB_OK;
    }
    if (st == EBB_NOMEM)                         /* which says nothing of the template */
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the chat template");
    ebb_template_free(p->tpl);
    p->tpl = NULL;
    family = ebb_template_family_choose(p->m, why, sizeof why);
    if (own)
        snprintf(p->origin, sizeof p->origin, "%s, chosen by %s (the file's own does not work: %.120s)",
                 family->name, why, bad.msg);
    else
        snprintf(p->origin, sizeof p->origin, "%s, chosen by %s (the file has no template)", family->name, why);
    return compile_and_keep(p, family->source, strlen(family->source), err);
}

/* All but the template. */
static ebb_status prompter_init(const ebb_model *m, ebb_prompter **out, ebb_error *err)
{
    ebb_prompter *p = *out = calloc(1, sizeof *p);

    if (!p)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the chat template");
    p->m = m;
    p->bos = token_text(m, ebb_model_bos(m));
    p->eos = token_text(m, ebb_model_eos(m));
    p->adds_bos = asks_for_bos(m);
    if (!p->bos || !p->eos || !collect_ends(p))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the chat template");
    return EBB_OK;
}

/* The prompter is complete, or gone. */
static ebb_status end_prompter(ebb_prompter **p, ebb_status st)
{
    if (st == EBB_OK) {
        learn_thoughts(*p);
    } else {
        ebb_prompter_free(*p);
        *p = NULL;
    }
    return st;
}

ebb_status ebb_prompter_new(const ebb_model *m, ebb_prompter **out, ebb_error *err)
{
    ebb_status st = prompter_init(m, out, err);

    return end_prompter(out, st == EBB_OK ? choose_template(*out, err) : st);
}

ebb_status ebb_prompter_new_with(const ebb_model *m, const char *source, size_t n, ebb_prompter **out, ebb_error *err)
{
    ebb_status st = prompter_init(m, out, err);

    return end_prompter(out, st == EBB_OK ? compile_and_keep(*out, source, n, err) : st);
}

#define NO_TEMPLATE "{%- for m in messages -%}{{- m.content -}}{%- endfor -%}"

static ebb_status fail_unknown(const char *name, ebb_error *err)
{
    ebb_buf names = { 0 };
    ebb_status st;

    for (size_t i = 0; ebb_template_family_at(i); i++)
        ebb_buf_addf(&names, "%s%s", i ? ", " : "", ebb_template_family_at(i)->name);
    st = EBB_FAIL(err, EBB_NOTFOUND, "there is no chat template '%.60s': give a file, none, auto, or one of %s", name,
                  ebb_buf_text(&names));
    ebb_buf_fini(&names);
    return st;
}

static ebb_status compile_named(ebb_prompter *p, const char *name, ebb_error *err)
{
    enum { MOST = 1 << 20 };
    const ebb_template_family *family = ebb_template_family_named(name);
    const char *source = strcmp(name, "none") == 0 ? NO_TEMPLATE : family ? family->source : NULL;
    ebb_buf text = { 0 }, path = { 0 };
    ebb_error why;
    ebb_status st;

    if (source) {
        snprintf(p->origin, sizeof p->origin, "%.60s, as you asked", name);
        return compile_and_keep(p, source, strlen(source), err);
    }
    st = ebb_path_expand(name, &path, &why);
    if (st == EBB_OK)
        st = ebb_file_slurp(path.data, MOST, &text, &why);
    ebb_buf_fini(&path);
    if (st == EBB_NOTFOUND)
        return fail_unknown(name, err);
    snprintf(p->origin, sizeof p->origin, "%.150s, as you asked", name);
    if (st == EBB_OK)
        st = compile_and_keep(p, ebb_buf_text(&text), text.len, &why);
    ebb_buf_fini(&text);
    return st == EBB_OK ? EBB_OK : EBB_FAIL(err, st, "chat template %.150s: %.300s", name, why.msg);
}

ebb_status ebb_prompter_new_named(const ebb_model *m, const char *name, ebb_prompter **out, ebb_error *err)
{
    ebb_status st;

    if (!name || strcmp(name, "auto") == 0)
        return ebb_prompter_new(m, out, err);
    st = prompter_init(m, out, err);
    return end_prompter(out, st == EBB_OK ? compile_named(*out, name, err) : st);
}

void ebb_prompter_free(ebb_prompter *p)
{
    if (!p)
        return;
    ebb_buf_fini(&p->source);
    for (size_t i = 0; i < p->n_ends; i++)
        free(p->ends[i]);
    free(p->ends);
    free(p->bos);
    free(p->eos);
    ebb_template_free(p->tpl);
    free(p);
}

const char *ebb_prompter_origin(const ebb_prompter *p)
{
    return p->origin;
}

ebb_status ebb_prompter_source(const ebb_prompter *p, ebb_buf *out, ebb_error *err)
{
    return ebb_buf_add(out, ebb_buf_text(&p->source), p->source.len)
           ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a template");
}
