/* Code blocks by the numbers that the margin shows (render.h). */
#include "text/render_priv.h"

typedef struct hunt {
    unsigned long left;          /* code blocks to pass, the wanted one included */
    bool          is_counted, is_found;
    size_t        steps;         /* of md4c so far */
    ebb_buf      *out;
} hunt;

static int hunt_enter(MD_BLOCKTYPE type, void *detail, void *arg)
{
    hunt *h = arg;

    h->is_counted = type == MD_BLOCK_CODE && ((MD_BLOCK_CODE_DETAIL *)detail)->fence_char != 0;
    if (h->is_counted)
        h->is_found = h->left-- == 1 || h->is_found;
    return 0;
}

static int hunt_leave(MD_BLOCKTYPE type, void *detail, void *arg)
{
    hunt *h = arg;

    (void)detail;
    return type == MD_BLOCK_CODE && h->is_found;     /* stops the parser */
}

static int hunt_span(MD_SPANTYPE type, void *detail, void *arg)
{
    (void)type;
    (void)detail;
    (void)arg;
    return 0;
}

static int hunt_text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE n, void *arg)
{
    hunt *h = arg;

    (void)type;
    if (h->is_found && h->is_counted)
        ebb_buf_add(h->out, s, n);
    return 0;
}

static bool hunt_in_prose(hunt *h, const char *s, size_t n)
{
    static const MD_PARSER hunter = { .flags = MD_FLAG_TABLES, .enter_block = hunt_enter, .leave_block = hunt_leave,
                                      .enter_span = hunt_span, .leave_span = hunt_span, .text = hunt_text };
    ebb_text_range inside = ebb_render_inside(s, n);

    ebb_md4c_parse(s + inside.begin, inside.end - inside.begin, &hunter, h, &h->steps);
    return h->is_found;
}

bool ebb_render_code_block(const char *s, size_t n, unsigned long nth, ebb_buf *out)
{
    ebb_md_blocks blocks = { 0 };
    ebb_md_block block;
    hunt h = { .left = nth, .out = out };
    bool is_open = false;

    while (nth > 0 && ebb_md_blocks_next(&blocks, s, n, true, &block)) {
        if (block.kind != EBB_MD_BLOCK_LINE && is_open)
            return true;
        if (block.kind == EBB_MD_BLOCK_PROSE && hunt_in_prose(&h, s + block.start, block.end - block.start))
            return true;
        if (block.kind == EBB_MD_BLOCK_OPEN)
            is_open = h.left-- == 1;
        if (block.kind == EBB_MD_BLOCK_LINE && is_open) {
            ebb_buf_add(out, s + block.start, block.end - block.start);
            ebb_buf_addc(out, '\n');
        }
    }
    return is_open;
}
