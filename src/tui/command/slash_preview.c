/* What a command would cost (slash.h). */
#include <stdlib.h>
#include <string.h>

#include "command/slash_impl.h"

static bool preview_edit(ebb_frontend *f, const char *arg, ebb_chat_cost *out)
{
    char *text;
    unsigned long i = strtoul(arg, &text, 10);
    ebb_buf whole = { 0 };
    bool ok;

    text += strspn(text, " ");
    ebb_frontend_add_kept(f, i, text, strlen(text), &whole);
    ok = ebb_buf_adds(&whole, text) && i > 0 && *text &&
         ebb_chat_preview(f->chat, EBB_ACT_EDIT, i - 1, whole.data, whole.len, out);
    ebb_buf_fini(&whole);
    return ok;
}

static bool preview_cut(ebb_frontend *f, const char *arg, ebb_chat_cost *out)
{
    size_t n = ebb_chat_n_messages(f->chat), end;
    const ebb_message *m = n ? ebb_chat_message(f->chat, n - 1) : NULL;

    return m && m->role == EBB_ROLE_ASSISTANT && *arg && ebb_cut_at(m->text, m->n_text, arg, &end) &&
           ebb_chat_preview(f->chat, EBB_ACT_CUT, 0, m->text, end, out);
}

bool ebb_slash_command_preview(ebb_frontend *f, const char *line, ebb_chat_cost *out)
{
    size_t n = strcspn(line, " "), len;
    const char *arg = line + n + strspn(line + n, " ");
    char word[128];

    for (len = strlen(arg); len > 0 && strchr(" \t\n", arg[len - 1]);)
        len--;
    if (len >= sizeof word)
        return n == 5 && memcmp(line, "/edit", 5) == 0 && preview_edit(f, arg, out);
    memcpy(word, arg, len);
    word[len] = '\0';
    if (n == 5 && memcmp(line, "/edit", 5) == 0)
        return preview_edit(f, word, out);
    if (n == 4 && memcmp(line, "/cut", 4) == 0)
        return preview_cut(f, word, out);
    if (n == 5 && memcmp(line, "/undo", 5) == 0)
        return ebb_chat_preview(f->chat, EBB_ACT_UNDO, 0, "", 0, out);
    if (n == 3 && memcmp(line, "/go", 3) == 0 && *word)
        return ebb_chat_preview(f->chat, EBB_ACT_GO, 0, word, len, out);
    return n == 5 && memcmp(line, "/load", 5) == 0 && *word &&
           ebb_chat_preview(f->chat, EBB_ACT_LOAD, 0, word, len, out);
}
