#include "fake_curl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "net/dynlib.h"

typedef size_t take_fn(char *data, size_t size, size_t n, void *arg);

/* A transfer. */
typedef struct transfer {
    char               url[9000], next[9000];
    struct curl_slist *headers;
    bool               only_tls;
    take_fn           *on_header, *on_data;
    void              *header_arg, *data_arg, *progress_arg;
    curl_xferinfo_callback on_progress;
    curl_opensocket_callback on_open;            /* NULL: no connection is made at all */
    curl_sockopt_callback on_connect;
    void              *open_arg, *connect_arg;
    char               socket_path[108];
    long               status;
    const char        *at, *end;                 /* of its reply */
    CURLcode           code;
} transfer;

static const char *script, *script_end, *attached = "";
static size_t n_attached;
static void (*watch_request)(const char *url, const struct curl_slist *headers);
static const ebb_curl *real;
static ebb_curl fake;
static transfer *added;                          /* to the one multi handle there is */
static bool has_ended;                           /* before its body */

void fake_curl_begin(const char *text, size_t n, void (*watch)(const char *url, const struct curl_slist *headers))
{
    script = text;
    script_end = text + n;
    watch_request = watch;
}

void fake_curl_attach(const char *data, size_t n)
{
    attached = data;
    n_attached = n;
}

bool fake_curl_is_over(void)
{
    return script == script_end;
}

static const char *find_mark(const char *at, const char *end, char mark)
{
    const char *found = at < end ? memchr(at, mark, (size_t)(end - at)) : NULL;

    return found ? found : end;
}

/* -- Options -------------------------------------------------------------------------------- */

static CURLcode fake_setopt(CURL *easy, CURLoption option, ...)
{
    transfer *t = easy;
    va_list args;

    va_start(args, option);
    switch ((int)option) {
    case CURLOPT_URL: snprintf(t->url, sizeof t->url, "%s", va_arg(args, char *)); break;
    case CURLOPT_HTTPHEADER: t->headers = va_arg(args, struct curl_slist *); break;
    case CURLOPT_PROTOCOLS_STR: t->only_tls = strcmp(va_arg(args, char *), "https") == 0; break;
    case CURLOPT_HEADERFUNCTION: t->on_header = va_arg(args, take_fn *); break;
    case CURLOPT_HEADERDATA: t->header_arg = va_arg(args, void *); break;
    case CURLOPT_WRITEFUNCTION: t->on_data = va_arg(args, take_fn *); break;
    case CURLOPT_WRITEDATA: t->data_arg = va_arg(args, void *); break;
    case CURLOPT_XFERINFOFUNCTION: t->on_progress = va_arg(args, curl_xferinfo_callback); break;
    case CURLOPT_XFERINFODATA: t->progress_arg = va_arg(args, void *); break;
    case CURLOPT_OPENSOCKETFUNCTION: t->on_open = va_arg(args, curl_opensocket_callback); break;
    case CURLOPT_OPENSOCKETDATA: t->open_arg = va_arg(args, void *); break;
    case CURLOPT_SOCKOPTFUNCTION: t->on_connect = va_arg(args, curl_sockopt_callback); break;
    case CURLOPT_SOCKOPTDATA: t->connect_arg = va_arg(args, void *); break;
    case CURLOPT_UNIX_SOCKET_PATH: snprintf(t->socket_path, sizeof t->socket_path, "%s", va_arg(args, char *)); break;
    default: break;
    }
    va_end(args);
    return CURLE_OK;
}

/* Where a redirect leads, as libcurl puts it together. */
static void resolve_next(transfer *t, const char *location)
{
    CURLU *u = real->curl_url();
    char *whole = NULL;

    t->next[0] = '\0';
    if (u && real->curl_url_set(u, CURLUPART_URL, t->url, 0) == CURLUE_OK &&
        real->curl_url_set(u, CURLUPART_URL, location, 0) == CURLUE_OK &&
        real->curl_url_get(u, CURLUPART_URL, &whole, 0) == CURLUE_OK)
        snprintf(t->next, sizeof t->next, "%s", whole);
    real->curl_free(whole);
    real->curl_url_cleanup(u);
}

