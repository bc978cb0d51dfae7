#include "ebb_test.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "app/greeting.h"
#include "edit/attach.h"
#include "os/file.h"
#include "transcript/transcript_impl.h"
#include "tree/attachment.h"
#include "tree/thought.h"
#include "tui/screen.h"

static void open_ready(screen *s, int rows, int cols)
{
    screen_open(s, rows, cols, "");
    fake_ready(s->chat);
    *fake_stats(s->chat) = (ebb_stats){ .phase = EBB_PHASE_IDLE, .n_ctx = 1000, .n_ctx_used = 610, .n_layers = 8,
        .n_resident = 6, .prefill_tok_s = 40, .cpu = "avx2", .n_threads = 2, .kv_type = "f16" };
    screen_step(s, 1);
}

static size_t count_face(screen *s, ebb_face face, int rows, int cols)
{
    size_t n = 0;

    screen_text(s);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            n += ebb_term_mem_face(s->term, r, c) == face;
    return n;
}

/* -- Thoughts --------------------------------------------------------------------------------- */

static void thoughts_are_found(void **state)
{
    static const struct { const char *text, *thought, *body; bool is_open; } cases[] = {
        { "<think>\none two\n</think>\n\nHi", "one two\n", "Hi", false },
        { "<think>one", "one", "", true },
        { "<|channel>thought\nhm<channel|>Yes", "hm", "Yes", false },
        { "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes", "hm",
          "Yes", false },
        { "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>so<|end|>"
          "<|start|>assistant<|channel|>final<|message|>Yes",
          "hm<|end|><|start|>assistant<|channel|>commentary<|message|>so", "Yes", false },
        { "<|channel|>analysis<|message|>hm", "hm", "", true },
        { "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>fin", "hm", "", false },
        { "<|channel|>final<|message|>Yes", "", "Yes", false },
        { "<|channel|> begins one, <|message|> its text", "", "<|channel|> begins one, <|message|> its text", false },
        { "opened before</think>\nHi", "opened before", "Hi", false },
        { "<think>\n\n</think>\n\nHi", "", "Hi", false },
        { "plain", "", "plain", false },
        { "", "", "", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *s = cases[i].text;
        ebb_thought t = ebb_thought_find(s, strlen(s), EBB_THOUGHT_UNSURE, true);
        assert_int_equal(t.end - t.start, strlen(cases[i].thought));
        assert_memory_equal(s + t.start, cases[i].thought, t.end - t.start);
        assert_string_equal(s + t.body, cases[i].body);
        assert_int_equal(t.is_open, cases[i].is_open);
    }
    assert_int_equal(ebb_thought_words(" a bc\n\nd ", 9), 3);
}

static void thoughts_are_folded(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    screen_keys(&s, "Why?\r");
    fake_text(s.chat, "<think>\nLet me see");
    screen_step(&s, 0.1);
    assert_has(&s, "thinking, 3 words (Ctrl-O shows it)");
    assert_lacks(&s, "Let me see");
    screen_answer(&s, " now.\n</think>\n\nBecause.");
    assert_has(&s, "> Why?\n\nthought, 4 words (Ctrl-O shows it)\n\nBecause.\n212 tok");
    screen_keys(&s, "\x0F");
    assert_has(&s, "thought, 4 words (Ctrl-O folds)\n  Let me see now.\n");
    assert_has(&s, "\nBecause.\n");
    screen_keys(&s, "\x0F");
    assert_lacks(&s, "Let me see");
    screen_close(&s);
}

/* An answer that speaks of the mark is no thought; what is open is one until the model says that this was all. */
static void thoughts_spoken_of(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    screen_keys(&s, "How?\r");
    screen_answer(&s, "Write the tag </think> on a line of its own.");
    assert_has(&s, "> How?\n\nWrite the tag </think> on a line of its own.\n");
    screen_keys(&s, "And before?\r");
    fake_text(s.chat, "<think>\nis");
    screen_step(&s, 0.1);
    assert_has(&s, "thinking, 1 words (Ctrl-O shows it)");
    screen_answer(&s, " what begins it.");
    assert_has(&s, "<think>\nis what begins it.\n");
    assert_lacks(&s, "(Ctrl-O shows it)");
    screen_close(&s);
}

/* -- Finding ------------------------------------------------------------------------------------ */

static void add_pages(screen *s)
{
    for (int i = 0; i < 30; i++) {
        char line[80];
        snprintf(line, sizeof line, "question %d%s", i, i == 3 ? " about Pears" : "");
        fake_add(s->chat, EBB_ROLE_USER, line);
        snprintf(line, sizeof line, "answer %d with **a pear** and more", i);
        fake_add(s->chat, EBB_ROLE_ASSISTANT, i % 10 == 5 ? line : "nothing here");
    }
    ebb_transcript_sync(&s->app.view);
}

static void find_goes(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    add_pages(&s);
    screen_keys(&s, "draft\x13pear");
    assert_has(&s, "find: pear");
    assert_has(&s, "answer 25 with a pear");
    screen_keys(&s, "\r");
    assert_has(&s, "n older, N newer");
    assert_int_equal(count_face(&s, EBB_FACE_SELECTION, 13, 60), 4);
    screen_keys(&s, "n");
    assert_has(&s, "answer 15 with a pear");
    screen_keys(&s, "nn");
    assert_has(&s, "about Pears");
    screen_keys(&s, "n");
    assert_has(&s, "no older match");
    screen_keys(&s, "N");
    assert_has(&s, "answer 5 with a pear");
    assert_int_equal(count_face(&s, EBB_FACE_MATCH, 13, 60) + count_face(&s, EBB_FACE_SELECTION, 13, 60) >= 4, true);
    screen_keys(&s, "\x1b");
    screen_step(&s, 0.1);
    assert_lacks(&s, "find:");
    assert_int_equal(count_face(&s, EBB_FACE_MATCH, 13, 60), 0);
    assert_has(&s, "> draft");                   /* what was being typed is as it was */
    screen_keys(&s, "\x15/find Pears\r");        /* capitals: exactly so */
    assert_has(&s, "about Pears");
    screen_keys(&s, "N");
    assert_has(&s, "no newer match");
    screen_keys(&s, "x");                        /* any other key goes on as usual */
    assert_lacks(&s, "find:");
    assert_has(&s, "> x");
    screen_keys(&s, "\x15/find nowhere\r");
    assert_has(&s, "is not in this conversation");
    screen_close(&s);
}

/* Rows are drawn with what is far from them out of reach: whoever reads there is killed. */
static void rows_read_what_is_near(void **state)
{
    size_t n = 600000, page = 4096;
    char *text = malloc(n + 1), *visible;
    screen s;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', n);
    text[0] = 'Q';
    text[n] = '\0';
    open_ready(&s, 16, 60);
    fake_add(s.chat, EBB_ROLE_ASSISTANT, text);
    ebb_transcript_sync(&s.app.view);
    screen_keys(&s, "\x13Q\r");
    assert_has(&s, "n older, N newer");
    visible = s.app.view.items[s.app.view.hit_item].wrap.visible.data;
    visible += page - (uintptr_t)visible % page + 8 * page;
    assert_int_equal(mprotect(visible, 128 * page, PROT_NONE), 0);
    s.app.frame.is_dirty = true;
    assert_int_equal(count_face(&s, EBB_FACE_SELECTION, 13, 60), 1);
    assert_int_equal(mprotect(visible, 128 * page, PROT_READ | PROT_WRITE), 0);
    screen_close(&s);
    free(text);
}

static void long_patterns_are_refused(void **state)
{
    char line[EBB_PATTERN_MAX + 40], *end = stpcpy(line, "\x15/find ");
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    add_pages(&s);
    memset(end, 'a', EBB_PATTERN_MAX + 1);
    strcpy(end + EBB_PATTERN_MAX + 1, "\r");
    screen_keys(&s, line);
    assert_has(&s, "at most 4096 are looked for");
    line[0] = '\x13';                            /* and none is typed */
    memset(line + 1, 'a', EBB_PATTERN_MAX);
    line[EBB_PATTERN_MAX + 1] = '\0';
    screen_keys(&s, line);
    assert_int_equal(s.app.find.text.len, EBB_PATTERN_MAX);
    screen_keys(&s, "a");
    assert_int_equal(s.app.find.text.len, EBB_PATTERN_MAX);
    screen_close(&s);
}

static void by_message(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 12, 60);
    add_pages(&s);
    screen_text(&s);
    for (int i = 0; i < 10; i++)
        screen_keys(&s, "\x1b[1;3A");
    size_t number = s.app.view.selected, item = s.app.view.top.item;
    assert_int_equal(number, ebb_chat_n_messages(s.chat) - 9);
    assert_int_equal(s.app.view.top.row, 0);
    assert_int_equal(s.app.view.items[item].index + 1, number);
    screen_keys(&s, "\x1b[1;3A");
    assert_int_equal(s.app.view.top.item, item - 1);
    assert_int_equal(s.app.view.selected, number - 1);
    screen_keys(&s, "\x1b[1;3B");
    assert_int_equal(s.app.view.top.item, item);
    for (int i = 0; i < 10; i++)
        screen_keys(&s, "\x1b[1;3B");
    assert_true(s.app.view.is_bottom);
    screen_close(&s);
}

