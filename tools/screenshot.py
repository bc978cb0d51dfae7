#!/usr/bin/env python3
"""Plays a script in ebb, in a real terminal (tmux), and draws what the screen showed as SVG.

    tools/screenshot.py EBB docs/screens/NAME.txt docs/NAME.svg

A script has one command on a line; "#" begins a comment:

    size 100 30          columns and rows of the terminal, before anything else; each further one begins another
                         terminal, and the picture is a sheet of them
    title TEXT           above the terminal that begins next on a sheet
    light                draw the terminal that begins next with dark ink on light ground
    film                 draw everything that is seen from here on as an animation, not the last screen alone
    run WORDS            type a command into the shell; $EBB stands for the program
    type TEXT            type, key by key while filming
    key Enter            a key by its tmux name
    wait TEXT            until the screen shows the text (20 s)
    gone TEXT            until it does not
    pause SECONDS
    still                what a film shows where nothing moves; else its end

The program sees an empty home, and whatever $EBB_MODELS names.  Needs tmux, and no module beyond Python's own.
"""
import html
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

CELL_W, CELL_H, PAD = 8.4, 17, 12
FONT = "'DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace"
DARK = ("#1c1f24", "#d6d8dc",
        ["#2b2f36", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
         "#6b7280", "#ff8a93", "#b5e08f", "#ffd58a", "#85c8ff", "#dd99f0", "#7fd6e0", "#ffffff"])
LIGHT = ("#fbfaf7", "#2b2f36",
         ["#2b2f36", "#b3261e", "#2e7d32", "#8a5a00", "#1f5fbf", "#8e3aa8", "#00747f", "#d9dbe0",
          "#6b7280", "#c62828", "#388e3c", "#a06a00", "#2f6fd0", "#9c4db8", "#00838f", "#ffffff"])
GROUND, INK, ANSI = DARK
SHEET_W, GAP = 1200, 24
FRAME_S = 0.12


class Terminal:
    """A tmux server of its own with one pane."""

    def __init__(self, cols, rows, ebb):
        self.cols, self.rows = cols, rows
        self.socket = f"ebb-screen-{os.getpid()}-{time.monotonic_ns()}"
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        env = {"HOME": self.home.name, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color",
               "COLORTERM": "truecolor", "EBB": ebb}
        env.update({k: v for k, v in os.environ.items() if k == "EBB_MODELS"})
        self.tmux("new-session", "-d", "-x", str(cols), "-y", str(rows), "PS1='$ ' bash --norc --noprofile -i", env=env)
        self.tmux("set", "-g", "status", "off")
        self.wait("$", True)

    def tmux(self, *words, env=None):
        return subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *words], env=env, check=True,
                              capture_output=True, text=True).stdout

    def screen(self):
        """The rows as runs of cells, the cursor as (column, row) or None."""
        style = {}                                  # goes on from row to row
        rows = [runs(row, style) for row in self.tmux("capture-pane", "-e", "-N", "-p").split("\n")[:self.rows]]
        x, y, shown = self.tmux("display", "-p", "#{cursor_x} #{cursor_y} #{cursor_flag}").split()
        return rows, (int(x), int(y)) if shown == "1" else None

    def wait(self, text, there):
        end = time.time() + 20
        while (text in self.tmux("capture-pane", "-p")) != there:
            if time.time() > end:
                raise SystemExit(f"{'never' if there else 'always'} on the screen: {text}\n{self.tmux('capture-pane', '-p')}")
            yield_frame()
            time.sleep(FRAME_S / 2)

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
        self.home.cleanup()


def yield_frame():
    """Takes a picture while filming; set by play()."""


# -- From escape sequences to runs of cells ---------------------------------------------------

