/* Tokens of texts that nobody has counted (chat_priv.h): by size, behind what a server or the model at hand has
 * counted; and what each message has of a prompt. */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* Bytes per token until a server has counted some, and tokens of a message beside its text. */
static const double usual_bytes = 4, min_bytes = 1, most_bytes = 12;
enum { FRAME_TOKENS = 4 };

/* The engine's model wrote this answer here, and has counted its prompt; a copy below a note has the count of a prompt
 * above it. */
static bool is_counted_here(const ebb_chat *c, const ebb_node *node)
{
    return node && c->info && node->m.model && strcmp(node->m.model, c->info->name) == 0 &&
           node->parent && node->parent->m.role != EBB_ROLE_NOTE;
}

/* Has the server counted the prompt of list[i], an answer: all messages before it; or refused the one that ends with
 * this question? */
static bool is_counted(const ebb_chat *c, const ebb_context_view *v, size_t i)
{
    const ebb_message *m = v->list[i];

    return m->turn_stats.n_prompt && !(m->turn_stats.about & EBB_ABOUT_PROMPT) &&
           (m->role == EBB_ROLE_USER ||
            (m->role == EBB_ROLE_ASSISTANT && (m->engine || is_counted_here(c, v->nodes[i]))));
}

static size_t bytes_of(const ebb_context_view *v, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += v->list[i]->n_text;
    return bytes;
}

/* The last message of list[0..n) with a counted prompt, below the note: prompts of earlier ones had what it leaves out.
 * n: none. */
static size_t find_counted(const ebb_chat *c, const ebb_context_view *v, size_t n)
{
    size_t i = n;

    while (i > v->n_above && !is_counted(c, v, i - 1))
        i--;
    return i > v->n_above ? i - 1 : n;
}

static double clamp(double x)
{
    return x < min_bytes ? min_bytes : x > most_bytes ? most_bytes : x;
}

/* By what the server has counted last of list[0..n); 0: nothing. */
static double counted_bytes_per_token(const ebb_chat *c, const ebb_context_view *v, size_t n)
{
    size_t at = find_counted(c, v, n);
    const ebb_message *m = at < n ? v->list[at] : NULL;
    double frames = FRAME_TOKENS * (double)(at + 1);

    if (!m || m->turn_stats.n_prompt <= frames)
        return 0;
    return clamp((double)bytes_of(v, at + (m->role == EBB_ROLE_USER)) / (m->turn_stats.n_prompt - frames));
}

/* Above the note, where the view was another one: the same language, mostly. */
static double bytes_per_token_above(const ebb_chat *c, const ebb_node *note)
{
    ebb_context_view v;
    ebb_node **path;
    size_t n = 0;
    double per_token = 0;

    for (const ebb_node *node = note->parent; node; node = node->parent)
        n++;
    path = calloc(n + 1, sizeof *path);
    if (!path)
        return 0;
    for (ebb_node *node = note->parent; node; node = node->parent)
        path[--n] = node;
    while (path[n])
        n++;
    if (ebb_context_view_make(path, n, NULL, &v, NULL) == EBB_OK) {
        per_token = counted_bytes_per_token(c, &v, v.n);
        ebb_context_view_fini(&v);
    }
    free(path);
    return per_token;
}

static double bytes_per_token(const ebb_chat *c, const ebb_context_view *v, size_t n)
{
    double counted = counted_bytes_per_token(c, v, n);

    if (counted == 0 && v->note)
        counted = bytes_per_token_above(c, v->note);
    return counted > 0 ? counted : usual_bytes;
}

static size_t tokens_of(const ebb_message *m, double per_token)
{
    return (size_t)((double)m->n_text / per_token) + FRAME_TOKENS;
}

size_t ebb_chat_estimate(const ebb_chat *c, const ebb_context_view *v, size_t n, bool *is_about)
{
    double per_token = bytes_per_token(c, v, n);
    size_t at = find_counted(c, v, n), tokens = 0, from = 0;

    *is_about = n > 0;
    if (at < n) {
        const ebb_message *m = v->list[at];
        tokens = (size_t)m->turn_stats.n_prompt + m->turn_stats.n_generated;
        *is_about = at + 1 < n || m->turn_stats.about & EBB_ABOUT_GENERATED ||
                    (m->role == EBB_ROLE_ASSISTANT && !m->engine);
        from = at + 1;
    }
    for (size_t i = from; i < n; i++)
        tokens += tokens_of(v->list[i], per_token);
    return tokens;
}

const char *ebb_chat_about(const ebb_chat *c)
{
    return ebb_chat_facts(c) ? "about " : "";
}

/* -- Where the model has ids ------------------------------------------------------------------------ */

/* Messages with ids are counted, and so are those before them, whose ids they have (prompt.h): list[0..result), *n_ids
 * in all. */
static size_t find_with_ids(const ebb_chat *c, const ebb_context_view *v, size_t *n_ids)
{
    size_t n = 0;

    *n_ids = 0;
    for (size_t i = 0; i < v->n; i++)
        if (ebb_chat_has_ids(c, v->list[i])) {
            *n_ids += v->list[i]->n_ids;
            n = i + 1;
        }
    return n;
}

static double bytes_per_id(const ebb_chat *c, const ebb_context_view *v)
{
    size_t n_ids, n = find_with_ids(c, v, &n_ids);

    return n_ids ? clamp((double)bytes_of(v, n) / (double)n_ids) : usual_bytes;
}

