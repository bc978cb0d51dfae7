/* What goes over the line to a terminal, counted in bytes at the far end of a pty, and looked through:
 * nothing while nothing happens, little while an answer runs, and no byte that others chose.
 *
 * The screen runs in a process of its own on made-up time, so that a minute takes no minute and the
 * bytes are the same each time. */
#include "ebb_test.h"

#include <pty.h>
#include <sys/wait.h>
#include <termios.h>

#include "app/app.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "os/file.h"
#include "term/tty_output.h"
#include "tui/fake_chat.h"

typedef struct play {
    ebb_app   app;
    ebb_term *term;
    ebb_chat *chat;
    double    now;
} play;

typedef void script(play *p);

static void step(play *p, double seconds)
{
    p->now += seconds;
    while (ebb_tty_send_kept() || ebb_tty_backlog())     /* made-up time waits for who reads */
        usleep(100);
    ebb_app_events(&p->app);
    ebb_app_tick(&p->app, p->now);
    ebb_app_draw(&p->app, p->now);
}

static void key(play *p, uint32_t code)
{
    ebb_app_input(&p->app, &(ebb_input){ .kind = EBB_INPUT_KEY, .key = { .code = code } });
    step(p, 0);
}

static void type(play *p, const char *s)
{
    for (; *s; s++)
        key(p, *s == '\r' ? EBB_KEY_ENTER : (unsigned char)*s);
}

/* The far end announces frames, tells keys apart, and says so when it is asked. */
static bool far_end_answers;

static void await_answers(ebb_term *term)
{
    ebb_input in;

    while (!term->answers.is_complete)
        if (!term->ops->input(term, &in))
            usleep(100);
}

static void play_out(bool is_inline, script *fn)
{
    static const ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "" };
    ebb_term_opts term_opts = { 0 };
    ebb_error err;
    play p = { 0 };

    if ((is_inline ? ebb_term_inline : ebb_term_curses)(&term_opts, &p.term, &err) != EBB_OK)
        _exit(1);
    if (far_end_answers)
        await_answers(p.term);
    p.chat = fake_chat_new();
    ebb_app_init(&p.app, p.term, p.chat, &opts);
    p.app.greeting.is_first_run = false;         /* no measuring of this machine: it ends when it ends ... */
    p.app.greeting.machine = (ebb_machine){ .available_bytes = 12ull << 30 };
    p.app.greeting.has_machine = true;           /* ... and what is free now is not what is free then */
    fake_ready(p.chat);
    *fake_stats(p.chat) = (ebb_stats){ .phase = EBB_PHASE_IDLE, .n_ctx = 8192, .n_ctx_used = 1000, .n_layers = 36,
        .n_resident = 20, .rss_anon_bytes = 3ull << 30, .rss_file_bytes = 400 << 20, .cpu = "avx2", .n_threads = 2,
        .kv_type = "q8_0", .kv_bytes = 512 << 20, .budget_bytes = 6ull << 30, .weight_bytes = 5ull << 30 };
    memset(fake_stats(p.chat)->layer, EBB_LAYER_PINNED, 20);
    step(&p, 1);
    type(&p, "a question\r");
    for (int i = 0; i < 8; i++)
        step(&p, 1);
    fn(&p);
    step(&p, 1);
    _exit(0);                                    /* as it stands: leaving is not counted */
}

/* What the far end says of its line; B0: nothing. */
static speed_t line_speed;