def colour(words):
    """The colour that an SGR's words begin with behind 38 or 48; consumes them."""
    if words.pop(0) == 2:
        return "#%02x%02x%02x" % tuple(words.pop(0) for _ in range(3))
    n = words.pop(0)
    if n < 16:
        return ANSI[n]
    if n >= 232:
        return "#" + "%02x" % (8 + 10 * (n - 232)) * 3
    level = lambda c: 55 + 40 * c if c else 0
    return "#%02x%02x%02x" % (level((n - 16) // 36), level((n - 16) // 6 % 6), level((n - 16) % 6))


def set_style(style, words):
    flags = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
    off = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 39: ("fg",), 49: ("bg",)}
    while words:
        n = words.pop(0)
        if n == 0:
            style.clear()
        elif n in flags:
            style[flags[n]] = True
        elif n in off:
            for name in off[n]:
                style.pop(name, None)
        elif n in (38, 48):
            style["fg" if n == 38 else "bg"] = colour(words)
        elif 30 <= n <= 37 or 90 <= n <= 97:
            style["fg"] = ANSI[n - 30 if n < 90 else n - 82]
        elif 40 <= n <= 47 or 100 <= n <= 107:
            style["bg"] = ANSI[n - 40 if n < 100 else n - 92]


def wide(c):
    import unicodedata
    return 0 if unicodedata.combining(c) or c == "\u200d" else 2 if unicodedata.east_asian_width(c) in "WF" else 1


def runs(row, style):
    """(column, cells, text, style) of each stretch of one style; `style` is what the terminal stands at."""
    col, out = 0, []
    for part in re.split(r"(\x1b\[[\d;:]*m|\x1b[()].)", row):
        m = re.fullmatch(r"\x1b\[([\d;:]*)m", part)
        if m:
            set_style(style, [int(n or 0) for n in re.split("[;:]", m.group(1))])
        elif part and not part.startswith("\x1b"):
            n = sum(map(wide, part))
            out.append((col, n, part, dict(style)))
            col += n
    return out


# -- From runs to SVG ---------------------------------------------------------------------------

def block(c, x, y, ink):
    """Characters that are made of areas are drawn as such: fonts leave gaps between them.  None: it is text."""
    w, h = CELL_W, CELL_H
    n = ord(c)
    rect = lambda x, y, w, h, o="": f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{ink}"{o}/>'
    if c in "░▒▓":
        return rect(x, y + 3, w - 1, h - 6, f' opacity="{ {"░": .22, "▒": .5, "▓": .75}[c] }"')
    if c == "█":
        return rect(x, y + 3, w - 1, h - 6)
    if 0x2581 <= n <= 0x2587:
        part = (n - 0x2580) / 8
        return rect(x, y + h * (1 - part), w, h * part)
    if 0x2589 <= n <= 0x258f:
        return rect(x, y + 3, (w - 1) * (0x2590 - n) / 8, h - 6)
    lines = {"│": "v", "─": "h", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "vr", "┤": "vl", "┬": "hd", "┴": "hu", "┼": "hv"}
    if c in lines:
        ends = {"v": (.5, 0, .5, 1), "h": (0, .5, 1, .5), "r": (.5, .5, 1, .5), "l": (0, .5, .5, .5),
                "u": (.5, 0, .5, .5), "d": (.5, .5, .5, 1)}
        d = "".join("M%.1f %.1fL%.1f %.1f" % (x + a * w, y + b * h, x + e * w, y + f * h)
                    for a, b, e, f in (ends[k] for k in lines[c]))
        return f'<path d="{d}" stroke="{ink}" fill="none"/>'
    if 0x2800 <= n <= 0x28ff:
        bits = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
        return "".join(f'<circle cx="{x + w * (.3 + .42 * a):.1f}" cy="{y + h * (.16 + .23 * b):.1f}" r="1.2" fill="{ink}"/>'
                       for i, (a, b) in enumerate(bits) if (n - 0x2800) >> i & 1)
    return None


def draw_run(col, n, text, style, y):
    ink, ground = style.get("fg", INK), style.get("bg")
    if style.get("reverse"):
        ink, ground = ground or GROUND, ink
    out, x = "", PAD + col * CELL_W
    if ground:
        out += f'<rect x="{x:.1f}" y="{y:.1f}" width="{n * CELL_W:.1f}" height="{CELL_H}" fill="{ground}"/>'
    look = f' fill="{ink}"' if ink != INK else ""
    look += ' font-weight="bold"' if style.get("bold") else ""
    look += ' font-style="italic"' if style.get("italic") else ""
    look += ' text-decoration="underline"' if style.get("underline") else ""
    look += ' opacity="0.6"' if style.get("dim") else ""
    plain, at = "", x                               # text since the last block character, and where it began

    def flush():
        if not plain.strip():
            return ""
        lead = len(plain) - len(plain.lstrip())
        word = plain.strip()
        width = sum(map(wide, word)) * CELL_W
        return (f'<text x="{at + lead * CELL_W:.1f}" y="{y + CELL_H - 4.5:.1f}" textLength="{width:.1f}"'
                f' lengthAdjust="spacingAndGlyphs"{look}>{html.escape(word)}</text>')

    for c, again in itertools.groupby(text):
        n = len(list(again))
        if c == "\u2500" and n > 1:                  # a rule is one line
            out += flush() + f'<path d="M{x:.1f} {y + CELL_H / 2:.1f}h{n * CELL_W:.1f}" stroke="{ink}" fill="none"/>'
            x += n * CELL_W
            plain, at = "", x
            continue
        for c in c * n:
            shape = block(c, x, y, ink)
            if shape:
                out += flush() + (f'<g opacity="0.6">{shape}</g>' if style.get("dim") else shape)
                plain, at = "", x + CELL_W
            else:
                plain += c
            x += wide(c) * CELL_W
    return out + flush()


def draw_row(row, y):
    return "".join(draw_run(*run, y) for run in row)


def draw_cursor(cursor):
    return (f'<rect x="{PAD + cursor[0] * CELL_W:.1f}" y="{PAD + cursor[1] * CELL_H:.1f}" width="{CELL_W}"'
            f' height="{CELL_H}" fill="{INK}" opacity="0.55"/>')


def svg(cols, rows, body):
    w, h = 2 * PAD + cols * CELL_W, 2 * PAD + rows * CELL_H
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}"'
            f' font-family="{FONT}" font-size="14" fill="{INK}" xml:space="preserve">\n'
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>\n{body}\n</svg>\n')


