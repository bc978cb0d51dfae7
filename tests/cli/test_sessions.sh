# ebb sessions: import, list, show, search, rename, export, delete.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
XDG_STATE_HOME=$dir/state; export XDG_STATE_HOME

cat >"$dir/a.json" <<'END'
{"messages": [{"role": "system", "content": "Be brief."},
 {"role": "user", "content": "Where does the Danube begin?"},
 {"role": "assistant", "content": "In Donaueschingen.\u001b[31m"}]}
END
printf '# Cheese\n\n## user\n\nWhich one?\n\n## assistant\n\nEmmentaler.\n' >"$dir/b.md"

[ -z "$($EBB sessions list)" ] || fail "the list of nothing is not empty"
$EBB sessions import "$dir/a.json" >/dev/null || fail "import json"
$EBB sessions import "$dir/b.md" cheese >/dev/null || fail "import md"
$EBB sessions import "$dir/b.md" cheese 2>"$dir/err" && fail "the same name twice"
grep -q already "$dir/err" || fail "the second name: $(cat "$dir/err")"
[ "$($EBB sessions list | wc -l)" -eq 2 ] || fail "list: $($EBB sessions list)"
$EBB sessions list | head -n 1 | grep -q cheese || fail "the newest is not the first"
$EBB sessions list >"$dir/out"; $EBB sessions list --json >>"$dir/out"; grep -Eq '[0-9] tokens|"tokens":[0-9]' "$dir/out" && fail "what nobody has counted has a count: $(cat "$dir/out")"
$EBB sessions list --json | grep -q '"name":"Where does the Danube begin?"' || fail "json: $($EBB sessions list --json)"
$EBB sessions search danube beg | grep -q 'Where does the Danube begin?' || fail "search"
[ -z "$($EBB sessions search nothing-like-it)" ] || fail "search found something"
$EBB sessions search --json donau | grep -q '"role":"assistant"' || fail "search --json"
# In plain mode what could not be loaded is not shown either: the answer to the next line is not the history.
printf 'hello\n/load nope\nhello\n' | $EBB --plain -m guide -n 4 --greedy -s talk >"$dir/out" 2>&1
[ "$(sed -n '/^Error: .*nope/,$p' "$dir/out" | wc -l)" -eq 2 ] || fail "/load that fails: $(cat "$dir/out")"
$EBB sessions list | grep -q ' [1-9][0-9]* tokens  talk ' && $EBB sessions list --json | grep -q '"tokens":[1-9]' || fail "the count: $($EBB sessions list)"
$EBB sessions delete talk >/dev/null || fail "delete"
# What is not shown is told; the words are as many as the store takes.
$EBB sessions search a b c d e f g h 2>"$dir/err" || fail "eight words: $(cat "$dir/err")"
$EBB sessions search $(seq 33) 2>"$dir/err"; grep -q '32 at most' "$dir/err" || fail "33 words: $(cat "$dir/err")"
awk 'BEGIN { printf "{\"messages\": ["; for (i = 0; i < 101; i++) printf "%s{\"role\": \"user\", \"content\": \"pin %d\"}", i ? "," : "", i; print "]}" }' >"$dir/pins.json"
$EBB sessions import "$dir/pins.json" pins >/dev/null || fail "import of many"
[ "$($EBB sessions search pin 2>"$dir/err" | grep -c 'user: pin')" -eq 100 ] || fail "not the newest hundred"
grep -q 'newest 100 messages with these words, and there are more' "$dir/err" || fail "it is not said: $(cat "$dir/err")"
$EBB sessions search pin --json 2>/dev/null | grep -q '"more":true' || fail "the JSON does not say it"
$EBB sessions search pin 1 2>"$dir/err" | grep -q 'user: pin 1' && [ ! -s "$dir/err" ] || fail "all are shown, and it says: $(cat "$dir/err")"
$EBB sessions delete pins || fail "delete of many"
printf 'Where does the Danube begin?\nAnd where does it' >"$dir/state/ebb/draft-1"
$EBB sessions rename 'Where does the Danube begin?' rivers || fail "rename"
head -n 1 "$dir/state/ebb/draft-1" | grep -qE '^1	[0-9]{13}$' || fail "what was typed there stayed behind"
$EBB sessions show rivers | grep -q 'Donaueschingen' || fail "show"
$EBB sessions export rivers "$dir/out.json" || fail "export"
$EBB sessions export rivers "$dir/out.json" 2>/dev/null && fail "a file was overwritten"
$EBB sessions import "$dir/out.json" copy >/dev/null || fail "import of an export"
[ "$($EBB sessions show rivers)" = "$($EBB sessions show copy)" ] || fail "the copy differs"
$EBB sessions delete copy && $EBB sessions delete rivers || fail "delete"
$EBB sessions show rivers 2>"$dir/err"; [ $? -eq 1 ] || fail "show of a deleted one"
grep -q "no session 'rivers'" "$dir/err" || fail "its message: $(cat "$dir/err")"
# Several of one title: none is taken, their numbers are told.  What had a date keeps it.
cat >"$dir/old.json" <<'END'
{"messages": [{"role": "user", "content": "An old one", "created": "2019-03-04T05:06:07Z"}, {"role": "assistant", "content": "Yes.", "created": "2019-03-04T05:07:00Z"}]}
END
cat >"$dir/gpt.json" <<'END'
[{"title": "From elsewhere", "mapping": {"a": {"id": "a", "message": {"author": {"role": "user"}, "create_time": 1500000000.5, "content": {"parts": ["Hi"]}}, "children": []}}}]
END
for i in 1 2 3; do $EBB sessions import "$dir/old.json" >/dev/null || fail "import $i"; done
$EBB sessions delete 'An old one' 2>"$dir/err" && fail "one of three was deleted"
grep -qE "3 sessions are called 'An old one': [0-9]+, [0-9]+, [0-9]+; name one by its number" "$dir/err" || fail "ambiguous: $(cat "$dir/err")"
# Several at once: all that are named, each once, or none.
old=$(sed -n "s/.*'An old one': \([0-9]*\), \([0-9]*\), .*/\1 \2/p" "$dir/err")
$EBB sessions delete $old nobody 2>"$dir/err2" && fail "some of which one is missing were deleted"
grep -q "no session 'nobody'" "$dir/err2" || fail "the missing one: $(cat "$dir/err2")"
$EBB sessions list | grep -c '2019-03-04' | grep -qx 3 || fail "dates: $($EBB sessions list)"
$EBB sessions import "$dir/gpt.json" >/dev/null && $EBB sessions list | grep 'From elsewhere' | grep -q '2017-07-1[34]' || fail "date: $($EBB sessions list)"
set -- $old
$EBB sessions delete --json "$1" "$2" "0$1" | grep -qx "{\"ids\":\[$1,$2\]}" || fail "delete of two"
$EBB sessions list | grep -c '2019-03-04' | grep -qx 1 || fail "two of three: $($EBB sessions list)"
$EBB sessions list | head -n 1 | grep -q cheese || fail "an old one is the newest"
# A number is a name only where no other session has it.
first=$($EBB sessions list | awk '{ print $1; exit }')
$EBB sessions import "$dir/b.md" "$first" 2>"$dir/err" && fail "import took the number of another session"
grep -q "$first is the number of another session" "$dir/err" || fail "its number: $(cat "$dir/err")"
$EBB sessions import "$dir/b.md" 20261129 >/dev/null && $EBB sessions show 20261129 >/dev/null && $EBB sessions delete 20261129 || fail "a date as a name"
# It is found by the number that lists show, in each command; only -s may mean a new one.
$EBB sessions import "$dir/b.md" 20261129 >/dev/null || fail "a date as a name, again"
number=$($EBB sessions list | awk '{ print $1; exit }')
$EBB sessions rename "$number" '  ' 2>"$dir/err" && fail "a name of blanks"
grep -q "may not begin or end with a blank" "$dir/err" || fail "a name of blanks: $(cat "$dir/err")"
$EBB sessions show "$number" >/dev/null && $EBB sessions export "$number" >/dev/null || fail "a date by its number"
printf '/load %s\n/title\n' "$number" | $EBB --plain -m guide 2>&1 | grep -q 'its name, 20261129 ' || fail "/load of a number"
$EBB run -m guide -n 1 -s "$number" hi 2>"$dir/err"; [ $? -eq 1 ] || fail "a question went into another session"
grep -q ": 0$number is that one" "$dir/err" || fail "which one it is: $(cat "$dir/err")"
$EBB run -m guide -n 1 -s "0$number" hi >/dev/null || fail "the number of a date"
[ "$($EBB sessions show 20261129 | grep -cx hi)" -eq 1 ] || fail "where it went: $($EBB sessions show 20261129)"
# What gets the number while the input is still written is a stranger, and nothing goes into it.
taken=$(($($EBB sessions list | awk '{ print $1 }' | sort -n | tail -n 1) + 1))
mkfifo "$dir/input"
$EBB run -m guide -n 1 -s "$taken" <"$dir/input" >/dev/null 2>"$dir/err" &
asks=$!
exec 9>"$dir/input"
head -c 200000 /dev/zero | tr '\0' ' ' >&9       # more than a pipe holds: it reads
$EBB sessions import "$dir/b.md" stranger >/dev/null && $EBB sessions show "$taken" >/dev/null || fail "another number: $($EBB sessions list)"
echo hi >&9; exec 9>&-
wait $asks && fail "a question went to a stranger: $($EBB sessions show "$taken")"
grep -q "^ebb: $taken is the number of another session; choose another name" "$dir/err" || fail "that it is: $(cat "$dir/err")"
$EBB sessions delete stranger || fail "delete of a stranger"
# A new session gets no number that is a name, and what is offered finds the one that it is of.
next=$((taken + 2))
$EBB sessions rename "$number" "$((taken + 1))" || fail "the next number as a name"
$EBB sessions import "$dir/b.md" >/dev/null && $EBB sessions show "$next" >/dev/null || fail "its number: $($EBB sessions list)"
$EBB completion sessions | grep -qx "$((taken + 1))" || fail "it is not offered: $($EBB completion sessions)"
$EBB sessions delete "$next" && $EBB sessions delete "$number" || fail "delete of dates"
# Names are one line of UTF-8, also those that the command line gives.
for name in '' "$(printf 'a\nb')" "$(printf 'x\303')"; do
    $EBB sessions import "$dir/b.md" "$name" 2>"$dir/err" && fail "import took the name '$name'"
    grep -q "a session's name" "$dir/err" || fail "its name: $(cat "$dir/err")"
