/* ebb inspect logits: the model's answer in numbers, for comparison with a reference. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ebb/experimental/inspect.h"
#include "json/json_text.h"
#include "os/file.h"

#define MAX_TOKENS_BYTES ((size_t)64 << 20)

typedef struct logits_job {
    ebb_token *ids;
    size_t     n_ids;
    bool      *wanted;           /* per position; NULL: all */
    json_t    *greedy;           /* --json: the ids that follow */
    FILE      *out;
    bool       failed;
} logits_job;

static void write_logits(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    logits_job *job = arg;

    if (job->out && (!job->wanted || job->wanted[pos]) && fwrite(logits, sizeof *logits, n_vocab, job->out) != n_vocab)
        job->failed = true;
}

static ebb_status read_ids(const char *path, const ebb_model *m, logits_job *job, ebb_error *err)
{
    ebb_buf text = { 0 };
    const char *p, *end;
    ebb_token id;
    ebb_status st = ebb_file_slurp(path, MAX_TOKENS_BYTES, &text, err);

    if (st == EBB_OK && !(job->ids = calloc(text.len / 2 + 1, sizeof *job->ids)))
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for its tokens", path);
    p = ebb_buf_text(&text);
    end = p + text.len;
    while (st == EBB_OK && (st = ebb_cli_next_id(&p, end, m, path, &id, err)) == EBB_OK && id != EBB_TOKEN_NONE)
        job->ids[job->n_ids++] = id;
    if (st == EBB_OK && job->n_ids == 0)
        st = EBB_FAIL(err, EBB_FORMAT, "%s: holds no token ids", path);
    ebb_buf_fini(&text);
    return st;
}

static ebb_status read_positions(const char *list, logits_job *job, ebb_error *err)
{
    if (!list)
        return EBB_OK;
    job->wanted = calloc(job->n_ids, sizeof *job->wanted);
    if (!job->wanted)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the positions");
    for (const char *p = list; *p;) {
        char *end;
        unsigned long pos = strtoul(p, &end, 10);
        if (end == p || (*end && *end != ',') || pos >= job->n_ids)
            return EBB_FAIL(err, EBB_USAGE, "--positions %s: give a list of positions below %zu", list, job->n_ids);
        job->wanted[pos] = true;
        p = end + (*end == ',');
    }
    return EBB_OK;
}

/* The argmax continuation, ids on one line, or into `list` unless it is NULL. */
static ebb_status print_greedy(ebb_session *s, size_t n_vocab, uint32_t steps, json_t *list, ebb_error *err)
{
    for (uint32_t i = 0; i < steps; i++) {
        const float *logits = ebb_session_logits(s);
        ebb_token best = 0;
        for (size_t v = 1; v < n_vocab; v++)
            if (logits[v] > logits[best])
                best = (ebb_token)v;
        if (list)
            json_array_append_new(list, json_integer(best));
        else
            printf("%d%s", best, i + 1 == steps ? "\n" : " ");
        if (i + 1 < steps) {
            ebb_status st = ebb_session_append(s, best, err);
            if (st != EBB_OK)
                return st;
        }
    }
    return EBB_OK;
}

static ebb_status evaluate_logits(const ebb_args *a, const ebb_model *m, logits_job *job, ebb_error *err)
{
    ebb_engine *e = NULL;
    ebb_stats stats;
    ebb_session *s = NULL;
    ebb_engine_opts opts = a->engine;
    ebb_status st;

    if (!opts.n_ctx)
        opts.n_ctx = (uint32_t)job->n_ids + a->greedy_steps;
    st = ebb_engine_open(m, &opts, NULL, NULL, &e, err);
    if (st == EBB_OK) {
        ebb_engine_stats(e, &stats);
        ebb_cli_tell(a, stats.left_out);
    }
    if (st == EBB_OK)
        st = ebb_session_new(e, &s, err);
    if (st == EBB_OK)
        st = ebb_session_eval(s, job->ids, job->n_ids, opts.n_batch, write_logits, job, err);
    if (st == EBB_OK && a->greedy_steps)
        st = print_greedy(s, ebb_model_get_info(m)->n_vocab, a->greedy_steps, job->greedy, err);
    ebb_session_free(s);
    ebb_engine_close(e);
    return st;
}

int ebb_cmd_inspect_logits(ebb_args *a)
{
    logits_job job = { .greedy = a->json ? json_array() : NULL };
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st = EBB_OK;

    if (!a->tokens_path || (!a->out_path && !a->greedy_steps))
        st = EBB_FAIL(&err, EBB_USAGE, "inspect logits: needs --tokens FILE and --out FILE or --greedy N");
    if (st == EBB_OK)
        st = ebb_cli_open_model(a, &m, &err);
    if (st == EBB_OK)
        st = read_ids(a->tokens_path, m, &job, &err);
    if (st == EBB_OK)
        st = read_positions(a->positions, &job, &err);
    if (st == EBB_OK && a->out_path && !(job.out = fopen(a->out_path, "wb")))
        st = EBB_FAIL(&err, EBB_IO, "%s: cannot be written: %s", a->out_path, strerror(errno));
    if (st == EBB_OK)
        st = evaluate_logits(a, m, &job, &err);
    if (job.out && (fclose(job.out) != 0 || job.failed) && st == EBB_OK)
        st = EBB_FAIL(&err, EBB_IO, "%s: cannot be written: %s", a->out_path, strerror(errno));
    if (st == EBB_OK && a->json)
        status = ebb_cli_print_json(json_pack("{s:I, s:O, s:o}", "tokens", (json_int_t)job.n_ids, "greedy",
                                              job.greedy, "out", a->out_path ? ebb_json_text_or_null(a->out_path)
                                                                             : json_null()));
    json_decref(job.greedy);
    free(job.ids);
    free(job.wanted);
    ebb_model_close(m);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
