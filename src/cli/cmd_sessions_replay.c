/* ebb sessions replay: the answers computed again and compared (cmd_sessions.h). */
#include <stdio.h>
#include <string.h>

#include "cmd_sessions.h"
#include "json/json_text.h"
#include "models/models.h"
#include "turn/replay.h"

typedef struct report {
    const ebb_model *m;
    json_t  *answers;            /* NULL: lines */
    size_t   n_same, n_differ, n_unknown;
    uint64_t n_tokens;
} report;

/* The last answer that can be replayed; NULL: none. */
static const ebb_message *last_sampled_answer(const ebb_tree *t)
{
    const ebb_message *last = NULL;

    for (size_t i = 0; i < t->n_nodes; i++)
        if (t->nodes[i]->m.role == EBB_ROLE_ASSISTANT && ebb_message_is_sampled(&t->nodes[i]->m))
            last = &t->nodes[i]->m;
    return last;
}

/* Open the model if it is the one; NULL: it is not. */
static ebb_model *open_if(const char *name, const ebb_message *answer)
{
    ebb_args a = { .model = name, .quiet = true };
    ebb_model *m;

    if (ebb_cli_open_model(&a, &m, NULL) == EBB_OK &&
        memcmp(ebb_model_get_info(m)->fingerprint, answer->ids_model, 16) == 0)
        return m;
    ebb_model_close(m);
    return NULL;
}

/* By its fingerprint: the one that was named last, those found here, the guide. */
static ebb_model *find_model(const ebb_message *answer)
{
    ebb_buf named = { 0 };
    ebb_model_file *files = NULL;
    size_t n = 0;
    ebb_model *m = ebb_models_remembered(&named) ? open_if(named.data, answer) : NULL;

    if (!m && ebb_models_find(&files, &n, NULL) == EBB_OK)
        for (size_t i = 0; i < n && !m; i++)
            m = open_if(files[i].path, answer);
    ebb_models_free(files, n);
    ebb_buf_fini(&named);
    return m ? m : open_if(EBB_MODELS_GUIDE, answer);
}

static ebb_status open_replay_model(const ebb_args *a, const ebb_tree *t, ebb_model **out, ebb_error *err)
{
    const ebb_message *answer = last_sampled_answer(t);

    *out = NULL;
    if (!answer)
        return EBB_FAIL(err, EBB_NOTFOUND, "no answer here has a record of how it was sampled; those of remote engines "
                        "and imported ones have none");
    if (a->model)
        return ebb_cli_open_model(a, out, err);
    *out = find_model(answer);
    if (*out)
        return EBB_OK;
    return EBB_FAIL(err, EBB_NOTFOUND,
                    "%.100s, which wrote the answers, is not on this machine: name its file with -m",
                    answer->model ? answer->model : "the model");
}

static json_t *token_json(const report *r, int32_t id)
{
    ebb_detok *d = id < 0 ? NULL : ebb_detok_new(r->m, true);
    ebb_buf text = { 0 };
    json_t *j;
    size_t n;

    if (!d)
        return json_null();
    const char *s = ebb_detok_push(d, id, &n);
    ebb_buf_add(&text, s, n);
    s = ebb_detok_flush(d, &n);
    ebb_buf_add(&text, s, n);
    j = ebb_json_text_or_null(ebb_buf_text(&text));
    ebb_buf_fini(&text);
    ebb_detok_free(d);
    return j;
}

static void print_token(const report *r, int32_t id)
{
    json_t *j = token_json(r, id);
    const char *s = json_string_value(j);

    if (!s)
        fputs("the end", stdout);
    else {
        putchar('\'');
        ebb_cli_print_name(s);
        putchar('\'');
    }
    json_decref(j);
}

static void add_json(report *r, const ebb_replay_answer *a)
{
    static const char *const names[] = { "same", "differs", "unknown" };
    json_t *o = json_pack("{s:I,s:s,s:I}", "message", (json_int_t)a->position, "outcome", names[a->outcome], "tokens",
                          (json_int_t)a->n);

    if (a->outcome == EBB_REPLAY_DIFFERS) {
        json_object_set_new(o, "was", token_json(r, a->was));
        json_object_set_new(o, "is", token_json(r, a->is));
    }
    if (a->why)
        json_object_set_new(o, "why", json_string(a->why));
    json_array_append_new(r->answers, o);
}

static void print_line(report *r, const ebb_replay_answer *a)
{
    printf("message %zu: ", a->position);
    if (a->outcome == EBB_REPLAY_UNKNOWN) {
        printf("not compared: %s\n", a->why);
    } else if (a->outcome == EBB_REPLAY_SAME) {
        printf("%u tokens, the same\n", a->n);
    } else {
        printf("differs after %u tokens: it was ", a->n);
        print_token(r, a->was);
        fputs(", and is ", stdout);
        print_token(r, a->is);
        fputs(" now\n", stdout);
    }
    fflush(stdout);
}

static void on_answer(void *arg, const ebb_replay_answer *a)
{
    report *r = arg;

    r->n_same += a->outcome == EBB_REPLAY_SAME;
    r->n_differ += a->outcome == EBB_REPLAY_DIFFERS;
    r->n_unknown += a->outcome == EBB_REPLAY_UNKNOWN;
    r->n_tokens += a->n;
    if (r->answers)
        add_json(r, a);
    else
        print_line(r, a);
}

/* The exit status; nothing compared is no proof. */
static int conclude_replay(report *r, ebb_error *err)
{
    bool is_proof = r->n_same > 0 && r->n_differ == 0;
    int status;

    if (r->answers) {
        json_t *all = json_incref(r->answers);
        status = ebb_cli_print_json(json_pack("{s:o,s:b,s:I}", "answers", all, "same", is_proof, "tokens",
                                              (json_int_t)r->n_tokens));
        return is_proof ? status : EBB_EXIT_FAILED;
    }
    if (r->n_same + r->n_differ == 0) {
        EBB_FAIL(err, EBB_NOTFOUND,
                 "nothing to compare: no answer here was sampled by this model as it is now");
        return ebb_cli_fail(err);
    }
    printf("%zu of %zu answers computed again, %llu tokens: ", r->n_same + r->n_differ,
           r->n_same + r->n_differ + r->n_unknown, (unsigned long long)r->n_tokens);
    if (is_proof)
        puts("the same, bit for bit");
    else
        printf("%zu differ%s\n", r->n_differ, r->n_differ == 1 ? "s" : "");
    return is_proof ? EBB_EXIT_OK : EBB_EXIT_FAILED;
}

int ebb_cmd_sessions_replay(ebb_store *s, ebb_args *a, ebb_error *err)
{
    report r = { .answers = a->json ? json_array() : NULL };
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_model *m = NULL;
    int64_t id;
    int status;
    ebb_status st = ebb_store_find(s, a->words[1], &id, err);

    a->engine.no_kv_cache = true;                /* no K and V of earlier runs are reused */
    if (st == EBB_OK)
        st = ebb_store_load(s, id, &f, &t, err);
    if (st == EBB_OK)
        st = open_replay_model(a, &t, &m, err);
    r.m = m;
    if (st == EBB_OK)
        st = ebb_replay(&t, m, &a->engine, on_answer, &r, err);
    status = st == EBB_OK ? conclude_replay(&r, err) : ebb_cli_fail(err);
    json_decref(r.answers);
    ebb_model_close(m);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    return status;
}
