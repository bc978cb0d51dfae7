/* A thread that gives memory back at once (pressure_monitor.h).
 *
 * Between two layers of a prompt of hundreds of columns a neighbour can take a gigabyte.  So memory is
 * checked as often as the fastest neighbour could use up what is left; a check reads three small files.  While layers
 * are still being read, what they will take counts as taken: so a neighbour is seen long before it and they meet at the
 * limit, and layers that were not read yet are evicted for it. When nothing is computed, nothing is checked until
 * the kernel tells (os/alarm.h), or where it does not, once a second. */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "open/engine_state.h"
#include "os/alarm.h"
#include "os/thread.h"

#define MIB          ((uint64_t)1 << 20)
#define TAKE_BYTES_S ((int64_t)8 << 30)          /* what a neighbour can take in a second */
#define LOOK_MIN_MS  4
#define LOOK_MAX_MS  250
#define IDLE_MS      1000
#define REST_NS      1000000000u                 /* behind the last pass */
#define AHEAD_MS     100                         /* of what a neighbour takes: until it is seen to take more */

struct ebb_pressure_monitor {
    ebb_engine     *engine;
    ebb_alarm      *alarm;
    pthread_t       thread;
    bool            has_thread;
    atomic_bool     quit, has_copies, is_asleep;
    atomic_llong    floor;
    atomic_ullong   headroom_until_ns;           /* until then there is room, whoever takes memory */
    atomic_ullong   pass_ns;                     /* when a pass began or went on last */
    uint64_t        looked_ns;                   /* the last check of its thread, 0: none; ... */
    int64_t         seen;                        /* ... what was available beside what was to be read, then */
    ebb_evict_step  step;                        /* the last one of its thread */
    atomic_uint     n_evicted;
    atomic_bool     is_alerted;                  /* it was, at a check since the passes' thread asked */
};

/* What could still be taken in our cgroup and of the machine.  Page cache is asked for anew each time: what
 * of it a neighbour has taken the place of since is not free any more. */
static bool read_available(const ebb_engine *e, int64_t *available)
{
    uint64_t bytes;

    if (!ebb_limits_gauge_available(&e->budget.gauge, &bytes))
        return false;
    *available = (int64_t)bytes;
    return true;
}

/* Of that, what is meant for layers that are still being read. */
static int64_t bytes_still_to_read(ebb_engine *e)
{
    uint64_t sum = ebb_res_pending_bytes(e->res);

    pthread_mutex_lock(&e->lock);
    if (e->draft_model.engine)
        sum += ebb_res_pending_bytes(e->draft_model.engine->res);
    pthread_mutex_unlock(&e->lock);
    return (int64_t)sum;
}

/* Whoever takes layers back between turns may sleep. */
static void call_on_evict(ebb_engine *e)
{
    void (*fn)(void *);
    void *arg;

    pthread_mutex_lock(&e->lock);
    fn = e->budget.wake;
    arg = e->budget.wake_arg;
    pthread_mutex_unlock(&e->lock);
    if (fn)
        fn(arg);
}

/* A pass that waits for a layer to be read may be long between two. */
static bool is_pass_running(ebb_pressure_monitor *s)
{
    ebb_phase phase;

    pthread_mutex_lock(&s->engine->lock);
    phase = s->engine->stats.phase;
    pthread_mutex_unlock(&s->engine->lock);
    return phase == EBB_PHASE_PREFILL || phase == EBB_PHASE_DECODE ||
           ebb_clock_ns() - atomic_load(&s->pass_ns) < REST_NS;
}

/* What a neighbour will take until the next checks, by what vanished since the last one.  While nothing is computed
 * there are none, and at the bottom it may want more than it got: then it is as fast as can be. */
