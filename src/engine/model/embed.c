/* Rows of tensors that are read by row: token_embd and its like (forward.h). */
#include "model/forward.h"

ebb_status ebb_run_read_row(ebb_forward *r, const ebb_gguf_tensor *t, uint64_t row, uint32_t n, float *out,
                            ebb_error *err)
{
    size_t n_bytes = (size_t)ebb_type_row_bytes((ebb_type)t->type, n);
    void *raw = ebb_forward_floats(r, 0);
    ebb_status st = ebb_res_read(r->res, t->part, t->offset + row * n_bytes, raw, n_bytes, err);

    if (st == EBB_OK)
        r->kern->dequantize[t->type](raw, n, out);
    return st;
}

ebb_status ebb_run_embed(ebb_forward *r, const ebb_gguf_tensor *embd, ebb_token id, float *x, ebb_error *err)
{
    const ebb_net *net = r->net;
    ebb_status st;

    if (id < 0 || (uint32_t)id >= net->n_vocab)
        return EBB_FAIL(err, EBB_USAGE, "token %d is not in the vocabulary of %u", (int)id, net->n_vocab);
    st = ebb_run_read_row(r, embd, (uint64_t)id, net->n_embd, x, err);
    if (st == EBB_OK && net->embd_scale != 1.0f)
        r->kern->scale(x, net->embd_scale, net->n_embd);
    if (st == EBB_OK && net->embd_is_normed)
        ebb_norm_row(r, &(ebb_norm){ .is_on = true }, x, x, net->n_embd);
    return st;
}
