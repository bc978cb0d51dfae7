"""The network of qwen35 at a small size, in torch: delta net layers, a layer of attention after each few, and a draft
head (MTP layer, `nextn`).  The names of its weights are those of a GGUF file."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from net import Norm                               # of models/, which train_pair.py has put on the path

CHUNK = 32                  # columns of the delta net that are computed at once


def matrix(n_in, n_out):
    return nn.Linear(n_in, n_out, bias=False)


# -- Delta net -------------------------------------------------------------------------

def delta_rule(q, k, v, log_decay, strength):
    """Gated delta rule, in chunks (Yang et al. 2024, Gated Delta Networks).

    q, k: B H T S, k of unit length; v: B H T S; log_decay, strength: B H T.  For each t:
    state *= decay; state += k (strength (v - k state)); out = q state.  The updates u of a chunk that begins at
    state S are the solution of a triangular system: u_t = strength (v_t - G_t k_t S - sum_i<t G_t/G_i (k_t k_i) u_i),
    where G_t is the product of the decays up to t.
    """
    B, H, T, S = q.shape
    n = T // CHUNK
    q, k, v = (x.reshape(B, H, n, CHUNK, S) for x in (q, k, v))
    g = log_decay.reshape(B, H, n, CHUNK).cumsum(-1)
    b = strength.reshape(B, H, n, CHUNK, 1)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril()
    decay = (g.unsqueeze(-1) - g.unsqueeze(-2)).masked_fill(~lower, float("-inf")).exp()
    a = -(b * (k @ k.transpose(-1, -2)) * decay).tril(-1)
    solve = torch.eye(CHUNK) + a                                # (1 - a)^-1 = (1 + a)(1 + a^2)(1 + a^4) ...
    for _ in range(int(math.log2(CHUNK)) - 1):
        a = a @ a
        solve = solve + solve @ a
    grown = g.exp().unsqueeze(-1)
    own, from_state = solve @ (b * v), solve @ (b * grown * k)
    scores, q_state = (q @ k.transpose(-1, -2)) * decay, q * grown
    k_end = k * (g[..., -1:] - g).exp().unsqueeze(-1)
    state, out = torch.zeros(B, H, S, S), []
    for i in range(n):
        u = own[:, :, i] - from_state[:, :, i] @ state
        out.append(q_state[:, :, i] @ state + scores[:, :, i] @ u)
        state = grown[:, :, i, -1:] * state + k_end[:, :, i].transpose(-1, -2) @ u
    return torch.stack(out, 2).reshape(B, H, T, S)


class DeltaNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.n_k, self.n_v, self.dim = s["n_head_delta_k"], s["n_head_delta_v"], s["dim_delta"]
        self.eps, E = s["eps"], s["n_embd"]
        inner = self.n_v * self.dim
        n_channels = 2 * self.n_k * self.dim + inner
        self.attn_qkv, self.attn_gate, self.ssm_out = matrix(E, n_channels), matrix(E, inner), matrix(inner, E)
        self.ssm_alpha, self.ssm_beta = matrix(E, self.n_v), matrix(E, self.n_v)
        self.ssm_conv1d = nn.Parameter(torch.randn(n_channels, 4) * 0.1 + torch.tensor([0, 0, 0, 1.0]))
        self.ssm_dt = nn.Parameter(torch.linspace(-5, -1, self.n_v))
        self.ssm_log_a = nn.Parameter(torch.linspace(0, 1, self.n_v))    # the file has a = -exp of it
        self.ssm_norm = Norm(self.dim, self.eps)

    def forward(self, h):
        B, T, _ = h.shape
        x = F.pad(self.attn_qkv(h).float(), (0, 0, 3, 0))
        x = F.silu(sum(x[:, j:j + T] * self.ssm_conv1d[:, j] for j in range(4)))
        heads = lambda y, n: y.reshape(B, T, n, self.dim).transpose(1, 2)
        q, k, v = x.split([self.n_k * self.dim] * 2 + [self.n_v * self.dim], -1)
        unit = lambda t: F.normalize(heads(t, self.n_k), dim=-1, eps=self.eps).repeat(1, self.n_v // self.n_k, 1, 1)
        log_decay = -F.softplus(self.ssm_alpha(h).float() + self.ssm_dt) * self.ssm_log_a.exp()
        strength = torch.sigmoid(self.ssm_beta(h).float())
        with torch.autocast("cpu", enabled=False):
            y = delta_rule(unit(q) / math.sqrt(self.dim), unit(k), heads(v, self.n_v),
                           log_decay.transpose(1, 2), strength.transpose(1, 2))
        z = self.attn_gate(h).reshape(B, T, self.n_v, self.dim)
        return self.ssm_out((self.ssm_norm(y.transpose(1, 2)) * F.silu(z)).reshape(B, T, -1))


# -- Attention -------------------------------------------------------------------------

def rotate(x, angles):
    """Turns the first elements of each head, those half of them apart.  angles: T x half."""
    n = angles.shape[-1]
    a, b, rest = x[..., :n], x[..., n:2 * n], x[..., 2 * n:]
    c, s = angles.cos(), angles.sin()
    return torch.cat((a * c - b * s, a * s + b * c, rest), -1)


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.n_head, self.n_kv, self.dim, E = s["n_head"], s["n_head_kv"], s["dim_head"], s["n_embd"]
        self.attn_q, self.attn_output = matrix(E, 2 * self.n_head * self.dim), matrix(self.n_head * self.dim, E)
        self.attn_k, self.attn_v = matrix(E, self.n_kv * self.dim), matrix(E, self.n_kv * self.dim)
        self.attn_q_norm, self.attn_k_norm = Norm(self.dim, s["eps"]), Norm(self.dim, s["eps"])
        freq = s["rope_base"] ** (-torch.arange(0, s["dim_rope"], 2).float() / s["dim_rope"])
        self.register_buffer("freq", freq, persistent=False)

    def forward(self, h, before=None):
        """before: of a draft head, (k, v) of its shallower depths, the first one first.  The last position is seen in
        this depth, the one before it in the depth before, and so on; all further ones in the first, but position 0,
        for which a head has no row."""
        B, T, _ = h.shape
        heads = lambda y, n: y.reshape(B, T, n, -1).transpose(1, 2)
        q, gate = heads(self.attn_q(h), self.n_head).split(self.dim, -1)
        turn = torch.arange(T).unsqueeze(-1) * self.freq
        q = rotate(self.attn_q_norm(q), turn)
        k = rotate(self.attn_k_norm(heads(self.attn_k(h), self.n_kv)), turn)
        kv = [*(before or ()), (k, heads(self.attn_v(h), self.n_kv).float())]
        score, share = torch.full((B, self.n_head, T, T), float("-inf")), self.n_head // self.n_kv
        back, last = torch.arange(T).unsqueeze(-1) - torch.arange(T), len(kv) - 1
        seen = [(back >= last) if i == 0 else (back == last - i) for i in range(len(kv))]
        for (k, _), where in zip(kv, seen):
            by_key = q @ k.repeat_interleave(share, 1).transpose(-1, -2) / math.sqrt(self.dim)
            score = torch.where(where, by_key, score)
        hidden = (back < 0) | ((before is not None) & (torch.arange(T) == 0)) | torch.isinf(score)
        w = torch.softmax(score.masked_fill(hidden, -1e30), -1)
        y = sum((w * where) @ v.repeat_interleave(share, 1) for (_, v), where in zip(kv, seen))
        return self.attn_output((y * torch.sigmoid(gate)).transpose(1, 2).reshape(B, T, -1)), kv[-1]


class Layer(nn.Module):
    def __init__(self, s, is_attention):
        super().__init__()
        E, n_ff = s["n_embd"], s["n_ff"]
        self.mix = Attention(s) if is_attention else DeltaNet(s)
        self.attn_norm, self.post_attention_norm = Norm(E, s["eps"]), Norm(E, s["eps"])
        self.ffn_gate, self.ffn_up, self.ffn_down = matrix(E, n_ff), matrix(E, n_ff), matrix(n_ff, E)

    def forward(self, x, before=None):
        h = self.attn_norm(x)
        y, kv = self.mix(h, before) if isinstance(self.mix, Attention) else (self.mix(h), None)
        x = x + y
        h = self.post_attention_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h)), kv


# -- The whole ---------------------------------------------------------------------------

class Head(nn.Module):
    """The draft head.  Row p takes the token at p and a hidden state of p - 1, and says what follows p."""

    def __init__(self, s):
        super().__init__()
        E = s["n_embd"]
        self.enorm, self.hnorm, self.shared_head_norm = (Norm(E, s["eps"]) for _ in range(3))
        self.eh_proj, self.layer = matrix(2 * E, E), Layer(s, True)

    def forward(self, embedded, hidden, before):
        """embedded: B T E of the tokens at 0 .. T - 1; hidden: of the same positions, moved by one here."""
        hidden = F.pad(hidden[:, :-1], (0, 0, 1, 0))
        x, kv = self.layer(self.eh_proj(torch.cat((self.enorm(embedded), self.hnorm(hidden)), -1)), before)
        return self.shared_head_norm(x), kv


class Net(nn.Module):
    def __init__(self, shape):
        super().__init__()
        s = self.shape = shape
        self.token_embd = nn.Embedding(s["n_vocab"], s["n_embd"])
        self.blk = nn.ModuleList(Layer(s, (i + 1) % s["period"] == 0) for i in range(s["n_layers"]))
        self.output_norm, self.head = Norm(s["n_embd"], s["eps"]), Head(s) if s["has_head"] else None
        for name, p in self.named_parameters():
            if p.dim() > 1 and "conv" not in name:
                deep = name.endswith(("attn_output.weight", "ssm_out.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=0.04 / (math.sqrt(2 * s["n_layers"]) if deep else 1))

    def forward(self, ids):
        """ids: B T, T a multiple of CHUNK.  Hidden states behind the last norm: B T E."""
        x = self.token_embd(ids)
        for layer in self.blk:
            x, _ = layer(x)
        return self.output_norm(x)

    def drafted(self, ids, hidden, n_depths):
        """The head's hidden states by depth.  Row p of depth d guesses the token at p + 1 from the trunk's hidden
        state of p - d; it is there for p >= d."""
        embedded, before, out = self.token_embd(ids), [], []
        for _ in range(n_depths):
            hidden, kv = self.head(embedded, hidden, before)
            before.append(kv)
            out.append(hidden)
        return out

    def logits(self, hidden):
        """The output matrix is the embedding's."""
        return F.linear(hidden, self.token_embd.weight)
