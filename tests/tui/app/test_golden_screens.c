/* The same conversation on every kind of terminal, through tmux, a real sshd on loopback and GNU screen,
 * read back from the screen and compared with tests/tui/app/golden/.  What is not installed is skipped.
 *
 *     EBB_GOLDEN=write build/release/tests/tui/app/test_golden_screens      writes the files anew: look at the diff
 *
 * This program is also the one that runs in the terminal: test_golden_screens --talk full|inline|plain. */
#include "ebb_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "os/file.h"
#include "support/own_folder.h"
#include "tui.h"
#include "tui/fake_chat.h"

static char self[512], socket_name[64], dir[] = "/tmp/ebb-golden-XXXXXX";

static int talk(const char *mode)
{
    static const ebb_chat_opts chat = { 0 };
    ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "", .is_inline = strcmp(mode, "inline") == 0 };

    fake_echoes = true;
    return strcmp(mode, "plain") == 0 ? ebb_plain_run(&chat, &opts) : ebb_tui_run(&chat, &opts);
}

/* -- tmux ---------------------------------------------------------------------------- */

static bool has(const char *program)
{
    char command[200];

    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1 || test -x /usr/sbin/%s", program, program);
    return system(command) == 0;
}

/* Output of a command of tmux, or only whether it went well. */
static bool tmux(ebb_buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool tmux(ebb_buf *out, const char *fmt, ...)
{
    char args[1500], command[1700], bytes[4096];
    size_t got;
    va_list ap;
    FILE *f;

    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    snprintf(command, sizeof command, "unset TMUX; LC_ALL=C.UTF-8 tmux -L %s -f /dev/null %s 2>/dev/null",
             socket_name, args);
    f = popen(command, "r");
    assert_non_null(f);
    while ((got = fread(bytes, 1, sizeof bytes, f)) > 0)
        if (out)
            ebb_buf_add(out, bytes, got);
    return pclose(f) == 0;
}

static void capture(ebb_buf *out, bool with_history)
{
    ebb_buf_clear(out);
    tmux(out, "capture-pane -p%s", with_history ? " -S -" : "");
    while (out->len > 1 && out->data[out->len - 1] == '\n' && out->data[out->len - 2] == '\n')
        ebb_buf_remove(out, out->len - 1, 1);
}

static void wait_for(const char *text)
{
    ebb_buf out = { 0 };

    for (int i = 0; i < EBB_TEST_WAIT_S * 40; i++) {
        capture(&out, false);
        if (strstr(ebb_buf_text(&out), text)) {
            ebb_buf_fini(&out);
            return;
        }
        if (i % 40 == 39 && !tmux(NULL, "has-session"))
            fail_msg("it has ended before this was on the screen: %s", text);
        usleep(25000);
    }
    print_message("%s\n", ebb_buf_text(&out));
    fail_msg("never on the screen: %s", text);
}

static void write_golden(const char *path, const ebb_buf *got)
{
    ebb_error err;

    mkdir("tests/tui/app/golden", 0777);
    assert_int_equal(ebb_file_replace(path, got->data, got->len, &err), EBB_OK);
}

/* What is before the first "You: " names this machine. */
static void cut_greeting(ebb_buf *out)
{
    const char *first = out->len ? strstr(out->data, "You: ") : NULL;

    ebb_buf_remove(out, 0, first ? (size_t)(first - out->data) : 0);
}

/* The screen becomes the golden one; on a busy machine that may take a while. */
static void compare(const char *name, bool with_history, bool has_greeting)
{
    char path[200];
    ebb_buf want = { 0 }, got = { 0 };
    ebb_error err;
    bool is_same = false;

    snprintf(path, sizeof path, "tests/tui/app/golden/%s.screen", name);
    if (getenv("EBB_GOLDEN"))
        usleep(500000);
    else
        assert_int_equal(ebb_file_slurp(path, 1 << 20, &want, &err), EBB_OK);
    ebb_buf_addc(&want, '\0');
    for (int i = 0; i < EBB_TEST_WAIT_S * 20 && !is_same; i++) {
        usleep(i ? 50000 : 0);
        capture(&got, with_history);
        if (has_greeting)
            cut_greeting(&got);
        if (getenv("EBB_GOLDEN")) {
            write_golden(path, &got);
            break;
        }
        is_same = strcmp(ebb_buf_text(&want), ebb_buf_text(&got)) == 0;
    }
    if (!is_same && !getenv("EBB_GOLDEN")) {
        print_message("-- want %s\n%s-- got\n", path, want.data);
        print_message("%s--\n", got.data);
        fail_msg("another screen than %s", path);
    }
    ebb_buf_fini(&want);
    ebb_buf_fini(&got);
}

/* The conversation, in a pane that runs `command`; its last screen is `golden`. */
static void converse(const char *command, const char *mode, const char *golden)
{
    bool is_plain = strcmp(mode, "plain") == 0, is_inline = strcmp(mode, "inline") == 0;
    static int n_sessions;

    snprintf(socket_name, sizeof socket_name, "ebb-golden-%d-%d", (int)getpid(), n_sessions++);
    if (!tmux(NULL, "new-session -d -x 60 -y 20 '%s'", command))
        skip();
    tmux(NULL, "set -g history-limit 5000");
    wait_for(is_plain ? "You:" : "Fake 8B");
    tmux(NULL, "send-keys -l 'Hello **caf\xC3\xA9** \xE4\xBD\xA0\xE5\xA5\xBD "
               "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 `code`.'");
    tmux(NULL, "send-keys Enter");
    wait_for("You said: Hello");
    tmux(NULL, "send-keys -l '/help copy'");
    tmux(NULL, "send-keys Enter");
    wait_for("Copy the last answer");
    tmux(NULL, "send-keys -l 'list:'");
    if (!is_plain)
        tmux(NULL, "send-keys C-j C-j - Space o n e");
    tmux(NULL, "send-keys Enter");
    wait_for("You said: list:");
    if (!is_plain) {
        tmux(NULL, "resize-window -x 50 -y 18");
        tmux(NULL, "send-keys -l 'a draft'");
        wait_for("> a draft");
    } else {
        wait_for("212 tok");
    }
    compare(golden, is_inline, is_plain);
    tmux(NULL, "kill-server");
}

static void every_terminal(const char *mode)
{
    static const struct { const char *term, *lang; } kinds[] = {
        { "xterm-256color", "C.UTF-8" }, { "tmux-256color", "C.UTF-8" }, { "screen", "C.UTF-8" },
        { "linux", "C.UTF-8" }, { "vt100", "C.UTF-8" }, { "xterm-256color", "C" }, { "linux", "C" }, { "vt100", "C" },
    };
    char command[800], golden[64];

    if (!has("tmux"))
        skip();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool is_ascii = strcmp(kinds[i].term, "linux") == 0 || strcmp(kinds[i].term, "vt100") == 0;
        bool is_c = strcmp(kinds[i].lang, "C") == 0;
        snprintf(command, sizeof command, "env TERM=%s LC_ALL=%s %s --talk %s", kinds[i].term, kinds[i].lang,
                 self, mode);
        snprintf(golden, sizeof golden, "%s-%s", mode, is_c ? "c" : is_ascii ? "ascii" : "utf8");
        converse(command, mode, golden);
    }
}

