#include "ebb_test.h"

#include "os/file.h"
#include "os/folder.h"
#include "support/own_folder.h"
#include "tui/screen.h"

static ebb_tui_opts opts;

static void open_on(screen *s, ebb_term *term, const char *state_dir)
{
    opts = (ebb_tui_opts){ .config_dir = "/nonexistent", .state_dir = state_dir, .editor = "true" };
    memset(s, 0, sizeof *s);
    s->term = term;
    s->chat = fake_chat_new();
    ebb_app_init(&s->app, s->term, s->chat, &opts);
    screen_step(s, 0);
}

void screen_open(screen *s, int rows, int cols, const char *state_dir)
{
    open_on(s, ebb_term_mem(rows, cols), state_dir);
}

void screen_open_ready(screen *s, int rows, int cols)
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

void screen_open_inline(screen *s, int rows, int cols)
{
    open_on(s, ebb_term_mem_inline(rows, cols), "");
}

void screen_close(screen *s)
{
    ebb_app_fini(&s->app);
    s->term->ops->close(s->term);
    ebb_chat_close(s->chat);
}

void screen_step(screen *s, double seconds)
{
    ebb_input in;

    s->now += seconds;
    while (s->term->ops->input(s->term, &in))
        ebb_app_input(&s->app, &in);
    ebb_app_events(&s->app);
    ebb_app_tick(&s->app, s->now);
    ebb_app_draw(&s->app, s->now);
}

void screen_keys(screen *s, const char *bytes)
{
    ebb_term_mem_feed(s->term, bytes, strlen(bytes));
    screen_step(s, 0);
}

void screen_answer(screen *s, const char *text)
{
    fake_text(s->chat, text);
    fake_done(s->chat, EBB_FINISH_STOP);
    screen_step(s, 0.1);
}

const char *screen_hold(const char *command)
{
    static char held[200];
    char go[80];

    snprintf(go, sizeof go, "%s/go", ebb_own_dir);
    ebb_file_remove(go);
    snprintf(held, sizeof held, "until [ -e %s ]; do sleep 0.01; done; %s", go, command);
    return held;
}

void screen_go_on(screen *s)
{
    char go[80];
    ebb_error err;

    snprintf(go, sizeof go, "%s/go", ebb_own_dir);
    assert_int_equal(ebb_file_replace(go, "", 0, &err), EBB_OK);
    while (ebb_command_output_is_running(&s->app.output) || ebb_documents_is_running(&s->app.documents)) {
        usleep(1000);
        screen_step(s, 0.001);
    }
}

void screen_use_editor(const char *command)
{
    opts.editor = command;
}

void screen_edit(screen *s, const char *command)
{
    screen_use_editor(command);
    screen_keys(s, "\x07");
    screen_wait_editor(s);
    screen_step(s, 0);
}

void screen_wait_editor(screen *s)
{
    while (s->app.external.program == EBB_EXTERNAL_EDITOR) {
        assert_true(ebb_app_timeout_ms(&s->app, s->now) != 0);   /* nothing turns the loop for nothing */
        usleep(1000);
        screen_step(s, 0.001);
    }
}

const char *screen_text(screen *s)
{
    s->app.frame.is_urgent = true;
    screen_step(s, 0);
    return ebb_term_mem_screen(s->term);
}

void assert_has(screen *s, const char *want)
{
    const char *text = screen_text(s);

    if (!strstr(text, want)) {
        print_message("%s", text);
        fail_msg("the screen lacks: %s", want);
    }
}

void assert_lacks(screen *s, const char *unwanted)
{
    const char *text = screen_text(s);

    if (strstr(text, unwanted)) {
        print_message("%s", text);
        fail_msg("the screen has: %s", unwanted);
    }
}
