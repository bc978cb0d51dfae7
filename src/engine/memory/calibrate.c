/* How fast this machine is, for the engine that runs on it (calibrate.h).
 *
 * A plan that reads nothing needs no figures before its first token: they are remembered from an earlier run,
 * or measured in an idle moment.  Then passes tell: eight of one column in a row that had the processor
 * for themselves are worth more than any measurement. */
#include "base/log.h"
#include "open/engine_state.h"
#include "open/model_file.h"
#include "os/proc.h"

#define MEASURE_S     0.25
#define ROW           8u         /* passes in a row; ... */
#define ROW_STREAMING 2u         /* ... of those that take long */
#define TURN_S        0.5        /* a shorter turn does not tell whether it was quiet */
#define DEPTH_MAX     2048u      /* deeper, attention takes a part of the time */
#define CHOICES       8u         /* passes that teach something of experts */
#define PACE_LEAST    0.5
#define PACE_MOST     3.0

void ebb_calibrate_open(ebb_engine *e)
{
    ebb_calibration *b = &e->calibration;

    b->types = ebb_machine_types(e->model);
    b->disk = (ebb_disk_speeds){ .device = ebb_machine_device(e->model), .io = e->opts.io };
    ebb_speeds_load(&b->known, e->run.kern, e->plan.n_threads);
    (void)ebb_machine_recall_types(&e->machine, &b->known, b->types);
    b->has_disk = ebb_machine_recall_disk(&e->machine, &b->known, &b->disk);
    if (e->net.n_expert && ebb_expert_profile_init(&b->uses, ebb_res_n_experts(e->res)) &&
        ebb_expert_profile_load(&b->uses, ebb_model_get_info(e->model)->fingerprint))
        ebb_res_set_expert_uses(e->res, b->uses.uses);
    e->machine.page_cache_share = ebb_model_page_cache_share(e->model);
}

/* What was learned of experts since the last time; a few passes teach nothing. */
static void save_expert_profile(ebb_engine *e)
{
    ebb_calibration *b = &e->calibration;

    if (b->uses.n == 0 || b->uses.miss_rate <= 0 || b->n_saved_choices == b->learned.n_chosen)
        return;
    b->n_saved_choices = b->learned.n_chosen;
    ebb_res_get_expert_uses(e->res, b->uses.uses);
    b->uses.slowdown = e->machine.expert_slowdown;
    ebb_expert_profile_save(&b->uses, ebb_model_get_info(e->model)->fingerprint);
}

void ebb_calibrate_close(ebb_engine *e)
{
    ebb_calibrate_turn(e);
    save_expert_profile(e);
    ebb_expert_profile_fini(&e->calibration.uses);
    ebb_speeds_save(&e->calibration.known);
}

/* -- Measuring ---------------------------------------------------------------------- */

static void measure_readers(void *arg, ebb_io only, ebb_read_speed speeds[EBB_IO_MMAP + 1])
{
    ebb_res_measure_readers(arg, only, MEASURE_S, speeds);
}

/* Measuring takes a while, in which the figures are read. */
static void put_machine(ebb_engine *e, const ebb_machine *m)
{
    pthread_mutex_lock(&e->lock);
    e->machine = *m;
    pthread_mutex_unlock(&e->lock);
}

static bool recall_types(ebb_engine *e)
{
    ebb_machine m = e->machine;
    bool has_all = ebb_machine_recall_types(&m, &e->calibration.known, e->calibration.types);

    put_machine(e, &m);
    return has_all;
}

static ebb_status measure_missing_speeds(ebb_engine *e, const ebb_plan *p, bool with_disk, ebb_error *err)
{
    ebb_machine m = e->machine;
    uint64_t room = p->budget_bytes / 4;
    ebb_meter *meter;
    ebb_status st = ebb_meter_open(e->pool, e->run.kern, p->pass_bytes, &meter, err);

    if (st != EBB_OK)
        return st;
    ebb_machine_measure_types(&m, meter, e->calibration.types, &e->calibration.known);
    if (with_disk)
        st = ebb_machine_measure_disk(&m, meter, p->pass_bytes < room ? p->pass_bytes : room,
                                      measure_readers, e->res, &e->calibration.disk, &e->calibration.known, err);
    e->calibration.has_disk |= with_disk && st == EBB_OK;
    ebb_meter_close(meter);
    put_machine(e, &m);
    ebb_speeds_save(&e->calibration.known);
    return st;
}

ebb_status ebb_calibrate_measure(ebb_engine *e, const ebb_plan *p, ebb_error *err)
{
    bool with_disk = !e->calibration.has_disk && p->stream_bytes > 0;

    if (recall_types(e) && !with_disk)
        return EBB_OK;
    return measure_missing_speeds(e, p, with_disk, err);
}

ebb_status ebb_engine_measure(ebb_engine *e, ebb_error *err)
{
    ebb_status st = ebb_calibrate_measure(e, &e->plan, err);

    pthread_mutex_lock(&e->lock);                /* the figures' reader */
    if (st == EBB_OK)
        ebb_plan_predict(&e->net, &e->machine, &e->plan);
    e->calibration.applied = e->calibration.correction = 0;
    ebb_pass_rows_clear(&e->calibration.rows);
    pthread_mutex_unlock(&e->lock);
    return st;
}

void ebb_calibrate_idle(ebb_engine *e)
{
    if (!recall_types(e) && ebb_engine_measure(e, NULL) != EBB_OK)
        ebb_log("plan", "no memory for measuring");
    save_expert_profile(e);
    ebb_speeds_save(&e->calibration.known);
}

