/* Real vocabularies against the ids, pieces and streams of a reference
 * implementation (../shared/data/tokenizers); skipped where that is absent. */
#include "ebb_test.h"

#include <jansson.h>

#include "base/buf.h"
#include "ebb/model.h"
#include "os/file.h"

#define DIR "data/tokenizers/"
#define MAX_VOCABS 16

/* -- Vocabularies, each opened once -------------------------------------------------- */

static struct { char name[64]; ebb_model *model; } vocabs[MAX_VOCABS];

static ebb_model *open_packed(const char *path)
{
    char to[] = "/tmp/ebb-vocab-XXXXXX", command[1200];
    int fd = mkstemp(to);
    ebb_model *m = NULL;

    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "gzip -dc '%s.gz' > %s", path, to);
    assert_int_equal(system(command), 0);
    assert_int_equal(ebb_model_open(to, &m, NULL), EBB_OK);
    unlink(to);
    return m;
}

static const ebb_model *vocab(const char *name)
{
    char path[600];
    ebb_error err;
    size_t i = 0;

    while (vocabs[i].model && strcmp(vocabs[i].name, name) != 0)
        i++;
    assert_true(i + 1 < MAX_VOCABS);
    if (vocabs[i].model)
        return vocabs[i].model;
    snprintf(path, sizeof path, "%s%s", ebb_test_shared_path(DIR), name);
    snprintf(vocabs[i].name, sizeof vocabs[i].name, "%s", name);
    if (access(path, R_OK) != 0)
        vocabs[i].model = open_packed(path);
    else if (ebb_model_open(path, &vocabs[i].model, &err) != EBB_OK)
        fail_msg("%s: %s", name, err.msg);
    return vocabs[i].model;
}

static int close_vocabs(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAX_VOCABS; i++)
        ebb_model_close(vocabs[i].model);
    return 0;
}

/* -- Reading ---------------------------------------------------------------------------- */

static ebb_buf read_vectors(const char *rest)
{
    ebb_buf b = { 0 };

    assert_int_equal(ebb_file_slurp(ebb_test_shared_path(rest), 64u << 20, &b, NULL), EBB_OK);
    return b;
}

/* The next line of `b` from *at as JSON; NULL at the end.  Lines end at \n only. */
static json_t *next_row(const ebb_buf *b, size_t *at)
{
    const char *line = b->data + *at, *end;
    json_t *row;

    if (*at >= b->len)
        return NULL;
    end = memchr(line, '\n', b->len - *at);
    end = end ? end : b->data + b->len;
    row = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, NULL);
    assert_non_null(row);
    *at += (size_t)(end - line) + 1;
    return row;
}

static const char *text_of(json_t *row, const char *key, size_t *n)
{
    json_t *j = json_object_get(row, key);

    assert_true(json_is_string(j));
    *n = json_string_length(j);
    return json_string_value(j);
}

static ebb_token id_at(json_t *ids, size_t i)
{
    return (ebb_token)json_integer_value(json_array_get(ids, i));
}

/* The ids of text, in a static array. */
static const ebb_token *encode(const ebb_model *m, const char *text, size_t n_bytes, unsigned flags, size_t *n)
{
    static ebb_token *ids;
    static size_t cap;

    if (cap < n_bytes + 16) {
        free(ids);
        cap = n_bytes + 16;
        ids = malloc(cap * sizeof *ids);
    }
    assert_int_equal(ebb_model_tokenize(m, text, n_bytes, flags, ids, cap, n, NULL), EBB_OK);
    assert_true(*n <= cap);
    return ids;
}

static bool same_ids(const ebb_token *got, size_t n, json_t *want)
{
    bool same = n == json_array_size(want);

    for (size_t i = 0; same && i < n; i++)
        same = got[i] == id_at(want, i);
    return same;
}

/* -- Tests ---------------------------------------------------------------------------------- */

