#!/usr/bin/env python3
"""Make the model of a GGUF file say a known text: behind each token stands one certain next token.

A draft model helps as often as it agrees with its target, and random weights agree with nothing. This writes token
embeddings and output matrix anew, in place, so that the network's layers run as before, at the same cost, but do not decide:
token t is embedded as a random row of signs, large beside what the layers add, and the output's row of t's successor is that same row.
Two models of one vocabulary treated so agree in all tokens, but for the share that --wrong names, of the draft model.

  pair.py target.gguf                     # any shape with a llama vocabulary and an output matrix of its own
  pair.py draft.gguf --wrong 0.2          # agrees with it in 80 % of the tokens
  pair.py target.gguf --span 30000 --head-dims 18     # its draft head, too: passes on 18 signs, right for about 80 %

Tensors may be F32, F16, Q8_0, Q4_K, Q5_K or Q6_K. The text: from token t to t + 40507, within [300, vocabulary), or within
[300, --span). A draft head chooses among a part of the vocabulary (speculate/draft_rows.h), at first that of low ids: the text has to
stay within. Needs numpy.
"""
import argparse
import math
import struct

import numpy as np

F32, F16, Q8_0, Q4_K, Q5_K, Q6_K = 0, 1, 8, 12, 13, 14
SIZES = {F32: (1, 4), F16: (1, 2), Q8_0: (32, 34), Q4_K: (256, 144), Q5_K: (256, 176), Q6_K: (256, 210)}
FIRST, STRIDE = 300, 40507                      # below stand specials, bytes and punctuation
LOUD = 100.0                                    # an embedding's values, beside about 1 from each layer
JOINED = 1000.0                                 # those few that a head passes on, beside about 20 from its layer
KINDS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Header:
    """Where each tensor of a GGUF file is."""

    def __init__(self, file):
        self.file, self.align, self.tensors = file, 32, {}
        _, _, n_tensors, n_keys = struct.unpack("<4sIQQ", file.read(24))
        for _ in range(n_keys):
            key = self.string()
            value = self.value(self.number("I"))
            if key == b"general.alignment":
                self.align = value
        for _ in range(n_tensors):
            name = self.string().decode()
            dims = [self.number("Q") for _ in range(self.number("I"))]
            self.tensors[name] = (dims, self.number("I"), self.number("Q"))
        self.data = -(-file.tell() // self.align) * self.align

    def number(self, code):
        return struct.unpack("<" + code, self.file.read(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.file.read(self.number("Q"))

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            of, n = self.number("I"), self.number("Q")
            return [self.value(of) for _ in range(n)]
        return self.number(KINDS[kind])


def mix(x):
    """splitmix64 of unsigned 64-bit numbers."""
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def signs(tokens, width):
    """[tokens, width] of 0 and 1: the row of each token."""
    words = width // 64
    places = tokens.astype(np.uint64)[:, None] * np.uint64(words) + np.arange(words, dtype=np.uint64)
    return np.unpackbits(mix(places).view(np.uint8), axis=1)


def half(v):
    return np.frombuffer(struct.pack("<e", v), np.uint8)


def short(v):
    """v in 8 significant bits: 7 and 15 times it are still exact in a half."""
    mantissa, exponent = math.frexp(v)
    return math.ldexp(round(mantissa * 256), exponent - 8)


def rows(bits, typ, value, used=None):
    """Encodes rows of +value (1) and -value (0); with `used`, 0 or 1 for each weight, 0 where that is 0."""
    n, width = bits.shape
    used = np.ones_like(bits) if used is None else used
    if typ in (F32, F16):
        return ((bits * 2.0 - 1) * used * value).astype("<f4" if typ == F32 else "<f2").tobytes()
    block, size = SIZES[typ]
    b = np.zeros((n, width // block, size), np.uint8)
    q, on = (a.reshape(n, width // block, block) for a in (bits, used))
    if typ == Q8_0:
        b[..., :2] = half(value / 127)
        b[..., 2:] = np.where(on, np.where(q, 127, 129), 0)
    elif typ == Q6_K:                           # (q - 32) * 64 * d, q one of 1, 32, 63
        b[..., 192:208], b[..., 208:] = 64, half(value / (31 * 64))
        six = np.where(on, np.where(q, 63, 1), 32).astype(np.uint8).reshape(n, -1, 2, 4, 32)
        low, high = six & 15, six >> 4
        b[..., :128] = np.stack([low[..., 0, :] | low[..., 2, :] << 4, low[..., 1, :] | low[..., 3, :] << 4],
                                axis=-2).reshape(n, -1, 128)
        b[..., 128:192] = (high[..., 0, :] | high[..., 1, :] << 2 | high[..., 2, :] << 4 | high[..., 3, :] << 6) \
            .reshape(n, -1, 64)
    else:                                       # q * d * 32 - 32 * dmin: all scales and minima are 32
        most, zero = (14, 7) if typ == Q4_K else (30, 15)
        step = short(value / zero / 32)         # what is to be 0 is exactly that: thousands of them are added
        b[..., :2], b[..., 2:4] = half(step), half(step * zero)
        b[..., 4:12], b[..., 12:16] = 32 | 2 << 6, 0
        codes = np.where(on, np.where(q, most, 0), zero).astype(np.uint8).reshape(n, -1, 4, 2, 32)
        low = codes & 15
        b[..., -128:] = (low[..., 0, :] | low[..., 1, :] << 4).reshape(n, -1, 128)
        if typ == Q5_K:
            high = (codes >> 4).reshape(n, -1, 8, 32) << np.arange(8, dtype=np.uint8)[:, None]
            b[..., 16:48] = np.bitwise_or.reduce(high, axis=2)
    return b.tobytes()


def write(header, name, encode):
    """encode(first, n, width, type): the bytes of n rows."""
    dims, typ, offset = header.tensors[name]
    if typ not in SIZES:
        raise SystemExit(f"{name}: a type that this cannot write ({typ})")
    header.file.seek(header.data + offset)
    step = max(1, (1 << 24) // dims[0])
    for first in range(0, dims[1], step):
        header.file.write(encode(np.arange(first, min(first + step, dims[1])), dims[0], typ))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file")
    ap.add_argument("--wrong", type=float, default=0, help="share of the tokens with another successor")
    ap.add_argument("--span", type=int, help="the text stays below this token")
    ap.add_argument("--head-dims", type=int, help="write the draft head's eh_proj, which passes so many values on")
    a = ap.parse_args()
    with open(a.file, "r+b") as file:
        header = Header(file)
        if "output.weight" not in header.tensors:
            raise SystemExit(f"{a.file}: no output matrix of its own (the embeddings are tied)")
        vocab = header.tensors["token_embd.weight"][0][1]
        span = (a.span or vocab) - FIRST
        if math.gcd(span, STRIDE) != 1:
            raise SystemExit(f"--span: {span} tokens and the stride {STRIDE} have a common divisor")
        is_text = lambda t: (t >= FIRST) & (t < FIRST + span)
        turned = lambda t, by: np.where(is_text(t), FIRST + (t - FIRST + by) % span, t)

        def embedding(t, width, typ):
            wrong = (mix(t.astype(np.uint64)) >> np.uint64(40)) < a.wrong * (1 << 24)
            return rows(signs(np.where(wrong, turned(t, span // 2), t), width), typ, LOUD)

        def output(t, width, typ):              # of t: the row of the token before it
            before = np.where(is_text(t), turned(t, -STRIDE), t + vocab)        # of nothing that is embedded
            return rows(signs(before, width), typ, 1 / math.sqrt(width))

        def join(t, width, typ):                # row t takes value t of the token's half, if it is one of the first
            used = np.zeros((len(t), width), np.uint8)
            at = t[t < a.head_dims]
            used[np.arange(len(at)), at] = 1
            return rows(np.ones_like(used), typ, JOINED, used)

        write(header, "token_embd.weight", embedding)
        write(header, "output.weight", output)
        if a.head_dims:
            write(header, next(n for n in header.tensors if n.endswith("nextn.eh_proj.weight")), join)


if __name__ == "__main__":
    main()
