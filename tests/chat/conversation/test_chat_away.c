/* Answers that go on unseen: what is kept, what is told, and that the process ends. */
#include "chat/conversation/chat_fixture.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/file.h"

enum { LONG_S = 24 * 3600 };

/* In a process of its own: ask, see n tokens, let the terminal vanish, linger, leave.  Its wait status. */
static int leave(unsigned n_seen, uint32_t limit_s, uint32_t grace_s, bool hangs)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        ebb_chat *c = open_ready(NULL);
        ebb_error err;

        if (ebb_chat_send(c, "go", 2, &err) != EBB_OK)
            _exit(9);
        while (n_seen && (ebb_chat_n_messages(c) < 2 || ebb_chat_message(c, 1)->n_ids < n_seen))
            if (!fake_wait(c, EBB_EVENT_TEXT, NULL, 0))
                _exit(8);
        bool has_ended = ebb_chat_linger(c, &(ebb_linger){ .limit_s = limit_s, .grace_s = grace_s, .stop_fd = -1,
                                                           .request_fd = -1 });
        while (hangs)
            pause();
        ebb_chat_close(c);
        _exit(has_ended ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* What -c says, and then never again. */
static void expect_told(const char *want)
{
    char text[256];
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });

    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_string_equal(text, want);
    ebb_chat_close(c);
    c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    for (ebb_chat_event ev; fake_next(c, &ev) && ev.kind != EBB_EVENT_READY;)
        assert_int_not_equal(ev.kind, EBB_EVENT_NOTICE);
    ebb_chat_close(c);
}

static void test_finished_unseen(void **state)
{
    (void)state;
    script.delay_us = 20000;
    assert_int_equal(leave(0, LONG_S, LONG_S, false), 0);
    script.delay_us = 0;
    expect_told("answer finished while you were away (3 tokens)");
}

static int stop_pipe[2];

static bool is_never_meant(void *arg)
{
    char byte;

    return read(*(int *)arg, &byte, 1) != 1;
}

/* Something comes at the descriptor that may stop it, and nobody asks for that. */
static void test_not_stopped_by_chance(void **state)
{
    ebb_linger how = { .limit_s = 300, .grace_s = 300, .is_stop = is_never_meant, .arg = &stop_pipe[0],
                       .request_fd = -1 };
    ebb_chat *c = open_ready(NULL);
    ebb_error err;

    (void)state;
    assert_int_equal(pipe(stop_pipe), 0);
    assert_int_equal(write(stop_pipe[1], "", 1), 1);
    how.stop_fd = stop_pipe[0];
    script.delay_us = 20000;
    assert_int_equal(ebb_chat_send(c, "go", 2, &err), EBB_OK);
    assert_true(ebb_chat_linger(c, &how));
    alarm(0);
    script.delay_us = 0;
    ebb_chat_close(c);
    close(stop_pipe[0]);
    close(stop_pipe[1]);
}

