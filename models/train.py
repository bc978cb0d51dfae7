#!/usr/bin/env python3
"""Train the guide and write guide.gguf.

  train.py [--steps N] [--seed S] [--out guide.gguf]     # from nothing to the file
  train.py --export guide.pt --out guide.gguf            # a checkpoint to the file

Conversations come from corpus.py, new ones at every step.  The vocabulary is learned from them first.
Needs torch and numpy.  Seeded: the same arguments on the same machine give the same weights.
"""
import argparse
import multiprocessing
import os
import random
import time

import torch
import torch.nn.functional as F

import bag
import bpe
import gguf_read
import gguf_write as gguf
from corpus import HERE, OFF, Corpus
from muon import Muon
from net import N_WORD, SHAPE, Net
from questions import read_held_out

N_VOCAB = 2560
FIRST, LATER = 6, 0.5        # the first words of an answer count fully: they decide which one it is
QUESTIONS = 0.6              # tokens of questions without an answer, for each token of a conversation
CUT = 0.35                   # the share of answers of which only the beginning is seen
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
            "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


# -- batches -------------------------------------------------------------------------

class Batches:
    """Endless batches of about n_tok tokens: ids, positions, each token's weight as a target, and at the last token
    before an answer the number of what is asked for, else -1."""

    def __init__(self, corpus, vocabulary, n_tok, seed, names=()):
        self.corpus, self.v, self.n_tok, self.rng = corpus, vocabulary, n_tok, random.Random(seed)
        self.number = {name: i for i, name in enumerate(names)}

    def example(self):
        ids, pos, weight, asked, at = [], [], [], [], 0
        stretch = self.rng.random() < 0.15           # holes between turns: long distances without long texts
        for role, text, name in self.corpus.labelled(self.rng):
            drop = 0.1 if role != "assistant" and self.rng.random() < 0.1 else 0.0
            head = self.v.encode(f"<|im_start|>{role}\n")
            body = self.v.encode(text, drop, self.rng) + [self.v.id["<|im_end|>"]]
            tail = self.v.encode("\n")
            turn = head + body + tail
            count = lambda n: [1.0] * min(n, FIRST) + [LATER] * max(0, n - FIRST) if role == "assistant" else [0.0] * n
            ids += turn
            pos += range(at, at + len(turn))
            weight += [0.0] * len(head) + count(len(body)) + [0.0] * len(tail)
            asked += [-1] * (len(head) - 1) + [self.number.get(name, -1)] + [-1] * (len(body) + len(tail))
            at += len(turn) + (self.rng.randrange(400) if stretch and role == "assistant" else 0)
        # How an answer begins is the hard part; its end is soon known by heart and need not be seen each time.
        cut = len(body) + len(tail) - self.rng.randrange(3, 8)
        n = len(ids) - cut if cut > 0 and self.rng.random() < CUT else len(ids)
        n = min(n, SHAPE["n_ctx"])
        return ids[:n], pos[:n], weight[:n], asked[:n]

    def question(self):
        """A question up to where its answer would begin, and the number of what it asks for."""
        while True:
            example = self.example()
            last = max((i for i, a in enumerate(example[3]) if a >= 0), default=-1)
            if last >= 0:
                return tuple(part[:last + 1] for part in example)

    def __iter__(self):
        """Pairs of batches: conversations, and questions alone."""
        talks, questions = self.pool(self.example, self.n_tok), self.pool(self.question, int(self.n_tok * QUESTIONS))
        while True:
            yield next(talks) + next(questions)

    def pool(self, make, n_tok):
        """Endless batches of about n_tok tokens, each of examples of about the same length."""
        while True:
            pool = sorted((make() for _ in range(1024)), key=lambda e: len(e[0]))
            batches, rows = [], []
            for e in pool:
                if rows and len(e[0]) * (len(rows) + 1) > n_tok:
                    batches.append(rows)
                    rows = []
                rows.append(e)
            self.rng.shuffle(batches)
            yield from map(self.pack, batches)

    @staticmethod
    def pack(rows):
        n = max(len(r[0]) for r in rows)
        pack = lambda k, fill, dtype: torch.tensor([list(r[k][:n]) + [fill] * (n - len(r[0])) for r in rows], dtype=dtype)
        return pack(0, 0, torch.long), pack(1, 0, torch.long), pack(2, 0.0, torch.float32), pack(3, -1, torch.long)


# -- training --------------------------------------------------------------------------

