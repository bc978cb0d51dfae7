#include "ebb_test.h"

#include "base/buf.h"
#include "text/highlight.h"

/* Faces as letters, one per byte: k word, s string, c comment, n number, N name, . other. */
static void add_letters(void *arg, const char *s, size_t n, ebb_face face)
{
    static const struct { ebb_face face; char letter; } letters[] = {
        { EBB_FACE_KEYWORD, 'k' }, { EBB_FACE_STRING, 's' }, { EBB_FACE_COMMENT, 'c' }, { EBB_FACE_NUMBER, 'n' },
        { EBB_FACE_NAME, 'N' }, { EBB_FACE_ADDED, '+' }, { EBB_FACE_REMOVED, '-' }, { EBB_FACE_CODE, '.' },
    };

    (void)s;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        for (size_t k = 0; k < n && letters[i].face == face; k++)
            ebb_buf_addc(arg, letters[i].letter);
}

static const char *faces(const char *lang, const char *text)
{
    static ebb_buf out;
    ebb_highlight h;

    ebb_buf_clear(&out);
    ebb_highlight_begin(&h, lang, strlen(lang));
    for (const char *nl; *text; text = nl + (*nl == '\n')) {
        nl = text + strcspn(text, "\n");
        ebb_highlight_line(&h, text, (size_t)(nl - text), add_letters, &out);
        if (*nl)
            ebb_buf_addc(&out, '\n');
    }
    return ebb_buf_text(&out);
}

static void languages(void **state)
{
    static const struct { const char *lang, *text, *want; } cases[] = {
        { "c", "int x = 0x1F; // hi", "kkk.....nnnn..ccccc" },
        { "c", "/* a\nb */ return f(\"q\\\"\");", "cccc\ncccc.kkkkkk.N.sssss.." },
        { "cpp", "class A;", "kkkkk..." },
        { "python", "def f(x): # no", "kkk.N.....cccc" },
        { "py title=a", "s = \"\"\"one\ntwo\"\"\" + 'x'", "....ssssss\nssssss...sss" },
        { "js", "const a = `x\ny` // c", "kkkkk.....ss\nss.cccc" },
        { "typescript", "let a: number;", "kkk....kkkkkk." },
        { "rust", "fn f<'a>(c: &'a str) {'x'}", "kk..............kkk...sss." },
        { "go", "func main() {}", "kkkk.NNNN....." },
        { "java", "public int a;", "kkkkkk.kkk..." },
        { "bash", "if true; then echo $# 'a' # c", "kk.......kkkk.kkkk....sss.ccc" },
        { "json", "{\"a\": [1, true, \"b\"]}", ".NNN...n..kkkk..sss.." },
        { "yaml", "my-key: yes # c", "NNNNNN..kkk.ccc" },
        { "SQL", "SELECT a FROM t -- c", "kkkkkk...kkkk...cccc" },
        { "html", "<a href=\"x\">t</a><!-- c -->", "kk.NNNN.sssk.kkkkcccccccccc" },
        { "diff", "@@ 1 @@\n+a\n-b\n c", "NNNNNNN\n++\n--\n.." },
        { "nosuch", "int x", "....." },
        { "", "int x", "....." },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *have = faces(cases[i].lang, cases[i].text);
        if (cases[i].want && strcmp(have, cases[i].want) != 0)
            fail_msg("%s: %s\nhave %s\nwant %s", cases[i].lang, cases[i].text, have, cases[i].want);
        assert_int_equal(strlen(have), strlen(cases[i].text));
    }
}

static void sum_bytes(void *arg, const char *s, size_t n, ebb_face face)
{
    (void)s;
    (void)face;
    *(size_t *)arg += n;
}

/* Any bytes in any language: all of them come out. */
static void any_bytes(void **state)
{
    char text[40];

    (void)state;
    srand(1);
    for (const ebb_language *l = ebb_languages; l->names; l++) {
        ebb_highlight h;
        ebb_highlight_begin(&h, l->names + 1, strcspn(l->names + 1, " "));
        assert_ptr_equal(h.lang, l);
        for (int k = 0; k < 5000; k++) {
            size_t n = (size_t)rand() % sizeof text, sum = 0;
            for (size_t i = 0; i < n; i++)
                text[i] = rand() % 3 ? "\"'`/*#<>-!\\=:{}@ab1."[rand() % 20] : (char)rand();
            ebb_highlight_line(&h, text, n, sum_bytes, &sum);
            assert_int_equal(sum, n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
