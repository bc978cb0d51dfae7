/* memory/calibrate.h - how fast this machine is: remembered, measured when it is needed, corrected
 * by what passes take. */
#ifndef EBB_CALIBRATE_H
#define EBB_CALIBRATE_H
#include <stdbool.h>

#include "ebb/engine.h"
#include "ebb/experimental/plan.h"
#include "plan/layout.h"
#include "plan/pass_rows.h"
#include "residency/residency.h"

typedef struct ebb_calibration {
    ebb_expert_profile uses;     /* of experts; of none if the model has none */
    uint64_t     n_saved_choices;        /* choices that had been counted when it was saved */
    ebb_expert_counts learned;   /* what had been counted when their use was learned last */
    double       correction;     /* measured time of a pass to predicted; 0: none was measured
                                    yet */
    double       applied;        /* the correction that the plan's prediction has already; 0:
                                    none */
    bool         has_disk;       /* the readers were measured: */
    ebb_disk_speeds disk;
    ebb_speeds   known;          /* what was measured on this machine before */
    uint64_t     types;          /* of the model, a bit each */
    ebb_pass_rows rows;          /* of one column, since anything was learned */
    ebb_contention_mark row_begin, turn_begin;
    double       turn_contention;        /* from the turn's begin to the last row's end; 1: not
                                            known */
} ebb_calibration;

/* What is known of this machine and disk. */
void ebb_calibrate_open(ebb_engine *e);
void ebb_calibrate_close(ebb_engine *e);
/* Measure what a prediction of `p` lacks; of the disk only if it streams.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_calibrate_measure(ebb_engine *e, const ebb_plan *p, ebb_error *err);
/* Between turns: measure what a prediction lacks, and keep what was learned. */
void ebb_calibrate_idle(ebb_engine *e);
/* A pass of one column took so long, predicted_s with neither correction nor contention. */
void ebb_calibrate_pass(ebb_engine *e, double seconds, double predicted_s);
/* Passes from here on take another time than those before.  With the lock held. */
void ebb_calibrate_break(ebb_engine *e);
/* Before the next turn, with the lock held: predict by the best passes of the last one from now
 * on. */
void ebb_calibrate_turn(ebb_engine *e);

#endif