static uint64_t bytes_to_vanish(ebb_pressure_monitor *s, int64_t free_bytes, int64_t floor, uint64_t now)
{
    uint64_t ms = (now - s->looked_ns) / 1000000;
    int64_t gone = s->seen > free_bytes ? s->seen - free_bytes : 0;

    if (s->looked_ns == 0 || ms > 2 * LOOK_MAX_MS || free_bytes < floor / 4 || !is_pass_running(s))
        return (uint64_t)(TAKE_BYTES_S * AHEAD_MS / 1000);
    return (uint64_t)(gone * AHEAD_MS) / (ms > LOOK_MIN_MS ? ms : LOOK_MIN_MS);
}

/* What is missing, all of it: the kernel kills at the limit.  If it is missing now, what will vanish until the next
 * checks is evicted with it, a quarter of what there is at most.  What was still to be read is given first, and costs
 * nobody anything. */
static void evict_until(ebb_pressure_monitor *s, int64_t available, int64_t ahead, int64_t floor)
{
    ebb_engine *e = s->engine;
    uint64_t now = ebb_clock_ns(), want = (uint64_t)(ebb_evict_target(floor) - available + ahead), more, freed;
    ebb_memory_event event = { .is_by_monitor = true, .available_bytes = available };
    ebb_res_stats res;
    uint32_t n, had_output;

    if (ahead > 0)
        event.bytes_pending = (uint64_t)ahead;
    freed = ebb_draft_model_evict(e);             /* it changes no answer */
    if (freed > 0) {
        event.code = EBB_MEMORY_DRAFT_EVICTED;
        event.bytes = freed;
        ebb_stats_memory_event(e, &event);
        call_on_evict(e);
    }
    if (freed >= want)
        return;
    want -= freed;
    ebb_res_get_stats(e->res, &res);
    if (available < floor) {
        more = bytes_to_vanish(s, available - ahead, floor, now);
        want += more < res.pinned_bytes / 4 ? more : res.pinned_bytes / 4;
        want = ebb_evict_step_next(&s->step, now, want, res.pinned_bytes);
    }
    had_output = ebb_reclaim_count_parts(e, e->net.n_layers);
    freed = ebb_res_evict(e->res, want, &n);
    if (n == 0)
        return;
    atomic_fetch_add(&e->budget.n_evicted, n);
    atomic_fetch_add(&s->n_evicted, n);
    ebb_reclaim_tell_evicted(e, n, had_output, &event);
    event.bytes = freed;
    ebb_stats_memory_event(e, &event);
    call_on_evict(e);
}

/* Check, act; how long until the next check. */
static int monitor_step(ebb_pressure_monitor *s)
{
    int64_t floor = atomic_load(&s->floor), available, to_come, ms;

    if (!atomic_load(&s->has_copies))
        return -1;
    if (!read_available(s->engine, &available))
        return IDLE_MS;
    to_come = bytes_still_to_read(s->engine);     /* behind the measurement: what is read in between counts for
                                                     neither */
    if (available - to_come < floor) {
        evict_until(s, available, to_come, floor);
        atomic_store(&s->is_alerted, true);
        if (!read_available(s->engine, &available))
            return LOOK_MIN_MS;
        to_come = bytes_still_to_read(s->engine);
    }
    s->looked_ns = ebb_clock_ns();
    s->seen = available - to_come;
    if (to_come == 0 && !is_pass_running(s) && available >= ebb_evict_target(floor))
        return ebb_alarm_has_events(s->alarm) || s->engine->budget.gauge.fd < 0 /* a machine without PSI: no checks */
             ? -1 : IDLE_MS;
    if (to_come == 0 && !is_pass_running(s))
        return IDLE_MS;                          /* the kernel's mark may be behind us */
    ms = (available - floor) * 1000 / TAKE_BYTES_S;
    return (int)(ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms);
}

