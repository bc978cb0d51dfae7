/* The answers of a server: created by requests, read, freed (serve_priv.h). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/random.h"
#include "serve/serve_priv.h"

void ebb_serve_question_fini(ebb_serve_question *q)
{
    free(q->ids);
    ebb_grammar_free(q->grammar);
    for (size_t i = 0; i < q->n_stops; i++)
        free(q->stops[i]);
    *q = (ebb_serve_question){ 0 };
}

bool ebb_served_reader_init(ebb_served_reader *r)
{
    *r = (ebb_served_reader){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    return r->fd >= 0;
}

void ebb_served_reader_fini(ebb_served_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

void ebb_served_notify(ebb_served *a)
{
    for (ebb_served_reader *r = a->readers; r; r = r->next)
        (void)!write(r->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

static void free_answer(ebb_served *a)
{
    ebb_serve_question_fini(&a->q);
    ebb_sampler_free(a->sampler);
    ebb_detok_free(a->detok);
    ebb_buf_fini(&a->held);
    ebb_buf_fini(&a->text);
    free(a->pieces);
    free(a);
}

void ebb_serve_free_answers(ebb_serve *s)
{
    while (s->answers) {
        ebb_served *a = s->answers;
        s->answers = a->next;
        free_answer(a);
    }
}

size_t ebb_served_n_waiting(const ebb_serve *s, size_t *n_running)
{
    size_t n = 0;

    *n_running = 0;
    for (const ebb_served *a = s->answers; a; a = a->next) {
        n += a->state == SERVED_WAITING || (a->is_paused && a->state != SERVED_ENDED);
        *n_running += !a->is_paused && (a->state == SERVED_PREFILL || a->state == SERVED_DECODE);
    }
    return n;
}

static size_t count_unended(const ebb_serve *s, uint64_t client, size_t *n_of_client)
{
    size_t n = 0;

    *n_of_client = 0;
    for (const ebb_served *a = s->answers; a; a = a->next) {
        n += a->state != SERVED_ENDED;
        *n_of_client += a->state != SERVED_ENDED && a->q.client == client;
    }
    return n;
}

/* Few answers of large forms wait, so that they take no memory that nobody counts. */
static ebb_status check_forms(const ebb_serve *s, const ebb_serve_question *q, ebb_error *err)
{
    size_t own = ebb_grammar_bytes(q->grammar), all = own, of_client = own;

    for (const ebb_served *a = s->answers; a; a = a->next) {
        size_t n = ebb_grammar_bytes(a->q.grammar);      /* none of an answer that has ended */

        all += n;
        of_client += a->q.client == q->client ? n : 0;
    }
    if (own == 0 || (all <= SERVE_FORMS && of_client <= SERVE_FORMS / 2))
        return EBB_OK;
    return EBB_FAIL(err, EBB_LIMIT, "the forms of answers under way or waiting take %zu MiB already; %d are accepted, "
                    "%d of one client", (all - own) >> 20, SERVE_FORMS >> 20, SERVE_FORMS >> 21);
}

/* A path begins at a slash behind nothing or a blank, and ends before a colon; its folders may have blanks. */
void ebb_serve_hide_folders(char *line)
{
    char *from = line;

    while ((from = strchr(from, '/')) != NULL) {
        char *end = from + strcspn(from, ":"), *name = end;

        if (from > line && from[-1] != ' ' && from[-1] != '\'') {
            from++;
            continue;
        }
        while (name[-1] != '/')
            name--;
        memmove(from, name, strlen(name) + 1);
    }
}

/* *n_of_client: its answers that have not ended. */
static ebb_status check_submit(const ebb_serve *s, const ebb_serve_question *q, size_t *n_of_client, ebb_error *err)
{
    if (s->has_failed) {
        EBB_FAIL(err, EBB_IO, "%s", s->error.msg);
        ebb_serve_hide_folders(err->msg);
        return EBB_IO;
    }
    if (!s->is_ready || s->quit)
        return EBB_FAIL(err, EBB_BUSY, s->quit ? EBB_SERVE_LEAVES : "Loading model");
    if (q->n_ids == 0)
        return EBB_FAIL(err, EBB_USAGE, "the prompt is empty");
    if (q->n_ids > s->n_ctx || (q->n_ids == s->n_ctx && !q->predicts_nothing))
        return EBB_FAIL(err, EBB_CONTEXT, "the request has %zu tokens, the context %u", q->n_ids, s->n_ctx);
    if (count_unended(s, q->client, n_of_client) >= SERVE_ANSWERS)
        return EBB_FAIL(err, EBB_LIMIT, "%d answers are already under way or waiting", SERVE_ANSWERS);
    if (*n_of_client >= SERVE_FROM_ONE)
        return EBB_FAIL(err, EBB_LIMIT, "%d answers for this client are already under way or waiting", SERVE_FROM_ONE);
    return check_forms(s, q, err);
}

