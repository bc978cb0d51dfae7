/* What a server of engines may answer when it is asked what it is and has: llama.cpp's, Ollama's, another ebb, or
 * nothing of the kind.  The first byte says how it is asked, the rest are its answers (fake_curl.h); in front of those
 * of a command stands what it says on standard error. */
#include "fuzz.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_curl.h"
#include "os/child.h"
#include "remote/probe.h"

#define KEY "sk-0123456789"

static const char *words;                        /* of a command */
static size_t n_words;

/* A command that has said its words and ended. */
ebb_status __wrap_ebb_child_start(char *const argv[], int its_fd, ebb_child *out, ebb_error *err);
ebb_status __wrap_ebb_child_start(char *const argv[], int its_fd, ebb_child *out, ebb_error *err)
{
    int said[2];

    (void)argv;
    (void)err;
    FUZZ_MUST(its_fd >= 0 && pipe2(said, O_CLOEXEC | O_NONBLOCK) == 0);
    FUZZ_MUST(write(said[1], words, n_words) == (ssize_t)n_words);
    close(said[1]);
    *out = (ebb_child){ .pid = 1, .fd = -1, .err_fd = said[0] };
    return EBB_OK;
}

void __wrap_ebb_child_end(ebb_child *c);
void __wrap_ebb_child_end(ebb_child *c)
{
    if (c->pid)
        close(c->err_fd);
    *c = (ebb_child){ .fd = -1, .err_fd = -1 };
}

static void watch(const char *url, const struct curl_slist *headers)
{
    FUZZ_MUST(strncmp(url, "http://127.0.0.1", 16) == 0);
    for (; headers; headers = headers->next)
        FUZZ_MUST(!strpbrk(headers->data, "\r\n"));
}

/* Nothing that a terminal obeys. */
static void check_line(const char *s)
{
    FUZZ_MUST(s[0]);
    for (; *s; s++)
        FUZZ_MUST((unsigned char)*s >= ' ' && *s != 127);
}

/* The lines are ebb's own: one for each fact, of which there are ten, and for each model that it lists. */
static void check_server(const ebb_engine_link *l, const ebb_server *s)
{
    size_t most = 10 + (s->n_models < 20 ? s->n_models : 21), n = 0;
    ebb_buf lines = { 0 };

    FUZZ_MUST(s->n_models <= EBB_PROBE_MODELS && memchr(s->model, 0, sizeof s->model));
    ebb_server_report(l, s, &lines);
    for (size_t i = 0; i < lines.len; n += lines.data[i++] == '\n')
        FUZZ_MUST(lines.data[i] == '\n' || ((unsigned char)lines.data[i] >= ' ' && lines.data[i] != 127));
    FUZZ_MUST(n <= most);
    ebb_buf_fini(&lines);
}

/* What a command says, up to \x1e and the pipe's room; returns where the answers begin. */
static const char *take_words(const char *data, const char *end)
{
    const char *mark = data < end ? memchr(data, '\x1e', (size_t)(end - data)) : NULL;
    size_t n = (size_t)((mark ? mark : end) - data);

    words = data;
    n_words = n < PIPE_BUF ? n : PIPE_BUF;
    return mark ? mark + 1 : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char kinds[][16] = { "auto", "ebb", "llama-server", "ollama", "lm-studio", "vllm" }, model[] = "m";
    static char addresses[][24] = { "http://127.0.0.1:1", "unix:/run/x", "exec:cat /dev/null/x" };
    static char key[] = KEY, header[] = "X-Key: 12345678901234";
    ebb_engine_entry e = { .name = "there", .address = addresses[0], .key = key, .headers = { header } };
    ebb_engine_link l = { 0 };
    ebb_server s = { 0 };
    ebb_error err = { 0 };
    const char *script = (const char *)data + 1, *end = (const char *)data + n;
    bool may_retry;
    ebb_status st;

    if (n == 0)
        return 0;
    e.kind = kinds[data[0] % 6];
    e.model = data[0] / 6 % 2 ? model : NULL;
    e.n_ctx = data[0] / 12 % 2 ? 4096 : 0;
    if (data[0] == 240) {
        e.address = addresses[2];
        script = take_words(script, end);
    } else {
        e.address = addresses[data[0] / 24 % 2];
    }
    fake_curl_begin(script, (size_t)(end - script), watch);
    st = ebb_engine_link_init(&l, &e, &err);
    if (st == EBB_OK)
        st = ebb_engine_link_unlock(&l, &err);
    FUZZ_MUST(st == EBB_OK || e.kind);
    if (st == EBB_OK)
        st = ebb_server_probe(&l, &s, &may_retry, &err);
    if (st == EBB_OK)
        check_server(&l, &s);
    else
        check_line(err.msg);
    ebb_server_fini(&s);
    ebb_engine_link_fini(&l);
    return 0;
}
