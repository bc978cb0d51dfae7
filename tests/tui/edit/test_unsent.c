/* What was not sent comes back, however long it is, and is never taken for encrypted when it is not. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "edit/marked.h"
#include "edit/message_file.h"
#include "edit/unsent.h"
#include "os/fault.h"
#include "os/file.h"
#include "support/own_key.h"
#include "support/small_disk.h"

static char folder[] = "/tmp/ebb-unsent-XXXXXX";

static int open_folder(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int close_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* Taken up and dropped. */
static bool restore(const char *session, ebb_buf *out)
{
    ebb_unsent_file d = { .fd = -1 };
    bool is_there = ebb_unsent_restore(&d, folder, session, out, NULL);

    ebb_unsent_end_autosave(&d);
    return is_there;
}

/* More than a paste may have: two of them. */
static void a_long_draft_comes_back(void **state)
{
    size_t n = (size_t)65 << 20;
    char *text = malloc(n);
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', n);
    assert_int_equal(ebb_unsent_persist(folder, "trip", text, n, NULL, &err), EBB_OK);
    assert_false(restore("other", &out));
    assert_true(restore("trip", &out));
    assert_int_equal(out.len, n);
    assert_memory_equal(out.data, text, n);
    assert_false(restore("trip", &out));
    ebb_buf_fini(&out);
    free(text);
}

static bool is_trip(void *arg, const char *session)
{
    (void)arg;
    return strcmp(session, "trip") == 0;
}

static void each_conversation_has_its_own(void **state)
{
    static const char *const sessions[] = { "trip", "letters", "", "" };
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(ebb_unsent_persist(folder, sessions[i], "a text", 6, NULL, &err), EBB_OK);
    ebb_unsent_sweep(folder, is_trip, NULL);     /* "letters" is deleted */
    for (int i = 0; i < 4; i++) {
        ebb_buf_clear(&out);
        assert_int_equal(restore(sessions[i], &out), i != 1);
        assert_string_equal(ebb_buf_text(&out), i != 1 ? "a text" : "");
    }
    ebb_buf_fini(&out);
}

/* It was found by the name of its session, and has that session's key now. */
static void one_of_an_older_ebb_gets_a_key(void **state)
{
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(ebb_unsent_persist(folder, "trip", "a text\nof two lines", 20, NULL, &err), EBB_OK);
    assert_int_equal(ebb_unsent_persist(folder, "trips", "another", 7, NULL, &err), EBB_OK);
    ebb_unsent_rename(folder, "trip", "7\t1700000000000");
    assert_false(restore("trip", &out));
    assert_true(restore("7\t1700000000000", &out));
    assert_string_equal(ebb_buf_text(&out), "a text\nof two lines");
    ebb_buf_clear(&out);
    assert_true(restore("trips", &out));
    assert_string_equal(ebb_buf_text(&out), "another");
    ebb_buf_fini(&out);
}

/* It stays in its file until it is sent or dropped, and nobody else has it meanwhile. */
static void it_is_in_one_place(void **state)
{
    ebb_unsent_file d = { .fd = -1 }, other = { .fd = -1 };
    ebb_buf out = { 0 };
    ebb_error err;
    pid_t pid;
    int status;

    (void)state;
    assert_int_equal(ebb_unsent_persist(folder, "7\t1", "a text", 6, NULL, &err), EBB_OK);
    pid = fork();
    if (pid == 0)                                /* taken up, and killed before anything was done with it */
        _exit(!ebb_unsent_restore(&d, folder, "7\t1", &out, NULL));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, NULL));
    assert_string_equal(ebb_buf_text(&out), "a text");
    assert_false(ebb_unsent_restore(&other, folder, "7\t1", &out, NULL));
    ebb_unsent_autosave(&d, folder, "8\t1", "a text of two", 13, NULL);    /* the session has another key by now */
    ebb_unsent_leave_autosave(&d);
    ebb_buf_clear(&out);
    assert_false(restore("7\t1", &out));
    assert_true(restore("8\t1", &out));
    assert_string_equal(ebb_buf_text(&out), "a text of two");
    ebb_buf_fini(&out);
}

/* In a container every ebb may have the same number: what a killed one has left is nobody's to write over. */
static void a_number_that_comes_again(void **state)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf out = { 0 };
    char path[64];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/draft-%ld", folder, (long)getpid());
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("7\t1\nof the killed one", f);
    assert_int_equal(fclose(f), 0);
    ebb_unsent_autosave(&d, folder, "8\t1", "of this one", 11, NULL);
    assert_true(d.fd >= 0);
    assert_true(restore("7\t1", &out));
    assert_string_equal(ebb_buf_text(&out), "of the killed one");
    ebb_unsent_end_autosave(&d);
    ebb_buf_fini(&out);
}

