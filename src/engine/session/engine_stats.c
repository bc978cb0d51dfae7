/* The figures of a running engine (ebb/stats.h). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "open/engine_state.h"
#include "os/proc.h"

#define LEARN_FROM 4u
#define LEARN_OVER 16

const char *ebb_tier_name(ebb_tier tier)
{
    static const char *const names[] = { "full", "tight", "streaming", "critical" };

    return (unsigned)tier <= EBB_TIER_CRITICAL ? names[tier] : "unknown";
}

static const char *kv_name(ebb_kv_type type)
{
    static const char *const names[] = { "f16", "q8_0", "q4_0", "f32" };

    return names[type];
}

const char *ebb_mode_name(ebb_mode mode)
{
    static const char *const names[] = { "balanced", "max-tps", "max-context" };

    return (unsigned)mode <= EBB_MODE_MAX_CONTEXT ? names[mode] : "unknown";
}

void ebb_stats_init(ebb_engine *e, double load_s)
{
    ebb_stats *s = &e->stats;

    s->phase = EBB_PHASE_IDLE;
    s->tier = e->plan.tier;
    s->n_threads = e->plan.n_threads;
    snprintf(s->cpu, sizeof s->cpu, "%s", e->run.kern->name);
    snprintf(s->io, sizeof s->io, "%s", e->plan.is_mapped && !e->plan.stream_bytes ? "mmap" : ebb_res_io_name(e->res));
    /* the monitor may have evicted layers by now; what is lent, the plan's own line says */
    if (s->memory_event.code == EBB_MEMORY_NONE || s->memory_event.code == EBB_MEMORY_KV_LENT) {
        s->memory_event.code = EBB_MEMORY_PLANNED;
        snprintf(s->memory_event.detail, sizeof s->memory_event.detail, "%s",
                 ebb_res_io_reason(e->res)[0] ? ebb_res_io_reason(e->res) : e->plan.why);
    }
    if (e->plan.kv_k == e->plan.kv_v)
        snprintf(s->kv_type, sizeof s->kv_type, "%s", kv_name(e->plan.kv_k));
    else
        snprintf(s->kv_type, sizeof s->kv_type, "%s/%s", kv_name(e->plan.kv_k), kv_name(e->plan.kv_v));
    s->budget_bytes = e->plan.budget_bytes;
    s->weight_bytes = ebb_net_weight_bytes(&e->net);
    s->kv_bytes = e->plan.kv_bytes;
    snprintf(s->mode, sizeof s->mode, "%s", ebb_mode_name(e->opts.mode));
    s->pressure_avg10 = -1;
    s->scratch_bytes = e->arena.n_bytes;
    s->n_ctx = e->plan.n_ctx;
    s->load_s = load_s;
    s->n_layers = e->net.n_layers;
    memcpy(s->left_out, e->plan.left_out, sizeof s->left_out);
}

/* What of the pool is memory; the lock is held. */
static void show_kv_room(ebb_engine *e)
{
    uint64_t out = ebb_kv_n_spilled(e->kv) * ebb_kv_group_block_bytes(e->kv, EBB_KV_ALL),
        room = ebb_kv_bytes(e->kv) - out;

    e->stats.kv_bytes = room < e->plan.kv_bytes ? room : e->plan.kv_bytes;
}

static bool has_other_sequence(const ebb_engine *e, const ebb_session *s)
{
    for (const ebb_session *other = e->sessions; other; other = other->next)
        if (other != s && other->table.n_blocks > 0)
            return true;
    return false;
}

/* The first n_pos positions of s are computed: show how many, and where K and V are: of several sequences, those of
 * all, which nobody else can take.  Counted for each new block only, or when some were spilled or reloaded.  The lock
 * is held. */
static void show_sequence(ebb_engine *e, const ebb_session *s, uint32_t n_pos)
{
    uint32_t n_spilled = ebb_kv_n_spilled(e->kv);

    e->stats.n_ctx_used = n_pos;
    if (e->turn.shown == s && ebb_kv_blocks_of(n_pos) == ebb_kv_blocks_of(e->turn.counted_pos) &&
        n_spilled == e->turn.counted_spilled)
        return;
    if (n_spilled != e->turn.counted_spilled)
        show_kv_room(e);
    e->turn.shown = s;
    e->turn.counted_pos = n_pos;
    e->turn.counted_spilled = n_spilled;
    ebb_kv_table_use(e->kv, &s->table, n_pos, &e->turn.kv_memory_bytes, &e->turn.kv_file_bytes);
    e->stats.kv_memory_bytes = e->turn.kv_memory_bytes;
    e->stats.kv_file_bytes = e->turn.kv_file_bytes;
    if (has_other_sequence(e, s))
        ebb_kv_held_use(e->kv, &e->stats.kv_memory_bytes, &e->stats.kv_file_bytes);
}

