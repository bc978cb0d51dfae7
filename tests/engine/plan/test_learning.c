/* Weeks of sessions on a machine that others use, too: what is kept of its speed stays what it has in quiet. */
#include "ebb_test.h"

#include <math.h>

#include "plan/layout.h"
#include "plan/pass_rows.h"
#include "plan/speeds.h"

#define QUIET_BYTES_S 29.6e9
#define MODEL_BYTES   4.9e9
#define DAY_S         86400

typedef struct world {
    uint64_t    seed;
    ebb_speeds  known;
    ebb_machine machine;
    double      clock;           /* of the processor, to what it usually is */
    double      neighbours;      /* share of turns under contention */
    double      hidden;          /* share of it that the kernel does not report */
    double      worst;           /* the farthest that the kept figure was from quiet */
} world;

static double next(world *w)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(w->seed >> 11) * 0x1p-53;
}

/* About normal, of variance 1. */
static double noise(world *w)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += next(w);
    return sum - 6;
}

static void first_measurement(world *w)
{
    w->machine = (ebb_machine){ 0 };
    ebb_speeds_learn(&w->known, "weights Q4_K", EBB_SPEED_RATE, QUIET_BYTES_S * w->clock, 800e9, 0);
    (void)ebb_machine_recall_types(&w->machine, &w->known, (uint64_t)1 << EBB_TYPE_Q4_K);
}

/* A turn of some rows.  Neighbours take processors (own_share) and memory's speed. */
static void turn(world *w)
{
    double others = next(w) < w->neighbours ? 0.02 + 0.9 * next(w) : 0.02 * next(w), hunger = next(w);
    double told = next(w) < w->hidden ? 0 : others;
    uint32_t n_rows = 1 + (uint32_t)(30 * next(w));
    ebb_pass_rows rows = { 0 };

    for (uint32_t i = 0; i < n_rows; i++) {
        double here = next(w) < 0.8 ? others : 0;                /* neighbours pause */
        double lost = here * next(w),
               slowdown = (1 + 0.7 * here * hunger) * (1 + fabs(0.03 * noise(w)) + 0.01 * noise(w));
        double pass_s = MODEL_BYTES / (QUIET_BYTES_S * w->clock) * slowdown / (1 - lost);
        bool is_long = false;

        while (!is_long)
            is_long = ebb_pass_rows_add(&rows, pass_s, MODEL_BYTES / w->machine.types[EBB_TYPE_Q4_K].bytes_s, 8);
        ebb_pass_rows_end(&rows, 1 - lost - 0.03 * next(w), here > 0 ? told : 0, true);
    }
    if (ebb_pass_rows_factor(&rows) > 0)
        ebb_machine_correct_speeds(&w->machine, (uint64_t)1 << EBB_TYPE_Q4_K, NULL, ebb_pass_rows_factor(&rows),
                                   fmin(1, told + 0.02 * next(w)), &w->known);
}

static double off(const world *w, double clock)
{
    return fabs(w->machine.types[EBB_TYPE_Q4_K].bytes_s / (QUIET_BYTES_S * clock) - 1);
}

static void live(world *w, double days, double usual_clock)
{
    int64_t end = w->known.now_s + (int64_t)(days * DAY_S);

    while (w->known.now_s < end) {
        uint32_t n_turns = 1 + (uint32_t)(12 * next(w));

        w->clock = usual_clock * (next(w) < 0.1 ? 0.6 + 0.35 * next(w) : 1);     /* a warm day, a battery */
        for (uint32_t i = 0; i < n_turns; i++) {
            turn(w);
            w->worst = fmax(w->worst, off(w, usual_clock));
            w->known.now_s += 30 + (int64_t)(600 * next(w));
        }
        w->known.now_s += (int64_t)(0.7 * DAY_S * next(w));
    }
}

static world begin(uint64_t seed, double neighbours, double hidden)
{
    world w = { .seed = seed, .known.now_s = 1800000000, .neighbours = neighbours, .hidden = hidden, .clock = 1 };

    first_measurement(&w);
    return w;
}

/* At every moment of ten weeks the figure is within a tenth of the quiet one. */
static void test_stays(void **state)
{
    double worst = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        world w = begin(seed, 0.5, 0.1);

        live(&w, 70, 1);
        worst = fmax(worst, w.worst);
    }
    print_message("          farthest from quiet in 40 times ten weeks: %.1f %%\n", 100 * worst);
    assert_true(worst < 0.10);
}

/* Always with neighbours, and with neighbours that nobody tells of. */
static void test_crowded(void **state)
{
    double worst = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        world w = begin(seed, 1, 0);

        live(&w, 70, 1);
        worst = fmax(worst, w.worst);
        w = begin(seed, 0.3, 1);
        live(&w, 70, 1);
        worst = fmax(worst, w.worst);
    }
    print_message("          farthest from quiet: %.1f %%\n", 100 * worst);
    assert_true(worst < 0.10);
}

/* A machine that has become slower, or faster, for good is followed. */
static void test_follows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        world w = begin(seed, 0.5, 0.1);

        live(&w, 14, 1);
        live(&w, 14, 0.6);
        assert_true(off(&w, 0.6) < 0.10);
        live(&w, 7, 1);
        assert_true(off(&w, 1) < 0.10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stays), cmocka_unit_test(test_crowded),
                                        cmocka_unit_test(test_follows) };

    return cmocka_run_group_tests_name("learned speeds", tests, NULL, NULL);
}
