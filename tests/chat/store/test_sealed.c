/* An encrypted database: nothing of it can be read, nothing is lost by turning it. */
#include "store_fixture.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/fault.h"
#include "os/file.h"
#include "seal/key_file.h"
#include "store/sealed.h"
#include "store/sealed_vfs.h"
#include "store/store_sql.h"

enum { N_PLANTED = 50, N_LOOKS = 100000 };

static char folder[80];
static ebb_seal *seal;

static int setup_sealed(void **state)
{
    int st = setup(state);

    snprintf(folder, sizeof folder, "%s/state", dir);
    ebb_seal_use_here(NULL);
    return st;
}

static void save_one(ebb_store *s, const char *title, const char *text)
{
    static const int32_t ids[] = { 7654321, 7654322, 7654323 };
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_error err;
    ebb_node *n = ebb_tree_add(&t, NULL, EBB_ROLE_USER, text, strlen(text));

    snprintf(f.title, sizeof f.title, "%s", title);
    assert_true(n && ebb_tree_set_leaf(&t, n));
    assert_true(ebb_node_set_ids(n, ids, 3, (const uint8_t *)"0123456789abcdef"));
    n->m.finish = EBB_FINISH_STOP;
    if (ebb_store_save(s, &f, &t, true, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

static void plant(ebb_store *s)
{
    char title[40], text[80];

    for (int i = 0; i < N_PLANTED; i++) {
        snprintf(title, sizeof title, "Kumquat title %d", i);
        snprintf(text, sizeof text, "Sentence %d of the xylophon affair", i);
        save_one(s, title, text);
    }
}

static void expect_planted(void)
{
    const ebb_seal *before = ebb_seal_here();
    ebb_store_hit *hits;
    ebb_error err;
    ebb_store *s;
    size_t n;

    ebb_seal_use_here(ebb_stored_how(db) == EBB_STORED_PLAIN ? NULL : before);
    s = open_db();
    ebb_seal_use_here(before);
    if (ebb_store_search(s, "xylophon affair", 100, &hits, &n, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(n, N_PLANTED);
    free(hits);
    ebb_store_close(s);
}

/* How many files of the folder have it. */
static int n_files_with(const char *what, size_t n)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    int found = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        ebb_buf text = { 0 };
        char path[400];

        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && ebb_file_slurp(path, 64 << 20, &text, NULL) == EBB_OK)
            found += text.len > 0 && memmem(text.data, text.len, what, n) != NULL;
        ebb_buf_fini(&text);
    }
    closedir(d);
    return found;
}

static int n_readable(void)
{
    static const int32_t ids[] = { 7654321, 7654322 };

    return n_files_with("xylophon", 8) + n_files_with("Kumquat", 7) + n_files_with((const char *)ids, sizeof ids) +
           n_files_with("CREATE TABLE", 12);
}

static void expect_ok(ebb_status st, const ebb_error *err)
{
    if (st != EBB_OK)
        fail_msg("%s", err->msg);
}

static void test_nothing_to_read(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s;

    (void)state;
    s = open_db();
    plant(s);
    assert_true(n_readable() >= 4);              /* so it would be seen */
    ebb_store_close(s);
    assert_int_equal(ebb_stored_how(db), EBB_STORED_PLAIN);
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(ebb_stored_how(db), EBB_STORED_SEALED);
    assert_int_equal(n_readable(), 0);
    ebb_seal_use_here(seal);
    expect_planted();
    s = open_db();
    save_one(s, "Kumquat title", "another xylophon affair");
    assert_int_equal(n_readable(), 0);           /* with its log */
    expect_ok(ebb_store_scrub(s, true, &err), &err);
    assert_int_equal(n_readable(), 0);
    ebb_store_close(s);
    assert_int_equal(n_readable(), 0);
}

/* As the program does it, which holds PATH-lock for its files of K and V, too. */
static void test_new_one(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s;
    int lock;

    (void)state;
    ebb_seal_use_here(seal);
    expect_ok(ebb_file_mkdirs(folder, &err), &err);
    expect_ok(ebb_stored_lock(db, false, &lock, &err), &err);
    s = open_db();
    assert_int_equal(ebb_stored_how(db), EBB_STORED_SEALED);
    plant(s);
    ebb_store_close(s);
    ebb_file_close(lock);
    assert_int_equal(n_readable(), 0);
    expect_planted();
}

/* Several that find none make one, and none takes it from another. */
static void test_new_one_for_several(void **state)
{
    pid_t children[4];
    ebb_store *s;
    ebb_store_hit *hits;
    size_t n;
    int status;

    (void)state;
    ebb_seal_use_here(seal);
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            s = open_db();
            save_one(s, "Kumquat title", "a xylophon affair");
            ebb_store_close(s);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++)
        assert_true(waitpid(children[i], &status, 0) == children[i] && status == 0);
    assert_int_equal(ebb_stored_how(db), EBB_STORED_SEALED);
    s = open_db();
    assert_int_equal(ebb_store_search(s, "xylophon affair", 10, &hits, &n, NULL), EBB_OK);
    assert_int_equal(n, 4);
    free(hits);
    ebb_store_close(s);
}

/* Others make it and take it away between two looks of one function. */
static void test_looks_while_it_comes_and_goes(void **state)
{
    ebb_error err = { 0 };
    ebb_stored how = EBB_STORED_NOTHING;
    ebb_status st = EBB_OK;
    pid_t child;

    (void)state;
    expect_ok(ebb_file_mkdirs(folder, &err), &err);
    child = fork();
    while (child == 0) {
        int fd;

        if (ebb_file_open(db, EBB_FILE_CREATE, &fd, NULL) != EBB_OK || close(fd) != 0 || unlink(db) != 0)
            _exit(1);
    }
    for (unsigned i = 0; st == EBB_OK && how == EBB_STORED_NOTHING && i < N_LOOKS / ebb_test_one_in(10); i++)
        st = ebb_stored_look(db, &how, &err);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    expect_ok(st, &err);
    assert_int_equal(how, EBB_STORED_NOTHING);
}

static void test_there_and_back(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s = open_db();

    (void)state;
    plant(s);
    ebb_store_close(s);
    for (int round = 0; round < 3; round++) {
        ebb_seal_use_here(seal);
        expect_ok(ebb_store_encrypt(db, seal, &err), &err);
        expect_ok(ebb_store_encrypt(db, seal, &err), &err);      /* it is already */
        expect_planted();
        expect_ok(ebb_store_decrypt(db, seal, &err), &err);
        expect_ok(ebb_store_decrypt(db, seal, &err), &err);
        ebb_seal_use_here(NULL);
        assert_int_equal(ebb_stored_how(db), EBB_STORED_PLAIN);
        expect_planted();
    }
}

/* A writer that is killed leaves its log. */
static void save_and_be_killed(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        ebb_store *s = open_db();

        save_one(s, "Kumquat", "the last xylophon affair");
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static size_t n_last_affairs(void)
{
    ebb_store *s = open_db();
    ebb_store_hit *hits;
    size_t n;

    assert_int_equal(ebb_store_search(s, "last xylophon", 10, &hits, &n, NULL), EBB_OK);
    free(hits);
    ebb_store_close(s);
    return n;
}

static void test_killed_writer(void **state)
{
    ebb_store *s;

    (void)state;
    ebb_seal_use_here(seal);
    s = open_db();
    plant(s);
    ebb_store_close(s);
    save_and_be_killed();
    assert_int_equal(n_readable(), 0);
    assert_int_equal(n_last_affairs(), 1);
}

/* What is turned next has it, too: the key goes, and nobody could read that log any more. */
static void test_killed_writer_then_turned(void **state)
{
    ebb_error err = { 0 };

    (void)state;
    save_and_be_killed();
    ebb_seal_use_here(seal);
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(n_readable(), 0);
    assert_int_equal(n_last_affairs(), 1);
    save_and_be_killed();
    expect_ok(ebb_store_decrypt(db, seal, &err), &err);
    ebb_seal_use_here(NULL);
    assert_int_equal(n_last_affairs(), 2);
}

/* What many sessions take goes to the log before their end, some of it twice, where SQLite's cache is too small for it:
 * an import, the index of the search.  Here one of ten pages; usually of 2 MB. */
static void test_more_than_the_cache(void **state)
{
    ebb_store *s;
    ebb_error err;
    int status;
    pid_t pid;

    (void)state;
    ebb_seal_use_here(seal);
    ebb_store_close(open_db());
    pid = fork();
    if (pid == 0) {
        s = open_db();
        if (sqlite3_exec(s->db, "PRAGMA cache_size = 10", NULL, NULL, NULL) != SQLITE_OK ||
            ebb_store_batch_begin(s, N_PLANTED, NULL, &err) != EBB_OK)
            _exit(1);
        plant(s);
        if (ebb_store_batch_commit(s, &err) != EBB_OK)
            fprintf(stderr, "# %s\n", err.msg);
        else
            raise(SIGKILL);                      /* the log is read again from its beginning */
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_planted();
}

/* SQLite leaves a hole at the bytes that it locks, in a database that goes beyond 1 GiB; here at its ninth page. */
static void test_hole_at_the_locks(void **state)
{
    unsigned usual = (unsigned)sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, 0u);
    ebb_error err = { 0 };
    ebb_store *s;

    (void)state;
    assert_int_equal(usual, 1 << 30);
    ebb_seal_use_here(seal);
    sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, 8u * EBB_SEALED_PAGE);
    s = open_db();
    plant(s);
    ebb_store_close(s);
    expect_ok(ebb_store_decrypt(db, seal, &err), &err);
    ebb_seal_use_here(NULL);
    expect_planted();
    sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, usual);
}

