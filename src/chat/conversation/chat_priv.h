/* chat/conversation/chat_priv.h - the inside of a chat: for conversation/ and turn/ only.
 *
 * A chat is a conversation (tree, session, settings), a backend that answers, and the turn between
 * them.  The two folders are one room: conversation/ has what a chat is and what can be done with
 * it, turn/ what happens from a question to the end of its answer, and what the model gets of the
 * conversation.  Each part has a header of its own; the files call each other downwards:
 *
 *   what the user can do             chat.c chat_actions.c chat_branches.c chat_engines.c
 *                                    chat_export.c chat_form.c chat_import.c chat_sessions.c
 *                                    chat_share.c turn/chat_cut.c turn/quality_ask.c
 *   ... and sees while he types      turn/chat_preview.c turn/chat_prefill.c
 *   what backend and timer bring     turn/chat_dispatch.c chat_follow.c chat_linger.c
 *   a session is entered             chat_session.c chat_system.c
 *   a turn's states and events       turn/chat_turn.c turn/quality.c turn/replan.c
 *   an answer; a full context        turn/chat_answer.c turn/chat_sample_record.c turn/overflow*.c
 *   what a session and a model have  chat_save.c chat_settings.c chat_model.c template_choice.c
 *                                    chat_reference.c chat_away.c
 *   what the model gets of a path    turn/context_view.c turn/chat_estimate.c turn/quality_ids.c
 *                                    chat_state.c
 *   what all of them use             chat_queues.c chat_job.c form_choice.c writer_lock.c
 *
 * Four calls go up: a model is to be shared with other chats, cannot be, or is opened after all
 * (chat_engines.c, chat_share.c), and where the session that was followed is gone there is a new
 * one.  turn/replay.c needs no chat. */
#ifndef EBB_CHAT_CHAT_PRIV_H
#define EBB_CHAT_CHAT_PRIV_H
#include "conversation/chat_job.h"
#include "conversation/chat_model.h"
#include "conversation/chat_ops.h"
#include "conversation/chat_queues.h"
#include "conversation/chat_reference.h"
#include "conversation/chat_session.h"
#include "conversation/chat_settings.h"
#include "conversation/writer_lock.h"
#include "models/models.h"
#include "turn/chat_turn.h"
#include "turn/context_view.h"
#include "turn/overflow.h"
#include "turn/quality.h"

struct ebb_chat {
    ebb_chat_ops         ops;

    /* The conversation. */
    ebb_store           *store;          /* NULL: nothing can be kept */
    ebb_chat_saving      saving;
    ebb_session_facts    facts;
    ebb_tree             tree;
    ebb_deleted_sessions deleted;
    char                *template_name;  /* ebb_chat_opts.template_name */
    bool                 template_given; /* ebb_chat_opts.template_given */
    char                *system;         /* the system prompt that a new session begins with */
    bool                 system_given;   /* ebb_chat_opts.system_given */
    uint32_t             generation;     /* ebb_chat_generation */
    ebb_setting_defaults defaults;
    ebb_chat_settings    settings;       /* of this session */
    ebb_chat_settings    overridden;     /* those it carries and the command line goes before, with
                                          * their bits: for the store */

    /* What answers. */
    ebb_backend         *backend;
    ebb_prompter        *prompter;
    bool               (*stop)(void *arg);       /* ebb_chat_opts.stop */
    void                *stop_arg;
    const ebb_model_info *info;          /* NULL until ready */
    ebb_model_advice     advice;         /* of the store that the model lies in */
    ebb_model_opening    opening;
    ebb_remote_choice    remote;
    ebb_chat_sharing     sharing;
    bool                 awaits_budget, awaits_plan; /* of the backend, which has not told yet */
    ebb_chat_reference   reference;

    /* What happens. */
    ebb_turn             turn;
    ebb_chat_overflow    overflow;
    ebb_quality          quality;
    ebb_writer_lock      writer_lock, name_lock;
    ebb_chat_following   follow;
    ebb_chat_job        *job;            /* long work that is no answer; NULL: none */
    bool                 is_away;        /* nobody looks any more */
    ebb_chat_queues      queues;
};

#endif
