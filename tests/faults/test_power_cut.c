/* The power goes, at any moment: what was shown as finished is there, and everything opens.
 *
 * What ebb and SQLite do to the disk is recorded (disk_record.h) while conversations are led,
 * migrated and deleted, small files written and K and V kept; then the disk is put together as it
 * may be found after each of some moments, and asked.  EBB_POWER_CUTS: how many moments. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "chat/conversation/fake_backend.h"
#include "ebb/experimental/kv_cache.h"
#include "faults/disk_record.h"
#include "kernels/kernels.h"
#include "os/file.h"
#include "os/folder.h"
#include "plan/expert_profile.h"
#include "plan/speeds.h"
#include "remote/engines_file.h"
#include "seal/key_file.h"
#include "store/sealed.h"
#include "store/sealed_kv.h"
#include "store/sealed_vfs.h"
#include "store/store_sql.h"
#include "support/own_folder.h"
#include "support/own_key.h"
#include "support/tiny_engine.h"
#include "edit/history.h"
#include "edit/message_file.h"
#include "edit/unsent.h"

static char dir[64], root[80], image[80];

static unsigned n_cuts(unsigned percent)
{
    const char *n = getenv("EBB_POWER_CUTS");

    return ((n ? (unsigned)strtoul(n, NULL, 10) : 200u) * percent + 99) / 100;
}

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-power-XXXXXX") != 0)
        return -1;
    snprintf(root, sizeof root, "%s/root", dir);
    snprintf(image, sizeof image, "%s/image", dir);
    disk_record_no_sync();
    return mkdir(root, 0700);
}

static int teardown(void **state)
{
    (void)state;
    disk_record_end();
    return ebb_own_folder_end(dir);
}

/* -- Moments ------------------------------------------------------------------------------------ */

/* What is told when something is lost. */
static struct {
    size_t   moment;
    uint64_t seed;
} now;

typedef void check_fn(void);

/* As many moments as n, spread over what was recorded from `first` on. */
static void cut_and_check(size_t first, unsigned n, check_fn *check)
{
    size_t n_ops = disk_record_n();

    disk_record_end();
    assert_true(n_ops > first);
    for (unsigned i = 0; i < n; i++) {
        now.seed = i * 7919 + 1;
        now.moment = first + (size_t)((double)(n_ops - first + 1) * (i + (double)(now.seed % 97) / 97) / n);
        disk_replay_to(now.moment);
        assert_true(disk_replay_cut(now.seed, image));
        check();
    }
}

#define LOST(...)                                                                                        \
    do {                                                                                                 \
        print_error("power cut before operation %zu, seed %llu\n", now.moment, (unsigned long long)now.seed); \
        fail_msg(__VA_ARGS__);                                                                           \
    } while (0)

/* -- Conversations -------------------------------------------------------------------------------- */

/* A finished message: it has to be there at moments [from, until). */
typedef struct fact {
    char  *text;
    size_t from, until;
} fact;

static fact facts[2048];
static size_t n_facts;

static void forget_facts(void)
{
    for (size_t i = 0; i < n_facts; i++)
        free(facts[i].text);
    n_facts = 0;
}

static void add_fact(const char *text)
{
    for (size_t i = 0; i < n_facts; i++)
        if (facts[i].until == SIZE_MAX && strcmp(facts[i].text, text) == 0)
            return;
    assert_true(n_facts < sizeof facts / sizeof facts[0]);
    facts[n_facts++] = (fact){ strdup(text), disk_record_n(), SIZE_MAX };
}

/* All messages of the path were shown as finished. */
static void keep_path(const ebb_chat *c)
{
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        add_fact(ebb_chat_message(c, i)->text);
}

static void end_fact(const char *text)
{
    for (size_t i = 0; i < n_facts; i++)
        if (facts[i].until == SIZE_MAX && strcmp(facts[i].text, text) == 0)
            facts[i].until = disk_record_n();
}