/* Everything that reached the other end. */
static void capture(bool is_inline, const char *lang, script *fn, ebb_buf *out)
{
    struct winsize size = { .ws_row = 40, .ws_col = 120 };
    const char *answers = far_end_answers ? "\033]11;rgb:0/0/0\033\\\033[?2026;2$y\033[?0u\033P>|kitty(0.36.0)\033\\"
                                            "\033[?62c" : NULL;
    char bytes[4096];
    ssize_t got;
    int fd;
    pid_t pid = forkpty(&fd, NULL, NULL, &size);

    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", lang, 1);
        if (line_speed != B0) {
            struct termios modes;
            tcgetattr(STDOUT_FILENO, &modes);
            cfsetspeed(&modes, line_speed);
            tcsetattr(STDOUT_FILENO, TCSANOW, &modes);
        }
        play_out(is_inline, fn);
    }
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
        ebb_buf_add(out, bytes, (size_t)got);
        if (answers && memmem(out->data, out->len, "\033[c", 3)) {
            assert_int_equal(write(fd, answers, strlen(answers)), (ssize_t)strlen(answers));
            answers = NULL;
        }
    }
    close(fd);
    waitpid(pid, NULL, 0);
    assert_false(out->failed);
}

static void nothing(play *p)
{
    (void)p;
}

static size_t bytes_of(bool is_inline, script *fn)
{
    ebb_buf base = { 0 }, all = { 0 };
    size_t n;

    capture(is_inline, "C.UTF-8", nothing, &base);
    capture(is_inline, "C.UTF-8", fn, &all);
    n = all.len - base.len;
    ebb_buf_fini(&base);
    ebb_buf_fini(&all);
    return n;
}

/* -- Budgets ---------------------------------------------------------------------------- */

static void a_minute_idle(play *p)
{
    fake_done(p->chat, EBB_FINISH_STOP);
    for (int i = 0; i < 10; i++)
        step(p, 1);
}

static void idle_for_a_minute_more(play *p)
{
    a_minute_idle(p);
    for (int i = 0; i < 60; i++) {
        if (ebb_app_timeout_ms(&p->app, p->now) >= 0)
            _exit(1);                            /* somebody wants to be woken */
        step(p, 1);
    }
}

static void idle_is_silent(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        far_end_answers = i >= 2;
        assert_int_equal(bytes_of(i & 1, idle_for_a_minute_more), bytes_of(i & 1, a_minute_idle));
    }
    far_end_answers = false;
}

/* Ten tokens a second for a minute, all figures in motion. */
static void an_answer(play *p)
{
    static const char *const words[] = { "The ", "weights ", "of a ", "layer ", "are **read** ", "when they ",
                                         "are `needed`, ",
        "and ", "let go ", "afterwards. ", "\n\n", "- a list\n", "- of things\n\n", "```c\n", "int x = 1;\n",
        "```\n\n" };
    ebb_stats *s = fake_stats(p->chat);

    s->phase = EBB_PHASE_DECODE;
    for (int i = 0; i < 600; i++) {
        fake_text(p->chat, words[i % (sizeof words / sizeof *words)]);
        s->decode_tok_s = 9.5 + (i * 7 % 11) / 10.0;
        s->n_ctx_used++;
        s->generated_tok++;
        s->layer[20 + i % 16] = EBB_LAYER_READING;
        s->layer[20 + (i + 15) % 16] = EBB_LAYER_DISK;
        s->read_bytes += 300 << 20;
        s->disk_bytes_s = 2.8e9 + (i * 13 % 7) * 1e7;
        s->stall_share = 0.5 + (i % 5) / 100.0;
        s->rss_anon_bytes += 100 << 10;
        s->n_passes++;
        for (int k = 0; k < 3; k++)
            step(p, 0.1 / 3);
    }
}

/* A hundred tokens a second, for twenty seconds. */
static void a_fast_answer(play *p)
{
    ebb_stats *s = fake_stats(p->chat);

    s->phase = EBB_PHASE_DECODE;
    for (int i = 0; i < 2000; i++) {
        fake_text(p->chat, i % 97 == 96 ? "\n\n" : i % 3 ? "word " : "longer ");
        s->decode_tok_s = 95 + (i * 7 % 11);
        s->n_ctx_used++;
        s->generated_tok++;
        step(p, 0.01);
    }
}

