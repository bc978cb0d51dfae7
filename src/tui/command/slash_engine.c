/* /engine: who answers, here or elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "command/slash_impl.h"
#include "remote/engines_file.h"

static void say_engines(ebb_frontend *f, const ebb_engine_entry *list, size_t n)
{
    const char *now = ebb_chat_engine(f->chat);
    bool is_listed = !now;
    ebb_buf out = { 0 };

    ebb_buf_addf(&out, "%c %-12s  this process", now ? ' ' : '*', EBB_ENGINE_HERE);
    for (size_t i = 0; i < n; i++) {
        bool is_now = now && strcmp(now, list[i].name) == 0;

        is_listed = is_listed || is_now;
        ebb_buf_addf(&out, "\n%c %-12s  %s%s%s", is_now ? '*' : ' ', list[i].name,
                     list[i].address, list[i].model ? "  " : "", list[i].model ? list[i].model : "");
    }
    if (!is_listed)                              /* one by its address, or a server that was found */
        ebb_buf_addf(&out, "\n* %s", ebb_chat_engine_word(f->chat));
    ebb_buf_adds(&out, "\n/engine NAME [MODEL] takes one; /engine test [NAME] asks it what it is; ebb engines add NAME "
                       "ADDRESS makes one");
    f->say(f, EBB_SAY_PAGE, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
}

static ebb_status list_engines(ebb_frontend *f, ebb_error *err)
{
    ebb_engine_entry *list;
    size_t n;
    ebb_status st = ebb_engines_read(&list, &n, err);

    if (st != EBB_OK)
        return st;
    say_engines(f, list, n);
    ebb_engines_free(list, n);
    return EBB_OK;
}

ebb_status ebb_slash_engine(ebb_frontend *f, const char *arg, ebb_error *err)
{
    size_t n = strcspn(arg, " \t");
    const char *rest = arg + n + strspn(arg + n, " \t");
    char name[1024];

    if (*arg == '\0')
        return list_engines(f, err);
    if (n == 4 && memcmp(arg, "test", 4) == 0)
        return ebb_chat_test_engine(f->chat, *rest ? rest : NULL, err);
    if (strncmp(arg, "exec:", 5) == 0)           /* a command may have blanks */
        return ebb_chat_set_engine(f->chat, arg, NULL, err);
    if (n >= sizeof name)
        return EBB_FAIL(err, EBB_USAGE, "/engine: this name is too long");
    memcpy(name, arg, n);
    name[n] = '\0';
    return ebb_chat_set_engine(f->chat, name, *rest ? rest : NULL, err);
}

void ebb_complete_engine(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    ebb_engine_entry *list;
    size_t n;

    (void)f;
    (void)typed;
    fn(arg, EBB_ENGINE_HERE, "this process");
    fn(arg, "test", "examine the current one");
    if (ebb_engines_read(&list, &n, NULL) != EBB_OK)
        return;
    for (size_t i = 0; i < n; i++)
        fn(arg, list[i].name, list[i].address);
    ebb_engines_free(list, n);
}
