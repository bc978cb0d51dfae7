#!/usr/bin/env python3
"""Draws each table of docs/data as docs/plot-NAME.svg, and puts that of the memory limits into README.md.

    tools/plot.py [-o FOLDER] [FILE.tsv ...]

A table has tabs between its columns, "-" where nothing was measured, a first line with the names (x, then one for
each series), and comments that tell how to draw it:

    # title: ...      # x: what stands below      # y: what stands at the left      # bars: one group for each x
    # log             the x axis is logarithmic
    # note: ...       machine, model, date; stands under the picture
"""
import html
import math
import pathlib
import sys

W, H, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 62, 20, 62, 78
INK, PALE, GRID = "#24292f", "#6b7280", "#e3e6ea"
SERIES = ["#1f77b4", "#d2691e", "#3c9d5b", "#8a63c9", "#b5446e"]


def read(path):
    told, head, rows = {}, None, []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            key, _, value = line[1:].strip().partition(":")
            told[key.strip()] = value.strip()
        elif line.strip():
            cells = line.split("\t")
            if head is None:
                head = cells
            else:
                rows.append([cells[0]] + [None if c in ("-", "") else float(c) for c in cells[1:]])
    return told, head, rows


def ticks(top):
    """Round numbers from 0 to just above top."""
    step = 10 ** math.floor(math.log10(top / 4))
    step *= next(f for f in (1, 2, 5, 10) if top / (step * f) <= 6)
    return [i * step for i in range(int(math.ceil(top / step)) + 1)]


def text(x, y, s, anchor="middle", size=12, fill=INK, more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}"{more}>'
            f'{html.escape(s)}</text>')


def number(v):
    return f"{v:.0f}" if v >= 20 else f"{v:.1f}" if v >= 2 else f"{v:.2f}"


def places(rows, told):
    """The x of each row, and the labels below, in pixels; a column that holds words is laid out evenly."""
    room = W - LEFT - RIGHT
    try:
        xs = [float(r[0]) for r in rows]
    except ValueError:
        xs = None
    if "bars" in told or xs is None or len(xs) < 2:
        return [LEFT + room * (i + 0.5) / len(rows) for i in range(len(rows))]
    if "log" in told:
        xs = [math.log(x) for x in xs]
    lo, hi = (0, max(xs)) if min(xs) >= 0 and "log" not in told else (min(xs), max(xs))
    return [LEFT + 24 + (room - 48) * (x - lo) / (hi - lo) for x in xs]


def draw(told, head, rows):
    high = ticks(max(v for r in rows for v in r[1:] if v is not None) * 1.05)
    y = lambda v: H - BOTTOM - (H - BOTTOM - TOP) * v / high[-1]
    xs, n = places(rows, told), len(head) - 1
    out = [text(LEFT, 24, told.get("title", ""), "start", 15, INK, ' font-weight="bold"')]
    for v in high:
        out.append(f'<path d="M{LEFT} {y(v):.1f}H{W - RIGHT}" stroke="{GRID}"/>')
        out.append(text(LEFT - 8, y(v) + 4, f"{v:g}", "end", 11, PALE))
    for x, r in zip(xs, rows):
        out.append(text(x, H - BOTTOM + 18, r[0], size=11, fill=PALE))
    out.append(text(LEFT + (W - LEFT - RIGHT) / 2, H - BOTTOM + 38, told.get("x", head[0])))
    out.append(text(16, TOP + (H - TOP - BOTTOM) / 2, told.get("y", ""), more=f' transform="rotate(-90 16 {TOP + (H - TOP - BOTTOM) / 2:.0f})"'))
    at = LEFT
    for i, name in enumerate(head[1:]):
        if all(r[i + 1] is None for r in rows):
            continue
        ink = SERIES[i % len(SERIES)]
        out.append(f'<rect x="{at}" y="36" width="12" height="12" rx="2" fill="{ink}"/>')
        out.append(text(at + 17, 46, name, "start"))
        at += 36 + 7 * len(name)
        points = [(x, r[i + 1]) for x, r in zip(xs, rows) if r[i + 1] is not None]
        if "bars" in told:
            wide = min(46, (W - LEFT - RIGHT) / len(rows) * 0.8 / n)
            for x, v in points:
                left = x - wide * n / 2 + i * wide
                out.append(f'<rect x="{left:.1f}" y="{y(v):.1f}" width="{wide - 2:.1f}" height="{y(0) - y(v):.1f}" fill="{ink}"/>')
                out.append(text(left + wide / 2 - 1, y(v) - 4, number(v), size=10))
            continue
        if points:
            line = " ".join(f"{x:.1f},{y(v):.1f}" for x, v in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{ink}" stroke-width="2"/>')
        for x, v in points:
            out.append(f'<circle cx="{x:.1f}" cy="{y(v):.1f}" r="3.5" fill="{ink}"/>')
            out.append(text(x, y(v) - 8, number(v), size=10))
    out.append(text(LEFT, H - 14, told.get("note", ""), "start", 11, PALE))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {H}" width="{W}" height="{H}" font-family="sans-serif">\n'
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(out) + "\n</svg>\n")


HEAD = "| memory | ebb | llama.cpp |\n|---|---|---|\n"


def readme_table(rows):
    cell = lambda v: "" if v is None else f"{v:.1f}"
    return HEAD + "".join(f"| {'no limit' if r[0] == 'none' else r[0]} | {cell(r[1])} | {cell(r[2])} |\n" for r in reversed(rows))


def update_readme(readme, rows):
    text = readme.read_text()
    before, _, after = text.partition(HEAD)
    while after.startswith("|"):
        after = after.partition("\n")[2]
    new = before + readme_table(rows) + after
    if new != text:
        readme.write_text(new)


def main():
    args, out = sys.argv[1:], pathlib.Path(__file__).resolve().parent.parent / "docs"
    files = sorted((out / "data").glob("*.tsv"))
    if args[:1] == ["-o"]:
        out, args = pathlib.Path(args[1]), args[2:]
    for path in map(pathlib.Path, args or files):
        told, head, rows = read(path)
        if rows:
            (out / f"plot-{path.stem}.svg").write_text(draw(told, head, rows))
        if path.stem == "memory" and not args:
            update_readme(out.parent / "README.md", rows)


if __name__ == "__main__":
    main()
