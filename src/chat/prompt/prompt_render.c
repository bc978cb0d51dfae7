#include "prompt/prompt_render.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/json_text.h"
#include "tree/thought.h"

#define OWN_OUTPUT ((size_t)1 << 20)
#define MAX_OUTPUT ((size_t)64 << 20)

void ebb_rendering_fini(ebb_rendering *r)
{
    ebb_buf_fini(&r->text);
    free(r->ranges);
    memset(r, 0, sizeof *r);
}

/* -- The context -------------------------------------------------------------------- */

static bool append_message_text(ebb_buf *out, const ebb_message *m, const char *behind)
{
    return ebb_buf_add(out, m->text ? m->text : "", m->n_text) && ebb_buf_adds(out, behind);
}

static size_t first_user(const ebb_render_job *job)
{
    size_t i = 0;

    while (i < job->n && job->messages[i]->role != EBB_ROLE_USER)
        i++;
    return i;
}

/* Content of message i: its text, or with those of the system before it. */
static json_t *content_of(const ebb_render_job *job, size_t i)
{
    ebb_buf text = { 0 };
    bool ok = true;
    json_t *j;

    for (size_t k = 0; job->merge_system && i == first_user(job) && k < job->n; k++)
        if (job->messages[k]->role == EBB_ROLE_SYSTEM)
            ok = ok && append_message_text(&text, job->messages[k], "\n\n");
    ok = ok && append_message_text(&text, job->messages[i], "");
    j = ok ? ebb_json_text(ebb_buf_text(&text), text.len) : NULL;
    ebb_buf_fini(&text);
    return j;
}

static size_t trimmed(const char *s, size_t n)
{
    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == ' '))
        n--;
    return n;
}

/* An answer as the template gets it. */
typedef struct given_answer {
    ebb_answer_parts   parts;    /* of its text */
    ebb_prompt_thought apart;    /* in fields; n 0: nothing is */
    bool               is_marked; /* the text is what the model wrote, a thought between its marks included */
} given_answer;

static given_answer given_of(const ebb_prompter *p, const ebb_render_job *job, size_t i)
{
    const ebb_message *m = job->messages[i];
    const char *s = m->text ? m->text : "";
    given_answer g = { .parts = { .text = s, .n_text = m->n_text } };
    ebb_thought t = ebb_message_thought(m);

    if (job->opts->thoughts && job->opts->thoughts[i].n > 0) {
        g.apart = job->opts->thoughts[i];
        if (p->thought_marks && !p->takes_thoughts) {
            g.parts.thought = g.apart.text;
            g.parts.n_thought = g.apart.n;
            g.parts.before = p->thought_marks->before;
            g.parts.behind = p->thought_marks->behind;
            g.apart.n = 0;
        }
    } else if (t.in_channels ? !p->keeps_channels : p->takes_thoughts && p->keeps_thoughts) {
        g.apart = (ebb_prompt_thought){ s + t.start, trimmed(s + t.start, t.end - t.start) };
        g.parts.text = s + t.body;
        g.parts.n_text = m->n_text - t.body;
    } else {
        g.is_marked = t.in_channels || t.body > 0;
    }
    return g;
}

bool ebb_prompt_write_answer(const ebb_prompter *p, const ebb_render_job *job, size_t i, ebb_buf *out,
                             ebb_answer_words *words)
{
    given_answer g = given_of(p, job, i);
    ebb_thought_begin begin = ebb_message_thought_begin(job->messages[i]);
    bool ok = ebb_answer_join(&g.parts, out, words);

    if (begin == EBB_THOUGHT_UNSURE)
        begin = EBB_THOUGHT_UNOPENED;            /* no mark is guessed from how it stands in an answer */
    if (g.is_marked)
        *words = ebb_answer_find_words(g.parts.text, g.parts.n_text, begin);
    return ok;
}

