/* Addresses of engines and the file that names them. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"
#include "remote/address.h"
#include "remote/engines_file.h"
#include "support/own_folder.h"

static char folder[64];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(folder, sizeof folder, "/tmp/ebb-address-XXXXXX") != 0)
        return -1;
    return setenv("XDG_CONFIG_HOME", folder, 1);
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(folder);
}

static void test_addresses(void **state)
{
    static const struct { const char *text, *url, *host; bool is_here, is_private; } good[] = {
        { "http://localhost:8080", "http://localhost:8080", "localhost", true, true },
        { "http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080", "127.0.0.1", true, true },
        { "http://127.0.0.1.evil.example", "http://127.0.0.1.evil.example", "127.0.0.1.evil.example", false, false },
        { "http://127.evil.example", "http://127.evil.example", "127.evil.example", false, false },
        { "http://127.200.0.9:80", "http://127.200.0.9:80", "127.200.0.9", true, true },
        { "http://0127.0.0.1:8080", "http://0127.0.0.1:8080", "0127.0.0.1", false, false },   /* octal: 87.0.0.1 */
        { "http://127.0.0.01", "http://127.0.0.01", "127.0.0.01", false, false },
        { "http://127.0.0.256", "http://127.0.0.256", "127.0.0.256", false, false },
        { "http://[::1]:1234", "http://[::1]:1234", "[::1]", true, true },
        { "https://API.example.com/base/v1", "https://API.example.com/base", "api.example.com", false, true },
        { "http://v1", "http://v1", "v1", false, false },
        { "http://box:8000/v1", "http://box:8000", "box", false, false },
        { "unix:/run/x.sock", "http://127.0.0.1", "this machine", true, true },
        { "exec:ssh box nc 127.0.0.1 8080", "http://127.0.0.1", "a command", true, true },
        { "ssh://me@box", "http://127.0.0.1", "box", true, true },
    };
    static const char *const bad[] = {
        "", "box", "ftp://x", "http://", "https:///x", "http://a:b@c", "http://a b", "http://a:0", "http://a:65536",
        "http://a:x", "http://a?x",
        "http://a/#x", "http://a\n", "http://[::g]", "http://[::1", "unix:", "unix:x", "exec:", "exec:  ", "ssh://",
        "ssh://-oProxyCommand=x", "ssh://-l@box", "ssh://me@box/path", "ssh://me@-x", "http://-x", "http://a\\b",
    };
    ebb_address a;
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(ebb_address_parse(good[i].text, &a, NULL), EBB_OK);
        assert_string_equal(a.url, good[i].url);
        assert_string_equal(a.host, good[i].host);
        assert_int_equal(a.is_here, good[i].is_here);
        assert_int_equal(a.is_private, good[i].is_private);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (ebb_address_parse(bad[i], &a, &err) == EBB_OK)
            fail_msg("%s is taken", bad[i]);
        assert_int_equal(err.code, EBB_USAGE);
    }
}

static void test_shared(void **state)
{
    char model[300], text[320], first[200];
    ebb_address a;

    (void)state;
    snprintf(model, sizeof model, "%s/it's a model.gguf", folder);
    assert_int_equal(ebb_file_replace(model, "x", 1, NULL), EBB_OK);
    snprintf(text, sizeof text, "shared:%s", model);
    assert_true(ebb_address_is(text));
    assert_int_equal(ebb_address_parse(text, &a, NULL), EBB_OK);
    assert_true(a.is_shared && a.is_here && a.is_private);
    assert_string_equal(a.host, "ebb serve");
    assert_string_equal(a.argv[1], "serve");
    assert_string_equal(a.argv[7], "-m");
    assert_string_equal(a.argv[8], model);
    assert_null(a.argv[9]);
    snprintf(first, sizeof first, "%s", ebb_address_socket(&a));
    assert_non_null(strstr(first, "/shared-"));
    assert_int_equal(ebb_file_replace(model, "xy", 2, NULL), EBB_OK);    /* another file has another server */
    assert_int_equal(ebb_address_parse(text, &a, NULL), EBB_OK);
    assert_string_not_equal(ebb_address_socket(&a), first);
    assert_int_equal(ebb_address_parse("shared:x.gguf", &a, NULL), EBB_USAGE);
    assert_int_equal(ebb_address_parse("shared:/nowhere/x.gguf", &a, NULL), EBB_USAGE);
    assert_int_equal(ebb_address_parse("unix:/x", &a, NULL), EBB_OK);
    assert_string_equal(ebb_address_socket(&a), "");
}

