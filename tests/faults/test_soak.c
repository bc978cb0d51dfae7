/* Everything at once: two programs lead conversations in one store, on a disk that fills up, under a clock that
 * jumps, with budgets that change, stopped and killed at any moment; and what each of them was told to be
 * finished and saved is there, and every answer is the one that its prompt has.
 *
 * EBB_SOAK_S: so many seconds instead of a few dozen rounds; EBB_SOAK_SEED: another course. */
#include "ebb_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "conversation/chat_priv.h"
#include "store/store_sql.h"
#include "support/own_folder.h"
#include "support/small_disk.h"
#include "support/sound_database.h"
#include "support/tiny_model.h"
#include "turn/replay.h"

enum { N_TALKERS = 2, ROUNDS = 30, FACTS_MAX = 1 << 18, SESSIONS_MAX = 1 << 16 };
enum { DISK_KIB = 48 * 1024, KV_BYTES = 8 << 20 };

static char dir[64], disk[80], db[120], kv[120], model[120];

/* -- What must be there --------------------------------------------------------------------------- */

/* The first n bytes of a message, which may have grown since. */
typedef struct fact {
    _Atomic int64_t  message;    /* its row; 0: a free place */
    _Atomic int64_t  session;
    _Atomic uint64_t text;       /* n above the lower bits of its hash: one word, for several write it */
} fact;

enum { HASH_BITS = 40 };

/* Shared by all processes: what one of them knew outlives it. */
typedef struct shared {
    fact             facts[FACTS_MAX];   /* by row */
    atomic_bool      is_deleted[SESSIONS_MAX];   /* was to be deleted: nothing is promised any more */
    _Atomic int64_t  clock_ms;           /* that the clock is ahead */
    _Atomic uint64_t n_turns, n_actions;
    _Atomic uint64_t beats[N_TALKERS];
} shared;

static shared *all;

/* The system's clock, for everything in this process. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);

    if (rc == 0 && clock == CLOCK_REALTIME && all)
        t->tv_sec += atomic_load(&all->clock_ms) / 1000;
    return rc;
}

static uint64_t hash_text(const char *s, uint64_t n)
{
    uint64_t h = 0xCBF29CE484222325u;

    for (uint64_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001B3u;
    return n << HASH_BITS | (h & ((1ull << HASH_BITS) - 1));
}

/* The longest text that anybody was told to be saved counts: a message only grows. */
static void put_fact(int64_t session, const ebb_message *m)
{
    fact *f = &all->facts[m->id % FACTS_MAX];
    uint64_t is = hash_text(m->text, m->n_text), was = atomic_load(&f->text);

    atomic_store(&f->session, session);
    while (was >> HASH_BITS < m->n_text && !atomic_compare_exchange_weak(&f->text, &was, is))
        ;
    atomic_store(&f->message, m->id);
}

/* All that is finished is saved: the chat says so. */
static void note_saved(const ebb_chat *c)
{
    if (c->saving.is_unsaved || !c->store || c->facts.id <= 0)
        return;
    for (size_t i = 0; i < c->tree.n_nodes; i++) {
        const ebb_node *node = c->tree.nodes[i];

        if (!node->is_dirty && node->m.id > 0 && node->m.n_text > 0 && node->m.role != EBB_ROLE_NOTE &&
            (node->m.role != EBB_ROLE_ASSISTANT || node->m.finish != EBB_FINISH_NONE))
            put_fact(c->facts.id, &node->m);
    }
}

/* -- A program that talks ---------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static ebb_chat *open_chat(uint64_t *seed)
{
    ebb_chat_opts o = {
        .model_path = model, .store_path = db, .continue_last = next_random(seed) % 2, .overflow = EBB_OVERFLOW_FORGET,
        .overflow_given = true, .is_unattended = true, .n_predict = 4 + (uint32_t)(next_random(seed) % 24),
        .engine = { .n_ctx = 512, .n_threads = 1 + (uint32_t)(next_random(seed) % 2), .kv_cache_dir = kv,
                    .kv_cache_bytes = KV_BYTES, .n_batch = next_random(seed) % 2 ? 32 : 0 },
        .sampling = { .temp = 1, .top_k = 40, .top_p = 1, .repeat_penalty = 1 }, .sampling_given = UINT32_MAX,
    };
    ebb_chat *c;

    return ebb_chat_open(&o, &c, NULL) == EBB_OK ? c : NULL;
}

/* One program asks the other to stop the answer that it sees growing. */
static volatile sig_atomic_t is_to_stop;

static void on_stop(int number)
{
    (void)number;
    is_to_stop = 1;
}

