/* What a download shows (cmd_pull.h). */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cmd_pull.h"
#include "json/json_text.h"
#include "models/suggestions.h"

#define LOG_S 10.0               /* between lines where nothing can be rewritten */

/* -- The line -------------------------------------------------------------------------------- */

void ebb_pull_line_begin(ebb_pull_line *l, const ebb_args *a)
{
    *l = (ebb_pull_line){ .is_on = ebb_cli_progress(a), .is_terminal = isatty(STDERR_FILENO), .share = -1,
                          .is_json = a->json_lines };
}

static unsigned terminal_columns(void)
{
    struct winsize ws;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20 ? ws.ws_col : 80;
}

void ebb_pull_line_clear(ebb_pull_line *l)
{
    if (l->n_shown)
        fprintf(stderr, "\r%*s\r", (int)l->n_shown, "");
    l->n_shown = 0;
}

void ebb_pull_line_say(ebb_pull_line *l, const char *text)
{
    if (l->is_json)
        l->is_unread |= !ebb_pull_lines_notice(text);
    if (!l->is_on || l->is_json)
        return;
    ebb_pull_line_clear(l);
    fprintf(stderr, "%s\n", text);
}

/* "0:41", "3 min", "1 h 20 min" in out; returns it. */
static const char *duration_text(double s, char out[24])
{
    unsigned t = s < 360000 ? (unsigned)(s + 0.5) : 360000;

    if (t < 60)
        snprintf(out, 24, "%u s", t);
    else if (t < 600)
        snprintf(out, 24, "%u:%02u min", t / 60, t % 60);
    else if (t < 5400)
        snprintf(out, 24, "%u min", (t + 30) / 60);
    else
        snprintf(out, 24, "%u h %02u min", t / 3600, t % 3600 / 60);
    return out;
}

/* All but the name. */
static void add_figures(ebb_buf *out, const ebb_download_progress *p)
{
    char done[16], total[16], left[24];

    if (p->is_check)
        ebb_buf_adds(out, " checking what is here");
    if (p->total != UINT64_MAX)
        ebb_buf_addf(out, " %3.0f %%  %s of %s", p->total ? 100.0 * (double)p->done / (double)p->total : 100.0,
                     ebb_size_text(p->done, done), ebb_size_text(p->total, total));
    else
        ebb_buf_addf(out, "  %s", ebb_size_text(p->done, done));
    if (p->bytes_s >= 0)
        ebb_buf_addf(out, p->bytes_s < 10e6 ? "  %.1f MB/s" : "  %.0f MB/s", p->bytes_s / 1e6);
    if (p->left_s >= 0)
        ebb_buf_addf(out, "  %s left", duration_text(p->left_s, left));
}

void ebb_pull_line_move(ebb_pull_line *l, const char *name, unsigned i_file, unsigned n_files,
                        const ebb_download_progress *p)
{
    ebb_buf figures = { 0 }, line = { 0 };
    double now = ebb_clock_s();
    unsigned wide = l->is_terminal ? terminal_columns() - 1 : 200, room;

    l->share = p->total != UINT64_MAX && p->total ? (double)p->done / (double)p->total : -1;
    if (l->is_json)
        l->is_unread |= !ebb_pull_lines_progress(name, i_file, n_files, p);
    if (!l->is_on || l->is_json || (!l->is_terminal && now - l->said_at < LOG_S && p->done != p->total))
        return;
    l->said_at = now;
    if (n_files > 1)
        ebb_buf_addf(&figures, " %u/%u", i_file + 1, n_files);
    add_figures(&figures, p);
    room = wide > figures.len ? wide - (unsigned)figures.len : 0;
    /* The end of a name tells files apart.  It is ASCII as a rule; a cut in another character is a question mark. */
    if (strlen(name) <= room)
        ebb_buf_adds(&line, name);
    else if (room > 4)
        ebb_buf_addf(&line, "..%s", name + strlen(name) - (room - 2));
    ebb_buf_add(&line, ebb_buf_text(&figures), figures.len < wide ? figures.len : wide);
    if (l->is_terminal)
        fprintf(stderr, "\r%s%*s", ebb_buf_text(&line), l->n_shown > line.len ? (int)(l->n_shown - line.len) : 0, "");
    else
        fprintf(stderr, "%s\n", ebb_buf_text(&line));
    l->n_shown = l->is_terminal ? (unsigned)line.len : 0;
    fflush(stderr);
    ebb_buf_fini(&figures);
    ebb_buf_fini(&line);
}

