/* The panel beside the conversation, and what it and /why say of speed and memory. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/own_folder.h"
#include "tui/screen.h"

/* Whether ebb_panel_help has it: "a" is in "a, b". */
static bool is_explained(const char *label, size_t n)
{
    for (size_t i = 0; ebb_panel_help[i][0]; i++)
        for (const char *name = ebb_panel_help[i][0]; *name; name += strcspn(name, ","), name += strspn(name, ", "))
            if (strcspn(name, ",") == n && memcmp(name, label, n) == 0)
                return true;
    return false;
}

/* A label has its value at the right edge, behind two blanks or more. */
static void assert_labels_are_explained(screen *s)
{
    int n = 0;

    for (const char *row = screen_text(s), *end; *row; row = *end ? end + 1 : end) {
        const char *label, *gap;

        end = row + strcspn(row, "\n");
        label = memrchr(row, '|', (size_t)(end - row));
        label = label ? label + 1 + strspn(label + 1, " ") : NULL;
        gap = label && label < end ? strstr(label, "  ") : NULL;
        if (!gap || gap > end)
            continue;
        if (!is_explained(label, (size_t)(gap - label)))
            fail_msg("/help panel does not explain %.*s", (int)(gap - label), label);
        n++;
    }
    assert_true(n >= 6);
}

static void the_panel_is_explained(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 40, 140);
    assert_has(&s, "# pin = map + part * read . disk");
    screen_keys(&s, "/help panel\r");
    assert_has(&s, "  PSI                 Share of the last 10 seconds");
    assert_has(&s, "  pin                 Copied");
    assert_lacks(&s, "no command");
    screen_close(&s);
}

static void wide_has_a_panel(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 30, 140);
    assert_has(&s, "| Fake 8B\n");
    assert_has(&s, "| llama Q4_K_M, 4.58 GiB");
    assert_has(&s, "context       1,024/4,096 tok 25%");
    assert_has(&s, "| ####==*.");
    assert_has(&s, "KV          128 MiB, 384 MiB free");
    assert_lacks(&s, "in a file");
    assert_has(&s, "available        1.25 GiB, PSI 3%");
    assert_has(&s, "  mode                max-context");
    assert_lacks(&s, "in swap");
    screen_close(&s);
    screen_open_ready(&s, 40, 140);
    fake_stats(s.chat)->kv_file_bytes = 25 << 20;
    fake_stats(s.chat)->swap_bytes = 2 << 20;
    fake_stats(s.chat)->disk_bytes_s = 1e9;
    fake_stats(s.chat)->read_tok_bytes = 80 << 20;
    screen_keys(&s, "hello\r");
    screen_step(&s, 1);
    assert_has(&s, "KV          128 MiB, 384 MiB free");
    assert_has(&s, "  in a file              25.0 MiB");
    assert_has(&s, "  in swap                2.00 MiB");
    assert_has(&s, "  for each token         80.0 MiB");
    assert_labels_are_explained(&s);
    screen_close(&s);
}

/* What a server says, about where nobody has counted, and nothing of a machine that nobody here can see. */
static void an_engine_elsewhere_has_its_own_panel(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 30, 140);
    *fake_stats(s.chat) = (ebb_stats){ .n_ctx_used = 1200, .n_ctx = 32768, .decode_tok_s = 41 };
    *fake_remote(s.chat) = (ebb_remote_figures){ .name = "box", .kind = "vLLM", .where = "gpu.example\x1b[2J",
                                                 .waits_s = -1, .first_s = 0.84,
                                                 .has_cached = true, .cached_tok = 1024, .new_tok = 56,
                                                 .is_about = true };
    screen_keys(&s, "hello\r");
    fake_remote(s.chat)->waits_s = 12;
    screen_step(&s, 1);
    assert_has(&s, "waiting                      12 s");
    fake_remote(s.chat)->waits_s = -1;
    screen_answer(&s, "hi");
    screen_step(&s, 1);
    assert_has(&s, "engine at");
    assert_has(&s, "gpu.example");
    assert_has(&s, "first word                  0.8 s");
    assert_has(&s, "cached + new       1,024 + 56 tok");
    assert_has(&s, "~1,200/32,768 tok  4%");
    assert_has(&s, "41 tok/s");
    assert_lacks(&s, "layers");
    assert_lacks(&s, "memory (RSS)");
    assert_lacks(&s, "reused + new");
    assert_labels_are_explained(&s);
    fake_stats(s.chat)->n_ctx = 0;               /* not told: not invented */
    screen_keys(&s, "again\r");
    screen_step(&s, 1);
    assert_has(&s, "~1,200 tok of unknown");
    screen_close(&s);
}