/* So does one whose database is encrypted next: what is in that log is in the clear, and in no other place. */
static void test_encrypted_behind_a_killed_writer(void **state)
{
    char name[120];
    ebb_error err = { 0 };
    ebb_buf left = { 0 };
    int status, log;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        plant(open_db());
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    snprintf(name, sizeof name, "%s-wal", db);
    assert_int_equal(ebb_file_open(name, EBB_FILE_READ, &log, &err), EBB_OK);    /* stands for its blocks on the disk */
    ebb_seal_use_here(seal);
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(n_readable(), 0);
    expect_planted();
    snprintf(name, sizeof name, "/proc/self/fd/%d", log);
    assert_int_equal(ebb_file_slurp(name, 64 << 20, &left, NULL), EBB_OK);
    for (size_t i = 0; i < left.len; i++)
        assert_int_equal(left.data[i], 0);
    ebb_buf_fini(&left);
    ebb_file_close(log);
}

static void test_key_is_missing_or_another(void **state)
{
    uint8_t key[EBB_SEAL_KEY];
    ebb_seal *other;
    ebb_error err = { 0 };
    ebb_store *s;

    (void)state;
    ebb_seal_use_here(seal);
    s = open_db();
    plant(s);
    ebb_store_close(s);
    ebb_seal_use_here(NULL);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "encrypted"));
    assert_int_equal(ebb_key_draw(key, NULL), EBB_OK);
    assert_int_equal(ebb_seal_new(key, &other, NULL), EBB_OK);
    ebb_seal_use_here(other);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_FORMAT);
    assert_null(strchr(err.msg, '\n'));
    assert_int_equal(ebb_store_decrypt(db, other, &err), EBB_FORMAT);
    ebb_seal_use_here(seal);
    expect_planted();
    ebb_seal_free(other);
}

