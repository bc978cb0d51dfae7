#!/bin/sh
# docs/DEMANDS.md: every demand has a number, a state and what shows it; every test that is named is there, by file and by
# name; what works names a test, a command or a page, what differs a reason; the sums are those of the rows.
set -eu
. tests/docs/named_tests.sh
page=docs/DEMANDS.md
status=0
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
grep -E '^\| [0-9]+ \|' "$page" >"$rows"

awk -F' \\| ' '{ sub(/^\| /, "", $1); if ($1 != NR) { print "number " $1 " where " NR " was to come"; exit 1 } }' "$rows" || status=1
awk -F' \\| ' 'NF != 5 || $2 == "" || $3 == "" || $4 !~ /^(yes|other|part|no)$/ || length($5) < 8 { print "a row that is not whole: " $0; bad = 1 }
               END { exit bad }' "$rows" || status=1
awk -F' \\| ' '$4 == "yes" && $5 !~ /`|\.md/ { if ($5 !~ /not done|no code/) { print "nothing shows " $0; bad = 1 } } END { exit bad }' "$rows" || status=1

count() { awk -F' \\| ' -v state="$1" '$4 == state { n++ } END { print n + 0 }' "$rows"; }
sum="Of $(wc -l <"$rows") demands $(count yes) work, $(count other) are deliberately different, $(count part) are there in part, $(count no) are not there."
grep -qF "$sum" "$page" || { echo "$page does not say: $sum"; status=1; }
[ "$(wc -l <"$rows")" -ge 134 ] || { echo "only $(wc -l <"$rows") demands"; status=1; }

check_named_tests "$page" "$rows"

# commands: the subcommand is there, and so are its options
grep -oE '`ebb [a-z]+[^`]*`' "$rows" | tr -d '`' | sort -u >"$rows.commands"
while read -r _ command rest; do
    for word in $rest; do
        case $word in
        --help) ;;
        --*) "$EBB" "$command" --help | grep -q -e "^ .*$word\( \|\$\)" || { echo "$page: ebb $command has no $word"; status=1; } ;;
        esac
    done
    "$EBB" --help | grep -q "^  ebb $command " || { echo "$page: there is no ebb $command"; status=1; }
done <"$rows.commands"
rm -f "$rows.commands"
for page_named in $(grep -oE '[A-Z]+\.md' "$rows" | sort -u); do
    [ -f "docs/$page_named" ] || { echo "$page: there is no docs/$page_named"; status=1; }
done
exit $status