double ebb_engine_read_speed(ebb_engine *e, uint64_t n_bytes)
{
    return ebb_res_read_speed(e->res, n_bytes);
}

/* -- Learning ------------------------------------------------------------------------- */

static void begin_run_of_passes(ebb_calibration *b)
{
    ebb_pass_rows_break(&b->rows);
    ebb_contention_begin(&b->row_begin);
}

void ebb_calibrate_break(ebb_engine *e)
{
    begin_run_of_passes(&e->calibration);
}

/* While all that the plan streams is in memory, passes speak for that. */
static bool is_streaming_now(const ebb_engine *e)
{
    return e->plan.stream_bytes > ebb_res_lent_read_bytes(e->res);
}

void ebb_calibrate_pass(ebb_engine *e, double seconds, double predicted_s)
{
    ebb_calibration *b = &e->calibration;
    bool is_streaming = is_streaming_now(e);
    double own_s;

    if (e->budget.n_evicted > 0 || predicted_s <= 0 || e->stats.n_ctx_used > DEPTH_MAX) {
        begin_run_of_passes(b);
        return;
    }
    if (!ebb_pass_rows_add(&b->rows, seconds, predicted_s, is_streaming ? ROW_STREAMING : ROW))
        return;
    own_s = ebb_proc_cpu_s() - b->row_begin.own_s;
    ebb_pass_rows_end(&b->rows, own_s / (e->plan.n_threads * b->rows.s), ebb_contention_since(&b->row_begin, 0, 0),
                      !is_streaming);            /* what stole the disk from it is not known */
    b->turn_contention = ebb_contention_since(&b->turn_begin, TURN_S, 1);
    begin_run_of_passes(b);
}

/* How much faster than the figures say; 0: nothing can be said. */
static double speed_factor(const ebb_engine *e)
{
    double factor = ebb_pass_rows_factor(&e->calibration.rows), pass_s;
    ebb_plan now = ebb_plan_with_lent(&e->plan, &e->machine, ebb_res_lent_read_bytes(e->res));

    pass_s = 1 / now.predicted_decode_tok_s / factor;
    return now.stream_bytes > 0 ? ebb_plan_disk_factor(&e->net, &e->machine, &now, pass_s) : factor;
}

static void correct_speeds(ebb_engine *e)
{
    ebb_calibration *b = &e->calibration;
    double by = ebb_pass_rows_factor(&b->rows) > 0 && b->applied <= 0 ? speed_factor(e) : 0,
        before = e->plan.predicted_decode_tok_s;

    if (by > 0.3 && by < 3) {
        ebb_machine_correct_speeds(&e->machine, b->types, is_streaming_now(e) ? &b->disk : NULL, by,
                                   b->turn_contention, &b->known);
        ebb_plan_predict(&e->net, &e->machine, &e->plan);
        b->correction *= e->plan.predicted_decode_tok_s / before;
    }
    if (by > 0)
        ebb_log("plan", "passes were %.2f times as fast as predicted, while others had %.0f %% of the processors", by,
                100 * b->turn_contention);
}

/* What was read of the experts that passes chose, and what the passes took: the plan goes by that from now on. */
static void correct_expert_rates(ebb_engine *e)
{
    ebb_calibration *b = &e->calibration;
    ebb_res_stats s;
    double chosen, by = b->correction, before = e->plan.predicted_decode_tok_s;

    ebb_res_get_stats(e->res, &s);
    if (s.experts.n_chosen - b->learned.n_chosen < (uint64_t)CHOICES * e->net.n_expert_used * e->net.n_layers ||
        e->budget.n_evicted > 0)
        return;
    chosen = (double)e->plan.expert_disk_bytes / ebb_res_n_experts(e->res) * (double)(s.experts.n_chosen -
                                                                                      b->learned.n_chosen);
    b->uses.cache_share = (double)s.cache_bytes / (double)e->plan.expert_disk_bytes;
    b->uses.miss_rate = (double)(s.experts.decode_read_bytes - b->learned.decode_read_bytes) / chosen;
    b->learned = s.experts;
    ebb_res_get_expert_uses(e->res, b->uses.uses);
    b->uses.slowdown = e->machine.expert_slowdown;
    ebb_machine_set_experts(&e->machine, &b->uses);
    ebb_plan_set_miss_rate(&e->net, &e->plan, b->uses.miss_rate);
    ebb_plan_predict(&e->net, &e->machine, &e->plan);
    if (by > 0 && b->applied <= 0) {
        double slowdown = e->machine.expert_slowdown > 0 ? e->machine.expert_slowdown : 1;

        slowdown *= by * e->plan.predicted_decode_tok_s / before;
        e->machine.expert_slowdown = slowdown < PACE_LEAST ? PACE_LEAST : slowdown > PACE_MOST ? PACE_MOST : slowdown;
        ebb_plan_predict(&e->net, &e->machine, &e->plan);
        b->correction = by * e->plan.predicted_decode_tok_s / before;
    }
    ebb_log("plan", "of the experts that were chosen %.0f %% were read; passes take %.2f times as long as reads and "
                    "products alone",
            100 * b->uses.miss_rate, e->machine.expert_slowdown);
}

void ebb_calibrate_turn(ebb_engine *e)
{
    if (e->plan.expert_read_bytes > 0 && e->calibration.uses.n > 0)
        correct_expert_rates(e);
    else
        correct_speeds(e);
    ebb_pass_rows_clear(&e->calibration.rows);
    begin_run_of_passes(&e->calibration);
    e->calibration.turn_begin = e->calibration.row_begin;
    e->calibration.turn_contention = 1;
}
