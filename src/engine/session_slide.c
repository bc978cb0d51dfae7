/* Sinks and a sliding window (ebb/session.h).
 *
 * All ids are [sinks | gone | rest]; the timeline is [sinks | rest].  What goes does so in steps of
 * a quarter of the window. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine_impl.h"

#define WINDOW_MIN 64u

static uint32_t limit(const ebb_session *s)
{
    return s->slide.n_sink + s->slide.n_window;
}

static void forget_all(ebb_slide *w)
{
    w->n_gone = 0;
    memset(w->gone, 0, sizeof w->gone);
}

ebb_status ebb_session_slide(ebb_session *s, uint32_t n_sink, uint32_t n_window, ebb_error *err)
{
    uint32_t n_ctx = s->engine->plan.n_ctx;

    if (n_window > 0 && (n_window < WINDOW_MIN || n_window > n_ctx || n_sink > n_ctx - n_window))
        return EBB_FAIL(err, EBB_USAGE, "a window of %u behind %u tokens: at least %u, in a context of %u", n_window, n_sink,
                        WINDOW_MIN, n_ctx);
    if (n_window > 0 && !s->slide.held && !(s->slide.held = calloc(n_ctx, sizeof *s->slide.held)))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a window of %u tokens", n_ctx);
    if (n_sink != s->slide.n_sink || n_window != s->slide.n_window)
        forget_all(&s->slide);
    s->slide.n_sink = n_sink;
    s->slide.n_window = n_window;
    s->slide.n_step = n_window / 4;
    return EBB_OK;
}

size_t ebb_session_n_forgotten(const ebb_session *s)
{
    return s->slide.n_gone;
}

/* -- Which ids are where -------------------------------------------------------------- */

static void hash_gone(const ebb_slide *w, const ebb_token *ids, size_t from, size_t to, uint8_t gone[16])
{
    for (size_t at = from; at < to; at += w->n_step)
        ebb_hash128(ids + w->n_sink + at, w->n_step * sizeof *ids, gone, gone);
}

/* What was forgotten is what stands there in ids. */
static bool goes_on(const ebb_slide *w, const ebb_token *ids, size_t n)
{
    uint8_t gone[16] = { 0 };

    if (n < w->n_sink + w->n_gone)
        return false;
    hash_gone(w, ids, 0, w->n_gone, gone);
    return memcmp(gone, w->gone, sizeof gone) == 0;
}

/* Ids that must go before the rest of the n fits. */
static size_t n_to_go(const ebb_session *s, size_t n, size_t n_gone)
{
    size_t n_held = n - n_gone, step = s->slide.n_step;

    return n_held > limit(s) ? (n_held - limit(s) + step - 1) / step * step : 0;
}

/* slide.held = ids without those that are gone; returns how many. */
static size_t hold(const ebb_session *s, const ebb_token *ids, size_t n, size_t n_gone)
{
    const ebb_slide *w = &s->slide;
    size_t n_sink = n < w->n_sink ? n : w->n_sink, n_rest = n - n_sink - n_gone;

    if (n > 0)                                   /* else ids may be NULL */
        memcpy(w->held, ids, n_sink * sizeof *ids);
    if (n_rest > 0)
        memcpy(w->held + n_sink, ids + n_sink + n_gone, n_rest * sizeof *ids);
    return n_sink + n_rest;
}

/* Positions of the timeline that are those of ids without n_gone. */
static uint32_t n_standing(const ebb_session *s, const ebb_token *ids, size_t n, size_t n_gone)
{
    uint32_t i = 0;

    while (i < ebb_session_length(s) && i < n - n_gone && s->ids[i] == ids[i < s->slide.n_sink ? i : i + n_gone])
        i++;
    return i;
}

/* Of n_go ids that shall go, those that stand and can be forgotten where they are. */
static uint32_t n_to_forget(const ebb_session *s, uint32_t n_stand, size_t n_go)
{
    uint32_t n = n_stand > s->slide.n_sink ? n_stand - s->slide.n_sink : 0;

    return ebb_session_cannot_forget(s) ? 0 : n < n_go ? n : (uint32_t)n_go;
}

/* -- Sliding ------------------------------------------------------------------------------ */

static void say(ebb_session *s, size_t n, bool is_computed)
{
    ebb_stats_decision(s->engine, "forgot %zu tokens behind the first %u, %zu in all%s", n, s->slide.n_sink, s->slide.n_gone,
                       is_computed ? "; the others are computed again" : "");
}

static ebb_status slide(ebb_session *s, const ebb_token *ids, size_t n, size_t n_go, ebb_error *err)
{
    ebb_slide *w = &s->slide;
    uint32_t n_stand = n_standing(s, ids, n, w->n_gone), n_forget = n_to_forget(s, n_stand, n_go);
    ebb_status st = n_forget ? ebb_session_forget(s, w->n_sink, n_forget, err) : EBB_OK;

    if (st == EBB_UNSUPPORTED)
        n_forget = 0;
    else if (st != EBB_OK)
        return st;
    hash_gone(w, ids, w->n_gone, w->n_gone + n_go, w->gone);
    w->n_gone += n_go;
    say(s, n_go, n_forget == 0 && n_stand > w->n_sink);
    return EBB_OK;
}

ebb_status ebb_slide_sync(ebb_session *s, const ebb_token *ids, size_t n, ebb_receipt *receipt, ebb_error *err)
{
    size_t n_go;
    ebb_status st = EBB_OK;

    if (!goes_on(&s->slide, ids, n))
        forget_all(&s->slide);
    n_go = n_to_go(s, n, s->slide.n_gone);
    if (n_go > 0)
        st = slide(s, ids, n, n_go, err);
    if (st != EBB_OK)
        return st;
    n = hold(s, ids, n, s->slide.n_gone);
    return ebb_session_sync_held(s, s->slide.held, n, receipt, err);
}

size_t ebb_slide_common(const ebb_session *s, const ebb_token *ids, size_t n)
{
    size_t n_gone = goes_on(&s->slide, ids, n) ? s->slide.n_gone : 0, n_go = n_to_go(s, n, n_gone);
    uint32_t n_stand = n_standing(s, ids, n, n_gone), n_forget = n_to_forget(s, n_stand, n_go);

    if (n_forget > 0)                            /* what stands behind moves up */
        return n_gone + n_go + n_stand - n_forget;
    n_gone += n_go;
    return n_gone + ebb_prefix_common(s, s->slide.held, hold(s, ids, n, n_gone));
}

ebb_status ebb_slide_before_append(ebb_session *s, ebb_error *err)
{
    ebb_slide *w = &s->slide;
    uint8_t gone[16];
    ebb_status st;
    size_t n;

    if (s->table.n_pos < limit(s))
        return EBB_OK;
    n = hold(s, s->ids, s->table.n_pos, w->n_step);
    ebb_hash128(s->ids + w->n_sink, w->n_step * sizeof *s->ids, w->gone, gone);
    st = ebb_session_forget(s, w->n_sink, w->n_step, err);
    if (st != EBB_OK && st != EBB_UNSUPPORTED)
        return st;
    memcpy(w->gone, gone, sizeof gone);
    w->n_gone += w->n_step;
    say(s, w->n_step, st == EBB_UNSUPPORTED);
    return st == EBB_OK ? EBB_OK : ebb_session_sync_held(s, w->held, n, NULL, err);
}