/* What was saved before there was no room any more is whole. */
static void on_a_full_disk(void **state)
{
    static char longer[20000];
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf out = { 0 };

    (void)state;
    if (!ebb_small_disk_mount(folder, 64))
        skip();
    memset(longer, 'a', sizeof longer);
    ebb_unsent_autosave(&d, folder, "trip", "half a thought", 14, NULL);
    assert_true(ebb_small_disk_fill(folder));
    ebb_unsent_autosave(&d, folder, "trip", longer, sizeof longer, NULL);
    ebb_unsent_leave_autosave(&d);
    assert_true(restore("trip", &out));
    assert_string_equal(ebb_buf_text(&out), "half a thought");
    ebb_buf_fini(&out);
    ebb_small_disk_unmount(folder);
}

/* A kill leaves what was about to take a draft's place: that is no second one, and goes with the next encryption. */
static void what_was_begun_is_none(void **state)
{
    char path[96];
    ebb_buf out = { 0 };

    (void)state;
    snprintf(path, sizeof path, "%s/draft-0123456789abcdef.0123456789abcdef.new", folder);
    assert_int_equal(ebb_file_replace(path, "trip\nold", 8, NULL), EBB_OK);
    assert_false(restore("trip", &out));
    assert_int_equal(ebb_unsent_turn(folder, NULL, NULL, NULL), EBB_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    ebb_buf_fini(&out);
}

/* Whichever call fails: all of them are turned, or it is said that they are not. */
static void none_is_passed_over(void **state)
{
    static const char *const sessions[] = { "trip", "trips" };
    const ebb_seal *before = ebb_seal_here();
    ebb_seal *key = own_key();
    bool failed = true;
    ebb_error err;

    (void)state;
    if (!key)
        skip();
    for (int n = 1; failed; n++) {
        ebb_buf out = { 0 };
        ebb_status st;

        ebb_seal_use_here(NULL);
        for (int i = 0; i < 2; i++)
            assert_int_equal(ebb_unsent_persist(folder, sessions[i], "a text", 6, NULL, &err), EBB_OK);
        ebb_os_fail_nth(n);
        st = ebb_unsent_turn(folder, key, key, &err);
        failed = ebb_os_fail_off();
        if (st == EBB_OK)                        /* what is sealed belongs to nobody without a key */
            assert_false(restore("trip", &out) || restore("trips", &out));
        ebb_seal_use_here(key);
        for (int i = 0; i < 2; i++)
            assert_true(restore(sessions[i], &out));
        assert_string_equal(ebb_buf_text(&out), "a texta text");
        ebb_buf_fini(&out);
    }
    own_key_end(key);
    ebb_seal_use_here(before);
}

/* What a program that runs has is not turned under it, and is said. */
static void what_runs_is_named(void **state)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_error err = { 0 };
    int to_child[2], to_us[2];
    char c = 0;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(to_child) + pipe(to_us), 0);
    pid = fork();
    if (pid == 0) {
        close(to_child[1]);
        if (ebb_unsent_autosave(&d, folder, "trip", "mine", 4, NULL) && write(to_us[1], &c, 1) == 1 &&
            read(to_child[0], &c, 1) == 0)
            ebb_unsent_end_autosave(&d);
        _exit(0);
    }
    assert_int_equal(read(to_us[0], &c, 1), 1);
    assert_int_equal(ebb_unsent_turn(folder, NULL, NULL, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, "/draft-"));
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_us[i]);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Where nothing can be removed, the text comes back all the same. */
static void from_a_disk_that_is_read_only(void **state)
{
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    if (!ebb_small_disk_mount(folder, 64))
        skip();
    assert_int_equal(ebb_unsent_persist(folder, "trip", "a text", 6, NULL, &err), EBB_OK);
    assert_true(ebb_small_disk_read_only(folder));
    assert_true(restore("trip", &out));
    assert_string_equal(ebb_buf_text(&out), "a text");
    ebb_buf_fini(&out);
    ebb_small_disk_unmount(folder);
}