/* What comes until nothing is under way, or n events. */
static void pump(ebb_chat *c, int who, unsigned n)
{
    ebb_chat_event ev;

    while (n-- > 0) {
        struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };

        atomic_fetch_add(&all->beats[who], 1);
        if (is_to_stop) {
            is_to_stop = 0;
            ebb_chat_stop(c);
        }
        if (!ebb_chat_event_next(c, &ev)) {
            if (ebb_chat_is_ready(c) && !ebb_chat_is_busy(c))
                return;
            poll(&p, 1, 1000);
            continue;
        }
        if (ev.kind == EBB_EVENT_DONE) {
            note_saved(c);
            atomic_fetch_add(&all->n_turns, 1);
        }
        if (ev.kind == EBB_EVENT_ERROR && !ebb_chat_is_ready(c))
            return;
    }
}

static void load_some(ebb_chat *c, uint64_t *seed)
{
    ebb_session_row *rows = NULL;
    char name[32];
    size_t n = 0;

    if (ebb_chat_list(c, &rows, &n, NULL) == EBB_OK && n) {
        snprintf(name, sizeof name, "%lld", (long long)rows[next_random(seed) % (n < 12 ? n : 12)].id);
        (void)!ebb_chat_load(c, name, NULL);
    }
    free(rows);
}

static void delete_this(ebb_chat *c)
{
    int64_t id = c->facts.id;

    if (id <= 0 || ebb_chat_is_busy(c))
        return;
    atomic_store(&all->is_deleted[id % SESSIONS_MAX], true);
    (void)!ebb_chat_delete(c, "", NULL);
}

static void search(ebb_chat *c)
{
    ebb_chat_hit *hits = NULL;
    size_t n;

    if (ebb_chat_search(c, "question", 20, &hits, &n, NULL) == EBB_OK)
        free(hits);
}

static void cut(ebb_chat *c)
{
    const ebb_message *m = ebb_chat_n_messages(c) ? ebb_chat_message(c, ebb_chat_n_messages(c) - 1) : NULL;
    char *text = m && m->role == EBB_ROLE_ASSISTANT && m->n_text > 4 ? strndup(m->text, m->n_text / 2) : NULL;

    if (text)
        (void)!ebb_chat_cut(c, text, strlen(text), NULL);
    free(text);
}

static void export_it(ebb_chat *c, int who, uint64_t *seed)
{
    char path[160];

    snprintf(path, sizeof path, "%s/export-%d-%llu.json", disk, who, (unsigned long long)(next_random(seed) % 8));
    unlink(path);
    (void)!ebb_chat_export(c, path, NULL);
}

static void act(ebb_chat *c, int who, uint64_t *seed)
{
    static unsigned n;
    size_t n_messages = ebb_chat_n_messages(c);
    uint64_t which = next_random(seed) % 100;
    char text[200], label[8];

    snprintf(text, sizeof text, "question %u of %d: %.*s", ++n, (int)getpid(), (int)(next_random(seed) % 90),
             "the weather is fine, and so is everything else that can be seen from here, in the inn and out");
    snprintf(label, sizeof label, "%llu", (unsigned long long)(1 + next_random(seed) % 6));
    if (which < 40)
        (void)!ebb_chat_send(c, text, strlen(text), NULL);
    else if (which < 46)
        (void)!ebb_chat_retry(c, NULL);
    else if (which < 52 && n_messages)
        (void)!ebb_chat_edit(c, next_random(seed) % n_messages, text, strlen(text), NULL);
    else if (which < 57)
        (void)!ebb_chat_undo(c, NULL);
    else if (which < 59)
        (void)!ebb_chat_redo(c, NULL);
    else if (which < 63)
        (void)!ebb_chat_continue(c, NULL);
    else if (which < 67)
        cut(c);
    else if (which < 71)
        (void)!ebb_chat_go(c, label, NULL);
    else if (which < 74 && n_messages)
        (void)!ebb_chat_branch(c, next_random(seed) % n_messages, NULL);
    else if (which < 78)
        (void)!ebb_chat_new_session(c, NULL);
    else if (which < 84)
        load_some(c, seed);
    else if (which < 87)
        delete_this(c);
    else if (which < 88)
        (void)!ebb_chat_undelete(c, NULL);
    else if (which < 90)
        search(c);
    else if (which < 93)
        (void)!ebb_chat_set_budget(c, next_random(seed) % 3 ? (uint64_t)(8 + next_random(seed) % 64) << 20 : 0, NULL);
    else if (which < 95)
        (void)!ebb_chat_set_title(c, text, NULL);
    else if (which < 97 && n_messages)
        (void)!ebb_chat_pin(c, next_random(seed) % n_messages, next_random(seed) % 2, NULL);
    else
        export_it(c, who, seed);
    atomic_fetch_add(&all->n_actions, 1);
}

