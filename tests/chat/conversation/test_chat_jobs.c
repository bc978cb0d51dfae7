/* Imports, exports and forms beside the chat: they do not hold it up, can be stopped, and bring all or nothing. */
#include "ebb_test.h"

#include <sqlite3.h>

#include "base/utf8.h"
#include "chat/conversation/chat_fixture.h"
#include "os/file.h"
#include "store/import_file.h"
#include "store/store_sql.h"

static char file[128], line[640];

/* n conversations of two messages each. */
static void write_talks(size_t n)
{
    ebb_buf text = { 0 };
    ebb_error err;

    snprintf(file, sizeof file, "%s/talks.json", dir);
    ebb_buf_adds(&text, "[");
    for (size_t i = 0; i < n; i++)
        ebb_buf_addf(&text, "%s{\"title\": \"talk %zu\", \"messages\": [{\"role\": \"user\", \"content\": \"q%zu\"},"
                            " {\"role\": \"assistant\", \"content\": \"a%zu\"}]}", i ? "," : "", i + 1, i + 1, i + 1);
    ebb_buf_adds(&text, "]");
    assert_int_equal(ebb_file_create(file, text.data, text.len, &err), EBB_OK);
    ebb_buf_fini(&text);
}

/* As another program that writes: nobody else can until it is let go. */
static ebb_store *hold_store(void)
{
    ebb_store *s;
    ebb_error err;

    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_int_equal(ebb_store_batch_begin(s, 0, NULL, &err), EBB_OK);
    return s;
}

static void release_store(ebb_store *s)
{
    ebb_store_batch_drop(s);
    ebb_store_close(s);
}

static size_t n_sessions(ebb_chat *c)
{
    ebb_session_row *rows;
    ebb_error err;
    size_t n;

    assert_int_equal(ebb_chat_list(c, &rows, &n, &err), EBB_OK);
    free(rows);
    return n;
}

