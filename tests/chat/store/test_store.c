/* Sessions on disk: what is saved stands, what cannot be saved says so; in the clear, and encrypted. */
#include "ebb_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store_sql.h"
#include "support/own_folder.h"
#include "support/own_key.h"

static char dir[64], db[96];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-store-XXXXXX") != 0)
        return -1;
    snprintf(db, sizeof db, "%s/state/sessions.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

static ebb_store *open_db(void)
{
    ebb_store *s;
    ebb_error err;

    if (ebb_store_open(db, &s, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return s;
}

static ebb_node *say(ebb_tree *t, ebb_role role, const char *text)
{
    ebb_node *n = ebb_tree_add(t, ebb_tree_leaf(t), role, text, strlen(text));

    assert_non_null(n);
    assert_true(ebb_tree_set_leaf(t, n));
    return n;
}

static void save(ebb_store *s, ebb_session_facts *f, ebb_tree *t)
{
    ebb_error err;

    if (ebb_store_save(s, f, t, true, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

/* A session of one question and one answer. */
static void talk(ebb_store *s, const char *title, const char *question, const char *answer)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };

    snprintf(f.title, sizeof f.title, "%s", title);
    say(&t, EBB_ROLE_USER, question);
    say(&t, EBB_ROLE_ASSISTANT, answer)->m.finish = EBB_FINISH_STOP;
    save(s, &f, &t);
    ebb_tree_fini(&t);
}

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

static size_t hits(ebb_store *s, const char *words, char *snippet)
{
    ebb_store_hit *h;
    ebb_error err;
    size_t n;

    if (ebb_store_search(s, words, 10, &h, &n, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    if (snippet && n)
        strcpy(snippet, h[0].snippet);
    free(h);
    return n;
}

static void test_search(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    ebb_error err;
    ebb_node *a;
    char snippet[256];

    (void)state;
    talk(s, "one", "Where does the river begin?", "In the hills, where the Quelle is.");
    talk(s, "two", "Müller's memory", "AND \"quoted\" NEAR(x)");
    assert_int_equal(hits(s, "river", snippet), 1);
    assert_string_equal(snippet, "Where does the \x02river\x03 begin?");
    assert_int_equal(hits(s, "QUEL", NULL), 1);
    assert_int_equal(hits(s, "muller mem", NULL), 1);
    assert_int_equal(hits(s, "river quelle", NULL), 0);
    assert_int_equal(hits(s, "memor", snippet), 1);      /* longer than what the index has */
    assert_string_equal(snippet, "Müller's \x02memory\x03");
    assert_int_equal(hits(s, "memorial", NULL), 0);
    assert_int_equal(hits(s, "MULLER memory", snippet), 1);
    assert_string_equal(snippet, "\x02Müller\x03's \x02memory\x03");
    assert_int_equal(hits(s, "muller's memory", NULL), 1);
    assert_int_equal(hits(s, "quote begin", NULL), 0);
    assert_int_equal(hits(s, "AND", NULL), 1);   /* no operator */
    assert_int_equal(hits(s, "\"quoted\" NEAR(", NULL), 1);
    assert_int_equal(ebb_store_search(s, "  ", 10, &(ebb_store_hit *){ 0 }, &(size_t){ 0 }, &err), EBB_USAGE);

    /* Found once it is finished, not while under way, and as it is at last. */
    say(&t, EBB_ROLE_USER, "ask");
    a = say(&t, EBB_ROLE_ASSISTANT, "zebra");
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra", NULL), 0);
    assert_true(ebb_node_add_text(a, " crossing", 9));
    a->m.finish = EBB_FINISH_CANCELED;
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra crossing", NULL), 1);
    a->m.finish = EBB_FINISH_NONE;               /* it goes on */
    a->is_dirty = true;
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra", NULL), 0);
    a->m.finish = EBB_FINISH_STOP;
    assert_true(ebb_node_set_text(a, "lion", 4));
    save(s, &f, &t);
    assert_int_equal(hits(s, "zebra", NULL), 0);
    assert_int_equal(hits(s, "lion", NULL), 1);
    assert_int_equal(ebb_store_delete(s, f.id, &err), EBB_OK);
    assert_int_equal(hits(s, "lion", NULL), 0);
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search) VALUES ('integrity-check')", ""), SQLITE_OK);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

/* Many messages whose words begin alike: the newest that has it, and none, as the index itself would say. */
static void test_search_for_what(void **state)
{
    char words[33 * 2 + 1] = "";
    ebb_store *s = open_db();
    ebb_store_hit *hits;
    ebb_error err;
    size_t n;

    (void)state;
    for (int i = 0; i < 33; i++)
        strcat(words, "a ");
    assert_int_equal(ebb_store_search(s, words, 5, &hits, &n, &err), EBB_USAGE);
    assert_int_equal(ebb_store_search(s, words + 2, 5, &hits, &n, &err), EBB_OK);
    free(hits);
    assert_int_equal(ebb_store_search(s, " \t", 5, &hits, &n, &err), EBB_USAGE);
    ebb_store_close(s);
}

static void test_search_among_many(void **state)
{
    ebb_store *s = open_db();
    ebb_session_facts f = { .title = "t" };
    ebb_tree t = { 0 };
    char text[200], snippet[256];

    (void)state;
    for (int i = 0; i < 400; i++) {
        snprintf(text, sizeof text,
                 "first second third fourth fifth interval%d and more words that follow it to the end of it all", i);
        say(&t, EBB_ROLE_USER, text);
    }
    save(s, &f, &t);
    assert_int_equal(hits(s, "interval", snippet), 10);
    assert_string_equal(snippet,
                        "…second third fourth fifth \x02interval399\x03 and more words that follow it to the end…");
    assert_int_equal(hits(s, "interval7", NULL), 10);
    assert_int_equal(hits(s, "interval39", NULL), 10);
    assert_int_equal(hits(s, "interval398", NULL), 1);
    assert_int_equal(hits(s, "interlude", NULL), 0);
    ebb_tree_fini(&t);
    ebb_store_close(s);
}

static void test_deleted_elsewhere(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 };
    ebb_tree t = { 0 }, u = { 0 };
    ebb_error err;
    int64_t before;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    save(s, &f, &t);
    before = f.id;
    assert_int_equal(ebb_store_delete(other, f.id, &err), EBB_OK);
    say(&t, EBB_ROLE_ASSISTANT, "a");
    save(s, &f, &t);
    assert_int_not_equal(f.id, before);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(u.n_path, 2);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_store_close(s);
    ebb_store_close(other);
}

/* One program's answer that never began is not taken away from under what another one has said below it. */
static void test_drop_has_children(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;
    ebb_node *empty;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    empty = say(&t, EBB_ROLE_ASSISTANT, "");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    say(&u, EBB_ROLE_USER, "and?");
    save(other, &g, &u);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "another program"));
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_path, 3);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
}

/* A message that one program took back is written again by another that goes on from it, or changes it. */
static void test_parent_dropped_elsewhere(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;
    ebb_node *empty;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    empty = say(&t, EBB_ROLE_ASSISTANT, "");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_int_equal(ebb_store_delete_message(s, empty->m.id, &err), EBB_OK);
    say(&u, EBB_ROLE_USER, "and?");
    save(other, &g, &u);
    assert_int_equal(ebb_store_delete_message(s, ebb_tree_leaf(&u)->m.id, &err), EBB_OK);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&u), " then", 5));
    save(other, &g, &u);
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_path, 3);
    assert_string_equal(all.path[2]->m.text, "and? then");
    assert_int_equal(all.path[2]->m.parent, all.path[1]->m.id);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
}

