/* Screens on the process's terminal line (term_line.h). */
#include "term/term_line.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "term/announce.h"
#include "term/caps.h"

/* -- Opening ------------------------------------------------------------------------ */

ebb_status ebb_term_line_new(size_t n_bytes, const ebb_term_ops *term_ops, const ebb_term_line_ops *ops,
                             ebb_term_line **out, ebb_error *err)
{
    ebb_term_line *l = calloc(1, n_bytes);
    ebb_status st;

    if (!l)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the screen");
    l->base.ops = term_ops;
    l->ops = ops;
    st = ebb_tty_open(&l->tty, err);
    if (st != EBB_OK) {
        free(l);
        return st;
    }
    setlocale(LC_CTYPE, "");
    *out = l;
    return EBB_OK;
}

void ebb_term_line_free(ebb_term_line *l)
{
    ebb_tty_close(&l->tty);
    ebb_hyperlinks_fini(&l->base.links);
    free(l);
}

ebb_status ebb_term_line_refuse(ebb_term_line *l, ebb_error *err)
{
    const char *kind = getenv("TERM");

    ebb_term_line_free(l);
    return EBB_FAIL(err, EBB_UNSUPPORTED, "terminfo knows no way to move the cursor of a terminal '%.60s' (TERM), so "
                    "these are plain lines; most terminals work with TERM=xterm-256color", kind ? kind : "");
}

void ebb_term_line_probe(ebb_term_line *l, const ebb_term_opts *opts, const char *kind)
{
    l->base.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    l->base.ascii = opts->ascii || !l->base.utf8 || ebb_tty_is_plain_kind(kind);
    l->byte_s = ebb_tty_byte_s();
    l->has_paste = ebb_tty_has_paste(kind);
    l->no_color = opts->no_color;
    l->links = opts->links;
    l->base.has_links = ebb_tty_has_links(opts->links, l->byte_s, kind);
}

void ebb_term_line_show_screen(ebb_term_line *l, bool is_second)
{
    l->tty.keys.has_wheel = is_second && *ebb_cap("smcup");
}

void ebb_term_line_add_restore(const ebb_term_line *l, ebb_buf *out)
{
    ebb_buf_adds(out, l->base.answers.has_sync ? EBB_SYNC_END : "");
    ebb_buf_adds(out, l->base.answers.has_key_protocol ? EBB_KEY_PROTOCOL_OFF : "");
    ebb_buf_adds(out, l->tty.is_asked ? EBB_TITLE_RESTORE : "");
    ebb_buf_adds(out, l->has_paste ? EBB_PASTE_OFF : "");
    ebb_cap_add(out, "sgr0");
    ebb_cap_add(out, "cnorm");
}

/* -- Input and what is sent --------------------------------------------------------- */

static ebb_term_line *line_of(ebb_term *base)
{
    return (ebb_term_line *)base;
}

static void adopt_answers(ebb_term_line *l)
{
    l->base.answers = l->tty.answers;
    l->base.has_links |= l->links == EBB_LINKS_AUTO && l->byte_s <= 0 && l->base.answers.has_links;
    l->ops->prepare_restore(l);
}

int ebb_term_line_fds(ebb_term *base, struct pollfd *out, int cap)
{
    return ebb_tty_fds(&line_of(base)->tty, out, cap);
}

int ebb_term_line_timeout_ms(ebb_term *base)
{
    return ebb_tty_timeout_ms(&line_of(base)->tty);
}

bool ebb_term_line_input(ebb_term *base, ebb_input *out)
{
    ebb_term_line *l = line_of(base);

    if (!ebb_tty_input(&l->tty, out))
        return false;
    if (out->kind == EBB_INPUT_REPLY)
        adopt_answers(l);
    if (l->tty.is_lent)                          /* what has changed is seen when it comes back */
        return true;
    if (out->kind == EBB_INPUT_RESIZE)
        l->ops->resized(l);
    else if (out->kind == EBB_INPUT_RESUME)
        l->ops->resumed(l);
    return true;
}

bool ebb_term_line_is_interrupted(ebb_term *base)
{
    return ebb_tty_is_interrupted(&line_of(base)->tty);
}

void ebb_term_line_send(ebb_term *base, const char *bytes, size_t n)
{
    (void)base;
    ebb_tty_write(bytes, n);
}

void ebb_term_line_title(ebb_term *base, const char *text, size_t n)
{
    ebb_tty_set_title(&line_of(base)->tty, text, n, !base->utf8);
}

void ebb_term_line_await_answers(ebb_term *base, double until_s)
{
    ebb_tty_await_answers(&line_of(base)->tty, until_s);
    adopt_answers(line_of(base));
}

ebb_backlog ebb_term_line_backlog(ebb_term *base)
{
    (void)base;
    return ebb_tty_backlog();
}
