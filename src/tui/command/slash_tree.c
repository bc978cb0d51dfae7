/* Slash commands about messages and branches. */
#include <stdlib.h>
#include <string.h>

#include "command/slash_impl.h"
#include "store/title.h"

enum { DEEPEST = 40 };           /* branches inside branches that are drawn indented */

/* The number at the beginning of arg as an index of the path; `usual` if there is none.  What
 * follows it is left in *rest. */
static ebb_status parse_index(ebb_frontend *f, const char *arg, size_t usual, size_t *i, const char **rest,
                              ebb_error *err)
{
    size_t n = ebb_chat_n_messages(f->chat);
    char *end = (char *)arg;
    unsigned long number = *arg ? strtoul(arg, &end, 10) : usual + 1;

    if (n == 0 || (*arg == '\0' && number == 0))
        return EBB_FAIL(err, EBB_USAGE, "there is no such message yet");
    if ((*arg && end == arg) || (*end && *end != ' ' && *end != '\n') || number == 0 || number > n)
        return EBB_FAIL(err, EBB_USAGE, "give the number of a message, 1 to %zu; /tree shows them", n);
    *i = number - 1;
    if (rest)
        *rest = end + strspn(end, " ");
    return EBB_OK;
}

/* Its index; SIZE_MAX: there is none. */
static size_t last_question(ebb_frontend *f)
{
    size_t i = ebb_chat_n_messages(f->chat);

    while (i > 0 && ebb_chat_message(f->chat, i - 1)->role != EBB_ROLE_USER)
        i--;
    return i - 1;
}

/* A question is sent as if it was typed, with files and what is asked about them; all else is only text. */
static ebb_status rewrite(ebb_frontend *f, size_t i, const char *text, ebb_error *err)
{
    if (ebb_chat_message(f->chat, i)->role != EBB_ROLE_USER)
        return ebb_chat_edit(f->chat, i, text, strlen(text), err);
    ebb_buf_clear(&f->rewritten);
    if (!ebb_buf_adds(&f->rewritten, text))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the message");
    f->editing = i + 1;
    return EBB_OK;
}

ebb_status ebb_slash_edit(ebb_frontend *f, const char *arg, ebb_error *err)
{
    const ebb_message *m;
    const char *text = NULL;
    size_t i;
    ebb_status st = parse_index(f, arg, last_question(f), &i, &text, err);

    if (st == EBB_OK)
        st = ebb_chat_check_idle(f->chat, err);
    if (st != EBB_OK)
        return st;
    if (*text)
        return rewrite(f, i, text, err);
    m = ebb_chat_message(f->chat, i);
    f->editing = i + 1;
    if (f->edit) {
        ebb_frontend_offer(f, m->text, m->n_text);
    } else {
        f->say(f, EBB_SAY_TEXT, m->text, m->n_text);
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "message %zu: the next line takes its place, in a new branch%s", i + 1,
                          ebb_frontend_kept_files(f, f->editing, &text) > 0 ? "; its files go along again" : "");
    }
    return EBB_OK;
}

ebb_status ebb_slash_branch(ebb_frontend *f, const char *arg, ebb_error *err)
{
    size_t i;
    ebb_status st = parse_index(f, arg, last_question(f), &i, NULL, err);

    if (st == EBB_OK)
        st = ebb_chat_branch(f->chat, i, err);
    if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "what you send now starts a branch; /tree shows them all, /go goes back");
    return st;
}

ebb_status ebb_slash_go(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return *arg ? ebb_chat_go(f->chat, arg, err) : EBB_FAIL(err, EBB_USAGE, "/go NODE: where to?  /tree shows them");
}

static ebb_status set_pinned(ebb_frontend *f, const char *arg, bool is_pinned, ebb_error *err)
{
    size_t i;
    bool was_pinned;
    ebb_status st = parse_index(f, arg, ebb_chat_n_messages(f->chat) - 1, &i, NULL, err);

    was_pinned = st == EBB_OK && ebb_chat_message(f->chat, i)->pinned;
    if (st == EBB_OK)
        st = ebb_chat_pin(f->chat, i, is_pinned, err);
    if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "message %zu %s", i + 1,
                          is_pinned ? "is pinned; /unpin takes it back" : was_pinned ? "is no longer pinned"
                                                                                     : "was not pinned");
    return st;
}

static ebb_status list_pins(ebb_frontend *f)
{
    ebb_buf out = { 0 };
    char title[128];

    for (size_t i = 0; i < ebb_chat_n_messages(f->chat); i++) {
        const ebb_message *m = ebb_chat_message(f->chat, i);
        if (!m->pinned)
            continue;
        ebb_title_make(m->text, m->n_text, title, sizeof title);
        ebb_buf_addf(&out, "%s%zu %s: %s", out.len ? "\n" : "", i + 1, ebb_role_name(m->role), title);
    }
    if (out.len)
        f->say(f, EBB_SAY_TEXT, ebb_buf_text(&out), out.len);
    else
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "nothing is pinned; /pin N keeps a message and its turn when "
                                             "the oldest are forgotten");
    ebb_buf_fini(&out);
    return EBB_OK;
}

ebb_status ebb_slash_pin(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return strcmp(arg, "list") == 0 ? list_pins(f) : set_pinned(f, arg, true, err);
}

ebb_status ebb_slash_unpin(ebb_frontend *f, const char *arg, ebb_error *err)
{
    return set_pinned(f, arg, false, err);
}

/* -- Freeing context ----------------------------------------------------------------------- */

