/* Files of the user's own that somebody else may have written: history, what was not sent, a theme, the file of
 * engines, the sidecar of a download, the key file.  The first byte says which. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "edit/history.h"
#include "edit/unsent.h"
#include "folder.h"
#include "os/file.h"
#include "plan/expert_profile.h"
#include "plan/speeds.h"
#include "pull/part_sidecar.h"
#include "remote/address.h"
#include "remote/engines_file.h"
#include "remote/secret.h"
#include "seal/key_file.h"
#include "term/theme.h"

static char path[128];

static void make_folders(void)
{
    const char *folder = fuzz_folder();
    char below[128];

    snprintf(below, sizeof below, "%s/ebb", folder);
    FUZZ_MUST(setenv("XDG_CONFIG_HOME", folder, 1) == 0 && setenv("XDG_CACHE_HOME", folder, 1) == 0);
    FUZZ_MUST(mkdir(below, 0700) == 0);
    snprintf(below, sizeof below, "%s/ebb/experts", folder);
    FUZZ_MUST(mkdir(below, 0700) == 0);
}

static void put(const char *name, const uint8_t *data, size_t n)
{
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    f = fopen(path, "w");
    FUZZ_MUST(f && fwrite(data, 1, n, f) == n && fclose(f) == 0 && chmod(path, 0600) == 0);
}

static void check(ebb_status st, const ebb_error *err)
{
    FUZZ_MUST(st == EBB_OK || (err->msg[0] && !strchr(err->msg, '\n')));
}

/* -- History ------------------------------------------------------------------------------------ */

static bool keep_short(void *arg, const char *text, size_t n)
{
    (void)arg;
    return n < 4 && text[n] == '\0';
}

/* What is added is there when it is opened anew, and the newest of all. */
static void read_history(const uint8_t *data, size_t n)
{
    static const char added[] = "added \\ here\nand there";
    ebb_history h = { 0 };
    ebb_error err = { 0 };
    size_t found;

    put("history", data, n);
    check(ebb_history_open(&h, path, &err), &err);
    for (const char *s = ebb_history_back(&h, "now"); s; s = ebb_history_back(&h, "now"))
        FUZZ_MUST(s[0]);
    while (ebb_history_forward(&h))
        ;
    (void)ebb_history_search(&h, "e", h.n, &found);
    check(ebb_history_add(&h, added, sizeof added - 1, &err), &err);
    ebb_history_fini(&h);
    check(ebb_history_open(&h, path, &err), &err);
    FUZZ_MUST(h.n > 0 && strcmp(h.entries[h.n - 1], added) == 0);
    ebb_history_fini(&h);
    check(ebb_history_sweep(path, keep_short, NULL, &err), &err);
    check(ebb_history_open(&h, path, &err), &err);
    for (size_t i = 0; i < h.n; i++)
        FUZZ_MUST(strlen(h.entries[i]) < 4);
    ebb_history_fini(&h);
}

/* What was not sent comes back once, without what a power failure left behind it. */
static void read_unsent(const uint8_t *data, size_t n)
{
    ebb_unsent_file d = { .fd = -1 };
    ebb_buf text = { 0 };

    put("draft", data, n);
    if (ebb_unsent_restore(&d, fuzz_folder(), "s", &text, NULL))
        FUZZ_MUST(text.len > 0 && n >= text.len + 2 && memcmp(text.data, data + 2, text.len) == 0 &&
                  strcmp(d.path, path) == 0 && !memchr(text.data, 0, text.len));
    ebb_unsent_end_autosave(&d);
    ebb_buf_fini(&text);
}

/* -- Configuration ------------------------------------------------------------------------------ */

static void read_theme(const uint8_t *data, size_t n)
{
    ebb_theme t;
    ebb_error err = { 0 };
    ebb_status st = ebb_theme_parse((const char *)data, n, "x.theme", "x", &t, &err);

    check(st, &err);
    for (int f = 0; st == EBB_OK && f < EBB_FACE_COUNT; f++)
        for (int n_colors = 2; n_colors <= 256; n_colors *= 2) {
            int color = ebb_color_fit(t.style[f].fg, n_colors);

            FUZZ_MUST(color == EBB_COLOR_DEFAULT || (color >= 0 && color < n_colors));
        }
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return true;
}

/* One that was read can be asked for; what a line of it breaks is told in one line. */
static void read_engines(const uint8_t *data, size_t n)
{
    ebb_engine_entry *list = NULL, one = { 0 }, more = { .name = "added", .address = (char *)(uintptr_t)"unix:/x" };
    char key[EBB_SECRET_BYTES];
    ebb_address a;
    ebb_error err = { 0 };
    size_t k = 0;
    ebb_status st;

    put("ebb/engines", data, n);
    st = ebb_engines_read(&list, &k, &err);
    check(st, &err);
    for (size_t i = 0; i < k; i++) {
        FUZZ_MUST(ebb_engines_find(list[i].name, &one, &err) == EBB_OK && strcmp(one.name, list[i].name) == 0);
        ebb_engine_entry_fini(&one);
        check(ebb_address_parse(list[i].address, &a, &err), &err);
        if (!list[i].key_command && !list[i].key_file)
            check(ebb_secret_get(&list[i], is_stopped, NULL, key, &err), &err);
    }
    ebb_engines_free(list, k);
    if (st == EBB_OK && ebb_engines_add(&more, &err) == EBB_OK) {
        FUZZ_MUST(ebb_engines_find("added", &one, &err) == EBB_OK && strcmp(one.address, "unix:/x") == 0);
        ebb_engine_entry_fini(&one);
    }
}

