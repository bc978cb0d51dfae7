/* Speculative prefill: unsent text is computed while it is typed (chat.h). */

#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"

enum { FEW_TOKENS = 16 };        /* not worth a pass of their own */

static bool is_input_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The draft without its last word, which may grow. */
static size_t without_last_word(const char *text, size_t n)
{
    while (n > 0 && !is_input_space(text[n - 1]))
        n--;
    while (n > 0 && is_input_space(text[n - 1]))
        n--;
    return n;
}

static ebb_status make_input_prompt(ebb_chat *c, size_t n_path, const char *text, size_t n, const char *end,
                                    ebb_prompt *out)
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

/* Ids of the input's whole words that no continuation changes: the prefix that two continuations
 * share. */
static size_t find_stable_prefix(ebb_chat *c, size_t n_path, const char *text, size_t n, ebb_prompt *p)
{
    ebb_prompt other = { 0 };
    size_t same = 0;

    n = without_last_word(text, n);
    if (make_input_prompt(c, n_path, text, n, " x", p) == EBB_OK &&
        make_input_prompt(c, n_path, text, n, "\ny", &other) == EBB_OK)
        while (same < p->n_ids && same < other.n_ids && p->ids[same] == other.ids[same])
            same++;
    ebb_prompt_fini(&other);
    return same;
}

static bool may_prefill(ebb_chat *c)
{
    ebb_stats s;

    if (!c->info || ebb_chat_is_busy(c) || c->settings.prefill == EBB_SPECULATIVE_PREFILL_OFF || c->overflow.gap.n)
        return false;
    c->backend->ops->stats(c->backend, &s);
    return s.tier != EBB_TIER_CRITICAL;
}

void ebb_chat_prefill_input(ebb_chat *c, ebb_chat_action act, size_t i, const char *text, size_t n)
{
    ebb_node *above = ebb_tree_above_question(ebb_tree_leaf(&c->tree));
    size_t n_path = act == EBB_ACT_EDIT ? i : c->tree.n_path, n_stable;
    ebb_prompt p = { 0 };
    ebb_cache_salt cache_salt;

    if (!may_prefill(c) || !c->backend->ops->speculative_prefill)
        return;
    if (n == 0 || n_path > c->tree.n_path) {
        c->backend->ops->speculative_prefill(c->backend, NULL, 0, NULL, NULL);
        return;
    }
    while (act == EBB_ACT_SEND && n_path > 0 && c->tree.path[n_path - 1] != above)
        n_path--;
    cache_salt = ebb_chat_cache_salt(ebb_context_view_note(c->tree.path, n_path));
    n_stable = find_stable_prefix(c, n_path, text, n, &p);
    if (n_stable + ebb_overflow_reserve(c) <= c->backend->ops->n_ctx(c->backend) &&
        n_stable > FEW_TOKENS + c->backend->ops->common_prefix(c->backend, p.ids, n_stable, &cache_salt))
        c->backend->ops->speculative_prefill(c->backend, p.ids, n_stable, &cache_salt, NULL);
    ebb_prompt_fini(&p);
}
