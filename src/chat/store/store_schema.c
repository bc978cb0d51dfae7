/* The schema and its history: script i brings a database from version i to i + 1. */
#include <string.h>

#include "os/file.h"
#include "os/folder.h"
#include "store/sealed.h"
#include "store/store_sql.h"

static const char *const scripts[] = {
    "CREATE TABLE sessions ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT UNIQUE,"                         /* given by the user */
    " title TEXT NOT NULL,"                      /* from the first question */
    " model TEXT NOT NULL,"
    " pinned_ms INTEGER NOT NULL,"
    " leaf INTEGER,"                             /* message that ends the path; NULL: an empty path */
    " settings TEXT,"                            /* JSON object */
    " created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL);"
    "CREATE INDEX sessions_by_time ON sessions (updated_ms);"

    "CREATE TABLE messages ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,"
    " parent INTEGER REFERENCES messages (id) ON DELETE CASCADE,"
    " role INTEGER NOT NULL,"                    /* 0 system, 1 user, 2 assistant, 3 note */
    " finish INTEGER NOT NULL,"                  /* 0 under way, 1 stop, 2 length, 3 cancelled, 4 error */
    " pinned INTEGER NOT NULL,"
    " text TEXT NOT NULL,"
    " ids BLOB NOT NULL,"                        /* int32, little-endian */
    " n_ids INTEGER NOT NULL,"
    " ids_model BLOB NOT NULL,"                  /* fingerprint of the model the ids belong to */
    " created_ms INTEGER NOT NULL,"
    " model TEXT,"
    " n_prompt INTEGER NOT NULL, n_reused INTEGER NOT NULL, n_reused_disk INTEGER NOT NULL,"
    " n_computed INTEGER NOT NULL, n_generated INTEGER NOT NULL,"
    " prefill_s REAL NOT NULL, decode_s REAL NOT NULL);"
    "CREATE INDEX messages_by_session ON messages (session);"
    "CREATE INDEX messages_by_parent ON messages (parent);"
    "CREATE INDEX messages_tokens ON messages (session, n_ids);"

    /* Finished messages are searched; an answer under way would be indexed anew each second. */
    "CREATE VIRTUAL TABLE search USING fts5 (text, content='messages', content_rowid='id',"
    " tokenize='unicode61 remove_diacritics 2', prefix='2 3 4');"
    "CREATE TRIGGER search_insert AFTER INSERT ON messages WHEN new.finish <> 0 BEGIN"
    " INSERT INTO search (rowid, text) VALUES (new.id, new.text); END;"
    "CREATE TRIGGER search_delete AFTER DELETE ON messages WHEN old.finish <> 0 BEGIN"
    " INSERT INTO search (search, rowid, text) VALUES ('delete', old.id, old.text); END;"
    "CREATE TRIGGER search_leave AFTER UPDATE OF text, finish ON messages"
    " WHEN old.finish <> 0 AND (new.finish = 0 OR new.text IS NOT old.text) BEGIN"
    " INSERT INTO search (search, rowid, text) VALUES ('delete', old.id, old.text); END;"
    "CREATE TRIGGER search_enter AFTER UPDATE OF text, finish ON messages"
    " WHEN new.finish <> 0 AND (old.finish = 0 OR new.text IS NOT old.text) BEGIN"
    " INSERT INTO search (rowid, text) VALUES (new.id, new.text); END;",

    /* left_out: JSON object, of a note */
    "ALTER TABLE messages ADD COLUMN left_out TEXT; ALTER TABLE messages ADD COLUMN n_ahead INTEGER NOT NULL "
    "DEFAULT 0;",

    "ALTER TABLE messages ADD COLUMN n_guessed INTEGER NOT NULL DEFAULT 0;",

    /* JSON array, of an answer */
    "ALTER TABLE messages ADD COLUMN draws TEXT;",

    /* engine: its name, NULL for that of a process here; about: EBB_ABOUT_*; first_s: to the first word */
    ("ALTER TABLE messages ADD COLUMN engine TEXT; ALTER TABLE messages ADD COLUMN about INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE messages ADD COLUMN first_s REAL NOT NULL DEFAULT 0;"),
};

enum { N_SCRIPTS = sizeof scripts / sizeof scripts[0] };

static int read_version(ebb_store *s, int *version)
{
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, "PRAGMA user_version", "");

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(q);
    *version = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* The version is read again under the lock: another process may be faster. */