/* Bytes of all items that have rows; *n: how many have. */
static size_t bytes_of_rows(const ebb_transcript *t, size_t *n)
{
    size_t bytes = 0;

    *n = 0;
    for (size_t i = 0; i < t->n_items; i++) {
        *n += t->items[i].wrap.n_rows > 0;
        bytes += ebb_item_bytes(&t->items[i]);
    }
    return bytes;
}

/* Large items out of sight give up their rows, but neither those in sight nor the last ones, whichever way they are
 * looked at. */
static void rows_are_evicted(void **state)
{
    enum { LINES = 1 << 19, ANSWERS = 9 };
    char *text = malloc(2 * LINES + 1);
    screen s;
    size_t n, one;

    (void)state;
    for (size_t i = 0; i < LINES; i++)
        memcpy(text + 2 * i, "x\n", 3);
    open_ready(&s, 12, 60);
    for (int i = 0; i < ANSWERS; i++)
        fake_add(s.chat, EBB_ROLE_ASSISTANT, text);
    ebb_transcript_sync(&s.app.view);
    screen_keys(&s, "\x1b[1;3A");
    one = bytes_of_rows(&s.app.view, &n);
    assert_int_equal(n, 1);
    for (int i = 0; i < ANSWERS; i++) {
        screen_keys(&s, "\x1b[1;3A");
        assert_true(bytes_of_rows(&s.app.view, &n) <= (64 << 20) + 3 * one);
        assert_true(s.app.view.items[s.app.view.top.item].wrap.n_rows > 0);
        assert_true(s.app.view.items[s.app.view.n_items - 1].wrap.n_rows > 0);
    }
    assert_true(n > 3 && n < ANSWERS);
    screen_close(&s);
    free(text);
}

