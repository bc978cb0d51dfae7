/* The queues between the threads, which do not interpret what passes through: events of the backend, events for the
 * front end, a descriptor to wait on (chat_queues.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text.h"
#include "conversation/chat_priv.h"

/* Slots at first, and those that only what may not be lost takes. */
enum { FIRST_EVENTS = 64, RESERVED = EBB_BACKEND_MAX_ANSWERS + 4 };

static const char no_memory[] = "out of memory";

/* -- The descriptors ------------------------------------------------------------------ */

static bool watch_fd(ebb_chat *c, int fd)
{
    struct epoll_event ev = { .events = EPOLLIN };

    return fd >= 0 && epoll_ctl(c->queues.epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}

ebb_status ebb_chat_events_init(ebb_chat *c, ebb_error *err)
{
    c->queues.ui_events = calloc(FIRST_EVENTS, sizeof *c->queues.ui_events);
    c->queues.cap_ui_events = c->queues.ui_events ? FIRST_EVENTS : 0;
    c->queues.backend_events = calloc(FIRST_EVENTS, sizeof *c->queues.backend_events);
    c->queues.cap_backend_events = c->queues.backend_events ? FIRST_EVENTS : 0;
    c->queues.epoll = epoll_create1(EPOLL_CLOEXEC);
    c->queues.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->queues.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->queues.epoll < 0 || !watch_fd(c, c->queues.wake) || !watch_fd(c, c->queues.timer))
        return EBB_FAIL(err, EBB_IO, "no descriptors for the chat's events: %s", strerror(errno));
    if (!c->queues.ui_events || !c->queues.backend_events)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the chat's events");
    return EBB_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void ebb_chat_events_fini(ebb_chat *c)
{
    ebb_chat_drop_backend_events(c);
    for (size_t i = c->queues.first_ui_event; i < c->queues.n_ui_events; i++)
        free(c->queues.ui_events[i].text);
    free(c->queues.ui_events);
    free(c->queues.backend_events);
    free(c->queues.shown);
    close_fd(c->queues.epoll);
    close_fd(c->queues.wake);
    close_fd(c->queues.timer);
}

int ebb_chat_fd(const ebb_chat *c)
{
    return c->queues.epoll;
}

void ebb_chat_wake(ebb_chat *c)
{
    uint64_t one = 1;

    if (write(c->queues.wake, &one, sizeof one) < 0)
        return;                                  /* EAGAIN: it is readable already */
}

void ebb_chat_arm_timer(ebb_chat *c, uint32_t ms)
{
    uint64_t at = ebb_clock_ns() + (uint64_t)ms * 1000000u;
    struct itimerspec spec = { .it_value = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 } };

    if (c->queues.timer_ns && c->queues.timer_ns <= at)
        return;
    if (timerfd_settime(c->queues.timer, 0, &spec, NULL) == 0)
        c->queues.timer_ns = at;
}

/* -- Without memory ---------------------------------------------------------------------- */

/* Pieces of an answer and progress: others come after them, so without memory they may be left out.  An end that nobody
 * hears of would leave its turn open for ever. */
static bool may_lose_ui_event(ebb_chat_event_kind kind)
{
    return kind == EBB_EVENT_TEXT || kind == EBB_EVENT_LOADING || kind == EBB_EVENT_PREFILL;
}

static bool may_lose_backend_event(ebb_backend_event_kind kind)
{
    return kind == EBB_BACKEND_TOKEN || kind == EBB_BACKEND_LOADING || kind == EBB_BACKEND_PREFILL;
}

/* A slot behind the n of `events`, of `size` bytes each; what may not be lost takes one of the RESERVED where there is
 * no memory for more.  Returns the array, moved or not; NULL: there is none. */
static void *find_slot(void *events, size_t n, size_t *cap, size_t size, bool may_be_lost)
{
    void *grown = ebb_grow(events, n + RESERVED, cap, size);

    if (grown)
        return grown;
    return may_be_lost || n == *cap ? NULL : events;
}

/* -- For the front end ------------------------------------------------------------------ */

static bool queue_ui_event(ebb_chat *c, ebb_chat_event ev, const char *text)
{
    ebb_queued_ui_event queued = { .ev = ev }, *p;
    bool may_be_lost = may_lose_ui_event(ev.kind);

    if (c->queues.first_ui_event == c->queues.n_ui_events)
        c->queues.first_ui_event = c->queues.n_ui_events = 0;
    p = find_slot(c->queues.ui_events, c->queues.n_ui_events, &c->queues.cap_ui_events, sizeof *p, may_be_lost);
    if (!p)
        return false;
    c->queues.ui_events = p;
    if (text && !(queued.text = ebb_text_copy(text, ev.n_text))) {
        if (may_be_lost)
            return false;
        queued.ev.text = no_memory;
        queued.ev.n_text = sizeof no_memory - 1;
    }
    c->queues.ui_events[c->queues.n_ui_events++] = queued;
    return true;
}

