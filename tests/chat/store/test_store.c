/* Sessions on disk: what is saved is what is read, branches and names too; in the clear, and encrypted. */
#include "store_fixture.h"

#include <sys/stat.h>

#include "store/store_sql.h"

static void test_round_trip(void **state)
{
    static const int32_t ids[] = { 1, -1, 0x01020304, 151935 };
    static const uint8_t model[16] = { 1, 2, 3, 255 };
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "first", .model = "tiny", .pinned_ms = 77, .settings = strdup("{\"temp\":0.5}") },
        g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_error err;
    ebb_node *a;

    (void)state;
    assert_non_null(ebb_tree_add(&t, NULL, EBB_ROLE_USER, "with\0nul \xff", 10));
    assert_true(ebb_tree_set_leaf(&t, t.nodes[0]));
    a = say(&t, EBB_ROLE_ASSISTANT, "answer ☃");
    assert_true(ebb_node_set_ids(a, ids, 4, model));
    a->m.finish = EBB_FINISH_LENGTH;
    a->m.pinned = true;
    a->m.turn_stats = (ebb_turn_stats){ 1, 2, 3, 4, 5, 6.5, 7.5, 8, 9, EBB_ABOUT_GENERATED, 0.5, 0 };
    a->m.engine = strdup("box");
    a->m.model = strdup("tiny");
    save(s, &f, &t);
    assert_true(a->m.id > 0 && !a->is_dirty && a->m.parent == t.nodes[0]->m.id);
    ebb_store_close(s);

    s = open_db();
    assert_int_equal(ebb_store_load(s, f.id, &g, &u, &err), EBB_OK);
    assert_string_equal(g.title, "first");
    assert_string_equal(g.settings, "{\"temp\":0.5}");
    assert_int_equal(g.pinned_ms, 77);
    assert_int_equal(u.n_path, 2);
    assert_memory_equal(u.path[0]->m.text, "with\0nul \xff", 11);
    assert_string_equal(u.path[1]->m.text, "answer ☃");
    assert_int_equal(u.path[1]->m.n_ids, 4);
    assert_memory_equal(u.path[1]->m.ids, ids, sizeof ids);
    assert_memory_equal(u.path[1]->m.ids_model, model, 16);
    assert_memory_equal(&u.path[1]->m.turn_stats, &a->m.turn_stats, sizeof a->m.turn_stats);
    assert_true(u.path[1]->m.pinned);
    assert_int_equal(u.path[1]->m.finish, EBB_FINISH_LENGTH);
    assert_string_equal(u.path[1]->m.model, "tiny");
    ebb_store_close(s);
    ebb_session_facts_fini(&f);
    ebb_session_facts_fini(&g);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
}

/* What a note has decided is there after a restart; what is no sense is nothing. */
static void test_note(void **state)
{
    uint32_t kept[] = { 1, 2, 7 };
    ebb_truncation out;
    char *json;

    (void)state;
    assert_null(ebb_truncation_json(&(ebb_truncation){ 0 }));
    json = ebb_truncation_json(&(ebb_truncation){ .how = EBB_OVERFLOW_COMPACT, .first = 9, .n_turns = 3,
                                                  .n_tokens = 2310, .kept = kept,
                                              .n_kept = 3, .has_cache_salt = true, .salt_pos = 12,
                                              .salt = { 1, 0xff } });
    ebb_truncation_parse(json, &out);
    assert_int_equal(out.how, EBB_OVERFLOW_COMPACT);
    assert_int_equal(out.first, 9);
    assert_int_equal(out.n_turns, 3);
    assert_int_equal(out.n_tokens, 2310);
    assert_int_equal(out.n_kept, 3);
    assert_memory_equal(out.kept, kept, sizeof kept);
    assert_true(out.has_cache_salt && out.salt_pos == 12 && out.salt[1] == 0xff);
    free(out.kept);
    free(json);
    ebb_truncation_parse("{\"how\":\"forget\",\"first\":4,\"kept\":[3,1,9,-1,\"x\"],\"salt\":\"zz\"}", &out);
    assert_true(out.first == 4 && out.n_kept == 1 && out.kept[0] == 3 && !out.has_cache_salt);
    free(out.kept);
    ebb_truncation_parse("[1]", &out);
    assert_int_equal(out.first, 0);
}