static void full_screen(void **state)
{
    (void)state;
    every_terminal("full");
}

static void inline_screen(void **state)
{
    (void)state;
    every_terminal("inline");
}

static void dumb(void **state)
{
    char command[800];

    (void)state;
    if (!has("tmux"))
        skip();
    snprintf(command, sizeof command, "env TERM=dumb LC_ALL=C.UTF-8 %s --talk full", self);
    converse(command, "plain", "plain-utf8");
}

static int stop_tmux(void **state)
{
    (void)state;
    tmux(NULL, "kill-server");
    return 0;
}

static void through_screen(void **state)
{
    static const char *const modes[] = { "full", "inline" };
    char command[1200], golden[64];
    ebb_error err;

    (void)state;
    if (!has("tmux") || !has("screen"))
        skip();
    for (int i = 0; i < 2; i++) {
        char rc[300];
        snprintf(rc, sizeof rc, "%s/screenrc", dir);
        assert_int_equal(ebb_file_replace(rc, "startup_message off\nvbell off\ndefutf8 on\nautodetach off\n", 56,
                                          &err), EBB_OK);
        snprintf(command, sizeof command,
                 "env TERM=xterm-256color LC_ALL=C.UTF-8 SCREENDIR=%s/s screen -S %s -U -c %s %s --talk %s",
                 dir, modes[i], rc, self, modes[i]);
        snprintf(golden, sizeof golden, "screen-%s", modes[i]);
        char sockets[300];
        snprintf(sockets, sizeof sockets, "%s/s", dir);
        mkdir(sockets, 0700);
        converse(command, modes[i], golden);
    }
}

