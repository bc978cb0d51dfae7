#include "ebb_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "edit/history.h"
#include "os/fault.h"
#include "os/file.h"
#include "support/own_key.h"
#include "support/small_disk.h"

static char path[] = "/tmp/ebb-history-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(path))
        return -1;
    return 0;
}

static const char *file(void)
{
    static char name[64];

    snprintf(name, sizeof name, "%s/history", path);
    return name;
}

static int remove_all(void **state)
{
    (void)state;
    unlink(file());
    rmdir(path);
    return 0;
}

static void add(ebb_history *h, const char *text)
{
    assert_int_equal(ebb_history_add(h, text, strlen(text), NULL), EBB_OK);
}

static void survives(void **state)
{
    ebb_history h = { 0 };
    struct stat st;

    (void)state;
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    add(&h, "one");
    add(&h, "two\nlines \\ and \\n");
    add(&h, "two\nlines \\ and \\n");
    add(&h, "  ");
    assert_int_equal(h.n, 2);
    ebb_history_fini(&h);
    assert_int_equal(stat(file(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.entries[1], "two\nlines \\ and \\n");
    ebb_history_fini(&h);
    unlink(file());
}

static void browses(void **state)
{
    ebb_history h = { 0 };
    size_t found;

    (void)state;
    assert_null(ebb_history_back(&h, "x"));
    add(&h, "alpha one");
    add(&h, "beta");
    add(&h, "alpha two");
    assert_string_equal(ebb_history_back(&h, "draft"), "alpha two");
    assert_string_equal(ebb_history_back(&h, "alpha two"), "beta");
    assert_string_equal(ebb_history_forward(&h), "alpha two");
    assert_string_equal(ebb_history_forward(&h), "draft");
    assert_null(ebb_history_forward(&h));
    assert_string_equal(ebb_history_search(&h, "alpha", h.n, &found), "alpha two");
    assert_string_equal(ebb_history_search(&h, "alpha", found, &found), "alpha one");
    assert_null(ebb_history_search(&h, "alpha", found, &found));
    assert_null(ebb_history_search(&h, "Alpha", h.n, &found));
    add(&h, "Gamma");
    assert_string_equal(ebb_history_search(&h, "gam", h.n, &found), "Gamma");
    ebb_history_fini(&h);
}

static void two_at_once(void **state)
{
    ebb_history a = { 0 }, b = { 0 };

    (void)state;
    assert_int_equal(ebb_history_open(&a, file(), NULL), EBB_OK);
    assert_int_equal(ebb_history_open(&b, file(), NULL), EBB_OK);
    add(&a, "from a");
    add(&b, "from b");
    add(&a, "again a");
    ebb_history_fini(&a);
    ebb_history_fini(&b);
    assert_int_equal(ebb_history_open(&a, file(), NULL), EBB_OK);
    assert_int_equal(a.n, 3);
    ebb_history_fini(&a);
    unlink(file());
}

static void damaged_file(void **state)
{
    ebb_history h = { 0 };
    ebb_buf bad = { 0 };

    (void)state;
    ebb_buf_add(&bad, "good\n\n\\\nnu\0l\nok\\ntwo\ncut off", 29);
    assert_int_equal(ebb_file_replace(file(), bad.data, bad.len, NULL), EBB_OK);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_string_equal(h.entries[0], "good");
    assert_string_equal(h.entries[h.n - 1], "ok\ntwo");
    ebb_history_fini(&h);
    ebb_buf_fini(&bad);
    unlink(file());
}

/* A disk that is full takes a part of a line: the file has whole lines all the same. */
static void no_half_lines(void **state)
{
    ebb_history h = { 0 };
    ebb_error err = { 0 };
    char disk[96], name[128], *big = malloc(60001);

    (void)state;
    snprintf(disk, sizeof disk, "%s/disk", path);
    snprintf(name, sizeof name, "%s/history", disk);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (!ebb_small_disk_mount(disk, 40)) {
        free(big);
        rmdir(disk);
        puts("no tmpfs can be mounted here");
        skip();
    }
    memset(big, 'x', 60000);
    big[60000] = '\0';
    assert_int_equal(ebb_history_open(&h, name, NULL), EBB_OK);
    add(&h, "before");
    assert_int_equal(ebb_history_add(&h, big, 60000, &err), EBB_IO);
    assert_non_null(strstr(err.msg, name));
    add(&h, "after");
    ebb_history_fini(&h);
    assert_int_equal(ebb_history_open(&h, name, NULL), EBB_OK);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.entries[0], "before");
    assert_string_equal(h.entries[1], "after");
    ebb_history_fini(&h);
    ebb_small_disk_unmount(disk);
    rmdir(disk);
    free(big);
}

/* Whichever call fails, the entry is in memory and what was on disk stays. */
static void every_fault(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        ebb_history h = { 0 };
        ebb_error err = { 0 };
        unlink(file());
        assert_int_equal(ebb_file_replace(file(), "old\n", 4, NULL), EBB_OK);
        ebb_os_fail_nth(nth);
        ebb_status st = ebb_history_open(&h, file(), &err);
        ebb_status added = ebb_history_add(&h, "new", 3, &err);
        bool was_reached = ebb_os_fail_off();
        assert_string_equal(h.entries[h.n - 1], "new");
        ebb_history_fini(&h);
        assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
        assert_string_equal(h.entries[0], "old");
        if (st == EBB_OK && added == EBB_OK)     /* without a lock, too */
            assert_string_equal(h.entries[1], "new");
        ebb_history_fini(&h);
        if (!was_reached)
            break;
    }
}