static void what_cannot_be_turned_is_named(void **state)
{
    char path[64];
    ebb_error err;
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/draft-1", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(truncate(path, (off_t)129 << 20), 0);
    assert_int_equal(ebb_unsent_turn(folder, NULL, NULL, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);     /* nobody's draft */
    assert_int_equal(ebb_unsent_turn(folder, NULL, NULL, &err), EBB_OK);
    assert_int_equal(unlink(path), 0);
}

/* Killed between the text and the end of the file: nothing of the text before is behind it, and it can be read. */
static void killed_while_it_gets_shorter(void **state)
{
    static const char text[] = "What I meant to say at first", shorter[] = "What I mean";
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf out = { 0 };

    (void)state;
    ebb_unsent_autosave(&d, folder, "trip", text, sizeof text - 1, NULL);
    ebb_os_fail_nth_here(3);                     /* room, bytes, the end of the file */
    ebb_unsent_autosave(&d, folder, "trip", shorter, sizeof shorter - 1, NULL);
    assert_true(ebb_os_fail_off());
    ebb_unsent_leave_autosave(&d);
    assert_true(restore("trip", &out));
    assert_string_equal(ebb_buf_text(&out), shorter);
    ebb_buf_fini(&out);
}

/* What an editor had when the program was killed. */
static void lend(const char *session, const char *text, size_t n_before, char path[64])
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_unsent_lent lent = { path, n_before };

    snprintf(path, 64, "%s/ebb-draft-editor.md", folder);
    ebb_unsent_autosave(&d, folder, session, text, strlen(text), &lent);
    assert_true(d.fd >= 0);
    ebb_unsent_leave_autosave(&d);
}

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The editor was given what is behind n_before bytes of `text`. */
static void expect_saved(const char *text, size_t n_before, const char *saved, size_t n, const char *want)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_error err = { .code = EBB_OK };
    ebb_buf out = { 0 };
    char path[64];

    lend("7\t1", text, n_before, path);
    write_file(path, saved, n);
    assert_false(restore("7", &out));
    assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
    assert_string_equal(ebb_buf_text(&out), want);
    assert_int_equal(access(path, F_OK), -1);
    ebb_unsent_leave_autosave(&d);               /* killed again, before anything is typed */
    ebb_buf_clear(&out);
    assert_true(restore("7\t1", &out));
    assert_string_equal(ebb_buf_text(&out), want);
    assert_int_equal(err.code, EBB_OK);
    ebb_buf_fini(&out);
}

