/* Taking the key (cli/unlock.h). */
#include "unlock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "os/file.h"
#include "os/paths.h"
#include "store/sealed.h"
#include "store/sealed_kv.h"

enum { SECRET_MAX = 64 << 10, KEY_FILE_MIN = 16 };

void ebb_secret_text_fini(ebb_secret_text *s)
{
    ebb_buf_wipe(&s->text);
}

const char *ebb_cli_unlock_file(const ebb_args *a)
{
    const char *named = getenv("EBB_UNLOCK");

    return a->unlock_path ? a->unlock_path : named && *named ? named : NULL;
}

/* -- From the terminal ---------------------------------------------------------------------- */

/* What would end or stop the process, and leave the shell without echo.  SIGTTIN and SIGTTOU are not among them: they
 * keep one that is in the background from the terminal. */
static const int leaving[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGALRM, SIGPIPE, SIGUSR1, SIGUSR2, SIGVTALRM,
                               SIGPROF, SIGXCPU, SIGIO, SIGTSTP };
enum { N_LEAVING = sizeof leaving / sizeof leaving[0] };

static volatile sig_atomic_t caught;             /* one of them; 0: none */

static void on_leaving(int number)
{
    caught = number;
}

/* They are caught while a key is waited for, those that are ignored excepted, and wait at any other time. */
static void catch_leaving(struct sigaction was[N_LEAVING], sigset_t *was_blocked)
{
    struct sigaction act = { .sa_handler = on_leaving };
    sigset_t blocked;

    sigemptyset(&blocked);
    caught = 0;
    for (int i = 0; i < N_LEAVING; i++) {
        sigaction(leaving[i], NULL, &was[i]);
        if (was[i].sa_handler == SIG_IGN)
            continue;
        sigaction(leaving[i], &act, NULL);
        sigaddset(&blocked, leaving[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, was_blocked);
}

/* One that was caught does now what it does: the terminal is as it was. */
static void release_leaving(const struct sigaction was[N_LEAVING], const sigset_t *was_blocked)
{
    for (int i = 0; i < N_LEAVING; i++)
        sigaction(leaving[i], &was[i], NULL);
    if (caught)
        raise(caught);
    sigprocmask(SIG_SETMASK, was_blocked, NULL);
}

/* Until the line's end, the terminal's, or a signal.  true: it is whole. */
static bool read_line(int tty, const sigset_t *waiting, ebb_buf *out)
{
    struct pollfd key = { .fd = tty, .events = POLLIN };
    char c;

    while (out->len < SECRET_MAX && ppoll(&key, 1, NULL, waiting) == 1 && read(tty, &c, 1) == 1) {
        if (c == '\n')
            return true;
        if (!ebb_buf_add(out, &c, 1))
            return false;
    }
    return false;
}

/* One line without echo, which is off before it is asked for.  A signal acts once the terminal is as it was; whoever is
 * stopped by it asks again when it goes on. */
static bool read_silently(int tty, const char *prompt, ebb_buf *out)
{
    struct sigaction was[N_LEAVING];
    sigset_t was_blocked;
    struct termios usual, silent;
    bool is_whole = false;

    do {
        if (tcgetattr(tty, &usual) != 0)
            return false;
        silent = usual;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        catch_leaving(was, &was_blocked);
        tcsetattr(tty, TCSAFLUSH, &silent);
        (void)!write(tty, prompt, strlen(prompt));
        is_whole = read_line(tty, &was_blocked, out);
        tcsetattr(tty, TCSAFLUSH, &usual);
        release_leaving(was, &was_blocked);
    } while (!is_whole && caught == SIGTSTP);
    return is_whole;
}

static ebb_status ask(const char *prompt, ebb_buf *out, ebb_error *err)
{
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    bool ok = tty >= 0 && ebb_buf_reserve(out, 1024) && read_silently(tty, prompt, out);

    if (ok)
        (void)!write(tty, "\n", 1);
    if (tty < 0)
        return EBB_FAIL(err, EBB_USAGE, "sessions are encrypted, and there is no terminal to ask for the "
                                        "passphrase: name a file that holds it with --unlock or EBB_UNLOCK");
    close(tty);
    return ok ? EBB_OK : EBB_FAIL(err, EBB_IO, "the passphrase could not be read");
}

/* -- From a file ------------------------------------------------------------------------------ */

static ebb_status check_mode(const char *path, ebb_error *err)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077))
        return EBB_FAIL(err, EBB_USAGE, "%s: other users can read it; chmod 600", path);
    return EBB_OK;
}

