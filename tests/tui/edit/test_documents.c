/* Filters by ending, and the texts that they make: of real files, by real programs. */
#include "ebb_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "edit/attach.h"
#include "edit/documents.h"
#include "os/file.h"
#include "support/own_folder.h"

static const char *put(const char *name, const char *bytes)
{
    static char path[300];
    ebb_error err;

    snprintf(path, sizeof path, "%s/%s", ebb_own_dir, name);
    assert_int_equal(ebb_file_replace(path, bytes, strlen(bytes), &err), EBB_OK);
    return path;
}

static ebb_filter_choice choice(const char *ending, const char *command)
{
    return (ebb_filter_choice){ ending, strlen(ending), command };
}

static void choices(void **state)
{
    ebb_filter_choice own[] = { choice(".log", "tail %s"), choice(".PDF", "mine"), choice(".epub", "none"),
                                choice(".log", "head -n 3 %s | sort"), choice(".two", "cmp %s - <%s") };
    char most[256];
    ebb_filters f;
    ebb_error err;

    (void)state;
    ebb_filters_init(&f, own, 5);
    assert_string_equal(ebb_filters_find(&f, "a.two")->script, "cmp /dev/stdin - </dev/stdin");
    assert_string_equal(ebb_filters_find(&f, "a/b.log")->command, "head -n 3 %s | sort");  /* the last counts */
    assert_string_equal(ebb_filters_find(&f, "a/b.log")->script, "head -n 3 /dev/stdin | sort");
    assert_string_equal(ebb_filters_find(&f, "Report.pdf")->command, "mine");
    assert_int_equal(ebb_filter_group(ebb_filters_find(&f, "x.pdf")), EBB_SPAWN_SESSION);
    assert_string_equal(ebb_filters_find(&f, "x.DocX")->program, "pandoc");
    assert_int_equal(ebb_filter_group(ebb_filters_find(&f, "x.docx")), EBB_SPAWN_FILTER);
    assert_null(ebb_filters_find(&f, "x.epub"));
    assert_null(ebb_filters_find(&f, "x.pdf/readme"));
    assert_null(ebb_filters_find(&f, "pdf"));
    for (size_t i = 0; i < sizeof most; i++)
        most[i] = "%s"[i % 2];
    most[sizeof most - 2] = '|';
    most[sizeof most - 1] = '\0';
    own[0] = choice(".most", most);
    ebb_filters_init(&f, own, 1);
    assert_int_equal(strlen(ebb_filters_find(&f, "a.most")->script), strlen(most) / 2 * strlen("/dev/stdin") + 1);
    assert_int_equal(ebb_filter_choice_check(&own[0], &err), EBB_OK);
    assert_int_equal(ebb_filter_choice_check(&(ebb_filter_choice){ "pdf", 3, "x" }, &err), EBB_USAGE);
    assert_int_equal(ebb_filter_choice_check(&(ebb_filter_choice){ ".pdf", 4, "" }, &err), EBB_USAGE);
    assert_int_equal(ebb_filter_choice_check(&(ebb_filter_choice){ ".very-long-ending", 17, "x" }, &err), EBB_USAGE);
}

static void read_to_end(ebb_documents *d)
{
    ebb_error err;

    assert_int_equal(ebb_documents_start(d, 0, &err), EBB_OK);
    while (!ebb_documents_poll(d, 0))
        usleep(2000);
    assert_false(ebb_documents_is_running(d));
}

/* What is attached of `path` once its filter has run. */
static ebb_status expand(ebb_documents *d, const char *line, ebb_buf *out, ebb_error *err)
{
    ebb_status st;

    ebb_buf_clear(out);
    while ((st = ebb_attach_expand(line, strlen(line), d, out, NULL, err)) == EBB_BUSY) {
        assert_int_equal(out->len, 0);
        read_to_end(d);
    }
    return st;
}