static void damage_first_byte(void)
{
    FILE *f = fopen(db, "r+b");
    int byte = fgetc(f);

    rewind(f);
    fputc(byte ^ 1, f);
    fclose(f);
}

/* What is neither one nor the other is turned in no direction, and where there is a key, nothing goes to one in the
 * clear. */
static void test_neither(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s = open_db();

    (void)state;
    plant(s);
    ebb_store_close(s);
    ebb_seal_use_here(seal);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "is in the clear"));
    for (int encrypts = 1; encrypts >= 0; encrypts--) {
        damage_first_byte();
        assert_int_equal(ebb_stored_how(db), EBB_STORED_UNKNOWN);
        assert_int_equal(ebb_store_encrypt(db, seal, &err), EBB_FORMAT);
        assert_int_equal(ebb_store_decrypt(db, seal, &err), EBB_FORMAT);
        damage_first_byte();
        expect_ok(encrypts ? ebb_store_encrypt(db, seal, &err) : ebb_store_decrypt(db, seal, &err), &err);
        expect_planted();
    }
}

/* Each page in turn. */
static void test_changed_byte(void **state)
{
    struct stat st;
    ebb_store *s;
    FILE *f;

    (void)state;
    ebb_seal_use_here(seal);
    s = open_db();
    plant(s);
    assert_int_equal(ebb_store_scrub(s, true, NULL), EBB_OK);    /* no page that nobody looks at */
    ebb_store_close(s);
    assert_int_equal(stat(db, &st), 0);
    assert_int_equal(st.st_size % EBB_SEALED_PAGE, 0);
    for (long at = 200; at < st.st_size; at += EBB_SEALED_PAGE) {
        ebb_error err = { 0 };
        ebb_store_hit *hits;
        size_t n;
        int byte;

        f = fopen(db, "r+b");
        fseek(f, at, SEEK_SET);
        byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 1, f);
        fclose(f);
        /* what is asked for may stand in other pages; what stands in this one is never handed out */
        if (ebb_store_open(db, &s, &err) == EBB_OK) {
            sqlite3_stmt *q;
            int rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check", -1, &q, NULL);

            rc = rc == SQLITE_OK ? sqlite3_step(q) : rc;
            assert_true(rc == SQLITE_CORRUPT ||
                        (rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(q, 0), "ok") != 0));
            sqlite3_finalize(q);
            if (ebb_store_search(s, "xylophon", 100, &hits, &n, &err) == EBB_OK)
                free(hits);
            else
                assert_int_equal(err.code, EBB_FORMAT);
            ebb_store_close(s);
        } else
            assert_int_equal(err.code, EBB_FORMAT);
        f = fopen(db, "r+b");
        fseek(f, at, SEEK_SET);
        fputc(byte, f);
        fclose(f);
    }
    expect_planted();
}

