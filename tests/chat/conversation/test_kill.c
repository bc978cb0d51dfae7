/* kill -9 at any moment: what was shown as finished stands, and of the answer under
 * way no more than the last second is gone. */
#include "ebb_test.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "chat/conversation/fake_backend.h"
#include "store/store_sql.h"
#include "support/own_folder.h"
#include "support/sound_database.h"

enum { KILLS = 20, N_TOKENS = 120, DELAY_US = 200 };

/* What the child tells: an answer is finished, or has so many tokens now; and how many of them the chat had for a
 * second when it last looked at its clock, however long anything took. */
typedef struct report {
    int64_t  message;            /* its row, once it is finished; else 0 */
    uint32_t n_ids, n_second_old;
} report;

static char dir[64], db[96];

static ebb_chat *open_chat(fake_script *script)
{
    ebb_chat_ops ops = fake_ops(script);
    ebb_chat_opts o = { .store_path = db, .continue_last = true, .sampling = ops.default_sampling };
    ebb_chat *c;

    return ebb_chat_open_with(&o, &ops, &c, NULL) == EBB_OK ? c : NULL;
}

static uint64_t came_ns[N_TOKENS + 1];           /* the nth token of the answer under way */

static uint32_t n_second_old(uint32_t n, uint64_t now)
{
    while (n > 0 && came_ns[n] + 1000000000u > now)
        n--;
    return n;
}

static bool tell(int out, ebb_chat *c, const ebb_chat_event *ev, report *r)
{
    size_t n = ebb_chat_n_messages(c);
    const ebb_message *m = n ? ebb_chat_message(c, n - 1) : NULL;
    bool is_done = ev->kind == EBB_EVENT_DONE;
    uint32_t had = r->n_ids;

    if (!m || (!is_done && ev->kind != EBB_EVENT_TEXT))
        return true;
    r->message = is_done ? m->id : 0;
    for (r->n_ids = (uint32_t)m->n_ids; had < r->n_ids;)
        came_ns[++had] = ebb_clock_ns();
    if (write(out, r, sizeof *r) != sizeof *r)
        return false;
    if (is_done)
        *r = (report){ 0 };
    return true;
}

/* Talk until killed. */
static void child(int out, unsigned delay_us)
{
    static fake_script script = { .n_tokens = N_TOKENS, .fingerprint = "model" };
    ebb_chat *c;
    report r = { 0 };

    script.delay_us = delay_us;
    for (c = open_chat(&script); c;) {
        struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };
        bool looks_at_clock = c->queues.first_ui_event == c->queues.n_ui_events;
        uint64_t now = ebb_clock_ns();
        ebb_chat_event ev;

        if (!ebb_chat_event_next(c, &ev))
            ev.kind = EBB_EVENT_CHANGED, poll(&p, 1, -1);
        if (looks_at_clock)
            r.n_second_old = n_second_old(r.n_ids, now);
        if (!tell(out, c, &ev, &r))
            break;
        if ((ev.kind == EBB_EVENT_DONE || ev.kind == EBB_EVENT_READY) && ebb_chat_send(c, "more", 4, NULL) != EBB_OK)
            break;
    }
    _exit(1);
}

static const ebb_node *find(const ebb_tree *t, int64_t id)
{
    const ebb_node *n = ebb_tree_find(t, id);

    assert_non_null(n);
    return n;
}

/* One child, killed after ms and not before n tokens are a second old; every report of it is held against the store. */
static void kill_one(unsigned ms, unsigned delay_us, uint32_t n_old)
{
    int pipes[2], status;
    uint64_t n_saved = 0;
    ebb_store *s;
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;
    report r = { 0 };
    int64_t id;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(pipes[1], delay_us);
    close(pipes[1]);
    fake_sleep(ms * 1000);
    while (r.n_second_old < n_old)
        assert_int_equal(read(pipes[0], &r, sizeof r), sizeof r);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    if (ebb_store_open(db, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_sound(s->db);
    if (ebb_store_last(s, &id, &err) == EBB_OK)
        assert_int_equal(ebb_store_load(s, id, &f, &t, &err), EBB_OK);
    while (read(pipes[0], &r, sizeof r) == sizeof r)
        if (r.message) {
            const ebb_node *n = find(&t, r.message);
            assert_int_equal(n->m.finish, EBB_FINISH_STOP);
            assert_int_equal(n->m.n_ids, N_TOKENS);
        }
    if (ebb_tree_leaf(&t))
        n_saved = ebb_tree_leaf(&t)->m.role == EBB_ROLE_ASSISTANT ? ebb_tree_leaf(&t)->m.n_ids : 0;
    assert_true(r.message || n_saved >= r.n_second_old);
    close(pipes[0]);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-kill-XXXXXX") != 0)
        return -1;
    snprintf(db, sizeof db, "%s/sessions.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

static void test_random_moments(void **state)
{
    (void)state;
    srandom(7);
    for (int i = 0; i < KILLS; i++)
        kill_one(5 + (unsigned)random() % 120, DELAY_US, 0);
}

/* A slow answer: its tokens are there although no turn has ended. */
static void test_under_way(void **state)
{
    (void)state;
    kill_one(0, 40000, 20);
}

/* While the prompt is read: such answers are none, and the question waits for another. */
static void test_before_the_first_token(void **state)
{
    fake_script script = { .n_tokens = 3, .hold_at = 1, .fingerprint = "killed" };
    ebb_chat *c;
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        if (!(c = open_chat(&script)) || !fake_wait(c, EBB_EVENT_READY, NULL, 0) ||
            ebb_chat_send_several(c, 3, "hi", 2, NULL) != EBB_OK)
            _exit(1);
        _exit(0);                                /* as if killed: nothing is closed */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    script = (fake_script){ .n_tokens = 3, .fingerprint = "killed" };
    for (int i = 0; i < 2; i++) {                /* it is saved as it is shown */
        ebb_chat_close(i ? c : NULL);
        assert_non_null(c = open_chat(&script));
        assert_int_equal(ebb_chat_n_messages(c), 1);
        assert_string_equal(ebb_chat_message(c, 0)->text, "hi");
    }
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    assert_int_equal(ebb_chat_continue(c, NULL), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_DONE, NULL, 0));
    assert_int_equal(ebb_chat_n_messages(c), 2);
    assert_string_equal(ebb_chat_message(c, 1)->text, "a1.0 a1.1 a1.2 ");
    ebb_chat_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_moments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_before_the_first_token, setup, teardown),
    };
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