static void write_engines(const char *text, mode_t mode)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "%s/ebb", getenv("XDG_CONFIG_HOME"));
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/ebb/engines", getenv("XDG_CONFIG_HOME"));
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_file(void **state)
{
    static const struct { const char *text, *says; } bad[] = {
        { "address = http://x\n", "expected a [name]" }, { "[x]\n", "[x] has no address" },
        { "[here]\naddress = http://x\n", ":1: a name" },
        { "[x]\naddress = http://x\n[x]\naddress = http://y\n", ":3: there is a second engine x" },
        { "[x]\naddress = nowhere\n", ":2: nowhere: is not an address" },
        { "[x]\naddress = http://x\nkind = toaster\n", "give openai, llama-server" },
        { "[x]\naddress = http://x\ncolour = red\n", ":3: colour: is not a setting" },
        { "[x]\naddress = http://x\nheader = nothing\n", "Name: value" },
        { "[x]\naddress = http://x\ncontext = many\n", "whole number" },
        { "[x]\naddress = http://x\ninsecure = perhaps\n", "on or off" },
        { "[x]\nnothing\n", "expected [name] or name = value" },
    };
    ebb_engine_entry *list, e, add = { .name = "new", .address = (char *)"https://new.example/v1", .model = (char *)"m",
                                       .n_ctx = 99 };
    char path[300];
    ebb_error err;
    size_t n;

    (void)state;
    assert_int_equal(ebb_engines_read(&list, &n, NULL), EBB_OK);         /* no file: no engines */
    assert_int_equal(n, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_engines(bad[i].text, 0644);
        assert_int_not_equal(ebb_engines_read(&list, &n, &err), EBB_OK);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("%s: %s", bad[i].text, err.msg);
    }
    write_engines("\xEF\xBB\xBF[x]\r\naddress = http://x\r\n", 0644);        /* of an editor of Windows */
    assert_int_equal(ebb_engines_find("x", &e, NULL), EBB_OK);
    assert_string_equal(e.address, "http://x");
    ebb_engine_entry_fini(&e);
    assert_int_equal(ebb_engines_remove("x", NULL), EBB_OK);
    write_engines("# mine\n[a]\naddress = http://a   # the first\nheader = X: 1\nheader = Y: "
                  "2\ncontext=7\n\n[b.c-d]\naddress=exec:cat\nsilence = 9\ninsecure = on", 0600);
    assert_int_equal(ebb_engines_read(&list, &n, NULL), EBB_OK);
    assert_int_equal(n, 2);
    assert_string_equal(list[0].address, "http://a");
    assert_string_equal(list[0].headers[1], "Y: 2");
    assert_int_equal(list[0].n_ctx, 7);
    assert_int_equal(list[1].silence_s, 9);
    assert_true(list[1].is_insecure && !list[0].is_insecure);
    ebb_engines_free(list, n);

    assert_int_equal(ebb_engines_add(&add, &err), EBB_OK);            /* behind the others, and they stay as they are */
    assert_int_equal(ebb_engines_add(&add, &err), EBB_USAGE);
    assert_int_equal(ebb_engines_find("new", &e, NULL), EBB_OK);
    assert_string_equal(e.address, "https://new.example/v1");
    assert_int_equal(e.n_ctx, 99);
    ebb_engine_entry_fini(&e);
    assert_int_equal(ebb_engines_find("a", &e, NULL), EBB_OK);
    ebb_engine_entry_fini(&e);
    assert_int_equal(ebb_engines_find("neww", &e, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "did you mean new"));
    assert_int_equal(ebb_engines_find("http://x:1", &e, NULL), EBB_OK);  /* an address is an engine without a name */
    assert_string_equal(e.name, "x");
    ebb_engine_entry_fini(&e);
    write_engines("[a]\naddress = http://a\nkey = secret\n", 0640);
    assert_int_equal(ebb_engines_read(&list, &n, &err), EBB_IO);
    assert_non_null(strstr(err.msg, "chmod 600"));
    assert_null(strstr(err.msg, "= secret"));
    write_engines("[a]\naddress = http://a\n", 0600);    /* zeros behind it, as a loss of power may leave them */
    snprintf(path, sizeof path, "%s/ebb/engines", getenv("XDG_CONFIG_HOME"));
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(ebb_engines_read(&list, &n, &err), EBB_USAGE);
    assert_non_null(strstr(err.msg, "not a text file"));
}

