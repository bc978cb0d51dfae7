/* ebb sessions encrypt, decrypt and rekey (cmd_sessions.h): the database, its copies, the history, drafts, K and V.
 *
 * The key file is there before anything is encrypted, and until nothing is any more.  The database is the last to be
 * encrypted and the first that no longer is: with a key beside it, one in the clear says what was begun. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_sessions.h"
#include "ebb/experimental/kv_cache.h"
#include "edit/history.h"
#include "edit/unsent.h"
#include "json/json_text.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/paths.h"
#include "store/sealed.h"
#include "unlock.h"

/* Where everything is. */
typedef struct stored_paths {
    ebb_buf state, db, key, history, copy;
    ebb_buf key_link;                            /* that leads to the key; "": none does */
} stored_paths;

/* A link to the key stays one, and what it leads to is written anew: beside a file in its place the old key would stay,
 * and open everything. */
static ebb_status follow_key(stored_paths *p, ebb_error *err)
{
    char *real = ebb_file_is_link(p->key.data) ? realpath(p->key.data, NULL) : NULL;

    if (!real)
        return EBB_OK;                           /* one that leads nowhere is told of when the key is read */
    p->key_link = p->key;
    p->key = (ebb_buf){ 0 };
    ebb_buf_adds(&p->key, real);
    free(real);
    return p->key.failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for a path") : EBB_OK;
}

/* An older ebb that was killed has begun another key beside the link. */
static const char *key_as_named(const stored_paths *p)
{
    return p->key_link.len > 0 ? p->key_link.data : p->key.data;
}

static ebb_status find_stored_paths(stored_paths *p, ebb_error *err)
{
    ebb_status st = ebb_path_in(EBB_DIR_STATE, NULL, &p->state, err);

    if (st == EBB_OK)
        st = ebb_stored_path(&p->db, err);
    if (st == EBB_OK)
        st = ebb_stored_key_path(&p->key, err);
    if (st == EBB_OK)
        st = follow_key(p, err);
    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_STATE, "history", &p->history, err);
    if (st == EBB_OK)
        st = ebb_path_in(EBB_DIR_STATE, "copy.txt", &p->copy, err);
    return st == EBB_OK ? ebb_file_mkdirs(p->state.data, err) : st;
}

static void free_stored_paths(stored_paths *p)
{
    ebb_buf_fini(&p->state);
    ebb_buf_fini(&p->db);
    ebb_buf_fini(&p->key);
    ebb_buf_fini(&p->history);
    ebb_buf_fini(&p->copy);
    ebb_buf_fini(&p->key_link);
}

static bool keep_none(void *arg, const ebb_token *ids, size_t n)
{
    (void)arg;
    (void)ids;
    (void)n;
    return false;
}

/* K and V are computed again; their files have other names and other bytes then.  Who has those in the clear can find
 * out what was said. */
static ebb_status drop_kv(bool encrypts, ebb_error *err)
{
    size_t n_removed;

    return ebb_kv_cache_sweep(NULL, NULL, keep_none, NULL, encrypts, &n_removed, err);
}

/* What stands beside the database. */
static ebb_status turn_rest(const stored_paths *p, const ebb_seal *from, const ebb_seal *to, ebb_error *err)
{
    ebb_status st = ebb_history_turn(p->history.data, from, to, err);

    if (st == EBB_OK)                            /* those that a draft names are turned with it */
        ebb_unsent_sweep_lent(p->state.data, from);
    if (st == EBB_OK)
        st = ebb_unsent_turn(p->state.data, from, to, err);
    if (st == EBB_OK && to && !ebb_file_wipe(p->copy.data))
        st = EBB_FAIL(err, EBB_IO, "%s is in the clear and cannot be removed: remove it yourself", p->copy.data);
    if (st == EBB_OK && to)
        ebb_file_wipe_begun(p->copy.data);
    return st == EBB_OK ? drop_kv(to != NULL, err) : st;
}

typedef ebb_status locked_fn(const ebb_args *a, const stored_paths *p, ebb_error *err);

/* The lock is taken before anybody is asked for anything: a key that another ebb makes while this one waits for a
 * passphrase would be replaced, and what it opens lost. */
static ebb_status run_locked(locked_fn *run, bool is_alone, const ebb_args *a, ebb_error *err)
{
    stored_paths p = { 0 };
    int lock = -1;
    ebb_status st = find_stored_paths(&p, err);

    if (st == EBB_OK)
        st = ebb_stored_lock(p.db.data, is_alone, &lock, err);
    if (st == EBB_OK)
        st = run(a, &p, err);
    ebb_file_close(lock);
    free_stored_paths(&p);
    return st;
}

