"""Makes conversations out of corpus/*.txt.  See corpus/README.md for how those files are written.

  corpus.py [-n N] [--seed S]        # print N conversations, to look at
  corpus.py --stats                  # what is in the corpus
"""
import argparse
import pathlib
import random
import re

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "corpus"
OFF = "off-topic"
ROWS = "qwertyuiop", "asdfghjkl", "zxcvbnm"     # of a keyboard

SHORT = [(r"\bI am\b", "I'm"), (r"\bI would\b", "I'd"), (r"\bI have\b", "I've"), (r"\byou are\b", "you're"),
         (r"\bit is\b", "it's"), (r"\bthat is\b", "that's"), (r"\bwhat is\b", "what's"), (r"\bdo not\b", "don't"),
         (r"\bdoes not\b", "doesn't"), (r"\bcannot\b", "can't"), (r"\bwill not\b", "won't"), (r"\bis not\b", "isn't"),
         (r"\bhow is\b", "how's"), (r"\bwho is\b", "who's"), (r"\bwhere is\b", "where's"), (r"\bdid not\b", "didn't")]


def normal(text):
    """A question without case, punctuation and spacing, to compare."""
    return " ".join(re.findall(r"[\w/-]+", text.lower()))


# -- reading -------------------------------------------------------------------

def lines(name):
    for line in (FOLDER / name).read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            yield line


def read_lists(name):
    """'head: a | b | c' lines -> {head: [a, b, c]}; the same head again adds to it."""
    out = {}
    for line in lines(name):
        head, _, rest = line.partition(":")
        out.setdefault(head.strip(), []).extend(x.strip() for x in rest.split(" | ") if x.strip())
    return out


def read_classes(name):
    """'a | b | c' lines -> each single word of a class with the others: {a: [b, c], b: [a, c], ...}."""
    out = {}
    for line in lines(name):
        words = line.split(" | ")
        for w in words:
            if " " not in w:
                out.setdefault(w.lower(), []).extend(x for x in words if x != w)
    return out


class Fact:
    """One thing to know: ways to ask for it, what to answer, and what may be asked next."""

    def __init__(self, name, thing):
        self.name, self.thing = name, thing      # thing: the command, key or option it is about, or ""
        self.do, self.what, self.ask, self.say, self.then = [], [], [], [], []
        self.own = []                            # questions of asked-*.txt, each as somebody put it
        self.often = []                          # how often each of `own` comes: one that stands for many more often
        self.after = []                          # follow-ups of other facts that this one answers
        self.weight = 1.0


def read_facts(name, have):
    """The facts of a file; those about a command or key that the program lacks are left out."""
    facts, every, fact = {}, {}, None
    for line in lines(name):
        m = re.fullmatch(r"\[([\w-]+)\]\s*(.*)", line)
        if m:
            about = m.group(2)
            fact = every[m.group(1)] = Fact(m.group(1), "" if about.startswith("!") else about)
            if about[1:] not in have if about.startswith("!") else about.startswith(("-", "ebb")) or about in have | {""}:
                assert fact.name not in facts, f"{name}: [{fact.name}] twice"
                facts[fact.name] = fact
            continue
        key, _, rest = line.partition(":")
        rest = rest.strip()
        if key == "then":
            q, _, a = rest.partition(" => ")
            fact.then.append((q.strip(), a.strip()))
        elif key == "weight":
            fact.weight = float(rest)
        elif key == "like":
            for kind in ("do", "what", "ask"):
                getattr(fact, kind).extend(getattr(every[rest], kind))
        else:
            getattr(fact, key).append(rest)
    return facts


def read_asked(facts):
    """More questions to the facts, of asked-*.txt: '[fact]' lines, each followed by questions as they stand and by follow-ups.
    Returns the names of no fact, which may be those that the program lacks a command for."""
    unknown, fact = [], None
    for line in (line for path in sorted(FOLDER.glob("asked-*.txt")) for line in lines(path.name)):
        m = re.fullmatch(r"\[([\w-]+)\]", line)
        if m:
            fact = facts.get(m.group(1))
            unknown += [m.group(1)] if not fact else []
        elif fact and line.startswith("then:"):
            q, _, a = line[5:].partition(" => ")
            fact.then.append((q.strip(), a.strip()))
        elif fact:
            fact.own.append(line)
            fact.often.append((1 + line.count("|")) ** 0.6)
    return unknown