/* It takes the place of what the editor was given; what waited before that stays. */
static void what_an_editor_has_saved_comes_back(void **state)
{
    static const struct { const char *text; size_t n_before; const char *saved; size_t n; const char *want; } t[] = {
        { "", 0, "a letter\n\n", 10, "a letter" },
        { "mine", 0, "mine, longer", 12, "mine, longer" },
        { "waits\nmine", 5, "other\n", 6, "waits\nother" },
        { "waits\nmine", 5, "", 0, "waits\nmine" },      /* about to be written */
        { "waits\nmine", 99, "other", 5, "waits\nmine" },
        { "mine", 0, "//etc is a folder", 17, "/etc is a folder" },
        { "\x1F/system Answer", 0, "/system Answer in French\n", 25, "\x1F/system Answer in French" },
        { "mine", 0, "/system Answer", 14, "\x1F/system Answer" },
        { "\x1F/system Answer", 0, "mine", 4, "mine" },
        { "mine", 0, "one\r\ntwo\r\n\r\n", 12, "one\r\ntwo" },
        { "mine", 0, "\x1F!ls", 4, "!ls" },      /* no sign of ours: a message */
        { "mine", 0, "\x1E" "1 \nmine", 8, "1 \nmine" },
        { "\x1E" "1 7\nmine", 4, "other", 5, "\x1E" "1 7\nother" },
        { "\x1E" "1 7\nmine", 4, "!ls", 3, "\x1E" "1 7\n\x1F!ls" },
        { "\x1E" "1 7\nmine", 4, "/system Answer", 14, "\x1E" "1 7\n\x1F/system Answer" },
        { "mine", 0, "/system a:\n```\nB\n```\n\n@d/", 25, "\x1F/system a:\n```\nB\n```\n\n@d/" },
        { "\x1E" "1 7\nwaits\nmine", 10, "!ls", 3, "\x1E" "1 7\nwaits\n!ls" },
        { "waits\nmine", 5, "/etc is a folder", 16, "waits\n/etc is a folder" },
        { "mine", 0, "a\0b\0", 4, "a\xEF\xBF\xBD" "b\xEF\xBF\xBD" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        expect_saved(t[i].text, t[i].n_before, t[i].saved, t[i].n, t[i].want);
}

#define FILE_OF(NAME, TEXT) NAME ":\n```txt\n" TEXT "\n```\n\n"
#define MARKED(TEXT) EBB_MARK_BEGIN TEXT EBB_MARK_END

/* What begins so is a file if one went along before; its name is no command. */
static void what_an_editor_has_saved_is_a_file(void **state)
{
    static const struct { const char *text; size_t n_before; const char *saved, *want; } t[] = {
        { "", 0, FILE_OF("a.txt", "B") "like @a.txt", "\n" FILE_OF("a.txt", "B") "like @a.txt" },
        { "mine", 0, FILE_OF("a.txt", "B") "like @a.txt", "\n" FILE_OF("a.txt", "B") "like @a.txt" },
        { "", 0, FILE_OF("/a.txt", "B") "like it", "\n" FILE_OF("/a.txt", "B") "like it" },
        { "\x1E" "1 7\nmine", 4, FILE_OF("a.txt", "B") "more", "\x1E" "1 7\n\n" FILE_OF("a.txt", "B") "more" },
        { "\x1E" "1 7", 4, FILE_OF("a.txt", "B") "more", "\x1E" "1 7\n\n" FILE_OF("a.txt", "B") "more" },
        { "waits\nmine", 5, FILE_OF("a.txt", "B") "more", "waits\n" FILE_OF("a.txt", "B") "more" },
        { FILE_OF("a.txt", "A") "mine", 0, FILE_OF("a.txt", "B") "more", FILE_OF("a.txt", "B") "more" },
        { MARKED("a:\n```\nA\n```\n\n") "@a", 0, FILE_OF("a.txt", "B") "more", FILE_OF("a.txt", "B") "more" },
        { "\x1E" "1 7\n" MARKED(FILE_OF("/a.txt", "A")) "mine", 4, FILE_OF("/a.txt", "B") "more",
          "\x1E" "1 7\n" FILE_OF("/a.txt", "B") "more" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        expect_saved(t[i].text, t[i].n_before, t[i].saved, strlen(t[i].saved), t[i].want);
}

/* It was discarded, or there is no room for it on a disk that is full: nothing is lost, nothing is said twice. */
static void what_an_editor_has_discarded_does_not(void **state)
{
    char path[64];
    ebb_error err = { .code = EBB_OK };
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf out = { 0 };

    (void)state;
    lend("7\t1", "mine", 0, path);
    assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
    assert_string_equal(ebb_buf_text(&out), "mine");
    ebb_unsent_end_autosave(&d);
    lend("7\t1", "", 0, path);
    assert_false(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
    assert_int_equal(err.code, EBB_OK);
    ebb_buf_fini(&out);
}

/* A link to a file of somebody's, a folder, a pipe, more than a message may have: one line, and it stays. */
static void what_cannot_be_read_is_said_and_stays(void **state)
{
    char path[64], other[64];

    (void)state;
    snprintf(other, sizeof other, "%s/other", folder);
    write_file(other, "a secret", 8);
    for (int i = 0; i < 4; i++) {
        ebb_unsent_file d = { .fd = -1 };
        ebb_error err = { .code = EBB_OK };
        ebb_buf out = { 0 };

        lend("7\t1", "mine", 0, path);
        if (i == 3)
            write_file(path, "", 0);
        assert_int_equal(i == 0 ? symlink(other, path) : i == 1 ? mkdir(path, 0700) : i == 2 ? mkfifo(path, 0600) :
                         truncate(path, (off_t)100 << 20), 0);
        assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
        assert_string_equal(ebb_buf_text(&out), "mine");
        assert_int_not_equal(err.code, EBB_OK);
        assert_non_null(strstr(err.msg, path));
        assert_int_equal(i == 1 ? rmdir(path) : unlink(path), 0);
        ebb_unsent_end_autosave(&d);
        ebb_buf_fini(&out);
    }
    assert_int_equal(unlink(other), 0);
}

/* Whatever the conversation is called by then. */
static void what_an_editor_has_is_renamed(void **state)
{
    char path[64];
    ebb_buf out = { 0 };

    (void)state;
    lend("trip", "half a thought", 0, path);
    write_file(path, "a whole one\n", 12);
    ebb_unsent_rename(folder, "trip", "7\t1700000000000");
    assert_true(restore("7\t1700000000000", &out));
    assert_string_equal(ebb_buf_text(&out), "a whole one");
    ebb_buf_fini(&out);
}

/* What an editor puts aside when it is ended is newer than what it saved; what vi puts aside is told of each time. */
static void what_an_editor_has_put_aside_comes_back(void **state)
{
    char path[64], beside[80];
    ebb_error err = { .code = EBB_OK };
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf out = { 0 };

    (void)state;
    lend("7\t1", "mine", 0, path);
    write_file(path, "saved", 5);
    snprintf(beside, sizeof beside, "%s.save", path);
    write_file(beside, "not saved\n", 10);
    assert_true(restore("7\t1", &out));
    assert_string_equal(ebb_buf_text(&out), "not saved");
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(beside, F_OK), -1);
    lend("7\t1", "mine", 0, path);
    write_file(path, "saved", 5);
    snprintf(beside, sizeof beside, "%s/.ebb-draft-editor.md.swp", folder);
    write_file(beside, "not saved\n", 10);
    for (int i = 0; i < 2; i++) {
        ebb_buf_clear(&out);
        assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
        assert_string_equal(ebb_buf_text(&out), "saved");
        assert_int_equal(err.code, EBB_UNSUPPORTED);
        assert_non_null(strstr(err.msg, path));
        ebb_unsent_leave_autosave(&d);
    }
    assert_int_not_equal(ebb_unsent_turn(folder, ebb_seal_here(), ebb_seal_here(), &err), EBB_OK);
    assert_int_equal(unlink(beside), 0);         /* with vi, that is */
    assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
    assert_int_equal(access(path, F_OK), -1);
    ebb_unsent_end_autosave(&d);
    ebb_buf_fini(&out);
}

/* Where nothing may be in the clear any more, and where the conversation is gone. */
static void what_an_editor_has_saved_is_turned_and_swept(void **state)
{
    char path[64];
    ebb_buf out = { 0 };
    ebb_error err;

    (void)state;
    lend("trip", "mine", 0, path);
    write_file(path, "other", 5);
    assert_int_equal(ebb_unsent_turn(folder, ebb_seal_here(), ebb_seal_here(), &err), EBB_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(restore("trip", &out));
    assert_string_equal(ebb_buf_text(&out), "other");
    lend("trips", "mine", 0, path);
    write_file(path, "other", 5);
    ebb_unsent_sweep(folder, is_trip, NULL);
    assert_int_equal(access(path, F_OK), -1);
    assert_false(restore("trips", &out));
    lend("trip", "mine", 0, path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_not_equal(ebb_unsent_turn(folder, ebb_seal_here(), ebb_seal_here(), &err), EBB_OK);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(rmdir(path), 0);
    ebb_buf_clear(&out);
    assert_true(restore("trip", &out));
    ebb_buf_fini(&out);
}

/* A draft's file is written by what is confined; whoever turns or sweeps it may do more. */
static void nothing_but_a_message_is_taken(void **state)
{
    static const char *const names[] = {
        "id_ed25519", "ebb-draft-editor.md.txt", "ebb-draft-.md", "my-ebb-draft-editor.md",
    };
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ebb_unsent_file d = { .fd = -1 };
        char path[64];
        ebb_unsent_lent lent = { path, 0 };
        ebb_buf out = { 0 };

        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        write_file(path, "a secret", 8);
        ebb_unsent_autosave(&d, folder, "trips", "mine", 4, &lent);
        ebb_unsent_leave_autosave(&d);
        assert_int_equal(ebb_unsent_turn(folder, ebb_seal_here(), ebb_seal_here(), &err), EBB_OK);
        assert_true(restore("trips", &out));
        assert_string_equal(ebb_buf_text(&out), "mine");
        ebb_unsent_autosave(&d, folder, "trips", "mine", 4, &lent);
        ebb_unsent_leave_autosave(&d);
        ebb_unsent_sweep(folder, is_trip, NULL);
        assert_int_equal(unlink(path), 0);
        ebb_buf_fini(&out);
    }
}

/* What an editor has of a program that is killed, if nobody `ends` before, with what it has put beside it. */
static void leave_lent(char path[200], char other[220], bool ends)
{
    int lock, fd = ebb_message_file_make(path, 200, &lock);

    assert_true(fd >= 0 && lock >= 0);
    close(fd);
    write_file(path, "a zanzibar", 10);
    snprintf(other, 220, "%s~", path);
    write_file(other, "a zanzibar", 10);
    ebb_unsent_sweep_lent(folder, ebb_seal_here());
    assert_int_equal(access(path, F_OK), 0);     /* it runs */
    if (ends)
        ebb_message_file_end(path, &lock);
    else
        close(lock);
}

static void expect_lent(const char *path, const char *other, int is_there)
{
    ebb_unsent_sweep_lent(folder, ebb_seal_here());
    assert_int_equal(access(path, F_OK), is_there ? 0 : -1);
    assert_int_equal(access(other, F_OK), is_there ? 0 : -1);
}

/* Whoever is told that it is left there finds it, however many programs begin and end meanwhile. */
static void what_is_left_after_a_kill_stays(void **state)
{
    char path[200], other[220], beside[220];
    ebb_unsent_file d = { .fd = -1 };
    ebb_unsent_lent lent = { path, 0 };
    ebb_error err = { .code = EBB_OK };
    ebb_buf out = { 0 };

    (void)state;
    leave_lent(path, other, false);
    snprintf(beside, sizeof beside, "%.*s/.%s.swp", (int)(strrchr(path, '/') - path), path, strrchr(path, '/') + 1);
    write_file(beside, "not saved\n", 10);
    assert_true(ebb_unsent_autosave(&d, folder, "7\t1", "mine", 4, &lent));
    ebb_unsent_leave_autosave(&d);
    expect_lent(path, other, true);
    assert_true(ebb_unsent_restore(&d, folder, "7\t1", &out, &err));
    assert_int_equal(err.code, EBB_UNSUPPORTED);
    assert_true(ebb_unsent_autosave(&d, folder, "7\t1", out.data, out.len, NULL));
    expect_lent(path, other, true);
    expect_lent(beside, other, true);
    ebb_unsent_end_autosave(&d);
    ebb_message_file_drop(path);
    ebb_buf_fini(&out);
}

/* Of a draft that nothing names (--private) nothing is left; what was left on purpose stays, and so does all while
 * there is a draft that cannot be read, which may name it. */
static void what_nobody_names_is_wiped(void **state)
{
    char path[200], other[220], sealed[64];

    (void)state;
    leave_lent(path, other, true);
    expect_lent(path, other, true);
    ebb_message_file_drop(path);

    leave_lent(path, other, false);
    snprintf(sealed, sizeof sealed, "%s/draft-1", folder);
    write_file(sealed, "~sealed1~AAAA", 13);
    expect_lent(path, other, true);
    assert_int_equal(unlink(sealed), 0);
    expect_lent(path, other, false);
}

/* Beside encrypted sessions it is in the clear no longer than until the next start, whichever session that opens. */
static void what_a_draft_names_is_taken_back(void **state)
{
    ebb_unsent_file d = { .fd = -1 };
    char path[200], other[220];
    ebb_unsent_lent lent = { path, 0 };
    ebb_buf out = { 0 };

    (void)state;
    leave_lent(path, other, false);
    ebb_unsent_autosave(&d, folder, "7\t1", "mine", 4, &lent);
    ebb_unsent_take_back(folder);                /* it runs */
    expect_lent(path, other, true);
    ebb_unsent_leave_autosave(&d);
    expect_lent(path, other, true);
    ebb_unsent_take_back(folder);
    expect_lent(path, other, !ebb_seal_here());
    assert_true(restore("7\t1", &out));
    assert_string_equal(ebb_buf_text(&out), "a zanzibar");
    expect_lent(path, other, false);
    ebb_buf_fini(&out);
}

int main(void)
{
    static const struct CMUnitTest in_the_clear_or_not[] = {
        cmocka_unit_test_setup_teardown(killed_while_it_gets_shorter, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_an_editor_has_saved_comes_back, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_an_editor_has_saved_is_a_file, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_an_editor_has_discarded_does_not, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_an_editor_has_is_renamed, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_an_editor_has_put_aside_comes_back, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_said_and_stays, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_an_editor_has_saved_is_turned_and_swept, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(nothing_but_a_message_is_taken, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_is_left_after_a_kill_stays, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_nobody_names_is_wiped, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_a_draft_names_is_taken_back, open_folder, close_folder),
    };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_long_draft_comes_back, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(each_conversation_has_its_own, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(one_of_an_older_ebb_gets_a_key, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(it_is_in_one_place, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_number_that_comes_again, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(on_a_full_disk, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_was_begun_is_none, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(from_a_disk_that_is_read_only, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_cannot_be_turned_is_named, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(none_is_passed_over, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_runs_is_named, open_folder, close_folder),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    failed += cmocka_run_group_tests(in_the_clear_or_not, NULL, NULL);
    return failed + run_encrypted("unsent, encrypted", in_the_clear_or_not);
}
