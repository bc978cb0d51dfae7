#!/bin/sh
# No line has more than 120 columns, and none of a header more than 100.
set -u
held='include src tests examples'
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

n=$(find $held -name '*.[ch]' | wc -l)
[ "$n" -ge 800 ] || { echo "only $n files were found"; exit 1; }
find $held -name '*.[ch]' | sort | xargs awk '
    { most = FILENAME ~ /\.h$/ ? 100 : 120 }
    length($0) > most { printf "%s:%d: %d columns\n", FILENAME, FNR, length($0) }' >"$out"
cat "$out"
[ ! -s "$out" ]
