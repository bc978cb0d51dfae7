/* Terminal bytes to keys (keys.h).  Sequences of xterm and its kin, rxvt, the
 * Linux console, tmux and screen; with xterm's modifiers, modifyOtherKeys and
 * kitty's CSI u.  What is not known is swallowed, never shown as text. */
#include "term/keys.h"

#include <string.h>

#include "base/utf8.h"

enum { SEQUENCE_MAX = 256, PATIENCE = 25 };

static const char paste_end[] = "\033[201~";

void ebb_keys_fini(ebb_keys *k)
{
    ebb_buf_fini(&k->in);
    ebb_buf_fini(&k->paste);
    memset(k, 0, sizeof *k);
}

void ebb_keys_feed(ebb_keys *k, const char *bytes, size_t n)
{
    ebb_buf_remove(&k->in, 0, k->at);
    k->at = 0;
    ebb_buf_add(&k->in, bytes, n);
}

static void set_key(ebb_input *out, uint32_t code, unsigned mods)
{
    out->kind = EBB_INPUT_KEY;
    out->key.code = code;
    out->key.mods = (uint8_t)mods;
}

/* A character that arrived alone, as a key. */
static void set_char(ebb_input *out, uint32_t cp, unsigned mods)
{
    if (cp == '\r')
        set_key(out, EBB_KEY_ENTER, mods);
    else if (cp == '\t')
        set_key(out, EBB_KEY_TAB, mods);
    else if (cp == 0x1B)
        set_key(out, EBB_KEY_ESC, mods);
    else if (cp == 0x7F || cp == 0x08)
        set_key(out, EBB_KEY_BACKSPACE, mods);
    else if (cp == 0)
        set_key(out, ' ', mods | EBB_MOD_CTRL);
    else if (cp < 0x1B)
        set_key(out, cp + 'a' - 1, mods | EBB_MOD_CTRL);
    else if (cp < 0x20)
        set_key(out, cp + '@', mods | EBB_MOD_CTRL);
    else
        set_key(out, cp, mods);
}

/* xterm's modifier parameter: 1 + bits of Shift, Alt, Ctrl. */
static unsigned mods_of(int param)
{
    unsigned bits = param > 0 ? (unsigned)(param - 1) : 0;

    return (bits & 1 ? EBB_MOD_SHIFT : 0u) | (bits & 2 ? EBB_MOD_ALT : 0u) | (bits & 4 ? EBB_MOD_CTRL : 0u);
}

static uint32_t code_of_letter(char final)
{
    switch (final) {
    case 'A': return EBB_KEY_UP;
    case 'B': return EBB_KEY_DOWN;
    case 'C': return EBB_KEY_RIGHT;
    case 'D': return EBB_KEY_LEFT;
    case 'H': return EBB_KEY_HOME;
    case 'F': return EBB_KEY_END;
    case 'M': return EBB_KEY_ENTER;
    case 'Z': return EBB_KEY_TAB;
    case 'P': case 'Q': case 'R': case 'S': return EBB_KEY_F1 + (uint32_t)(final - 'P');
    default: return 0;
    }
}

static uint32_t code_of_tilde(int n)
{
    static const uint32_t low[] = { 0, EBB_KEY_HOME, EBB_KEY_INSERT, EBB_KEY_DELETE, EBB_KEY_END,
                                    EBB_KEY_PGUP, EBB_KEY_PGDN, EBB_KEY_HOME, EBB_KEY_END };
    static const uint8_t function[] = { 1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0, 11, 12 };

    if (n >= 0 && n < (int)(sizeof low / sizeof *low))
        return low[n];
    if (n >= 11 && n <= 24 && function[n - 11])
        return EBB_KEY_F1 + function[n - 11] - 1u;
    return 0;
}

/* Keys of the keypad have numbers of their own in kitty's protocol, among Unicode's private characters. */
static uint32_t code_of_keypad(int cp)
{
    static const char text[] = "0123456789./*-+";
    static const uint32_t keys[] = { EBB_KEY_ENTER, '=', ',', EBB_KEY_LEFT, EBB_KEY_RIGHT, EBB_KEY_UP, EBB_KEY_DOWN,
                                     EBB_KEY_PGUP, EBB_KEY_PGDN, EBB_KEY_HOME, EBB_KEY_END, EBB_KEY_INSERT,
                                     EBB_KEY_DELETE };
    enum { FIRST = 57399, FIRST_KEY = FIRST + (int)sizeof text - 1 };

    if (cp >= FIRST && cp < FIRST_KEY)
        return (uint32_t)text[cp - FIRST];
    if (cp >= FIRST_KEY && cp < FIRST_KEY + (int)(sizeof keys / sizeof *keys))
        return keys[cp - FIRST_KEY];
    return 0;
}

