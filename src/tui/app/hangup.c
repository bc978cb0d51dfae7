/* The terminal is gone (hangup.h). */
#include "app/hangup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "term/signals.h"

enum { GRACE_S = 30 };           /* for saving and closing, after the limit */

/* Replace a hung-up stdin, stdout or stderr with /dev/null, so that no read or write fails. */
static void point_nowhere(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; fd >= 0 && i < 3; i++)
        if (isatty(i) || errno == EIO)           /* EIO: the terminal has hung up */
            dup2(fd, i);
    if (fd > 2)
        close(fd);
}

typedef struct asked {
    ebb_stat_server *stat;
    const ebb_chat  *chat;
} asked;

static void serve_stats(void *arg)
{
    asked *a = arg;

    ebb_stat_server_serve(a->stat, a->chat);
}

/* A thread that was caught by SIGHUP or SIGCONT before these were ignored may write its byte only now. */
static bool is_stop_asked(void *arg)
{
    (void)arg;
    return ebb_signals_next_request() != 0;
}

void ebb_hangup(ebb_chat *chat, uint32_t linger_s, ebb_stat_server *stat)
{
    asked a = { stat, chat };

    ebb_signals_leave_terminal();
    if (ebb_signals_fd() < 0)
        ebb_signals_open();                      /* without them, SIGTERM ends us at once */
    point_nowhere();
    stat->is_unseen = true;
    ebb_chat_linger(chat, &(ebb_linger){ .limit_s = linger_s, .grace_s = GRACE_S, .stop_fd = ebb_signals_fd(),
                                         .is_stop = is_stop_asked, .request_fd = stat->fd, .on_request = serve_stats,
                                         .arg = &a });
    ebb_signals_close();
}
