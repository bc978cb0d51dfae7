/* A libcurl that refuses: no request goes out without one of its options. */
#include "ebb_test.h"

#include "net/client.h"
#include "net/dynlib.h"
#include "net/http.h"

static ebb_curl *api;
static int n_left, n_sent;       /* options that are taken; requests that went out all the same */

static CURLcode set_or_refuse(CURL *easy, CURLoption option, ...)
{
    (void)easy;
    (void)option;
    return n_left-- == 0 ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

static CURLcode send_easy(CURL *easy)
{
    (void)easy;
    n_sent++;
    return CURLE_COULDNT_CONNECT;
}

static CURLMcode send_multi(CURLM *multi, int *n_running)
{
    (void)multi;
    *n_running = 0;
    n_sent++;
    return CURLM_OK;
}

static int setup(void **state)
{
    const ebb_curl *loaded;

    if (ebb_curl_load(&loaded, NULL) != EBB_OK)
        return 0;
    api = (ebb_curl *)loaded;                    /* the process's own */
    *state = api;
    api->curl_easy_setopt = set_or_refuse;
    api->curl_easy_perform = send_easy;
    api->curl_multi_perform = send_multi;
    return 0;
}

static ebb_status get(ebb_error *err)
{
    ebb_http_request q = { .url = "https://127.0.0.1/x", .secret = "word", .secret_url = "https://127.0.0.1/" };
    ebb_http_reply r;

    return ebb_http_get(&q, &r, err);
}

static ebb_status ask(ebb_error *err)
{
    static const ebb_client_opts opts = { .url = "http://localhost", .name = "box", .unix_path = "/nowhere/socket" };
    ebb_client_request q = { .method = "POST", .path = "/", .body = "{}", .n_body = 2 };
    ebb_client_reply r;
    ebb_client *c;
    ebb_status st = ebb_client_new(&opts, &c, err);

    if (st == EBB_OK) {
        st = ebb_client_send(c, &q, &r, err);
        ebb_client_free(c);
    }
    return st;
}

/* As where libcurl has no memory to copy a socket's path, "no proxy", "https alone". */
static void test_refused_options(void **state)
{
    ebb_status (*const kinds[])(ebb_error *err) = { get, ask };

    (void)state;
    if (!api)
        skip();
    for (size_t i = 0; i < 2; i++) {
        int n = 0;

        for (n_sent = 0; n_sent == 0; n++) {
            ebb_error err = { 0 };
            ebb_status st;

            n_left = n;
            st = kinds[i](&err);
            if (n_left < 0)
                assert_int_equal(n_sent, 0);
            if (n_sent == 0) {
                assert_int_equal(st, EBB_NOMEM);
                assert_string_equal(err.msg, "no memory for a request");
            }
        }
        assert_true(n > 10);
    }
}

static CURLU *refuse_url(void)
{
    return NULL;
}

/* An address that there is no memory to read is not a wrong one. */
static void test_no_memory_for_an_address(void **state)
{
    ebb_error err = { 0 };

    (void)state;
    if (!api)
        skip();
    __typeof__(api->curl_url) usual = api->curl_url;
    api->curl_url = refuse_url;
    assert_int_equal(get(&err), EBB_NOMEM);
    api->curl_url = usual;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_no_memory_for_an_address),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