static void test_busy(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s = open_db(), *other;
    int lock;

    (void)state;
    plant(s);
    assert_int_equal(ebb_stored_lock(db, true, &lock, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "leave it first"));
    ebb_store_close(s);
    assert_int_equal(ebb_stored_lock(db, true, &lock, &err), EBB_OK);
    assert_int_equal(ebb_store_open(db, &other, &err), EBB_BUSY);
    ebb_file_close(lock);
    expect_planted();
}

/* One that knows no PATH-lock has it open, as an older ebb would. */
static void test_busy_with_an_older_one(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s = open_db();
    sqlite3 *old;

    (void)state;
    plant(s);
    ebb_store_close(s);
    assert_int_equal(sqlite3_open(db, &old), SQLITE_OK);
    assert_int_equal(sqlite3_exec(old, "PRAGMA journal_mode = WAL; SELECT count(*) FROM messages", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(ebb_store_encrypt(db, seal, &err), EBB_BUSY);
    sqlite3_close(old);
    assert_int_equal(ebb_stored_how(db), EBB_STORED_PLAIN);
    expect_planted();
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
}

static ebb_status turn(bool encrypts, ebb_error *err)
{
    return encrypts ? ebb_store_encrypt(db, seal, err) : ebb_store_decrypt(db, seal, err);
}

/* Whichever call fails: it is all there, one way or the other, and the next try ends it. */
static void test_failing_calls(void **state)
{
    ebb_store *s = open_db();
    ebb_error err;

    (void)state;
    plant(s);
    ebb_store_close(s);
    ebb_seal_use_here(seal);
    for (int round = 0; round < 2; round++) {
        bool encrypts = round == 0, failed = true;

        for (int n = 1; failed; n++) {
            ebb_os_fail_nth(n);
            (void)!turn(encrypts, &err);
            failed = ebb_os_fail_off();
            expect_planted();
            if (ebb_stored_how(db) == (encrypts ? EBB_STORED_SEALED : EBB_STORED_PLAIN) && failed)
                expect_ok(turn(!encrypts, &err), &err);
        }
        expect_ok(turn(encrypts, &err), &err);
        assert_int_equal(ebb_stored_how(db), encrypts ? EBB_STORED_SEALED : EBB_STORED_PLAIN);
        assert_int_equal(n_readable() == 0, encrypts);
        expect_planted();
    }
}

/* Killed at any moment, it is all there, and the next try ends it.  What was begun in the clear is gone once an
 * encrypted one is opened. */
static void test_killed_turns(void **state)
{
    ebb_store *s = open_db();
    ebb_error err = { 0 };

    (void)state;
    plant(s);
    ebb_store_close(s);
    ebb_seal_use_here(seal);
    for (int i = 0; i < 40; i++) {
        bool encrypts = ebb_stored_how(db) == EBB_STORED_PLAIN;
        pid_t pid = fork();

        if (pid == 0) {
            (void)!turn(encrypts, &err);
            _exit(0);
        }
        usleep((useconds_t)(i * 997 % 30000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        expect_planted();
        if (ebb_stored_how(db) == EBB_STORED_SEALED)
            assert_int_equal(n_readable(), 0);
    }
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(n_readable(), 0);
    expect_planted();
}

/* What a program was decrypting into when it was killed goes when the encrypted one is opened; nothing else does. */
static void test_begun_in_the_clear(void **state)
{
    static const char *const names[] = { ".0123456789abcdef.new", ".0123456789abcdef.new-journal",
                                         "-before-v1.0123456789abcdef.new", ".new" };
    char path[160];
    ebb_error err;

    (void)state;
    ebb_seal_use_here(seal);
    ebb_store_close(open_db());
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", db, names[i]);
        expect_ok(ebb_file_create(path, "xylophon", 8, &err), &err);
    }
    ebb_store_close(open_db());
    assert_int_equal(n_readable(), 2);           /* those of no database */
}

/* As the ebb before this one has left it; the result: the version. */
static int age_database(ebb_store *s)
{
    sqlite3_stmt *q;
    char sql[160];
    int version;

    assert_int_equal(sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    version = sqlite3_column_int(q, 0) - 1;
    sqlite3_finalize(q);
    snprintf(sql, sizeof sql, "ALTER TABLE messages DROP COLUMN engine; ALTER TABLE messages DROP COLUMN about;"
             "ALTER TABLE messages DROP COLUMN first_s; PRAGMA user_version = %d", version);
    assert_int_equal(sqlite3_exec(s->db, sql, NULL, NULL, NULL), SQLITE_OK);
    ebb_store_close(s);
    return version;
}

/* The copy of before a migration is as sealed as what it is of. */
static void test_migration(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s;
    char copy[128];
    int version;

    (void)state;
    ebb_seal_use_here(seal);
    s = open_db();
    plant(s);
    version = age_database(s);

    expect_planted();                            /* which migrates it */
    snprintf(copy, sizeof copy, "%s-before-v%d", db, version);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_SEALED);
    assert_int_equal(n_readable(), 0);
    expect_ok(ebb_store_decrypt(db, seal, &err), &err);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_PLAIN);
    assert_true(n_readable() >= 8);              /* both of them */
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_SEALED);
    assert_int_equal(n_readable(), 0);
    assert_int_equal(rename(copy, db), 0);       /* it can be gone back to */
    expect_planted();
}

/* A database that a link leads to is copied beside the file; a copy beside the link is of before it was moved. */
static void test_migration_behind_a_link(void **state)
{
    ebb_error err = { 0 };
    char real[128], copy[160], old[128];
    ebb_store *s;
    int version;

    (void)state;
    s = open_db();
    plant(s);
    version = age_database(s);
    snprintf(real, sizeof real, "%s/real.db", dir);
    snprintf(copy, sizeof copy, "%s-before-v%d", real, version);
    snprintf(old, sizeof old, "%s-before-v1", db);
    assert_int_equal(rename(db, real), 0);
    assert_int_equal(link(real, old), 0);
    assert_int_equal(symlink("../real.db", db), 0);
    expect_planted();                            /* which migrates it */
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_PLAIN);
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(ebb_stored_how(real), EBB_STORED_SEALED);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_SEALED);
    assert_int_equal(ebb_stored_how(old), EBB_STORED_SEALED);
    ebb_seal_use_here(seal);
    expect_planted();
    expect_ok(ebb_store_decrypt(db, seal, &err), &err);
    ebb_seal_use_here(NULL);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_PLAIN);
    assert_int_equal(ebb_stored_how(old), EBB_STORED_PLAIN);
    s = open_db();
    ebb_store_remove_copies(s);
    ebb_store_close(s);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_NOTHING);
    assert_int_equal(ebb_stored_how(old), EBB_STORED_NOTHING);
}

