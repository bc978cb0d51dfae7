/* What the model gets of a path: the messages that no note leaves out, and their ids. */
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"
#include "models/models.h"

static ebb_status fail_no_prompt_memory(ebb_error *err)
{
    return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
}

/* Ids count only if they are of the open model: those of another one mean other texts. */
bool ebb_chat_has_ids(const ebb_chat *c, const ebb_message *m)
{
    return m->n_ids && !ebb_chat_facts(c) && ebb_quality_shares_ids(c, m->ids_model);
}

/* A note may come from an edited or imported database: its figures are checked against this path. */
static bool is_truncation_note(ebb_node *const *path, size_t at)
{
    const ebb_truncation *l = &path[at]->m.truncation;

    return path[at]->m.role == EBB_ROLE_NOTE && l->first > 0 && l->first < at &&
           path[l->first]->m.role == EBB_ROLE_USER;
}

ebb_node *ebb_context_view_note(ebb_node *const *path, size_t n_path)
{
    for (size_t i = n_path; i > 0; i--)
        if (is_truncation_note(path, i - 1))
            return path[i - 1];
    return NULL;
}

/* -- The list --------------------------------------------------------------------------- */

static void view_add(ebb_context_view *v, const ebb_message *m, ebb_node *node)
{
    v->messages[v->n] = *m;
    v->nodes[v->n] = node;
    v->list[v->n] = &v->messages[v->n];
    v->n++;
}

/* The last summary: later notes leave out what came after it.  NULL: there is none. */
static const ebb_message *find_summary(ebb_node *const *path, size_t n_path)
{
    for (size_t i = n_path; i > 0; i--)
        if (is_truncation_note(path, i - 1) && path[i - 1]->m.truncation.how == EBB_OVERFLOW_COMPACT)
            return &path[i - 1]->m;
    return NULL;
}

/* The system message, with the summary if there is one. */
static bool view_add_system(ebb_context_view *v, ebb_node *root, const ebb_message *sum)
{
    bool has_root = root && root->m.role == EBB_ROLE_SYSTEM;
    ebb_message m = has_root ? root->m : (ebb_message){ .role = EBB_ROLE_SYSTEM };

    if (!sum) {
        if (has_root)
            view_add(v, &m, root);
        return true;
    }
    if (has_root && !ebb_buf_addf(&v->system, "%s\n\n", m.text))
        return false;
    if (!ebb_buf_add(&v->system, sum->text, sum->n_text))
        return false;
    m.text = v->system.data;
    m.n_text = v->system.len;
    view_add(v, &m, has_root ? root : NULL);
    return true;
}

/* The messages that the note covers have the note's ids, all of them in the last message. */
static void assign_head_ids(ebb_context_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        v->messages[i].n_ids = 0;
    v->n_head = v->n;
    v->messages[v->n - 1].ids = v->note->m.ids;
    v->messages[v->n - 1].n_ids = v->note->m.n_ids;
    memcpy(v->messages[v->n - 1].ids_model, v->note->m.ids_model, sizeof v->note->m.ids_model);
}

ebb_status ebb_context_view_make(ebb_node *const *path, size_t n_path, const ebb_message *more, ebb_context_view *v,
                                 ebb_error *err)
{
    ebb_node *root = n_path ? path[0] : NULL;
    const ebb_truncation *l;
    size_t from;

    *v = (ebb_context_view){ .note = ebb_context_view_note(path, n_path) };
    v->messages = calloc(n_path + 2, sizeof *v->messages);
    v->nodes = calloc(n_path + 2, sizeof *v->nodes);
    v->list = calloc(n_path + 2, sizeof *v->list);
    if (!v->messages || !v->nodes || !v->list ||
        !view_add_system(v, root, find_summary(path, n_path))) {
        ebb_context_view_fini(v);
        return fail_no_prompt_memory(err);
    }
    l = v->note ? &v->note->m.truncation : NULL;
    for (uint32_t i = 0; l && i < l->n_kept; i++)
        if (path[l->kept[i]]->m.role == EBB_ROLE_USER || path[l->kept[i]]->m.role == EBB_ROLE_ASSISTANT)
            view_add(v, &path[l->kept[i]]->m, path[l->kept[i]]);
    from = l ? l->first : root && root->m.role == EBB_ROLE_SYSTEM;
    for (size_t i = from; i < n_path; i++) {
        if (path[i] == v->note)
            v->n_above = v->n;
        if (path[i]->m.role == EBB_ROLE_NOTE)
            continue;
        view_add(v, &path[i]->m, path[i]);
        if (l && i == l->first)
            assign_head_ids(v);
    }
    if (more)
        view_add(v, more, NULL);
    return EBB_OK;
}

