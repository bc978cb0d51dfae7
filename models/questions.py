"""Questions with what a right answer contains: HELD_OUT, which training must not see, and tuning*.txt, which may be looked at.
check.py says how they are written."""
import pathlib

HERE = pathlib.Path(__file__).parent
HELD_OUT = "newcomers.txt", "ordinary.txt", "sloppy.txt", "other-programs.txt"
DECLINED = "larger model|no command of that name|did not understand|/model file"


def read_held_out():
    """(question, words of a right answer) pairs that training must not see, follow-ups too."""
    return [(q, words) for name in HELD_OUT for talk in read_talks(HERE / name) for q, words, _ in talk]


def read_talks(path):
    """Conversations: lists of (question, words of a right answer, off-topic)."""
    talks = []
    for line in path.read_text().splitlines():
        kind, _, text = line.partition(": ")
        if kind in ("Q", "O"):
            talks.append([(text, DECLINED if kind == "O" else "", kind == "O")])
        elif kind == "F":
            talks[-1].append((text, "", False))
        elif kind == "A":
            talks[-1][-1] = (talks[-1][-1][0], text, False)
    return talks
