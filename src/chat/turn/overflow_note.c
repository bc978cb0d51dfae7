/* What is decided about a full context becomes a note: how much must go, which turns that are, and the note in the tree
 * (overflow.h). */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* -- How much is free ---------------------------------------------------------------------- */

/* The context of the open model, or the one that it will be opened with. */
static uint32_t ctx_of(const ebb_chat *c)
{
    return c->overflow.n_ctx_wanted ? c->overflow.n_ctx_wanted : c->backend->ops->n_ctx(c->backend);
}

/* Of a context of n_ctx tokens. */
static uint32_t reserve_of(const ebb_chat *c, uint32_t n_ctx)
{
    uint32_t n_predict = c->settings.n_predict, reserve = n_ctx ? n_ctx / 8 : RESERVE_MAX;

    reserve = reserve > RESERVE_MAX ? RESERVE_MAX : reserve;
    return n_predict && n_predict < reserve ? n_predict : reserve;
}

uint32_t ebb_overflow_reserve(const ebb_chat *c)
{
    return reserve_of(c, ctx_of(c));
}

bool ebb_overflow_is_untrained(const ebb_chat *c, size_t n_ids)
{
    uint32_t trained = ebb_overflow_trained(c);

    return trained && n_ids + reserve_of(c, trained) > trained;
}

/* A context of unknown size (0) never counts as full. */
bool ebb_overflow_fits(const ebb_chat *c, size_t n_ids)
{
    uint32_t n_ctx = ctx_of(c);

    return n_ctx == 0 || n_ids + ebb_overflow_reserve(c) <= n_ctx;
}

bool ebb_overflow_fills(const ebb_chat *c, size_t n_ids)
{
    uint32_t n_ctx = ctx_of(c);

    return n_ctx && n_ids >= n_ctx;
}

/* For scripts, of which only those of a chat have commands. */
ebb_status ebb_overflow_refuse_input(const ebb_chat *c, size_t n_tokens, ebb_error *err)
{
    size_t n_ctx = (n_tokens + n_tokens / 4 + 1023) / 1024 * 1024, trained = ebb_overflow_trained(c);

    if (c->remote.name)                          /* its context is its own, and the tokens were not counted */
        return EBB_FAIL(err, EBB_CONTEXT, "the input has about %zu tokens, the context of %.80s holds %u with its "
                                          "answer: shorten it, or ask the engine here (-e here --ctx N; in a chat "
                                          "/engine here)",
                        n_tokens, ebb_chat_engine_word(c), c->backend->ops->n_ctx(c->backend));
    if (ebb_overflow_is_untrained(c, n_tokens))
        return EBB_FAIL(err, EBB_CONTEXT, "the input has %zu tokens, the context holds %u with its answer, and the "
                                          "model was trained for %zu: shorten the input, or take a model with a "
                                          "longer context", n_tokens, c->backend->ops->n_ctx(c->backend), trained);
    n_ctx = trained && trained < n_ctx ? trained : n_ctx;
    return EBB_FAIL(err, EBB_CONTEXT, "the input has %zu tokens, the context holds %u with its answer: give --ctx %zu "
                                      "or more (in a chat /set ctx %zu), or a model that can take as many",
                    n_tokens, c->backend->ops->n_ctx(c->backend), n_ctx, n_ctx);
}

size_t ebb_overflow_target(const ebb_chat *c, size_t n_all)
{
    uint32_t n_ctx = ctx_of(c);

    return (n_ctx ? n_ctx : n_all) / 2;
}

/* -- What is to be left out ------------------------------------------------------------------ */

/* What the model gets of the path now, but for the system's message. */
typedef struct shown_path {
    ebb_node *const *path;
    uint32_t        *visible;    /* [n_visible] indices of path */
    size_t           n_visible;
    uint32_t        *tokens;     /* of each message of path */
} shown_path;

/* As indices; how many. */
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

/* false: no memory. */
static bool shown_path_init(shown_path *s, const ebb_chat *c, const ebb_prompt *p)
{
    *s = (shown_path){ .path = c->tree.path, .visible = calloc(c->tree.n_path + 1, sizeof *s->visible),
                       .tokens = ebb_chat_share_tokens(c, p) };
    if (s->visible)
        s->n_visible = list_visible(c, s->visible);
    return s->visible && s->tokens;
}

static void shown_path_fini(shown_path *s)
{
    free(s->visible);
    free(s->tokens);
}

/* One turn: visible[from..to). */
typedef struct path_turn {
    size_t   from, to;
    bool     is_pinned;
    uint32_t n_tokens;
} path_turn;