bool ebb_context_view_is_last_turn(const char *model_path)
{
    return model_path && strcmp(model_path, EBB_MODELS_GUIDE) == 0;
}

bool ebb_context_view_takes_last_turn(const ebb_chat *c)
{
    return ebb_context_view_is_last_turn(ebb_chat_engine_is_found(c) ? c->remote.here_model
                                                                     : c->info ? c->info->path : NULL);
}

ebb_status ebb_context_view_make_last_turn(ebb_node *const *path, size_t n_path, const ebb_message *more,
                                           ebb_context_view *v, ebb_error *err)
{
    ebb_node *root = n_path && path[0]->m.role == EBB_ROLE_SYSTEM ? path[0] : NULL;
    size_t from = n_path;

    while (!more && from > 0 && path[from - 1]->m.role != EBB_ROLE_USER)
        from--;
    from -= from > 0 && !more;
    *v = (ebb_context_view){ 0 };
    v->messages = calloc(n_path + 2, sizeof *v->messages);
    v->nodes = calloc(n_path + 2, sizeof *v->nodes);
    v->list = calloc(n_path + 2, sizeof *v->list);
    if (!v->messages || !v->nodes || !v->list) {
        ebb_context_view_fini(v);
        return fail_no_prompt_memory(err);
    }
    if (root && from > 0)
        view_add(v, &root->m, root);
    for (size_t i = from; i < n_path; i++)
        if (path[i]->m.role != EBB_ROLE_NOTE)
            view_add(v, &path[i]->m, path[i]);
    if (more)
        view_add(v, more, NULL);
    return EBB_OK;
}

ebb_status ebb_context_view_for_model(const ebb_chat *c, ebb_node *const *path, size_t n_path, const ebb_message *more,
                                      ebb_context_view *v, ebb_error *err)
{
    return (ebb_context_view_takes_last_turn(c) ? ebb_context_view_make_last_turn : ebb_context_view_make)
           (path, n_path, more, v, err);
}

void ebb_context_view_fini(ebb_context_view *v)
{
    free(v->messages);
    free(v->nodes);
    free(v->list);
    ebb_buf_fini(&v->system);
    *v = (ebb_context_view){ 0 };
}

/* -- Prompts -------------------------------------------------------------------------------- */

static ebb_prompt_opts prompt_opts(const ebb_chat *c)
{
    return (ebb_prompt_opts){ .now_ms = c->facts.pinned_ms, .thinking = ebb_form_choice_thinking(c),
                              .stop = c->stop, .stop_arg = c->stop_arg };
}

ebb_status ebb_context_view_prompt(ebb_chat *c, const ebb_context_view *v, size_t n, ebb_prompt *out, ebb_error *err)
{
    ebb_prompt_opts opts = prompt_opts(c);

    for (size_t i = 0; i < n; i++)
        if (!ebb_chat_has_ids(c, v->list[i]))
            v->messages[i].n_ids = 0;
    if (ebb_chat_facts(c))
        return ebb_chat_prompt_messages(c, v, n, out, err);
    return c->ops.prompt(c->ops.arg, c->prompter, v->list, n, &opts, out, err);
}

ebb_status ebb_chat_prompt(ebb_chat *c, ebb_node *const *path, size_t n_path, const ebb_message *more, ebb_prompt *out,
                           ebb_error *err)
{
    ebb_context_view v;
    ebb_status st = ebb_context_view_for_model(c, path, n_path, more, &v, err);

    *out = (ebb_prompt){ 0 };
    if (st == EBB_OK)
        st = ebb_context_view_prompt(c, &v, v.n, out, err);
    ebb_context_view_fini(&v);
    return st;
}