class Corpus:
    def __init__(self, held_out=()):
        self.have = set(lines("have.txt"))
        self.facts = {**read_facts("facts.txt", self.have), **read_facts("talk.txt", self.have)}
        self.unknown = read_asked(self.facts)
        self.frames = read_lists("frames.txt")
        self.words = read_lists("words.txt")            # lists for $name
        self.similar = read_classes("similar.txt")      # word -> words that may stand for it in a question
        self.hasty = read_lists("hasty.txt")            # word -> how it is written in a hurry
        self.leading = re.compile(rf"({'|'.join(self.frames['leading'])}) ", re.I)
        self.off = list(lines("offtopic.txt"))
        self.off_say = self.frames["off-topic answer"]
        self.held_out = set(map(normal, held_out))
        for f in self.facts.values():
            assert f.say and (f.do or f.what or f.ask or f.own or f.thing), f"[{f.name}] says or asks nothing"
            f.then = [(q, a) for q, a in f.then if not a.startswith("@") or a[1:] in self.facts]
            for q, a in f.then:
                if a.startswith("@"):
                    self.facts[a[1:]].after.append(q)
        self.names = list(self.facts)
        self.weights = [f.weight for f in self.facts.values()]

    @staticmethod
    def files():
        return list(FOLDER.glob("*.txt"))

    # -- one text -----------------------------------------------------------------

    def expand(self, pattern, rng):
        """{a|b} -> one of them; $name -> one of that list; innermost first."""
        for _ in range(40):
            m = re.search(r"\{([^{}]*)\}", pattern)
            if m:
                pattern = pattern[:m.start()] + rng.choice(m.group(1).split("|")) + pattern[m.end():]
                continue
            m = re.search(r"\$([a-z]+)", pattern)
            if not m:
                break
            kind = m.group(1)
            word = getattr(self, "make_" + kind)(rng) if hasattr(self, "make_" + kind) else rng.choice(self.words[kind])
            pattern = pattern[:m.start()] + word + pattern[m.end():]
        return re.sub(r" +([?.,!])(?!\w)", r"\1", re.sub(r"  +", " ", pattern)).strip()

    def make_number(self, rng):
        return str(rng.choice([rng.randrange(10), rng.randrange(100), rng.randrange(3000)]))

    def make_noise(self, rng):
        """A word nobody knows: most things that people ask about are not in this corpus."""
        parts = [rng.choice(self.words["onset"]) + rng.choice(self.words["rime"]) for _ in range(rng.choice([1, 2, 2, 3]))]
        return "".join(parts)

    def make_fake(self, rng):
        """The name of a command that does not exist."""
        while True:
            word = "/" + (self.make_noise(rng) if rng.random() < 0.6 else rng.choice(self.words["verb"]))
            if word not in self.have:
                return word

    def widen(self, text, rng):
        """Words of a question replaced by similar ones, in every other question."""
        out, often = [], 0.25 if rng.random() < 0.5 else 0.0
        for w in text.split(" "):
            core = w.strip("?.,!").lower()
            if core in self.similar and rng.random() < often:
                w = w.lower().replace(core, rng.choice(self.similar[core]), 1)
            out.append(w)
        return " ".join(out)

    def shorten(self, text, rng):
        """I am -> I'm and the like, with or without the apostrophe."""
        for pattern, short in SHORT:
            if rng.random() < 0.5:
                text = re.sub(pattern, short if rng.random() < 0.7 else short.replace("'", ""), text, flags=re.I)
        return text

    def hurry(self, text, rng):
        """A question as a telegram: without the words that make it one, in short forms, sometimes its verb last."""
        r = rng.random
        if r() < 0.6:
            text = self.leading.sub("", text, count=1) if self.leading.match(text) else text
        words = [w for w in text.rstrip("?.! ").split(" ") if w.lower() not in self.words["small"] or r() < 0.4]
        words = [rng.choice(self.hasty[w.lower()]) if w.lower() in self.hasty and r() < 0.35 else w for w in words]
        if 1 < len(words) < 7 and r() < 0.15:
            words.append(words.pop(0))
        text = " ".join(words) or text
        return (text.lower() if r() < 0.9 else text) + rng.choice(self.frames["hasty end"] if r() < 0.5 else [""]).replace("_", " ")

    def smudge(self, text, rng):
        """What fingers do to a text: case, punctuation, lost small words, typing errors."""
        r = rng.random
        text, is_hasty = self.shorten(text, rng), r() < 0.35
        if is_hasty:
            text = self.hurry(text, rng)
        elif r() < 0.5:
            text = text.lower() if r() < 0.95 else text.upper()
        elif r() < 0.7:
            text = text[:1].upper() + text[1:]
        if r() < 0.45 and not is_hasty:
            text = text.rstrip("?.! ")
        if r() < 0.12 and text.count(" ") > 2:           # a question is known without any one of its words
            w = text.split(" ")
            i = rng.randrange(len(w))
            w[i:i + 1] = [self.make_noise(rng)] if r() < 0.4 else []
            text = " ".join(w)
        if r() < 0.08 and " " in text:
            w = text.split(" ")
            w.insert(rng.randrange(len(w)), self.make_noise(rng) if r() < 0.4 else rng.choice(self.words["filler"]))
            text = " ".join(w)
        if r() < (0.45 if is_hasty else 0.14):
            for _ in range(rng.choice([1, 1, 2, 3] if is_hasty and len(text) > 12 else [1])):
                text = self.slip(text, rng)
        return text

    def slip(self, text, rng):
        """One typing error, not in the first letter of a word: a letter lost, two that changed places, one doubled or no longer
        double, one beside the key that was meant, or a vowel for another."""
        at = [i for i, c in enumerate(text) if c.isalpha() and i > 0 and text[i - 1].isalpha()]
        if not at:
            return text
        i = rng.choice(at)
        kind = rng.choice("lost lost swap swap double single key vowel".split())
        if kind == "swap" and i + 1 < len(text) and text[i + 1].isalpha():
            return text[:i] + text[i + 1] + text[i] + text[i + 2:]
        if kind == "double":
            return text[:i] + text[i] + text[i:]
        if kind == "single":
            twice = [k for k in at if text[k] == text[k - 1]]
            i = rng.choice(twice or at)
        if kind == "key":
            return text[:i] + self.neighbour(text[i], rng) + text[i + 1:]
        if kind == "vowel":
            vowels = [k for k in at if text[k] in "aeiou"]
            i = rng.choice(vowels or at)
            return text[:i] + rng.choice("aeiou") + text[i + 1:] if vowels else text
        return text[:i] + text[i + 1:]

    @staticmethod
    def neighbour(c, rng):
        """A key beside that of the letter c, on one of the rows."""
        for k, row in enumerate(ROWS):
            at = row.find(c.lower())
            if at >= 0:
                near = [r[j] for r in ROWS[max(0, k - 1):k + 2] for j in range(max(0, at - 1), min(len(r), at + 2)) if r[j] != c.lower()]
                return rng.choice(near)
        return c

    # -- questions --------------------------------------------------------------------

    def question(self, fact, rng):
        kinds = [(len(fact.do) and 3, "do", fact.do), (len(fact.what) and 2, "what", fact.what),
                 (min(3, len(fact.ask)), "ask", fact.ask), (min(6, len(fact.own) / 2), "ask", fact.own), (1.2 if fact.thing else 0, "thing", [fact.thing]),
                 (min(0.5, len(fact.after) / 6), "ask", fact.after)]
        _, kind, patterns = rng.choices(kinds, [k[0] for k in kinds])[0]
        core = rng.choices(fact.own, fact.often)[0] if patterns is fact.own else rng.choice(patterns)
        if kind == "ask":
            text = core
        elif kind == "thing":
            frames = self.frames["thing" if core.startswith(("/", "-")) else "key"]
            text = rng.choice(frames).replace("X", self.spelling(core.split(" ")[0] if core[0] in "/-" else core, rng))
        else:
            text = rng.choice(self.frames[kind]).replace("X", core)
        return self.widen(self.expand(text, rng), rng)

    def spelling(self, thing, rng):
        """Ctrl-C, ctrl+c, ^C ...; commands sometimes without their slash."""
        if thing.startswith("Ctrl-"):
            k = thing[5:]
            return rng.choice([thing, thing, f"Ctrl+{k}", f"ctrl {k.lower()}", f"^{k}", f"control {k}", f"control-{k.lower()}"])
        if thing.startswith("/") and rng.random() < 0.12:
            return f"the {thing[1:]} command"
        return thing.replace("-", " ") if thing[0] not in "/-" and rng.random() < 0.2 else thing

    def clean(self, make, rng):
        """A smudged question that is not one of those kept for the test."""
        while True:
            q = make()
            if rng.random() < 0.08:
                q = f"{rng.choice(self.frames['before'])} {q[:1].lower() + q[1:] if rng.random() < 0.7 else q}"
            if rng.random() < 0.06:
                tail = rng.choice(self.frames["after"])
                q = q.rstrip("?.! ") + (tail if tail[0] in ",?" else " " + tail)
            q = self.smudge(self.expand(q, rng), rng)
            if normal(q) not in self.held_out:
                return q

    def off_topic(self, rng):
        text = self.expand(rng.choice(self.off), rng)
        return self.widen(text, rng) if rng.random() < 0.3 else text

    def saying(self, fact, rng):
        return self.expand(rng.choice(fact.say), rng)

    # -- conversations ----------------------------------------------------------------

    def turn(self, rng, last):
        """One question, its answer, the fact to go on from (or None), and what the answer is: the name of a fact, or
        "" for something else; `last` is the fact spoken of before, or None."""
        if last and last.then and rng.random() < 0.75:
            q, a = rng.choice(last.then)
            fact = self.facts[a[1:]] if a.startswith("@") else last
            answer = self.saying(fact, rng) if a.startswith("@") else self.expand(a, rng)
            return self.clean(lambda: self.widen(self.expand(q, rng), rng), rng), answer, fact, a[1:] if a.startswith("@") else ""
        if rng.random() < 0.2:
            return self.clean(lambda: self.off_topic(rng), rng), rng.choice(self.off_say), None, OFF
        fact = self.facts[rng.choices(self.names, self.weights)[0]]
        make = lambda: self.question(fact, rng)
        if last and rng.random() < 0.4:
            link = rng.choice(self.frames["next"])
            make = lambda: link.replace("X", self.question(fact, rng))
        return self.clean(make, rng), self.saying(fact, rng), fact, fact.name

    def conversation(self, rng):
        """A list of (role, text), or with labelled(): of (role, text, name of the fact that answers or "")."""
        return [(role, text) for role, text, _ in self.labelled(rng)]

    def labelled(self, rng):
        out = []
        if rng.random() < 0.1:
            out.append(("system", self.expand(rng.choice(self.frames["system"]), rng), ""))
        n = rng.choices([1, 2, 3, 5, 9], [88, 9, 2, 0.8, 0.2])[0]     # ebb shows the guide each question alone
        last = None
        for _ in range(n):
            q, a, last, name = self.turn(rng, last)
            out += [("user", q, ""), ("assistant", a, name)]
        return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--stats", action="store_true")
    args = p.parse_args()
    c, rng = Corpus(), random.Random(args.seed)
    if args.stats:
        n = sum(len(f.do) + len(f.what) + len(f.ask) + len(f.own) + len(f.then) for f in c.facts.values())
        print("".join(f"asked-*.txt: there is no [{name}]\n" for name in c.unknown), end="")
        print(f"{len(c.facts)} facts, {n} question patterns, {len(c.off)} off-topic patterns, {len(c.similar)} words with similar ones")
        return
    for _ in range(args.n):
        for role, text in c.conversation(rng):
            print(f"{role}: {text}")
        print()


if __name__ == "__main__":
    main()