static fake_script script;

static ebb_chat *open_chat(bool go_on)
{
    static char db[120];
    ebb_chat_ops ops = fake_ops(&script);
    ebb_chat_opts o = { .store_path = db, .continue_last = go_on, .sampling = ops.default_sampling };
    ebb_chat *c;

    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", root);
    assert_int_equal(ebb_chat_open_with(&o, &ops, &c, NULL), EBB_OK);
    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    return c;
}

static void end_turn(ebb_chat *c)
{
    assert_true(fake_wait(c, EBB_EVENT_DONE, NULL, 0));
    keep_path(c);
}

static void say(ebb_chat *c, const char *what)
{
    static unsigned n;
    char text[80];

    snprintf(text, sizeof text, "%s, question %u", what, ++n);
    assert_int_equal(ebb_chat_send(c, text, strlen(text), NULL), EBB_OK);
    end_turn(c);
}

static void begin_conversations(void)
{
    script = (fake_script){ .fingerprint = "model" };
    forget_facts();
    disk_record_begin(root);
}

/* Everything that changes a tree, in sessions that come and go; long answers, so that the log is taken over. */
static void converse(unsigned round)
{
    ebb_chat *c = open_chat(round % 2);
    char name[32];

    script.n_tokens = 40;
    say(c, "tell");
    say(c, "more");
    assert_int_equal(ebb_chat_retry(c, NULL), EBB_OK);
    end_turn(c);
    assert_int_equal(ebb_chat_edit(c, ebb_chat_n_messages(c) - 2, "changed", 7, NULL), EBB_OK);
    end_turn(c);
    assert_int_equal(ebb_chat_undo(c, NULL), EBB_OK);
    script.n_tokens = 4000;
    say(c, "long");
    script.n_tokens = 20;
    snprintf(name, sizeof name, "round-%u", round);
    assert_int_equal(ebb_chat_save_as(c, name, NULL), EBB_OK);
    assert_int_equal(ebb_chat_new_session(c, NULL), EBB_OK);
    say(c, "to be deleted");
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        end_fact(ebb_chat_message(c, i)->text);
    assert_int_equal(ebb_chat_delete(c, "", NULL), EBB_OK);
    if (round % 2)
        assert_int_equal(ebb_chat_undelete(c, NULL), EBB_OK);
    else
        assert_int_equal(ebb_chat_load(c, name, NULL), EBB_OK);
    say(c, "after it");
    ebb_chat_close(c);
}