static void read_sidecar(const uint8_t *data, size_t n)
{
    ebb_pull_sidecar known, again;

    put("m.part.json", data, n);
    path[strlen(path) - 5] = '\0';
    if (!ebb_pull_sidecar_read(path, &known))
        return;
    FUZZ_MUST(ebb_pull_sidecar_write(path, &known, NULL) == EBB_OK && ebb_pull_sidecar_read(path, &again));
    FUZZ_MUST(strcmp(known.command, again.command) == 0 && known.n_bytes == again.n_bytes &&
              strcmp(known.etag, again.etag) == 0 && strcmp(known.sha256, again.sha256) == 0);
}

/* -- What was measured and learned --------------------------------------------------------------- */

static bool is_figure(double x)
{
    return x >= 0 && x < 1e18;
}

/* Lines of this machine: what is taken from them are figures. */
static void read_speeds(const uint8_t *data, size_t n)
{
    const ebb_kernels *kern;
    ebb_speeds s, again;
    ebb_buf text = { 0 };
    ebb_error err;
    double v[2];

    FUZZ_MUST(ebb_kernels_get(EBB_ISA_SCALAR, &kern, &err) == EBB_OK);
    put("ebb/speeds", data, 0);
    ebb_speeds_load(&s, kern, 2);
    FUZZ_MUST(s.n == 0);
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && data[end] != '\n'; end++)
            ;
        FUZZ_MUST(ebb_buf_addf(&text, "%s\t", s.owner) && ebb_buf_add(&text, (const char *)data + i, end - i) &&
                  ebb_buf_addc(&text, '\n'));
    }
    put("ebb/speeds", (const uint8_t *)ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
    ebb_speeds_load(&s, kern, 2);
    s.now_s = 1800000000;
    for (uint32_t i = 0; i < s.n; i++) {
        const ebb_speed *x = &s.list[i];

        FUZZ_MUST(x->v[0] > 0 && is_figure(x->v[0]) && is_figure(x->v[1]) && is_figure(x->contention));
        FUZZ_MUST(ebb_speeds_age_s(&s, x) >= -86400);
        (void)ebb_speeds_get(&s, x->name, 3600, v);
    }
    ebb_speeds_learn(&s, "fuzz", EBB_SPEED_RATE, 5, 6, 0);
    ebb_speeds_save(&s);
    ebb_speeds_load(&again, kern, 2);
    FUZZ_MUST(again.n > 0 && again.n <= s.n);  /* a figure may be rounded beyond what one can be */
}

/* The checksum is right, so that the fuzzer comes to what is behind it. */
static void read_profile(const uint8_t *data, size_t n)
{
    static const uint8_t fingerprint[16] = { 0 }, no_key[16] = { 0 };
    ebb_expert_profile u = { 0 };
    uint8_t whole[4096 + 16];
    size_t n_body = n < 4096 ? n : 4096;

    memcpy(whole, data, n_body);
    ebb_hash128(whole, n_body, no_key, whole + n_body);
    put("ebb/experts/00000000000000000000000000000000", whole, n_body + 16);
    if (ebb_expert_profile_load(&u, fingerprint)) {
        for (uint32_t i = 0; i < u.n; i++)
            FUZZ_MUST(is_figure((double)u.uses[i]));
        for (double share = 0; share <= 1; share += 0.25) {
            double rate = ebb_expert_profile_miss_rate(&u, share);

            FUZZ_MUST(rate >= 0 && rate <= fmax(1 - share, u.miss_rate));
        }
    }
    ebb_expert_profile_fini(&u);
}

/* -- The key of encrypted sessions ------------------------------------------------------------- */

/* Of a passphrase, what the file says is all that is looked at: each guess takes a second, as it should. */
static void read_key_file(const uint8_t *data, size_t n)
{
    ebb_error err = { 0 };
    uint8_t key[EBB_SEAL_KEY];
    ebb_key_kind kind;
    ebb_status st;

    put("sessions.key", data, n);
    st = ebb_key_file_kind(path, &kind, &err);
    check(st, &err);
    if (st == EBB_OK && kind == EBB_KEY_OF_FILE)
        check(ebb_key_file_read(path, "secret", 6, key, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const reads[])(const uint8_t *, size_t) = { read_history, read_unsent, read_theme, read_engines,
                                                              read_sidecar, read_speeds, read_profile, read_key_file };
    static bool has_folders;

    if (n == 0)
        return 0;
    if (!has_folders)
        make_folders();
    has_folders = true;
    reads[data[0] % 8](data + 1, n - 1);
    return 0;
}