/* Text in which nothing looks like the mark of a channel, of which some templates refuse any. */
static bool append_without_channels(ebb_buf *out, const char *s, size_t n)
{
    static const char mark[] = EBB_CHANNEL_NAME;
    const char *end = s + n, *at;
    bool ok = true;

    for (; ok && (at = memmem(s, (size_t)(end - s), mark, sizeof mark - 1)) != NULL; s = at + sizeof mark - 1)
        ok = ebb_buf_add(out, s, (size_t)(at - s)) && ebb_buf_adds(out, "<|channel |>");
    return ok && ebb_buf_add(out, s, (size_t)(end - s));
}

static json_t *part_json(const ebb_prompter *p, const char *s, size_t n)
{
    ebb_buf text = { 0 };
    json_t *j;

    if (!p->refuses_channels)
        return ebb_json_text(s, n);
    j = append_without_channels(&text, s, n) ? ebb_json_text(ebb_buf_text(&text), text.len) : NULL;
    ebb_buf_fini(&text);
    return j;
}

static json_t *answer_text(const ebb_prompter *p, const ebb_answer_parts *a)
{
    ebb_buf text = { 0 };
    ebb_answer_words words;
    json_t *j = ebb_answer_join(a, &text, &words) ? part_json(p, ebb_buf_text(&text), text.len) : NULL;

    ebb_buf_fini(&text);
    return j;
}

/* Fields that templates read thoughts from. */
static json_t *answer_json(const ebb_prompter *p, const ebb_render_job *job, size_t i)
{
    given_answer g = given_of(p, job, i);
    json_t *text = answer_text(p, &g.parts), *thought = NULL;

    if (g.apart.n > 0 && !(thought = part_json(p, g.apart.text, g.apart.n))) {
        json_decref(text);
        return NULL;
    }
    return text ? json_pack("{s:s, s:o, s:O*, s:o*}", "role", "assistant", "content", text, "thinking", thought,
                            "reasoning_content", thought) : NULL;
}

static json_t *message_json(const ebb_prompter *p, const ebb_render_job *job, size_t i)
{
    json_t *content;

    if (job->messages[i]->role == EBB_ROLE_ASSISTANT)
        return answer_json(p, job, i);
    content = content_of(job, i);
    return content ? json_pack("{s:s, s:o}", "role", ebb_role_name(job->messages[i]->role), "content", content) : NULL;
}

/* map[i]: which message of the job the ith of the list is. */
static json_t *messages_json(const ebb_prompter *p, const ebb_render_job *job, size_t *map)
{
    json_t *list = json_array();
    size_t k = 0;

    for (size_t i = 0; list && i < job->n; i++) {
        json_t *m;
        if (job->merge_system && job->messages[i]->role == EBB_ROLE_SYSTEM)
            continue;
        m = message_json(p, job, i);
        if (!m || json_array_append_new(list, m) != 0) {
            json_decref(list);
            return NULL;
        }
        map[k++] = i;
    }
    return list;
}

/* tools and documents are none, not undefined: that is what templates are tested with. */
static json_t *context_json(const ebb_prompter *p, const ebb_render_job *job, size_t *map)
{
    json_t *messages = messages_json(p, job, map);
    json_t *c = json_pack("{s:o*, s:o*, s:o*, s:n, s:n}", "messages", messages, "bos_token",
                          ebb_json_text(p->bos, strlen(p->bos)),
                          "eos_token", ebb_json_text(p->eos, strlen(p->eos)), "tools", "documents");

    if (c && job->opts->thinking != EBB_THINKING_DEFAULT)
        json_object_set_new(c, "enable_thinking", json_boolean(job->opts->thinking == EBB_THINKING_ON));
    if (c && job->opts->variables)
        json_object_update_missing(c, (json_t *)job->opts->variables);
    if (messages && json_object_size(c) >= 5)
        return c;
    json_decref(c);
    return NULL;
}

/* -- Rendering -------------------------------------------------------------------------- */