static void test_modes(void **state)
{
    ebb_store *s = open_db();
    struct stat st;
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/state", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(db, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s-wal", db);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    ebb_store_close(s);
}

/* SQLite takes 512 bytes of a path; the line says what to do, however long it is. */
static void test_path_too_long(void **state)
{
    char path[800];
    ebb_store *s;
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/%0200d/%0200d/%0200d/sessions.db", dir, 1, 2, 3);
    assert_int_equal(ebb_store_open(path, &s, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "too long for SQLite; XDG_STATE_HOME=FOLDER"));
}

static void test_branches_and_leaf(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { 0 }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_error err;
    ebb_node *q = say(&t, EBB_ROLE_USER, "q");

    (void)state;
    say(&t, EBB_ROLE_ASSISTANT, "a");
    save(s, &f, &t);
    assert_true(ebb_tree_set_leaf(&t, q));
    say(&t, EBB_ROLE_ASSISTANT, "b");
    save(s, &f, &t);
    assert_true(ebb_tree_set_leaf(&t, q->first_child));
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(s, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(u.n_nodes, 3);
    assert_string_equal(ebb_tree_leaf(&u)->m.text, "a");
    assert_string_equal(u.path[0]->last_child->m.text, "b");
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

/* Each message hangs below the one before it, however many they are. */
static void test_delete_long(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_store_hit *hits;
    ebb_error err;
    size_t n;

    (void)state;
    for (int i = 0; i < 3000; i++)
        say(&t, EBB_ROLE_USER, "more")->m.finish = EBB_FINISH_STOP;
    save(s, &f, &t);
    ebb_tree_fini(&t);
    if (ebb_store_delete(s, f.id, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(ebb_store_load(s, f.id, &f, &t, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_store_search(s, "more", 10, &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 0);
    free(hits);
    assert_int_equal(ebb_store_delete(s, 1, &err), EBB_NOTFOUND);
    talk(s, "two", "q", "a");                    /* nothing was left open */
    ebb_store_close(s);
}

/* All of them, or none. */
static void test_delete_all(void **state)
{
    ebb_store *s = open_db();
    ebb_store_hit *hits;
    ebb_error err;
    size_t n;

    (void)state;
    talk(s, "one", "river", "a");
    talk(s, "two", "river", "a");
    assert_int_equal(ebb_store_delete_all(s, (int64_t[]){ 1, 7, 2 }, 3, &err), EBB_NOTFOUND);
    assert_string_equal(err.msg, "there is no session 7");
    assert_int_equal(ebb_store_search(s, "river", 10, &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 2);
    free(hits);
    assert_int_equal(ebb_store_delete_all(s, (int64_t[]){ 1, 2 }, 2, &err), EBB_OK);
    assert_int_equal(ebb_store_search(s, "river", 10, &hits, &n, &err), EBB_OK);
    assert_int_equal(n, 0);
    free(hits);
    ebb_store_close(s);
}

static void test_names(void **state)
{
    ebb_store *s = open_db();
    ebb_session_row *rows;
    ebb_error err;
    int64_t one, two, id;
    size_t n;
    char number[24];

    (void)state;
    talk(s, "same title", "q", "a");
    talk(s, "same title", "q", "a");
    assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, 2);
    two = rows[0].id;
    one = rows[1].id;
    assert_true(two > one);
    assert_int_equal(rows[0].n_messages, 2);
    free(rows);
    assert_int_equal(ebb_store_find(s, "same title", &id, &err), EBB_LIMIT);     /* which? */
    snprintf(number, sizeof number, "%lld, %lld;", (long long)two, (long long)one);
    assert_non_null(strstr(err.msg, number));
    assert_int_equal(ebb_store_rename(s, one, "mine", &err), EBB_OK);
    assert_int_equal(ebb_store_find(s, "mine", &id, &err), EBB_OK);
    assert_int_equal(id, one);
    assert_int_equal(ebb_store_find(s, "same title", &id, &err), EBB_OK);
    assert_int_equal(id, two);
    snprintf(number, sizeof number, "%lld", (long long)one);
    assert_int_equal(ebb_store_find(s, number, &id, &err), EBB_OK);
    assert_int_equal(id, one);
    assert_int_equal(ebb_store_rename(s, two, "mine", &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "already"));
    assert_int_equal(ebb_store_find(s, "nobody", &id, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "nobody"));
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    assert_int_equal(ebb_store_delete(s, one, &err), EBB_OK);
    assert_int_equal(ebb_store_delete(s, one, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    free(rows);
    ebb_store_close(s);
}

/* What stands in the list under a number is found by that number, whatever titles came with imports. */
static void test_numbers_and_titles(void **state)
{
    ebb_store *s = open_db();
    ebb_error err;
    int64_t id;

    (void)state;
    talk(s, "first", "q", "a");
    talk(s, "1", "q", "a");
    talk(s, "7", "q", "a");
    assert_int_equal(ebb_store_find(s, "1", &id, &err), EBB_OK);
    assert_int_equal(id, 1);
    assert_int_equal(ebb_store_find(s, "7", &id, &err), EBB_OK);         /* nobody's number */
    assert_int_equal(id, 3);
    assert_int_equal(ebb_store_find(s, "    2", &id, &err), EBB_OK);     /* as a list pads it */
    assert_int_equal(id, 2);
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = '  2' WHERE id = 3", ""), SQLITE_OK);
    assert_int_equal(ebb_store_find(s, "  2", &id, &err), EBB_OK);
    assert_int_equal(id, 3);
    assert_int_equal(ebb_store_rename(s, 1, "44", &err), EBB_OK);
    assert_int_equal(ebb_store_find_or_begin(s, "    1", &id, &err), EBB_LIMIT);
    ebb_store_close(s);
}

static void expect_word(ebb_store *s, int64_t session, const char *want)
{
    char word[EBB_SESSION_WORD];
    ebb_error err;
    int64_t id;

    ebb_store_word(s, session, word);
    assert_string_equal(word, want);
    assert_int_equal(ebb_store_find(s, word, &id, &err), EBB_OK);
    assert_int_equal(id, session);
    assert_int_equal(ebb_store_find_or_begin(s, word, &id, &err), EBB_OK);
    assert_int_equal(id, session);
}

/* What could not be seen in a list, or not be typed behind /load, is no name; a session that has one keeps it. */
static void test_names_of_blanks(void **state)
{
    static const char *const names[] = { "", " ", "   ", " trip", "trip " };
    ebb_store *s = open_db();
    ebb_error err;
    int64_t id;

    (void)state;
    talk(s, "t", "q", "a");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(ebb_session_check_name(names[i], &err), EBB_USAGE);
        assert_int_equal(ebb_store_rename(s, 1, names[i], &err), EBB_USAGE);
    }
    assert_string_equal(err.msg, "a session's name may not begin or end with a blank");
    assert_int_equal(ebb_store_rename(s, 1, "my trip", &err), EBB_OK);
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = ' ' WHERE id = 1", ""), SQLITE_OK);
    assert_int_equal(ebb_store_find(s, " ", &id, &err), EBB_OK);
    ebb_store_close(s);
}

/* A number is a name where no other session has it, be it as its number; where the two collide in an older database,
 * nothing of two is taken for the other, and each is found by what is told of it. */
static void test_numbers_and_names(void **state)
{
    static const char *const names[] = { "20261129", "007", "0", "-1", "1st", "99999999999999999999" };
    ebb_store *s = open_db();
    ebb_error err;
    int64_t id;

    (void)state;
    for (int i = 0; i < 3; i++)
        talk(s, "t", "q", "a");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(ebb_session_check_name(names[i], &err), EBB_OK);
        assert_int_equal(ebb_store_check_free_name(s, names[i], &err), EBB_OK);
        assert_int_equal(ebb_store_rename(s, 1, names[i], &err), EBB_OK);
        assert_int_equal(ebb_store_find(s, names[i], &id, &err), EBB_OK);
        assert_int_equal(id, 1);
    }
    assert_int_equal(ebb_store_check_free_name(s, "2", &err), EBB_USAGE);
    assert_string_equal(err.msg, "2 is the number of another session; choose another name");
    assert_int_equal(ebb_store_rename(s, 1, "2", &err), EBB_USAGE);
    assert_string_equal(err.msg, "2 is the number of another session; choose another name");
    assert_int_equal(ebb_store_rename(s, 1, "1", &err), EBB_OK);         /* its own */
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = iif(id = 1, '2', '7') WHERE id IN (1, 3)", ""),
                     SQLITE_OK);
    assert_int_equal(ebb_store_find(s, "7", &id, &err), EBB_OK);         /* nobody's number */
    assert_int_equal(id, 3);
    assert_int_equal(ebb_store_find(s, "2", &id, &err), EBB_LIMIT);
    assert_string_equal(err.msg, "'2' is the name of one session and the number of another: 01 is the one of this "
                                 "name, 02 the other; `ebb sessions rename 01 NAME` tells them apart");
    expect_word(s, 1, "01");
    expect_word(s, 2, "02");
    expect_word(s, 3, "03");
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = '02' WHERE id = 1", ""), SQLITE_OK);
    assert_int_equal(ebb_store_find(s, "02", &id, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, ": 01 is the one of this name, 2 the other;"));
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = '2' WHERE id = 3", ""), SQLITE_OK);
    expect_word(s, 1, "01");
    expect_word(s, 2, "002");
    expect_word(s, 3, "03");
    assert_int_equal(ebb_store_rename(s, 1, "two", &err), EBB_OK);
    assert_int_equal(ebb_store_rename(s, 3, "three", &err), EBB_OK);
    assert_int_equal(ebb_store_find(s, "2", &id, &err), EBB_OK);
    assert_int_equal(id, 2);
    ebb_store_close(s);
}

/* A list shows a session under its number, and it is found by that; where a missing name begins a new one, that
 * may be meant: it does not lead into one that is called by another number. */
static void test_numbers_of_named(void **state)
{
    ebb_store *s = open_db();
    ebb_error err;
    int64_t id;

    (void)state;
    talk(s, "t", "q", "a");
    assert_int_equal(ebb_store_rename(s, 1, "20261129", &err), EBB_OK);
    assert_int_equal(ebb_store_find(s, "1", &id, &err), EBB_OK);
    assert_int_equal(id, 1);
    assert_int_equal(ebb_store_find_or_begin(s, "1", &id, &err), EBB_LIMIT);
    assert_string_equal(err.msg, "no session is called '1', and the one with that number is called by another: 01 is "
                                 "that one; a new one needs another name");
    expect_word(s, 1, "01");
    assert_int_equal(ebb_store_find_or_begin(s, "20261129", &id, &err), EBB_OK);
    assert_int_equal(ebb_store_find_named(s, "1", &id, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_store_find_named(s, "t", &id, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_store_find_named(s, "20261129", &id, &err), EBB_OK);
    assert_int_equal(ebb_store_rename(s, 1, "0001", &err), EBB_OK);
    assert_int_equal(ebb_store_find_or_begin(s, "1", &id, &err), EBB_OK);        /* it is its number */
    assert_int_equal(ebb_store_rename(s, 1, "work", &err), EBB_OK);
    assert_int_equal(ebb_store_find_or_begin(s, "1", &id, &err), EBB_OK);
    ebb_store_close(s);
}

/* A new session's number is nobody's name, and its name nobody's number, as the row is made. */
static void test_numbers_of_new_ones(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t", .name = "3" }, g = { .title = "t", .name = "5" };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_session_row *rows;
    ebb_error err;
    size_t n;

    (void)state;
    talk(s, "t", "q", "a");
    assert_int_equal(ebb_store_rename(s, 1, "02", &err), EBB_OK);
    save(s, &f, &t);                             /* its own name, and 02 is passed over */
    assert_int_equal(f.id, 3);
    f.id = 0;
    strcpy(f.name, "1");
    assert_int_equal(ebb_store_save(s, &f, &t, false, &err), EBB_USAGE);
    assert_int_equal(f.id, 0);
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = '5' WHERE id = 3", ""), SQLITE_OK);
    strcpy(f.name, "4");
    save(s, &f, &t);
    assert_int_equal(f.id, 4);
    assert_int_equal(ebb_store_rename(s, 3, "4", &err), EBB_USAGE);
    assert_int_equal(ebb_store_run(s, "DELETE FROM sessions WHERE id = 3", ""), SQLITE_OK);
    save(s, &g, &u);
    assert_int_equal(g.id, 5);
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = NULL WHERE id > 1", ""), SQLITE_OK);
    assert_int_equal(ebb_store_run(s, "UPDATE sessions SET name = '4' WHERE id = 1", ""), SQLITE_OK);
    assert_int_equal(ebb_store_list(s, &rows, &n, &err), EBB_OK);        /* of an older database */
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(rows[i].word, rows[i].id == 1 ? "1" : rows[i].id == 4 ? "04" : "5");
    for (size_t i = 0; i < n; i++)
        assert_string_equal(ebb_session_row_name(&rows[i]), rows[i].word);
    free(rows);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

/* Titles that no list shows: two of them are still two. */
static void test_titles_behind_names(void **state)
{
    ebb_store *s = open_db();
    ebb_error err;
    int64_t id;

    (void)state;
    talk(s, "hello", "q", "a");
    talk(s, "hello", "q", "a");
    assert_int_equal(ebb_store_rename(s, 1, "work", &err), EBB_OK);
    assert_int_equal(ebb_store_rename(s, 2, "home", &err), EBB_OK);
    assert_int_equal(ebb_store_find(s, "hello", &id, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "2, 1; name one by its number"));
    assert_int_equal(ebb_store_delete(s, 2, &err), EBB_OK);
    assert_int_equal(ebb_store_find(s, "hello", &id, &err), EBB_OK);
    assert_int_equal(id, 1);
    ebb_store_close(s);
}

/* None that no list can show, or that is cut where it is read. */
static void test_no_names(void **state)
{
    char longest[129];
    ebb_store *s = open_db();
    ebb_error err;

    (void)state;
    talk(s, "t", "q", "a");
    memset(longest, 'n', sizeof longest);
    longest[128] = '\0';
    assert_int_equal(ebb_store_rename(s, 1, longest, &err), EBB_USAGE);
    assert_int_equal(ebb_store_rename(s, 1, longest + 1, &err), EBB_OK);
    assert_int_equal(ebb_store_rename(s, 1, "", &err), EBB_USAGE);
    assert_int_equal(ebb_store_rename(s, 1, "a\n## user", &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "control characters"));
    ebb_store_close(s);
}

/* The copy that SQLite makes of a database is a file, but for an encrypted one, whose copy would be in the clear. */
static int note_temporary_file(unsigned kind, void *arg, void *statement, void *text)
{
    bool *is_asked_for = arg;

    (void)kind;
    (void)text;
    *is_asked_for = *is_asked_for || strstr(sqlite3_sql(statement), "temp_store = FILE");
    return 0;
}

static void test_rewritten_in_little_memory(void **state)
{
    static const char fill[] = "WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 128)"
        " INSERT INTO messages (session, role, finish, pinned, text, ids, n_ids, ids_model, created_ms, n_prompt,"
        " n_reused, n_reused_disk, n_computed, n_generated, prefill_s, decode_s)"
        " SELECT 1, 2, 0, 0, '', zeroblob(65536), 16384, x'', 0, 0, 0, 0, 0, 0, 0, 0 FROM i";
    ebb_store *s = open_db();
    bool is_file = false;
    ebb_error err = { 0 };
    ebb_status st;
    char files[160];

    (void)state;
    talk(s, "t", "q", "a");
    assert_int_equal(sqlite3_exec(s->db, fill, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_trace_v2(s->db, SQLITE_TRACE_STMT, note_temporary_file, &is_file), SQLITE_OK);
    if (!ebb_seal_here())
        sqlite3_hard_heap_limit64(6 << 20);      /* of 8 MiB */
    st = ebb_store_scrub(s, true, &err);
    sqlite3_hard_heap_limit64(0);
    if (st != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(is_file, !ebb_seal_here());
    ebb_store_close(s);
    snprintf(files, sizeof files, "! ls -A %s/state | grep -q etilqs", dir);
    assert_int_equal(system(files), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_round_trip), T(test_note), T(test_modes), T(test_path_too_long), T(test_branches_and_leaf),
        T(test_delete_long), T(test_delete_all), T(test_names),
        T(test_numbers_and_titles), T(test_names_of_blanks), T(test_numbers_and_names), T(test_numbers_of_named),
        T(test_numbers_of_new_ones), T(test_titles_behind_names), T(test_no_names),
        T(test_rewritten_in_little_memory),
    };
    int failed = cmocka_run_group_tests_name("store", tests, NULL, NULL);

    return failed + run_encrypted("store, encrypted", tests);
}
