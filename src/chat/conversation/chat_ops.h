/* chat/conversation/chat_ops.h - what stands between a chat and the engine: functions, so that
 * tests can give a chat another backend.  The real ones are in chat_model_ops.c. */
#ifndef EBB_CHAT_CHAT_OPS_H
#define EBB_CHAT_CHAT_OPS_H
#include "backend/backend.h"
#include "conversation/chat.h"
#include "ebb/experimental/plan.h"
#include "models/models.h"
#include "prompt/prompt.h"
#include "prompt/retokenize.h"

typedef struct ebb_chat_ops {
    void        *arg;
    ebb_sampler_params default_sampling;
    ebb_status (*open)(void *arg, const ebb_backend_models *models, const ebb_engine_opts *opts,
                       ebb_backend_sink *sink, void *sink_arg, ebb_backend **out, ebb_error *err);
    /* Could it be a model (ebb_models_check)?  Asked before one that is open is closed for it.
     * NULL: every file could. */
    ebb_status (*check)(void *arg, const char *path, const ebb_engine_opts *opts, ebb_error *err);
    /* The model is loaded: its facts, which live as long as the backend, the maker of prompts, and
     * what the user should know of them ("": nothing).  template_name: as ebb_prompter_new_named
     * has it. */
    ebb_status (*ready)(void *arg, ebb_backend *b, const char *template_name,
                        const ebb_model_info **info, ebb_prompter **p,
                        char notice[256], ebb_error *err);
    void (*unready)(void *arg, ebb_prompter *p);             /* NULL is fine */
    /* A number of the model's metadata; false: it has none.  NULL: no model has any. */
    bool (*number)(void *arg, const ebb_backend *b, const char *key, double *out);
    /* A string of it, as long as the backend lives and raw; NULL: it has none. */
    const char *(*string)(void *arg, const ebb_backend *b, const char *key);
    /* Key i of it, as long as the backend lives and raw; NULL: it has no more. */
    const char *(*key)(void *arg, const ebb_backend *b, size_t i);
    ebb_status (*prompt)(void *arg, const ebb_prompter *p,
                         const ebb_message *const *messages, size_t n,
                         const ebb_prompt_opts *opts, ebb_prompt *out, ebb_error *err);
    /* The plan of the model with other options; NULL: nobody can say. */
    ebb_status (*plan)(void *arg, const ebb_backend *b, const ebb_engine_opts *opts, ebb_plan *out,
                       ebb_error *err);
    /* A better file of the model's network (ebb_models_find_better), with the model at hand as its
     * draft, for a conversation of n_tokens; NULL: nobody can say. */
    ebb_status (*better)(void *arg, const ebb_backend *b, const char *name,
                         const ebb_engine_opts *opts, uint32_t n_tokens, ebb_better_model *out,
                         ebb_error *err);
    ebb_status (*retokenize)(void *arg, const ebb_backend *b, ebb_retokenization *r,
                             ebb_error *err);
} ebb_chat_ops;

/* ebb_chat_open with these. */
EBB_MUST_CHECK
ebb_status ebb_chat_open_with(const ebb_chat_opts *opts, const ebb_chat_ops *ops, ebb_chat **out,
                              ebb_error *err);

#endif
