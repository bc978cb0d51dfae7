/* Speeds of an engine: none is measured to open it, an idle moment finds them, passes correct them, the next run
 * knows. */
#include "ebb_test.h"

#include <stdlib.h>

#include "ebb/session.h"
#include "open/engine_state.h"
#include "support/own_cache.h"
#include "support/tiny_model.h"

typedef struct fixture {
    ebb_model  *model;
    char       *bytes;
    ebb_engine *engine;
} fixture;

static fixture open_tiny(void)
{
    const ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 2 };
    const ebb_engine_opts o = { .n_ctx = 128, .n_threads = 1, .no_kv_cache = true };
    fixture f;

    f.model = ebb_tiny_open(&tiny, &f.bytes);
    assert_int_equal(ebb_engine_open(f.model, &o, NULL, NULL, &f.engine, NULL), EBB_OK);
    return f;
}

static void close_tiny(fixture *f)
{
    ebb_engine_close(f->engine);
    ebb_model_close(f->model);
    free(f->bytes);
}

static double predicted(const fixture *f)
{
    ebb_stats s;

    ebb_engine_stats(f->engine, &s);
    return s.predicted_decode_tok_s;
}

static void test_measured_when_idle(void **state)
{
    fixture f = open_tiny();

    (void)state;
    assert_true(predicted(&f) == 0);             /* better than a guess */
    ebb_engine_idle(f.engine);
    assert_true(predicted(&f) > 0);
    assert_true(f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s > 0 && f.engine->machine.sync_s > 0);
    close_tiny(&f);
}

static void test_learned_and_kept(void **state)
{
    fixture f = open_tiny();
    double bytes_s, tok_s;

    (void)state;
    assert_int_equal(ebb_engine_measure(f.engine, NULL), EBB_OK);
    bytes_s = f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s;
    tok_s = f.engine->plan.predicted_decode_tok_s;
    f.engine->calibration.known.n = 0;                /* they may not be kept, or better, where others are at work */
    ebb_speeds_learn(&f.engine->calibration.known, "sync", EBB_SPEED_TIME, f.engine->machine.sync_s, 0, 0);
    ebb_speeds_learn(&f.engine->calibration.known, "weights Q8_0", EBB_SPEED_RATE, bytes_s,
                     f.engine->machine.types[EBB_TYPE_Q8_0].mac_s, 0);
    f.engine->calibration.rows.best = 1;              /* as good as predicted */
    ebb_calibrate_turn(f.engine);
    assert_true(f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s == bytes_s);
    f.engine->calibration.rows.best = 1.5;
    ebb_calibrate_turn(f.engine);
    assert_true(f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s > 1.49 * bytes_s);
    assert_true(f.engine->plan.predicted_decode_tok_s > tok_s && f.engine->calibration.rows.best == 0);
    bytes_s = f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s;
    f.engine->calibration.rows.best = 0.4;            /* beside other work: the figure stays, in memory as in the
                                                         file */
    f.engine->calibration.turn_contention = 0.5;
    ebb_calibrate_turn(f.engine);
    f.engine->calibration.rows.best = 0.9;
    f.engine->calibration.turn_contention = 0.5;
    ebb_calibrate_turn(f.engine);
    assert_true(f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s == bytes_s);
    close_tiny(&f);

    f = open_tiny();                             /* a run later */
    assert_true(f.engine->machine.types[EBB_TYPE_Q8_0].bytes_s > 0.999 * bytes_s);
    assert_true(predicted(&f) > tok_s);
    close_tiny(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_measured_when_idle),
                                        cmocka_unit_test(test_learned_and_kept) };

    return cmocka_run_group_tests_name("learning", tests, ebb_own_cache, ebb_own_cache_end);
}