/* Whoever knows it may read the answer and stop it, so nobody can guess it.  53 bits are exact in JSON's numbers. */
static ebb_status choose_number(uint64_t *number, ebb_error *err)
{
    ebb_status st = ebb_random(number, sizeof *number, err);

    *number = *number >> 11 | 1;
    return st;
}

static void add_reader(ebb_served *a, ebb_served_reader *reader)
{
    reader->next = a->readers;
    a->readers = reader;
    a->left_s = 0;
}

static void append_answer(ebb_serve *s, ebb_served *a)
{
    ebb_served **end = &s->answers;

    while (*end)
        end = &(*end)->next;
    *end = a;
}

ebb_status ebb_serve_submit(ebb_serve *s, ebb_serve_question *q, ebb_served_reader *reader, ebb_served **out,
                            ebb_error *err)
{
    ebb_served *a = calloc(1, sizeof *a);
    uint64_t number = 0;
    ebb_status st = choose_number(&number, err);

    *out = NULL;
    if (!a)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an answer");
    pthread_mutex_lock(&s->lock);
    if (st == EBB_OK)
        st = check_submit(s, q, &a->n_older, err);
    if (st == EBB_OK) {
        a->q = *q;
        *q = (ebb_serve_question){ 0 };
        a->cap_ids = a->n_prompt = a->q.n_ids;
        a->number = number;
        a->asked_s = s->used_s = ebb_clock_s();
        add_reader(a, reader);
        append_answer(s, a);
        ebb_serve_join_line(s, a);
        s->n_answers++;
        pthread_cond_broadcast(&s->wake);
        *out = a;
    }
    pthread_mutex_unlock(&s->lock);
    if (st != EBB_OK)
        free(a);
    return st;
}

static ebb_served *answer_of(const ebb_serve *s, uint64_t number)
{
    ebb_served *a = s->answers;

    while (a && a->number != number)
        a = a->next;
    return a;
}

ebb_served *ebb_serve_find(ebb_serve *s, uint64_t number, ebb_served_reader *reader)
{
    ebb_served *a;

    pthread_mutex_lock(&s->lock);
    a = answer_of(s, number);
    if (a)
        add_reader(a, reader);
    pthread_mutex_unlock(&s->lock);
    return a;
}

/* The pass under way, if it is this one's, ends within a layer. */
static void cancel_locked(ebb_serve *s, ebb_served *a)
{
    a->is_canceled = true;
    if (s->running == a)
        ebb_engine_cancel(s->engine);
    pthread_cond_broadcast(&s->wake);
}

bool ebb_serve_cancel(ebb_serve *s, uint64_t number)
{
    ebb_served *a;

    pthread_mutex_lock(&s->lock);
    a = answer_of(s, number);
    if (a && a->state == SERVED_ENDED)
        a = NULL;
    if (a)
        cancel_locked(s, a);
    pthread_mutex_unlock(&s->lock);
    return a != NULL;
}

void ebb_serve_leave(ebb_serve *s, ebb_served *a, ebb_served_reader *reader)
{
    pthread_mutex_lock(&s->lock);
    for (ebb_served_reader **r = &a->readers; *r; r = &(*r)->next)
        if (*r == reader) {
            *r = reader->next;
            break;
        }
    if (!a->readers)
        a->left_s = s->used_s = ebb_clock_s();
    if (!a->readers && !a->q.survives && a->state != SERVED_ENDED)
        cancel_locked(s, a);
    ebb_serve_sweep(s, ebb_clock_s());
    pthread_mutex_unlock(&s->lock);
}

void ebb_serve_sweep(ebb_serve *s, double now_s)
{
    size_t n_ended = 0;

    for (ebb_served *a = s->answers; a; a = a->next) {
        if (a->state != SERVED_ENDED && a->left_s > 0 && !a->is_canceled && now_s - a->left_s > SERVE_KEPT_S)
            cancel_locked(s, a);
        n_ended += a->state == SERVED_ENDED && !a->readers && a->q.survives;
    }
    for (ebb_served **p = &s->answers; *p;) {
        ebb_served *a = *p;
        bool may_go = a->state == SERVED_ENDED && !a->readers;

        if (may_go && (!a->q.survives || n_ended > SERVE_KEPT || now_s - a->left_s > SERVE_KEPT_S)) {
            n_ended -= a->q.survives;
            *p = a->next;
            free_answer(a);
        } else {
            p = &a->next;
        }
    }
}