static void check_sound(sqlite3 *h)
{
    sqlite3_stmt *q;

    assert_int_equal(sqlite3_prepare_v2(h, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    if (strcmp((const char *)sqlite3_column_text(q, 0), "ok") != 0)
        LOST("the database is damaged: %s", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    if (sqlite3_exec(h, "INSERT INTO search (search) VALUES ('integrity-check')", NULL, NULL, NULL) != SQLITE_OK)
        LOST("the index of words is damaged: %s", sqlite3_errmsg(h));
}

/* Each message that has to be there is, and is finished. */
static void check_facts(sqlite3 *h)
{
    sqlite3_stmt *q;

    assert_int_equal(sqlite3_prepare_v2(h, "SELECT 1 FROM messages WHERE text = ? AND (role <> 2 OR finish <> 0)", -1,
                                        &q, NULL), SQLITE_OK);
    for (size_t i = 0; i < n_facts; i++) {
        if (now.moment < facts[i].from || now.moment >= facts[i].until)
            continue;
        sqlite3_bind_text(q, 1, facts[i].text, -1, SQLITE_STATIC);
        if (sqlite3_step(q) != SQLITE_ROW)
            LOST("a message is lost that was finished at operation %zu: %.60s", facts[i].from, facts[i].text);
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
}

/* Every session that is listed can be read, and one more be written. */
static void check_usable(ebb_store *s)
{
    ebb_session_facts f = { .title = "afterwards" };
    ebb_session_row *rows = NULL;
    ebb_tree t = { 0 };
    size_t n = 0;
    ebb_error err;

    if (ebb_store_list(s, &rows, &n, &err) != EBB_OK)
        LOST("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        ebb_session_facts is = { 0 };
        ebb_tree tree = { 0 };

        if (ebb_store_load(s, rows[i].id, &is, &tree, &err) != EBB_OK)
            LOST("session %lld: %s", (long long)rows[i].id, err.msg);
        ebb_session_facts_fini(&is);
        ebb_tree_fini(&tree);
    }
    free(rows);
    assert_non_null(ebb_tree_add(&t, NULL, EBB_ROLE_USER, "one more", 8));
    if (ebb_store_save(s, &f, &t, true, &err) != EBB_OK)
        LOST("%s", err.msg);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
}

/* A process with a key opens none that is in the clear. */
static ebb_store *open_image(void)
{
    const ebb_seal *seal = ebb_seal_here();
    char db[120];
    ebb_store *s;
    ebb_error err;
    ebb_status st;

    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", image);
    ebb_seal_use_here(ebb_stored_how(db) == EBB_STORED_PLAIN ? NULL : seal);
    st = ebb_store_open(db, &s, &err);
    ebb_seal_use_here(seal);
    if (st != EBB_OK)
        LOST("%s", err.msg);
    return s;
}

static void check_store(void)
{
    ebb_store *s = open_image();

    check_sound(s->db);
    check_facts(s->db);
    check_usable(s);
    ebb_store_close(s);
}

static void test_conversations(void **state)
{
    (void)state;
    begin_conversations();
    for (unsigned round = 0; round < 4; round++)
        converse(round);
    cut_and_check(0, n_cuts(60), check_store);
}

/* -- A database of an older ebb -------------------------------------------------------------------- */

static int old_version;

/* The newest schema, less what the last step has added. */
static void make_old(void)
{
    char db[120], sql[256];
    sqlite3_stmt *q;
    ebb_store *s;

    ebb_chat_close((converse(0), open_chat(true)));
    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", root);
    assert_int_equal(ebb_store_open(db, &s, NULL), EBB_OK);
    assert_int_equal(sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    old_version = sqlite3_column_int(q, 0) - 1;
    sqlite3_finalize(q);
    snprintf(sql, sizeof sql, "BEGIN; ALTER TABLE messages DROP COLUMN engine; ALTER TABLE messages DROP COLUMN about;"
             "ALTER TABLE messages DROP COLUMN first_s; PRAGMA user_version = %d; COMMIT", old_version);
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(s->db));
    ebb_store_close(s);
}

/* Also the copy that was made before: it is whole by the time that anything has changed. */
static void check_migrated(void)
{
    ebb_store *s = open_image();
    char copy[160];
    sqlite3 *h;

    check_sound(s->db);
    check_facts(s->db);
    ebb_store_close(s);
    snprintf(copy, sizeof copy, "%s/state/ebb/sessions.db" EBB_STORE_COPY_SUFFIX "%d", image, old_version);
    if (sqlite3_open_v2(copy, &h, SQLITE_OPEN_READWRITE, ebb_seal_here() ? EBB_SEALED_VFS : NULL) != SQLITE_OK)
        LOST("there is no copy of the database as it was: %s", copy);
    check_sound(h);
    check_facts(h);
    sqlite3_close(h);
}

static void test_migration(void **state)
{
    char db[120];
    ebb_store *s;
    size_t first;

    (void)state;
    begin_conversations();
    make_old();
    first = disk_record_n();
    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", root);
    assert_int_equal(ebb_store_open(db, &s, NULL), EBB_OK);
    ebb_store_close(s);
    cut_and_check(first, n_cuts(10), check_migrated);
}

/* -- A database that is encrypted, and no longer encrypted -------------------------------------------- */

static size_t sealed_from, sealed_until;         /* operations: in between nothing can be read */

static void check_turned(void)
{
    char db[120];

    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", image);
    if (now.moment >= sealed_from && now.moment < sealed_until && ebb_stored_how(db) != EBB_STORED_SEALED)
        LOST("the database is not encrypted any more");
    check_store();
}

static void test_turning(void **state)
{
    const ebb_seal *seal = ebb_seal_here();
    char db[120];
    size_t first;
    ebb_error err;

    (void)state;
    begin_conversations();
    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", root);
    converse(0);
    assert_int_equal(ebb_store_decrypt(db, seal, &err), EBB_OK);
    first = disk_record_n();
    assert_int_equal(ebb_store_encrypt(db, seal, &err), EBB_OK);
    sealed_from = disk_record_n();
    converse(1);
    sealed_until = disk_record_n();
    assert_int_equal(ebb_store_decrypt(db, seal, &err), EBB_OK);
    assert_int_equal(ebb_stored_how(db), EBB_STORED_PLAIN);
    cut_and_check(first, n_cuts(20), check_turned);
}

/* Of a chat in the clear that was killed: nothing of its log, which is larger than what is written at a time, was
 * brought to the database. */
static void leave_log(const char *db)
{
    ebb_file_id log;
    char name[130];
    ebb_chat *c = open_chat(0);
    sqlite3 *beside;

    say(c, "tell");
    assert_int_equal(sqlite3_open(db, &beside), SQLITE_OK);
    assert_int_equal(sqlite3_exec(beside, "SELECT count(*) FROM sessions", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 8; i++)
        say(c, "more");
    ebb_chat_close(c);
    sqlite3_db_config(beside, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(beside);
    snprintf(name, sizeof name, "%s-wal", db);
    assert_true(ebb_file_look_up(name, &log) && log.n_bytes > 128 << 10);
}

/* All of it is in the database when the log is overwritten, of which no beginning may be taken for a log then. */
static void test_turning_behind_a_kill(void **state)
{
    const ebb_seal *seal = ebb_seal_here();
    char db[120];
    size_t first;
    ebb_error err;

    (void)state;
    begin_conversations();
    snprintf(db, sizeof db, "%s/state/ebb/sessions.db", root);
    ebb_seal_use_here(NULL);
    leave_log(db);
    ebb_seal_use_here(seal);
    first = disk_record_n();
    assert_int_equal(ebb_store_encrypt(db, seal, &err), EBB_OK);
    sealed_from = sealed_until = SIZE_MAX;
    cut_and_check(first, n_cuts(50), check_turned);
}

/* -- Small files -------------------------------------------------------------------------------------- */

enum { STEPS = 40 };

/* After `done[i]` operations what step i wrote is to be found, or what a later one did. */
static size_t done[STEPS];

static void use_home(const char *at)
{
    static const char *const names[] = { "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME" };
    static const char *const folders[] = { "state", "config", "cache" };
    char path[120];

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", at, folders[i]);
        setenv(names[i], path, 1);
    }
}

static const char *in_state(const char *at, const char *name)
{
    static char path[2][160];
    static unsigned turn;
    char *p = path[turn++ % 2];

    snprintf(p, sizeof path[0], "%s/state/ebb%s%s", at, name[0] ? "/" : "", name);
    return p;
}

static bool keep_every(void *arg, const char *text, size_t n)
{
    (void)arg;
    (void)text;
    (void)n;
    return true;
}

static const uint8_t fingerprint[16] = "experts";

static void load_speeds(ebb_speeds *s)
{
    const ebb_kernels *k;

    assert_int_equal(ebb_kernels_get(EBB_ISA_SCALAR, &k, NULL), EBB_OK);
    ebb_speeds_load(s, k, 2);
}

static void write_step(unsigned i, ebb_history *h, ebb_unsent_file *draft)
{
    char text[1200], address[] = "http://localhost:1";
    ebb_engine_entry e = { .address = address };
    ebb_expert_profile p;
    ebb_speeds speeds;

    snprintf(text, sizeof text, "step %u %0*d", i, i % 5 == 0 ? 1000 : 1, 7);
    assert_int_equal(ebb_history_add(h, text, strlen(text), NULL), EBB_OK);
    if (i % 8 == 7)
        assert_int_equal(ebb_history_sweep(in_state(root, "history"), keep_every, NULL, NULL), EBB_OK);
    ebb_unsent_autosave(draft, in_state(root, ""), "talk", text, strlen(text), NULL);
    assert_int_equal(ebb_unsent_persist(in_state(root, ""), "", text, strlen(text), NULL, NULL), EBB_OK);
    snprintf(e.name, sizeof e.name, "engine%u", i);
    assert_int_equal(ebb_engines_add(&e, NULL), EBB_OK);
    load_speeds(&speeds);
    ebb_speeds_learn(&speeds, "weights", EBB_SPEED_RATE, 5, 0, 0);
    ebb_speeds_save(&speeds);
    assert_true(ebb_expert_profile_init(&p, 64));
    for (uint32_t k = 0; k < p.n; k++)
        p.uses[k] = (float)i;
    ebb_expert_profile_save(&p, fingerprint);
    ebb_expert_profile_fini(&p);
    done[i] = disk_record_n();
}

/* The last step that had ended; -1: none. */
static int last_done(void)
{
    int i = -1;

    while (i + 1 < STEPS && done[i + 1] <= now.moment)
        i++;
    return i;
}

static bool is_step(const char *text)
{
    char want[1200];

    for (unsigned i = 0; i < STEPS; i++) {
        snprintf(want, sizeof want, "step %u %0*d", i, i % 5 == 0 ? 1000 : 1, 7);
        if (strcmp(text, want) == 0)
            return true;
    }
    return false;
}

static void check_history(void)
{
    ebb_history h = { 0 };
    ebb_error err;
    int last = last_done();

    assert_int_equal(ebb_file_mkdirs(in_state(image, ""), NULL), EBB_OK);
    if (ebb_history_open(&h, in_state(image, "history"), &err) != EBB_OK && err.code != EBB_NOTFOUND)
        LOST("%s", err.msg);
    for (size_t i = 0; i < h.n; i++)
        if (!is_step(h.entries[i]))
            LOST("the history has what nobody entered: %.60s", h.entries[i]);
    if ((int)h.n < (last + 1) / 8 * 8)
        LOST("%zu entries are there, %d were synced", h.n, (last + 1) / 8 * 8);
    ebb_history_fini(&h);
    h = (ebb_history){ 0 };
    err.code = ebb_history_open(&h, in_state(image, "history"), NULL);
    assert_true(err.code == EBB_OK || err.code == EBB_NOTFOUND);
    assert_int_equal(ebb_history_add(&h, "afterwards", 10, &err), EBB_OK);
    ebb_history_fini(&h);
    h = (ebb_history){ 0 };
    assert_int_equal(ebb_history_open(&h, in_state(image, "history"), NULL), EBB_OK);
    if (h.n == 0 || strcmp(h.entries[h.n - 1], "afterwards") != 0)
        LOST("an entry made afterwards is lost: %.60s", h.n ? h.entries[h.n - 1] : "");
    ebb_history_fini(&h);
}

static void check_unsent(void)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf text = { 0 };
    int last = last_done(), step = -1;

    /* Each step has left its own. */
    while (step != -2 && ebb_unsent_restore(&d, in_state(image, ""), "", &text, NULL)) {
        int i = is_step(ebb_buf_text(&text)) ? (int)strtol(text.data + 5, NULL, 10) : -2;

        step = i > step || i == -2 ? i : step;
        ebb_buf_clear(&text);
        ebb_unsent_end_autosave(&d);
    }
    if (step < last || step > last + 1)
        LOST("what was not sent is that of step %d, not %d: %.60s", step, last, ebb_buf_text(&text));
    ebb_buf_clear(&text);
    if (ebb_unsent_restore(&d, in_state(image, ""), "talk", &text, NULL) && strlen(ebb_buf_text(&text)) != text.len)
        LOST("what was being typed comes back with bytes that nobody typed");
    ebb_unsent_end_autosave(&d);
    ebb_buf_fini(&text);
}

static void check_engines(void)
{
    ebb_engine_entry *list;
    ebb_error err;
    size_t n;
    int last = last_done();

    if (ebb_engines_read(&list, &n, &err) != EBB_OK)
        LOST("%s", err.msg);
    if ((int)n < last + 1 || (int)n > last + 2)
        LOST("%zu engines have names, %d were given", n, last + 1);
    ebb_engines_free(list, n);
}

static void check_learned(void)
{
    ebb_expert_profile p = { 0 };
    ebb_speeds speeds;
    int last = last_done(), step = -1;

    load_speeds(&speeds);
    if (speeds.n)
        step = (int)speeds.list[0].n_seen - 1;
    if (step < last || step > last + 1)
        LOST("the speed is that of step %d, not %d", step, last);
    step = -1;
    if (ebb_expert_profile_load(&p, fingerprint))
        step = (int)p.uses[0];
    ebb_expert_profile_fini(&p);
    if (step < last || step > last + 1)
        LOST("what is known of experts is that of step %d, not %d", step, last);
}

static void check_small(void)
{
    check_engines();
    check_learned();
    check_unsent();
    check_history();
}

static void test_small_files(void **state)
{
    ebb_history h = { 0 };
    ebb_unsent_file draft = { .fd = -1 };
    ebb_status st;

    (void)state;
    disk_record_begin(root);
    use_home(root);
    assert_int_equal(ebb_file_mkdirs(in_state(root, ""), NULL), EBB_OK);
    st = ebb_history_open(&h, in_state(root, "history"), NULL);
    assert_true(st == EBB_OK || st == EBB_NOTFOUND);
    for (unsigned i = 0; i < STEPS; i++)
        write_step(i, &h, &draft);
    disk_record_end();
    ebb_unsent_end_autosave(&draft);
    ebb_history_fini(&h);
    use_home(image);
    cut_and_check(0, n_cuts(20), check_small);
}

/* -- What an editor has saved -------------------------------------------------------------------------- */

static const char saved[] = "what was saved in the editor";

static void lend(ebb_unsent_file *d, const char *path)
{
    ebb_unsent_lent lent = { path, 0 };

    assert_int_equal(ebb_file_create(path, saved, strlen(saved), NULL), EBB_OK);
    assert_true(ebb_unsent_autosave(d, in_state(root, ""), "talk", "typed", 5, &lent));
}

/* It is in the editor's file, or in the draft's. */
static void check_saved(void)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf text = { 0 };

    if (ebb_file_slurp(in_state(image, "run/ebb-draft-abcdef.md"), 1000, &text, NULL) != EBB_OK ||
        strcmp(text.data, saved) != 0) {
        ebb_buf_clear(&text);
        if (!ebb_unsent_restore(&d, in_state(image, ""), "talk", &text, NULL) || strcmp(text.data, saved) != 0)
            LOST("what was saved in the editor is lost: %.60s", ebb_buf_text(&text));
        ebb_unsent_leave_autosave(&d);
    }
    ebb_buf_fini(&text);
}

/* The editor ends, or this program is killed before that and begun anew. */
static void take_saved(bool is_killed)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf text = { 0 };
    char path[160];
    size_t first;

    snprintf(path, sizeof path, "%s", in_state(root, "run/ebb-draft-abcdef.md"));
    disk_record_begin(root);
    assert_int_equal(ebb_file_mkdirs(in_state(root, "run"), NULL), EBB_OK);
    lend(&d, path);
    first = disk_record_n();
    if (is_killed) {
        ebb_unsent_leave_autosave(&d);
        assert_true(ebb_unsent_restore(&d, in_state(root, ""), "talk", &text, NULL));
    } else {
        assert_true(ebb_unsent_autosave(&d, in_state(root, ""), "talk", saved, strlen(saved), NULL));
        assert_true(ebb_unsent_sync(&d));
        ebb_message_file_drop(path);
    }
    disk_record_end();
    ebb_unsent_leave_autosave(&d);
    ebb_buf_fini(&text);
    cut_and_check(first, n_cuts(10), check_saved);
}

static void test_taken_from_editor(void **state)
{
    (void)state;
    take_saved(false);
}

static void test_taken_after_kill(void **state)
{
    (void)state;
    take_saved(true);
}

/* -- K and V --------------------------------------------------------------------------------------------- */

enum { N_IDS = 150 };

static ebb_token ids[N_IDS];
static float want[EBB_TINY_VOCAB];

/* Sync in an engine of its own, with K and V in this folder; `want` is what a position has. */
static void compute(const char *at, uint32_t n, bool keep, bool check)
{
    char kv[120];
    ebb_engine_opts o = { .n_ctx = 256, .n_threads = 1, .kv_cache_dir = kv, .kv_seal = ebb_sealed_kv() };
    tiny_engine f;

    snprintf(kv, sizeof kv, "%s/kv", at);
    open_tiny_engine(&f, &(ebb_tiny_opts){ 0 }, &o);
    assert_int_equal(ebb_session_sync(f.s, ids, n, NULL, NULL), EBB_OK);
    if (keep)
        ebb_session_persist(f.s);
    if (check && memcmp(ebb_session_logits(f.s), want, sizeof want) != 0)
        LOST("K and V of a file are not those that were computed");
    else if (!check)
        memcpy(want, ebb_session_logits(f.s), sizeof want);
    close_tiny_engine(&f);
}

static void check_kv(void)
{
    compute(image, N_IDS, true, true);
}

static void test_kv(void **state)
{
    (void)state;
    fill_ids(ids, N_IDS, 3);
    disk_record_begin(root);
    for (uint32_t n = 40; n <= N_IDS; n += 22)
        compute(root, n, true, false);
    compute(root, N_IDS, true, false);
    cut_and_check(0, n_cuts(10), check_kv);
}

/* -- What was removed ---------------------------------------------------------------------------------------- */

static size_t removed_at;        /* operation: from here on nothing of it comes back */

static void note_removed(const char *later)
{
    removed_at = disk_record_n();
    assert_int_equal(ebb_file_create(later, "x", 1, NULL), EBB_OK);      /* there is something to lose still */
}

static void look_for_kv(void *arg, const ebb_folder_entry *e)
{
    (void)arg;
    if (strstr(e->name, ".block") || strstr(e->name, ".tail"))
        LOST("K and V are back that were swept: %s", e->name);
}

static void check_swept(void)
{
    char kv[120];

    snprintf(kv, sizeof kv, "%s/kv", image);
    if (now.moment >= removed_at)
        assert_int_equal(ebb_folder_each(kv, look_for_kv, NULL, NULL), EBB_OK);
}

static bool keep_no_kv(void *arg, const ebb_token *sequence, size_t n)
{
    (void)arg;
    (void)sequence;
    (void)n;
    return false;
}

static void test_swept_kv(void **state)
{
    char kv[120], later[140];
    size_t n_removed;

    (void)state;
    fill_ids(ids, N_IDS, 3);
    disk_record_begin(root);
    compute(root, N_IDS, true, false);
    snprintf(kv, sizeof kv, "%s/kv", root);
    snprintf(later, sizeof later, "%s/later", root);
    assert_int_equal(ebb_kv_cache_sweep(kv, ebb_sealed_kv(), keep_no_kv, NULL, false, &n_removed, NULL), EBB_OK);
    assert_true(n_removed > 0);
    note_removed(later);
    cut_and_check(removed_at, n_cuts(5), check_swept);
}

static void check_copies(void)
{
    if (access(in_state(image, "sessions.db" EBB_STORE_COPY_SUFFIX "1"), F_OK) == 0)
        LOST("the copy of before a migration is back");
}

static void test_removed_copies(void **state)
{
    ebb_store *s;

    (void)state;
    disk_record_begin(root);
    assert_int_equal(ebb_store_open(in_state(root, "sessions.db"), &s, NULL), EBB_OK);
    assert_int_equal(ebb_file_create(in_state(root, "sessions.db" EBB_STORE_COPY_SUFFIX "1"), "x", 1, NULL), EBB_OK);
    ebb_store_remove_copies(s);
    note_removed(in_state(root, "run"));
    ebb_store_close(s);
    cut_and_check(removed_at, n_cuts(5), check_copies);
}

static void check_scrubbed(void)
{
    ebb_buf log = { 0 };

    if (now.moment >= removed_at && ebb_file_slurp(in_state(image, "sessions.db-wal"), 1 << 24, &log, NULL) == EBB_OK &&
        memmem(log.data, log.len, "quokka", 6))
        LOST("the log has what was deleted");
    ebb_buf_fini(&log);
}

static void test_scrubbed_log(void **state)
{
    ebb_session_facts f = { .title = "a title" };
    ebb_tree t = { 0 };
    ebb_store *s;
    ebb_error err;

    (void)state;
    disk_record_begin(root);
    assert_int_equal(ebb_store_open(in_state(root, "sessions.db"), &s, NULL), EBB_OK);
    assert_non_null(ebb_tree_add(&t, NULL, EBB_ROLE_USER, "about a quokka", 14));
    assert_int_equal(ebb_store_save(s, &f, &t, true, &err), EBB_OK);
    assert_int_equal(ebb_store_delete(s, f.id, &err), EBB_OK);
    assert_int_equal(ebb_store_scrub(s, false, &err), EBB_OK);
    note_removed(in_state(root, "later"));
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    ebb_store_close(s);
    cut_and_check(removed_at, n_cuts(10), check_scrubbed);
}

/* -- A key that nothing needs any more -------------------------------------------------------------------- */

/* The whole of it, or nothing: of half a key nobody could tell that it opens nothing. */
static void check_key(void)
{
    ebb_key_kind kind;
    ebb_error err;
    ebb_status st = ebb_key_file_kind(in_state(image, "sessions.key"), &kind, &err);

    if (st != EBB_OK && st != EBB_NOTFOUND)
        LOST("%s", err.msg);
}

static void test_key_goes(void **state)
{
    static const uint8_t data_key[EBB_SEAL_KEY] = { 1 };
    const char *path = in_state(root, "sessions.key");
    size_t first;

    (void)state;
    disk_record_begin(root);
    assert_int_equal(ebb_file_mkdirs(in_state(root, ""), NULL), EBB_OK);
    assert_int_equal(ebb_key_file_write(path, EBB_KEY_OF_FILE, "a secret", 8, data_key, NULL), EBB_OK);
    first = disk_record_n();
    assert_true(ebb_file_remove_wiping(path));
    cut_and_check(first, n_cuts(10), check_key);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_conversations), T(test_migration), T(test_small_files), T(test_kv),
                                         T(test_taken_from_editor), T(test_taken_after_kill), T(test_swept_kv),
                                         T(test_removed_copies), T(test_scrubbed_log) },
                            sealed[] = { T(test_conversations), T(test_migration), T(test_small_files), T(test_kv),
                                         T(test_taken_from_editor), T(test_taken_after_kill), T(test_swept_kv),
                                         T(test_removed_copies), T(test_scrubbed_log), T(test_turning),
                                         T(test_turning_behind_a_kill), T(test_key_goes) };
    int failed = cmocka_run_group_tests_name("power_cut", tests, NULL, NULL);

    return failed + run_encrypted("power_cut, encrypted", sealed);
}
