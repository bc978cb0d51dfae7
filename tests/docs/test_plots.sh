#!/bin/sh
# Tables and plots: tools/measure.sh writes tables of a small model, tools/plot.py draws them and the tables of docs/data;
# each committed plot is the one of its table, and every picture of the documents is well-formed.
set -eu
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
EBB=$EBB DATA=$dir RUNS=1 TOKENS=2 PROMPTS="8 16" DEPTHS="0 32" THREADS="1 2" RESIDENT="0 6" \
    sh tools/measure.sh models/guide.gguf prompt depth threads resident 2>"$dir/err" || fail "measure.sh: $(cat "$dir/err")"
for t in resident peak; do                       # of ebb alone
    [ "$(grep -c "^[0-9][0-9]*$(printf '\t')[0-9.]*$" "$dir/$t.tsv")" -eq 2 ] || fail "$t: $(cat "$dir/$t.tsv")"
done
for t in prompt depth threads; do
    [ "$(grep -c "^[0-9][0-9]*$(printf '\t')[0-9.]*$(printf '\t')-$" "$dir/$t.tsv")" -eq 2 ] || fail "$t: $(cat "$dir/$t.tsv")"
done
python3 tools/plot.py -o "$dir" "$dir"/*.tsv
[ "$(ls "$dir" | grep -c '^plot-.*svg$')" -eq 5 ] || fail "plots: $(ls "$dir")"
mkdir "$dir/docs"
python3 tools/plot.py -o "$dir/docs" docs/data/*.tsv
for plot in "$dir"/docs/plot-*.svg; do
    cmp -s "$plot" "docs/${plot##*/}" || fail "docs/${plot##*/} is not that of its table; run tools/plot.py"
done
python3 - <<'PY' || fail "README.md has other figures than docs/data/memory.tsv; run tools/plot.py"
import pathlib, sys
sys.path.insert(0, "tools")
sys.dont_write_bytecode = True
import plot
sys.exit(plot.readme_table(plot.read(pathlib.Path("docs/data/memory.tsv"))[2]) not in open("README.md").read())
PY
python3 - "$dir"/*.svg docs/*.svg <<'PY'
import sys, xml.dom.minidom
for path in sys.argv[1:]:
    xml.dom.minidom.parse(path)
PY
