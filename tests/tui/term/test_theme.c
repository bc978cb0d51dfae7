#include "ebb_test.h"

#include <sys/stat.h>

#include "term/theme.h"

static ebb_status parse(const char *text, ebb_theme *out, ebb_error *err)
{
    return ebb_theme_parse(text, strlen(text), "my.theme", "my", out, err);
}

static void reads_styles(void **state)
{
    ebb_theme t;

    (void)state;
    assert_int_equal(parse("# a comment\n\n"
                           "user  = bright-cyan bold   # typed\n"
                           "code=#8ec07c 236\r\n"
                           "error = 196 default reverse underline", &t, NULL), EBB_OK);
    assert_int_equal(t.style[EBB_FACE_USER].fg, 14);
    assert_int_equal(t.style[EBB_FACE_USER].attrs, EBB_ATTR_BOLD);
    assert_int_equal(t.style[EBB_FACE_CODE].fg, EBB_COLOR_RGB + 0x8ec07c);
    assert_int_equal(t.style[EBB_FACE_CODE].bg, 236);
    assert_int_equal(t.style[EBB_FACE_ERROR].bg, EBB_COLOR_DEFAULT);
    assert_int_equal(t.style[EBB_FACE_ERROR].attrs, EBB_ATTR_REVERSE | EBB_ATTR_UNDERLINE);
    assert_int_equal(t.style[EBB_FACE_DIM].fg, EBB_COLOR_DEFAULT);
    assert_int_equal(parse("\xEF\xBB\xBFuser = 14\r\n", &t, NULL), EBB_OK);    /* of an editor of Windows */
    assert_int_equal(t.style[EBB_FACE_USER].fg, 14);
}

static void errors_name_the_line(void **state)
{
    static const struct { const char *text, *message; } table[] = {
        { "user = red\nusr = red\n", "my.theme:2: there is no face 'usr'" },
        { "user = redd", "my.theme:1: 'redd' is not a colour" },
        { "user = red green blue", "my.theme:1: 'blue' is not a colour" },
        { "user = bold red", "my.theme:1: 'red' is not a colour or attribute that belongs here" },
        { "user = #12345", "my.theme:1: '#12345'" },
        { "user = 256", "my.theme:1: '256'" },
        { "\n\nuser", "my.theme:3: expected face = colours" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        ebb_theme t = { .name = "before" };
        ebb_error err = { 0 };
        assert_int_equal(parse(table[i].text, &t, &err), EBB_FORMAT);
        assert_non_null(strstr(err.msg, table[i].message));
        assert_string_equal(t.name, "before");
    }
}

static void built_in_ones_are_sound(void **state)
{
    ebb_theme t;
    ebb_error err;

    (void)state;
    for (size_t i = 0; ebb_theme_builtin(i); i++) {
        assert_int_equal(ebb_theme_load(NULL, ebb_theme_builtin(i), &t, &err), EBB_OK);
        assert_string_equal(t.name, ebb_theme_builtin(i));
    }
    assert_int_equal(ebb_theme_load("/nonexistent", "mono", &t, &err), EBB_OK);
    for (int f = 0; f < EBB_FACE_COUNT; f++)
        assert_int_equal(t.style[f].fg, EBB_COLOR_DEFAULT);
    assert_int_equal(ebb_theme_load(NULL, "../x", &t, &err), EBB_NOTFOUND);
}

/* Each promise of a shipped theme: contrast is never dim, ansi has only the 16 colours and no attributes. */
static void what_themes_promise(void **state)
{
    ebb_theme contrast, ansi, dusk;

    (void)state;
    assert_int_equal(ebb_theme_load(NULL, "contrast", &contrast, NULL), EBB_OK);
    assert_int_equal(ebb_theme_load(NULL, "ansi", &ansi, NULL), EBB_OK);
    assert_int_equal(ebb_theme_load(NULL, "dusk", &dusk, NULL), EBB_OK);
    for (int f = 0; f < EBB_FACE_COUNT; f++) {
        assert_int_equal(contrast.style[f].attrs & EBB_ATTR_DIM, 0);
        assert_true(contrast.style[f].fg == EBB_COLOR_DEFAULT || contrast.style[f].bg != EBB_COLOR_DEFAULT);
        assert_true(ansi.style[f].fg < 16 && ansi.style[f].bg < 16);
        assert_int_equal(ansi.style[f].attrs, 0);
        assert_true(dusk.style[f].fg >= EBB_COLOR_RGB);      /* no face was forgotten */
    }
    assert_null(ebb_theme_builtin(6));
}

static void user_files_come_first(void **state)
{
    char dir[] = "/tmp/ebb-theme-XXXXXX", path[64];
    ebb_theme t;
    ebb_error err;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "mkdir %s/themes", dir);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/themes/dark.theme", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("user = green\nbad line\n", f);
    fclose(f);
    assert_int_equal(ebb_theme_load(dir, "dark", &t, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "dark.theme:2:"));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);     /* nobody waits for whoever may write into it */
    assert_int_equal(ebb_theme_load(dir, "dark", &t, &err), EBB_FORMAT);
    assert_non_null(strstr(err.msg, "dark.theme is a named pipe, not a file"));
    unlink(path);
    snprintf(path, sizeof path, "%s/themes", dir);
    rmdir(path);
    rmdir(dir);
}

