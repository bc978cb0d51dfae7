/* The figures of an engine as JSON: what is written is read, and what a server says is not believed. */
#include "backend/figures.h"

#include <string.h>

#include "ebb_test.h"

static ebb_stats some_stats(void)
{
    ebb_stats s = { .tier = EBB_TIER_STREAMING, .cpu = "avx512", .io = "uring", .n_threads = 12,
                    .rss_bytes = 7ull << 30, .rss_anon_bytes = 5ull << 30, .rss_file_bytes = 2ull << 30,
                    .rss_peak_bytes = 8ull << 30, .budget_bytes = 9ull << 30,
                    .kv_bytes = 512 << 20, .kv_memory_bytes = 128 << 20, .kv_file_bytes = 3 << 20,
                    .kv_lent_bytes = 64 << 20, .mode = "balanced", .available_bytes = -(5ll << 20),
                    .pressure_avg10 = 1.5, .swap_bytes = 77, .n_ctx = 4096, .n_ctx_used = 100, .kv_type = "q8_0/q4_0",
                    .n_layers = 5, .n_resident = 2,
                    .layer = { EBB_LAYER_PINNED, EBB_LAYER_MAPPED, EBB_LAYER_PARTLY, EBB_LAYER_READING,
                               EBB_LAYER_DISK },
                    .prefill_tok_s = 33, .decode_tok_s = 4.5, .predicted_decode_tok_s = 5.25, .read_bytes = 99,
                    .read_tok_bytes = 12, .disk_bytes_s = 2e9, .stall_share = 0.5, .experts_selected = 8,
                    .experts_resident = 3, .n_drafted = 10, .n_accepted = 6, .draft_bytes = 1 << 20 };

    s.memory_event = (ebb_memory_event){ .code = EBB_MEMORY_PLANNED, .detail = "10 of 32 layers fit" };
    return s;
}

static void what_is_written_is_read(void **state)
{
    json_t *o = json_pack("{s:i, s:i, s:i}", "clients", 3, "running", 2, "waiting", 1);
    ebb_stats s = some_stats(), want = s;
    ebb_server_figures f;

    (void)state;
    ebb_figures_put(o, &s);
    assert_true(ebb_figures_get(o, &f));
    assert_true(f.taken_ms > 0);
    assert_int_equal(f.n_clients, 3);
    assert_int_equal(f.n_running, 2);
    assert_int_equal(f.n_waiting, 1);
    assert_string_equal(f.decision, "10 of 32 layers fit");
    memset(&want.memory_event, 0, sizeof want.memory_event);     /* goes as text */
    assert_memory_equal(&f.stats, &want, sizeof want);
    json_decref(o);
}

static void pressure_may_be_unknown(void **state)
{
    ebb_stats s = some_stats();
    ebb_server_figures f;
    json_t *o = json_object();

    (void)state;
    s.pressure_avg10 = -1;
    ebb_figures_put(o, &s);
    assert_true(ebb_figures_get(o, &f));
    assert_true(f.stats.pressure_avg10 < 0);
    json_decref(o);
}

static void what_is_none_changes_nothing(void **state)
{
    static const char *const none[] = { "{}", "[]", "3", "{\"layers\":3}", "{\"tier\":\"full\",\"layers\":\"3\"}",
                                        "{\"tier\":1,\"layers\":3}" };
    ebb_server_figures f = { .n_clients = 7 };

    (void)state;
    assert_false(ebb_figures_get(NULL, &f));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        json_t *o = json_loads(none[i], JSON_DECODE_ANY, NULL);
        assert_false(ebb_figures_get(o, &f));
        json_decref(o);
    }
    assert_int_equal(f.n_clients, 7);
    assert_int_equal(f.taken_ms, 0);
}

static void a_server_is_not_believed(void **state)
{
    char decision[2000], letters[1000];
    ebb_server_figures f;
    json_t *o;

    (void)state;
    memset(decision, 'd', sizeof decision - 1);
    decision[sizeof decision - 1] = '\0';
    memset(letters, '#', sizeof letters - 1);
    letters[0] = 'x';
    letters[sizeof letters - 1] = '\0';
    o = json_pack("{s:s, s:i, s:i, s:s, s:s, s:f, s:f, s:i, s:f, s:s, s:f, s:s}", "tier", "none of these",
                  "layers", 4, "resident", 9, "layer_states", letters,
                  "cpu", "avx\x1b[2J 512 which is very long", "rss_bytes", 1e300, "available_bytes", -1e300,
                  "kv_bytes", -5, "clients", 1e12, "kv_type", "", "pressure_avg10", -3.0, "decision", decision);
    assert_true(ebb_figures_get(o, &f));
    assert_int_equal(f.stats.tier, EBB_TIER_FULL);
    assert_int_equal(f.stats.n_resident, 4);
    assert_int_equal(f.stats.layer[0], EBB_LAYER_DISK);
    assert_int_equal(f.stats.layer[EBB_STATS_LAYERS - 1], EBB_LAYER_PINNED);
    assert_string_equal(f.stats.cpu, "avx[2J512whichi");
    assert_int_equal(f.stats.rss_bytes, 0);
    assert_int_equal(f.stats.available_bytes, 0);
    assert_int_equal(f.stats.kv_bytes, 0);
    assert_int_equal(f.n_clients, 0);
    assert_true(f.stats.pressure_avg10 <= 0);
    assert_int_equal(strlen(f.decision), sizeof f.decision - 1);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(pressure_may_be_unknown),
        cmocka_unit_test(what_is_none_changes_nothing),
        cmocka_unit_test(a_server_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
