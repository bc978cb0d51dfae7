/* A backend that answers by script, and prompts made of bytes: what a chat does
 * with them is tested without a model.
 *
 * It keeps the ids that stand, as an engine does, so that its costs are real. */
#ifndef EBB_TESTS_CHAT_FAKE_BACKEND_H
#define EBB_TESTS_CHAT_FAKE_BACKEND_H
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "conversation/chat_priv.h"
#include "ebb/experimental/cache_salt.h"

enum { FAKE_MAX = 65536, FAKE_CTX = 60000 };

typedef struct fake {
    ebb_backend base;
    ebb_backend_sink *sink;
    void *sink_arg;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool quit, has_work;
    atomic_bool stop;
    ebb_backend_request r;
    int32_t ids[FAKE_MAX];       /* those that stand */
    size_t n_ids;
    uint32_t n_ctx;
    ebb_cache_salt cache_salt;   /* of what stands */
    struct fake_script *script;
} fake;

/* What a test wants; the chat's parts carry it. */
typedef struct fake_script {
    atomic_uint n_tokens;        /* of each answer */
    atomic_uint delay_us;        /* before each token */
    atomic_uint hold_at;         /* wait here until stopped; 0: do not */
    atomic_bool fail_load, fail_answer, hold_load, refuse;
    atomic_uint n_answers;
    uint32_t n_ctx;              /* 0: FAKE_CTX; the options of the engine go before it */
    bool cannot_forget;
    bool hides_system;           /* where the system message ends is not to be told */
    const char *own_text;        /* that the template prints without one; NULL: none */
    size_t n_prefilled_early;    /* ids that were given to be computed ahead */
    unsigned n_gaps;             /* closed by moving what is behind them */
    bool plan_fits;
    /* Path of a better file of the network, which has the fingerprint "the better"; NULL: none. */
    const char *better;
    int32_t first[64];           /* ids that the last request began with */
    size_t n_asked;              /* and how many there were */
    uint64_t seed;               /* of the last request */
    uint8_t fingerprint[16];
    unsigned n_references;       /* times that a reference text was set, and the last one */
    int32_t reference[256];
    size_t n_reference;
    uint64_t opened_with_bytes;  /* the budget of the last opening */
    char opened[256];            /* last: "model + draft", with a ? if the draft may stay behind */
    ebb_model_info info;
    /* Of the model's file, up to a NULL key. */
    const struct fake_number { const char *key; double x; } *numbers;
    const char *sampling_sequence; /* as well; NULL: it has none */
    const char *lost_template;   /* the name of one that cannot be read; NULL: none */
    char rendered_with[64];      /* the last template that could; "": none was named */
} fake_script;

static void fake_sleep(unsigned us)
{
    struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

    if (us)
        nanosleep(&ts, NULL);
}

static void fake_emit(fake *f, ebb_backend_event ev)
{
    f->sink(f->sink_arg, &ev);
}

static size_t fake_same(const fake *f, const int32_t *ids, size_t n)
{
    size_t i = 0;

    while (i < n && i < f->n_ids && ids[i] == f->ids[i])
        i++;
    return i;
}

static void fake_close_gap(fake *f, const int32_t *ids, const ebb_backend_gap *gap)
{
    size_t end = gap->at + gap->n;

    if (f->script->cannot_forget || !gap->n || end > f->n_ids ||
        fake_same(f, ids, gap->at) < gap->at ||
        memcmp(f->ids + gap->at, gap->ids, gap->n * sizeof *f->ids) != 0)
        return;
    memmove(f->ids + gap->at, f->ids + end, (f->n_ids - end) * sizeof *f->ids);
    f->n_ids -= gap->n;
    f->cache_salt = (ebb_cache_salt){ .is_on = true, .pos = (uint32_t)gap->at,
                                      .salt = { 1, (uint8_t)++f->script->n_gaps } };
}

