#include "ebb_test.h"

#include "tui/screen.h"

static void open_on(screen *s, ebb_term *term, const char *state_dir)
{
    static ebb_tui_opts opts;

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
