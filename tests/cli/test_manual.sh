#!/bin/sh
# Every command, option and face of a theme that the program has stands in its manual page, and
# the manual page names no option that the program lacks; mandoc finds nothing wrong with it.
set -eu
page=docs/ebb.1
status=0
commands=$("$EBB" --help | sed -n 's/^  ebb \([a-z]*\) .*/\1/p')
[ -n "$commands" ]
all=
for c in $commands; do
    grep -q "^\.It Cm $c" "$page" || { echo "command $c is not in $page"; status=1; }
    all="$all $("$EBB" "$c" --help | sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p')"
done
for o in $all; do
    grep -qE -- "^\.It .* ${o#-}( |$)" "$page" || { echo "option $o is not in $page"; status=1; }
done
for o in $(sed -n 's/^\.It.* -\([a-z][a-z-]*\).*/--\1/p' "$page"); do
    case " $(echo $all) " in *" $o "*) ;; *) echo "$page has $o, which the program lacks"; status=1 ;; esac
done
for face in $(sed -n 's/^\([a-z-]*\) *=.*/\1/p' themes/dark.theme); do
    grep -q "^\.Cm .*\<$face\>" "$page" || { echo "face $face is not in $page"; status=1; }
done
if command -v mandoc >/dev/null; then
    faults=$(mandoc -Tlint -Wwarning "$page" 2>&1 | grep -v 'mandoc\.db' || true)
    [ -z "$faults" ] || { echo "$faults"; status=1; }
fi
exit $status
