#include "ebb_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "support/small_disk.h"
#include "tui/screen.h"

static void open_ready(screen *s, int rows, int cols)
{
    screen_open(s, rows, cols, "");
    fake_ready(s->chat);
    *fake_stats(s->chat) = (ebb_stats){ .phase = EBB_PHASE_IDLE, .n_ctx = 4096, .n_ctx_used = 1024, .n_layers = 8,
        .n_resident = 6, .layer = { 4, 4, 4, 4, 3, 3, 2, 0 }, .rss_anon_bytes = 600 << 20,
        .rss_file_bytes = 4300ull << 20, .cpu = "avx2", .n_threads = 2, .kv_type = "f16",
        .kv_bytes = 512 << 20, .kv_memory_bytes = 128 << 20, .mode = "max-context", .available_bytes = 1280ll << 20,
        .pressure_avg10 = 3, .budget_bytes = 6ull << 30 };
    screen_step(s, 1);
}

static void a_turn(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    screen_keys(&s, "Hello\r");
    assert_true(ebb_chat_is_busy(s.chat));
    fake_text(s.chat, "Hi **there**, how");
    screen_step(&s, 0.1);
    fake_text(s.chat, " are you?\n");
    fake_done(s.chat, EBB_FINISH_STOP);
    assert_string_equal(screen_text(&s),
        "> Hello\n"
        "\n"
        "Hi there, how are you?\n"
        "212 tok | 6.3/s | 41 s\n"
        "\n\n\n\n\n\n\n\n"
        "------------------------------------------------------------\n"
        ">\n"
        "  Fake 8B Q4_K_M | ctx 1,024/4,096 25% | memory 4.79 GiB\n"
        "  layers 6/8 ####==*.                           new session\n");
    assert_int_equal(ebb_term_mem_face(s.term, 2, 3), EBB_FACE_BOLD);
    assert_int_equal(ebb_term_mem_face(s.term, 3, 0), EBB_FACE_TURN_STATS);
    screen_close(&s);
}

/* Another process writes: it is seen, what is sent waits, and a model comes when that has ended. */
static void attached(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    fake_attached(s.chat, 4711, "Tell me");
    fake_text(s.chat, "Once upon");
    screen_step(&s, 1);
    assert_has(&s, "> Tell me\n\nOnce upon\n");
    assert_has(&s, " attached to process 4711");
    screen_keys(&s, "and then?\r");
    assert_has(&s, "waits: and then?");
    fake_text(s.chat, " a time.");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 1);
    assert_has(&s, "Once upon a time.\n212 tok");
    assert_has(&s, " loading");
    assert_has(&s, "waits: and then?");
    fake_ready(s.chat);
    screen_step(&s, 1);
    assert_has(&s, "> and then?\n");
    screen_close(&s);
    screen_open(&s, 30, 140, "");
    fake_attached(s.chat, 4711, "Tell me");
    screen_step(&s, 1);
    assert_has(&s, "| attached to ");
    assert_has(&s, " process 4711\n");
    screen_close(&s);
}

static void wide_has_a_panel(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 30, 140);
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
    open_ready(&s, 40, 140);
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
    screen_close(&s);
}

/* What a server says, about where nobody has counted, and nothing of a machine that nobody here can see. */
static void an_engine_elsewhere_has_its_own_panel(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 30, 140);
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
    fake_text(s.chat, "hi");
    fake_done(s.chat, EBB_FINISH_STOP);
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
    open_ready(&s, 46, 140);
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
    assert_lacks(&s, "\x1b");
    fake_remote(s.chat)->server.taken_ms = 2000;         /* others come: drawn again */
    fake_remote(s.chat)->server.stats.n_resident = 4;
    screen_step(&s, 1);
    assert_has(&s, "layers              4/4 in memory");
    screen_close(&s);
}

static void stop_keeps_the_part(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "Tell me\r");
    fake_text(s.chat, "Once upon");
    screen_keys(&s, "\x03");
    assert_false(ebb_chat_is_busy(s.chat));
    assert_has(&s, "Once upon\nstopped | 212 tok | 6.3/s");
    screen_keys(&s, "draft");
    assert_has(&s, "\n> draft\n");
    screen_keys(&s, "\x03");
    assert_has(&s, "\n>\n");
    screen_keys(&s, "\x03");
    assert_has(&s, "Ctrl-D leaves");
    assert_false(s.app.frontend.quit);
    screen_keys(&s, "\x04");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

