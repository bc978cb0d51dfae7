/* How an answer ended while nobody watched: saved, and shown when the session is next opened
 * (chat_session.h). */
#include "conversation/chat_priv.h"

void ebb_chat_record_away(ebb_chat *c, const ebb_message *answer)
{
    if (!c->is_away)
        return;
    c->settings.away_tokens = answer->n_ids ? (uint32_t)answer->n_ids : answer->turn_stats.n_generated;
    c->settings.away_finish = answer->finish;
}

void ebb_chat_report_away(ebb_chat *c)
{
    uint32_t n = c->settings.away_tokens;

    if (n == 0)
        return;
    c->settings.away_tokens = 0;
    switch (c->settings.away_finish) {
    case EBB_FINISH_STOP:
        ebb_chat_notice(c, "answer finished while you were away (%u tokens)", n);
        break;
    case EBB_FINISH_LENGTH:
        ebb_chat_notice(c, "while you were away the answer reached its limit (%u tokens); /continue resumes it",
                        n);
        break;
    default:
        ebb_chat_notice(c, "the terminal went away and the answer was stopped (%u tokens); /continue resumes it",
                        n);
    }
    ebb_chat_save(c, false);
}
