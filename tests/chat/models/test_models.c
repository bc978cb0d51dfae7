/* Which model files are found. */
#include "models_folder.h"

#include "ebb_alloc.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/models.h"

static void make(const char *name, const char *text, time_t when)
{
    char path[240];
    FILE *f;
    struct timespec times[2] = { { .tv_sec = when }, { .tv_sec = when } };

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static const char *base(const ebb_model_file *f)
{
    return strrchr(f->path, '/') + 1;
}

static void test_newest_first(void **state)
{
    ebb_model_file *f;
    ebb_error err;
    size_t n;
    char sub[96];

    (void)state;
    snprintf(sub, sizeof sub, "%s/sub", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    make("old.gguf", "x", 1000);
    make("sub/new.gguf", "x", 3000);
    make("small.gguf", "x", 2000);
    make("large.gguf", "xxx", 2000);
    make("notes.txt", "x", 9000);
    make(".hidden.gguf", "x", 9000);
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, 4);
    assert_string_equal(base(&f[0]), "new.gguf");
    assert_string_equal(base(&f[1]), "large.gguf");
    assert_string_equal(base(&f[2]), "small.gguf");
    assert_string_equal(base(&f[3]), "old.gguf");
    ebb_models_free(f, n);
}

static void test_split(void **state)
{
    ebb_model_file *f;
    ebb_error err;
    size_t n;

    (void)state;
    make("m-00001-of-00003.gguf", "a", 1);
    make("m-00002-of-00003.gguf", "bb", 1);
    make("m-00003-of-00003.gguf", "ccc", 1);
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    assert_int_equal(f[0].n_bytes, 6);
    assert_string_equal(base(&f[0]), "m-00001-of-00003.gguf");
    ebb_models_free(f, n);
}

static void count_file(void *arg, const char *path)
{
    ++*(int *)arg;
    assert_memory_equal(path, dir, strlen(dir));
}

/* Each file, all parts of one and links to one too; a link that leads to nothing is none. */
static void test_each_own(void **state)
{
    char from[96];
    int n = 0;

    (void)state;
    ebb_models_each_own(count_file, &n);
    assert_int_equal(n, 0);
    make("m-00001-of-00002.gguf", "a", 1);
    make("m-00002-of-00002.gguf", "b", 1);
    make("x.llamafile", "x", 1);
    make("notes.txt", "x", 1);
    snprintf(from, sizeof from, "%s/linked.gguf", dir);
    assert_int_equal(symlink("x.llamafile", from), 0);
    snprintf(from, sizeof from, "%s/dangling.gguf", dir);
    assert_int_equal(symlink("nothing.gguf", from), 0);
    ebb_models_each_own(count_file, &n);
    assert_int_equal(n, 4);
}

/* Names with a dash and a number where a part's number would stand. */
static void test_nearly_a_part(void **state)
{
    static const char *const names[] = { "Some-8B-Instruct-Q8.gguf", "Some-7-of-9-letters-.gguf",
                                         "x-00002-of-00003-.gguf" };
    ebb_model_file *f;
    ebb_error err;
    size_t n, n_before;

    (void)state;
    assert_int_equal(ebb_models_find(&f, &n_before, &err), EBB_OK);
    ebb_models_free(f, n_before);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        make(names[i], "x", 7000);
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, n_before + sizeof names / sizeof names[0]);
    ebb_models_free(f, n);
}

static void test_places(void **state)
{
    ebb_error err;
    ebb_model_file *f;
    size_t n;
    char list[256];

    (void)state;
    make("one.gguf", "x", 5);
    snprintf(list, sizeof list, "/nowhere::%s/one.gguf:%s", dir, dir);
    setenv("EBB_MODELS", list, 1);
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, 1);                      /* named twice, listed once */
    ebb_models_free(f, n);
}

static void resolves(const char *name, ebb_status want, const char *file)
{
    ebb_error err;
    char *path;

    assert_int_equal(ebb_models_resolve(name, &path, &err), want);
    if (want == EBB_OK) {
        assert_string_equal(strrchr(path, '/') + 1, file);
        free(path);
    } else {
        assert_null(path);
        assert_non_null(strstr(err.msg, file));
    }
}