/* Tokens are numbered by the answer and their place: "a2.7 " */
static void fake_answer(fake *f)
{
    fake_script *s = f->script;
    ebb_backend_event end = { .kind = EBB_BACKEND_END, .finish = EBB_FINISH_STOP };
    size_t there = (fake_close_gap(f, f->r.ids, &f->r.gap), fake_same(f, f->r.ids, f->r.n_ids));
    unsigned answer = atomic_fetch_add(&s->n_answers, 1) + 1;

    end.turn_stats = (ebb_turn_stats){ .n_prompt = (uint32_t)f->r.n_ids,
                                       .n_reused = (uint32_t)there,
                                .n_computed = (uint32_t)(f->r.n_ids - there) };
    fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_PREFILL, .total = f->r.n_ids - there });
    memcpy(f->ids, f->r.ids, f->r.n_ids * sizeof *f->ids);
    f->n_ids = f->r.n_ids;
    if (there < f->cache_salt.pos)
        f->cache_salt.is_on = false;
    end.cache_salt = f->cache_salt;
    if (s->fail_answer) {
        end.finish = EBB_FINISH_ERROR;
        end.text = "the disk is gone";
        end.n_text = strlen(end.text);
        fake_emit(f, end);
        return;
    }
    for (unsigned i = 0; i < s->n_tokens; i++) {
        char text[32];
        int32_t id = (int32_t)(100000 * answer + i);

        fake_sleep(s->delay_us);
        while (s->hold_at == i + 1 && !f->stop)
            fake_sleep(200);
        if (f->stop || (f->r.n_predict && i == f->r.n_predict)) {
            end.finish = f->stop ? EBB_FINISH_CANCELED : EBB_FINISH_LENGTH;
            break;
        }
        if (f->n_ids >= f->n_ctx) {
            end.finish = EBB_FINISH_LENGTH;
            break;
        }
        f->ids[f->n_ids++] = id;
        end.turn_stats.n_generated++;
        snprintf(text, sizeof text, "a%u.%u ", answer, i);
        fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_TOKEN, .token = id, .text = text,
                                          .n_text = strlen(text) });
        for (uint32_t k = 1; k < f->r.n_answers; k++) {
            snprintf(text, sizeof text, "o%u.%u ", k, i);
            fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_TOKEN, .which = k,
                                              .token = id + (int32_t)(1000 * k), .text = text,
                                              .n_text = strlen(text) });
        }
    }
    for (uint32_t k = 1; k < f->r.n_answers; k++) {
        ebb_backend_event other = end;

        other.which = k;
        fake_emit(f, other);
    }
    fake_emit(f, end);
}

static void *fake_worker(void *arg)
{
    fake *f = arg;

    while (f->script->hold_load)
        fake_sleep(200);
    fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_LOADING, .done = 1, .total = 2 });
    if (f->script->fail_load)
        fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_FAILED, .text = "no such file",
                                          .n_text = 12 });
    else
        fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_READY });
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->quit && !f->has_work)
            pthread_cond_wait(&f->wake, &f->lock);
        if (!f->has_work)
            break;
        pthread_mutex_unlock(&f->lock);
        fake_answer(f);
        pthread_mutex_lock(&f->lock);
        f->has_work = false;
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void fake_close(ebb_backend *b)
{
    fake *f = (fake *)b;

    pthread_mutex_lock(&f->lock);
    f->quit = true;
    atomic_store(&f->stop, true);
    pthread_cond_signal(&f->wake);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    pthread_cond_destroy(&f->wake);
    pthread_mutex_destroy(&f->lock);
    free((int32_t *)f->r.ids);
    free(f);
}

/* END is sent before has_work is taken back: wait that moment. */
static ebb_status fake_ask(ebb_backend *b, const ebb_backend_request *r, ebb_error *err)
{
    fake *f = (fake *)b;
    int32_t *ids = malloc((r->n_ids + r->gap.n) * sizeof *ids);

    (void)err;
    memcpy(ids, r->ids, r->n_ids * sizeof *ids);
    if (r->gap.n)
        memcpy(ids + r->n_ids, r->gap.ids, r->gap.n * sizeof *ids);
    for (bool busy = true; busy; fake_sleep(busy ? 50 : 0)) {
        pthread_mutex_lock(&f->lock);
        busy = f->has_work;
        pthread_mutex_unlock(&f->lock);
    }
    pthread_mutex_lock(&f->lock);
    free((int32_t *)f->r.ids);
    f->r = *r;
    f->r.ids = ids;
    f->r.gap.ids = ids + r->n_ids;
    f->script->n_asked = r->n_ids;
    memcpy(f->script->first, ids, (r->n_ids < 64 ? r->n_ids : 64) * sizeof *ids);
    f->script->seed = r->sampling.seed;
    atomic_store(&f->stop, false);
    f->has_work = true;
    pthread_cond_signal(&f->wake);
    pthread_mutex_unlock(&f->lock);
    return EBB_OK;
}