/* Its number shows, and a letter does something with it; any other key is typed. */
static void selected(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 20, 80);
    fake_add(s.chat, EBB_ROLE_USER, "What is one?");
    fake_add(s.chat, EBB_ROLE_ASSISTANT, "A number.");
    ebb_transcript_sync(&s.app.view);
    screen_keys(&s, "\x1b[1;3A");
    assert_int_equal(s.app.view.selected, 2);
    assert_has(&s, "A number.                                                                     2\n");
    assert_has(&s, "message 2: r again, b branch, p pin, c copy");
    screen_keys(&s, "c");
    assert_non_null(strstr(ebb_term_mem_sent(s.term)->data, "\033]52;c;QSBudW1iZXIu"));
    assert_int_equal(s.app.view.selected, 0);
    screen_keys(&s, "\x1b[1;3A\x1b[1;3A");
    assert_has(&s, "message 1: e edit, b branch");
    screen_keys(&s, "p");
    assert_true(ebb_chat_message(s.chat, 0)->pinned);
    screen_keys(&s, "\x1b[1;3A\x1b[1;3Ae");
    assert_has(&s, "> What is one?");
    assert_int_equal(s.app.frontend.editing, 1);
    assert_has(&s, "editing message 1: Enter sends it as a new branch, Ctrl-C leaves it");
    screen_keys(&s, " Is it a number, and if so, which one of all numbers is it?");
    screen_step(&s, 2);
    assert_has(&s, "editing message 1: +");          /* what it costs */
    screen_keys(&s, "\x03");
    assert_lacks(&s, "editing message");
    screen_keys(&s, "\x1b[1;3A\x1b[1;3Ae\x15\x1b[1;3Ahello");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "hello");
    assert_int_equal(s.app.view.selected, 0);
    screen_close(&s);
}

/* An answer of 41 s: rung for where every end is, not where long ones are. */
static void bell(void **state)
{
    static const struct { unsigned when; size_t n; } rows[] = { { EBB_BELL_LONG, 0 }, { EBB_BELL_ALWAYS, 1 },
                                                                { EBB_BELL_NEVER, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "", .bell = rows[i].when };
        screen s;
        open_ready(&s, 20, 80);
        s.app.frontend.opts = &opts;
        screen_keys(&s, "hello\r");
        screen_answer(&s, "hi");
        screen_step(&s, 1);
        assert_int_equal(ebb_term_mem_sent(s.term)->len, rows[i].n);
        screen_close(&s);
    }
}

/* The desktop is told with the answer's first words, filtered, where the terminal is of a kind that obeys. */
static void notification(void **state)
{
    static const struct { const char *term_name; bool in_tmux; const char *sent; } rows[] = {
        { "xterm-256color", false, "\a\033]9;ebb: It is done.\a" },
        { "foot", false, "\a\033]777;notify;ebb;It is done.\a" },
        { "tmux-256color", true, "\a\033Ptmux;\033\033]9;ebb: It is done.\a\033\\" }, { "linux", false, "\a" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "", .bell = EBB_BELL_ALWAYS, .notifies = true,
                              .term_name = rows[i].term_name, .in_tmux = rows[i].in_tmux };
        screen s;
        open_ready(&s, 20, 80);
        s.app.frontend.opts = &opts;
        screen_keys(&s, "hello\r");
        screen_answer(&s, "It is done.");
        screen_step(&s, 1);
        assert_string_equal(ebb_buf_text(ebb_term_mem_sent(s.term)), rows[i].sent);
        screen_close(&s);
    }
}

static void tell_background(screen *s, ebb_background background)
{
    s->term->answers.background = background;
    ebb_app_input(&s->app, &(ebb_input){ .kind = EBB_INPUT_REPLY });
}

/* The terminal's answer chooses the theme, also late, but not over the user. */
static void background(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 20, 80);
    assert_string_equal(s.app.frontend.theme, "dark");
    tell_background(&s, EBB_BACKGROUND_LIGHT);
    assert_string_equal(s.app.frontend.theme, "light");
    tell_background(&s, EBB_BACKGROUND_UNKNOWN);
    assert_string_equal(s.app.frontend.theme, "light");
    screen_keys(&s, "/theme dusk\r");
    tell_background(&s, EBB_BACKGROUND_LIGHT);
    tell_background(&s, EBB_BACKGROUND_DARK);
    assert_string_equal(s.app.frontend.theme, "dusk");
    screen_close(&s);
}