def picture(screen, cols, n_rows):
    rows, cursor = screen
    body = [draw_row(row, PAD + i * CELL_H) for i, row in enumerate(rows)]
    return svg(cols, n_rows, "\n".join(filter(None, body + [draw_cursor(cursor) if cursor else ""])))


def sheet(tiles):
    """tiles: (title, picture).  From left to right as they fit, each as wide as its terminal, scaled alike."""
    body, x, y, tallest, widest = [], 0, 0, 0, 0
    for title, drawing in tiles:
        w, h = (int(n) * .6 for n in re.search(r'width="(\d+)" height="(\d+)"', drawing).groups())
        if x > 0 and x + w > SHEET_W:
            x, y, tallest = 0, y + tallest + GAP, 0
        body.append(f'<text x="{x + 4:.0f}" y="{y + 14:.0f}" fill="#808892">{html.escape(title)}</text>'
                    + re.sub(r'width="\d+" height="\d+"', f'x="{x:.0f}" y="{y + 22:.0f}" width="{w:.0f}" height="{h:.0f}"',
                             drawing, count=1))
        x, tallest = x + w + GAP, max(tallest, h + 22)
        widest = max(widest, x - GAP)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest:.0f} {y + tallest:.0f}" width="{widest:.0f}"'
            f' height="{y + tallest:.0f}" font-family="{FONT}" font-size="12">\n' + "\n".join(body) + "</svg>\n")


