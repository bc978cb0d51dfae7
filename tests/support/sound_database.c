/* A database is sound (sound_database.h). */
#include "ebb_test.h"

#include "support/sound_database.h"

void assert_sound(sqlite3 *db)
{
    sqlite3_stmt *q;

    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
    sqlite3_finalize(q);
    assert_int_equal(sqlite3_exec(db, "INSERT INTO search (search) VALUES ('integrity-check')", NULL, NULL, NULL),
                     SQLITE_OK);
}
