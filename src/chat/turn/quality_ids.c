/* Which ids are the same in two files of one network (quality.h). */
#include "turn/quality.h"

#include <string.h>

#include "conversation/chat_priv.h"

static bool is_of_pair(const ebb_quality *q, const uint8_t fingerprint[16])
{
    return q->has_pair && (memcmp(q->pair[0], fingerprint, 16) == 0 || memcmp(q->pair[1], fingerprint, 16) == 0);
}

bool ebb_quality_shares_ids(const ebb_chat *c, const uint8_t fingerprint[16])
{
    return memcmp(fingerprint, c->info->fingerprint, 16) == 0 ||
           (is_of_pair(&c->quality, fingerprint) && is_of_pair(&c->quality, c->info->fingerprint));
}

void ebb_quality_set_pair(ebb_chat *c, const ebb_better_model *better)
{
    memcpy(c->quality.pair[0], c->info->fingerprint, 16);
    memcpy(c->quality.pair[1], better->fingerprint, 16);
    c->quality.has_pair = true;
}
