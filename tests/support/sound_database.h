/* Whether a database came through what a test did to it. */
#ifndef EBB_TESTS_SOUND_DATABASE_H
#define EBB_TESTS_SOUND_DATABASE_H
#include <sqlite3.h>

/* The test fails unless SQLite finds no fault, in the search index neither. */
void assert_sound(sqlite3 *db);

#endif
