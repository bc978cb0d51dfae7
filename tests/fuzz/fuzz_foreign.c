/* A database of sessions that another program changed: the bytes are SQL, which is run on a sound one.  Tables are
 * missing or are views, triggers fire, columns hold other types, trees are rings.  It is refused in one line, or used
 * as far as it goes. */
#include "fuzz.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "loft.h"
#include "os/file.h"
#include "store/kept.h"
#include "store/store.h"

static char path[128];

static void write_sound(void)
{
    size_t n;
    const char *sound = fuzz_loft(&n);

    if (!path[0])
        snprintf(path, sizeof path, "%s/sessions.db", fuzz_folder());
    FUZZ_MUST(ebb_file_replace(path, sound, n, NULL) == EBB_OK);
}

static int give_up(void *arg)
{
    return --*(int *)arg < 0;
}

/* Whoever writes the file has all of SQL, but not more of this machine's time, memory and disk. */
static void change(const char *sql)
{
    sqlite3 *db;
    int n_steps = 200;

    FUZZ_MUST(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_progress_handler(db, 1000, give_up, &n_steps);
    sqlite3_exec(db, "PRAGMA writable_schema = ON; PRAGMA max_page_count = 1000", NULL, NULL, NULL);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
}

static void check(ebb_status st, const ebb_error *err)
{
    FUZZ_MUST(st == EBB_OK || (err->msg[0] && !strchr(err->msg, '\n')));
}

static void use_session(ebb_store *s, int64_t id)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_buf text = { 0 };
    ebb_error err = { 0 };
    int64_t message;
    ebb_status st = ebb_store_load(s, id, &f, &t, &err);

    check(st, &err);
    if (st == EBB_OK) {
        ebb_node *node = ebb_tree_add(&t, ebb_tree_leaf(&t), EBB_ROLE_USER, "And?", 4);

        FUZZ_MUST(node && ebb_tree_set_leaf(&t, node));
        check(ebb_store_save(s, &f, &t, false, &err), &err);
        check(ebb_store_read_leaf_text(s, id, &message, &text, &err), &err);
        check(ebb_store_delete_message(s, node->m.id, node->n_stored, &err), &err);
    }
    ebb_buf_fini(&text);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

/* Words that are there, in any case, at the beginning of others, and longer than the index keeps them. */
static void search_words(ebb_store *s)
{
    static const char *const words[] = { "owls lofty", "owls", "LOFT", "o", "\"who lives\" i\xc3\xb6",
                                         "owls abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl" };
    ebb_error err = { 0 };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ebb_store_hit *hits = NULL;
        size_t n = 0;
        ebb_status st = ebb_store_search(s, words[i], 5, &hits, &n, &err);

        check(st, &err);
        for (size_t k = 0; st == EBB_OK && k < n; k++)
            FUZZ_MUST(memchr(hits[k].snippet, 0, sizeof hits[k].snippet));
        free(hits);
    }
}

static void use_store(ebb_store *s)
{
    ebb_session_row *rows = NULL;
    ebb_kept kept = { 0 };
    ebb_error err = { 0 };
    int64_t id = 1;
    size_t n = 0;

    if (ebb_store_list(s, &rows, &n, &err) == EBB_OK)
        free(rows);
    search_words(s);
    check(ebb_store_find(s, "Loft", &id, &err), &err);
    use_session(s, id);
    if (ebb_store_last(s, &id, &err) == EBB_OK)
        use_session(s, id);
    check(ebb_kept_read(s, &kept, &err), &err);
    ebb_kept_fini(&kept);
    check(ebb_store_rename(s, id, "new", &err), &err);
    check(ebb_store_delete(s, id, &err), &err);
    check(ebb_store_scrub(s, true, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *sql = malloc(n + 1);
    ebb_error err = { 0 };
    ebb_store *s = NULL;
    ebb_status st;

    FUZZ_MUST(sql);
    if (n)
        memcpy(sql, data, n);
    sql[n] = '\0';
    write_sound();
    change(sql);
    free(sql);
    st = ebb_store_open(path, &s, &err);
    check(st, &err);
    if (st == EBB_OK)
        use_store(s);
    ebb_store_close(s);
    return 0;
}