static CURLcode fake_getinfo(CURL *easy, CURLINFO what, ...)
{
    transfer *t = easy;
    va_list args;

    va_start(args, what);
    if (what == CURLINFO_RESPONSE_CODE)
        *va_arg(args, long *) = t->status;
    else if (what == CURLINFO_REDIRECT_URL)
        *va_arg(args, char **) = t->status / 100 == 3 && t->next[0] ? t->next : NULL;
    va_end(args);
    return CURLE_OK;
}

/* -- A transfer ------------------------------------------------------------------------------ */

/* The bytes in a block of their own size, so that one too far is seen. */
static bool give(take_fn *fn, void *arg, const char *data, size_t n)
{
    char *copy = malloc(n + !n);
    bool is_taken;

    FUZZ_MUST(copy);
    if (n)
        memcpy(copy, data, n);
    is_taken = !fn || fn(copy, 1, n, arg) == n;
    free(copy);
    return is_taken;
}

/* One line of the head, without its end; false: the transfer is refused. */
static bool give_line(transfer *t, const char *line, size_t n)
{
    char text[9000];
    int code = 0;

    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), line);
    if (strncasecmp(text, "HTTP/", 5) == 0) {
        t->status = 0;
        if (sscanf(text + strcspn(text, " "), "%ld %d", &t->status, &code) == 2 && code >= 0 && code < CURL_LAST)
            t->code = (CURLcode)code;
    } else if (strncasecmp(text, "location:", 9) == 0) {
        resolve_next(t, text + 9 + strspn(text + 9, " "));
    }
    return give(t->on_header, t->header_arg, line, n);
}

static bool give_head(transfer *t)
{
    do {
        for (const char *end; t->at < t->end; t->at = end) {
            size_t n = (size_t)(find_mark(t->at, t->end, '\n') - t->at);

            end = t->at + n + (t->at + n < t->end);
            if (n == 0 || (n == 1 && *t->at == '\r')) {
                t->at = end;
                break;
            }
            if (!give_line(t, t->at, n))
                return false;
        }
    } while (t->status / 100 == 1 && t->at < t->end);
    return true;
}

static void take_reply(transfer *t)
{
    t->status = 0;
    t->code = CURLE_OK;
    t->next[0] = '\0';
    t->at = script;
    t->end = find_mark(script, script_end, '\x1e');
    script = t->end + (t->end < script_end);
}

/* The next piece; false: that was all, and t->code says how it ended. */
static bool step(transfer *t)
{
    const char *piece = t->at;
    bool is_attached;

    if (t->at == t->end || t->code == CURLE_ABORTED_BY_CALLBACK || t->code == CURLE_WRITE_ERROR)
        return false;
    t->at = find_mark(piece, t->end, '\x1f');
    is_attached = t->at - piece == 1 && *piece == '\x1d';
    if (!give(t->on_data, t->data_arg, is_attached ? attached : piece,
              is_attached ? n_attached : (size_t)(t->at - piece)))
        t->code = CURLE_WRITE_ERROR;
    else if (t->on_progress && t->on_progress(t->progress_arg, 0, 0, 0, 0))
        t->code = CURLE_ABORTED_BY_CALLBACK;
    t->at += t->at < t->end;
    return true;
}

/* A command is at the other end of a socket; what it says does not matter. */
static void connect_to(transfer *t)
{
    struct curl_sockaddr to = { .family = AF_UNIX, .socktype = SOCK_STREAM };
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    curl_socket_t fd = t->on_open ? t->on_open(t->open_arg, CURLSOCKTYPE_IPCXN, &to) : CURL_SOCKET_BAD;

    if (fd != CURL_SOCKET_BAD) {
        memcpy(at.sun_path, t->socket_path, sizeof at.sun_path);
        (void)connect(fd, (struct sockaddr *)&at, sizeof at);
        close(fd);
    }
    if (t->on_connect)
        t->on_connect(t->connect_arg, fd, CURLSOCKTYPE_IPCXN);
}