/* It is shown before it runs; its output stands folded before the question, and goes with it. */
static void a_command(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 30, 100);
    screen_keys(&s, "!printf 'one\\n\\033[31mtwo'; exit 3\r");
    assert_has(&s, "Enter again runs");
    assert_false(ebb_command_output_is_running(&s.app.output));
    screen_keys(&s, "\r");
    for (int i = 0; i < 3000 && ebb_command_output_is_running(&s.app.output); i++) {
        usleep(10000);
        screen_step(&s, 0.01);
    }
    assert_has(&s, "the output is attached");
    screen_keys(&s, "What is wrong?\r");
    assert_true(ebb_chat_n_messages(s.chat) >= 1);
    const ebb_message *m = ebb_chat_message(s.chat, 0);
    assert_non_null(strstr(m->text, "$ printf "));
    assert_non_null(strstr(m->text, "two\n[exit status 3]\n```\n\nWhat is wrong?"));
    assert_null(strchr(m->text, '\033'));
    screen_keys(&s, " !not a command\r");       /* with a blank it is text */
    assert_false(ebb_command_output_is_running(&s.app.output));
    screen_close(&s);
}

/* -- Views ------------------------------------------------------------------------------------------ */

static void raw_and_bare(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 60);
    fake_add(s.chat, EBB_ROLE_USER, "Hi");
    fake_add(s.chat, EBB_ROLE_ASSISTANT, "a **bold** word \033[31m");
    ebb_transcript_sync(&s.app.view);
    assert_has(&s, "\na bold word");
    screen_keys(&s, "/raw\r");
    assert_has(&s, "\na **bold** word");
    screen_keys(&s, "/raw\r");
    assert_has(&s, "\na bold word");
    screen_keys(&s, "/bare\r");
    assert_non_null(strstr(ebb_term_mem_sent(s.term)->data, "Hi\n\na **bold** word \u241B[31m\n\n-- Enter"));
    screen_keys(&s, "x");
    assert_true(ebb_app_is_lent(&s.app));
    screen_keys(&s, "\r");
    assert_has(&s, "\na bold word");
    screen_close(&s);
}

static void layouts(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 20, 80);
    assert_has(&s, "layers 6/8");
    screen_keys(&s, "\x1bOQ");                   /* F2 */
    assert_has(&s, "status: panel");
    assert_has(&s, "| Fake 8B");
    screen_keys(&s, "\x1bOQ");
    assert_lacks(&s, "| Fake 8B");
    assert_has(&s, "layers 6/8");
    screen_keys(&s, "\x1bOQ");
    assert_lacks(&s, "layers 6/8 #");
    screen_keys(&s, "\x1bOQ ");
    assert_lacks(&s, "Fake 8B Q4_K_M |");
    screen_keys(&s, "\x1bOQ");
    assert_has(&s, "status: automatic (--status auto)");
    screen_close(&s);
}

/* --status: F2 goes on from there. */
static void layout_of_the_start(void **state)
{
    static const ebb_layout chosen[] = { EBB_LAYOUT_WIDE, EBB_LAYOUT_LINE, EBB_LAYOUT_OFF };

    (void)state;
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        static ebb_tui_opts opts;
        screen s = { .term = ebb_term_mem(20, 80), .chat = fake_chat_new() };

        opts = (ebb_tui_opts){ .config_dir = "/nonexistent", .state_dir = "", .layout = chosen[i] };
        ebb_app_init(&s.app, s.term, s.chat, &opts);
        fake_ready(s.chat);
        *fake_stats(s.chat) = (ebb_stats){ .n_ctx = 4096, .n_layers = 8, .n_resident = 6 };
        screen_step(&s, 1);
        (chosen[i] == EBB_LAYOUT_WIDE ? assert_has : assert_lacks)(&s, "| Fake 8B");
        (chosen[i] == EBB_LAYOUT_LINE ? assert_has : assert_lacks)(&s, "ctx 0/4,096");
        assert_lacks(&s, "layers 6/8 ");
        screen_keys(&s, "\x1bOQ");
        assert_has(&s, chosen[i] == EBB_LAYOUT_WIDE   ? "status: two lines (--status two)"
                       : chosen[i] == EBB_LAYOUT_LINE ? "status: hidden (--status hidden)"
                                                      : "status: automatic (--status auto)");
        screen_close(&s);
    }
}

/* Enter where nothing was found sends nothing, and an n after it is no message. */
static void finds_nothing(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 20, 80);
    fake_add(s.chat, EBB_ROLE_USER, "What is one?");
    ebb_transcript_sync(&s.app.view);
    screen_keys(&s, "\x13zebra\r");
    assert_has(&s, "not found; Esc leaves the search");
    screen_keys(&s, "n\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 1);
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_close(&s);
}