def animation(frames, still, cols, n_rows):
    """frames: (seconds, screen).  What a row shows, and for how long, is one element; where nothing moves, those of the
    second `still` are seen."""
    length = frames[-1][0] + 3
    body = []

    def add(drawing, begin, end):
        if not drawing:
            return
        keys, values = [0, begin / length, min(end / length, 1)], ["hidden", "visible", "hidden"]
        if begin == 0:
            keys, values = keys[1:], values[1:]
        if end >= length:
            keys, values = keys[:-1], values[:-1]
        show = (f'<animate attributeName="visibility" calcMode="discrete" dur="{length:.2f}s" repeatCount="indefinite"'
                f' values="{";".join(values)}" keyTimes="{";".join("%.4f" % k for k in keys)}"/>') if len(keys) > 1 else ""
        hidden = "" if not show or begin <= still < end else ' visibility="hidden"'
        body.append(f"<g{hidden}>{show}{drawing}</g>")

    for i in range(n_rows + 1):                     # the last one is the cursor
        since, what = 0, None
        for t, (rows, cursor) in frames + [(length, ([], ()))]:
            now = None if t == length else cursor if i == n_rows else rows[i] if i < len(rows) else []
            if now != what:
                if what:
                    add(draw_cursor(what) if i == n_rows else draw_row(what, PAD + i * CELL_H), since, t)
                since, what = t, now
    return svg(cols, n_rows, "\n".join(body))


# -- The script -------------------------------------------------------------------------------------

def play(ebb, script):
    global yield_frame, GROUND, INK, ANSI
    cols, rows, frames, term, tiles, title = 100, 30, [], None, [], ""
    start, still = 0.0, None

    def film():
        screen = term.screen()
        if not frames or frames[-1][1] != screen:
            frames.append((time.time() - start, screen))

    def rest(seconds):
        end = time.time() + seconds
        while time.time() < end:
            yield_frame()
            time.sleep(min(FRAME_S / 2, max(0.0, end - time.time())))

    try:
        for number, line in enumerate(open(script), 1):
            word, _, rest_of = line.rstrip("\n").partition(" ")
            if not word or word.startswith("#"):
                continue
            if word == "size":
                if term:
                    time.sleep(0.3)
                    tiles.append((title, picture(term.screen(), cols, rows)))
                    term.close()
                    term, title, (GROUND, INK, ANSI) = None, "", DARK
                cols, rows = map(int, rest_of.split())
                continue
            if word == "title":
                title = rest_of
                continue
            if word == "light":
                GROUND, INK, ANSI = LIGHT
                continue
            term = term or Terminal(cols, rows, os.path.abspath(ebb))
            if word == "still":
                still = time.time() - start
            elif word == "film":
                start, yield_frame = time.time(), film
            elif word == "run":
                term.tmux("send-keys", "-l", "clear; " + rest_of)
                term.tmux("send-keys", "Enter")
            elif word == "type" and frames:
                for c in rest_of:
                    term.tmux("send-keys", "-l", c)
                    rest(0.05)
            elif word == "type":
                term.tmux("send-keys", "-l", rest_of)
            elif word == "key":
                term.tmux("send-keys", *rest_of.split())
            elif word in ("wait", "gone"):
                term.wait(rest_of, word == "wait")
            elif word == "pause":
                rest(float(rest_of))
            else:
                raise SystemExit(f"{script}:{number}: what is '{word}'?")
            yield_frame()
        time.sleep(0.3)
        if frames:
            return animation(frames, frames[-1][0] if still is None else still, cols, rows)
        last = picture(term.screen(), cols, rows)
        return sheet(tiles + [(title, last)]) if tiles else last
    finally:
        if term:
            term.close()


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    drawing = play(sys.argv[1], sys.argv[2])
    with open(sys.argv[3], "w") as f:
        f.write(drawing)


if __name__ == "__main__":
    main()