static size_t n_lines(void)
{
    ebb_buf text = { 0 };
    size_t n = 0;

    assert_int_equal(ebb_file_slurp(file(), 16 << 20, &text, NULL), EBB_OK);
    for (size_t i = 0; i < text.len; i++)
        n += text.data[i] == '\n';
    ebb_buf_fini(&text);
    return n;
}

static void write_lines(int n)
{
    ebb_buf text = { 0 };

    for (int i = 1; i <= n; i++)
        ebb_buf_addf(&text, "question %d\n", i);
    assert_int_equal(ebb_file_replace(file(), text.data, text.len, NULL), EBB_OK);
    ebb_buf_fini(&text);
}

/* A file that has grown long is cut to what is kept; one that is not so long stays as it is. */
static void is_cut(void **state)
{
    static const struct { int n, left; } cases[] = { { 1999, 1999 }, { 4000, 4000 }, { 4001, 2000 }, { 9000, 2000 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_history h = { 0 };
        char last[32];

        write_lines(cases[i].n);
        assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
        assert_int_equal(h.n, cases[i].n < 2000 ? cases[i].n : 2000);
        snprintf(last, sizeof last, "question %d", cases[i].n);
        assert_string_equal(ebb_history_back(&h, ""), last);
        snprintf(last, sizeof last, "question %d", cases[i].n < 2000 ? 1 : cases[i].n - 1999);
        assert_string_equal(h.entries[0], last);
        assert_int_equal(n_lines(), cases[i].left);
        add(&h, "one more");
        assert_int_equal(h.n, cases[i].n < 2000 ? cases[i].n + 1 : 2000);
        assert_int_equal(n_lines(), cases[i].left + 1);
        ebb_history_fini(&h);
    }
    unlink(file());
}

static void *add_late(void *arg)
{
    ebb_history *h = arg;

    return ebb_history_add(h, "late", 4, NULL) == EBB_OK ? h : NULL;
}

/* Who waits for the file while another program puts a shorter one in its place writes to that one. */
static void goes_to_the_new_file(void **state)
{
    ebb_history h = { 0 }, again = { 0 };
    pthread_t other;
    void *ok;
    int fd;

    (void)state;
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    add(&h, "first");
    fd = open(file(), O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    assert_int_equal(pthread_create(&other, NULL, add_late, &h), 0);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);  /* it need not wait by then, but may */
    assert_int_equal(ebb_file_replace(file(), "short\n", 6, NULL), EBB_OK);
    close(fd);
    pthread_join(other, &ok);
    assert_non_null(ok);
    assert_int_equal(ebb_history_open(&again, file(), NULL), EBB_OK);
    assert_int_equal(again.n, 2);
    assert_string_equal(again.entries[1], "late");
    ebb_history_fini(&h);
    ebb_history_fini(&again);
    unlink(file());
}

/* Whoever has the file may be stopped, or leave it never. */
static void locked_for_ever(void **state)
{
    ebb_history h = { 0 };
    ebb_error err = { 0 };
    int fd;

    (void)state;
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    add(&h, "first");
    fd = open(file(), O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    assert_int_equal(ebb_history_add(&h, "second", 6, &err), EBB_BUSY);
    assert_non_null(strstr(err.msg, file()));
    assert_int_equal(h.n, 2);                    /* in memory it is */
    close(fd);
    add(&h, "third");
    ebb_history_fini(&h);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.entries[1], "third");
    ebb_history_fini(&h);
    unlink(file());
}

/* However large the file has become, its end is read, and it is brought back to what is kept. */
static void grown_beyond_bounds(void **state)
{
    enum { LINE = 60000, LINES = 300 };
    ebb_history h = { 0 };
    char *line = malloc(LINE + 1);
    FILE *f = fopen(file(), "w");
    struct stat st;

    (void)state;
    assert_non_null(line);
    assert_non_null(f);
    memset(line, 'x', LINE);
    line[LINE] = '\0';
    for (int i = 0; i < LINES; i++)
        fprintf(f, "%d %s\n", i, line);
    fclose(f);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_true(h.n > 100);
    assert_int_equal(strncmp(h.entries[h.n - 1], "299 x", 5), 0);
    assert_int_equal(ebb_history_add(&h, "new", 3, NULL), EBB_OK);
    ebb_history_fini(&h);
    assert_int_equal(stat(file(), &st), 0);
    assert_true(st.st_size < 8 << 20);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_string_equal(h.entries[h.n - 1], "new");
    ebb_history_fini(&h);
    free(line);
    unlink(file());
}

/* What was put there and has no line's end is not searched for one to its beginning; what comes next is a line. */
static void no_lines_at_all(void **state)
{
    enum { HOLE = 1 << 20 };
    ebb_history h = { 0 };
    struct stat st;

    (void)state;
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    add(&h, "old");
    assert_int_equal(truncate(file(), HOLE), 0);
    add(&h, "new");
    ebb_history_fini(&h);
    assert_int_equal(stat(file(), &st), 0);
    assert_int_equal(st.st_size, HOLE + strlen("\nnew\n"));
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.entries[0], "old");
    assert_string_equal(h.entries[1], "new");
    ebb_history_fini(&h);
    unlink(file());
}

