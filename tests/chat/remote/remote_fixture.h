/* A backend of messages and all that it says, for tests against tests/support/engine.py. */
#ifndef EBB_TESTS_REMOTE_FIXTURE_H
#define EBB_TESTS_REMOTE_FIXTURE_H
#include <pthread.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "support/fake_hub.h"

/* What the sink has heard. */
typedef struct heard {
    pthread_mutex_t lock;
    pthread_cond_t  more;
    ebb_buf         text, notices;
    bool            is_ready, has_failed;
    char            why[600];    /* of FAILED, or of an END with an error */
    unsigned        n_ends, n_tokens, n_prefills;
    ebb_finish      finish;
    ebb_turn_stats  cost;
    uint64_t        prefill_total;
} heard;

static inline void hear(void *arg, const ebb_backend_event *ev)
{
    heard *h = arg;

    pthread_mutex_lock(&h->lock);
    switch (ev->kind) {
    case EBB_BACKEND_READY: h->is_ready = true; break;
    case EBB_BACKEND_TOKEN:
        ebb_buf_add(&h->text, ev->text, ev->n_text);
        h->n_tokens++;
        break;
    case EBB_BACKEND_NOTICE:
        ebb_buf_add(&h->notices, ev->text, ev->n_text);
        ebb_buf_addc(&h->notices, '\n');
        break;
    case EBB_BACKEND_PREFILL:
        h->n_prefills++;
        h->prefill_total = ev->total;
        break;
    case EBB_BACKEND_END:
        h->n_ends++;
        h->finish = ev->finish;
        h->cost = ev->turn_stats;
        snprintf(h->why, sizeof h->why, "%.*s", (int)ev->n_text, ev->text ? ev->text : "");
        break;
    case EBB_BACKEND_FAILED:
        h->has_failed = true;
        snprintf(h->why, sizeof h->why, "%.*s", (int)ev->n_text, ev->text);
        break;
    default: break;
    }
    pthread_cond_broadcast(&h->more);
    pthread_mutex_unlock(&h->lock);
}

static inline void heard_init(heard *h)
{
    memset(h, 0, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->more, NULL);
}

static inline void heard_fini(heard *h)
{
    ebb_buf_fini(&h->text);
    ebb_buf_fini(&h->notices);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->more);
}

/* Until `what` holds; only a hang takes five minutes. */
#define HEARD_WAIT(h, what)                                                        \
    do {                                                                           \
        struct timespec until_;                                                    \
        clock_gettime(CLOCK_REALTIME, &until_);                                    \
        until_.tv_sec += EBB_TEST_WAIT_S;                                          \
        pthread_mutex_lock(&(h)->lock);                                            \
        while (!(what) && pthread_cond_timedwait(&(h)->more, &(h)->lock, &until_) == 0) \
            ;                                                                      \
        pthread_mutex_unlock(&(h)->lock);                                          \
        assert_true(what);                                                         \
    } while (0)

/* Open the engine at `address` and wait until it is ready, or has failed. */
static inline ebb_backend *remote_open(heard *h, const char *address)
{
    const ebb_backend_models models = { .engine = address };
    ebb_error err = { 0 };
    ebb_backend *b;

    heard_init(h);
    if (ebb_backend_remote(&models, 0, hear, h, &b, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    HEARD_WAIT(h, h->is_ready || h->has_failed);
    return b;
}

static inline void remote_close(heard *h, ebb_backend *b)
{
    b->ops->close(b);
    heard_fini(h);
}

static inline void remote_begin(heard *h, ebb_backend *b, const char *question)
{
    const ebb_prompt_message messages[] = { { .role = EBB_ROLE_USER, .text = (char *)question,
                                              .n_text = strlen(question) } };
    const ebb_backend_request r = { .messages = messages, .n_messages = 1 };
    ebb_error err = { 0 };

    pthread_mutex_lock(&h->lock);
    ebb_buf_clear(&h->text);
    ebb_buf_clear(&h->notices);
    h->n_ends = h->n_tokens = h->n_prefills = 0;
    pthread_mutex_unlock(&h->lock);
    if (b->ops->answer(b, &r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static inline void remote_say(heard *h, ebb_backend *b, const char *question)
{
    remote_begin(h, b, question);
    HEARD_WAIT(h, h->n_ends > 0);
}

#endif