static void greets(void **state)
{
    ebb_buf out = { 0 };
    ebb_machine small = { .available_bytes = 6500000000u, .n_cpus = 2 },
        tiny = { .available_bytes = 500 << 20, .n_cpus = 1 },
                large = { .available_bytes = 128000000000u, .n_cpus = 2 };
    ebb_model_info guide = { .path = "guide", .name = "ebb guide" },
        own = { .path = "/m/own.gguf", .name = "own", .n_layers = 2, .weight_bytes = 1000 };
    screen s;

    (void)state;
    setenv("HOME", "/home/u", 1);
    unsetenv("XDG_DATA_HOME");
    ebb_greeting_machine(&out, &small);
    assert_string_equal(out.data, "6.5 GB free, 2 cores: LFM2.5-8B-A1B (mixture: 1.5B of 8.3B weights per token; "
                                  "thinks first) fits with 16k of context; larger ones are read from disk as they go");
    small.memory_bytes_s = 22e9;
    ebb_buf_clear(&out);
    ebb_greeting_machine(&out, &small);
    assert_non_null(strstr(out.data, "16k of context, about 23 tok/s;"));
    ebb_buf_clear(&out);
    ebb_greeting_machine(&out, &large);          /* a mixture of 117B takes no more for a token than a dense 5B */
    assert_non_null(strstr(out.data, "128 GB free, 2 cores: gpt-oss-120b ("));
    ebb_buf_clear(&out);
    ebb_greeting_machine(&out, &tiny);
    assert_non_null(strstr(out.data, "1 core: only the smallest"));
    ebb_buf_clear(&out);
    ebb_greeting_text(&out, &small, &guide, true, true, false);
    assert_non_null(strstr(out.data, "built-in guide"));
    assert_non_null(strstr(out.data, "To get LFM2.5-8B-A1B (5.2 GB), type:\n  /pull "
                                     "LiquidAI/LFM2.5-8B-A1B-GGUF:Q4_K_M\n"));
    assert_non_null(strstr(out.data, "/model FILE"));
    ebb_buf_clear(&out);
    ebb_greeting_text(&out, &small, &guide, false, true, false);
    assert_non_null(strstr(out.data, "built-in guide"));
    assert_non_null(strstr(out.data, "ebb pull"));       /* as long as there is nothing else */
    assert_null(strstr(out.data, "tok/s"));
    ebb_buf_clear(&out);
    ebb_greeting_text(&out, &small, &own, true, true, false);
    assert_non_null(strstr(out.data, "as they go.\nTo get LFM2.5-8B-A1B: /pull LiquidAI/LFM2.5-8B-A1B-GGUF:Q4_K_M\n"
                                     "\nType a"));
    ebb_buf_clear(&out);
    ebb_greeting_text(&out, &small, &own, true, true, true);     /* --private: the chat fetches nothing */
    assert_non_null(strstr(out.data, "To get LFM2.5-8B-A1B: ebb pull LiquidAI/"));
    ebb_buf_clear(&out);
    ebb_greeting_text(&out, &small, &guide, true, true, true);
    assert_non_null(strstr(out.data, "type in another terminal:\n  ebb pull LiquidAI/"));
    assert_null(strstr(out.data, "/pull"));
    ebb_buf_clear(&out);
    ebb_greeting_text(&out, &tiny, &own, true, true, false);
    assert_null(strstr(out.data, "/pull"));
    for (int has_keys = 0; has_keys < 2; has_keys++) {
        ebb_buf_clear(&out);
        ebb_greeting_text(&out, &small, NULL, true, has_keys, false);
        assert_int_equal(strstr(out.data, "F1") != NULL, has_keys);
    }
    ebb_buf_fini(&out);
    assert_true(ebb_greeting_measures(&tiny, &guide) == false);
    small.memory_bytes_s = 0;
    assert_true(ebb_greeting_measures(&small, &guide));
    assert_false(ebb_greeting_measures(&small, NULL));
    /* Where there is no room for all of it, whole lines stay. */
    open_ready(&s, 7, 60);
    assert_has(&s, "read from disk as they go.\n");
    assert_lacks(&s, "Type a question");
    screen_close(&s);
    /* What is said about loading stands below it; what goes wrong, in its place. */
    screen_open(&s, 24, 80, "");
    fake_notice(s.chat, "took one.gguf");
    fake_ready(s.chat);
    screen_step(&s, 1);
    assert_has(&s, "own scrollback.\n\n* took one.gguf\n");
    screen_keys(&s, "/title\r");
    assert_lacks(&s, "This is ebb");
    screen_close(&s);
    screen_open(&s, 24, 80, "");
    fake_fail(s.chat, "no such file");
    screen_step(&s, 1);
    assert_lacks(&s, "This is ebb");
    screen_close(&s);
    open_ready(&s, 16, 80);
    assert_has(&s, "This is ebb");
    screen_keys(&s, "Hello\r");
    assert_lacks(&s, "This is ebb");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    screen_close(&s);
}