static bool keeps_two(void *arg, const char *text, size_t n)
{
    return n == strlen(arg) && memcmp(text, arg, n) == 0;
}

static void is_swept(void **state)
{
    static char two[] = "two\nlines";
    ebb_history h = { 0 };

    (void)state;
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ebb_history_add(&h, (const char *[]){ "one", "two\nlines", "three" }[i],
                                         (size_t[]){ 3, 9, 5 }[i], NULL), EBB_OK);
    ebb_history_fini(&h);
    assert_int_equal(ebb_history_sweep(file(), keeps_two, two, NULL), EBB_OK);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.entries[0], "two\nlines");
    ebb_history_fini(&h);
    unlink(file());
}

static bool keeps_all(void *arg, const char *text, size_t n)
{
    (void)arg;
    (void)text;
    return n > 0;
}

static void expect_text(const char *of, const char *want)
{
    ebb_buf text = { 0 };

    assert_int_equal(ebb_file_slurp(of, 1 << 20, &text, NULL), EBB_OK);
    assert_string_equal(ebb_buf_text(&text), want);
    ebb_buf_fini(&text);
}

/* Where the file is a link, the text goes from what it leads to, and it stays a link. */
static void behind_a_link(void **state)
{
    static char two[] = "two";
    char real[128], zeros[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    struct stat st;
    int was;

    (void)state;
    snprintf(real, sizeof real, "%s-real", file());
    assert_int_equal(ebb_file_create(real, "one\ntwo\n", 8, NULL), EBB_OK);
    assert_int_equal(symlink(real, file()), 0);
    was = open(real, O_RDONLY | O_CLOEXEC);
    assert_int_equal(ebb_history_sweep(file(), keeps_two, two, NULL), EBB_OK);
    assert_int_equal(lstat(file(), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_text(real, "two\n");
    assert_int_equal(pread(was, zeros, sizeof zeros, 0), sizeof zeros);
    assert_memory_equal(zeros, (char[8]){ 0 }, sizeof zeros);    /* and the old one is overwritten */
    close(was);
    unlink(file());
    unlink(real);
}

/* What is typed and begins as a sealed line does is a line like any other: it comes back, goes, and is encrypted. */
static void looks_sealed(void **state)
{
    static char typed[] = "~sealed1~ zanzibar", two[] = "two";
    ebb_seal *ours;
    ebb_history h = { 0 };
    ebb_buf text = { 0 };

    (void)state;
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(ebb_history_add(&h, typed, strlen(typed), NULL), EBB_OK);
    assert_int_equal(ebb_history_add(&h, "two", 3, NULL), EBB_OK);
    ebb_history_fini(&h);
    assert_int_equal(ebb_history_sweep(file(), keeps_two, typed, NULL), EBB_OK);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.entries[0], typed);
    ebb_history_fini(&h);
    ours = own_key();
    if (ours) {
        assert_int_equal(ebb_history_turn(file(), ours, ours, NULL), EBB_OK);
        assert_int_equal(ebb_file_slurp(file(), 1 << 20, &text, NULL), EBB_OK);
        assert_null(strstr(ebb_buf_text(&text), "zanzibar"));
        assert_int_equal(ebb_history_turn(file(), ours, NULL, NULL), EBB_OK);
        own_key_end(ours);
    }
    expect_text(file(), "\\~sealed1~ zanzibar\n");
    assert_int_equal(ebb_history_sweep(file(), keeps_two, two, NULL), EBB_OK);
    expect_text(file(), "");
    ebb_buf_fini(&text);
    unlink(file());
}

/* A line that another key has sealed can be read with that one again, whatever rewrites the file meanwhile. */
static void of_another_key(void **state)
{
    ebb_seal *ours = own_key(), *other;
    uint8_t key[EBB_SEAL_KEY] = { 1 };
    ebb_history h = { 0 };

    (void)state;
    if (!ours)
        skip();
    assert_int_equal(ebb_seal_new(key, &other, NULL), EBB_OK);
    ebb_seal_use_here(other);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(ebb_history_add(&h, "theirs", 6, NULL), EBB_OK);
    ebb_history_fini(&h);
    ebb_seal_use_here(ours);
    assert_int_equal(ebb_history_sweep(file(), keeps_all, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_history_turn(file(), ours, NULL, NULL), EBB_OK);
    ebb_seal_use_here(NULL);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 0);
    assert_int_equal(ebb_history_add(&h, "in the clear", 12, NULL), EBB_OK);
    ebb_history_fini(&h);
    ebb_seal_use_here(ours);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);        /* which encrypts that line */
    assert_int_equal(h.n, 1);
    ebb_history_fini(&h);
    ebb_seal_use_here(other);
    assert_int_equal(ebb_history_open(&h, file(), NULL), EBB_OK);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.entries[0], "theirs");
    ebb_history_fini(&h);
    unlink(file());
    ebb_seal_free(other);
    own_key_end(ours);
}

