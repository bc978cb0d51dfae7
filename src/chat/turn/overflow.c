/* A conversation that no longer fits the context: what is decided then (chat_priv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"
#include "turn/overflow.h"

/* -- How much room there is ---------------------------------------------------------------- */

/* Room that an answer should find: an eighth of the context, as long as that is not absurd. */
uint32_t ebb_overflow_reserve(const ebb_chat *c)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend), reserve = n_ctx ? n_ctx / 8 : RESERVE_MAX;
    uint32_t n_predict = c->settings.n_predict;

    reserve = reserve > RESERVE_MAX ? RESERVE_MAX : reserve;
    return n_predict && n_predict < reserve ? n_predict : reserve;
}

/* The policy for this time: what was asked for now, else the setting.  Where nobody can be asked, the oldest
 * turns go. */
static ebb_overflow_policy policy_of(const ebb_chat *c)
{
    if (c->overflow.is_forced)
        return c->overflow.forced;
    if (ebb_context_view_is_last_turn(c->info->path))
        return EBB_OVERFLOW_STOP;                /* nothing before the question takes room from it */
    if (c->overflow.has_compacted && c->settings.overflow == EBB_OVERFLOW_COMPACT)
        return EBB_OVERFLOW_FORGET;
    return c->settings.overflow == EBB_OVERFLOW_ASK && c->is_unattended ? EBB_OVERFLOW_FORGET : c->settings.overflow;
}

/* A context that nobody has told is not full. */
static bool prompt_fits(const ebb_chat *c, size_t n_ids)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);

    return n_ctx == 0 || n_ids + ebb_overflow_reserve(c) <= n_ctx;
}

static bool fills(const ebb_chat *c, size_t n_ids)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);

    return n_ctx && n_ids >= n_ctx;
}

size_t ebb_room_target(const ebb_chat *c, size_t n_all)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);

    return (n_ctx ? n_ctx : n_all) / 2;
}

/* -- What is to be left out ------------------------------------------------------------------ */

/* Messages of the path that the model gets now, but for the system's, as indices. */
static size_t list_visible(const ebb_chat *c, uint32_t *out)
{
    const ebb_node *note = ebb_context_view_note(c->tree.path, c->tree.n_path);
    size_t n = 0;

    for (size_t i = 0; i < c->tree.n_path; i++) {
        ebb_role role = c->tree.path[i]->m.role;
        if (role != EBB_ROLE_NOTE && role != EBB_ROLE_SYSTEM && !ebb_message_omits(note ? &note->m : NULL, i))
            out[n++] = (uint32_t)i;
    }
    return n;
}

/* One turn: visible[from..to). */
typedef struct path_turn {
    size_t   from, to;
    bool     is_pinned;
    uint32_t n_tokens;
} path_turn;

static path_turn path_turn_at(const ebb_chat *c, const uint32_t *visible, size_t n, size_t from)
{
    path_turn t = { .from = from, .to = from };

    do {
        const ebb_message *m = &c->tree.path[visible[t.to]]->m;
        t.is_pinned |= m->pinned;
        t.n_tokens += ebb_chat_tokens_of(c, m);
        t.to++;
    } while (t.to < n && c->tree.path[visible[t.to]]->m.role != EBB_ROLE_USER);
    return t;
}

static bool keep_pinned_turn(ebb_truncation *l, const uint32_t *visible, const path_turn *t)
{
    uint32_t *kept = realloc(l->kept, (l->n_kept + t->to - t->from) * sizeof *kept);

    if (!kept)
        return false;
    l->kept = kept;
    for (size_t i = t->from; i < t->to; i++)
        l->kept[l->n_kept++] = visible[i];
    return true;
}

/* The oldest turns, until n_all tokens are `target` or less, or n_turns are (0: as many as it takes);
 * pinned ones stay, and so does the last.  false: there is none, or no memory. */
static bool choose_oldest_turns(const ebb_chat *c, const uint32_t *visible, size_t n, size_t n_all, size_t target, uint32_t n_turns,
                   ebb_truncation *l)
{
    size_t at = 0;

    while (at < n) {
        path_turn t = path_turn_at(c, visible, n, at);
        bool is_enough = n_turns ? l->n_turns == n_turns : n_all <= target + l->n_tokens;

        if (t.to == n || is_enough)
            break;
        if (t.is_pinned && !keep_pinned_turn(l, visible, &t))
            return false;
        if (!t.is_pinned) {
            l->n_turns++;
            l->n_tokens += t.n_tokens;
        }
        at = t.to;
    }
    l->first = at < n ? visible[at] : 0;
    return l->n_turns > 0 && l->first > 0;
}

