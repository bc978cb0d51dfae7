"""Byte-level BPE as GPT-2 does it: learn merges from text, turn text into ids.

A text is cut into pieces by GPT-2's pattern, a piece is a string of characters that stand for
bytes, and the learned merges are applied to it, earliest merge first.
"""
import collections
import heapq
import random
import re

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# GPT-2's pattern.  [^\W\d_] is \p{L} but for a few marks, \d is \p{Nd}.
PIECE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
SPECIAL = re.compile("(" + "|".join(map(re.escape, CONTROL)) + ")")


def byte_letters():
    """The printable character that stands for each byte: itself where it is one, else from U+0100 on."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, spare = {b: chr(b) for b in keep}, 256
    for b in range(256):
        if b not in letters:
            letters[b], spare = chr(spare), spare + 1
    return letters


LETTERS = byte_letters()
BYTES = {c: b for b, c in LETTERS.items()}


def spell(piece):
    return [LETTERS[b] for b in piece.encode()]


class Most(tuple):
    """(count, pair) in a heap whose first is the largest."""
    __lt__ = tuple.__gt__


def learn(texts, n_merges):
    """The n_merges most useful merges for texts, by repeated counting of neighbours."""
    count = collections.Counter(p for t in texts for p in PIECE.findall(SPECIAL.sub(" ", t)))
    words = [(spell(p), n) for p, n in sorted(count.items())]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (w, n) in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] += n
            where[p].add(i)
    merges, heap = [], [Most((n, p)) for p, n in pairs.items()]
    heapq.heapify(heap)
    while len(merges) < n_merges and heap:
        n, best = heapq.heappop(heap)
        if pairs[best] != n:                     # counted anew since
            continue
        if n < 2:
            break
        merges.append(best)
        for p in merge(words, pairs, where, best):
            if pairs[p] > 0:
                heapq.heappush(heap, Most((pairs[p], p)))
    return merges


def merge(words, pairs, where, best):
    """Joins a pair in all words; the other pairs whose count that changed."""
    changed = set()
    for i in where.pop(best):
        w, n = words[i]
        for p in zip(w, w[1:]):
            pairs[p] -= n
            changed.add(p)
        w = join(w, best)
        words[i] = (w, n)
        for p in zip(w, w[1:]):
            pairs[p] += n
            where[p].add(i)
            changed.add(p)
    pairs[best] = 0
    return changed - {best}


def join(w, pair):
    """w with each neighbouring pair made one symbol."""
    out, i = [], 0
    while i < len(w):
        if i + 1 < len(w) and (w[i], w[i + 1]) == pair:
            out.append(w[i] + w[i + 1])
            i += 2
        else:
            out.append(w[i])
            i += 1
    return out


class Vocabulary:
    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.tokens = [LETTERS[b] for b in range(256)] + [a + b for a, b in self.merges]
        self.tokens = list(dict.fromkeys(self.tokens)) + CONTROL
        self.id = {t: i for i, t in enumerate(self.tokens)}
        self.cache = {}

    def _piece(self, piece, drop=0.0, rng=random):
        """drop: the probability that a possible merge is passed over, for odd cuts of known words."""
        w = spell(piece)
        while len(w) > 1:
            ranked = [(self.rank[p], p) for p in zip(w, w[1:]) if p in self.rank and not (drop and rng.random() < drop)]
            if not ranked:
                break
            w = join(w, min(ranked)[1])
        return [self.id[s] for s in w]

    def encode(self, text, drop=0.0, rng=random):
        out = []
        for part in SPECIAL.split(text):
            if part in CONTROL:
                out.append(self.id[part])
                continue
            for p in PIECE.findall(part):
                if drop:
                    out += self._piece(p, drop, rng)
                    continue
                if p not in self.cache:
                    self.cache[p] = self._piece(p)
                out += self.cache[p]
        return out

    def decode(self, ids):
        text, raw = "", bytearray()
        for t in (self.tokens[i] for i in ids):
            if t in CONTROL:
                text += raw.decode(errors="replace") + t
                raw.clear()
            else:
                raw += bytes(BYTES[c] for c in t)
        return text + raw.decode(errors="replace")
