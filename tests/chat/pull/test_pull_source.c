/* What words and addresses mean, and which names are names. */
#include "ebb_test.h"

#include "pull/pull_source.h"

static void expect(const char *text, const char *repo, const char *revision, const char *want)
{
    ebb_pull_source s;
    ebb_error err = { 0 };

    if (ebb_pull_parse(text, &s, &err) != EBB_OK)
        fail_msg("%s: %s", text, err.msg);
    assert_false(s.is_url);
    assert_string_equal(s.repo, repo);
    assert_string_equal(s.revision, revision);
    assert_string_equal(s.want, want);
}

static void test_words(void **state)
{
    static const char *const wrong[] = { "", "x", "x/", "/x", "x/y z", "../x", ".x/y", "x/.y", "-x/y", "ftp://x/y.gguf",
                                         "hf.co/x", "x/y@", "x/y@:z", "x\x1b/y", "file:///etc/passwd", "x/y:\x01%00" };
    char longest[9000];
    ebb_pull_source s;

    (void)state;
    expect("a/B-GGUF", "a/B-GGUF", "main", "");
    expect("a/B-GGUF:Q4_K_M", "a/B-GGUF", "main", "Q4_K_M");
    expect("a/B-GGUF:Q4_K_M@v1.2", "a/B-GGUF", "v1.2", "Q4_K_M");
    expect("a/B-GGUF@refs%2Fpr%2F1", "a/B-GGUF", "refs%2Fpr%2F1", "");
    expect("a/B-GGUF@v1.2:Q4_K_M", "a/B-GGUF", "v1.2", "Q4_K_M");
    expect("a/B-GGUF@v1.2:at@x.gguf", "a/B-GGUF", "v1.2", "at@x.gguf");
    expect("a/B/x.gguf", "a/B", "main", "x.gguf");
    expect("HTTPS://HuggingFace.co/a/B", "a/B", "main", "");
    expect("hf.co/a/B:Q8_0", "a/B", "main", "Q8_0");
    expect("https://huggingface.co/a/B/tree/main", "a/B", "main", "");
    expect("https://huggingface.co/a/B/blob/dev/sub/x%20y.gguf?download=true#top", "a/B", "dev", "sub/x y.gguf");
    expect("https://huggingface.co/a/B/resolve/main/x.gguf?download=true", "a/B", "main", "x.gguf");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (ebb_pull_parse(wrong[i], &s, NULL) != EBB_USAGE)
            fail_msg("'%s' is taken", wrong[i]);
    memset(longest, 'a', sizeof longest - 1);
    longest[1] = '/';
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(ebb_pull_parse(longest, &s, NULL), EBB_USAGE);
    memcpy(longest, "https://x/", 10);
    assert_int_equal(ebb_pull_parse(longest, &s, NULL), EBB_USAGE);
}

static void test_addresses(void **state)
{
    ebb_pull_source s;

    (void)state;
    assert_int_equal(ebb_pull_parse("https://host:8080/a/b%20c.gguf?key=1&x=2#end", &s, NULL), EBB_OK);
    assert_true(s.is_url);
    assert_string_equal(s.url, "https://host:8080/a/b%20c.gguf?key=1&x=2");
    assert_string_equal(s.name, "b c.gguf");
    assert_int_equal(ebb_pull_parse("http://host/get?id=5", &s, NULL), EBB_OK);
    assert_string_equal(s.name, "");
    assert_int_equal(ebb_pull_parse("http://host/%2e%2e%2fevil.gguf", &s, NULL), EBB_OK);
    assert_string_equal(s.name, "");             /* a path is no name, however it is written */
    assert_int_equal(ebb_pull_parse("https://huggingface.co.evil.example/a/b.gguf", &s, NULL), EBB_OK);
    assert_true(s.is_url);                       /* another host is not the hub */
    assert_int_equal(ebb_pull_parse("https://host", &s, NULL), EBB_OK);
    assert_string_equal(s.name, "");
}

static void test_names(void **state)
{
    char longest[300];

    (void)state;
    assert_true(ebb_pull_is_name("a.gguf"));
    assert_true(ebb_pull_is_name("Gr\xc3\xb6\xc3\x9f" "e 8B.GGUF"));
    assert_false(ebb_pull_is_name(".gguf"));
    assert_false(ebb_pull_is_name("a.gguf.part"));
    assert_false(ebb_pull_is_name(".a.gguf"));
    assert_false(ebb_pull_is_name("a/b.gguf"));
    assert_false(ebb_pull_is_name("a\\b.gguf"));
    assert_false(ebb_pull_is_name("a\x1b[1m.gguf"));
    assert_false(ebb_pull_is_name("a\nb.gguf"));
    assert_false(ebb_pull_is_name("a\xe2\x80\xae.gguf"));        /* U+202E turns the line around */
    assert_false(ebb_pull_is_name("a\xff.gguf"));
    memset(longest, 'a', sizeof longest);
    strcpy(longest + 250, ".gguf");
    assert_false(ebb_pull_is_name(longest));
}

static void expect_command(const char *text, const char *want, const char *command)
{
    ebb_pull_source s;
    ebb_buf out = { 0 };

    assert_int_equal(ebb_pull_parse(text, &s, NULL), EBB_OK);
    ebb_pull_add_command(&out, &s, want);
    assert_string_equal(out.data, command);
    ebb_buf_fini(&out);
}

static void test_commands(void **state)
{
    (void)state;
    expect_command("hf.co/a/B", "Q4_K_M", "ebb pull a/B:Q4_K_M");
    expect_command("a/B:x@v1", NULL, "ebb pull a/B:x@v1");
    expect_command("a/B", "it's.gguf", "ebb pull 'a/B:it'\\''s.gguf'");
    expect_command("https://h/x.gguf?a=1&b=2", NULL, "ebb pull 'https://h/x.gguf?a=1&b=2'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