/* With Ctrl: the key that the control character is called by, as it comes without the protocol. */
static uint32_t control_of(uint32_t cp)
{
    switch (cp) {
    case '\r': case 'm': return EBB_KEY_ENTER;
    case '\t': case 'i': return EBB_KEY_TAB;
    case 0x1B: case '[': return EBB_KEY_ESC;
    case 'h': return EBB_KEY_BACKSPACE;
    case '/': return '_';
    default: return 0;
    }
}

/* A key given by its Unicode values: without modifiers, with Shift, and where it is on a Latin keyboard (kitty's
 * CSI u; modifyOtherKeys gives the first alone).  0: not given. */
static void set_unicode(ebb_input *out, const int cp[3], unsigned mods)
{
    bool is_ctrl = mods & EBB_MOD_CTRL, is_letter = cp[0] >= 'a' && cp[0] <= 'z';
    int code = (mods & EBB_MOD_SHIFT) && cp[1] > 0 && !(is_ctrl && is_letter) ? cp[1]
             : is_ctrl && cp[0] > 0x7F && cp[2] > 0                           ? cp[2]
                                                                              : cp[0];
    uint32_t control;

    if (code <= 0 || code > 0x10FFFF)
        return;
    if (code >= 57344 && code <= 63743) {
        if (code_of_keypad(code))
            set_key(out, code_of_keypad(code), mods & ~(unsigned)EBB_MOD_SHIFT);
        return;
    }
    if (cp[1] > 0)                               /* Shift is in the character */
        mods &= ~(unsigned)EBB_MOD_SHIFT;
    control = is_ctrl ? control_of((uint32_t)code) : 0;
    if (control)
        set_key(out, control, control == '_' ? mods : mods & ~(unsigned)EBB_MOD_CTRL);
    else
        set_char(out, (uint32_t)code, mods);
}

/* ESC [ parameters final, complete at p[0..n).  Sets nothing if it is unknown. */
static void read_csi(ebb_keys *k, const char *p, size_t n, unsigned alt, ebb_input *out)
{
    int param[4] = { 0 }, key[3] = { 0 };        /* key: what ':' parts the first parameter into */
    size_t n_params = 0, n_parts = 0;
    bool is_private = n > 3 && (p[2] == '<' || p[2] == '?' || p[2] == '>' || p[2] == '=');
    char final = p[n - 1];
    uint32_t code;

    for (size_t i = 2; i < n - 1; i++) {
        if (p[i] == ';') {
            n_params += n_params < 3;
            n_parts = 0;
        } else if (p[i] == ':') {
            n_parts += n_parts < 3;
        } else if (p[i] >= '0' && p[i] <= '9') {
            if (n_parts == 0 && param[n_params] < 100000000)
                param[n_params] = param[n_params] * 10 + (p[i] - '0');
            if (n_params == 0 && n_parts < 3 && key[n_parts] < 100000000)
                key[n_parts] = key[n_parts] * 10 + (p[i] - '0');
        }
    }
    if (is_private)
        return;
    if (final == '~' && param[0] == 200) {
        k->in_paste = true;
        k->n_lost = 0;
    } else if (final == '~' && param[0] == 27) {
        set_unicode(out, (int[3]){ param[2] }, mods_of(param[1]) | alt);
    } else if (final == 'u') {
        set_unicode(out, key, mods_of(param[1]) | alt);
    } else {
        code = final == '~' ? code_of_tilde(param[0]) : code_of_letter(final);
        if (code)
            set_key(out, code, mods_of(param[1]) | alt | (final == 'Z' ? EBB_MOD_SHIFT : 0u));
    }
}

/* Length of the CSI sequence at p, 0 if its end has not come. */
static size_t csi_length(const char *p, size_t n)
{
    if (n > 2 && p[2] == '[')
        return n > 3 ? 4 : 0;                    /* Linux console: F1 is ESC [ [ A */
    if (n > 2 && p[2] == 'M')
        return n >= 6 ? 6 : 0;                   /* old mouse report: three bytes follow */
    for (size_t i = 2; i < n; i++) {
        if (p[i] >= 0x40 && p[i] <= 0x7E)
            return i + 1;
        if ((unsigned char)p[i] < 0x20 || (unsigned char)p[i] > 0x7E || i > SEQUENCE_MAX)
            return i;                            /* broken: give up in front of it */
    }
    return 0;
}