/* Of an `ebb serve` all gauges, under the name of the machine that they are about. */
static void the_machine_over_there_has_its_gauges(void **state)
{
    ebb_stats there = { .tier = EBB_TIER_STREAMING, .cpu = "avx512", .n_threads = 12, .rss_bytes = 7ull << 30,
                        .rss_anon_bytes = 5ull << 30, .rss_file_bytes = 2ull << 30, .mode = "balanced",
                        .available_bytes = 3ll << 30, .pressure_avg10 = 2, .kv_bytes = 512 << 20,
                        .kv_memory_bytes = 128 << 20, .kv_file_bytes = 25 << 20, .kv_type = "f16", .n_layers = 4,
                        .n_resident = 3, .layer = { EBB_LAYER_PINNED, EBB_LAYER_PINNED, EBB_LAYER_PINNED },
                        .decode_tok_s = 11, .disk_bytes_s = 1.25e9, .stall_share = 0.25 };
    screen s;

    (void)state;
    screen_open_ready(&s, 46, 140);
    *fake_stats(s.chat) = (ebb_stats){ .n_ctx_used = 1200, .n_ctx = 32768, .decode_tok_s = 4 };
    *fake_remote(s.chat) = (ebb_remote_figures){ .name = "big", .kind = "ebb serve", .where = "big.example",
                                                 .waits_s = -1,
                                                 .server = { .taken_ms = 1000, .n_clients = 3, .n_running = 2,
                                                             .n_waiting = 1, .stats = there,
                                                             .decision = "3 of 4 layers \x1b[2Jstay" } };
    screen_keys(&s, "hello\r");
    screen_step(&s, 1);
    assert_has(&s, "streaming, avx512, 12 threads");
    assert_has(&s, "clients 3, 2 answering, 1 waiting");
    assert_has(&s, "  of all                 11 tok/s");
    assert_has(&s, "big.example, at ");
    assert_has(&s, "memory (RSS)             7.00 GiB");
    assert_has(&s, "available        3.00 GiB, PSI 2%");
    assert_has(&s, "KV          128 MiB, 384 MiB free");
    assert_has(&s, "  in a file              25.0 MiB");
    assert_has(&s, "layers              3/4 in memory");
    assert_has(&s, "###.");
    assert_has(&s, "disk                    1.25 GB/s");
    assert_has(&s, "3 of 4 layers");
    assert_labels_are_explained(&s);
    assert_lacks(&s, "\x1b");
    fake_remote(s.chat)->server.taken_ms = 2000;         /* others come: drawn again */
    fake_remote(s.chat)->server.stats.n_resident = 4;
    screen_step(&s, 1);
    assert_has(&s, "layers              4/4 in memory");
    screen_close(&s);
}

