/* Asking the better file: its cost, and one answer (quality.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/plan_text.h"
#include "turn/quality.h"

/* Before the better file answers: its name, its speed, and how long it reads the conversation. */
static void say_price(ebb_chat *c, const ebb_better_model *better, const char *when)
{
    const ebb_plan *p = &better->plan;
    char size[16], speed[16], with[56] = "";

    if (p->draft_bytes > 0 && p->draft_length > 0)
        snprintf(with, sizeof with, ", without this file's draft tokens %.16s",
                 ebb_speed_text(p->predicted_decode_tok_s, speed));
    ebb_chat_notice(c, "%s %s of %s (%s, tier %s): about %s tok/s%s; up to %.0f s to read this conversation, unless it "
                       "has read it before",
                    better->quantization, when, c->info->name, ebb_size_text(better->n_bytes, size),
                    ebb_tier_name(p->tier),
                    ebb_speed_text(with[0] ? p->draft_tok_s : p->predicted_decode_tok_s, speed), with,
                    better->first_token_s);
}

static ebb_status find_better(ebb_chat *c, ebb_better_model *better, ebb_error *err)
{
    ebb_engine_opts opts = c->opening.opts;
    ebb_status st = ebb_chat_need_ids(c, "what it answers with is the server's choice", err);

    if (st == EBB_OK)
        st = ebb_chat_check_idle(c, err);
    if (st == EBB_OK && (c->turn.state != EBB_TURN_IDLE || !c->ops.better))
        st = EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (st != EBB_OK)
        return st;
    opts.n_ctx = c->backend->ops->n_ctx(c->backend);     /* the conversation must fit its context, too */
    return c->ops.better(c->ops.arg, c->backend, c->quality.named, &opts, (uint32_t)ebb_chat_expect_tokens(c), better,
                         err);
}

ebb_status ebb_chat_price_better(ebb_chat *c, ebb_error *err)
{
    ebb_better_model better = { 0 };
    ebb_status st = find_better(c, &better, err);

    if (st == EBB_OK)
        say_price(c, &better, "would answer, the better file");
    free(better.path);
    return st;
}

/* The options of the everyday file are kept, for the way back. */
static ebb_status keep_opening(ebb_chat *c, ebb_error *err)
{
    ebb_quality *q = &c->quality;
    char *path, *draft = NULL;
    ebb_status st = ebb_chat_model_path(c, &path, err);  /* without it there would be no way back */

    if (st != EBB_OK)
        return st;
    draft = c->opening.opts.no_speculation ? NULL : strdup(path);
    if (!draft && !c->opening.opts.no_speculation) {
        free(path);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the model's path");
    }
    free(q->everyday);
    q->everyday = path;
    q->draft_path = c->opening.draft_path;
    q->draft_is_optional = c->opening.draft_is_optional;
    q->is_chosen = c->opening.is_chosen;
    q->n_ctx = c->opening.opts.n_ctx;
    c->opening.opts.n_ctx = c->backend->ops->n_ctx(c->backend);
    c->opening.draft_path = draft;
    c->opening.draft_is_optional = true;
    return EBB_OK;
}

static ebb_status open_better(ebb_chat *c, const ebb_better_model *better, ebb_error *err)
{
    ebb_status st = keep_opening(c, err);

    if (st != EBB_OK)
        return st;
    ebb_quality_set_pair(c, better);
    snprintf(c->quality.quantization, sizeof c->quality.quantization, "%s", better->quantization);
    c->quality.is_open = true;
    st = ebb_chat_open_model(c, better->path, err);
    c->opening.is_chosen = false;                /* the next ebb begins with the everyday file */
    return st;
}

ebb_status ebb_chat_answer_better(ebb_chat *c, const char *text, size_t n, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_better_model better = { 0 };
    ebb_status st = find_better(c, &better, err);

    if (st == EBB_OK && n == 0 && (!leaf || leaf->m.role == EBB_ROLE_SYSTEM))
        st = EBB_FAIL(err, EBB_USAGE, "there is no question yet; /best TEXT asks one");
    if (st == EBB_OK) {
        say_price(c, &better, "answers this one, the better file");
        st = open_better(c, &better, err);
    }
    if (st == EBB_OK)
        st = n ? ebb_chat_send(c, text, n, err) : ebb_chat_retry(c, err);
    if (st != EBB_OK && c->quality.is_open)
        ebb_quality_go_back(c);
    free(better.path);
    return st;
}