/* ESC ] or ESC P ...: an answer of the terminal, up to BEL or ST. */
static size_t string_length(const char *p, size_t n)
{
    for (size_t i = 2; i < n; i++)
        if (p[i] == '\a' || (p[i] == '\\' && p[i - 1] == '\033'))
            return i + 1;
        else if (i > SEQUENCE_MAX)
            return i;
    return 0;
}

/* One escape sequence at p; the bytes used, 0: more are needed. */
static size_t read_escape_sequence(ebb_keys *k, const char *p, size_t n, unsigned alt, ebb_input *out)
{
    size_t len;
    uint32_t cp;

    if (n < 2)
        return 0;
    switch (p[1]) {
    case '[':
        if ((len = csi_length(p, n)) == 0)
            return 0;
        if (p[2] == '[')
            set_key(out, EBB_KEY_F1 + (uint32_t)(p[3] - 'A') % 5, alt);
        else if (p[2] != 'M')
            read_csi(k, p, len, alt, out);
        return len;
    case 'O':
        if (n < 3)
            return 0;
        if (code_of_letter(p[2]))
            set_key(out, code_of_letter(p[2]), alt);
        return 3;
    case ']': case 'P': case '_': case '^':
        return string_length(p, n);
    case '\033':
        if (n >= 3 && (p[2] == '[' || p[2] == 'O')) {
            len = read_escape_sequence(k, p + 1, n - 1, EBB_MOD_ALT, out);
            return len ? len + 1 : 0;
        }
        set_key(out, EBB_KEY_ESC, alt);
        return 1;
    default:
        len = ebb_utf8_decode(p + 1, n - 1, &cp);
        if (len)
            set_char(out, cp, EBB_MOD_ALT);
        return len ? len + 1 : 0;
    }
}

void ebb_keys_end_paste(ebb_keys *k, ebb_input *out)
{
    if (k->paste.len > 0 && k->paste.data[k->paste.len - 1] == '\r')
        k->paste.data[k->paste.len - 1] = '\n';
    k->in_paste = false;
    *out = (ebb_input){ .kind = EBB_INPUT_PASTE, .text = ebb_buf_text(&k->paste), .n = k->paste.len,
                        .n_lost = k->n_lost };
}

/* Moves bytes of a paste; true when its end is there. */
static bool read_paste(ebb_keys *k, ebb_input *out)
{
    const char *p = k->in.data + k->at;
    size_t n = k->in.len - k->at, keep = 0, len;
    const char *end = memmem(p, n, paste_end, sizeof paste_end - 1);

    len = end ? (size_t)(end - p) : n;
    if (!end) {                                  /* the end mark may be cut in two */
        for (keep = n < 5 ? n : 5; keep > 0; keep--)
            if (memcmp(p + n - keep, paste_end, keep) == 0)
                break;
        len = n - keep;
    }
    for (size_t i = 0; i < len; i++) {
        bool after_cr = k->paste.len > 0 && k->paste.data[k->paste.len - 1] == '\r';
        if (after_cr)
            k->paste.data[k->paste.len - 1] = '\n';
        if (!(after_cr && p[i] == '\n') &&
            (k->paste.len >= EBB_PASTE_BYTES || !ebb_buf_addc(&k->paste, p[i])))
            k->n_lost++;
    }
    k->at += end ? (size_t)(end - p) + sizeof paste_end - 1 : n - keep;
    if (end)
        ebb_keys_end_paste(k, out);
    return end != NULL;
}

enum { WHEEL_MIN = 3, ARROW_BYTES = 3 };

static bool is_arrow(const char *p, size_t n)
{
    return n >= ARROW_BYTES && p[0] == '\033' && (p[1] == '[' || p[1] == 'O') && (p[2] == 'A' || p[2] == 'B');
}

/* The same arrow so many times in a row. */
static size_t count_arrows(const char *p, size_t n)
{
    size_t count = 0;

    while (is_arrow(p + count * ARROW_BYTES, n - count * ARROW_BYTES) &&
           memcmp(p, p + count * ARROW_BYTES, ARROW_BYTES) == 0)
        count++;
    return count;
}

