/* Events of a download: what is written is what is read, whatever is in it; and what is no event is none. */
#include "ebb_test.h"

#include "pull/pull_events.h"

static void same(const ebb_pull_event *e)
{
    ebb_buf line = { 0 };
    ebb_pull_event got;

    assert_true(ebb_pull_event_add(&line, e));
    assert_int_equal(line.data[line.len - 1], '\n');
    assert_ptr_equal(memchr(line.data, '\n', line.len), line.data + line.len - 1);  /* one line, whatever it says */
    assert_true(ebb_pull_event_read(line.data, line.len - 1, &got));
    assert_int_equal(got.kind, e->kind);
    assert_string_equal(got.text, e->text);
    assert_string_equal(got.file, e->file);
    assert_string_equal(got.path, e->path);
    assert_int_equal(got.n_bytes, e->n_bytes);
    if (e->kind == EBB_PULL_PROGRESS) {
        assert_int_equal(got.i_file, e->i_file);
        assert_int_equal(got.n_files, e->n_files);
        assert_int_equal(got.progress.done, e->progress.done);
        assert_int_equal(got.progress.total, e->progress.total);
        assert_true(got.progress.bytes_s == e->progress.bytes_s);
        assert_true(got.progress.left_s == e->progress.left_s);
        assert_int_equal(got.progress.is_check, e->progress.is_check);
    }
    assert_int_equal(got.was_there, e->was_there);
    assert_int_equal(got.is_verified, e->is_verified);
    ebb_buf_fini(&line);
}

static void there_and_back(void **state)
{
    (void)state;
    same(&(ebb_pull_event){ .kind = EBB_PULL_NOTICE, .text = "a line\nand \"another\" \x1b[31m" });
    same(&(ebb_pull_event){ .kind = EBB_PULL_ERROR, .text = "" });
    same(&(ebb_pull_event){ .kind = EBB_PULL_PROGRESS, .file = "x-Q4_K_M.gguf", .i_file = 1, .n_files = 3,
                            .progress = { .done = 5, .total = UINT64_MAX, .bytes_s = -1, .left_s = -1 } });
    same(&(ebb_pull_event){ .kind = EBB_PULL_PROGRESS, .file = "\xc3\xa4.gguf", .n_files = 1,
                            .progress = { .done = 5, .total = (uint64_t)1 << 42, .bytes_s = 12.5e6, .left_s = 77,
                                          .is_check = true } });
    same(&(ebb_pull_event){ .kind = EBB_PULL_DONE, .file = "x.gguf", .path = "/a b/x.gguf", .n_bytes = 7,
                            .was_there = true, .is_verified = true, .seconds = 1.5 });
}

static void others(void **state)
{
    static const char *const lines[] = { "", "x", "{}", "[]", "{\"event\":7}", "{\"event\":\"other\"}",
                                         "{\"event\":\"done\"", "{\"event\":\"done\"} {}" };
    static const char odd[] = "{\"event\":\"progress\",\"done\":-5,\"total\":\"x\",\"file\":9}";
    ebb_pull_event e;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(ebb_pull_event_read(lines[i], strlen(lines[i]), &e));
    /* Missing and senseless fields are as if nothing were known. */
    assert_true(ebb_pull_event_read(odd, strlen(odd), &e));
    assert_int_equal(e.progress.done, 0);
    assert_true(e.progress.total == UINT64_MAX);
    assert_string_equal(e.file, "");
    assert_true(e.progress.left_s < 0);
}

/* Bytes that are no UTF-8 come out as characters that are. */
static void no_utf8(void **state)
{
    ebb_pull_event e = { .kind = EBB_PULL_NOTICE, .text = "a\xff" "b" }, got;
    ebb_buf line = { 0 };

    (void)state;
    assert_true(ebb_pull_event_add(&line, &e));
    assert_true(ebb_pull_event_read(line.data, line.len, &got));
    assert_string_equal(got.text, "a\xef\xbf\xbd" "b");
    ebb_buf_fini(&line);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(others),
        cmocka_unit_test(no_utf8),
    };

    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests_name("pull_events", tests, NULL, NULL);
}