/* A passphrase is the first line; of a key file every byte counts. */
static ebb_status read_secret(const char *named, ebb_secret_text *out, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = ebb_path_expand(named, &path, err);

    if (st == EBB_OK)
        st = check_mode(path.data, err);
    if (st == EBB_OK)
        st = ebb_file_slurp(path.data, SECRET_MAX, &out->text, err);
    if (st == EBB_OK && out->kind == EBB_KEY_OF_PASSPHRASE)
        out->text.len = out->text.data ? strcspn(out->text.data, "\r\n") : 0;
    if (st == EBB_OK && out->text.len == 0)
        st = EBB_FAIL(err, EBB_USAGE, "%s: the file is empty", path.data);
    ebb_buf_fini(&path);
    return st;
}

/* As many bits as the data key has, as text that can be printed and kept on paper. */
static ebb_status make_key_file(const char *path, ebb_error *err)
{
    uint8_t key[EBB_SEAL_KEY];
    char hex[2 * EBB_SEAL_KEY + 2];
    ebb_status st = ebb_key_draw(key, err);

    for (unsigned i = 0; st == EBB_OK && i < EBB_SEAL_KEY; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", key[i]);
    hex[2 * EBB_SEAL_KEY] = '\n';
    if (st == EBB_OK)
        st = ebb_file_create(path, hex, sizeof hex - 1, err);
    explicit_bzero(key, sizeof key);
    explicit_bzero(hex, sizeof hex);
    return st;
}

/* -- A new key ---------------------------------------------------------------------------------- */

static ebb_status ask_twice(ebb_secret_text *out, ebb_error *err)
{
    ebb_secret_text again = { 0 };
    ebb_status st = ask("New passphrase for the sessions: ", &out->text, err);

    if (st == EBB_OK && out->text.len == 0)
        st = EBB_FAIL(err, EBB_USAGE, "an empty passphrase encrypts nothing");
    if (st == EBB_OK)
        st = ask("Once more: ", &again.text, err);
    if (st == EBB_OK &&
        (again.text.len != out->text.len || memcmp(again.text.data, out->text.data, out->text.len) != 0))
        st = EBB_FAIL(err, EBB_USAGE, "the two passphrases differ");
    if (st == EBB_USAGE && err && strstr(err->msg, "no terminal"))
        EBB_FAIL(err, EBB_USAGE, "there is no terminal to ask for a new passphrase: --unlock FILE takes a key file, or "
                                 "makes one");
    ebb_secret_text_fini(&again);
    return st;
}

ebb_status ebb_cli_new_secret(const char *file, ebb_secret_text *out, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st;

    *out = (ebb_secret_text){ .kind = file ? EBB_KEY_OF_FILE : EBB_KEY_OF_PASSPHRASE };
    if (!file)
        return ask_twice(out, err);
    st = ebb_path_expand(file, &path, err);
    if (st == EBB_OK && access(path.data, F_OK) != 0)
        st = make_key_file(path.data, err);
    if (st == EBB_OK)
        st = read_secret(file, out, err);
    if (st == EBB_OK && out->text.len < KEY_FILE_MIN)
        st = EBB_FAIL(err, EBB_USAGE, "%s: %zu bytes can be guessed; a key needs at least %d", file, out->text.len,
                      KEY_FILE_MIN);
    ebb_buf_fini(&path);
    return st;
}

/* -- The key of what is there --------------------------------------------------------------------- */

/* The key says so, too: without a database the next one is encrypted, and beside one whose first bytes are damaged, or
 * that somebody has exchanged, history and drafts still are.  The key of what cannot be read is not replaced, nor
 * one that a link leads to, to a disk that is gone for now. */
bool ebb_cli_is_encrypted(void)
{
    ebb_buf path = { 0 }, key = { 0 };
    struct stat st;
    bool is = false;

    if (ebb_stored_path(&path, NULL) == EBB_OK && ebb_stored_key_path(&key, NULL) == EBB_OK)
        is = lstat(key.data, &st) == 0 || ebb_stored_how(path.data) == EBB_STORED_SEALED;
    ebb_buf_fini(&path);
    ebb_buf_fini(&key);
    return is;
}

/* Asked again where it is wrong: who has to begin anew may type it into the shell, and so into its history. */
static ebb_status ask_for_key(const char *path, uint8_t data_key[EBB_SEAL_KEY], ebb_error *err)
{
    enum { TRIES = 3 };
    ebb_error why = { 0 };
    char prompt[sizeof why.msg + 32] = "Passphrase for the sessions: ";

    for (int i = 1;; i++) {
        ebb_secret_text secret = { .kind = EBB_KEY_OF_PASSPHRASE };
        ebb_status st = ask(prompt, &secret.text, err);

        if (st != EBB_OK) {
            ebb_secret_text_fini(&secret);
            return st;
        }
        st = ebb_key_file_read(path, secret.text.data, secret.text.len, data_key, &why);
        ebb_secret_text_fini(&secret);
        if (st == EBB_OK)
            return EBB_OK;
        if (st != EBB_IO || i == TRIES)
            return EBB_FAIL(err, st, "%s", why.msg);
        snprintf(prompt, sizeof prompt, "%s; once more: ", why.msg);
    }
}

ebb_status ebb_cli_open_key(const ebb_args *a, const char *path, uint8_t data_key[EBB_SEAL_KEY], ebb_error *err)
{
    const char *file = ebb_cli_unlock_file(a);
    ebb_secret_text secret = { 0 };
    ebb_status st = ebb_key_file_kind(path, &secret.kind, err);

    if (st == EBB_NOTFOUND)
        st = EBB_FAIL(err, EBB_NOTFOUND, "sessions are encrypted, and their key is gone: put %s back from a copy",
                      path);
    if (st == EBB_OK && !file && secret.kind == EBB_KEY_OF_FILE)
        st = EBB_FAIL(err, EBB_USAGE,
                      "sessions are encrypted with a key file: name it with --unlock or EBB_UNLOCK");
    if (st == EBB_OK && !file)
        return ask_for_key(path, data_key, err);
    if (st == EBB_OK)
        st = read_secret(file, &secret, err);
    if (st == EBB_OK)
        st = ebb_key_file_read(path, secret.text.data, secret.text.len, data_key, err);
    ebb_secret_text_fini(&secret);
    return st;
}

/* Nobody turns them as long as this process runs: it writes files of K and V, too. */
static ebb_status hold_shared(ebb_error *err)
{
    static int lock = -1;
    ebb_buf path = { 0 }, folder = { 0 };
    ebb_status st = ebb_stored_path(&path, err);

    if (st == EBB_OK && ebb_path_in(EBB_DIR_STATE, NULL, &folder, NULL) == EBB_OK && lock < 0) {
        if (ebb_file_mkdirs(folder.data, NULL) == EBB_OK)
            st = ebb_stored_lock(path.data, false, &lock, err);
    }
    ebb_buf_fini(&path);
    ebb_buf_fini(&folder);
    return st == EBB_NOTFOUND ? EBB_OK : st;     /* without a home nothing is kept */
}

static ebb_status take_key(ebb_args *a, ebb_error *err)
{
    static ebb_seal *seal;
    uint8_t data_key[EBB_SEAL_KEY];
    ebb_buf path = { 0 };
    ebb_status st = ebb_stored_key_path(&path, err);

    if (st == EBB_OK)
        st = ebb_cli_open_key(a, path.data, data_key, err);
    if (st == EBB_OK)
        st = ebb_seal_new(data_key, &seal, err);
    explicit_bzero(data_key, sizeof data_key);
    ebb_buf_fini(&path);
    if (st != EBB_OK)
        return st;
    ebb_seal_use_here(seal);
    a->engine.kv_seal = ebb_sealed_kv();
    return EBB_OK;
}

ebb_status ebb_cli_unlock(ebb_args *a, bool needs_sessions, ebb_error *err)
{
    ebb_status st;

    if (a->is_private)
        return EBB_OK;
    st = hold_shared(err);
    if (st != EBB_OK || !ebb_cli_is_encrypted())
        return st;
    if (!needs_sessions && !ebb_cli_unlock_file(a)) {
        a->engine.no_kv_cache = true;
        return EBB_OK;
    }
    return take_key(a, err);
}
