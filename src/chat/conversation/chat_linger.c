/* Finishing an answer after its reader has left (chat.h). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "conversation/chat_priv.h"

/* SIGALRM with its default action ends the process at the deadline, even if a thread hangs. */
static void set_deadline_alarm(unsigned s)
{
    struct sigaction usual = { .sa_handler = SIG_DFL };
    sigset_t alarms;

    sigemptyset(&usual.sa_mask);
    sigaction(SIGALRM, &usual, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(s ? s : 1);
}

bool ebb_chat_linger(ebb_chat *c, const ebb_linger *how)
{
    double end = ebb_clock_s() + how->limit_s;
    ebb_chat_event ev;

    set_deadline_alarm(how->limit_s + how->grace_s);
    if (c->follow.session)                       /* another process generates the answer */
        return true;
    c->is_away = true;
    if (ebb_chat_is_busy(c))
        (void)ebb_chat_lock_writer(c);
    for (;;) {
        struct pollfd fds[3] = { { .fd = ebb_chat_fd(c), .events = POLLIN }, { .fd = how->stop_fd, .events = POLLIN },
                                 { .fd = how->request_fd, .events = POLLIN } };
        double left = end - ebb_clock_s();

        while (ebb_chat_event_next(c, &ev))
            ;
        if (!ebb_chat_is_busy(c))
            return true;
        if (left <= 0 || (poll(fds, 3, (int)(left * 1000) + 1) < 0 && errno != EINTR))
            return false;
        if (fds[1].revents && (!how->is_stop || how->is_stop(how->arg)))
            return false;
        if (fds[2].revents)
            how->on_request(how->arg);
    }
}
