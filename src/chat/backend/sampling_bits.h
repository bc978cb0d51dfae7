/* backend/sampling_bits.h - which settings of sampling somebody chose, as a mask. */
#ifndef EBB_BACKEND_SAMPLING_BITS_H
#define EBB_BACKEND_SAMPLING_BITS_H
#include <stddef.h>

#include "ebb/session.h"

/* Each field of ebb_sampler_params has a bit, and n_predict, which stands behind them in
 * ebb_chat_settings (conversation/chat_settings.h): by its offset there, as all of them begin at
 * multiples of 4. */
#define EBB_SAMPLING_BIT_AT(offset) (1u << ((offset) / 4))
#define EBB_SAMPLING_BIT(field) EBB_SAMPLING_BIT_AT(offsetof(ebb_sampler_params, field))
#define EBB_SAMPLING_PREDICT EBB_SAMPLING_BIT_AT(sizeof(ebb_sampler_params))

#endif
