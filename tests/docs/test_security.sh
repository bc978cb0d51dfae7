#!/bin/sh
# SECURITY.md: each row of the threat model says what shows it, and every test that the page names is there, by file and by name.
set -eu
. tests/docs/named_tests.sh
page=SECURITY.md
status=0

check_named_tests "$page" "$page"
[ "$n_named" -ge 40 ] || { echo "$page: only $n_named tests are named"; status=1; }
grep '^| .* promises | shown by |$' "$page" >/dev/null || { echo "$page has no threat model"; status=1; }
sed -n '/ promises | shown by |$/,/^$/p' "$page" | sed 1,2d | grep '^|' | grep -vE '`[a-z/_0-9]+/test_[a-z_0-9]+\.(c|sh)(: [a-z_0-9]+)?` \|$' &&
    { echo "$page: a promise without a test"; status=1; }
exit $status