ebb_status ebb_slash_forget(ebb_frontend *f, const char *arg, ebb_error *err)
{
    char *end = (char *)arg;
    unsigned long n = *arg ? strtoul(arg, &end, 10) : 0;

    if (*end || (*arg && (n == 0 || n > 100000)))
        return EBB_FAIL(err, EBB_USAGE,
                        "/forget N: how many of the oldest turns?  Without N, as many as it takes to make room");
    return ebb_chat_free_context(f->chat, EBB_OVERFLOW_FORGET, (uint32_t)n, err);
}

ebb_status ebb_slash_compact(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    return ebb_chat_free_context(f->chat, EBB_OVERFLOW_COMPACT, 0, err);
}

ebb_status ebb_slash_grow(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    return ebb_chat_free_context(f->chat, EBB_OVERFLOW_GROW, 0, err);
}

/* -- The drawing --------------------------------------------------------------------------- */

/* The indent of a row's children: one bit per column, set where a vertical line continues. */
typedef struct indent {
    uint64_t lines;
    int      n;
} indent;

static indent indent_below(indent at, const ebb_branch *row)
{
    if (row->is_only || at.n == DEEPEST)
        return at;
    at.lines |= (uint64_t)row->has_next << at.n++;
    return at;
}

static void add_tree_lines(ebb_buf *out, const ebb_branch *row, indent at, bool ascii)
{
    for (int i = 0; i < at.n; i++)
        ebb_buf_adds(out, !(at.lines >> i & 1) ? "   " : ascii ? "|  " : "\u2502  ");
    if (!row->is_only)
        ebb_buf_adds(out, row->has_next ? (ascii ? "|- " : "\u251c\u2500 ") : (ascii ? "`- " : "\u2514\u2500 "));
}

/* "you (pinned): How does it ..." */
static void add_tree_message(ebb_buf *out, const ebb_branch *row)
{
    static const char *const names[] = { "system", "you", "model", "note" };
    char title[128];

    ebb_title_make(row->message->text, row->message->n_text, title, sizeof title);
    ebb_buf_addf(out, "%s%s: %s", names[row->message->role], row->message->pinned ? " (pinned)" : "", title);
}

/* For who hears it: a branch is further in than what it leaves, and one row is where the conversation stands. */
static void add_spoken_row(void *arg, const ebb_branch *row, indent at, bool ascii)
{
    ebb_buf *out = arg;

    (void)ascii;
    for (int i = 0; i < at.n + !row->is_only; i++)
        ebb_buf_adds(out, "  ");
    ebb_buf_addf(out, "%s %s", row->label, row->is_leaf ? "(here) " : "");
    add_tree_message(out, row);
    ebb_buf_addc(out, '\n');
}

static void add_tree_row(void *arg, const ebb_branch *row, indent at, bool ascii)
{
    ebb_buf *out = arg;

    ebb_buf_adds(out, row->is_leaf ? "* " : row->is_on_path ? (ascii ? "| " : "\u2022 ") : "  ");
    add_tree_lines(out, row, at, ascii);
    ebb_buf_addf(out, "%s ", row->label);
    add_tree_message(out, row);
    ebb_buf_addc(out, '\n');
}

typedef void tree_row_fn(void *arg, const ebb_branch *row, indent at, bool ascii);

static ebb_status each_tree_row(ebb_frontend *f, tree_row_fn *fn, void *arg, ebb_error *err)
{
    ebb_branch *rows;
    indent *indents;
    size_t n;
    ebb_status st = ebb_chat_branches(f->chat, &rows, &n, err);

    if (st != EBB_OK)
        return st;
    indents = calloc(n + 1, sizeof *indents);
    for (size_t i = 0; indents && i < n; i++) {
        indent at = rows[i].parent == SIZE_MAX ? (indent){ 0 } : indents[rows[i].parent];
        fn(arg, &rows[i], at, f->opts->ascii);
        indents[i] = indent_below(at, &rows[i]);
    }
    free(indents);
    free(rows);
    return EBB_OK;
}

/* The front end's menu if it has one, else the tree as text. */
ebb_status ebb_slash_tree(ebb_frontend *f, const char *arg, ebb_error *err)
{
    ebb_buf out = { 0 };
    ebb_status st;

    if (f->pick && *arg == '\0' && ebb_chat_n_messages(f->chat) > 0) {
        f->pick(f, "/go ");
        return EBB_OK;
    }
    st = each_tree_row(f, f->view ? add_tree_row : add_spoken_row, &out, err);
    if (st == EBB_OK && out.len)
        f->say(f, EBB_SAY_TEXT, ebb_buf_text(&out), out.len - 1);
    else if (st == EBB_OK)
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "there are no messages yet");
    ebb_buf_fini(&out);
    return st;
}

typedef struct node_candidates {
    ebb_candidate_fn *fn;
    void             *arg;
} node_candidates;

static void complete_tree_row(void *arg, const ebb_branch *row, indent at, bool ascii)
{
    const node_candidates *c = arg;
    ebb_buf note = { 0 };

    add_tree_lines(&note, row, at, ascii);
    add_tree_message(&note, row);
    ebb_buf_adds(&note, row->is_leaf ? (ascii ? " *" : " \u25c0") : "");
    c->fn(c->arg, row->label, ebb_buf_text(&note));
    ebb_buf_fini(&note);
}

void ebb_complete_node(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    node_candidates c = { fn, arg };
    ebb_error err;

    (void)typed;
    if (each_tree_row(f, complete_tree_row, &c, &err) != EBB_OK)
        return;
}