static void texts(void **state)
{
    ebb_filter_choice own[] = {
        choice(".up", "tr a-z A-Z"), choice(".rev", "rev %s"), choice(".esc", "printf 'a\\033[31mb'"),
        choice(".empty", "printf ' \\f\\n'"), choice(".bad", "echo first >&2; echo last >&2; exit 3"),
        choice(".big", "yes"), choice(".gone", "cat %s | no-such-program-here"),
        choice(".set", "LC_ALL=C tr a-z A-Z"), choice(".paren", "(cd / && cat; exec cat %s)"),
    };
    ebb_filters f;
    ebb_documents d = { .filters = &f };
    ebb_buf out = { 0 }, name = { 0 };
    char line[400];
    ebb_error err = { 0 };

    (void)state;
    ebb_filters_init(&f, own, sizeof own / sizeof *own);
    snprintf(line, sizeof line, "what says @%s ?", put("a.up", "hello\n"));
    assert_int_equal(ebb_attach_expand(line, strlen(line), &d, &out, NULL, &err), EBB_BUSY);
    ebb_documents_add_name(&d, &name);
    assert_string_equal(ebb_buf_text(&name), "a.up with tr");
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&out), "a.up:\n```up\nHELLO\n```\n\nwhat says @"));
    put("a.up", "changed\n");                    /* then what was made of it no longer counts */
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&out), "CHANGED"));
    ebb_documents_forget(&d);
    assert_int_equal(ebb_attach_expand(line, strlen(line), &d, &out, NULL, &err), EBB_BUSY);

    snprintf(line, sizeof line, "@\"%s\"", put("it's; $(rm) %s.rev", "abc\n"));  /* no part of the command */
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&out), "\ncba\n"));
    snprintf(line, sizeof line, "@%s", put("c.esc", "x"));
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_null(strchr(ebb_buf_text(&out), '\033'));

    snprintf(line, sizeof line, "@%s", put("d.empty", "x"));
    assert_int_equal(expand(&d, line, &out, &err), EBB_FORMAT);
    assert_string_equal(err.msg, "d.empty: printf found no text in it; scanned pages are pictures");
    snprintf(line, sizeof line, "@%s", put("e.bad", "x"));
    assert_int_equal(expand(&d, line, &out, &err), EBB_FORMAT);
    assert_string_equal(err.msg, "e.bad: no text from echo (exit status 3): last");
    snprintf(line, sizeof line, "@%s", put("f.big", "x"));
    assert_int_equal(expand(&d, line, &out, &err), EBB_LIMIT);
    snprintf(line, sizeof line, "@%s", put("g.gone", "x"));
    assert_int_equal(expand(&d, line, &out, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "g.gone: the filter for .gone calls a program that is not installed: "));
    assert_non_null(strstr(err.msg, "no-such-program-here"));
    snprintf(line, sizeof line, "@%s", put("h.set", "set\n"));   /* any command of the shell's, not a program's name */
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&out), "\nSET\n"));
    snprintf(line, sizeof line, "@%s", put("i.paren", "twice\n"));
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&out), "\ntwice\ntwice\n"));

    snprintf(line, sizeof line, "all of @%s/*.*", ebb_own_dir);      /* by a pattern, what has no text stays behind */
    assert_int_equal(expand(&d, line, &out, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&out), "CHANGED"));
    assert_non_null(strstr(ebb_buf_text(&out), "cba"));
    ebb_documents_fini(&d);
    ebb_buf_fini(&out);
    ebb_buf_fini(&name);
}

static void ends(void **state)
{
    ebb_filter_choice own[] = { choice(".slow", "echo begun; sleep 1000") };
    ebb_filters f;
    ebb_documents d = { .filters = &f };
    ebb_buf out = { 0 };
    char line[400];
    ebb_error err = { 0 };

    (void)state;
    ebb_filters_init(&f, own, 1);
    snprintf(line, sizeof line, "@%s", put("a.slow", "x"));
    assert_int_equal(ebb_attach_expand(line, strlen(line), &d, &out, NULL, &err), EBB_BUSY);
    assert_int_equal(ebb_documents_start(&d, 0, &err), EBB_OK);
    ebb_documents_stop(&d);
    while (!ebb_documents_poll(&d, 0))
        usleep(2000);
    assert_int_equal(ebb_attach_expand(line, strlen(line), &d, &out, NULL, &err), EBB_BUSY);     /* from the start */
    assert_int_equal(ebb_documents_start(&d, 5, &err), EBB_OK);
    while (!ebb_documents_poll(&d, 5 + EBB_PIPED_S + 1))
        usleep(2000);
    assert_int_equal(ebb_attach_expand(line, strlen(line), &d, &out, NULL, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "(stopped after 60 s)"));
    ebb_documents_forget(&d);
    assert_int_equal(ebb_attach_expand(line, strlen(line), &d, &out, NULL, &err), EBB_BUSY);
    assert_int_equal(ebb_documents_start(&d, 0, &err), EBB_OK);
    ebb_documents_fini(&d);                      /* we leave: it goes, too */
    ebb_buf_fini(&out);
}