void ebb_stats_kv(ebb_engine *e)
{
    pthread_mutex_lock(&e->lock);
    show_kv_room(e);
    if (e->turn.shown)
        show_sequence(e, e->turn.shown, e->stats.n_ctx_used);
    pthread_mutex_unlock(&e->lock);
}

/* The one that was opened first: of a chat's, its conversation.  NULL: none. */
static const ebb_session *oldest_session(const ebb_engine *e)
{
    const ebb_session *s = e->sessions;

    while (s && s->next)
        s = s->next;
    return s;
}

void ebb_stats_forget_session(ebb_engine *e, const ebb_session *s)
{
    pthread_mutex_lock(&e->lock);
    if (e->turn.prompt_of == s)
        e->turn.prompt_of = NULL;
    if (e->turn.shown == s) {
        const ebb_session *left = oldest_session(e);

        e->turn.shown = NULL;
        e->stats.n_ctx_used = 0;
        e->stats.kv_memory_bytes = e->stats.kv_file_bytes = 0;
        e->turn.kv_memory_bytes = e->turn.kv_file_bytes = 0;
        if (left)
            show_sequence(e, left, ebb_session_length(left));
    }
    pthread_mutex_unlock(&e->lock);
}

/* The lock is held. */
static void begin_turn(ebb_engine *e, const ebb_session *s, const ebb_sync_counts *counts)
{
    uint32_t n_total = counts->n_prompt - counts->n_reused;
    ebb_res_stats res;

    ebb_res_get_stats(e->res, &res);
    if (n_total > 0) {                           /* a turn that computes nothing keeps the figures of the last one */
        e->turn.begin_ns = ebb_clock_ns();
        e->turn.begin_stall_ns = res.stall_ns;
    }
    e->turn.prompt_of = s;
    e->stats.prefill_done = 0;
    e->stats.prefill_total = n_total;
    e->stats.reused_tok = counts->n_reused;
    e->stats.reused_disk_tok = counts->n_disk;
    e->stats.computed_tok = 0;
    e->stats.generated_tok = 0;
    e->turn.append_s = 0;
    e->turn.n_prompt = 0;
    e->turn.prompt_s = 0;
}

/* Of a prompt so much is done as the sequence has beside what was reused, whoever computed it.  The lock is held. */
static void go_on_with_prompt(ebb_engine *e, uint32_t n_pos)
{
    uint32_t done = n_pos > e->stats.reused_tok ? n_pos - e->stats.reused_tok : 0;

    e->stats.prefill_done = done < e->stats.prefill_total ? done : e->stats.prefill_total;
}

