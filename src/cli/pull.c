/* ebb pull: a model file from the net, by the curl of this machine. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "ebb/model.h"
#include "os/file.h"
#include "os/paths.h"

extern char **environ;

enum { PARTS_MAX = 999, HTTP_ERROR = 22, NO_CURL = 127 };
static const char usual_mix[] = "Q4_K_M", suffix[] = ".gguf";

typedef struct pull {
    ebb_buf url, tree;           /* of the (first) file; of the page that lists its neighbours, or "" */
    ebb_buf dir, name;           /* where it goes, and under which name */
    bool    has_progress;
} pull;

static void pull_fini(pull *p)
{
    ebb_buf_fini(&p->url);
    ebb_buf_fini(&p->tree);
    ebb_buf_fini(&p->dir);
    ebb_buf_fini(&p->name);
}

/* -- From a word to a link ----------------------------------------------------------------- */

static bool begins(const char *s, const char *with)
{
    return strncasecmp(s, with, strlen(with)) == 0;
}

static bool ends(const char *s, size_t n, const char *with)
{
    return n > strlen(with) && strncasecmp(s + n - strlen(with), with, strlen(with)) == 0;
}

/* OWNER/REPO, OWNER/REPO:MIX or OWNER/REPO/FILE.gguf of Hugging Face.  A file without a name is called as most are there: as
 * its repository, less -GGUF, and the mix. */
static bool link_of_hub(const char *word, pull *p)
{
    const char *site = getenv("HF_ENDPOINT"), *repo = strchr(word, '/') + 1, *end = repo + strcspn(repo, "/:");
    int n_repo = (int)(end - repo), n_whole = (int)(end - word), n_model = n_repo;

    site = site && *site ? site : "https://huggingface.co";
    if (n_repo == 0 || repo == word + 1)
        return false;
    ebb_buf_addf(&p->tree, "%s/%.*s/tree/main", site, n_whole, word);
    ebb_buf_addf(&p->url, "%s/%.*s/resolve/main/", site, n_whole, word);
    if (*end == '/')
        return end[1] && ebb_buf_adds(&p->url, end + 1);
    if (ends(repo, (size_t)n_repo, "-GGUF"))
        n_model -= 5;
    return ebb_buf_addf(&p->url, "%.*s-%s%s", n_model, repo, *end == ':' && end[1] ? end + 1 : usual_mix, suffix);
}

/* A link is taken as it is, but a page that shows a file becomes the file. */
static bool link_of(const char *word, pull *p)
{
    static const char page[] = "/blob/";
    const char *at;

    if (begins(word, "hf.co/"))
        return link_of_hub(word + 6, p);
    if (begins(word, "huggingface.co/"))
        return ebb_buf_addf(&p->url, "https://%s", word);
    if (!begins(word, "http://") && !begins(word, "https://"))
        return strchr(word, '/') && !strchr("/.~", word[0]) && link_of_hub(word, p);
    at = strstr(word, page);
    if (!at)
        return ebb_buf_adds(&p->url, word);
    return ebb_buf_addf(&p->url, "%.*s/resolve/%s", (int)(at - word), word, at + strlen(page));
}

