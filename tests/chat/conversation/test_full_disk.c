/* The disk is full while an answer comes: the answer goes on, one line names the file, what was stored
 * stands, and when there is room again everything is saved.  Once on a small disk that is full,
 * once with each write of the database refused in turn. */
#include "chat/conversation/chat_fixture.h"

#include "store/store_sql.h"
#include "support/small_disk.h"
#include "support/sound_database.h"

/* -- A disk that is full ---------------------------------------------------------------- */

static int setup_disk(void **state)
{
    static int no_mount;

    *state = NULL;
    if (setup(state) != 0)
        return -1;
    *state = ebb_small_disk_mount(dir, 1024) ? NULL : &no_mount;
    return 0;
}

static int teardown_disk(void **state)
{
    ebb_small_disk_unmount(dir);
    return teardown(state);
}

static void need_disk(void **state)
{
    if (!*state)
        return;
    puts("no tmpfs can be mounted here");
    skip();
}

/* What another program finds in the store. */
static void expect_stored(const char *want)
{
    ebb_store *s;
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;
    ebb_buf got = { 0 };
    int64_t id;

    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    assert_int_equal(ebb_store_load(s, id, &f, &t, &err), EBB_OK);
    for (size_t i = 0; i < t.n_path; i++)
        ebb_buf_addf(&got, "[%.12s]", t.path[i]->m.text);
    assert_string_equal(ebb_buf_text(&got), want);
    ebb_buf_fini(&got);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* A question that does not fit what is left between the pages. */
static void send_big(ebb_chat *c)
{
    char *big = malloc(40001);

    memset(big, 'x', 40000);
    big[40000] = '\0';
    send(c, big);
    free(big);
}

static unsigned count_notices(ebb_chat *c, const char *words, bool until_done)
{
    ebb_chat_event ev;
    unsigned n = 0;

    while (fake_next(c, &ev)) {
        n += ev.kind == EBB_EVENT_NOTICE && strstr(ev.text, words) != NULL;
        if (until_done && ev.kind == EBB_EVENT_DONE)
            break;
        if (!until_done && n > 0)
            break;
    }
    return n;
}

static void test_goes_on(void **state)
{
    ebb_chat *c;
    char text[640];

    need_disk(state);
    c = open_ready(NULL);
    say(c, "kept");
    assert_true(ebb_small_disk_fill(dir));
    send_big(c);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, db));
    assert_non_null(strstr(text, "the disk is full"));
    assert_non_null(strstr(text, "/save ./NAME.json"));
    assert_int_equal(count_notices(c, "full", true), 0);         /* one line, not one for each try */
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    assert_false(ebb_chat_is_saved(c));
    expect_stored("[kept][a1.0 a1.1 a1]");

    ebb_small_disk_empty(dir);
    assert_true(c->saving.retry_ns > 0);
    c->saving.retry_ns = 1;                             /* the time has come */
    ebb_chat_arm_timer(c, 1);
    assert_int_equal(count_notices(c, "saved again", false), 1); /* by itself, nobody asks for it */
    assert_true(c->saving.retry_ns == 0);
    assert_true(ebb_chat_is_saved(c));
    expect_stored("[kept][a1.0 a1.1 a1][xxxxxxxxxxxx][a2.0 a2.1 a2]");
    ebb_chat_close(c);
}

/* It becomes full in the middle of an answer. */
static void test_in_the_middle(void **state)
{
    ebb_chat *c;

    need_disk(state);
    script.n_tokens = 400;
    script.delay_us = 4000;
    c = open_ready(NULL);
    send(c, "go");
    while (ebb_chat_n_messages(c) < 2 || last(c)->n_ids < 20)
        assert_true(fake_wait(c, EBB_EVENT_TEXT, NULL, 0));
    assert_true(ebb_small_disk_fill(dir));
    done(c);
    assert_int_equal(last(c)->n_ids, 400);
    ebb_small_disk_empty(dir);
    ebb_chat_close(c);                           /* saves what is left */
    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(last(c)->n_ids, 400);
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    ebb_chat_close(c);
}

/* Who leaves is told first; a file elsewhere can be written, one here cannot, and leaves nothing behind. */
static void test_leaving(void **state)
{
    char here[96], there[] = "/tmp/ebb-full-XXXXXX.json";
    ebb_chat *c;
    ebb_error err = { 0 };

    need_disk(state);
    c = open_ready(NULL);
    say(c, "kept");
    assert_int_equal(ebb_chat_check_saved(c, &err), EBB_OK);
    assert_true(ebb_small_disk_fill(dir));
    send_big(c);
    done(c);
    snprintf(here, sizeof here, "%s/out.json", dir);
    assert_int_equal(ebb_chat_save_as(c, here, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "out.json"));
    assert_int_not_equal(access(here, F_OK), 0);
    close(mkstemps(there, 5));
    unlink(there);
    assert_int_equal(ebb_chat_save_as(c, there, &err), EBB_OK);
    unlink(there);

    assert_int_equal(ebb_chat_new_session(c, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "not saved"));
    assert_non_null(strstr(err.msg, db));
    assert_non_null(strstr(err.msg, "leaving it all the same loses it"));    /* by whatever command */
    assert_int_equal(ebb_chat_n_messages(c), 4);
    say(c, "more is said");                      /* so it is asked again */
    assert_int_equal(ebb_chat_check_saved(c, &err), EBB_IO);
    assert_int_equal(ebb_chat_check_saved(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_new_session(c, &err), EBB_OK);
    assert_int_equal(ebb_chat_n_messages(c), 0);
    send_big(c);                                 /* of the next one it is said anew */
    assert_int_equal(count_notices(c, "the chat goes on in memory", true), 1);
    ebb_chat_close(c);
}

/* There was no room even for the database. */
static void test_full_at_start(void **state)
{
    ebb_chat *c;
    char text[640];

    need_disk(state);
    assert_true(ebb_small_disk_fill(dir));
    c = open_chat(NULL);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_non_null(strstr(text, db));
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    say(c, "first");
    assert_false(ebb_chat_is_saved(c));
    ebb_small_disk_empty(dir);
    say(c, "second");
    assert_true(ebb_chat_is_saved(c));
    expect_stored("[first][a1.0 a1.1 a1][second][a2.0 a2.1 a2]");
    ebb_chat_close(c);
}

/* -- Each write in turn -------------------------------------------------------------------- */

/* SQLite's file system, but the nth write from now and all after it find no room. */
static struct {
    sqlite3_vfs        vfs;
    sqlite3_vfs       *real;
    struct { const sqlite3_io_methods *real; sqlite3_io_methods with; } methods[4];   /* files of a lock have others */
    int (*write)(sqlite3_file *f, const void *data, int n, sqlite3_int64 at);
    int (*sync)(sqlite3_file *f, int flags);
    int                countdown;        /* 0: never */
    bool               refused;          /* a write was, since the countdown was set */
    bool               syncs_nothing;
} narrow;

static int narrow_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
    if (narrow.countdown == 1) {
        narrow.refused = true;
        return SQLITE_FULL;
    }
    narrow.countdown -= narrow.countdown > 0;
    return narrow.write(f, data, n, at);
}