/* The file without the engine: other lines stay, byte for byte. */
static void test_remove(void **state)
{
    static const char first[] = "# mine\n[a]\naddress = http://a\n# of a\nkey = secret-of-a\n\n",
                      second[] = "# the second\n [ b.c ] \naddress=http://b\n\n\n", third[] = "[d]\naddress = http://d";
    static const struct { const char *name, *left; } cases[] = {
        { "a", "# mine\n# the second\n [ b.c ] \naddress=http://b\n\n\n[d]\naddress = http://d" },
        { "b.c", "# mine\n[a]\naddress = http://a\n# of a\nkey = secret-of-a\n\n"
                 "# the second\n[d]\naddress = http://d" },
        { "d", "# mine\n[a]\naddress = http://a\n# of a\nkey = secret-of-a\n\n# the second\n [ b.c ] \n"
               "address=http://b\n\n\n" },
    };
    char path[300], text[400];
    ebb_buf left = { 0 };
    ebb_engine_entry e;
    struct stat st;
    ebb_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/ebb/engines", getenv("XDG_CONFIG_HOME"));
    snprintf(text, sizeof text, "%s%s%s", first, second, third);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_engines(text, 0600);
        assert_int_equal(ebb_engines_remove(cases[i].name, &err), EBB_OK);
        ebb_buf_clear(&left);
        assert_int_equal(ebb_file_slurp(path, 4096, &left, NULL), EBB_OK);
        assert_string_equal(ebb_buf_text(&left), cases[i].left);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(ebb_engines_find(cases[i].name, &e, NULL), EBB_NOTFOUND);
    }
    assert_int_equal(ebb_engines_remove("aa", &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "there is no engine aa"));
    assert_int_equal(ebb_engines_remove("a", &err), EBB_OK);
    assert_int_equal(ebb_engines_remove("b.c", &err), EBB_OK);
    ebb_buf_clear(&left);
    assert_int_equal(ebb_file_slurp(path, 4096, &left, NULL), EBB_OK);
    assert_string_equal(ebb_buf_text(&left), "# mine\n# the second\n");
    ebb_buf_fini(&left);
}

/* The file may be a link, into a folder of such files that is kept elsewhere: it stays one. */
static void test_link(void **state)
{
    char path[300], elsewhere[320];
    ebb_engine_entry add = { .name = "new", .address = (char *)"http://b" };
    ebb_buf text = { 0 };
    struct stat st;

    (void)state;
    snprintf(path, sizeof path, "%s/ebb/engines", getenv("XDG_CONFIG_HOME"));
    snprintf(elsewhere, sizeof elsewhere, "%s/my-engines", getenv("XDG_CONFIG_HOME"));
    write_engines("[a]\naddress = http://a\n", 0600);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink("../my-engines", path), 0);
    assert_int_equal(ebb_engines_add(&add, NULL), EBB_OK);
    assert_int_equal(ebb_engines_remove("a", NULL), EBB_OK);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(ebb_file_slurp(elsewhere, 4096, &text, NULL), EBB_OK);
    assert_null(strstr(text.data, "http://a"));
    assert_non_null(strstr(text.data, "http://b"));
    ebb_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_addresses), cmocka_unit_test(test_shared),
                                        cmocka_unit_test(test_file), cmocka_unit_test(test_remove),
                                        cmocka_unit_test(test_link) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