static void test_by_name(void **state)
{
    char path[160];

    (void)state;
    resolves("llama", EBB_NOTFOUND, "there are no models here yet");
    make("Llama-3.1-8B-Q4_K_M.gguf", "x", 1);
    make("Llama-3.2-1B-Q4_K_M.gguf", "x", 2);
    make("tiny.gguf", "x", 3);
    make("tiny-2.gguf", "x", 4);
    resolves("Llama-3.1-8B-Q4_K_M.gguf", EBB_OK, "Llama-3.1-8B-Q4_K_M.gguf");
    resolves("llama-3.1-8b-q4_k_m", EBB_OK, "Llama-3.1-8B-Q4_K_M.gguf");
    resolves("8b", EBB_OK, "Llama-3.1-8B-Q4_K_M.gguf");
    resolves("tiny", EBB_OK, "tiny.gguf");       /* the whole name comes before a part of others */
    resolves("llama", EBB_LIMIT, "llama: which one?  Llama-3.2-1B-Q4_K_M.gguf, Llama-3.1-8B-Q4_K_M.gguf");
    resolves("qwen", EBB_NOTFOUND, "no model here has that name; there are tiny-2.gguf, tiny.gguf, Llama");
    resolves("tniy", EBB_NOTFOUND, "no model here has that name; did you mean tiny?  There are tiny-2.gguf, tiny");
    resolves("LALMA-3.1.gguf", EBB_NOTFOUND, "did you mean Llama-3.1?");         /* the beginning of one */
    resolves("lalmo-3.1", EBB_NOTFOUND, "has that name; there are");             /* two slips are too many for that */
    snprintf(path, sizeof path, "%s/tiny.gguf", dir);
    resolves(path, EBB_OK, "tiny.gguf");
    resolves("/nowhere/tiny.gguf", EBB_NOTFOUND, "/nowhere/tiny.gguf: no such file");
    resolves(dir, EBB_USAGE, "is a folder");
    setenv("HOME", dir, 1);
    resolves("~/tiny-2.gguf", EBB_OK, "tiny-2.gguf");
}

/* Two folders, a and b, with a file of one name in each, and another one in b. */
static void make_two_folders(void)
{
    char path[160];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%c", dir, "ab"[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    make("a/same.gguf", "x", 1);
    make("b/same.gguf", "x", 2);
    make("b/only.gguf", "x", 3);
}

/* Files of one name in several folders are several models: none is taken by chance. */
static void test_of_one_name(void **state)
{
    char list[256], path[160];

    (void)state;
    make_two_folders();
    for (int i = 0; i < 2; i++) {
        snprintf(list, sizeof list, "%s/%c:%s/%c", dir, "ab"[i], dir, "ba"[i]);
        setenv("EBB_MODELS", list, 1);
        resolves("same", EBB_LIMIT, "same: which one?  ");
        resolves("same.gguf", EBB_LIMIT, "/a/same.gguf");
        resolves("SAME", EBB_LIMIT, "/b/same.gguf");
    }
    snprintf(path, sizeof path, "%s/a/same.gguf", dir);
    resolves(path, EBB_OK, "same.gguf");
    resolves("only", EBB_OK, "only.gguf");
    make("a/Only.gguf", "x", 5);                 /* the very name comes before another case */
    resolves("only.gguf", EBB_OK, "only.gguf");
    resolves("Only.gguf", EBB_OK, "Only.gguf");
    resolves("only", EBB_LIMIT, "/a/Only.gguf");
}

/* A file of a repository of Hugging Face's cache, of one commit; what a user calls it. */
static void make_in_hub(const char *commit, const char *blob, time_t when)
{
    char path[300], to[64];

    snprintf(path, sizeof path, "%s/hub/models--o--r/blobs/%s", dir, blob);
    if (access(path, F_OK) != 0)
        make(path + strlen(dir) + 1, blob, when);
    snprintf(path, sizeof path, "%s/hub/models--o--r/snapshots/%s", dir, commit);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/hub/models--o--r/snapshots/%s/Model-Of-The-Hub-Q4_K_M.gguf", dir, commit);
    snprintf(to, sizeof to, "../../blobs/%s", blob);
    assert_int_equal(symlink(to, path), 0);
}

static void means_commit(const char *commit)
{
    char want[120];
    ebb_error err;
    char *path = NULL;

    snprintf(want, sizeof want, "/snapshots/%s/", commit);
    assert_int_equal(ebb_models_resolve("model-of-the-hub", &path, &err), EBB_OK);
    assert_non_null(strstr(path, want));
    free(path);
}

/* An update leaves the file of before in the cache: that is no other model.  The branch says which one counts. */
static void test_versions_in_hub(void **state)
{
    static const char *const folders[] = { "hub", "hub/models--o--r", "hub/models--o--r/blobs",
                                           "hub/models--o--r/snapshots", "hub/models--o--r/refs" };
    char path[160];
    ebb_model_file *f;
    ebb_error err;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/hub", dir);
    setenv("HF_HUB_CACHE", path, 1);
    setenv("EBB_MODELS", "/nowhere", 1);
    make_in_hub("0a0a", "one", 1000);
    make_in_hub("0b0b", "two", 3000);
    make_in_hub("0c0c", "three", 2000);
    means_commit("0b0b");                        /* nothing says which: the newest */
    make("hub/models--o--r/refs/main", "0c0c", 1);
    means_commit("0c0c");
    make("hub/models--o--r/refs/main", "0d0d", 1);           /* of which this file is not here */
    means_commit("0b0b");
    make_in_hub("0d0d", "one", 1000);            /* as it was before; listed as 0a0a's */
    means_commit("0a0a");
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(f[i].is_old_version, strstr(f[i].path, "/0a0a/") == NULL);
        assert_string_equal(ebb_models_word(&f[i]), "Model-Of-The-Hub-Q4_K_M.gguf");
    }
    ebb_models_free(f, n);
    assert_int_equal(ebb_models_find_chat(&f, &n, &err), EBB_OK);
    assert_int_equal(n, 1);
    ebb_models_free(f, n);
    unsetenv("HF_HUB_CACHE");
}

