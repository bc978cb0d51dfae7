/* An `ebb pull` beside this process (pull_process.h). */
#include "pull/pull_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/broker.h"
#include "os/spawn.h"
#include "pull/pull_source.h"

enum { MAX_LINE = 64 << 10, END_STEPS = 200, END_STEP_NS = 10 * 1000 * 1000 };

static char *fixed_word(const char *word)
{
    return (char *)(uintptr_t)word;              /* as argv wants it; nobody writes there */
}

ebb_pull_words ebb_pull_process_words(const char *ebb)
{
    return (ebb_pull_words){ { fixed_word(ebb), fixed_word("pull"), fixed_word("--json-lines"), fixed_word("--ram") } };
}

/* -- The end ------------------------------------------------------------------------------------------ */

bool ebb_pull_process_is_running(const ebb_pull_process *p)
{
    return p->pid > 0;
}

void ebb_pull_process_stop(ebb_pull_process *p)
{
    if (!ebb_pull_process_is_running(p))
        return;
    p->is_stopped = true;
    kill(p->pid, SIGTERM);
}

static void close_output(ebb_pull_process *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static void forget_process(ebb_pull_process *p)
{
    close_output(p);
    p->pid = 0;
    ebb_buf_fini(&p->line);
}

/* SIGTERM, and where that does not help soon, SIGKILL. */
static void end_process(pid_t pid)
{
    struct timespec step = { .tv_nsec = END_STEP_NS };
    pid_t ended = 0;

    kill(pid, SIGTERM);
    for (int i = 0; i < END_STEPS && (ended = waitpid(pid, NULL, WNOHANG)) == 0; i++)
        nanosleep(&step, NULL);
    if (ended != 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void ebb_pull_process_fini(ebb_pull_process *p)
{
    if (ebb_pull_process_is_running(p)) {
        end_process(p->pid);
        forget_process(p);
    }
    if (p->leaving)
        end_process(p->leaving);
    ebb_buf_fini(&p->line);
    *p = (ebb_pull_process){ 0 };
}

static void reap_leaving(ebb_pull_process *p)
{
    if (p->leaving && waitpid(p->leaving, NULL, WNOHANG) != 0)
        p->leaving = 0;
}

/* As new; one that has said its last word and is about to end is not waited for. */
static void begin_anew(ebb_pull_process *p)
{
    pid_t leaving = p->leaving;

    if (ebb_pull_process_is_running(p)) {
        leaving = p->pid;
        forget_process(p);
    }
    ebb_buf_fini(&p->line);
    *p = (ebb_pull_process){ .leaving = leaving };
    reap_leaving(p);
}

/* -- Beginning -------------------------------------------------------------------------------------- */

/* OWNER/NAME[:WANT][@REVISION], as the broker lets it through. */
static ebb_status name_source(ebb_pull_process *p, const char *what, ebb_error *err)
{
    ebb_pull_source s;
    ebb_status st = ebb_pull_parse(what, &s, err);
    const char *at = strcmp(s.revision, "main") ? "@" : "", *revision = *at ? s.revision : "";

    if (st == EBB_OK && s.is_url)
        return EBB_FAIL(err, EBB_USAGE, "the chat fetches only from the hub, by OWNER/NAME[:TYPE]; in a shell `ebb "
                                        "pull` takes an address too");
    if (st == EBB_OK && !ebb_broker_is_repository(s.repo))
        return EBB_FAIL(err, EBB_USAGE, "%.100s: is not the name of a repository", s.repo);
    if (st == EBB_OK &&
        (size_t)snprintf(p->what, sizeof p->what, "%s%s%s%s%s", s.repo, *s.want ? ":" : "", s.want, at, revision) >=
            sizeof p->what)
        return EBB_FAIL(err, EBB_USAGE, "%.100s: this name is too long", what);
    if (st == EBB_OK && !ebb_broker_is_repository(p->what))
        return EBB_FAIL(err, EBB_USAGE, "%.100s: the chat takes only letters, digits and ._-/ in names; in a shell "
                                        "`ebb pull` takes others too", p->what);
    return st;
}

/* 0, or why not (errno). */
static int spawn_pull(ebb_pull_process *p, const char *ebb, uint64_t ram_bytes, int output)
{
    ebb_pull_words words = ebb_pull_process_words(ebb);
    char ram[24], *argv[] = { words.argv[0], words.argv[1], words.argv[2], words.argv[3], ram, p->what, NULL };
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), why = nothing < 0 ? errno : 0;

    snprintf(ram, sizeof ram, "%llu", (unsigned long long)ram_bytes);
    if (why == 0)
        why = ebb_spawn(argv, (int[]){ nothing, output, nothing }, EBB_SPAWN_SESSION, &p->pid);
    if (nothing >= 0)
        close(nothing);
    return why;
}

ebb_status ebb_pull_process_start(ebb_pull_process *p, const char *ebb, const char *what, uint64_t ram_bytes,
                                  ebb_error *err)
{
    int ends[2], why;
    ebb_status st;

    reap_leaving(p);
    if (ebb_pull_process_is_running(p) && ((!p->is_done && !p->has_said_why) || p->leaving))
        return EBB_FAIL(err, EBB_BUSY, "%.200s is being fetched; /pull stop stops it, and keeps what has arrived",
                        p->what);
    begin_anew(p);
    st = name_source(p, what, err);
    if (st != EBB_OK)
        return st;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return EBB_FAIL(err, EBB_IO, "nothing can be fetched: %s", strerror(errno));
    fcntl(ends[1], F_SETFL, 0);                  /* its end blocks, as programs expect */
    why = spawn_pull(p, ebb, ram_bytes, ends[1]);
    close(ends[1]);
    if (why != 0) {
        p->pid = 0;
        close(ends[0]);
        return EBB_FAIL(err, EBB_IO, "ebb pull cannot be started here: %s", strerror(why));
    }
    p->fd = ends[0];
    return EBB_OK;
}

/* -- Following ------------------------------------------------------------------------------------------ */

typedef enum pull_output { OUTPUT_LINE, OUTPUT_LATER, OUTPUT_END } pull_output;

/* Read on to the end of a line. */
static pull_output read_pull_output(ebb_pull_process *p)
{
    char bytes[4096];
    ssize_t got;

    if (p->fd < 0)
        return OUTPUT_END;
    while (!p->line.len || !memchr(p->line.data, '\n', p->line.len)) {
        got = read(p->fd, bytes, sizeof bytes);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR) ? OUTPUT_LATER : OUTPUT_END;
        if (p->line.len + (size_t)got > MAX_LINE)
            ebb_buf_clear(&p->line);             /* no line of ours is so long */
        if (!ebb_buf_add(&p->line, bytes, (size_t)got))
            return OUTPUT_END;
    }
    return OUTPUT_LINE;
}

/* The first whole line that is an event. */
static bool take_event(ebb_pull_process *p, ebb_pull_event *out)
{
    const char *nl;

    while (p->line.len && (nl = memchr(p->line.data, '\n', p->line.len)) != NULL) {
        size_t n = (size_t)(nl - p->line.data);
        bool ok = ebb_pull_event_read(p->line.data, n, out);

        ebb_buf_remove(&p->line, 0, n + 1);
        if (ok)
            return true;
    }
    return false;
}

static void note_event(ebb_pull_process *p, const ebb_pull_event *e)
{
    if (e->kind == EBB_PULL_PROGRESS)
        p->last = *e;
    p->is_done |= e->kind == EBB_PULL_DONE;
    p->has_said_why |= e->kind == EBB_PULL_ERROR;
}

/* It has closed its end, and ends soon, which SIGCHLD tells: what it did not say itself. */
static bool say_last_word(ebb_pull_process *p, ebb_pull_event *out)
{
    int status = 0;

    close_output(p);
    if (waitpid(p->pid, &status, WNOHANG) == 0)
        return false;
    forget_process(p);
    if (p->is_done || p->has_said_why)
        return false;
    *out = (ebb_pull_event){ .kind = EBB_PULL_ERROR };
    if (!p->is_stopped && WIFSIGNALED(status))
        snprintf(out->text, sizeof out->text, "ebb pull ended by signal %d", WTERMSIG(status));
    else if (!p->is_stopped)
        snprintf(out->text, sizeof out->text, "ebb pull ended with exit status %d", WEXITSTATUS(status));
    return true;
}

bool ebb_pull_process_next(ebb_pull_process *p, ebb_pull_event *out)
{
    pull_output output;

    reap_leaving(p);
    if (!ebb_pull_process_is_running(p))
        return false;
    while ((output = read_pull_output(p)) == OUTPUT_LINE)
        if (take_event(p, out)) {
            note_event(p, out);
            return true;
        }
    return output == OUTPUT_END && say_last_word(p, out);
}