def loss_of(net, head, ids, pos, weight, asked, ids_q, pos_q, _, asked_q):
    """The weighted mean over the words of the answers (scores of other positions are not even computed), and the
    mean over the questions, those that are asked without an answer too: what is asked for is to be clear in the middle of
    the network, and the layers behind it are not computed for these."""
    w, asked = weight[:, 1:], asked[:, :-1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net.logits(net(ids[:, :-1], pos[:, :-1], only=w > 0))
        middle = net.middle[asked >= 0]
        facts = head(torch.cat((middle, net.half(ids_q, pos_q)[asked_q >= 0])))
    ce = F.cross_entropy(logits.float(), ids[:, 1:][w > 0], reduction="none")
    which = F.cross_entropy(facts.float(), torch.cat((asked[asked >= 0], asked_q[asked_q >= 0])), label_smoothing=0.05)
    return (ce * w[w > 0]).sum() / w.sum(), which


def rate(step, done, warm):
    """Warm up, stay, and go down over the last 70 % of the way."""
    return min(1.0, (step + 1) / warm, max(0.02, (1 - done) / 0.7))


class Average:
    """The weights' running mean: steadier than the weights themselves, and what is kept."""

    def __init__(self, net):
        self.net, self.kept = net, {k: v.clone() for k, v in net.state_dict().items()}

    def update(self, step):
        stay = min(0.95, (1 + step) / (10 + step))
        for k, v in self.net.state_dict().items():
            self.kept[k].lerp_(v, 1 - stay)

    def save(self, path, worker):
        torch.save({"merges": worker.vocabulary.merges, "weights": self.kept, "last": self.net.state_dict(),
                    "names": worker.names, "head": worker.head.state_dict()}, path + ".part")
        os.replace(path + ".part", path)


def make_vocabulary(corpus, seed):
    rng = random.Random(seed)
    texts = [t for _ in range(60000) for _, t in corpus.conversation(rng)]
    return bpe.Vocabulary(bpe.learn(texts, N_VOCAB - 256 - len(bpe.CONTROL)))


def make_optimizers(named, lr):
    """(optimizer, its highest rate) pairs for some of the parameters."""
    inner = [p for n, p in named if p.dim() > 1 and n.startswith("blk.")]
    words = [p for n, p in named if n == "token_embd.weight"]
    other = [p for n, p in named if (p.dim() < 2 or not n.startswith("blk.")) and n != "token_embd.weight"]
    adam = lambda params, rate: (torch.optim.AdamW(params, lr=rate, betas=(0.9, 0.98), weight_decay=0.0), rate)
    return [(Muon(inner, lr), lr)] + ([adam(words, lr / 20)] if words else []) + ([adam(other, lr / 5)] if other else [])


class Worker:
    """One of the processes that train together, each on a core of its own: on a machine with other work two
    threads that wait for each other at every product of matrices lose far more than two processes that meet twice
    a step.  The weights and every worker's gradient are in shared memory; each worker updates its share of them."""

    def __init__(self, net, head, vocabulary, names, args, stays):
        self.stays = [(p, mask, p[mask].clone()) for p, mask in stays]
        self.net, self.head, self.vocabulary, self.names, self.args = net.share_memory(), head.share_memory(), vocabulary, names, args
        self.named, self.n = [*net.named_parameters(), *head.named_parameters()], args.threads
        size = sum(p.numel() for _, p in self.named)
        self.gradients = [torch.zeros(size).share_memory_() for _ in range(self.n)]
        self.done = torch.zeros(1, dtype=torch.float64).share_memory_()
        self.context = multiprocessing.get_context("fork")
        self.meet = self.context.Barrier(self.n)

    def run(self):
        """Trains to the end; this process is worker 0."""
        others = [self.context.Process(target=self.work, args=(i,), daemon=True) for i in range(1, self.n)]
        for o in others:
            o.start()
        self.work(0)
        for o in others:
            o.join()

    def share(self, i):
        """The parameters that worker i updates, with where their gradients lie."""
        at, mine = 0, []
        for k, (name, p) in enumerate(self.named):
            if k % self.n == i:
                mine.append((name, p, slice(at, at + p.numel())))
            at += p.numel()
        return mine

    @torch.no_grad()
    def put_back(self, mine):
        for p, mask, kept in self.stays:
            if any(p is q for _, q, _ in mine):
                p[mask] = kept

    def batches(self, i):
        """Endless; the corpus is read again when its files have changed, if asked for."""
        seed, watched = self.args.seed + 1 + i, None
        while True:
            corpus = Corpus(q for q, _ in read_held_out())
            watched = changed(corpus)
            for batch in Batches(corpus, self.vocabulary, self.args.batch // self.n, seed, self.names):
                yield batch
                if self.args.watch and changed(corpus) != watched:
                    seed += 1000
                    break

    def work(self, i):
        torch.set_num_threads(1)
        mine, batches = self.share(i), self.batches(i)
        optimizers = make_optimizers([(name, p) for name, p, _ in mine], self.args.lr)
        log = Log(self) if i == 0 else None
        step = 0
        while self.done.item() < 1:
            batch = next(batches)
            loss, which = loss_of(self.net, self.head, *batch)
            self.net.zero_grad(set_to_none=True)
            self.head.zero_grad(set_to_none=True)
            (loss + which).backward()
            torch.nn.utils.clip_grad_norm_([p for _, p in self.named], 1.0)
            torch.cat([p.grad.reshape(-1) for _, p in self.named], out=self.gradients[i])
            now = self.done.item()
            self.meet.wait()
            for _, p, where in mine:
                p.grad = (sum(g[where] for g in self.gradients) / self.n).view_as(p)
            for opt, peak in optimizers:
                for group in opt.param_groups:
                    group["lr"] = peak * rate(step, now, self.args.warm)
                opt.step()
            self.put_back(mine)
            step += 1
            if log:
                log.step(step, loss.item(), which.item(), (batch[0].numel() + batch[4].numel()) * self.n)
            self.meet.wait()


class Log:
    """What worker 0 does besides: the average, the way done, lines of progress, checkpoints."""

    def __init__(self, worker):
        self.w, self.average = worker, Average(worker.net)
        self.started, self.seen, self.mean, self.which = time.time(), 0, None, None

    def step(self, step, loss, which, n):
        args, minutes = self.w.args, (time.time() - self.started) / 60
        self.seen += n
        self.mean = loss if self.mean is None else 0.96 * self.mean + 0.04 * loss
        self.which = which if self.which is None else 0.96 * self.which + 0.04 * which
        done = minutes / args.minutes if args.minutes else step / args.steps
        if step % 4 == 0 or done >= 1:
            self.average.update(step)
        if step % 25 == 0 or done >= 1:
            print(f"step {step}  {100 * done:.0f} %  loss {self.mean:.4f} {self.which:.4f}  {self.seen / minutes / 60:.0f} tok/s  {minutes:.1f} min", flush=True)
            self.average.save(args.checkpoint, self.w)
        self.w.done.fill_(done)


def changed(corpus):
    return max(f.stat().st_mtime_ns for f in corpus.files())


def grown(kept, wanted):
    """The names of a checkpoint and its head, with places for the facts that came later."""
    later = [n for n in wanted if n not in kept["names"]]
    weight, bias = kept["head"]["weight"], kept["head"]["bias"]
    head = torch.nn.Linear(weight.shape[1], len(kept["names"]) + len(later))
    with torch.no_grad():
        head.weight.zero_()[:len(weight)] = weight
        head.bias.fill_(bias.mean().item() if len(bias) else 0.0)[:len(bias)] = bias
    return kept["names"] + later, head


def learn_words(net, corpus, vocabulary, names, args):
    shape, own = net.shape, net.token_embd.weight.detach()[:, net.shape["n_embd"] // 2:]
    loud = (shape["n_embd"] // 2 - N_WORD) * bag.LOUD ** 2
    batches = Batches(corpus, vocabulary, 0, args.seed, names)
    return bag.learn(bag.Bag(own.pow(2).sum(-1) + loud, shape["n_embd"], N_WORD, len(names), shape["eps"]),
                     iter(batches.question, None), args.bag)


def train(args):
    torch.manual_seed(args.seed)
    corpus = Corpus(q for q, _ in read_held_out())
    names, stays = corpus.names + [OFF], []
    if args.start:
        net, vocabulary = restore(args.start)
        names, head = grown(load(args.start), names)
    else:
        vocabulary = make_vocabulary(corpus, args.seed)
        net, head = Net(len(vocabulary.tokens)), torch.nn.Linear(SHAPE["n_embd"], len(names))
        stays = net.begin_with(learn_words(net, corpus, vocabulary, names, args), head, vocabulary.encode("\n")[-1])
    net.train()
    print(f"{len(vocabulary.tokens)} tokens, {sum(p.numel() for p in net.parameters()) / 1e6:.2f} M weights", flush=True)
    Worker(net, head, vocabulary, names, args, stays).run()
    return restore(args.checkpoint)


def load(path):
    """A checkpoint, or the weights and the vocabulary of a file that `export` made, which knows no facts by name."""
    if not path.endswith(".gguf"):
        return torch.load(path)
    metadata, tensors = gguf_read.read(path)
    weights = {name: torch.from_numpy(x) for name, x in tensors.items()}
    merges = [tuple(m.split(" ")) for m in metadata["tokenizer.ggml.merges"]]
    head = {"weight": torch.zeros(0, SHAPE["n_embd"]), "bias": torch.zeros(0)}
    return {"merges": merges, "weights": weights, "last": weights, "names": [], "head": head}


def restore(path, which="weights"):
    kept = load(path)
    vocabulary = bpe.Vocabulary(kept["merges"])
    net = Net(len(vocabulary.tokens))
    net.load_state_dict(kept[which])
    return net.eval(), vocabulary


# -- the file ----------------------------------------------------------------------------

def metadata(vocabulary, shape):
    v, s = vocabulary, shape
    types = [3 if t in bpe.CONTROL else 1 for t in v.tokens]
    return [
        ("general.architecture", gguf.STR, "llama"), ("general.name", gguf.STR, "ebb guide"),
        ("general.license", gguf.STR, "MIT"), ("general.size_label", gguf.STR, "4M"),
        ("general.file_type", gguf.U32, 7), ("general.quantization_version", gguf.U32, 2),
        ("llama.context_length", gguf.U32, s["n_ctx"]), ("llama.embedding_length", gguf.U32, s["n_embd"]),
        ("llama.block_count", gguf.U32, s["n_layer"]), ("llama.feed_forward_length", gguf.U32, s["n_ff"]),
        ("llama.attention.head_count", gguf.U32, s["n_head"]), ("llama.attention.head_count_kv", gguf.U32, s["n_head_kv"]),
        ("llama.attention.layer_norm_rms_epsilon", gguf.F32, s["eps"]), ("llama.rope.freq_base", gguf.F32, s["rope_base"]),
        ("llama.rope.dimension_count", gguf.U32, s["n_embd"] // s["n_head"]), ("llama.vocab_size", gguf.U32, len(v.tokens)),
        ("tokenizer.ggml.model", gguf.STR, "gpt2"), ("tokenizer.ggml.pre", gguf.STR, "gpt-2"),
        ("tokenizer.ggml.tokens", gguf.ARR, (gguf.STR, v.tokens)), ("tokenizer.ggml.token_type", gguf.ARR, (gguf.I32, types)),
        ("tokenizer.ggml.merges", gguf.ARR, (gguf.STR, [" ".join(m) for m in v.merges])),
        ("tokenizer.ggml.bos_token_id", gguf.U32, v.id["<|endoftext|>"]),
        ("tokenizer.ggml.eos_token_id", gguf.U32, v.id["<|im_end|>"]),
        ("tokenizer.ggml.eot_token_id", gguf.U32, v.id["<|im_end|>"]),
        ("tokenizer.ggml.padding_token_id", gguf.U32, v.id["<|endoftext|>"]),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, False), ("tokenizer.chat_template", gguf.STR, TEMPLATE),
        ("general.sampling.temp", gguf.F32, 0.0),
    ]


def export(net, vocabulary, path):
    tensors = [(name, p.detach().float().numpy()) for name, p in net.state_dict().items()]
    gguf.write(path, metadata(vocabulary, net.shape), tensors)
    print(f"{path}: {os.path.getsize(path)} bytes")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=9000, help="two hours at most on two quiet cores")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--batch", type=int, default=3072, help="tokens of a step")
    p.add_argument("--bag", type=int, default=4000, help="steps of the bag of words that the embeddings begin with")
    p.add_argument("--lr", type=float, default=0.015, help="of the matrices; the others learn at a fifth of it")
    p.add_argument("--warm", type=int, default=60, help="steps until the rate is reached; a few do with --start")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="processes that train together")
    p.add_argument("--out", default=str(HERE / "guide.gguf"))
    p.add_argument("--checkpoint", default=str(HERE.parent / "build" / "guide.pt"))
    p.add_argument("--minutes", type=float, help="end by the clock instead of by --steps; not reproducible then")
    p.add_argument("--watch", action="store_true", help="read the corpus again when it has changed; not reproducible then")
    p.add_argument("--start", metavar="CHECKPOINT", help="go on from its weights and vocabulary; a guide.gguf will do")
    p.add_argument("--export", metavar="CHECKPOINT")
    args = p.parse_args()
    torch.set_num_threads(1)
    os.makedirs(os.path.dirname(args.checkpoint), exist_ok=True)
    export(*(restore(args.export) if args.export else train(args)), args.out)


if __name__ == "__main__":
    main()
