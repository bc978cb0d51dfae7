/* The index that sessions are searched by: merged after deletions, and made anew (store/store_sql.h). */
#include "base/log.h"
#include "store/store_sql.h"

/* Where its format, or its record of what it consists of, is damaged, FTS5 takes nothing at all, not even to forget it.
 * So it gets those of an empty index: four bytes for the cookie, no level, no segment, nothing written. */
static int write_empty_record(ebb_store *s)
{
    int rc;

    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    rc = ebb_store_run(s, "REPLACE INTO search_config (k, v) VALUES ('version', 4)", "");
    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "REPLACE INTO search_data (id, block) VALUES (10, x'00000000000000')", "");
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return rc;
}

int ebb_store_remake_index(ebb_store *s)
{
    int rc = write_empty_record(s);

    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "INSERT INTO search (search) VALUES ('delete-all')", "");
    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "INSERT INTO search (rowid, text) SELECT id, text FROM messages WHERE finish <> 0", "");
    return rc;
}

static int remake_by_itself(ebb_store *s)
{
    int rc = ebb_store_begin(s, true);

    if (rc == SQLITE_OK)
        rc = ebb_store_remake_index(s);
    if (rc == SQLITE_OK)
        rc = ebb_store_run(s, "COMMIT", "");
    if (rc != SQLITE_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* Each 'optimize' puts what it merges some levels higher, and behind 2,000 of them FTS5 3.40 calls the index corrupt,
 * for good.  Its record of levels begins behind four bytes, with their number; from 128 on that has a second byte. */
static bool is_index_high(ebb_store *s)
{
    sqlite3_stmt *q;
    bool is_high = ebb_store_prepare(s, &q, "SELECT 1 FROM search_data WHERE id = 10 AND substr(block, 5, 1) >= x'80'",
                                     "") == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW;

    sqlite3_finalize(q);
    return is_high;
}

int ebb_store_merge_index(ebb_store *s)
{
    int rc = is_index_high(s) ? remake_by_itself(s)
                              : ebb_store_run(s, "INSERT INTO search (search) VALUES ('optimize')", "");

    return rc == SQLITE_OK ? SQLITE_OK : ebb_store_mend_index(s, rc);
}

/* All that it has is in the messages, too. */
int ebb_store_mend_index(ebb_store *s, int rc)
{
    if (!s->is_index_damaged || s->is_readonly)
        return rc;
    s->is_index_damaged = false;
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    ebb_log("store", "%s: the search index is damaged and is made anew", s->path);
    return remake_by_itself(s);
}