uint32_t ebb_chat_tokens_of(const ebb_chat *c, const ebb_message *m)
{
    ebb_context_view v;
    double per_token = usual_bytes;

    if (ebb_chat_has_ids(c, m))
        return (uint32_t)m->n_ids;
    if (ebb_context_view_for_model(c, c->tree.path, c->tree.n_path, NULL, &v, NULL) == EBB_OK) {
        per_token = ebb_chat_facts(c) ? bytes_per_token(c, &v, v.n) : bytes_per_id(c, &v);
        ebb_context_view_fini(&v);
    }
    return (uint32_t)tokens_of(m, per_token);
}

size_t ebb_chat_expect_tokens(const ebb_chat *c)
{
    ebb_context_view v;
    size_t tokens, n;
    double per_token;

    if (ebb_chat_facts(c))
        return ebb_chat_n_tokens(c);
    if (ebb_context_view_for_model(c, c->tree.path, c->tree.n_path, NULL, &v, NULL) != EBB_OK)
        return 0;
    per_token = bytes_per_id(c, &v);
    n = find_with_ids(c, &v, &tokens);
    for (; n < v.n; n++)
        tokens += tokens_of(v.list[n], per_token);
    ebb_context_view_fini(&v);
    return tokens;
}

/* -- What each message has of a prompt -------------------------------------------------------------- */

/* Bytes by which a run is shared: an empty message has a frame, too. */
static double weight_of(const ebb_message *m)
{
    return (double)m->n_text + FRAME_TOKENS * usual_bytes;
}

/* list[from..to) have n tokens. */
static void share_run(const ebb_context_view *v, size_t from, size_t to, size_t n, uint32_t *of)
{
    double all = 0, sum = 0;
    size_t given = 0;

    for (size_t i = from; i < to; i++)
        all += weight_of(v->list[i]);
    for (size_t i = from; i < to; i++) {
        sum += weight_of(v->list[i]);
        of[i] = (uint32_t)((size_t)((double)n * sum / all) - given);
        given += of[i];
    }
}

/* of[i] for list[i]. */
static void share_view(const ebb_chat *c, const ebb_context_view *v, const ebb_prompt *p, uint32_t *of)
{
    size_t system = v->n ? ebb_chat_count_system(c, v->list[0], p->ids, p->n_ids) : 0, from = 0;

    for (size_t i = 0; i < v->n; i++) {
        size_t n = p->n_ids_of[i];

        if (n == 0)
            continue;                            /* its ids are in a later count, or it has none */
        if (from == 0 && system > 0) {
            of[0] = (uint32_t)system;
            from = 1;
            n -= n < system ? n : system;
        }
        share_run(v, from, i + 1, n, of);
        from = i + 1;
    }
}

/* Where a node is in the path, which mostly has it behind the one before. */
static size_t find_in_path(const ebb_chat *c, const ebb_node *node, size_t at)
{
    for (size_t k = 0; node && k < c->tree.n_path; k++, at++)
        if (c->tree.path[at % c->tree.n_path] == node)
            return at % c->tree.n_path;
    return c->tree.n_path;
}

uint32_t *ebb_chat_share_tokens(const ebb_chat *c, const ebb_prompt *p)
{
    uint32_t *of = calloc(c->tree.n_path + 1, sizeof *of), *of_view = calloc(c->tree.n_path + 2, sizeof *of_view);
    ebb_context_view v = { 0 };
    bool ok = of && of_view &&
              ebb_context_view_for_model(c, c->tree.path, c->tree.n_path, NULL, &v, NULL) == EBB_OK;

    if (ok)
        share_view(c, &v, p, of_view);
    for (size_t i = 0, at = 0; ok && i < v.n; i++) {
        at = find_in_path(c, v.nodes[i], at);
        if (at < c->tree.n_path)
            of[at] = of_view[i];
    }
    ebb_context_view_fini(&v);
    free(of_view);
    if (!ok) {
        free(of);
        return NULL;
    }
    return of;
}

/* -- The prompt -------------------------------------------------------------------------------- */

ebb_status ebb_chat_prompt_messages(const ebb_chat *c, const ebb_context_view *v, size_t n, ebb_prompt *p,
                                    ebb_error *err)
{
    double per_token = bytes_per_token(c, v, n);
    size_t n_old = n;
    bool ok, is_about;

    *p = (ebb_prompt){ .messages = calloc(n + 1, sizeof *p->messages), .n_ids_of = calloc(n + 1, sizeof *p->n_ids_of) };
    ok = p->messages && p->n_ids_of;
    for (size_t i = 0; ok && i < n; i++) {
        const ebb_message *m = v->list[i];

        p->n_ids_of[i] = tokens_of(m, per_token);
        if (m->n_text == 0 && i + 1 == n && m->role == EBB_ROLE_ASSISTANT)
            continue;                            /* an empty answer cannot be continued */
        ok = ebb_prompt_message_init(&p->messages[p->n_messages], m->role, m->text, m->n_text);
        if (ok)
            p->messages[p->n_messages++].thought = ebb_message_thought(m);
    }
    if (!ok) {
        ebb_prompt_fini(p);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    }
    while (n_old > 0 && v->list[n_old - 1]->role != EBB_ROLE_ASSISTANT)
        n_old--;
    p->n_ids = ebb_chat_estimate(c, v, n, &is_about);
    p->n_old = p->n_kept = ebb_chat_estimate(c, v, n_old, &is_about);
    return EBB_OK;
}