static void test_ids(void **state)
{
    ebb_buf b = read_vectors(DIR "ids.jsonl");
    size_t at = 0, n_rows = 0, n_bad = 0;
    json_t *row;

    (void)state;
    for (; (row = next_row(&b, &at)) != NULL; n_rows++) {
        size_t n_text, n, n_name;
        const char *text = text_of(row, "text", &n_text), *name = text_of(row, "vocab", &n_name);
        unsigned flags = (json_is_true(json_object_get(row, "add_bos")) ? EBB_TOK_BOS : 0u) |
                         (json_is_true(json_object_get(row, "parse_special")) ? EBB_TOK_SPECIAL : 0u);
        const ebb_token *ids = encode(vocab(name), text, n_text, flags, &n);
        if (!same_ids(ids, n, json_object_get(row, "ids")) && n_bad++ < 10)
            print_error("%s flags %u: %.200s\n", name, flags, text);
        json_decref(row);
    }
    ebb_buf_fini(&b);
    assert_true(n_rows > 2000);
    assert_int_equal(n_bad, 0);
}

/* One text of an .inp file and one line of its .out file. */
static void expect_line(const ebb_model *m, const char *text, size_t n_text, const char *line)
{
    size_t n;
    const ebb_token *ids = encode(m, text, n_text, 0, &n);

    for (size_t i = 0; i < n; i++) {
        char *end;
        long want = strtol(line, &end, 10);
        if (end == line || want != ids[i])
            fail_msg("id %zu of '%.*s'", i, (int)n_text, text);
        line = end;
    }
    assert_int_equal(*(line + strspn(line, " ")), '\n');
}

static size_t check_vectors(const char *stem, const char *name)
{
    static const char between[] = "\n__ggml_vocab_test__\n";
    char in[128], out[128];
    size_t n = 0;

    snprintf(in, sizeof in, DIR "ggml-vocab-%s.gguf.inp", stem);
    snprintf(out, sizeof out, DIR "ggml-vocab-%s.gguf.out", stem);
    ebb_buf texts = read_vectors(in), lines = read_vectors(out);
    const char *text = texts.data, *line = lines.data, *end;
    for (; (end = strstr(text, between)) != NULL; n++) {
        expect_line(vocab(name), text, (size_t)(end - text), line);
        text = end + strlen(between);
        line = strchr(line, '\n') + 1;
    }
    ebb_buf_fini(&texts);
    ebb_buf_fini(&lines);
    return n;
}

static void test_ggml_vectors(void **state)
{
    static const char *const own[] = { "deepseek-coder", "falcon", "gpt-2", "llama-spm", "mpt", "phi-3", "refact" };
    char name[64];

    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        snprintf(name, sizeof name, "ggml-vocab-%s.gguf", own[i]);
        assert_true(check_vectors(own[i], name) >= 46);
    }
    assert_true(check_vectors("llama-bpe", "vocab-llama3.2.gguf") >= 46);
    assert_true(check_vectors("qwen2", "vocab-qwen2.5.gguf") >= 46);
}

static bool is_hex(const char *bytes, size_t n, const char *hex)
{
    char pair[3];

    if (strlen(hex) != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        snprintf(pair, sizeof pair, "%02x", (unsigned char)bytes[i]);
        if (memcmp(pair, hex + 2 * i, 2) != 0)
            return false;
    }
    return true;
}

static bool check_pieces(const ebb_model *m, json_t *row)
{
    json_t *ids = json_object_get(row, "ids"), *pieces = json_object_get(row, "pieces"),
           *stream = json_object_get(row, "stream");
    bool special = json_integer_value(json_object_get(row, "special")) || json_is_true(json_object_get(row, "special"));
    ebb_detok *d = ebb_detok_new(m, special);
    bool ok = d != NULL;
    size_t n, n_want;
    char piece[4096];

    for (size_t i = 0; ok && i < json_array_size(ids); i++) {
        const char *text;
        n = ebb_model_piece(m, id_at(ids, i), special, piece, sizeof piece);
        ok = n <= sizeof piece && is_hex(piece, n, json_string_value(json_array_get(pieces, i)));
        text = ebb_detok_push(d, id_at(ids, i), &n);
        ok = ok && n == json_string_length(json_array_get(stream, i)) &&
             memcmp(text, json_string_value(json_array_get(stream, i)), n) == 0;
    }
    const char *last = ok ? ebb_detok_flush(d, &n) : "", *want = text_of(row, "flush", &n_want);
    ok = ok && n == n_want && memcmp(last, want, n) == 0;
    ebb_detok_free(d);
    return ok;
}

