/* chat/conversation/chat_settings.h - what /set changes: where a value comes from, and what the
 * store keeps of it. */
#ifndef EBB_CHAT_CHAT_SETTINGS_H
#define EBB_CHAT_CHAT_SETTINGS_H
#include "conversation/chat.h"
#include "conversation/form_choice.h"

/* Whether what is typed is computed before it is sent. */
typedef enum ebb_speculative_prefill { EBB_SPECULATIVE_PREFILL_ON,
                                       EBB_SPECULATIVE_PREFILL_OFF } ebb_speculative_prefill;

/* One bit of is_set per setting that this session carries. */
typedef struct ebb_chat_settings {
    ebb_sampler_params sampling;
    uint32_t     n_predict;
    ebb_thinking thinking;
    ebb_overflow_policy overflow;
    ebb_speculative_prefill prefill;
    uint32_t     is_set;
    uint32_t     away_tokens;    /* length of an answer that ended unseen; 0: there is none */
    ebb_finish   away_finish;    /* and how it ended */
    ebb_form_choice form;        /* of answers */
    char         template_name[200]; /* of ebb_prompter_new_named; "": what the command line says */
    bool         is_template_lost;   /* it cannot be read now: kept, but not used */
} ebb_chat_settings;

/* What holds where the session has set nothing. */
typedef struct ebb_setting_defaults {
    ebb_chat_settings settings;
    uint32_t          sampling_given;    /* EBB_SAMPLING_BITs that the command line set ... */
    uint32_t          sampling_config;   /* ... and the configuration */
    bool              overflow_given;    /* the policy was named for this run */
} ebb_setting_defaults;

/* Settings that neither the command line nor the session has set become what the model at hand
 * recommends (general.sampling.* of its file), else the default. */
void ebb_chat_settings_apply_model(ebb_chat *c);
/* What the file recommends and no setting can follow, as a list; false: nothing. */
bool ebb_chat_settings_unfollowed(const ebb_chat *c, char *out, size_t cap);
/* EBB_SAMPLING_BITs of what somebody chose: the command line, the configuration, the session; and
 * for an engine that was found, the store that the model lies in, of which it knows nothing. */
uint32_t ebb_chat_settings_chosen(const ebb_chat *c);
/* Names of what somebody chose and the engine is not sent, since its protocol has none, as a list;
 * what the configuration chose only if `configured`.  false: nothing. */
bool ebb_chat_settings_unsent(const ebb_chat *c, bool configured, char *out, size_t cap);
/* Take what the session carries over the defaults.  What the command line set goes before it, for
 * this run: the session keeps its own. */
void ebb_chat_settings_load(ebb_chat *c, const char *json);
/* A new session goes on with the settings in force. */
void ebb_chat_settings_begin(ebb_chat *c);
/* What the session carries, as JSON; NULL if nothing is set (or no memory); free() it. */
char *ebb_chat_settings_json(const ebb_chat *c);

#endif