static void busy_queues(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    assert_has(&s, "\n> Ask something.");
    screen_keys(&s, "one\r");
    assert_has(&s, "waits: one\n>\n");
    assert_has(&s, "queued; Ctrl-X takes it back");
    fake_ready(s.chat);
    screen_step(&s, 0.1);
    assert_has(&s, "> one\n");
    assert_lacks(&s, "waits");
    assert_lacks(&s, "queued");
    screen_keys(&s, "two\rthree\rfour\r");
    assert_has(&s, "waits: two\nwaits: three\nwaits: four\n");
    screen_keys(&s, "\x18");                     /* Ctrl-X */
    assert_has(&s, "waits: two\nwaits: three\n> four\n");
    screen_keys(&s, "\x15");
    fake_text(s.chat, "A");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 0.1);
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "two");
    screen_keys(&s, "\x03");                     /* stops, and takes the rest of the queue back */
    assert_has(&s, "\n> three\n");
    assert_lacks(&s, "waits");
    fake_done(s.chat, EBB_FINISH_CANCELED);
    screen_step(&s, 0.1);
    screen_keys(&s, "\x15" "four\r//five\r");
    assert_has(&s, "waits: /five\n");
    screen_keys(&s, "\x18");                     /* a message, as it was: no command */
    assert_has(&s, "\n> //five\n");
    screen_close(&s);
}

/* What waits when one leaves, and the line under way, is there when the conversation is opened next. */
static void unsent_is_kept(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    screen_open(&s, 12, 60, dir);
    screen_keys(&s, "one\r");
    screen_keys(&s, "//two\rhalf a li");
    assert_has(&s, "waits: one\nwaits: /two\n> half a li\n");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_true(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "unsent when you left");
    assert_has(&s, "> one\n  /two\n  half a li\n");
    fake_ready(s.chat);
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one\n/two\nhalf a li");
    screen_keys(&s, "/tr");                      /* a command is nothing to be sent */
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_false(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> Ask something.");
    screen_close(&s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static void expect_kept(const char *dir, const char *keys, const char *want)
{
    bool has_unsent;
    ebb_error err;
    screen s;

    screen_open(&s, 12, 60, dir);
    screen_keys(&s, "\x15");                     /* what was kept before */
    screen_keys(&s, keys);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, want);
    screen_close(&s);
}

/* Lines of the history in its place, found or browsed, and slashes. */
static void unsent_is_what_was_typed(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    expect_kept(dir, "an old line\r", "> an old line\n");
    expect_kept(dir, "half a line\x12old", "> half a line\n");
    expect_kept(dir, "half a line\033[A", "> half a line\n");
    expect_kept(dir, "half a line\033[A and more", "> half a line\n  an old line and more\n");
    expect_kept(dir, "half a line\033[A\x12old", "> half a line\n");
    expect_kept(dir, "\033[A", "> Ask something.");
    expect_kept(dir, "//half a line", "> //half a line\n");
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static size_t n_drafts(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "draft", 5) == 0;
    closedir(d);
    return n;
}

/* kill -9 takes a second of typing, no more; and what was sent does not come again. */
static void unsent_survives_a_kill(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];
    screen s, other;
    int status;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(dir));
    pid = fork();
    if (pid == 0) {
        screen_open(&s, 12, 60, dir);
        screen_keys(&s, "half a thought");
        screen_step(&s, 2);
        screen_keys(&s, " and words that nobody will see");
        _exit(0);                                /* as if killed: nothing is closed */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(n_drafts(dir), 1);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> half a thought\n");
    assert_int_equal(n_drafts(dir), 1);          /* another kill takes nothing of it */
    screen_keys(&s, "!");
    screen_step(&s, 2);
    assert_int_equal(n_drafts(dir), 1);
    screen_open(&other, 12, 60, dir);            /* of a program that runs it is its own */
    assert_has(&other, "> Ask something.");
    screen_close(&other);
    fake_ready(s.chat);
    screen_keys(&s, "\r");
    screen_step(&s, 0);
    assert_int_equal(n_drafts(dir), 0);
    screen_keys(&s, "more");
    screen_step(&s, 2);
    assert_int_equal(n_drafts(dir), 1);
    screen_keys(&s, "\x15");                     /* Ctrl-U */
    screen_step(&s, 0);
    assert_int_equal(n_drafts(dir), 0);
    screen_close(&s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

/* Where the last words cannot be kept, those of a second ago stay. */
static void unsent_on_a_full_disk(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX";
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    if (!ebb_small_disk_mount(dir, 64)) {
        assert_int_equal(rmdir(dir), 0);
        skip();
    }
    screen_open(&s, 12, 60, dir);
    screen_keys(&s, "half a thought");
    screen_step(&s, 2);
    assert_true(ebb_small_disk_fill(dir));
    screen_keys(&s, " more");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_IO);
    assert_true(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> half a thought\n");
    screen_close(&s);
    ebb_small_disk_unmount(dir);
    assert_int_equal(rmdir(dir), 0);
}

/* A pipe is nobody's text, and nothing waits for its writer. */
static void unsent_is_no_pipe(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", path[64], cmd[64];
    screen s;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/draft-1", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY);
        _exit(write(fd, "\nfrom a pipe", 12) != 12);
    }
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> Ask something.");
    assert_int_equal(n_drafts(dir), 1);
    screen_close(&s);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static void several_lines(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "one\\\rtwo\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one\ntwo");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 0.1);
    screen_keys(&s, "\"\"\"\rthree\rfour\r\"\"\"\r");
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "three\nfour");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 0.1);
    screen_keys(&s, "\"\"\"doc\"\"\" of code\r");              /* its own quotes, and closed */
    assert_string_equal(ebb_chat_message(s.chat, 4)->text, "\"\"\"doc\"\"\" of code");
    screen_close(&s);
}