static void import_begins(ebb_chat *c)
{
    ebb_error err;

    if (ebb_chat_import(c, file, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

/* While it cannot go on, everything that does not need it does. */
static void test_held_import(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_store *held = hold_store();
    ebb_chat_event ev;
    ebb_error err;
    double share;

    (void)state;
    write_talks(2);
    import_begins(c);
    for (int i = 0; i < 100; i++) {
        assert_false(ebb_chat_event_next(c, &ev));
        assert_true(ebb_chat_is_busy(c));
        assert_string_equal(ebb_chat_job_under_way(c, &share), "importing");
        assert_true(share >= 0 && share < 1);
        assert_int_equal(ebb_chat_n_messages(c), 0);
    }
    assert_int_equal(ebb_chat_send(c, "x", 1, &err), EBB_BUSY);
    assert_int_equal(ebb_chat_import(c, file, &err), EBB_BUSY);
    assert_int_equal(n_sessions(c), 0);
    release_store(held);
    assert_true(fake_wait(c, EBB_EVENT_CHANGED, NULL, 0));
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
    assert_string_equal(line, "2 new sessions; this is the last one");
    assert_string_equal(path(c), "[q2] [a2]");
    assert_null(ebb_chat_job_under_way(c, &share));
    assert_int_equal(n_sessions(c), 2);
    say(c, "on");                                /* what was taken over can be saved like any other */
    assert_string_equal(path(c), "[q2] [a2] [on] [a1.0 a1.1 a1.2 ]");
    assert_int_equal(n_sessions(c), 2);
    ebb_chat_close(c);
}

static void test_stopped_import(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_store *held;

    (void)state;
    say(c, "before");
    held = hold_store();
    write_talks(3);
    import_begins(c);
    ebb_chat_stop(c);
    assert_true(fake_wait(c, EBB_EVENT_REFUSED, line, sizeof line));
    assert_non_null(strstr(line, "stopped: nothing from "));
    assert_false(ebb_chat_is_busy(c));
    release_store(held);
    assert_int_equal(n_sessions(c), 1);
    say(c, "after");
    assert_string_equal(path(c), "[before] [a1.0 a1.1 a1.2 ] [after] [a2.0 a2.1 a2.2 ]");
    ebb_chat_close(c);
}

static void test_closed_in_the_middle(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_store *held = hold_store();

    (void)state;
    write_talks(3);
    import_begins(c);
    ebb_chat_close(c);
    release_store(held);
    c = open_ready(NULL);
    assert_int_equal(n_sessions(c), 0);
    ebb_chat_close(c);
}

/* The second of three cannot be saved: nor are the others. */
static void test_all_or_none(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_store *s;
    ebb_error err;

    (void)state;
    write_talks(3);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_int_equal(sqlite3_exec(s->db, "CREATE UNIQUE INDEX no_second ON sessions (model)", NULL, NULL, NULL),
                     SQLITE_OK);
    import_begins(c);
    assert_true(fake_wait(c, EBB_EVENT_REFUSED, line, sizeof line));
    assert_non_null(strstr(line, EBB_STORE_NAME_TAKEN));
    assert_int_equal(n_sessions(c), 0);
    assert_int_equal(sqlite3_exec(s->db, "DROP INDEX no_second", NULL, NULL, NULL), SQLITE_OK);
    ebb_store_close(s);
    import_begins(c);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
    assert_int_equal(n_sessions(c), 3);
    snprintf(file, sizeof file, "/nonexistent.json");
    import_begins(c);
    assert_true(fake_wait(c, EBB_EVENT_REFUSED, line, sizeof line));
    assert_non_null(strstr(line, "nonexistent.json"));
    ebb_chat_close(c);
}

static void test_in_memory(void **state)
{
    ebb_chat *c = open_ready(&(ebb_chat_opts){ .store_path = ":memory:" });

    (void)state;
    write_talks(2);
    import_begins(c);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, NULL, 0));
    assert_int_equal(n_sessions(c), 2);
    assert_string_equal(path(c), "[q2] [a2]");
    ebb_chat_close(c);
}

/* Each message is a step that is counted and can be the last, and so is each piece of the file. */
static void test_steps(void **state)
{
    enum { N_TALKS = 200 };
    ebb_progress p = { 0 };
    ebb_import_set set = { 0 };
    ebb_store *s;
    ebb_error err;

    (void)state;
    write_talks(N_TALKS);
    assert_int_equal(ebb_store_open(db, &s, &err), EBB_OK);
    assert_int_equal(ebb_import_read(file, &p, &set, &err), EBB_OK);
    assert_int_equal(set.n, N_TALKS);
    assert_int_equal(ebb_import_keep(s, &set, &p, &err), EBB_OK);
    assert_int_equal(s->batch.n_saved, 2 * N_TALKS);
    assert_true(ebb_progress_share(&p) > 0.9);
    ebb_import_set_fini(&set);
    ebb_progress_stop(&p);
    assert_int_equal(ebb_import_read(file, &p, &set, &err), EBB_CANCELED);
    assert_int_equal(set.n, 0);
    assert_int_equal(ebb_import_read(file, NULL, &set, &err), EBB_OK);
    assert_int_equal(ebb_import_keep(s, &set, &p, &err), EBB_CANCELED);
    ebb_import_set_fini(&set);
    ebb_store_close(s);
}

static void test_too_many(void **state)
{
    ebb_import_set set = { 0 };
    ebb_error err;

    (void)state;
    write_talks(EBB_IMPORT_SESSIONS);
    assert_int_equal(ebb_import_read(file, NULL, &set, &err), EBB_OK);
    ebb_import_set_fini(&set);
    assert_int_equal(remove(file), 0);
    write_talks(EBB_IMPORT_SESSIONS + 1);
    assert_int_equal(ebb_import_read(file, NULL, &set, &err), EBB_LIMIT);
    assert_int_equal(set.n, 0);
    assert_non_null(strstr(err.msg, "talks.json: it has more than 50000 conversations"));
}

/* -- Exports ---------------------------------------------------------------------------------- */

/* A conversation of 3 MB: it is written beside the chat, and what was said is what is read back. */
static void test_long_export(void **state)
{
    enum { N_TEXT = 3 << 20 };
    ebb_chat *c = open_ready(NULL);
    char *said = malloc(N_TEXT), to[160];
    ebb_buf text = { 0 };
    ebb_error err;
    double share;

    (void)state;
    memset(said, 'q', N_TEXT);
    snprintf(file, sizeof file, "%s/talks.json", dir);
    ebb_buf_addf(&text, "[{\"title\": \"long\", \"messages\": [{\"role\": \"user\", \"content\": \"");
    ebb_buf_add(&text, said, N_TEXT);
    ebb_buf_adds(&text, "\"}, {\"role\": \"assistant\", \"content\": \"a\"}]}]");
    assert_int_equal(ebb_file_create(file, text.data, text.len, &err), EBB_OK);
    ebb_buf_fini(&text);
    import_begins(c);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, NULL, 0));
    for (int i = 0; i < 3; i++) {
        static const char *const endings[] = { "md", "txt", "json" };

        snprintf(to, sizeof to, "%s/long.%s", dir, endings[i]);
        assert_int_equal(ebb_chat_export(c, to, &err), EBB_OK);
        assert_string_equal(ebb_chat_job_under_way(c, &share), "exporting");
        assert_int_equal(ebb_chat_set_title(c, "changed", &err), EBB_OK);
        assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
        assert_non_null(strstr(line, "written to "));
        assert_non_null(strstr(line, endings[i]));
        assert_int_equal(ebb_chat_export(c, to, &err), EBB_OK);          /* the name is taken: seen meanwhile */
        assert_true(fake_wait(c, EBB_EVENT_REFUSED, line, sizeof line));
        assert_false(ebb_chat_is_busy(c));
    }
    assert_int_equal(ebb_chat_import(c, to, &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, NULL, 0));
    assert_int_equal(ebb_chat_n_messages(c), 2);
    assert_int_equal(ebb_chat_message(c, 0)->n_text, N_TEXT);
    assert_memory_equal(ebb_chat_message(c, 0)->text, said, N_TEXT);
    snprintf(to, sizeof to, "%s/stopped.md", dir);
    assert_int_equal(ebb_chat_export(c, to, &err), EBB_OK);
    ebb_chat_close(c);                           /* waits for the thread: there is a whole file or none */
    if (ebb_file_slurp(to, 2 * N_TEXT, &text, &err) == EBB_OK)
        assert_true(text.len > N_TEXT);
    ebb_buf_fini(&text);
    free(said);
}