static void fake_cancel(ebb_backend *b)
{
    atomic_store(&((fake *)b)->stop, true);
}

static const ebb_model *fake_model(const ebb_backend *b)
{
    (void)b;
    return NULL;
}

static uint32_t fake_n_ctx(const ebb_backend *b)
{
    return ((const fake *)b)->n_ctx;
}

static size_t fake_common(ebb_backend *b, const int32_t *ids, size_t n,
                          const ebb_cache_salt *cache_salt)
{
    (void)cache_salt;
    return fake_same((fake *)b, ids, n);
}

/* At once, as if it took no time. */
static void fake_speculative_prefill(ebb_backend *b, const int32_t *ids, size_t n,
                                     const ebb_cache_salt *cache_salt, const ebb_backend_gap *gap)
{
    fake *f = (fake *)b;

    (void)cache_salt;
    if (gap)
        fake_close_gap(f, ids, gap);
    f->script->n_prefilled_early = n;
    if (n == 0)
        return;
    memcpy(f->ids, ids, n * sizeof *ids);
    f->n_ids = n;
    fake_emit(f, (ebb_backend_event){ .kind = EBB_BACKEND_SPECULATIVE_PREFILL, .done = n,
                                      .total = n, .cache_salt = f->cache_salt });
}

static void fake_set_reference_text(ebb_backend *b, int32_t *ids, size_t n)
{
    fake_script *s = ((fake *)b)->script;

    s->n_references++;
    s->n_reference = n < 256 ? n : 256;
    if (s->n_reference)
        memcpy(s->reference, ids, s->n_reference * sizeof *ids);
    free(ids);
}

static void fake_stats(ebb_backend *b, ebb_stats *out)
{
    (void)b;
    *out = (ebb_stats){ .phase = EBB_PHASE_IDLE };
}

/* Both are told from the caller's thread, which a sink must bear.  One byte is too few. */
static ebb_status fake_set_budget(ebb_backend *b, uint64_t bytes, ebb_error *err)
{
    char text[64];
    bool is_enough = bytes != 1;

    (void)err;
    snprintf(text, sizeof text, "budget %llu", (unsigned long long)bytes);
    fake_emit((fake *)b, (ebb_backend_event){ .kind = EBB_BACKEND_NOTICE, .text = text,
                                              .n_text = strlen(text) });
    fake_emit((fake *)b, (ebb_backend_event){ .kind = EBB_BACKEND_BUDGET_SET, .text = "it stands",
                                              .n_text = 9, .total = bytes,
                                              .finish = is_enough ? EBB_FINISH_STOP
                                                                  : EBB_FINISH_ERROR });
    return EBB_OK;
}

static ebb_status fake_plan(ebb_backend *b, ebb_error *err)
{
    (void)err;
    fake_emit((fake *)b, (ebb_backend_event){ .kind = EBB_BACKEND_REPORT, .text = "one\ntwo\n",
                                              .n_text = 8 });
    return EBB_OK;
}

static ebb_status fake_open(void *arg, const ebb_backend_models *models,
                            const ebb_engine_opts *opts, ebb_backend_sink *sink,
                            void *sink_arg, ebb_backend **out, ebb_error *err)
{
    static const ebb_backend_ops ops = {
        .close = fake_close, .answer = fake_ask, .cancel = fake_cancel, .model = fake_model,
        .n_ctx = fake_n_ctx, .common_prefix = fake_common, .stats = fake_stats,
        .speculative_prefill = fake_speculative_prefill,
        .set_reference_text = fake_set_reference_text,
        .set_budget = fake_set_budget, .plan = fake_plan,
    };
    fake *f = calloc(1, sizeof *f);

    (void)err;
    f->script = arg;
    if (f->script->better) {
        memset(f->script->fingerprint, 0, 16);
        memcpy(f->script->fingerprint, models->path &&
               strcmp(models->path, f->script->better) == 0 ? "the better" : "model one", 9);
    }
    snprintf(f->script->opened, sizeof f->script->opened, "%s + %s%s",
             models->path ? models->path : "-",
             models->draft ? models->draft : "-", models->draft_is_optional ? "?" : "");
    f->script->opened_with_bytes = opts->ram_bytes;
    f->n_ctx = opts->n_ctx ? opts->n_ctx : f->script->n_ctx ? f->script->n_ctx : FAKE_CTX;
    f->base.ops = &ops;
    f->sink = sink;
    f->sink_arg = sink_arg;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wake, NULL);
    pthread_create(&f->thread, NULL, fake_worker, f);
    *out = &f->base;
    return EBB_OK;
}