/* A usage that takes the whole row leaves no mark of what had no room. */
static void a_long_message_takes_the_row(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "/load x");
    screen_step(&s, 0.2);
    assert_has(&s, "  /load NAME: Open another session, by name, title or num...\n");
    screen_close(&s);
    open_ready(&s, 12, 90);
    screen_keys(&s, "/undo");
    screen_step(&s, 0.2);
    assert_has(&s, "undo      Take back the last question and its answer.");
    screen_close(&s);
}

static void refused_text_comes_back(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    fake_refuse(s.chat, "5,000 tokens do not fit the context of 4,096");
    screen_keys(&s, "long text\r");
    assert_has(&s, "! 5,000 tokens do not fit");
    assert_has(&s, "\n> long text\n");
    screen_close(&s);
}

/* Its turn came while another was being typed. */
static void refused_queue_comes_back(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 24, 60, "");
    screen_keys(&s, "long text\ranother");
    fake_refuse(s.chat, "5,000 tokens do not fit the context of 4,096");
    fake_ready(s.chat);
    screen_step(&s, 0.1);
    assert_has(&s, "! 5,000 tokens do not fit");
    assert_has(&s, "\n> another\n  long text\n");
    screen_close(&s);
}

static void commands(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    screen_keys(&s, "/bogus now\r");
    assert_has(&s, "! no command /bogus");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "//slash\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "/slash");
    fake_text(s.chat, "ok");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/undo\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    assert_has(&s, "\n> //slash\n");            /* in the editor, as it must be typed to be put otherwise */
    screen_keys(&s, "\x15");
    screen_keys(&s, "/undo\r");
    assert_has(&s, "! there is nothing to undo");
    screen_keys(&s, "/redo\r");
    assert_has(&s, "> /slash");
    screen_keys(&s, "/set temp 0.1\r");
    assert_has(&s, "  temp = 0.1 (0 to 2)");
    screen_keys(&s, "/load trip\r");
    assert_has(&s, "> Where to?\n\nTo the sea.\n");
    screen_keys(&s, "/save sea\r");
    assert_has(&s, "* saved as sea");
    screen_keys(&s, "/list\r");
    assert_has(&s, "2 messages  trip");
    screen_keys(&s, "/theme nope\r");
    assert_has(&s, "! there is no theme 'nope'");
    screen_keys(&s, "/theme light\r");
    assert_string_equal(s.app.frontend.theme, "light");
    screen_keys(&s, "/copy\r");
    assert_has(&s, "11 bytes sent to the terminal");
    assert_string_equal(ebb_buf_text(ebb_term_mem_sent(s.term)), "\033]52;c;VG8gdGhlIHNlYS4=\a");
    screen_keys(&s, "/quit\r");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

/* What is not saved is not left without a word. */
static void leaving_unsaved(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 90);
    fake_unsaved(s.chat, "sessions.db cannot grow");
    screen_keys(&s, "\x04");
    assert_false(s.app.frontend.quit);
    assert_has(&s, "sessions.db cannot grow (/save ./NAME.json writes a file");
    screen_keys(&s, "\x04");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

/* Of answers: shown in the status line while there is one. */
static void a_form(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 120);
    screen_keys(&s, "/schema\r");
    assert_has(&s, "answers have no form");
    assert_lacks(&s, "JSON book.json");
    screen_keys(&s, "/schema wrong\r");
    assert_has(&s, "wrong: no schema");
    screen_keys(&s, "/schema book.json\r");
    assert_has(&s, "answers are JSON under the schema book.json from here on");
    screen_keys(&s, "x");
    assert_has(&s, "JSON book.json");
    screen_keys(&s, "\x7f/schema off\r");
    screen_keys(&s, "x");
    assert_lacks(&s, "JSON book.json");
    screen_close(&s);
}