static bool read_wheel(ebb_keys *k, const char *p, size_t n, ebb_input *out)
{
    if (k->n_wheel == 0 && k->has_wheel) {
        size_t count = count_arrows(p, n);
        k->n_wheel = count >= WHEEL_MIN ? count : 0;
    }
    if (k->n_wheel == 0)
        return false;
    k->n_wheel--;
    out->kind = EBB_INPUT_KEY;
    out->key = (ebb_key){ p[2] == 'A' ? EBB_KEY_PGUP : EBB_KEY_PGDN, EBB_MOD_SHIFT };
    return true;
}

bool ebb_keys_next(ebb_keys *k, ebb_input *out)
{
    memset(out, 0, sizeof *out);
    if (!k->in_paste)
        ebb_buf_fini(&k->paste);                 /* it was taken with the call before */
    while (k->at < k->in.len) {
        const char *p = k->in.data + k->at;
        size_t n = k->in.len - k->at, used;
        uint32_t cp;

        if (k->in_paste) {
            if (read_paste(k, out))
                return true;
            if (k->in_paste)
                return false;
            continue;
        }
        if (*p == '\033' && read_wheel(k, p, n, out))
            used = ARROW_BYTES;
        else if (*p == '\033')
            used = read_escape_sequence(k, p, n, 0, out);
        else if ((used = ebb_utf8_decode(p, n, &cp)) > 0)
            set_char(out, cp, 0);
        if (used == 0)
            return false;
        k->at += used;
        if (out->kind != EBB_INPUT_NONE)
            return true;
    }
    return false;
}

/* Length of an answer at p, 0: it is none, or not all there (*is_part). */
static size_t reply_length(const char *p, size_t n, bool *is_part)
{
    bool is_mode = n > 2 && p[1] == '[' && p[2] == '?', is_string = n > 2 && (p[1] == ']' || p[1] == 'P');
    size_t len = is_mode ? csi_length(p, n) : is_string ? string_length(p, n) : 0;

    *is_part = (is_mode || is_string) && len == 0;
    return len;
}

bool ebb_keys_take_reply(ebb_keys *k, ebb_buf *out)
{
    static const char paste_begin[] = "\033[200~";
    const char *p = k->in.data;
    bool is_part = false;
    size_t len = 0;

    for (size_t i = k->at; i < k->in.len && !k->in_paste && !is_part; i++) {
        size_t n = k->in.len - i;
        if (p[i] != '\033')
            continue;
        if (n >= sizeof paste_begin - 1 && memcmp(p + i, paste_begin, sizeof paste_begin - 1) == 0)
            return false;
        len = reply_length(p + i, n, &is_part);
        if (len > 0) {
            ebb_buf_clear(out);
            ebb_buf_add(out, p + i, len);
            ebb_buf_remove(&k->in, i, len);
            k->n_patience = 0;
            return !out->failed;
        }
    }
    return false;
}

bool ebb_keys_take_interrupt(ebb_keys *k)
{
    ebb_keys look = { .in = k->in, .at = k->at };        /* decodes, and leaves the bytes as they are */
    bool found = false;
    ebb_input in;
    size_t from;

    do
        from = look.at;
    while (!k->in_paste && ebb_keys_next(&look, &in) &&
           !(found = in.kind == EBB_INPUT_KEY && in.key.code == 'c' && in.key.mods == EBB_MOD_CTRL));
    if (found)
        ebb_buf_remove(&k->in, from, look.at - from);
    ebb_buf_fini(&look.paste);
    return found;
}

bool ebb_keys_is_waiting(const ebb_keys *k)
{
    return k->at < k->in.len && !k->in_paste;
}

bool ebb_keys_flush(ebb_keys *k, ebb_input *out)
{
    memset(out, 0, sizeof *out);
    if (!ebb_keys_is_waiting(k))
        return false;
    const char *p = k->in.data + k->at;
    size_t n = k->in.len - k->at;
    bool is_part;
    if (*p == '\033' && reply_length(p, n, &is_part) == 0 && (is_part || (k->expects_reply && n <= 2)) &&
        k->n_patience++ < PATIENCE)
        return false;
    k->n_patience = 0;
    if (*p == '\033' && n == 1)
        set_key(out, EBB_KEY_ESC, 0);
    else if (*p == '\033' && n == 2)
        set_char(out, (unsigned char)p[1], EBB_MOD_ALT);
    else
        set_key(out, EBB_UTF8_BAD, 0);
    k->at = k->in.len;
    return out->key.code != EBB_UTF8_BAD;
}