/* -- The list -------------------------------------------------------------------------------- */

static const ebb_pull_variant *find_suiting(const ebb_pull *p)
{
    for (size_t i = 0; i < p->n_variants; i++)
        if (p->variants[i].is_recommended)
            return &p->variants[i];
    return NULL;
}

static void print_offer(const ebb_pull *p, size_t i)
{
    const ebb_pull_variant *o = &p->variants[i];
    const char *name = ebb_pull_variant_spec(p->variants, p->n_variants, i);
    char size[16], speed[16];

    printf("%c %10s  ", o->is_recommended ? '*' : ' ', ebb_size_text(o->n_bytes, size));
    if (o->is_whole)
        printf("%-9s %7s  ", ebb_tier_name(o->rating.plan.tier),
               ebb_speed_text(o->rating.plan.predicted_decode_tok_s, speed));
    else
        printf("%-18s ", "parts are missing");
    ebb_cli_print_name(name);
    if (o->n_parts > 1)
        printf("  (%u files)", o->n_parts);
    putchar('\n');
}

void ebb_pull_print_list(const ebb_pull *p)
{
    const ebb_pull_variant *best = find_suiting(p);
    ebb_buf command = { 0 };
    char size[16];

    printf("%s: %zu model%s; this machine has %s of memory, %u CPU%s\n\n  %10s  %-9s %7s  %s\n",
           p->source.repo, p->n_variants,
           p->n_variants == 1 ? "" : "s", ebb_size_text(p->machine.available_bytes, size), p->machine.n_cpus,
           p->machine.n_cpus == 1 ? "" : "s", "size", "tier", "~tok/s", "type");
    for (size_t i = 0; i < p->n_variants; i++)
        print_offer(p, i);
    if (p->list.n_rejected)
        printf("%zu file%s with names or sizes that cannot be used\n", p->list.n_rejected,
               p->list.n_rejected == 1 ? "" : "s");
    ebb_pull_add_command(&command, &p->source, best ? ebb_pull_variant_spec(p->variants, p->n_variants,
                                                                            (size_t)(best - p->variants)) : "TYPE");
    printf(best ? "\n* suits this machine:  " : "\n");
    ebb_cli_print_name(ebb_buf_text(&command));
    putchar('\n');
    ebb_buf_fini(&command);
}

int ebb_pull_print_list_json(const ebb_pull *p)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->n_variants; i++) {
        const ebb_pull_variant *o = &p->variants[i];
        json_t *item = json_object();

        json_object_set_new(item, "name", ebb_json_text_or_null(o->parts[0].name));
        json_object_set_new(item, "pull", ebb_json_text_or_null(ebb_pull_variant_spec(p->variants, p->n_variants, i)));
        json_object_set_new(item, "type", ebb_json_text_or_null(o->type));
        json_object_set_new(item, "bytes", json_integer((json_int_t)o->n_bytes));
        json_object_set_new(item, "files", json_integer(o->n_parts));
        json_object_set_new(item, "is_whole", json_boolean(o->is_whole));
        json_object_set_new(item, "estimated_tier", json_string(ebb_tier_name(o->rating.plan.tier)));
        json_object_set_new(item, "estimated_decode_tok_s", json_real(o->rating.plan.predicted_decode_tok_s));
        json_object_set_new(item, "suits", json_boolean(o->is_recommended));
        json_array_append_new(list, item);
    }
    return ebb_cli_print_json(json_pack("{s:s, s:o}", "repository", p->source.repo, "models", list));
}

/* -- What to get ------------------------------------------------------------------------------- */

static json_t *suggestion_json(const ebb_suggestion *s, const ebb_plan *plan, bool suits)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:f, s:b}", "name", s->name, "pull", s->source, "what", s->what,
                     "bytes", (json_int_t)s->file_bytes, "estimated_tier", ebb_tier_name(plan->tier),
                     "estimated_decode_tok_s", plan->predicted_decode_tok_s, "suits", suits);
}

static void print_suggestion(const ebb_suggestion *s, const ebb_plan *plan, bool suits)
{
    char speed[16];

    printf("%c %5.1f GB  %-9s %7s  %-16s %s\n%30sebb pull %s\n", suits ? '*' : ' ', s->file_bytes / 1e9,
           ebb_tier_name(plan->tier), ebb_speed_text(plan->predicted_decode_tok_s, speed), s->name, s->what,
           "", s->source);
}

