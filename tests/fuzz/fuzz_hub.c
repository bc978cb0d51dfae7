/* What a hub may answer: listings, redirects, files in pieces, refusals.  The first byte says what is asked for, the
 * rest are the answers (fake_curl.h).  Whatever they are: the token goes to its own origin, nothing leads from https to
 * http, names stay in their folder, and what got a model's name is what the checksum says. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_curl.h"
#include "folder.h"
#include "net/dynlib.h"
#include "os/file.h"
#include "pull/part_sidecar.h"
#include "pull/pull.h"
#include "support/tiny_model.h"

#define HUB   "https://hub.example"
#define TOKEN "hf_secret"

enum { IS_HERE = 4, IS_BEGUN = 8, HAS_SUM = 16, HAS_SIZE = 32, IS_HUB = 64, IS_PLAIN = 128 };

static bool knows_token;                         /* the answers repeat it */

/* The pauses between tries are none. */
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)t;
    (void)left;
    return 0;
}

/* By libcurl's own idea of a URL. */
static bool is_hub(const char *url)
{
    const ebb_curl *curl;
    CURLU *u;
    char *host = NULL, *scheme = NULL, *port = NULL;
    bool is_it;

    FUZZ_MUST(ebb_curl_load(&curl, NULL) == EBB_OK);
    u = curl->curl_url();
    is_it = curl->curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
            curl->curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && strcasecmp(host, "hub.example") == 0 &&
            curl->curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && strcasecmp(scheme, "https") == 0 &&
            curl->curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK && strcmp(port, "443") == 0;
    curl->curl_free(host);
    curl->curl_free(scheme);
    curl->curl_free(port);
    curl->curl_url_cleanup(u);
    return is_it;
}

static void watch(const char *url, const struct curl_slist *headers)
{
    for (; headers; headers = headers->next) {
        FUZZ_MUST(!strpbrk(headers->data, "\r\n"));
        FUZZ_MUST(knows_token || !strstr(headers->data, TOKEN) || is_hub(url));
    }
}

static bool is_over(void *arg)
{
    (void)arg;
    return fake_curl_is_over();
}

static void take_notice(void *arg, const char *line)
{
    (void)arg;
    FUZZ_MUST(line[0] && !strchr(line, '\n') && (knows_token || !strstr(line, TOKEN)));
}

static const ebb_pull_env env = { .endpoint = HUB, .token = TOKEN, .pause_ms = 1, .is_canceled = is_over,
                                  .on_notice = take_notice };

static void check(ebb_status st, const ebb_error *err)
{
    if (st != EBB_OK)
        FUZZ_MUST(err->msg[0] && !strchr(err->msg, '\n') && (knows_token || !strstr(err->msg, TOKEN)));
}

/* -- What is asked for ------------------------------------------------------------------------ */

static void check_texts(const ebb_http_reply *r)
{
    const char *const texts[] = { r->etag, r->modified, r->next, r->reason, r->reason_code, r->linked_etag, r->host };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *p = texts[i]; *p; p++)
            FUZZ_MUST((unsigned char)*p >= ' ' && *p != 127);
    FUZZ_MUST(r->retry_after_s <= 3600);
}

static void ask_for_text(unsigned how)
{
    ebb_http_request q = { .url = how & IS_PLAIN ? "http://hub.example/a" : HUB "/a", .secret = TOKEN,
                           .secret_url = HUB,
                           .from = how & IS_BEGUN ? 7 : 0, .if_range = how & HAS_SUM ? "\"x\"" : NULL };
    ebb_http_reply r;
    ebb_error err = { 0 };
    ebb_buf text = { 0 };
    ebb_status st = ebb_http_get_text(&q, 4096, &text, &r, &err);

    check(st, &err);
    check_texts(&r);
    FUZZ_MUST(text.len <= 4096);
    if (st == EBB_OK && r.status != 200)
        check(ebb_hub_refusal(&env, &r, how & IS_HUB ? "a/b" : NULL, "a", &err), &err);
    ebb_buf_fini(&text);
}

static bool leads_up(const char *path)
{
    return strncmp(path, "../", 3) == 0 || strstr(path, "/../");
}