static ebb_status choose_name(pull *p, ebb_error *err)
{
    const char *url = ebb_buf_text(&p->url), *end = url + strcspn(url, "?#"), *name = end;

    while (name > url && name[-1] != '/')
        name--;
    ebb_buf_add(&p->name, name, (size_t)(end - name));
    for (const char *c = name; c < end; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return EBB_FAIL(err, EBB_USAGE, "pull: the file's name has control characters");
    if (!ends(name, (size_t)(end - name), suffix))
        return EBB_FAIL(err, EBB_USAGE, "pull: %s: is no .gguf file; ebb reads no other", url);
    return EBB_OK;
}

/* The first folder of $EBB_MODELS, else the data folder. */
static ebb_status choose_dir(pull *p, ebb_error *err)
{
    const char *places = ebb_path_models();
    struct stat st;
    ebb_status status;

    for (size_t n; places && *places; places += n + (places[n] == ':')) {
        n = strcspn(places, ":");
        ebb_buf_clear(&p->dir);
        ebb_buf_add(&p->dir, places, n);
        if (n > 0 && stat(ebb_buf_text(&p->dir), &st) == 0 && S_ISDIR(st.st_mode))
            return EBB_OK;
    }
    status = ebb_path_in(EBB_DIR_DATA, "models", &p->dir, err);
    return status == EBB_OK ? ebb_file_mkdirs(p->dir.data, err) : status;
}

/* -- Fetching ---------------------------------------------------------------------------------- */

/* curl's exit status; NO_CURL: there is none.  What came stays in `part`, and goes on from there. */
static int run_curl(const pull *p, const char *url, const char *part)
{
    const char *args[] = { "curl", "--fail", "--location", "--globoff", p->has_progress ? "--show-error" : "-sS", "--proto", "=http,https",
                           "--retry", "5", "--continue-at", "-", "--output", part, "--url", url, NULL };
    posix_spawnattr_t attr;
    sigset_t defaults;
    pid_t pid;
    int status;

    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    status = posix_spawnp(&pid, args[0], NULL, &attr, (char **)args, environ);
    posix_spawnattr_destroy(&attr);
    if (status != 0)
        return NO_CURL;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static ebb_status why_not(const pull *p, int status, const char *url, ebb_error *err)
{
    const char *dir = ebb_buf_text(&p->dir);

    switch (status) {
    case NO_CURL:
        return EBB_FAIL(err, EBB_NOTFOUND, "pull: there is no curl, which fetches files; install it: sudo apt-get install curl");
    case 6: case 7: case 28: case 35: case 52: case 56:
        return EBB_FAIL(err, EBB_IO, "pull: %.300s: the network does not bring it; the same command goes on from here", url);
    case HTTP_ERROR:
        return EBB_FAIL(err, EBB_NOTFOUND, "pull: %.300s: the server gives no such file%s%s", url, p->tree.len ? "; what there is: " : "",
                        ebb_buf_text(&p->tree));
    case 23:
        return EBB_FAIL(err, EBB_IO, "pull: %.200s cannot be written, or its disk is full; make room, or name another folder in $EBB_MODELS; the same command goes on",
                        dir);
    case 33:
        return EBB_FAIL(err, EBB_IO, "pull: the server cannot go on with half a file; delete %.200s/%s.part and begin anew", dir,
                        ebb_buf_text(&p->name));
    }
    return EBB_FAIL(err, EBB_IO, "pull: curl failed (%d); the same command goes on from here", status);
}

/* A page of words that came in a file's place would be in the way for ever: it goes. */
static ebb_status check_beginning(const char *part, const char *url, ebb_error *err)
{
    char magic[4] = "";
    int fd;
    ebb_status st = ebb_file_open(part, EBB_FILE_READ, &fd, err);

    if (st != EBB_OK)
        return st;
    st = ebb_file_read_at(fd, part, magic, sizeof magic, 0, NULL);
    ebb_file_close(fd);
    if (st == EBB_OK && memcmp(magic, "GGUF", sizeof magic) == 0)
        return EBB_OK;
    unlink(part);
    return EBB_FAIL(err, EBB_FORMAT, "pull: %.300s: what the server sent is no GGUF file; is it the link of a page, or does it ask for a login?", url);
}

/* All of it was there already when it was last interrupted. */
static bool was_whole(const char *part, const char *path)
{
    ebb_model *m = NULL;
    bool is_whole = rename(part, path) == 0 && ebb_model_open(path, &m, NULL) == EBB_OK;

    ebb_model_close(m);
    if (!is_whole)
        (void)rename(path, part);
    return is_whole;
}

static ebb_status fetch(const pull *p, const char *url, const char *path, ebb_error *err)
{
    ebb_buf part = { 0 };
    ebb_status st;
    int status;

    if (access(path, F_OK) == 0)
        return EBB_OK;
    ebb_buf_addf(&part, "%s.part", path);
    if (p->has_progress)
        fprintf(stderr, "%s\n", url);
    status = run_curl(p, url, ebb_buf_text(&part));
    if (status == HTTP_ERROR && was_whole(ebb_buf_text(&part), path))
        st = EBB_OK;
    else if (status != 0)
        st = why_not(p, status, url, err);
    else if ((st = check_beginning(ebb_buf_text(&part), url, err)) == EBB_OK && rename(ebb_buf_text(&part), path) != 0)
        st = EBB_FAIL(err, EBB_IO, "%s: %s", path, strerror(errno));
    ebb_buf_fini(&part);
    return st;
}

/* Of a file in parts ("-00001-of-00003.gguf") how many there are; 1: it is whole. */
static unsigned n_parts_of(const char *name, size_t *stem)
{
    size_t n = strlen(name);
    unsigned first, count;

    if (n < 20 || sscanf(name + n - 20, "-%5u-of-%5u.gguf", &first, &count) != 2 || first != 1 || count == 0 || count > PARTS_MAX)
        return 1;
    *stem = n - 20;
    return count;
}

static ebb_status fetch_all(const pull *p, ebb_error *err)
{
    const char *name = ebb_buf_text(&p->name), *url = ebb_buf_text(&p->url);
    size_t stem = strlen(name), n_before = (size_t)(strcspn(url, "?#")) - stem;
    unsigned n = n_parts_of(name, &stem);
    ebb_buf from = { 0 }, to = { 0 };
    ebb_status st = EBB_OK;

    for (unsigned i = 1; i <= n && st == EBB_OK; i++) {
        char part[32] = "";
        if (n > 1)
            snprintf(part, sizeof part, "-%05u-of-%05u.gguf", i, n);
        ebb_buf_clear(&from);
        ebb_buf_clear(&to);
        ebb_buf_addf(&from, "%.*s%.*s%s%s", (int)n_before, url, (int)stem, name, part, url + n_before + p->name.len);
        ebb_buf_addf(&to, "%s/%.*s%s", ebb_buf_text(&p->dir), (int)stem, name, part);
        st = fetch(p, ebb_buf_text(&from), ebb_buf_text(&to), err);
    }
    ebb_buf_fini(&from);
    ebb_buf_fini(&to);
    return st;
}

/* Also of a file that was there before. */
static ebb_status check(const char *path, char size[16], ebb_error *err)
{
    ebb_model *m;
    ebb_status st = ebb_model_open(path, &m, err);

    if (st == EBB_OK) {
        ebb_size_text(ebb_model_get_info(m)->weight_bytes, size);
        ebb_model_close(m);
    }
    return st;
}

int ebb_cli_pull(ebb_args *a)
{
    pull p = { .has_progress = ebb_cli_progress(a) };
    ebb_buf path = { 0 };
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;
    char size[16];

    if (a->n_words != 1)
        st = EBB_FAIL(&err, EBB_USAGE, "usage: ebb pull OWNER/REPO[:MIX] | OWNER/REPO/FILE.gguf | LINK");
    else if (!link_of(a->words[0], &p))
        st = EBB_FAIL(&err, EBB_USAGE, "pull %.100s: say where: OWNER/REPO of huggingface.co (search there for the name and GGUF), or a link to a .gguf file",
                      a->words[0]);
    if (st == EBB_OK)
        st = choose_name(&p, &err);
    if (st == EBB_OK)
        st = choose_dir(&p, &err);
    if (st == EBB_OK)
        st = fetch_all(&p, &err);
    ebb_buf_addf(&path, "%s/%s", ebb_buf_text(&p.dir), ebb_buf_text(&p.name));
    if (st == EBB_OK)
        st = check(ebb_buf_text(&path), size, &err);
    if (st == EBB_OK)
        printf("%s, %s\n`ebb -m %.*s` talks with it; `ebb plan` says how fast it will be.\n", ebb_buf_text(&path), size,
               (int)(p.name.len - strlen(suffix)), ebb_buf_text(&p.name));
    ebb_buf_fini(&path);
    pull_fini(&p);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(&err);
}
