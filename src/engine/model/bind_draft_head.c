/* The draft head of a file (net.h, bind.h). */
#include "base/log.h"
#include "model/bind.h"

/* A norm of its own, or the one before the output again. */
static void bind_head_norm(ebb_binder *b, ebb_norm *norm)
{
    bool is_own = ebb_bind_has(b, "nextn.shared_head_norm");

    if (!is_own)
        b->layer = EBB_NO_LAYER;
    ebb_bind_norm(b, norm,
                  is_own           ? "nextn.shared_head_norm"
                  : b->output_norm ? b->output_norm
                                   : "output_norm",
                  b->net->n_embd);
}

static void bind_head(ebb_binder *b, void (*bind)(ebb_binder *b, ebb_layer *l))
{
    ebb_net *net = b->net;
    ebb_draft_head *h = &net->draft_head;
    uint32_t n_both = ebb_bind_product(b, ".embedding_length", 2, net->n_embd, EBB_MAX_WIDTH);

    ebb_bind_norm(b, &h->token_norm, "nextn.enorm", net->n_embd);
    ebb_bind_norm(b, &h->state_norm, "nextn.hnorm", net->n_embd);
    ebb_bind_matrix(b, &h->join, "nextn.eh_proj", net->n_embd, n_both);
    bind(b, &net->layers[net->n_layers]);
    ebb_bind_check_layer(b, &net->layers[net->n_layers]);
    h->embd = net->embd;
    if (ebb_bind_has(b, "nextn.embed_tokens"))
        h->embd = ebb_bind_rows(b, "nextn.embed_tokens", net->n_vocab, net->n_embd);
    if (ebb_bind_has(b, "nextn.shared_head_head"))
        ebb_bind_matrix(b, &h->own_output, "nextn.shared_head_head", net->n_vocab, net->n_embd);
    bind_head_norm(b, &h->norm);
}

void ebb_bind_draft_head(ebb_binder *b, void (*bind)(ebb_binder *b, ebb_layer *l))
{
    ebb_net *net = b->net;
    ebb_draft_head *h = &net->draft_head;
    ebb_error *err = b->err, why = { 0 };

    h->first_matrix = net->n_matrices;
    h->first_vector = net->n_vectors;
    h->first_expert = net->n_experts;
    b->layer = net->n_layers;
    b->err = &why;
    bind_head(b, bind);
    b->err = err;
    b->layer = EBB_NO_LAYER;
    if (b->st == EBB_OK)
        return;
    ebb_log("model", "the draft head is left out: %s", why.msg);
    net->has_draft_head = false;
    net->n_matrices = h->first_matrix;
    net->n_vectors = h->first_vector;
    net->n_experts = h->first_expert;
    b->st = EBB_OK;
}
