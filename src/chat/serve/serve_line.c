/* In which order the answers that wait are admitted (serve_priv.h). */
#include "serve/serve_priv.h"

#define BEHIND_ALL UINT64_MAX    /* the place of who is not in the line */

/* One that was in the line already, as the oldest of those that are not first, gives that place up: else who has many
 * waiting would go before others twice.  Behind each first one that lines up comes the oldest of those that are not,
 * unless one of them is in the line. */
static void line_up(ebb_serve *s, ebb_served *first)
{
    ebb_served *oldest = NULL;

    first->place = ++s->n_places;
    for (ebb_served *a = s->answers; a; a = a->next) {
        if (a->state == SERVED_ENDED || a->n_older == 0)
            continue;
        if (a->place != BEHIND_ALL)
            return;
        oldest = oldest ? oldest : a;
    }
    if (oldest)
        oldest->place = ++s->n_places;
}

void ebb_serve_join_line(ebb_serve *s, ebb_served *a)
{
    a->place = BEHIND_ALL;
    if (a->n_older == 0)
        line_up(s, a);
}

void ebb_serve_leave_line(ebb_serve *s, const ebb_served *gone)
{
    for (ebb_served *a = gone->next; a; a = a->next)
        if (a->state != SERVED_ENDED && a->q.client == gone->q.client && --a->n_older == 0)
            line_up(s, a);
}

static bool goes_before(const ebb_served *a, const ebb_served *b)
{
    return a->place != b->place ? a->place < b->place : a->n_older < b->n_older;
}

ebb_served *ebb_serve_next_in_line(const ebb_serve *s, size_t most_of_one, bool is_session_free)
{
    ebb_served *next = NULL;

    for (ebb_served *a = s->answers; a; a = a->next)
        if (a->state != SERVED_ENDED && a->is_paused && a->n_older < most_of_one && (a->session || is_session_free) &&
            (!next || goes_before(a, next)))
            next = a;
    return next;
}