static void a_prefill(play *p)
{
    ebb_stats *s = fake_stats(p->chat);

    s->phase = EBB_PHASE_PREFILL;
    s->prefill_total = 6000;
    for (int i = 0; i < 600; i++) {
        s->prefill_done = (uint32_t)i * 10;
        s->prefill_tok_s = 95 + (i * 7 % 11) / 10.0;
        s->n_ctx_used = 1000 + s->prefill_done;
        s->layer[20 + i % 16] = EBB_LAYER_READING;
        s->layer[20 + (i + 15) % 16] = EBB_LAYER_DISK;
        s->read_bytes += 300 << 20;
        s->disk_bytes_s = 2.8e9 + (i * 13 % 7) * 1e7;
        for (int k = 0; k < 3; k++)
            step(p, 0.1 / 3);
    }
}

static void thousand_keys(play *p)
{
    for (int i = 0; i < 1000; i++)
        key(p, 'a' + i % 20);
}

static void a_slash(play *p)
{
    a_minute_idle(p);
    key(p, '/');
}

/* A command is typed behind the slash, and taken back; the hands rest 0.1 s between letters. */
static void letters_in_the_menu(play *p)
{
    a_slash(p);
    for (int i = 0; i < 20; i++) {
        for (const char *s = "system"; *s; s++, step(p, 0.1))
            key(p, (unsigned char)*s);
        for (int n = 0; n < 6; n++, step(p, 0.1))
            key(p, EBB_KEY_BACKSPACE);
    }
}

static void half_a_word(play *p)
{
    a_slash(p);
    for (const char *s = "se"; *s; s++)
        key(p, (unsigned char)*s);
    step(p, 0.5);
}

static void arrows_in_the_menu(play *p)
{
    a_slash(p);
    for (int i = 0; i < 200; i++)
        key(p, i / 7 % 2 ? EBB_KEY_UP : EBB_KEY_DOWN);
}

/* Opening it costs a frame that a slow line can bear; letters cost what letters cost, and the list follows once when
 * they rest. */
static void the_menu(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        far_end_answers = i >= 2;
        size_t idle = bytes_of(i & 1, a_minute_idle), first = bytes_of(i & 1, a_slash),
            letter = (bytes_of(i & 1, letters_in_the_menu) - first) / 240,
               follow = bytes_of(i & 1, half_a_word) - first,
               arrow = (bytes_of(i & 1, arrows_in_the_menu) - first) / 200;
        print_message("%s: the menu's first frame %zu B, a letter %zu B, what follows it %zu B, an arrow %zu B\n",
                      i & 1 ? "inline" : "full screen", first - idle, letter, follow, arrow);
        assert_true(first - idle <= 1536);
        assert_true(letter <= 64);
        assert_true(follow <= 1024);
        assert_true(arrow <= 64);
    }
    far_end_answers = false;
}

/* As it is with and without announced frames. */
static void budgets(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        far_end_answers = i >= 2;
        size_t answer = bytes_of(i & 1, an_answer) / 60, prefill = bytes_of(i & 1, a_prefill) / 60,
            echo = bytes_of(i & 1, thousand_keys) / 1000;
        print_message("%s%s: answer %zu B/s, prefill %zu B/s, a key %zu B\n", i & 1 ? "inline" : "full screen",
                      i >= 2 ? ", announced" : "", answer, prefill, echo);
        assert_true(answer <= 2048);
        assert_true(prefill <= 300);
        assert_true(echo <= 64);
    }
    far_end_answers = false;
}

/* A line that says it is slow is not given more than it can take. */
static void a_slow_line(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t fast = bytes_of(i, a_fast_answer) / 20, slow;
        line_speed = B9600;
        slow = bytes_of(i, a_fast_answer) / 20;
        line_speed = B0;
        print_message("%s: 100 tok/s are %zu B/s, at 9600 baud %zu B/s\n", i ? "inline" : "full screen", fast, slow);
        assert_true(slow <= 960 + 960 / 8);      /* at the end one frame is still on its way */
        assert_true(slow < fast);
    }
}

/* -- What others write ---------------------------------------------------------------------- */

