/* plan/expert_profile.h - what earlier runs of a model learned of its experts:
 * $XDG_CACHE_HOME/ebb/experts/NAME.
 *
 * Which experts are used often, how much of what was chosen had to be read, and how long passes
 * took beside what was predicted.  A file for each model, named by its fingerprint; one that is not
 * there, is of another shape or was damaged says nothing, and everything goes on as if it were the
 * first run. */
#ifndef EBB_EXPERT_PROFILE_H
#define EBB_EXPERT_PROFILE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ebb_expert_profile {
    uint32_t n;                  /* experts of all layers */
    float   *uses;               /* [n] discounted uses (lrfu.h) */
    double   cache_share;        /* share of the experts that had places ... */
    double   miss_rate;          /* ... when this share of what was chosen was read, more than 1
                                    where much was read ahead in vain; 0, 0: unknown */
    double   slowdown;           /* time of a pass to the predicted one; 0: unknown */
} ebb_expert_profile;

/* n zeroes; false: no memory. */
bool ebb_expert_profile_init(ebb_expert_profile *u, uint32_t n);
void ebb_expert_profile_fini(ebb_expert_profile *u); /* a zeroed one is fine */

/* false: nothing is known of u->n experts of the model of that fingerprint.  A zeroed *u gets as
 * many as there are. */
bool ebb_expert_profile_load(ebb_expert_profile *u, const uint8_t fingerprint[16]);
/* A folder that cannot be written is no error: the log says so. */
void ebb_expert_profile_save(const ebb_expert_profile *u, const uint8_t fingerprint[16]);

/* The share of what is chosen that has to be read where this share of the experts has places: of
 * those that are used most, scaled by what was measured.  At most the larger of that and of chance,
 * 1 - cache_share, which it is where nothing is known. */
double ebb_expert_profile_miss_rate(const ebb_expert_profile *u, double cache_share);

#endif