static void ask_for_list(void)
{
    static const char *const wanted[] = { "Q4_K_M", "m.gguf", "q8", "" };
    static const ebb_machine machine = { .n_cpus = 4, .available_bytes = (uint64_t)8 << 30 };
    ebb_pull p;
    ebb_error err = { 0 };
    ebb_status st = ebb_pull_open(&env, "a/b", &p, &err);
    size_t i;

    check(st, &err);
    for (i = 0; i < p.list.n; i++)
        FUZZ_MUST(ebb_pull_is_name(p.list.files[i].name) && !leads_up(p.list.files[i].path));
    if (st == EBB_OK)
        ebb_pull_rate_variants(p.variants, p.n_variants, &machine);
    for (size_t k = 0; st == EBB_OK && k < sizeof wanted / sizeof *wanted; k++)
        if (ebb_pull_find_variant(p.variants, p.n_variants, wanted[k], &i, &err) == EBB_OK)
            FUZZ_MUST(i < p.n_variants && ebb_pull_variant_spec(p.variants, p.n_variants, i)[0]);
    ebb_pull_fini(&p);
}

/* The whole of a pull: its files end in the folder of models, or nothing does. */
static bool refuse_plan(void *arg, const ebb_model *m, const ebb_machine *machine, const ebb_plan *plan)
{
    (void)arg;
    FUZZ_MUST(m && machine && plan);
    return fake_curl_is_over();
}

static void fetch(unsigned how)
{
    static const ebb_tiny_opts tiny = { .arch = "llama", .n_layers = 1, .n_embd = 32, .n_head = 2, .n_head_kv = 1,
                                        .head_dim = 16, .n_ff = 32, .n_ctx = 32 };
    static const char *const names[] = { "m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m.gguf", "m-Q4_K_M.gguf" };
    static char *model;
    static size_t n_model;
    ebb_pull_callbacks watch_pull = { .on_plan = refuse_plan };
    ebb_engine_opts o = { .n_ctx = 16, .n_threads = 1 };
    ebb_pull_done done = { 0 };
    ebb_error err = { 0 };
    ebb_pull p;
    ebb_status st;
    char path[160];

    if (!model)
        model = ebb_tiny_bytes(&tiny, &n_model);
    fake_curl_attach(model, n_model);
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s%s", fuzz_folder(), names[i / 2], i % 2 ? ".part" : "");
        unlink(path);
        if (i % 2)
            ebb_pull_sidecar_remove(path);
    }
    st = ebb_pull_open(&env, how & HAS_SUM ? "a/b" : how & IS_BEGUN ? "https://x.example/m-00001-of-00002.gguf"
                                                                   : "https://x.example/m.gguf", &p, &err);
    p.machine = (ebb_machine){ .n_cpus = 2, .available_bytes = (uint64_t)1 << 30 };
    if (st == EBB_OK)
        st = ebb_pull_fetch(&p, 0, NULL, &o, &watch_pull, &done, &err);
    check(st, &err);
    if (st == EBB_OK)
        FUZZ_MUST(access(done.path.data, R_OK) == 0);
    ebb_buf_fini(&done.path);
    ebb_pull_fini(&p);
}

/* The header is whole at 24 bytes; "BAD" is no model. */
static ebb_status judge_header(void *arg, const char *part, uint64_t n_bytes, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = ebb_file_slurp(part, 1 << 20, &text, err);

    (void)arg;
    (void)n_bytes;
    if (st == EBB_OK && text.len >= 3 && memcmp(text.data, "BAD", 3) == 0)
        st = EBB_FAIL(err, EBB_FORMAT, "this is no model");
    else if (st == EBB_OK && text.len < 24)
        st = EBB_FAIL(err, EBB_BUSY, "more is needed");
    ebb_buf_fini(&text);
    return st;
}

static void sum_of(const ebb_buf *b, char out[65])
{
    ebb_sha256 *s;

    FUZZ_MUST(ebb_sha256_new(&s, NULL) == EBB_OK);
    ebb_sha256_add(s, ebb_buf_text(b), b->len);
    ebb_sha256_end(s, out);
    ebb_sha256_free(s);
}

static void put_begun(const char *part)
{
    static const ebb_pull_sidecar known = { .command = "ebb pull", .n_bytes = UINT64_MAX, .etag = "\"one\"" };

    FUZZ_MUST(ebb_file_replace(part, "0123456789", 10, NULL) == EBB_OK &&
              ebb_pull_sidecar_write(part, &known, NULL) == EBB_OK);
}

static const char sum[] = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";  /* of 0123456789 */

static ebb_download_request request_for(unsigned how)
{
    return (ebb_download_request){ .url = how & IS_HUB ? HUB "/a/b/resolve/main/m.gguf" : "https://else.example/m.gguf",
                                   .folder = fuzz_folder(), .name = "m.gguf", .is_hub = how & IS_HUB,
                                   .command = "ebb pull a/b", .n_bytes = how & HAS_SIZE ? 10 : UINT64_MAX,
                                   .sha256 = how & HAS_SUM ? sum : "", .repo = how & IS_HUB ? "a/b" : NULL };
}

