/* A sliding window over the tokens, with attention sinks: what leaves a full context is the oldest tokens behind the
 * system prompt, the user's or the template's own, or behind the first four where there is none (overflow.h).  Sinks:
 * Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

#define N_SINKS  4u              /* tokens that stay at the beginning, at least */
#define FREE_OF  4u              /* one part in so many of the context is free after a step */
#define NEAR_OF  16u             /* a message that begins within one part in so many is where the window begins */
#define TAIL_MIN 8u              /* tokens of what is settled that stay before the next message */

/* What of a prompt goes, as positions; and the last question, up to and with which the note settles the ids. */
typedef struct slide {
    size_t n_sinks, cut;         /* ids[n_sinks..cut) go */
    size_t n_head;               /* ids up to and with the last question */
} slide;

/* Index in the path of the last question; 0: there is none behind the first message. */
static uint32_t find_last_question(const ebb_chat *c)
{
    size_t i = c->tree.n_path;

    while (i-- > 1)
        if (c->tree.path[i]->m.role == EBB_ROLE_USER)
            return (uint32_t)i;
    return 0;
}

static bool has_pins(const ebb_context_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i]->pinned)
            return true;
    return false;
}

/* Where the window begins, if it can: at a message that begins soon behind, else between two tokens. */
static size_t find_begin(const ebb_context_view *v, const ebb_prompt *p, size_t cut, size_t near_by)
{
    size_t at = 0;

    for (size_t i = 0; i < v->n; i++) {
        if (at >= cut && at <= cut + near_by)
            return at;
        at += p->n_ids_of[i];
    }
    return cut;
}

/* Tokens that stay at the beginning: the system prompt's, the user's or the template's own, if there is one.  false:
 * nobody knows how many those are. */
static bool find_sinks(const ebb_chat *c, const ebb_context_view *v, const ebb_prompt *p, size_t *n)
{
    size_t front;
    bool is_known = ebb_chat_count_front(c, v->list[0], p->ids, p->n_ids, &front);

    *n = front > N_SINKS ? front : N_SINKS;
    return is_known;
}

static bool choose_slide(const ebb_chat *c, const ebb_context_view *v, const ebb_prompt *p, const ebb_node *question,
                         slide *s)
{
    size_t n_ctx = c->backend->ops->n_ctx(c->backend), left = n_ctx - n_ctx / FREE_OF;

    *s = (slide){ 0 };
    if (!find_sinks(c, v, p, &s->n_sinks))
        return false;
    for (size_t i = 0; i < v->n; i++) {
        s->n_head += p->n_ids_of[i];
        if (v->nodes[i] == question)
            break;
    }
    if (p->n_ids <= left || s->n_sinks >= s->n_head)
        return false;
    s->cut = find_begin(v, p, s->n_sinks + p->n_ids - left, n_ctx / NEAR_OF);
    return s->cut + TAIL_MIN <= s->n_head;
}

/* Messages of which something stays: what another model, whose ids are others, gets instead. */
static bool keep_messages(const ebb_chat *c, const ebb_context_view *v, const ebb_prompt *p, const slide *s,
                          ebb_truncation *l)
{
    size_t end = 0;

    l->kept = calloc(c->tree.n_path + 1, sizeof *l->kept);
    for (size_t i = 0; l->kept && i < v->n; i++) {
        end += p->n_ids_of[i];
        for (uint32_t at = 0; at < l->first && end > s->cut && v->nodes[i]; at++)
            if (c->tree.path[at] == v->nodes[i] && v->list[i]->role != EBB_ROLE_SYSTEM)
                l->kept[l->n_kept++] = at;
    }
    return l->kept != NULL;
}

static bool set_head_ids(const ebb_chat *c, ebb_node *note, const ebb_prompt *p, const slide *s)
{
    size_t n = s->n_head - (s->cut - s->n_sinks);
    int32_t *ids = malloc(n * sizeof *ids);
    bool ok = ids != NULL;

    if (ok) {
        memcpy(ids, p->ids, s->n_sinks * sizeof *ids);
        memcpy(ids + s->n_sinks, p->ids + s->cut, (s->n_head - s->cut) * sizeof *ids);
        ok = ebb_node_set_ids(note, ids, n, c->info->fingerprint);
    }
    free(ids);
    return ok;
}

static bool write_slide_note(ebb_node *note, const slide *s, size_t n_all)
{
    char text[400];
    size_t n = s->cut - s->n_sinks;

    snprintf(text, sizeof text, "The context slides: %zu tokens behind the first %zu are left out, the last %zu stay. "
                                "The model may misread what is cut in the middle, and no longer knows what went. All "
                                "of it stays here, in /tree and in /search.",
             n, s->n_sinks, n_all - s->cut);
    return ebb_node_set_text(note, text, strlen(text));
}

/* The path with a note, and its prompt in *now. */
static ebb_status add_slide(ebb_chat *c, const ebb_prompt *old, const ebb_context_view *v, const slide *s,
                            ebb_overflow_next next, ebb_prompt *now, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *note;
    ebb_truncation l = { .how = EBB_OVERFLOW_SLIDE, .first = find_last_question(c),
                         .n_tokens = (uint32_t)(s->cut - s->n_sinks) };

    if (!keep_messages(c, v, old, s, &l))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    note = ebb_overflow_add_note(c, EBB_OVERFLOW_SLIDE, next, "");
    if (!note) {
        free(l.kept);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    }
    note->m.truncation = l;
    if (!set_head_ids(c, note, old, s) || !write_slide_note(note, s, old->n_ids) ||
        !ebb_overflow_move_below(c, note, next >= EBB_NEXT_CONTINUE ? leaf : NULL))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    return ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, now, err);
}

/* The tokens are known, no message is to be kept whole, and enough can go. */
static bool can_slide(const ebb_chat *c, const ebb_prompt *p, const ebb_context_view *v, slide *s)
{
    uint32_t first = find_last_question(c);

    return p->ids && c->backend->ops->n_ctx(c->backend) > 0 && first > 0 && !has_pins(v) &&
           choose_slide(c, v, p, c->tree.path[first], s);
}

ebb_status ebb_overflow_slide(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, bool *slid, ebb_error *err)
{
    ebb_node *leaf = ebb_tree_leaf(&c->tree), *before = ebb_context_view_note(c->tree.path, c->tree.n_path);
    ebb_cache_salt cache_salt = ebb_chat_cache_salt(before);
    size_t n_nodes = c->tree.n_nodes;
    ebb_context_view v;
    ebb_prompt now = { 0 };
    slide s;
    ebb_status st = ebb_context_view_make(c->tree.path, c->tree.n_path, NULL, &v, err);

    *slid = false;
    if (st != EBB_OK)
        return st;
    if (can_slide(c, p, &v, &s)) {
        st = add_slide(c, p, &v, &s, next, &now, err);
        *slid = st == EBB_OK && ebb_overflow_fits(c, now.n_ids);
        if (!*slid) {
            ebb_prompt_fini(&now);
            st = ebb_overflow_undo(c, n_nodes, leaf, st, err);
        }
    }
    ebb_context_view_fini(&v);
    if (*slid)
        ebb_overflow_take_prompt(c, p, &now, &cache_salt);
    return st;
}