/* A new key takes the place of none that opens anything, not even of one that could not be looked at before. */
static ebb_status expect_no_key(const stored_paths *p, ebb_error *err)
{
    struct stat key;
    ebb_stored how;
    bool is_absent = lstat(p->key.data, &key) != 0 && errno == ENOENT;
    ebb_status st = ebb_stored_look(p->db.data, &how, err);

    if (st == EBB_OK && (!is_absent || how == EBB_STORED_SEALED))
        st = EBB_FAIL(err, EBB_IO, "%s, or what it opens, could not be looked at, and no other key is made: try again",
                      p->key.data);
    return st;
}

/* A new data key, in a file of its own. */
static ebb_status make_key(const ebb_args *a, const stored_paths *p, uint8_t data_key[EBB_SEAL_KEY], ebb_error *err)
{
    ebb_secret_text secret = { 0 };
    ebb_status st = expect_no_key(p, err);

    if (st == EBB_OK)
        st = ebb_cli_new_secret(ebb_cli_unlock_file(a), &secret, err);
    if (st == EBB_OK)
        ebb_file_wipe_begun(p->key.data);
    if (st == EBB_OK)
        st = ebb_key_draw(data_key, err);
    if (st == EBB_OK)
        st = ebb_key_file_write(p->key.data, secret.kind, secret.text.data, secret.text.len, data_key, err);
    ebb_secret_text_fini(&secret);
    return st;
}

static ebb_status open_seal(const ebb_args *a, const stored_paths *p, bool is_new, ebb_seal **seal, ebb_error *err)
{
    uint8_t data_key[EBB_SEAL_KEY];
    ebb_status st = is_new ? make_key(a, p, data_key, err) : ebb_cli_open_key(a, p->key.data, data_key, err);

    if (st == EBB_OK)
        st = ebb_seal_new(data_key, seal, err);
    explicit_bzero(data_key, sizeof data_key);
    return st;
}

/* What is said at the end is looked for in the database itself. */
static ebb_status expect_database(const stored_paths *p, ebb_stored expected, ebb_error *err)
{
    ebb_stored how;
    ebb_status st = ebb_stored_look(p->db.data, &how, err);

    if (st != EBB_OK || how == expected)
        return st;
    return EBB_FAIL(err, EBB_IO, expected == EBB_STORED_SEALED ? "%s is not encrypted: run this once more"
                                                               : "%s is not decrypted, and its key stays: run this "
                                                                 "once more", p->db.data);
}

/* Before a key is made, or the database turned: what fails behind that could not be ended, nor taken back. */
static ebb_status expect_rest(const stored_paths *p, ebb_error *err)
{
    bool is_there;

    return ebb_history_look(p->history.data, &is_there, err);
}

static ebb_status encrypt_all(const ebb_args *a, const stored_paths *p, ebb_error *err)
{
    ebb_seal *seal = NULL;
    ebb_status st = ebb_stored_check(p->db.data, err);

    if (st == EBB_OK)
        st = expect_rest(p, err);
    if (st == EBB_OK)
        st = open_seal(a, p, !ebb_cli_is_encrypted(), &seal, err);
    if (st == EBB_OK)
        st = turn_rest(p, seal, seal, err);
    if (st == EBB_OK)
        st = ebb_store_encrypt(p->db.data, seal, err);
    if (st == EBB_OK)
        st = expect_database(p, EBB_STORED_SEALED, err);
    if (st == EBB_OK)
        ebb_cmd_sessions_tell_left(p->state.data);
    ebb_seal_free(seal);
    return st;
}

/* What holds from now on; `file`: the key, NULL: a passphrase is. */
static int print_state_json(bool is_encrypted, const char *file)
{
    return ebb_cli_print_json(json_pack("{s:b, s:o}", "encrypted", is_encrypted, "key_file",
                                        file ? ebb_json_text_or_null(file) : json_null()));
}

