#!/bin/sh
# Files, folders, functions and types that the documents name in `...` are there.
set -eu
status=0 n=0
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
find include src tests tools models docs themes prompts Makefile -type f >"$list"
for page in README.md docs/*.md models/*.md models/corpus/*.md; do
    folder=$(dirname "$page")
    for name in $(grep -v '^```' "$page" | grep -oE '`[^` ]+`' | tr -d '`' | sort -u); do
        case $name in
        *'*'* | *'$'* | *'~'* | *'<'* | /*) ;;
        ebb_*[a-z0-9])
            n=$((n + 1))
            grep -rqwE --include='*.[ch]' "$name" include src || { echo "$page: there is no $name"; status=1; } ;;
        *.c | *.h | *.sh | *.py | */)
            n=$((n + 1))
            [ -e "$folder/$name" ] || grep -qE "(^|/)$name" "$list" || { echo "$page: there is no $name"; status=1; } ;;
        esac
    done
done
[ $n -ge 30 ] || { echo "only $n names were found"; status=1; }
exit $status