bool ebb_chat_count_front(const ebb_chat *c, const ebb_message *first, const int32_t *ids, size_t n, size_t *count)
{
    char question[] = "?";
    bool is_system = first->role == EBB_ROLE_SYSTEM;
    ebb_message list[] = { { .role = EBB_ROLE_SYSTEM, .text = first->text, .n_text = first->n_text },
                           { .role = EBB_ROLE_USER, .text = question, .n_text = sizeof question - 1 } };
    const ebb_message *const messages[] = { &list[0], &list[1] };
    ebb_prompt_opts opts = prompt_opts(c);
    ebb_prompt p = { 0 };
    bool is_known;

    *count = 0;
    opts.counts_system = true;
    is_known = !ebb_chat_facts(c) && c->ops.prompt(c->ops.arg, c->prompter, messages + !is_system, 1 + is_system, &opts,
                                                   &p, NULL) == EBB_OK && !p.has_open_system;
    if (is_known && p.n_system > 0 && p.n_system <= n && memcmp(p.ids, ids, p.n_system * sizeof *ids) == 0)
        *count = p.n_system;
    ebb_prompt_fini(&p);
    return is_known && (*count > 0 || !is_system);
}

size_t ebb_chat_count_system(const ebb_chat *c, const ebb_message *system, const int32_t *ids, size_t n)
{
    size_t count = 0;

    return system->role == EBB_ROLE_SYSTEM && ebb_chat_count_front(c, system, ids, n, &count) ? count : 0;
}

static bool record_node_ids(const ebb_chat *c, ebb_node *node, const int32_t *ids, size_t n)
{
    bool same = ebb_chat_has_ids(c, &node->m) ? n == node->m.n_ids &&
                memcmp(node->m.ids, ids, n * sizeof *ids) == 0 : n == 0;

    return same || ebb_node_set_ids(node, ids, n, c->info->fingerprint);
}

bool ebb_chat_record_ids(ebb_chat *c, const ebb_prompt *p)
{
    ebb_context_view v;
    size_t at = 0, head = 0;
    bool ok;

    if (p->messages)                        /* ids of a model that was here before stay, and count when it comes back */
        return true;
    ok = ebb_context_view_for_model(c, c->tree.path, c->tree.n_path, NULL, &v, NULL) == EBB_OK;

    for (size_t i = 0; ok && i < v.n; i++) {
        at += p->n_ids_of[i];
        head = i < v.n_head ? at : head;
        if (i >= v.n_head && v.nodes[i])
            ok = record_node_ids(c, v.nodes[i], p->ids + at - p->n_ids_of[i], p->n_ids_of[i]);
    }
    if (ok && v.note)
        ok = record_node_ids(c, v.note, p->ids, head);
    ebb_context_view_fini(&v);
    return ok;
}

const ebb_message *ebb_chat_truncation_note(const ebb_chat *c)
{
    const ebb_node *note = ebb_context_view_note(c->tree.path, c->tree.n_path);

    return note ? &note->m : NULL;
}

uint32_t ebb_chat_n_tokens(const ebb_chat *c)
{
    ebb_context_view v;
    size_t n = 0;

    if (ebb_context_view_for_model(c, c->tree.path, c->tree.n_path, NULL, &v, NULL) != EBB_OK)
        return 0;
    if (ebb_chat_facts(c)) {
        bool is_about;
        n = ebb_chat_estimate(c, &v, v.n, &is_about);
    } else {
        for (size_t i = 0; i < v.n; i++)
            n += ebb_chat_has_ids(c, v.list[i]) ? v.list[i]->n_ids : 0;
    }
    ebb_context_view_fini(&v);
    return (uint32_t)n;
}

ebb_cache_salt ebb_chat_cache_salt(const ebb_node *note)
{
    const ebb_truncation *l = note ? &note->m.truncation : NULL;
    ebb_cache_salt cache_salt = { 0 };

    if (l && l->has_cache_salt) {
        cache_salt = (ebb_cache_salt){ .is_on = true, .pos = l->salt_pos };
        memcpy(cache_salt.salt, l->salt, sizeof cache_salt.salt);
    }
    return cache_salt;
}

void ebb_chat_record_cache_salt(ebb_chat *c, const ebb_cache_salt *cache_salt)
{
    ebb_node *note = ebb_context_view_note(c->tree.path, c->tree.n_path);
    ebb_truncation *l = note ? &note->m.truncation : NULL;

    if (!l || !cache_salt->is_on ||
        (l->has_cache_salt && memcmp(l->salt, cache_salt->salt, sizeof cache_salt->salt) == 0))
        return;
    l->has_cache_salt = true;
    l->salt_pos = cache_salt->pos;
    memcpy(l->salt, cache_salt->salt, sizeof cache_salt->salt);
    note->is_dirty = true;
}
