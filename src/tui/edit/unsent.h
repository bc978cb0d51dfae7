/* tui/edit/unsent.h - what was typed and not sent, from one run to the next.
 *
 * A file in the state folder, `draft-` and 16 digits, for each conversation that was left so: the
 * key of its session on the first line ("": of none that is kept; older ebbs wrote its name), then
 * the text; all of it encrypted where sessions are (seal/seal.h).  A program that runs holds a lock
 * on its own, so nobody else takes it up.
 *
 * While an editor of the user's has the end of the text, the first line also says from which byte
 * on, and in which file: if the program is killed meanwhile, what is saved there comes back. */
#ifndef EBB_TUI_UNSENT_H
#define EBB_TUI_UNSENT_H
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "seal/seal.h"

/* In front of a text that is no message but what was typed (typed.h), so that it comes back as
 * that and not as a message that begins like it. */
#define EBB_UNSENT_COMMAND "\x1F"
/* In front of that, and of a text that is to replace a message: a line that says which. */
#define EBB_UNSENT_EDIT "\x1E"
/* The text of a message behind such signs of its own, which nobody has typed: in a draft they would
 * be ours. */
const char *ebb_unsent_behind_signs(const char *text);

/* Of a running program. */
typedef struct ebb_unsent_file {
    int  fd;                     /* -1: there is none */
    char path[512];
} ebb_unsent_file;
/* What an editor has: the text from byte n_before on, in the file `path`. */
typedef struct ebb_unsent_lent {
    const char *path;
    size_t      n_before;
} ebb_unsent_lent;
/* Keep the text as it is by now, without a sync; n 0 and lent NULL: there is none.  false: the file
 * is as it was; it is tried again with the next change, and whoever leaves in peace keeps the text
 * otherwise. */
bool ebb_unsent_autosave(ebb_unsent_file *d, const char *state_dir, const char *session,
                         const char *text, size_t n, const ebb_unsent_lent *lent);
/* Before anything else that has some of the text goes, as an editor's file does: the disk has what
 * was kept.  Nothing kept is fine.  false: it may be lost with the power.  Cost: milliseconds. */
bool ebb_unsent_sync(const ebb_unsent_file *d);
void ebb_unsent_end_autosave(ebb_unsent_file *d);
void ebb_unsent_leave_autosave(ebb_unsent_file *d);     /* whoever comes next takes it up */

/* lent: an editor that was ended has left more there; else NULL.
 * Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_unsent_persist(const char *state_dir, const char *session, const char *text,
                              size_t n, const ebb_unsent_lent *lent, ebb_error *err);
/* true: there was one for this conversation, left in peace or by a program that was killed; it is
 * in *out now, and its file is *d, which had none: so it is in a file all the time, and nobody else
 * takes it up.  Where the file cannot be written, *d stays without.  What an editor has saved is in
 * it, and its file removed; where that cannot be read it stays, and *err says why, which is left
 * alone otherwise. */
bool ebb_unsent_restore(ebb_unsent_file *d, const char *state_dir, const char *session,
                        ebb_buf *out, ebb_error *err);

/* What editors had when programs were killed, and what is there of it in the clear.  It goes to the
 * draft's own file where that is encrypted, in whose conversation ever it is. */
void ebb_unsent_take_back(const char *state_dir);
/* It is wiped where no draft names it: with --private, or because the kill came before that.
 * `seal` opens drafts; while there is one that it does not open, nothing is wiped. */
void ebb_unsent_sweep_lent(const char *state_dir, const ebb_seal *seal);

/* Whether another program that runs has text of this conversation: in another terminal, or behind a
 * connection that hangs.  *process is that one; 0: it cannot be seen from here. */
bool ebb_unsent_find_running(const char *state_dir, const char *session, pid_t *process);

/* Write all of them anew, encrypted by `to` (NULL: in the clear), with what editors have saved;
 * what was in the clear is overwritten.  `from` opens those that are encrypted.
 * Errors: IO, NOMEM, LIMIT, FORMAT, BUSY (a program that runs has one); of the first that cannot be
 * read, and where they cannot be listed: nothing stays in the clear unsaid. */
EBB_MUST_CHECK
ebb_status ebb_unsent_turn(const char *state_dir, const ebb_seal *from, const ebb_seal *to,
                           ebb_error *err);

/* Those that an older ebb has found by a session's name get its key, as far as they can be read and
 * written; what a program that runs has stays. */
void ebb_unsent_rename(const char *state_dir, const char *name, const char *session);

/* Wipe those of conversations that are not kept, with what editors have saved, but for those of
 * none and of programs that run. */
typedef bool ebb_unsent_keep_fn(void *arg, const char *session);
void ebb_unsent_sweep(const char *state_dir, ebb_unsent_keep_fn *keep, void *arg);

#endif
