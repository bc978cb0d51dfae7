#include "ebb_test.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/buf.h"
#include "tui.h"
#include "tui/fake_chat.h"

/* The plain front end that reads in[0], and writes to a pipe, with a chat that echoes, or with one that is never
 * ready. */
static pid_t start_reading(const int in[2], bool echoes, bool accessible, int *to, int *out)
{
    static const ebb_chat_opts chat = { 0 };
    ebb_tui_opts opts = { .accessible = accessible, .ascii = true, .config_dir = "/nonexistent", .state_dir = "" };
    int from[2];
    pid_t pid;

    assert_int_equal(pipe(from), 0);
    setenv("TZ", "UTC", 1);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(in[1]);
        close(from[0]);
        fake_echoes = echoes;
        int code = ebb_plain_run(&chat, &opts);
        fflush(NULL);
        _exit(code);
    }
    close(in[0]);
    close(from[1]);
    *to = in[1];
    *out = from[0];
    return pid;
}

static pid_t start(bool echoes, bool accessible, int *to, int *out)
{
    int in[2];

    assert_int_equal(pipe(in), 0);
    return start_reading(in, echoes, accessible, to, out);
}

/* The rest of its output, and its exit status. */
static int read_to_end(pid_t pid, int from, ebb_buf *out)
{
    char bytes[4096];
    ssize_t got;
    int status;

    ebb_buf_clear(out);
    while ((got = read(from, bytes, sizeof bytes)) > 0)
        ebb_buf_add(out, bytes, (size_t)got);
    close(from);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Runs the plain front end on `input` through pipes. */
static int run(const char *input, bool accessible, ebb_buf *out)
{
    int to, from;
    pid_t pid = start(true, accessible, &to, &from);

    assert_int_equal(write(to, input, strlen(input)), strlen(input));
    close(to);
    return read_to_end(pid, from, out);
}

static void expect(const char *input, const char *want)
{
    ebb_buf out = { 0 };

    assert_int_equal(run(input, false, &out), 0);
    assert_string_equal(ebb_buf_text(&out), want);
    ebb_buf_fini(&out);
}

static void lines_in_lines_out(void **state)
{
    ebb_buf out = { 0 };

    (void)state;
    assert_int_equal(run("hello\nagain\n", false, &out), 0);
    assert_string_equal(ebb_buf_text(&out), "Model: You said: hello\nModel: You said: again\n");
    assert_int_equal(run("no line end", false, &out), 0);
    assert_string_equal(ebb_buf_text(&out), "Model: You said: no line end\n");
    assert_int_equal(run("one\\\ntwo\n", false, &out), 0);
    assert_string_equal(ebb_buf_text(&out), "Model: You said: one\ntwo\n");
    assert_int_equal(run("\"\"\"one\ntwo\n\"\"\"\nthree\n", false, &out), 0);
    assert_string_equal(ebb_buf_text(&out), "Model: You said: one\ntwo\nModel: You said: three\n");
    assert_int_equal(run("", false, &out), 0);
    assert_string_equal(ebb_buf_text(&out), "");
    ebb_buf_fini(&out);
}

/* The last message is sent though its last line does not end, or would go on. */
static void ends(void **state)
{
    (void)state;
    expect("\"\"\"one\ntwo\n", "Model: You said: \"\"\"one\ntwo\n");
    expect("one\\\n", "Model: You said: one\n");
    expect("one\\", "Model: You said: one\n");
}

/* A message without end is one line, and the next one is answered: behind the quotes, if there are any. */
static void too_long(void **state)
{
    enum { N = 17 << 20 };
    static const char error[] = "Error: a message of more than 16 MiB, or than there is memory for, is not sent; "
                                "send it in parts\n";
    char *text = malloc(N + 10), want[sizeof error + 40];

    (void)state;
    snprintf(want, sizeof want, "%sModel: You said: x\n", error);
    memset(text, 'a', N);
    memcpy(text + N, "\nx\n", 4);
    expect(text, want);
    memcpy(text, "\"\"\"", 3);
    for (size_t i = 3; i < N; i += 1000)
        text[i] = '\n';
    memcpy(text + N, "\"\"\"\nx\n", 7);
    expect(text, want);
    free(text);
}

static void put_line(int to, const char *begin, size_t n, const char *end)
{
    char *line = malloc(n + 1);

    assert_non_null(line);
    memset(line, 'a', n);
    assert_int_equal(write(to, begin, strlen(begin)), strlen(begin));
    assert_int_equal(write(to, line, n), n);
    assert_int_equal(write(to, end, strlen(end)), strlen(end));
    free(line);
}

/* What it drops behind the 4,095th byte of a line nobody can read. */
static void a_terminal_cuts_lines(void **state)
{
    enum { MOST = 4095 };
    static const char error[] = "Error: the terminal cuts a line at 4,095 bytes, so this one is not sent; give it as a "
                                "file (@NAME), or in lines that end with \\, but for the last\n";
    struct termios modes;
    ebb_buf out = { 0 }, want = { 0 };
    int ends[2], to, from;
    pid_t pid;

    (void)state;
    assert_int_equal(openpty(&ends[1], &ends[0], NULL, NULL, NULL), 0);
    assert_int_equal(tcgetattr(ends[0], &modes), 0);
    modes.c_lflag &= ~(tcflag_t)ECHO;
    assert_int_equal(tcsetattr(ends[0], TCSANOW, &modes), 0);
    pid = start_reading(ends, true, false, &to, &from);
    put_line(to, "", MOST, " the end\n");
    put_line(to, "\"\"\"", MOST, "\"\"\"\n");
    put_line(to, "", 10, "\"\"\"\n");
    put_line(to, "", MOST - 1, "\nx\n\004");
    ebb_buf_addf(&want, "%sNote: the terminal has cut this line at 4,095 bytes, and the message goes on; Ctrl-C drops "
                 "it\n%sModel: You said: ", error, error);
    for (int i = 0; i < MOST - 1; i++)
        ebb_buf_addc(&want, 'a');
    ebb_buf_adds(&want, "\nModel: You said: x\n");
    assert_int_equal(read_to_end(pid, from, &out), 0);
    close(to);
    assert_string_equal(ebb_buf_text(&out), ebb_buf_text(&want));
    ebb_buf_fini(&want);
    ebb_buf_fini(&out);
}

/* While a message waits, nothing is read behind it: the pipe is full, and stays so. */
static void who_sends_waits(void **state)
{
    enum { MOST = 16 << 20, LOOKS = 20 };
    static const char line[] = "hello\n";
    int to, from, n_full = 0;
    pid_t pid = start(false, false, &to, &from);

    (void)state;
    assert_int_equal(fcntl(to, F_SETFL, O_NONBLOCK), 0);
    for (size_t n = 0; n < MOST && n_full < LOOKS;) {
        ssize_t put = write(to, line, sizeof line - 1);
        n += put > 0 ? (size_t)put : 0;
        if (put < 0)
            nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
        n_full = put < 0 ? n_full + 1 : 0;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(to);
    close(from);
    assert_int_equal(n_full, LOOKS);
}

static const char now_another[] = "now process 9 is answering; you see it as it comes, and Ctrl-C stops it";

/* Process 7 ends its answer, and 9, which waited, goes on behind it. */
static void two_answer(ebb_chat *c)
{
    static int step;

    switch (step++) {
    case 0:
        fake_attached(c, 7, "first");
        fake_text(c, "one ");
        break;
    case 1: fake_text(c, "two "); break;
    case 2:
        fake_text(c, "three.");
        fake_attached(c, 9, "second");
        fake_notice(c, now_another);
        break;
    case 3: fake_text(c, "four"); break;
    case 4:
        fake_done(c, EBB_FINISH_STOP);
        fake_ready(c);
    }
}

/* Nothing is missing of what others answer one after the other, whenever it is looked at. */
static void another_goes_on(void **state)
{
    ebb_buf out = { 0 };
    char want[256];

    (void)state;
    snprintf(want, sizeof want, "You: first\nModel: one \nModel: two three.\nYou: second\nNote: %s\nModel: four\n",
             now_another);
    fake_step = two_answer;
    assert_int_equal(run("", false, &out), 0);
    fake_step = NULL;                            /* whatever came of it: the other tests have none */
    assert_string_equal(ebb_buf_text(&out), want);
    ebb_buf_fini(&out);
}

/* Process 7 asks something else in place of the second question. */
static void one_edits(ebb_chat *c)
{
    static int step;

    switch (step++) {
    case 0:
        fake_add(c, EBB_ROLE_USER, "first");
        fake_add(c, EBB_ROLE_ASSISTANT, "one");
        fake_attached(c, 7, "second");
        fake_text(c, "two ");
        break;
    case 1: fake_text(c, "or more "); break;
    case 2:
        fake_attached_after(c, 2, 7, "other");
        fake_text(c, "three and ");
        break;
    case 3: fake_text(c, "four"); break;
    case 4:
        fake_done(c, EBB_FINISH_STOP);
        fake_ready(c);
    }
}

/* The other answer is no end of that one, and its beginning is not missing. */
static void another_edits(void **state)
{
    ebb_buf out = { 0 };

    (void)state;
    fake_step = one_edits;
    assert_int_equal(run("", false, &out), 0);
    fake_step = NULL;
    assert_string_equal(ebb_buf_text(&out), "You: first\nModel: one\nYou: second\nModel: two \nModel: or more \n"
                                            "You: other\nModel: three and four\n");
    ebb_buf_fini(&out);
}

static void nothing_raw(void **state)
{
    ebb_buf out = { 0 };

    (void)state;
    assert_int_equal(run("\033[31mred\033]0;title\a\n", true, &out), 0);
    assert_string_equal(ebb_buf_text(&out), "Model: You said: \u241B[31mred\u241B]0;title\u2407\n");
    ebb_buf_fini(&out);
}

static void same_commands(void **state)
{
    ebb_buf out = { 0 };

    (void)state;
    assert_int_equal(run("/bogus\n//x\n/set temp 1\n/theme light\n/load trip\n/quit\nnever\n", false, &out), 0);
    assert_string_equal(ebb_buf_text(&out),
        "Error: no command /bogus; /help lists them all, // sends a slash\n"
        "Model: You said: /x\n"
        "temp = 1 (0 to 2): warmth\n"
        "Error: plain mode has no themes\n"
        "You: Where to?\n"
        "Model: To the sea.\n");
    ebb_buf_fini(&out);
}

static void messages_and_branches(void **state)
{
    (void)state;
    expect("/edit\n/tree\n", "Error: there is no such message yet\nNote: there are no messages yet\n");
    expect("a\n/edit 1\nb\n",
        "Model: You said: a\n"
        "a\n"
        "Note: message 1: the next line takes its place, in a new branch\n"
        "Model: You said: b\n");
    expect("a\n/edit 1 c\n", "Model: You said: a\nModel: You said: c\n");
    expect("\"\"\"a.txt:\n```txt\nA\n```\n\nwhat\"\"\"\n/edit 1 who\n/edit 1\nwhere\n",
        "Model: You said: a.txt:\n```txt\nA\n```\n\nwhat\n"
        "Model: You said: a.txt:\n```txt\nA\n```\n\nwho\n"
        "a.txt:\n```txt\nA\n```\n\nwho\n"
        "Note: message 1: the next line takes its place, in a new branch; its files go along again\n"
        "Model: You said: a.txt:\n```txt\nA\n```\n\nwhere\n");
    expect("\"\"\"a.txt:\n```txt\nA\n```\n\nwhat\"\"\"\n/edit 1\n\"\"\"a.txt:\n```txt\nB\n```\n\nwho\"\"\"\n",
        "Model: You said: a.txt:\n```txt\nA\n```\n\nwhat\n"
        "a.txt:\n```txt\nA\n```\n\nwhat\n"
        "Note: message 1: the next line takes its place, in a new branch; its files go along again\n"
        "Model: You said: a.txt:\n```txt\nB\n```\n\nwho\n");
    expect("\"\"\"/a/b.txt:\n```txt\nA\n```\n\nwhat\"\"\"\n"           /* its name begins no command */
           "/edit 1\n/a/b.txt:\\\n```txt\\\nB\\\n```\\\n\\\nwho\n//a/b.txt:\n",
        "Model: You said: /a/b.txt:\n```txt\nA\n```\n\nwhat\n"
        "/a/b.txt:\n```txt\nA\n```\n\nwhat\n"
        "Note: message 1: the next line takes its place, in a new branch; its files go along again\n"
        "Model: You said: /a/b.txt:\n```txt\nB\n```\n\nwho\n"
        "Model: You said: /a/b.txt:\n");
    expect("a\n/edit 1 a.txt:\\\n```txt\\\nB\\\n```\\\n\\\nwhat of @docs/\n/system be brief:\\\n```\\\nB\\\n```\\\n\\\n"
           "as @*.c\n/system\n",                              /* a command's name begins no file's */
        "Model: You said: a\n"
        "Model: You said: a.txt:\n```txt\nB\n```\n\nwhat of @docs/\n"
        "Note: the system prompt is set\n"
        "Note: the conversation has 1 message now\n"
        "be brief:\n```\nB\n```\n\nas @*.c\n");
    expect("\"\"\"Makefile:\n```\nA\n```\n\nwhat is @Makefile ?\"\"\"\n/edit 1 who\n/edit 1 where\n",
        "Model: You said: Makefile:\n```\nA\n```\n\nwhat is @Makefile ?\n"
        "Model: You said: Makefile:\n```\nA\n```\n\n@Makefile who\n"
        "Model: You said: Makefile:\n```\nA\n```\n\n@Makefile where\n");
    expect("a\n/edit 3\n/edit x\n",
        "Model: You said: a\n"
        "Error: give the number of a message, 1 to 2; /tree shows them\n"
        "Error: give the number of a message, 1 to 2; /tree shows them\n");
    expect("a\n/pin\n/tree\n/go 2a\n/go\n",
        "Model: You said: a\n"
        "Note: message 2 is pinned; /unpin takes it back\n"
        "1 you: a\n"
        "  2a model (pinned): You said: a\n"
        "  3 you: a\n"
        "  2b (here) model (pinned): You said: a\n"
        "Note: the conversation has 2 messages now\n"
        "Error: /go NODE: where to?  /tree shows them\n");
    expect("a\n/unpin 1\n/pin 1\n/unpin 1\n/undo\n",
        "Model: You said: a\n"
        "Note: message 1 was not pinned\n"
        "Note: message 1 is pinned; /unpin takes it back\n"
        "Note: message 1 is no longer pinned\n"
        "Note: the conversation has 0 messages now\n");
    expect("/find sea\n/editing vi\n/raw\n",
        "Error: plain mode has no search in the conversation; /search WORDS looks in all of them\n"
        "Error: in plain mode the terminal edits the line; this is for the full screen\n"
        "Error: plain mode has only one view; this is for the full screen\n");
}

/* What other programs call so is not found in a list of names. */
static void foreign_commands(void **state)
{
    (void)state;
    expect("/file a.txt\n/read a.txt\n/attach a.txt\n/add a.txt\n/image a.png\n/show info\n/set system Be brief.\n",
        "Error: no command /file; @FILE in a message attaches it\n"
        "Error: no command /read; @FILE in a message attaches it\n"
        "Error: no command /attach; @FILE in a message attaches it\n"
        "Error: no command /add; @FILE in a message attaches it\n"
        "Error: no command /image; ebb takes text alone, so no pictures; @FILE in a message attaches a document\n"
        "Error: no command /show; /model shows the model, /system its system prompt, /set the settings\n"
        "Error: there is no setting 'system'; /system TEXT sets the system prompt\n");
}

static void system_prompts(void **state)
{
    (void)state;
    expect("/prompt\n/prompt nope\n/prompt ../x\n/prompt brief\n",
        "brief  critic  editor  programmer  reviewer  shell  summary  teacher  translator  writer\n"
        "/prompt NAME uses one, /system - removes it\n"
        "Error: there is no system prompt 'nope'; yours are NAME.txt in /nonexistent/prompts\n"
        "Error: a system prompt's name is a word, like brief\n"
        "Note: the system prompt is brief; /system shows it\n"
        "Note: the conversation has 1 message now\n");
}

static void sessions(void **state)
{
    ebb_buf want = { 0 };

    (void)state;
    expect("/search sea\n/search nothing\n/delete x\n/undelete\n",
        "   2  2023-11-14 22:13  trip\n"
        "      assistant: To the sea.\n"
        "/load NUMBER opens one\n"
        "Note: no message contains these words\n"
        "Error: there is no session 'x'\n"
        "Note: trip is back\n"
        "You: Where to?\n"
        "Model: To the sea.\n");
    for (int i = 0; i < 20; i++)
        ebb_buf_adds(&want, "   2  2023-11-14 22:13  trip\n      assistant: To the sea.\n");
    ebb_buf_adds(&want, "These are the newest 20, and there are more; another word finds fewer\n"
                        "/load NUMBER opens one\n");
    expect("/search the\n", want.data);
    ebb_buf_fini(&want);
    expect("/save sea\n/new\n/save lake\n",
        "Note: saved as sea\n"
        "Note: the conversation has 0 messages now\n"
        "Note: this session is named lake; it is kept from its first question on\n");
    expect("/save alpha\n/title Beta\n/title\n",       /* a name goes before it, and that is said */
        "Note: this session is named alpha; it is kept from its first question on\n"
        "Note: title: Beta; lists show its name, alpha (/save NAME changes that)\n"
        "Note: title: Beta; lists show its name, alpha (/save NAME changes that)\n");
    expect("/title A Trip, to Sea!\n/export\n/export x.doc\n/import nope\n",
        "Note: title: A Trip, to Sea!\n"
        "Note: written to a-trip-to-sea.md\n"
        "Error: x.doc: the name must end in .md\n"
        "Error: nope: no such file\n");
}

static void memory(void **state)
{
    (void)state;
    expect("/mem 5x\n/mem 2G\n/mem auto\n/mem 4K\n/plan\n",
        "Error: /mem 5x: give a size like 5G or 800M, or auto; anew behind a size opens the model as it is planned "
        "for it\n"
        "Note: budget 2147483648: about 2.50 tok/s\n"
        "Note: budget 0: about 2.50 tok/s\n"
        "Error: the model is not loaded yet\n"
        "Fake 8B  llama\n"
        "  KV cache  256 MiB\n");
    expect("/mem\n", "waiting for memory    0.0 % of the last 10 s\n"
                     "tier full, 0 of 0 layers in memory\n"
                     "/mem SIZE changes the budget, /mem auto uses what the machine has, /mem SIZE anew "
        "makes a new plan\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_in_lines_out),
        cmocka_unit_test(ends),
        cmocka_unit_test(too_long),
        cmocka_unit_test(a_terminal_cuts_lines),
        cmocka_unit_test(who_sends_waits),
        cmocka_unit_test(another_goes_on), cmocka_unit_test(another_edits),
        cmocka_unit_test(nothing_raw),
        cmocka_unit_test(same_commands),
        cmocka_unit_test(messages_and_branches),
        cmocka_unit_test(foreign_commands),
        cmocka_unit_test(system_prompts),
        cmocka_unit_test(sessions),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