static void memory(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 90);
    fake_stats(s.chat)->predicted_decode_tok_s = 3.25;
    screen_keys(&s, "/mem\r");
    assert_has(&s, "  budget                6.00 GiB\n");
    assert_has(&s, "  in use, mapped        4.20 GiB\n");
    assert_has(&s, "tier full, 6 of 8 layers in memory; predicted 3.2 tok/s; mode max-context\n");
    screen_keys(&s, "/mem 5G\r");
    assert_has(&s, "* budget 5368709120: about 2.50 tok/s\n");
    screen_keys(&s, "/mem 5G anew\r");
    assert_has(&s, "* opened anew for 5368709120\n");
    screen_keys(&s, "/mem 5G a new\r");
    assert_has(&s, "/mem 5G a new: give a size");
    screen_keys(&s, "/mem auto anew\r");
    assert_has(&s, "/mem auto anew: give a size");
    screen_keys(&s, "/plan\r");
    assert_has(&s, "  Fake 8B  llama\n    KV cache  256 MiB\n");
    screen_keys(&s, "Hello\r");
    screen_keys(&s, "/mem 3G\r");
    assert_has(&s, "* the budget changes when this answer has ended\n");
    assert_true(ebb_chat_is_busy(s.chat));
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_close(&s);
}

static void the_panel_says_what_guessing_is_worth(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 40, 130);
    assert_null(strstr(screen_text(&s), "draft tokens"));
    fake_stats(s.chat)->n_drafted = 52;
    fake_stats(s.chat)->n_accepted = 39;
    fake_stats(s.chat)->decode_tok_s = 6.3;
    screen_keys(&s, "Hello\r");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "");
    assert_has(&s, "75 % accepted");
    screen_close(&s);
}

static void why_it_was_slow(void **state)
{
    ebb_message *last;
    ebb_stats *stats;
    screen s;

    (void)state;
    screen_open_ready(&s, 40, 99);                      /* as wide as it can be without a panel */
    stats = fake_stats(s.chat);
    screen_keys(&s, "/why\r");
    assert_has(&s, "! /why is about the last answer");
    screen_keys(&s, "Hello\r");
    fake_done(s.chat, EBB_FINISH_STOP);
    stats->tier = EBB_TIER_STREAMING;
    stats->stall_share = 0.8;
    screen_keys(&s, "/why\r");
    assert_has(&s, "The prompt: 7,412 tokens were known already; read: 318 tokens in 7.8 s, 41 tok/s.\n");
    assert_has(&s, "The answer: 212 tokens in 34 s, 6.3 tok/s.\n");
    assert_has(&s, "6 of 8 layers are in memory; the rest is read from disk for each token, and 80% of the time");
    stats->n_resident = 8;
    screen_keys(&s, "/why\r");
    assert_has(&s, "All layers are in memory; the output matrix is not: it is read from disk for each token");
    screen_keys(&s, "/mem\r");
    assert_has(&s, "tier streaming, 8 of 8 layers in memory, the output matrix on disk");
    *stats = (ebb_stats){ .tier = EBB_TIER_FULL, .n_layers = 8, .n_resident = 8, .mapped_bytes = 4300ull << 20,
                          .predicted_decode_tok_s = 6.1 };
    screen_keys(&s, "\x0c/new\rHello\r");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/slow\r");
    assert_has(&s, "each token takes 4.20 GiB of weights through the processor, about 6.1\n");
    assert_lacks(&s, "slower than that");
    stats->predicted_decode_tok_s = 20;
    last = (ebb_message *)ebb_chat_message(s.chat, ebb_chat_n_messages(s.chat) - 1);
    last->turn_stats.about = EBB_ABOUT_SIDE_BY_SIDE;
    screen_keys(&s, "/why\r");
    assert_has(&s, "It was written side by side with others");
    assert_lacks(&s, "slower than that");
    last->turn_stats.about = 0;
    screen_keys(&s, "/why\r");
    assert_has(&s, "It was slower than that");
    stats->n_resident = 3;
    screen_keys(&s, "/why\r");
    assert_has(&s, "3 of 8 layers are in memory so far");
    last->turn_stats.n_accepted = 12;
    screen_keys(&s, "/why\r");
    assert_has(&s, "tok/s (guessed 12).\n");
    last->turn_stats.n_accepted_reference = 5;
    screen_keys(&s, "\x0c/why\r");
    assert_has(&s, "tok/s (guessed 12, 5 of them from other conversations).\n");
    assert_has(&s, "The next answer will be faster.");
    last->model = (char *)"Other 1B";
    screen_keys(&s, "\x0c/why\r");
    assert_has(&s, "It was written by Other 1B, which is no longer loaded.\n");
    last->model = NULL;
    screen_close(&s);
}