/* Two programs go on with the same message: what each has saved is there; and what one has read before it grew does
 * not take the growth back. */
static void test_both_go_on(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    say(&t, EBB_ROLE_ASSISTANT, "begun");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&u), " there", 6));
    save(other, &g, &u);
    ebb_tree_leaf(&t)->m.pinned = true;
    ebb_tree_leaf(&t)->is_dirty = true;
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_string_equal(all.path[1]->m.text, "begun there");
    assert_true(all.path[1]->m.pinned);
    ebb_session_facts_fini(&h);
    ebb_tree_fini(&all);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&t), " here", 5));
    save(s, &f, &t);
    assert_true(ebb_node_add_text(ebb_tree_leaf(&t), " too", 4));
    save(s, &f, &t);
    all = (ebb_tree){ 0 };
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_nodes, 3);
    assert_string_equal(all.nodes[1]->m.text, "begun there");
    assert_string_equal(all.nodes[2]->m.text, "begun here too");
    assert_ptr_equal(all.nodes[2]->parent, all.nodes[0]);
    assert_ptr_equal(ebb_tree_leaf(&all), all.nodes[2]);
    ebb_session_facts_fini(&h);
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
}

/* Two programs in one session: both branches are there. */
static void test_two_writers(void **state)
{
    ebb_store *s = open_db(), *other = open_db();
    ebb_session_facts f = { .title = "t" }, g = { 0 }, h = { 0 };
    ebb_tree t = { 0 }, u = { 0 }, all = { 0 };
    ebb_error err;

    (void)state;
    say(&t, EBB_ROLE_USER, "q");
    save(s, &f, &t);
    assert_int_equal(ebb_store_load(other, f.id, &g, &u, &err), EBB_OK);
    for (int i = 0; i < 20; i++) {
        say(&t, EBB_ROLE_ASSISTANT, "left");
        say(&u, EBB_ROLE_ASSISTANT, "right");
        save(s, &f, &t);
        save(other, &g, &u);
    }
    assert_int_equal(ebb_store_load(s, f.id, &h, &all, &err), EBB_OK);
    assert_int_equal(all.n_nodes, 41);
    assert_int_equal(all.n_path, 21);
    assert_string_equal(ebb_tree_leaf(&all)->m.text, "right");
    ebb_tree_fini(&t);
    ebb_tree_fini(&u);
    ebb_tree_fini(&all);
    ebb_store_close(s);
    ebb_store_close(other);
}

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
    ebb_tree_fini(&u);
    ebb_store_close(s);
}