/* What the model no longer sees is dim; the note says so, and pins are listed. */
static void left_out(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 24, 80);
    fake_add(s.chat, EBB_ROLE_USER, "First");
    fake_add(s.chat, EBB_ROLE_ASSISTANT, "One.");
    fake_add(s.chat, EBB_ROLE_USER, "Second");
    fake_add(s.chat, EBB_ROLE_ASSISTANT, "Two.");
    screen_keys(&s, "/forget x\r");
    assert_has(&s, "! /forget N: how many of the oldest turns?");
    assert_int_equal(ebb_term_mem_face(s.term, 0, 2), EBB_FACE_USER);
    screen_keys(&s, "/forget\r");
    screen_step(&s, 0.1);
    assert_has(&s, "* The oldest turns are forgotten.");
    assert_int_equal(ebb_term_mem_face(s.term, 0, 2), EBB_FACE_DIM);
    assert_int_equal(ebb_term_mem_face(s.term, 2, 0), EBB_FACE_DIM);
    assert_has(&s, "> Second");
    screen_keys(&s, "/pin list\r");
    assert_has(&s, "nothing is pinned");
    screen_keys(&s, "/pin 3\r/pin list\r");
    assert_has(&s, "3 user: Second");
    screen_close(&s);
}

/* /cut alone: the answer is in the editor, with another slash if it begins with one. */
static void cut_in_the_editor(void **state)
{
    screen s;

    (void)state;
    open_ready(&s, 16, 80);
    screen_keys(&s, "/cut\r");
    assert_has(&s, "! there is no answer to cut");
    fake_add(s.chat, EBB_ROLE_USER, "How?");
    fake_add(s.chat, EBB_ROLE_ASSISTANT, "/undo takes back");
    screen_keys(&s, "/cut\r");
    assert_has(&s, "\n> //undo takes back\n");
    screen_keys(&s, "\x17\r");
    assert_true(ebb_chat_is_busy(s.chat));
    assert_string_equal(ebb_chat_message(s.chat, 1)->text, "/undo takes ");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/cut 1 word\r");
    assert_string_equal(ebb_chat_message(s.chat, 1)->text, "/undo");
    screen_close(&s);
}

/* -- The draft ---------------------------------------------------------------------------------------- */

static void preview(void **state)
{
    static const char words[] = "a draft of some length, which is long enough to be worth a count of its tokens, "
                                "so that one knows before Enter what it will cost to have it read by the model.";
    screen s;

    (void)state;
    open_ready(&s, 16, 80);
    screen_keys(&s, words);
    assert_lacks(&s, "tokens, about");
    assert_true(ebb_app_timeout_ms(&s.app, s.now) >= 0);
    screen_step(&s, 0.5);
    assert_has(&s, "+39 tokens, about 1.0 s, context 61 -> 64 %");
    screen_keys(&s, "\x15");
    screen_step(&s, 2);
    assert_lacks(&s, "tokens, about");
    screen_keys(&s, "short");
    screen_step(&s, 2);
    assert_lacks(&s, "tokens");
    screen_keys(&s, "\x15/undo");
    screen_step(&s, 2);
    assert_lacks(&s, "to compute");              /* there is nothing to undo */
    screen_keys(&s, "\x15/load trip");
    screen_step(&s, 2);
    assert_has(&s, "4,000 tokens to compute, about 1 min 40 s, more than the context holds (1,000)");
    screen_keys(&s, "\x15");
    fake_add(s.chat, EBB_ROLE_USER, "Where to?");
    fake_add(s.chat, EBB_ROLE_ASSISTANT, "To the sea.");
    screen_keys(&s, "/undo");
    screen_step(&s, 2);
    assert_has(&s, "nothing to compute, context 61 -> 30 %");
    screen_close(&s);
}

static void files_go_along(void **state)
{
    char dir[] = "/tmp/ebb-attach-XXXXXX", path[64], other[64], line[200];
    ebb_attached files;
    ebb_buf out = { 0 };
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/note.md", dir);
    assert_int_equal(ebb_file_replace(path, "a ``` fence\n", 12, &err), EBB_OK);
    snprintf(line, sizeof line, "see @%s and @nobody", path);
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, &files, &err), EBB_OK);
    assert_int_equal(files.n_files, 1);
    assert_string_equal(files.missing, "");      /* a word without an ending is only a word */
    assert_non_null(strstr(out.data, "note.md:\n````md\na ``` fence\n````\n\nsee @"));
    assert_int_equal(ebb_file_replace(path, "\0x", 2, &err), EBB_OK);
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, &files, &err), EBB_FORMAT);
    assert_int_equal(ebb_file_replace(path, "na\xEFve", 5, &err), EBB_OK);        /* Latin-1 */
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, &files, &err), EBB_FORMAT);
    assert_int_equal(ebb_file_replace(path, "text", 4, &err), EBB_OK);

    open_ready(&s, 16, 80);
    snprintf(line, sizeof line, "read @%s/no\t", dir);
    screen_keys(&s, line);
    snprintf(line, sizeof line, "read @%s \n", path);
    assert_has(&s, "note.md: 4 B");
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_non_null(strstr(ebb_chat_message(s.chat, 0)->text, "note.md:\n```md\ntext\n```"));
    assert_has(&s, "/note.md - 5 B (Ctrl-O shows it)\n> read @");       /* folded, the question below it */
    assert_lacks(&s, "```md");
    screen_keys(&s, "\x0F");
    assert_has(&s, "```md");
    screen_close(&s);

    snprintf(other, sizeof other, "%s/noble.md", dir);
    assert_int_equal(ebb_file_replace(other, "b", 1, &err), EBB_OK);
    open_ready(&s, 16, 99);
    snprintf(line, sizeof line, "read @%s/no", dir);
    screen_keys(&s, line);
    assert_has(&s, other);
    assert_has(&s, path);
    screen_close(&s);
    unlink(other);
    unlink(path);
    rmdir(dir);
    ebb_buf_fini(&out);
}

