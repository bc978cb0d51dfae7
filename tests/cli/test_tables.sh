#!/bin/sh
# tools/tables.sh: a row for each row of the paper's tables, with a prediction; nothing is measured without weights.
set -eu
shapes=../shared/tools/make-model.py
[ -e "$shapes" ] || { echo "no $shapes"; exit 77; }
for python in python3 /usr/bin/python3; do "$python" -c 'import numpy' 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "no numpy"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHON=$python sh tools/tables.sh "$shapes" >"$dir/out"
[ "$(grep -c '^Table [0-9],' "$dir/out")" = 6 ] || { cat "$dir/out"; exit 1; }
[ "$(grep -cE '\| [0-9]+/[0-9]+ \| [0-9.]+ \| [0-9.]+ \| - \|$' "$dir/out")" = 96 ] || { cat "$dir/out"; exit 1; }
PYTHON=$python ONLY=8 sh tools/tables.sh "$shapes" >"$dir/out"
[ "$(grep -c '^Table' "$dir/out")" = 2 ] || { cat "$dir/out"; exit 1; }
! sh tools/tables.sh 2>"$dir/err" || exit 1
grep -q 'tables.sh SHAPES' "$dir/err"
