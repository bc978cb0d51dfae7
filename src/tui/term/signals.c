/* Signals through a pipe (signals.h). */
#include "term/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { STOP_LOOKS = 20, STOP_LOOK_NS = 5 * 1000 * 1000 };

static const int caught[] = { SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGINT, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD };
static int wake_pipe[2] = { -1, -1 };
static bool is_alone;            /* the terminal is gone */
static volatile sig_atomic_t was_continued;

static void write_signal_byte(int number)
{
    int saved = errno;
    char byte = (char)number;

    if (number == SIGCONT)
        was_continued = 1;
    if (write(wake_pipe[1], &byte, 1) < 0)  /* a full pipe holds wake-ups enough */
        errno = saved;
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

    sa.sa_handler = is_alone && !is_request(number) ? SIG_IGN : handler;
    sigemptyset(&sa.sa_mask);
    sigaction(number, &sa, NULL);
}

bool ebb_signals_open(void)
{
    if (wake_pipe[0] >= 0 || pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        install_signal(caught[i], write_signal_byte);
    install_signal(SIGPIPE, SIG_IGN);
    return true;
}

void ebb_signals_close(void)
{
    if (wake_pipe[0] < 0)
        return;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        install_signal(caught[i], SIG_DFL);
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

    return read(wake_pipe[0], &byte, 1) == 1 ? byte : 0;
}

int ebb_signals_next_request(void)
{
    int number;

    while (wake_pipe[0] >= 0 && (number = ebb_signals_next()) != 0)
        if (is_request(number))
            return number;
    return 0;
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

/* A stopped process gets SIGCONT when it is continued, perhaps in another thread: wait for that. */
bool ebb_signals_stop(void)
{
    struct timespec look = { .tv_nsec = STOP_LOOK_NS };

    was_continued = 0;
    install_signal(SIGTSTP, SIG_DFL);
    kill(0, SIGTSTP);
    install_signal(SIGTSTP, write_signal_byte);
    for (int i = 0; i < STOP_LOOKS && !was_continued; i++)
        nanosleep(&look, NULL);
    return was_continued;
}
