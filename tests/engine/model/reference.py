#!/usr/bin/python3
"""What a small F32 model of an architecture without known-good logits computes: gemma3n, phimoe; in float64, written for
reading.  reference.py MODEL.gguf N_CTX ID... writes the logits of every position as float32 to standard output.

Checked against llama.cpp 0.7.0 on the same files: phimoe to an NMSE of 1e-13, gemma3n to 2e-4 over 25 layers if GELU is
rounded as its table rounds it (6e-7 at the first position)."""
import math
import struct
import sys

import numpy as np


class File:
    def __init__(self, path):
        self.data, self.at = open(path, "rb").read(), 0
        _, _, n_tensors, n_keys = self.take("4sIQQ")
        self.keys, self.infos = {}, {}
        for _ in range(n_keys):
            name = self.text()
            self.keys[name] = self.value(*self.take("I"))
        for _ in range(n_tensors):
            name, (n_dims,) = self.text(), self.take("I")
            dims = self.take(f"{n_dims}Q")[::-1]
            kind, offset = self.take("IQ")
            assert kind == 0, name
            self.infos[name] = dims, offset
        self.base = -(-self.at // 32) * 32

    def take(self, form):
        out = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return out

    def text(self):
        return self.take(f"{self.take('Q')[0]}s")[0].decode(errors="replace")

    def value(self, kind):
        if kind == 9:
            of, n = self.take("IQ")
            return [self.value(of) for _ in range(n)]
        return self.text() if kind == 8 else self.take("BbHhIif?"[kind])[0]

    def key(self, name, otherwise=None):
        return self.keys.get(f"{self.keys['general.architecture']}.{name}", otherwise)

    def tensor(self, name):
        dims, offset = self.infos[name]
        return np.frombuffer(self.data, "<f4", math.prod(dims), self.base + offset).astype(float).reshape(dims)


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def turn(x, freqs, magnitude=1.0):
    """x [tokens, heads, elements]: pairs half a head apart, the first len(freqs) of them."""
    theta, half = np.arange(len(x))[:, None, None] * freqs, len(freqs)
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    c, s = np.cos(theta) * magnitude, np.sin(theta) * magnitude
    return np.concatenate([a * c - b * s, a * s + b * c, rest], -1)


def attend(q, k, v, scale, window=None):
    n, n_heads = q.shape[:2]
    k, v = (np.repeat(x, n_heads // x.shape[1], 1) for x in (k, v))
    back = np.arange(n)[:, None] - np.arange(n)
    hidden = (back < 0) | (back >= (window or n))
    p = softmax(np.where(hidden, -np.inf, np.einsum("ihd,jhd->hij", q, k) * scale))
    return np.einsum("hij,jhd->ihd", p, v).reshape(n, -1)


class Net:
    def __init__(self, file, n_ctx):
        self.f, self.n_ctx, key = file, n_ctx, file.key
        self.n_embd, self.n_layers = key("embedding_length"), key("block_count")
        self.n_head, self.n_kv, self.dim = (key("attention." + x) for x in ("head_count", "head_count_kv", "key_length"))
        self.eps, self.window = key("attention.layer_norm_rms_epsilon"), key("attention.sliding_window")

    def rms(self, x, w=1.0):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * w

    def layer(self, i):
        return lambda what, suffix="weight": self.f.tensor(f"blk.{i}.{what}.{suffix}")

    def heads(self, x, n):
        return x.reshape(len(x), n, self.dim)


class Gemma3n(Net):
    def lengthen(self, y, x):
        return y * np.linalg.norm(x, axis=-1, keepdims=True) / np.linalg.norm(y, axis=-1, keepdims=True)

    def layer_inputs(self, ids, x):
        f, shape = self.f, (len(ids), self.n_layers, self.f.key("embedding_length_per_layer_input"))
        rows = f.tensor("per_layer_token_embd.weight")[ids].reshape(shape) * math.sqrt(shape[2])
        seen = (x @ f.tensor("per_layer_model_proj.weight").T / math.sqrt(self.n_embd)).reshape(shape)
        return (rows + self.rms(seen, f.tensor("per_layer_proj_norm.weight"))) / math.sqrt(2)

    def attention(self, i, w, h):
        key, is_local = self.f.key, self.f.key("attention.sliding_window_pattern")[i]
        base = key("rope.freq_base_swa") if is_local else key("rope.freq_base")
        freqs = base ** (-np.arange(0, self.dim, 2) / self.dim)
        q = turn(self.rms(self.heads(h @ w("attn_q").T, self.n_head), w("attn_q_norm")), freqs)
        if i < self.n_layers - key("attention.shared_kv_layers"):
            k = turn(self.rms(self.heads(h @ w("attn_k").T, self.n_kv), w("attn_k_norm")), freqs)
            self.kv[is_local] = k, self.rms(self.heads(h @ w("attn_v").T, self.n_kv))
        return attend(q, *self.kv[is_local], 1, self.window if is_local else None) @ w("attn_output").T

    def feed_forward(self, i, w, h):
        gate, cutoff = h @ w("ffn_gate").T, self.f.key("activation_sparsity_scale")[i]
        if math.isfinite(cutoff):
            gate = np.maximum(0, gate - gate.mean(-1, keepdims=True) - cutoff * gate.std(-1, ddof=1, keepdims=True))
        return (gelu(gate) * (h @ w("ffn_up").T)) @ w("ffn_down").T

    def run(self, ids):
        f, n, n_streams = self.f, len(ids), self.f.key("altup.num_inputs")
        x, self.kv = f.tensor("token_embd.weight")[ids] * math.sqrt(self.n_embd), {}
        z = self.layer_inputs(ids, x)
        s = np.stack([x] + [self.lengthen(x @ p.T, x) for p in f.tensor("altup_proj.weight")], 1)
        for i in range(self.n_layers):
            w = self.layer(i)
            route = lambda v: np.tanh(self.rms(v, w("altup_router_norm")) / self.n_embd @ w("altup_router").T)
            coef = (route(s[:, 0]) @ w("altup_predict_coef").T).reshape(n, n_streams, n_streams)
            p = s + np.einsum("nik,nke->nie", coef, s)
            h = self.rms(p[:, 0], w("attn_norm"))
            laurel = h + self.rms(h @ w("laurel_l").T @ w("laurel_r").T, w("laurel_post_norm"))
            y = self.rms(self.attention(i, w, h), w("post_attention_norm"))
            x = (p[:, 0] + y + laurel) / math.sqrt(2)
            x = x + self.rms(self.feed_forward(i, w, self.rms(x, w("ffn_norm"))), w("post_ffw_norm"))
            s = p + (1 + route(x) @ w("altup_correct_coef").T)[:, :, None] * (x - p[:, 0])[:, None]
            more = gelu((s[:, 0] * w("altup_correct_scale")) @ w("inp_gate").T) * z[:, i]
            s[:, 1:] += self.rms(more @ w("proj").T, w("post_norm"))[:, None]
        others = zip(f.tensor("altup_unembd_proj.weight"), s[:, 1:].transpose(1, 0, 2))
        x = (s[:, 0] + sum(self.lengthen(v @ p.T, s[:, 0]) for p, v in others)) / n_streams
        cap = f.key("final_logit_softcapping")
        logits = self.rms(x, f.tensor("output_norm.weight")) @ f.tensor("output.weight").T
        return cap * np.tanh(logits / cap)


class PhiMoe(Net):
    """Norms are RMSNorm with a bias."""

    def experts(self, w, h):
        shares, out = softmax(h @ w("ffn_gate_inp").T), np.zeros_like(h)
        for t, share in enumerate(shares):
            chosen = np.argsort(-share)[:self.f.key("expert_used_count")]
            for e in chosen:
                y = silu(w("ffn_gate_exps")[e] @ h[t]) * (w("ffn_up_exps")[e] @ h[t])
                out[t] += share[e] / share[chosen].sum() * (w("ffn_down_exps")[e] @ y)
        return out

    def run(self, ids):
        f, key = self.f, self.f.key
        is_long = self.n_ctx > key("rope.scaling.original_context_length")
        factors = f.tensor(f"rope_factors_{'long' if is_long else 'short'}.weight")
        n_rot, magnitude = key("rope.dimension_count"), key("rope.scaling.attn_factor")
        freqs = key("rope.freq_base") ** (-np.arange(0, n_rot, 2) / n_rot) / factors
        x = f.tensor("token_embd.weight")[ids]
        for i in range(self.n_layers):
            w = self.layer(i)
            linear = lambda what, v: v @ w(what).T + w(what, "bias")
            h = self.rms(x, w("attn_norm")) + w("attn_norm", "bias")
            q, k, v = (self.heads(linear("attn_" + c, h), n) for c, n in (("q", self.n_head), ("k", self.n_kv),
                                                                          ("v", self.n_kv)))
            q, k = turn(q, freqs, magnitude), turn(k, freqs, magnitude)
            x = x + linear("attn_output", attend(q, k, v, 1 / math.sqrt(self.dim)))
            x = x + self.experts(w, self.rms(x, w("ffn_norm")) + w("ffn_norm", "bias"))
        x = self.rms(x, f.tensor("output_norm.weight")) + f.tensor("output_norm.bias")
        return x @ f.tensor("output.weight").T + f.tensor("output.bias")


def main():
    file = File(sys.argv[1])
    net = {"gemma3n": Gemma3n, "phimoe": PhiMoe}[file.keys["general.architecture"]](file, int(sys.argv[2]))
    sys.stdout.buffer.write(net.run([int(i) for i in sys.argv[3:]]).astype("<f4").tobytes())


main()