static void hostile(play *p)
{
    static const char *const texts[] = {
        "\033]52;c;ZXZpbA==\007", "\033[6n", "\033[2J\033[H", "\033P+q544e\033\\", "\x9B" "31m", "\xC2\x9B" "31m",
        "\xC2\x9D" "0;title\x07",
        "\033]0;title\007", "\033[?1049l", "\r\r\b\b\b", "\x0E\x0F\x05", "\033c", "\033#8", "\x7F\x18\x1A",
        "\xE2\x80\xAE" "evil", "[a](https://a.example/\033]0;t\033\\)", "[b](https://b.example/\xC2\x9C)",
        "[c](https://c.example/ok) [d](javascript:d) [e](file:///e) <https://f.example/>",
    };
    ebb_buf blns = { 0 };
    ebb_error err;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fake_text(p->chat, texts[i]);
        fake_text(p->chat, "\n\n");
        step(p, 0.1);
        fake_notice(p->chat, texts[i]);
        ebb_app_input(&p->app, &(ebb_input){ .kind = EBB_INPUT_PASTE, .text = texts[i], .n = strlen(texts[i]) });
        step(p, 0.1);
    }
    if (ebb_test_shared() && ebb_file_slurp("../shared/data/unicode/blns.txt", 1 << 20, &blns, &err) == EBB_OK)
        for (size_t at = 0; at < blns.len; at += 100) {
            fake_text_n(p->chat, blns.data + at, blns.len - at < 100 ? blns.len - at : 100);
            step(p, 0.1);
        }
    fake_done(p->chat, EBB_FINISH_STOP);
    for (int i = 0; i < 40; i++) {
        key(p, EBB_KEY_PGUP);
        step(p, 0.1);
    }
}

/* The window's title: one line, nothing in it that would begin or end anything. */
static size_t title_length(const char *s, size_t n)
{
    static const char begin[] = "\033]2;";
    size_t at = sizeof begin - 1;

    if (n <= at || memcmp(s, begin, at) != 0)
        return 0;
    while (at < n && (unsigned char)s[at] >= ' ' && s[at] != 0x7F && s[at] != ';')
        at++;
    return at < n && s[at] == '\a' ? at + 1 : 0;
}

/* An address behind cells, or its end. */
static size_t link_length(const char *s, size_t n)
{
    static const char off[] = "\033]8;;\033\\", on[] = "\033]8;id=";
    size_t at = sizeof on - 1, from;

    if (n >= sizeof off - 1 && memcmp(s, off, sizeof off - 1) == 0)
        return sizeof off - 1;
    if (n <= at || memcmp(s, on, at) != 0)
        return 0;
    while (at < n && s[at] != ';')
        at++;
    from = ++at;
    while (at < n && s[at] > ' ' && s[at] < 0x7F)
        at++;
    return at + 1 < n && s[at] == '\033' && s[at + 1] == '\\' && ebb_hyperlink_is_safe(s + from, at - from)
           ? at + 2 : 0;
}

/* Length of a sequence that a screen may send: CSI with plain parameters and a known end, a few others. */
static size_t allowed(const char *s, size_t n)
{
    static const char *const others[] = { "\033(B", "\033)0", "\0337", "\0338", "\033=", "\033>", "\033M" };
    static const char *const own[] = { "\033]11;?\033\\", "\033[?2026$p", "\033[?u", "\033[>q", "\033[c", "\033[>5u",
                                       "\033[<u" };
    size_t at = 2;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (n >= strlen(others[i]) && memcmp(s, others[i], strlen(others[i])) == 0)
            return strlen(others[i]);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (n >= strlen(own[i]) && memcmp(s, own[i], strlen(own[i])) == 0)
            return strlen(own[i]);
    if (title_length(s, n) > 0)
        return title_length(s, n);
    if (link_length(s, n) > 0)
        return link_length(s, n);
    if (n < 3 || s[1] != '[')
        return 0;
    if (s[at] == '?')                            /* modes: only our own, with no more than their numbers */
        for (size_t end = at; end < n && end < at + 12; end++)
            if (s[end] == 'h' || s[end] == 'l') {
                size_t len = end - at - 1;
                static const char *const modes[] = { "1", "7", "12", "25", "12;25", "1049", "2004", "2026" };
                for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
                    if (strlen(modes[i]) == len && memcmp(s + at + 1, modes[i], len) == 0)
                        return end + 1;
                return 0;
            }
    while (at < n && (s[at] == ';' || (s[at] >= '0' && s[at] <= '9')))
        at++;
    return at < n && strchr("ABCDEFGHJKLMPSTXZbdhlmrt@", s[at]) ? at + 1 : 0;
}