/* While a file is read keys are answered, and it can be stopped. */
static void a_job(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 120);
    fake_job(s.chat, "importing", 0.4);
    screen_keys(&s, "while it is read");
    assert_has(&s, "while it is read");
    screen_step(&s, 1);
    assert_has(&s, "importing");
    assert_has(&s, "40%");
    assert_has(&s, "Esc stops");
    screen_keys(&s, "\r\x04");                   /* waits for its end, like behind an answer; leaving is asked about */
    assert_has(&s, "importing is at 40 %: the same again leaves, and none of it is kept");
    assert_false(s.app.frontend.quit);
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "\x03");
    assert_has(&s, "stopped: nothing from old.json is kept");
    screen_step(&s, 1);
    assert_lacks(&s, "40%");                     /* the status line's */
    screen_close(&s);
}

static void template_of_the_session(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 120);
    screen_keys(&s, "/set template\r");
    assert_has(&s, "template = auto (auto, none, a family like chatml, or a file)");
    screen_keys(&s, "/set template wrong\r");
    assert_has(&s, "there is no template wrong");
    screen_keys(&s, "/set template chatml\r");
    assert_has(&s, "* chat template: another\n");
    screen_keys(&s, "/set\r");
    assert_has(&s, "\n  template = chatml   how messages become a prompt\n");
    assert_has(&s, "\n  temp = 0.7          warmth\n");      /* not its range */
    assert_has(&s, "\n  ctx = ");
    ebb_term_mem_resize(s.term, 24, 36);         /* too narrow for two columns: further rows are set in a little */
    screen_keys(&s, "");
    assert_has(&s, "how messages\n    become a prompt\n");
    screen_close(&s);
}

/* Who is here for the first time hears of the other way to look; inline, and later, nobody does. */
static void inline_is_offered(void **state)
{
    static const char offer[] = "ebb --inline leaves the conversation in the terminal's own scrollback.";
    screen s;

    (void)state;
    open_ready(&s, 24, 100);
    s.app.greeting.is_first_run = true;
    screen_keys(&s, "\x0c");
    assert_has(&s, offer);
    s.app.greeting.is_first_run = false;
    screen_keys(&s, "\x0c");
    assert_null(strstr(screen_text(&s), offer));
    screen_close(&s);
}

static void memory(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 90);
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
    open_ready(&s, 40, 130);
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
    open_ready(&s, 40, 99);                      /* as wide as it can be without a panel */
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
    assert_has(&s, "6 of 8 layers are in memory; the others are read from disk for each token, and 80% of the time");
    *stats = (ebb_stats){ .tier = EBB_TIER_FULL, .n_layers = 8, .n_resident = 8, .mapped_bytes = 4300ull << 20,
                          .predicted_decode_tok_s = 6.1 };
    screen_keys(&s, "\x0c/new\rHello\r");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/slow\r");
    assert_has(&s, "each token takes 4.20 GiB of weights through the processor, about 6.1\n");
    assert_lacks(&s, "slower than that");
    stats->predicted_decode_tok_s = 20;
    screen_keys(&s, "/why\r");
    assert_has(&s, "It was slower than that");
    stats->n_resident = 3;
    screen_keys(&s, "/why\r");
    assert_has(&s, "3 of 8 layers are in memory so far");
    last = (ebb_message *)ebb_chat_message(s.chat, ebb_chat_n_messages(s.chat) - 1);
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
    assert_has(&s, "the model is still being loaded");
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
    screen_close(&s);
}

static void help_names_every_command(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 96, 99);
    screen_keys(&s, "/help\r");
    static const char *const names[] = { "/retry", "/set [NAME [VALUE]]", "/quit", "Alt-Enter, Ctrl-J",
                                         "/system [TEXT]" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_has(&s, names[i]);
    assert_has(&s, "\n  Sessions");                    /* in groups */
    assert_has(&s, "\n  /engine [NAME [MODEL]]\n                      Show the engines");
    screen_close(&s);
}