/* One that cannot be found just now is not taken for none: its key would go, or it would stay in the clear. */
static void is_somewhere_else(void **state)
{
    ebb_error err = { 0 };

    (void)state;
    unlink(file());
    assert_int_equal(ebb_history_turn(file(), NULL, NULL, &err), EBB_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(symlink(i == 0 ? "/nowhere/history" : strrchr(file(), '/') + 1, file()), 0);
        assert_int_equal(ebb_history_turn(file(), NULL, NULL, &err), EBB_IO);
        assert_non_null(strstr(err.msg, file()));
        assert_int_equal(unlink(file()), 0);
    }
}

/* A link to /dev/null is no file to be written anew; a pipe stands for the device here. */
static void is_kept_nowhere(void **state)
{
    char pipe[128];
    struct stat st;
    ebb_error err = { 0 };

    (void)state;
    snprintf(pipe, sizeof pipe, "%s.pipe", file());
    unlink(file());
    assert_int_equal(mkfifo(pipe, 0600) + symlink(pipe, file()), 0);
    assert_int_equal(ebb_history_turn(file(), NULL, NULL, &err), EBB_OK);
    assert_int_equal(lstat(pipe, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(unlink(file()) + unlink(pipe), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives), cmocka_unit_test(is_somewhere_else), cmocka_unit_test(is_kept_nowhere),
        cmocka_unit_test(is_cut),
        cmocka_unit_test(goes_to_the_new_file),
        cmocka_unit_test(locked_for_ever),
        cmocka_unit_test(browses),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(damaged_file),
        cmocka_unit_test(no_half_lines),
        cmocka_unit_test(every_fault),
        cmocka_unit_test(grown_beyond_bounds),
        cmocka_unit_test(no_lines_at_all),
        cmocka_unit_test(is_swept),
        cmocka_unit_test(behind_a_link),
        cmocka_unit_test(looks_sealed),
        cmocka_unit_test(of_another_key),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_all);
}
