/* A context beyond what the model was trained for (overflow.h). */
#include <stdio.h>

#include "conversation/chat_priv.h"
#include "models/plan_text.h"

uint32_t ebb_overflow_trained(const ebb_chat *c)
{
    const ebb_model *m = c->backend->ops->model(c->backend);

    if (ebb_chat_facts(c) || !c->info)
        return 0;
    return m ? ebb_plan_trained_ctx(m) : c->info->n_ctx_train;
}

void ebb_overflow_warn_untrained(ebb_chat *c, size_t n_tokens)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend), trained = ebb_overflow_trained(c);
    char line[160];

    if (c->overflow.is_untrained_said || trained == 0 || n_ctx <= trained || n_tokens <= trained)
        return;
    snprintf(line, sizeof line, "the context holds %u tokens, the model was trained for %u: beyond that its answers "
                                "fall apart", n_ctx, trained);
    ebb_chat_warn(c, line);
    c->overflow.is_untrained_said = true;
}
