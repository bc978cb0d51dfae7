#!/usr/bin/env python3
"""Train a small model of qwen35's shape with a draft head, and a smaller one that drafts for it.

  train_pair.py target|draft [--minutes N] [--shared DIR] [--checkpoint FILE]     # trains, goes on where it stopped
  train_pair.py target|draft --export FILE [--f32]                               # a checkpoint to a GGUF file
  train_pair.py prompts DIR                                                      # held-out texts, a file each

They learn from dialogues and articles beside the checkout (DIR/data/conversations) and from this repository.  Real
weights agree with each other as real weights do: tests/bench/bench_draft.c measures that.  An hour on one core
is enough.  Needs torch and numpy.  The weights are for measuring and belong into no package.
"""
import argparse
import json
import math
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
import bpe                                       # noqa: E402
import gguf_write as gguf                        # noqa: E402
from muon import Muon                            # noqa: E402
from pair_net import CHUNK, Attention, Net       # noqa: E402

N_VOCAB, N_CTX, N_TEXT = 512, 2048, 8 * CHUNK
BASE = dict(n_vocab=N_VOCAB, rope_base=10000.0, dim_rope=16, eps=1e-6)
SHAPES = {
    "target": dict(BASE, n_embd=192, n_layers=4, period=4, n_head=3, n_head_kv=1, dim_head=64, n_ff=512,
                   n_head_delta_k=3, n_head_delta_v=6, dim_delta=32, has_head=True),
    "draft": dict(BASE, n_embd=96, n_layers=2, period=2, n_head=3, n_head_kv=1, dim_head=32, n_ff=256,
                  n_head_delta_k=3, n_head_delta_v=3, dim_delta=32, has_head=False),
}
DEPTHS = (0.3, 0.2, 0.1)                         # what the guesses of the head count, by depth
HELD_OUT = 24                                    # every so manyth dialogue is not learned


# -- Texts ------------------------------------------------------------------------------

def turn(role, text):
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def dialogues(shared):
    for line in (shared / "data/conversations/mtbench101.jsonl").read_text().splitlines():
        yield "".join(turn("user", h["user"]) + turn("assistant", h["bot"]) for h in json.loads(line)["history"])


def texts(shared):
    """(to learn from, held out)."""
    all_dialogues = list(dialogues(shared))
    articles = (shared / "data/conversations/wiki.test.raw").read_text().split("\n = ")
    files = [f.read_text() for kind in ("docs/*.md", "src/engine/*/*.c", "src/chat/*/*.c", "include/ebb/*.h")
             for f in sorted(ROOT.glob(kind))]
    held = all_dialogues[::HELD_OUT]
    return [d for i, d in enumerate(all_dialogues) if i % HELD_OUT] + articles + files, held


def make_vocabulary(learned):
    return bpe.Vocabulary(bpe.learn(learned, N_VOCAB - 256 - len(bpe.CONTROL)))