/* Who is asked which one sees two at least, however long their paths are. */
static void test_names_two_paths(void **state)
{
    char path[200];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%0100d%c", dir, 0, "abc"[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%0100d%c/same.gguf", 0, "abc"[i]);
        make(path, "x", 3 - i);
    }
    resolves("same", EBB_LIMIT, "0a/same.gguf, ");
    resolves("same", EBB_LIMIT, "0b/same.gguf and 1 more");
}

/* What is offered for a file means it alone. */
static void test_word(void **state)
{
    ebb_model_file *f;
    ebb_error err;
    char *found;
    size_t n;

    (void)state;
    make_two_folders();
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, 3);
    assert_string_equal(ebb_models_word(&f[0]), "only.gguf");
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ebb_models_resolve(ebb_models_word(&f[i]), &found, &err), EBB_OK);
        assert_string_equal(found, f[i].path);
        free(found);
    }
    ebb_models_free(f, n);
}

/* What may not be looked for is not said to be missing.  Root may look everywhere: a child becomes somebody else. */
static void test_a_closed_folder(void **state)
{
    enum { NOBODY = 65534 };
    char path[160], closed[120];
    ebb_error err = { 0 };
    char *found;
    bool says;
    int status;
    pid_t child;

    (void)state;
    snprintf(closed, sizeof closed, "%s/closed", dir);
    assert_int_equal(mkdir(closed, 0700), 0);
    make("closed/x.gguf", "x", 1);
    snprintf(path, sizeof path, "%s/x.gguf", closed);
    assert_int_equal(chmod(dir, 0755) + chmod(closed, 0), 0);
    child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(NOBODY) != 0)
            _exit(2);
        says = ebb_models_resolve(path, &found, &err) == EBB_IO && strstr(err.msg, "may not enter a folder on the way");
        _exit(says && ebb_models_resolve("/nowhere/x.gguf", &found, &err) == EBB_NOTFOUND ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(closed, 0700), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Each is one file, under whatever names, however many there are. */
static void test_many_files_of_two_names(void **state)
{
    enum { N = 1000 };
    ebb_model_file *f;
    ebb_error err;
    size_t n;

    (void)state;
    for (int i = 0; i < N; i++) {
        char name[32], from[160], to[160];

        snprintf(name, sizeof name, "a%d.gguf", i);
        make(name, "x", 1000 + i);
        snprintf(from, sizeof from, "%s/%s", dir, name);
        snprintf(to, sizeof to, "%s/b%d.gguf", dir, i);
        assert_int_equal(link(from, to), 0);
    }
    assert_int_equal(ebb_models_find(&f, &n, &err), EBB_OK);
    assert_int_equal(n, N);
    for (int i = 0; i < N; i++) {
        char want[2][32];
        bool is_second = base(&f[i])[0] == 'b';

        snprintf(want[0], sizeof want[0], "a%d.gguf", N - 1 - i);
        snprintf(want[1], sizeof want[1], "b%d.gguf", N - 1 - i);
        assert_string_equal(base(&f[i]), want[is_second]);
        assert_memory_equal(ebb_buf_text(&f[i].more_names), want[!is_second], strlen(want[0]));
    }
    ebb_models_free(f, n);
}

/* One file under two names; each allocation of the search fails once: the list is whole, or there is none. */
static void test_no_memory(void **state)
{
    (void)state;
#if ALLOC_CAN_FAIL
    char from[160], to[160];
    bool reached = true;

    make("a.gguf", "x", 1000);
    snprintf(from, sizeof from, "%s/a.gguf", dir);
    snprintf(to, sizeof to, "%s/b.gguf", dir);
    assert_int_equal(link(from, to), 0);
    for (int nth = 1; reached; nth++) {
        ebb_model_file *f = NULL;
        ebb_error err = { 0 };
        size_t n = 0;
        ebb_status st;

        alloc_fail_nth(nth);
        st = ebb_models_find(&f, &n, &err);
        reached = alloc_fail_nth(0);
        assert_true(st == EBB_NOMEM ? n == 0 : st == EBB_OK);
        for (size_t i = 0; i < n; i++)
            assert_non_null(f[i].path);
        ebb_models_free(f, n);
    }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_newest_first, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_split, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_each_own, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_nearly_a_part, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_places, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_by_name, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_of_one_name, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_versions_in_hub, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_names_two_paths, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_word, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_a_closed_folder, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_many_files_of_two_names, models_folder_setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, models_folder_setup, models_folder_teardown),
    };

    alloc_start();
    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
