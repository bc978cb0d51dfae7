"""Embeddings that already know which words ask for what: a bag of words is made to say which fact a question wants.

That costs a thousandth of what the network costs per question, so it sees many more of them.  The network begins as this
bag: what is here is computed there by the first layer, to the last digit (net.py, begin_with).
"""
import itertools

import torch
import torch.nn.functional as F

LOUD = 2.0                  # of the dimensions behind the words; they keep the norm from making all words equally loud


class Bag(torch.nn.Module):
    """The mean of the tokens' words, each divided by the length of its embedding, and a score for each fact.

    rest: n_vocab, the sum of the squares of the dimensions of an embedding that are not words."""

    def __init__(self, rest, n_embd, n_words, n_facts, eps):
        super().__init__()
        self.n_embd, self.eps = n_embd, eps
        self.register_buffer("rest", rest)
        self.words = torch.nn.Embedding(len(rest), n_words)
        self.facts = torch.nn.Linear(n_words, n_facts)
        torch.nn.init.normal_(self.words.weight, std=0.3)

    def forward(self, ids, offsets):
        w = self.words.weight
        heard = w * torch.rsqrt((w.pow(2).sum(-1) + self.rest) / self.n_embd + self.eps)[:, None]
        return self.facts(F.embedding_bag(ids, heard, offsets, mode="mean"))


def batch(examples, n):
    """n questions with what is said before them, and what each asks for."""
    ids, offsets, labels = [], [], []
    for tokens, _, _, asked in itertools.islice(examples, n):
        offsets.append(len(ids))
        ids += tokens
        labels.append(asked[-1])
    return torch.tensor(ids), torch.tensor(offsets), torch.tensor(labels)


def learn(bag, examples, steps, n=256, lr=0.02):
    """examples: endless, as train.py's Batches.question makes them."""
    opt = torch.optim.Adam(bag.parameters(), lr=lr)
    mean = hit = None
    for step in range(steps):
        ids, offsets, labels = batch(examples, n)
        scores = bag(ids, offsets)
        loss = F.cross_entropy(scores, labels)
        opt.zero_grad()
        loss.backward()
        for group in opt.param_groups:
            group["lr"] = lr * (1 - step / steps)
        opt.step()
        now = (scores.argmax(-1) == labels).float().mean().item()
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        hit = now if hit is None else 0.98 * hit + 0.02 * now
        if step % 200 == 199:
            print(f"words: step {step + 1}  loss {mean:.3f}  right {100 * hit:.1f} %", flush=True)
    return bag