/* Talk until killed; now and then the program ends in peace and begins again. */
static void talk(int who, uint64_t seed)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, on_stop);
    for (;;) {
        ebb_chat *c = open_chat(&seed);

        atomic_fetch_add(&all->beats[who], 1);
        if (!c) {
            poll(NULL, 0, 20);
            continue;
        }
        pump(c, who, UINT32_MAX);
        for (unsigned n = 5 + (unsigned)(next_random(&seed) % 60); ebb_chat_is_ready(c) && n > 0; n--) {
            act(c, who, &seed);
            pump(c, who, next_random(&seed) % 3 ? UINT32_MAX : (unsigned)(next_random(&seed) % 20));
            if (next_random(&seed) % 4 == 0)
                ebb_chat_stop(c);
        }
        ebb_chat_close(c);
    }
}

/* -- Who holds it against the store ---------------------------------------------------------------------- */

static pid_t talkers[N_TALKERS];
static uint64_t course = 88172645463325252u, n_checked, n_replayed, n_kills, n_stops, n_fills, n_jumps;

static void begin_talker(int who)
{
    uint64_t seed = next_random(&course) | 1;

    talkers[who] = fork();
    assert_true(talkers[who] >= 0);
    if (talkers[who] == 0) {
        talk(who, seed);
        _exit(1);
    }
}