static void put_file(const char *dir, const char *name, const char *bytes, size_t n)
{
    char path[100];
    ebb_error err;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(ebb_file_replace(path, bytes, n, &err), EBB_OK);
}

/* Folders and patterns; a name that names nothing is asked about once; what stands in front of a message is found
 * again. */
static void many_files_go_along(void **state)
{
    char dir[] = "/tmp/ebb-attach-XXXXXX", line[200], path[100];
    static const char *const names[] = { "a.c", "b.c", "c.h", "d.bin" };
    ebb_attached files;
    ebb_attachment file;
    ebb_buf out = { 0 };
    ebb_error err;
    size_t at = 0, end, n = 0;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    put_file(dir, "a.c", "int a;\n```\n", 11);
    put_file(dir, "b.c", "int b;", 6);
    put_file(dir, "c.h", "", 0);
    put_file(dir, "d.bin", "\0\1", 2);
    snprintf(line, sizeof line, "compare @%s/*.c, please", dir);
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, &files, &err), EBB_OK);
    assert_int_equal(files.n_files, 2);
    for (; (end = ebb_attachment_next(out.data, out.len, at, &file)) > 0; at = end, n++)
        assert_memory_equal(out.data + file.text, n == 0 ? "int a;" : "int b;", 6);
    assert_int_equal(n, 2);
    assert_memory_equal(out.data + at, "compare @", 9);
    ebb_buf_clear(&out);
    snprintf(line, sizeof line, "what is in @%s/?", dir);
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, &files, &err), EBB_OK);
    assert_int_equal(files.n_files, 3);
    assert_int_equal(files.n_left_out, 1);       /* no text */

    open_ready(&s, 16, 80);
    screen_keys(&s, "see @nofile.txt\r");
    assert_has(&s, "no file nofile.txt; Enter again sends it as text");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    screen_answer(&s, "ok");
    snprintf(line, sizeof line, "see @%s/*.c\r", dir);
    fake_refuse(s.chat, "that is too much");
    screen_keys(&s, line);
    assert_has(&s, "! that is too much");
    assert_lacks(&s, "attached");
    screen_keys(&s, "\r");
    assert_has(&s, "2 files attached");
    snprintf(line, sizeof line, "\x15see @%s/d.bin \r", dir);
    screen_keys(&s, line);
    assert_has(&s, "d.bin is not a text file");  /* longer than the line of hints: not cut off there */
    assert_has(&s, "into text");
    screen_close(&s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    ebb_buf_fini(&out);
}

static void wait_filter(screen *s)
{
    for (int i = 0; i < 3000 && ebb_documents_is_running(&s->app.documents); i++) {
        usleep(10000);
        screen_step(s, 0.01);
    }
    assert_false(ebb_documents_is_running(&s->app.documents));
}

/* A document is read by its filter while the screen goes on; then the message is sent, unless Esc was first. */
static void a_document(void **state)
{
    static const ebb_filter_choice own[] = { { ".up", 3, "tr a-z A-Z" }, { ".slow", 5, "sleep 1000" } };
    char dir[] = "/tmp/ebb-attach-XXXXXX", line[200];
    ebb_filters filters;
    screen s;

    (void)state;
    ebb_filters_init(&filters, own, 2);
    assert_non_null(mkdtemp(dir));
    put_file(dir, "a.up", "text", 4);
    put_file(dir, "b.slow", "text", 4);
    open_ready(&s, 16, 80);
    s.app.documents.filters = &filters;
    snprintf(line, sizeof line, "read @%s/b.slow \r", dir);
    screen_keys(&s, line);
    assert_has(&s, "reading b.slow with sleep; Esc stops");
    screen_keys(&s, "\x1b");
    screen_step(&s, 1);
    wait_filter(&s);
    assert_has(&s, "> read @");                  /* the line is as it was, and nothing was sent */
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    snprintf(line, sizeof line, "\x15read @%s/a.up \r", dir);
    screen_keys(&s, line);
    wait_filter(&s);
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_non_null(strstr(ebb_chat_message(s.chat, 0)->text, "a.up:\n```up\nTEXT\n```"));
    /* Typed meanwhile, and in one step, or a quick filter has ended before: it is not sent behind the user's back. */
    snprintf(line, sizeof line, "again @%s/a.up \rmore", dir);
    screen_keys(&s, line);
    wait_filter(&s);
    assert_has(&s, "the document has been read; Enter sends it");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    screen_close(&s);
    snprintf(line, sizeof line, "%s/a.up", dir);
    unlink(line);
    snprintf(line, sizeof line, "%s/b.slow", dir);
    unlink(line);
    rmdir(dir);
}