static void draft(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 16, 100, "");
    screen_keys(&s, "/draft\r");
    assert_has(&s, "the model is not loaded yet");
    fake_ready(s.chat);
    screen_step(&s, 1);
    *fake_stats(s.chat) = (ebb_stats){ .n_drafted = 40, .n_accepted = 31 };
    screen_keys(&s, "/draft\r");
    assert_has(&s, "no draft model; /draft NAME uses one");
    assert_has(&s, "without one 31\n  of 40 draft tokens were accepted");
    screen_keys(&s, "/draft off\r");
    assert_has(&s, "there is no draft model");
    screen_keys(&s, "/draft 1b\r/draft\r");
    assert_has(&s, "1b is not loaded");
    *fake_stats(s.chat) = (ebb_stats){ .draft_bytes = 800 << 20, .n_drafted = 12345, .n_accepted = 10000 };
    screen_keys(&s, "/draft\r");
    assert_has(&s, "1b drafts, in 800 MiB of memory; 10,000 of 12,345 draft");
    screen_keys(&s, "/draft off\r/draft\r");
    assert_null(ebb_chat_draft(s.chat));
    screen_keys(&s, "/draft a\t");
    assert_has(&s, "> /draft auto");
    screen_keys(&s, "\003\003/draft 1b\r");
    strcpy(fake_remote(s.chat)->name, "box");
    screen_keys(&s, "/draft\r");
    assert_has(&s, "its draft model is the server's");
    screen_close(&s);
}

/* In the place of `ebb pull`: it has a quarter, and goes on. */
static void write_puller(const char *path)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs("#!/bin/sh\necho '{\"event\":\"progress\",\"file\":\"t.gguf\",\"index\":0,\"files\":1,\"done\":1048576,"
          "\"total\":4194304,\"bytes_s\":null,\"left_s\":null,\"checking\":false}'\nexec sleep 1000\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* Also during an answer, whose figures change at the same moments. */
static void what_is_fetched_is_shown(void **state)
{
    char folder[64], path[80];
    screen s;

    (void)state;
    assert_int_equal(ebb_own_folder(folder, sizeof folder, "/tmp/ebb-panel-XXXXXX"), 0);
    snprintf(path, sizeof path, "%s/ebb", folder);
    write_puller(path);
    screen_open_ready(&s, 30, 140);
    screen_keys(&s, "hello\r");
    assert_int_equal(ebb_pull_process_start(&s.app.frontend.pull, path, "owner/Tiny", 0, NULL), EBB_OK);
    screen_step(&s, 0);
    for (int left = 6000; s.app.frontend.pull.last.n_files == 0; left--) {
        assert_true(left > 0);
        usleep(10000);
        screen_step(&s, 1);
    }
    screen_step(&s, 1);
    assert_has(&s, "4.00 MiB  25%");
    screen_close(&s);
    assert_int_equal(ebb_own_folder_end(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_has_a_panel), cmocka_unit_test(the_panel_is_explained),
        cmocka_unit_test(an_engine_elsewhere_has_its_own_panel),
        cmocka_unit_test(the_machine_over_there_has_its_gauges),
        cmocka_unit_test(memory),
        cmocka_unit_test(the_panel_says_what_guessing_is_worth),
        cmocka_unit_test(why_it_was_slow),
        cmocka_unit_test(what_is_fetched_is_shown),
        cmocka_unit_test(draft),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