static void end_talker(int who)
{
    int status;

    if (waitpid(talkers[who], &status, WNOHANG) == 0) {
        kill(talkers[who], SIGKILL);
        assert_int_equal(waitpid(talkers[who], &status, 0), talkers[who]);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            return;
    }
    fail_msg("a program has ended by itself: %s %d", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void check_fact(sqlite3_stmt *q, const fact *f)
{
    int64_t message = atomic_load(&f->message), session = atomic_load(&f->session);
    uint64_t want = atomic_load(&f->text), n = want >> HASH_BITS;
    const char *text;

    if (message == 0 || atomic_load(&all->is_deleted[session % SESSIONS_MAX]))
        return;
    sqlite3_bind_int64(q, 1, message);
    if (sqlite3_step(q) != SQLITE_ROW)
        fail_msg("message %lld of session %lld is lost", (long long)message, (long long)session);
    text = (const char *)sqlite3_column_text(q, 0);
    if (!text || (uint64_t)sqlite3_column_bytes(q, 0) < n || hash_text(text, n) != want)
        fail_msg("message %lld of session %lld had %llu bytes and is another one now: %s", (long long)message,
                 (long long)session, (unsigned long long)n, text ? text : "(none)");
    sqlite3_reset(q);
    n_checked++;
}

static ebb_store *open_store(void)
{
    ebb_store *s;
    ebb_error err;

    if (ebb_store_open(db, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return s;
}

static void hear(void *arg, const ebb_replay_answer *a)
{
    (void)arg;
    if (a->outcome == EBB_REPLAY_DIFFERS)
        fail_msg("message %lld is not the answer that its prompt has: token %u is %d, was %d",
                 (long long)a->message->id, a->n, a->is, a->was);
    n_replayed += a->outcome == EBB_REPLAY_SAME;
}

/* Some conversations computed again, with nothing else of what was there. */
static void replay_some(ebb_store *s)
{
    ebb_engine_opts o = { .n_threads = 1, .no_kv_cache = true };
    ebb_session_row *rows;
    ebb_model *m;
    ebb_error err;
    size_t n;

    assert_int_equal(ebb_model_open(model, &m, &err), EBB_OK);
    assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);
    for (size_t i = 0; i < n && i < 2; i++) {
        ebb_session_facts f = { 0 };
        ebb_tree t = { 0 };

        assert_int_equal(ebb_store_load(s, rows[next_random(&course) % n].id, &f, &t, &err), EBB_OK);
        if (ebb_replay(&t, m, &o, hear, NULL, &err) != EBB_OK)
            fail_msg("%s", err.msg);
        ebb_session_facts_fini(&f);
        ebb_tree_fini(&t);
    }
    free(rows);
    ebb_model_close(m);
}

/* All that must be there is; nobody writes meanwhile. */
static void check_all(void)
{
    ebb_store *s;
    sqlite3_stmt *q;

    for (int i = 0; i < N_TALKERS; i++)
        end_talker(i);
    s = open_store();
    assert_sound(s->db);
    assert_int_equal(sqlite3_prepare_v2(s->db, "SELECT text FROM messages WHERE id = ?", -1, &q, NULL), SQLITE_OK);
    for (size_t i = 0; i < FACTS_MAX; i++)
        check_fact(q, &all->facts[i]);
    sqlite3_finalize(q);
    replay_some(s);
    ebb_store_close(s);
    for (int i = 0; i < N_TALKERS; i++)
        begin_talker(i);
}

static void wait_ms(unsigned most)
{
    poll(NULL, 0, 5 + (int)(next_random(&course) % most));
}

static void jump_clock(void)
{
    static const int64_t hours[] = { 0, 1, -24, 24 * 3650, -24 * 1800 };

    atomic_store(&all->clock_ms, hours[next_random(&course) % 5] * 3600000);
    n_jumps++;
}

static bool has_small_disk;

static void one_fault(void)
{
    int who = (int)(next_random(&course) % N_TALKERS);
    uint64_t which = next_random(&course) % 20;

    wait_ms(150);
    if (which < 6) {
        end_talker(who);
        begin_talker(who);
        n_kills++;
    } else if (which < 11) {
        kill(talkers[who], SIGSTOP);
        wait_ms(400);
        kill(talkers[who], SIGCONT);
        n_stops++;
    } else if (which < 14) {
        jump_clock();
    } else if (which < 18 && has_small_disk && ebb_small_disk_fill(disk)) {
        wait_ms(400);
        ebb_small_disk_empty(disk);
        n_fills++;
    } else if (which >= 18) {
        check_all();
    }
}

/* Each of them has done something in so many seconds, in which this process was not stopped itself. */
static void check_alive(void)
{
    static uint64_t was[N_TALKERS], silent_ns[N_TALKERS], before_ns;
    uint64_t now = ebb_clock_ns(), passed = before_ns && now - before_ns < 1000000000 ? now - before_ns : 0;

    before_ns = now;
    for (int i = 0; i < N_TALKERS; i++) {
        uint64_t beats = atomic_load(&all->beats[i]);

        silent_ns[i] = beats == was[i] ? silent_ns[i] + passed : 0;
        was[i] = beats;
        if (silent_ns[i] > EBB_TEST_WAIT_S * (uint64_t)1000000000)
            fail_msg("a program hangs");
    }
}

/* Nobody is killed meanwhile: on a slow machine a program may need longer than a kill leaves it. */
static void wait_for_turns(uint64_t n)
{
    while (atomic_load(&all->n_turns) < n) {
        wait_ms(100);
        check_alive();
    }
}

static int setup(void **state)
{
    const char *seed = getenv("EBB_SOAK_SEED");

    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-soak-XXXXXX") != 0)
        return -1;
    course ^= seed ? strtoull(seed, NULL, 10) * 0x9E3779B97F4A7C15u : 0;
    snprintf(disk, sizeof disk, "%s/disk", dir);
    snprintf(db, sizeof db, "%s/sessions.db", disk);
    snprintf(kv, sizeof kv, "%s/kv", disk);
    snprintf(model, sizeof model, "%s/tiny.gguf", dir);
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_CACHE_HOME", dir, 1);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mkdir(disk, 0700) != 0 || !ebb_tiny_write(&(ebb_tiny_opts){ .seed = 7 }, model))
        return -1;
    has_small_disk = ebb_small_disk_mount(disk, DISK_KIB);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < N_TALKERS; i++)
        if (talkers[i] > 0)
            kill(talkers[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    ebb_small_disk_unmount(disk);
    return ebb_own_folder_end(dir);
}

static void report(const char *when)
{
    print_message("%s: %llu turns, %llu actions; %llu kills, %llu stops, %llu full disks, %llu jumps of the clock; "
                  "%llu messages found, %llu answers computed again\n", when, (unsigned long long)all->n_turns,
                  (unsigned long long)all->n_actions, (unsigned long long)n_kills, (unsigned long long)n_stops,
                  (unsigned long long)n_fills, (unsigned long long)n_jumps, (unsigned long long)n_checked,
                  (unsigned long long)n_replayed);
}

static void test_everything_at_once(void **state)
{
    const char *s = getenv("EBB_SOAK_S");
    uint64_t begun = ebb_clock_ns(), told = begun, limit = s ? strtoull(s, NULL, 10) * 1000000000u : 0;

    (void)state;
    if (!has_small_disk)
        print_message("no tmpfs can be mounted here: the disk is never full\n");
    for (int i = 0; i < N_TALKERS; i++)
        begin_talker(i);
    for (unsigned i = 0; limit ? ebb_clock_ns() - begun < limit : i < ROUNDS; i++) {
        one_fault();
        check_alive();
        if (ebb_clock_ns() - told > 60000000000u) {
            told = ebb_clock_ns();
            report("so far");
        }
    }
    wait_for_turns(20);                          /* on a machine that is too busy for any */
    while (n_replayed == 0) {
        wait_for_turns(atomic_load(&all->n_turns) + 1);
        check_all();
    }
    check_all();
    report("at the end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_everything_at_once, setup, teardown),
    };
    return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
