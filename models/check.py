#!/usr/bin/env python3
"""Ask the guide the questions that its training never saw, and print the score of each file of them.

  check.py [--ebb PROGRAM] [--model guide.gguf] [-v]     # through `ebb run`, greedy
  check.py --torch guide.pt [-v]                         # a checkpoint, through torch
  check.py --questions tuning.txt ...                    # other questions in the same form

A file of questions: "Q: question", any number of "F: follow-up of the question before", each followed by "A: words",
what a right answer contains: every word of the line, in any case; a|b: one of them.  "O: question" is
off-topic and is to be declined with the hint.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

from questions import HELD_OUT, read_talks

HERE = pathlib.Path(__file__).parent


def right(answer, words, off):
    answer = answer.lower()
    wanted = [words.lower()] if off else words.lower().split()
    return all(any(a in answer for a in w.split("|")) for w in wanted)


def known_commands():
    return set(re.findall(r"^/\w+", (HERE / "corpus" / "have.txt").read_text(), re.M))


def invented(answer):
    """Slash commands in an answer that ebb does not have.  /no_think is Qwen's, paths are no commands."""
    said = re.findall(r"(?<![\w~/.])/[a-z_]+(?![\w/])", re.sub(r"/(path|usr|no_think)\S*", "", answer))
    return sorted(set(said) - known_commands())


def render(turns):
    return "".join(f"<|im_start|>{r}\n{t}<|im_end|>\n" for r, t in turns) + "<|im_start|>assistant\n"


def ask_torch(path):
    import torch
    from net import answer
    from train import restore
    torch.set_num_threads(1)
    net, vocabulary = restore(path)
    return lambda turns: answer(net, vocabulary, render(turns))


def ask_ebb(program, model):
    """Each conversation is a session of its own, in a store of its own."""
    import os
    import tempfile
    home = tempfile.TemporaryDirectory()
    env = {**os.environ, "XDG_STATE_HOME": home.name, "XDG_CACHE_HOME": home.name}

    def ask(turns):
        ask.n += len(turns) == 1
        command = [program, "run", *(["-m", model] if model else []), "-p", turns[-1][1], "-s", f"talk{ask.n}", "--greedy", "--json", "-n", "200"]
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode:
            sys.exit(f"check.py: {program} run: {done.stderr.strip()}")
        return json.loads(done.stdout)["text"]
    ask.home, ask.n = home, 0
    return ask


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ebb", default=str(HERE.parent / "build" / "release" / "ebb"))
    p.add_argument("--model", default=str(HERE / "guide.gguf"))
    p.add_argument("--torch", metavar="CHECKPOINT")
    p.add_argument("--questions", nargs="+", default=[HERE / name for name in HELD_OUT])
    p.add_argument("-v", action="store_true", help="show every answer, not the wrong ones alone")
    args = p.parse_args()
    ask = ask_torch(args.torch) if args.torch else ask_ebb(args.ebb, args.model)
    sys.exit(not all([score(pathlib.Path(path), ask, args.v) for path in args.questions]))


def score(path, ask, is_verbose):
    """Asks the questions of a file, prints what is wrong and the score; whether that is good enough."""
    good = {False: [0, 0], True: [0, 0]}
    bad_commands = 0
    for talk in read_talks(path):
        turns = []
        for q, words, off in talk:
            turns.append(("user", q))
            a = ask(turns)
            turns.append(("assistant", a))
            ok, made_up = right(a, words, off), invented(a)
            good[off][0] += ok
            good[off][1] += 1
            bad_commands += len(made_up)
            if is_verbose or not ok or made_up:
                print(f"{'ok   ' if ok else 'WRONG'} {q}\n      {a}{'  INVENTED: ' + ' '.join(made_up) if made_up else ''}")
    (on, n_on), (off, n_off) = good[False], good[True]
    print(f"{path.name}: about ebb {on}/{n_on} ({100 * on / max(1, n_on):.0f} %), off-topic declined {off}/{n_off} "
          f"({100 * off / max(1, n_off):.0f} %), invented commands {bad_commands}")
    return on >= 0.8 * n_on and off >= 0.9 * n_off and not bad_commands


if __name__ == "__main__":
    main()