static int apply_migrations(ebb_store *s)
{
    int version = 0, rc = ebb_store_run(s, "BEGIN IMMEDIATE", "");

    if (rc != SQLITE_OK)
        return rc;
    rc = read_version(s, &version);
    for (; rc == SQLITE_OK && version < N_SCRIPTS; version++) {
        char pragma[40];

        sqlite3_snprintf(sizeof pragma, pragma, "PRAGMA user_version = %d", version + 1);
        rc = sqlite3_exec(s->db, scripts[version], NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = ebb_store_run(s, pragma, "");
    }
    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "COMMIT", "");
    if (rc != SQLITE_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* A copy is made in one SQLite transaction, so that a file with the version number is complete. */
static bool is_copied(sqlite3 *copy, int version)
{
    sqlite3_stmt *q = NULL;
    bool is_whole = sqlite3_prepare_v2(copy, "PRAGMA user_version", -1, &q, NULL) == SQLITE_OK &&
                    sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int(q, 0) == version;

    sqlite3_finalize(q);
    return is_whole;
}

enum { COPY_TRIES = 20, COPY_WAIT_MS = 100 };

/* Another process may be at the same work. */
static int copy_into(ebb_store *s, const char *path, int version)
{
    sqlite3 *copy = NULL;
    int rc = sqlite3_open_v2(path, &copy, SQLITE_OPEN_READWRITE, s->vfs);

    if (rc == SQLITE_OK && s->vfs)               /* no journal on disk: it gets its name when it is complete */
        rc = sqlite3_exec(copy, "PRAGMA journal_mode = MEMORY", NULL, NULL, NULL);

    for (int i = 0; i < COPY_TRIES && (rc & 0xff) != SQLITE_DONE && !is_copied(copy, version); i++) {
        sqlite3_backup *job = sqlite3_backup_init(copy, "main", s->db, "main");

        rc = job ? sqlite3_backup_step(job, -1) : SQLITE_CANTOPEN;
        if (sqlite3_backup_finish(job) != SQLITE_OK && rc == SQLITE_DONE)
            rc = SQLITE_IOERR;
        if (rc != SQLITE_BUSY && rc != SQLITE_LOCKED)
            break;
        sqlite3_sleep(COPY_WAIT_MS);
    }
    rc = is_copied(copy, version) ? SQLITE_OK : rc == SQLITE_OK || rc == SQLITE_DONE ? SQLITE_IOERR : rc;
    sqlite3_close(copy);
    return rc;
}

/* A file of that name may be a copy that a power failure cut short: it is completed. */
static int copy_in_place(ebb_store *s, const char *path, int version)
{
    int fd = -1, rc;
    bool is_new = ebb_file_open(path, EBB_FILE_CREATE, &fd, NULL) == EBB_OK;

    ebb_file_close(fd);
    if (is_new)
        ebb_folder_sync_name(path);
    rc = copy_into(s, path, version);
    if (rc != SQLITE_OK && is_new)
        ebb_file_remove(path);
    return rc;
}

/* One that is encrypted is made beside; with its name it is complete. */
static int copy_beside(ebb_store *s, const char *path, int version)
{
    ebb_buf beside = { 0 };
    int fd = -1, rc;

    if (ebb_stored_how(path) == EBB_STORED_SEALED)
        return SQLITE_OK;
    rc = ebb_file_begin_beside(path, &beside, &fd, NULL) == EBB_OK ? SQLITE_OK : SQLITE_CANTOPEN;
    ebb_file_close(fd);
    if (rc == SQLITE_OK)
        rc = copy_into(s, beside.data, version);
    if (rc == SQLITE_OK && ebb_file_rename(beside.data, path, NULL) != EBB_OK)
        rc = SQLITE_CANTOPEN;
    if (rc == SQLITE_OK)
        ebb_folder_sync_name(path);
    else if (fd >= 0)
        ebb_file_remove(beside.data);
    ebb_buf_fini(&beside);
    return rc;
}

/* Of the version, beside this name. */
static char *copy_path(const char *of, int version)
{
    return sqlite3_mprintf("%s" EBB_STORE_COPY_SUFFIX "%d", of, version);
}

/* Copy the database to sessions.db-before-vN before an upgrade: beside the file itself, wherever a link to it is. */
static ebb_status copy_database(ebb_store *s, int version, ebb_error *err)
{
    char *path = copy_path(sqlite3_db_filename(s->db, "main"), version);
    ebb_status st = path ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    int rc = SQLITE_OK;

    if (st == EBB_OK)
        rc = s->vfs ? copy_beside(s, path, version) : copy_in_place(s, path, version);
    if (rc != SQLITE_OK)
        st = EBB_FAIL(err, EBB_IO, "%s was written by an older ebb and cannot be copied before it is converted: "
                                   "%s; free some space",
                      s->path, sqlite3_errstr(rc));
    sqlite3_free(path);
    return st;
}

/* And with them, for good, what else was removed from that folder before. */
static void remove_copies(const char *of)
{
    for (int version = 1; of && *of && version < N_SCRIPTS; version++) {
        char *path = copy_path(of, version);

        if (path)
            ebb_file_remove(path);
        sqlite3_free(path);
    }
    if (of && *of)                               /* or a loss of power brings them back */
        ebb_folder_sync_name(of);
}

/* Also beside a link to the file, which may have been moved since. */
void ebb_store_remove_copies(ebb_store *s)
{
    remove_copies(sqlite3_db_filename(s->db, "main"));
    remove_copies(s->path);
}

/* Of an older ebb, in a file that cannot be written, as of a backup: it is read all the same, by way of a copy that can
 * be converted.  The file stays as it is, and is not looked at again. */
static int move_to_memory(ebb_store *s)
{
    sqlite3 *copy = NULL;
    sqlite3_backup *job;
    int rc = sqlite3_open_v2(":memory:", &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    job = rc == SQLITE_OK ? sqlite3_backup_init(copy, "main", s->db, "main") : NULL;
    if (job) {
        rc = sqlite3_backup_step(job, -1);
        rc = sqlite3_backup_finish(job) == SQLITE_OK && rc == SQLITE_DONE ? SQLITE_OK : rc;
    } else if (rc == SQLITE_OK) {
        rc = sqlite3_errcode(copy);
    }
    if (rc != SQLITE_OK) {
        sqlite3_close(copy);
        return rc == SQLITE_DONE ? SQLITE_IOERR : rc;
    }
    sqlite3_db_config(copy, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_close(s->db);
    s->db = copy;
    return SQLITE_OK;
}

static bool is_of_scripts(const char *sql)
{
    for (int i = 0; i < N_SCRIPTS; i++)
        if (*sql && strstr(scripts[i], sql))
            return true;
    return false;
}

/* Views, and triggers of no script, would run within statements of ours: for ever, or to delete what is saved.  So
 * would what a column or an index of our tables computes: none of ours does. */
static ebb_status refuse_foreign_sql(ebb_store *s, ebb_error *err)
{
    static const char sql[] =
        "SELECT type, coalesce(name, ''), coalesce(sql, '') FROM sqlite_master WHERE type IN ('view', 'trigger')"
        " UNION ALL"
        " SELECT 'table with an expression', name, '' FROM sqlite_master t WHERE type = 'table'"
        " AND lower(name) IN ('sessions', 'messages') AND (sql LIKE 'CREATE VIRTUAL%' OR sql LIKE '%CHECK%(%'"
        " OR sql LIKE '%DEFAULT%(%' OR EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name) WHERE hidden > 1))"
        " UNION ALL"
        " SELECT 'computed index', name, '' FROM sqlite_master i WHERE type = 'index' AND (sql LIKE '%WHERE%'"
        " OR EXISTS (SELECT 1 FROM pragma_index_xinfo(i.name) WHERE cid = -2))"
        " AND lower(tbl_name) IN ('sessions', 'messages')";
    sqlite3_stmt *q;
    int rc = ebb_store_prepare(s, &q, sql, "");
    ebb_status st = EBB_OK;

    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    while (st == EBB_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
        if (!is_of_scripts((const char *)sqlite3_column_text(q, 2)))
            st = EBB_FAIL(err, EBB_FORMAT, "%s has a %s that ebb did not make: %.100s; drop it with sqlite3, "
                          "or move the file away to begin a new one",
                          s->path, sqlite3_column_text(q, 0), sqlite3_column_text(q, 1));
    sqlite3_finalize(q);
    return st == EBB_OK && rc != SQLITE_DONE ? ebb_store_fail(s, rc, err) : st;
}

ebb_status ebb_store_migrate(ebb_store *s, ebb_error *err)
{
    int version = 0, rc = read_version(s, &version);
    ebb_status st = rc == SQLITE_OK ? refuse_foreign_sql(s, err) : EBB_OK;
    bool is_old;

    if (st != EBB_OK)
        return st;
    if (rc == SQLITE_OK && version < 0)          /* another program's: ours count from 1 */
        return ebb_store_fail(s, SQLITE_NOTADB, err);
    if (rc == SQLITE_OK && version > N_SCRIPTS)
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "%s was written by a newer ebb (format %d, this one reads %d): use that one, or set "
                        "XDG_STATE_HOME to another folder", s->path, version, N_SCRIPTS);
    is_old = rc == SQLITE_OK && version > 0 && version < N_SCRIPTS && strcmp(s->path, ":memory:") != 0;
    if (is_old && s->is_readonly)
        rc = move_to_memory(s);
    else if (is_old && copy_database(s, version, err) != EBB_OK)
        return EBB_IO;
    if (rc == SQLITE_OK && version < N_SCRIPTS)
        rc = apply_migrations(s);
    return rc == SQLITE_OK ? EBB_OK : ebb_store_fail(s, rc, err);
}