/* -- Forms ------------------------------------------------------------------------------------ */

static void test_forms(void **state)
{
    ebb_chat *c = open_ready(NULL);
    ebb_error err;
    bool is_schema;

    (void)state;
    assert_int_equal(ebb_chat_set_form(c, true, "{\"type\": \"integer\"}", &err), EBB_OK);
    assert_true(ebb_chat_is_busy(c));
    assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
    assert_non_null(strstr(line, "answers are JSON under the schema"));
    assert_non_null(ebb_chat_form(c, &is_schema));
    assert_int_equal(ebb_chat_set_form(c, true, "{\"type\": 5}", &err), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_REFUSED, line, sizeof line));
    assert_non_null(ebb_chat_form(c, &is_schema));
    assert_int_equal(ebb_chat_set_form(c, true, "off", &err), EBB_OK);
    assert_null(ebb_chat_form(c, &is_schema));
    assert_int_equal(ebb_chat_set_form(c, true, "true", &err), EBB_OK);
    ebb_chat_stop(c);                            /* it may be compiled by now; it is not taken */
    assert_true(fake_wait(c, EBB_EVENT_REFUSED, line, sizeof line));
    assert_null(ebb_chat_form(c, &is_schema));
    ebb_chat_close(c);
}

/* A comment in Latin-1, and a file's name that is cut in the middle of a character, with one byte before it or two. */
static void test_forms_in_all_characters_are_kept(void **state)
{
    static const char grammar[] = "root ::= \"yes\" # f\xFCr\n";
    char word[300], name[200];
    ebb_error err;
    bool is_schema;

    (void)state;
    for (size_t shift = 1; shift <= 2; shift++) {
        size_t n = (size_t)snprintf(word, sizeof word, "%s/%.*s", dir, (int)shift, "xx");
        ebb_chat *c = open_ready(NULL);

        while (n < 230)
            n += (size_t)snprintf(word + n, sizeof word - n, "\xC3\xA9");
        assert_int_equal(ebb_file_create(word, grammar, sizeof grammar - 1, &err), EBB_OK);
        say(c, "q");
        assert_int_equal(ebb_chat_set_form(c, false, word, &err), EBB_OK);
        assert_true(fake_wait(c, EBB_EVENT_NOTICE, line, sizeof line));
        assert_non_null(ebb_chat_form(c, &is_schema));
        snprintf(name, sizeof name, "%s", ebb_chat_form(c, &is_schema));
        assert_true(ebb_utf8_is_valid(name, strlen(name)));
        assert_int_equal(strncmp(name, word, 190), 0);
        ebb_chat_close(c);
        c = open_ready(&(ebb_chat_opts){ .continue_last = true });
        assert_non_null(ebb_chat_form(c, &is_schema));
        assert_string_equal(ebb_chat_form(c, &is_schema), name);
        assert_string_equal(c->settings.form.grammar, "root ::= \"yes\" # f\xEF\xBF\xBDr\n");
        ebb_chat_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_held_import, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped_import, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_or_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_export, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forms_in_all_characters_are_kept, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
