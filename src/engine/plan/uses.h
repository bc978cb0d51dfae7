/* plan/uses.h - what earlier runs of a model learned of its experts: $XDG_CACHE_HOME/ebb/experts/NAME.
 *
 * Which experts are used often, how much of what was chosen had to be read, and how long passes took beside what
 * was predicted.  A file for each model, named by its fingerprint; one that is not there, is of another shape
 * or was damaged says nothing, and everything goes on as if it were the first run. */
#ifndef EBB_USES_H
#define EBB_USES_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ebb_uses {
    uint32_t n;                  /* experts of all layers */
    float   *often;              /* [n] discounted uses (worth.h) */
    double   room;               /* share of the experts that had places ... */
    double   missed;             /* ... when this share of what was chosen was read; 0, 0: unknown */
    double   pace;               /* time of a pass to the predicted one; 0: unknown */
} ebb_uses;

/* n zeroes; false: no memory. */
bool ebb_uses_init(ebb_uses *u, uint32_t n);
void ebb_uses_fini(ebb_uses *u);                 /* a zeroed one is fine */

/* false: nothing is known of u->n experts of the model of that fingerprint.  A zeroed *u gets as many as there are. */
bool ebb_uses_load(ebb_uses *u, const uint8_t fingerprint[16]);
/* A folder that cannot be written is no error: the log says so. */
void ebb_uses_save(const ebb_uses *u, const uint8_t fingerprint[16]);

/* The share of what is chosen that has to be read where this share of the experts has places: of those that are used
 * most, scaled by what was measured; 1 - room where nothing is known. */
double ebb_uses_missed(const ebb_uses *u, double room);

#endif