static ebb_status fake_ready(void *arg, ebb_backend *b, const char *template_name,
                             const ebb_model_info **info, ebb_prompter **p,
                             char notice[256], ebb_error *err)
{
    fake_script *s = arg;

    (void)b;
    (void)notice;
    *info = NULL;
    *p = NULL;
    if (template_name && s->lost_template && strcmp(template_name, s->lost_template) == 0)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no chat template '%s'", template_name);
    snprintf(s->rendered_with, sizeof s->rendered_with, "%s", template_name ? template_name : "");
    s->info.name = "fake";
    memcpy(s->info.fingerprint, s->fingerprint, 16);
    *info = &s->info;
    *p = (ebb_prompter *)s;                      /* nobody looks into it */
    return EBB_OK;
}

static ebb_status fake_plan_for(void *arg, const ebb_backend *b, const ebb_engine_opts *opts,
                                ebb_plan *out, ebb_error *err)
{
    (void)b;
    (void)err;
    *out = (ebb_plan){ .fits = ((fake_script *)arg)->plan_fits, .n_ctx = opts->n_ctx,
                       .total_bytes = 1 << 20, .budget_bytes = 1 << 21, .why = "too large" };
    return EBB_OK;
}

static ebb_status fake_better(void *arg, const ebb_backend *b, const char *name,
                              const ebb_engine_opts *opts, uint32_t n_tokens,
                              ebb_better_model *out, ebb_error *err)
{
    fake_script *s = arg;

    (void)b;
    *out = (ebb_better_model){ .first_token_s = n_tokens / 100.0,
                               .quantization = "F16", .n_bytes = 1 << 20,
                               .fingerprint = "the bette" };
    if (!s->better && !name)
        return EBB_FAIL(err, EBB_NOTFOUND, "no better file is found here");
    if (opts)
        out->plan = (ebb_plan){ .fits = true, .predicted_decode_tok_s = 2,
                                .predicted_prefill_tok_s = 100 };
    out->path = strdup(name ? name : s->better);
    return EBB_OK;
}

static void fake_unready(void *arg, ebb_prompter *p)
{
    (void)arg;
    (void)p;
}

static bool fake_number(void *arg, const ebb_backend *b, const char *key, double *out)
{
    (void)b;
    for (const struct fake_number *n = ((fake_script *)arg)->numbers; n && n->key; n++)
        if (strcmp(n->key, key) == 0) {
            *out = n->x;
            return true;
        }
    return false;
}

static const char *fake_key(void *arg, const ebb_backend *b, size_t i)
{
    const struct fake_number *n = ((fake_script *)arg)->numbers;

    (void)b;
    while (i > 0 && n && n->key) {
        n++;
        i--;
    }
    return n ? n->key : NULL;
}

static const char *fake_string(void *arg, const ebb_backend *b, const char *key)
{
    (void)b;
    if (strcmp(key, "general.sampling.sequence") != 0)
        return NULL;
    return ((fake_script *)arg)->sampling_sequence;
}

/* A message is <role + 1> bytes... <9>; what stands is taken as it stands.  As prompt.h has it, the
 * ids of new messages are all those of the next answer, or of the last message. */