static int narrow_sync(sqlite3_file *f, int flags)
{
    return narrow.syncs_nothing ? SQLITE_IOERR_FSYNC : narrow.sync(f, flags);
}

static int narrow_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
    int rc = narrow.real->xOpen(narrow.real, name, f, flags, out_flags), i = 0;

    (void)vfs;
    if (rc != SQLITE_OK || !f->pMethods)
        return rc;
    while (narrow.methods[i].real && narrow.methods[i].real != f->pMethods)
        assert_true(++i < 4);
    narrow.methods[i].real = f->pMethods;
    narrow.methods[i].with = *f->pMethods;
    assert_true(!narrow.write || narrow.write == f->pMethods->xWrite);
    narrow.write = f->pMethods->xWrite;
    narrow.methods[i].with.xWrite = narrow_write;
    narrow.sync = f->pMethods->xSync;
    narrow.methods[i].with.xSync = narrow_sync;
    f->pMethods = &narrow.methods[i].with;
    return rc;
}

static int setup_narrow(void **state)
{
    narrow.real = sqlite3_vfs_find(NULL);
    narrow.vfs = *narrow.real;
    narrow.vfs.zName = "narrow";
    narrow.vfs.xOpen = narrow_open;
    narrow.vfs.pNext = NULL;
    return sqlite3_vfs_register(&narrow.vfs, 1) == SQLITE_OK ? setup(state) : -1;
}

static int teardown_narrow(void **state)
{
    narrow.countdown = 0;
    sqlite3_vfs_unregister(&narrow.vfs);
    return teardown(state);
}

/* A turn with no room from its nth write on; false: it has fewer writes.  How many it has depends on time:
 * a long wait lets the answer's beginning be saved by itself. */
static bool turn_without_room(int n)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    size_t had = ebb_chat_n_messages(c);
    bool was_full;

    narrow.refused = false;
    narrow.countdown = n;
    say(c, "a question");
    was_full = narrow.refused;
    assert_int_equal(ebb_chat_is_saved(c), !was_full);
    assert_int_equal(ebb_chat_n_messages(c), had + 2);
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    narrow.countdown = 0;
    if (n % 2)
        say(c, "and another");                   /* saves what was missing, too; else closing does */
    ebb_chat_close(c);

    c = open_ready(&(ebb_chat_opts){ .continue_last = true });
    assert_int_equal(ebb_chat_n_messages(c), had + (n % 2 ? 4 : 2));
    assert_int_equal(last(c)->finish, EBB_FINISH_STOP);
    ebb_chat_close(c);
    return was_full;
}

static void test_each_write(void **state)
{
    ebb_chat *c = open_ready(NULL);
    sqlite3 *raw;
    int n = 1;

    (void)state;
    say(c, "first");
    ebb_chat_close(c);
    while (turn_without_room(n))
        n++;
    assert_true(n > 3);
    assert_int_equal(sqlite3_open(db, &raw), SQLITE_OK);
    assert_sound(raw);
    sqlite3_close(raw);
}

/* What is written never reaches the disk: a save that does not ask for that is none, however often it is tried. */
static void test_no_sync(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err = { 0 };

    (void)state;
    say(c, "kept");
    assert_int_equal(ebb_chat_check_saved(c, &err), EBB_OK);
    narrow.syncs_nothing = true;
    send(c, "and this");
    assert_int_equal(count_notices(c, "the chat goes on in memory", true), 1);
    assert_int_equal(ebb_chat_check_saved(c, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "not saved"));
    assert_false(ebb_chat_is_saved(c));
    narrow.syncs_nothing = false;
    assert_int_equal(ebb_chat_check_saved(c, &err), EBB_OK);
    assert_true(ebb_chat_is_saved(c));
    ebb_chat_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_goes_on, setup_disk, teardown_disk),
        cmocka_unit_test_setup_teardown(test_in_the_middle, setup_disk, teardown_disk),
        cmocka_unit_test_setup_teardown(test_leaving, setup_disk, teardown_disk),
        cmocka_unit_test_setup_teardown(test_full_at_start, setup_disk, teardown_disk),
        cmocka_unit_test_setup_teardown(test_each_write, setup_narrow, teardown_narrow),
        cmocka_unit_test_setup_teardown(test_no_sync, setup_narrow, teardown_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
