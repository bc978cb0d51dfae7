"""The guide's network: the Llama architecture at a small size, in torch."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from bag import LOUD

SHAPE = dict(n_layer=4, n_embd=256, n_head=8, n_head_kv=4, n_ff=704, n_ctx=2048, rope_base=10000.0, eps=1e-5)
N_WORD = 120                # dimensions of an embedding that are bag.py's words
MIDDLE = 1                  # the layer behind which it should be clear what was asked


class Norm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    """Turns each pair of neighbours (2i, 2i+1) by its angle."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, n_embd, n_head, n_head_kv, n_ff, eps, **_):
        super().__init__()
        self.n_head, self.n_kv, self.d = n_head, n_head_kv, n_embd // n_head
        self.attn_norm, self.ffn_norm = Norm(n_embd, eps), Norm(n_embd, eps)
        self.attn_q = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_k = nn.Linear(n_embd, self.n_kv * self.d, bias=False)
        self.attn_v = nn.Linear(n_embd, self.n_kv * self.d, bias=False)
        self.attn_output = nn.Linear(n_embd, n_embd, bias=False)
        self.ffn_gate = nn.Linear(n_embd, n_ff, bias=False)
        self.ffn_up = nn.Linear(n_embd, n_ff, bias=False)
        self.ffn_down = nn.Linear(n_ff, n_embd, bias=False)

    def attend(self, x, cos, sin, mask, past):
        B, T, E = x.shape
        heads = lambda y, n: y.view(B, T, n, self.d).transpose(1, 2)
        q = rotate(heads(self.attn_q(x), self.n_head), cos, sin)
        k = rotate(heads(self.attn_k(x), self.n_kv), cos, sin)
        v = heads(self.attn_v(x), self.n_kv)
        if past is not None:
            k, v = (torch.cat(p, 2) for p in zip(past, (k, v))) if past[0] is not None else (k, v)
        group = self.n_head // self.n_kv
        s = q @ k.repeat_interleave(group, 1).transpose(-1, -2) / math.sqrt(self.d)
        w = torch.softmax(s.float() + mask, -1).to(v.dtype)
        y = w @ v.repeat_interleave(group, 1)
        return self.attn_output(y.transpose(1, 2).reshape(B, T, E)), (k, v)

    def forward(self, x, cos, sin, mask, past=None, only=None):
        """only: a mask of the positions to go on with behind the attention; the result is then rows of those."""
        y, past = self.attend(self.attn_norm(x), cos, sin, mask, past)
        x = x + y if only is None else (x + y)[only]
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h)), past


class Net(nn.Module):
    def __init__(self, n_vocab, shape=SHAPE):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(n_vocab, shape["n_embd"])
        self.blk = nn.ModuleList(Layer(**shape) for _ in range(shape["n_layer"]))
        self.output_norm = Norm(shape["n_embd"], shape["eps"])
        self.output = nn.Linear(shape["n_embd"], n_vocab, bias=False)
        d = shape["n_embd"] // shape["n_head"]
        self.register_buffer("freq", shape["rope_base"] ** (-torch.arange(0, d, 2).float() / d), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                deep = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=0.04 / (math.sqrt(2 * shape["n_layer"]) if deep else 1))
        nn.init.normal_(self.token_embd.weight, std=0.3)

    @torch.no_grad()
    def begin_with(self, bag, head, last):
        """What a bag of words learned (bag.py): the first layer begins as that bag.  One head of each group looks at all
        tokens alike and puts the mean of their words behind the embedding's own half, where `head` reads it; nothing else
        is added up to there.  last: the token that an answer is begun behind, whose own dimensions are there as well.
        Returns (weights, mask) pairs of what is to stay as it is while the rest learns."""
        n, half = bag.words.weight.shape[1], self.shape["n_embd"] // 2
        first, d, group = self.blk[0], self.blk[0].d, self.blk[0].n_head // self.blk[0].n_kv
        self.token_embd.weight[:, :n] = bag.words.weight
        self.token_embd.weight[:, n:half] = LOUD
        first.attn_v.weight.zero_()
        first.attn_v.weight[:, :half] = torch.eye(half)
        for layer in self.blk[:MIDDLE + 1]:
            layer.attn_output.weight.zero_()
            layer.ffn_down.weight.zero_()
        even = torch.zeros(self.shape["n_embd"], dtype=torch.bool)
        for kv in range(first.n_kv):
            at = kv * group * d
            even[at:at + d] = True
            first.attn_output.weight[half + kv * d:half + kv * d + d, at:at + d] = torch.eye(d)
        first.attn_q.weight[even] = 0
        head.weight.zero_()
        head.weight[:, half:half + n] = bag.facts.weight
        head.bias.copy_(bag.facts.bias - bag.facts.weight @ self.token_embd.weight[last, half:half + n])
        own = torch.zeros_like(self.token_embd.weight, dtype=torch.bool)
        own[:, :half] = True
        return [(self.token_embd.weight, own), (first.attn_v.weight, torch.ones_like(first.attn_v.weight, dtype=torch.bool)),
                (first.attn_q.weight, even[:, None].expand_as(first.attn_q.weight)),
                (first.attn_output.weight, even[None].expand_as(first.attn_output.weight)),
                (first.attn_norm.weight, torch.ones_like(first.attn_norm.weight, dtype=torch.bool))]

    def half(self, ids, pos):
        """What stands behind the layer MIDDLE: B x T x n_embd."""
        cos, sin, mask = self.angles(pos, 0)
        x = self.token_embd(ids)
        for layer in self.blk[:MIDDLE + 1]:
            x, _ = layer(x, cos, sin, mask)
        return x

    def angles(self, pos, n_past):
        """Cosines and sines of the positions, and the mask behind n_past tokens."""
        a, T = (pos.unsqueeze(-1).float() * self.freq).unsqueeze(1), pos.shape[1]
        return a.cos(), a.sin(), torch.full((T, n_past + T), float("-inf")).triu(1 + n_past)

    def forward(self, ids, pos, past=None, only=None):
        """ids, pos: B x T.  Returns the last norm's output, at the positions of the mask `only` if there is one;
        `logits` makes scores of it.
        past: a list of one (k, v) per layer, extended in place; then B is 1 and pos counts up."""
        cos, sin, mask = self.angles(pos, past[0][0].shape[2] if past and past[0][0] is not None else 0)
        x = self.token_embd(ids)
        for i, layer in enumerate(self.blk):
            x, kept = layer(x, cos, sin, mask, past[i] if past else None, only if i + 1 == len(self.blk) else None)
            if past:
                past[i] = kept
            if i == MIDDLE and self.training:
                self.middle = x
        return self.output_norm(x)

    def logits(self, h):
        return self.output(h)


@torch.no_grad()
def answer(net, vocabulary, prompt, n=200):
    """The greedy continuation of a rendered prompt up to <|im_end|>."""
    end = vocabulary.id["<|im_end|>"]
    ids, out, past = vocabulary.encode(prompt), [], [(None, None)] * net.shape["n_layer"]
    at = 0
    while len(out) < n:
        h = net(torch.tensor([ids]), torch.arange(at, at + len(ids))[None], past)
        at += len(ids)
        t = int(net.logits(h[0, -1]).argmax())
        if t == end:
            break
        out.append(t)
        ids = [t]
    return vocabulary.decode(out)
