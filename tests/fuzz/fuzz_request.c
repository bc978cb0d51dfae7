/* What clients of `ebb serve` may send: a body to each of its paths, or bytes that are no request.  The first byte says
 * which.  The server is a real one with a small model.  Whatever comes, it replies or closes, what it calls JSON is
 * JSON, no reply has a path of this machine, and the next request finds it there. */
#include "fuzz.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "folder.h"
#include "net/listen.h"
#include "serve/serve.h"
#include "support/tiny_model.h"

enum { PATIENCE_MS = 600000, LOOK_MS = 10 };  /* longer than the fuzzer's own limit */

static ebb_serve *server;
static char socket_path[128];
static int lock = -1;

static void ignore_line(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

static void end_server(void)
{
    ebb_serve_close(server);
    close(lock);
}

/* -- A client ----------------------------------------------------------------------------------------- */

/* The reply to it, which is all that comes until the server closes. */
static void ask(const void *request, size_t n, bool is_all, ebb_buf *reply)
{
    char part[4096];
    ssize_t got;
    int fd;

    FUZZ_MUST(ebb_connect_unix(socket_path, &fd, NULL) == EBB_OK);
    for (size_t at = 0; at < n; at += (size_t)got) {
        got = send(fd, (const char *)request + at, n - at, MSG_NOSIGNAL);
        if (got <= 0)                            /* refused before it was taken whole */
            break;
    }
    if (is_all)
        shutdown(fd, SHUT_WR);
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        int n_ready = poll(&p, 1, PATIENCE_MS);

        if (n_ready < 0 && errno == EINTR)       /* the fuzzer's own alarm */
            continue;
        FUZZ_MUST(n_ready == 1);
        got = read(fd, part, sizeof part);
        if (got <= 0)
            break;
        FUZZ_MUST(ebb_buf_add(reply, part, (size_t)got));
    }
    close(fd);
}

static void ask_for(const char *method, const char *path, const void *body, size_t n, ebb_buf *reply)
{
    ebb_buf request = { 0 };

    FUZZ_MUST(ebb_buf_addf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                     "Content-Length: %zu\r\n\r\n", method, path, n) &&
              ebb_buf_add(&request, body, n));
    ask(ebb_buf_text(&request), request.len, false, reply);
    ebb_buf_fini(&request);
}

/* -- The server --------------------------------------------------------------------------------------- */

static void begin_server(void)
{
    static const ebb_tiny_opts tiny = { .arch = "llama", .n_layers = 1, .n_embd = 32, .n_head = 2, .n_head_kv = 1,
                                        .head_dim = 16, .n_ff = 32, .n_ctx = 128 };
    char model[128];
    ebb_serve_opts o = { .models = { .path = model }, .is_unix = true, .tell = ignore_line,
                         .engine = { .n_ctx = 128, .n_threads = 1, .cpu = EBB_ISA_SCALAR, .no_kv_cache = true,
                                     .ram_bytes = (uint64_t)96 << 20 } };
    ebb_buf reply = { 0 };

    snprintf(model, sizeof model, "%s/m.gguf", fuzz_folder());
    snprintf(socket_path, sizeof socket_path, "%s/socket", fuzz_folder());
    FUZZ_MUST(ebb_tiny_write(&tiny, model) && ebb_listen_unix(socket_path, &o.listen_fd, &lock, NULL) == EBB_OK &&
              ebb_serve_open(&o, &server, NULL) == EBB_OK && atexit(end_server) == 0);
    for (int left = PATIENCE_MS / LOOK_MS; left > 0; left--) {
        ebb_buf_clear(&reply);
        ask_for("GET", "/health", "", 0, &reply);
        if (strncmp(ebb_buf_text(&reply), "HTTP/1.1 200", 12) == 0)
            break;
        FUZZ_MUST(left > 1);
        poll(NULL, 0, LOOK_MS);
    }
    ebb_buf_fini(&reply);
}

/* The first reply: behind a part of the bytes that is a request, others may follow. */
static void check_reply(const ebb_buf *reply)
{
    const char *text = ebb_buf_text(reply), *body = strstr(text, "\r\n\r\n");
    const char *json = strstr(text, "Content-Type: application/json");

    FUZZ_MUST(!memmem(text, reply->len, fuzz_folder(), strlen(fuzz_folder())));
    if (body && json && json < body) {
        json_t *o = json_loads(body + 4, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL);

        FUZZ_MUST(o);
        json_decref(o);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct { const char *method, *path; } asks[] = {
        { "POST", "/v1/chat/completions" }, { "POST", "/v1/completions" }, { "POST", "/completion" },
        { "POST", "/tokenize" }, { "POST", "/detokenize" }, { "POST", "/apply-template" }, { "GET", "/v1/models" },
        { "GET", "/props" }, { "GET", "/slots" }, { "GET", "/metrics" }, { "GET", "/ebb/v1/stats" },
        { "GET", "/ebb/v1/answers/1?from=2" }, { "DELETE", "/ebb/v1/answers/1" },
    };
    enum { N_ASKS = sizeof asks / sizeof *asks };
    ebb_buf reply = { 0 };
    size_t which;

    if (n == 0)
        return 0;
    if (!server)
        begin_server();
    which = data[0] % (N_ASKS + 1);
    if (which == N_ASKS) {
        ask(data + 1, n - 1, true, &reply);
    } else {
        ask_for(asks[which].method, asks[which].path, data + 1, n - 1, &reply);
        FUZZ_MUST(strncmp(ebb_buf_text(&reply), "HTTP/1.1 ", 9) == 0);
    }
    check_reply(&reply);
    ebb_buf_fini(&reply);
    return 0;
}
