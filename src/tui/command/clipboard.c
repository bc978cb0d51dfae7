/* /copy (clipboard.h). */
#include "command/clipboard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "os/file.h"
#include "os/spawn.h"
#include "seal/seal.h"
#include "text/humanize.h"
#include "text/render.h"
#include "tree/thought.h"

/* Terminals cut longer sequences off. */
enum { OSC52_BYTES_MAX = 74 << 10 };
enum { END_LOOKS = 200, END_LOOK_NS = 10 * 1000 * 1000 };

/* Has it done so within two seconds?  A tmux that does not answer, as one that is stopped, is not waited for. */
static bool ends_well(pid_t pid)
{
    struct timespec look = { .tv_nsec = END_LOOK_NS };
    pid_t ended = 0;
    int status = 1;

    for (int i = 0; i < END_LOOKS && ended == 0; i++) {
        ended = waitpid(pid, &status, WNOHANG);
        if (ended == 0)
            nanosleep(&look, NULL);
    }
    if (ended != 0)
        return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return false;
}

/* tmux keeps it and passes it on to the outer terminal: it has an exit status.  It reads memory, so that nobody has to
 * write while it reads. */
static bool copy_tmux(const char *s, size_t n)
{
    static char name[] = "tmux", verb[] = "load-buffer", option[] = "-w", from[] = "-";
    static char *const argv[] = { name, verb, option, from, NULL };
    int memory = memfd_create("ebb-copy", MFD_CLOEXEC), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid;
    bool is_running = memory >= 0 && nothing >= 0 &&
                      ebb_file_write_at(memory, "the copy", s, n, 0, NULL) == EBB_OK &&
                      ebb_spawn(argv, (int[]){ memory, nothing, nothing }, EBB_SPAWN_HERE, &pid) == 0;

    ebb_file_close(memory);
    ebb_file_close(nothing);
    return is_running && ends_well(pid);
}

static void add_base64(ebb_buf *out, const char *s, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *u = (const unsigned char *)s;

    for (size_t i = 0; i < n; i += 3) {
        unsigned word = (unsigned)u[i] << 16 | (i + 1 < n ? (unsigned)u[i + 1] << 8 : 0) | (i + 2 < n ? u[i + 2] : 0u);
        char four[4] = { digits[word >> 18], digits[word >> 12 & 63],
                         i + 1 < n ? digits[word >> 6 & 63] : '=', i + 2 < n ? digits[word & 63] : '=' };
        ebb_buf_add(out, four, 4);
    }
}

static bool copy_osc52(ebb_frontend *f, const char *s, size_t n)
{
    ebb_buf sequence = { 0 };
    bool fits = f->send && n <= OSC52_BYTES_MAX;

    if (fits) {
        ebb_buf_adds(&sequence, "\033]52;c;");
        add_base64(&sequence, s, n);
        ebb_buf_adds(&sequence, "\a");
        fits = !sequence.failed;
    }
    if (fits)
        f->send(f, sequence.data, sequence.len);
    ebb_buf_fini(&sequence);
    return fits;
}

static ebb_status copy_file(ebb_frontend *f, const char *s, size_t n, ebb_buf *path, ebb_error *err)
{
    ebb_status st;

    if (f->state_dir.len == 0)
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "no clipboard can be reached from here, and there is no folder for a file");
    if (ebb_seal_here())
        return EBB_FAIL(err, EBB_UNSUPPORTED, "no clipboard can be reached from here, and sessions are encrypted, so "
                                              "nothing is written in the clear; /save FILE.md writes a file");
    st = ebb_file_mkdirs(f->state_dir.data, err);
    if (st == EBB_OK && !ebb_buf_addf(path, "%s/copy.txt", f->state_dir.data))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a file name");
    return st == EBB_OK ? ebb_file_replace(path->data, s, n, err) : st;
}

static ebb_status copy_to_clipboard(ebb_frontend *f, const char *s, size_t n, ebb_buf *how, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = EBB_OK;

    ebb_humanize_count(how, n);
    if (f->opts->in_tmux && copy_tmux(s, n)) {
        ebb_buf_adds(how, " bytes copied to tmux; prefix ] pastes them");
    } else if (!f->opts->in_tmux && copy_osc52(f, s, n)) {
        ebb_buf_adds(how, " bytes sent to the terminal's clipboard (OSC 52; it does not confirm)");
    } else {
        st = copy_file(f, s, n, &path, err);
        ebb_buf_addf(how, " bytes written to %s", ebb_buf_text(&path));
    }
    ebb_buf_fini(&path);
    return st;
}

static const ebb_message *last_written_answer(const ebb_chat *chat)
{
    for (size_t i = ebb_chat_n_messages(chat); i > 0; i--) {
        const ebb_message *m = ebb_chat_message(chat, i - 1);
        if (m->role == EBB_ROLE_ASSISTANT && m->n_text > 0)
            return m;
    }
    return NULL;
}

/* What is copied is pasted into a shell one day: as on the screen, nothing in it is obeyed or hidden. */
static bool filter_copied(const char *s, size_t n, ebb_buf *out)
{
    while (n > 0) {
        const char *cr = memchr(s, '\r', n);
        size_t len = cr ? (size_t)(cr - s) : n;
        bool ends_line = cr && len + 1 < n && cr[1] == '\n';

        ebb_utf8_add_visible(out, s, cr && !ends_line ? len + 1 : len, false);
        len += cr != NULL;
        s += len;
        n -= len;
    }
    return !out->failed;
}

static ebb_status copy_filtered(ebb_frontend *f, const char *s, size_t n, char *how, size_t cap, ebb_error *err)
{
    ebb_buf line = { 0 }, visible = { 0 };
    ebb_status st = filter_copied(s, n, &visible) ? copy_to_clipboard(f, ebb_buf_text(&visible),
                                                                      visible.len, &line, err)
                                                  : EBB_FAIL(err, EBB_NOMEM, "no memory to copy the message");

    snprintf(how, cap, "%s", ebb_buf_text(&line));
    ebb_buf_fini(&line);
    ebb_buf_fini(&visible);
    return st;
}

ebb_status ebb_clipboard_copy_message(ebb_frontend *f, size_t i, char *how, size_t cap, ebb_error *err)
{
    const ebb_message *m = ebb_chat_message(f->chat, i);
    ebb_thought thought = ebb_message_thought(m);

    return copy_filtered(f, m->text + thought.body, m->n_text - thought.body, how, cap, err);
}

ebb_status ebb_clipboard_copy_answer(ebb_frontend *f, const char *which, char *how, size_t cap, ebb_error *err)
{
    const ebb_message *m = last_written_answer(f->chat);
    ebb_buf block = { 0 };
    ebb_thought thought;
    unsigned long nth;
    const char *s;
    char *end;
    size_t n;
    ebb_status st;

    if (!m)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no answer to copy yet");
    thought = ebb_message_thought(m);
    s = m->text + thought.body;
    n = m->n_text - thought.body;
    if (*which) {
        nth = strtoul(which, &end, 10);
        if (*end || nth == 0)
            return EBB_FAIL(err, EBB_USAGE, "/copy N: N is the number of a code block, from 1");
        if (!ebb_render_code_block(s, n, nth, &block))
            return EBB_FAIL(err, EBB_NOTFOUND, "the last answer has no code block %lu", nth);
        s = ebb_buf_text(&block);
        n = block.len;
    }
    st = copy_filtered(f, s, n, how, cap, err);
    ebb_buf_fini(&block);
    return st;
}
