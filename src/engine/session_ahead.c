/* Guesses: what may come next is computed in the same pass (engine_impl.h). */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine_impl.h"

#define LONG_MATCH 8u            /* so much of the text that repeats itself is right more often than a draft model */

void ebb_ahead_init(ebb_session *s)
{
    const ebb_engine *e = s->engine;
    /* What a state has seen cannot be cut off again.  The rows of run.logits hold the guess and the token before it. */
    bool can = !e->opts.no_draft && e->net.state_bytes == 0;
    uint32_t n_cols = e->run.cap_logits < e->run.cap_cols ? e->run.cap_logits : e->run.cap_cols;

    ebb_drafter_init(&s->drafter, can ? n_cols - 1 : 0);
}

/* What the guess was worth is known now. */
static void learn(ebb_session *s, bool is_refuted)
{
    if (s->n_guessed > 0) {
        uint32_t n_right = s->n_guessed - s->n_ahead;

        if (s->is_drafted)
            ebb_helper_learn(s->engine, s->n_guessed, n_right, is_refuted);
        else
            ebb_drafter_learn(&s->drafter, s->n_guessed, n_right, s->pass_s);
        ebb_log("draft", "%u of %u guessed tokens were right", n_right, s->n_guessed);
    }
    s->n_guessed = 0;
}

void ebb_ahead_drop(ebb_session *s, bool is_refuted)
{
    uint32_t n = ebb_session_length(s);

    learn(s, is_refuted && s->n_ahead > 0);
    if (s->n_ahead > 0)
        ebb_kv_cut(s->engine->kv, &s->table, n);
    s->n_ahead = 0;
    if (s->engine->guesser == s)
        s->engine->guesser = NULL;
}

bool ebb_ahead_take(ebb_session *s, ebb_token id)
{
    const ebb_run *run = &s->engine->run;
    size_t n_vocab = run->net->n_vocab;

    if (s->n_ahead == 0 || s->engine->guesser != s || s->ids[ebb_session_length(s)] != id)
        return false;
    s->n_ahead--;
    memcpy(s->logits, run->logits + (s->n_guessed - s->n_ahead) * n_vocab, n_vocab * sizeof *s->logits);
    ebb_prefix_name_blocks(s);
    return true;
}

/* The logits behind id; those behind the guess stay in the run's rows. */
static void take_first(void *arg, uint32_t col, uint32_t n, const float *logits)
{
    ebb_session *s = arg;

    (void)col, (void)n;
    memcpy(s->logits, logits, s->engine->net.n_vocab * sizeof *s->logits);
}

/* At most as many tokens as may stand behind id.  What the text repeats at length costs nothing to find. */
static uint32_t guess(ebb_session *s, ebb_token id, ebb_token *out)
{
    uint32_t n = s->table.n_pos, most = s->engine->plan.n_ctx;
    uint32_t n_out, room = most - n - 1 < s->drafter.n_most ? most - n - 1 : s->drafter.n_most;

    s->ids[n] = id;                              /* not yet of the timeline, but what the guess is for */
    n_out = ebb_drafter_guess(&s->drafter, s->ids, n + 1, ebb_helper_is_here(s->engine) ? LONG_MATCH : 0, out, room);
    s->is_drafted = n_out == 0 && ebb_helper_is_here(s->engine);
    return s->is_drafted ? ebb_helper_guess(s, s->ids, n + 1, out, room) : n_out;
}

static ebb_status compute(ebb_session *s, const ebb_token *ids, uint32_t n_guessed, ebb_error *err)
{
    ebb_pass one = { .n_out = 1, .logits = s->logits };
    ebb_pass more = { .n_out = n_guessed + 1, .each = take_first, .arg = s };

    return ebb_session_extend(s, ids, n_guessed + 1, n_guessed, 0, n_guessed > 0 ? &more : &one, err);
}

ebb_status ebb_ahead_extend(ebb_session *s, ebb_token id, ebb_error *err)
{
    ebb_token ids[EBB_AHEAD_DRAFT + 1] = { id };
    uint32_t n = guess(s, id, ids + 1);
    double begin = ebb_clock_s();
    ebb_status st = compute(s, ids, n, err);

    if (st != EBB_OK)
        return st;
    s->has_logits = true;
    s->n_guessed = n;
    s->pass_s = ebb_clock_s() - begin;
    ebb_helper_learn_pass(s->engine, n + 1, s->pass_s);
    if (n > 0) {
        s->engine->guesser = s;
        ebb_stats_guess(s->engine, n);
    } else {
        ebb_drafter_learn(&s->drafter, 0, 0, s->pass_s);
    }
    return EBB_OK;
}
