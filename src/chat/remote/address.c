/* Addresses of engines (address.h). */
#include "remote/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "models/models.h"
#include "os/paths.h"

static const char *const schemes[] = { "https://", "http://", "unix:", "exec:", "ssh://", "shared:", NULL };

static const char *rest_of(const char *text, const char *scheme)
{
    size_t n = strlen(scheme);

    return strncmp(text, scheme, n) == 0 ? text + n : NULL;
}

bool ebb_address_is(const char *text)
{
    for (int i = 0; schemes[i]; i++)
        if (rest_of(text, schemes[i]))
            return true;
    return false;
}

/* 127.x.y.z in decimal; "127.evil.example" is a name, and "0127.0.0.1" is 87.0.0.1 to whoever connects. */
static bool is_loopback(const char *host)
{
    unsigned char bytes[4];

    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, host, bytes) == 1 && bytes[0] == 127;
}

static bool is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    return n > 0 && s[0] != '-';
}

static bool is_v6(const char *s, size_t n)
{
    if (n < 4 || s[0] != '[' || s[n - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < n; i++)
        if (!isxdigit((unsigned char)s[i]) && !strchr(":.", s[i]))
            return false;
    return true;
}

/* HOST[:PORT], with a lower-case host in out; *used: its bytes. */
static bool take_authority(const char *s, char host[256], int *port, size_t *used)
{
    size_t n = s[0] == '[' ? strcspn(s, "]") + 1 : strcspn(s, ":/");
    char *end;

    *port = 0;
    if (n >= 256 || n > strlen(s) || !(is_v6(s, n) || is_name(s, n)))
        return false;
    for (size_t i = 0; i < n; i++)
        host[i] = (char)tolower((unsigned char)s[i]);
    host[n] = '\0';
    *used = n;
    if (s[n] == ':') {
        long v = strtol(s + n + 1, &end, 10);
        if (!isdigit((unsigned char)s[n + 1]) || v < 1 || v > 65535)
            return false;
        *port = (int)v;
        *used = (size_t)(end - s);
    }
    return s[*used] == '\0' || s[*used] == '/';
}

static ebb_status bad_address(const char *text, const char *why, ebb_error *err)
{
    return EBB_FAIL(err, EBB_USAGE,
                    "%.80s: %s; an address is http(s)://HOST:PORT, unix:PATH, ssh://USER@HOST or exec:COMMAND", text,
                    why);
}

static ebb_status parse_http(const char *text, const char *rest, ebb_address *a, ebb_error *err)
{
    size_t used, n, n_least;
    int port;

    if (strchr(rest, '@'))
        return bad_address("this address", "has a name or password in it; put that in key-file", err);
    if (!take_authority(rest, a->host, &port, &used))
        return bad_address(text, "has no usable host and port", err);
    if (strpbrk(rest + used, "?#\\ "))
        return bad_address(text, "has more than a path after its host", err);
    n_least = (size_t)(rest - text) + used;      /* without a base */
    snprintf(a->url, sizeof a->url, "%s", text);
    for (n = strlen(a->url); n > n_least && a->url[n - 1] == '/'; n--)
        a->url[n - 1] = '\0';
    if (n >= n_least + 3 && strcmp(a->url + n - 3, "/v1") == 0)
        a->url[n - 3] = '\0';
    a->is_here = is_loopback(a->host);
    a->is_private = a->is_here || rest_of(text, "https://");
    return EBB_OK;
}

static ebb_status parse_unix(const char *text, const char *rest, ebb_address *a, ebb_error *err)
{
    if (rest[0] != '/' || strlen(rest) >= sizeof a->unix_path)
        return bad_address(text, "a socket needs an absolute path of at most 107 bytes", err);
    snprintf(a->unix_path, sizeof a->unix_path, "%s", rest);
    return EBB_OK;
}

/* One word more of the command; false: there is no room. */
static bool add_word(ebb_address *a, const char *word, size_t n)
{
    size_t i = 0;
    char *p = a->parts;

    for (; a->argv[i]; i++)
        p = a->argv[i] + strlen(a->argv[i]) + 1;
    if (n >= (size_t)(a->parts + sizeof a->parts - p) || i + 1 >= sizeof a->argv / sizeof *a->argv)
        return false;
    a->argv[i] = p;
    memcpy(p, word, n);
    p[n] = '\0';
    return true;
}

static bool add_words(ebb_address *a, const char *const *words)
{
    for (; *words; words++)
        if (!add_word(a, *words, strlen(*words)))
            return false;
    return true;
}

/* [USER@]HOST[:PORT]; nothing of it can be taken for an option. */
static ebb_status parse_ssh(const char *text, const char *rest, ebb_address *a, ebb_error *err)
{
    static const char *const ssh[] = { "ssh", "-T", "-o", "BatchMode=yes", NULL };
    static const char *const serve[] = { "ebb", "serve", "--attach", NULL };
    const char *at = strchr(rest, '@'), *host = at ? at + 1 : rest;
    size_t n_user = at ? (size_t)(at - rest) : 0, used;
    char port_text[8], whom[512];
    int port;
    bool fits;

    if ((at && !is_name(rest, n_user)) || !take_authority(host, a->host, &port, &used) || host[used])
        return bad_address(text, "for ssh, give ssh://HOST or ssh://USER@HOST, and a :PORT if needed", err);
    snprintf(port_text, sizeof port_text, "%d", port);
    fits = (size_t)snprintf(whom, sizeof whom, "%.*s%.*s", (int)(at ? n_user + 1 : 0), rest,
                            (int)strcspn(host, host[0] == '[' ? "]" : ":"), host + (host[0] == '[')) < sizeof whom &&
           add_words(a, ssh) && (!port || add_words(a, (const char *const[]){ "-p", port_text, NULL })) &&
           add_word(a, whom, strlen(whom)) && add_words(a, serve);
    return fits ? EBB_OK : bad_address(text, "is too long", err);
}

/* The socket is named after the file in its present state.  The program is this one, also where its file was replaced
 * meanwhile. */
static ebb_status parse_shared(const char *text, const char *model, ebb_address *a, ebb_error *err)
{
    char id[EBB_MODELS_FILE_ID];
    ebb_buf socket = { 0 };
    ebb_status st = EBB_OK;

    if (model[0] != '/' || !ebb_models_file_id(model, id))
        return bad_address(text, "names no file of a model", err);
    if (ebb_path_run(&socket, NULL) != EBB_OK || !ebb_buf_addf(&socket, "/shared-%.12s.sock", id) ||
        !add_words(a, (const char *const[]){ "/proc/self/exe", "serve", "--attach", "--idle", "60", "--socket",
                                             socket.data, "-m", model, NULL }))
        st = bad_address(text, "is too long", err);
    a->is_shared = true;
    snprintf(a->host, sizeof a->host, "ebb serve");
    ebb_buf_fini(&socket);
    return st;
}

const char *ebb_address_socket(const ebb_address *a)
{
    enum { BEHIND_OPTION = 6 };                  /* --socket, in parse_shared */

    return a->is_shared ? a->argv[BEHIND_OPTION] : "";
}

static ebb_status parse_exec(const char *text, const char *rest, ebb_address *a, ebb_error *err)
{
    static const char shell[] = "/bin/sh\0-c";

    if (strspn(rest, " \t") == strlen(rest))
        return bad_address(text, "names no command", err);
    memcpy(a->parts, shell, sizeof shell);
    snprintf(a->parts + sizeof shell, sizeof a->parts - sizeof shell, "%s", rest);
    a->argv[0] = a->parts;
    a->argv[1] = a->parts + strlen(shell) + 1;
    a->argv[2] = a->parts + sizeof shell;
    snprintf(a->host, sizeof a->host, "a command");
    return EBB_OK;
}

ebb_status ebb_address_set_model(ebb_address *a, const char *model, ebb_error *err)
{
    if (!a->argv[0] || strcmp(a->argv[0], "ssh") != 0)
        return EBB_OK;
    for (const char *c = model; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-/+:@", *c))
            return EBB_FAIL(err, EBB_USAGE, "-m %.80s: over ssh, a model's name may have letters, digits and ._-/+:@",
                            model);
    if (!*model || model[0] == '-' || !add_words(a, (const char *const[]){ "-m", model, NULL }))
        return EBB_FAIL(err, EBB_USAGE, "-m %.80s: not the name of a model", model);
    return EBB_OK;
}

ebb_status ebb_address_parse(const char *text, ebb_address *a, ebb_error *err)
{
    const char *rest;

    *a = (ebb_address){ .is_here = true, .is_private = true, .host = "this machine" };
    if (ebb_utf8_has_controls(text))
        return bad_address("this address", "has control characters", err);
    if (strlen(text) >= sizeof a->text)
        return bad_address(text, "is too long", err);
    snprintf(a->text, sizeof a->text, "%s", text);
    snprintf(a->url, sizeof a->url, "http://127.0.0.1");
    if ((rest = rest_of(text, "https://")) || (rest = rest_of(text, "http://")))
        return parse_http(text, rest, a, err);
    if ((rest = rest_of(text, "unix:")))
        return parse_unix(text, rest, a, err);
    if ((rest = rest_of(text, "ssh://")))
        return parse_ssh(text, rest, a, err);
    if ((rest = rest_of(text, "exec:")))
        return parse_exec(text, rest, a, err);
    if ((rest = rest_of(text, "shared:")))
        return parse_shared(text, rest, a, err);
    return bad_address(text, "is not an address", err);
}