/* At the limit it is stopped, and what there is is saved. */
static void test_limit(void **state)
{
    double t0 = ebb_clock_s();
    int status;

    (void)state;
    script.hold_at = 3;                          /* it would never end */
    status = leave(2, 1, LONG_S, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_true(ebb_clock_s() - t0 >= 1);
    script.hold_at = 0;
    expect_told("the terminal went away and the answer was stopped (2 tokens); /continue resumes it");
}

/* Whatever holds the process up: it does not outlive its time. */
static void test_no_orphan(void **state)
{
    int status;

    (void)state;
    script.hold_at = 3;
    status = leave(0, 1, 1, true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

/* Every answer has its lock, the second one, too. */
static void test_locked_again(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_buf lock = { 0 };

    (void)state;
    say(c, "go");
    assert_true(ebb_writer_lock_path(c->store, c->facts.id, &lock));
    for (int i = 0; i < 2; i++) {
        ebb_chat_lock_writer(c);
        assert_int_equal(access(lock.data, F_OK), 0);
        ebb_chat_unlock_writer(c);
        assert_int_not_equal(access(lock.data, F_OK), 0);
    }
    ebb_buf_fini(&lock);
    ebb_chat_close(c);
}

/* -- Looking on ------------------------------------------------------------------------ */

typedef struct gone {
    pid_t pid;
    int   begin;                 /* written to: it asks ... */
    int   ready;                 /* ... and this can be read when two tokens are saved */
    int   go_on;                 /* written to: the answer, which waits at its third token, goes on */
} gone;

static void release(void *arg)
{
    (void)arg;
    script.hold_at = 0;
}

static void close_gone(gone *g)
{
    close(g->begin);
    close(g->ready);
    close(g->go_on);
}

static const ebb_message *newest(const ebb_chat *c)
{
    return ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
}

/* A process of its own, which is to ask, lose the terminal, and be gone. */
static gone fork_gone(bool continues, const char *question)
{
    int begin[2], ready[2], go_on[2];
    gone g;
    char byte;

    script.hold_at = 3;
    assert_true(pipe(begin) == 0 && pipe(ready) == 0 && pipe(go_on) == 0);
    g = (gone){ .pid = fork(), .begin = begin[1], .ready = ready[0], .go_on = go_on[1] };
    assert_true(g.pid >= 0);
    if (g.pid == 0) {
        sigset_t term;
        sigemptyset(&term);
        sigaddset(&term, SIGUSR1);
        sigprocmask(SIG_BLOCK, &term, NULL);
        if (read(begin[0], &byte, 1) != 1)
            _exit(9);
        ebb_chat *c = open_ready(&(ebb_chat_opts){ .continue_last = continues });
        send(c, question);
        for (ebb_chat_event ev; newest(c)->n_ids < 2;)
            fake_next(c, &ev);
        ebb_chat_save(c, true);
        ebb_chat_lock_writer(c);                 /* as linger does, but now the test knows that it is done */
        if (write(ready[1], "", 1) != 1)
            _exit(9);
        close(ready[1]);
        ebb_chat_linger(c, &(ebb_linger){ .limit_s = 300, .grace_s = 10, .stop_fd = signalfd(-1, &term, SFD_CLOEXEC),
                                          .request_fd = go_on[0], .on_request = release });
        ebb_chat_close(c);
        _exit(0);
    }
    script.hold_at = 0;
    close(begin[0]);
    close(ready[1]);
    close(go_on[0]);
    return g;
}

/* Returns when two tokens are saved. */
static void let_begin(const gone *g)
{
    char byte;

    assert_int_equal(write(g->begin, "", 1), 1);
    assert_int_equal(read(g->ready, &byte, 1), 1);
}

static gone leave_behind(void)
{
    gone g = fork_gone(false, "go");

    let_begin(&g);
    return g;
}

/* The answer ends, and so does its process. */
static void let_end(const gone *g)
{
    assert_int_equal(write(g->go_on, "", 1), 1);
    assert_int_equal(waitpid(g->pid, NULL, 0), g->pid);
}

/* Until an event of this kind, however long a busy machine takes. */
static void wait_for(ebb_chat *c, ebb_chat_event_kind kind, char *text, size_t cap)
{
    for (int i = 0; i < 60; i++)
        if (fake_wait(c, kind, text, cap))
            return;
    fail_msg("no event of kind %d", kind);
}

static int64_t only_session(void)
{
    ebb_store *store;
    int64_t id = 0;
    ebb_error err;

    assert_int_equal(ebb_store_open(db, &store, &err), EBB_OK);
    assert_int_equal(ebb_store_last(store, &id, &err), EBB_OK);
    ebb_store_close(store);
    return id;
}

static bool is_marked(int64_t session)
{
    char lock_path[160];

    snprintf(lock_path, sizeof lock_path, "%s-writer-%lld", db, (long long)session);
    return access(lock_path, F_OK) == 0;
}

/* The answer so far, what follows as it is written, its end; only then a model is loaded here. */
static void test_attached(void **state)
{
    gone g = leave_behind();
    char told[256], want[128];
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    ebb_error err;

    (void)state;
    wait_for(c, EBB_EVENT_NOTICE, told, sizeof told);
    snprintf(want, sizeof want, "process %d is still writing this answer", (int)g.pid);
    assert_non_null(strstr(told, want));
    assert_int_equal(ebb_chat_writer_pid(c), g.pid);
    assert_true(ebb_chat_is_busy(c) && !ebb_chat_is_ready(c));
    assert_string_equal(path(c), "[go] [a1.0 a1.1 ]");
    assert_int_equal(ebb_chat_send(c, "now", 3, &err), EBB_BUSY);
    assert_int_equal(ebb_chat_load_model(c, "guide", &err), EBB_BUSY);
    assert_int_equal(ebb_chat_set_budget(c, 0, &err), EBB_BUSY);
    /* the other's saves would undo these */
    assert_int_equal(ebb_chat_set(c, "temp", "0.25", NULL, 0, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "still writes in this session"));
    assert_int_equal(ebb_chat_set(c, "temp", NULL, told, sizeof told, &err), EBB_OK);
    assert_int_equal(ebb_chat_set_title(c, "other", &err), EBB_BUSY);
    assert_int_equal(ebb_chat_pin(c, 0, true, &err), EBB_BUSY);
    assert_int_equal(write(g.go_on, "", 1), 1);
    wait_for(c, EBB_EVENT_TEXT, told, sizeof told);
    assert_string_equal(told, "a1.2 ");
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    assert_int_equal(ebb_chat_message(c, 1)->finish, EBB_FINISH_STOP);
    assert_int_equal(ebb_chat_message(c, 1)->n_ids, 3);
    assert_int_equal(ebb_chat_writer_pid(c), 0);
    wait_for(c, EBB_EVENT_READY, NULL, 0);
    say(c, "more");
    assert_int_equal(ebb_chat_n_messages(c), 4);
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    assert_false(is_marked(only_session()));
    ebb_chat_close(c);
    c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    for (ebb_chat_event ev; fake_next(c, &ev) && ev.kind != EBB_EVENT_READY;)
        assert_int_not_equal(ev.kind, EBB_EVENT_NOTICE);         /* it was seen */
    ebb_chat_close(c);
    close_gone(&g);
}

/* Before a look here, another process that waited goes on behind it: that one's answer is followed then, not called cut
 * off, and no model is loaded beside it. */
static void attach_to_the_next(bool looks_between)
{
    gone second = fork_gone(true, "second"), first = leave_behind();
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    char told[256], want[128];

    wait_for(c, EBB_EVENT_NOTICE, NULL, 0);
    let_end(&first);
    if (looks_between) {
        ebb_chat_follow_poll(c);                 /* nobody writes */
        assert_true(ebb_chat_is_busy(c) && !ebb_chat_is_ready(c));
    }
    let_begin(&second);
    wait_for(c, EBB_EVENT_NOTICE, told, sizeof told);
    snprintf(want, sizeof want, "now process %d is answering", (int)second.pid);
    assert_non_null(strstr(told, want));
    assert_int_equal(ebb_chat_writer_pid(c), second.pid);
    assert_true(ebb_chat_is_busy(c) && !ebb_chat_is_ready(c));
    assert_string_equal(path(c), "[go] [a1.0 a1.1 a1.2 ] [second] [a1.0 a1.1 ]");
    let_end(&second);
    for (ebb_chat_event ev = { 0 }; ev.kind != EBB_EVENT_DONE;) {
        assert_true(fake_next(c, &ev));
        assert_int_not_equal(ev.kind, EBB_EVENT_NOTICE);
    }
    assert_int_equal(newest(c)->finish, EBB_FINISH_STOP);
    wait_for(c, EBB_EVENT_READY, NULL, 0);
    ebb_chat_close(c);
    close_gone(&first);
    close_gone(&second);
}

static void test_attached_to_the_next(void **state)
{
    (void)state;
    attach_to_the_next(false);
}

/* Nor where the other one looks, and begins, later than this one. */
static void test_attached_to_a_later_one(void **state)
{
    (void)state;
    attach_to_the_next(true);
}

/* What is written there is not deleted under the writer's hands. */
static void test_written_is_not_deleted(void **state)
{
    gone g = leave_behind();
    ebb_chat *c = open_ready(NULL);
    char want[160];
    ebb_error err;

    (void)state;
    say(c, "mine");
    assert_int_equal(ebb_chat_delete(c, "go", &err), EBB_BUSY);
    snprintf(want, sizeof want, "process %d still writes an answer in this session: `ebb stop %d` ends that",
             (int)g.pid, (int)g.pid);
    assert_non_null(strstr(err.msg, want));
    assert_string_equal(path(c), "[mine] [a1.0 a1.1 a1.2 ]");
    let_end(&g);
    if (ebb_chat_delete(c, "go", &err) != EBB_OK)
        fail_msg("%s", err.msg);
    ebb_chat_close(c);
    close_gone(&g);
}

/* Ctrl-C here stops it there. */
static void test_attached_stop(void **state)
{
    gone g = leave_behind();
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });

    (void)state;
    ebb_chat_stop(c);
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(path(c), "[go] [a1.0 a1.1 ]");
    assert_int_equal(ebb_chat_message(c, 1)->finish, EBB_FINISH_CANCELED);
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    ebb_chat_close(c);
    close_gone(&g);
}

static size_t count_found(ebb_chat *c, const char *words)
{
    ebb_chat_hit *hits;
    size_t n;
    ebb_error err;

    if (ebb_chat_search(c, words, 10, &hits, &n, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    free(hits);
    return n;
}

/* What a killed one has written is found, though nobody has opened that session since, but nothing that is still being
 * written; and it says that it was cut off as often as it is opened. */
static void test_killed_is_found(void **state)
{
    gone g = leave_behind();
    ebb_chat *c = open_ready(NULL);
    char told[256];

    (void)state;
    assert_int_equal(count_found(c, "a1.1"), 0);
    assert_int_equal(kill(g.pid, SIGKILL), 0);
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    assert_int_equal(count_found(c, "a1.1"), 1);
    ebb_chat_close(c);
    for (int i = 0; i < 2; i++) {
        c = open_chat(&(ebb_chat_opts){ .continue_last = true });
        wait_for(c, EBB_EVENT_NOTICE, told, sizeof told);
        assert_string_equal(told, "the last answer was cut off; /continue resumes it");
        assert_int_equal(ebb_chat_message(c, 1)->finish, EBB_FINISH_CUT_OFF);
        ebb_chat_close(c);
    }
    close_gone(&g);
}

/* Whether another process could stop the answer that this one writes in the session. */
static bool is_reachable(int64_t session)
{
    char lock_path[160];
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = -1;

        snprintf(lock_path, sizeof lock_path, "%s-writer-%lld", db, (long long)session);
        _exit(ebb_file_open(lock_path, EBB_FILE_READ, &fd, NULL) == EBB_OK && ebb_file_signal_holder(fd, 0) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A search meanwhile leaves an answer of one's own within the reach of others, and under way. */
static void test_search_while_answering(void **state)
{
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    ebb_chat *c;

    (void)state;
    if (process < 0)                             /* before Linux 5.3, and under valgrind 3.19 */
        skip();
    close(process);
    c = open_ready(NULL);
    script.hold_at = 3;
    send(c, "go");
    for (ebb_chat_event ev; newest(c)->n_ids < 2;)
        fake_next(c, &ev);
    ebb_chat_save(c, true);
    assert_true(is_reachable(only_session()));
    assert_int_equal(count_found(c, "a1.1"), 0);
    assert_true(is_reachable(only_session()));
    script.hold_at = 0;
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    assert_int_equal(count_found(c, "a1.1"), 1);
    ebb_chat_close(c);
}

/* kill -9 there: the lock goes with it, and what was saved goes on here. */
static void test_attached_killed(void **state)
{
    gone g = leave_behind();
    char told[256];
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    ebb_error err;

    (void)state;
    wait_for(c, EBB_EVENT_NOTICE, NULL, 0);
    assert_int_equal(kill(g.pid, SIGKILL), 0);
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    wait_for(c, EBB_EVENT_NOTICE, told, sizeof told);
    assert_string_equal(told, "the last answer was cut off; /continue resumes it");
    assert_int_equal(count_found(c, "a1.1"), 1);
    wait_for(c, EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_continue(c, &err), EBB_OK);
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    assert_false(is_marked(only_session()));
    ebb_chat_close(c);
    close_gone(&g);
}

/* Who looks on may leave at any time; the answer goes on. */
static void test_attached_leaves(void **state)
{
    gone g = leave_behind();
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });

    (void)state;
    wait_for(c, EBB_EVENT_CHANGED, NULL, 0);
    assert_true(ebb_chat_linger(c, &(ebb_linger){ .limit_s = 300, .grace_s = 300, .stop_fd = -1, .request_fd = -1 }));
    alarm(0);
    ebb_chat_close(c);
    assert_true(is_marked(only_session()));
    c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(ebb_chat_writer_pid(c), g.pid);
    assert_int_equal(write(g.go_on, "", 1), 1);
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(path(c), "[go] [a1.0 a1.1 a1.2 ]");
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    ebb_chat_close(c);
    close_gone(&g);
}

/* Another terminal, and the one that writes has its own still; there the chat goes on. */
static void test_attached_elsewhere(void **state)
{
    int ready[2], end[2];
    char byte;
    pid_t pid;
    ebb_chat *c;
    ebb_error err;

    (void)state;
    script.hold_at = 3;
    assert_true(pipe(ready) == 0 && pipe(end) == 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        c = open_ready(NULL);
        send(c, "go");
        for (ebb_chat_event ev; ebb_chat_message(c, 1)->n_ids < 2;)
            fake_next(c, &ev);
        ebb_chat_save(c, true);
        if (write(ready[1], "", 1) != 1 || read(end[0], &byte, 1) != 1)
            _exit(9);
        script.hold_at = 0;
        while (ebb_chat_is_busy(c))
            fake_wait(c, EBB_EVENT_DONE, NULL, 0);
        if (write(ready[1], "", 1) != 1 || read(end[0], &byte, 1) != 1)
            _exit(9);
        ebb_chat_close(c);
        _exit(0);
    }
    script.hold_at = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    c = open_ready(NULL);                        /* one with a model, which is to open that session */
    assert_int_equal(ebb_chat_load(c, "go", &err), EBB_OK);
    assert_int_equal(ebb_chat_writer_pid(c), pid);
    assert_int_equal(write(end[1], "", 1), 1);
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    assert_string_equal(path(c), "[go] [a1.0 a1.1 a1.2 ]");
    assert_int_equal(ebb_chat_writer_pid(c), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(kill(pid, 0), 0);           /* it is there still, and has nothing to say */
    say(c, "more");
    assert_int_equal(ebb_chat_n_messages(c), 4);
    ebb_chat_close(c);
    assert_int_equal(write(end[1], "", 1), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(end[i]);
    }
}

/* A session with a template of its own leaves a server that was found for the model here, which waits as well. */
static void test_attached_from_a_found_engine(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    gone g;

    (void)state;
    assert_int_equal(ebb_chat_set_template(c, "chatml", &err), EBB_OK);
    say(c, "before");
    ebb_chat_close(c);
    g = fork_gone(true, "go");
    let_begin(&g);
    c = open_ready(&(ebb_chat_opts){ .engine_name = "http://127.0.0.1:1", .here_model = "guide" });
    assert_int_equal(ebb_chat_load(c, "before", &err), EBB_OK);
    assert_int_equal(ebb_chat_writer_pid(c), g.pid);
    assert_non_null(ebb_chat_engine(c));
    assert_string_equal(script.opened, "- + -");
    assert_int_equal(write(g.go_on, "", 1), 1);
    wait_for(c, EBB_EVENT_DONE, NULL, 0);
    wait_for(c, EBB_EVENT_READY, NULL, 0);
    assert_null(ebb_chat_engine(c));
    assert_string_equal(script.opened, "guide + -");
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    ebb_chat_close(c);
    close_gone(&g);
}

/* Of two who want to ask behind one answer, one does, and the other one waits for that answer, too. */
static void test_turns(void **state)
{
    gone g = leave_behind();
    ebb_chat *c[2];
    ebb_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        c[i] = open_chat(&(ebb_chat_opts){ .continue_last = true, .is_unattended = true });
        assert_int_equal(ebb_chat_take_turn(c[i], &err), EBB_BUSY);
        assert_int_equal(ebb_chat_writer_pid(c[i]), g.pid);
    }
    assert_int_equal(write(g.go_on, "", 1), 1);
    for (int i = 0; i < 2; i++)
        wait_for(c[i], EBB_EVENT_READY, NULL, 0);
    assert_int_equal(ebb_chat_take_turn(c[0], &err), EBB_OK);
    assert_int_equal(ebb_chat_take_turn(c[1], &err), EBB_BUSY);
    assert_int_equal(ebb_chat_writer_pid(c[1]), getpid());  /* its own number is no mark: PID namespaces */
    say(c[0], "second");
    wait_for(c[1], EBB_EVENT_DONE, NULL, 0);
    assert_int_equal(ebb_chat_take_turn(c[1], &err), EBB_OK);
    say(c[1], "third");
    assert_string_equal(path(c[1]), "[go] [a1.0 a1.1 a1.2 ] [second] [a1.0 a1.1 a1.2 ] [third] [a2.0 a2.1 a2.2 ]");
    assert_int_equal(waitpid(g.pid, NULL, 0), g.pid);
    ebb_chat_close(c[0]);
    ebb_chat_close(c[1]);
    close_gone(&g);
}

/* What others have said since the session was opened comes before, also where the session is new to both. */
static void test_turn_after_others(void **state)
{
    ebb_chat *c[3];
    ebb_error err;

    (void)state;
    for (int i = 0; i < 3; i++)
        c[i] = open_ready(&(ebb_chat_opts){ .session_name = "talk", .is_unattended = true });
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb_chat_take_turn(c[i], &err), EBB_OK);
        say(c[i], i == 0 ? "first" : i == 1 ? "second" : "third");
        assert_int_equal(ebb_chat_n_messages(c[i]), 2 * (i + 1));
    }
    assert_int_equal(ebb_chat_take_turn(c[0], &err), EBB_OK);
    say(c[0], "fourth");
    assert_int_equal(ebb_chat_n_messages(c[0]), 8);
    for (int i = 0; i < 3; i++)
        ebb_chat_close(c[i]);
}

/* Of two who begin a session of one name at once, one does, and the other one comes behind it, without its own system
 * prompt. */
static void test_a_name_is_begun_once(void **state)
{
    ebb_chat *c[2];
    char told[256];
    ebb_error err;

    (void)state;
    c[0] = open_ready(&(ebb_chat_opts){ .session_name = "talk", .is_unattended = true });
    c[1] = open_ready(&(ebb_chat_opts){ .session_name = "talk", .is_unattended = true, .system = "Be brief.",
                                       .system_given = true });
    assert_int_equal(ebb_chat_take_turn(c[0], &err), EBB_OK);
    assert_int_equal(ebb_chat_take_turn(c[1], &err), EBB_BUSY);  /* before anything is kept */
    say(c[0], "first");
    assert_int_equal(ebb_chat_take_turn(c[1], &err), EBB_OK);
    wait_for(c[1], EBB_EVENT_WARNING, told, sizeof told);
    assert_non_null(strstr(told, "this session has no system prompt: --system is for a new one"));
    say(c[1], "second");
    assert_int_equal(ebb_chat_session_id(c[0]), ebb_chat_session_id(c[1]));
    assert_string_equal(path(c[1]), "[first] [a1.0 a1.1 a1.2 ] [second] [a2.0 a2.1 a2.2 ]");
    for (int i = 0; i < 2; i++)
        ebb_chat_close(c[i]);
}

/* What has no answer behind it leaves the session to others. */
static void test_forgetting_holds_nobody(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .is_unattended = true });
    ebb_error err;

    (void)state;
    for (int i = 0; i < 4; i++)
        say(c, "go");
    if (ebb_chat_free_context(c, EBB_OVERFLOW_FORGET, 1, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_false(is_marked(only_session()));
    ebb_chat_close(c);
}

/* A file that a killed process has left is no process, whatever number stands in it. */
static void test_stale_mark(void **state)
{
    char lock_path[160];
    ebb_chat *c = open_ready(NULL);
    FILE *f;

    (void)state;
    say(c, "go");
    ebb_chat_close(c);
    snprintf(lock_path, sizeof lock_path, "%s-writer-%lld", db, (long long)only_session());
    f = fopen(lock_path, "w");
    assert_non_null(f);
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(ebb_chat_writer_pid(c), 0);
    assert_false(is_marked(only_session()));
    wait_for(c, EBB_EVENT_READY, NULL, 0);
    ebb_chat_close(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_finished_unseen), T(test_limit), T(test_no_orphan),
                                        T(test_not_stopped_by_chance),
                                        T(test_locked_again), T(test_attached), T(test_attached_to_the_next),
                                        T(test_attached_to_a_later_one),
                                        T(test_written_is_not_deleted),
                                        T(test_attached_stop), T(test_attached_killed), T(test_killed_is_found),
                                        T(test_search_while_answering),
                                        T(test_attached_leaves),
                                        T(test_attached_elsewhere), T(test_attached_from_a_found_engine),
                                        T(test_stale_mark), T(test_turns),
                                        T(test_turn_after_others), T(test_a_name_is_begun_once),
                                        T(test_forgetting_holds_nobody) };

    return cmocka_run_group_tests_name("chat away", tests, NULL, NULL);
}
