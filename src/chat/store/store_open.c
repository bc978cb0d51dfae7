/* Opening the store (store.h). */
#include "store/store.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "os/file.h"
#include "os/folder.h"
#include "store/sealed.h"
#include "store/sealed_vfs.h"
#include "store/store_sql.h"

/* Of the log and its index SQLite would say only that the database cannot be opened. */
static ebb_status expect_files(const char *path, ebb_error *err)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    ebb_buf name = { 0 };
    ebb_status st = EBB_OK;

    for (size_t i = 0; st == EBB_OK && i < sizeof suffixes / sizeof *suffixes; i++) {
        ebb_buf_clear(&name);
        st = ebb_buf_addf(&name, "%s%s", path, suffixes[i]) ? ebb_file_expect_regular(name.data, err)
                                                            : EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    }
    ebb_buf_fini(&name);
    return st;
}

/* The file is made here so that it is 0600; SQLite gives its companions the same mode. */
static ebb_status make_database_file(const char *path, ebb_error *err)
{
    const char *slash = strrchr(path, '/');
    int fd;
    ebb_status st = expect_files(path, err);

    if (st != EBB_OK)
        return st;
    if (slash && slash != path) {
        char *dir = strndup(path, (size_t)(slash - path));
        if (!dir)
            return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
        st = ebb_file_mkdirs(dir, err);
        free(dir);
    }
    if (st == EBB_OK && ebb_file_open(path, EBB_FILE_CREATE, &fd, NULL) == EBB_OK) {
        ebb_file_close(fd);
        ebb_folder_sync_name(path);              /* SQLite syncs what is in the file, not its name */
        return EBB_OK;
    }
    if (st == EBB_OK && ebb_file_open(path, EBB_FILE_UPDATE, &fd, err) == EBB_OK) {
        ebb_file_close(fd);
        return EBB_OK;
    }
    /* It may still be there and readable. */
    if (ebb_file_open(path, EBB_FILE_READ, &fd, NULL) != EBB_OK)
        return st == EBB_OK ? EBB_IO : st;
    ebb_file_close(fd);
    return EBB_OK;
}

/* SQLite's defaults are not ours: wait for locks, check references, keep readers free of writers. */
static ebb_status configure_database(ebb_store *s, ebb_error *err)
{
    ebb_status st;
    int rc;

    sqlite3_busy_timeout(s->db, EBB_STORE_PATIENCE_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    rc = ebb_store_run(s, "PRAGMA foreign_keys = ON", "");
    if (rc == SQLITE_OK)                         /* what is deleted is overwritten, and nothing goes to /var/tmp */
        rc = sqlite3_exec(s->db, "PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    s->is_readonly = sqlite3_db_readonly(s->db, "main") == 1;
    if (rc == SQLITE_OK && !s->is_readonly)
        rc = ebb_store_run(s, "PRAGMA journal_mode = WAL", "");
    if ((rc & 0xff) == SQLITE_READONLY) {
        s->is_readonly = true;
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_OK)
        return ebb_store_fail(s, rc, err);
    st = ebb_store_migrate(s, err);
    ebb_store_note_log(s);
    return st;
}

static char *default_path(ebb_error *err)
{
    ebb_buf b = { 0 };

    if (ebb_stored_path(&b, err) == EBB_OK)
        return ebb_buf_take(&b);
    ebb_buf_fini(&b);
    return NULL;
}

/* Where there is a key, there was a database: what a link leads to is not begun anew, nor one that was moved away, or
 * whose disk is gone for now; for the key would then be thought to be of no other one.  ebb sessions encrypt begins an
 * empty one. */
static ebb_status expect_what_was_sealed(const char *path, bool is_ours, ebb_error *err)
{
    ebb_stored how;
    ebb_status st = ebb_seal_here() ? ebb_stored_look(path, &how, err) : EBB_OK;

    if (st != EBB_OK || !ebb_seal_here() || !is_ours || how != EBB_STORED_NOTHING)
        return st;
    return EBB_FAIL(err, EBB_NOTFOUND, "%s is gone, and its key is there: put it back, or begin an empty one with ebb "
                    "sessions encrypt", path);
}

/* Which of SQLite's files it has, by what is there while nobody may turn it; a new one is sealed where this process
 * has a key. */
static ebb_status choose_files(ebb_store *s, ebb_error *err)
{
    const ebb_seal *seal = ebb_seal_here();
    ebb_stored how = EBB_STORED_UNKNOWN;
    ebb_status st = EBB_OK;

    if (seal && ebb_stored_how(s->path) == EBB_STORED_NOTHING)
        st = ebb_stored_make_sealed(s->path, seal, err);
    if (st == EBB_OK)
        st = ebb_stored_lock(s->path, false, &s->lock, err);
    if (st == EBB_OK)
        st = ebb_stored_look(s->path, &how, err);
    if (st == EBB_OK && seal && how == EBB_STORED_PLAIN)
        return EBB_FAIL(err, EBB_FORMAT, "%s is in the clear, but a key for it is there: ebb sessions encrypt or "
                        "decrypt ends what was begun, or put the encrypted file back", s->path);
    if (st != EBB_OK || how != EBB_STORED_SEALED)
        return st;
    if (!seal)
        return EBB_FAIL(err, EBB_USAGE, "%s is encrypted, and there is no key: --unlock FILE names one", s->path);
    if (s->lock >= 0)                            /* of a program that was killed while it decrypted */
        ebb_file_wipe_begun(s->path);
    s->vfs = EBB_SEALED_VFS;
    return ebb_sealed_vfs_register(seal, err);
}

/* No file, and so in no folder, although its name would be one of the current folder. */
static bool is_in_memory(const char *path)
{
    return strcmp(path, ":memory:") == 0;
}

/* A folder in which no log can be made, and none is: nobody changes what is there. */
static bool is_immutable(const char *path)
{
    ebb_buf log = { 0 };
    ebb_file_id id = { 0 };
    bool is = !is_in_memory(path) && ebb_buf_addf(&log, "%s-wal", path) &&
              !(ebb_file_look_up(log.data, &id) && id.n_bytes > 0) && ebb_file_has_readonly_folder(path);

    ebb_buf_fini(&log);
    return is;
}

static bool add_uri(ebb_buf *out, const char *path)
{
    ebb_buf_adds(out, "file:");
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("/._-", *path))
            ebb_buf_addc(out, *path);
        else
            ebb_buf_addf(out, "%%%02X", (unsigned char)*path);
    return ebb_buf_adds(out, "?immutable=1");
}

/* SQLite makes a log to read, too, unless it is told that there is no need. */
static int open_files(ebb_store *s)
{
    ebb_buf uri = { 0 };
    int rc = SQLITE_NOMEM;

    if (!is_immutable(s->path))
        return sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, s->vfs);
    if (add_uri(&uri, s->path))
        rc = sqlite3_open_v2(uri.data, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, s->vfs);
    ebb_buf_fini(&uri);
    return rc;
}