static void another_editor(void **state)
{
    static const char *const failing[] = { "false", "/nonexistent/editor", "a ( that is no shell's" };
    ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "", .editor = "printf ' more\\n\\n' >>" };
    screen s;

    (void)state;
    open_ready(&s, 16, 80);
    s.app.frontend.opts = &opts;
    screen_keys(&s, "draft\x07");
    screen_wait_editor(&s);
    assert_has(&s, "> draft more\n");
    screen_keys(&s, "\x18\x05");                 /* Ctrl-X Ctrl-E */
    screen_wait_editor(&s);
    assert_has(&s, "> draft more more\n");
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        opts.editor = failing[i];
        screen_keys(&s, "\x07");
        screen_wait_editor(&s);
        assert_has(&s, "the editor failed");
        assert_has(&s, "> draft more more\n");
        screen_keys(&s, "\x1B");
    }
    opts.editor = "f() { echo saved > \"$1\"; kill -9 $$; }; f";
    screen_keys(&s, "\x07");
    screen_wait_editor(&s);
    assert_has(&s, "ended by signal 9");
    assert_has(&s, "> saved\n");
    screen_close(&s);
}

/* The editor waits for us; what waits for the answer is sent, and where that fails, nothing is lost. */
static void the_chat_goes_on_behind_an_editor(void **state)
{
    static const char reason[] = "not that one";
    char dir[] = "/tmp/ebb-test-XXXXXX", command[200], mark[64];
    ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "", .editor = command };
    screen s;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(mark, sizeof mark, "%s/done", dir);
    snprintf(command, sizeof command, "until [ -e %s ]; do sleep 0.01; done; printf outside >>", mark);
    open_ready(&s, 16, 80);
    s.app.frontend.opts = &opts;
    screen_keys(&s, "One\rTwo\rThree\r\x07");
    assert_true(ebb_app_is_lent(&s.app));
    screen_answer(&s, "An answer.");
    screen_step(&s, 1);
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "Two");
    assert_true(ebb_chat_is_busy(s.chat));
    fake_refuse(s.chat, reason);
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 1);
    assert_false(ebb_chat_is_busy(s.chat));
    assert_true(ebb_app_is_lent(&s.app));
    assert_null(strstr(ebb_term_mem_screen(s.term), reason));    /* nothing was drawn */
    fd = open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    screen_wait_editor(&s);
    assert_has(&s, reason);
    assert_has(&s, "> outside\n  Three\n");
    screen_close(&s);
    unlink(mark);
    rmdir(dir);
}

/* Cells a second that a minute of Markdown at ten tokens a second changes on 120 columns. */
static size_t cells_a_second(bool is_raw)
{
    static const char *const tokens[] = { "- **item** ", "of a list ", "with `code` ", "and words ", "\n", "\n\nText a",
        "nd more ", "of it, ", "\n```c\n", "int x = 1;\n", "return x;\n", "```\n", "## Head\n", "| a | b |\n",
        "|---|---|\n", "| 1 | 2 |\n", "\nthe end ", "of this. " };
    screen s;
    size_t before, n;

    open_ready(&s, 40, 120);
    ebb_transcript_set_raw(&s.app.view, is_raw);
    screen_keys(&s, "go\r");
    screen_text(&s);
    before = ebb_term_mem_changes(s.term);
    for (size_t i = 0; i < 600; i++) {
        fake_text(s.chat, tokens[i % (sizeof tokens / sizeof *tokens)]);
        screen_step(&s, 0.1);
    }
    n = (ebb_term_mem_changes(s.term) - before) / 60;
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 1);
    screen_step(&s, 5);
    before = ebb_term_mem_changes(s.term);
    for (int i = 0; i < 100; i++)
        screen_step(&s, 1);
    assert_int_equal(ebb_term_mem_changes(s.term), before);
    screen_close(&s);
    return n;
}

/* What closes is drawn a second time, and no more: set in type costs little beyond the source, most of
 * which is scrolling; and nothing costs nothing. */
static void the_link_stays_calm(void **state)
{
    size_t raw = cells_a_second(true), set = cells_a_second(false);

    (void)state;
    print_message("%zu cells a second, %zu as source\n", set, raw);
    assert_true(set < raw + raw / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thoughts_are_found),
        cmocka_unit_test(thoughts_are_folded), cmocka_unit_test(thoughts_spoken_of),
        cmocka_unit_test(find_goes),
        cmocka_unit_test(rows_read_what_is_near),
        cmocka_unit_test(long_patterns_are_refused),
        cmocka_unit_test(by_message), cmocka_unit_test(selected), cmocka_unit_test(rows_are_evicted),
        cmocka_unit_test(finds_nothing),
        cmocka_unit_test(bell), cmocka_unit_test(notification), cmocka_unit_test(background),
        cmocka_unit_test(a_command),
        cmocka_unit_test(raw_and_bare),
        cmocka_unit_test(layouts), cmocka_unit_test(layout_of_the_start),
        cmocka_unit_test(greets),
        cmocka_unit_test(preview),
        cmocka_unit_test(left_out),
        cmocka_unit_test(cut_in_the_editor),
        cmocka_unit_test(files_go_along), cmocka_unit_test(many_files_go_along), cmocka_unit_test(a_document),
        cmocka_unit_test(another_editor),
        cmocka_unit_test(the_chat_goes_on_behind_an_editor),
        cmocka_unit_test(the_link_stays_calm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