bool ebb_overflow_choose_turns(const ebb_chat *c, size_t n_all, size_t target, ebb_truncation *l)
{
    uint32_t *visible = calloc(c->tree.n_path + 1, sizeof *visible);
    bool any = visible && choose_oldest_turns(c, visible, list_visible(c, visible), n_all, target, c->overflow.n_turns, l);

    if (!any) {
        free(l->kept);
        *l = (ebb_truncation){ 0 };
    }
    free(visible);
    return any;
}

/* -- The note ---------------------------------------------------------------------------------- */

/* A copy of the answer that was cut off, below the note: the old one stays where it is. */
static ebb_node *copy_answer(ebb_chat *c, ebb_node *note, const ebb_message *m)
{
    ebb_node *node = ebb_tree_add(&c->tree, note, EBB_ROLE_ASSISTANT, m->text, m->n_text);

    if (!node)
        return NULL;
    node->m.finish = m->finish;
    node->m.turn_stats = m->turn_stats;
    node->m.model = m->model ? strdup(m->model) : NULL;
    node->m.engine = m->engine ? strdup(m->engine) : NULL;
    return ebb_node_set_ids(node, m->ids, m->n_ids, m->ids_model) ? node : NULL;
}

ebb_node *ebb_overflow_add_note(ebb_chat *c, ebb_overflow_policy how, ebb_overflow_next next, const char *text)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_node *note = ebb_tree_add(&c->tree, next >= EBB_NEXT_CONTINUE ? leaf->parent : leaf, EBB_ROLE_NOTE, text, strlen(text));

    if (note)
        note->m.truncation.how = how;
    return note;
}

bool ebb_overflow_move_below(ebb_chat *c, ebb_node *note, ebb_node *cut_off)
{
    ebb_node *leaf = cut_off ? copy_answer(c, note, &cut_off->m) : note;

    return leaf && ebb_tree_set_leaf(&c->tree, leaf);
}

/* Ids of what the note has settled: they are made once. */
ebb_status ebb_overflow_tokenize_head(ebb_chat *c, ebb_node *note, ebb_error *err)
{
    ebb_prompt head;
    ebb_context_view v;
    ebb_status st = ebb_chat_facts(c) ? EBB_OK : ebb_context_view_make(c->tree.path, c->tree.n_path, NULL, &v, err);

    if (st != EBB_OK || ebb_chat_facts(c))       /* without ids there are none to be kept */
        return st;
    v.messages[v.n_head - 1].n_ids = 0;          /* a summary's own */
    st = ebb_context_view_prompt(c, &v, v.n_head, &head, err);
    if (st == EBB_OK && !ebb_node_set_ids(note, head.ids, head.n_ids, c->info->fingerprint))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    ebb_prompt_fini(&head);
    ebb_context_view_fini(&v);
    return st;
}

/* -- Forgetting ------------------------------------------------------------------------------------ */

void ebb_overflow_drop_gap(ebb_chat *c)
{
    free((int32_t *)c->overflow.gap.ids);
    c->overflow.gap = (ebb_backend_gap){ 0 };
    c->overflow.gap_note = NULL;
}

void ebb_overflow_reset(ebb_chat *c)
{
    ebb_overflow_drop_gap(c);
    c->overflow.asked_at = c->overflow.prefill_note = NULL;
    c->overflow.is_warned = c->overflow.is_view_changed = c->is_rewriting_reported = false;
}

/* If `now` is `old` without some tokens in one place, K and V behind can be moved up. */
static void find_removed_gap(ebb_chat *c, const ebb_prompt *old, const ebb_prompt *now, const ebb_cache_salt *before)
{
    size_t at = 0, n = old->n_ids > now->n_ids ? old->n_ids - now->n_ids : 0;
    int32_t *ids;

    ebb_overflow_drop_gap(c);
    if (!old->ids || !now->ids)
        return;
    while (at < now->n_ids && old->ids[at] == now->ids[at])
        at++;
    if (n == 0 || memcmp(old->ids + at + n, now->ids + at, (now->n_ids - at) * sizeof *now->ids) != 0)
        return;
    ids = malloc(n * sizeof *ids);
    if (!ids)
        return;
    memcpy(ids, old->ids + at, n * sizeof *ids);
    c->overflow.gap = (ebb_backend_gap){ .ids = ids, .at = at, .n = n, .before = *before };
    c->overflow.gap_note = ebb_context_view_note(c->tree.path, c->tree.n_path);
}