/* What is longer than the window is read from its beginning; the next line of ebb shows the end again. */
static void help_begins_at_its_top(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    screen_keys(&s, "/help\r");
    assert_has(&s, "  /help [COMMAND]     List commands and keys");
    assert_has(&s, "\n                      costs.");  /* a row that goes on is below its explanation */
    assert_has(&s, "PgDn: more, Alt-End: to the end");
    screen_keys(&s, "\033[6~");
    assert_lacks(&s, "/help [COMMAND]");
    screen_keys(&s, "\033OP");                   /* F1 */
    assert_has(&s, "  /help [COMMAND]     List commands and keys");
    screen_keys(&s, "/title\r");
    assert_has(&s, "Ctrl-D              On an empty line: leave.");
    assert_true(s.app.view.is_bottom);
    screen_keys(&s, "half a line\033[21~");      /* F10 */
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

/* What ebb said in one session is of no use in another. */
static void another_session_begins_clean(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    screen_keys(&s, "/nonsense\r");
    assert_has(&s, "! no command /nonsense");
    screen_keys(&s, "\x15/temp 0.5\r");          /* a setting is changed as people write it */
    assert_has(&s, "temp = 0.5");
    screen_keys(&s, "/new\r");
    assert_lacks(&s, "nonsense");
    screen_keys(&s, "/nonsense\r/load trip\r");
    assert_lacks(&s, "nonsense");
    assert_has(&s, "> Where to?");
    screen_close(&s);
}

static void completion(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "/th\t");
    assert_has(&s, "> /theme");
    screen_keys(&s, "li\t\r");
    assert_string_equal(s.app.frontend.theme, "light");
    screen_keys(&s, "\x15/load tr\t");
    assert_has(&s, "> /load trip");
    screen_close(&s);
}

/* What fits best stands first; arrows choose, Enter takes and runs what needs no more, Esc closes. */
static void menu_of_commands(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    screen_keys(&s, "/re");
    screen_step(&s, 0.2);                        /* the hands rest: the list follows */
    assert_has(&s, "retry");
    assert_has(&s, "Another answer to the last question, or N at once.");
    assert_has(&s, "redo");
    screen_keys(&s, "\033[B");
    assert_true(s.app.menu.is_chosen);
    screen_keys(&s, "\033");
    screen_step(&s, 1);
    screen_keys(&s, "x");                        /* a lone Esc is one when something else follows */
    assert_false(s.app.menu.is_open);
    screen_keys(&s, "\x15/hlp");                 /* letters in their order */
    screen_step(&s, 0.2);
    assert_has(&s, "List commands and keys");
    screen_keys(&s, "\r");
    assert_has(&s, "/help [COMMAND]");
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_keys(&s, "\x15/lod\r");               /* it needs to know which */
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/load ");
    assert_true(s.app.menu.is_open);
    screen_keys(&s, "\x15/nonsense");
    screen_step(&s, 0.2);
    assert_false(s.app.menu.is_open);
    screen_keys(&s, "\x15words about / and @");
    assert_true(s.app.menu.is_open && s.app.menu.is_file);
    screen_close(&s);
}

static void menu_picks(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    screen_keys(&s, "/theme\r");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/theme ");
    screen_keys(&s, "\033[B");                   /* seen at once */
    assert_true(s.app.menu.is_previewed);
    screen_keys(&s, "\x15");
    assert_false(s.app.menu.is_previewed);
    assert_string_equal(s.app.frontend.theme, "dark");
    screen_keys(&s, "/theme lgt\r");
    assert_string_equal(s.app.frontend.theme, "light");
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_keys(&s, "/load\r");
    assert_has(&s, "trip");
    screen_keys(&s, "tri\r");
    assert_has(&s, "> Where to?");
    screen_keys(&s, "/tree\r");                  /* walks */
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/go ");
    assert_has(&s, "you: Where to?");
    screen_keys(&s, "\x15");
    assert_false(s.app.menu.is_open);
    screen_close(&s);
}

/* The same answer again is no fault, and that is said. */
static void retry_at_zero(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 100);
    screen_keys(&s, "first\r");
    fake_text(s.chat, "An answer.");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/retry\r");
    assert_lacks(&s, "at temperature 0");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/retry 4\r");
    assert_int_equal(fake_n_answers(s.chat), 4);
    assert_has(&s, "4 answers are being written side by side");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/retry 17\r/retry 0\r/retry many\r");
    assert_int_equal(fake_n_answers(s.chat), 4);
    assert_has(&s, "/retry 17: give how many answers, 1 to 16");
    assert_has(&s, "/retry many: give how many answers");
    screen_keys(&s, "/set parameter temp 0\r/retry\r");
    assert_int_equal(fake_n_answers(s.chat), 1);
    assert_has(&s, "at temperature 0 the same question gives the same answer");
    screen_close(&s);
}

/* A question that was put back gives way to a command, and only to one. */
static void command_after_undo(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    screen_keys(&s, "first\r");
    fake_text(s.chat, "An answer.");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/undo\r");
    assert_has(&s, "> first");
    screen_keys(&s, "/title\r");
    assert_has(&s, "title: ");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "and/or");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "and/or");
    screen_close(&s);
}

