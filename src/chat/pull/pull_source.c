/* What was asked for (pull_source.h). */
#include "pull/pull_source.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define EXAMPLE "for example: ebb pull bartowski/Meta-Llama-3.1-8B-Instruct-GGUF"
#define MAX_NAME 200u            /* bytes: .part.json comes behind it */

static const char *const hub_hosts[] = { "huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co" };

/* -- Names ------------------------------------------------------------------------------- */

bool ebb_pull_is_plain(const char *text)
{
    ebb_buf shown = { 0 };
    bool ok = ebb_utf8_add_line(&shown, text, strlen(text), false) && strcmp(ebb_buf_text(&shown), text) == 0 &&
              !strstr(text, "\xef\xbf\xbd");

    ebb_buf_fini(&shown);
    return ok;
}

bool ebb_pull_is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 5 && n <= MAX_NAME && strcasecmp(name + n - 5, ".gguf") == 0 && name[0] != '.' &&
           !strpbrk(name, "/\\") && ebb_pull_is_plain(name);
}

static bool is_repo_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
            return false;
    return n > 0 && s[0] != '.' && s[0] != '-';
}

static int url_hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

    return p ? (int)(p - digits) : -1;
}

/* %20 and the like; false: it does not fit, or holds a NUL. */
static bool unescape_url(const char *s, size_t n, char *out, size_t cap)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_escape = s[i] == '%' && i + 2 < n && url_hex_digit(s[i + 1]) >= 0 && url_hex_digit(s[i + 2]) >= 0;
        char c = is_escape ? (char)(url_hex_digit(s[i + 1]) * 16 + url_hex_digit(s[i + 2])) : s[i];

        if (k + 1 >= cap || c == '\0')
            return false;
        out[k++] = c;
        i += is_escape ? 2 : 0;
    }
    out[k] = '\0';
    return true;
}

/* -- Repositories ------------------------------------------------------------------------- */

static ebb_status fail_bad_source(const char *text, ebb_error *err)
{
    return EBB_FAIL(err, EBB_USAGE, "%.100s: a model is named OWNER/NAME[:TYPE] or by its address; " EXAMPLE, text);
}

/* The part of an address behind owner/name: /blob/main/x.gguf names a file, others are ignored. */
static bool parse_rest(const char *rest, size_t n, ebb_pull_source *out)
{
    static const char *const views[] = { "blob/", "resolve/", "raw/", "tree/" };
    const char *end = rest + n, *slash;

    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        size_t k = strlen(views[i]);

        if (n <= k || strncmp(rest, views[i], k) != 0)
            continue;
        rest += k;
        slash = memchr(rest, '/', (size_t)(end - rest));
        if (!unescape_url(rest, (size_t)((slash ? slash : end) - rest), out->revision, sizeof out->revision))
            return false;
        rest = slash ? slash + 1 : end;
        break;
    }
    return unescape_url(rest, (size_t)(end - rest), out->want, sizeof out->want);
}

/* owner/name, then /rest, or :want and @revision in either order: Git has no colon in a revision's name. */
static ebb_status parse_repo(const char *text, const char *path, ebb_pull_source *out, ebb_error *err)
{
    size_t owner = strcspn(path, "/"), name, n = strcspn(path, "?#"), n_revision;
    const char *p = path + owner, *at;

    if (*p != '/' || !is_repo_word(path, owner))
        return fail_bad_source(text, err);
    name = strcspn(p + 1, "/:@?#");
    if (!is_repo_word(p + 1, name) || owner + 1 + name >= sizeof out->repo)
        return fail_bad_source(text, err);
    snprintf(out->repo, sizeof out->repo, "%.*s", (int)(owner + 1 + name), path);
    p += 1 + name;
    n -= (size_t)(p - path);
    at = *p == '/' ? NULL : *p == '@' ? p : strrchr(p, '@');
    n_revision = at ? strcspn(at + 1, at == p ? ":" : "") : 0;
    if (n_revision >= sizeof out->revision)
        return fail_bad_source(text, err);
    if (at)
        snprintf(out->revision, sizeof out->revision, "%.*s", (int)n_revision, at + 1);
    if (at && at > p) {
        n = (size_t)(at - p);
    } else if (at) {
        p += 1 + n_revision;
        n = strlen(p);
    }
    if (n && *p == '/' ? !parse_rest(p + 1, n - 1, out) : n && *p == ':' &&
        !unescape_url(p + 1, n - 1, out->want, sizeof out->want))
        return fail_bad_source(text, err);
    return out->revision[0] ? EBB_OK : fail_bad_source(text, err);
}

