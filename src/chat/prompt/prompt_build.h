/* chat/prompt/prompt_build.h - a prompt in the making: for prompt*.c only. */
#ifndef EBB_CHAT_PROMPT_BUILD_H
#define EBB_CHAT_PROMPT_BUILD_H
#include <string.h>

#include "prompt/prompt_render.h"

typedef struct ebb_prompt_build {
    const ebb_prompter *p;
    ebb_render_job      job;     /* the turns that are over; the open one is not rendered */
    const ebb_message  *open;    /* an answer that is to be continued, or NULL */
    ebb_rendering       now;     /* ... of all of job */
    ebb_prompt         *out;
    size_t              cap;     /* of out->ids */
    size_t              reuse_end;       /* bytes of now.text that the reused ids cover: the cut */
    size_t              n_reused;        /* messages whose ids are reused */
    size_t              drops_end_token; /* 1: but not the end token of the last one */
} ebb_prompt_build;

/* White space of the rendering, which templates print and strip as they like. */
static inline bool ebb_prompt_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline size_t ebb_prompt_skip_space(const ebb_buf *text, size_t at)
{
    while (at < text->len && ebb_prompt_is_space(text->data[at]))
        at++;
    return at;
}

static inline bool ebb_prompt_starts_at(const ebb_buf *text, size_t at, const char *what, size_t n)
{
    return n > 0 && n <= text->len - at && memcmp(text->data + at, what, n) == 0;
}

/* -- prompt_reuse.c ---------------------------------------------------------------- */
/* Which ids are reused where the last message with ids is k: n_reused, reuse_end, drops_end_token.
 * None, if the old conversation can no longer be rendered.  Errors: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_prompt_find_reuse_end(ebb_prompt_build *w, size_t k, ebb_error *err);

/* -- prompt_ids.c ------------------------------------------------------------------ */
/* What is appended goes to out->ids, which ebb_prompt_fini frees, also after an error: NOMEM, and
 * those of ebb_model_tokenize_with. */

/* Texts of the template are control tokens where they look so, but not the ranges quoted[0..n) of
 * the text, which the caller keeps. */
ebb_tokenize_opts ebb_prompt_tokenize_opts(const ebb_prompt_build *w, const ebb_text_range *quoted,
                                           size_t n_quoted);
/* One BOS in front if the vocabulary asks for it, and never two, whoever printed them. */
EBB_MUST_CHECK
ebb_status ebb_prompt_add_bos(ebb_prompt_build *w, ebb_error *err);
void ebb_prompt_drop_second_bos(ebb_prompt_build *w);
/* Ids of now.text[from..to); the words of messages there are never control tokens. */
EBB_MUST_CHECK
ebb_status ebb_prompt_add_part(ebb_prompt_build *w, size_t from, size_t to, ebb_error *err);
/* The whole prompt, one behind the other: the ids that are reused, everything behind the cut, the
 * open answer.  out->n_ids_of gets how many each message has. */
EBB_MUST_CHECK
ebb_status ebb_prompt_add_reused(ebb_prompt_build *w, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_prompt_add_new(ebb_prompt_build *w, ebb_error *err);
EBB_MUST_CHECK
ebb_status ebb_prompt_add_open(ebb_prompt_build *w, ebb_error *err);

/* -- prompt_system.c --------------------------------------------------------------- */
/* out->n_system and out->has_open_system, by a rendering of two other turns.  Errors: those of
 * prompt_ids.c. */
EBB_MUST_CHECK
ebb_status ebb_prompt_count_system(ebb_prompt_build *w, ebb_error *err);
#endif