/* The request goes out and its head comes; false: no more than that. */
static bool begin(transfer *t)
{
    bool is_over = fake_curl_is_over();

    take_reply(t);
    if (t->only_tls && strncasecmp(t->url, "https:", 6) != 0) {
        t->code = CURLE_UNSUPPORTED_PROTOCOL;
        return false;
    }
    if (watch_request)
        watch_request(t->url, t->headers);
    connect_to(t);
    if (is_over)
        t->code = CURLE_COULDNT_CONNECT;
    else if (!give_head(t))
        t->code = CURLE_WRITE_ERROR;
    return !is_over && t->code != CURLE_WRITE_ERROR;
}

static CURLcode fake_perform(CURL *easy)
{
    transfer *t = easy;

    if (begin(t))
        while (step(t))
            ;
    return t->code;
}

/* -- Handles ---------------------------------------------------------------------------------- */

static CURL *fake_init(void)
{
    return calloc(1, sizeof(transfer));
}

static void fake_reset(CURL *easy)
{
    memset(easy, 0, sizeof(transfer));
}

static void fake_cleanup(CURL *easy)
{
    free(easy);
}

static CURLM *fake_multi_init(void)
{
    return calloc(1, 1);
}

static CURLMcode fake_multi_cleanup(CURLM *multi)
{
    free(multi);
    return CURLM_OK;
}

static CURLMcode fake_add(CURLM *multi, CURL *easy)
{
    (void)multi;
    added = easy;
    has_ended = !begin(added);
    return CURLM_OK;
}

static CURLMcode fake_remove(CURLM *multi, CURL *easy)
{
    (void)multi;
    (void)easy;
    added = NULL;
    return CURLM_OK;
}

static CURLMcode fake_multi_perform(CURLM *multi, int *n_running)
{
    (void)multi;
    *n_running = !has_ended && step(added);
    return CURLM_OK;
}

static CURLMcode fake_poll(CURLM *multi, struct curl_waitfd *fds, unsigned n, int ms, int *n_ready)
{
    (void)multi;
    (void)fds;
    (void)n;
    (void)ms;
    (void)n_ready;
    return CURLM_OK;
}

static CURLMcode fake_wakeup(CURLM *multi)
{
    (void)multi;
    return CURLM_OK;
}

static CURLMsg *fake_info_read(CURLM *multi, int *n_left)
{
    static CURLMsg m;

    (void)multi;
    *n_left = 0;
    if (!added || m.easy_handle == added)
        return m.easy_handle = NULL, NULL;
    m = (CURLMsg){ .msg = CURLMSG_DONE, .easy_handle = added, .data.result = added->code };
    return &m;
}

ebb_status __real_ebb_curl_load(const ebb_curl **out, ebb_error *err);
ebb_status __wrap_ebb_curl_load(const ebb_curl **out, ebb_error *err);
ebb_status __wrap_ebb_curl_load(const ebb_curl **out, ebb_error *err)
{
    ebb_status st = __real_ebb_curl_load(&real, err);

    if (st != EBB_OK)
        return st;
    fake = *real;
    fake.curl_easy_setopt = fake_setopt;
    fake.curl_easy_getinfo = fake_getinfo;
    fake.curl_easy_init = fake_init;
    fake.curl_easy_reset = fake_reset;
    fake.curl_easy_cleanup = fake_cleanup;
    fake.curl_easy_perform = fake_perform;
    fake.curl_multi_init = fake_multi_init;
    fake.curl_multi_cleanup = fake_multi_cleanup;
    fake.curl_multi_add_handle = fake_add;
    fake.curl_multi_remove_handle = fake_remove;
    fake.curl_multi_perform = fake_multi_perform;
    fake.curl_multi_poll = fake_poll;
    fake.curl_multi_wakeup = fake_wakeup;
    fake.curl_multi_info_read = fake_info_read;
    *out = &fake;
    return EBB_OK;
}