/* No answer follows now: the gap is closed in the background. */
static void close_gap_in_background(ebb_chat *c, const ebb_prompt *p)
{
    static const ebb_cache_salt none;

    if (!c->overflow.gap.n || !c->backend->ops->speculative_prefill)
        return;
    c->backend->ops->speculative_prefill(c->backend, p->ids, p->n_ids, &none, &c->overflow.gap);
    c->overflow.prefill_note = c->overflow.gap_note;
    ebb_overflow_drop_gap(c);
}

static ebb_status write_forget_note(ebb_node *note, ebb_error *err)
{
    const ebb_truncation *l = &note->m.truncation;
    char text[400], count[16];
    bool one = l->n_turns == 1;

    snprintf(count, sizeof count, "%u turns", l->n_turns);
    snprintf(text, sizeof text, "The oldest %s (%u tokens, up to message %u) %s forgotten: the model no longer sees %s. %s here, in /tree and in /search.%s",
             one ? "turn" : count, l->n_tokens, l->first, one ? "is" : "are", one ? "it" : "them", one ? "It stays" : "They stay",
             l->n_kept ? " What is pinned stays in sight of the model, too." : "");
    return ebb_node_set_text(note, text, strlen(text)) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
}

/* The path with a note that leaves out enough for n_all to become `target`, and its prompt. */
static ebb_status try_forget_turns(ebb_chat *c, const ebb_prompt *old, size_t target, ebb_overflow_next next, ebb_prompt *now, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *note;
    ebb_truncation l = { 0 };
    ebb_status st;

    if (!ebb_overflow_choose_turns(c, old->n_ids, target, &l))
        return EBB_FAIL(err, EBB_CONTEXT, "nothing is left to forget: the last turn, the system prompt and what is pinned have %zu tokens, "
                        "the context holds %u", old->n_ids, c->backend->ops->n_ctx(c->backend));
    note = ebb_overflow_add_note(c, EBB_OVERFLOW_FORGET, next, "");
    if (!note) {
        free(l.kept);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    }
    l.how = EBB_OVERFLOW_FORGET;
    note->m.truncation = l;
    if (!ebb_overflow_move_below(c, note, next >= EBB_NEXT_CONTINUE ? leaf : NULL))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    st = ebb_overflow_tokenize_head(c, note, err);
    if (st == EBB_OK)
        st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, now, err);
    if (st == EBB_OK && now->n_ids < old->n_ids)
        note->m.truncation.n_tokens = (uint32_t)(old->n_ids - now->n_ids);
    return st == EBB_OK ? write_forget_note(note, err) : st;
}

/* Everything that was added since goes. */
static ebb_status undo_forget(ebb_chat *c, size_t n_nodes, ebb_node *leaf, ebb_status st, ebb_error *err)
{
    while (c->tree.n_nodes > n_nodes)
        ebb_tree_drop_newest(&c->tree);
    return ebb_tree_set_leaf(&c->tree, leaf) ? st : EBB_FAIL(err, EBB_NOMEM, "no memory for the path");
}

static void emit_note(ebb_chat *c, const ebb_message *m)
{
    ebb_chat_emit_event(c, EBB_EVENT_NOTE, m->text, m->n_text, 0, 0);
}

/* Half of the context is free after that; if sizes were guessed wrong, more goes. */
ebb_status ebb_overflow_forget(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *before = ebb_context_view_note(c->tree.path, c->tree.n_path);
    size_t n_nodes = c->tree.n_nodes, target = ebb_room_target(c, p->n_ids);
    ebb_cache_salt cache_salt = ebb_chat_cache_salt(before);
    ebb_prompt now = { 0 };
    ebb_status st;

    for (;; target /= 2) {
        st = try_forget_turns(c, p, target, next, &now, err);
        if (st == EBB_OK && (prompt_fits(c, now.n_ids) || c->overflow.n_turns || target == 0))
            break;
        ebb_prompt_fini(&now);
        st = undo_forget(c, n_nodes, leaf, st, err);
        if (st != EBB_OK)
            return st;
    }
    if (fills(c, now.n_ids)) {
        st = EBB_FAIL(err, EBB_CONTEXT, "even without older turns there are %zu tokens, the context holds %u", now.n_ids,
                      c->backend->ops->n_ctx(c->backend));
        ebb_prompt_fini(&now);
        return undo_forget(c, n_nodes, leaf, st, err);
    }
    find_removed_gap(c, p, &now, &cache_salt);
    c->overflow.is_view_changed = true;
    ebb_prompt_fini(p);
    *p = now;
    emit_note(c, &ebb_context_view_note(c->tree.path, c->tree.n_path)->m);
    return EBB_OK;
}