class Batches:
    """Endless batches of ids [n_rows, N_TEXT], the texts one behind the other, each time in another order."""

    def __init__(self, vocabulary, learned, n_rows, seed):
        self.rng, self.n_rows = random.Random(seed), n_rows
        self.texts = [vocabulary.encode(t) + [vocabulary.id["<|endoftext|>"]] for t in learned]
        self.n_tokens = sum(map(len, self.texts))

    def __iter__(self):
        while True:
            self.rng.shuffle(self.texts)
            ids = np.fromiter((i for t in self.texts for i in t), np.int64)[self.rng.randrange(N_TEXT):]
            rows = ids[:len(ids) // N_TEXT * N_TEXT].reshape(-1, N_TEXT)
            rows = rows[np.random.default_rng(self.rng.randrange(1 << 30)).permutation(len(rows))]
            for i in range(0, len(rows) - self.n_rows + 1, self.n_rows):
                yield torch.from_numpy(rows[i:i + self.n_rows])


# -- Training -----------------------------------------------------------------------------

def loss_of(net, ids, rng):
    """(what is learned from, the loss of the next token, those of the head by depth)."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = net(ids)
        n_depths = len(DEPTHS) if rng.random() < 0.5 else 1                        # the deeper ones cost as much
        logits = net.logits(hidden[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        total, by_depth = loss, []
        for d, h in enumerate(net.drafted(ids, hidden, n_depths) if net.head else (), 1):
            rows = torch.tensor(rng.sample(range(d, N_TEXT - 1), N_TEXT // 4))     # enough to learn from
            ce = F.cross_entropy(net.logits(h[:, rows]).float().flatten(0, 1), ids[:, rows + 1].flatten())
            total = total + DEPTHS[d - 1] * ce
            by_depth.append(ce.item())
    return total, loss.item(), by_depth + [math.nan] * ((len(DEPTHS) if net.head else 0) - len(by_depth))


def make_optimizers(net, rate):
    """(optimizer, its highest rate)"""
    named = list(net.named_parameters())
    inner = [p for n, p in named if p.dim() > 1 and "conv" not in n and n != "token_embd.weight"]
    other = [p for n, p in named if p.dim() < 2 or "conv" in n]
    adam = lambda params, rate: (torch.optim.AdamW(params, lr=rate, betas=(0.9, 0.98), weight_decay=0.0), rate)
    return [(Muon(inner, rate), rate), adam([net.token_embd.weight], rate / 8), adam(other, rate / 5)]


def share_of_rate(done, step):
    """Warm up, stay, and go down over the second half of the way."""
    return min(1.0, (step + 1) / 40, max(0.02, (1 - done) / 0.5))


def save(path, state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def train(args):
    torch.manual_seed(args.seed)
    learned, _ = texts(args.shared)
    kept = torch.load(args.checkpoint) if os.path.exists(args.checkpoint) else None
    vocabulary = bpe.Vocabulary(kept["merges"] if kept else load_merges(args, learned))
    net = Net(dict(SHAPES[args.which], n_vocab=len(vocabulary.tokens)))
    optimizers = make_optimizers(net, args.rate)
    state = kept or {"merges": vocabulary.merges, "step": 0, "seconds": 0.0}
    if kept:
        net.load_state_dict(kept["weights"])
        for (o, _), was in zip(optimizers, kept["optimizers"]):
            o.load_state_dict(was)
    batches = Batches(vocabulary, learned, args.rows, args.seed + state["step"])
    print(f"{batches.n_tokens} tokens; {sum(p.numel() for p in net.parameters()) / 1e6:.2f} M weights", flush=True)
    run(args, net, optimizers, state, batches)


def load_merges(args, learned):
    """Both models have the same vocabulary: whoever begins first makes it."""
    path = Path(args.checkpoint).parent / "pair-merges.json"
    if not path.exists():
        path.write_text(json.dumps(make_vocabulary(learned).merges))
    return json.loads(path.read_text())


def run(args, net, optimizers, state, batches):
    """Trains until the time is up.  Only time in a step counts, so that a process that is stopped loses none."""
    rng, mean = random.Random(args.seed), None
    for ids in batches:
        begin, done = time.process_time(), state["seconds"] / (60 * args.minutes)
        if done >= 1:
            break
        total, loss, by_depth = loss_of(net, ids, rng)
        net.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        for o, peak in optimizers:
            for group in o.param_groups:
                group["lr"] = peak * share_of_rate(done, state["step"])
            o.step()
        state["step"] += 1
        state["seconds"] += time.process_time() - begin
        now = np.array([loss, *by_depth])
        mean = now if mean is None else np.where(np.isnan(now + mean), np.fmax(now, mean), 0.95 * mean + 0.05 * now)
        if state["step"] % 20 == 0:
            print(f"step {state['step']}  {100 * done:.0f} %  loss {' '.join(f'{x:.3f}' for x in mean)}  "
                  f"{state['step'] * ids.numel() / state['seconds']:.0f} tok/s", flush=True)
        if state["step"] % 100 == 0:
            keep(args.checkpoint, net, optimizers, state)
    keep(args.checkpoint, net, optimizers, state)


def keep(path, net, optimizers, state):
    save(path, dict(state, weights=net.state_dict(), optimizers=[o.state_dict() for o, _ in optimizers]))


# -- The file -----------------------------------------------------------------------------

def metadata(which, shape, v):
    s, a = shape, "qwen35."
    u32 = lambda key, value: (a + key, gguf.U32, value)
    return [
        ("general.architecture", gguf.STR, "qwen35"), ("general.name", gguf.STR, f"ebb pair, {which}"),
        u32("context_length", N_CTX), u32("embedding_length", s["n_embd"]),
        u32("block_count", s["n_layers"] + s["has_head"]),
        u32("feed_forward_length", s["n_ff"]), u32("attention.head_count", s["n_head"]),
        u32("attention.head_count_kv", s["n_head_kv"]), u32("attention.key_length", s["dim_head"]),
        u32("attention.value_length", s["dim_head"]), u32("rope.dimension_count", s["dim_rope"]),
        u32("full_attention_interval", s["period"]), u32("ssm.conv_kernel", 4), u32("ssm.state_size", s["dim_delta"]),
        u32("ssm.group_count", s["n_head_delta_k"]), u32("ssm.time_step_rank", s["n_head_delta_v"]),
        u32("ssm.inner_size", s["n_head_delta_v"] * s["dim_delta"]), u32("nextn_predict_layers", int(s["has_head"])),
        (a + "attention.layer_norm_rms_epsilon", gguf.F32, s["eps"]), (a + "rope.freq_base", gguf.F32, s["rope_base"]),
        ("tokenizer.ggml.model", gguf.STR, "gpt2"), ("tokenizer.ggml.pre", gguf.STR, "gpt-2"),
        ("tokenizer.ggml.tokens", gguf.ARR, (gguf.STR, v.tokens)),
        ("tokenizer.ggml.token_type", gguf.ARR, (gguf.I32, [3 if t in bpe.CONTROL else 1 for t in v.tokens])),
        ("tokenizer.ggml.merges", gguf.ARR, (gguf.STR, [" ".join(m) for m in v.merges])),
        ("tokenizer.ggml.eos_token_id", gguf.U32, v.id["<|im_end|>"]),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, False),
        ("tokenizer.chat_template", gguf.STR, TEMPLATE),
    ]


TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
            "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def file_name(net, name):
    """The name of a weight in the file; the head is the layer behind the others."""
    at = f"blk.{net.shape['n_layers']}."
    name = name.replace(".mix.", ".").replace("head.layer.", at)
    return at + "nextn." + name[len("head."):] if name.startswith("head.") else name


def tensors(net):
    for name, p in net.state_dict().items():
        x = p.detach().float().numpy()
        if name.endswith("ssm_log_a"):
            yield file_name(net, name[:-len("log_a")] + "a"), -np.exp(x)
        else:
            yield file_name(net, name) + {"ssm_dt": ".bias", "ssm_conv1d": ".weight"}.get(name.split(".")[-1], ""), x


def restore(args):
    kept = torch.load(args.checkpoint)
    vocabulary = bpe.Vocabulary(kept["merges"])
    net = Net(dict(SHAPES[args.which], n_vocab=len(vocabulary.tokens)))
    net.load_state_dict(kept["weights"])
    return net.eval(), vocabulary


def export(args):
    net, vocabulary = restore(args)
    gguf.write(args.export, metadata(args.which, net.shape, vocabulary), list(tensors(net)), quantize=not args.f32)


def write_prompts(args):
    """Held-out dialogues, each up to its last answer, and that one's own beginning left out."""
    _, held = texts(args.shared)
    Path(args.dir).mkdir(parents=True, exist_ok=True)
    for i, d in enumerate(held):
        at = d.rindex("<|im_start|>assistant\n") + len("<|im_start|>assistant\n")
        (Path(args.dir) / f"{i:02}.txt").write_text(d[:at])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("which", choices=[*SHAPES, "prompts"])
    p.add_argument("dir", nargs="?", help="where prompts go")
    p.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="where data/conversations is")
    p.add_argument("--checkpoint", help="default: pair-WHICH.pt")
    p.add_argument("--minutes", type=float, default=60, help="of processor time")
    p.add_argument("--rows", type=int, default=5, help=f"texts of {N_TEXT} tokens of a step")
    p.add_argument("--rate", type=float, default=0.015)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--export")
    p.add_argument("--f32", action="store_true", help="write all weights as they are, not as Q8_0")
    args = p.parse_args()
    args.checkpoint = args.checkpoint or f"pair-{args.which}.pt"
    if args.which == "prompts":
        write_prompts(args)
    else:
        export(args) if args.export else train(args)


if __name__ == "__main__":
    main()