static path_turn path_turn_at(const shown_path *s, size_t from)
{
    path_turn t = { .from = from, .to = from };

    do {
        uint32_t i = s->visible[t.to++];
        t.is_pinned |= s->path[i]->m.pinned;
        t.n_tokens += s->tokens[i];
    } while (t.to < s->n_visible && s->path[s->visible[t.to]]->m.role != EBB_ROLE_USER);
    return t;
}

static bool keep_turn(ebb_truncation *l, const uint32_t *visible, const path_turn *t)
{
    uint32_t *kept = realloc(l->kept, (l->n_kept + t->to - t->from) * sizeof *kept);

    if (!kept)
        return false;
    l->kept = kept;
    for (size_t i = t->from; i < t->to; i++)
        l->kept[l->n_kept++] = visible[i];
    return true;
}

/* The oldest turns, until n_tokens tokens are gone, or n_turns turns are (0: as many as it takes); pinned ones stay,
 * and so does the last.  Turns that an earlier note kept, before the message `first`, are kept by name again: behind
 * them begins what it has left out.  false: there is none, or no memory. */
static bool choose_oldest_turns(const shown_path *s, size_t n_tokens, uint32_t n_turns, uint32_t first,
                                ebb_truncation *l)
{
    size_t at = 0;

    while (at < s->n_visible) {
        path_turn t = path_turn_at(s, at);
        bool is_enough = n_turns ? l->n_turns == n_turns : l->n_tokens >= n_tokens;
        bool was_kept = s->visible[at] < first;

        if (t.to == s->n_visible || (is_enough && !was_kept))
            break;
        if ((t.is_pinned || is_enough) && !keep_turn(l, s->visible, &t))
            return false;
        if (!t.is_pinned && !is_enough) {
            l->n_turns++;
            l->n_tokens += t.n_tokens;
        }
        at = t.to;
    }
    l->first = at < s->n_visible ? s->visible[at] : 0;
    return l->n_turns > 0 && l->first > 0;
}

bool ebb_overflow_choose_turns(const ebb_chat *c, const ebb_prompt *p, size_t target, ebb_truncation *l)
{
    const ebb_node *note = ebb_context_view_note(c->tree.path, c->tree.n_path);
    size_t n_tokens = p->n_ids > target ? p->n_ids - target : 0;
    shown_path s;
    bool any = shown_path_init(&s, c, p) &&
               choose_oldest_turns(&s, n_tokens, c->overflow.n_turns, note ? note->m.truncation.first : 0, l);

    if (!any) {
        free(l->kept);
        *l = (ebb_truncation){ 0 };
    }
    shown_path_fini(&s);
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
    if (m->engine)                               /* it has counted a prompt with what the note leaves out */
        node->m.turn_stats.about |= EBB_ABOUT_PROMPT;
    node->m.model = m->model ? strdup(m->model) : NULL;
    node->m.engine = m->engine ? strdup(m->engine) : NULL;
    return ebb_node_set_ids(node, m->ids, m->n_ids, m->ids_model) ? node : NULL;
}

ebb_node *ebb_overflow_add_note(ebb_chat *c, ebb_overflow_policy how, ebb_overflow_next next, const char *text)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_node *note = ebb_tree_add(&c->tree, next >= EBB_NEXT_CONTINUE ? leaf->parent : leaf, EBB_ROLE_NOTE, text,
                                  strlen(text));

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
    ebb_status st;

    if (ebb_chat_facts(c))                       /* without ids there are none to be kept */
        return EBB_OK;
    st = ebb_context_view_make(c->tree.path, c->tree.n_path, NULL, &v, err);
    if (st != EBB_OK)
        return st;
    v.messages[v.n_head - 1].n_ids = 0;          /* a summary's own */
    st = ebb_context_view_prompt(c, &v, v.n_head, &head, err);
    if (st == EBB_OK && !ebb_node_set_ids(note, head.ids, head.n_ids, c->info->fingerprint))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    ebb_prompt_fini(&head);
    ebb_context_view_fini(&v);
    return st;
}

void ebb_overflow_drop_gap(ebb_chat *c)
{
    free((int32_t *)c->overflow.gap.ids);
    c->overflow.gap = (ebb_backend_gap){ 0 };
    c->overflow.gap_note = NULL;
}

void ebb_overflow_reset(ebb_chat *c)
{
    ebb_overflow_drop_gap(c);
    c->overflow.asked_at = c->overflow.prefill_note = c->overflow.shrink_at = NULL;
    c->overflow.shrink_to = 0;
    c->overflow.cannot_grow = false;
    c->overflow.is_warned = c->overflow.is_view_changed = c->turn.is_rewriting_reported = false;
}