/* -- Asking ------------------------------------------------------------------------------------------- */

/* A line for each thing that can be done. */
static void ask_overflow_choice(ebb_chat *c, const ebb_prompt *p)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);
    ebb_truncation l = { 0 };
    ebb_buf text = { 0 };
    char larger[160];
    bool any = ebb_overflow_choose_turns(c, p->n_ids, n_ctx / 2, &l);

    if (!any && p->n_ids >= n_ctx)
        ebb_buf_addf(&text, "%zu tokens do not fit the context of %u, and there is nothing older to leave out. What now?", p->n_ids, n_ctx);
    else
        ebb_buf_addf(&text, "The context is full: %zu of %u tokens%s. What now?", p->n_ids, n_ctx,
                     p->n_ids < n_ctx ? ", which leaves no room for an answer" : "");
    if (any)
        ebb_buf_addf(&text, "\n/forget leaves the oldest %u turn%s out (%u tokens)\n/compact puts a summary in their place", l.n_turns,
                     l.n_turns == 1 ? "" : "s", l.n_tokens);
    if (ebb_overflow_describe_growth(c, p->n_ids, larger, sizeof larger))
        ebb_buf_addf(&text, "\n/grow %s", larger);
    ebb_buf_adds(&text, "\n/undo takes the question back");
    if (any)
        ebb_buf_adds(&text, "\nEnter does /forget. /set overflow forget, compact, grow or stop decides for good.");
    free(l.kept);
    ebb_chat_emit_event(c, EBB_EVENT_NOTICE, ebb_buf_text(&text), text.len, 0, 0);
    ebb_buf_fini(&text);
    c->overflow.asked_at = ebb_tree_leaf(&c->tree);
}

/* -- The decision ------------------------------------------------------------------------------------- */

static ebb_status check_fits_at_all(const ebb_chat *c, const ebb_prompt *p, ebb_error *err)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);

    return !fills(c, p->n_ids) ? EBB_OK
                            : EBB_FAIL(err, EBB_CONTEXT, "the conversation has %zu tokens, the context holds %u: /forget, /compact, "
                                       "/grow, /undo or /new", p->n_ids, n_ctx);
}

static ebb_status apply_policy(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_overflow_outcome *outcome, ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st;

    *outcome = EBB_OVERFLOW_DEFERRED;
    switch (policy_of(c)) {
    case EBB_OVERFLOW_ASK:
        ask_overflow_choice(c, p);
        return EBB_OK;
    case EBB_OVERFLOW_COMPACT:
        st = ebb_overflow_compact(c, p, next, &why);
        break;
    case EBB_OVERFLOW_GROW:
        st = ebb_overflow_grow(c, p, next, &why);
        break;
    case EBB_OVERFLOW_STOP:
        *outcome = EBB_OVERFLOW_RESOLVED;
        return check_fits_at_all(c, p, err);
    default:
        st = EBB_UNSUPPORTED;
    }
    if (st == EBB_OK)
        return EBB_OK;
    if (why.msg[0] && c->overflow.is_forced)
        return *err = why, st;
    if (why.msg[0])
        ebb_chat_notice(c, "%s; the oldest turns are forgotten instead", why.msg);
    *outcome = EBB_OVERFLOW_RESOLVED;
    st = ebb_overflow_forget(c, p, next, err);
    /* What cannot be made smaller but fits goes as it is. */
    return st == EBB_CONTEXT && !c->overflow.is_forced && check_fits_at_all(c, p, NULL) == EBB_OK ? EBB_OK : st;
}

