/* A store that cannot be saved to or opened: it is said why, nothing is lost, and it goes on once it can. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/folder.h"
#include "store/store_sql.h"

/* A save that fails changes nothing, and the next one brings everything. */
static void check_failed_save(ebb_store *s, ebb_status want, const char *words, void (*mend)(void *), void *arg)
{
    ebb_session_facts f = { .title = "t" }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_error err = { 0 };
    ebb_node *q = say(&t, EBB_ROLE_USER, "q"), *a = say(&t, EBB_ROLE_ASSISTANT, "");

    for (int i = 0; i < 8000; i++)
        assert_true(ebb_node_add_text(a, "long answer ", 12));
    assert_int_equal(ebb_store_save(s, &f, &t, true, &err), want);
    assert_non_null(strstr(err.msg, words));
    assert_true(q->m.id < 0 && a->m.id < 0 && a->m.parent == q->m.id && q->is_dirty && a->is_dirty);
    assert_int_equal(f.id, 0);
    if (mend) {
        mend(arg);
        save(s, &f, &t);
        assert_int_equal(ebb_store_load(s, f.id, &g, &u, &err), EBB_OK);
        assert_int_equal(u.path[1]->m.n_text, 96000);
    }
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
}

static void sql(void *db_handle, const char *text)
{
    assert_int_equal(sqlite3_exec(db_handle, text, NULL, NULL, NULL), SQLITE_OK);
}

static void more_pages(void *store)
{
    sql(((ebb_store *)store)->db, "PRAGMA max_page_count = 100000");
}