static void colours_fit(void **state)
{
    (void)state;
    assert_int_equal(ebb_color_fit(EBB_COLOR_DEFAULT, 256), EBB_COLOR_DEFAULT);
    assert_int_equal(ebb_color_fit(9, 0), EBB_COLOR_DEFAULT);
    assert_int_equal(ebb_color_fit(9, 8), 1);
    assert_int_equal(ebb_color_fit(9, 16), 9);
    assert_int_equal(ebb_color_fit(EBB_COLOR_RGB + 0xFF0000, 256), 196);
    assert_int_equal(ebb_color_fit(EBB_COLOR_RGB + 0xFF0000, 16), 9);
    assert_int_equal(ebb_color_fit(EBB_COLOR_RGB + 0xFE0000, 8), 1);
    assert_int_equal(ebb_color_fit(196, 16), 9);
    assert_int_equal(ebb_color_fit(EBB_COLOR_RGB + 0x808080, 256), 244);
}

static void random_texts(void **state)
{
    uint32_t seed = 3;
    char text[200];
    ebb_theme t;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        for (size_t k = 0; k < sizeof text; k++) {
            static const char likely[] = "user code=#= 12ab\n\n \tbold red";
            seed = seed * 1664525u + 1013904223u;
            text[k] = seed >> 28 ? likely[(seed >> 8) % (sizeof likely - 1)] : (char)(seed >> 16);
        }
        ebb_status st = ebb_theme_parse(text, seed % sizeof text, "x", "x", &t, NULL);
        assert_true(st == EBB_OK || st == EBB_FORMAT);
    }
}

static void background_is_told(void **state)
{
    (void)state;
    assert_string_equal(ebb_theme_for_background("0;15"), "light");
    assert_string_equal(ebb_theme_for_background("15;default;7"), "light");
    assert_string_equal(ebb_theme_for_background("15;0"), "dark");
    assert_string_equal(ebb_theme_for_background("7;8"), "dark");
    assert_null(ebb_theme_for_background(NULL));
    assert_null(ebb_theme_for_background("default;default"));
    assert_null(ebb_theme_for_background("15"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background_is_told),
        cmocka_unit_test(reads_styles),
        cmocka_unit_test(errors_name_the_line),
        cmocka_unit_test(built_in_ones_are_sound),
        cmocka_unit_test(what_themes_promise),
        cmocka_unit_test(user_files_come_first),
        cmocka_unit_test(colours_fit),
        cmocka_unit_test(random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
