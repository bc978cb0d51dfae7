#!/bin/sh
# docs/FEATURES.md: every test that it names is there, by file and by name; what is ticked names one, what is not ticked none.
set -eu
page=docs/FEATURES.md
status=0
grep '^- \[' "$page" >/dev/null || { echo "$page has no features"; exit 1; }

refs=$(grep '^- \[' "$page" | grep -oE '`[a-z/_0-9]+/test_[a-z_0-9]+\.(c|sh)(: [a-z_0-9]+)?`' | tr -d '`' | tr ' ' '~' | sort -u)
n=0
for ref in $refs; do
    n=$((n + 1))
    file=tests/${ref%%:*} name=
    case $ref in *:~*) name=${ref#*:~} ;; esac
    if [ ! -f "$file" ]; then
        echo "$page: there is no $file"; status=1
    elif [ -n "$name" ]; then
        # defined as a test, and in the table of tests
        grep -q "^static void $name(void \*\*" "$file" || { echo "$page: $file has no $name"; status=1; }
        [ "$(grep -cw "$name" "$file")" -ge 2 ] || { echo "$page: $file does not run $name"; status=1; }
    else
        case $file in *.c) echo "$page: which test of $file?"; status=1 ;; esac
    fi
done
[ $n -ge 50 ] || { echo "only $n tests are named"; status=1; }

grep '^- \[x\]' "$page" | grep -vE '/test_[a-z_0-9]+\.(c|sh)' && { echo "ticked without a test"; status=1; }
grep '^- \[ \]' "$page" | grep -E '/test_[a-z_0-9]+\.(c|sh)' && { echo "a test, but no tick"; status=1; }
grep '^- \[' "$page" | grep -vE '^- \[[x ]\] ' && { echo "neither ticked nor not"; status=1; }
exit $status