void ebb_stats_prefill_begin(ebb_engine *e, const ebb_session *s, const ebb_sync_counts *counts)
{
    pthread_mutex_lock(&e->lock);
    ebb_calibrate_turn(e);
    e->turn.is_again = counts->kind == EBB_SYNC_AGAIN;
    e->turn.n_under_way = 0;
    if (!e->turn.is_again) {
        if (counts->kind == EBB_SYNC_PART && e->turn.prompt_of == s)
            go_on_with_prompt(e, counts->n_reused);
        else
            begin_turn(e, s, counts);
        e->stats.phase = EBB_PHASE_PREFILL;
        e->turn.done_before = e->stats.prefill_done;
        e->turn.computed_before = e->stats.computed_tok;
        e->turn.n_before = e->turn.n_prompt;
        e->turn.before_s = e->turn.prompt_s;
    }
    show_sequence(e, s, s->table.n_pos);
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_prefill_pass(ebb_engine *e, uint32_t n)
{
    pthread_mutex_lock(&e->lock);
    atomic_store_explicit(&e->run.n_layers_done, 0, memory_order_relaxed);
    e->turn.n_under_way = n;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_prefill_step(ebb_engine *e, uint32_t n_done, double seconds)
{
    pthread_mutex_lock(&e->lock);
    e->turn.n_under_way = 0;
    e->stats.n_passes++;
    if (!e->turn.is_again) {
        uint32_t done = e->turn.done_before + n_done;

        e->turn.n_prompt = e->turn.n_before + n_done;
        e->turn.prompt_s = e->turn.before_s + seconds;
        e->stats.prefill_done = done < e->stats.prefill_total ? done : e->stats.prefill_total;
        e->stats.computed_tok = e->turn.computed_before + n_done;
        e->stats.prefill_tok_s = e->turn.prompt_s > 0 ? e->turn.n_prompt / e->turn.prompt_s : 0;
    }
    if (e->turn.shown)
        show_sequence(e, e->turn.shown, e->turn.shown->table.n_pos);
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_decode_begin(ebb_engine *e)
{
    ebb_res_stats res;

    if (e->stats.generated_tok == 0) {           /* only this thread writes to it */
        ebb_res_get_stats(e->res, &res);
        e->turn.decode_read_bytes = res.read_bytes;
    }
    pthread_mutex_lock(&e->lock);
    e->stats.phase = EBB_PHASE_DECODE;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_draft(ebb_engine *e, uint32_t n_drafted)
{
    pthread_mutex_lock(&e->lock);
    e->stats.n_drafted += n_drafted;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_accept(ebb_engine *e, bool is_of_reference)
{
    pthread_mutex_lock(&e->lock);
    e->stats.n_accepted++;
    e->stats.n_accepted_reference += is_of_reference;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_branch(ebb_engine *e, uint32_t n_accepted)
{
    pthread_mutex_lock(&e->lock);
    e->stats.n_branched += n_accepted;
    pthread_mutex_unlock(&e->lock);
}

/* The ratio of measured to predicted times of passes, over the last dozens: the machine has other work, or the disk
 * is slower.  The first passes of a turn have cold caches. */
static void learn_correction(ebb_engine *e, double seconds)
{
    ebb_calibration *b = &e->calibration;
    double planned = ebb_plan_decode_tok_s_with(&e->plan, &e->machine, (double)e->turn.kv_memory_bytes,
                                                (double)e->turn.kv_file_bytes,
                                                (double)ebb_res_lent_read_bytes(e->res));
    double ratio = seconds * planned * (b->applied > 0 ? b->applied : 1);

    if (e->stats.generated_tok < LEARN_FROM || ratio <= 0)
        return;
    ebb_calibrate_pass(e, seconds, b->applied > 0 ? 0 : 1 / planned);
    if (e->budget.n_evicted == 0)
        b->correction = b->correction > 0 ? b->correction + (ratio - b->correction) / LEARN_OVER : ratio;
}

void ebb_stats_decode_step(ebb_engine *e, double seconds, bool was_drafted, bool had_draft)
{
    pthread_mutex_lock(&e->lock);
    if (!was_drafted && !had_draft)
        learn_correction(e, seconds);
    e->turn.append_s += seconds;
    e->stats.n_passes += !was_drafted;
    e->stats.computed_tok++;
    e->stats.generated_tok++;
    e->stats.decode_tok_s = e->turn.append_s > 0 ? e->stats.generated_tok / e->turn.append_s : 0;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_prompt_at(ebb_engine *e, const ebb_session *s, uint32_t n_pos)
{
    pthread_mutex_lock(&e->lock);
    if (e->turn.prompt_of == s)
        go_on_with_prompt(e, n_pos);
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_shared_step(ebb_engine *e, double seconds, uint32_t n_tokens, uint32_t n_decoded)
{
    pthread_mutex_lock(&e->lock);
    e->turn.append_s += seconds;
    e->stats.n_passes++;
    e->stats.computed_tok += n_tokens;
    e->stats.generated_tok += n_decoded;
    e->stats.decode_tok_s = e->turn.append_s > 0 ? e->stats.generated_tok / e->turn.append_s : 0;
    pthread_mutex_unlock(&e->lock);
}

void ebb_stats_idle(ebb_engine *e, const ebb_session *s)
{
    ebb_res_stats res;

    ebb_res_get_stats(e->res, &res);
    pthread_mutex_lock(&e->lock);
    e->stats.stall_share = ebb_clock_ns() > e->turn.begin_ns && e->turn.begin_ns
                               ? (double)(res.stall_ns -
                                          e->turn.begin_stall_ns) / (double)(ebb_clock_ns() - e->turn.begin_ns) : 0;
    e->stats.phase = EBB_PHASE_IDLE;
    show_sequence(e, s, ebb_session_length(s));
    if (e->stats.generated_tok > 0)
        e->stats.read_tok_bytes = (double)(res.read_bytes - e->turn.decode_read_bytes) / e->stats.generated_tok;
    pthread_mutex_unlock(&e->lock);
}

/* What happened to the KV cache on disk is the last event. */
static void show_disk_notice(ebb_engine *e)
{
    ebb_memory_event event = { .code = EBB_MEMORY_CACHE_NOTICE };
    bool is_new = e->cache.disk && ebb_kv_disk_take_notice(e->cache.disk, event.detail);

    pthread_mutex_lock(&e->lock);
    if (e->cache.notice[0]) {
        memcpy(event.detail, e->cache.notice, sizeof event.detail);
        e->cache.notice[0] = '\0';
        is_new = true;
    }
    if (is_new) {
        event.number = e->stats.memory_event.number + 1;
        e->stats.memory_event = event;
    }
    pthread_mutex_unlock(&e->lock);
}

/* A pass over hundreds of columns takes seconds: its layers count, too.  The lock is held. */
static void add_pass_under_way(const ebb_engine *e, ebb_stats *out)
{
    unsigned n_layers = atomic_load_explicit(&e->run.n_layers_done, memory_order_relaxed);
    double seconds = (double)(ebb_clock_ns() - e->turn.begin_ns) * 1e-9;
    uint32_t n_new;

    if (out->phase != EBB_PHASE_PREFILL || e->turn.n_under_way == 0)
        return;
    n_new = (uint32_t)((uint64_t)e->turn.n_under_way * n_layers / e->net.n_layers);
    out->prefill_done += n_new;
    if (out->prefill_done > out->prefill_total)
        out->prefill_done = out->prefill_total;
    out->n_ctx_used += n_new;
    out->kv_memory_bytes += ebb_kv_group_block_bytes(e->kv, EBB_KV_ALL) / EBB_KV_BLOCK * n_new;
    if (out->prefill_done > 0 && seconds > 0)
        out->prefill_tok_s = out->prefill_done / seconds;
}

/* The plan's tier is that of a full context; before, what is lent makes it better.  The lock is held. */
static ebb_tier tier_now(const ebb_engine *e, const ebb_stats *s)
{
    if (s->tier < EBB_TIER_STREAMING || e->budget.n_evicted > 0 || e->budget.is_ring_minimal || s->kv_lent_bytes == 0 ||
        s->kv_file_bytes > 0)
        return s->tier;
    return ebb_res_lent_read_bytes(e->res) < e->plan.stream_bytes ? EBB_TIER_STREAMING
         : e->plan.kv_k == EBB_KV_F16                            ? EBB_TIER_FULL
                                                                 : EBB_TIER_TIGHT;
}

/* By the plan and what of it is in memory now; 0 where that would be a guess.  The lock is held. */
static double predict_now(const ebb_engine *e)
{
    double share = e->net.n_expert ? (double)e->net.n_expert_used / e->net.n_expert : 1,
           missing = e->budget.n_evicted > 0 ? ebb_res_missing_bytes(e->res, share) : 0;

    if (e->machine.memory_bytes_s <= 0 || (missing > 0 && e->machine.disk_bytes_s <= 0))
        return 0;
    return ebb_plan_decode_tok_s_with(&e->plan, &e->machine, (double)e->turn.kv_memory_bytes,
                                      (double)e->turn.kv_file_bytes,
                                      (double)ebb_res_lent_read_bytes(e->res) - missing);
}

void ebb_engine_stats(ebb_engine *e, ebb_stats *out)
{
    ebb_res_stats res;
    uint32_t n_cold;
    ebb_memory_snapshot snapshot = ebb_reclaim_last_snapshot(e);
    ebb_proc own;

    show_disk_notice(e);
    ebb_res_get_stats(e->res, &res);
    pthread_mutex_lock(&e->lock);
    *out = e->stats;
    out->predicted_decode_tok_s = predict_now(e);
    add_pass_under_way(e, out);
    out->kv_lent_bytes = res.lent_bytes;
    out->tier = tier_now(e, out);
    pthread_mutex_unlock(&e->lock);
    for (int i = 0; i < EBB_TIME_COUNT; i++)
        out->time_s[i] = (double)atomic_load_explicit(&e->run.spent_ns[i], memory_order_relaxed) * 1e-9;
    out->pool_wait_s = ebb_pool_waited_s(e->pool);
    out->pinned_bytes = res.pinned_bytes;
    out->mapped_bytes = res.mapped_bytes;
    out->ring_bytes = res.ring_bytes;
    out->read_bytes = res.read_bytes;
    out->disk_bytes_s = res.disk_bytes_s;
    out->experts_selected = res.experts.n_chosen;
    out->experts_resident = res.experts.n_hits;
    out->experts_prefetched = res.experts.n_prefetch_hits;
    out->experts_prefetch_reads = res.experts.n_prefetched;
    n_cold = ebb_res_states(e->res, out->layer, out->n_layers < EBB_STATS_LAYERS ? out->n_layers : EBB_STATS_LAYERS);
    out->n_resident = res.n_resident > n_cold ? res.n_resident - n_cold : 0;
    out->available_bytes = snapshot.available_bytes;
    out->pressure_avg10 = snapshot.pressure_avg10;
    out->swap_bytes = snapshot.swap_bytes;
    if (ebb_proc_read(NULL, &own, NULL) == EBB_OK) {     /* else the figures stay 0: unknown */
        out->rss_bytes = own.rss_anon_bytes + own.rss_file_bytes + own.rss_shmem_bytes;
        out->rss_anon_bytes = own.rss_anon_bytes;
        out->rss_file_bytes = own.rss_file_bytes;
        out->rss_peak_bytes = own.rss_peak_bytes;
    }
}

uint64_t ebb_stats_kv_free_bytes(const ebb_stats *s)
{
    uint64_t used = s->kv_memory_bytes + s->kv_lent_bytes;

    return s->kv_bytes > used ? s->kv_bytes - used : 0;
}