ebb_status ebb_overflow_resolve(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_overflow_outcome *outcome, ebb_error *err)
{
    ebb_status st;

    *outcome = EBB_OVERFLOW_RESOLVED;
    if (p->n_ids == 0)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to answer");
    if (!c->overflow.is_forced && prompt_fits(c, p->n_ids))
        return EBB_OK;
    st = apply_policy(c, p, next, outcome, err);
    c->overflow.is_forced = false;
    c->overflow.n_turns = 0;
    return st;
}

/* -- What the user does ---------------------------------------------------------------------------------- */

static ebb_overflow_next choose_next(const ebb_chat *c, const ebb_node *leaf)
{
    bool is_full = c->overflow.asked_at == leaf || fills(c, ebb_chat_n_tokens(c));

    while (leaf && leaf->m.role == EBB_ROLE_NOTE)
        leaf = leaf->parent;
    if (leaf && leaf->m.role == EBB_ROLE_USER)
        return EBB_NEXT_ANSWER;
    if (!leaf || leaf->m.role != EBB_ROLE_ASSISTANT || leaf->m.finish == EBB_FINISH_STOP || !(leaf->m.n_ids || ebb_chat_facts(c)) ||
        leaf != ebb_tree_leaf(&c->tree))
        return EBB_NEXT_NOTHING;
    return is_full ? EBB_NEXT_CONTINUE : EBB_NEXT_STAY;
}

/* Room now, and no answer after it. */
static ebb_status free_context_only(ebb_chat *c, ebb_overflow_next next, ebb_error *err)
{
    ebb_prompt p;
    ebb_overflow_outcome outcome;
    ebb_status st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, err);

    if (st == EBB_OK)
        st = ebb_overflow_resolve(c, &p, next, &outcome, err);
    if (st == EBB_OK && outcome == EBB_OVERFLOW_RESOLVED)
        close_gap_in_background(c, &p);
    ebb_prompt_fini(&p);
    if (st == EBB_OK) {
        ebb_chat_save(c, true);
        ebb_chat_emit_event(c, EBB_EVENT_CHANGED, NULL, 0, 0, 0);
    }
    return st;
}

ebb_status ebb_chat_free_context(ebb_chat *c, ebb_overflow_policy how, uint32_t n_turns, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_overflow_next next;
    ebb_status st;

    if (ebb_chat_is_busy(c))
        return ebb_chat_check_idle(c, err);
    if (c->state != EBB_CHAT_IDLE)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (!leaf)
        return EBB_FAIL(err, EBB_USAGE, "nothing was said yet");
    next = choose_next(c, leaf);
    c->overflow.is_forced = true;
    c->overflow.forced = how;
    c->overflow.n_turns = n_turns;
    if (next == EBB_NEXT_ANSWER || next == EBB_NEXT_CONTINUE)
        st = ebb_chat_begin_answer(c, next == EBB_NEXT_CONTINUE, err);
    else
        st = free_context_only(c, next, err);
    c->overflow.is_forced = false;
    return st;
}

/* -- Beforehand --------------------------------------------------------------------------------------------- */

static const char *const what_comes[] = {
    [EBB_OVERFLOW_ASK] = "you are asked what to do when it is full",
    [EBB_OVERFLOW_FORGET] = "when it is full, the oldest turns are forgotten",
    [EBB_OVERFLOW_COMPACT] = "when it is full, a summary takes the place of the oldest turns",
    [EBB_OVERFLOW_GROW] = "when it is full, it grows if memory allows",
    [EBB_OVERFLOW_STOP] = "when it is full, no more is answered",
};

void ebb_overflow_warn(ebb_chat *c)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend), n = ebb_chat_n_tokens(c);
    bool is_nearly_full = n_ctx && 10ull * n >= 8ull * n_ctx;

    if (is_nearly_full && !c->overflow.is_warned)
        ebb_chat_notice(c, "The context is %u %% full (%u of %u tokens): %s. /forget, /compact or /grow act now; /pin keeps a "
                        "message; /set overflow decides.", (unsigned)(100ull * n / n_ctx), n, n_ctx, what_comes[policy_of(c)]);
    c->overflow.is_warned = is_nearly_full;
}

bool ebb_overflow_continues(const ebb_chat *c, const ebb_message *answer)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);
    ebb_overflow_policy how = policy_of(c);

    return answer->finish == EBB_FINISH_LENGTH && fills(c, ebb_chat_n_tokens(c)) && ebb_chat_tokens_of(c, answer) < n_ctx / 2 &&
           how != EBB_OVERFLOW_ASK && how != EBB_OVERFLOW_STOP;
}