/* -- Addresses ------------------------------------------------------------------------------ */

static ebb_status parse_url(const char *text, ebb_pull_source *out, ebb_error *err)
{
    const char *path = strchr(strstr(text, "://") + 3, '/'), *end = text + strcspn(text, "?#"), *slash = end;

    out->is_url = true;
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 127)
            return EBB_FAIL(err, EBB_USAGE, "%.100s: an address has no spaces and control characters", text);
    if ((size_t)snprintf(out->url, sizeof out->url, "%s", text) >= sizeof out->url)
        return EBB_FAIL(err, EBB_USAGE, "the address is longer than %zu bytes", sizeof out->url - 1);
    out->url[strcspn(out->url, "#")] = '\0';
    while (path && slash > path && slash[-1] != '/')
        slash--;
    if (!path || !unescape_url(slash, (size_t)(end - slash), out->name, sizeof out->name) ||
        !ebb_pull_is_name(out->name))
        out->name[0] = '\0';
    return EBB_OK;
}

ebb_status ebb_pull_parse(const char *text, ebb_pull_source *out, ebb_error *err)
{
    bool has_scheme = strncasecmp(text, "https://", 8) == 0 || strncasecmp(text, "http://", 7) == 0;
    const char *host = has_scheme ? strstr(text, "://") + 3 : text;

    memset(out, 0, sizeof *out);
    snprintf(out->revision, sizeof out->revision, "main");
    if (!has_scheme && strstr(text, "://"))
        return EBB_FAIL(err, EBB_USAGE, "%.100s: only http and https are fetched", text);
    for (size_t i = 0; i < sizeof hub_hosts / sizeof *hub_hosts; i++) {
        size_t n = strlen(hub_hosts[i]);

        if (strncasecmp(host, hub_hosts[i], n) == 0 && host[n] == '/')
            return parse_repo(text, host + n + 1, out, err);
    }
    return has_scheme ? parse_url(text, out, err) : parse_repo(text, text, out, err);
}

/* In quotes where a shell would see more than a word. */
static void add_shell_word(ebb_buf *out, const char *word)
{
    bool is_plain = *word != '\0';

    for (const char *p = word; *p; p++)
        is_plain = is_plain && (isalnum((unsigned char)*p) || strchr("-_./:@%+,=", *p));
    if (is_plain) {
        ebb_buf_adds(out, word);
        return;
    }
    ebb_buf_addc(out, '\'');
    for (const char *p = word; *p; p++)
        ebb_buf_adds(out, *p == '\'' ? "'\\''" : (char[]){ *p, '\0' });
    ebb_buf_addc(out, '\'');
}

void ebb_pull_add_command(ebb_buf *out, const ebb_pull_source *s, const char *want)
{
    ebb_buf word = { 0 };

    want = want ? want : s->want;
    if (s->is_url)
        ebb_buf_adds(&word, s->url);
    else
        ebb_buf_addf(&word, "%s%s%s%s%s", s->repo, *want ? ":" : "", want, strcmp(s->revision, "main") ? "@" : "",
                     strcmp(s->revision, "main") ? s->revision : "");
    ebb_buf_adds(out, "ebb pull ");
    add_shell_word(out, ebb_buf_text(&word));
    ebb_buf_fini(&word);
}