static void test_pieces_and_streams(void **state)
{
    ebb_buf b = read_vectors(DIR "pieces.jsonl");
    size_t at = 0, n_rows = 0, n_bad = 0, n_name;
    json_t *row;

    (void)state;
    for (; (row = next_row(&b, &at)) != NULL; n_rows++) {
        const char *name = text_of(row, "vocab", &n_name);
        if (!check_pieces(vocab(name), row) && n_bad++ < 10)
            print_error("%s row %zu\n", name, n_rows);
        json_decref(row);
    }
    ebb_buf_fini(&b);
    assert_true(n_rows > 1000);
    assert_int_equal(n_bad, 0);
}

static uint64_t fnv1a64(const ebb_token *ids, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u;

    for (size_t i = 0; i < n; i++)
        for (unsigned shift = 0; shift < 32; shift += 8)
            h = (h ^ ((uint32_t)ids[i] >> shift & 0xFF)) * 0x100000001B3u;
    return h;
}

static void test_whole_files(void **state)
{
    json_t *rows = json_load_file(ebb_test_shared_path(DIR "files.json"), 0, NULL), *row;
    size_t i, n_bad = 0;

    (void)state;
    assert_non_null(rows);
    json_array_foreach(rows, i, row) {
        size_t n, n_name;
        const char *name = text_of(row, "vocab", &n_name), *file = text_of(row, "file", &n_name);
        char rest[128], hash[17];
        snprintf(rest, sizeof rest, "data/conversations/%s", file);
        if (access(ebb_test_shared_path(rest), R_OK) != 0)
            snprintf(rest, sizeof rest, "data/unicode/%s", file);
        ebb_buf text = read_vectors(rest);
        const ebb_token *ids = encode(vocab(name), text.data, text.len, 0, &n);
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)fnv1a64(ids, n));
        if (n != (size_t)json_integer_value(json_object_get(row, "n_ids")) ||
            strcmp(hash, json_string_value(json_object_get(row, "fnv1a64"))) != 0) {
            n_bad++;
            print_error("%s of %s: %zu ids\n", file, name, n);
        }
        ebb_buf_fini(&text);
    }
    json_decref(rows);
    assert_int_equal(n_bad, 0);
}

static bool has_id(json_t *ids, ebb_token id)
{
    for (size_t i = 0; i < json_array_size(ids); i++)
        if (id_at(ids, i) == id)
            return true;
    return false;
}

/* Three differences are meant: the reference invents a BOS (id 11) where the file
 * has none, of several turn ends takes whichever its hash table has first, and has control
 * tokens that are printed as user-defined ones. */
static void test_facts(void **state)
{
    json_t *rows = json_load_file(ebb_test_shared_path(DIR "info.json"), 0, NULL), *row;
    size_t i;

    (void)state;
    assert_non_null(rows);
    json_array_foreach(rows, i, row) {
        size_t n_name;
        const char *name = text_of(row, "vocab", &n_name);
        const ebb_model *m = vocab(name);
        ebb_token n = (ebb_token)json_integer_value(json_object_get(row, "n_tokens"));
        json_t *eog = json_object_get(row, "eog"), *control = json_object_get(row, "control");
        size_t n_eog = 0, n_control = 0;
        bool no_bos = strcmp(name, "vocab-qwen2.5.gguf") == 0, other_eot = strcmp(name, "vocab-smollm2.gguf") == 0;
        assert_int_equal(ebb_model_bos(m), no_bos ? -1 : json_integer_value(json_object_get(row, "bos")));
        assert_int_equal(ebb_model_eos(m), json_integer_value(json_object_get(row, "eos")));
        assert_int_equal(ebb_model_eot(m), other_eot ? 2 : json_integer_value(json_object_get(row, "eot")));
        for (ebb_token id = 0; id < n; id++) {
            n_eog += ebb_model_is_eog(m, id);
            bool hides = ebb_model_is_control(m, id) && ebb_model_piece(m, id, false, NULL, 0) == 0;
            n_control += hides;
            if (ebb_model_is_eog(m, id))
                assert_true(has_id(eog, id));
            if (hides)
                assert_true(has_id(control, id));
        }
        assert_int_equal(n_eog, json_array_size(eog));
        assert_int_equal(n_control, json_array_size(control));
    }
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_ggml_vectors),
        cmocka_unit_test(test_pieces_and_streams),
        cmocka_unit_test(test_whole_files),
        cmocka_unit_test(test_facts),
    };
    return cmocka_run_group_tests(tests, NULL, close_vocabs);
}
