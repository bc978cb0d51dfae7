/* Signals through a pipe (signals.h). */
#include "term/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { STOP_LOOK_NS = 5 * 1000 * 1000, STOP_LOOKS = 20, SURE_STOP_LOOKS = 200, LEAVE_LOOK_S = 2 };

static const int caught[] = { SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGINT, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD };
static int wake_pipe[2] = { -1, -1 };
/* A handler runs in whatever thread the system chooses. */
static atomic_bool is_alone;     /* the terminal is gone */
static atomic_bool was_continued, has_given_up;
static bool ignores_hangup;      /* as nohup(1) and `trap '' HUP` have it: it stays so */
/* By number.  One of each is in the pipe at most: a storm of resizes leaves room for SIGTERM. */
static atomic_bool is_in_pipe[NSIG];

static void write_signal_byte(int number)
{
    int saved = errno;
    char byte = (char)number;

    if (number == SIGCONT)
        was_continued = true;
    if (!is_in_pipe[number])
        is_in_pipe[number] = write(wake_pipe[1], &byte, 1) == 1;
    if (!is_alone && (number == SIGTERM || number == SIGHUP))
        alarm(LEAVE_LOOK_S);
    errno = saved;
}

/* A terminal that takes nothing any more holds whoever writes to it, and he is to leave: what is written goes nowhere
 * from now on.  The write that waits is begun anew after this (SA_RESTART), and finds that. */
static void give_terminal_up(int number)
{
    struct pollfd out[] = { { .fd = STDOUT_FILENO, .events = POLLOUT }, { .fd = STDERR_FILENO, .events = POLLOUT } };
    int saved = errno, nothing;

    (void)number;
    poll(out, 2, 0);
    for (size_t i = 0; i < 2; i++)
        if (!out[i].revents && (nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)) >= 0) {
            dup2(nothing, out[i].fd);
            close(nothing);
            has_given_up = true;
        }
    alarm(LEAVE_LOOK_S);                         /* it may stop taking later */
    errno = saved;
}

/* Signals that processes send on purpose: they count without a terminal, too. */
static bool is_request(int number)
{
    return number == SIGTERM || number == SIGUSR1;
}

static void install_signal(int number, void (*handler)(int))
{
    struct sigaction sa = { .sa_flags = SA_RESTART };

    if (number == SIGHUP && ignores_hangup)
        return;
    sa.sa_handler = is_alone && !is_request(number) ? SIG_IGN : handler;
    sigemptyset(&sa.sa_mask);
    sigaction(number, &sa, NULL);
}

bool ebb_signals_open(void)
{
    struct sigaction was;

    if (wake_pipe[0] >= 0 || pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    has_given_up = false;
    ignores_hangup = sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        install_signal(caught[i], write_signal_byte);
    install_signal(SIGALRM, give_terminal_up);
    install_signal(SIGPIPE, SIG_IGN);
    return true;
}

void ebb_signals_close(void)
{
    if (wake_pipe[0] < 0)
        return;
    if (!is_alone) {
        alarm(0);
        install_signal(SIGALRM, SIG_DFL);
    }
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        install_signal(caught[i], SIG_DFL);
        is_in_pipe[caught[i]] = false;
    }
    close(wake_pipe[0]);
    close(wake_pipe[1]);
    wake_pipe[0] = wake_pipe[1] = -1;
}

int ebb_signals_fd(void)
{
    return wake_pipe[0];
}

int ebb_signals_next(void)
{
    char byte;

    if (read(wake_pipe[0], &byte, 1) != 1)
        return 0;
    is_in_pipe[(unsigned char)byte] = false;
    return byte;
}

bool ebb_signals_want_stop(void)
{
    static const int stops[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 };
    bool wanted = false;

    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        wanted |= is_in_pipe[stops[i]];
    return wanted;
}

int ebb_signals_next_request(void)
{
    int number;

    while (wake_pipe[0] >= 0 && (number = ebb_signals_next()) != 0)
        if (is_request(number))
            return number;
    return 0;
}

bool ebb_signals_have_given_up(void)
{
    return has_given_up;
}

/* SIGHUP does not come alone: a shell that ends has SIGCONT sent after it, to whoever is left. */
void ebb_signals_leave_terminal(void)
{
    int number, asked = 0;

    is_alone = true;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        if (!is_request(caught[i]))
            install_signal(caught[i], SIG_IGN);
    while ((number = ebb_signals_next_request()) != 0)
        asked = number;
    if (asked)
        write_signal_byte(asked);
}

void ebb_signals_ignore_keys(bool ignores)
{
    static const int keys[] = { SIGINT, SIGQUIT };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        install_signal(keys[i], ignores ? SIG_IGN : write_signal_byte);
}

/* Then no stop fails, since somebody could continue us (what POSIX calls no orphaned process group). */
static bool has_shell(void)
{
    pid_t parent = getppid();

    return getsid(parent) == getsid(0) && getpgid(parent) != getpgrp();
}

/* A stopped process gets SIGCONT when it is continued, perhaps in another thread, which takes its time on a busy
 * machine: wait for that.  Where no stop fails it only keeps the screen from being drawn twice. */
bool ebb_signals_stop(void)
{
    struct timespec look = { .tv_nsec = STOP_LOOK_NS };
    bool is_sure = has_shell();
    int looks = is_sure ? SURE_STOP_LOOKS : STOP_LOOKS;

    was_continued = false;
    install_signal(SIGTSTP, SIG_DFL);
    kill(0, SIGTSTP);
    install_signal(SIGTSTP, write_signal_byte);
    for (int i = 0; i < looks && !was_continued; i++)
        nanosleep(&look, NULL);
    return is_sure || was_continued;
}