/* As another process would do that takes the log away: not while somebody has the database open. */
static int take_log_away(const ebb_store *like)
{
    sqlite3 *other = NULL;
    int rc = sqlite3_open_v2(db, &other, SQLITE_OPEN_READWRITE, like->vfs);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(other, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    sqlite3_close(other);
    return rc;
}

/* A second connection of the same process that comes and goes leaves the first one its locks. */
static void test_beside(void **state)
{
    ebb_store *s = open_db(), *beside;
    ebb_error err;
    int status;
    pid_t pid;

    (void)state;
    talk(s, "one", "q", "a");
    assert_int_equal(ebb_store_open_beside(s, &beside, &err), EBB_OK);
    talk(beside, "two", "q", "a");
    ebb_store_close(beside);
    pid = fork();
    if (pid == 0)
        _exit(take_log_away(s) == SQLITE_BUSY ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    talk(s, "three", "q", "a");
    ebb_store_close(s);
}

static void test_full(void **state)
{
    ebb_store *s = open_db();

    (void)state;
    sql(s->db, "PRAGMA max_page_count = 1");     /* as small as it is now */
    check_failed_save(s, EBB_IO, "full", more_pages, s);
    ebb_store_close(s);
}

static int refusal;              /* errno of writes */

static ssize_t refuse_write(int fd, const void *data, size_t n, off_t at)
{
    (void)fd;
    (void)data;
    (void)n;
    (void)at;
    errno = refusal;
    return -1;
}

/* NULL: the usual one. */
static void set_call(const char *name, sqlite3_syscall_ptr call)
{
    sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    char large[16];

    snprintf(large, sizeof large, "%s64", name);
    files->xSetSystemCall(files, large, call);           /* one of the two is what it uses */
    files->xSetSystemCall(files, name, call);
}

static void allow_writes(void *arg)
{
    (void)arg;
    set_call("pwrite", NULL);
}

static void test_limits(void **state)
{
    static const struct { int refusal; const char *said; } limits[] = {
        { EDQUOT, "the disk is full" }, { EFBIG, "ulimit -f" },
    };
    ebb_store *s = open_db();

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        refusal = limits[i].refusal;
        set_call("pwrite", (sqlite3_syscall_ptr)refuse_write);
        check_failed_save(s, EBB_IO, limits[i].said, allow_writes, NULL);
    }
    ebb_store_close(s);
}

static ssize_t refuse_read(int fd, void *data, size_t n, off_t at)
{
    (void)fd;
    (void)data;
    (void)n;
    (void)at;
    errno = EIO;
    return -1;
}

/* A disk that does not answer has damaged nothing: nobody is told to move the file away, and a save is tried again. */
static void test_a_disk_that_is_gone(void **state)
{
    ebb_session_facts f = { .title = "t" }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_store *s = open_db();
    ebb_error err = { 0 };

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    save(s, &f, &t);
    ebb_store_close(s);
    s = open_db();
    sql(s->db, "PRAGMA shrink_memory");          /* what is cached need not be read */
    set_call("pread", (sqlite3_syscall_ptr)refuse_read);
    assert_int_equal(ebb_store_load(s, f.id, &g, &u, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "cannot be read: Input/output error"));
    set_call("pread", NULL);
    assert_int_equal(ebb_store_load(s, f.id, &g, &u, &err), EBB_OK);
    ebb_session_facts_fini(&f);
    ebb_session_facts_fini(&g);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

static void unlock(void *other)
{
    sql(other, "COMMIT");
}

static void test_locked(void **state)
{
    ebb_store *s = open_db();
    sqlite3 *other;

    (void)state;
    assert_int_equal(sqlite3_open_v2(db, &other, SQLITE_OPEN_READWRITE, s->vfs), SQLITE_OK);
    s->is_impatient = true;
    sql(other, "BEGIN IMMEDIATE");
    check_failed_save(s, EBB_BUSY, "locked", unlock, other);
    sqlite3_close(other);
    ebb_store_close(s);
}

static void test_readonly(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts g = { 0 };
    ebb_tree u = { 0 };
    ebb_error err;
    int64_t id;

    (void)state;
    talk(s, "t", "q", "a");
    s->is_readonly = true;
    check_failed_save(s, EBB_IO, "read-only", NULL, NULL);
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    assert_int_equal(ebb_store_load(s, id, &g, &u, &err), EBB_OK);
    assert_int_equal(ebb_store_rename(s, id, "x", &err), EBB_IO);
    assert_int_equal(ebb_store_delete(s, id, &err), EBB_IO);
    assert_int_equal(unlink(db), 0);             /* then that is what is said: there may be a better one by now */
    assert_int_equal(ebb_store_save(s, &g, &u, true, &err), EBB_NOTFOUND);
    ebb_session_facts_fini(&g);
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

enum { NOBODY = 65534 };         /* root may do everything, so it becomes somebody else */

/* The mode of the file, or of its folder, decides. */
static void check_readonly(mode_t file, mode_t folder, bool has_left_index, bool is_old)
{
    ebb_store *s = open_db();
    bool was_root = geteuid() == 0;
    ebb_error err;
    int64_t id;
    ebb_session_facts g = { 0 };
    ebb_tree u = { 0 };
    ebb_store_hit *hits;
    size_t n;
    char cmd[128], around[112], copy[128];

    talk(s, "t", "q", "a");
    snprintf(copy, sizeof copy, "%s-before-v4", db);
    if (is_old)                                  /* as an ebb of version 4 left it */
        sql(s->db, "ALTER TABLE messages DROP COLUMN engine; ALTER TABLE messages DROP COLUMN about;"
            "ALTER TABLE messages DROP COLUMN first_s; PRAGMA user_version = 4");
    ebb_store_close(s);
    snprintf(around, sizeof around, "%s/state", dir);
    snprintf(cmd, sizeof cmd, "truncate -s 32768 %s-shm", db);
    if (has_left_index)
        assert_int_equal(system(cmd), 0);
    assert_int_equal(chmod(db, file) + chmod(around, folder), 0);
    if (was_root) {
        snprintf(cmd, sizeof cmd, "chown -R %d %s", NOBODY, dir);
        assert_int_equal(system(cmd), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    s = open_db();
    if (has_left_index)                          /* it is neither mapped nor looked at */
        assert_int_equal(s->log[0].inode + s->log[1].inode, 0);
    assert_true(ebb_store_is_readonly(s));
    check_failed_save(s, EBB_IO, "read-only", NULL, NULL);
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    assert_int_equal(ebb_store_load(s, id, &g, &u, &err), EBB_OK);
    assert_int_equal(u.n_path, 2);
    assert_int_equal(ebb_store_search(s, "q", 5, &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    assert_int_not_equal(access(copy, F_OK), 0);
    free(hits);
    ebb_session_facts_fini(&g);
    ebb_tree_fini(&u);
    ebb_store_close(s);
    if (was_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(around, 0700), 0);
}

static void test_readonly_file(void **state)
{
    (void)state;
    check_readonly(0400, 0700, false, false);
}

/* No log can be made there, and none is needed to read. */
static void test_readonly_folder(void **state)
{
    (void)state;
    check_readonly(0600, 0500, false, false);
}

/* A program that was killed, or a copy of the folder, may leave the index of a log. */
static void test_readonly_folder_with_an_index(void **state)
{
    (void)state;
    check_readonly(0600, 0500, true, false);
}

/* A backup, say, from before the format changed: what is there can be read, and stays as it is. */
static void test_readonly_file_that_is_old(void **state)
{
    (void)state;
    check_readonly(0400, 0700, false, true);
}

static void test_readonly_folder_that_is_old(void **state)
{
    (void)state;
    check_readonly(0600, 0500, false, true);
}

/* What is in no folder is kept wherever the program was started. */
static void test_memory_in_a_readonly_folder(void **state)
{
    char here[4096], around[112];
    bool was_root = geteuid() == 0, is_shut;
    ebb_store *s;
    ebb_error err;
    ebb_status st;

    (void)state;
    snprintf(around, sizeof around, "%s/shut", dir);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir(around, 0555) + chmod(dir, 0755) + chdir(around), 0);
    if (was_root)
        assert_int_equal(seteuid(NOBODY), 0);
    is_shut = ebb_file_has_readonly_folder("x");
    st = ebb_store_open(":memory:", &s, &err);
    if (was_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chdir(here), 0);
    assert_true(is_shut && st == EBB_OK);
    assert_false(ebb_store_is_readonly(s));
    talk(s, "t", "q", "a");
    ebb_store_close(s);
}

static void expect_open(ebb_status want, const char *words)
{
    ebb_store *s;
    ebb_error err = { 0 };

    assert_int_equal(ebb_store_open(db, &s, &err), want);
    assert_null(s);
    assert_non_null(strstr(err.msg, words));
    assert_non_null(strstr(err.msg, "sessions.db"));
    assert_null(strchr(err.msg, '\n'));
}

/* What else fcntl does is done. */
static int refuse_lock(int fd, int what, void *arg)
{
    if (what != F_SETLK)
        return fcntl(fd, what, arg);
    errno = ENOSYS;
    return -1;
}

static int refusal_of_map = ENODEV;

static void *refuse_map(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    (void)at;
    (void)n;
    (void)protection;
    (void)flags;
    (void)fd;
    (void)offset;
    errno = refusal_of_map;
    return MAP_FAILED;
}

/* A home on a network, say: what has to be done about it is said. */
static void test_a_file_system_without_locks(void **state)
{
    static const struct { const char *name; sqlite3_syscall_ptr call; } refused[] = {
        { "fcntl", (sqlite3_syscall_ptr)refuse_lock }, { "mmap", (sqlite3_syscall_ptr)refuse_map },
    };
    sqlite3_vfs *files;

    (void)state;
    ebb_store_close(open_db());
    files = sqlite3_vfs_find(NULL);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        files->xSetSystemCall(files, refused[i].name, refused[i].call);
        expect_open(EBB_IO, "XDG_STATE_HOME");
        files->xSetSystemCall(files, refused[i].name, NULL);
        ebb_store_close(open_db());
    }
}

/* Another file system would not help. */
static void test_no_memory_for_the_log(void **state)
{
    sqlite3_vfs *files;

    (void)state;
    ebb_store_close(open_db());
    files = sqlite3_vfs_find(NULL);
    refusal_of_map = ENOMEM;
    files->xSetSystemCall(files, "mmap", (sqlite3_syscall_ptr)refuse_map);
    expect_open(EBB_NOMEM, "no memory");
    files->xSetSystemCall(files, "mmap", NULL);
    refusal_of_map = ENODEV;
    ebb_store_close(open_db());
}

static void write_at(off_t at, const char *bytes, size_t n)
{
    int fd = open(db, O_WRONLY);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void test_garbage(void **state)
{
    static char noise[8192];

    (void)state;
    ebb_store_close(open_db());
    memset(noise, 'x', sizeof noise);
    write_at(0, noise, sizeof noise);
    expect_open(EBB_FORMAT, "not a session database");
}

/* SQLite would call it a disk I/O error. */
static void test_no_file(void **state)
{
    char part[112];

    (void)state;
    ebb_store_close(open_db());
    assert_int_equal(unlink(db), 0);
    assert_int_equal(mkfifo(db, 0600), 0);
    expect_open(EBB_FORMAT, "a named pipe, not a file; move it away");
    assert_int_equal(unlink(db), 0);
    assert_int_equal(mkdir(db, 0700), 0);
    expect_open(EBB_FORMAT, "a folder, not a file");
    assert_int_equal(rmdir(db), 0);
    assert_int_equal(symlink("/dev/null", db), 0);
    expect_open(EBB_FORMAT, "a device, not a file");
    assert_int_equal(unlink(db), 0);
    ebb_store_close(open_db());
    snprintf(part, sizeof part, "%s-wal", db);
    assert_int_equal(mkdir(part, 0700), 0);
    expect_open(EBB_FORMAT, "sessions.db-wal is a folder, not a file; move it away");
    assert_int_equal(rmdir(part), 0);
    ebb_store_close(open_db());
}

static void test_damaged(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;
    ebb_status st;
    static char noise[1 << 16];
    int64_t id;

    (void)state;
    for (int i = 0; i < 50; i++)
        talk(s, "t", "question", "answer");
    ebb_store_close(s);
    memset(noise, 0xa5, sizeof noise);
    write_at(4096, noise, sizeof noise);
    if (ebb_store_open(db, &s, &err) == EBB_OK) {          /* whenever it is noticed, it is said */
        st = ebb_store_last(s, &id, &err);
        if (st == EBB_OK)
            st = ebb_store_load(s, id, &f, &t, &err);
        assert_int_equal(st, EBB_FORMAT);
        ebb_store_close(s);
    }
    assert_non_null(strstr(err.msg, "damaged"));
    assert_int_equal(t.n_nodes, 0);
}

static void test_newer(void **state)
{
    ebb_store *s = open_db();

    (void)state;
    sql(s->db, "PRAGMA user_version = 99");
    ebb_store_close(s);
    expect_open(EBB_UNSUPPORTED, "use that one, or set XDG_STATE_HOME");
}

/* What was written while the clock was half a day ahead, as where it is set to another zone, or a century, is the
 * newest session until something is said elsewhere. */
static void test_a_wrong_clock(void **state)
{
    ebb_session_facts ahead = { .title = "ahead" }, now = { .title = "now" };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_session_row *rows;
    ebb_store *s = open_db();
    ebb_error err;
    int64_t id;
    size_t n;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    say(&u, EBB_ROLE_USER, "q");
    save(s, &now, &u);
    save(s, &ahead, &t);
    for (int i = 0; i < 4; i++) {
        bool is_said = i >= 2;

        if (i == 2) {
            say(&u, EBB_ROLE_USER, "r");
            save(s, &now, &u);
        }
        sql(s->db, i % 2 == 0 ? "UPDATE sessions SET updated_ms = updated_ms + 43200000 WHERE title = 'ahead'"
                              : "UPDATE sessions SET updated_ms = updated_ms + 3155760000000 WHERE title = 'ahead'");
        assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
        assert_int_equal(id, is_said ? now.id : ahead.id);
        assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);
        assert_int_equal(n, 2);
        assert_int_equal(rows[0].id, is_said ? now.id : ahead.id);
        free(rows);
    }
    ebb_session_facts_fini(&ahead);
    ebb_session_facts_fini(&now);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

static void test_foreign_sql(void **state)
{
    static const char *const foreign[] = {
        "PRAGMA user_version = -1",
        "CREATE TRIGGER evil AFTER INSERT ON messages BEGIN DELETE FROM messages; END",
        "CREATE TRIGGER evil AFTER INSERT ON messages BEGIN SELECT count(*) FROM"
        " (WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r); END",
        "DROP TRIGGER search_insert;"
        " CREATE TRIGGER search_insert AFTER INSERT ON messages BEGIN DELETE FROM messages; END",
        "CREATE VIEW evil AS SELECT 1",
        "ALTER TABLE sessions RENAME TO s; CREATE VIEW sessions AS WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL"
        " SELECT x + 1 FROM r) SELECT x id, 'n' name, 't' title, 'm' model, 0 pinned_ms, NULL leaf, NULL settings,"
        " 0 created_ms, 0 updated_ms FROM r",
        "ALTER TABLE sessions DROP COLUMN title;"
        " ALTER TABLE sessions ADD COLUMN title TEXT AS (hex(zeroblob(400000000)))",
        "ALTER TABLE messages ADD COLUMN more INTEGER CHECK (length(hex(zeroblob(400000000))) > 1)",
        "ALTER TABLE messages RENAME TO m; CREATE TABLE Messages (id INTEGER PRIMARY KEY, text TEXT"
        " DEFAULT (hex(zeroblob(400000000))))",
        "ALTER TABLE sessions RENAME TO s; CREATE VIRTUAL TABLE sessions USING fts5 (id, name, title)",
        "CREATE INDEX evil ON messages (hex(zeroblob(400000000)))",
        "CREATE INDEX evil ON messages (text) WHERE text LIKE '%a%b%c%d%e%f%'",
    };
    char cmd[128];

    (void)state;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        ebb_store *s = open_db();

        sql(s->db, foreign[i]);
        ebb_store_close(s);
        expect_open(EBB_FORMAT, i == 0 ? "is not a session database" : "that ebb did not make");
        snprintf(cmd, sizeof cmd, "rm -f %s*", db);
        assert_int_equal(system(cmd), 0);
    }
}

static void test_locked_at_open(void **state)
{
    sqlite3 *other;
    char cmd[128];

    (void)state;
    snprintf(cmd, sizeof cmd, "mkdir -p %s/state", dir);
    assert_int_equal(system(cmd), 0);
    assert_int_equal(sqlite3_open(db, &other), SQLITE_OK);
    sql(other, "CREATE TABLE x (y)");
    sql(other, "BEGIN EXCLUSIVE");
    if (ebb_seal_here())                         /* whoever has a key waits for no database in the clear */
        expect_open(EBB_FORMAT, "in the clear");
    else
        expect_open(EBB_BUSY, "locked");
    sqlite3_close(other);
}

static void test_nowhere_to_write(void **state)
{
    FILE *f;
    char path[96];

    (void)state;
    snprintf(path, sizeof path, "%s/state", dir);
    f = fopen(path, "w");                        /* a file where the directory should be */
    assert_non_null(f);
    fclose(f);
    expect_open(EBB_IO, "state");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_beside), T(test_full), T(test_limits), T(test_a_disk_that_is_gone), T(test_a_file_system_without_locks),
        T(test_no_memory_for_the_log),
        T(test_locked), T(test_readonly), T(test_readonly_file),
        T(test_readonly_folder), T(test_readonly_folder_with_an_index), T(test_memory_in_a_readonly_folder),
        T(test_readonly_file_that_is_old), T(test_readonly_folder_that_is_old), T(test_garbage), T(test_no_file),
        T(test_damaged), T(test_newer), T(test_a_wrong_clock), T(test_foreign_sql), T(test_locked_at_open),
        T(test_nowhere_to_write),
    };
    int failed = cmocka_run_group_tests_name("store: faults", tests, NULL, NULL);

    return failed + run_encrypted("store: faults, encrypted", tests);
}