done
# What another process writes in is not deleted under its hands; whose lock that is stands in the file.
$EBB sessions import "$dir/b.md" written >/dev/null || fail "import to be written in"
number=$($EBB sessions list | sed -n 's/^ *\([0-9]*\) .* written$/\1/p')
lock=$dir/state/ebb/sessions.db-writer-$number
echo 4242 >"$lock"
flock "$lock" $EBB sessions delete written 2>"$dir/err"; [ $? -eq 1 ] || fail "what is written in was deleted"
grep -q 'process 4242 still writes an answer in this session: `ebb stop 4242` ends that' "$dir/err" ||
    fail "who writes in it: $(cat "$dir/err")"
$EBB sessions delete written && [ ! -e "$lock" ] || fail "delete of what nobody writes in"
$EBB sessions undelete 2>"$dir/err"; [ $? -eq 1 ] && grep -q 'nothing can come back' "$dir/err" || fail "undelete: $(cat "$dir/err")"
$EBB sessions wat 2>/dev/null; [ $? -eq 2 ] || fail "usage"
$EBB sessions show 2>/dev/null; [ $? -eq 2 ] || fail "usage of show"
[ "$(stat -c %a "$dir/state/ebb")" = 700 ] || fail "mode of the directory"
[ "$(stat -c %a "$dir/state/ebb/sessions.db")" = 600 ] || fail "mode of the file"

echo garbage-garbage-garbage >"$dir/state/ebb/sessions.db"
rm -f "$dir"/state/ebb/sessions.db-*
$EBB sessions list 2>"$dir/err"; [ $? -eq 1 ] || fail "garbage was read"
[ "$(wc -l <"$dir/err")" -eq 1 ] || fail "more than a line: $(cat "$dir/err")"

XDG_DATA_HOME=$dir/data EBB_MODELS=$dir; export XDG_DATA_HOME EBB_MODELS
: >"$dir/x.gguf"
$EBB models | grep -q "$dir/x.gguf" || fail "models"
$EBB models --json | grep -q '"bytes":0' || fail "models --json"
exit 0
