/* What the user types is computed while he types (chat.h). */
#include <string.h>

#include "chat_priv.h"
#include "chat_room.h"

enum { FEW_TOKENS = 16 };        /* not worth a pass of their own */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The draft without its last word, which may grow. */
static size_t without_last_word(const char *text, size_t n)
{
    while (n > 0 && !is_space(text[n - 1]))
        n--;
    while (n > 0 && is_space(text[n - 1]))
        n--;
    return n;
}

static ebb_status prompt_with(ebb_chat *c, size_t n_path, const char *text, size_t n, const char *end, ebb_prompt *out)
{
    ebb_buf whole = { 0 };
    ebb_message question = { .role = EBB_ROLE_USER };
    ebb_status st = EBB_NOMEM;

    if (ebb_buf_add(&whole, text, n) && ebb_buf_adds(&whole, end)) {
        question.text = whole.data;
        question.n_text = whole.len;
        st = ebb_chat_prompt(c, c->tree.path, n_path, &question, out, NULL);
    }
    ebb_buf_fini(&whole);
    return st;
}

/* Ids that stay, whatever follows the whole words of the draft: those that two ways of going on share. */
static size_t find_stable(ebb_chat *c, size_t n_path, const char *text, size_t n, ebb_prompt *p)
{
    ebb_prompt other = { 0 };
    size_t same = 0;

    n = without_last_word(text, n);
    if (prompt_with(c, n_path, text, n, " x", p) == EBB_OK && prompt_with(c, n_path, text, n, "\ny", &other) == EBB_OK)
        while (same < p->n_ids && same < other.n_ids && p->ids[same] == other.ids[same])
            same++;
    ebb_prompt_fini(&other);
    return same;
}

static bool is_allowed(ebb_chat *c)
{
    ebb_stats s;

    if (!c->info || ebb_chat_is_busy(c) || c->settings.prefill == EBB_PREFILL_OFF || c->room.gap.n)
        return false;
    c->backend->ops->stats(c->backend, &s);
    return s.tier != EBB_TIER_CRITICAL;
}

void ebb_chat_type_ahead(ebb_chat *c, ebb_chat_act act, size_t i, const char *text, size_t n)
{
    ebb_node *above = ebb_tree_above_question(ebb_tree_leaf(&c->tree));
    size_t n_path = act == EBB_ACT_EDIT ? i : c->tree.n_path, n_stable;
    ebb_prompt p = { 0 };
    ebb_shift shift;

    if (!is_allowed(c) || !c->backend->ops->ahead)
        return;
    if (n == 0 || n_path > c->tree.n_path) {
        c->backend->ops->ahead(c->backend, NULL, 0, NULL, NULL);
        return;
    }
    while (act == EBB_ACT_SEND && n_path > 0 && c->tree.path[n_path - 1] != above)
        n_path--;
    shift = ebb_chat_shift(ebb_view_note(c->tree.path, n_path));
    n_stable = find_stable(c, n_path, text, n, &p);
    if (n_stable + ebb_room_reserve(c) <= c->backend->ops->n_ctx(c->backend) &&
        n_stable > FEW_TOKENS + c->backend->ops->common(c->backend, p.ids, n_stable, &shift))
        c->backend->ops->ahead(c->backend, p.ids, n_stable, &shift, NULL);
    ebb_prompt_fini(&p);
}