ebb_status ebb_store_open(const char *path, ebb_store **out, ebb_error *err)
{
    ebb_store *s = calloc(1, sizeof *s);
    ebb_error why = { .code = EBB_NOMEM, .msg = "no memory for the session database" };
    bool in_memory = path && is_in_memory(path);
    ebb_status st = EBB_NOMEM;
    int rc;

    *out = NULL;
    if (s)
        s->lock = -1;
    if (!s || !(s->path = path ? strdup(path) : default_path(&why))) {
        st = why.code;
        goto fail;
    }
    st = in_memory ? EBB_OK : expect_what_was_sealed(s->path, !path, &why);
    if (st == EBB_OK && !in_memory)
        st = make_database_file(s->path, &why);
    if (st == EBB_OK && !in_memory)
        st = choose_files(s, &why);
    if (st == EBB_OK && !in_memory)
        st = ebb_store_expect_log(s->path, &why);
    if (st != EBB_OK)
        goto fail;
    rc = open_files(s);
    st = rc == SQLITE_OK ? configure_database(s, &why) : ebb_store_fail(s, rc, &why);
    if (st != EBB_OK)
        goto fail;
    *out = s;
    return EBB_OK;
fail:
    if (err)
        *err = why;
    ebb_store_close(s);
    return st;
}

ebb_status ebb_store_open_beside(const ebb_store *first, ebb_store **out, ebb_error *err)
{
    ebb_store *s = calloc(1, sizeof *s);
    ebb_status st;
    int rc;

    *out = NULL;
    if (s)
        *s = (ebb_store){ .path = strdup(first->path), .lock = -1, .vfs = first->vfs };
    if (!s || !s->path) {
        free(s);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the session database");
    }
    rc = open_files(s);
    st = rc == SQLITE_OK ? configure_database(s, err) : ebb_store_fail(s, rc, err);
    if (st != EBB_OK)
        ebb_store_close(s);
    else
        *out = s;
    return st;
}

void ebb_store_close(ebb_store *s)
{
    if (!s)
        return;
    sqlite3_finalize(s->insert);
    ebb_store_drop_cut_log(s);                   /* closing it brings the log to the database */
    sqlite3_close(s->db);
    ebb_file_close(s->lock);
    free(s->path);
    free(s);
}

const char *ebb_store_path(const ebb_store *s)
{
    return s->path;
}

bool ebb_store_is_readonly(const ebb_store *s)
{
    return s->is_readonly;
}

/* SQLite looks where a link led when it was opened, and the link may lead elsewhere by now.  Without a link, its look
 * is enough: each save asks. */
bool ebb_store_is_moved(const ebb_store *s)
{
    const char *opened = sqlite3_db_filename(s->db, "main");
    int is_moved = 0;

    if (!opened || !*opened)                     /* in memory */
        return false;
    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &is_moved) == SQLITE_OK && is_moved)
        return true;
    return strcmp(s->path, opened) != 0 && !ebb_file_is_same(s->path, opened);
}

void ebb_session_leave_store(ebb_session_facts *f, ebb_tree *t)
{
    f->id = 0;
    f->keeps_id = false;
    ebb_tree_forget_ids(t);
}

void ebb_session_facts_fini(ebb_session_facts *f)
{
    free(f->settings);
    *f = (ebb_session_facts){ 0 };
}

const char *ebb_session_facts_label(const ebb_session_facts *f)
{
    return f->name[0] ? f->name : f->title;
}