static void scrolling(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 40);
    screen_keys(&s, "count\r");
    for (int i = 1; i <= 30; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %d\n", i);
        fake_text(s.chat, line);
    }
    assert_has(&s, "line 30\n");
    screen_keys(&s, "\033[5~\033[5~");
    assert_lacks(&s, "line 30\n");
    assert_has(&s, "line 12\n");
    assert_has(&s, "Alt-End: to the end");
    screen_keys(&s, "?");
    assert_has(&s, "PgUp PgDn: a page");
    assert_has(&s, "line 12\n");
    screen_keys(&s, "\033[6~\033[5~");
    const char *before = strdup(screen_text(&s));
    fake_text(s.chat, "line 31\n");
    assert_has(&s, "v new text below");
    assert_memory_equal(before, screen_text(&s), (size_t)(strstr(before, "PgDn") - before - 1));
    free((char *)before);
    screen_keys(&s, "\033[1;3F");
    assert_has(&s, "line 31\n");
    screen_keys(&s, "\033[1;3H");
    assert_has(&s, "> count\n\nline 1\n");
    for (int i = 0; i < 10; i++)
        screen_keys(&s, "\033[6~");
    assert_has(&s, "line 31\n");
    assert_true(s.app.view.is_bottom);
    screen_close(&s);
}

static void resize_keeps_the_place(void **state)
{
    screen s;
    ebb_buf text = { 0 };

    (void)state;
    open_ready(&s, 20, 90);
    screen_keys(&s, "go\r");
    for (int i = 0; i < 300; i++)
        ebb_buf_addf(&text, "word%d ", i);
    fake_text(s.chat, text.data);
    screen_step(&s, 0.1);
    screen_keys(&s, "\033[1;3H\033[1;5B\033[6;5~\033[6;5~\033[6;5~\033[6;5~\033[6;5~\033[6;5~");
    const char *top = screen_text(&s);
    size_t n = strcspn(top, " \n");
    char word[32] = "";
    memcpy(word, top, n);
    for (int cols = 89; cols > 30; cols -= 7) {
        ebb_term_mem_resize(s.term, 20, cols);
        const char *now = screen_text(&s);
        size_t first_row = strcspn(now, "\n");
        const char *at = strstr(now, word);
        assert_non_null(at);
        assert_true(at < now + first_row);
    }
    ebb_buf_fini(&text);
    screen_close(&s);
}

static void history_keys(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "/set temp 1\r/list\rdraft\033[A");
    assert_has(&s, "\n> /list\n");
    screen_keys(&s, "\033[A");
    assert_has(&s, "\n> /set temp 1\n");
    screen_keys(&s, "\033[B\033[B");
    assert_has(&s, "\n> draft\n");
    screen_keys(&s, "\x12temp");
    assert_has(&s, "search: temp");
    assert_has(&s, "\n> /set temp 1\n");
    screen_keys(&s, "\x07");
    assert_has(&s, "\n> draft\n");
    screen_close(&s);
}

static void big_paste_is_folded(void **state)
{
    screen s;
    ebb_buf paste = { 0 };

    (void)state;
    open_ready(&s, 12, 60);
    ebb_buf_adds(&paste, "\033[200~");
    for (int i = 0; i < 1204; i++)
        ebb_buf_addf(&paste, "%d\033[31m\r\n", i);
    ebb_buf_adds(&paste, "\033[201~");
    screen_keys(&s, "see ");
    ebb_term_mem_feed(s.term, paste.data, paste.len);
    screen_step(&s, 0);
    screen_keys(&s, " please");
    assert_has(&s, "\n> see [pasted 1,204 lines] please\n");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "\r");
    const ebb_message *m = ebb_chat_message(s.chat, 0);
    assert_memory_equal(m->text, "see 0\033[31m\n1", 12);
    assert_string_equal(m->text + m->n_text - 8, "\n please");
    assert_has(&s, "\u241B[31m");                /* never raw */
    assert_null(strchr(screen_text(&s), '\033'));
    ebb_buf_fini(&paste);
    screen_close(&s);
}

/* Nothing is dropped silently. */
static void what_a_paste_loses_is_said(void **state)
{
    ebb_buf paste = { 0 };
    screen s;

    (void)state;
    screen_open(&s, 20, 100, "");
    fake_ready(s.chat);
    ebb_buf_adds(&paste, "\033[200~");
    for (size_t i = 0; i < EBB_PASTE_BYTES + 5; i++)
        ebb_buf_addc(&paste, 'x');
    ebb_buf_adds(&paste, "\033[201~");
    ebb_term_mem_feed(s.term, paste.data, paste.len);
    screen_keys(&s, "y");
    assert_has(&s, "! the paste is cut off after 16777216 bytes: 5 more are not in it; 16 MiB at once are kept\n");
    ebb_buf_fini(&paste);
    screen_close(&s);
}