static void *monitor_thread(void *arg)
{
    ebb_pressure_monitor *s = arg;

    while (!atomic_load(&s->quit)) {
        int ms;

        atomic_store(&s->is_asleep, true);       /* a pass that begins from here on rings */
        ms = monitor_step(s);
        if (ms >= 0 && ms < IDLE_MS)
            atomic_store(&s->is_asleep, false);
        ebb_alarm_wait(s->alarm, ms);
    }
    return NULL;
}

void ebb_pressure_monitor_open(ebb_engine *e)
{
    ebb_pressure_monitor *s = calloc(1, sizeof *s);
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;

    if (!s)
        return;
    s->engine = e;
    e->budget.monitor = s;
    st = ebb_alarm_open(&e->budget.gauge, e->machine.os_reserve_bytes * 2, &s->alarm, &err);
    if (st == EBB_OK && ebb_thread_start(&s->thread, monitor_thread, s) != 0)
        st = EBB_FAIL(&err, EBB_NOMEM, "no thread for it");
    s->has_thread = st == EBB_OK;
    if (st != EBB_OK) {
        ebb_log("budget", "memory is checked between layers only: %s", err.msg);
        ebb_pressure_monitor_close(e);
    }
}

void ebb_pressure_monitor_stop(ebb_engine *e)
{
    ebb_pressure_monitor *s = e->budget.monitor;

    if (!s || !s->has_thread)
        return;
    atomic_store(&s->quit, true);
    ebb_alarm_ring(s->alarm);
    pthread_join(s->thread, NULL);
    s->has_thread = false;
}

void ebb_pressure_monitor_close(ebb_engine *e)
{
    ebb_pressure_monitor *s = e->budget.monitor;

    if (!s)
        return;
    ebb_pressure_monitor_stop(e);
    ebb_alarm_close(s->alarm);
    free(s);
    e->budget.monitor = NULL;
}

void ebb_pressure_monitor_set(ebb_engine *e, bool has_copies, uint64_t floor_bytes)
{
    ebb_pressure_monitor *s = e->budget.monitor;

    if (!s)
        return;
    atomic_store(&s->floor, (int64_t)floor_bytes);
    atomic_store(&s->headroom_until_ns, 0);
    atomic_store(&s->has_copies, has_copies);
    ebb_alarm_ring(s->alarm);
}

void ebb_pressure_monitor_wake(ebb_engine *e)
{
    ebb_pressure_monitor *s = e->budget.monitor;

    if (!s)
        return;
    atomic_store(&s->pass_ns, ebb_clock_ns());
    if (atomic_exchange(&s->is_asleep, false))
        ebb_alarm_ring(s->alarm);
}

/* Between two checks nobody can have taken what is above the floor: our own reads are far slower than what a neighbour
 * takes. */
bool ebb_pressure_monitor_has_headroom(void *engine, uint64_t n_bytes)
{
    const ebb_engine *e = engine;
    ebb_pressure_monitor *s = e->budget.monitor;
    uint64_t now = ebb_clock_ns();
    int64_t left;

    if (!s || !atomic_load(&s->has_copies) || now < atomic_load(&s->headroom_until_ns) || !read_available(e, &left))
        return true;
    left -= atomic_load(&s->floor) + (int64_t)n_bytes;
    if (left < 0) {
        ebb_alarm_ring(s->alarm);
        return false;
    }
    atomic_store(&s->headroom_until_ns, now + (uint64_t)left / (2 * TAKE_BYTES_S / 1000000000));
    return true;
}

uint32_t ebb_pressure_monitor_take_n_evicted(ebb_engine *e)
{
    return e->budget.monitor ? atomic_exchange(&e->budget.monitor->n_evicted, 0) : 0;
}

bool ebb_pressure_monitor_take_alert(ebb_engine *e)
{
    return e->budget.monitor && atomic_exchange(&e->budget.monitor->is_alerted, false);
}

void ebb_engine_on_evict(ebb_engine *e, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&e->lock);
    e->budget.wake = fn;
    e->budget.wake_arg = arg;
    pthread_mutex_unlock(&e->lock);
}