void ebb_chat_emit_event(ebb_chat *c, ebb_chat_event_kind kind, const char *text, size_t n_text, uint64_t done,
                         uint64_t total)
{
    ebb_chat_event ev = { .kind = kind, .done = done, .total = total, .n_text = n_text };

    if (kind == EBB_EVENT_READY || (kind == EBB_EVENT_CHANGED && !c->turn.answer))
        c->turn.is_path_changed = true;
    if (!queue_ui_event(c, ev, text) && kind == EBB_EVENT_TEXT)
        c->turn.has_lost_text = true;
    ebb_chat_wake(c);
}

void ebb_chat_notice(ebb_chat *c, const char *fmt, ...)
{
    char line[640];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ebb_chat_emit_event(c, EBB_EVENT_NOTICE, line, strlen(line), 0, 0);
}

void ebb_chat_warn(ebb_chat *c, const char *line)
{
    ebb_chat_emit_event(c, EBB_EVENT_WARNING, line, strlen(line), 0, 0);
}

/* -- From the backend -------------------------------------------------------------------- */

/* Progress replaces progress that was not read yet. */
static bool is_newer_progress(const ebb_chat *c, const ebb_backend_event *ev)
{
    return ev->kind == EBB_BACKEND_LOADING && c->queues.n_backend_events > c->queues.first_backend_event &&
           c->queues.backend_events[c->queues.n_backend_events - 1].ev.kind == EBB_BACKEND_LOADING;
}

/* Its text could not be copied.  What an answer still lacked is not replaced by a line. */
static void replace_text(ebb_chat_queues *q, ebb_backend_event *ev)
{
    bool is_line = ev->kind != EBB_BACKEND_END || ev->finish == EBB_FINISH_ERROR;

    q->has_lost_text |= !is_line;
    ev->text = is_line ? no_memory : NULL;
    ev->n_text = is_line ? sizeof no_memory - 1 : 0;
}

static bool queue_backend_event(ebb_chat *c, const ebb_backend_event *ev)
{
    ebb_queued_backend_event queued = { .ev = *ev }, *p;
    bool may_be_lost = may_lose_backend_event(ev->kind);

    if (c->queues.first_backend_event == c->queues.n_backend_events)
        c->queues.first_backend_event = c->queues.n_backend_events = 0;
    if (is_newer_progress(c, ev))
        c->queues.n_backend_events--;
    p = find_slot(c->queues.backend_events, c->queues.n_backend_events, &c->queues.cap_backend_events, sizeof *p,
                  may_be_lost);
    if (!p)
        return false;
    c->queues.backend_events = p;
    queued.text = ev->n_text ? ebb_text_copy(ev->text, ev->n_text) : NULL;
    queued.ev.text = queued.text;
    if (ev->n_text && !queued.text) {
        if (may_be_lost)
            return false;
        replace_text(&c->queues, &queued.ev);
    }
    c->queues.backend_events[c->queues.n_backend_events++] = queued;
    return true;
}

void ebb_chat_sink(void *chat, const ebb_backend_event *ev)
{
    ebb_chat *c = chat;

    pthread_mutex_lock(&c->queues.lock);
    if (!queue_backend_event(c, ev) && ev->kind == EBB_BACKEND_TOKEN)
        c->queues.has_lost_text = true;
    pthread_mutex_unlock(&c->queues.lock);
    ebb_chat_wake(c);
}

bool ebb_chat_next_backend_event(ebb_chat *c, bool only_token, ebb_queued_backend_event *out)
{
    bool is_there;

    pthread_mutex_lock(&c->queues.lock);
    is_there = c->queues.first_backend_event < c->queues.n_backend_events &&
               (!only_token || c->queues.backend_events[c->queues.first_backend_event].ev.kind == EBB_BACKEND_TOKEN);
    if (is_there)
        *out = c->queues.backend_events[c->queues.first_backend_event++];
    pthread_mutex_unlock(&c->queues.lock);
    return is_there;
}

void ebb_chat_drop_backend_events(ebb_chat *c)
{
    ebb_queued_backend_event queued;

    while (ebb_chat_next_backend_event(c, false, &queued))
        free(queued.text);
    pthread_mutex_lock(&c->queues.lock);
    c->queues.has_lost_text = false;
    pthread_mutex_unlock(&c->queues.lock);
}