static void a_failed_load_is_said(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    fake_loading(s.chat, 1 << 20, 4 << 20);
    assert_has(&s, "loading [###-------] 25%");
    fake_fail(s.chat, "x.gguf: truncated: ends at byte 12");
    screen_step(&s, 1);
    assert_has(&s, "! x.gguf: truncated");
    assert_has(&s, "no model; /model FILE loads one");
    for (int i = 0; i < 10; i++)
        screen_step(&s, 1.1);
    assert_int_equal(ebb_app_timeout_ms(&s.app, s.now), -1);
    screen_close(&s);
}

/* Hands that know other programs, or none. */
static void beginners(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 20, 100);
    screen_keys(&s, "exit\r");
    assert_has(&s, "/quit is the command; Enter again sends 'exit' as a message");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    screen_keys(&s, "another\r");
    assert_has(&s, "queued; Ctrl-X takes it back");
    screen_keys(&s, "\x18\x15");
    screen_keys(&s, "\x03");
    assert_has(&s, "stopped; Enter on an empty line continues");
    screen_keys(&s, "/ex");
    screen_step(&s, 0.2);
    assert_has(&s, "export    Write this session");
    screen_keys(&s, "port x");
    screen_step(&s, 0.2);
    assert_has(&s, "/export [FILE]");
    screen_keys(&s, "\x15/exprot\r");
    assert_has(&s, "no command /exprot; did you mean /export?");
    screen_keys(&s, "/clear\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    for (int i = 0; i < 20; i++)
        fake_add(s.chat, EBB_ROLE_USER, "line");
    ebb_transcript_sync(&s.app.view);
    screen_text(&s);
    screen_keys(&s, "\033OA\033OA\033OA");       /* the wheel, as many terminals send it */
    assert_false(s.app.view.is_bottom);
    screen_keys(&s, "\033");
    assert_true(s.app.view.is_bottom);
    screen_keys(&s, "/bye\r");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

static void idle_costs_nothing(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 120);
    for (int i = 0; i < 6; i++)
        screen_step(&s, 1.1);
    assert_int_equal(ebb_app_timeout_ms(&s.app, s.now), -1);
    size_t before = ebb_term_mem_changes(s.term);
    screen_step(&s, 60);
    assert_int_equal(ebb_term_mem_changes(s.term), before);
    assert_int_equal(ebb_app_timeout_ms(&s.app, s.now), -1);
    screen_close(&s);
}

static void busy_looks_twice_a_second(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 140);
    screen_keys(&s, "x\r");
    screen_step(&s, 0.01);
    int wait = ebb_app_timeout_ms(&s.app, s.now);
    assert_in_range(wait, 20, 501);
    fake_stats(s.chat)->phase = EBB_PHASE_PREFILL;
    fake_stats(s.chat)->prefill_done = 128;
    fake_stats(s.chat)->prefill_total = 512;
    fake_stats(s.chat)->prefill_tok_s = 41;
    screen_step(&s, 0.6);
    assert_has(&s, "reading          128/512 tok  25%");
    assert_has(&s, "left                        9.4 s");
    assert_has(&s, "\n  reading [###-------] 25% 9.4 s left - Esc stops");  /* and beside the input, where one looks */
    screen_close(&s);
    open_ready(&s, 24, 80);
    assert_lacks(&s, "Esc stops");
    screen_keys(&s, "x\r");
    screen_step(&s, 1);
    assert_has(&s, " - Esc stops");
    screen_close(&s);
    open_ready(&s, 24, 128);                     /* text before figures */
    assert_lacks(&s, "| Fake 8B\n");
    screen_close(&s);
}

static void esc_sends_what_waits(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "one\rtwo\r");
    fake_text(s.chat, "A long");
    assert_has(&s, "waits: two");
    screen_keys(&s, "\x1b");
    screen_step(&s, 0.2);                        /* no sequence follows */
    screen_step(&s, 0.1);
    assert_lacks(&s, "waits");
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    assert_string_equal(ebb_chat_message(s.chat, 1)->text, "A long");
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "two");
    assert_true(ebb_chat_is_busy(s.chat));
    screen_close(&s);
}

static void a_command_ends_an_edit(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    screen_keys(&s, "one\r");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 0.1);
    screen_keys(&s, "/edit 1\r");
    assert_has(&s, "\n> one\n");
    screen_keys(&s, "\x15/new\r");
    screen_keys(&s, "two\r");
    assert_lacks(&s, "there is no message");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "two");
    screen_close(&s);
}