static ebb_status fake_prompt(void *arg, const ebb_prompter *p,
                              const ebb_message *const *m, size_t n,
                              const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err)
{
    bool all_old = true;
    size_t n_old = n, from = 0;

    while (n_old > 0 && m[n_old - 1]->n_ids == 0)
        n_old--;
    (void)p;
    *out = (ebb_prompt){ .ids = malloc(FAKE_MAX * sizeof *out->ids),
                         .n_ids_of = calloc(n + 1, sizeof *out->n_ids_of) };
    if (((fake_script *)arg)->refuse)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "the template refuses");
    if (((fake_script *)arg)->own_text && n > 0 && n_old == 0 && m[0]->role != EBB_ROLE_SYSTEM) {
        for (const char *s = ((fake_script *)arg)->own_text; *s; s++)
            out->ids[out->n_ids++] = 2000 + (unsigned char)*s;
        out->has_open_system = ((fake_script *)arg)->hides_system;
        out->n_system = out->has_open_system ? 0 : out->n_ids;
    }
    for (size_t i = 0; i < n; i++) {
        all_old &= i < n_old;
        /* Those that have none are in the ids of one behind them. */
        if (i < n_old) {
            if (m[i]->n_ids)
                memcpy(out->ids + out->n_ids, m[i]->ids, m[i]->n_ids * sizeof *out->ids);
            out->n_ids += m[i]->n_ids;
            out->n_old += m[i]->n_ids;
        } else {
            out->ids[out->n_ids++] = (int32_t)m[i]->role + 1;
            for (size_t k = 0; k < m[i]->n_text; k++)
                out->ids[out->n_ids++] = 1000 + (unsigned char)m[i]->text[k];
            out->ids[out->n_ids++] = 9;
        }
        if (i < n_old || i + 1 == n || m[i]->role == EBB_ROLE_ASSISTANT) {
            out->n_ids_of[i] = out->n_ids - from;
            from = out->n_ids;
        }
        if (all_old)
            out->n_kept = out->n_ids;
        if (opts->counts_system && i == 0 && m[i]->role == EBB_ROLE_SYSTEM) {
            out->has_open_system = ((fake_script *)arg)->hides_system;
            out->n_system = out->has_open_system ? 0 : out->n_ids;
        }
    }
    return EBB_OK;
}

/* The text of an id is "a2.7 "; a letter of other words is 1000 and the letter. */
static ebb_status fake_retokenize(void *arg, const ebb_backend *b, ebb_retokenization *r,
                                  ebb_error *err)
{
    size_t at = 0;

    (void)arg;
    (void)b;
    (void)err;
    assert_true(r->n_old == 0 || r->n_old_text > 0);
    r->ids = malloc((r->n_old + r->n_text + 1) * sizeof *r->ids);
    for (; r->n_kept < r->n_old; r->n_kept++) {
        int32_t id = r->old[r->n_kept];
        char text[32];
        size_t n = (size_t)snprintf(text, sizeof text, "a%d.%d ", id / 100000, id % 100000);

        if (n > r->n_text - at || memcmp(r->text + at, text, n) != 0)
            break;
        r->ids[r->n_ids++] = id;
        at += n;
    }
    for (; at < r->n_text; at++)
        r->ids[r->n_ids++] = 1000 + (unsigned char)r->text[at];
    return EBB_OK;
}

static ebb_chat_ops fake_ops(fake_script *s)
{
    return (ebb_chat_ops){ .arg = s, .default_sampling = { .temp = 0.5f, .top_k = 40, .top_p = 1,
                                                           .repeat_penalty = 1 },
                             .open = fake_open, .ready = fake_ready, .unready = fake_unready,
                             .number = fake_number, .string = fake_string, .key = fake_key,
                             .prompt = fake_prompt, .plan = fake_plan_for,
                             .better = fake_better, .retokenize = fake_retokenize };
}

/* The next event; false: none comes any more. */
static inline bool fake_next(ebb_chat *c, ebb_chat_event *ev)
{
    for (int i = 0; i < EBB_TEST_WAIT_S * 10; i++) {
        struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };

        if (ebb_chat_event_next(c, ev))
            return true;
        poll(&p, 1, 100);
    }
    return false;
}

/* Events until one of this kind; its text in `text` (may be NULL). */
static inline bool fake_wait(ebb_chat *c, ebb_chat_event_kind kind, char *text, size_t cap)
{
    ebb_chat_event ev;

    while (fake_next(c, &ev)) {
        if (ev.kind != kind)
            continue;
        if (text)
            snprintf(text, cap, "%s", ev.text ? ev.text : "");
        return true;
    }
    return false;
}
#endif
