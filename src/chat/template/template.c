#include "template/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "template/ast.h"
#include "template/context.h"
#include "template/interp.h"
#include "template/strings.h"

/* Bytes of a source and of its tree.  The largest tree of those that models are published with takes 0.9 MB. */
enum { SOURCE_MAX = 4 << 20, TREE_MAX = 32 << 20 };

struct ebb_template {
    tpl_heap  heap;              /* the tree and its strings */
    tpl_node *root;
};

/* The machine's failure as an error of ours. */
static ebb_status report_vm_failure(const tpl_vm *vm, ebb_error *err)
{
    const tpl_str *m = vm->message;
    int n = m ? (int)(m->n < 180 ? m->n : 180) : 0;
    const char *text = m ? m->p : "";

    if (!m)
        return EBB_FAIL(err, EBB_NOMEM, "chat template: out of memory");
    if (vm->raised)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "the chat template refuses: %.*s", n, text);
    return EBB_FAIL(err, vm->code, "chat template, line %u: %.*s", vm->line, n, text);
}

/* -- Compiling ---------------------------------------------------------------------- */

/* Valid UTF-8 with LF as line end, without the last line end; false: out of memory. */
static bool clean_source(const char *source, size_t n, ebb_buf *out)
{
    size_t k = 0;

    if (!ebb_utf8_add_valid(out, source, n) || !ebb_buf_reserve(out, 1))
        return false;
    for (size_t i = 0; i < out->len; i++) {
        if (out->data[i] == '\r' && i + 1 < out->len && out->data[i + 1] == '\n')
            continue;
        out->data[k++] = out->data[i] == '\r' ? '\n' : out->data[i];
    }
    out->len = k > 0 && out->data[k - 1] == '\n' ? k - 1 : k;
    return true;
}

static bool parse_template(tpl_vm *vm, ebb_template *t, const ebb_buf *source)
{
    if (setjmp(vm->jump))
        return false;
    t->root = ebb_tpl_parse(vm, ebb_buf_text(source), source->len);
    return true;
}

ebb_status ebb_template_compile(const char *source, size_t n, ebb_template **out, ebb_error *err)
{
    tpl_vm *vm = calloc(1, sizeof *vm);
    ebb_template *t = calloc(1, sizeof *t);
    ebb_buf clean = { 0 };
    ebb_status st = EBB_OK;

    *out = NULL;
    if (n > SOURCE_MAX)
        st = EBB_FAIL(err, EBB_LIMIT, "the chat template has %zu bytes; at most %d are read", n, SOURCE_MAX);
    else if (!vm || !t || !clean_source(source, n, &clean))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the chat template");
    if (st == EBB_OK) {
        vm->max_steps = UINT64_MAX;
        vm->max_output_bytes = SOURCE_MAX;
        vm->heap.max_bytes = TREE_MAX;
        if (!parse_template(vm, t, &clean))
            st = report_vm_failure(vm, err);
        t->heap = vm->heap;
    }
    ebb_buf_fini(&clean);
    free(vm);
    if (st != EBB_OK) {
        ebb_template_free(t);
        t = NULL;
    }
    *out = t;
    return st;
}

void ebb_template_free(ebb_template *t)
{
    if (t)
        ebb_tpl_heap_free(&t->heap);
    free(t);
}

/* -- Rendering ------------------------------------------------------------------------ */

static void vm_init(tpl_vm *vm, const ebb_template_opts *o)
{
    time_t now = time(NULL);

    vm->max_steps = o->max_steps ? o->max_steps : 50000000;
    vm->until_ns = ebb_clock_thread_ns() + (o->max_ms ? o->max_ms : 500) * (uint64_t)1000000;
    vm->heap.max_bytes = o->max_memory_bytes ? o->max_memory_bytes : (size_t)192 << 20;
    vm->max_output_bytes = o->max_output_bytes ? o->max_output_bytes : (size_t)64 << 20;
    vm->tracks_taint = o->attribute;
    vm->stop = o->stop;
    vm->stop_arg = o->stop_arg;
    if (o->now)
        vm->now = *o->now;
    else
        localtime_r(&now, &vm->now);
}

static bool render_template(tpl_vm *vm, const ebb_template *t, const json_t *context, bool add_prompt, tpl_sb *text)
{
    static const tpl_str flag = { .p = "add_generation_prompt", .n = 21, .n_cp = 21 };
    tpl_scope root, top;

    if (setjmp(vm->jump))
        return false;
    ebb_tpl_sb_init(text, vm);
    vm->out = text;
    ebb_tpl_scope_push(vm, &root, NULL);
    ebb_tpl_context(vm, context);
    ebb_tpl_scope_set(vm, &flag, ebb_tpl_bool(add_prompt));
    ebb_tpl_scope_push(vm, &top, &root);
    ebb_tpl_exec(vm, t->root);
    return true;
}

static bool add_range(ebb_template_result *r, size_t *cap, size_t begin, size_t end, uint32_t message)
{
    ebb_template_range *grown = ebb_grow(r->ranges, r->n_ranges, cap, sizeof *grown);

    if (!grown)
        return false;
    r->ranges = grown;
    r->ranges[r->n_ranges++] = (ebb_template_range){ .begin = begin, .end = end, .message = message };
    return true;
}

static bool extract_ranges(ebb_template_result *r, const tpl_sb *text)
{
    size_t cap = 0;

    for (size_t i = 0, from; text->taint && i < text->n;) {
        for (from = i; i < text->n && text->taint[i] == text->taint[from]; i++)
            ;
        if (text->taint[from] && !add_range(r, &cap, from, i, text->taint[from] - 1u))
            return false;
    }
    return true;
}

ebb_status ebb_template_render(const ebb_template *t, const json_t *context, const ebb_template_opts *opts,
                               ebb_template_result *out, ebb_error *err)
{
    static const ebb_template_opts defaults = { 0 };
    tpl_vm *vm = calloc(1, sizeof *vm);
    ebb_status st = EBB_OK;
    bool capacity = true;
    tpl_sb text = { 0 };

    memset(out, 0, sizeof *out);
    if (!vm)
        return EBB_FAIL(err, EBB_NOMEM, "chat template: out of memory");
    opts = opts ? opts : &defaults;
    vm_init(vm, opts);
    if (!json_is_object(context)) {
        st = EBB_FAIL(err, EBB_FORMAT, "the variables of a chat template are a JSON object");
    } else if (render_template(vm, t, context, !opts->no_generation_prompt, &text)) {
        capacity = ebb_buf_add(&out->text, text.n ? text.p : "", text.n) && extract_ranges(out, &text);
    } else {
        st = report_vm_failure(vm, err);
        out->raised = vm->raised;
        if (vm->raised)
            capacity = ebb_buf_add(&out->message, vm->message->p, vm->message->n);
    }
    if (!capacity)
        st = EBB_FAIL(err, EBB_NOMEM, "chat template: out of memory");
    ebb_tpl_heap_free(&vm->heap);
    free(vm);
    return st;
}

void ebb_template_result_fini(ebb_template_result *r)
{
    ebb_buf_fini(&r->text);
    ebb_buf_fini(&r->message);
    free(r->ranges);
    memset(r, 0, sizeof *r);
}
