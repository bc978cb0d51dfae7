/* System prompts by name (system_prompts.h). */
#include "prompt/system_prompts.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>

#include "base/embed.h"
#include "os/file.h"

#define MAX_BYTES (1u << 20)

EBB_EMBED(ebb_prompt_brief, "prompts/brief.txt");
EBB_EMBED(ebb_prompt_critic, "prompts/critic.txt");
EBB_EMBED(ebb_prompt_editor, "prompts/editor.txt");
EBB_EMBED(ebb_prompt_programmer, "prompts/programmer.txt");
EBB_EMBED(ebb_prompt_reviewer, "prompts/reviewer.txt");
EBB_EMBED(ebb_prompt_shell, "prompts/shell.txt");
EBB_EMBED(ebb_prompt_summary, "prompts/summary.txt");
EBB_EMBED(ebb_prompt_teacher, "prompts/teacher.txt");
EBB_EMBED(ebb_prompt_translator, "prompts/translator.txt");
EBB_EMBED(ebb_prompt_writer, "prompts/writer.txt");

static const struct shipped { const char *name, *text, *end; } shipped[] = {
    { "brief", ebb_prompt_brief, ebb_prompt_brief_end },
    { "critic", ebb_prompt_critic, ebb_prompt_critic_end },
    { "editor", ebb_prompt_editor, ebb_prompt_editor_end },
    { "programmer", ebb_prompt_programmer, ebb_prompt_programmer_end },
    { "reviewer", ebb_prompt_reviewer, ebb_prompt_reviewer_end },
    { "shell", ebb_prompt_shell, ebb_prompt_shell_end },
    { "summary", ebb_prompt_summary, ebb_prompt_summary_end },
    { "teacher", ebb_prompt_teacher, ebb_prompt_teacher_end },
    { "translator", ebb_prompt_translator, ebb_prompt_translator_end },
    { "writer", ebb_prompt_writer, ebb_prompt_writer_end },
};

enum { N_SHIPPED = sizeof shipped / sizeof shipped[0] };

static const struct shipped *find_shipped(const char *name)
{
    for (size_t i = 0; i < N_SHIPPED; i++)
        if (strcmp(shipped[i].name, name) == 0)
            return &shipped[i];
    return NULL;
}

static bool is_prompt_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void trim_prompt(ebb_buf *b, size_t from)
{
    size_t n = from;

    while (b->len > from && is_prompt_blank(b->data[b->len - 1]))
        ebb_buf_remove(b, b->len - 1, 1);
    while (n < b->len && is_prompt_blank(b->data[n]))
        n++;
    ebb_buf_remove(b, from, n - from);
}

ebb_status ebb_system_prompt_read(const char *dir, const char *name, ebb_buf *out, ebb_error *err)
{
    const struct shipped *s = find_shipped(name);
    size_t from = out->len;
    ebb_buf path = { 0 };
    ebb_status st = EBB_NOTFOUND;

    if (!*name || *name == '.' || strchr(name, '/'))
        return EBB_FAIL(err, EBB_USAGE, "a system prompt's name is a word, like brief");
    if (dir && ebb_buf_addf(&path, "%s/%s.txt", dir, name))
        st = ebb_file_slurp_kept(path.data, MAX_BYTES, out, err);
    ebb_buf_fini(&path);
    if (st == EBB_NOTFOUND && s)
        st = ebb_buf_add(out, s->text, (size_t)(s->end - s->text)) ? EBB_OK
                                                                   : EBB_FAIL(err, EBB_NOMEM, "no memory for a prompt");
    else if (st == EBB_NOTFOUND)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is no system prompt '%s'%s%s", name,
                        dir ? "; yours are NAME.txt in " : "", dir ? dir : "");
    if (st == EBB_OK)
        trim_prompt(out, from);
    return st;
}

void ebb_system_prompt_each(const char *dir, void (*fn)(void *arg, const char *name), void *arg)
{
    bool is_listed[N_SHIPPED] = { false };
    DIR *d = dir ? opendir(dir) : NULL;

    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n <= 4 || e->d_name[0] == '.' || strcmp(e->d_name + n - 4, ".txt") != 0)
            continue;
        e->d_name[n - 4] = '\0';
        const struct shipped *s = find_shipped(e->d_name);
        if (s)
            is_listed[s - shipped] = true;
        fn(arg, e->d_name);
    }
    if (d)
        closedir(d);
    for (size_t i = 0; i < N_SHIPPED; i++)
        if (!is_listed[i])
            fn(arg, shipped[i].name);
}
