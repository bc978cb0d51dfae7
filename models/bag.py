"""Embeddings that already know which words ask for what: a bag of words is made to say which fact a question wants.

That costs a thousandth of what the network costs per question, so it sees many more of them.  The network starts with
these embeddings.
"""
import random

import torch
import torch.nn.functional as F


class Bag(torch.nn.Module):
    """The mean of a question's embeddings, and a score for each fact."""

    def __init__(self, n_vocab, n_embd, n_facts):
        super().__init__()
        self.words = torch.nn.EmbeddingBag(n_vocab, n_embd, mode="mean")
        self.facts = torch.nn.Linear(n_embd, n_facts)
        torch.nn.init.normal_(self.words.weight, std=0.1)

    def forward(self, ids, offsets):
        return self.facts(self.words(ids, offsets))


def asked(corpus, rng):
    """A question and the number of its fact; one more number stands for everything else."""
    if rng.random() < 0.25:
        return corpus.clean(lambda: corpus.off_topic(rng), rng), len(corpus.names)
    k = rng.choices(range(len(corpus.names)), corpus.weights)[0]
    return corpus.clean(lambda: corpus.question(corpus.facts[corpus.names[k]], rng), rng), k


def batch(corpus, vocabulary, rng, n):
    ids, offsets, labels = [], [], []
    for _ in range(n):
        q, k = asked(corpus, rng)
        offsets.append(len(ids))
        ids += vocabulary.encode(q)
        labels.append(k)
    return torch.tensor(ids), torch.tensor(offsets), torch.tensor(labels)


def learn(corpus, vocabulary, n_embd, steps, seed, n=256, lr=0.015):
    rng = random.Random(seed)
    bag = Bag(len(vocabulary.tokens), n_embd, len(corpus.names) + 1)
    opt = torch.optim.Adam(bag.parameters(), lr=lr)
    mean = None
    for step in range(steps):
        ids, offsets, labels = batch(corpus, vocabulary, rng, n)
        loss = F.cross_entropy(bag(ids, offsets), labels)
        opt.zero_grad()
        loss.backward()
        for group in opt.param_groups:
            group["lr"] = lr * (1 - step / steps)
        opt.step()
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if step % 200 == 199:
            print(f"words: step {step + 1}  loss {mean:.3f}", flush=True)
    return bag
