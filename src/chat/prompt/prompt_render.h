/* chat/prompt/prompt_render.h - conversations through a chat template: the half of
 * a prompt that knows templates, not ids (prompt_build.h has the other). */
#ifndef EBB_CHAT_PROMPT_RENDER_H
#define EBB_CHAT_PROMPT_RENDER_H
#include "prompt/answer_words.h"
#include "prompt/prompt.h"
#include "template/template.h"

struct ebb_prompter {
    const ebb_model *m;
    ebb_template    *tpl;
    char    *bos, *eos;          /* texts of these tokens, "" if there is none */
    bool     adds_bos;           /* the vocabulary asks for BOS */
    char   **ends;               /* texts of the tokens that end a turn */
    size_t   n_ends;
    bool     takes_thoughts;     /* the template reads a field of a message for them, */
    bool     keeps_thoughts;     /* but not from the text of an answer, */
    const ebb_thought_marks *thought_marks;      /* those that it names, or else the vocabulary
                                  * has; NULL: none */
    bool     names_channels;     /* names <|channel|>, */
    bool     keeps_channels;     /* does not, though the model writes it, */
    bool     refuses_channels;   /* names it and may refuse texts with it */
    char     origin[280];
    ebb_buf  source;             /* the template's text */
};

/* ebb_prompter_new with n bytes of template source in place of the file's.  Errors also: FORMAT. */
EBB_MUST_CHECK
ebb_status ebb_prompter_new_with(const ebb_model *m, const char *source, size_t n,
                                 ebb_prompter **out, ebb_error *err);

/* What is rendered, and how. */
typedef struct ebb_render_job {
    const ebb_message *const *messages;
    size_t n;
    const ebb_prompt_opts *opts;
    bool   merge_system;         /* texts of system messages go in front of the first user
                                  * message */
} ebb_render_job;

typedef struct ebb_rendering {
    ebb_buf          text;
    ebb_template_range *ranges;  /* `message` counts in job->messages */
    size_t           n_ranges;
    bool             raised;
} ebb_rendering;
void ebb_rendering_fini(ebb_rendering *r);

/* Append the text that the template gets of answer i, of whose beginning are *words.  false: no
 * memory. */
EBB_MUST_CHECK
bool ebb_prompt_write_answer(const ebb_prompter *p, const ebb_render_job *job, size_t i,
                             ebb_buf *out, ebb_answer_words *words);

/* The whole job, with the generation prompt.  Errors: as ebb_template_render. */
EBB_MUST_CHECK
ebb_status ebb_prompt_render(const ebb_prompter *p, const ebb_render_job *job, ebb_rendering *out,
                             ebb_error *err);

/* The same; if the template refuses the system message or prints nothing of it,
 * job->merge_system is set and it is rendered so. */
EBB_MUST_CHECK
ebb_status ebb_prompt_render_or_merge(const ebb_prompter *p, ebb_render_job *job,
                                      ebb_rendering *out, ebb_error *err);

/* Where the bytes of a message begin in the rendering; text.len: it printed none. */
size_t ebb_rendering_begin_of(const ebb_rendering *r, size_t message);
/* Where the bytes of a message end in the rendering; 0: it printed none. */
size_t ebb_rendering_end_of(const ebb_rendering *r, size_t message);

#endif