/* Without filters, and where nothing makes text of a file, it is named what would help. */
static void no_filter(void **state)
{
    ebb_buf out = { 0 };
    char line[400];
    ebb_error err = { 0 };

    (void)state;
    snprintf(line, sizeof line, "@%s", put("a.png", "\x89PNG\x01"));
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, NULL, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "is a picture, and ebb reads only text"));
    snprintf(line, sizeof line, "@%s", put("a.xyz", "\x89x\x01"));
    assert_int_equal(ebb_attach_expand(line, strlen(line), NULL, &out, NULL, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "`filter .xyz = COMMAND`"));
    ebb_buf_fini(&out);
}

/* -- What names much, or nothing -------------------------------------------------------------------- */

/* A megabyte of points behind an @: no name is as long, and none is looked for a million times. */
static void a_word_without_end(void **state)
{
    enum { N = 1 << 20 };
    ebb_buf line = { 0 }, out = { 0 };
    ebb_error err;

    (void)state;
    ebb_buf_addc(&line, '@');
    while (line.len < N)
        ebb_buf_addc(&line, '!');
    assert_int_equal(ebb_attach_expand(line.data, line.len, NULL, &out, NULL, &err), EBB_OK);
    assert_int_equal(out.len, N);
    ebb_buf_fini(&line);
    ebb_buf_fini(&out);
}

/* Patterns by the thousand are looked for up to a limit; behind it a name is only a word. */
static void patterns_by_the_thousand(void **state)
{
    const char *file = put("notes.txt", "text");
    ebb_buf line = { 0 }, out = { 0 };
    ebb_attached files;
    ebb_error err;

    (void)state;
    ebb_buf_addf(&line, "@%s ", file);
    for (int i = 0; i < 5000; i++)
        ebb_buf_addf(&line, "@%s/*.none ", ebb_own_dir);
    ebb_buf_addf(&line, "@%s", file);
    assert_int_equal(ebb_attach_expand(line.data, line.len, NULL, &out, &files, &err), EBB_OK);
    assert_int_equal(files.n_files, 1);
    ebb_buf_fini(&line);
    ebb_buf_fini(&out);
}

/* What is beyond the limit is counted, not passed over in silence. */
static void a_pattern_of_many(void **state)
{
    enum { N_FILES = 2500 };
    ebb_buf line = { 0 }, out = { 0 };
    ebb_attached files;
    ebb_error err;
    char name[32];

    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        snprintf(name, sizeof name, "%d.many", i);
        put(name, "x");
    }
    ebb_buf_addf(&line, "@%s/*.many", ebb_own_dir);
    assert_int_equal(ebb_attach_expand(line.data, line.len, NULL, &out, &files, &err), EBB_OK);
    assert_in_range(files.n_files, 1000, 2000);
    assert_int_equal(files.n_files + files.n_left_out, N_FILES);
    ebb_buf_fini(&line);
    ebb_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(choices), cmocka_unit_test(texts), cmocka_unit_test(ends),
                                        cmocka_unit_test(no_filter), cmocka_unit_test(a_word_without_end),
                                        cmocka_unit_test(patterns_by_the_thousand),
                                        cmocka_unit_test(a_pattern_of_many) };

    return cmocka_run_group_tests_name("documents", tests, ebb_own_dir_make, ebb_own_dir_drop);
}
