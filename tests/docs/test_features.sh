#!/bin/sh
# docs/FEATURES.md: every test that it names is there, by file and by name; what is ticked names one, what is not ticked none.
set -eu
. tests/docs/named_tests.sh
page=docs/FEATURES.md
status=0
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
grep '^- \[' "$page" >"$rows" || { echo "$page has no features"; exit 1; }

check_named_tests "$page" "$rows"
[ $n_named -ge 50 ] || { echo "only $n_named tests are named"; status=1; }
grep -oE '`[a-z/_0-9]+/test_[a-z_0-9]+\.c`' "$rows" | sed 's/$/: which test of it?/' | grep . && status=1

grep '^- \[x\]' "$rows" | grep -vE '/test_[a-z_0-9]+\.(c|sh)' && { echo "ticked without a test"; status=1; }
grep '^- \[ \]' "$rows" | grep -E '/test_[a-z_0-9]+\.(c|sh)' && { echo "a test, but no tick"; status=1; }
grep -vE '^- \[[x ]\] ' "$rows" && { echo "neither ticked nor not"; status=1; }
exit $status