/* The database is gone, and its copy is not. */
static void test_copy_alone(void **state)
{
    ebb_error err = { 0 };
    char copy[160];
    ebb_store *s = open_db();

    (void)state;
    plant(s);
    ebb_store_close(s);
    snprintf(copy, sizeof copy, "%s-before-v1", db);
    assert_int_equal(rename(db, copy), 0);
    expect_ok(ebb_store_encrypt(db, seal, &err), &err);
    assert_int_equal(ebb_stored_how(copy), EBB_STORED_SEALED);
    assert_int_equal(n_readable(), 0);
}

/* Turned is what the name leads to, or nothing: neither is said to be there, or not to be there, that cannot be found
 * just now. */
static void expect_neither_turned(const char *what)
{
    ebb_stored how;
    ebb_error err;

    for (int encrypts = 0; encrypts < 2; encrypts++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(turn(encrypts, &err), EBB_IO);
        if (!strstr(err.msg, what) || !strstr(err.msg, db))
            fail_msg("%s", err.msg);
    }
    assert_int_equal(ebb_stored_look(db, &how, &err), EBB_IO);
    assert_int_equal(how, EBB_STORED_UNKNOWN);
}

/* A link to a disk that is gone for now, or to itself. */
static void test_leads_nowhere(void **state)
{
    ebb_error err = { 0 };
    char real[128], copy[160];

    (void)state;
    ebb_seal_use_here(seal);
    ebb_store_close(open_db());
    snprintf(real, sizeof real, "%s/real.db", dir);
    snprintf(copy, sizeof copy, "%s-before-v1", db);
    assert_int_equal(rename(db, real), 0);
    assert_int_equal(symlink("../gone/real.db", db), 0);
    expect_neither_turned("leads nowhere");
    assert_int_equal(unlink(db), 0);
    assert_int_equal(symlink("sessions.db", db), 0);
    expect_neither_turned("sessions.db");
    assert_int_equal(unlink(db), 0);

    assert_int_equal(rename(real, db), 0);
    assert_int_equal(symlink("../gone/real.db", copy), 0);
    assert_int_equal(ebb_store_decrypt(db, seal, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "-before-v1"));
    assert_int_equal(unlink(copy), 0);
    expect_ok(ebb_store_decrypt(db, seal, &err), &err);
}