/* Where m.gguf and its part shall be, and neither is yet. */
static void begin_names(char path[128], char part[160])
{
    snprintf(path, 128, "%s/m.gguf", fuzz_folder());
    snprintf(part, 160, "%s.part", path);
    unlink(path);
    unlink(part);
    ebb_pull_sidecar_remove(part);
}

/* One file of several is here: it stays as it is, and is taken only if nothing says that it is of another version. */
static void ask_for_file_that_is_here(unsigned how)
{
    const char *bytes = how & IS_PLAIN ? "9876543210" : "0123456789";
    const ebb_pull_sidecar known = { .command = "ebb pull", .n_bytes = 10, .etag = "\"one\"" };
    ebb_download_request w = request_for(how);
    char path[128], part[160];
    ebb_download_result got;
    ebb_error err = { 0 };
    ebb_buf text = { 0 };
    ebb_status st;

    begin_names(path, part);
    w.is_joined = true;
    FUZZ_MUST(ebb_file_replace(path, bytes, 10, NULL) == EBB_OK);
    if (how & IS_BEGUN)
        FUZZ_MUST(ebb_pull_sidecar_write(part, &known, NULL) == EBB_OK);
    st = ebb_download_file(&env, &w, &got, &err);
    check(st, &err);
    if (st == EBB_OK)
        FUZZ_MUST(got.was_there && (how & (HAS_SUM | IS_PLAIN)) != (HAS_SUM | IS_PLAIN));
    FUZZ_MUST(ebb_file_slurp(path, 1 << 20, &text, NULL) == EBB_OK && text.len == 10 &&
              memcmp(text.data, bytes, 10) == 0 && access(part, F_OK) != 0);
    ebb_buf_fini(&text);
}

static void ask_for_file(unsigned how)
{
    char path[128], part[160], got_sum[65];
    ebb_download_request w = request_for(how);
    ebb_download_result got;
    ebb_error err = { 0 };
    ebb_buf text = { 0 };
    ebb_status st;

    begin_names(path, part);
    w.on_header = how & IS_PLAIN ? judge_header : NULL;
    w.header_only = how & IS_PLAIN && how & IS_HUB;
    if (how & IS_BEGUN)
        put_begun(part);
    st = ebb_download_file(&env, &w, &got, &err);
    check(st, &err);
    FUZZ_MUST((access(path, F_OK) == 0) == (st == EBB_OK && !got.has_header_only));
    if (st == EBB_OK && !got.has_header_only) {
        FUZZ_MUST(ebb_file_slurp(path, 1 << 24, &text, NULL) == EBB_OK && text.len == got.n_bytes);
        sum_of(&text, got_sum);
        FUZZ_MUST(strcmp(got.sha256, got_sum) == 0 && (!(how & HAS_SUM) || strcmp(got_sum, sum) == 0));
        FUZZ_MUST(!(how & HAS_SIZE) || text.len == 10);
    }
    ebb_buf_fini(&text);
}

/* What a user types, which may be an address that somebody sent. */
static void ask_for_source(const char *text, size_t n)
{
    char *word = strndup(text, n);
    ebb_pull_source s;
    ebb_error err = { 0 };
    ebb_buf command = { 0 };
    ebb_status st;

    FUZZ_MUST(word);
    st = ebb_pull_parse(word, &s, &err);
    check(st, &err);
    if (st == EBB_OK) {
        FUZZ_MUST(s.is_url ? s.url[0] : strchr(s.repo, '/') && !leads_up(s.repo) &&
                                        strcmp(strchr(s.repo, '/'), "/..") != 0);
        FUZZ_MUST(!s.name[0] || ebb_pull_is_name(s.name));
        ebb_pull_add_command(&command, &s, NULL);
    }
    ebb_buf_fini(&command);
    free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    FUZZ_MUST(setenv("EBB_MODELS", fuzz_folder(), 1) == 0);
    knows_token = memmem(data, n, TOKEN, sizeof TOKEN - 1) != NULL;
    fake_curl_begin((const char *)data + 1, n - 1, watch);
    switch (data[0] % 4) {
    case 0: ask_for_text(data[0]); break;
    case 1: data[0] & IS_PLAIN ? fetch(data[0]) : ask_for_list(); break;
    case 2: (data[0] & IS_HERE ? ask_for_file_that_is_here : ask_for_file)(data[0]); break;
    default: ask_for_source((const char *)data + 1, n - 1); break;
    }
    return 0;
}
