#!/bin/sh
# The form of a session's answers: /schema and /grammar in the chat, kept over a restart and by a branch, free again, refused with a reason.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
HOME=$dir; export HOME
unset EBB_MODELS XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR http_proxy HTTP_PROXY all_proxy ALL_PROXY
fail() { echo "$*"; cat "$dir/out"; exit 1; }
talk() { timeout 600 "$EBB" --plain -m guide --greedy "$@" >"$dir/out" 2>&1 || fail "exit $?: $*"; }
# One to a line: white space of JSON may be a line's end.
answers() {
    awk '/^(Model|You|Note|Error): / { if (a != "") print a; a = "" } /^Model: / { a = substr($0, 8); next } a != "" { a = a " " $0 }
         END { if (a != "") print a }' "$dir/out"
}
cat >"$dir/book.json" <<'JSON'
{"type": "object", "additionalProperties": false, "required": ["title", "year"],
 "properties": {"title": {"type": "string", "maxLength": 20}, "year": {"type": "integer", "minimum": 1900, "maximum": 2026}}}
JSON
cat >"$dir/check.py" <<'PY'
import json, sys
lines = sys.stdin.read().split("\n")[:-1]
assert len(lines) == int(sys.argv[1]), lines
for o in map(json.loads, lines):
    assert list(o) == ["title", "year"] and len(o["title"]) <= 20 and 1900 <= o["year"] <= 2026, o
PY
is_book() { answers | python3 "$dir/check.py" "$1" || fail "not of the schema"; }
printf 'root ::= ("yes" | "no") "!"\n' >"$dir/yes.gbnf"

# From the next answer on; a restart keeps it, also where the file has gone; a branch has it, too.
talk -s book <<IN
/schema
/schema $dir/book.json
A book
IN
grep -q '^Note: answers have no form' "$dir/out" || fail "no word of what there is"
grep -q "^Note: answers are JSON under the schema $dir/book.json from here on" "$dir/out" || fail "it is not said"
is_book 1
mv "$dir/book.json" "$dir/gone.json"
printf '/branch 1\nAnother book\n/schema\n' | talk -s book
[ "$(answers | tail -n 1 | python3 "$dir/check.py" 1 2>&1)" = "" ] || fail "the branch lost it"
grep -q "^Note: answers are JSON under the schema $dir/book.json" "$dir/out" || fail "the session lost it"
"$EBB" sessions replay book >"$dir/out" 2>&1 || fail "sampled again it differs"
# Free again; a grammar in its place; a schema in words.
printf '/schema off\nHow do I leave?\n' | talk -s book
answers | tail -n 1 | grep -q quit || fail "it is not free"
printf '/grammar %s\nIs it?\n/schema {"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}\nx\n' "$dir/yes.gbnf" | talk
answers | head -n 1 | grep -qx 'yes!\|no!' || fail "not of the grammar"
answers | tail -n 1 | tr -d ' ' | grep -qx '{"a":1}' || fail "not of the schema in words"
# What a comment holds that is no UTF-8 takes neither the form along nor the record of how it was sampled.
printf 'root ::= ("yes" | "no") "!" # f\374r\n' >"$dir/latin.gbnf"
printf '/grammar %s\nIs it?\n' "$dir/latin.gbnf" | talk -s latin
"$EBB" sessions replay latin >"$dir/out" 2>&1 || fail "no record of how it was sampled"
printf 'How do I leave?\n' | talk -s latin
answers | tail -n 1 | grep -qx 'yes!\|no!' || fail "the session lost the grammar in Latin-1"

# What is none is one line, and changes nothing.
printf '/grammar %s\n/schema %s\n/schema {"not": {}}\n/grammar %s\nIs it?\n' "$dir/yes.gbnf" "$dir/none.json" "$dir/gone.json" | talk
grep -q '^Error: .*none.json' "$dir/out" && grep -q '^Error: the schema: .*not is not supported' "$dir/out" &&
    grep -q '^Error: .*gone.json: the grammar, line 1' "$dir/out" || fail "no reasons"
answers | grep -qx 'yes!\|no!' || fail "the form is gone"

# Remote engines: one that takes none says so at once.
mkdir "$dir/server"
python3 tests/support/engine.py "$dir/server" & server=$!
n=600; until [ -s "$dir/server/port" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "no server"; sleep 0.1; done
echo 'kind=vllm model=big' >"$dir/server/how"
printf 'hello\n/grammar %s\n' "$dir/yes.gbnf" | timeout 600 "$EBB" --plain -e "http://127.0.0.1:$(cat "$dir/server/port")" >"$dir/out" 2>&1
grep -q '^Error: .* (vLLM) takes no grammar; /engine here has this process answer' "$dir/out" || fail "vLLM takes it"
# ... and one that would begin a form anew behind the answer so far is not asked to go on with it.
echo 'kind=llama model=big say=yes why=length' >"$dir/server/how"
printf '/grammar %s\nhello\n/continue\n/grammar off\n/continue\n' "$dir/yes.gbnf" | timeout 600 "$EBB" --plain -e "http://127.0.0.1:$(cat "$dir/server/port")" >"$dir/out" 2>&1
grep -q "^Error: .* (llama-server) would begin the answer's form anew; /retry asks for a whole one" "$dir/out" || fail "the form begins anew"
[ "$(grep -c '^Error' "$dir/out")" = 1 ] || fail "without a form it goes on"
exit 0