/* The folder where the disk was is there still: no other database is begun in it, or in the link's place. */
static void test_no_new_one_behind_a_link(void **state)
{
    ebb_error err = { 0 };
    ebb_store *s;
    struct stat st;
    char real[128];

    (void)state;
    ebb_store_close(open_db());
    snprintf(real, sizeof real, "%s/real.db", dir);
    assert_int_equal(unlink(db), 0);
    assert_int_equal(symlink("../real.db", db), 0);
    ebb_seal_use_here(seal);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "leads nowhere"));
    assert_int_equal(lstat(db, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_not_equal(access(real, F_OK), 0);
    ebb_seal_use_here(NULL);                     /* without a key it is where the first one shall be */
    ebb_store_close(open_db());
    assert_int_equal(access(real, F_OK), 0);
}

/* What cannot be read just now is not called damaged, or anything else. */
static void test_look_fails(void **state)
{
    static const ebb_stored found[] = { EBB_STORED_SEALED, EBB_STORED_PLAIN };
    ebb_error err = { 0 };
    ebb_stored how;
    ebb_store *s;
    bool failed = true;

    (void)state;
    ebb_seal_use_here(seal);
    ebb_store_close(open_db());
    for (int i = 0; i < 2; i++, failed = true) {
        for (int n = 1; failed; n++) {
            ebb_status st;

            ebb_os_fail_nth(n);
            st = ebb_stored_look(db, &how, &err);
            failed = ebb_os_fail_off();
            assert_int_equal(st, failed ? EBB_IO : EBB_OK);
            assert_int_equal(how, failed ? EBB_STORED_UNKNOWN : found[i]);
        }
        for (int n = 1; i == 0 && n < 20; n++) {
            ebb_os_fail_nth(n);
            if (ebb_store_open(db, &s, &err) == EBB_OK)
                ebb_store_close(s);
            else if (strstr(err.msg, "move it away"))
                fail_msg("call %d: %s", n, err.msg);
            (void)!ebb_os_fail_off();
        }
        if (i == 0)
            expect_ok(ebb_store_decrypt(db, seal, &err), &err);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_sealed, teardown)
    const struct CMUnitTest tests[] = {
        T(test_nothing_to_read), T(test_new_one), T(test_new_one_for_several),
        T(test_looks_while_it_comes_and_goes), T(test_there_and_back),
        T(test_killed_writer), T(test_killed_writer_then_turned), T(test_encrypted_behind_a_killed_writer),
        T(test_more_than_the_cache), T(test_hole_at_the_locks),
        T(test_key_is_missing_or_another), T(test_neither), T(test_changed_byte), T(test_busy),
        T(test_busy_with_an_older_one),
        T(test_failing_calls), T(test_killed_turns), T(test_begun_in_the_clear),
        T(test_migration), T(test_migration_behind_a_link), T(test_copy_alone),
        T(test_leads_nowhere), T(test_no_new_one_behind_a_link), T(test_look_fails),
    };
    int failed;

    seal = own_key();
    failed = seal ? cmocka_run_group_tests_name("sealed", tests, NULL, NULL) : 0;
    own_key_end(seal);
    return failed;
}
