/* Who waits for what is done for one at a time, and until when (serve_priv.h). */
#include "serve/serve_priv.h"

bool ebb_serve_stops_waiting(void *arg)
{
    ebb_serve_waiting *who = arg;

    return ebb_serve_is_leaving(who->s) || ebb_http_wait(who->x, -1, 0) == EBB_HTTP_GONE;
}

/* In the list of those who wait for one thing. */
static void begin_place(ebb_serve *s, ebb_serve_place **list, uint64_t client, ebb_serve_place *place)
{
    ebb_serve_place **at = list;

    pthread_mutex_lock(&s->lock);
    *place = (ebb_serve_place){ .client = client, .turn = *list ? (*list)->turn : 0 };
    for (const ebb_serve_place *p = *list; p; p = p->next)
        if (p->client == client)
            place->turn = p->turn;               /* of his last: the turns of a list ascend */
    place->turn++;
    while (*at && (*at)->turn <= place->turn)
        at = &(*at)->next;
    place->next = *at;
    *at = place;
    while (*list != place)
        pthread_cond_wait(&s->large_ended, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void end_place(ebb_serve *s, ebb_serve_place **list)
{
    pthread_mutex_lock(&s->lock);
    *list = (*list)->next;
    pthread_cond_broadcast(&s->large_ended);
    pthread_mutex_unlock(&s->lock);
}

void ebb_serve_begin_large(ebb_serve *s, uint64_t client, ebb_serve_place *place)
{
    begin_place(s, &s->large, client, place);
}

void ebb_serve_end_large(ebb_serve *s)
{
    end_place(s, &s->large);
}

void ebb_serve_begin_form(ebb_serve *s, uint64_t client, ebb_serve_place *place)
{
    begin_place(s, &s->forms, client, place);
}

void ebb_serve_end_form(ebb_serve *s)
{
    end_place(s, &s->forms);
}
