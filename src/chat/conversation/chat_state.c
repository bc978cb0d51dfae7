/* The state of a chat, for front ends (chat.h). */
#include <string.h>

#include "conversation/chat_priv.h"
#include "remote/engines_file.h"

const ebb_backend_facts *ebb_chat_facts(const ebb_chat *c)
{
    return c->backend && c->backend->ops->facts ? c->backend->ops->facts(c->backend) : NULL;
}

const char *ebb_chat_engine(const ebb_chat *c)
{
    return c->remote.name;
}

bool ebb_chat_is_shared(const ebb_chat *c)
{
    return c->remote.name && strncmp(c->remote.name, EBB_SHARED_PREFIX, strlen(EBB_SHARED_PREFIX)) == 0;
}

bool ebb_chat_engine_is_found(const ebb_chat *c)
{
    return c->remote.name && (c->remote.is_found || ebb_chat_is_shared(c));
}

uint64_t ebb_chat_seed(const ebb_chat *c)
{
    return c->turn.seed;
}

bool ebb_chat_is_ready(const ebb_chat *c)
{
    return c->info != NULL;
}

bool ebb_chat_awaits_overflow_choice(const ebb_chat *c)
{
    return c->overflow.asked_at && c->overflow.asked_at == ebb_tree_leaf(&c->tree);
}

bool ebb_chat_awaits_report(const ebb_chat *c)
{
    return c->awaits_budget || c->awaits_plan;
}

bool ebb_chat_is_busy(const ebb_chat *c)
{
    return c->turn.state == EBB_TURN_WAITING || c->turn.answer || c->follow.session || c->job;
}

ebb_status ebb_chat_check_idle(const ebb_chat *c, ebb_error *err)
{
    if (!ebb_chat_is_busy(c))
        return EBB_OK;
    if (c->turn.state == EBB_TURN_STOPPING || c->turn.state == EBB_TURN_STOPPING_SUMMARY)
        return EBB_FAIL(err, EBB_BUSY, "the answer is still being stopped: the current step has to end first");
    if (c->job)
        return EBB_FAIL(err, EBB_BUSY, "a file is being read: stop that first");
    return EBB_FAIL(err, EBB_BUSY, "an answer is under way: stop it first");
}

ebb_status ebb_chat_check_own(const ebb_chat *c, ebb_error *err)
{
    if (!c->follow.session)
        return EBB_OK;
    return EBB_FAIL(err, EBB_BUSY, "process %ld still writes in this session, and its next save would undo that: wait "
                                   "for the end of its answer, or stop it",
                    ebb_chat_writer_pid(c));
}

const char *ebb_chat_engine_word(const ebb_chat *c)
{
    return ebb_chat_is_shared(c) ? "the ebb serve that shares this model" : c->remote.name;
}

ebb_status ebb_chat_need_ids(const ebb_chat *c, const char *what, ebb_error *err)
{
    const char *name = ebb_chat_engine_word(c);

    if (!name)
        return EBB_OK;
    return EBB_FAIL(err, EBB_UNSUPPORTED,
                    "%.80s cannot: %s; an engine in this process does (/engine " EBB_ENGINE_HERE ")", name, what);
}

const ebb_model_info *ebb_chat_model(const ebb_chat *c)
{
    return c->info;
}

const char *ebb_chat_session_name(const ebb_chat *c)
{
    const char *label = ebb_session_facts_label(&c->facts);

    return *label ? label : "new session";
}

const char *ebb_chat_session_title(const ebb_chat *c)
{
    return c->facts.title;
}

bool ebb_chat_is_newest_session(const ebb_chat *c)
{
    int64_t last = 0;

    return c->store && ebb_store_last(c->store, &last, NULL) == EBB_OK && last == ebb_chat_session_id(c);
}

void ebb_session_key(int64_t id, int64_t created_ms, char out[EBB_SESSION_KEY_BYTES])
{
    snprintf(out, EBB_SESSION_KEY_BYTES, "%lld\t%lld", (long long)id, (long long)created_ms);
}

void ebb_chat_session_key(const ebb_chat *c, char out[EBB_SESSION_KEY_BYTES])
{
    *out = '\0';
    if (c->facts.id)
        ebb_session_key(c->facts.id, c->facts.created_ms, out);
}

int64_t ebb_chat_session_id(const ebb_chat *c)
{
    return c->facts.id;
}

void ebb_chat_session_word(const ebb_chat *c, char out[static EBB_SESSION_WORD])
{
    if (c->store)
        ebb_store_word(c->store, c->facts.id, out);
    else
        snprintf(out, EBB_SESSION_WORD, "%lld", (long long)c->facts.id);
}

bool ebb_chat_is_saved(const ebb_chat *c)
{
    return c->store && strcmp(ebb_store_path(c->store), ":memory:") != 0 && !c->saving.is_unsaved &&
           c->facts.id > 0 && !c->facts.is_deleted && ebb_chat_n_messages(c) > 0;
}

void ebb_chat_stats(const ebb_chat *c, ebb_stats *out)
{
    *out = (ebb_stats){ 0 };
    if (c->backend)
        c->backend->ops->stats(c->backend, out);
    if (c->turn.answer && out->phase == EBB_PHASE_IDLE)
        out->phase = EBB_PHASE_PREFILL;          /* it has not begun yet, or its last words have not come here */
    if ((c->turn.is_path_changed && c->turn.state == EBB_TURN_IDLE) || ebb_chat_facts(c))
        out->n_ctx_used = ebb_chat_n_tokens(c);
}

/* Is a part of the conversation's token count an estimate, not counted by its server or model? */
static bool is_about(const ebb_chat *c)
{
    ebb_context_view v;
    bool about = true;

    if (ebb_context_view_for_model(c, c->tree.path, c->tree.n_path, NULL, &v, NULL) == EBB_OK) {
        ebb_chat_estimate(c, &v, v.n, &about);
        ebb_context_view_fini(&v);
    }
    return about;
}

bool ebb_chat_remote(const ebb_chat *c, ebb_remote_figures *out)
{
    if (!c->backend || !c->backend->ops->figures)
        return false;
    c->backend->ops->figures(c->backend, out);
    out->is_about = is_about(c);
    return true;
}

uint32_t ebb_chat_generation(const ebb_chat *c)
{
    return c->generation;
}

size_t ebb_chat_n_messages(const ebb_chat *c)
{
    return c->tree.n_path;
}

const ebb_message *ebb_chat_message(const ebb_chat *c, size_t i)
{
    return i < c->tree.n_path ? &c->tree.path[i]->m : NULL;
}