static struct tm local_now(int64_t ms)
{
    time_t t = ms ? (time_t)(ms / 1000) : time(NULL);
    struct tm tm = { 0 };

    localtime_r(&t, &tm);
    return tm;
}

/* Bytes that a template may print: the messages, escaped at most, and what it says itself.  All of it is tokenized,
 * and takes 50 times its bytes for that. */
static size_t most_output(const ebb_render_job *job)
{
    size_t n_text = 0;

    for (size_t i = 0; i < job->n; i++)
        n_text += job->messages[i]->n_text + (job->opts->thoughts ? job->opts->thoughts[i].n : 0);
    return n_text < MAX_OUTPUT / 8 ? OWN_OUTPUT + 8 * n_text : MAX_OUTPUT;
}

ebb_status ebb_prompt_render(const ebb_prompter *p, const ebb_render_job *job, ebb_rendering *out, ebb_error *err)
{
    size_t *map = calloc(job->n + 1, sizeof *map);
    json_t *context = map ? context_json(p, job, map) : NULL;
    struct tm now = local_now(job->opts->now_ms);
    ebb_template_opts o = { .attribute = true, .now = &now, .max_output_bytes = most_output(job),
                            .stop = job->opts->stop, .stop_arg = job->opts->stop_arg };
    ebb_template_result r = { 0 };
    ebb_status st;

    memset(out, 0, sizeof *out);
    if (context)
        st = ebb_template_render(p->tpl, context, &o, &r, err);
    else
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    out->raised = r.raised;
    if (st == EBB_OK) {
        out->text = r.text;
        out->ranges = r.ranges;
        out->n_ranges = r.n_ranges;
        r.text = (ebb_buf){ 0 };
        r.ranges = NULL;
        for (size_t i = 0; i < out->n_ranges; i++)
            out->ranges[i].message = (uint32_t)map[out->ranges[i].message];
    }
    ebb_template_result_fini(&r);
    json_decref(context);
    free(map);
    return st;
}

size_t ebb_rendering_begin_of(const ebb_rendering *r, size_t message)
{
    size_t begin = r->text.len;

    for (size_t i = 0; i < r->n_ranges; i++)
        if (r->ranges[i].message == message && r->ranges[i].begin < begin)
            begin = r->ranges[i].begin;
    return begin;
}

size_t ebb_rendering_end_of(const ebb_rendering *r, size_t message)
{
    for (size_t i = r->n_ranges; i > 0; i--)
        if (r->ranges[i - 1].message == message)
            return r->ranges[i - 1].end;
    return 0;
}

static bool is_blank_message(const ebb_message *m)
{
    for (size_t i = 0; i < m->n_text; i++)
        if (!strchr(" \t\r\n", m->text[i]) || m->text[i] == '\0')
            return false;
    return true;
}

/* A system message of which the template printed nothing. */
static bool lost_system(const ebb_render_job *job, const ebb_rendering *r)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->messages[i]->role == EBB_ROLE_SYSTEM && !is_blank_message(job->messages[i]) &&
            ebb_rendering_end_of(r, i) == 0)
            return true;
    return false;
}

static bool can_merge(const ebb_render_job *job)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->messages[i]->role == EBB_ROLE_SYSTEM)
            return first_user(job) < job->n;
    return false;
}

ebb_status ebb_prompt_render_or_merge(const ebb_prompter *p, ebb_render_job *job, ebb_rendering *out, ebb_error *err)
{
    ebb_rendering merged;
    ebb_status st = ebb_prompt_render(p, job, out, err);

    if (!can_merge(job) || !(st == EBB_OK ? lost_system(job, out) : out->raised))
        return st;
    job->merge_system = true;
    if (ebb_prompt_render(p, job, &merged, NULL) == EBB_OK) {
        ebb_rendering_fini(out);
        *out = merged;
        return EBB_OK;
    }
    ebb_rendering_fini(&merged);                 /* it was not the system message: the first words count */
    job->merge_system = false;
    return st;
}