/* The file's mode decides, for everybody but root: who becomes somebody else. */
static void test_readonly_file(void **state)
{
    enum { NOBODY = 65534 };
    ebb_store *s = open_db();
    bool was_root = geteuid() == 0;
    ebb_error err;
    int64_t id;
    char cmd[128];

    (void)state;
    talk(s, "t", "q", "a");
    ebb_store_close(s);
    assert_int_equal(chmod(db, 0400), 0);
    if (was_root) {
        snprintf(cmd, sizeof cmd, "chown -R %d %s", NOBODY, dir);
        assert_int_equal(system(cmd), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    s = open_db();
    assert_true(ebb_store_is_readonly(s));
    check_failed_save(s, EBB_IO, "read-only", NULL, NULL);
    assert_int_equal(ebb_store_last(s, &id, &err), EBB_OK);
    ebb_store_close(s);
    if (was_root)
        assert_int_equal(seteuid(0), 0);
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
    expect_open(EBB_UNSUPPORTED, "newer ebb");
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

/* A batch is indexed in pieces, one that is dropped not at all, and what is saved behind it as always. */
static void test_search_behind_a_batch(void **state)
{
    ebb_store *s = open_db();
    ebb_error err;
    char text[40];

    (void)state;
    talk(s, "one", "before", "it");
    for (int is_dropped = 0; is_dropped < 2; is_dropped++) {
        ebb_session_facts f = { .title = "many" };
        ebb_tree t = { 0 };

        for (int i = 0; i < 2500; i++) {
            snprintf(text, sizeof text, "%s%d", is_dropped ? "dropped" : "kept", i);
            say(&t, EBB_ROLE_USER, text)->m.finish = i == 2499 ? EBB_FINISH_NONE : EBB_FINISH_STOP;
        }
        assert_int_equal(ebb_store_batch_begin(s, t.n_nodes, NULL, &err), EBB_OK);
        save(s, &f, &t);
        if (is_dropped)
            ebb_store_batch_drop(s);
        else
            assert_int_equal(ebb_store_batch_commit(s, &err), EBB_OK);
        ebb_tree_fini(&t);
    }
    talk(s, "two", "after", "it");
    assert_int_equal(hits(s, "before", NULL), 1);
    assert_int_equal(hits(s, "after", NULL), 1);
    assert_int_equal(hits(s, "kept0", NULL), 1);
    for (int i = 998; i < 1002; i++) {
        snprintf(text, sizeof text, "kept%d", i);
        assert_int_equal(hits(s, text, NULL), 1);
    }
    assert_int_equal(hits(s, "kept2498", NULL), 1);
    assert_int_equal(hits(s, "kept2499", NULL), 0);      /* under way */
    assert_int_equal(hits(s, "dropped", NULL), 0);
    assert_int_equal(ebb_store_run(s, "DELETE FROM messages WHERE finish = 0", ""), SQLITE_OK);
    assert_int_equal(ebb_store_run(s, "INSERT INTO search (search, rank) VALUES ('integrity-check', 1)", ""),
                     SQLITE_OK);                 /* the index has every message, once */
    ebb_store_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_round_trip), T(test_note), T(test_modes), T(test_branches_and_leaf), T(test_names), T(test_search),
        T(test_search_for_what), T(test_search_among_many), T(test_search_behind_a_batch),
        T(test_deleted_elsewhere), T(test_drop_has_children), T(test_parent_dropped_elsewhere), T(test_both_go_on),
        T(test_two_writers), T(test_beside),
        T(test_full), T(test_locked), T(test_readonly),
        T(test_readonly_file), T(test_garbage), T(test_damaged), T(test_newer),
        T(test_foreign_sql), T(test_locked_at_open),
        T(test_nowhere_to_write),
    };
    ebb_seal *seal;
    int failed = cmocka_run_group_tests_name("store", tests, NULL, NULL);

    seal = own_key();
    if (!seal)
        return failed ? failed : 77;             /* libsodium is not installed */
    failed += cmocka_run_group_tests_name("store, encrypted", tests, NULL, NULL);
    own_key_end(seal);
    return failed;
}
