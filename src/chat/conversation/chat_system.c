/* The system prompt at the root of a path (chat_session.h). */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"

/* What a note leaves out, where the path is `by` messages longer in front. */
static bool copy_left_out(const ebb_truncation *from, int by, ebb_truncation *to)
{
    *to = *from;
    to->has_cache_salt = false;
    to->first = from->first ? (uint32_t)((int)from->first + by) : 0;
    to->kept = from->n_kept ? calloc(from->n_kept, sizeof *to->kept) : NULL;
    for (uint32_t i = 0; to->kept && i < from->n_kept; i++)
        to->kept[i] = (uint32_t)((int)from->kept[i] + by);
    return to->kept || !from->n_kept;
}

/* A copy of `m` below parent, without ids: they are of a prompt with another beginning. */
static ebb_node *copy_below(ebb_chat *c, ebb_node *parent, const ebb_message *m, int by)
{
    ebb_node *node = ebb_tree_add(&c->tree, parent, m->role, m->text, m->n_text);

    if (!node)
        return NULL;
    if (m->role == EBB_ROLE_NOTE && !copy_left_out(&m->truncation, by, &node->m.truncation))
        return NULL;
    if (!ebb_message_copy_begin(&node->m, m))
        return NULL;
    node->m.finish = m->finish;
    node->m.pinned = m->pinned;
    node->m.created_ms = m->created_ms;
    node->m.turn_stats = m->turn_stats;
    node->m.model = m->model ? strdup(m->model) : NULL;
    node->m.engine = m->engine ? strdup(m->engine) : NULL;
    return node;
}

/* Tokens that the model has of the path from `first` on, behind the system prompt, which is in the first ids. */
static size_t count_from(const ebb_chat *c, size_t first)
{
    bool is_remote = ebb_chat_facts(c) != NULL;
    size_t n = 0, system = 0;

    for (size_t i = first; (is_remote || c->info) && i < c->tree.n_path; i++) {
        const ebb_message *m = &c->tree.path[i]->m;
        if (!is_remote && !ebb_chat_has_ids(c, m))
            continue;                            /* in later ids, or never computed */
        if (n == 0)
            system = ebb_chat_count_system(c, &c->tree.path[0]->m, m->ids, m->n_ids);
        n += ebb_chat_tokens_of(c, m);
    }
    return n - system;
}

/* Copies of the path from `first` on, below a new root with this text. */
static ebb_status copy_path_below(ebb_chat *c, const char *text, size_t first, ebb_error *err)
{
    size_t n_before = c->tree.n_nodes, n_tokens = count_from(c, first);
    ebb_node *node = text ? ebb_tree_add(&c->tree, NULL, EBB_ROLE_SYSTEM, text, strlen(text)) : NULL;
    bool ok = !text || node;

    for (size_t i = first; ok && i < c->tree.n_path; i++) {
        node = copy_below(c, node, &c->tree.path[i]->m, (text != NULL) - (int)first);
        ok = node != NULL;
    }
    if (!ok || !ebb_tree_set_leaf(&c->tree, node)) {
        while (c->tree.n_nodes > n_before)
            ebb_tree_drop_newest(&c->tree);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
    }
    if (n_tokens)
        ebb_chat_notice(c, "the beginning has changed: with the next answer, %zu tokens after it will be computed "
                           "again", n_tokens);
    return EBB_OK;
}

static bool has_system_root(const ebb_chat *c)
{
    return c->tree.n_path && c->tree.path[0]->m.role == EBB_ROLE_SYSTEM;
}

/* The text of the path's system prompt; "": there is none. */
static const char *system_now(const ebb_chat *c)
{
    return has_system_root(c) ? c->tree.path[0]->m.text : "";
}

ebb_status ebb_chat_replace_system(ebb_chat *c, const char *text, ebb_error *err)
{
    const char *want = text ? text : "";

    if (strcmp(system_now(c), want) == 0)
        return EBB_OK;
    return copy_path_below(c, *want ? want : NULL, has_system_root(c), err);
}

ebb_status ebb_chat_begin_system(ebb_chat *c, ebb_error *err)
{
    const char *now = system_now(c);

    if (c->tree.n_nodes == 0)
        return ebb_chat_replace_system(c, c->system, err);
    if (c->system_given && strcmp(now, c->system) != 0)
        ebb_chat_warn(c, *now ? "this session keeps its own system prompt: --system is for a new one; /system in the "
                                "chat changes it"
                              : "this session has no system prompt: --system is for a new one; /system in the chat "
                                "sets one");
    return EBB_OK;
}

const char *ebb_chat_advised_system(const ebb_chat *c)
{
    return c->advice.system;
}

ebb_status ebb_chat_set_system(ebb_chat *c, const char *text, ebb_error *err)
{
    char *copy = text ? strdup(text) : NULL;
    ebb_status st = ebb_chat_check_idle(c, err);

    if (st == EBB_OK && text && !copy)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for another message");
    if (st == EBB_OK)
        st = ebb_chat_replace_system(c, text, err);
    if (st != EBB_OK) {
        free(copy);
        return st;
    }
    free(c->system);
    c->system = copy;
    ebb_chat_save_changed_path(c);
    return EBB_OK;
}