static void ctrl_l_draws_all_of_it(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    screen_keys(&s, "a draft");
    size_t before = ebb_term_mem_changes(s.term), n_seen = 0;
    for (const char *c = screen_text(&s); *c; c++)
        n_seen += *c != ' ' && *c != '\n';
    screen_keys(&s, "\x0c");
    assert_true(ebb_term_mem_changes(s.term) - before >= n_seen);
    assert_has(&s, "\n> a draft\n");
    screen_close(&s);
}

static void small_terminals(void **state)
{
    static const int sizes[][2] = { { 1, 1 }, { 2, 3 }, { 3, 10 }, { 10, 40 }, { 5, 200 }, { 100, 20 } };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        open_ready(&s, sizes[i][0], sizes[i][1]);
        screen_keys(&s, "hello \xE4\xBD\xA0\xE5\xA5\xBD\r/help\rabc");
        fake_text(s.chat, "an answer that is longer than a row");
        int row, col;
        assert_non_null(screen_text(&s));
        ebb_term_mem_cursor(s.term, &row, &col);
        assert_in_range(row, 0, sizes[i][0] - 1);
        assert_in_range(col, 0, sizes[i][1] - 1);
        screen_close(&s);
    }
}

static void ten_thousand_messages(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 40, 120);
    for (int i = 0; i < 10000; i++)
        fake_add(s.chat, i % 2 ? EBB_ROLE_ASSISTANT : EBB_ROLE_USER, "some words of a message that was said long ago");
    ebb_transcript_sync(&s.app.view);
    assert_has(&s, "> some words");
    for (int i = 0; i < 200; i++)
        screen_keys(&s, "\033[5~");
    assert_has(&s, "some words");
    size_t kept = 0;
    for (size_t i = 0; i < s.app.view.n_items; i++)
        kept += s.app.view.items[i].wrap.n_rows > 0;
    assert_true(kept < 300);
    screen_keys(&s, "\033[1;3H");
    assert_has(&s, "> some words");
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn),
        cmocka_unit_test(attached),
        cmocka_unit_test(wide_has_a_panel),
        cmocka_unit_test(an_engine_elsewhere_has_its_own_panel),
        cmocka_unit_test(the_machine_over_there_has_its_gauges),
        cmocka_unit_test(stop_keeps_the_part),
        cmocka_unit_test(busy_queues),
        cmocka_unit_test(unsent_is_kept), cmocka_unit_test(unsent_is_what_was_typed),
        cmocka_unit_test(unsent_survives_a_kill), cmocka_unit_test(unsent_is_no_pipe),
        cmocka_unit_test(unsent_on_a_full_disk),
        cmocka_unit_test(several_lines),
        cmocka_unit_test(a_long_message_takes_the_row),
        cmocka_unit_test(refused_text_comes_back), cmocka_unit_test(refused_queue_comes_back),
        cmocka_unit_test(commands),
        cmocka_unit_test(leaving_unsaved),
        cmocka_unit_test(memory), cmocka_unit_test(a_form), cmocka_unit_test(a_job),
        cmocka_unit_test(template_of_the_session), cmocka_unit_test(inline_is_offered),
        cmocka_unit_test(the_panel_says_what_guessing_is_worth),
        cmocka_unit_test(why_it_was_slow),
        cmocka_unit_test(draft),
        cmocka_unit_test(help_names_every_command),
        cmocka_unit_test(help_begins_at_its_top),
        cmocka_unit_test(another_session_begins_clean),
        cmocka_unit_test(completion), cmocka_unit_test(menu_of_commands),
        cmocka_unit_test(menu_picks), cmocka_unit_test(command_after_undo), cmocka_unit_test(retry_at_zero),
        cmocka_unit_test(scrolling),
        cmocka_unit_test(resize_keeps_the_place),
        cmocka_unit_test(history_keys),
        cmocka_unit_test(big_paste_is_folded),
        cmocka_unit_test(what_a_paste_loses_is_said),
        cmocka_unit_test(a_failed_load_is_said),
        cmocka_unit_test(beginners),
        cmocka_unit_test(idle_costs_nothing),
        cmocka_unit_test(busy_looks_twice_a_second),
        cmocka_unit_test(esc_sends_what_waits),
        cmocka_unit_test(a_command_ends_an_edit),
        cmocka_unit_test(ctrl_l_draws_all_of_it),
        cmocka_unit_test(small_terminals),
        cmocka_unit_test(ten_thousand_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