int ebb_pull_print_suggestions(const ebb_machine *machine, bool as_json)
{
    ebb_suggestion best, s;
    ebb_plan plan = { 0 };
    json_t *list = as_json ? json_array() : NULL;
    char date[16], size[16];
    bool has_best = ebb_suggestion_best(machine, &best, &plan);

    if (!as_json)
        printf("Models of %s for %s of memory, %u CPU%s; what does not fit is read from disk for every token\n\n"
               "  %8s  %-9s %7s\n", ebb_suggestions_date(date), ebb_size_text(machine->available_bytes, size),
               machine->n_cpus, machine->n_cpus == 1 ? "" : "s", "file", "tier", "~tok/s");
    for (size_t i = 0; ebb_suggestion_at(i, &s); i++) {
        bool suits = has_best && strcmp(s.source, best.source) == 0;

        ebb_suggestion_estimate(&plan, s.file_bytes, s.pass_bytes, s.context_bytes, machine);
        if (as_json)
            json_array_append_new(list, suggestion_json(&s, &plan, suits));
        else
            print_suggestion(&s, &plan, suits);
    }
    if (as_json)
        return ebb_cli_print_json(json_pack("{s:s, s:o}", "date", ebb_suggestions_date(date), "models", list));
    if (has_best)
        printf("\n* suits this machine:  ebb pull %s\n", best.source);
    return EBB_EXIT_OK;
}

/* -- The plan and the end -------------------------------------------------------------------- */

void ebb_pull_say_plan(ebb_pull_line *l, const ebb_model *m, const ebb_plan *plan)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    ebb_buf raw = { 0 }, text = { 0 };
    char size[16], speed[16], kv[24];

    ebb_buf_addf(&raw, "%s: %s %s, %u layers, %s\n", info->name, info->arch, info->quantization, info->n_layers,
                 ebb_size_text(info->weight_bytes, size));
    ebb_buf_addf(&raw, "on this machine: tier %s, %u of %u layers in memory, context %u, KV %s",
                 ebb_tier_name(plan->tier), plan->n_resident, plan->n_layers, plan->n_ctx, ebb_plan_kv_text(plan, kv));
    if (plan->fits)
        ebb_buf_addf(&raw, ", about %s tok/s", ebb_speed_text(plan->predicted_decode_tok_s, speed));
    if (plan->fits && plan->stream_bytes)
        ebb_buf_addf(&raw, "; %s are read from disk for each token", ebb_size_text(plan->stream_bytes, size));
    if (ebb_utf8_add_visible(&text, ebb_buf_text(&raw), raw.len, false))
        ebb_pull_line_say(l, ebb_buf_text(&text));
    ebb_buf_fini(&raw);
    ebb_buf_fini(&text);
}

static int print_done_json(const ebb_pull_done *d)
{
    return ebb_cli_print_json(json_pack("{s:o, s:I, s:i, s:b, s:b, s:o, s:I, s:I, s:f}", "path",
                                        ebb_json_text_or_null(ebb_buf_text(&d->path)),
        "bytes", (json_int_t)d->n_bytes, "files", (int)d->n_files, "was_there", (int)d->was_there, "verified",
        (int)d->is_verified,
        "sha256", d->sha256[0] && d->n_files == 1 ? json_string(d->sha256) : json_null(), "resumed_bytes",
        (json_int_t)d->n_resumed, "fetched_bytes", (json_int_t)d->n_fetched, "seconds", d->seconds));
}

int ebb_pull_print_done(const ebb_args *a, const ebb_pull_done *d)
{
    const char *name = ebb_text_file_name(ebb_buf_text(&d->path));
    char size[16], took[24];

    if (a->json_lines)
        return ebb_pull_lines_done(d) ? EBB_EXIT_OK : EBB_EXIT_FAILED;
    if (a->json)
        return print_done_json(d);
    if (!isatty(STDOUT_FILENO)) {                /* for "$(ebb pull ...)" */
        puts(ebb_buf_text(&d->path));
        return EBB_EXIT_OK;
    }
    ebb_cli_print_name(ebb_buf_text(&d->path));
    if (d->was_there)
        printf(" is already here, %s\n", ebb_size_text(d->n_bytes, size));
    else
        printf(": %s in %s%s\n", ebb_size_text(d->n_bytes, size), duration_text(d->seconds, took),
               d->is_verified ? ", SHA-256 matches the server's" : ", of the right size; the server gives no checksum");
    fputs("talk to it:  ebb -m ", stdout);
    ebb_cli_print_name(name);
    putchar('\n');
    return EBB_EXIT_OK;
}