/* It outlives its terminal. */
static int stop_screen(void **state)
{
    static const char *const modes[] = { "full", "inline" };
    char command[200];

    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "SCREENDIR=%s/s screen -S %s -X quit >/dev/null 2>&1", dir, modes[i]);
        if (system(command) != 0)
            continue;                            /* it has ended already */
    }
    return stop_tmux(state);
}

/* -- ssh ---------------------------------------------------------------------------------- */

static pid_t start_sshd(int port)
{
    char command[2500];
    pid_t pid;

    snprintf(command, sizeof command,
             "cd %s && rm -f host me && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f me "
             "&& cp me.pub keys &&"
             "printf 'Port %d\\nListenAddress 127.0.0.1\\nHostKey %s/host\\nAuthorizedKeysFile "
             "%s/keys\\nPidFile none\\n"
             "StrictModes no\\nUsePAM no\\nPasswordAuthentication no\\nPermitRootLogin yes\\n' > config",
             dir, port, dir, dir);
    if (system(command) != 0)
        return -1;
    if (geteuid() == 0)
        mkdir("/run/sshd", 0755);
    pid = fork();
    if (pid == 0) {
        char config[300];
        snprintf(config, sizeof config, "%s/config", dir);
        if (freopen("/dev/null", "w", stderr))
            execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", config, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* A port that nobody had a moment ago. */
static int free_port(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0), port = 0;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0)
        port = ntohs(a.sin_port);
    close(fd);
    return port;
}

static bool listens(int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0;

    close(fd);
    return ok;
}

/* An sshd that has begun to listen, or -1: none may run here. */
static pid_t find_sshd(int *port)
{
    for (int i = 0; i < 5; i++) {
        int status;
        pid_t sshd;

        *port = free_port();
        sshd = *port ? start_sshd(*port) : -1;
        if (sshd < 0)
            return -1;
        for (bool is_open = false; waitpid(sshd, &status, WNOHANG) == 0; is_open = listens(*port)) {
            if (is_open)
                return sshd;
            usleep(20000);
        }
    }
    return -1;
}

static pid_t server = -1;

static int stop_sshd(void **state)
{
    if (server > 0 && kill(server, SIGTERM) == 0)
        waitpid(server, NULL, 0);
    return stop_tmux(state);
}

/* ssh to this machine, to be formatted with the folder and the port. */
#define SSH "ssh %s -q -F none -i %s/me -p %d -o BatchMode=yes -o StrictHostKeyChecking=no " \
            "-o UserKnownHostsFile=/dev/null" \
            " -o IdentitiesOnly=yes 127.0.0.1 "

static void through_ssh(void **state)
{
    static const char *const modes[] = { "full", "inline" };
    char command[1500];
    int port;

    (void)state;
    if (!has("tmux") || !has("sshd") || !has("ssh") || !has("ssh-keygen"))
        skip();
    server = find_sshd(&port);
    if (server < 0)
        skip();                                  /* none may run here */
    snprintf(command, sizeof command, SSH "true </dev/null", "-n", dir, port);
    if (system(command) != 0)
        skip();                                  /* this user cannot log in: no shell, no home */
    for (int i = 0; i < 2; i++) {
        char golden[64];
        snprintf(command, sizeof command,
                 "env TERM=xterm-256color " SSH "\"LC_ALL=C.UTF-8 XDG_STATE_HOME=%s %s --talk %s\"",
                 "-tt", dir, port, dir, self, modes[i]);
        snprintf(golden, sizeof golden, "%s-utf8", modes[i]);
        converse(command, modes[i], golden);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(full_screen, stop_tmux),
        cmocka_unit_test_teardown(inline_screen, stop_tmux),
        cmocka_unit_test_teardown(dumb, stop_tmux),
        cmocka_unit_test_teardown(through_screen, stop_screen),
        cmocka_unit_test_teardown(through_ssh, stop_sshd),
    };
    int status;

    if (argc == 3 && strcmp(argv[1], "--talk") == 0)
        return talk(argv[2]);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !mkdtemp(dir))
        return 1;
    setenv("XDG_STATE_HOME", dir, 1);
    unsetenv("XDG_RUNTIME_DIR");
    status = cmocka_run_group_tests(tests, NULL, NULL);
    return ebb_own_folder_end(dir) == 0 ? status : 1;
}