int ebb_cmd_sessions_encrypt(ebb_args *a, ebb_error *err)
{
    const char *file = ebb_cli_unlock_file(a);

    if (run_locked(encrypt_all, true, a, err) != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        return print_state_json(true, file);
    if (file)
        printf("sessions, history, drafts, K and V are encrypted with %s: keep a copy of it elsewhere: without it "
               "nobody can read them again\n", file);
    else
        puts("sessions, history, drafts, K and V are encrypted: without the passphrase nobody can read them again");
    return EBB_EXIT_OK;
}

/* Without it the key stays: it opens one that was moved away, or whose disk is gone for now. */
static ebb_status expect_some_database(const stored_paths *p, ebb_error *err)
{
    ebb_stored how;
    ebb_status st = ebb_stored_look(p->db.data, &how, err);

    if (st == EBB_OK && how == EBB_STORED_NOTHING)
        st = EBB_FAIL(err, EBB_NOTFOUND, "%s is gone, and its key would go, too: put it back; or begin an empty one "
                      "with ebb sessions encrypt, and decrypt that", p->db.data);
    return st;
}

static ebb_status fail_to_remove(const char *key, ebb_error *err)
{
    return EBB_FAIL(err, EBB_IO, "sessions, history and drafts are in the clear, but %s cannot be removed: remove it "
                    "yourself", key);
}

/* Nothing is sealed with it any more, on the disk, too: a loss of power brings nothing back. */
static ebb_status remove_key(const stored_paths *p, ebb_error *err)
{
    ebb_status st = expect_database(p, EBB_STORED_PLAIN, err);

    if (st == EBB_OK)
        st = ebb_folder_sync(p->state.data, err);
    if (st != EBB_OK)
        return st;
    ebb_file_wipe_begun(key_as_named(p));
    if (p->key_link.len > 0) {                   /* first: one that leads nowhere is a key that is gone for now */
        if (!ebb_file_remove(p->key_link.data))
            return fail_to_remove(p->key_link.data, err);
        ebb_folder_sync_name(p->key_link.data);
    }
    return ebb_file_remove_wiping(p->key.data)   /* overwritten under its name, it would be taken for damaged */
               ? EBB_OK
               : fail_to_remove(p->key.data, err);
}

static ebb_status decrypt_all(const ebb_args *a, const stored_paths *p, ebb_error *err)
{
    ebb_seal *seal = NULL;
    ebb_status st = ebb_cli_is_encrypted() ? ebb_stored_check(p->db.data, err)
                                           : EBB_FAIL(err, EBB_USAGE, "sessions are not encrypted");

    if (st == EBB_OK)
        st = expect_some_database(p, err);
    if (st == EBB_OK)
        st = expect_rest(p, err);
    if (st == EBB_OK)
        st = open_seal(a, p, false, &seal, err);
    if (st == EBB_OK)
        st = ebb_store_decrypt(p->db.data, seal, err);
    if (st == EBB_OK)
        st = turn_rest(p, seal, NULL, err);
    if (st == EBB_OK)
        st = remove_key(p, err);
    ebb_seal_free(seal);
    return st;
}

int ebb_cmd_sessions_decrypt(ebb_args *a, ebb_error *err)
{
    if (run_locked(decrypt_all, true, a, err) != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        return print_state_json(false, NULL);
    puts("sessions, history and drafts are no longer encrypted");
    return EBB_EXIT_OK;
}

/* The data key stays, so nothing else is written anew, and who has the sessions open goes on. */
static ebb_status change_key(const ebb_args *a, const stored_paths *p, ebb_error *err)
{
    uint8_t data_key[EBB_SEAL_KEY];
    ebb_secret_text secret = { 0 };
    ebb_status st;

    if (!ebb_cli_is_encrypted())
        return EBB_FAIL(err, EBB_USAGE, "sessions are not encrypted; ebb sessions encrypt does it");
    st = ebb_cli_open_key(a, p->key.data, data_key, err);
    if (st == EBB_OK)                            /* it would stay, and open what a later key shall keep closed */
        ebb_file_remove_begun(key_as_named(p));
    if (st == EBB_OK)
        st = ebb_cli_new_secret(a->n_words > 1 ? a->words[1] : NULL, &secret, err);
    if (st == EBB_OK)
        st = ebb_key_file_write(p->key.data, secret.kind, secret.text.data, secret.text.len, data_key, err);
    explicit_bzero(data_key, sizeof data_key);
    ebb_secret_text_fini(&secret);
    return st;
}

int ebb_cmd_sessions_rekey(ebb_args *a, ebb_error *err)
{
    if (run_locked(change_key, false, a, err) != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        return print_state_json(true, a->n_words > 1 ? a->words[1] : NULL);
    printf("this %s opens the sessions from now on\n", a->n_words > 1 ? "file" : "passphrase");
    return EBB_EXIT_OK;
}