static void assert_clean(const ebb_buf *out, bool is_utf8)
{
    for (size_t at = 0, used; at < out->len; at += used) {
        unsigned char c = (unsigned char)out->data[at];
        uint32_t cp = 0;
        used = 1;
        if (c == 0x1B)
            used = allowed(out->data + at, out->len - at);
        else if (c >= 0x80)
            used = is_utf8 ? ebb_utf8_decode(out->data + at, out->len - at, &cp) : 0;
        if (used == 0 || (c < 0x20 && c != 0x1B && !strchr("\r\n\b\t", c)) || c == 0x7F || (cp >= 0x80 && cp < 0xA0) ||
            cp == 0x202E)
            fail_msg("byte %zu of what was sent: %02x %02x %02x %02x", at, c, out->data[at + 1], out->data[at + 2],
                     out->data[at + 3]);
    }
}

static void nothing_raw(void **state)
{
    ebb_buf out = { 0 };

    (void)state;
    for (int i = 0; i < 8; i++) {
        far_end_answers = i & 4;
        ebb_buf_clear(&out);
        capture(i & 1, i & 2 ? "C" : "C.UTF-8", hostile, &out);
        assert_clean(&out, !(i & 2));
        assert_null(memmem(out.data, out.len, "\033[6n", 4));
    }
    far_end_answers = false;
    ebb_buf_fini(&out);
}

static void some_links(play *p)
{
    fake_text(p->chat, "See [the page](https://a.example/page) and <mailto:b@b.example>, [not](javascript:c).\n\n");
    step(p, 0.1);
    fake_done(p->chat, EBB_FINISH_STOP);
    for (int i = 0; i < 3; i++)
        step(p, 1);
}

static size_t count(const ebb_buf *out, const char *what)
{
    size_t n = 0;

    for (const char *at = out->data; (at = memmem(at, out->len - (size_t)(at - out->data), what, strlen(what))); at++)
        n++;
    return n;
}

/* Addresses are told where the terminal says that it follows them, once for a row that stays, and switched off. */
static void links(void **state)
{
    ebb_buf out = { 0 };

    (void)state;
    for (int i = 0; i < 4; i++) {
        far_end_answers = i & 2;
        ebb_buf_clear(&out);
        capture(i & 1, "C.UTF-8", some_links, &out);
        assert_clean(&out, true);
        assert_int_equal(count(&out, ";https://a.example/page\033\\") > 0, far_end_answers);
        assert_int_equal(count(&out, ";mailto:b@b.example\033\\") > 0, far_end_answers);
        assert_true(count(&out, ";https://a.example/page\033\\") <= 3);         /* text and address: two looks */
        assert_int_equal(count(&out, "javascript:c\033"), 0);
        assert_true(count(&out, "\033]8;;\033\\") >= (far_end_answers ? 1 : 0));
        assert_non_null(memmem(out.data, out.len, "(https://a.example/page)", 24));      /* and it can be read */
    }
    far_end_answers = false;
    ebb_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_is_silent),
        cmocka_unit_test(budgets), cmocka_unit_test(the_menu),
        cmocka_unit_test(a_slow_line),
        cmocka_unit_test(nothing_raw), cmocka_unit_test(links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
