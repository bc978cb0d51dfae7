#!/bin/sh
# No line has more than 120 columns, and none of a header more than 100.
set -u
# Roots and rooms that are there; a room that gets there joins them.
held='src/core src/engine/gguf src/engine/kernels src/engine/model src/engine/open src/engine/prefix_cache
    src/engine/residency src/engine/sample src/engine/speculate src/engine/tokenizer
    tests/core tests/support tests/tui tests/engine/kernels tests/engine/model
    tests/engine/residency tests/engine/speculate src/chat/serve'
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

n=$(find $held -name '*.[ch]' | wc -l)
[ "$n" -ge 200 ] || { echo "only $n files were found"; exit 1; }
find $held -name '*.[ch]' | sort | xargs awk '
    { most = FILENAME ~ /\.h$/ ? 100 : 120 }
    length($0) > most { printf "%s:%d: %d columns\n", FILENAME, FNR, length($0) }' >"$out"
cat "$out"
[ ! -s "$out" ]
