/* kill -9 at any moment: what was shown as finished stands, and of the answer under
 * way no more than the last second is gone. */
#include "ebb_test.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "fake.h"
#include "store_sql.h"

enum { KILLS = 20, N_TOKENS = 120, DELAY_US = 200 };

/* What the child tells: an answer is finished, or has so many tokens now. */
typedef struct report {
    int64_t message;             /* its row, once it is finished; else 0 */
    uint64_t at_ns;
    uint32_t n_ids;
} report;

static char dir[64], db[96];

static ebb_chat *open_chat(fake_script *script)
{
    ebb_chat_parts parts = fake_parts(script);
    ebb_chat_opts o = { .store_path = db, .continue_last = true, .sampling = parts.default_sampling };
    ebb_chat *c;

    return ebb_chat_open_with(&o, &parts, &c, NULL) == EBB_OK ? c : NULL;
}

/* Talk until killed. */
static void child(int out, unsigned delay_us)
{
    static fake_script script = { .n_tokens = N_TOKENS, .fingerprint = "model" };
    ebb_chat *c;
    ebb_chat_event ev;

    script.delay_us = delay_us;
    c = open_chat(&script);
    while (c && fake_next(c, &ev)) {
        size_t n = ebb_chat_n_messages(c);
        const ebb_message *m = n ? ebb_chat_message(c, n - 1) : NULL;
        report r = { .at_ns = ebb_clock_ns() };

        if (ev.kind == EBB_EVENT_DONE)
            r.message = m->id;
        if (m && (ev.kind == EBB_EVENT_DONE || ev.kind == EBB_EVENT_TEXT)) {
            r.n_ids = (uint32_t)m->n_ids;
            if (write(out, &r, sizeof r) != sizeof r)
                break;
        }
        if ((ev.kind == EBB_EVENT_DONE || ev.kind == EBB_EVENT_READY) && ebb_chat_send(c, "more", 4, NULL) != EBB_OK)
            break;
    }
    _exit(1);
}

static void check_sound(sqlite3 *h)
{
    sqlite3_stmt *q;

    assert_int_equal(sqlite3_prepare_v2(h, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
    sqlite3_finalize(q);
    assert_int_equal(sqlite3_exec(h, "INSERT INTO search (search) VALUES ('integrity-check')", NULL, NULL, NULL), SQLITE_OK);
}

static const ebb_node *find(const ebb_tree *t, int64_t id)
{
    const ebb_node *n = ebb_tree_find(t, id);

    assert_non_null(n);
    return n;
}

/* One child, killed after ms; every report of it is held against the store. */
static void kill_one(unsigned ms, unsigned delay_us)
{
    int pipes[2], status;
    uint64_t killed_ns, n_saved = 0;
    uint32_t n_second_old = 0;
    ebb_store *s;
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;
    report r;
    int64_t id;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(pipes[1], delay_us);
    close(pipes[1]);
    fake_sleep(ms * 1000);
    killed_ns = ebb_clock_ns();
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));

    if (ebb_store_open(db, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    check_sound(s->db);
    if (ebb_store_last(s, &id, &err) == EBB_OK)
        assert_int_equal(ebb_store_load(s, id, &f, &t, &err), EBB_OK);
    while (read(pipes[0], &r, sizeof r) == sizeof r) {
        if (r.message) {
            const ebb_node *n = find(&t, r.message);
            assert_int_equal(n->m.finish, EBB_FINISH_STOP);
            assert_int_equal(n->m.n_ids, N_TOKENS);
            n_second_old = 0;
        } else if (r.at_ns + 1000000000u < killed_ns) {
            n_second_old = r.n_ids;
        }
    }
    if (ebb_tree_leaf(&t))
        n_saved = ebb_tree_leaf(&t)->m.role == EBB_ROLE_ASSISTANT ? ebb_tree_leaf(&t)->m.n_ids : 0;
    assert_true(n_saved >= n_second_old);
    close(pipes[0]);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/ebb-kill-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(db, sizeof db, "%s/sessions.db", dir);
    return 0;
}

static int teardown(void **state)
{
    char cmd[96];

    (void)state;
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}

static void test_random_moments(void **state)
{
    (void)state;
    srandom((unsigned)getpid());
    for (int i = 0; i < KILLS; i++)
        kill_one(5 + (unsigned)random() % 120, DELAY_US);
}

/* A slow answer: its tokens are there although no turn has ended. */
static void test_under_way(void **state)
{
    (void)state;
    kill_one(2300, 40000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_moments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_under_way, setup, teardown),
    };
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
