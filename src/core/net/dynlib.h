/* net/dynlib.h - the libraries that only a connection needs, loaded when one begins.
 *
 * libcurl brings thirty others along: linked to the program they would cost every start of ebb 4 ms
 * and 6 MB.  So the first download loads it, the first server libmicrohttpd, and everything else
 * never has network code in its address space.  SHA-256 comes from libcrypto, which Debian's
 * libcurl is linked to. */
#ifndef EBB_NET_DYNLIB_H
#define EBB_NET_DYNLIB_H
#include <curl/curl.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"

/* The functions in use, by libcurl's own declarations and names. */
#define EBB_CURL_MAP(X)                                                                    \
    X(curl_global_init) X(curl_easy_init) X(curl_easy_setopt) X(curl_easy_perform)         \
    X(curl_easy_getinfo) X(curl_easy_strerror) X(curl_easy_cleanup) X(curl_easy_reset)     \
    X(curl_slist_append) X(curl_slist_free_all) X(curl_url) X(curl_url_set)                \
    X(curl_url_get) X(curl_url_cleanup) X(curl_free) X(curl_multi_init)                    \
    X(curl_multi_add_handle) X(curl_multi_remove_handle) X(curl_multi_perform)             \
    X(curl_multi_poll) X(curl_multi_wakeup) X(curl_multi_info_read)                        \
    X(curl_multi_cleanup) X(curl_multi_strerror)

#undef curl_easy_setopt          /* they check types of calls by name */
#undef curl_easy_getinfo
typedef struct ebb_curl {
#define X(name) __typeof__(name) *name;
    EBB_CURL_MAP(X)
#undef X
} ebb_curl;

/* Loaded once for the process.  Error: UNSUPPORTED, naming the package. */
EBB_MUST_CHECK
ebb_status ebb_curl_load(const ebb_curl **out, ebb_error *err);

/* What a request is to be: CURLOPT_..., and whatever is set behind a refusal is not asked for any
 * more; `code` begins as CURLE_OK.  A request that lacks one of its options is another request: by
 * a proxy, without TLS, to another server. */
#define EBB_CURL_SET(code, api, easy, option, value)                                              \
    ((code) = (code) == CURLE_OK ? (api)->curl_easy_setopt((easy), (option), (value)) : (code))
/* Whether all options were taken.  Errors: NOMEM, UNSUPPORTED (a libcurl that lacks one). */
EBB_MUST_CHECK
ebb_status ebb_curl_expect_set(const ebb_curl *api, CURLcode code, ebb_error *err);

/* The status with which a proxy has refused to connect; 0: none has.  To be asked at each header,
 * too: libcurl (7.88) reads the body of a refusal to its end before it does anything else. */
static inline long ebb_curl_proxy_refusal(const ebb_curl *api, CURL *easy)
{
    long status = 0;

    api->curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status);
    return status >= 300 ? status : 0;
}

/* Whether a request got as far as being sent. */
static inline bool ebb_curl_has_connected(const ebb_curl *api, CURL *easy)
{
    double s = 0;

    api->curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME, &s);
    return s > 0;
}

/* Whether a request ended because a line of the reply's headers, or all of them, are longer than
 * libcurl takes: before 8.6 it says that memory is out. */
static inline bool ebb_curl_has_long_headers(const ebb_curl *api, CURL *easy, CURLcode code)
{
    enum { TOO_LARGE = 100 };                    /* CURLE_TOO_LARGE, which older headers lack */

    return (code == CURLE_OUT_OF_MEMORY || (int)code == TOO_LARGE) &&
           ebb_curl_has_connected(api, easy);
}

/* The same of libmicrohttpd. */
#define EBB_MHD_MAP(X)                                                                    \
    X(MHD_start_daemon) X(MHD_stop_daemon) X(MHD_get_daemon_info)                         \
    X(MHD_create_response_from_buffer)                                                    \
    X(MHD_create_response_from_callback) X(MHD_add_response_header) X(MHD_queue_response) \
    X(MHD_destroy_response) X(MHD_lookup_connection_value) X(MHD_get_connection_values)   \
    X(MHD_get_connection_info) X(MHD_set_connection_option) X(MHD_set_response_options)

typedef struct ebb_mhd {
#define X(name) __typeof__(name) *name;
    EBB_MHD_MAP(X)
#undef X
} ebb_mhd;

/* Likewise. */
EBB_MUST_CHECK
ebb_status ebb_mhd_load(const ebb_mhd **out, ebb_error *err);

/* -- SHA-256 ------------------------------------------------------------------------- */

typedef struct ebb_sha256 ebb_sha256;

/* Errors: UNSUPPORTED (no libcrypto), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_sha256_new(ebb_sha256 **out, ebb_error *err);
void ebb_sha256_free(ebb_sha256 *s);             /* NULL is fine */
void ebb_sha256_begin(ebb_sha256 *s);            /* of nothing; a new one is so */
void ebb_sha256_add(ebb_sha256 *s, const void *data, size_t n);
/* Of all that was added, as 64 hexadecimal digits; begin comes next. */
void ebb_sha256_end(ebb_sha256 *s, char out[65]);

#endif
